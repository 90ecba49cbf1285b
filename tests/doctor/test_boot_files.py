"""config.txt is read as the firmware reads it: sections, includes, overlays and their parameters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.doctor.boot_files import settings, takings, value_of

PI_4, PI_5 = "Raspberry Pi 4 Model B Rev 1.4", "Raspberry Pi 5 Model B Rev 1.0"


def nothing(_name: str) -> None:
    return None


def lines_taken(text: str, model: str = PI_4) -> list[tuple[int, ...]]:
    return [taking.lines for taking in takings(settings(text, model, nothing))]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("dtoverlay=w1-gpio", [(4,)]),
        ("dtoverlay=w1-gpio,gpiopin=17", [(17,)]),
        ("dtoverlay=w1-gpio-pullup", [(4, 5)]),
        ("dtoverlay=pwm-2chan,pin=12,func=4,pin2=13,func2=4", [(12, 13)]),
        ("device_tree_overlay=uart5", [(12, 13)]),
        ("dtparam=spi=on", [(7, 8, 9, 10, 11)]),
        ("dtparam=i2c_arm=on,spi=on", [(7, 8, 9, 10, 11)]),
        ("dtparam=spi=on\ndtparam=spi=off", []),
        ("dtparam=spi", [(7, 8, 9, 10, 11)]),
        ("dtparam=i2s=on", [(18, 19, 20, 21)]),
        ("dtoverlay=hifiberry-dacplus", [(18, 19, 20, 21)]),
        ("dtoverlay=gpio-led,gpio=22,label=x", [(22,)]),
        ("dtoverlay=gpio-led", []),
        ("dtoverlay=vc4-kms-v3d\ndtparam=audio=on", []),
        ("# dtoverlay=w1-gpio", []),
        ("dtoverlay=w1-gpio # my sensor", [(4,)]),
        ("[pi5]\ndtoverlay=w1-gpio\n[all]", []),
        ("[pi4]\ndtoverlay=w1-gpio\n[all]", [(4,)]),
        ("[none]\ndtoverlay=w1-gpio\n[all]\ndtoverlay=gpio-ir", [(18,)]),
        ("[EDID=XYZ]\ndtoverlay=w1-gpio", [(4,)]),
        ("enable_jtag_gpio=1", [(22, 23, 24, 25, 26, 27)]),
        ("dtoverlay=w1-gpio,gpiopin=x", []),
    ],
)
def test_what_takes_lines(text: str, lines: list[tuple[int, ...]]) -> None:
    """Overlays and parameters with the lines that they take on a Pi 4."""
    assert lines_taken(text) == lines


def test_sections_are_for_their_board() -> None:
    """What stands under a board's name is for that board alone."""
    text = "[pi5]\ndtparam=uart0_console\n[pi4]\nenable_uart=1\n[all]\nenable_uart=0\n"
    assert value_of(settings(text, PI_5, nothing), "uart0_console") == "on"
    assert value_of(settings(text, PI_4, nothing), "uart0_console") is None
    assert value_of(settings(text.replace("[all]\nenable_uart=0\n", ""), PI_4, nothing), "enable_uart") == "1"


def test_includes_are_followed_and_end() -> None:
    """An included file counts, with its own name and lines; one that includes itself comes to an end."""
    files = {"heek.txt": "\ndtoverlay=w1-gpio\ninclude heek.txt\n"}
    found = takings(settings("include heek.txt\ninclude none.txt\n", PI_4, files.get))
    assert found[0].setting.words == "dtoverlay=w1-gpio (heek.txt line 2)"
    assert len(found) == 3


@given(st.text(alphabet="[]=,:#\n abdtopvery123", max_size=80))
def test_any_text_is_read(text: str) -> None:
    """No text is an error, and no line is taken that the header does not have."""
    for lines in lines_taken(text):
        assert all(0 <= line <= 999 for line in lines)
