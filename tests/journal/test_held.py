"""While the card takes nothing, results go to the KI out of memory, and all is written once it does again."""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heek.clock import SECOND, ManualClock
from heek.errors import JournalError
from heek.journal import (
    Answered,
    Batch,
    InlineExecutor,
    Journal,
    JournalWriter,
    NotSaved,
    Synced,
    open_journal,
)
from heek.ki.sync import digest
from tests.journal.scripts import batch
from tests.journal.test_outbox import LyingCard

KEY = b"tablekey"


def match(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def identity(name: str) -> bytes:
    return bytes.fromhex(name.replace("-", ""))


class Table:
    """A writer on a card that can be told to take nothing, and a KI that answers for what it is sent."""

    def __init__(self, folder: Path, **options: int) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.writer = JournalWriter(folder, InlineExecutor(), self.clock, **options)
        self.journal: Journal = self.writer.ask(lambda journal: journal).result()
        self.seq = 0
        self.matches = 0
        self.taken: Counter[str] = Counter()
        """How often the KI was sent each match."""
        self.told: Counter[str] = Counter()
        """What the table was told of deltas that are in the KI's points now."""

    def fail(self, failing: bool = True) -> None:
        self.journal._db.execute(f"PRAGMA query_only = {'ON' if failing else 'OFF'}")

    def win(self) -> bool:
        """Whether it was saved."""
        self.matches += 1
        made: Batch = batch(self.seq + 1, 2, self.matches, sync=True, match=match(self.matches))
        won = replace(made.results[0], cbor=b"c%d" % self.matches, key=KEY)
        self.seq += 2
        outcome = self.writer.submit(replace(made, results=(won,))).result()
        return not isinstance(outcome, NotSaved)

    def ask(self, state: str = "accepted", limit: int = 100) -> int:
        """Send what waits, or ask how things stand if nothing does; how many results that were.

        Nothing is kept if the journal does not take the answer.
        """
        results = self.writer.ask(lambda journal: journal.unsent(limit, 1 << 20)).result()
        self.taken.update(each.match for each in results)
        answers = [Answered(each.match, state) for each in results]
        try:
            if not results:
                self.sync()
                return 0
            said = self.writer.ask(lambda journal: journal.acknowledge(answers, {})).result()
        except JournalError:
            return len(results)
        self.told.update(said.deltas)
        assert said.waiting == self.journal.waiting()
        return len(results)

    def sync(self) -> None:
        """The KI tells nothing that is new."""
        notes = self.journal.ki_notes(KEY)
        said = self.journal.sync(Synced({}, (), notes.settled, notes.offered), KEY)
        assert (said.deltas, said.waiting) == ({}, self.journal.waiting())

    def wait(self) -> None:
        self.clock.advance_to(self.clock.now() + 2 * SECOND)
        self.writer.retry().result()


@pytest.mark.fault("F050")
def test_results_go_out_of_memory_and_are_written_with_their_answers(folder: Path) -> None:
    """Two matches while nothing is saved: sent once, counted at once, in the file afterwards as answered."""
    table = Table(folder)
    assert table.win()
    table.fail()
    assert not table.win()
    assert not table.win()
    assert table.journal.waiting() == 3
    assert table.ask() == 3
    assert table.journal.waiting() == 0
    assert table.told == {"00000001": 12, "00000002": -12}
    assert table.ask() == 0
    assert table.journal.ki_notes(KEY).holds == digest(identity(match(n)) for n in (1, 2, 3))
    # The first lies in the file, which has not been told of it yet.
    rows = "SELECT match, state FROM outbox"
    assert table.journal._db.execute(rows).fetchall() == [(match(1), "waiting")]
    table.fail(False)
    table.wait()
    assert table.writer.status.saving
    assert table.ask() == 0
    assert table.journal._db.execute(rows).fetchall() == [(match(n), "accepted") for n in (1, 2, 3)]
    assert table.journal.ki_notes(KEY).holds == digest(identity(match(n)) for n in (1, 2, 3))
    table.writer.close()
    with open_journal(folder) as journal:
        assert journal.waiting() == 0
        assert journal.player_deltas() == {}
        assert journal.verify() == []
    assert set(table.taken.values()) == {1}


def test_an_answer_that_is_owed_is_written_without_another_answer(folder: Path) -> None:
    """The KI answered for a match in the file while the card took nothing, and no more are played since."""
    table = Table(folder)
    table.win()
    table.fail()
    table.win()
    assert table.ask() == 2
    table.fail(False)
    table.wait()
    rows = "SELECT state FROM outbox WHERE state = 'waiting'"
    assert table.journal._db.execute(rows).fetchall() == [("waiting",)]
    table.fail()
    table.sync()
    assert table.journal.waiting() == 0
    table.fail(False)
    table.sync()
    assert table.journal._db.execute(rows).fetchall() == []
    table.writer.close()


def test_what_is_owed_and_in_the_file_already_waits_no_less_than_not(folder: Path) -> None:
    """Result and answer were written by a commit that was told as failed: nothing waits, and not less."""
    table = Table(folder)
    table.fail()
    table.win()
    assert table.ask() == 1
    table.fail(False)
    table.journal._db = LyingCard(table.journal._db)  # type: ignore[assignment]
    table.wait()
    table.wait()
    assert table.writer.status.saving
    assert table.journal.waiting() == 0
    table.sync()
    assert table.journal.ki_notes(KEY).holds == digest([identity(match(1))])
    table.writer.close()


def test_a_death_before_that_sends_again_what_the_file_has(folder: Path) -> None:
    """What was in memory alone is gone; the result in the file waits, and is offered once more."""
    table = Table(folder)
    table.win()
    table.fail()
    table.win()
    table.ask()
    table.writer.abandon()
    with open_journal(folder) as journal:
        assert [each.match for each in journal.unsent(10, 1000)] == [match(1)]
        assert journal.verify() == []


def test_without_held_results_an_answer_that_is_not_kept_is_an_error(folder: Path) -> None:
    """All results are in the file: they wait there, and the KI is asked again."""
    table = Table(folder)
    table.win()
    table.fail()
    with pytest.raises(JournalError, match="readonly"):
        table.journal.acknowledge([Answered(match(1), "accepted")], {})
    assert table.journal.waiting() == 1


@pytest.mark.fault("F050")
def test_results_are_kept_up_to_a_number(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Past it the newest are given up, by name, and counted; the numbers of events stay without a gap."""
    table = Table(folder, most_results=3)
    table.fail()
    with caplog.at_level(logging.ERROR, "heek"):
        for _ in range(5):
            table.win()
    assert table.writer.status.lost_results == 2
    assert [message for message in caplog.messages if "given up" in message] == [
        f"the result of match {match(number)} is given up: 3 wait for a card that takes none"
        for number in (4, 5)
    ]
    table.fail(False)
    table.wait()
    assert [each.match for each in table.journal.results()] == [match(1), match(2), match(3)]
    assert table.journal.last_seq() == 10
    # And there is room again.
    table.fail()
    table.win()
    assert table.writer.status.lost_results == 2


@given(st.lists(st.sampled_from(["win", "fail", "ok", "ask", "few", "reject", "wait"]), max_size=40))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_failures_and_any_answers_come_to_the_same(folder: Path, steps: list[str]) -> None:
    """However saving, failing and asking alternate: each match ends answered, its deltas told once."""
    shutil.rmtree(folder, ignore_errors=True)
    table = Table(folder)
    for step in steps:
        match step:
            case "win":
                table.win()
            case "fail" | "ok":
                table.fail(step == "fail")
            case "ask":
                table.ask()
            case "few":
                table.ask(limit=2)
            case "reject":
                table.ask("rejected", limit=1)
            case "wait":
                table.wait()
    table.fail(False)
    table.wait()
    assert table.writer.status.saving
    table.ask()
    assert table.ask() == 0
    assert set(table.taken) == {match(number + 1) for number in range(table.matches)}
    told = {player: sum_ for player, sum_ in table.told.items() if sum_}
    assert told == ({"00000001": 4 * table.matches, "00000002": -4 * table.matches} if table.matches else {})
    notes = table.journal.ki_notes(KEY)
    table.writer.close()
    with open_journal(folder) as journal:
        assert journal.waiting() == 0
        assert journal.player_deltas() == {}
        assert journal.ki_notes(KEY) == notes
        assert journal.verify() == []
