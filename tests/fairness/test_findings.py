"""What a report of fairness says in words."""

from __future__ import annotations

from typing import Any

import pytest

from heek.clock import MILLISECOND
from heek.fairness.figures import Fairness
from heek.fairness.findings import lines, shortcomings
from heek.kinds import Kind


def measured(**worse: int) -> dict[str, Any]:
    """A report of a table where all is well, but for what is named."""
    fairness = Fairness("kernel")
    for press in range(40):
        for seat, wait in ((1, 3), (2, worse.get("slow_ms", 3))):
            fairness.closed(press * 1000 * MILLISECOND, seat, Kind.PEN)
            fairness.judged(press * 1000 * MILLISECOND, (press * 1000 + wait) * MILLISECOND)
        fairness.lag.add(worse.get("lag_ms", 1) * MILLISECOND)
        fairness.reveals.add(worse.get("reveal_ms", 0) * MILLISECOND)
    fairness.late_deliveries = worse.get("late", 0)
    rejected = {(1, Kind.PEN, "bounce"): 9, (2, Kind.PEN, "repeated"): worse.get("dropped", 0)}
    return fairness.report((1, 2), rejected)


def test_a_fair_table_has_no_shortcomings() -> None:
    """Presses that wait alike, a loop that keeps up, LEDs at once: nothing to say."""
    assert shortcomings(measured(), 30) == []
    assert shortcomings(Fairness("kernel").report((1, 2)), 30) == []


@pytest.mark.parametrize(
    ("worse", "words"),
    [
        ({"late": 1}, "1 press came after the round had been compared"),
        ({"late": 3}, "3 presses came after"),
        ({"dropped": 2}, "2 edges never came"),
        ({"lag_ms": 31}, "the loop came 31 ms late once, more than the 30 ms"),
        ({"slow_ms": 11}, "seat 2's pen waits 8.0 ms longer for its verdict than seat 1's pen"),
        ({"reveal_ms": 45}, "the last LED follows the first after 45 ms"),
    ],
)
def test_each_shortcoming_is_one_line(worse: dict[str, int], words: str) -> None:
    """What is wrong is named with its figure and with what to do, and nothing else is."""
    (line,) = shortcomings(measured(**worse), 30)
    assert words in line


def test_just_within_the_bounds_is_fair() -> None:
    """The bounds themselves are no shortcoming."""
    assert shortcomings(measured(lag_ms=30, slow_ms=7, reveal_ms=18), 30) == []


def test_the_terminal_shows_it_within_eighty_columns() -> None:
    """Buttons that were pressed have a row; the columns stand in line."""
    shown = lines(measured(late=1, slow_ms=9))
    assert shown[0] == "80 presses, stamped by the kernel as the contact closed"
    assert shown[1] == "1 late delivery, no dropped edges"
    assert [line for line in shown if line.startswith("seat")] == [
        "seat 1 pen, verdict          40   3.00 ms   3.00 ms    3.00 ms",
        "seat 2 pen, verdict          40   9.00 ms   9.00 ms    9.00 ms",
    ]
    assert max(map(len, shown)) <= 80
    assert len({len(line) for line in shown[3:]}) == 1
