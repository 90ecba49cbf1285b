"""The documents that are made from the code: pinout, header drawing, boot settings, phases.

They are committed, so that people can read them without running anything; `differences` tells
whether they are still what the code says, and CI demands that they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from heek.errors import DocumentsError
from heek.kinds import KINDS
from heek.session import phases
from heek.wiring.header_drawing import header_svg
from heek.wiring.pin_map import (
    DEFAULT_STATIONS,
    HEADER,
    OLED_3V3,
    OLED_GROUND,
    OLED_SCL,
    OLED_SDA,
    SERIAL_GROUND,
    STATION_GROUNDS,
    UART_RX,
    UART_TX,
    HeaderPin,
    StationPins,
    check_pins,
    free_lines,
    header_pin,
    pulled_up_at_power_on,
    ranges,
    use_of,
)

BOOT_LINE_LIMIT: Final[int] = 98
"""Characters of a config.txt line that the Pi's firmware reads; the rest is ignored silently."""

_PROVENANCE: Final = "Made from controller/heek/wiring/pin_map.py by `make documents`; edit that."


def documents(stations: Sequence[StationPins] = DEFAULT_STATIONS) -> dict[str, str]:
    """Every generated document: path relative to the project's folder, and its whole text.

    Raises DocumentsError if the pin map has mistakes, since a wrong drawing burns hardware.
    """
    mistakes = check_pins(stations)
    if mistakes:
        raise DocumentsError("the pin map has mistakes, no document is made from it:\n" + "\n".join(mistakes))
    return {
        "hardware/pinout.md": pinout(stations),
        "hardware/header.svg": header_svg(stations),
        "firmware/boot/heek.txt": boot_settings(stations),
        "controller/heek/session/PHASES.md": phase_diagram(),
    }


def pinout(stations: Sequence[StationPins] = DEFAULT_STATIONS) -> str:
    """The pinout as Markdown: by station, the shared wires, then place by place."""
    free = " and ".join(f"GPIO{gpio} (pin {header_pin(gpio)})" for gpio in free_lines(stations))
    lines = [
        "# Pinout",
        "",
        f"<!-- {_PROVENANCE} -->",
        "",
        "Pin means the place on the 40-pin header, GPIO the number that software uses.",
        "The same as a picture: [header.svg](header.svg). Why these pins: [README.md](README.md).",
        "",
        "## Stations",
        "",
        "Each cell: GPIO, and the header pin in brackets. An arrow shows where the chip pulls the line at",
        "power-on, before any software runs: ↑ up, ↓ down.",
        "",
        "| seat | " + " | ".join(kind.value for kind in KINDS) + " | LED | ground |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_station_row(station) for station in stations),
        "",
        f"Left over: {free or 'nothing'}.",
        "",
        "## Shared wires",
        "",
        "| wire | line | pin |",
        "| --- | --- | --- |",
        f"| OLED supply | 3V3 | {OLED_3V3} |",
        f"| OLED SDA | GPIO{OLED_SDA} | {header_pin(OLED_SDA)} |",
        f"| OLED SCL | GPIO{OLED_SCL} | {header_pin(OLED_SCL)} |",
        f"| OLED ground | GND | {OLED_GROUND} |",
        f"| serial to the KI (TX) | GPIO{UART_TX} | {header_pin(UART_TX)} |",
        f"| serial from the KI (RX) | GPIO{UART_RX} | {header_pin(UART_RX)} |",
        f"| serial ground | GND | {SERIAL_GROUND} |",
        "",
        "## Place by place",
        "",
        "| use | line | pin | pin | line | use |",
        "| ---: | ---: | ---: | :--- | :--- | :--- |",
        *_header_rows(stations),
    ]
    return "\n".join(lines) + "\n"


