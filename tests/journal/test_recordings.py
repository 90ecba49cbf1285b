"""Recordings in the journal: kept in the commits of their events, found by number, bounded."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

from heek.clock import ManualClock
from heek.journal import Batch, Entry, InlineExecutor, JournalWriter, RecordedPart, open_journal, read_journal
from heek.journal.schema import FILE_NAME, VERSION
from heek.journal.store import Journal
from tests.journal.scripts import WITHOUT_KI, batch


def recorded(first: int, count: int, part: RecordedPart, *, event: str = "seat_taken") -> Batch:
    """So many events, the last of that name, with a part of a recording."""
    made = batch(first, count, 1)
    last = made.entries[-1]
    body = f'{{"seq":{last.seq},"at":0.000000,"event":"{event}","match":"m-{last.seq}"}}'
    entries = (*made.entries[:-1], Entry(last.seq, last.at_ns, event, body))
    return replace(made, entries=entries, recorded=part)


def fill(folder: Path) -> None:
    """Two recordings: events 1 to 6 in two parts, 7 to 9 in one; matches end with 3, 6 and 9."""
    with open_journal(folder) as journal:
        journal.append(recorded(1, 3, RecordedPart(1, 0, 3, b"a" * 100, b"one"), event="match_won"))
        journal.append(recorded(4, 3, RecordedPart(1, 3, 6, b"b" * 100), event="match_void"))
        journal.append(recorded(7, 3, RecordedPart(7, 6, 9, b"c" * 100, b"two"), event="match_won"))


def test_a_part_is_kept_with_its_events(folder: Path) -> None:
    """What covers an event is found from its recording's beginning on, also beside a running daemon."""
    fill(folder)
    first = [RecordedPart(1, 0, 3, b"a" * 100, b"one"), RecordedPart(1, 3, 6, b"b" * 100, b"one")]
    second = RecordedPart(7, 6, 9, b"c" * 100, b"two")
    with open_journal(folder), read_journal(folder) as reader:
        assert reader.recorded_parts(1, 3, 3) == first[:1]
        assert reader.recorded_parts(5, 6, 6) == first
        assert reader.recorded_parts(2, 3, 8) == first
        assert reader.recorded_parts(5, 7, 9) == [*first, second]
        assert reader.recorded_parts(8, 9, 9) == [second]
        assert reader.recorded_parts(10, 12, 12) == []
        assert [each.seq for each in reader.match_ends()] == [9, 6, 3]
        assert [each.seq for each in reader.match_ends(2)] == [9, 6]


def test_the_oldest_recordings_are_given_up_whole(folder: Path) -> None:
    """Down to a number of bytes, whole recordings, never the newest; events stay for ever."""
    fill(folder)
    with open_journal(folder) as journal:
        assert journal.forget_recordings(300) == 0
        assert journal.forget_recordings(299) == 1
        assert [part.recording for part in journal.recorded_parts(1, 9, 9)] == [7]
        assert [each.seq for each in journal.match_ends()] == [9]
        assert journal.forget_recordings(0) == 0
        assert (journal.last_seq(), journal.verify()) == (9, [])


def test_matches_end_without_a_look_at_all_events(folder: Path) -> None:
    """The list of matches is read off an index, however many events there are."""
    fill(folder)
    db = sqlite3.connect(folder / FILE_NAME)
    plan = db.execute(
        "EXPLAIN QUERY PLAN SELECT seq FROM events WHERE event IN ('match_won', 'match_void')"
        " AND seq >= 1 ORDER BY seq DESC LIMIT 5"
    ).fetchall()
    assert "match_ends" in str(plan)


def test_a_journal_of_the_second_schema_goes_on(folder: Path) -> None:
    """An older file has no recordings for a reader; the daemon adds the tables, and keeps what it has."""
    with open_journal(folder) as journal:
        journal.append(batch(1, 3, 1, sync=True, match="m-1"))
    db = sqlite3.connect(folder / FILE_NAME, isolation_level=None)
    db.executescript(
        WITHOUT_KI
        + "DROP TABLE fairness; DROP INDEX match_ends; DROP TABLE recordings; DROP TABLE recording_parts;"
        "PRAGMA user_version = 2;"
    )
    db.close()
    with read_journal(folder) as reader:
        assert (reader.match_ends(), reader.recorded_parts(1, 3, 3), reader.last_seq()) == ([], [], 3)
    with open_journal(folder) as journal:
        journal.append(recorded(4, 1, RecordedPart(4, 3, 4, b"x", b"beginning"), event="match_won"))
        assert (journal.last_seq(), journal.waiting(), journal.verify()) == (4, 1, [])
        assert [each.seq for each in journal.match_ends()] == [4]
    version = sqlite3.connect(folder / FILE_NAME).execute("PRAGMA user_version").fetchone()[0]
    assert version == VERSION == 6


def test_a_disk_that_comes_back_gets_the_parts_with_their_events(folder: Path) -> None:
    """Batches that wait keep their parts; what was given up for lack of memory leaves a gap that shows."""
    full = True

    class Filling(Journal):
        def _write(self, made: Batch, records: list[tuple[str, bytes, bytes | None]]) -> None:
            if full and made.entries and made.entries[0].seq > 3:
                raise sqlite3.OperationalError("database or disk is full")
            super()._write(made, records)

    def opener(state_dir: Path) -> Journal:
        journal = open_journal(state_dir)
        journal.__class__ = Filling
        return journal

    writer = JournalWriter(folder, InlineExecutor(), ManualClock(), limit=3, opener=opener)
    writer.submit(recorded(1, 3, RecordedPart(1, 0, 3, b"a", b"one")))
    writer.submit(recorded(4, 3, RecordedPart(1, 3, 6, b"b")))
    writer.submit(recorded(7, 3, RecordedPart(1, 6, 9, b"given up")))
    writer.submit(Batch((), False, None, batch(1, 1, 1).label, recorded=RecordedPart(1, 6, 9, b"alone")))
    assert not writer.status.saving
    full = False
    assert writer.close().saving
    with read_journal(folder) as reader:
        assert [(each.after_seq, each.last_seq) for each in reader.recorded_parts(1, 9, 9)] == [
            (0, 3),
            (3, 6),
        ]
        assert [each.event for each in reader.events(6)] == ["entry_lost"] * 3
