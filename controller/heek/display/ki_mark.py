"""What the OLED says of the KI: whether it is reached and how many results wait, in words or as a small mark.

It is a value of the display's own, which whoever knows the KI fills. In words where there is room, up to two
lines; beside a free table's title, in the lobby's countdown and between rounds as a mark of at most 39 px.
Neither ever stands where a round counts down or is revealed.

The link is told of quietly. When the KI comes or goes, when the first result waits or the last is answered,
when a code is wanted or trouble comes up, it shows at once; a number or a time that merely moves on is shown
once a minute (`PACE`), so that a backlog that drains sends no picture a second over the bus.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from heek.clock import SECOND, Duration, Instant

PACE: Final[Duration] = 60 * SECOND
"""How often a number or a time that moves on by itself is shown anew."""

MOST_SHOWN: Final = 99
"""Results that the small mark counts; beyond them it says so with a plus."""

Words: TypeAlias = tuple[str, ...]
"""One or two lines of at most 86 px."""


class Reach(Enum):
    """Whether the KI is reached."""

    UNKNOWN = "unknown"
    """It was not asked yet."""
    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class SmallMark:
    """The KI in a few dots: "KI", how it is reached, and how many results wait."""

    state: str
    """`up`, `down`, `enrol` (it wants a code), `trouble` or `unknown`."""
    waiting: str
    """The number beside the hourglass; empty: nothing waits."""


@dataclass(frozen=True, slots=True)
class KiMark:
    """How a table that has a link stands with its KI."""

    reach: Reach
    waiting: int = 0
    """Results that the KI has not answered for."""
    last: str | None = None
    """When it last answered, on a clock's face ("14:02"); None: not since the start."""
    claim: str | None = None
    """The code that an operator is to type in at the KI, eight letters; None: none is wanted."""
    trouble: bool = False
    """An operator should look at the page."""

    @property
    def words(self) -> Words:
        """As people read it, on one or two lines."""
        waits = f"{self.waiting} waiting" if self.waiting else ""
        if self.claim is not None:
            first, rest = "KI: not enrolled", waits
        elif self.reach is Reach.DOWN:
            first, rest = "KI: no link", waits or self._last_words
        elif self.trouble:
            first, rest = f"KI: {waits or self.reach.value}", "see the page"
        elif waits:
            first, rest = f"KI: {waits}", self._last_words
        else:
            first, rest = "KI: up" if self.reach is Reach.UP else "KI: looking for it", ""
        return (first, rest) if rest else (first,)

    @property
    def small(self) -> SmallMark:
        """The same where there is little room."""
        if self.claim is not None:
            state = "enrol"
        elif self.reach is not Reach.UP:
            state = self.reach.value
        else:
            state = "trouble" if self.trouble else "up"
        many = self.waiting > MOST_SHOWN
        return SmallMark(state, f"{MOST_SHOWN}+" if many else str(self.waiting or ""))

    @property
    def _last_words(self) -> str:
        return "" if self.last is None else f"last {self.last}"

    @property
    def _loud(self) -> tuple[object, ...]:
        """What is shown at once when it changes."""
        return self.reach, bool(self.waiting), self.claim, self.trouble


@dataclass(frozen=True, slots=True)
class QuietKi:
    """The mark that is shown, the newest that is known, and since when the former is: `tell` it all news."""

    shown: KiMark | None = None
    known: KiMark | None = None
    since: Instant = 0

    def tell(self, mark: KiMark | None, now: Instant) -> QuietKi:
        """How it stands when `mark` (None: there is no link) is known at `now`."""
        return QuietKi(self.shown, mark, self.since).at(now)

    def at(self, now: Instant) -> QuietKi:
        """How it stands at `now`, if nothing new is known."""
        if self.known == self.shown:
            return self
        due = self.due
        return self if due is not None and now < due else QuietKi(self.known, self.known, now)

    @property
    def due(self) -> Instant | None:
        """When the shown mark is to give way to the known one; None: at once, or there is no other."""
        shown, known = self.shown, self.known
        if shown is None or known is None or shown == known or shown._loud != known._loud:
            return None
        return self.since + PACE
