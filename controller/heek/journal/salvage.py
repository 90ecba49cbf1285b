"""Brings what can still be read of a damaged journal over into a new one.

What matters to people comes over: results with their place in the outbox and what the KI answered, what the
KI told of players, what this table knows of its KI, and the state of the match under way. Events and
recordings stay where they are: they are much larger, they tell what happened and decide nothing, and
`heek journal` reads them there as far as they go.

A table is read forwards up to the first row that cannot be read, backwards down to the last one, and between
the two row by row. What the tree of pages hides, or a file that is no database any more, is looked for page
by page (`heek.journal.carving`). A result that was found counts as waiting unless its answer was found as
well: to offer a match twice does no harm, to offer it never would. If anything of what the KI has told cannot
be read, the KI is to tell all of it again.

The first event of the new journal, `journal_salvaged`, says where the old one lies and what came over; its
number goes on from the old one's last, as far as that could be read. While the table runs it takes the number
of the old one's last: what comes next has its number already.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from heek.errors import JournalError
from heek.journal.carving import carve
from heek.journal.packing import unpacked, whole_line

EVENT: Final = "journal_salvaged"

_LEFT_BEHIND: Final = frozenset({"events", "recordings", "recording_parts"})
_TOLD: Final = frozenset({"news", "voids", "names", "erased"})
_BY_HAND: Final = frozenset({"results", "outbox", "snapshot"})
_MOST_PROBED: Final = 100_000
"""Rows that are looked for one by one where a scan from neither end goes."""
_MOST_MISSED: Final = 5_000
"""So many of them not found running: then there are no more."""
_MOST_EVENTS: Final = 1 << 40
_ANSWER: Final = re.compile("[a-z_]{1,20}")
_PLAYER: Final = re.compile("[0-9]{8}")
_SIGNATURE_BYTES: Final = 64
WAITING: Final = "waiting"


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What came over into the new journal."""

    folder: str
    """The name of the folder, in the state folder, in which the damaged journal lies."""
    results: int = 0
    waiting: int = 0
    """Of these, how many the KI has not answered for."""
    missing: int = 0
    """Results that are known to have been there, and could not be read."""
    last: int = 0
    """The highest number that a result has which came over."""
    state: bool = False
    """Whether the state of the table came over, and with it a match that was under way."""

    @property
    def sentence(self) -> str:
        """The same for people."""
        missing = f"; {_counted(self.missing, 'result')} could not be read" if self.missing else ""
        state = " and the state of the table" if self.state else ""
        return (
            f"The journal was damaged. It was set aside in {self.folder}, and a new one begun, with "
            f"{_counted(self.results, 'result')} ({self.waiting} waiting for the KI){state} brought over"
            f"{missing}."
        )


def bring_over(damaged: Path, db: sqlite3.Connection, folder: str, last_seq: int | None = None) -> Salvaged:
    """Fill the new, empty journal `db` from the damaged file, in one transaction.

    `folder` is the name of the folder where the damaged one lies. `last_seq` is the number that the new one's
    events go on from, where somebody knows; else it is the damaged one's as far as it can be read. Raises
    sqlite3.Error if the new one cannot be written, JournalError if the old one cannot be read at all for
    another reason than its damage.
    """
    found = _Found()
    old = _opened(damaged)
    if old is not None:
        with contextlib.closing(old):
            _read(old, db, found)
    if not found.whole:
        try:
            for number, values in carve(damaged, damaged.with_name(f"{damaged.name}-wal")):
                found.carved(number, values)
        except OSError as error:
            raise JournalError(
                f"{damaged}: cannot be read ({error.strerror}); see to the card, then start again"
            ) from None
    return _write(db, found, folder, found.last_seq + 1 if last_seq is None else last_seq)


def read_salvaged(db: sqlite3.Connection) -> Salvaged | None:
    """What a journal that began with what was salvaged says of that; None: it began in the ordinary way.

    Raises sqlite3.Error if it cannot be read.
    """
    row = db.execute("SELECT seq, at_ns, event, body FROM events ORDER BY seq LIMIT 1").fetchone()
    if row is None or row[2] != EVENT:
        return None
    try:
        said = json.loads(whole_line(*row))
        return Salvaged(**{name: said[name] for name in Salvaged.__slots__})
    except (ValueError, TypeError, KeyError):
        return None


