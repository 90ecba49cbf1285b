"""Wall clocks that start in the past, jump and slip while a table plays: labels follow, nothing moves."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heek.boot import Boot
from heek.clock import SECOND, ManualClock
from heek.journal import InlineExecutor, read_journal
from heek.ki.record import decode_record
from heek.session.phases import Phase
from tests.test_daemon import Rig

NOON = 1_764_504_000.0
HOUR = 3600.0
KEYS: dict[str, Any] = {"ahyoheek__countdown_s": 1, "ahyoheek__reveal_s": 0.5, "ahyoheek__match_over_s": 1}
END = 14.0


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    with contextlib.ExitStack() as stack:

        def make(**options: Any) -> Rig:
            made = Rig(options.pop("folder", tmp_path / "state"), **KEYS, **options)
            stack.callback(made.loop.close)
            stack.callback(made.daemon.close)
            return made

        yield make


def play(table: Rig, begin: float = 0.0) -> None:
    """A match of two, won by seat 1 in its third round, and the table is left."""
    for seat in (1, 2):
        table.press(seat, begin + 1.0)
        table.press(seat, begin + 2.0)
    for number in range(3):
        table.press(1, begin + 3.0 + 2 * number, "pen")
        table.press(2, begin + 3.2 + 2 * number, "page")


def results(table: Rig) -> list[dict[str, Any]]:
    with read_journal(table.config.table.state_dir) as journal:
        return [json.loads(each.record) for each in journal.results()]


def seen(table: Rig) -> tuple[object, ...]:
    """Everything that anybody at the table or the page could notice."""
    return (
        [{key: each for key, each in line.items() if key not in ("match", "incarnation", "boot")}
         for line in table.lines],
        table.daemon.shown.phase,
        [table.led(seat) for seat in (1, 2, 3, 4, 5)],
        [panel.frames for panel in table.panels],
        table.turns,
    )  # fmt: skip


def undisturbed(folder: Path, steps: Callable[[Rig], None]) -> tuple[object, ...]:
    table = Rig(folder, **KEYS)
    try:
        play(table)
        steps(table)
        table.run(END)
        return seen(table)
    finally:
        table.daemon.close()
        table.loop.close()


def every_second(by_s: float) -> Callable[[Rig], None]:
    def steps(table: Rig) -> None:
        for second in range(1, int(END)):
            table.at(second + 0.25, lambda: table.clock.set_wall_s(table.clock.wall_s() + by_s))

    return steps


def once(at: float, by_s: float) -> Callable[[Rig], None]:
    return lambda table: table.at(at, lambda: table.clock.set_wall_s(table.clock.wall_s() + by_s))


def stamped(steps: Callable[[Rig], None]) -> Callable[[Rig], None]:
    """The same number of turns of the loop, for the comparison: a step that changes nothing."""

    def still(table: Rig) -> None:
        at = table.at
        table.at = lambda when, _act: at(when, lambda: None)  # type: ignore[method-assign]
        steps(table)
        table.at = at  # type: ignore[method-assign]

    return still


@pytest.mark.fault("F038")
@pytest.mark.parametrize(
    "steps",
    [once(5.5, -2 * HOUR), once(5.5, 2 * HOUR), once(5.5, -52 * 365 * 86400.0), once(5.5, 9 * 365 * 86400.0),
     every_second(1.0), every_second(-1.0)],
    ids=["2 h back", "2 h on", "52 years back", "years on", "a second every second", "a second back each"],
)  # fmt: skip
def test_a_step_of_the_wall_clock_moves_nothing(tmp_path: Path, steps: Callable[[Rig], None]) -> None:
    """F038: events with their stamps, LEDs, every picture, every turn of the loop: as without the step."""
    assert undisturbed(tmp_path / "stepped", steps) == undisturbed(tmp_path / "still", stamped(steps))


@pytest.mark.fault("F038")
@given(st.lists(st.tuples(st.floats(0.1, END - 0.1), st.floats(-2e9, 1e10)), max_size=8))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_steps_move_nothing(
    tmp_path_factory: pytest.TempPathFactory, jumps: list[tuple[float, float]]
) -> None:
    """F038: whatever the wall clock does in a match, and however often."""

    def steps(table: Rig) -> None:
        for at, wall_s in jumps:
            table.at(at, lambda wall_s=wall_s: table.clock.set_wall_s(wall_s))

    folder = tmp_path_factory.mktemp("walls")
    assert undisturbed(folder / "stepped", steps) == undisturbed(folder / "still", stamped(steps))


@pytest.mark.fault("F037")
def test_the_network_sets_the_clock_in_mid_match(rig: Callable[..., Rig]) -> None:
    """F037: 1970 at the start, years on in round 2: the result says the right time, and that it is ntp's."""
    trust = ["none"]
    table = rig(clock=ManualClock(wall_s=12.0), boot=Boot("boot", "none"), wall_trust=lambda: trust[0])
    play(table)

    def set_clock() -> None:
        table.clock.set_wall_s(NOON)
        trust[0] = "ntp"

    table.at(5.5, set_clock)
    table.run(END)
    (told,) = [each["t"] for each in results(table)]
    assert told["trust"] == "ntp"
    assert NOON < told["wall_s"] < NOON + 10
    assert told["end_ms"] - told["start_ms"] == round(
        1000 * (table.told("match_won")[0]["at"] - table.told("match_started")[0]["at"])
    )


