"""How often somebody may do something: so many at once, and so many a second after that.

Pure: the time is an argument. Who asks is any text; only the last few hundred are remembered, and whoever
has been forgotten begins anew.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from heek.clock import SECOND, Duration, Instant

MOST_REMEMBERED: Final = 256


class Pace:
    """`at_once` at once, then one each `every`; for each who asks on their own."""

    def __init__(self, at_once: int, every: Duration) -> None:
        self._every = every
        self._slack = (at_once - 1) * every
        self._due: OrderedDict[str, Instant] = OrderedDict()
        """When each would be allowed again if nothing at all could be saved up."""

    def take(self, who: str, now: Instant) -> int:
        """0 if `who` may, else after how many seconds (1 or more) to ask again."""
        due = max(self._due.pop(who, now), now)
        early = due - self._slack - now
        self._due[who] = due if early > 0 else due + self._every
        while len(self._due) > MOST_REMEMBERED:
            self._due.popitem(last=False)
        return max(1, -(-early // SECOND)) if early > 0 else 0