class _Found:
    """What was found so far of a damaged journal."""

    def __init__(self) -> None:
        self.results: dict[str, tuple[int, bytes, bytes | None, bytes | None]] = {}
        """By match: number, record, the bytes for the KI, and the key id in them."""
        self.outbox: dict[str, tuple[int, str, str | None, int, bytes | None]] = {}
        """By match: position, state, reason, whether it is offered again, and the signature."""
        self.players: dict[str, int] = {}
        self.tables: dict[str, tuple[list[str], list[tuple[Any, ...]]]] = {}
        """Every other table: columns and rows."""
        self.snapshot: tuple[Any, ...] | None = None
        self.told_whole = True
        """All that the KI had told could be read."""
        self.last_seq = 0
        self.whole = False
        """Results and outbox were read without a gap."""

    def result(
        self, number: object, match: object, record: object, cbor: object = None, key: object = None
    ) -> None:
        """A row that may be a result's; one that is none is left."""
        sound = (
            isinstance(number, int) and number > 0 and isinstance(match, str) and isinstance(record, bytes)
        )
        if not sound or not isinstance(cbor, bytes | None) or match in self.results:
            return
        assert isinstance(number, int)
        assert isinstance(match, str)
        assert isinstance(record, bytes)
        try:
            told = json.loads(record)
            seats = told["seats"]
            sound = told.get("match", match) == match and isinstance(seats, list)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return
        if sound and match and all(isinstance(seat, dict) for seat in seats):
            self.results[match] = (number, record, cbor, key if isinstance(key, bytes) else None)

    def place(
        self,
        position: object,
        match: object,
        state: object,
        reason: object = None,
        again: object = 0,
        signature: object = None,
    ) -> None:
        """A row that may be a place in the outbox. Of two, the one that waits counts."""
        if not isinstance(position, int) or not isinstance(match, str) or not isinstance(reason, str | None):
            return
        if (
            isinstance(state, str)
            and _ANSWER.fullmatch(state)
            and (match not in self.outbox or state == WAITING)
        ):
            signed = (
                signature if isinstance(signature, bytes) and len(signature) == _SIGNATURE_BYTES else None
            )
            self.outbox[match] = (position, state, reason, int(again == 1), signed)

    def carved(self, number: int, values: tuple[object, ...]) -> None:
        """A row of which nobody knows the table."""
        match values:
            case (None, str(match), bytes(record), *more) if len(more) <= 2:
                self.result(number, match, record, *more)
            case (None, str(match), str(state), *more) if len(more) <= 3:
                self.place(number, match, state, *more)
            case (str(player), int(points)) if _PLAYER.fullmatch(player):
                self.players.setdefault(player, points)


def _opened(file: Path) -> sqlite3.Connection | None:
    """The damaged file, if SQLite still opens it; it is never written.

    SQLite would delete the log of an empty file, so it must not see one.
    """
    if not file.exists() or file.stat().st_size == 0:
        return None
    db = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    try:
        if db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'results'").fetchone()[0]:
            return db
    except (sqlite3.Error, UnicodeDecodeError):
        pass
    db.close()
    return None


def _read(old: sqlite3.Connection, db: sqlite3.Connection, found: _Found) -> None:
    """Read what SQLite can reach; `db` tells which tables and columns there are to fill."""
    gaps = 0
    names = [
        str(name)
        for (name,) in db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        )
    ]
    for name in names:
        columns = _common_columns(old, db, name)
        if name in _LEFT_BEHIND or not columns:
            continue
        rows, whole = _rows(old, name, columns)
        if name == "results":
            wanted = ("number", "match", "record", "cbor", "key")
            for row in rows:
                found.result(*(dict(zip(columns, row, strict=True)).get(each) for each in wanted))
        elif name == "outbox":
            places = ("position", "match", "state", "reason", "again", "signature")
            for row in rows:
                found.place(*(dict(zip(columns, row, strict=True)).get(each) for each in places))
        elif name == "snapshot":
            found.snapshot = rows[-1] if rows and len(columns) == len(_columns(db, name)) else None
            continue
        else:
            found.tables[name] = (columns, rows)
        gaps += not whole
        found.told_whole &= whole or name not in _TOLD
    with contextlib.suppress(sqlite3.Error):
        last_seq = int(old.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0])
        # A number that no table lives to see comes of a broken page.
        found.last_seq = last_seq if 0 <= last_seq < _MOST_EVENTS else 0
    found.whole = gaps == 0


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [str(row[1]) for row in db.execute(f"PRAGMA table_info({table})")]


def _common_columns(old: sqlite3.Connection, db: sqlite3.Connection, table: str) -> list[str]:
    try:
        there = set(_columns(old, table))
    except (sqlite3.Error, UnicodeDecodeError):
        return []
    return [each for each in _columns(db, table) if each in there]