@pytest.mark.fault("F037")
def test_the_ki_tells_the_time_to_a_table_in_1970(
    rig: Callable[..., Rig], caplog: pytest.LogCaptureFixture
) -> None:
    """F037: no network time at all; what the KI told goes into the result and the snapshot, as `service`."""
    table = rig(clock=ManualClock(wall_s=12.0), boot=Boot("boot", "none"), wall_trust=lambda: "none")
    play(table)
    with caplog.at_level("INFO", "heek"):
        table.at(5.5, lambda: table.daemon.tell_time(NOON, table.daemon.now))
        table.at(6.5, lambda: table.daemon.tell_time(NOON + 1, table.daemon.now))
        table.run(END)
    won = table.told("match_won")[0]["at"]
    (told,) = [each["t"] for each in results(table)]
    assert (told["trust"], told["wall_s"]) == ("service", int(NOON + won - 5.5))
    with read_journal(table.config.table.state_dir) as journal:
        kept = journal.snapshot()
    assert kept is not None
    assert kept[1].trust == "service"
    assert sum("told the time" in message for message in caplog.messages) == 1


@pytest.mark.fault("F037", "F055")
@pytest.mark.parametrize(
    ("wall_s", "trust"), [(0.0, "none"), (NOON - 14 * 86400, "saved"), (NOON + 3 * 365 * 86400, "saved")],
    ids=["1970", "two weeks back", "three years on"],
)  # fmt: skip
def test_a_start_at_another_time_keeps_the_order(
    rig: Callable[..., Rig], tmp_path: Path, wall_s: float, trust: str
) -> None:
    """F037, F055: the second match comes after the first in journal, chain and outbox, whatever its time."""
    first = rig(clock=ManualClock(wall_s=NOON), boot=Boot("one", "ntp"))
    play(first)
    first.run(END)
    first.daemon.close()
    second = rig(clock=ManualClock(wall_s=wall_s), boot=Boot("two", trust), drawn=7)
    play(second)
    # Nine minutes on while round 3 runs.
    second.at(7.1, lambda: second.clock.set_wall_s(second.clock.wall_s() + 540))
    second.run(END)
    assert second.daemon.shown.phase in (Phase.LOBBY, Phase.ATTRACT, Phase.MATCH_OVER)
    told = results(second)
    assert [each["t"]["trust"] for each in told] == ["ntp", trust]
    # Which seconds it played is the wall clock's word; how long it played is not.
    length = {each["t"]["end_ms"] - each["t"]["start_ms"] for each in told}
    assert len(length) == 1
    second.daemon.close()
    from heek.journal import open_journal
    from heek.ki.record import record_hash

    with open_journal(tmp_path / "state") as journal:
        one, two = journal.unsent(10, 1 << 20)
        assert one.cbor is not None
        assert two.cbor is not None
        assert decode_record(two.cbor).prev == record_hash(one.cbor)


@pytest.mark.fault("F040")
@pytest.mark.parametrize("forward", [True, False], ids=["an hour is missing", "an hour comes twice"])
def test_a_match_across_the_change_of_summer_time(
    rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch, forward: bool
) -> None:
    """F040: at 03:00 in Berlin the hour jumps; the match has its true length and its UTC."""
    # 2025-03-30T00:59:55Z and 2025-10-26T00:59:55Z: five seconds before the change.
    wall_s = 1_743_296_395.0 if forward else 1_761_440_395.0
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        before, after = time.localtime(wall_s), time.localtime(wall_s + 10)
        assert (before.tm_isdst, after.tm_isdst) == ((0, 1) if forward else (1, 0))
        table = rig(clock=ManualClock(wall_s=wall_s))
        play(table)
        table.run(END)
        (told,) = [each["t"] for each in results(table)]
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
    won, started = table.told("match_won")[0]["at"], table.told("match_started")[0]["at"]
    assert told["wall_s"] == int(wall_s + won)
    assert told["end_ms"] - told["start_ms"] == round(1000 * (won - started))


@pytest.mark.fault("F040")
@pytest.mark.parametrize("forward", [True, False], ids=["an hour is missing", "an hour comes twice"])
def test_what_is_done_once_a_day_knows_no_zone(
    rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch, forward: bool
) -> None:
    """F040: over the night of the change, and with another zone set meanwhile, it is done every 24 hours."""
    # Noon in Berlin of the day before; the doubtful hours come in the first night.
    begin = 1_743_246_000.0 if forward else 1_761_386_400.0
    asked: list[float] = []

    class Checks(InlineExecutor):
        def submit(self, *arguments: Any, **named: Any) -> Any:
            asked.append(table.clock.now() / SECOND)
            return super().submit(*arguments, **named)

    def another_zone() -> None:
        monkeypatch.setenv("TZ", "Pacific/Kiritimati")
        time.tzset()

    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        # The heart beats slowly, so that days of it cost little.
        table = rig(clock=ManualClock(wall_s=begin), check=Checks(), table__gap_s=60)
        table.at(30 * HOUR, another_zone)
        table.run(80 * HOUR)
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
    assert len(asked) == 4
    assert all(24 * HOUR <= after - before < 24.2 * HOUR for before, after in pairwise(asked))
    assert results(table) == []


@pytest.mark.fault("F043")
def test_a_suspended_process_with_a_step_of_the_clock(rig: Callable[..., Rig]) -> None:
    """F043: stopped for a minute in a round, the wall clock an hour on: the round is broken off."""
    table = rig()
    table.match()
    table.press(1, 3.0, "pen")
    table.stall(3.5, 40.0, lambda: table.clock.set_wall_s(table.clock.wall_s() + HOUR))
    table.run(45.0)
    assert [line["reason"] for line in table.told("round_void")] == ["gap"]
    assert table.daemon.shown.until is None or table.daemon.shown.until > table.daemon.now
    assert table.told("round_revealed") == []
