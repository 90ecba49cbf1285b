"""The header is found by its chip's label, and the kernel is asked the way its own headers say."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.errors import BackendError
from heek.stations.header_chip import (
    CHIP_INFO,
    HEADER_LABELS,
    LINE_INFO,
    Chip,
    Line,
    chips,
    header,
    holder,
    lines,
)

# As gpiodetect and gpioinfo show them on these boards.
BOARDS = {
    "Pi 3": [("pinctrl-bcm2835", 54), ("brcmvirt-gpio", 2), ("raspberrypi-exp-gpio", 8)],
    "Zero 2 W": [("pinctrl-bcm2835", 54), ("raspberrypi-exp-gpio", 8)],
    "Pi 4": [("pinctrl-bcm2711", 58), ("raspberrypi-exp-gpio", 8)],
    "Pi 5, kernel 6.1": [
        ("gpio-brcmstb@107d508500", 32),
        ("gpio-brcmstb@107d508520", 4),
        ("gpio-brcmstb@107d517c00", 17),
        ("gpio-brcmstb@107d517c20", 6),
        ("pinctrl-rp1", 54),
    ],
}


class Kernel:
    """Nodes in a folder, and the kernel's answers for them, byte by byte as in linux/gpio.h."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.labels: dict[int, tuple[str, int]] = {}
        self.held: dict[tuple[int, int], tuple[str, int]] = {}
        """Chip and line: consumer and flags."""

    def add(self, number: int, label: str, count: int) -> None:
        (self.folder / f"gpiochip{number}").touch()
        self.labels[(self.folder / f"gpiochip{number}").stat().st_ino] = (label, count)

    def ioctl(self, handle: int, call: int, told: bytes) -> bytes:
        inode = os.fstat(handle).st_ino
        label, count = self.labels[inode]
        if call == CHIP_INFO:
            assert len(told) == 68
            return (
                b"gpiochipX".ljust(32, b"\0") + label.encode().ljust(32, b"\0") + count.to_bytes(4, "little")
            )
        assert call == LINE_INFO
        assert len(told) == 256
        number = int.from_bytes(told[64:68], "little")
        if number >= count:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        consumer, flags = next(
            (value for (_, line), value in self.held.items() if line == number), ("", 1 << 2)
        )
        return (
            b"GPIO".ljust(32, b"\0")
            + consumer.encode().ljust(32, b"\0")
            + number.to_bytes(4, "little")
            + bytes(4)
            + flags.to_bytes(8, "little")
            + bytes(176)
        )


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


@pytest.mark.parametrize("board", BOARDS)
def test_the_header_of_each_board(kernel: Kernel, board: str) -> None:
    """On every board the chip with the header's label is taken, whatever stands beside it."""
    for number, (label, count) in enumerate(BOARDS[board]):
        kernel.add(number, label, count)
    found = header(chips(kernel.folder, kernel.ioctl))
    assert found.label in HEADER_LABELS
    assert found.lines >= 54


def test_a_link_for_old_programs_is_no_second_chip(kernel: Kernel) -> None:
    """On a Pi 5 with a newer kernel gpiochip4 is a link to gpiochip0: one chip, by its own number."""
    kernel.add(0, "pinctrl-rp1", 54)
    kernel.add(10, "gpio-brcmstb@107d508500", 32)
    (kernel.folder / "gpiochip4").symlink_to("gpiochip0")
    (kernel.folder / "gpiochip-note").touch()
    found = chips(kernel.folder, kernel.ioctl)
    assert [chip.number for chip in found] == [0, 10]
    assert header(found).number == 0


@given(st.permutations(range(6)), st.integers(0, 5))
def test_numbers_do_not_matter(numbers: list[int], place: int) -> None:
    """However the kernel numbers the chips, the header is the one with its label."""
    found = [
        Chip(number, "pinctrl-rp1" if index == place else "gpio-brcmstb@107d517c00", 54)
        for index, number in enumerate(numbers)
    ]
    assert header(found).number == numbers[place]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([], r"is not there: there is no /dev/gpiochip\*"),
        (
            [Chip(0, "INT33FF:00", 98)],
            r"none is labelled .* or pinctrl-rp1; there are gpiochip0 \[INT33FF:00\] 98",
        ),
        ([Chip(0, "pinctrl-rp1", 8)], r"none is labelled .*gpiochip0 \[pinctrl-rp1\] 8 lines"),
        (
            [Chip(0, "pinctrl-bcm2711", 58), Chip(3, "pinctrl-bcm2835", 54)],
            r"cannot be told: gpiochip0 and gpiochip3 both .*\[pinctrl-bcm2835\] 54",
        ),
        (
            [Chip(0, trouble=errno.EACCES)],
            r"may not be asked: gpiochip0 \(Permission denied\); .* group gpio",
        ),
        ([Chip(0, trouble=errno.ENODEV)], r"is not there: none .*gpiochip0 \(No such device\)"),
    ],
    ids=["no chip", "no Pi", "too few lines", "two", "not allowed", "gone"],
)
def test_no_header_is_one_line_that_lists_the_chips(found: list[Chip], said: str) -> None:
    """None, several or none that may be asked: what is there, and what to do, on one line."""
    with pytest.raises(BackendError, match=said) as caught:
        header(found)
    assert "\n" not in str(caught.value)


