"""Judges a whole journal: the file, the numbers, and what the rules promise of its contents."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any, Final

from heek.journal.packing import unpacked, whole_line
from heek.journal.salvage import read_salvaged

_PAGE: Final = 500
_MOST: Final = 100
"""More lines than this help nobody."""

AWARD_RULES: Final = "heek-1-award"
"""The rules' version under which the winner receives and nobody pays."""


def check(db: sqlite3.Connection) -> list[str]:
    """Every fault found, one line each, the first hundred; raises sqlite3.Error if it cannot be read."""
    faults: list[str] = []
    for fault in _faults(db):
        if len(faults) == _MOST:
            faults.append("and more; only the first hundred are listed")
            break
        faults.append(fault)
    return faults


def deltas_of(record: bytes) -> list[tuple[str, int]]:
    """KI number and delta of each signed-in player of a result; empty if the record is no such thing."""
    try:
        seats = json.loads(record)["seats"]
        return [
            (str(seat["player"]), int(seat["delta"]))
            for seat in seats
            if seat.get("kind") == "player" and seat.get("player") is not None
        ]
    except (ValueError, TypeError, KeyError, AttributeError):
        return []


def _faults(db: sqlite3.Connection) -> Iterator[str]:
    for (line,) in db.execute("PRAGMA integrity_check(20)").fetchall():
        if line != "ok":
            yield f"file: {' '.join(str(line).split())}"
    # Results first: events are written no later than the result they lead to, so a daemon that
    # writes meanwhile cannot make a sound journal look wrong.
    rows = db.execute(
        "SELECT number, results.match, record, outbox.match"
        " FROM results LEFT JOIN outbox USING(match) ORDER BY number"
    ).fetchall()
    for (match,) in db.execute("SELECT match FROM outbox WHERE match NOT IN (SELECT match FROM results)"):
        yield f"outbox: match {match} waits, but there is no result of it"
    snapshot = db.execute("SELECT CAST(state AS BLOB) FROM snapshot").fetchone()
    if snapshot is not None and _parsed(unpacked(snapshot[0])) is None:
        yield "snapshot: is not a JSON object"
    salvaged = read_salvaged(db)
    won: set[str] = set()
    yield from _event_faults(db, won, salvaged is not None)
    for number, match, record, queued in rows:
        # The events of what was brought over stayed in the damaged journal.
        told = match in won or (salvaged is not None and number <= salvaged.last)
        yield from _result_faults(str(match), record, queued is not None, told)


def _event_faults(db: sqlite3.Connection, won: set[str], salvaged: bool) -> Iterator[str]:
    """Faults of the events; gathers the matches that were won."""
    expected: int | None = None if salvaged else 1
    last = -(2**63)
    while rows := db.execute(
        "SELECT seq, at_ns, event, body FROM events WHERE seq > ? ORDER BY seq LIMIT ?", (last, _PAGE)
    ).fetchall():
        for seq, at_ns, event, written in rows:
            if expected is not None and seq != expected:
                yield f"event {seq}: comes where {expected} should; numbers go up by one from 1"
            expected = seq + 1
            line = _parsed(whole_line(seq, at_ns, event, written))
            if line is None:
                yield f"event {seq}: its line is not a JSON object"
                continue
            if line.get("seq") != seq or line.get("event") != event:
                yield f"event {seq}: its line says number {line.get('seq')!r}, event {line.get('event')!r}"
            if event == "match_won":
                won.add(str(line.get("match")))
            elif event == "round_revealed":
                total = _total(line.get("points"))
                if total != 0:
                    yield f"event {seq}: the points of the round sum to {_said(total)}, not 0"
        last = rows[-1][0]


def _result_faults(match: str, record: object, queued: bool, told: bool) -> Iterator[str]:
    if not queued:
        yield f"result {match}: has no place in the outbox"
    if not told:
        yield f"result {match}: there is no match_won of it"
    parsed = _parsed(record)
    seats = parsed.get("seats") if parsed is not None else None
    if parsed is None or not isinstance(seats, list) or not all(isinstance(seat, dict) for seat in seats):
        yield f"result {match}: its record is not a JSON object with a list of seats"
        return
    total = _total({place: seat.get("delta") for place, seat in enumerate(seats)})
    if total is None or (total != 0 and parsed.get("rules") != AWARD_RULES):
        yield f"result {match}: its deltas sum to {_said(total)}, not 0"


def _parsed(text: object) -> dict[str, Any] | None:
    try:
        value = json.loads(text)  # type: ignore[arg-type]
    except (ValueError, TypeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _total(values: object) -> int | None:
    """The sum of a table's numbers; None if they are not all whole numbers."""
    if not isinstance(values, dict) or any(type(value) is not int for value in values.values()):
        return None
    return sum(values.values())


def _said(total: int | None) -> str:
    return "no number" if total is None else str(total)
