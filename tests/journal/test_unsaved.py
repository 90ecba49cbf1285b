"""A state folder that cannot be written at the start: the table begins in memory, and nothing is lost."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from heek.clock import SECOND, ManualClock
from heek.errors import JournalError, JournalUnwritable
from heek.journal import (
    Answered,
    Batch,
    InlineExecutor,
    Journal,
    JournalWriter,
    NotSaved,
    Result,
    Written,
    open_journal,
    open_or_salvage,
    read_journal,
)
from heek.journal.lock import LOCK_NAME
from heek.journal.schema import FILE_NAME
from heek.journal.set_aside import MOVING
from heek.journal.writer import FIRST_REOPEN, LONGEST_REOPEN
from tests.journal.damage import KEY, MATCHES, PIN, STATE, WAITING, kept_files, match, season, without_log
from tests.journal.scripts import batch, entry, in_child, label, result
from tests.journal.test_disk_faults import fill_up, small_disk

__all__ = ["small_disk"]

WHY = "cannot be written (Read-only file system)"
NOBODY = 65534
FIRST = 10 * MATCHES + 1
"""The number of the first event after a season."""


class Table:
    """A writer whose folder can be written when `writable` says so; counts how often it was tried."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.writable = False
        self.tried = 0
        self.clock = ManualClock()
        self.writer = JournalWriter(folder, InlineExecutor(), self.clock, opener=self.open)

    def open(self, folder: Path) -> Journal:
        self.tried += 1
        if not self.writable:
            raise JournalUnwritable(f"{folder}: {WHY}")
        return open_or_salvage(folder)

    def win(self, first: int, name: str) -> NotSaved | Written:
        """A match that is won with the event of this number."""
        won: Result = replace(result(name), cbor=name.encode(), key=KEY)
        entries = (entry(first, "match_won", match=name, seat=1),)
        return self.writer.submit(Batch(entries, True, STATE, label(first), (won,))).result()


@pytest.fixture
def table(folder: Path) -> Iterator[Table]:
    """After a season; what was not closed by the test is let go of."""
    season(folder)
    made = Table(folder)
    yield made
    made.writer.abandon()


def test_it_knows_what_could_be_read_and_changes_nothing(table: Table) -> None:
    """Outbox, points, KI, state and the last number are those of the folder, whose files stay as they are."""
    before = kept_files(table.folder)
    status = table.writer.status
    assert table.writer.in_memory
    assert (status.saving, status.reason) == (False, f"{table.folder}: {WHY}")
    with read_journal(table.folder) as kept:
        known = table.writer.ask(
            lambda journal: (
                journal.last_seq(),
                journal.waiting(),
                journal.player_deltas(),
                journal.snapshot(),
                journal.pin(),
                journal.voids(),
                list(journal.results()),
            )
        ).result()
        assert known == (
            kept.last_seq(),
            WAITING,
            kept.player_deltas(),
            kept.snapshot(),
            PIN,
            {match(1): "wrong seat"},
            list(kept.results()),
        )
        assert (
            table.writer.ask(lambda journal: journal.ki_notes(KEY)).result().holds[0] == MATCHES - WAITING - 1
        )
    # A batch with nothing in it that is kept in memory changes nothing of that.
    table.writer.submit(Batch((), False, None, label(1))).result()
    assert not table.writer.status.saving
    assert isinstance(table.win(FIRST, match(901)), NotSaved)
    with pytest.raises(JournalUnwritable):
        table.writer.ask(lambda journal: journal.meet_with_key(KEY)).result()
    assert kept_files(table.folder) == before


def test_results_reach_the_ki_out_of_memory_and_the_file_later(table: Table) -> None:
    """What is won is offered after what waits, and its answer kept; both are written when the card lets."""
    assert isinstance(table.win(FIRST, match(901)), NotSaved)
    assert isinstance(table.win(FIRST + 1, match(902)), NotSaved)
    unsent = table.writer.ask(lambda journal: journal.unsent(100, 1 << 20)).result()
    assert [each.match for each in unsent] == [
        *(match(number) for number in range(MATCHES - WAITING + 1, MATCHES + 1)),
        match(901),
        match(902),
    ]
    answers = [Answered(match(MATCHES), "accepted"), Answered(match(901), "accepted")]
    said = table.writer.ask(lambda journal: journal.acknowledge(answers, {})).result()
    assert said.waiting == WAITING
    opened: list[int] = []
    table.writer.when_opened(lambda journal: opened.append(journal.last_seq()))
    table.writable = True
    table.clock.advance_to(FIRST_REOPEN)
    assert table.writer.retry().result().saving
    assert not table.writer.in_memory
    assert opened == [FIRST - 1]
    assert table.win(FIRST + 2, match(903)) == Written(FIRST + 2)
    # The answer to what was in the file is written with the next one.
    table.writer.ask(lambda journal: journal.acknowledge([], {})).result()
    table.writer.close()
    with open_journal(table.folder) as journal:
        assert journal.verify() == []
        assert [each.match for each in journal.results()][MATCHES:] == [match(901), match(902), match(903)]
        waiting = [each.match for each in journal.unsent(100, 1 << 20)]
        assert waiting[-3:] == [match(MATCHES - 1), match(902), match(903)]
        assert journal.ki_notes(KEY).holds[0] == MATCHES - WAITING - 1 + 2


