"""Writes long stories of lively play: five players, match after match, every throw known beforehand.

The author plays by the rules of `heek.games.ahyoheek` while it writes, so it knows when each round closes and
which one decides, and can let people press as people do: a second or three after a round opens, sometimes
changing their minds, all of them confirming for another match. What a simulation makes of the story can
then be held against what the author counted.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Final

from heek.games import ahyoheek
from heek.games.ahyoheek import RoundClosed, Rules, Won
from heek.kinds import KINDS, SEATS, Kind, Seat

# The clock of the default configuration, in milliseconds; the story sets no keys.
SETTLE_MS: Final = 30
REVEAL_MS: Final = 4_000
MATCH_OVER_MS: Final = 8_000

SOONEST_MS: Final = 700
LATEST_MS: Final = 3_000
"""When a player throws after the round opened: past the guard, well before the countdown's end."""

CHANGES: Final = 0.15
"""How often a player thinks better of a throw."""

PRESS_MS: Final = 80


@dataclass(frozen=True, slots=True)
class Evening:
    """A story as JSON Lines, and what is in it."""

    text: str
    presses: int
    rounds: int
    won: int
    """Matches that are won before the story ends; one in thousands is void instead."""
    seconds: float
    """How long it takes in real time."""


def hour(seed: int, seconds: int = 3600) -> Evening:
    """Matches back to back for `seconds`; the last one is cut short by the story's end."""
    author = _Author(seed)
    author.sit_down()
    while author.now_ms < seconds * 1000:
        author.play_match(seconds * 1000)
    return author.end(seconds * 1000)


def matches(count: int, seed: int) -> Evening:
    """`count` whole matches back to back, 1 or more."""
    author = _Author(seed)
    author.sit_down()
    for _ in range(count):
        author.play_match(None)
    return author.end(author.now_ms)


class _Author:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now_ms = 0
        self.presses: list[tuple[int, Seat, Kind]] = []
        self.rounds = 0
        self.won = 0

    def sit_down(self) -> None:
        """Everybody presses, one after the other: five who have confirmed begin at once."""
        for seat in self.rng.sample(SEATS, len(SEATS)):
            self.now_ms += self.rng.randrange(150, 900)
            self.press(self.now_ms, seat, self.rng.choice(KINDS))

    def play_match(self, end_ms: int | None) -> None:
        """From its start to the confirmed rematch; what lies after `end_ms` is not counted."""
        state = ahyoheek.initial(SEATS, Rules())
        while state.outcome is None:
            throws, closed_ms = self.throw(ahyoheek.may_throw(state))
            state = ahyoheek.apply(state, RoundClosed(throws))
            revealed_ms = closed_ms + SETTLE_MS
            told = end_ms is None or revealed_ms <= end_ms
            self.rounds += told
            self.won += told and isinstance(state.outcome, Won)
            self.now_ms = revealed_ms + (REVEAL_MS if state.outcome is None else MATCH_OVER_MS)
        self.sit_down()

    def throw(self, seats: tuple[Seat, ...]) -> tuple[dict[Seat, Kind], int]:
        """One round of presses: what each seat throws in the end, and when the round closes."""
        throws = {seat: self.rng.choice(KINDS) for seat in seats}
        first_ms = {seat: self.now_ms + self.rng.randrange(SOONEST_MS, LATEST_MS) for seat in seats}
        closed_ms = max(first_ms.values())
        for seat, kind in throws.items():
            self.press(first_ms[seat], seat, kind)
            better_ms = first_ms[seat] + 2 * PRESS_MS
            if better_ms < closed_ms and self.rng.random() < CHANGES:
                throws[seat] = self.rng.choice([each for each in KINDS if each is not kind])
                self.press(better_ms, seat, throws[seat])
        return throws, closed_ms

    def press(self, at_ms: int, seat: Seat, kind: Kind) -> None:
        self.presses.append((at_ms, seat, kind))

    def end(self, at_ms: int) -> Evening:
        self.presses.sort(key=lambda press: press[0])
        told = [press for press in self.presses if press[0] + PRESS_MS < at_ms]
        lines: list[dict[str, object]] = [{"story": 1}]
        lines += [
            {"at": at_ms / 1000, "press": {"seat": seat, "button": kind.value}} for at_ms, seat, kind in told
        ]
        lines.append({"at": at_ms / 1000, "end": True})
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        return Evening(text, len(told), self.rounds, self.won, at_ms / 1000)
