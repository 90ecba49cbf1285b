"""The rules of Ahyoheek: who beats whom, who wins a round, and when a match ends.

A match is a value. `initial` makes one, `may_throw` says who may act, `apply` turns an action into
the next value, and `MatchState.outcome` says why it ended and who got it. Nothing here knows
seconds, buttons or players: the session closes rounds and seats people, and this module judges.

The order of judgement, where the published rules leave it open, is that of spec/ahyoheek.md:

* A round is compared among those who threw; fewer than two throws are no round (`void`).
* Target reached by one: `three`. By several: the greatest total collection, `total`. Still tied:
  sudden death among the tied alone; its winners stay tied, the others are out, until one is left.
* Those who leave at one instant all leave first; then sudden death is looked at, then what the
  rest hold, and only then whether one player is left alone (`walkover`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import msgspec

from heek.errors import IllegalAction
from heek.kinds import KINDS, Kind, Seat

CYCLES: Final[dict[str, dict[Kind, Kind]]] = {
    "pen-page-beetle": {Kind.PEN: Kind.PAGE, Kind.PAGE: Kind.BEETLE, Kind.BEETLE: Kind.PEN},
    "pen-beetle-page": {Kind.PEN: Kind.BEETLE, Kind.BEETLE: Kind.PAGE, Kind.PAGE: Kind.PEN},
}
"""What each kind beats, by the name of the cycle; the first is the one of the worked example."""

ROUND_MINIMUM: Final = 2
"""Throws below this are no round."""


@dataclass(frozen=True, slots=True)
class Collection:
    """What a player has won in this match, each 0 or more."""

    pen: int = 0
    page: int = 0
    beetle: int = 0

    def of(self, kind: Kind) -> int:
        """How many of one kind."""
        return self.pen if kind is Kind.PEN else self.page if kind is Kind.PAGE else self.beetle

    def plus(self, kind: Kind) -> Collection:
        """This collection with one more of `kind`."""
        return Collection(
            self.pen + (kind is Kind.PEN),
            self.page + (kind is Kind.PAGE),
            self.beetle + (kind is Kind.BEETLE),
        )

    @property
    def total(self) -> int:
        return self.pen + self.page + self.beetle


@dataclass(frozen=True, slots=True)
class Rules:
    """The numbers of a match; a limit of 0 is off."""

    target: int = 3
    cycle: str = "pen-page-beetle"
    missed_limit: int = 3
    sudden_death_limit: int = 20
    winnerless_limit: int = 50


class Won(msgspec.Struct, frozen=True, tag="won"):
    """The match has a winner; `by` is `three`, `total`, `sudden_death` or `walkover`."""

    seat: Seat
    by: str


class Void(msgspec.Struct, frozen=True, tag="void"):
    """The match ended without one; `reason` as in the event `match_void`."""

    reason: str


Outcome: TypeAlias = Won | Void


@dataclass(frozen=True, slots=True)
class RoundScore:
    """What a closed round came to. `points` names the throwers only and sums to zero."""

    points: Mapping[Seat, int]
    winners: tuple[Seat, ...]
    void: bool = False


@dataclass(frozen=True, slots=True)
class RoundClosed:
    """The action of a round: what each seat threw; who did not throw is not in it."""

    throws: Mapping[Seat, Kind]


@dataclass(frozen=True, slots=True)
class SeatsLeft:
    """These seats stood up at one instant."""

    seats: tuple[Seat, ...]


@dataclass(frozen=True, slots=True)
class SeatJoined:
    """A seat sits down in the running match with an empty collection."""

    seat: Seat


Action: TypeAlias = RoundClosed | SeatsLeft | SeatJoined


@dataclass(frozen=True, slots=True)
class MatchState:
    """A match between two actions. Mappings are never changed in place."""

    rules: Rules
    collections: Mapping[Seat, Collection]
    """Every seat still in the match, ascending."""
    missed: Mapping[Seat, int]
    """Rounds missed running, by seat."""
    tied: tuple[Seat, ...] = ()
    """The seats that play sudden death; empty in ordinary rounds."""
    revealed: int = 0
    winnerless: int = 0
    """Ordinary rounds running without a winner, void ones counted."""
    sudden_death_winnerless: int = 0
    """Rounds of this sudden death without a winner, void ones counted."""
    score: RoundScore | None = None
    """Of the round closed last."""
    outcome: Outcome | None = field(default=None)


def score_round(throws: Mapping[Seat, Kind], cycle: str = "pen-page-beetle") -> RoundScore:
    """Compare one round's throws: +1 for each thrower beaten, -1 for each that beats you."""
    beats = CYCLES[cycle]
    count = dict.fromkeys(KINDS, 0)
    for kind in throws.values():
        count[kind] += 1
    worth = {kind: count[beats[kind]] - count[beats[beats[kind]]] for kind in KINDS}
    points = {seat: worth[kind] for seat, kind in throws.items()}
    best = max(points.values(), default=0)
    winners = tuple(seat for seat, won in points.items() if won == best) if best > 0 else ()
    return RoundScore(points, winners)


