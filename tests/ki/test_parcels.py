"""What goes into a request: less after a failure, a bad record alone and behind the others, never none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heek.clock import SECOND
from heek.ki.parcels import FIRST_PAUSE, LONGEST_PAUSE, MOST_PASSED, Parcels


def test_a_request_that_fails_is_halved_and_one_that_does_not_doubles() -> None:
    """From a hundred to one, and back."""
    parcels = Parcels(100)
    sizes = []
    for _ in range(8):
        sizes.append(parcels.size)
        parcels.failed([str(number) for number in range(parcels.size)], 0, refused=False)
    assert sizes == [100, 50, 25, 12, 6, 3, 1, 1]
    for _ in range(8):
        parcels.taken(["0"])
    assert parcels.size == 100


def test_a_record_that_the_ki_refuses_alone_waits_ever_longer_behind_the_others() -> None:
    """5 s, 10 s … ten minutes; it is tried when its time has come, alone, and never given up."""
    parcels, now, pauses = Parcels(100), 0, []
    for _ in range(9):
        parcels.failed(["bad"], now, refused=True)
        due = parcels.due()
        assert due is not None
        assert (list(parcels.passed), parcels.due_now(due - 1), parcels.due_now(due)) == (
            ["bad"],
            [],
            ["bad"],
        )
        pauses.append((due - now) // SECOND)
        now = due
    assert pauses == [5, 10, 20, 40, 80, 160, 320, 600, 600]
    assert (pauses[0], pauses[-1]) == (FIRST_PAUSE // SECOND, LONGEST_PAUSE // SECOND)
    parcels.taken(["bad"])
    assert (parcels.due(), list(parcels.passed)) == (None, [])


def test_without_an_answer_the_link_is_asked_before_a_record_is_blamed() -> None:
    """The link may be down: only who gets no answer while something else does is passed over."""
    parcels = Parcels(100)
    for _ in range(5):
        parcels.failed(["first"], 0, refused=False)
        assert parcels.probe
        parcels.failed([], 0, refused=False)
        assert (parcels.probe, list(parcels.passed)) == (False, [])
    parcels.failed(["first"], 0, refused=False)
    parcels.answered()
    assert (parcels.probe, parcels.suspects) == (False, True)
    parcels.failed(["first"], 7, refused=False)
    assert (list(parcels.passed), parcels.suspects, parcels.due_now(7)) == (["first"], False, ["first"])


def test_a_record_that_a_ki_falls_over_is_tried_ever_more_rarely() -> None:
    """At once, since an answer may have been lost, then after 2 s … a minute; never given up."""
    parcels, now, pauses = Parcels(100), 0, []
    for _ in range(8):
        parcels.failed(["bad"], now, refused=False)
        parcels.answered()
        parcels.failed(["bad"], now, refused=False)
        due = parcels.due()
        assert due is not None
        assert parcels.due_now(due) == ["bad"]
        assert due == now or parcels.due_now(due - 1) == []
        pauses.append((due - now) // SECOND)
        now = due
    assert pauses == [0, 2, 4, 8, 16, 32, 60, 60]


def test_those_without_an_answer_are_tried_together_and_in_turn() -> None:
    """As many as a request holds; who fails again goes to the end, a refused one goes alone."""
    parcels = Parcels(2)
    for match in ("a", "b", "c"):
        parcels.failed([match], 0, refused=False)
        parcels.answered()
        parcels.failed([match], 0, refused=False)
    assert parcels.due_now(0) == ["a", "b"]
    parcels.failed(["a", "b"], 0, refused=False)
    assert parcels.due_now(0) == ["a"]
    parcels.failed(["a"], 0, refused=True)
    assert parcels.due_now(0) == ["b"]
    parcels.taken(["b", "c"])
    assert parcels.due_now(FIRST_PAUSE) == ["a"]


def test_memory_is_bounded_when_everything_is_refused() -> None:
    """Beyond a thousand there is nothing to learn."""
    parcels = Parcels(100)
    for number in range(MOST_PASSED + 50):
        parcels.failed([str(number)], 0, refused=True)
    assert len(parcels.passed) == MOST_PASSED


@given(
    st.integers(1, 8),
    st.sets(st.integers(0, 7), max_size=3),
    st.sets(st.integers(0, 7), max_size=3),
)
def test_however_many_are_bad_all_others_get_through(count: int, refused: set[int], silent: set[int]) -> None:
    """A KI that refuses some and says nothing to others, whatever is sent along: the rest is soon there."""
    parcels, now = Parcels(100), 0
    waiting = [str(number) for number in range(count)]
    for _ in range(100):
        now += SECOND
        if parcels.probe:
            parcels.answered()
            continue
        batch = [each for each in waiting if each not in parcels.passed][: parcels.size]
        batch = batch or parcels.due_now(now)
        if not batch:
            continue
        numbers = {int(each) for each in batch}
        if numbers & (refused | silent):
            parcels.failed(batch, now, refused=not numbers & silent)
        else:
            parcels.taken(batch)
            waiting = [each for each in waiting if each not in batch]
    assert {int(each) for each in waiting} == {each for each in refused | silent if each < count}
