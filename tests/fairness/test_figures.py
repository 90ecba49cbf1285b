"""The figures of fairness: distributions of constant size, and what they are made of."""

from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from heek.clock import MILLISECOND
from heek.fairness.figures import Fairness, Spread
from heek.kinds import Kind

DURATIONS = st.integers(0, 3_600_000_000_000)


@given(st.lists(DURATIONS, min_size=1), st.floats(0.1, 100))
def test_a_percentile_is_never_below_the_true_one_and_hardly_above(
    durations: list[int], percent: float
) -> None:
    """Held against the sorted list: a sixteenth and a microsecond above it at most."""
    spread = Spread()
    for duration in durations:
        spread.add(duration)
    true = sorted(durations)[max(math.ceil(len(durations) * percent / 100 - 1e-9), 1) - 1]
    told = spread.percentile(percent)
    assert true <= told <= true + true / 16 + 1000
    assert told <= spread.longest == max(durations)


@given(st.lists(st.integers(-1_000_000, 10**15), max_size=300))
def test_it_stays_small(durations: list[int]) -> None:
    """A month of presses needs no more room than a minute's: the parts are few, whatever comes."""
    spread = Spread()
    for duration in durations:
        spread.add(duration)
    assert spread.count == len(durations)
    assert len(spread._parts) <= 32 + 16 * 45


def test_nothing_counted_is_nothing() -> None:
    """A table that nobody has touched has figures too, all of them zero."""
    assert Spread().percentile(99) == 0
    report = Fairness("kernel").report((1, 2))
    assert [row["button"] for row in report["buttons"]] == ["pen", "page", "beetle"] * 2  # type: ignore[attr-defined]
    assert report["late_deliveries"] == report["dropped"] == 0
    json.dumps(report)


def test_a_press_waits_until_its_turn_judges_it() -> None:
    """The verdict's time is that of the turn which reached the press, not of the one that took it in."""
    fairness = Fairness("kernel")
    fairness.closed(10 * MILLISECOND, 3, Kind.PAGE)
    fairness.closed(12 * MILLISECOND, 4, Kind.PEN)
    fairness.judged(9 * MILLISECOND, 12 * MILLISECOND)
    assert not fairness.verdicts
    fairness.judged(11 * MILLISECOND, 14 * MILLISECOND)
    assert fairness.verdicts[3, Kind.PAGE].longest == 4 * MILLISECOND
    fairness.judged(20 * MILLISECOND, 23 * MILLISECOND)
    fairness.judged(30 * MILLISECOND, 33 * MILLISECOND)
    assert fairness.verdicts[4, Kind.PEN].longest == 11 * MILLISECOND
    assert [spread.count for spread in fairness.verdicts.values()] == [1, 1]


def test_a_stamp_ahead_of_our_clock_is_no_time_at_all() -> None:
    """The kernel's clock and ours are one, but are not read at one instant."""
    spread = Spread()
    spread.add(-5)
    assert (spread.count, spread.longest, spread.percentile(50)) == (1, 0, 0)