def _rows(old: sqlite3.Connection, table: str, columns: list[str]) -> tuple[list[tuple[Any, ...]], bool]:
    """The rows of a table that can be read, in order, and whether those are all."""
    chosen = ", ".join(f'"{each}"' for each in columns)
    query = f"SELECT rowid, {chosen} FROM {table}"
    forward, whole = _scanned(old, f"{query} ORDER BY rowid")
    if whole:
        return [row[1:] for row in forward], True
    reached = forward[-1][0] if forward else 0
    backward, _ = _scanned(old, f"{query} WHERE rowid > {int(reached)} ORDER BY rowid DESC")
    until = backward[-1][0] if backward else reached + _MOST_PROBED
    between = []
    missed = 0
    for number in range(reached + 1, min(until, reached + _MOST_PROBED)):
        rows, _ = _scanned(old, f"{query} WHERE rowid = {number}")
        between += rows
        missed = 0 if rows else missed + 1
        if missed > _MOST_MISSED and not backward:
            break
    return [row[1:] for row in (*forward, *between, *reversed(backward))], False


def _scanned(old: sqlite3.Connection, query: str) -> tuple[list[tuple[Any, ...]], bool]:
    """The rows up to the first that cannot be read, or that a broken page repeats; whether all could."""
    rows: list[tuple[Any, ...]] = []
    falling = query.endswith("DESC")
    try:
        for row in old.execute(query):
            if rows and (row[0] >= rows[-1][0] if falling else row[0] <= rows[-1][0]):
                return rows, False
            rows.append(row)
    except (sqlite3.Error, UnicodeDecodeError):
        return rows, False
    return rows, True


def _write(db: sqlite3.Connection, found: _Found, folder: str, seq: int) -> Salvaged:
    snapshot = found.snapshot if found.snapshot is not None and _is_state(found.snapshot[1]) else None
    numbered = sorted(found.results.items(), key=lambda each: each[1][0])
    places = sorted(found.outbox, key=lambda match: found.outbox[match][0])
    known = max([number for _, (number, *_) in numbered], default=0)
    gaps = known - len(numbered)
    unread = sum(match not in found.results for match in found.outbox)
    db.execute("BEGIN IMMEDIATE")
    for match, (number, record, cbor, key) in numbered:
        # Two copies of a number come of pages that were no longer in use; a later one takes the next number.
        db.execute(
            "INSERT INTO results(number, match, record, cbor, key)"
            " VALUES(iif(EXISTS(SELECT 1 FROM results WHERE number = ?1), NULL, ?1), ?2, ?3, ?4, ?5)",
            (number, match, record, cbor, key),
        )
    for match in (*places, *(match for match, _ in numbered if match not in found.outbox)):
        if match in found.results:
            # Most of those whose answer is lost were answered: their deltas are in what the KI tells.
            _, *place = found.outbox.get(match, (0, WAITING, None, 1, None))
            db.execute(
                "INSERT INTO outbox(match, state, reason, again, signature) VALUES(?, ?, ?, ?, ?)",
                (match, *place),
            )
    for player, points in found.players.items():
        db.execute("INSERT OR IGNORE INTO players(player, points) VALUES(?, ?)", (player, points))
    for table, (columns, rows) in found.tables.items():
        named, marks = ", ".join(f'"{each}"' for each in columns), ", ".join("?" * len(columns))
        for row in rows:
            # One that breaks a rule of its table was damaged too.
            with contextlib.suppress(sqlite3.IntegrityError):
                db.execute(f"INSERT OR REPLACE INTO {table}({named}) VALUES({marks})", row)
    if not found.told_whole:
        db.execute("UPDATE ki SET news = 0, mark = zeroblob(8)")
    if snapshot is not None:
        marks = ", ".join("?" * len(snapshot))
        db.execute(f"INSERT INTO snapshot VALUES({marks})", snapshot)
    waiting = int(db.execute("SELECT count(*) FROM outbox WHERE state = ?", (WAITING,)).fetchone()[0])
    last = int(db.execute("SELECT coalesce(max(number), 0) FROM results").fetchone()[0])
    salvaged = Salvaged(folder, len(numbered), waiting, max(gaps, unread, 0), last, snapshot is not None)
    body = {"seq": seq, "at": 0.0, "event": EVENT, **asdict(salvaged)}
    db.execute(
        "INSERT INTO events(seq, at_ns, event, body) VALUES(?, 0, ?, ?)",
        (seq, EVENT, json.dumps(body, separators=(",", ":")).replace('"at":0.0', '"at":0.000000')),
    )
    db.execute("COMMIT")
    return salvaged


def _is_state(state: object) -> bool:
    from heek.session.state import restore

    if not isinstance(state, bytes):
        return False
    try:
        restore(unpacked(state))
    except JournalError:
        return False
    return True


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
