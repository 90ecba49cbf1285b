"""Which view may be shown: the newest that the journal has, or, when it does not answer, one that says so.

Whatever a view shows of a reveal, a seat change or a result is shown only after the journal has it on the
disk; what comes after waits behind it, so nothing is shown out of order. A disk that does not answer holds
nobody up for longer than `PATIENCE`: then the view is shown with the mark that it is not saved.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Final

from heek.clock import SECOND, Duration, Instant
from heek.journal import WriterStatus
from heek.session.view import View

log: Final = logging.getLogger("heek")

PATIENCE: Final[Duration] = SECOND
"""How long lamps and panels wait for the journal; then they show what happened, and that it is not saved."""


@dataclass(frozen=True, slots=True)
class _Commit:
    """A view, and what has to be on the disk before it is shown."""

    view: View
    future: Future[Any] | None = None
    at: Instant = 0

    @property
    def done(self) -> bool:
        return self.future is None or self.future.done()


class CommittedViews:
    """The views of one table on their way to be shown.

    `shown` is the one that lamps and panels show; `saving` says whether the journal keeps what happens.
    """

    def __init__(self, view: View, status: Callable[[], WriterStatus], journal: tuple[str, ...] = ()) -> None:
        """`view` is shown at once; `status` tells how writing goes, `journal` what else of the journal."""
        self._status = status
        self._commits: deque[_Commit] = deque()
        self._overdue: _Commit | None = None
        """The last thing that was shown before the journal had it."""
        self._refused = False
        self._journal = journal
        self.shown = replace(view, journal=journal) if journal else view
        self.saving = True

    @property
    def waiting(self) -> bool:
        """Some view is not shown yet."""
        return bool(self._commits)

    def add(self, view: View, future: Future[Any] | None = None, at: Instant = 0) -> None:
        """A newer view; with `future`, since `at`, it waits for the journal."""
        self._commits.append(_Commit(view, future, at))

    def refuse(self) -> None:
        """The journal has refused something for good: from here on nothing counts as saved."""
        self._refused = True

    def tell(self, sentence: str) -> None:
        """Something an operator should know of the journal; it is shown from now on."""
        if sentence not in self._journal:
            self._journal = (*self._journal, sentence)
            self.shown = replace(self.shown, journal=self._journal)

    def advance(self, now: Instant, awake_since: Instant) -> None:
        """Show what the journal has, or what it has been too slow to take: nobody may play in the dark.

        What the program waits for has had no chance to come before it was awake.
        """
        shown = None
        while self._commits and (
            self._commits[0].done or self._impatient(self._commits[0], now, awake_since)
        ):
            commit = self._commits.popleft()
            shown = commit.view
            if not commit.done:
                self._overdue = commit
        if self._overdue is not None and self._overdue.done:
            self._overdue = None
        status = self._status()
        saving = status.saving and not self._refused and self._overdue is None
        if saving is not self.saving:
            self.saving = saving
            reason = status.reason or "the disk does not answer, or has refused; see above"
            log.log(
                logging.INFO if saving else logging.ERROR,
                "the journal is written again" if saving else f"NOT SAVING, the table plays on: {reason}",
            )
            shown = self.shown if shown is None else shown
        if shown is not None:
            if shown.not_saving is saving or shown.journal != self._journal:
                shown = replace(shown, not_saving=not saving, journal=self._journal)
            self.shown = shown

    def due(self, awake_since: Instant) -> Instant | None:
        """When the first of those that wait will be shown whatever the journal does; None: none waits."""
        return max(self._commits[0].at, awake_since) + PATIENCE if self._commits else None

    def _impatient(self, commit: _Commit, now: Instant, awake_since: Instant) -> bool:
        """The disk does not answer: it has had its time, or was given it up already."""
        return self._overdue is not None or now - max(commit.at, awake_since) >= PATIENCE
