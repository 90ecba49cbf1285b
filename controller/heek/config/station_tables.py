"""Puts the [[station]] tables of a wiring into a configuration's text, and leaves all else as it stands.

A number in place of a number, comments and all; a table for a seat that had none behind the last one; a
table for a seat that is no more goes, but the comments in it stay. The result is read again before it is
given out, so that a text which this does not understand is refused and never damaged.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Final

from heek.config.reading import from_text
from heek.errors import ConfigError
from heek.wiring.pin_map import StationPins

_HEADING: Final = re.compile(r"\s*\[")
_STATION: Final = re.compile(r"\s*\[\[\s*(?:station|\"station\"|'station')\s*\]\]\s*(?:#.*)?$")


def station_tables(stations: Sequence[StationPins]) -> str:
    """The tables alone, as they stand in a file."""
    return "\n".join("\n".join(_table(station)) + "\n" for station in stations)


def with_stations(text: str, stations: Sequence[StationPins], source_name: str) -> str:
    """`text` with these stations and no others.

    Raises ConfigError if the stations make no table, or if the text is one that this cannot change.
    """
    wanted = {station.seat: station for station in stations}
    lines: list[str] = []
    last: int | None = None
    for block in _blocks(text.splitlines()):
        if not block or not _STATION.match(block[0]):
            lines += block
            continue
        station = wanted.pop(_seat(block), None)
        if station is None:
            lines += [line for line in block if not line.strip() or line.strip().startswith("#")]
        else:
            lines += _renewed(block, station)
        last = len(lines)
    added = [line for station in wanted.values() for line in (*_table(station), "")]
    if added:
        at = len(lines) if last is None else last
        before = [""] if at and lines[at - 1].strip() else []
        lines[at:at] = [*before, *(added if at < len(lines) else added[:-1])]
    result = "\n".join(lines) + "\n"
    config = from_text(result, source_name)
    if config.wired != tuple(sorted(stations, key=lambda station: station.seat)):
        raise ConfigError(
            f"{source_name}: its stations are written in a way that cannot be changed here; put this in "
            f"yourself:\n{station_tables(stations)}"
        )
    return result


def _blocks(lines: Sequence[str]) -> list[list[str]]:
    """The lines before the first heading, and those of each heading with it."""
    blocks: list[list[str]] = [[]]
    for line in lines:
        if _HEADING.match(line):
            blocks.append([])
        blocks[-1].append(line)
    return blocks


def _seat(block: Sequence[str]) -> int:
    try:
        seat = tomllib.loads("\n".join(block[1:])).get("seat")
    except tomllib.TOMLDecodeError:
        return 0
    return seat if isinstance(seat, int) else 0


def _renewed(block: Sequence[str], station: StationPins) -> list[str]:
    """A station's lines with the numbers of `station`; a role that had none behind the last key."""
    left = dict(station.roles)
    lines: list[str] = []
    behind = 1
    for line in block:
        match = re.match(r"(\s*(\w+)\s*=\s*)([^\s#]+)(.*)$", line)
        if match is not None and match[2] in left:
            line = f"{match[1]}{left.pop(match[2])}{match[4]}"
        lines.append(line)
        if match is not None:
            behind = len(lines)
    lines[behind:behind] = [f"{role} = {number}" for role, number in left.items()]
    return lines


def _table(station: StationPins) -> list[str]:
    return [
        "[[station]]",
        f"seat = {station.seat}",
        *(f"{role} = {number}" for role, number in station.roles),
    ]