def _station_row(station: StationPins) -> str:
    cells = [
        f"GPIO{gpio} ({header_pin(gpio)}) {'↑' if pulled_up_at_power_on(gpio) else '↓'}"
        for _, gpio in station.roles
    ]
    return f"| {station.seat} | " + " | ".join(cells) + f" | GND ({STATION_GROUNDS[station.seat]}) |"


def _header_rows(stations: Sequence[StationPins]) -> Iterator[str]:
    def words(pin: HeaderPin) -> str:
        return use_of(pin, stations)[1].replace(" led", " LED")

    for left, right in zip(HEADER[::2], HEADER[1::2], strict=True):
        yield (
            f"| {words(left)} | {left.name} | {left.number} "
            f"| {right.number} | {right.name} | {words(right)} |"
        )


def boot_settings(
    stations: Sequence[StationPins] = DEFAULT_STATIONS,
    *,
    led_active_high: bool = True,
    provenance: str = _PROVENANCE,
) -> str:
    """What the Pi's boot partition needs for these stations, to be included by its config.txt.

    `provenance`, one line, says in it what it was made from.

    One polarity for all LEDs, as the configuration has one: a table with LEDs of both would need a key for
    each seat, here and there.
    """
    buttons = ranges(gpio for station in stations for gpio in station.buttons)
    leds = ranges(station.led for station in stations)
    level, pull, drive = ("low", "down", "dl,pd") if led_active_high else ("high", "up", "dh,pu")
    return f"""\
# Boot settings of the Ahyoheek table (see firmware/README.md).
# {provenance}
[all]
# The OLED: I2C on pins 3 and 5, at 400 kHz so that a frame takes 23 ms and not 93.
dtparam=i2c_arm=on
dtparam=i2c_arm_baudrate=400000
# SPI off: its lines are buttons and LEDs here.
dtparam=spi=off
# The UART on pins 8 and 10, for the KI; cmdline.txt must not give it to a console.
enable_uart=1
# Buttons close to ground: inputs pulled up, so that none reads pressed.
gpio={buttons}=ip,pu
# LEDs: driven {level}, so that none glows; pulled {pull} for when a program lets go.
gpio={leds}=op,{drive}
[pi5]
# On a Pi 5 serial0 is the debug socket unless it is told to be pins 8 and 10.
dtparam=uart0_console
[all]
"""


def phase_diagram() -> str:
    """The session's phases as a Mermaid diagram in Markdown, drawn from its table."""
    return (
        "The session's phases, drawn by `make documents` from the table in phases.py.\n\n"
        f"```mermaid\n{phases.diagram()}```\n"
    )


def write(root: Path) -> list[str]:
    """Write every document that differs below `root`; gives the paths that were written.

    Raises DocumentsError if one cannot be written.
    """
    written = []
    for name, text in documents().items():
        path = root / name
        if _committed(path) == text:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise DocumentsError(f"{path}: cannot be written: {error.strerror}") from error
        written.append(name)
    return written


def differences(root: Path) -> list[str]:
    """One line for each document below `root` that is missing or not what the code says."""
    lines = []
    for name, text in documents().items():
        there = _committed(root / name)
        if there is None:
            lines.append(f"{name}: missing; run `make documents` and commit it")
        elif there != text:
            at = _first_difference(there, text)
            lines.append(f"{name}: line {at} is not what the code says; run `make documents` and commit it")
    return lines


def _committed(path: Path) -> str | None:
    """The text that stands there, None if there is none; raises DocumentsError if unreadable."""
    try:
        # Bytes, not text mode: a checkout that turned line ends into CR LF is a difference too.
        return path.read_bytes().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DocumentsError(f"{path}: cannot be read: {error.strerror}") from error


def _first_difference(there: str, wanted: str) -> int:
    """The number of the first line, from 1, in which two different texts differ."""
    mine, theirs = wanted.split("\n"), there.split("\n")
    for number, (a, b) in enumerate(zip(mine, theirs, strict=False), start=1):
        if a != b:
            return number
    return min(len(mine), len(theirs)) + 1
