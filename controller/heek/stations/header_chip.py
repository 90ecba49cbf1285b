"""The kernel's GPIO chips: which one is the header, and who holds which of its lines; it claims nothing.

The number in /dev/gpiochipN says nothing: the header of a Pi 5 was gpiochip4 up to kernel 6.6 and is
gpiochip0 since, and any expander that is plugged in moves numbers about. What stays is the label that a
chip's driver gives it, so the header is found by that. It is asked for by the kernel's own calls
(linux/gpio.h), which no pin library is needed for and which disturb nobody: `heek doctor` uses them beside a
running table.
"""

from __future__ import annotations

import errno
import os
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from heek.errors import BackendError

HEADER_LABELS: Final[dict[str, str]] = {
    "pinctrl-bcm2835": "Pi 3, Zero 2 W and older",
    "pinctrl-bcm2711": "Pi 4, Compute Module 4, Pi 400",
    "pinctrl-rp1": "Pi 5, Compute Module 5, Pi 500",
}
"""Labels of the chips that the 40-pin header hangs on, and the boards that have them."""

FIRST_LINES: Final = 28
"""The header's lines are the first 28 of its chip; what has fewer cannot be it."""

CHIP_INFO: Final = 0x8044B401
"""GPIO_GET_CHIPINFO_IOCTL."""
LINE_INFO: Final = 0xC100B405
"""GPIO_V2_GET_LINEINFO_IOCTL; kernel 5.10 and later."""

_CHIP: Final = struct.Struct("=32s32sI")
_LINE: Final = struct.Struct("=32s32sIIQ160s16s")
_USED: Final = 1 << 0
_OUTPUT: Final = 1 << 3

Ioctl: TypeAlias = Callable[[int, int, bytes], bytes]
"""fcntl.ioctl: the open file, the call, what is told; gives what is answered. Raises OSError."""


@dataclass(frozen=True, slots=True)
class Chip:
    """One GPIO chip, or a node in /dev that cannot be asked for one."""

    number: int
    """N in /dev/gpiochipN."""
    label: str = ""
    lines: int = 0
    trouble: int = 0
    """The errno with which it refused to be opened or asked; 0: it did not."""

    @property
    def words(self) -> str:
        """As a message names it."""
        if self.trouble:
            return f"gpiochip{self.number} ({os.strerror(self.trouble)})"
        return f"gpiochip{self.number} [{self.label}] {self.lines} lines"


@dataclass(frozen=True, slots=True)
class Line:
    """What the kernel tells of one line of a chip."""

    number: int
    used: bool
    """Somebody has it: a program that is open, or a driver of the kernel's."""
    consumer: str
    """What its holder called itself: `lg` is a program on lgpio; empty where nobody does, or says."""
    output: bool
    name: str = ""


def chips(folder: Path = Path("/dev"), ioctl: Ioctl | None = None) -> tuple[Chip, ...]:
    """Every GPIO chip below `folder`, by number; two names of one device are one chip, by its own name."""
    found: dict[tuple[int, int], Chip] = {}
    nodes = []
    for path in folder.glob("gpiochip*"):
        match = re.fullmatch(r"gpiochip(\d+)", path.name)
        if match is not None:
            # A link comes after what it stands for: on a Pi 5 gpiochip4 is one, for old programs.
            nodes.append((path.is_symlink(), int(match[1]), path))
    for _, number, path in sorted(nodes):
        try:
            status = path.stat()
        except OSError as error:
            found[-1, number] = Chip(number, trouble=error.errno or errno.EIO)
            continue
        found.setdefault((status.st_dev, status.st_rdev or status.st_ino), _chip(path, number, ioctl))
    return tuple(sorted(found.values(), key=lambda chip: chip.number))


def header(found: Sequence[Chip]) -> Chip:
    """The one of these chips that is the header.

    Raises BackendError, with all that are there, if none is or more than one.
    """
    fitting = [chip for chip in found if chip.label in HEADER_LABELS and chip.lines >= FIRST_LINES]
    if len(fitting) == 1:
        return fitting[0]
    there = "; ".join(chip.words for chip in found)
    if not found:
        raise BackendError(
            "the header's GPIO chip is not there: there is no /dev/gpiochip*; check that this is a Raspberry "
            "Pi and that its kernel is the system's own"
        )
    if fitting:
        names = " and ".join(f"gpiochip{chip.number}" for chip in fitting)
        raise BackendError(
            f"the header's GPIO chip cannot be told: {names} both have a header's label; there are {there}; "
            "take away what adds the other one (an overlay in config.txt, a simulated chip)"
        )
    if any(chip.trouble in (errno.EACCES, errno.EPERM) for chip in found):
        raise BackendError(
            f"the header's GPIO chip may not be asked: {there}; put the user that runs heek into the group "
            "gpio (sudo usermod -aG gpio USER) and let it log in anew"
        )
    raise BackendError(
        f"the header's GPIO chip is not there: none is labelled {_any_of(HEADER_LABELS)}; there are {there}; "
        "check that this is a Raspberry Pi with the 40-pin header"
    )


def lines(
    chip: Chip, numbers: Iterable[int], folder: Path = Path("/dev"), ioctl: Ioctl | None = None
) -> dict[int, Line]:
    """What the kernel tells of these lines; one that cannot be asked is missing."""
    call = _ioctl if ioctl is None else ioctl
    told: dict[int, Line] = {}
    try:
        handle = os.open(folder / f"gpiochip{chip.number}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return told
    try:
        for number in numbers:
            question = _LINE.pack(b"", b"", number, 0, 0, b"", b"")
            try:
                name, consumer, _, _, flags, _, _ = _LINE.unpack(call(handle, LINE_INFO, question))
            except OSError:
                continue
            told[number] = Line(
                number, bool(flags & _USED), _text(consumer), bool(flags & _OUTPUT), _text(name)
            )
    finally:
        os.close(handle)
    return told


def holder(line: Line | None) -> str:
    """Who holds a line, in words that go after `is held by`."""
    if line is None or not line.used:
        return "another program"
    if line.consumer == "lg":
        return "“lg”: a program that uses lgpio, perhaps another table"
    return f"“{line.consumer}”" if line.consumer else "somebody who does not say a name"


def _chip(path: Path, number: int, ioctl: Ioctl | None) -> Chip:
    call = _ioctl if ioctl is None else ioctl
    chip = Chip(number)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        return replace(chip, trouble=error.errno or errno.EIO)
    try:
        _, label, count = _CHIP.unpack(call(handle, CHIP_INFO, bytes(_CHIP.size)))
    except OSError as error:
        return replace(chip, trouble=error.errno or errno.EIO)
    finally:
        os.close(handle)
    return replace(chip, label=_text(label), lines=count)


def _ioctl(handle: int, call: int, told: bytes) -> bytes:
    # Not at the top: other systems, on which a table can be simulated, have no such module.
    import fcntl

    return bytes(fcntl.ioctl(handle, call, told))


def _text(field: bytes) -> str:
    return field.split(b"\0")[0].decode("utf-8", "replace")


def _any_of(words: Iterable[str]) -> str:
    *rest, last = words
    return f"{', '.join(rest)} or {last}"
