"""The virtual loop: asyncio as it is, on a clock that never waits."""

from __future__ import annotations

import asyncio

import pytest

from heek.clock import MILLISECOND, SECOND, ManualClock
from heek.simulator.virtual_loop import StalledWorldError, VirtualLoop


def _run(loop: VirtualLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def test_timers_fire_in_the_order_of_their_instants() -> None:
    """Timers set in any order fire in the order of time, each at its instant to the nanosecond."""
    clock = ManualClock()
    loop = VirtualLoop(clock)
    fired: list[tuple[str, int]] = []
    for name, at in (("c", 3.0), ("a", 0.001), ("b", 2.999_999_999)):
        loop.call_at(at, lambda name=name: fired.append((name, clock.now())))
    loop.call_at(4, loop.stop)
    _run(loop)
    assert fired == [("a", MILLISECOND), ("b", 3 * SECOND - 1), ("c", 3 * SECOND)]
    assert clock.now() == 4 * SECOND


def test_a_timer_set_at_one_instant_for_the_same_one_fires_without_time_passing() -> None:
    """A timer of no length fires at this very instant, after what is ready already."""
    clock = ManualClock(now=7)
    loop = VirtualLoop(clock)
    order: list[tuple[str, int]] = []

    def first() -> None:
        loop.call_later(0, lambda: order.append(("timer", clock.now())))
        loop.call_soon(lambda: order.append(("soon", clock.now())))
        loop.call_later(1, loop.stop)

    loop.call_soon(first)
    _run(loop)
    assert order == [("soon", 7), ("timer", 7)]


def test_what_is_ready_goes_before_time() -> None:
    """As long as callbacks call each other soon, the clock stands; nobody is starved, all take turns."""
    clock = ManualClock()
    loop = VirtualLoop(clock)
    turns: list[str] = []

    def turn(name: str, left: int) -> None:
        turns.append(name)
        if left:
            loop.call_soon(turn, name, left - 1)

    loop.call_soon(turn, "a", 2)
    loop.call_soon_threadsafe(turn, "b", 2)
    loop.call_later(1, turns.append, "later")
    loop.call_later(2, loop.stop)
    _run(loop)
    assert turns == ["a", "b", "a", "b", "a", "b", "later"]


def test_a_cancelled_timer_does_not_fire() -> None:
    """A timer that was cancelled moves nothing, not even the clock beyond what comes next."""
    clock = ManualClock()
    loop = VirtualLoop(clock)
    fired: list[str] = []
    handle = loop.call_later(1, fired.append, "no")
    handle.cancel()
    loop.call_later(2, loop.stop)
    _run(loop)
    assert fired == []
    assert clock.now() == 2 * SECOND


def test_coroutines_sleep_in_virtual_time() -> None:
    """asyncio's own sleep and timeouts work, and an hour of them passes at once."""
    clock = ManualClock()
    loop = VirtualLoop(clock)

    async def hour() -> str:
        await asyncio.sleep(3599)
        try:
            await asyncio.wait_for(asyncio.Event().wait(), timeout=1)
        except TimeoutError:
            return "timed out"
        return "came"

    try:
        assert loop.run_until_complete(hour()) == "timed out"
    finally:
        loop.close()
    assert clock.now() == 3600 * SECOND


def test_a_world_in_which_nothing_is_due_is_an_error() -> None:
    """Where a real loop would wait for ever the virtual one says so."""
    loop = VirtualLoop(ManualClock())
    loop.call_soon(lambda: None)
    with pytest.raises(StalledWorldError, match="nothing is due"):
        _run(loop)


def test_a_clock_that_was_moved_on_makes_timers_late() -> None:
    """A callback that moves the clock (a stall) delays what was due meanwhile, and loses none of it."""
    clock = ManualClock()
    loop = VirtualLoop(clock)
    fired: list[tuple[str, int]] = []
    loop.call_at(1, lambda: clock.advance_to(3 * SECOND))
    loop.call_at(2, lambda: fired.append(("late", clock.now())))
    loop.call_at(4, lambda: fired.append(("in time", clock.now())))
    loop.call_at(5, loop.stop)
    _run(loop)
    assert fired == [("late", 3 * SECOND), ("in time", 4 * SECOND)]


def test_the_pace_is_told_what_passes() -> None:
    """`pace` gets the seconds before they pass, and only where some do."""
    clock = ManualClock()
    passed: list[tuple[float, int]] = []
    loop = VirtualLoop(clock, lambda seconds: passed.append((round(seconds, 6), clock.now())))
    loop.call_at(0.5, lambda: loop.call_soon(lambda: None))
    loop.call_at(2, loop.stop)
    _run(loop)
    assert passed == [(0.5, 0), (1.5, SECOND // 2)]


def test_time_always_moves() -> None:
    """A timer nearer than a float can tell does not make the loop spin at one instant for ever."""
    clock = ManualClock(now=100 * 24 * 3600 * SECOND)
    loop = VirtualLoop(clock)
    loop.call_at(loop.time() + 1e-9, loop.stop)
    _run(loop)
    assert clock.now() >= 100 * 24 * 3600 * SECOND
