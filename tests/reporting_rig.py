"""A table's journal with a reporting on it, over a link to a KI in memory, in virtual time."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from heek.boot import Boot
from heek.clock import SECOND, ManualClock
from heek.errors import LinkError
from heek.journal import Batch, InlineExecutor, Journal, JournalWriter, KiNotes, Ruling
from heek.ki.link import LinkStatus, Request
from heek.ki.table_key import TableKey, table_key
from heek.record_chain import RecordChain, bind_results
from heek.reporter import Reporter
from heek.reporting import KiStatus, Reporting
from heek.session.state import MatchResult
from heek.simulator.virtual_loop import VirtualLoop
from tests.journal.scripts import entry, label
from tests.signing_ki import SigningKi
from tests.test_record_chain import a_match

_T = TypeVar("_T")

ROUND_TRIP_S = 0.05


@dataclass
class ToKi:
    """A link to it, and what has been asked over it."""

    ki: SigningKi
    clock: ManualClock
    up: bool = True
    lose_answers: int = 0
    retry_s: float | None = None
    """What a KI that is away asks for."""
    pinned: bytes | None = None
    asked: list[tuple[float, Request, int]] = field(default_factory=list)
    instead: Callable[[Request, bytes], bytes] | None = None
    """Answers in the KI's place."""
    under_way: int = 0
    most_under_way: int = 0
    """Questions at once, so far."""

    @property
    def requests(self) -> list[Request]:
        return [request for _, request, _ in self.asked]

    async def ask(self, request: Request, body: bytes) -> bytes:
        self.asked.append((self.clock.now() / SECOND, request, len(body)))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await asyncio.sleep(ROUND_TRIP_S)
        finally:
            self.under_way -= 1
        if not self.up:
            error = LinkError("nobody there")
            error.retry_s = self.retry_s
            raise error
        answer = (self.instead or self.ki.answer)(request, body)
        if self.lose_answers:
            self.lose_answers -= 1
            raise LinkError("the answer was lost")
        return answer

    def status(self) -> LinkStatus:
        return LinkStatus(self.up, "", {"asked": len(self.asked)})

    async def close(self) -> None:
        """Nothing to let go of."""


class Rig:
    """One start of a table's reporting; seconds pass when told."""

    def __init__(
        self,
        folder: Path,
        ki: SigningKi | None = None,
        *,
        seed: int = 1,
        incarnation: int = 1,
        first_sight: bool = True,
        wall_s: float = 1_900_000_000.0,
        most_bytes: int = 1000,
        chance: Callable[[], float] = lambda: 1.0,
        kind: str = "http",
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.clock = ManualClock(wall_s=wall_s)
        self.loop = VirtualLoop(self.clock)
        self.ki = SigningKi() if ki is None else ki
        self.link = ToKi(self.ki, self.clock)
        self.key: TableKey = table_key(folder, lambda: bytes([seed] * 32))
        self.journal = JournalWriter(folder, InlineExecutor(), self.clock)
        self.told: list[tuple[dict[str, int], dict[str, int]]] = []
        self.times: list[tuple[int, int]] = []
        self.rulings: list[Ruling] = []
        self.changes = 0
        self.players: list[str] = []
        newest = self.ask(lambda journal: bind_results(journal, self.key))
        boot = Boot("b", "none")
        self.chain = RecordChain(self.key, "Table 1", bytes([incarnation] * 8), boot, newest)
        who = Reporter(
            journal=self.journal,
            key=self.key,
            name="Table 1",
            clock=self.clock,
            tell_points=lambda points, deltas: self.told.append((dict(points), dict(deltas))),
            bind=self.chain.bind,
            incarnation=bytes([incarnation] * 8),
            boot=boot,
            players=lambda: self.players,
            tell_time=lambda now_s, at: self.times.append((now_s, at)),
            tell_rulings=self.rulings.extend,
        )

        async def begin() -> Reporting:
            return Reporting(
                who,
                self.link,
                kind,
                most_bytes=most_bytes,
                on_change=self._changed,
                first_sight=first_sight,
                chance=chance,
                draw=random.Random(incarnation).randrange,
                slow=InlineExecutor(),
            )

        self.reporting = self.loop.run_until_complete(begin())

    def _changed(self) -> None:
        self.changes += 1

    def ask(self, question: Callable[[Journal], _T]) -> _T:
        return self.journal.ask(question).result()

    def notes(self) -> KiNotes:
        return self.ask(lambda journal: journal.ki_notes(self.key.id))

    def start(self) -> None:
        self.reporting.start()

    def match(self, number: int) -> bytes:
        """A match is won, and its result is in the journal; its id."""
        return self.won(a_match(number))

    def won(self, match: MatchResult) -> bytes:
        seq = self.ask(lambda journal: journal.last_seq()) + 1
        result = self.chain.add(match, self.clock)
        self.journal.submit(
            Batch((entry(seq, "match_won", match=result.match),), True, b"{}", label(seq), (result,))
        ).result()
        self.reporting.result_waits()
        return uuid.UUID(result.match).bytes

    def run(self, seconds: float) -> KiStatus:
        self.loop.run_until_complete(asyncio.sleep(seconds))
        return self.reporting.status

    def close(self) -> None:
        self.loop.run_until_complete(self.reporting.close())
        self.journal.close()
        self.loop.close()


def a_numbered_match(number: int) -> MatchResult:
    """A match of guests; each number has an id of its own."""
    return replace(a_match(0), match=str(uuid.UUID(int=(number << 80) | (4 << 76) | (2 << 62) | 7)))
