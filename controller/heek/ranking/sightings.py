"""Whether two tables live with one key at once, told from what each incarnation has heard: a cloned card.

An incarnation is one start of a table's daemon. The daemons of one table live one after the other; those of
two may live at once. When a question comes says little, since it may have been under way for long, and that
of a daemon that is gone arrives when the next has begun. What can be proven is this: an incarnation had begun
when its first question came, and it still lived when the KI gave an answer whose mark a later question names.
Two for which one and the same instant lies between these two lived at once, whatever the links held back,
doubled or mixed up; both are told by our own clock, so no other one matters.

Pure, and kept in memory only: two tables that live at once go on to do so. It labels; it decides nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final

from heek.clock import Instant

MOST_INCARNATIONS: Final = 16
"""Of one table; the one that asked least lately is forgotten."""
MOST_ANSWERS: Final = 16
"""Of one incarnation; an answer that was heard is among the newest."""


@dataclass(slots=True)
class _Incarnation:
    begun: Instant
    """It had begun by then."""
    lived: Instant | None = None
    """It lived still at that time; None: nothing shows that it heard anything."""
    answers: OrderedDict[bytes, Instant] = field(default_factory=OrderedDict)
    """When each answer was given, by its mark."""


@dataclass(slots=True)
class Sightings:
    """What was seen of one table."""

    _incarnations: OrderedDict[bytes, _Incarnation] = field(default_factory=OrderedDict)
    _told: set[frozenset[bytes]] = field(default_factory=set)

    def saw(self, inc: bytes, heard: bytes, mark: bytes, now: Instant) -> bytes | None:
        """A question came; the incarnation that lives beside this one, told once, or None.

        `heard` is the mark of the last answer that the incarnation has had, `mark` of the one it gets now.
        """
        mine = self._incarnations.setdefault(inc, _Incarnation(now))
        _keep_newest(self._incarnations, inc, MOST_INCARNATIONS)
        mine.answers[mark] = now
        _keep_newest(mine.answers, mark, MOST_ANSWERS)
        lived = mine.answers.get(heard)
        if lived is None or (mine.lived is not None and lived <= mine.lived):
            return None
        mine.lived = lived
        return self._beside(inc)

    def _beside(self, inc: bytes) -> bytes | None:
        mine = self._incarnations[inc]
        self._told = {pair for pair in self._told if pair <= self._incarnations.keys()}
        for other, seen in self._incarnations.items():
            pair = frozenset((inc, other))
            if other == inc or pair in self._told or mine.lived is None or seen.lived is None:
                continue
            if min(mine.lived, seen.lived) >= max(mine.begun, seen.begun):
                self._told.add(pair)
                return other
        return None


def _keep_newest(kept: OrderedDict[Any, Any], key: object, most: int) -> None:
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)
