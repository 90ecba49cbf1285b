"""What the boot partition's config.txt says, and which of it takes lines that the table uses.

config.txt has sections: what stands under `[pi4]` is for that board alone, under `[all]` for every one. An
overlay takes lines of the header, by default or by a parameter; the table below knows the common ones. An
overlay that it does not know is no mistake: the kernel's own list of who holds a line finds it all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

SECTIONS: Final[dict[str, tuple[str, ...]]] = {
    "Raspberry Pi 5": ("pi5",),
    "Raspberry Pi 500": ("pi500", "pi5"),
    "Compute Module 5": ("cm5", "pi5"),
    "Raspberry Pi 4": ("pi4",),
    "Raspberry Pi 400": ("pi400", "pi4"),
    "Compute Module 4": ("cm4", "pi4"),
    "Raspberry Pi Zero 2": ("pi02", "pi0w", "pi0"),
    "Raspberry Pi 3 Model B Plus": ("pi3+", "pi3"),
    "Raspberry Pi 3": ("pi3",),
}
"""Which sections are for which board, by the beginning of its model's name or a part of it."""

_SPI0: Final = (7, 8, 9, 10, 11)
_I2S: Final = (18, 19, 20, 21)

FIXED: Final[dict[str, tuple[int, ...]]] = {
    "spi1-1cs": (18, 19, 20, 21),
    "spi1-2cs": (17, 18, 19, 20, 21),
    "spi1-3cs": (16, 17, 18, 19, 20, 21),
    "uart3": (4, 5),
    "uart4": (8, 9),
    "uart5": (12, 13),
    "i2c3": (4, 5),
    "i2c4": (8, 9),
    "i2c5": (12, 13),
    "i2c6": (22, 23),
    "sdio": (22, 23, 24, 25, 26, 27),
    "i2s-mmap": _I2S,
    "dpi18": tuple(range(22)),
    "dpi24": tuple(range(28)),
    "vc4-kms-dpi-generic": tuple(range(28)),
    "enc28j60": (*_SPI0, 25),
    "mcp2515-can0": (*_SPI0, 25),
    "ads7846": _SPI0,
}
"""Lines that an overlay takes whatever its parameters are."""

BEGINNINGS: Final[dict[str, tuple[int, ...]]] = {
    "hifiberry-": _I2S,
    "iqaudio-": _I2S,
    "justboom-": _I2S,
    "spi0-": _SPI0,
}

BY_PARAMETER: Final[dict[str, tuple[tuple[str, int], ...]]] = {
    "w1-gpio": (("gpiopin", 4),),
    "w1-gpio-pullup": (("gpiopin", 4), ("extpullup", 5)),
    "gpio-fan": (("gpiopin", 12),),
    "gpio-ir": (("gpio_pin", 18),),
    "gpio-ir-tx": (("gpio_pin", 18),),
    "gpio-shutdown": (("gpio_pin", 3),),
    "gpio-poweroff": (("gpiopin", 26),),
    "gpio-key": (("gpio", 3),),
    "gpio-led": (("gpio", -1),),
    "dht11": (("gpiopin", 4),),
    "pps-gpio": (("gpiopin", 18),),
    "pwm": (("pin", 18),),
    "pwm-2chan": (("pin", 18), ("pin2", 19)),
    "i2c-gpio": (("i2c_gpio_sda", 23), ("i2c_gpio_scl", 24)),
    "rotary-encoder": (("pin_a", 4), ("pin_b", 17)),
    "act-led": (("gpio", -1),),
}
"""Lines that an overlay takes by these parameters, each with its default; -1: none."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of config.txt that is in force on this board."""

    key: str
    value: str
    line: int
    file: str

    @property
    def words(self) -> str:
        return f"{self.key}={self.value} ({self.file} line {self.line})"


@dataclass(frozen=True, slots=True)
class Taking:
    """A setting and the lines that it takes."""

    setting: Setting
    lines: tuple[int, ...]


def sections_of(model: str) -> tuple[str, ...]:
    """The sections besides `[all]` that hold for the board of this model's name."""
    return next((found for part, found in SECTIONS.items() if part in model), ())


def settings(
    text: str, model: str, include: Callable[[str], str | None], file: str = "config.txt"
) -> list[Setting]:
    """What is in force on a board, in order, files that are included too.

    `include` gives the text of a file beside config.txt; None if there is none.
    """
    found: list[Setting] = []
    _read(text, set(sections_of(model)), include, file, found, 0)
    return found


def _read(
    text: str,
    mine: set[str],
    include: Callable[[str], str | None],
    file: str,
    found: list[Setting],
    depth: int,
) -> None:
    board = True
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.split("#")[0].strip()
        if line.startswith("["):
            section = line.strip("[]").strip().lower()
            if section == "all":
                board = True
            elif section == "none":
                board = False
            elif re.fullmatch(r"(pi|cm)\d+\w*\+?|board-type=.*", section):
                board = section in mine
            # Another kind ([EDID=...], [gpio4=1]) is a condition that cannot be known here: as if it held.
            continue
        if not board or not line:
            continue
        if line.startswith("include "):
            name = line.removeprefix("include ").strip()
            inner = include(name) if depth < 3 else None
            if inner is not None:
                _read(inner, mine, include, name, found, depth + 1)
            continue
        key, equals, value = line.partition("=")
        if equals:
            found.append(Setting(key.strip().lower(), value.strip(), number, file))


def value_of(found: Iterable[Setting], name: str) -> str | None:
    """What a dtparam or a setting of its own (`enable_uart`) was last set to; None: it was not."""
    last = None
    for setting in found:
        for each in setting.value.split(",") if setting.key in ("dtparam", "device_tree_param") else ():
            key, _, value = each.partition("=")
            if key.strip() == name:
                last = value.strip() or "on"
        if setting.key == name:
            last = setting.value
    return last


def takings(found: Iterable[Setting]) -> list[Taking]:
    """The settings that take lines of the header, with the lines."""
    takes: list[Taking] = []
    spi: Setting | None = None
    i2s: Setting | None = None
    for setting in found:
        if setting.key in ("dtparam", "device_tree_param"):
            for each in setting.value.split(","):
                key, _, value = each.partition("=")
                on = value.strip() in ("", "on", "true", "1", "yes")
                if key.strip() == "spi":
                    spi = setting if on else None
                elif key.strip() == "i2s":
                    i2s = setting if on else None
        elif setting.key in ("dtoverlay", "device_tree_overlay"):
            name, *parameters = [part.strip() for part in re.split(r"[,:]", setting.value)]
            lines = _lines_of(name, dict(_pair(each) for each in parameters))
            if lines:
                takes.append(Taking(setting, lines))
        elif setting.key == "enable_jtag_gpio" and setting.value == "1":
            takes.append(Taking(setting, tuple(range(22, 28))))
    takes += [Taking(each, lines) for each, lines in ((spi, _SPI0), (i2s, _I2S)) if each is not None]
    return takes


def _lines_of(overlay: str, parameters: Mapping[str, str]) -> tuple[int, ...]:
    if overlay in FIXED:
        return FIXED[overlay]
    for beginning, lines in BEGINNINGS.items():
        if overlay.startswith(beginning):
            return lines
    taken = []
    for name, default in BY_PARAMETER.get(overlay, ()):
        text = parameters.get(name, str(default))
        number = int(text) if text.isascii() and text.isdigit() else -1
        if number >= 0:
            taken.append(number)
    return tuple(taken)


def _pair(text: str) -> tuple[str, str]:
    key, _, value = text.partition("=")
    return key.strip(), value.strip()
