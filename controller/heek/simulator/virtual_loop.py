"""An asyncio event loop whose time is a manual clock: it never waits, it moves the clock on.

Everything that runs on an asyncio loop runs on this one unchanged: timers fire in their order, and an
hour passes as fast as its callbacks take. There is nothing to wait for outside: threads and sockets have
no place in virtual time, so whoever needs an executor brings one that runs inline.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from typing import Final

from heek.clock import SECOND, ManualClock

_RESOLUTION_S: Final = 1e-9


class StalledWorldError(RuntimeError):
    """Everybody waits and nothing is due: in virtual time that would be for ever."""


class _ClockSelector(selectors.SelectSelector):
    """Instead of waiting for a file, lets the clock pass."""

    def __init__(self, clock: ManualClock, pace: Callable[[float], None] | None) -> None:
        super().__init__()
        self._clock = clock
        self._pace = pace

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise StalledWorldError("nothing is due and nobody is left to do anything")
        if timeout > 0:
            if self._pace is not None:
                self._pace(timeout)
            self._clock.advance_to(self._clock.now() + max(1, round(timeout * SECOND)))
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on `clock`; raises StalledWorldError where a real one would wait for ever.

    `pace` is called with the seconds that are about to pass; one that sleeps makes a film of it.
    """

    def __init__(self, clock: ManualClock, pace: Callable[[float], None] | None = None) -> None:
        self._clock = clock
        super().__init__(_ClockSelector(clock, pace))
        self._clock_resolution = _RESOLUTION_S

    def time(self) -> float:
        """The clock's seconds."""
        return self._clock.now() / SECOND

    def _write_to_self(self) -> None:
        """There is no other thread to be woken by."""
