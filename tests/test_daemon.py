"""The daemon on its loop: nothing is shown before it is kept, and no leaf that fails stops the match."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sqlite3
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import heek.daemon
import heek.painting
from heek.boot import Boot
from heek.clock import MILLISECOND, SECOND, Clock, ManualClock, RealClock
from heek.config import Config, DisplayConfig, from_keys
from heek.daemon import Daemon, World
from heek.display.faces import Fault
from heek.display.oled import Oled, Panel
from heek.display.screens import screen
from heek.errors import BackendError, JournalError
from heek.journal import InlineExecutor, open_journal, read_journal
from heek.journal.idle_check import full_check
from heek.journal.store import Journal
from heek.kinds import Kind
from heek.session.phases import Phase
from heek.session.view import SeatState
from heek.simulator.virtual_loop import VirtualLoop
from heek.stations.gpio import Board
from heek.stations.lamps import Pattern
from heek.stations.mock_pins import TableFactory
from tests.journal.damage import overwrite, root, season

pytestmark = pytest.mark.filterwarnings("ignore:Image.Image.getdata is deprecated")

BOOT = Boot("0b0b0b0b-0000-4000-8000-000000000000", "ntp")


class HandExecutor(Executor):
    """Runs calls at once until it is held; then they wait, in order, until they are let go by hand."""

    def __init__(self) -> None:
        self.held = False
        self.waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, lambda: fn(*args, **kwargs)))
        if not self.held:
            self.let_go()
        return future

    def let_go(self, count: int | None = None) -> None:
        """Run the first `count` calls that wait; all of them, and those that come, without a number."""
        self.held = self.held and count is not None
        for _ in range(len(self.waiting) if count is None else count):
            future, call = self.waiting.popleft()
            try:
                future.set_result(call())
            except Exception as error:
                future.set_exception(error)


class FakePanel:
    """A panel that can be pulled off; keeps the frames it got."""

    def __init__(self) -> None:
        self.there = True
        self.dimmed = False
        self.opened = 0
        self.frames: list[bytes] = []

    def open(self, *_: object) -> Panel:
        if not self.there:
            raise OSError(121, "Remote I/O error")
        self.opened += 1
        return self

    def display(self, image: Image.Image) -> None:
        if not self.there:
            raise OSError(121, "Remote I/O error")
        self.frames.append(image.tobytes())

    def dim(self, dimmed: bool) -> None:
        if not self.there:
            raise OSError(121, "Remote I/O error")
        self.dimmed = dimmed

    def close(self) -> None:
        """Its bus is given back."""


DARK = Image.new("1", (128, 64)).tobytes()


class Rig:
    """A daemon in virtual time, with hands on its buttons and eyes on its journal, LEDs and panels."""

    def __init__(
        self,
        folder: Path,
        *,
        journal: Executor | None = None,
        panel: Executor | None = None,
        panels: int = 1,
        there: bool = True,
        open_oled: Callable[[], Oled] | None = None,
        clock: ManualClock | None = None,
        boot: Boot = BOOT,
        wall_trust: Callable[[], str] | None = None,
        drawn: int = 0,
        check: Executor | None = None,
        **keys: object,
    ) -> None:
        self.clock = clock or ManualClock()
        self.loop = VirtualLoop(self.clock)
        self.errors: list[Any] = []
        self.loop.set_exception_handler(lambda _, context: self.errors.append(context.get("exception")))
        self.config = from_keys(
            {
                "stations.backend": "mock",
                "table.state_dir": str(folder),
                "display": [{"driver": "dummy", "address": 0x3C + number} for number in range(panels)],
            }
            | {name.replace("__", "."): value for name, value in keys.items()},
            "test",
        )
        self.lines: list[dict[str, Any]] = []
        self.panels = [FakePanel() for _ in range(panels)]
        for each in self.panels:
            each.there = there
        self.turns = 0
        self.slow_s = 0.0
        """How long each turn of the loop takes."""
        self.factory: TableFactory | None = None
        unopened = deque(self.panels)

        def open_pins(_config: Config, clock: Clock) -> TableFactory:
            self.factory = TableFactory(clock)
            return self.factory

        def open_panel(display: DisplayConfig) -> Oled:
            if open_oled is not None:
                return open_oled()
            open_device = unopened.popleft().open
            return Oled(display.driver, display.bus, display.address, display.rotate, open_device=open_device)

        def turned() -> None:
            self.turns += 1
            if self.slow_s:
                self.clock.advance_to(self.clock.now() + round(self.slow_s * SECOND))

        self.world = World(
            clock=self.clock,
            boot=boot,
            wall_trust=wall_trust,
            check_executor=check,
            journal_executor=journal or InlineExecutor(),
            panel_executor=panel or InlineExecutor(),
            random_bytes=lambda count: bytes(range(drawn, drawn + count)),
            open_pins=open_pins,
            open_panel=open_panel,
            on_line=lambda line: self.lines.append(json.loads(line)),
            on_turn=turned,
        )
        self.daemon = Daemon(self.config, self.world, self.loop)

    # People

    def at(self, seconds: float, act: Callable[[], object]) -> None:
        self.loop.call_at(seconds, act)

    def edge(self, seat: int, button: str, closed: bool, stamp: float | None = None) -> None:
        assert self.factory is not None
        station = next(each for each in self.config.wired if each.seat == seat)
        at = None if stamp is None else round(stamp * SECOND)
        self.factory.line(station.button(Kind(button))).drive(not closed, at)

    def press(self, seat: int, at: float, button: str = "page") -> None:
        self.at(at, lambda: self.edge(seat, button, True))
        self.at(at + 0.08, lambda: self.edge(seat, button, False))

    def stall(self, at: float, lasts: float, meanwhile: Callable[[], object] = lambda: None) -> None:
        """The program stands still; `meanwhile` happens around it, before it goes on."""

        def still() -> None:
            self.clock.advance_to(round((at + lasts) * SECOND))
            meanwhile()

        self.at(at, still)

    def run(self, until: float) -> None:
        self.loop.call_at(until, self.loop.stop)
        self.loop.run_forever()
        assert self.errors == []

    def match(self, seats: tuple[int, ...] = (1, 2)) -> None:
        """A match that starts at 2 s."""
        for seat in seats:
            self.press(seat, 1.0)
            self.press(seat, 2.0)
        self.run(2.2)
        assert self.daemon.shown.phase is Phase.THROW

    # What is seen

    def told(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == name]

    def pattern(self, seat: int) -> Pattern:
        return self.daemon.lamps[seat].pattern

    def led(self, seat: int) -> float:
        assert self.factory is not None
        station = next(each for each in self.config.wired if each.seat == seat)
        return self.factory.line(station.led).level

    def assert_kept(self) -> None:
        """The journal holds every line that was told, in order, and is sound."""
        with read_journal(self.config.table.state_dir) as journal:
            assert [json.loads(entry.body) for entry in journal.events()] == self.lines
            assert journal.verify() == []
        assert [line["seq"] for line in self.lines] == list(range(1, len(self.lines) + 1))


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    """Makes rigs, and puts away what the test left running."""
    with contextlib.ExitStack() as stack:

        def make(**options: Any) -> Rig:
            made = Rig(options.pop("folder", tmp_path / "state"), **options)
            stack.callback(made.loop.close)
            stack.callback(made.daemon.close)
            for executor in (options.get("journal"), options.get("panel")):
                if isinstance(executor, HandExecutor):
                    # A test that fails must not leave the daemon waiting for its hand.
                    stack.callback(executor.let_go)
            return made

        yield make


# Nothing is shown before it is kept


def test_a_reveal_is_shown_after_its_commit(rig: Callable[..., Rig]) -> None:
    """LEDs, OLED and lines keep the old view until the reveal is on the disk; then they change at once."""
    hand = HandExecutor()
    table = rig(journal=hand)
    table.match()
    table.press(1, 3.0, "pen")
    table.press(2, 3.0, "page")
    table.run(3.02)
    assert table.pattern(1) is Pattern.THROWN
    hand.held = True
    table.run(3.5)
    # The rules have revealed long since; the table does not show it.
    assert table.daemon.shown.phase is Phase.SETTLE
    assert {table.pattern(1), table.pattern(2)} == {Pattern.THROWN}
    assert all(seat.throw is None for seat in table.daemon.shown.seats)
    assert table.told("round_revealed") == []
    before = table.panels[0].frames[-1]
    hand.let_go()
    table.run(3.51)
    assert table.daemon.shown.phase is Phase.REVEAL
    assert (table.pattern(1), table.pattern(2)) == (Pattern.WON, Pattern.TAKEN)
    assert len(table.told("round_revealed")) == 1
    assert table.panels[0].frames[-1] != before
    table.assert_kept()


def test_what_comes_after_waits_behind(rig: Callable[..., Rig]) -> None:
    """What needs no commit of its own is not shown before what it follows."""
    hand = HandExecutor()
    table = rig(journal=hand)
    table.press(1, 1.0)
    table.press(2, 1.0)
    table.run(1.5)
    hand.held = True
    # Sitting down must be kept; being ready, the match's start and throws need not.
    table.press(3, 1.9)
    for seat in (1, 2, 3):
        table.press(seat, 2.2)
    table.press(1, 2.8, "pen")
    table.run(2.85)
    assert table.daemon.shown.phase is Phase.LOBBY
    assert table.daemon.shown.seats[2].state is SeatState.FREE
    assert (table.pattern(1), table.pattern(3)) == (Pattern.TAKEN, Pattern.FREE)
    shown = []
    while hand.waiting:
        hand.let_go(1)
        table.run(table.clock.now() / SECOND + 0.001)
        shown.append((table.daemon.shown.phase, table.daemon.shown.seats[2].state, table.pattern(1)))
    assert shown[-1] == (Phase.COUNTDOWN, SeatState.TAKEN, Pattern.THROWN)
    # With the one commit that counts everything behind it may be seen, and none of it before.
    assert len(set(shown)) == 1
    hand.let_go()
    table.run(3.1)
    table.assert_kept()


def test_two_commits_are_shown_one_after_the_other(rig: Callable[..., Rig]) -> None:
    """Of two seats that sit down, the first is shown while the second is still being written."""
    hand = HandExecutor()
    table = rig(journal=hand)
    table.run(0.5)
    hand.held = True
    table.press(1, 1.0)
    table.press(2, 1.3)
    table.run(1.6)
    assert (table.pattern(1), table.pattern(2)) == (Pattern.FREE, Pattern.FREE)
    hand.let_go(1)
    table.run(1.7)
    assert (table.pattern(1), table.pattern(2)) == (Pattern.TAKEN, Pattern.FREE)
    hand.let_go()
    table.run(1.8)
    assert (table.pattern(1), table.pattern(2)) == (Pattern.TAKEN, Pattern.TAKEN)


def test_a_stalled_card_leaves_nobody_in_the_dark(
    rig: Callable[..., Rig], caplog: pytest.LogCaptureFixture
) -> None:
    """A reveal that the card does not take is shown a second later, with the mark that it is not saved."""
    hand = HandExecutor()
    table = rig(journal=hand)
    table.match()
    table.press(1, 3.0, "pen")
    table.press(2, 3.0, "page")
    table.run(3.01)
    hand.held = True
    table.run(4.0)
    assert table.daemon.shown.phase is not Phase.REVEAL
    table.run(4.1)
    assert table.daemon.shown.phase is Phase.REVEAL
    assert table.daemon.shown.not_saving
    assert table.pattern(1) is Pattern.WON
    table.run(6.0)
    hand.let_go()
    table.run(6.5)
    assert not table.daemon.shown.not_saving
    assert [record.levelname for record in caplog.records if "NOT SAVING" in record.message] == ["ERROR"]
    table.assert_kept()


# An empty table tidies up


def test_an_empty_table_builds_its_panel_anew(rig: Callable[..., Rig]) -> None:
    """A panel that lost its power for a moment is lit again within five minutes of nobody playing."""
    table = rig()
    table.run(299.0)
    opened = table.panels[0].opened
    table.run(301.0)
    assert table.panels[0].opened == opened + 1
    table.press(1, 302.0)
    table.press(2, 302.0)
    table.run(302.5)
    opened = table.panels[0].opened
    table.run(315.0)
    assert table.daemon.shown.phase is Phase.THROW
    assert table.panels[0].opened == opened


# A program that is always late


@pytest.mark.parametrize("late_s", [0.016, 0.05, 0.2])
def test_a_program_that_is_always_late_comes_to_a_reveal(rig: Callable[..., Rig], late_s: float) -> None:
    """A round waits once for edges that are on their way, however late each turn is."""
    table = rig(ahyoheek__countdown_s=1)
    table.match()
    table.press(1, 3.0, "pen")
    table.press(2, 3.0, "page")
    table.slow_s = late_s
    table.run(8.0)
    assert len(table.told("round_revealed")) == 1


def test_a_second_stall_while_a_round_waits_gets_its_wait_too(rig: Callable[..., Rig]) -> None:
    """An edge that is handed over right after the second of two stalls still counts by its stamp."""
    table = rig(ahyoheek__countdown_s=5)
    table.match((1, 2, 3))
    table.press(1, 3.0, "pen")
    table.press(3, 3.2, "page")
    table.stall(7.9, 0.5)
    table.stall(8.41, 0.9)
    table.at(9.315, lambda: table.edge(2, "page", True, 7.95))
    table.run(10.0)
    assert table.told("round_revealed")[0]["throws"] == {"1": "pen", "2": "page", "3": "page"}
    assert table.told("late_delivery") == []


def test_a_stalled_program_does_not_blame_the_card(
    rig: Callable[..., Rig], caplog: pytest.LogCaptureFixture
) -> None:
    """A commit that was under way when the program stood still gets its second after that."""
    hand = HandExecutor()
    table = rig(journal=hand)
    table.run(0.5)
    hand.held = True
    table.press(1, 1.0)
    table.stall(1.2, 2.0)
    table.at(3.3, hand.let_go)
    table.run(5.0)
    assert "NOT SAVING" not in caplog.text
    assert table.pattern(1) is Pattern.TAKEN


def test_the_time_it_took_to_open_the_journal_is_no_part_of_the_table(
    rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A large journal on a slow card is neither a standstill nor time that somebody had to press in."""
    real = heek.daemon.JournalWriter

    def slow(folder: Path, executor: Executor, clock: ManualClock) -> object:
        clock.advance_to(clock.now() + 30 * SECOND)
        return real(folder, executor, clock)

    monkeypatch.setattr(heek.daemon, "JournalWriter", slow)
    table = rig()
    table.run(31.0)
    assert "stood still" not in caplog.text
    assert table.lines[0]["at"] == 0
    table.press(1, 32.0)
    table.run(33.0)
    assert table.told("seat_taken")[0]["at"] == 2.0


