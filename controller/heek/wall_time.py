"""What the wall clock says at a table, and how far that is to be believed: a label, never part of a rule.

A Pi has no battery clock. It starts in 1970, or at the time that was saved last, and somebody may tell it
the time later, in mid-match too. So both are asked for each time a label is written, and never kept. Where
the system clock was not set over the network, what the KI told (signed) goes before it: its time, carried on
by the monotonic clock, which no step moves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from heek.clock import SECOND, Clock, Duration, Instant

PATIENCE: Final[Duration] = 60 * SECOND
"""An answer that took longer tells the time too roughly."""

SANE_S: Final = 1_704_067_200
"""2024 began: a KI whose clock stands before that was told the time by nobody itself."""


class WallTime:
    """A clock whose wall time is the best that is known; instants are those of the clock beneath."""

    def __init__(self, clock: Clock, trust: Callable[[], str]) -> None:
        """`trust` says how far the system's wall clock is to be believed now: `none`, `saved` or `ntp`."""
        self._clock = clock
        self._trust = trust
        self._told: tuple[float, Instant] | None = None
        """What the KI's clock said, and when that was here."""

    @property
    def origin_ns(self) -> int:
        return self._clock.origin_ns

    def now(self) -> Instant:
        return self._clock.now()

    def wall_s(self) -> float:
        return self.label()[0]

    def label(self) -> tuple[float, str]:
        """Seconds since 1970, and how far they are to be believed: `none`, `saved`, `ntp` or `service`."""
        trust = self._trust()
        if trust != "ntp" and self._told is not None:
            told_s, at = self._told
            return told_s + (self._clock.now() - at) / SECOND, "service"
        return self._clock.wall_s(), trust

    @property
    def by_service(self) -> bool:
        """Labels go by what the KI told."""
        return self.label()[1] == "service"

    def tell(self, now_s: float, asked: Instant) -> bool:
        """The KI said that it is `now_s`, answering a question that was sent at `asked`; whether it is taken.

        Only for what the KI has signed. The answer is taken to be from half-way between then and now.
        """
        now = self._clock.now()
        if not 0 <= now - asked <= PATIENCE or now_s < SANE_S:
            return False
        self._told = now_s, (asked + now) // 2
        return True
