"""A journal with a season in it, and the ways in which a card damages one."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from heek.journal import Answered, Batch, News, Pin, Synced, open_journal
from heek.journal.schema import FILE_NAME, MARKER_NAME, PAGE_BYTES
from heek.session.phases import Phase
from heek.session.state import Kept, KeptSeat, keep
from tests.journal.scripts import entry, label, result

PIN = Pin(bytes(range(32)), "The KI", "code")
KEY = b"tablekey"
MATCHES = 120
WAITING = 20
PAGE = PAGE_BYTES

STATE = keep(Kept(1, Phase.LOBBY, {1: KeptSeat("00000001", "x")}, None, False))


def match(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def season(folder: Path, matches: int = MATCHES, waiting: int = WAITING, carried: bool = True) -> None:
    """Fill a journal: `matches` won, all but the last `waiting` answered, points of two players known.

    Its write-ahead log is left as a pulled plug leaves it; with `carried`, half of it is in the file.
    """
    journal = open_journal(folder)
    for number in range(1, matches + 1):
        first = 10 * number - 9
        entries = [entry(seq, text="x" * 100) for seq in range(first, first + 9)]
        entries.append(entry(first + 9, "match_won", match=match(number), seat=1))
        won = replace(result(match(number)), cbor=b"record" * 100 + number.to_bytes(2, "big"), key=KEY)
        journal.append(Batch(tuple(entries), True, STATE, label(number), (won,)))
        if carried and number == matches // 2:
            journal.checkpoint()
    answers = [Answered(match(number), "accepted") for number in range(1, matches - waiting + 1)]
    journal.acknowledge([*answers[:-1], replace(answers[-1], state="rejected", reason="why not")], {})
    journal.acknowledge([], {"00000001": 104, "00000002": 96})
    journal.pin_service(PIN, KEY)
    news = [News(1, "voided", "{}", match(1), "wrong seat"), News(2, "named", "{}", "00000001", "Shorah")]
    journal.sync(Synced({}, tuple(news), (3, bytes(15) + b"x"), None), KEY)
    journal.abandon()


def without_log(folder: Path) -> None:
    """Carry the log over into the file, so that damage to the file is damage to all."""
    open_journal(folder).close()


def overwrite(folder: Path, page: int, with_bytes: bytes = b"\xa5" * PAGE) -> None:
    """Write over the page of this number, from 1."""
    data = bytearray((folder / FILE_NAME).read_bytes())
    data[(page - 1) * PAGE : page * PAGE] = with_bytes
    (folder / FILE_NAME).write_bytes(data)


def root(folder: Path, table: str) -> int:
    """The number of the page on which a table's tree begins."""
    db = sqlite3.connect(f"{(folder / FILE_NAME).as_uri()}?immutable=1", uri=True)
    try:
        return int(db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()[0])
    finally:
        db.close()


def leaf(folder: Path, table: str) -> int:
    """The number of a page in the middle of those that hold a table's rows."""
    data = (folder / FILE_NAME).read_bytes()
    number = root(folder, table)
    assert data[(number - 1) * PAGE] == 5, "the table is too small to have a tree of pages"
    while (page := data[(number - 1) * PAGE :][:PAGE])[0] == 5:
        count = int.from_bytes(page[3:5], "big")
        at = int.from_bytes(page[12 + count // 2 * 2 :][:2], "big")
        number = int.from_bytes(page[at : at + 4], "big")
    return number


def kept_files(folder: Path) -> dict[str, bytes]:
    """What the journal's files hold; -shm is no data, nor is an empty log."""
    log = f"{FILE_NAME}-wal"
    names = (FILE_NAME, log, MARKER_NAME)
    found = {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}
    if not found.get(log):
        found.pop(log, None)
    return found


def _emptied(folder: Path) -> None:
    without_log(folder)
    (folder / FILE_NAME).write_bytes(b"")


def _no_tables(folder: Path) -> None:
    without_log(folder)
    (folder / FILE_NAME).unlink()
    db = sqlite3.connect(folder / FILE_NAME)
    db.execute("PRAGMA journal_mode = WAL")
    db.close()


def _truncated(folder: Path) -> None:
    without_log(folder)
    data = (folder / FILE_NAME).read_bytes()
    (folder / FILE_NAME).write_bytes(data[: len(data) // 2 // PAGE * PAGE])


def _gone(folder: Path) -> None:
    without_log(folder)
    (folder / FILE_NAME).unlink()


def _filled(content: bytes) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        without_log(folder)
        (folder / FILE_NAME).write_bytes(content)

    return damage


def _page(table: str, which: Callable[[Path, str], int], *, first: bool = False) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        without_log(folder)
        overwrite(folder, 1 if first else which(folder, table))

    return damage


def emptied_with_log(folder: Path) -> None:
    # Nothing of it was ever carried over: the log has it all.
    shutil.rmtree(folder)
    season(folder, matches=30, waiting=10, carried=False)
    (folder / FILE_NAME).write_bytes(b"")


ALL = 1.0
"""Everything is there."""
MOST = 0.8
NOTHING = 0.0

DAMAGES: dict[str, tuple[Callable[[Path], None], float]] = {
    "emptied": (_emptied, NOTHING),
    "gone": (_gone, NOTHING),
    "no tables": (_no_tables, NOTHING),
    "zeros": (_filled(b"\0" * PAGE), NOTHING),
    "a portal's page": (_filled(b"<html>Log in to the Wi-Fi</html>" * 200), NOTHING),
    "cut in half": (_truncated, 0.1),
    "first page overwritten": (_page("", root, first=True), ALL),
    "a page of the events": (_page("events", leaf), ALL),
    "the events' root": (_page("events", root), ALL),
    "a page of the results": (_page("results", leaf), MOST),
    "the results' root": (_page("results", root), ALL),
    "the outbox' root": (_page("outbox", root), ALL),
    "the players' root": (_page("players", root), ALL),
    "the snapshot's root": (_page("snapshot", root), ALL),
}
"""By name: what it does to a season, and the least share of its results that must come over."""


def told(folder: Path) -> dict[str, object]:
    """The body of the first event of a journal."""
    db = sqlite3.connect(f"{(folder / FILE_NAME).as_uri()}?mode=ro", uri=True)
    try:
        return dict(json.loads(db.execute("SELECT body FROM events ORDER BY seq LIMIT 1").fetchone()[0]))
    finally:
        db.close()
