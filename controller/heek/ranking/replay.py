"""What the rounds of a record come to: who won each, and with how many of which kind the match was won.

Pure. A record does not say which way round the kinds beat each other (`ahyoheek.cycle`), nor how many of a
kind win. But whoever won by collections won the last round too, and that shows the cycle; the rest is
counted. Where it does not show (a walkover, a sudden death that the others left), no round gets a winner:
nothing is claimed that a record cannot prove.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from heek.ki.record import Record, Round
from heek.kinds import Kind, Seat

CYCLES: Final[Mapping[str, Mapping[Kind, Kind]]] = {
    "pen-page-beetle": {Kind.PEN: Kind.PAGE, Kind.PAGE: Kind.BEETLE, Kind.BEETLE: Kind.PEN},
    "pen-beetle-page": {Kind.PEN: Kind.BEETLE, Kind.BEETLE: Kind.PAGE, Kind.PAGE: Kind.PEN},
}
"""What each kind beats, the ordinary cycle first."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The rounds of one match, scored."""

    cycle: str | None
    """None: the record does not show which."""
    winners: tuple[frozenset[Seat], ...]
    """Of each round; empty where nobody won it, or where that cannot be told."""
    won_with: Kind | None
    """The kind of which the winner had enough; None if the match was not won by that."""
    won_count: int | None
    """How many of it; None if that cannot be told."""


def replay(record: Record) -> Replay:
    """Score all rounds of a record."""
    cycle = _cycle(record)
    winners = tuple(_winners(each, CYCLES[cycle]) if cycle else frozenset() for each in record.rounds)
    if record.by not in ("three", "total") or cycle is None:
        return Replay(cycle, winners, None, None)
    kind = record.rounds[-1][record.winner]
    won = sum(
        record.winner in of_round and each.get(record.winner) == kind
        for each, of_round in zip(record.rounds, winners, strict=True)
    )
    # A seat that was left and joined again: whoever sat there before won some of them.
    alone = sum(each.seat == record.winner for each in record.seats) == 1
    return Replay(cycle, winners, kind, won if alone else None)


def _cycle(record: Record) -> str | None:
    """The cycle under which the winner won the last round; the ordinary one if both would do."""
    if record.by == "walkover" or not record.rounds:
        return None
    last = record.rounds[-1]
    fitting = [name for name, beats in CYCLES.items() if record.winner in _winners(last, beats)]
    if record.by == "sudden_death":
        # The last round need not be what decided it: the others may have stood up after it.
        fitting = [name for name in fitting if name == next(iter(CYCLES))]
    return fitting[0] if fitting else None


def _winners(throws: Round, beats: Mapping[Kind, Kind]) -> frozenset[Seat]:
    """Those with the most round-points, if that is more than none (the specification, "A round")."""
    points = {
        seat: sum((beats[kind] == other) - (beats[other] == kind) for other in throws.values() if other)
        for seat, kind in throws.items()
        if kind is not None
    }
    most = max(points.values(), default=0)
    return frozenset(seat for seat, each in points.items() if each == most) if most > 0 else frozenset()
