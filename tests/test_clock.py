"""Instants are whole nanoseconds, and each clock keeps to what it promises."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.clock import SECOND, ManualClock, RealClock, StartedClock, nanoseconds, seconds_text


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(Decimal("0.3"), 300_000_000), (0.3, 300_000_000), (1, SECOND), (Decimal("0.0000000004"), 0)],
)
def test_seconds_become_exact_nanoseconds(seconds: float | Decimal, expected: int) -> None:
    """0.3 s are 300,000,000 ns, whichever way they are written."""
    assert nanoseconds(seconds) == expected


@given(st.integers(0, 10**15))
def test_decimals_lose_nothing(count: int) -> None:
    """A Decimal of nanoseconds comes back to the last one."""
    assert nanoseconds(Decimal(count) / SECOND) == count


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (0, "0.000000"),
        (999, "0.000000"),
        (1_999, "0.000001"),
        (1_999_999_999, "1.999999"),
        (12 * SECOND + 345_678_901, "12.345678"),
        (-1_500_000_000, "-1.500000"),
    ],
)
def test_text_is_cut_never_rounded_up(instant: int, text: str) -> None:
    """Six decimals, and never an instant that has not come yet."""
    assert seconds_text(instant) == text


@given(st.integers(0, 10**18), st.integers(0, 10**18))
def test_text_keeps_the_order(one: int, other: int) -> None:
    """A later instant is never written as an earlier one."""
    if one <= other:
        assert Decimal(seconds_text(one)) <= Decimal(seconds_text(other))
    assert 0 <= one - int(Decimal(seconds_text(one)) * SECOND) < 1000


def test_the_real_clock_counts_from_its_making(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instant 0 is when it was made, on the clock by which the kernel stamps edges."""
    ticks = iter([5_000, 7_500])
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(ticks))
    clock = RealClock()
    assert clock.origin_ns == 5_000
    assert clock.now() == 2_500


def test_the_wall_clock_is_a_label_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wall clock that jumps by years moves no instant."""
    monkeypatch.setattr(time, "monotonic_ns", lambda: 42)
    clock = RealClock()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert (clock.now(), clock.wall_s()) == (0, 0.0)
    monkeypatch.setattr(time, "time", lambda: 2e9)
    assert (clock.now(), clock.wall_s()) == (0, 2e9)


def test_the_manual_clock_stands_until_it_is_moved() -> None:
    """It moves forward alone, its wall clock with it, and that may jump by itself."""
    clock = ManualClock(now=SECOND, wall_s=1000.0)
    assert (clock.now(), clock.wall_s(), clock.origin_ns) == (SECOND, 1000.0, 0)
    clock.advance_to(3 * SECOND)
    assert (clock.now(), clock.wall_s()) == (3 * SECOND, 1002.0)
    clock.set_wall_s(5.0)
    clock.advance_to(4 * SECOND)
    assert (clock.now(), clock.wall_s()) == (4 * SECOND, 6.0)


def test_the_manual_clock_does_not_go_back() -> None:
    """To move it into the past is an error that names both instants, and moves nothing."""
    clock = ManualClock(now=SECOND)
    with pytest.raises(ValueError, match="cannot go back from 1000000000 to 999999999"):
        clock.advance_to(SECOND - 1)
    assert clock.now() == SECOND


def test_a_started_clock_counts_anew() -> None:
    """A daemon that starts again has an instant 0 of its own, and the world's wall clock."""
    world = ManualClock(now=7 * SECOND, wall_s=1000.0)
    clock = StartedClock(world)
    world.advance_to(9 * SECOND)
    assert (clock.now(), clock.origin_ns, clock.wall_s()) == (2 * SECOND, 7 * SECOND, 1002.0)
