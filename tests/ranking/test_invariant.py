"""What a record moves, and which records break the invariant of their rules' version."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.errors import RecordError
from heek.games.ranking_points import RULES_VERSIONS
from heek.ki.record import Record, RecordSeat
from heek.kinds import Seat
from heek.ranking.invariant import Moves, Stake, moves
from tests.ranking.records import ANN, BEN, CLEO, DAN, EVE, PAGE, PEN, FakeTable

PLAYERS = (ANN, BEN, CLEO, DAN, EVE)


def with_seat(record: Record, place: int, **changes: Any) -> Record:
    seats = list(record.seats)
    seats[place] = replace(seats[place], **changes)
    return replace(record, seats=tuple(seats))


def test_the_winner_receives_what_the_others_staked() -> None:
    """The stakes of the losers go to the winner, a guest's nothing goes nowhere."""
    record = FakeTable().record({ANN: 2, None: 0, BEN: 3, CLEO: 1}, BEN)
    assert moves(record) == Moves(BEN, (Stake(ANN, 2), Stake(CLEO, 1)))


def test_a_guest_who_wins_moves_nothing() -> None:
    """The stakes of a match that a guest won stay with their players."""
    assert moves(FakeTable().record({None: 0, BEN: 3})) == Moves(None, ())


def test_an_unrated_match_moves_nothing() -> None:
    """A match with a bot moves nothing, whoever won."""
    record = FakeTable().record({ANN: 0, None: 0}, ANN, rated=False)
    assert moves(with_seat(record, 1, kind="bot")) == Moves(None, ())


def test_the_last_one_at_a_seat_is_its_winner() -> None:
    """Of a seat that was left and joined again the one who left loses, and the one who joined wins."""
    record = FakeTable().record({ANN: 1, BEN: 1, CLEO: 2}, CLEO)
    rounds = ({Seat(1): PEN, Seat(2): PAGE},)
    record = replace(with_seat(record, 2, seat=Seat(1)), winner=Seat(1), rounds=rounds)
    assert moves(record) == Moves(CLEO, (Stake(ANN, 1), Stake(BEN, 1)))


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda record: replace(record, rules="heek-2"), "rules: heek-2 is not known"),
        (lambda record: with_seat(record, 0, delta=4), r"seats\[0\].delta: is 4; by heek-1 it would be 3"),
        (lambda record: with_seat(record, 1, delta=0), r"seats\[1\].delta: is 0; by heek-1 it would be -2"),
        (lambda record: with_seat(record, 1, stake=1), r"seats\[0\].delta: is 3; by heek-1 it would be 2"),
        (lambda record: with_seat(record, 3, stake=1), r"seats\[3\].stake: a guest stakes nothing"),
        (lambda record: with_seat(record, 3, delta=1), r"seats\[3\].delta: is 1"),
        (lambda record: replace(record, winner=Seat(2)), r"seats\[0\].delta: is 3; by heek-1 it would be -1"),
        (lambda record: with_seat(record, 3, kind="bot"), "rated: a match with a bot is not"),
        (lambda record: replace(record, rated=False), r"seats\[0\].delta: is 3; by heek-1 it would be 0"),
        (lambda record: replace(record, rounds=()), "rounds: there is none"),
        (lambda record: replace(record, rounds=({Seat(5): None},)), "seat 5 throws and does not play"),
        (
            lambda record: replace(record, rules=RULES_VERSIONS["award"]),
            r"seats\[1\].delta: is -2; by heek-1-award it would be 0",
        ),
    ],
)
def test_a_broken_record_is_refused(broken: Any, said: str) -> None:
    """Each way to break the invariant is found, and named."""
    record = FakeTable().record({ANN: 1, BEN: 2, CLEO: 1, None: 0}, ANN)
    moves(record)
    with pytest.raises(RecordError, match=said):
        moves(broken(record))


def test_under_award_nobody_loses() -> None:
    """An award's winner gains the same, and a loser who pays breaks its invariant."""
    record = FakeTable().record({ANN: 1, BEN: 2}, ANN, economy="award")
    assert [each.delta for each in record.seats] == [2, 0]
    assert moves(record) == Moves(ANN, (Stake(BEN, 2),))
    with pytest.raises(RecordError, match=r"seats\[1\].delta"):
        moves(with_seat(record, 1, delta=-2))


@given(
    stakes=st.lists(st.integers(0, 9), min_size=2, max_size=5),
    guests=st.sets(st.integers(0, 4)),
    winner=st.integers(1, 5),
    place=st.integers(0, 4),
    off=st.integers(-3, 3).filter(bool),
)
def test_one_wrong_delta_is_always_found(
    stakes: list[int], guests: set[int], winner: int, place: int, off: int
) -> None:
    """Any right record passes and moves as much as its losers staked; with one delta changed it does not."""
    pairs = [(None, 0) if seat in guests else (PLAYERS[seat], stake) for seat, stake in enumerate(stakes)]
    record = FakeTable().record(pairs, min(winner, len(pairs)))
    moved = moves(record)
    assert sum(each.delta for each in record.seats) == 0
    receiver = record.seats[record.winner - 1]
    assert sum(each.amount for each in moved.lost) == receiver.delta
    place %= len(pairs)
    with pytest.raises(RecordError):
        moves(with_seat(record, place, delta=record.seats[place].delta + off))


def test_a_bot_is_never_paid() -> None:
    """A bot's stake is refused even in an unrated match."""
    record = FakeTable().record({ANN: 0, None: 0}, ANN, rated=False)
    seats = (record.seats[0], RecordSeat(Seat(2), "bot", None, None, 1, 0))
    with pytest.raises(RecordError, match="a bot stakes nothing"):
        moves(replace(record, seats=seats))
