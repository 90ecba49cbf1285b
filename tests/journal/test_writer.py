"""The writer: batches in order on one thread, and nothing lost while the card does not take them."""

from __future__ import annotations

import os
import resource
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heek.clock import SECOND, ManualClock
from heek.errors import BatchRefused, JournalError
from heek.journal import (
    Batch,
    InlineExecutor,
    Journal,
    JournalWriter,
    NotSaved,
    WriterStatus,
    Written,
    open_journal,
    read_journal,
)
from tests.journal.scripts import SCRIPT, assert_prefix, batch, entry, in_child, label


class Card:
    """A journal that can be told to fail as a card does."""

    def __init__(self, folder: Path, limit: int = 10_000) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.writer = JournalWriter(folder, InlineExecutor(), self.clock, limit=limit, opener=self.open)

    def open(self, folder: Path) -> Journal:
        self.journal = open_journal(folder)
        return self.journal

    def fail(self, failing: bool = True) -> None:
        self.journal._db.execute(f"PRAGMA query_only = {'ON' if failing else 'OFF'}")


@pytest.mark.fault("F052")
def test_the_same_code_on_a_thread_and_inline(folder: Path) -> None:
    """On a worker thread and inline alike everything is written, in order, and told so."""
    for name in ("thread", "inline"):
        with ThreadPoolExecutor(max_workers=1) as threads:
            executor = threads if name == "thread" else InlineExecutor()
            writer = JournalWriter(folder / name, executor, ManualClock())
            futures = [writer.submit(one) for one in SCRIPT]
            assert [future.result() for future in futures] == [Written(n) for n in (3, 5, 9, 10, 13)]
            assert writer.ask(lambda journal: journal.waiting()).result() == 2
            assert writer.ask(lambda _: threading.get_ident()).result() != threading.get_ident() or (
                name == "inline"
            )
            assert writer.status == WriterStatus()
            assert writer.close().saving
        with read_journal(folder / name) as reader:
            assert_prefix(reader, least=len(SCRIPT))


@pytest.mark.fault("F052")
def test_a_thousand_matches_while_others_ask(folder: Path) -> None:
    """F052: one writes, two ask all the while: a single thread has the file, each row is there once."""
    failed: list[BaseException] = []
    counted: list[int] = []
    done = threading.Event()

    def look(writer: JournalWriter) -> None:
        try:
            while not done.is_set():
                counted.append(writer.ask(lambda journal: journal.waiting()).result())
        except BaseException as error:
            failed.append(error)

    with ThreadPoolExecutor(max_workers=1) as threads:
        writer = JournalWriter(folder, threads, ManualClock())
        others = [threading.Thread(target=look, args=(writer,)) for _ in range(2)]
        for each in others:
            each.start()
        try:
            futures = [writer.submit(batch(n, 1, n, match=f"m-{n}")) for n in range(1, 1001)]
            assert [each.result() for each in futures] == [Written(n) for n in range(1, 1001)]
        finally:
            done.set()
            for each in others:
                each.join()
        assert writer.close().saving
    assert failed == []
    assert counted == sorted(counted)
    with read_journal(folder) as journal:
        assert [each.match for each in journal.results()] == [f"m-{n}" for n in range(1, 1001)]
        assert journal.verify() == []


def test_an_inline_call_is_finished_when_it_returns() -> None:
    """InlineExecutor runs at once, and keeps an exception for who asks for the result."""
    executor = InlineExecutor()
    assert executor.submit(divmod, 7, 2).done()
    assert executor.submit(divmod, 7, 2).result() == (3, 1)
    with pytest.raises(ZeroDivisionError):
        executor.submit(divmod, 7, 0).result()


def test_opening_fails_where_the_writer_is_made(folder: Path) -> None:
    """What open_journal refuses comes out of the writer's making, as it is."""
    with open_journal(folder), pytest.raises(JournalError, match="another heek runs"):
        JournalWriter(folder, InlineExecutor(), ManualClock())


def test_what_the_card_refuses_is_kept_and_written_later_in_order(folder: Path) -> None:
    """NotSaved at once, the table plays on, and when the card is back all is there without a gap."""
    card = Card(folder)
    card.writer.submit(SCRIPT[0]).result()
    card.fail()
    card.clock.advance_to(5 * SECOND)
    outcome = card.writer.submit(SCRIPT[1]).result()
    assert isinstance(outcome, NotSaved)
    assert "readonly" in outcome.reason
    card.clock.advance_to(7 * SECOND)
    assert isinstance(card.writer.submit(SCRIPT[2]).result(), NotSaved)
    assert card.writer.status == WriterStatus(5 * SECOND, outcome.reason, 6, 0)
    assert not card.writer.status.saving
    card.fail(False)
    card.clock.advance_to(8 * SECOND)
    assert card.writer.submit(SCRIPT[3]).result() == Written(10)
    assert card.writer.status == WriterStatus()
    assert card.writer.submit(SCRIPT[4]).result() == Written(13)
    assert assert_prefix(card.journal) == len(SCRIPT)
    card.writer.close()


