"""What the rounds of a record come to."""

from __future__ import annotations

from dataclasses import replace

from heek.ki.record import Record
from heek.kinds import Kind, Seat
from heek.ranking.replay import replay
from tests.ranking.records import ANN, BEETLE, BEN, CLEO, PAGE, PEN, FakeTable


def record(*rounds: str, winner: int = 1, by: str = "three") -> Record:
    """Rounds as letters by seat: n pen, a page, b beetle, - no throw, space not in the round."""
    kinds: dict[str, Kind | None] = {"n": PEN, "a": PAGE, "b": BEETLE, "-": None}
    plain = FakeTable().record({ANN: 1, BEN: 1, CLEO: 1}, winner)
    read = tuple(
        {Seat(seat): kinds[each] for seat, each in enumerate(one, 1) if each != " "} for one in rounds
    )
    return replace(plain, rounds=read, by=by)


def test_rounds_are_scored_by_the_ordinary_cycle() -> None:
    """Pens win over pages, several win together, a round of one of each nobody wins."""
    told = replay(record("nan", "nab", "n-a", "naa"))
    assert told.cycle == "pen-page-beetle"
    assert told.winners == (
        frozenset({1, 3}),
        frozenset(),
        frozenset({1}),
        frozenset({1}),
    )
    assert (told.won_with, told.won_count) == (PEN, 3)


def test_the_last_round_shows_the_other_cycle() -> None:
    """A winner by pens over beetles shows that here pens beat beetles."""
    told = replay(record("nbb", "nbb"))
    assert told.cycle == "pen-beetle-page"
    assert told.winners == (frozenset({1}), frozenset({1}))
    assert (told.won_with, told.won_count) == (PEN, 2)


def test_only_the_winning_kind_is_counted() -> None:
    """Rounds that were won with another kind are in no collection of the winning one."""
    told = replay(record("abb", "naa", "naa"))
    assert (told.won_with, told.won_count) == (PEN, 2)


def test_a_walkover_claims_nothing() -> None:
    """Where no round decided, no round is given a winner."""
    told = replay(record("naa", by="walkover"))
    assert (told.cycle, told.winners, told.won_with) == (None, (frozenset(),), None)


def test_sudden_death_is_not_won_with_a_kind() -> None:
    """A sudden death shows its rounds' winners, and no collection."""
    told = replay(record("naa", "n a", by="sudden_death"))
    assert (told.won_with, told.won_count) == (None, None)
    assert told.winners[1] == frozenset({1})
    assert replay(record("nbb", by="sudden_death")).cycle is None


def test_a_seat_with_two_players_has_no_count() -> None:
    """Whoever sat there before may have won some of them, so only the kind is told."""
    plain = record("naa", "naa", winner=1)
    seats = (plain.seats[0], plain.seats[1], replace(plain.seats[2], seat=Seat(1)))
    told = replay(replace(plain, seats=seats, rounds=({Seat(1): PEN, Seat(2): PAGE},) * 2))
    assert (told.won_with, told.won_count) == (PEN, None)
