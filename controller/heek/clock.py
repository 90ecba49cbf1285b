"""What time it is: the real clock, a manual one, and how seconds become nanoseconds.

Every instant inside the table is an integer count of nanoseconds since the daemon's start on
the monotonic clock. Integers, because "a press exactly at the guard's end counts" must not
depend on how 0.3 is rounded in binary.
"""

from __future__ import annotations

import time
from decimal import Decimal
from typing import Final, Protocol, TypeAlias

Instant: TypeAlias = int
"""Nanoseconds since the daemon's start, on the monotonic clock."""

Duration: TypeAlias = int
"""A span of nanoseconds."""

SECOND: Final[Duration] = 1_000_000_000
MILLISECOND: Final[Duration] = 1_000_000
MICROSECOND: Final[Duration] = 1_000


def nanoseconds(seconds: float | Decimal) -> Duration:
    """Seconds as nanoseconds, exact for a Decimal and to the nearest one for a float."""
    return round(seconds * SECOND)


def seconds_text(instant: Instant) -> str:
    """An instant as the spec writes it: seconds with six decimals, cut, never rounded up."""
    sign = "-" if instant < 0 else ""
    whole, rest = divmod(abs(instant), SECOND)
    return f"{sign}{whole}.{rest // 1000:06d}"


class Clock(Protocol):
    """The one source of time of a running table."""

    @property
    def origin_ns(self) -> int:
        """Where instant 0 lies on the monotonic clock that the kernel stamps edges with."""

    def now(self) -> Instant:
        """Nanoseconds since the daemon's start; never goes back."""

    def wall_s(self) -> float:
        """Seconds since 1970 by the wall clock: a label on records, never part of a rule."""


class RealClock:
    """The machine's monotonic clock, counted from the moment this object was made."""

    def __init__(self) -> None:
        self._origin_ns: Final = time.monotonic_ns()

    @property
    def origin_ns(self) -> int:
        return self._origin_ns

    def now(self) -> Instant:
        return time.monotonic_ns() - self._origin_ns

    def wall_s(self) -> float:
        return time.time()


class ManualClock:
    """A clock that stands still until it is told to move; the simulator's and the tests'."""

    def __init__(self, now: Instant = 0, wall_s: float = 1_767_225_600.0) -> None:
        self._now = now
        self._wall_offset_s = wall_s - now / SECOND

    @property
    def origin_ns(self) -> int:
        return 0

    def now(self) -> Instant:
        return self._now

    def wall_s(self) -> float:
        return self._wall_offset_s + self._now / SECOND

    def advance_to(self, instant: Instant) -> None:
        """Move forward to `instant`; raises ValueError if that lies in the past."""
        if instant < self._now:
            raise ValueError(f"the clock cannot go back from {self._now} to {instant} ns")
        self._now = instant

    def set_wall_s(self, wall_s: float) -> None:
        """Let the wall clock jump; the monotonic one does not move."""
        self._wall_offset_s = wall_s - self._now / SECOND


class StartedClock:
    """Another clock, counted anew from the moment this object was made: a daemon's in a longer world."""

    def __init__(self, world: Clock) -> None:
        self._world = world
        self._started = world.now()

    @property
    def origin_ns(self) -> int:
        return self._world.origin_ns + self._started

    def now(self) -> Instant:
        return self._world.now() - self._started

    def wall_s(self) -> float:
        return self._world.wall_s()
