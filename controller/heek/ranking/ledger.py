"""What changes the ledger: records come in, tables ask how things stand, a table or player becomes known.

Belongs to one thread. Every call is one transaction, on the disk when it returns.
"""

from __future__ import annotations

import logging
import secrets
import sqlite3
from collections.abc import Callable, Mapping
from typing import Final

from sqlalchemy import Connection, select
from sqlalchemy.exc import DBAPIError

from heek.clock import Instant
from heek.errors import RankingRefusal
from heek.ki.answers import BatchAnswer, SignedIn
from heek.ki.envelope import key_id, verify_introduction
from heek.ki.numbers import ki_number
from heek.ki.sync import MARK_BYTES, SyncAnswer, read_question
from heek.ranking.accounts import look_up, make_account, mend_standings, standings_add_up
from heek.ranking.acts import carry_out
from heek.ranking.chains import look_for_gaps, newest_link
from heek.ranking.enrolling import EnrolledTable, enrol, know_table
from heek.ranking.findings import CLONE, find
from heek.ranking.ingest import Batch
from heek.ranking.operator_requests import Act, Erase, Rename
from heek.ranking.schema import players
from heek.ranking.sightings import Sightings
from heek.ranking.store import Store, told, trouble
from heek.ranking.syncing import answer, asking_table, note

log: Final = logging.getLogger("heek")

CLONE_WORDS: Final = (
    "two tables ask with its key at the same time; was its card cloned? Both tables' results count; give one "
    "of the two a key of its own (stop it, move its table.key aside, enrol it)"
)

_LOGGED: Final[Mapping[type[Act], str]] = {
    Erase: "an identity is erased",
    Rename: "a player has another name",
}

_SEVEN_DIGITS: Final = 10**7


