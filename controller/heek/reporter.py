"""Who reports: what the parts of reporting need of the table, and whom they tell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from heek.boot import Boot
from heek.clock import Clock, Instant
from heek.journal import Journal, JournalWriter, Result, Ruling
from heek.ki.table_key import TableKey

_T = TypeVar("_T")


def _untold(_now_s: int, _at: Instant) -> None:
    """Nobody wants to know what time it is at the KI."""


def _unheard(_rulings: Sequence[Ruling]) -> None:
    """Nobody wants to know which matches are void or count again."""


@dataclass(frozen=True, slots=True)
class Reporter:
    """Who reports: the table's journal and key, and what it does with what the KI tells."""

    journal: JournalWriter
    key: TableKey
    name: str
    clock: Clock
    tell_points: Callable[[Mapping[str, int], Mapping[str, int]], None]
    """Gets what players hold, and the sums of our deltas that are in that."""
    bind: Callable[[Result], Result]
    """Gives a result of a key that the table has lost a place among the records of the present one; is called
    on the loop, and raises RecordError."""
    incarnation: bytes
    """8 bytes, new at each start."""
    boot: Boot
    players: Callable[[], Sequence[str]] = tuple
    """The KI numbers of those who sit at the table."""
    tell_time: Callable[[int, Instant], None] = _untold
    """Gets the KI's wall clock, and the instant at which it showed that or little more."""
    tell_rulings: Callable[[Sequence[Ruling]], None] = _unheard
    """Gets which of the table's matches an operator of the KI has just declared void, or restored."""

    async def ask_journal(self, question: Callable[[Journal], _T]) -> _T:
        """The answer of the journal, on whose thread the question runs; raises JournalError."""
        return await asyncio.wrap_future(self.journal.ask(question))
