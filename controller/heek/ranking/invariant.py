"""Does a record agree with the rules' version that it names, and what does it move?

Pure: it knows nothing but the record. What needs the ledger (is a stake too high for what is known of the
player?) is the ledger's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from heek.errors import RecordError
from heek.games.ranking_points import RULES_VERSIONS, deltas
from heek.ki.record import Record, RecordSeat

ECONOMIES: Final = {version: economy for economy, version in RULES_VERSIONS.items()}
"""The economy by the rules version that a record names."""

AWARD: Final = RULES_VERSIONS["award"]
"""The one version in which the winner's points come from nowhere."""


@dataclass(frozen=True, slots=True)
class Stake:
    """What one player put in."""

    player: str
    amount: int


@dataclass(frozen=True, slots=True)
class Moves:
    """What a match moves: every stake in `lost` goes to the receiver."""

    receiver: str | None
    """KI number; None: the match is not rated or a guest won, and nothing moves."""
    lost: tuple[Stake, ...]
    """The stakes above zero of all others; under `AWARD` they are what the receiver gets, and stay."""


def winner_place(record: Record) -> int:
    """Where in `seats` the winner stands: a seat that was left and joined again was won by the last one."""
    return max(place for place, each in enumerate(record.seats) if each.seat == record.winner)


def moves(record: Record) -> Moves:
    """What the record moves; raises RecordError if it breaks its version's invariant.

    The winner gains what the others staked, and they lose it (the specification, "Points, rank, stake");
    under `heek-1-award` nobody loses. Guests and bots stake nothing; a match with a bot is not rated; what is
    not rated, or won by a guest, moves nothing.
    """
    economy = ECONOMIES.get(record.rules)
    if economy is None:
        raise RecordError(
            f"rules: {record.rules} is not known here; this KI knows {', '.join(sorted(ECONOMIES))}"
        )
    for place, each in enumerate(record.seats):
        if each.kind != "player" and each.stake:
            raise RecordError(f"seats[{place}].stake: a {each.kind} stakes nothing")
    if record.rated and any(each.kind == "bot" for each in record.seats):
        raise RecordError("rated: a match with a bot is not")
    _check_rounds(record)
    winner = winner_place(record)
    for place, (each, right) in enumerate(
        zip(record.seats, _right_deltas(record, winner, economy), strict=True)
    ):
        if each.delta != right:
            raise RecordError(f"seats[{place}].delta: is {each.delta}; by {record.rules} it would be {right}")
    receiver = record.seats[winner]
    if not record.rated or receiver.player is None:
        return Moves(None, ())
    lost = tuple(
        Stake(each.player, each.stake)
        for each in record.seats
        if each is not receiver and each.player is not None and each.stake > 0
    )
    return Moves(receiver.player, lost)


def staking(record: Record) -> tuple[RecordSeat, ...]:
    """Those of a record whose points are at stake."""
    return tuple(each for each in record.seats if each.player is not None) if record.rated else ()


def _right_deltas(record: Record, winner: int, economy: str) -> tuple[int, ...]:
    if not record.rated:
        return (0,) * len(record.seats)
    return deltas(
        [each.stake for each in record.seats],
        [each.player is not None for each in record.seats],
        winner,
        economy,
    )


def _check_rounds(record: Record) -> None:
    """A match is won by rounds, and nobody throws who does not play."""
    if not record.rounds:
        raise RecordError("rounds: there is none, and without one nobody wins")
    seats = {each.seat for each in record.seats}
    for place, each in enumerate(record.rounds):
        strangers = set(each) - seats
        if strangers:
            raise RecordError(f"rounds[{place}]: seat {min(strangers)} throws and does not play")