def initial(seats: Iterable[Seat], rules: Rules) -> MatchState:
    """A new match among `seats`; raises IllegalAction below two."""
    present = sorted(seats)
    if len(present) < ROUND_MINIMUM:
        raise IllegalAction(f"a match needs two seats, not {present}")
    return MatchState(rules, {seat: Collection() for seat in present}, dict.fromkeys(present, 0))


def may_throw(state: MatchState) -> tuple[Seat, ...]:
    """The seats that may throw in the next round: the tied in sudden death, else all; none when over."""
    if state.outcome is not None:
        return ()
    return state.tied or tuple(state.collections)


def missed_out(state: MatchState) -> tuple[Seat, ...]:
    """The seats that have reached `missed_limit` and must stand up; none once the match is decided."""
    limit = state.rules.missed_limit
    if state.outcome is not None or limit == 0:
        return ()
    return tuple(seat for seat, missed in state.missed.items() if missed >= limit)


def apply(state: MatchState, action: Action) -> MatchState:
    """The match after `action`; raises IllegalAction if the match is over or a seat may not act."""
    if state.outcome is not None:
        raise IllegalAction("the match is over; nothing more can be played in it")
    match action:
        case RoundClosed(throws):
            return _close_round(state, throws)
        case SeatsLeft(seats):
            return _leave(state, seats)
        case SeatJoined(seat):
            return _join(state, seat)


def _close_round(state: MatchState, throws: Mapping[Seat, Kind]) -> MatchState:
    seats = may_throw(state)
    strangers = [seat for seat in throws if seat not in seats]
    if strangers:
        raise IllegalAction(f"seats {strangers} are not in this round; only {list(seats)} may throw")
    missed = {
        seat: (0 if seat in throws else count + 1) if seat in seats else count
        for seat, count in state.missed.items()
    }
    if len(throws) < ROUND_MINIMUM:
        closed = replace(state, missed=missed, score=RoundScore({}, (), void=True))
        return _count_winnerless(closed)
    score = score_round(throws, state.rules.cycle)
    closed = replace(state, missed=missed, score=score, revealed=state.revealed + 1)
    if not score.winners:
        return _count_winnerless(closed)
    if state.tied:
        return _narrow(replace(closed, tied=score.winners))
    collections = {
        seat: held.plus(throws[seat]) if seat in score.winners else held
        for seat, held in state.collections.items()
    }
    return _judge_collections(replace(closed, collections=collections, winnerless=0))


def _count_winnerless(state: MatchState) -> MatchState:
    if state.tied:
        count, limit, reason = (
            state.sudden_death_winnerless + 1,
            state.rules.sudden_death_limit,
            "sudden_death_limit",
        )
        counted = replace(state, sudden_death_winnerless=count)
    else:
        count, limit, reason = state.winnerless + 1, state.rules.winnerless_limit, "winnerless_limit"
        counted = replace(state, winnerless=count)
    return replace(counted, outcome=Void(reason)) if limit and count >= limit else counted


def _narrow(state: MatchState) -> MatchState:
    """Sudden death with one tied player left is won."""
    if len(state.tied) == 1:
        return replace(state, outcome=Won(state.tied[0], "sudden_death"))
    return state


def _judge_collections(state: MatchState) -> MatchState:
    """Rules 1 and 2 of a match: target reached, then the greatest total, then sudden death."""
    target = state.rules.target
    holders = [
        seat for seat, held in state.collections.items() if max(held.pen, held.page, held.beetle) >= target
    ]
    if not holders:
        return replace(state, tied=())
    if len(holders) == 1:
        return replace(state, tied=(), outcome=Won(holders[0], "three"))
    most = max(state.collections[seat].total for seat in holders)
    best = tuple(seat for seat in holders if state.collections[seat].total == most)
    if len(best) == 1:
        return replace(state, tied=(), outcome=Won(best[0], "total"))
    return replace(state, tied=best, sudden_death_winnerless=0)


def _leave(state: MatchState, seats: tuple[Seat, ...]) -> MatchState:
    strangers = [seat for seat in seats if seat not in state.collections]
    if strangers:
        raise IllegalAction(f"seats {strangers} are not in this match and cannot leave it")
    rest = replace(
        state,
        collections={seat: held for seat, held in state.collections.items() if seat not in seats},
        missed={seat: count for seat, count in state.missed.items() if seat not in seats},
    )
    if state.tied:
        tied = tuple(seat for seat in state.tied if seat not in seats)
        rest = _narrow(replace(rest, tied=tied)) if tied else _judge_collections(rest)
    if rest.outcome is not None:
        return rest
    if not rest.collections:
        return replace(rest, tied=(), outcome=Void("empty"))
    if len(rest.collections) == 1:
        (alone,) = rest.collections
        return replace(rest, outcome=Won(alone, "walkover") if rest.revealed else Void("empty"))
    return rest


def _join(state: MatchState, seat: Seat) -> MatchState:
    if state.tied or seat in state.collections:
        raise IllegalAction(f"seat {seat} cannot join: it plays already, or others play sudden death")
    return replace(
        state,
        collections=dict(sorted([*state.collections.items(), (seat, Collection())])),
        missed=dict(sorted([*state.missed.items(), (seat, 0)])),
    )
