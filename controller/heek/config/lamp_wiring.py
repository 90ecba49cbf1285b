"""Where the LEDs hang, as far as even a broken configuration tells.

The help that puts LEDs out after a crash may not fail for the mistake that made the crash. So it takes from a
file what it understands, and for the rest the pin map and the defaults; it says which it was.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heek.config.reading import MAX_BYTES, load
from heek.config.values import default_state_dir
from heek.errors import ConfigError
from heek.wiring.pin_map import DEFAULT_STATIONS, USABLE


@dataclass(frozen=True, slots=True)
class LampWiring:
    """What it takes to put the LEDs out."""

    leds: tuple[int, ...]
    """GPIO numbers, ascending."""
    active_high: bool
    backend: str
    pin_factory: str
    state_dir: Path | None
    """Whose lock tells whether the table runs; None: not known."""
    note: str = ""
    """What was wrong with the file and what was taken instead; empty: nothing was."""


def lamp_wiring(path: Path | None) -> LampWiring:
    """Of the configuration in `path`, whatever is wrong with it; None: of a table wired by the pin map."""
    if path is None:
        return _salvaged({}, "")
    try:
        config = load(path)
    except ConfigError as error:
        first = str(error).splitlines()[0]
        try:
            # Bounded, as a device that is given for a file by mistake does not end.
            with path.open("rb") as file:
                table = tomllib.loads(file.read(MAX_BYTES).decode("utf-8-sig"))
        except (OSError, ValueError):
            return _salvaged({}, f"{first}; the LEDs of the pin map are taken")
        return _salvaged(table, f"{first}; what it says of LEDs is taken all the same")
    return LampWiring(
        tuple(sorted(station.led for station in config.wired)),
        config.stations.led_active_high,
        config.stations.backend,
        config.stations.pin_factory,
        config.table.state_dir,
    )


def _salvaged(table: dict[str, Any], note: str) -> LampWiring:
    standard = {station.seat: station.led for station in DEFAULT_STATIONS}
    leds: set[int] = set()
    stations = table.get("station")
    for station in stations if isinstance(stations, list) else []:
        if isinstance(station, dict):
            led = station.get("led", standard.get(_number(station.get("seat"))))
            # Only a line that can be an LED's: nothing else may be driven for a slip of the pen.
            if _number(led) in USABLE:
                leds.add(_number(led))
    settings = table.get("stations")
    settings = settings if isinstance(settings, dict) else {}
    high = settings.get("led_active_high")
    return LampWiring(
        tuple(sorted(leds)) or tuple(sorted(standard.values())),
        high if isinstance(high, bool) else True,
        "mock" if settings.get("backend") == "mock" else "gpio",
        "rpigpio" if settings.get("pin_factory") == "rpigpio" else "lgpio",
        _state_dir(table),
        note,
    )


def _state_dir(table: dict[str, Any]) -> Path | None:
    section = table.get("table")
    named = section.get("state_dir") if isinstance(section, dict) else None
    if isinstance(named, str) and named.startswith("/"):
        return Path(named)
    try:
        return default_state_dir()
    except ConfigError:
        return None


def _number(value: object) -> int:
    """A whole number; -1 for whatever is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else -1
