"""What the table knows of its way to the KI, and when it asks next: pure, with time as an argument.

It asks at once when a result waits and the last asking went well, and every `CHECK` when none does, so that
the page can say how the link is. After a failure it waits, twice as long each time up to a ceiling and
with some chance in it, so that fifty tables do not all come back at the same moment, and none asks a KI that
is away more than once a minute. What the other end said (`retry_s`) is a lower bound. Nothing is ever given
up: the results are in the journal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from heek.clock import SECOND, Duration, Instant

FIRST_PAUSE: Final[Duration] = SECOND
LONGEST_PAUSE: Final[Duration] = 120 * SECOND
"""Half of it is what chance leaves at the least."""
LONGEST_ASKED_FOR: Final[Duration] = 3600 * SECOND
"""A `retry_s` beyond an hour is no longer patience."""
LONGEST_FOR_A_STRANGER: Final[Duration] = 300 * SECOND
"""The same for what is not the KI: a portal that nobody logs in at must not keep results for an hour."""
CHECK: Final[Duration] = 30 * SECOND
"""How often a table with nothing to report asks whether the KI is there."""


class Outbox:
    """When to ask next. `chance` draws a number from 0 to 1."""

    def __init__(self, chance: Callable[[], float], now: Instant, waiting: int) -> None:
        self._chance = chance
        self._pause = FIRST_PAUSE
        self._due = now
        self._failed = False
        self.waiting = waiting
        """Results that the KI has not answered for."""
        self.reason = ""
        """Why the last asking failed; empty if it went well."""
        self.ever_answered = False

    @property
    def failing(self) -> bool:
        """Whether the last asking failed."""
        return self._failed

    def due(self) -> Instant:
        """When to ask next."""
        return self._due

    def result_waits(self, now: Instant) -> None:
        """One more result is in the journal."""
        self.waiting += 1
        if not self._failed:
            self._due = now

    def link_came_up(self, now: Instant) -> None:
        """There is a new reason to hope: ask at once, whatever the pause."""
        self._due = now

    def answered(self, now: Instant, waiting: int, next_in: Duration | None = None) -> None:
        """The KI answered; so many results wait still.

        It is asked again `next_in` from now; None: at once if results wait, else after `CHECK`.
        """
        self.waiting = waiting
        self._failed, self.reason, self._pause = False, "", FIRST_PAUSE
        self.ever_answered = True
        if next_in is None:
            next_in = 0 if waiting else CHECK
        self._due = now + next_in

    def held_up(self, now: Instant) -> None:
        """The table could not take in what it was told: ask the KI again after a pause."""
        self._due = now + self._next_pause()

    def failed(self, now: Instant, reason: str, retry_s: float | None = None, *, by_ki: bool = False) -> None:
        """There was no answer, or none that counts; `by_ki`: it is the KI that asks for `retry_s`."""
        self._failed, self.reason = True, reason
        wait = self._next_pause()
        if retry_s is not None and retry_s > 0:
            most = LONGEST_ASKED_FOR if by_ki else LONGEST_FOR_A_STRANGER
            wait = max(wait, min(round(retry_s * SECOND), most))
        self._due = now + wait

    def _next_pause(self) -> Duration:
        pause = round(self._pause * (0.5 + 0.5 * self._chance()))
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return pause
