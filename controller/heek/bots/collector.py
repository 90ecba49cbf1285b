"""The collector: a simple opponent that commits to a kind, and moves when that kind is beaten.

Three of a kind win a match, so who throws evenly collects a bit of everything and loses to “always the
same”. The collector picks a kind and stays with it; two throws of three are of that kind. It looks at what
the others threw in the last three rounds. When its kind was beaten there more often than it beat, it moves
to the kind that would have done best; when it was not, it moves to a kind of which it holds more. In sudden
death nothing is collected, and it throws evenly, which nobody can read.

It is meant to be beaten by who pays attention. Share of 10,000 seeded matches won (give or take 0.01)
against one collector, two, and four of them; a fair share would be 0.50, 0.33, 0.20:

    always the same kind                     0.14  0.09  0.13
    every kind alike                         0.38  0.26  0.16
    what beats the first other's last throw  0.77  0.55  0.40

It sees what everybody has seen, and nothing else: revealed rounds and collections. It remembers one thing,
the kind that it collects; without that (a new match, a power cut) it begins with what it holds most of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from heek.kinds import KINDS, Kind, Seat

Draw: TypeAlias = Callable[[int], int]
"""A whole number from 0 to below the given one (1 or more), each as likely as the others."""

LOOKS_BACK: Final = 3
"""Rounds that it remembers of the others."""

STRAYS: Final = 2
"""Once in so many rounds it throws any of the three instead of its own."""


class Held(Protocol):
    """What one seat has won so far."""

    def of(self, kind: Kind, /) -> int:
        """How many of one kind, 0 or more."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What everybody at the table has seen of the match."""

    beats: Mapping[Kind, Kind]
    """What each kind beats."""
    rounds: Sequence[Mapping[Seat, Kind | None]]
    """Who threw what in every revealed round, the first one first; None: nothing."""
    held: Mapping[Seat, Held]
    """The collections of all who play."""
    sudden_death: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What the bot throws now, and the kind that it collects from now on."""

    throw: Kind
    collecting: Kind


def decide(collecting: Kind | None, seen: Seen, seat: Seat, draw: Draw) -> Decision:
    """What the collector at `seat` throws in the round that opens; `collecting` as it decided last.

    Raises KeyError if the seat is not in the match.
    """
    held = seen.held[seat]
    worth = _worth(seen, seat)
    if collecting is None:
        kind = _one_of(KINDS, draw, held.of)
    elif worth[collecting] < 0:
        kind = _one_of(KINDS, draw, worth.__getitem__, held.of)
    else:
        better = [
            each for each in KINDS if held.of(each) > held.of(collecting) and worth[each] >= worth[collecting]
        ]
        kind = _one_of(better, draw, held.of, worth.__getitem__) if better else collecting
    strays = seen.sudden_death or draw(STRAYS) == 0
    return Decision(KINDS[draw(len(KINDS))] if strays else kind, kind)


def _worth(seen: Seen, seat: Seat) -> dict[Kind, int]:
    """How each kind would have fared against the last throws of the others: beaten less beaten by."""
    thrown = dict.fromkeys(KINDS, 0)
    for round_ in seen.rounds[-LOOKS_BACK:]:
        for other, kind in round_.items():
            if other != seat and kind is not None:
                thrown[kind] += 1
    beaten_by = {loser: winner for winner, loser in seen.beats.items()}
    return {kind: thrown[seen.beats[kind]] - thrown[beaten_by[kind]] for kind in KINDS}


def _one_of(kinds: Sequence[Kind], draw: Draw, *merits: Callable[[Kind], int]) -> Kind:
    """The best by the first merit, among equals by the next; what is left is drawn for."""
    rest = list(kinds)
    for merit in merits:
        best = max(merit(kind) for kind in rest)
        rest = [kind for kind in rest if merit(kind) == best]
    return rest[draw(len(rest))]