def test_a_folder_that_stays_so_is_left_more_and_more_alone(table: Table) -> None:
    """Not with every press: after 5 s, then twice as long each time, up to a minute."""
    times = []
    for second in range(400):
        table.clock.advance_to(second * SECOND)
        before = table.tried
        table.writer.submit(batch(FIRST + second, 1, second))
        table.writer.retry()
        times += [second] * (table.tried - before)
    assert times == [5, 10, 20, 40, 80, 140, 200, 260, 320, 380]
    assert LONGEST_REOPEN == 60 * SECOND
    # Meanwhile the folder is ours as far as a lock can be had.
    with pytest.raises(JournalError, match="another heek runs"):
        open_journal(table.folder)
    table.writable = True
    table.writer.close()
    with open_journal(table.folder) as journal:
        assert journal.last_seq() == FIRST + 399
        assert journal.verify() == []


def test_an_empty_folder_begins_with_the_first_event(folder: Path) -> None:
    """Nothing there, and nothing to be made: numbers from 1, kept when the folder can be made."""
    table = Table(folder)
    table.writer.submit(batch(1, 3, 1, sync=True, match=match(901)))
    assert not folder.exists()
    table.writable = True
    table.writer.close()
    with open_journal(folder) as journal:
        assert (journal.last_seq(), journal.waiting(), journal.verify()) == (3, 1, [])


