"""Where requests wait for the ledger: one thread writes it, a few read it, and nobody waits on the loop.

What is read is kept until the ledger changes, and asked for by many at once it is read once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from heek.clock import SECOND, Instant
from heek.errors import RankingError, RankingRefusal
from heek.ranking.health import DAMAGED, Health, LedgerDamaged
from heek.ranking.ledger import Ledger
from heek.ranking.live import Live
from heek.ranking.store import READERS, Store, look_through, trouble

log: Final = logging.getLogger("heek")

MOST_AT_ONCE: Final = 16
"""Requests with a body in memory, waiting for the ledger or being judged."""
MOST_KEPT: Final = 128
"""Pages, each of some twenty kilobytes."""

LOOK_EVERY: Final = 600 * SECOND
"""Between two looks at every page of the file, which take a second for each hundred megabytes."""

_T = TypeVar("_T")


class Desk:
    """The ledger as the loop sees it; lives on one event loop, closed once."""

    def __init__(self, store: Store, ledger: Ledger, live: Live) -> None:
        self._store = store
        self._ledger = ledger
        self._live = live
        self._writer = ThreadPoolExecutor(1, "heek-ki-ledger")
        self._readers = ThreadPoolExecutor(READERS, "heek-ki-pages")
        self._at_once = 0
        self._kept: OrderedDict[object, asyncio.Future[bytes | None]] = OrderedDict()
        self._kept_of = -1
        self._health = Health(live.changed)
        if store.damage is not None:
            self._health.found_damage()
        self._looked_at: Instant | None = None

    def close(self) -> None:
        """Wait for what is under way, and let go of the threads."""
        self._writer.shutdown(cancel_futures=True)
        self._readers.shutdown(cancel_futures=True)

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """For one request, from its body to its answer; raises RankingRefusal when there are too many."""
        if self._at_once >= MOST_AT_ONCE:
            raise RankingRefusal("busy", "the KI has too many requests to judge at once", 2)
        self._at_once += 1
        try:
            yield
        finally:
            self._at_once -= 1

    async def write(self, what: Callable[[Ledger], _T], changes: Callable[[_T], bool]) -> _T:
        """Do something to the ledger, and tell all pages if it has changed.

        Raises RankingRefusal, LedgerDamaged if it was damaged when it was opened.
        """
        if self._store.damage is not None:
            log.warning("%s: a write is refused, since the ledger is damaged", self._store.file)
            raise LedgerDamaged

        async def done() -> _T:
            try:
                result = await asyncio.get_running_loop().run_in_executor(self._writer, what, self._ledger)
            except RankingRefusal as refusal:
                if isinstance(refusal.__cause__, DBAPIError):
                    self._health.met(refusal.__cause__, writing=True)
                raise
            self._health.written()
            if changes(result):
                self._live.changed()
            return result

        # Also when whoever asked has gone: what is written counts, and the pages are to show it.
        return await asyncio.shield(asyncio.ensure_future(done()))

    async def read(self, key: object, what: Callable[[Connection], bytes | None]) -> bytes | None:
        """What `what` makes of the ledger, as it was after its last change or later; `key` names it.

        Raises RankingRefusal if the ledger cannot be read, LedgerDamaged if it never will be.
        """
        if self._kept_of != self._live.revision:
            self._kept_of = self._live.revision
            self._kept.clear()
        kept = self._kept.get(key)
        if kept is None:
            loop = asyncio.get_running_loop()
            kept = asyncio.ensure_future(loop.run_in_executor(self._readers, self._read, what))
            self._kept[key] = kept
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        try:
            return await asyncio.shield(kept)
        except DBAPIError as error:
            if self._kept.get(key) is kept:
                del self._kept[key]
            raise self._refused(error) from None

    @property
    def damage(self) -> str | None:
        """That the ledger is damaged, in one sentence for its pages; None: nobody has met any."""
        return DAMAGED if self._health.damaged else None

    async def fault(self, now: Instant) -> str | None:
        """What is wrong with the ledger, in one sentence; None: nothing that is known.

        Every ten minutes all of the file is looked at for it; `now` is by our monotonic clock.
        """
        due = self._looked_at is None or now - self._looked_at >= LOOK_EVERY
        if due and self._store.damage is None:
            self._looked_at = now
            try:
                await asyncio.get_running_loop().run_in_executor(self._readers, self._look)
            except DBAPIError as error:
                self._refused(error)
            except RankingError as error:
                if self._health.found_damage():
                    log.error("%s", error)
        return self._health.fault

    def _refused(self, error: DBAPIError) -> RankingRefusal:
        """What a reader is told; the operator reads why in the log."""
        known = self._health.damaged
        damage = self._health.met(error, writing=False)
        if not (damage and known):
            # Of damage once: every page that is open asks again and again.
            log.error("%s", trouble(self._store.file, error))
        return (
            LedgerDamaged()
            if damage
            else RankingRefusal("busy", "the KI cannot read its ledger just now", 10)
        )

    def _look(self) -> None:
        with self._store.reader.begin() as connection:
            look_through(connection, self._store.file)

    def _read(self, what: Callable[[Connection], bytes | None]) -> bytes | None:
        with self._store.reader.begin() as connection:
            return what(connection)
