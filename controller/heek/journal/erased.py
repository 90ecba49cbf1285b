"""Players whose identity the KI has erased: what was written of them is read without number and name.

Signed bytes, events and recordings stay as they were written: four others own a record, and in a recording
each block's sum goes on from the one before, up to that which the running table writes next. So the numbers
are kept, and everything that people read or that leaves the table goes through here first. In place of a
number stands an alias, the same everywhere, so that two players stay two and a replay gives the very same
events; in place of the name stands none.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Collection, Mapping
from typing import Any, Final

CLAIMED: Final = "seat_claimed"
"""The one event that names a player."""

_NAME: Final = re.compile(r'"name":"(?:[^"\\]|\\.)*"')


def forget(db: sqlite3.Connection, player: str) -> None:
    """Keep the KI number of an erased player, from which on nobody reads it; within a transaction."""
    db.execute("INSERT OR IGNORE INTO erased(player) VALUES(?)", (player,))


def aliases(rows: Collection[tuple[Any, ...]]) -> dict[str, str]:
    """By KI number what stands in its place, from the rows (number, player) of the table `erased`."""
    return {str(player): f"erased-{number}" for number, player in rows}


def line_without(line: str, erased: Mapping[str, str]) -> str:
    """A line of `seat_claimed` without the identity in it, if that is erased."""
    for player, alias in erased.items():
        claimed = f'"player":"{player}"'
        if claimed in line:
            # By its text: read and written again, its instant would lose digits.
            return _NAME.sub('"name":""', line.replace(claimed, f'"player":"{alias}"'))
    return line


def record_without(record: bytes, erased: Collection[str]) -> bytes:
    """A result as JSON without the identities in it that are erased."""
    if not any(player.encode() in record for player in erased):
        return record
    try:
        value: dict[str, Any] = json.loads(record)
        for seat in value["seats"]:
            if seat.get("player") in erased:
                seat["player"] = seat["name"] = None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return record
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
