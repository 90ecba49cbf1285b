"""Reporting: brings what waits in the journal's outbox to the KI, and what the KI tells back to the table.

It runs on the table's loop and does nothing there but hand over: the journal reads and writes on its own
thread, the link waits on its own, a code is worked out on a third. Whatever happens to the KI, no player
notices more than a number on the page.

What is asked next is for `heek.ki.agenda`, when for `heek.ki.outbox`, which results for `heek.ki.parcels`,
who is believed for `heek.ki.asking`, how things stand for `heek.syncing`. What follows from an
answer is written in one transaction of the journal before anything else is told of it, so a cut at any moment
leaves a table that asks the same question again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, TypeVar

from heek.clock import SECOND, Duration, Instant
from heek.errors import JournalError, LinkError, RecordError
from heek.journal import (
    Answered,
    KiNotes,
    Pin,
    Result,
)
from heek.ki.agenda import Agenda, Ask
from heek.ki.answers import BatchAnswer, Refused, SignedIn
from heek.ki.asking import Asking
from heek.ki.claim import Enrolled, claim_key
from heek.ki.enrolment import EVERY, Enrolment
from heek.ki.envelope import Envelope
from heek.ki.link import Link
from heek.ki.outbox import CHECK, Outbox
from heek.ki.parcels import Parcels
from heek.ki.settlement import words
from heek.reporter import Reporter
from heek.syncing import Syncing

log: Final = logging.getLogger("heek")

_T = TypeVar("_T")

MOST_RECORDS: Final = 100
"""In one request."""
MOST_REASONS: Final = 10
"""Logged of one outage: some tell a number that is another each time."""
MOST_NAME: Final = 24
"""Characters of a KI's name."""


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
    """The name of the KI that this table is enrolled at; None: at none, be it that the one which it believes
    does not know its key."""
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
class _Delivered:
    """Results as they were signed and sent, and what the KI answered."""

    envelopes: list[Envelope]
    answer: BatchAnswer


