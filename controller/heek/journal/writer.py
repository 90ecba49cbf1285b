"""Writes batches in order on one thread, and keeps what the card does not take until it does.

The table must play on whether its card is full, read-only or broken. So a batch that cannot be
written is kept in memory, its future says so at once (`NotSaved`), and it is tried again, first and
in order, before the next one: the numbers in the file never have a gap, and nothing is lost while the
process lives. Only when the card stays away for hours is memory bounded: past `limit` events the
bodies of further ones are given up, and `entry_lost` stands for each number when writing works
again. Batches with a result are kept whole, up to `MOST_RESULTS` of them; they are sent to the KI meanwhile
(`heek.journal.held`), and past that number the newest are given up, each with a line in the log.

A page of the file that turns out to be broken is another matter: no attempt would ever succeed, and all that
comes after it would be lost with the process. So the damaged files are set aside at once, while the table
runs, and the batch is written into a new journal with what could be read (`heek.journal.set_aside`). A card
that damages that one too is left more and more alone.

A state folder that cannot be written at the start is no reason not to play either: the journal is then what
could be read of it, in memory (`heek.journal.unsaved`), and its folder is tried again, with a pause that
doubles up to `LONGEST_REOPEN`. All that has been kept until then is written into it.

Everything runs on the executor that is passed in: one worker thread for a real table, in which the
database connection then lives, or `InlineExecutor` under virtual time.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, ParamSpec, TypeAlias, TypeVar

from heek.clock import SECOND, Clock, Duration, Instant, seconds_text
from heek.errors import BatchRefused, JournalDamaged, JournalError, JournalUnwritable, KeyFileError
from heek.journal.records import Batch, Entry, SnapshotLabel
from heek.journal.salvage import Salvaged
from heek.journal.store import Journal, open_or_salvage
from heek.journal.unsaved import UnsavedJournal, open_unsaved

log: Final = logging.getLogger("heek")

_P = ParamSpec("_P")
_T = TypeVar("_T")

LIMIT: Final = 10_000
"""Events kept in memory: more than two hours of lively play, some three megabytes."""

MOST_RESULTS: Final = 1_000
"""Results kept in memory while nothing is saved: days of play without a break."""

RETRY: Final[Duration] = SECOND
"""No attempt sooner than this after one that failed, so that a broken card does not stall each press."""

FIRST_REOPEN: Final[Duration] = 5 * SECOND
"""Until a folder that could not be written at the start is tried again; then twice as long each time."""
LONGEST_REOPEN: Final[Duration] = 60 * SECOND

FIRST_PAUSE: Final[Duration] = 60 * SECOND
"""From one damaged file that was set aside to the next; then twice as long each time."""
LONGEST_PAUSE: Final[Duration] = 24 * 3600 * SECOND


@dataclass(frozen=True, slots=True)
class Written:
    """The batch is in the journal, and on the card if it asked for that."""

    last_seq: int


@dataclass(frozen=True, slots=True)
class NotSaved:
    """The batch is kept in memory and will be tried again; should the process die now, it is gone."""

    reason: str


Outcome: TypeAlias = Written | NotSaved


@dataclass(frozen=True, slots=True)
class WriterStatus:
    """How writing goes."""

    failing_since: Instant | None = None
    """When the first batch that is still unwritten failed; None: all is written."""
    reason: str = ""
    """What the first failure said; empty when all is written."""
    waiting: int = 0
    """Events that are not in the journal yet."""
    lost: int = 0
    """Events since the start whose bodies were given up for lack of memory."""
    lost_results: int = 0
    """Results since the start that were given up for lack of memory."""

    @property
    def saving(self) -> bool:
        """Whether everything so far is in the journal."""
        return self.failing_since is None


class InlineExecutor(Executor):
    """Runs each call at once, on the caller's thread: the same code under virtual time."""

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Run the call and return its future, finished already."""
        future: Future[_T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@dataclass(slots=True)
class _Gap:
    """A run of events given up for lack of memory, and the newest state that came with them."""

    first: int
    last: int
    at_ns: Instant
    snapshot: bytes | None
    label: SnapshotLabel

    def take_state(self, batch: Batch) -> None:
        """The state of a later batch goes in place of ours."""
        if batch.snapshot is not None:
            self.snapshot, self.label = batch.snapshot, batch.label

    def batch(self) -> Batch:
        def lost(seq: int) -> Entry:
            body = f'{{"seq":{seq},"at":{seconds_text(self.at_ns)},"event":"entry_lost"}}'
            return Entry(seq, self.at_ns, "entry_lost", body)

        entries = tuple(lost(seq) for seq in range(self.first, self.last + 1))
        return Batch(entries, True, self.snapshot, self.label)


class JournalWriter:
    """The daemon's hand on the journal. `submit` and `status` may be used from any thread."""

    def __init__(
        self,
        state_dir: Path,
        executor: Executor,
        clock: Clock,
        *,
        limit: int = LIMIT,
        most_results: int = MOST_RESULTS,
        opener: Callable[[Path], Journal] = open_or_salvage,
    ) -> None:
        """Open the journal on the executor's thread; raises JournalError as `open_or_salvage` does.

        But a folder that cannot be written is begun without (`in_memory`), if what is there can be read.
        The executor must run one call at a time, in order, always on the same thread.
        """
        self._executor = executor
        self._clock = clock
        self._limit = limit
        self._most_results = most_results
        self._backlog: deque[Batch | _Gap] = deque()
        self._waiting = 0
        self._lost = self._lost_results = 0
        self._held = 0
        """Results among what is kept."""
        self._tried_at: Instant = 0
        self._status = WriterStatus()
        self._state_dir = state_dir
        self._opener = opener
        self._unsaved: UnsavedJournal | None = None
        """What stands for the journal until its folder can be written; None: nothing has to."""
        self._opened: Callable[[Journal], None] | None = None
        self._reopen_at: Instant = clock.now() + FIRST_REOPEN
        self._reopen_pause = FIRST_REOPEN
        self._journal: Journal
        try:
            self._journal = executor.submit(opener, state_dir).result()
        except JournalUnwritable as error:
            self._journal = self._unsaved = executor.submit(open_unsaved, state_dir, error).result()
            self._status = WriterStatus(clock.now(), str(error))
        self._tail = executor.submit(self._journal.last_seq).result()
        self._anew_at: Instant | None = None
        self._pause = FIRST_PAUSE

    @property
    def status(self) -> WriterStatus:
        """How writing goes; one consistent value."""
        return self._status

    @property
    def in_memory(self) -> bool:
        """The state folder could not be written since the start: all is in memory alone."""
        return self._unsaved is not None

    def when_opened(self, call: Callable[[Journal], None]) -> None:
        """Have this called, on the journal's thread, with the folder's journal once that can be written.

        Before anything is. If it raises JournalError or KeyFileError, all stays in memory, and that is told.
        """
        self._opened = call

    @property
    def salvaged(self) -> Salvaged | None:
        """What came over of a damaged journal, at the start or since; None: it was sound."""
        return self._journal.salvaged

    def submit(self, batch: Batch) -> Future[Outcome]:
        """Write a batch after all before it.

        The future resolves as soon as it is known whether the batch is written; it raises BatchRefused
        if the batch itself is wrong, which nothing but a mistake in this program can cause.
        """
        return self._executor.submit(self._accept, batch)

    def ask(self, question: Callable[[Journal], _T]) -> Future[_T]:
        """Have something read from the journal, on its own thread, after all batches before."""

        def asked() -> _T:
            try:
                return question(self._journal)
            except JournalDamaged as error:
                self._begin_anew(error)
                self._drain(force=True)
                return question(self._journal)

        return self._executor.submit(asked)

    def retry(self) -> Future[WriterStatus]:
        """Try again what is not written, without a new batch: for a timer while `status` is not saving."""

        def attempt() -> WriterStatus:
            self._drain(force=False)
            return self._status

        return self._executor.submit(attempt)

    def close(self) -> WriterStatus:
        """Try the rest one last time and close the journal; what it returns says if anything is lost."""

        def finish() -> WriterStatus:
            try:
                self._drain(force=True)
            finally:
                self._journal.close()
            return self._status

        return self._executor.submit(finish).result()

    def abandon(self) -> None:
        """Let go of the journal as the death of the process would; what is in memory is gone."""
        self._executor.submit(self._journal.abandon).result()

    # What follows runs on the executor's thread alone.

    def _accept(self, batch: Batch) -> Outcome:
        self._drain(force=False)
        if not self._backlog:
            try:
                self._append(batch)
            except BatchRefused:
                raise
            except JournalError as error:
                self._tried_at = self._clock.now()
                self._keep(batch)
                self._report(str(error))
                return NotSaved(str(error))
            self._tail = self._journal.last_seq()
            return Written(self._tail)
        self._keep(batch)
        self._report(self._status.reason)
        return NotSaved(self._status.reason)

    def _keep(self, batch: Batch) -> None:
        """Put a batch behind what waits already; raises BatchRefused if its numbers do not go on from it."""
        first = batch.entries[0].seq if batch.entries else None
        if first is not None and first != self._tail + 1:
            raise BatchRefused(
                f"event {first} cannot come after {self._tail}, which waits to be written; "
                "numbers go up by one without gaps"
            )
        last = self._backlog[-1] if self._backlog else None
        if batch.results and self._held + len(batch.results) > self._most_results:
            for each in batch.results:
                log.error(
                    "the result of match %s is given up: %d wait for a card that takes none",
                    each.match,
                    self._held,
                )
            self._lost_results += len(batch.results)
            batch = replace(batch, results=())
        if batch.results:
            self._held += len(batch.results)
            self._journal.hold(batch.results)
        if batch.results or (batch.entries and self._waiting + len(batch.entries) <= self._limit):
            self._backlog.append(batch)
        elif batch.entries:
            self._lost += len(batch.entries)
            if isinstance(last, _Gap):
                last.last = batch.entries[-1].seq
                last.take_state(batch)
            else:
                first_lost, final = batch.entries[0], batch.entries[-1]
                gap = _Gap(first_lost.seq, final.seq, first_lost.at_ns, batch.snapshot, batch.label)
                self._backlog.append(gap)
        elif isinstance(last, _Gap):
            last.take_state(batch)
        elif batch.snapshot is not None:
            if isinstance(last, Batch) and not last.entries and not last.results:
                # A state alone: only the newest of several counts.
                self._backlog.pop()
            self._backlog.append(batch)
        if batch.entries:
            self._tail = batch.entries[-1].seq
            self._waiting += len(batch.entries)

    def _drain(self, *, force: bool) -> None:
        """Write what is kept, oldest first, as far as the card takes it."""
        if self._unsaved is not None:
            if not self._open(self._unsaved, force=force):
                return
            force = True
        if not self._backlog or (not force and self._clock.now() - self._tried_at < RETRY):
            return
        self._tried_at = self._clock.now()
        while self._backlog:
            oldest = self._backlog[0]
            batch = oldest.batch() if isinstance(oldest, _Gap) else oldest
            try:
                self._append(batch, again=True)
            except BatchRefused:
                # A match twice: it can never be written, so neither can what follows. Keep it and say so.
                raise
            except JournalError:
                break
            self._backlog.popleft()
            self._waiting -= len(batch.entries)
            self._held -= len(batch.results)
        self._report(self._status.reason)

    def _open(self, unsaved: UnsavedJournal, *, force: bool) -> bool:
        """Go on in the folder's own journal, if it can be written by now."""
        now = self._clock.now()
        if now < self._reopen_at and not force:
            return False
        self._reopen_at = now + self._reopen_pause
        self._reopen_pause = min(2 * self._reopen_pause, LONGEST_REOPEN)
        unsaved.let_go()
        try:
            journal = self._opener(self._state_dir)
        except JournalError as error:
            unsaved.hold_on()
            if not isinstance(error, JournalUnwritable):
                self._tell_reason(str(error))
            return False
        try:
            unsaved.expect_same(journal)
            if self._opened is not None:
                self._opened(journal)
        except (JournalError, KeyFileError) as error:
            journal.close()
            unsaved.hold_on()
            self._tell_reason(str(error))
            return False
        journal.take_held(unsaved)
        unsaved.abandon()
        self._journal, self._unsaved = journal, None
        self._report(self._status.reason)
        return True

    def _tell_reason(self, reason: str) -> None:
        """Why all stays in memory is another reason now than it was."""
        if reason != self._status.reason:
            log.error("still not saving: %s", reason)
            self._status = replace(self._status, reason=reason)

    def _append(self, batch: Batch, *, again: bool = False) -> None:
        """Write one batch, into a new journal if the file turns out to be damaged; raises as that does.

        With `again` it may be in the file already.
        """
        try:
            if again and self._there_already(batch):
                self._journal.in_file_after_all(batch.results)
            else:
                self._journal.append(batch)
        except JournalDamaged as error:
            self._begin_anew(error)
            # A commit that was reported as failed may have been made: then its results have come over.
            there = self._journal.there([each.match for each in batch.results])
            kept = tuple(each for each in batch.results if each.match not in there)
            self._journal.in_file_after_all([each for each in batch.results if each.match in there])
            self._journal.append(replace(batch, results=kept))

    def _begin_anew(self, damage: JournalDamaged) -> None:
        """Go on in a new journal; raises the damage if that was done a short while ago, or JournalError."""
        now, usable = self._clock.now(), self._journal.usable
        pause = self._pause if usable else FIRST_PAUSE
        if self._anew_at is not None and now - self._anew_at < pause:
            raise damage
        if self._anew_at is not None and usable:
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._anew_at = now
        # Without what is to be done about it: that is done here.
        log.error("%s", str(damage).partition(";")[0])
        self._journal.begin_anew(str(damage), self._tail - self._waiting)
        if self.salvaged is not None:
            log.error("%s", self.salvaged.sentence)

    def _there_already(self, batch: Batch) -> bool:
        """Whether a commit that was reported as failed is in the file after all."""
        return bool(batch.entries) and batch.entries[-1].seq <= self._journal.last_seq()

    def _report(self, reason: str) -> None:
        if not self._backlog and self._unsaved is None:
            self._status = WriterStatus(lost=self._lost, lost_results=self._lost_results)
            return
        since = self._status.failing_since
        since = self._clock.now() if since is None else since
        self._status = WriterStatus(since, reason, self._waiting, self._lost, self._lost_results)