def test_a_node_that_cannot_be_asked_is_listed(kernel: Kernel) -> None:
    """A node that is none of a chip's, and a link that leads nowhere, are chips with a trouble."""
    kernel.add(0, "pinctrl-bcm2711", 58)
    (kernel.folder / "gpiochip1").symlink_to("nowhere")
    (kernel.folder / "gpiochip2").touch()

    def ioctl(handle: int, call: int, told: bytes) -> bytes:
        if os.fstat(handle).st_ino not in kernel.labels:
            raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))
        return kernel.ioctl(handle, call, told)

    found = {chip.number: chip for chip in chips(kernel.folder, ioctl)}
    assert (found[0].trouble, found[1].trouble, found[2].trouble) == (0, errno.ENOENT, errno.ENOTTY)


def test_the_kernel_itself_is_asked_and_refuses_a_file(tmp_path: Path) -> None:
    """Without a fake a plain file is no chip: the call goes to the kernel."""
    (tmp_path / "gpiochip0").touch()
    (chip,) = chips(tmp_path)
    assert chip.trouble in (errno.ENOTTY, errno.EINVAL)
    assert lines(chip, [4], tmp_path) == {}


def test_lines_and_their_holders(kernel: Kernel) -> None:
    """Used or free, by whom and as what; a line that the chip does not have is missing."""
    kernel.add(2, "pinctrl-bcm2711", 58)
    kernel.held = {(2, 22): ("lg", 0b1001), (2, 4): ("onewire@0", 0b101), (2, 5): ("", 0b101)}
    chip = Chip(2, "pinctrl-bcm2711", 58)
    told = lines(chip, [4, 5, 22, 23, 99], kernel.folder, kernel.ioctl)
    assert told[22] == Line(22, True, "lg", True, "GPIO")
    assert told[4] == Line(4, True, "onewire@0", False, "GPIO")
    assert not told[23].used
    assert 99 not in told
    assert holder(told[4]) == "“onewire@0”"
    assert "lgpio" in holder(told[22])
    assert holder(told[5]) == "somebody who does not say a name"
    assert holder(told[23]) == holder(None) == "another program"
    assert lines(Chip(9), [4], kernel.folder, kernel.ioctl) == {}


def test_numbers_and_sizes_are_those_of_the_kernels_header(tmp_path: Path) -> None:
    """The calls' numbers, and where label, consumer and flags stand, are what linux/gpio.h says."""
    compiler = shutil.which("gcc")
    if compiler is None or not Path("/usr/include/linux/gpio.h").exists():
        pytest.skip("needs gcc and the kernel's headers (apt: gcc linux-libc-dev)")
    source = tmp_path / "sizes.c"
    source.write_text(
        "#include <stddef.h>\n#include <stdio.h>\n#include <linux/gpio.h>\n"
        "int main(void) { struct gpio_v2_line_info l; struct gpiochip_info c;\n"
        'printf("%lu %lu %zu %zu %zu %zu %zu %zu", (unsigned long)GPIO_GET_CHIPINFO_IOCTL,\n'
        "(unsigned long)GPIO_V2_GET_LINEINFO_IOCTL, sizeof c, offsetof(struct gpiochip_info, label),\n"
        "sizeof l, offsetof(struct gpio_v2_line_info, consumer),\n"
        "offsetof(struct gpio_v2_line_info, offset),\n"
        "offsetof(struct gpio_v2_line_info, flags)); return 0; }\n"
    )
    subprocess.run([compiler, "-o", tmp_path / "sizes", source], check=True)
    told = subprocess.run([tmp_path / "sizes"], capture_output=True, text=True, check=True).stdout
    if re.search(r"\b0\b", told):
        pytest.skip("the kernel's headers are older than 5.10")
    assert [int(word) for word in told.split()] == [CHIP_INFO, LINE_INFO, 68, 32, 256, 32, 64, 72]
