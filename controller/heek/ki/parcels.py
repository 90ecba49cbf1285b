"""Which of the results that wait go into the next request, so that one bad one never holds up the rest.

A request that fails is cut in half for the next time: the whole may have been too large for the KI, a proxy
or a slow line, or one record in it may be what the KI fails on. So in the end a record that does harm goes
alone; then it is **passed over**: all others go first. If it was the KI itself that refused, it is tried
again ever more rarely.

If there was just no answer, the link may be down, and then all should go on waiting in their order. So
something else is asked first (`probe`). If that is answered and the record, once more, is not, it is the
record; it is tried again when nothing else is left, at once and then with pauses, since it may be what a KI
falls over. None is ever given up: by a refusal, which nobody signs, nothing may be lost.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from heek.clock import SECOND, Duration, Instant

FIRST_PAUSE: Final[Duration] = 5 * SECOND
LONGEST_PAUSE: Final[Duration] = 600 * SECOND
FIRST_SILENCE: Final[Duration] = 2 * SECOND
LONGEST_SILENCE: Final[Duration] = 60 * SECOND
"""The pauses after no answer: shorter, since it may have been lost."""
MOST_PASSED: Final = 1000
"""Beyond it the KI refuses whatever it is sent, and there is nothing to learn from a further one."""


@dataclass(frozen=True, slots=True)
class _Passed:
    due: Instant
    pause: Duration
    refused: bool
    """If not, there was no answer, and it need not be this one's fault."""


class Parcels:
    """How many results go at once, and which ones not now."""

    def __init__(self, most: int) -> None:
        """`most` results at a time when all is well."""
        self._most = most
        self._size = most
        self._passed: dict[str, _Passed] = {}
        self._suspect: str | None = None
        """The match that went alone and got no answer."""
        self._answered = False
        """Something else has been answered since."""

    @property
    def suspects(self) -> bool:
        """Whether a record has got no answer that went alone, and is to be tried once more."""
        return self._suspect is not None

    @property
    def probe(self) -> bool:
        """Whether something else is to be asked before results are sent again."""
        return self._suspect is not None and not self._answered

    @property
    def size(self) -> int:
        """How many results the next request has at most."""
        return self._size

    @property
    def passed(self) -> Collection[str]:
        """The matches that are passed over while others wait."""
        return self._passed.keys()

    def due(self) -> Instant | None:
        """When the first of the matches that are passed over is to be tried; None: there are none."""
        return min((each.due for each in self._passed.values()), default=None)

    def due_now(self, now: Instant) -> list[str]:
        """The matches to try when no others are left: one that was refused, alone, or some of the rest."""
        due = [match for match, each in self._passed.items() if each.due <= now]
        if due and self._passed[due[0]].refused:
            return due[:1]
        return [match for match in due if not self._passed[match].refused][: self._size]

    def answered(self) -> None:
        """The KI has answered to something else."""
        self._answered = True

    def taken(self, matches: Collection[str]) -> None:
        """The KI has answered for these, one by one, or they wait no more."""
        for match in matches:
            self._passed.pop(match, None)
        self._suspect = None
        self._size = min(2 * self._size, self._most)

    def failed(self, matches: Collection[str], now: Instant, *, refused: bool) -> None:
        """A request with these, or with none at all, came to nothing; `refused`: by the KI's own answer."""
        suspect, self._suspect = self._suspect, None
        if len(matches) > 1:
            self._size = max(len(matches) // 2, 1)
            return
        for match in matches:
            before = self._passed.get(match)
            if before is not None and before.refused is not refused:
                before = None
            if refused:
                pause = FIRST_PAUSE if before is None else min(2 * before.pause, LONGEST_PAUSE)
                self._pass_over(match, _Passed(now + pause, pause, refused))
            elif suspect == match and self._answered:
                pause = 0 if before is None else min(max(2 * before.pause, FIRST_SILENCE), LONGEST_SILENCE)
                self._pass_over(match, _Passed(now + pause, pause, refused))
            else:
                self._suspect, self._answered = match, False

    def _pass_over(self, match: str, passed: _Passed) -> None:
        # Put in anew, at the end: among those that are due each has its turn.
        if self._passed.pop(match, None) is not None or len(self._passed) < MOST_PASSED:
            self._passed[match] = passed
