"""How much of something may be done in a while: so many at once, and so many a second after that.

Pure: the time is an argument.
"""

from __future__ import annotations

from heek.clock import SECOND, Duration, Instant


class Limit:
    """`at_once` at once, and as many again over each `over`."""

    def __init__(self, at_once: int, over: Duration) -> None:
        self._every = over // at_once
        self._slack = (at_once - 1) * self._every
        self._due: Instant | None = None
        """When the next would be allowed if nothing at all could be saved up."""

    def take(self, now: Instant) -> int:
        """0 if it may be done, else after how many seconds (1 or more) to ask again."""
        due = now if self._due is None else max(self._due, now)
        early = due - self._slack - now
        if early > 0:
            return max(1, -(-early // SECOND))
        self._due = due + self._every
        return 0
