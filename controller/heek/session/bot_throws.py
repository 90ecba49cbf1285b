"""What the table throws at the seats it has taken itself, and when.

It decides when a round opens, before anybody has thrown, from what everybody has seen. It throws a short
while after the first person has: so it never plays without people, and never hurries them. When no person is
in the round (sudden death among bots) it throws a while after the guard. What it has decided is told to
nobody; like a person's throw it comes out with the reveal.

A round's delays are drawn before its kinds, so that when a bot throws tells nothing of what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from heek.bots.collector import Seen, decide
from heek.clock import MILLISECOND, SECOND, Duration, Instant
from heek.games.ahyoheek import CYCLES, MatchState
from heek.kinds import Kind, Seat

SOONEST: Final[Duration] = 400 * MILLISECOND
LATEST: Final[Duration] = 1600 * MILLISECOND
"""A bot throws so long after the first person has; in a short countdown within its first half."""

ALONE: Final[tuple[Duration, Duration]] = (SECOND, 2 * SECOND)
"""So long after the guard a bot throws where no person may."""

_PARTS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class BotThrow:
    """What one bot throws in a round, and how soon."""

    kind: Kind = field(repr=False)
    delay: int
    """In millionths of the way from the soonest instant to the latest."""


@dataclass(frozen=True, slots=True)
class Pace:
    """From when to when the bots of a round throw."""

    soonest: Instant
    latest: Instant

    def throws_at(self, bot: BotThrow) -> Instant:
        return self.soonest + (self.latest - self.soonest) * bot.delay // _PARTS


def pace_of_countdown(started: Instant, guarded_until: Instant, deadline: Instant) -> Pace | None:
    """After a countdown has started; None: the guard leaves nobody any time to throw."""
    begin = max(started, guarded_until)
    if begin >= deadline:
        return None
    latest = min(LATEST, (deadline - begin) // 2)
    return Pace(begin + min(SOONEST, latest), begin + latest)


def pace_alone(from_: Instant) -> Pace:
    """Where no person may throw, from the guard's end on or the leave of the last who might have."""
    soonest, latest = ALONE
    return Pace(from_ + soonest, from_ + latest)


class BotThrows:
    """The bots of one table: where their luck comes from, and what each of them collects.

    `random_bytes` gives so many bytes, all of them as likely as others. Nothing here survives a power cut;
    what a bot collected it can see from what it holds.
    """

    def __init__(self, random_bytes: Callable[[int], bytes]) -> None:
        self._random_bytes = random_bytes
        self._collecting: dict[Seat, Kind] = {}

    def forget(self) -> None:
        """A new match: each bot picks a kind anew."""
        self._collecting = {}

    def decide(
        self, bots: Iterable[Seat], state: MatchState, rounds: Sequence[Mapping[Seat, Kind | None]]
    ) -> dict[Seat, BotThrow]:
        """What these seats throw in the round that opens; `rounds` are those revealed so far."""
        seen = Seen(CYCLES[state.rules.cycle], rounds, state.collections, bool(state.tied))
        throws = {}
        for seat, delay in {seat: self._draw(_PARTS) for seat in bots}.items():
            decision = decide(self._collecting.get(seat), seen, seat, self._draw)
            self._collecting[seat] = decision.collecting
            throws[seat] = BotThrow(decision.throw, delay)
        return throws

    def _draw(self, below: int) -> int:
        # Of 64 bits the remainder is as good as even.
        return int.from_bytes(self._random_bytes(8)) % below
