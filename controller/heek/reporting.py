"""Reporting: brings what waits in the journal's outbox to the KI, and what the KI tells back to the table.

It runs on the table's loop and does nothing there but hand over: the journal reads and writes on its own
thread, the link waits on its own. Whatever happens to the KI, no player notices more than a number on the
page.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from heek.clock import SECOND, Clock
from heek.errors import JournalError, LinkError, RecordError
from heek.journal import Acknowledged, Answered, Journal, JournalWriter, Result
from heek.ki.answers import (
    BatchAnswer,
    Refused,
    SignedIn,
    encode_introduction,
    encode_sign_in,
    read_batch_answer,
    read_signed_in,
    read_table_answer,
)
from heek.ki.envelope import batch, seal
from heek.ki.link import Link, Request
from heek.ki.outbox import Outbox
from heek.ki.table_key import TableKey

log: Final = logging.getLogger("heek")

_T = TypeVar("_T")

MOST_RECORDS: Final = 100
"""In one request."""


@dataclass(frozen=True, slots=True)
class KiStatus:
    """What a page shows of the KI."""

    link: str
    """`none`, `http` or `serial`."""
    state: str
    """`off` (there is no link), `unknown` (not asked yet), `up` or `down`."""
    waiting: int
    """Results that the KI has not answered for."""
    last_wall_s: float | None
    """When it last answered, by the wall clock; None: not since the start."""
    reason: str = ""
    """Why it is down."""
    service: str | None = None
    """The name of the KI that this table is enrolled at; None: at none yet."""
    claim: str | None = None
    """The code (`heek.ki.claim`) that an operator is to type in at the KI; None: none is wanted."""
    trouble: tuple[str, ...] = ()
    """What an operator should see to, a sentence each."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """What the link has counted since the start, by name."""

    @property
    def last(self) -> str | None:
        """The same on a clock's face: "14:02"."""
        last = self.last_wall_s
        return None if last is None else time.strftime("%H:%M", time.localtime(last))


@dataclass(frozen=True, slots=True)
class Reporter:
    """Who reports: the table's journal and key, and what it does with what the KI tells."""

    journal: JournalWriter
    key: TableKey
    name: str
    clock: Clock
    tell_points: Callable[[Mapping[str, int], Mapping[str, int]], None]
    """Gets what players hold, and the sums of our deltas that are in that."""


class Reporting:
    """The table's reporting over one link. Made on the loop; `start` begins."""

    def __init__(
        self,
        who: Reporter,
        link: Link,
        kind: str,
        *,
        most_bytes: int,
        on_change: Callable[[], None],
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`kind` is `http` or `serial`; `most_bytes` of records go into one request."""
        self._who = who
        self._link = link
        self._kind = kind
        self._most_bytes = most_bytes
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._outbox = Outbox(chance, who.clock.now(), 0)
        self._last_wall_s: float | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def status(self) -> KiStatus:
        """How it stands now."""
        outbox = self._outbox
        known = outbox.failing or outbox.ever_answered
        state = ("down" if outbox.failing else "up") if known else "unknown"
        return KiStatus(self._kind, state, outbox.waiting, self._last_wall_s, outbox.reason)

    def start(self) -> None:
        """Begin to report, on the loop."""
        self._task = self._loop.create_task(self._run(), name="reporting")

    def result_waits(self) -> None:
        """A result is in the journal; from any thread."""
        self._loop.call_soon_threadsafe(self._one_more)

    def ask_now(self) -> None:
        """There is a new reason to hope that the KI is there; from any thread."""
        self._loop.call_soon_threadsafe(self._hope)

    async def close(self) -> None:
        """Stop, and let go of the link; what waits goes on waiting in the journal."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._link.close()

    async def sign_in(self, player: str | None) -> SignedIn:
        """Sign in as a demonstration does, with a number or for a new one.

        Raises LinkError if the KI does not answer or refuses, JournalError if it cannot be kept.
        """
        who = read_signed_in(await self._link.ask(Request.PLAYER, encode_sign_in(player)))
        await self._ask_journal(lambda journal: journal.acknowledge([], {who.player: who.points}))
        self._who.tell_points({who.player: who.points}, {})
        return who

    def _one_more(self) -> None:
        self._outbox.result_waits(self._who.clock.now())
        self._woken.set()
        self._on_change()

    def _hope(self) -> None:
        self._outbox.link_came_up(self._who.clock.now())
        self._woken.set()

    async def _run(self) -> None:
        with contextlib.suppress(JournalError):
            self._outbox.waiting = await self._ask_journal(lambda journal: journal.waiting())
        while True:
            self._on_change()
            self._woken.clear()
            left = (self._outbox.due() - self._who.clock.now()) / SECOND
            if left > 0:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), left)
                continue
            await self._report()

    async def _report(self) -> None:
        """Ask once, and keep what was answered."""
        try:
            results = await self._ask_journal(lambda journal: journal.unsent(MOST_RECORDS, self._most_bytes))
            answer = await self._deliver(results)
            kept = await self._keep(results, answer)
        except (LinkError, JournalError, RecordError) as error:
            self._failed(str(error), error.retry_s if isinstance(error, LinkError) else None)
            return
        except Exception:
            # A mistake of ours in here must not end the match that is being played.
            log.exception("reporting to the KI failed")
            self._failed("reporting failed; see the log", None)
            return
        if self._outbox.failing:
            log.info("the KI answers again")
        self._last_wall_s = self._who.clock.wall_s()
        self._outbox.answered(self._who.clock.now(), kept.waiting)
        if answer.points or kept.deltas:
            self._who.tell_points(answer.points, kept.deltas)

    def _failed(self, reason: str, retry_s: float | None) -> None:
        if not self._outbox.failing:
            # No warning: a link that is away is an ordinary thing, and the page says so all the time.
            log.info("the KI: %s; results wait in the journal", reason)
        self._outbox.failed(self._who.clock.now(), reason, retry_s)

    async def _deliver(self, results: list[Result]) -> BatchAnswer:
        body = batch(seal(each.cbor, self._who.key.seed) for each in results if each.cbor is not None)
        try:
            return read_batch_answer(await self._link.ask(Request.RECORDS, body), len(results))
        except Refused as refused:
            if refused.code != "unknown_table":
                raise
        introduction = encode_introduction(self._who.key.seed, self._who.name)
        read_table_answer(await self._link.ask(Request.TABLE, introduction))
        log.info("the KI knows this table now, as %s", self._who.key.id.hex())
        return read_batch_answer(await self._link.ask(Request.RECORDS, body), len(results))

    async def _keep(self, results: list[Result], answer: BatchAnswer) -> Acknowledged:
        answers = []
        for result, said in zip(results, answer.answers, strict=True):
            if said.match not in (None, uuid.UUID(result.match).bytes):
                raise LinkError("the KI answered for other matches than it was asked; is it the right one?")
            if not said.verdict.success:
                log.warning(
                    "the KI says %s to the result of match %s: %s",
                    said.verdict.value,
                    result.match,
                    said.reason,
                )
            answers.append(Answered(result.match, said.verdict.value, said.reason))
        return await self._ask_journal(lambda journal: journal.acknowledge(answers, answer.points))

    async def _ask_journal(self, question: Callable[[Journal], _T]) -> _T:
        return await asyncio.wrap_future(self._who.journal.ask(question))
