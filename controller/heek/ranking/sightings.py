"""Whether two tables live with one key at once, told from when each incarnation asked: a cloned card.

An incarnation is one start of a table's daemon. The daemons of one table live one after the other, so from
the first to the last question of each there are spans of time that do not overlap; those of two that live at
once do. What counts is when a question was asked, not when it came, so that one that was long under way, and
arrives when the next daemon has begun, shows nothing: each names its monotonic clock, and the least that any
of the same boot was under way ties that clock to ours. One question alone is no span.

Pure, and kept in memory only: two tables that live at once go on to do so. It labels; it decides nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from heek.clock import SECOND, Duration, Instant

OVERLAP: Final[Duration] = 10 * SECOND
"""Spans that overlap by less may be those of one table after another: clocks drift."""
MOST_INCARNATIONS: Final = 16
"""Of one table; the one that asked least lately is forgotten."""
MOST_BOOTS: Final = 16


@dataclass(slots=True)
class _Incarnation:
    n: int
    begun: Instant
    last: Instant


@dataclass(slots=True)
class Sightings:
    """What was seen of one table."""

    _incarnations: OrderedDict[bytes, _Incarnation] = field(default_factory=OrderedDict)
    _offsets: OrderedDict[str, Duration] = field(default_factory=OrderedDict)
    _told: set[frozenset[bytes]] = field(default_factory=set)

    def saw(self, inc: bytes, n: int, boot: str, mono_ns: Instant, now: Instant) -> bytes | None:
        """A question came; the incarnation that lives beside this one, told once, or None.

        `n` is the question's number within the incarnation, `mono_ns` the table's monotonic clock when it
        was asked, `now` ours.
        """
        offset = min(self._offsets.get(boot, now - mono_ns), now - mono_ns)
        self._offsets[boot] = offset
        _keep_newest(self._offsets, boot, MOST_BOOTS)
        asked = mono_ns + offset
        mine = self._incarnations.get(inc)
        if mine is None:
            self._incarnations[inc] = _Incarnation(n, asked, asked)
        elif n > mine.n:
            mine.n = n
            mine.last = max(mine.last, asked)
        else:
            return None
        _keep_newest(self._incarnations, inc, MOST_INCARNATIONS)
        return self._beside(inc)

    def _beside(self, inc: bytes) -> bytes | None:
        mine = self._incarnations[inc]
        self._told = {pair for pair in self._told if pair <= self._incarnations.keys()}
        for other, seen in self._incarnations.items():
            pair = frozenset((inc, other))
            overlap = min(mine.last, seen.last) - max(mine.begun, seen.begun)
            if other != inc and pair not in self._told and overlap >= OVERLAP:
                self._told.add(pair)
                return other
        return None


def _keep_newest(
    kept: OrderedDict[bytes, _Incarnation] | OrderedDict[str, Duration], key: object, most: int
) -> None:
    kept.move_to_end(key)  # type: ignore[arg-type]
    while len(kept) > most:
        kept.popitem(last=False)