@dataclass(frozen=True, slots=True)
class _Ahead:
    """Results that were asked for while the ones before them were still under way."""

    results: list[Result]
    answer: asyncio.Task[_Delivered]


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
        first_sight: bool = False,
        chance: Callable[[], float] = random.random,
        draw: Callable[[int], int] = secrets.randbelow,
        slow: Executor | None = None,
    ) -> None:
        """`kind` is `http` or `serial`; `most_bytes` of records go into one request.

        With `first_sight` whoever answers first at the other end is the KI: on the same machine, or a wire.
        `draw(n)` gives a random number below n, for codes; `slow` works one out, for a tenth of a second.
        """
        self._who = who
        self._link = link
        self._kind = kind
        self._most_bytes = most_bytes
        self._on_change = on_change
        self._slow = slow
        self._own_slow: Executor | None = None
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._agenda = Agenda(first_sight=first_sight)
        self._asking = Asking(link, who.key, who.name)
        self._enrolment = Enrolment(draw)
        self._outbox = Outbox(chance, who.clock.now(), 0)
        self._parcels = Parcels(MOST_RECORDS)
        self._ahead: _Ahead | None = None
        self._syncing = Syncing(who, self._asking)
        self._notes: KiNotes | None = None
        self._unsaved: Pin | None = None
        """The KI that was found, while the journal cannot take it down."""
        self._unkept = ""
        """Why the journal does not take what the KI says; empty while it does."""
        self._logged: set[str] = set()
        """Why the KI does not answer, as far as it was logged of the outage that there is."""
        self._told: dict[str, int] | None = None
        """What the table was told of points, or read in the journal."""
        self._synced_at = who.clock.now()
        """When it was last asked how things stand."""
        self._last_wall_s: float | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def status(self) -> KiStatus:
        """How it stands now."""
        outbox, notes, link = self._outbox, self._notes, self._link.status()
        pin = self._unsaved or (notes.pin if notes is not None and notes.known else None)
        code = self._enrolment.shown(self._now())
        unkept = (f"the table cannot save what the KI says: {self._unkept}",) if self._unkept else ()
        known = outbox.failing or outbox.ever_answered
        state = ("down" if outbox.failing else "up") if known else "unknown"
        return KiStatus(
            self._kind,
            state,
            outbox.waiting,
            self._last_wall_s,
            outbox.reason,
            None if pin is None or code is not None else pin.name,
            code,
            (*unkept, *(() if notes is None else _trouble(notes)), *link.remarks),
            link.counters,
        )

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
        if self._ahead is not None:
            self._ahead.answer.cancel()
        if self._own_slow is not None:
            self._own_slow.shutdown(wait=False, cancel_futures=True)
        await self._link.close()

    async def sign_in(self, player: str | None) -> SignedIn:
        """Sign in as a demonstration does, with a number or for a new one.

        Raises LinkError if the KI does not answer or refuses, JournalError if it cannot be kept.
        """
        who = await self._asking.sign_in(player)
        await self._who.ask_journal(lambda journal: journal.acknowledge([], {who.player: who.points}))
        self._tell({who.player: who.points}, {})
        return who

    def _now(self) -> Instant:
        return self._who.clock.now()

    def _one_more(self) -> None:
        self._outbox.result_waits(self._now())
        self._woken.set()
        self._on_change()

    def _hope(self) -> None:
        self._outbox.link_came_up(self._now())
        self._woken.set()

    async def _run(self) -> None:
        with contextlib.suppress(JournalError):
            self._see(await self._read_notes())
        while True:
            self._on_change()
            self._woken.clear()
            left = (self._outbox.due() - self._now()) / SECOND
            if left > 0:
                # Not wait_for: woken and cancelled at once, it forgets that it was cancelled.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await self._woken.wait()
                continue
            await self._turn()

    # One question

    async def _turn(self) -> None:
        """Ask once, and keep what was answered."""
        ask, results = Ask.SYNC, []
        try:
            await self._save_pin()
            notes = await self._read_notes()
            self._see(notes)
            if self._agenda.pinned and not self._agenda.claiming and not self._parcels.probe:
                results = await self._choose()
            if results and self._ahead is None and self._now() - self._synced_at >= CHECK:
                # A KI that does not take what it is sent may have been put back from a backup all the same.
                # First and beside it, so that the pace at which it is tried stays what it is.
                results = []
                await self._sync(notes)
                results = await self._choose()
            ask = self._agenda.next(waiting=bool(results))
            next_in = await self._carry_out(ask, results, notes)
        except Refused as refused:
            self._refused(ask, results, refused)
        except JournalError as error:
            self._not_kept(str(error))
        except (LinkError, RecordError) as error:
            self._failed(ask, results, str(error), error.retry_s if isinstance(error, LinkError) else None)
        except Exception:
            # A mistake of ours in here must not end the match that is being played.
            log.exception("reporting to the KI failed")
            self._failed(ask, results, "reporting failed; see the log", None)
        else:
            if self._unsaved is None:
                self._unkept = ""
            if self._outbox.failing:
                log.info("the KI answers again")
                self._logged.clear()
            self._last_wall_s = self._who.clock.wall_s()
            self._outbox.answered(self._now(), self._outbox.waiting, next_in)

    async def _carry_out(self, ask: Ask, results: list[Result], notes: KiNotes) -> Duration | None:
        """Ask that; in how long to ask again, as `Outbox.answered` has it."""
        match ask:
            case Ask.INTRODUCTION:
                found = await self._asking.introduce()
                self._agenda.introduced()
                await self._found(found, "sight")
                return 0
            case Ask.CLAIM:
                return await self._claim()
            case Ask.RECORDS:
                await self._report(results)
                more = True
            case Ask.SYNC:
                # Nothing was sent while a code was shown.
                claiming = self._agenda.claiming
                more = await self._sync(notes) or claiming
                self._parcels.answered()
        self._agenda.reported()
        self._enrolment.over()
        return 0 if more else self._next_in(notes.waiting)

    def _next_in(self, waited: int) -> Duration:
        """When to ask again though nothing could be sent; `waited` results did not, or not yet."""
        if self._parcels.suspects or self._outbox.waiting > waited:
            return 0
        due = self._parcels.due()
        return CHECK if due is None else max(min(due - self._now(), CHECK), 0)

    def _refused(self, ask: Ask, results: list[Result], refused: Refused) -> None:
        if results and results[0].key != self._who.key.id and refused.code == "unknown_table":
            # It is the old key that is not known; how things stand tells what to do about it.
            self._synced_at = self._now() - CHECK
            self._failed(ask, [], str(refused), refused.retry_s, refused=True)
            return
        if self._agenda.refused(ask, refused.code) or (refused.code == "too_large" and len(results) > 1):
            self._parcels.failed(
                [each.match for each in results if len(results) > 1], self._now(), refused=True
            )
            self._outbox.link_came_up(self._now())
            return
        self._failed(ask, results, str(refused), refused.retry_s, refused=True)

    def _failed(
        self, ask: Ask, results: list[Result], reason: str, retry_s: float | None, *, refused: bool = False
    ) -> None:
        if reason not in self._logged and len(self._logged) < MOST_REASONS:
            self._logged.add(reason)
            # No warning: a link that is away is an ordinary thing, and the page says so all the time.
            log.info("the KI: %s; results wait in the journal", reason)
        self._agenda.failed(ask)
        self._parcels.failed([each.match for each in results], self._now(), refused=refused)
        self._outbox.failed(self._now(), reason, retry_s, by_ki=refused)

    def _not_kept(self, reason: str) -> None:
        """The card does not take what the KI said: no fault of its own, and it is asked the same again."""
        self._tell_unkept(reason)
        self._outbox.held_up(self._now())

    def _tell_unkept(self, reason: str) -> None:
        if not self._unkept:
            log.error("the table cannot save what the KI says: %s", reason)
        self._unkept = reason

    # Being known

    async def _claim(self) -> Duration:
        now = self._now()
        if self._enrolment.is_old(now):
            self._enrolment.over()
            self._agenda.code_is_old()
            return 0
        attempt = self._enrolment.attempt(now)
        if attempt.key is None:
            attempt.key = await self._work_out(attempt.code, attempt.nonce)
        found = await self._asking.claim(attempt.nonce, attempt.key)
        if found is None:
            if not attempt.heard:
                log.info("the KI does not know this table yet; its screen shows the code to type in there")
            attempt.heard = True
            if self._notes is not None and self._notes.known:
                # It has signed that it waits for the code: so it knows this key no more.
                await self._who.ask_journal(lambda journal: journal.no_longer_known(self._who.key.id))
                self._see(await self._read_notes())
            return EVERY
        # First of all: the code is used up, whether or not the card takes down by whom.
        self._agenda.enrolled()
        self._enrolment.over()
        await self._found(found, "code")
        return 0

    async def _work_out(self, code: str, nonce: bytes) -> bytes:
        if self._slow is None:
            self._slow = self._own_slow = ThreadPoolExecutor(1, "heek-claim")
        return await asyncio.wrap_future(
            self._slow.submit(claim_key, code, self._who.key.public, nonce), loop=self._loop
        )

    async def _found(self, found: Enrolled, how: str) -> None:
        known = self._notes.pin if self._notes is not None else None
        # It is shown on an OLED and told in a terminal.
        name = found.name if found.name.isprintable() and 0 < len(found.name) <= MOST_NAME else "KI"
        if known is None or (known.service, known.name) != (found.public, name) or how == "code":
            self._unsaved = Pin(found.public, name, how)
        await self._save_pin()

    async def _save_pin(self) -> None:
        pin = self._unsaved
        if pin is None:
            return
        self._asking.pinned = pin.service
        self._agenda.pinned = True
        try:
            await self._who.ask_journal(lambda journal: journal.pin_service(pin, self._who.key.id))
        except JournalError as error:
            # It counts all the same, and is written with the first turn in which the card takes it.
            self._tell_unkept(str(error))
            return
        self._unsaved = None
        log.info("this table, %s, is enrolled at %s", self._who.key.id.hex(), pin.name)
        self._see(await self._read_notes())

    # Results

    async def _choose(self) -> list[Result]:
        """The results to send now."""
        if self._ahead is not None:
            return self._ahead.results
        parcels, most = self._parcels, self._most_bytes
        passed = list(parcels.passed)
        results = await self._who.ask_journal(lambda journal: journal.unsent(parcels.size, most, passed))
        if results or not (due := parcels.due_now(self._now())):
            return results
        results = await self._who.ask_journal(lambda journal: journal.unsent(parcels.size, most, among=due))
        if not results:
            parcels.taken(due)
        return results

    async def _report(self, results: list[Result]) -> None:
        ahead, self._ahead = self._ahead, None
        asked = self._ask_for(results) if ahead is None else ahead.answer
        try:
            self._ahead = await self._ask_ahead(results)
            await self._keep(results, await asked)
        except asyncio.CancelledError:
            asked.cancel()
            raise
        except Exception:
            asked.cancel()
            await self._drop_ahead()
            raise

    def _ask_for(self, results: list[Result]) -> asyncio.Task[_Delivered]:
        task = self._loop.create_task(self._deliver(results))
        # It may be that nobody looks at it any more.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    async def _deliver(self, results: list[Result]) -> _Delivered:
        # A hundred signatures on a small Pi would hold the table's loop up for longer than a blink.
        envelopes = await self._who.ask_journal(lambda _: [self._sealed(each) for each in results])
        return _Delivered(envelopes, await self._asking.records(envelopes))

    def _sealed(self, result: Result) -> Envelope:
        assert result.cbor is not None
        if result.key is None or result.signature is None or result.key == self._who.key.id:
            return self._asking.seal(result.cbor)
        return Envelope(result.key, result.cbor, result.signature)

    async def _ask_ahead(self, results: list[Result]) -> _Ahead | None:
        """Of a backlog over a serial line the next ones, so that the wire is busy while the KI thinks.

        Not while a record is looked for that does harm, nor over HTTP, where one question follows the other.
        """
        parcels, most = self._parcels, self._most_bytes
        if self._kind != "serial" or parcels.suspects or parcels.size < MOST_RECORDS:
            return None
        besides = [*parcels.passed, *(each.match for each in results)]
        following = await self._who.ask_journal(lambda journal: journal.unsent(parcels.size, most, besides))
        return _Ahead(following, self._ask_for(following)) if following else None

    async def _drop_ahead(self) -> None:
        """What was asked ahead is asked again later; the KI says "duplicate" to it."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            # Not cancelled: that would end the line's session. Its answer comes soon, or the line is down.
            await asyncio.wait([ahead.answer])

    async def _keep(self, results: list[Result], delivered: _Delivered) -> None:
        answer, answers = delivered.answer, []
        for result, sent, said in zip(results, delivered.envelopes, answer.answers, strict=True):
            if said.match not in (None, uuid.UUID(result.match).bytes):
                raise LinkError("the KI answered for other matches than it was asked; is it the right one?")
            if not said.verdict.success:
                log.warning(
                    "the KI says %s to the result of match %s: %s",
                    said.verdict.value,
                    result.match,
                    said.reason,
                )
            answers.append(Answered(result.match, said.verdict.value, said.reason, sent.signature))
        kept = await self._who.ask_journal(lambda journal: journal.acknowledge(answers, answer.points))
        self._parcels.taken([each.match for each in results])
        self._outbox.waiting = kept.waiting
        self._tell(answer.points, kept.deltas)

    # How things stand

    async def _sync(self, notes: KiNotes) -> bool:
        """Ask how things stand; whether there is more to ask at once."""
        self._synced_at = self._now()
        stands = await self._syncing.ask(notes)
        self._outbox.waiting = stands.waiting
        self._tell(stands.points, stands.deltas)
        if stands.rulings:
            self._who.tell_rulings(stands.rulings)
        for key in stands.unknown:
            await self._syncing.sign_anew(key)
        self._see(await self._read_notes())
        return stands.more

    # What is known

    async def _read_notes(self) -> KiNotes:
        if self._told is None:
            self._told = await self._who.ask_journal(lambda journal: journal.told_points())
        return await self._who.ask_journal(lambda journal: journal.ki_notes(self._who.key.id))

    def _see(self, notes: KiNotes) -> None:
        self._notes = notes
        self._outbox.waiting = notes.waiting
        if notes.pin is not None and self._unsaved is None:
            self._asking.pinned = notes.pin.service
            self._agenda.pinned = True

    def _tell(self, points: Mapping[str, int], deltas: Mapping[str, int]) -> None:
        """Tell the table what is news to it: what it is told it keeps, all day."""
        told = {} if self._told is None else self._told
        changed = {player: held for player, held in points.items() if told.get(player) != held}
        if changed or deltas:
            told.update(changed)
            self._who.tell_points(changed, deltas)


def _trouble(notes: KiNotes) -> tuple[str, ...]:
    """What an operator should see to."""
    trouble = []
    settled = None if notes.settled == notes.acknowledged else words(notes.settled)
    if settled is not None:
        trouble.append(settled)
    if notes.refused:
        results = "result" if notes.refused == 1 else "results"
        trouble.append(f"the KI does not count {notes.refused} {results} of this table; its own log says why")
    if notes.strange_news:
        trouble.append(
            f"the KI has told {notes.strange_news} news that this version cannot read; update heek"
        )
    return tuple(trouble)
