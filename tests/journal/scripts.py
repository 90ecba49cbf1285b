"""Batches to write in the journal's tests, and what a journal must hold after the first few of them."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heek.journal import Batch, Entry, Result, SnapshotLabel
from heek.journal.kept import KeptRecords


def label(number: int) -> SnapshotLabel:
    return SnapshotLabel(boot=f"boot-{number}", mono_ns=number, wall_s=1e9 + number, trust="ntp")


def entry(seq: int, event: str = "seat_ready", **fields: Any) -> Entry:
    return Entry(seq, seq * 1000, event, json.dumps({"seq": seq, "at": seq / 1e6, "event": event, **fields}))


def result(match: str, deltas: tuple[int, ...] = (4, -4), rules: str = "heek-1") -> Result:
    seats = [
        {"seat": seat, "kind": "player", "player": f"{seat:08d}", "name": "x", "stake": 1, "delta": delta}
        for seat, delta in enumerate(deltas, start=1)
    ]
    return Result(match, json.dumps({"rules": rules, "match": match, "seats": seats}).encode())


def batch(first: int, count: int, number: int, *, sync: bool = False, match: str | None = None) -> Batch:
    """Events `first` on; with `match` the last one wins it and a result comes along."""
    entries = [entry(first + place) for place in range(count)]
    results: tuple[Result, ...] = ()
    if match is not None:
        entries[-1] = entry(first + count - 1, "match_won", match=match, seat=1)
        results = (result(match),)
    return Batch(tuple(entries), sync, json.dumps({"n": number}).encode(), label(number), results)


SCRIPT: tuple[Batch, ...] = (
    batch(1, 3, 1),
    batch(4, 2, 2, sync=True),
    batch(6, 4, 3, sync=True, match="m-1"),
    batch(10, 1, 4),
    batch(11, 3, 5, sync=True, match="m-2"),
)
"""A short life of a table: both ways to commit, two matches won."""


WITHOUT_KI = (
    "DROP TABLE ki; DROP TABLE news; DROP TABLE voids; DROP TABLE names; DROP TABLE digests;"
    "DROP TABLE known_as; DROP TABLE acknowledged; DROP TABLE erased;"
    "ALTER TABLE results DROP COLUMN key; ALTER TABLE outbox DROP COLUMN again;"
    "ALTER TABLE outbox DROP COLUMN signature; PRAGMA user_version = 3;"
)
"""Turns a journal into one of the third schema."""

WITHOUT_DIGESTS = (
    "DROP TABLE digests; DROP TABLE known_as; DROP TABLE acknowledged; DROP TABLE erased;"
    "ALTER TABLE outbox DROP COLUMN signature;"
    "ALTER TABLE ki ADD COLUMN settled_count INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE ki ADD COLUMN settled_xor BLOB NOT NULL DEFAULT x'00';"
    "ALTER TABLE ki ADD COLUMN offered_count INTEGER; ALTER TABLE ki ADD COLUMN offered_xor BLOB;"
    "UPDATE ki SET settled_count = 2, settled_xor = x'0000000000000000000000000000000F';"
    "PRAGMA user_version = 4;"
)
"""Turns a journal into one of the fourth schema, with two matches settled."""


def assert_prefix(journal: KeptRecords, script: tuple[Batch, ...] = SCRIPT, least: int = 0) -> int:
    """The journal holds exactly the first k batches, nothing of the next; returns k, at least `least`."""
    events = tuple(journal.events())
    wanted: tuple[Entry, ...] = ()
    for count in range(len(script) + 1):
        wanted = tuple(item for one in script[:count] for item in one.entries)
        if wanted == events:
            break
    assert events == wanted
    done = script[:count]
    assert count >= least
    assert tuple(journal.results()) == tuple(item for one in done for item in one.results)
    assert journal.waiting() == sum(len(one.results) for one in done)
    assert journal.snapshot() == ((done[-1].snapshot, done[-1].label) if done else None)
    assert journal.verify() == []
    return count


def in_child(body: Callable[[], None]) -> int:
    """Run `body` in a forked child; its wait status. A failure of `body` is raised here with its trace."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        code = 1
        try:
            body()
            code = 0
        except BaseException:
            os.write(writing, traceback.format_exc().encode())
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        trace = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    assert not trace, trace
    return status


def quick_folder() -> Path | None:
    """Where syncing costs nothing, if this machine has such a place."""
    shm = Path("/dev/shm")
    return shm if sys.platform == "linux" and os.access(shm, os.W_OK) else None
