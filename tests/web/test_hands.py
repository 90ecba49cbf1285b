"""Hands: a contact is closed while any hand holds it, and for no longer, whatever gets lost on the way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.clock import SECOND
from heek.errors import PageRefusal
from heek.kinds import Kind
from heek.web.hands import LEASE, MOST_OF_OWNER, MOST_OWNERS, Hands

PEN_1 = (1, Kind.PEN)
PAGE_1 = (1, Kind.PAGE)


def test_a_press_and_its_release() -> None:
    """Closing closes once and opening opens once."""
    hands = Hands()
    assert hands.tell("a", "h", PEN_1, 1, closed=True, now=0) == [(1, Kind.PEN, True)]
    assert hands.holds("a", "h", PEN_1)
    assert hands.tell("a", "h", PEN_1, 2, closed=False, now=10) == [(1, Kind.PEN, False)]
    assert hands.due() is None


def test_a_contact_stays_closed_while_any_hand_holds_it() -> None:
    """Two fingers on one button are one closed contact, until the last of them is lifted."""
    hands = Hands()
    hands.tell("a", "h", PEN_1, 1, closed=True, now=0)
    assert hands.tell("b", "h", PEN_1, 1, closed=True, now=1) == []
    assert hands.tell("a", "h", PEN_1, 2, closed=False, now=2) == []
    assert hands.tell("b", "h", PEN_1, 2, closed=False, now=3) == [(1, Kind.PEN, False)]


def test_requests_that_overtake_each_other() -> None:
    """A press that arrives after its own release changes nothing."""
    hands = Hands()
    assert hands.tell("a", "h", PEN_1, 8, closed=False, now=0) == []
    assert hands.tell("a", "h", PEN_1, 7, closed=True, now=1) == []
    assert not hands.holds("a", "h", PEN_1)


def test_numbers_are_counted_for_each_contact() -> None:
    """Two buttons pressed together count both, in whatever order their requests arrive."""
    hands = Hands()
    assert hands.tell("a", "h", PAGE_1, 2, closed=True, now=0) == [(1, Kind.PAGE, True)]
    assert hands.tell("a", "h", PEN_1, 1, closed=True, now=0) == [(1, Kind.PEN, True)]


def test_a_hand_that_falls_silent_lets_go() -> None:
    """A closed laptop opens its contact after three seconds to the nanosecond; a word keeps it closed."""
    hands = Hands()
    hands.tell("a", "h", PEN_1, 1, closed=True, now=0)
    assert hands.tell("a", "h", PEN_1, 1, closed=True, now=2 * SECOND) == []
    assert hands.due() == 2 * SECOND + LEASE
    assert hands.lapse(2 * SECOND + LEASE - 1) == []
    assert hands.lapse(2 * SECOND + LEASE) == [(1, Kind.PEN, False)]


def test_a_laptop_that_wakes_presses_nothing() -> None:
    """A lease that has run out is not taken up by the same number, however late; only a new press closes."""
    hands = Hands()
    hands.tell("a", "h", PEN_1, 1, closed=True, now=0)
    assert hands.tell("a", "h", PEN_1, 1, closed=True, now=LEASE) == [(1, Kind.PEN, False)]
    assert hands.tell("a", "h", PEN_1, 1, closed=True, now=3600 * SECOND) == []
    assert hands.tell("a", "h", PEN_1, 2, closed=True, now=3601 * SECOND) == [(1, Kind.PEN, True)]


def test_an_owner_that_loses_its_seat_holds_nothing() -> None:
    """What an owner held opens at once, and none of its old requests closes it again."""
    hands = Hands()
    hands.tell("a", "h", PEN_1, 5, closed=True, now=0)
    assert hands.let_go("a") == [(1, Kind.PEN, False)]
    assert hands.tell("a", "h", PEN_1, 5, closed=True, now=1) == []


def test_all_hands_are_dropped_at_the_end() -> None:
    """At the stop every contact that a browser holds is opened, once."""
    hands = Hands()
    hands.tell("a", "h", PEN_1, 1, closed=True, now=0)
    hands.tell("b", "h", PEN_1, 1, closed=True, now=0)
    hands.tell("b", "h", PAGE_1, 1, closed=True, now=0)
    assert sorted(hands.drop_all(), key=str) == [(1, Kind.PAGE, False), (1, Kind.PEN, False)]
    assert hands.drop_all() == []


def test_the_hands_of_one_owner_are_bounded() -> None:
    """Old hands are forgotten for new ones, those that are down are not; too many of those are refused."""
    hands = Hands()
    for number in range(3 * MOST_OF_OWNER):
        hands.tell("a", f"old{number}", PEN_1, 1, closed=False, now=0)
    for number in range(MOST_OF_OWNER):
        hands.tell("a", f"down{number}", PEN_1, 1, closed=True, now=0)
    with pytest.raises(PageRefusal, match="too many fingers"):
        hands.tell("a", "one more", PEN_1, 1, closed=True, now=0)
    assert hands.tell("b", "h", PAGE_1, 1, closed=True, now=0) == [(1, Kind.PAGE, True)]


def test_the_owners_are_bounded() -> None:
    """The owner that was quiet for longest is forgotten first, and what it held opens."""
    hands = Hands()
    hands.tell("first", "h", PEN_1, 1, closed=True, now=0)
    changes = []
    for number in range(MOST_OWNERS):
        changes += hands.tell(f"owner{number}", "h", PAGE_1, 1, closed=False, now=1)
    assert changes == [(1, Kind.PEN, False)]


words = st.tuples(
    st.sampled_from("ab"),
    st.sampled_from("xy"),
    st.sampled_from([PEN_1, PAGE_1]),
    st.integers(0, 6),
    st.booleans(),
    st.integers(0, 2 * SECOND),
)


@given(st.lists(words, max_size=40))
def test_contacts_are_what_hands_hold(said: list[tuple[str, str, tuple[int, Kind], int, bool, int]]) -> None:
    """Changes alternate for each contact, agree with who holds it, and all is open once all fell silent."""
    hands = Hands()
    closed: set[tuple[int, Kind]] = set()

    def follow(changes: list[tuple[int, Kind, bool]]) -> None:
        for seat, kind, now_closed in changes:
            assert ((seat, kind) in closed) is not now_closed
            (closed.add if now_closed else closed.discard)((seat, kind))

    now = 0
    for owner, hand, contact, n, close, passed in said:
        now += passed
        follow(hands.tell(owner, hand, contact, n, closed=close, now=now))
        for each in (PEN_1, PAGE_1):
            assert (each in closed) is any(hands.holds(who, h, each) for who in "ab" for h in "xy")
        assert (hands.due() is not None) is bool(closed)
    follow(hands.lapse(now + LEASE))
    assert closed == set()
    assert hands.due() is None
