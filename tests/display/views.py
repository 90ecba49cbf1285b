"""Any view that a table could have, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from heek.clock import MILLISECOND, SECOND
from heek.display.ki_mark import KiMark, Reach
from heek.kinds import KINDS, SEATS, Seat
from heek.session.phases import Phase
from heek.session.view import Collection, SeatState, SeatView, View

SINCE = 1000 * SECOND

spans = st.one_of(
    st.integers(0, 240).map(lambda halves: halves * SECOND // 2),
    st.integers(0, 60 * SECOND),
    st.integers(0, 9000).map(lambda ms: ms * MILLISECOND),
)
"""Spans of up to two minutes: on the beat of blinks and digits, and beside it."""

collections = st.builds(Collection, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
stuck = st.sets(st.sampled_from(KINDS)).map(lambda some: tuple(kind for kind in KINDS if kind in some))


def rows(seat: Seat) -> st.SearchStrategy[SeatView]:
    """Any state of one seat."""
    return st.builds(
        SeatView,
        st.just(seat),
        st.sampled_from(SeatState),
        name=st.none() | st.text(max_size=24),
        collection=st.none() | collections,
        in_round=st.booleans(),
        thrown=st.booleans(),
        bot=st.booleans(),
        throw=st.none() | st.sampled_from(KINDS),
        won_round=st.booleans(),
        leaves_at=st.none() | st.none() | spans.map(lambda span: SINCE + span),
        stuck=st.just(()) | stuck,
        faults=st.just(())
        | st.tuples(st.tuples(st.sampled_from(KINDS), st.sampled_from(("chatter", "flood")))),
    )


views = st.builds(
    View,
    phase=st.sampled_from(Phase),
    since=st.just(SINCE),
    until=st.none() | spans.map(lambda span: SINCE + span),
    seats=st.tuples(*(rows(seat) for seat in SEATS)),
    target=st.integers(1, 9),
    round=st.none() | st.integers(1, 999),
    sudden_death=st.booleans(),
    winner=st.none() | st.sampled_from(SEATS),
    by=st.none() | st.sampled_from(("three", "total", "sudden_death", "walkover")),
    void=st.none() | st.sampled_from(("idle", "empty", "operator", "power")),
    rules_since=st.none() | spans.map(lambda span: SINCE + span),
    bots_allowed=st.booleans(),
    bots_at=st.none() | spans.map(lambda span: SINCE + span),
    not_saving=st.booleans(),
)
instants = spans.map(lambda span: SINCE + span)

ki_marks = st.none() | st.builds(
    KiMark,
    st.sampled_from(Reach),
    st.sampled_from((0, 1, 12, 99, 100, 1234)),
    st.none() | st.just("14:02"),
    claim=st.none() | st.none() | st.text("BCDFGHJKLMNPQRSTVWXZ", min_size=8, max_size=8),
    trouble=st.booleans(),
)
"""How it may stand with the KI; None: the table has no link."""