def test_a_broken_card_is_not_tried_at_each_press(folder: Path) -> None:
    """After a failure the next attempt comes a second later, by a batch or by retry()."""
    card = Card(folder)
    card.fail()
    card.writer.submit(SCRIPT[0]).result()
    card.fail(False)
    card.clock.advance_to(SECOND - 1)
    assert isinstance(card.writer.submit(SCRIPT[1]).result(), NotSaved)
    assert not card.writer.retry().result().saving
    card.clock.advance_to(SECOND)
    assert card.writer.retry().result().saving
    assert assert_prefix(card.journal) == 2
    card.writer.close()


def test_closing_tries_once_more(folder: Path) -> None:
    """The last attempt at the end writes what it can, and tells what stays unwritten."""
    card = Card(folder / "back")
    card.fail()
    card.writer.submit(SCRIPT[0]).result()
    card.fail(False)
    assert card.writer.close().saving
    with read_journal(folder / "back") as reader:
        assert_prefix(reader, least=1)

    card = Card(folder / "gone")
    card.fail()
    card.writer.submit(SCRIPT[0]).result()
    status = card.writer.close()
    assert (status.saving, status.waiting) == (False, 3)
    open_journal(folder / "gone").close()


def test_a_wrong_batch_is_an_error_and_not_kept(folder: Path) -> None:
    """A gap is a mistake of the program: the future raises, and the right batch still goes in."""
    card = Card(folder)
    with pytest.raises(BatchRefused):
        card.writer.submit(SCRIPT[1]).result()
    assert card.writer.status.saving
    assert card.writer.submit(SCRIPT[0]).result() == Written(3)
    card.writer.close()


def test_a_wrong_batch_while_the_card_fails_is_an_error_too(folder: Path) -> None:
    """A gap is found at once even when nothing can be written, and does not spoil what waits."""
    card = Card(folder)
    card.fail()
    card.writer.submit(SCRIPT[0]).result()
    with pytest.raises(BatchRefused, match="event 6 cannot come after 3, which waits"):
        card.writer.submit(SCRIPT[2]).result()
    card.writer.submit(SCRIPT[1]).result()
    card.fail(False)
    assert card.writer.close().saving
    with open_journal(folder) as journal:
        assert assert_prefix(journal) == 2


def test_a_batch_that_can_never_be_written_does_not_keep_the_journal_open(folder: Path) -> None:
    """Even then close() lets go of the folder, and says what is wrong."""
    card = Card(folder)
    card.fail()
    card.writer.submit(batch(1, 1, 1, match="m")).result()
    card.writer.submit(batch(2, 1, 2, match="m")).result()
    card.fail(False)
    with pytest.raises(BatchRefused):
        card.writer.close()
    open_journal(folder).close()