class Ledger:
    """An open ledger, for the one thread that writes it."""

    def __init__(
        self,
        store: Store,
        wall_s: Callable[[], float],
        draw: Callable[[int], int] = secrets.randbelow,
    ) -> None:
        self._store = store
        self._wall_s = wall_s
        self._draw = draw
        self._sightings: dict[int, Sightings] = {}
        """By inner id of the table."""
        self._no_gap_to: dict[int, int] = {}
        """Up to which link of each table gaps were looked for."""

    def mend(self) -> int:
        """If the standings do not add up, build those again that differ; how many. Raises RankingError."""
        with told(self._store.file), self._store.writer.begin() as connection:
            mended = 0 if standings_add_up(connection) else mend_standings(connection)
        if mended:
            log.warning("%d standings were not what the ledger says; they are built again", mended)
        return mended

    def ingest(self, body: bytes) -> tuple[BatchAnswer, bool]:
        """Judge the records of a request; the answer, and whether it has changed anything.

        Raises RankingRefusal if the request is refused as a whole: then nothing of it counts.
        """
        try:
            with self._store.writer.begin() as connection:
                batch = Batch(connection, self._now_s())
                answer = batch.take(body)
            return answer, batch.changed
        except DBAPIError as error:
            raise self._busy(error) from error

    def sync(self, body: bytes, now: Instant) -> tuple[SyncAnswer, bool]:
        """Answer a table that asks how things stand, and whether pages show something else now.

        `now` is by our monotonic clock. Raises RankingRefusal if the table is not known or the question is
        not its own, RecordError if it is no question.
        """
        question, signed, signature = read_question(body)
        wall_s = self._wall_s()
        mark = self._draw(1 << 8 * MARK_BYTES).to_bytes(MARK_BYTES, "big")
        try:
            with self._store.writer.begin() as connection:
                table = asking_table(connection, question, signed, signature)
                changed = note(connection, table, question, wall_s)
                seen = self._sightings.setdefault(table.id, Sightings())
                beside = seen.saw(question.inc, question.heard, mark, now)
                if beside is not None:
                    find(connection, table.id, CLONE, CLONE_WORDS, int(wall_s))
                    changed = True
                newest = newest_link(connection, table.id)
                # Whatever is missing may still be waiting there; and it costs a look at all of the chain.
                look = question.waiting == 0 and self._no_gap_to.get(table.id) != newest
                if look:
                    look_for_gaps(connection, table.id, int(wall_s))
                said = answer(connection, table, question, mark, int(wall_s))
        except DBAPIError as error:
            raise self._busy(error) from error
        if look:
            self._no_gap_to[table.id] = newest
        return said, changed or look

    def introduce(self, public: bytes, name: str, signature: bytes) -> bytes:
        """Know a table's key from now on; its key id. Again is harmless, and renames.

        Raises RankingRefusal if the holder of the key has not signed it, or there are too many tables.
        """
        if not verify_introduction(public, name, signature):
            raise RankingRefusal("malformed", "the signature of the introduction is not that of its key")
        try:
            with self._store.writer.begin() as connection:
                _, new = know_table(connection, public, name, self._now_s())
        except DBAPIError as error:
            raise self._busy(error) from error
        if new:
            log.info("%s has introduced itself; its key is %s", name, key_id(public).hex())
        return key_id(public)

    def enrol(self, public: bytes, name: str, replaces: str | None, actor: str) -> EnrolledTable:
        """Know a table whose code an operator has typed in, perhaps in the place of another.

        Raises RankingRefusal if the other is not known.
        """
        try:
            with self._store.writer.begin() as connection:
                enrolled = enrol(connection, public, name, replaces, actor, self._now_s())
        except DBAPIError as error:
            raise self._busy(error) from error
        place = "" if enrolled.replaces is None else f", in the place of {enrolled.replaces}"
        log.info("%s is enrolled by %s%s; its key is %s", name, actor, place, enrolled.key_id.hex())
        return enrolled

    def act(self, act: Act, actor: str) -> str:
        """Do what an operator wants done; what was done, as a sentence. Raises RankingRefusal."""
        try:
            with self._store.writer.begin() as connection:
                said = carry_out(connection, act, actor, self._now_s(), self._free_number)
        except DBAPIError as error:
            raise self._busy(error) from error
        if isinstance(act, Erase):
            self._empty_log()
        # What an erasure has replaced by what is for the operator alone.
        log.info("%s, by %s: %s", _LOGGED.get(type(act), said), actor, act.reason)
        return said

    def _empty_log(self) -> None:
        """What was erased stands in the log until that is written anew; it is done also if this fails."""
        try:
            emptied = self._store.empty_log()
        except sqlite3.Error as error:
            log.warning("%s: the log could not be emptied: %s", self._store.file, error)
            return
        if not emptied:
            log.warning(
                "%s: the log could not be emptied, since somebody reads; what was erased stands in it until "
                "the KI stops",
                self._store.file,
            )

    def sign_in(self, number: str | None) -> SignedIn:
        """The player with this KI number, or, for None, a new one; for demonstrations.

        Raises RankingRefusal if nobody has the number.
        """
        try:
            with self._store.writer.begin() as connection:
                if number is None:
                    number = self._free_number(connection)
                    make_account(connection, number, self._now_s())
                account = look_up(connection, [number])[number]
                if account.id is None or account.erased:
                    raise RankingRefusal("unknown_player", f"nobody here has the KI number {number}")
                name = connection.execute(
                    select(players.c.name).where(players.c.id == account.id)
                ).scalar_one()
            return SignedIn(number, name, account.points)
        except DBAPIError as error:
            raise self._busy(error) from error

    def _free_number(self, connection: Connection) -> str:
        while True:
            number = ki_number(self._draw(_SEVEN_DIGITS))
            if look_up(connection, [number])[number].id is None:
                return number

    def _now_s(self) -> int:
        return int(self._wall_s())

    def _busy(self, error: DBAPIError) -> RankingRefusal:
        """The table keeps its results and asks again; the operator reads why in the log."""
        log.error("%s", trouble(self._store.file, error))
        return RankingRefusal("busy", "the KI cannot write its ledger just now", 10)