# A journal that cannot be written


@pytest.mark.fault("F049", "F050")
@pytest.mark.parametrize("trouble", ["database or disk is full", "attempt to write a readonly database"])
def test_the_table_plays_on_while_nothing_is_saved(
    rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, trouble: str
) -> None:
    """A full or read-only card is said on the OLED and in the log, once; later all that happened is kept."""
    table = rig(**{"ahyoheek__countdown_s": 1, "ahyoheek__reveal_s": 0.5})
    table.match()
    append = Journal.append

    def fail(_self: Journal, _batch: object) -> None:
        raise JournalError(f"journal.db: {trouble}")

    monkeypatch.setattr(Journal, "append", fail)
    caplog.set_level(logging.INFO)
    for start in (3.0, 5.0, 7.0):
        table.press(1, start, "pen")
        table.press(2, start, "page")
    table.run(5.3)
    assert table.daemon.shown.phase is Phase.REVEAL
    assert table.daemon.shown.not_saving
    assert table.pattern(1) is Pattern.WON
    table.run(9.0)
    assert table.daemon.shown.phase is Phase.MATCH_OVER
    assert [line["event"] for line in table.lines][-1] == "match_won"
    said = [record for record in caplog.records if "NOT SAVING" in record.message]
    assert [record.levelno for record in said] == [logging.ERROR]
    assert trouble in said[0].message
    monkeypatch.setattr(Journal, "append", append)
    # Nobody touches anything: the daemon itself tries again.
    table.run(15.0)
    assert not table.daemon.shown.not_saving
    assert sum("written again" in record.message for record in caplog.records) == 1
    table.assert_kept()
    with read_journal(table.config.table.state_dir) as journal:
        assert len(list(journal.results())) == journal.waiting() == 1


