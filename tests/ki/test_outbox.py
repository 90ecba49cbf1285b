"""When the table asks the KI: at once when all is well, ever more rarely when not, and never not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.clock import SECOND
from heek.ki.outbox import CHECK, LONGEST_FOR_A_STRANGER, LONGEST_PAUSE, Outbox


def outbox(chance: float = 1.0, waiting: int = 0) -> Outbox:
    return Outbox(lambda: chance, now=0, waiting=waiting)


def test_it_asks_at_the_start_and_looks_in_now_and_then() -> None:
    """With nothing to report it asks at once, then every half minute, so that the page can say how it is."""
    box = outbox()
    assert box.due() == 0
    box.answered(5 * SECOND, 0)
    assert box.due() == 5 * SECOND + CHECK
    assert not box.failing


def test_a_result_goes_at_once_when_all_is_well() -> None:
    """A match ends, and the KI hears of it now; with more left it goes on without a pause."""
    box = outbox()
    box.answered(0, 0)
    box.result_waits(3 * SECOND)
    assert (box.due(), box.waiting) == (3 * SECOND, 1)
    box.answered(4 * SECOND, 7)
    assert (box.due(), box.waiting) == (4 * SECOND, 7)


@pytest.mark.fault("F076")
def test_pauses_double_up_to_a_ceiling_and_a_success_ends_them() -> None:
    """1, 2, 4 … 120 s at the most, half of it at the least; then from the beginning."""
    for chance, share in ((1.0, 1.0), (0.0, 0.5)):
        box = outbox(chance, waiting=1)
        pauses = []
        for _ in range(9):
            before = box.due()
            box.failed(before, "gone")
            pauses.append((box.due() - before) / SECOND)
        assert pauses == [each * share for each in (1, 2, 4, 8, 16, 32, 64, 120, 120)]
        box.answered(box.due(), 0)
        before = box.due()
        box.failed(before, "gone")
        assert box.due() - before == share * SECOND


def test_results_do_not_shorten_a_pause_but_a_link_that_came_up_does() -> None:
    """While the KI is away each match adds to the backlog and not to the traffic."""
    box = outbox()
    box.failed(0, "gone", None)
    due = box.due()
    box.result_waits(1)
    assert (box.due(), box.waiting, box.reason) == (due, 1, "gone")
    box.link_came_up(2)
    assert box.due() == 2


def test_what_the_other_end_asks_for_is_obeyed_within_reason() -> None:
    """`retry_s` is a lower bound, up to an hour of the KI, to 5 minutes of a portal; nonsense is none."""
    for retry_s, least, by_stranger in (
        (90, 90, 90),
        (900, 900, 300),
        (1e9, 3600, 300),
        (-5, 0, 0),
        (0, 0, 0),
    ):
        box = outbox()
        box.failed(0, "busy", retry_s, by_ki=True)
        assert box.due() / SECOND == max(1, least)
        box = outbox()
        box.failed(0, "not the KI", retry_s)
        assert box.due() / SECOND == max(1, by_stranger)


@given(
    st.lists(st.sampled_from(["answered", "failed", "result", "up"]), max_size=60),
    st.floats(0, 1),
    st.floats(0, 1e12),
)
def test_there_is_always_a_next_time(steps: list[str], chance: float, retry_s: float) -> None:
    """Whatever happens in whatever order, it asks again: in 5 minutes if told so, else in two minutes."""
    box = Outbox(lambda: chance, 0, 0)
    now = 0
    for step in steps:
        now += SECOND
        if step == "answered":
            box.answered(now, 0)
        elif step == "failed":
            box.failed(now, "gone", retry_s)
        elif step == "result":
            box.result_waits(now)
        else:
            box.link_came_up(now)
        assert box.due() - now <= max(LONGEST_PAUSE, LONGEST_FOR_A_STRANGER if retry_s else 0)
