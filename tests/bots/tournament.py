"""How strong the collector is: seeded matches against players of a fixed habit, with intervals.

`python -m tests.bots.tournament --matches 10000` prints the table of the collector's docstring.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from heek.bots.collector import Draw, Seen, decide
from heek.games.ahyoheek import CYCLES, MatchState, RoundClosed, Rules, Won, apply, initial, may_throw
from heek.kinds import KINDS, Kind, Seat

CYCLE: Final = "pen-page-beetle"
BEATS: Final = CYCLES[CYCLE]
BEATEN_BY: Final = {loser: winner for winner, loser in BEATS.items()}

Rounds: TypeAlias = list[dict[Seat, Kind | None]]


class Player(Protocol):
    """Whoever sits at a seat."""

    def throw(self, seat: Seat, state: MatchState, rounds: Rounds, draw: Draw) -> Kind: ...


class Collector:
    """The table's own opponent, with its memory."""

    def __init__(self) -> None:
        self.collecting: Kind | None = None

    def throw(self, seat: Seat, state: MatchState, rounds: Rounds, draw: Draw) -> Kind:
        seen = Seen(BEATS, rounds, state.collections, bool(state.tied))
        decision = decide(self.collecting, seen, seat, draw)
        self.collecting = decision.collecting
        return decision.throw


@dataclass
class Always:
    """The same kind, whatever happens."""

    kind: Kind = Kind.PEN

    def throw(self, _seat: Seat, _state: MatchState, _rounds: Rounds, _draw: Draw) -> Kind:
        return self.kind


class Even:
    """Every kind alike."""

    def throw(self, _seat: Seat, _state: MatchState, _rounds: Rounds, draw: Draw) -> Kind:
        return KINDS[draw(3)]


class Attentive:
    """What beats the first other's last throw."""

    def throw(self, seat: Seat, _state: MatchState, rounds: Rounds, draw: Draw) -> Kind:
        for round_ in reversed(rounds):
            for other, kind in round_.items():
                if other != seat and kind is not None:
                    return BEATEN_BY[kind]
        return KINDS[draw(3)]


HABITS: Final[dict[str, Callable[[], Player]]] = {
    "always the same kind": Always,
    "every kind alike": Even,
    "what beats the first other's last throw": Attentive,
    "another collector": Collector,
}


def play(players: Sequence[Player], rng: random.Random) -> tuple[Seat | None, Rounds]:
    """One match, seat 1 first; who won it, None if nobody did, and its rounds."""
    state = initial(range(1, len(players) + 1), Rules(cycle=CYCLE))
    rounds: Rounds = []
    while state.outcome is None:
        throws = {
            seat: players[seat - 1].throw(seat, state, rounds, rng.randrange) for seat in may_throw(state)
        }
        state = apply(state, RoundClosed(throws))
        rounds.append(dict(throws))
    return (state.outcome.seat if isinstance(state.outcome, Won) else None), rounds


def share(habit: Callable[[], Player], collectors: int, matches: int, seed: int = 1) -> tuple[float, float]:
    """The share that one of `habit` wins against so many collectors, and the half width of its 95 %."""
    rng = random.Random(seed)
    won = 0
    for _ in range(matches):
        seat = rng.randrange(collectors + 1)
        players: list[Player] = [Collector() for _ in range(collectors)]
        players.insert(seat, habit())
        winner, _ = play(players, rng)
        won += winner == seat + 1
    part = won / matches
    return part, 1.96 * (part * (1 - part) / matches) ** 0.5


def main(argv: Sequence[str] | None = None) -> int:
    """Print every habit's share against one, two and four collectors."""
    parser = argparse.ArgumentParser(prog="python -m tests.bots.tournament", description=__doc__)
    parser.add_argument("--matches", type=int, default=10_000)
    arguments = parser.parse_args(argv)
    for name, habit in HABITS.items():
        shares = [share(habit, collectors, arguments.matches) for collectors in (1, 2, 4)]
        print(f"{name:40}" + "  ".join(f"{part:.3f} ± {half:.3f}" for part, half in shares))
    return 0


if __name__ == "__main__":
    sys.exit(main())
