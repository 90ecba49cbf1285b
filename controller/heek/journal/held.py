"""Results that the card does not take, and answers to them: what an outbox is while it is in memory alone.

A full or read-only card must not keep a match from the KI for hours. So a result that waits to be written
is sent all the same, and what the KI says to it is kept here until both are written together. Should the
process die before, the KI holds a match that the journal does not; its digest tells.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from heek.journal.records import Answered, Result

TAKEN: Final = ("accepted", "duplicate")
"""What the KI says of a match that it holds."""


class Held:
    """The part of the outbox that is in memory alone."""

    def __init__(self) -> None:
        self.results: dict[str, Result] = {}
        """By match, oldest first: not in the file yet."""
        self.answers: dict[str, tuple[Answered, bytes | None]] = {}
        """By match, with the key id in its record: not in the file yet, be the result there or here."""

    def any(self) -> bool:
        """Whether there is anything in it."""
        return bool(self.results or self.answers)

    def hold(self, results: Iterable[Result]) -> None:
        """These could not be written."""
        self.results.update({each.match: each for each in results})

    def waiting(self) -> list[Result]:
        """Those that the KI has not answered for, oldest first; what could be made no record is none."""
        return [
            each
            for each in self.results.values()
            if each.match not in self.answers and (each.cbor is not None or each.key is None)
        ]

    def unsent(self, passing: Collection[str], among: Collection[str] | None) -> Iterator[Result]:
        """Those that can be sent."""
        for each in self.waiting():
            if each.cbor is not None and each.match not in passing and (among is None or each.match in among):
                yield each

    def owed(self) -> list[Answered]:
        """Answers that are to be written to results which are in the file."""
        return [answer for match, (answer, _) in self.answers.items() if match not in self.results]

    def taken(self, key: bytes) -> list[str]:
        """The matches of this key id that the KI has said it holds."""
        return [match for match, (answer, of) in self.answers.items() if of == key and answer.state in TAKEN]

    def written(self, matches: Iterable[str]) -> None:
        """These are in the file, with their answers if there were any."""
        for match in matches:
            self.results.pop(match, None)
            self.answers.pop(match, None)