def test_another_journal_that_appears_is_left_alone(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A partition that is mounted late has numbers of its own: what waits is not taken for what is there."""
    table = Table(folder)
    table.writer.submit(batch(1, 3, 1, sync=True, match=match(901)))
    season(folder)
    table.writable = True
    for second in (5, 10, 20):
        table.clock.advance_to(second * SECOND)
        assert not table.writer.retry().result().saving
    assert "is not the journal that was there when the table started" in table.writer.status.reason
    assert sum("is not the journal" in each.message for each in caplog.records) == 1
    assert table.writer.ask(lambda journal: journal.waiting()).result() == 1
    table.writer.close()
    with read_journal(folder) as journal:
        assert [each.match for each in journal.results()] == [
            match(number) for number in range(1, MATCHES + 1)
        ]
        assert journal.last_seq() == FIRST - 1
        assert journal.verify() == []


def test_what_the_opening_cannot_do_keeps_all_in_memory(table: Table) -> None:
    """A key that is not the table's, say: told, tried again, and nothing written until it goes."""
    trouble = [JournalError("the key is another one")]

    def opened(_journal: Journal) -> None:
        if trouble:
            raise trouble[0]

    table.writer.when_opened(opened)
    table.win(FIRST, match(901))
    table.writable = True
    table.clock.advance_to(5 * SECOND)
    assert table.writer.retry().result().reason == "the key is another one"
    assert isinstance(table.win(FIRST + 1, match(902)), NotSaved)
    trouble.clear()
    table.clock.advance_to(20 * SECOND)
    assert table.win(FIRST + 2, match(903)) == Written(FIRST + 2)


def _newer(folder: Path) -> None:
    with open_journal(folder) as journal:
        journal._db.execute("PRAGMA user_version = 99")


def _damaged(folder: Path) -> None:
    without_log(folder)
    (folder / FILE_NAME).write_bytes(b"")


def _half_set_aside(folder: Path) -> None:
    (folder / "damaged-1").mkdir()
    (folder / "damaged-1" / MOVING).write_text("it is broken\n")


def test_what_stops_a_start_all_the_same(folder: Path) -> None:
    """Another heek on the folder, a newer version's file, one damaged or half set aside: each in words."""
    season(folder, matches=2, waiting=1)
    with open_journal(folder), pytest.raises(JournalError, match=r"another heek runs .*\(pid \d+\)"):
        Table(folder)
    _half_set_aside(folder)
    with pytest.raises(JournalUnwritable, match="Read-only"):
        Table(folder)
    (folder / "damaged-1" / MOVING).unlink()
    _newer(folder)
    with pytest.raises(JournalError, match="was written by a newer heek"):
        Table(folder)
    (folder / FILE_NAME).write_bytes(b"")
    with pytest.raises(JournalError, match="is empty"):
        Table(folder)
    (folder / FILE_NAME).unlink()
    with pytest.raises(JournalError, match="is gone"):
        Table(folder)


def test_a_disk_that_is_mounted_read_only(small_disk: Path) -> None:
    """F050 for real: begun on a file system that the kernel has made read-only, saved when it is mended."""
    folder = small_disk / "state"
    season(folder, matches=9, waiting=2)
    clock = ManualClock()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    writer = JournalWriter(folder, InlineExecutor(), clock)
    try:
        assert writer.in_memory
        assert "Read-only file system" in writer.status.reason
        # To give the folder to anybody would not help.
        assert "its file system is read-only: mount it for writing" in writer.status.reason
        assert "give the folder" not in writer.status.reason
        assert isinstance(writer.submit(batch(91, 2, 9, sync=True, match="m-9")).result(), NotSaved)
        clock.advance_to(5 * SECOND)
        assert not writer.retry().result().saving
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    clock.advance_to(20 * SECOND)
    assert writer.retry().result().saving
    writer.close()
    with open_journal(folder) as journal:
        assert (journal.last_seq(), journal.waiting(), journal.verify()) == (92, 3, [])


@pytest.mark.fault("F049")
@pytest.mark.parametrize("pages", [0, 1, 2, 5, 9, 12])
def test_a_first_start_on_a_full_disk(small_disk: Path, pages: int) -> None:
    """F049: no room for a journal, or for some of it: begun in memory, nothing left, saved with room."""
    folder, hog = small_disk / "state", fill_up(small_disk)
    folder.mkdir()
    os.truncate(hog, hog.stat().st_size - pages * 4096)
    for start in (1, 2):
        clock = ManualClock()
        writer = JournalWriter(folder, InlineExecutor(), clock)
        assert writer.in_memory
        assert "check that there is space left on the card" in writer.status.reason
        assert isinstance(writer.submit(batch(1, 3, 1, sync=True, match=match(901))).result(), NotSaved)
        clock.advance_to(5 * SECOND)
        assert not writer.retry().result().saving
        assert {each.name for each in folder.iterdir()} == {LOCK_NAME}
        if start == 1:
            writer.abandon()
    hog.unlink()
    clock.advance_to(60 * SECOND)
    assert writer.retry().result().saving
    writer.close()
    with open_journal(folder) as journal:
        assert (journal.last_seq(), journal.waiting(), journal.verify()) == (3, 1, [])


@pytest.mark.fault("F049")
@pytest.mark.parametrize("left", [b"", None], ids=["empty", "without tables"])
def test_what_a_cut_at_the_first_start_left_is_no_journal(folder: Path, left: bytes | None) -> None:
    """An empty file, or one without tables, where no journal was ever kept: begun in memory all the same."""
    folder.mkdir()
    file = folder / FILE_NAME
    if left is None:
        with sqlite3.connect(file, isolation_level=None) as db:
            db.execute("PRAGMA journal_mode = WAL")
        db.close()
    else:
        file.write_bytes(left)
    before = file.read_bytes()
    table = Table(folder)
    assert table.writer.in_memory
    assert isinstance(table.win(1, match(901)), NotSaved)
    assert file.read_bytes() == before
    table.writable = True
    table.writer.close()
    with open_journal(folder) as journal:
        assert (journal.last_seq(), journal.verify()) == (1, [])


def test_an_empty_file_beside_a_log_is_a_loss(folder: Path) -> None:
    """A cut took the file and left its log: nothing is played on top of that, as no start would."""
    folder.mkdir()
    (folder / FILE_NAME).touch()
    (folder / f"{FILE_NAME}-wal").write_bytes(b"what may be saved by hand")
    with pytest.raises(JournalError, match="is empty"):
        Table(folder)


def test_a_folder_that_this_user_may_only_read(folder: Path) -> None:
    """As an ordinary user, with mode 555: what is there is known, and nothing is made or changed."""
    season(folder, matches=3, waiting=1)
    without_log(folder)
    for each in folder.iterdir():
        each.chmod(0o644)
    folder.parent.chmod(0o755)
    folder.chmod(0o555)
    before = {each.name: each.read_bytes() for each in folder.iterdir()}

    def begin() -> None:
        if os.geteuid() == 0:
            os.setuid(NOBODY)
        writer = JournalWriter(folder, InlineExecutor(), ManualClock())
        assert writer.in_memory
        assert "give the folder to the user who runs heek" in writer.status.reason
        assert writer.ask(lambda journal: (journal.last_seq(), journal.waiting())).result() == (30, 1)
        writer.submit(batch(31, 1, 1, sync=True, match=match(901)))
        assert not writer.close().saving

    try:
        in_child(begin)
    finally:
        folder.chmod(0o700)
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == before
