"""A page of the file breaks under a running writer: the journal is set aside, and nothing new is lost."""

from __future__ import annotations

import contextlib
import shutil
import signal
from pathlib import Path

import pytest

from heek.clock import SECOND, ManualClock
from heek.errors import JournalDamaged, JournalError
from heek.journal import Answered, InlineExecutor, JournalWriter, NotSaved, Written, open_or_salvage
from heek.journal.schema import FILE_NAME
from heek.journal.set_aside import damaged_folders
from heek.journal.writer import FIRST_PAUSE
from tests.journal.damage import MATCHES, PAGE, leaf, match, overwrite, root, season, without_log
from tests.journal.scripts import batch, in_child


class Running:
    """A writer on a journal that was sound when it was opened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.writer = JournalWriter(folder, InlineExecutor(), self.clock)
        self.seq = self.writer.ask(lambda journal: journal.last_seq()).result()
        self.won: list[str] = []

    def breaks(self, page: int) -> None:
        """The card loses this page, and memory has no copy of it."""
        with contextlib.suppress(JournalError):
            self.writer.ask(lambda journal: journal.checkpoint()).result()
        overwrite(self.folder, page)
        self.writer.ask(lambda journal: journal._db.execute("PRAGMA shrink_memory")).result()

    def win(self, count: int = 1) -> list[object]:
        """Matches are won; what the writer says to each."""
        outcomes: list[object] = []
        for _ in range(count):
            name = f"m-{len(self.won)}"
            outcomes.append(self.writer.submit(batch(self.seq + 1, 2, 1, sync=True, match=name)).result())
            self.seq += 2
            self.won.append(name)
        return outcomes

    def power_cut(self) -> None:
        self.writer.abandon()


def kept(folder: Path) -> list[str]:
    """The matches of a journal that is started again, which must be sound."""
    with open_or_salvage(folder) as journal:
        assert journal.verify() == []
        return [each.match for each in journal.results()]


@pytest.fixture
def running(folder: Path) -> Running:
    season(folder)
    without_log(folder)
    return Running(folder)


@pytest.mark.parametrize("table", ["events", "results", "outbox"])
def test_what_is_won_after_a_page_broke_is_in_the_new_journal(running: Running, table: str) -> None:
    """The very batch that finds it is written, numbers go on, the power is cut, and all is there."""
    running.breaks(root(running.folder, table))
    outcomes = running.win(3)
    assert outcomes == [Written(running.seq - 4), Written(running.seq - 2), Written(running.seq)]
    salvaged = running.writer.salvaged
    assert salvaged is not None
    assert (salvaged.folder, salvaged.results) == ("damaged-1", MATCHES)
    assert running.writer.status.saving
    running.power_cut()
    assert kept(running.folder) == [*(match(number) for number in range(1, MATCHES + 1)), *running.won]
    assert len(damaged_folders(running.folder)) == 1


def test_the_log_says_what_was_found_and_what_was_done(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    """Two lines, the damage and what came over; neither tells anybody to do what is done already."""
    running.breaks(root(running.folder, "events"))
    running.win()
    found, done = caplog.messages
    assert found.endswith("is damaged (database disk image is malformed)")
    assert done.startswith("The journal was damaged. It was set aside in damaged-1")


def test_a_question_that_meets_a_broken_page_is_answered_from_the_new_journal(running: Running) -> None:
    """Who asks what waits for the KI gets it, and an answer to it is written."""
    running.breaks(root(running.folder, "outbox"))
    waiting = running.writer.ask(lambda journal: journal.unsent(1000, 1 << 30)).result()
    assert match(MATCHES) in [each.match for each in waiting]
    said = [Answered(each.match, "accepted") for each in waiting]
    assert running.writer.ask(lambda journal: journal.acknowledge(said, {})).result().waiting == 0
    assert running.win() == [Written(running.seq)]
    running.power_cut()
    assert running.won[-1] in kept(running.folder)


@pytest.mark.fault("F047")
def test_whichever_page_breaks(folder: Path, tmp_path: Path) -> None:
    """Each page of the file in turn, between two matches: what was won before and after is kept."""
    season(folder, matches=8, waiting=2)
    without_log(folder)
    model = tmp_path / "model"
    shutil.copytree(folder, model)
    pages = (folder / FILE_NAME).stat().st_size // PAGE
    set_aside_at_once = 0
    for page in range(1, pages + 1):
        shutil.rmtree(folder)
        shutil.copytree(model, folder)
        running = Running(folder)
        assert running.win() == [Written(running.seq)]
        running.breaks(page)
        assert running.win(3) == [Written(running.seq - 4), Written(running.seq - 2), Written(running.seq)]
        set_aside_at_once += running.writer.salvaged is not None
        running.power_cut()
        assert set(running.won) <= set(kept(folder)), page
    assert set_aside_at_once > 3


def test_what_waits_already_is_written_into_the_new_journal(running: Running) -> None:
    """Batches that the card did not take before it broke come first, in order, and then the rest."""
    running.writer.ask(lambda journal: journal._db.execute("PRAGMA query_only = ON")).result()
    assert all(isinstance(each, NotSaved) for each in running.win(2))
    running.writer.ask(lambda journal: journal._db.execute("PRAGMA query_only = OFF")).result()
    running.breaks(root(running.folder, "events"))
    running.clock.advance_to(2 * SECOND)
    assert running.win() == [Written(running.seq)]
    assert running.writer.status.saving
    running.power_cut()
    assert kept(running.folder)[-3:] == running.won


def test_a_card_that_breaks_the_new_journal_too_is_left_alone_for_longer(running: Running) -> None:
    """Not a folder for each press: a minute, then two; what is won meanwhile is kept in memory."""
    made = []
    for second in range(0, 600, 10):
        running.clock.advance_to(second * SECOND)
        running.win()
        if len(damaged_folders(running.folder)) > len(made):
            made.append(second)
        running.breaks(root(running.folder, "events"))
    assert made == [10, 70, 190, 430]
    assert FIRST_PAUSE == 60 * SECOND


def test_without_room_to_set_it_aside_it_is_tried_again(folder: Path) -> None:
    """A full card: nothing can be moved, what is won is kept in memory, and written when there is room."""
    season(folder, matches=30, waiting=2)
    without_log(folder)

    def full_for_a_while() -> None:
        import resource

        running = Running(folder)
        running.breaks(root(folder, "results"))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        assert all(isinstance(each, NotSaved) for each in running.win(2))
        with pytest.raises(JournalDamaged, match="could not be set aside yet"):
            running.writer.ask(lambda journal: journal.waiting()).result()
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        running.clock.advance_to(FIRST_PAUSE)
        assert running.win() == [Written(running.seq)]
        running.power_cut()
        assert kept(folder)[-3:] == running.won

    assert in_child(full_for_a_while) == 0


def test_a_page_that_nobody_reads_is_found_at_the_next_start(running: Running) -> None:
    """In the middle of the events: the table plays on into the old file, and nothing of it is lost."""
    running.breaks(leaf(running.folder, "events"))
    assert running.win() == [Written(running.seq)]
    assert running.writer.salvaged is None
    running.power_cut()
    assert running.won[-1] in kept(running.folder)