def test_a_commit_that_only_seemed_to_fail_is_not_written_twice(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the card reported an error after the commit, the retry sees that all is there."""
    card = Card(folder)
    real = card.journal.append

    def written_but_complaining(one: Batch) -> None:
        real(one)
        raise JournalError("disk I/O error")

    monkeypatch.setattr(card.journal, "append", written_but_complaining)
    assert isinstance(card.writer.submit(SCRIPT[0]).result(), NotSaved)
    monkeypatch.undo()
    card.clock.advance_to(SECOND)
    assert card.writer.submit(SCRIPT[1]).result() == Written(5)
    assert assert_prefix(card.journal) == 2
    card.writer.close()


@pytest.mark.fault("F050")
def test_memory_is_bounded_and_numbers_and_results_survive(folder: Path) -> None:
    """Past the limit bodies are given up, but no number, no result and not the newest state."""
    card = Card(folder, limit=4)
    card.fail()
    batches = [
        batch(1, 3, 1),
        batch(4, 2, 2),  # does not fit
        batch(6, 1, 3),
        Batch((), True, b'{"n": 35}', label(35)),
        batch(7, 2, 4, match="m"),  # a result: kept whole
        Batch((), True, b'{"n": 45}', label(45)),
        Batch((), True, b'{"n": 46}', label(46)),
        Batch((entry(9),), False, None, label(5)),
    ]
    for one in batches:
        card.writer.submit(one).result()
    assert (card.writer.status.waiting, card.writer.status.lost) == (9, 4)
    card.fail(False)
    card.clock.advance_to(SECOND)
    assert card.writer.submit(batch(10, 1, 6)).result() == Written(10)
    assert card.writer.status == WriterStatus(lost=4)
    kept = list(card.journal.events())
    assert [item.seq for item in kept] == list(range(1, 11))
    assert [item.seq for item in kept if item.event == "entry_lost"] == [4, 5, 6, 9]
    assert kept[3].body == '{"seq":4,"at":0.000004,"event":"entry_lost"}'
    assert [one.match for one in card.journal.results()] == ["m"]
    assert card.journal.snapshot() == (b'{"n": 6}', label(6))
    assert card.journal.verify() == []
    card.writer.close()


def test_states_alone_do_not_pile_up(folder: Path) -> None:
    """Past the limit a thousand states without events take the room of one, the newest."""
    card = Card(folder, limit=0)
    card.fail()
    for number in range(1000):
        card.writer.submit(Batch((), True, b"%d" % number, label(number))).result()
    assert len(card.writer._backlog) == 1
    card.fail(False)
    card.clock.advance_to(SECOND)
    assert card.writer.retry().result().saving
    assert card.journal.snapshot() == (b"999", label(999))
    card.writer.close()


def test_abandoning_loses_what_is_in_memory_alone(folder: Path) -> None:
    """A power cut while the card fails keeps what was written, and the folder can be opened again."""
    card = Card(folder)
    card.writer.submit(SCRIPT[0]).result()
    card.fail()
    card.writer.submit(SCRIPT[1]).result()
    card.writer.abandon()
    with open_journal(folder) as journal:
        assert assert_prefix(journal) == 1


@pytest.mark.fault("F049")
def test_a_full_disk(folder: Path) -> None:
    """When the file may not grow the table plays on, and all of it is written once there is room."""

    def run() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        clock = ManualClock()
        writer = JournalWriter(folder, InlineExecutor(), clock)
        assert isinstance(writer.submit(SCRIPT[0]).result(), Written)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        size = (folder / "journal.sqlite3-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5000, hard))
        outcomes = [writer.submit(one).result() for one in SCRIPT[1:4]]
        assert all(isinstance(outcome, NotSaved) for outcome in outcomes), outcomes
        assert "check that there is space left" in writer.status.reason
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        clock.advance_to(SECOND)
        assert writer.submit(SCRIPT[4]).result() == Written(13)
        writer.abandon()

    assert in_child(run) == 0
    with open_journal(folder) as journal:
        assert assert_prefix(journal) == len(SCRIPT)


@pytest.mark.fault("F049")
def test_a_disk_that_is_full_already_at_the_start(folder: Path) -> None:
    """With a journal there and no room at all the opening works or says that space is missing."""
    open_journal(folder).close()

    def run() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        try:
            journal = open_journal(folder)
        except JournalError as error:
            assert "space left" in str(error) or "make room" in str(error), str(error)  # noqa: PT017
        else:
            journal.close()

    assert in_child(run) == 0
    with open_journal(folder) as journal:
        assert journal.verify() == []


@given(st.lists(st.sampled_from(["one", "sync", "won", "state", "fail", "ok", "wait"]), max_size=30))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_failures_lose_nothing_while_the_process_lives(folder: Path, steps: list[str]) -> None:
    """Whatever fails in between, at the end exactly what was submitted is in the journal, in order."""
    card = Card(folder / os.urandom(4).hex())
    submitted: list[Batch] = []
    seq = 0
    for number, step in enumerate(steps):
        if step in ("fail", "ok"):
            card.fail(step == "fail")
        elif step == "wait":
            card.clock.advance_to(card.clock.now() + SECOND)
        else:
            count = 0 if step == "state" else 2
            match = f"m-{number}" if step == "won" else None
            submitted.append(batch(seq + 1, count, number, sync=step == "sync", match=match))
            seq += count
            outcome = card.writer.submit(submitted[-1]).result()
            assert isinstance(outcome, Written) == card.writer.status.saving
            assert card.writer.status.waiting == seq - card.journal.last_seq()
    card.fail(False)
    assert card.writer.close().saving
    with open_journal(card.folder) as journal:
        assert list(journal.events()) == [item for one in submitted for item in one.entries]
        assert list(journal.results()) == [item for one in submitted for item in one.results]
        assert journal.snapshot() == ((submitted[-1].snapshot, submitted[-1].label) if submitted else None)
        assert journal.verify() == []