def test_what_was_never_saved_is_counted_at_the_end(
    rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Switched off while its card takes nothing, the table says how much is lost, and ends."""
    table = rig()
    table.run(0.5)

    def fail(_self: Journal, _batch: object) -> None:
        raise JournalError("journal.db: database or disk is full")

    monkeypatch.setattr(Journal, "append", fail)
    table.press(1, 1.0)
    table.run(2.0)
    table.daemon.close()
    assert caplog.messages[-1] == "1 events could not be saved: journal.db: database or disk is full"
    monkeypatch.undo()
    with open_journal(table.config.table.state_dir) as journal:
        assert journal.last_seq() == 1


# A journal that was damaged


@pytest.mark.fault("F046", "F047")
@pytest.mark.parametrize("damage", [b"", b"\0" * 4096, b"<html>Log in to the Wi-Fi</html>" * 200])
def test_a_damaged_journal_is_set_aside_and_told(
    rig: Callable[..., Rig], caplog: pytest.LogCaptureFixture, damage: bytes
) -> None:
    """After a night in which the card lost the journal the table plays, and log, OLED and page say why."""
    before = rig(ahyoheek__reveal_s=0.5)
    before.match()
    before.daemon.close()
    file = before.config.table.state_dir / "journal.sqlite3"
    file.write_bytes(damage)
    caplog.clear()
    table = rig(ahyoheek__countdown_s=1, ahyoheek__reveal_s=0.5)
    (sentence,) = table.daemon.shown.journal
    assert "damaged-1" in sentence
    assert [each.levelname for each in caplog.records if each.message == sentence] == ["ERROR"]
    table.run(0.5)
    assert isinstance(screen(table.daemon.shown, table.daemon.now), Fault)
    assert table.panels[0].frames[-1] != DARK
    table.match()
    assert table.daemon.shown.journal == (sentence,)
    assert not table.daemon.shown.not_saving
    table.daemon.close()
    with read_journal(table.config.table.state_dir) as journal:
        assert journal.verify() == []
        assert [each.event for each in journal.events()][:2] == ["journal_salvaged", "table_started"]
    assert (table.config.table.state_dir / "damaged-1" / "journal.sqlite3").read_bytes() == damage
    again = rig()
    assert again.daemon.shown.journal == ()


@pytest.mark.fault("F047")
def test_a_page_that_breaks_while_the_table_runs_is_told_and_nothing_stops(rig: Callable[..., Rig]) -> None:
    """The match goes on into a new journal, everything is saved, and log, OLED and page say why."""
    table = rig(ahyoheek__countdown_s=1, ahyoheek__reveal_s=0.5)
    table.match()
    folder = table.config.table.state_dir
    table.daemon.journal.ask(lambda journal: journal.checkpoint()).result()
    overwrite(folder, root(folder, "events"))
    table.daemon.journal.ask(lambda journal: journal._db.execute("PRAGMA shrink_memory")).result()
    table.run(90.0)
    (sentence,) = table.daemon.shown.journal
    assert "damaged-1" in sentence
    assert not table.daemon.shown.not_saving
    table.daemon.abandon()
    with open_journal(folder) as journal:
        assert journal.verify() == []
        kept = [json.loads(each.body) for each in journal.events()]
    assert kept[0]["event"] == "journal_salvaged"
    # The number of the last event that the old journal has: that of the next was given already.
    assert kept[1:] == table.lines[kept[0]["seq"] :]
    assert "match_void" in {each["event"] for each in kept}


@pytest.mark.fault("F053")
def test_a_log_that_somebody_holds_is_told(
    rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """F053: an idle table whose log stays long after it was written into the file says who is to blame."""
    monkeypatch.setattr(Journal, "log_bytes", lambda _journal: 16 * 1024 * 1024)
    table = rig()
    table.run(301.0)
    assert caplog.messages == []
    monkeypatch.setattr(Journal, "log_bytes", lambda _journal: 17_000_001)
    table.run(602.0)
    (said,) = caplog.messages
    assert "journal.sqlite3-wal has 17 MB: another program holds" in said


def spoil_index(folder: Path) -> None:
    """Damage that the quick check at the start does not see: an index that lacks a row."""
    db = sqlite3.connect(folder / "journal.sqlite3", isolation_level=None)
    db.execute("PRAGMA writable_schema = ON")
    changed = "UPDATE sqlite_schema SET sql = replace(sql, 'match_void', 'table_started') WHERE name = ?"
    assert db.execute(changed, ("match_ends",)).rowcount == 1
    db.close()


@pytest.mark.fault("F046")
def test_an_idle_table_checks_its_journal_in_full(
    rig: Callable[..., Rig], caplog: pytest.LogCaptureFixture
) -> None:
    """F046: what the start did not see is found while nobody plays, once a day, and told."""
    before = rig()
    before.run(1.0)
    before.daemon.close()
    spoil_index(before.config.table.state_dir)
    table = rig(check=InlineExecutor())
    table.run(299.0)
    assert table.daemon.shown.journal == ()
    table.run(1300.0)
    (sentence,) = table.daemon.shown.journal
    assert "full check found the journal damaged" in sentence
    assert sum(sentence == message for message in caplog.messages) == 1
    table.press(1, 1301.0)
    table.run(1302.0)
    assert not table.daemon.shown.not_saving


def test_the_full_check_gives_way_to_players(
    rig: Callable[..., Rig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check that is under way when somebody sits down is broken off, tells nothing, and comes again."""
    asked: list[bool] = []

    def busy() -> bool:
        asked.append(True)
        return True

    season(tmp_path / "large", matches=30, waiting=1)
    assert full_check(tmp_path / "large", busy) is None
    assert asked
    assert full_check(tmp_path / "large", lambda: False) == []
    # A new journal is checked before anybody could come.
    monkeypatch.setattr(heek.daemon, "full_check", lambda _folder, busy: None if busy() else [])
    held = HandExecutor()
    held.held = True
    table = rig(check=held)
    table.run(301.0)
    assert len(held.waiting) == 1
    table.press(1, 302.0)
    table.run(303.0)
    held.let_go(1)
    table.run(310.0)
    assert table.daemon.shown.journal == ()
    table.run(1000.0)
    assert len(held.waiting) == 1


# Panels


def reports(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        "lost" if "the match goes on" in message else "back"
        for message in caplog.messages
        if "the match goes on" in message or "answers again" in message
    ]


@pytest.mark.parametrize("threaded", [False, True], ids=["inline", "on a thread"])
def test_a_panel_that_is_absent_and_comes(
    rig: Callable[..., Rig], caplog: pytest.LogCaptureFixture, threaded: bool
) -> None:
    """Reported once however often it is tried; the match goes on; when it comes it gets the whole picture."""
    caplog.set_level(logging.INFO)
    hand = HandExecutor()
    table = rig(panel=hand, there=False)

    def lag() -> None:
        # As on a thread of its own: what is asked of the panel is done a little later.
        hand.let_go(len(hand.waiting))
        table.at(table.clock.now() / SECOND + 0.01, lag)

    if threaded:
        hand.held = True
        lag()
    table.match()
    table.run(10.5)
    assert table.daemon.shown.phase is Phase.THROW
    assert reports(caplog) == ["lost"]
    assert "OLED on i2c-1 at 0x3c does not answer (errno 121" in caplog.text
    table.panels[0].there = True
    table.run(16.0)
    assert reports(caplog) == ["lost", "back"]
    assert table.panels[0].opened == 1
    assert table.panels[0].frames[-1] == table.daemon.image.tobytes()


def test_a_panel_that_is_pulled_in_a_match(rig: Callable[..., Rig], caplog: pytest.LogCaptureFixture) -> None:
    """A panel lost between two frames is opened anew and gets the whole picture of the moment."""
    caplog.set_level(logging.INFO)
    table = rig()
    table.match()
    frames = len(table.panels[0].frames)
    table.panels[0].there = False
    table.press(1, 3.0, "pen")
    table.run(3.2)
    table.panels[0].there = True
    table.press(2, 3.3, "pen")
    table.run(6.0)
    assert reports(caplog) == ["lost", "back"]
    assert table.panels[0].opened == 2
    assert len(table.panels[0].frames) > frames
    assert table.panels[0].frames[-1] == table.daemon.image.tobytes()
    assert len(table.told("round_revealed")) == 1


def test_two_panels_stand_for_themselves(rig: Callable[..., Rig], caplog: pytest.LogCaptureFixture) -> None:
    """Both show the same; one that is lost leaves the other alone."""
    caplog.set_level(logging.INFO)
    table = rig(panels=2)
    table.run(2.5)
    one, other = table.panels
    assert one.frames == other.frames != []
    other.there = False
    table.run(8.5)
    assert one.frames[-1] == table.daemon.image.tobytes() != other.frames[-1]
    assert reports(caplog) == ["lost"]
    assert "0x3d" in caplog.text
    assert "0x3c" not in caplog.text
    other.there = True
    table.run(20.5)
    assert one.frames[-1] == other.frames[-1] == table.daemon.image.tobytes()


def test_a_screen_is_drawn_only_when_it_changes(
    rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each drawing differs from the one before, and turns without a change of the screen draw nothing."""
    drawn: list[Any] = []
    draw = heek.painting.draw

    def counted(seen: Any) -> Image.Image:
        drawn.append(seen)
        return draw(seen)

    monkeypatch.setattr(heek.painting, "draw", counted)
    table = rig()
    table.match()
    drawn.clear()
    turns = table.turns
    # Presses that change nothing, and breathing LEDs: many turns, one and the same screen.
    for place in range(20):
        table.press(4, 2.5 + place / 10)
    table.run(5.5)
    assert table.turns - turns > 40
    assert drawn == []
    assert len(table.told("press_ignored")) == 20
    table.press(1, 6.0, "pen")
    table.press(2, 8.5, "page")
    table.run(14.0)
    assert 5 < len(drawn) < 20
    assert all(one != other for one, other in pairwise(drawn))


# The loop and its clock

SLOW = {"ahyoheek__countdown_s": 20, "stations__led_pwm": False, "table__gap_s": 0.5}


@pytest.mark.fault("F043", "F056")
def test_a_heartbeat_does_next_to_nothing(rig: Callable[..., Rig]) -> None:
    """Between two things to do the program only proves that it lives: beats make no turns."""
    table = rig(**SLOW)
    table.match()
    table.press(1, 3.0, "pen")
    table.run(4.05)
    turns, beats = table.turns, Counter[str]()
    set_timer = table.daemon._set_timer

    def counted(now: int, at: int | None) -> None:
        beats["set"] += 1
        set_timer(now, at)

    table.daemon._set_timer = counted  # type: ignore[method-assign]
    table.run(10.05)
    # One digit a second, and a blink of 1.5 s; the heart beats sixteen times a second.
    assert table.turns - turns <= 12
    assert beats["set"] > 80


@pytest.mark.fault("F043")
@pytest.mark.parametrize(("lasts", "broken_off"), [(0.4, False), (0.6, True)])
def test_a_standstill_is_noticed(rig: Callable[..., Rig], lasts: float, broken_off: bool) -> None:
    """A loop that stood for longer than `gap_s` breaks the round off, though nothing was due in that time."""
    table = rig(**SLOW)
    table.match()
    table.press(1, 3.0, "pen")
    table.stall(4.1, lasts)
    table.run(6.0)
    assert [line["reason"] for line in table.told("round_void")] == ["gap"] * broken_off
    assert len(table.told("round_opened")) == 1 + broken_off


def test_a_standstill_in_the_lobby_breaks_nothing_off(
    rig: Callable[..., Rig], caplog: pytest.LogCaptureFixture
) -> None:
    """In the lobby a standstill is noticed, said in the log, and has no round to break off."""
    table = rig(**SLOW)
    table.press(1, 1.0)
    table.stall(2.0, 5.0)
    table.run(8.0)
    assert [line["event"] for line in table.lines] == ["table_started", "seat_taken"]
    assert [message.split(" for ")[0] for message in caplog.messages] == ["the program stood still"]


@pytest.mark.parametrize("delivered", [4.29, 4.31], ids=["during the stall", "just after it"])
def test_the_round_waits_for_edges_after_a_stall(rig: Callable[..., Rig], delivered: float) -> None:
    """An edge stamped in time counts though the deadline passed in a stall, and its thread lags behind."""
    table = rig(ahyoheek__countdown_s=1)
    table.match()
    table.press(1, 3.0, "pen")

    def late() -> None:
        table.edge(2, "page", True, 3.95)

    if delivered < 4.3:
        table.stall(3.9, 0.4, late)
    else:
        table.stall(3.9, 0.4)
        table.at(delivered, late)
    table.run(5.0)
    (revealed,) = table.told("round_revealed")
    assert revealed["throws"] == {"1": "pen", "2": "page"}
    assert revealed["closed"] == 3.95
    assert table.told("late_delivery") == []


def test_without_a_stall_nobody_waits(rig: Callable[..., Rig]) -> None:
    """The same edge delivered after an undisturbed settle window is late, and said to be."""
    table = rig(ahyoheek__countdown_s=1)
    table.match()
    table.press(1, 3.0, "pen")
    table.press(2, 3.5, "pen")
    table.at(3.6, lambda: table.edge(1, "beetle", True, 3.49))
    table.run(5.0)
    assert table.told("round_revealed")[0]["throws"] == {"1": "pen", "2": "pen"}
    assert len(table.told("late_delivery")) == 1


def test_edges_go_before_the_clock_in_one_turn(rig: Callable[..., Rig]) -> None:
    """Edges that wait and a deadline that has passed, in one turn: the edges are taken first, by stamp."""
    table = rig(ahyoheek__countdown_s=1)
    table.match((1, 2, 3))
    table.press(1, 3.0, "pen")

    def both() -> None:
        table.edge(3, "page", True, 3.99)
        table.edge(2, "page", True, 3.98)

    table.stall(3.95, 0.1, both)
    table.run(4.5)
    assert [line["at"] for line in table.told("throw_locked")] == [3.0, 3.98, 3.99]
    assert table.told("round_revealed")[0]["throws"] == {"1": "pen", "2": "page", "3": "page"}


def test_an_edge_that_waits_goes_before_the_end_of_settling(rig: Callable[..., Rig]) -> None:
    """Settling waits until every queued edge is drained: one that is there at its very end still counts."""
    table = rig(ahyoheek__countdown_s=1)
    table.match()
    table.press(1, 3.0, "pen")
    # The deadline is at 4.0 and settling ends at 4.033; too short a stall to wait for anybody.
    table.stall(4.02, 0.014, lambda: table.edge(2, "page", True, 3.95))
    table.run(4.5)
    assert table.told("round_revealed")[0]["throws"] == {"1": "pen", "2": "page"}


# Edges that never came, and too many of them


def lose(table: Rig, seat: int, button: str, closed: bool) -> None:
    """The contact changes and nobody hears of it: the kernel's queue of the line ran over."""
    assert table.factory is not None
    station = next(each for each in table.config.wired if each.seat == seat)
    line = table.factory.line(station.button(Kind(button)))
    line._driven, line._state = not closed, float(not closed)


def test_a_lost_opening_is_found_by_reading_the_line(rig: Callable[..., Rig]) -> None:
    """F002: within a second the contact is up again: no leave, nothing stuck; its next press counts."""
    table = rig()
    table.match()
    table.at(2.9, lambda: table.edge(1, "pen", True))
    table.at(3.0, lambda: lose(table, 1, "pen", False))
    table.at(5.0, lambda: table.edge(1, "beetle", True))
    table.at(9.5, lambda: table.edge(1, "beetle", False))
    table.press(1, 9.8, "pen")
    table.at(40, lambda: table.daemon.reset())
    table.run(41)
    assert {line["reason"] for line in table.told("seat_left")} == {"operator"}
    assert not table.told("contact_stuck")
    assert table.daemon.rejected[1, Kind.PEN, "lost"] == 1


def test_a_line_is_read_without_waking_an_empty_table(rig: Callable[..., Rig]) -> None:
    """Lines are read only while a contact is believed closed."""
    table = rig()
    table.run(400)
    turns = table.turns
    table.run(460)
    assert table.turns - turns <= 2 * 60 + 12


def test_a_flooding_line_wakes_nobody(rig: Callable[..., Rig]) -> None:
    """Once a contact is set aside its edges wait for the next heartbeat; the others' presses come at once."""
    table = rig()
    table.match((1, 2, 3))

    def swing(count: int) -> None:
        table.edge(5, "pen", count % 2 == 0)
        if count < 20_001:
            table.loop.call_later(0.0001, swing, count + 1)

    table.at(2.3, lambda: swing(0))
    table.run(2.6)
    assert table.told("contact_faulty")[0]["seat"] == 5
    turns = table.turns
    for number, seat in enumerate((1, 2, 3)):
        table.press(seat, 3.0 + number / 10, "page")
    table.run(4.2)
    assert [(line["seat"], line["at"]) for line in table.told("throw_locked")] == [
        (1, 3.0),
        (2, 3.1),
        (3, 3.2),
    ]
    assert table.told("round_revealed")[0]["closed"] == 3.2
    # LEDs that breathe take ten turns a second; 20 000 edges would have taken as many.
    assert table.turns - turns < 150
    table.run(12)
    assert table.told("contact_healed")[0]["at"] == 9.3001
    assert table.daemon.rejected[5, Kind.PEN, "flood"] > 19_000


def test_a_claim_that_is_refused_is_told(rig: Callable[..., Rig], caplog: pytest.LogCaptureFixture) -> None:
    """A claim at an empty seat is told with the seat, and the table plays on."""
    table = rig()
    table.daemon.claim(3, "40220173", "Shorah")
    table.run(1.0)
    assert "seat 3 is empty" in caplog.text
    table.press(1, 1.5)
    table.run(2.0)
    assert table.pattern(1) is Pattern.TAKEN


def test_the_operators_button(rig: Callable[..., Rig]) -> None:
    """A reset in a match makes it void at that instant; all stand up, and all of it is kept."""
    table = rig()
    table.match()
    table.at(2.5, table.daemon.reset)
    table.run(2.6)
    assert [(line["event"], line["at"]) for line in table.lines[-3:]] == [
        ("match_void", 2.5),
        ("seat_left", 2.5),
        ("seat_left", 2.5),
    ]
    assert table.daemon.shown.phase is Phase.ATTRACT
    table.assert_kept()


# The end


def test_close_leaves_all_dark_and_may_be_called_twice(rig: Callable[..., Rig]) -> None:
    """LEDs off, panel blank, journal closed and sound, no timer left; the second time nothing happens."""
    table = rig()
    table.match()
    table.press(1, 3.0, "pen")
    table.run(3.5)
    assert table.led(1) == 1.0
    lines = [table.factory.line(each.led) for each in table.config.wired] if table.factory else []
    table.daemon.close()
    assert [line.function for line in lines] == ["input"] * 5
    assert table.panels[0].frames[-1] == DARK
    frames, turns = len(table.panels[0].frames), table.turns
    table.daemon.close()
    table.daemon.reset()
    table.run(60.0)
    assert (len(table.panels[0].frames), table.turns) == (frames, turns)
    table.assert_kept()
    open_journal(table.config.table.state_dir).close()


def test_abandon_is_a_death(rig: Callable[..., Rig]) -> None:
    """Nothing is tidied: LEDs and panel stay as they were, what was committed is kept, and no timer lives."""
    table = rig()
    table.match()
    table.press(1, 3.0, "pen")
    table.run(3.5)
    frames, turns = len(table.panels[0].frames), table.turns
    table.daemon.abandon()
    table.run(60.0)
    assert table.led(1) == 1.0
    assert (len(table.panels[0].frames), table.turns) == (frames, turns)
    table.assert_kept()
    after = rig(folder=table.config.table.state_dir)
    assert [line["event"] for line in after.lines] == ["table_started", "round_void"]
    assert after.lines[0]["seq"] == table.lines[-1]["seq"] + 1
    assert after.daemon.shown.phase is Phase.RESUME


def test_pins_that_do_not_open_leave_the_journal_free(tmp_path: Path) -> None:
    """When the start fails at the pins the journal is closed again, so that the next start can have it."""

    def refuse(_config: Config, _clock: Clock) -> Any:
        raise BackendError("stations.pin_factory lgpio does not open")

    clock = ManualClock()
    loop = VirtualLoop(clock)
    world = World(
        clock=clock,
        boot=BOOT,
        journal_executor=InlineExecutor(),
        panel_executor=InlineExecutor(),
        random_bytes=lambda count: bytes(count),
        open_pins=refuse,
        open_panel=lambda _: Oled("dummy"),
        on_line=lambda _: None,
    )
    config = from_keys({"stations.backend": "mock", "table.state_dir": str(tmp_path / "state")}, "test")
    with pytest.raises(BackendError):
        Daemon(config, world, loop)
    loop.close()
    open_journal(tmp_path / "state").close()


# Real threads


class RealRig:
    """A daemon on a real loop with a thread for the journal, one for the panel, and one for the fingers."""

    def __init__(self, folder: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self.config = from_keys(
            {
                "stations.backend": "mock",
                "table.state_dir": str(folder),
                "display": [{"driver": "dummy"}],
                "ahyoheek.target": 1,
                "ahyoheek.guard_s": 0,
                "ahyoheek.reveal_s": 0.5,
                # Few heartbeats: nothing but what the test does wakes the loop.
                "table.gap_s": 60,
            },
            "test",
        )
        self.executors = ThreadPoolExecutor(1, "journal"), ThreadPoolExecutor(1, "panel")
        self.lines: list[dict[str, Any]] = []
        self.awaited: dict[str, threading.Event] = {}
        self.early: list[Phase] = []
        self.factory: TableFactory | None = None
        self.panel = FakePanel()
        world = World(
            clock=RealClock(),
            boot=BOOT,
            journal_executor=self.executors[0],
            panel_executor=self.executors[1],
            random_bytes=lambda count: bytes(range(count)),
            open_pins=self.open_pins,
            open_panel=lambda _: Oled(open_device=self.panel.open),
            on_line=self.heard,
            on_turn=self.turned,
        )
        self.daemon: Daemon | None = None
        self.daemon = Daemon(self.config, world, self.loop)

    def open_pins(self, _config: Config, clock: Clock) -> TableFactory:
        self.factory = TableFactory(clock)
        return self.factory

    def heard(self, line: str) -> None:
        told = json.loads(line)
        self.lines.append(told)
        self.event(told["event"]).set()

    def event(self, name: str) -> threading.Event:
        return self.awaited.setdefault(name, threading.Event())

    def turned(self) -> None:
        """A round's throws may be on the table only when the journal has said that it has them."""
        if self.daemon is None:
            return
        shown = self.daemon.shown
        revealed = any(line["event"] == "round_revealed" for line in self.lines)
        if not revealed and any(seat.throw is not None for seat in shown.seats):
            self.early.append(shown.phase)

    def play(self) -> None:
        """On a thread of its own: a whole match of one round, each press when the last has been told."""
        try:
            assert self.factory is not None
            pens, pages = [4, 24], [17, 25]
            for lines, wanted in (
                (pages, "seat_taken"),
                (pages, "round_opened"),
                ([pens[0], pages[1]], "match_won"),
            ):
                # Open for longer than any bounce, on the pins' own clock.
                start = self.factory.ticks()
                while self.factory.ticks() - start < 0.03:
                    threading.Event().wait(0.005)
                for number in lines:
                    self.factory.line(number).drive(False)
                    self.factory.line(number).drive(True)
                assert self.event(wanted).wait(5), f"no {wanted} in {self.lines}"
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)

    def close(self) -> None:
        assert self.daemon is not None
        self.daemon.close()
        self.loop.close()
        for executor in self.executors:
            executor.shutdown()


@pytest.mark.fault("F052")
def test_a_match_on_real_threads(tmp_path: Path) -> None:
    """Fingers, journal and panel on threads of their own: every event in order, nothing shown early."""
    table = RealRig(tmp_path / "state")
    fingers = threading.Thread(target=table.play, name="fingers")
    try:
        for number in (4, 17, 24, 25):
            assert table.factory is not None
            table.factory.line(number).drive(True)
        fingers.start()
        guard = table.loop.call_later(15, table.loop.stop)
        table.loop.run_forever()
        guard.cancel()
    finally:
        fingers.join()
        table.close()
    names = [line["event"] for line in table.lines]
    assert names[0] == "table_started"
    assert names[-2:] == ["round_revealed", "match_won"]
    assert table.early == []
    assert [line["seq"] for line in table.lines] == list(range(1, len(names) + 1))
    assert table.panel.frames[-1] == DARK
    with read_journal(tmp_path / "state") as journal:
        assert [json.loads(entry.body) for entry in journal.events()] == table.lines
        assert len(list(journal.results())) == 1
        assert journal.verify() == []


def test_an_edge_from_another_thread_wakes_the_loop(tmp_path: Path) -> None:
    """A loop that sleeps until a timer far away takes a press from another thread within milliseconds."""
    table = RealRig(tmp_path / "state")
    try:
        assert table.factory is not None
        line = table.factory.line(4)
        line.drive(True)
        taken: list[float] = []

        asleep = threading.Event()
        select = table.loop._selector.select  # type: ignore[attr-defined]

        def watched(timeout: float | None = None) -> Any:
            if timeout is None or timeout > 0.5:
                asleep.set()
            return select(timeout)

        table.loop._selector.select = watched  # type: ignore[attr-defined]

        def finger() -> None:
            # Pressed long enough after the start to be a press, and while the loop sleeps.
            asleep.wait(5)
            while table.factory is not None and table.factory.ticks() - opened < 0.05:
                threading.Event().wait(0.005)
            closed = table.factory.ticks() if table.factory is not None else 0.0
            line.drive(False)
            table.event("seat_taken").wait(5)
            taken.append(table.factory.ticks() - closed if table.factory is not None else 9.0)
            table.loop.call_soon_threadsafe(table.loop.stop)

        thread = threading.Thread(target=finger)
        opened = table.factory.ticks()
        thread.start()
        table.loop.call_later(10, table.loop.stop)
        table.loop.run_forever()
        thread.join()
        # The attract screen moves once a second; a loop that waited for it would take that long.
        assert taken[0] < 0.4
        assert table.lines[-1]["event"] == "seat_taken"
    finally:
        table.close()


def test_stamps_of_a_press_are_the_contacts(rig: Callable[..., Rig]) -> None:
    """What a press causes carries the instant at which the contact closed, to the nanosecond."""
    table = rig()
    at = 1_234_567_890
    table.loop.call_at(at / SECOND, lambda: table.edge(1, "pen", True))
    table.run(2.0)
    (taken,) = table.told("seat_taken")
    assert taken["at"] == pytest.approx(at / SECOND, abs=2e-6)
    assert table.clock.now() > at + 3 * MILLISECOND


# Figures of fairness


def row(report: dict[str, Any], seat: int, button: str) -> dict[str, Any]:
    return next(each for each in report["buttons"] if (each["seat"], each["button"]) == (seat, button))


def test_every_press_waits_the_chord_time_and_no_longer(rig: Callable[..., Rig]) -> None:
    """On an idle loop each verdict comes `chord_s` after the contact closed; nothing is late or lost."""
    table = rig()
    table.match()
    table.press(1, 3.0, "pen")
    table.press(2, 3.2, "page")
    table.run(4.0)
    report = table.daemon.fairness()
    assert [row(report, 1, "pen")[key] for key in ("count", "median_ms", "max_ms")] == [1, 3.0, 3.0]
    assert row(report, 2, "page")["count"] == 3
    assert row(report, 5, "beetle")["count"] == 0
    assert report["lag"]["max_ms"] == 0
    assert report["lag"]["count"] > 20
    assert (report["late_deliveries"], report["dropped"], report["stamps"]) == (0, 0, "simulated")
    assert report["reveals"] == {"count": 1, "median_ms": 0, "p99_ms": 0, "max_ms": 0}


def test_a_stall_is_in_the_figures(rig: Callable[..., Rig]) -> None:
    """A press in a stall waits for its verdict until the program is back, and the loop's lag says so."""
    table = rig()
    table.match()
    table.stall(3.0, 0.4, lambda: table.edge(1, "pen", True, 3.1))
    table.run(4.0)
    report = table.daemon.fairness()
    assert row(report, 1, "pen")["max_ms"] == 300
    assert 200 < report["lag"]["max_ms"] <= 400


def test_a_late_delivery_is_in_the_figures(rig: Callable[..., Rig]) -> None:
    """An edge that comes after its round was compared is counted as one."""
    table = rig(ahyoheek__settle_s=0.005)
    table.match((1, 2, 3))
    for seat in (1, 2, 3):
        table.press(seat, 3.0, "pen")
    table.at(3.5, lambda: table.edge(1, "page", True, 2.9))
    table.run(4.0)
    assert len(table.told("late_delivery")) == 1
    assert table.daemon.fairness()["late_deliveries"] == 1


def test_the_leds_of_a_reveal_are_measured(rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch) -> None:
    """A board whose LEDs take a millisecond each shows four in three milliseconds, once a reveal."""
    table = rig()
    table.match((1, 2, 3, 4))
    light = Board.light

    def slow(board: Board, seat: int, level: float) -> bool:
        table.clock.advance_to(table.clock.now() + MILLISECOND)
        return light(board, seat, level)

    monkeypatch.setattr(Board, "light", slow)
    for seat, button in zip((1, 2, 3, 4), ("pen", "page", "page", "page"), strict=True):
        table.press(seat, 3.0 + seat / 100, button)
    table.run(3.5)
    assert table.daemon.shown.phase is Phase.REVEAL
    reveals = table.daemon.fairness()["reveals"]
    assert isinstance(reveals, dict)
    assert reveals["count"] == 1
    assert 2 <= reveals["max_ms"] <= 3
