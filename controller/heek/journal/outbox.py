"""The journal's outbox: which results go to the KI, and what it answered and told; a transaction each.

What is known of the file between two calls (deltas, digests) is kept up with every write, and read anew after
one that failed: the commit may be on the card after all.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from heek.errors import JournalDamaged, JournalError
from heek.journal import ki_notes
from heek.journal.checks import deltas_of
from heek.journal.held import TAKEN, Held
from heek.journal.kept import KeptRecords
from heek.journal.ki_notes import UNANSWERED, digest_of, joined
from heek.journal.pin_file import forget_pin, keep_pin
from heek.journal.records import (
    NO_MARK,
    NO_MATCHES,
    Acknowledged,
    Acknowledgement,
    Answered,
    Digest,
    FormerKey,
    KiNotes,
    Pin,
    Result,
    Synced,
)
from heek.journal.schema import trouble

_WAITING_RECORD: Final = (
    f"SELECT record FROM results JOIN outbox USING(match) WHERE match = ? AND {UNANSWERED}"
)
_ANSWERED: Final = (
    "UPDATE outbox SET state = ?, reason = ?, again = 0, signature = coalesce(?, signature)"
    " WHERE match = ? AND state = 'waiting'"
)
_STILL_WAITING: Final = (
    "SELECT count(*) FROM outbox WHERE state = 'waiting' AND match IN (SELECT value FROM json_each(?))"
)
_KEY_OF: Final = "SELECT key FROM results WHERE match = ?"


class JournalOutbox(KeptRecords):
    """The part of an open journal that concerns the KI; belongs to the thread that opened it."""

    def __init__(self, db: sqlite3.Connection, file: Path) -> None:
        super().__init__(db, file)
        self.usable = True
        """False after a `begin_anew` that failed: nothing can be read or written until one succeeds."""
        # None: not known, ask the file.
        self._sync: bool | None = None
        self._deltas: dict[str, int] | None = None
        self._holds: dict[bytes, Digest] | None = None
        """Of all keys that results are signed by, in the order in which they came."""
        self._held = Held()

    def _expect_usable(self) -> None:
        if not self.usable:
            raise JournalDamaged(
                f"{self.file}: is damaged and could not be set aside yet; make room on the card, or see to it"
            )

    def _rows(self, query: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        self._expect_usable()
        return super()._rows(query, values)

    def hold(self, results: Sequence[Result]) -> None:
        """These could not be written yet; they are sent all the same, and answers to them kept."""
        self._held.hold(results)

    def take_held(self, other: JournalOutbox) -> None:
        """Hold what another one held, with the answers to it."""
        self._held, self._holds, self._deltas = other._held, None, None

    def in_file_after_all(self, results: Sequence[Result]) -> None:
        """A commit that seemed to fail had been made; what was answered to these is written with the next."""
        for each in results:
            self._held.results.pop(each.match, None)

    def waiting(self) -> int:
        """How many results the KI has not acknowledged, those that are not written yet among them."""
        owed = [each.match for each in self._held.owed()] if self._held.answers else []
        # Some may be in the file already, by a commit that was told as failed.
        answered = self._rows(_STILL_WAITING, (json.dumps(owed),))[0][0] if owed else 0
        return super().waiting() - answered + len(self._held.waiting())

    def player_deltas(self) -> dict[str, int]:
        """Ranking-points won and lost by KI number in results that are not yet acknowledged."""
        if self._deltas is None:
            self._deltas = super().player_deltas()
        return dict(self._deltas)

    def last_cbor(self, key: bytes | None = None) -> bytes | None:
        """The newest record that was written for the KI, with `key` of that key id; None if there is none."""
        rows = self._rows(
            "SELECT cbor FROM outbox JOIN results USING(match) WHERE cbor IS NOT NULL"
            " AND (? IS NULL OR key = ?) ORDER BY position DESC LIMIT 1",
            (key, key),
        )
        return bytes(rows[0][0]) if rows else None

    def unwritten(self) -> list[Result]:
        """Results of an older version that wait without their bytes for the KI, oldest first."""
        rows = self._rows(
            "SELECT match, record FROM results JOIN outbox USING(match)"
            " WHERE cbor IS NULL AND state = 'waiting' ORDER BY number"
        )
        return [Result(match, record) for match, record in rows]

    def unbound(self, key: bytes, limit: int) -> list[Result]:
        """The oldest results whose bytes are of another key, or of one that is not written beside them.

        Of another key those alone that the KI has never answered for: to the others it has the signature.
        """
        rows = self._rows(
            "SELECT match, record, cbor, key FROM results JOIN outbox USING(match) WHERE cbor IS NOT NULL"
            " AND (key IS NULL OR (key != ? AND state = 'waiting' AND signature IS NULL))"
            " ORDER BY number LIMIT ?",
            (key, limit),
        )
        return [Result(match, record, bytes(cbor), written) for match, record, cbor, written in rows]

    def unsigned(self, key: bytes, limit: int) -> list[Result]:
        """The oldest results that the KI has answered for to a heek that kept no signature, with this key."""
        rows = self._rows(
            "SELECT match, record, cbor FROM results JOIN outbox USING(match) WHERE cbor IS NOT NULL"
            " AND key = ? AND state != 'waiting' AND signature IS NULL ORDER BY number LIMIT ?",
            (key, limit),
        )
        return [Result(match, record, bytes(cbor), key) for match, record, cbor in rows]

    def write_signatures(self, results: Sequence[Result]) -> None:
        """Give results that were answered for the signature under which they were; raises JournalError."""
        with self._transaction():
            self._db.executemany(
                "UPDATE outbox SET signature = ? WHERE match = ?",
                [(result.signature, result.match) for result in results],
            )

    def signed_by(self, key: bytes, limit: int) -> list[Result]:
        """The oldest results of this key id with their bytes: at most so many."""
        rows = self._rows(
            "SELECT match, record, cbor FROM results WHERE key = ? AND cbor IS NOT NULL"
            " ORDER BY number LIMIT ?",
            (key, limit),
        )
        return [Result(match, record, bytes(cbor), key) for match, record, cbor in rows]

    def unsent(
        self,
        limit: int,
        most_bytes: int,
        passing: Collection[str] = (),
        among: Collection[str] | None = None,
    ) -> list[Result]:
        """The oldest results that wait, with their bytes: at most `limit`, and `most_bytes` but for one.

        All are of one key: what goes in one request is one table's. Matches in `passing` are passed over;
        with `among` only these are looked at.
        """
        passing = [*passing, *self._held.answers]
        rows = self._rows(
            "SELECT match, record, cbor, key, signature FROM outbox JOIN results USING(match)"
            " WHERE state = 'waiting' AND cbor IS NOT NULL"
            " AND match NOT IN (SELECT value FROM json_each(?))"
            " AND (? IS NULL OR match IN (SELECT value FROM json_each(?)))"
            " ORDER BY position LIMIT ?",
            (json.dumps(passing), *2 * (None if among is None else json.dumps(list(among)),), limit),
        )
        chosen: list[Result] = []
        size = 0
        in_file = (Result(match, record, bytes(cbor), *more) for match, record, cbor, *more in rows)
        for each in islice(chain(in_file, self._held.unsent(passing, among)), limit):
            size += len(each.cbor or b"")
            if chosen and (size > most_bytes or each.key != chosen[0].key):
                break
            chosen.append(each)
        return chosen

    def unanswered(self, key: bytes, limit: int) -> list[str]:
        """At most so many matches of this key id that the KI has not answered for."""
        rows = self._rows(
            "SELECT match FROM outbox JOIN results USING(match) WHERE state = 'waiting'"
            " AND key = ? AND cbor IS NOT NULL LIMIT ?",
            (key, limit),
        )
        held = [each.match for each in self._held.waiting() if each.key == key and each.cbor is not None]
        return [match for (match,) in rows if match not in self._held.answers][:limit] + held[:limit]

    def write_cbor(self, results: Sequence[Result]) -> None:
        """Give results their bytes for the KI and the key id in them; raises JournalError if it cannot be."""
        with self._transaction():
            self._write_cbor(results)
        self._holds = None

    def bind(self, results: Sequence[Result]) -> None:
        """The same for bytes that go on from the newest record: they wait, last in the outbox."""
        with self._transaction():
            self._write_cbor(results)
            self._db.executemany(
                "UPDATE outbox SET position = (SELECT max(position) + 1 FROM outbox), state = 'waiting',"
                " again = iif(state = 'waiting', again, 1), signature = NULL WHERE match = ?",
                [(result.match,) for result in results],
            )
        self._holds = None

    def _write_cbor(self, results: Sequence[Result]) -> None:
        self._db.executemany(
            "UPDATE results SET cbor = ?, key = ? WHERE match = ?",
            [(result.cbor, result.key, result.match) for result in results],
        )

    def recent_players(self, limit: int) -> list[str]:
        """KI numbers of who played here last, at most so many."""
        found: dict[str, None] = {}
        for (record,) in self._rows("SELECT record FROM results ORDER BY number DESC LIMIT ?", (limit,)):
            found.update(dict.fromkeys(player for player, _ in deltas_of(record)))
        return list(found)[:limit]

    def ki_notes(self, key: bytes) -> KiNotes:
        """What there is of the KI, for a table that has this key id."""
        rows = self._rows("SELECT news, mark FROM ki WHERE key = ?", (key,))
        news, mark = rows[0] if rows else (0, NO_MARK)
        settled, offered = self._settled_of(key)
        strange = self._rows("SELECT count(*) FROM news WHERE understood = 0")[0][0]
        return KiNotes(
            pin=self.pin(),
            news=news,
            mark=bytes(mark),
            strange_news=strange,
            settled=settled,
            offered=offered,
            holds=self._holds_of(key),
            waiting=self.waiting(),
            refused=self.refused(),
            formers=tuple(
                FormerKey(each, self._holds_of(each), *self._settled_of(each))
                for each in reversed(self._digests())
                if each != key
            ),
            held=self._held.any(),
            acknowledged=self._acknowledged(key),
            known=self.is_known_as(key),
        )

    def _settled_of(self, key: bytes) -> tuple[Digest, Digest | None]:
        rows = self._rows(
            "SELECT settled_count, settled_xor, offered_count, offered_xor FROM digests WHERE key = ?", (key,)
        )
        if not rows:
            return NO_MATCHES, None
        count, xor, offered, offered_xor = rows[0]
        return (count, bytes(xor)), None if offered is None else (offered, bytes(offered_xor))

    def _holds_of(self, key: bytes) -> Digest:
        return joined(self._digests().get(key, NO_MATCHES), digest_of(self._held.taken(key)))

    def _digests(self) -> dict[bytes, Digest]:
        """By key that signed results in the file, in their order: the digest of those that the KI has."""
        if self._holds is None:
            # Where no record is, there is nobody's key.
            taken: dict[bytes, list[str]] = {}
            for key, match, state in self._rows(
                "SELECT key, match, state FROM results JOIN outbox USING(match)"
                " WHERE cbor IS NOT NULL AND key != x'' ORDER BY number"
            ):
                matches = taken.setdefault(key, [])
                if state in TAKEN:
                    matches.append(match)
            self._holds = {key: digest_of(matches) for key, matches in taken.items()}
        return self._holds

    def pin_service(self, pin: Pin, key: bytes) -> None:
        """Be enrolled at a KI with the key of this id; raises JournalError if it cannot be written."""
        with self._transaction():
            ki_notes.pin_service(self._db, pin, key)
        keep_pin(self._db, self.file.parent)
        self._deltas = None

    def forget_service(self) -> bool:
        """Be enrolled nowhere, and say whether the table was; raises JournalError."""
        known = self.pin() is not None
        # First: after a cut in between the next start writes it anew, as the table is still enrolled.
        forget_pin(self.file.parent)
        with self._transaction():
            ki_notes.forget_service(self._db)
        self._deltas = None
        return known

    def no_longer_known(self, key: bytes) -> None:
        """The KI does not know the table by the key of this id, or not any more; raises JournalError."""
        with self._transaction():
            ki_notes.be_known(self._db, key, yes=False)

    def acknowledge_difference(self, by: str, at_s: int, trust: str) -> Acknowledgement | None:
        """Note who knows of the difference as it is now, with the present key; None: there is none.

        Whoever has acknowledged it before stays. `at_s` is the wall clock's, `trust` how far that is to be
        believed. Raises JournalError.
        """
        found = self.acknowledgement()
        rows = self._rows("SELECT key FROM ki")
        if found is not None or not rows or self.difference() == NO_MATCHES:
            return found
        known = Acknowledgement(self.difference(), at_s, trust, by)
        with self._transaction():
            ki_notes.acknowledge_difference(self._db, bytes(rows[0][0]), known)
        return known

    def _acknowledged(self, key: bytes) -> Digest:
        rows = self._rows("SELECT count, xor FROM acknowledged WHERE key = ?", (key,))
        return (int(rows[0][0]), bytes(rows[0][1])) if rows else NO_MATCHES

    def meet_with_key(self, key: bytes) -> bytes | None:
        """The table has the key of this id from now on; raises JournalError.

        The id that it had when it was enrolled, if that was another one.
        """
        with self._transaction():
            before = ki_notes.meet_with_key(self._db, key)
        keep_pin(self._db, self.file.parent)
        return before

    def sync(self, synced: Synced, key: bytes) -> Acknowledged:
        """Write down, in one transaction, how the KI says that things stand for the key of this id.

        Raises JournalError if it cannot be written: then nothing of it is, and the KI is asked again. What
        says nothing new writes nothing: a table asks all day. What the card still owes of earlier answers is
        written before, if it takes it.
        """
        if self._held.owed() and not self._held.results:
            # No other answer may come for days that they could be written with.
            with contextlib.suppress(JournalError):
                self._acknowledge([], {})
        if not self._says_anything_new(synced, key):
            return Acknowledged({}, self.waiting())
        with self._transaction():
            deltas, rulings = ki_notes.take(self._db, synced, key)
        self._deltas = None
        if synced.offer or any(each.offer for each in synced.formers):
            self._holds = None
        return Acknowledged(deltas, self.waiting(), rulings)

    def _says_anything_new(self, synced: Synced, key: bytes) -> bool:
        notes, told = self.ki_notes(key), self.told_points()
        return bool(
            synced.offer
            or synced.news_anew
            or (notes.pin is not None and not notes.known)
            or any(each.number > notes.news for each in synced.news)
            or (synced.settled, synced.offered) != (notes.settled, notes.offered)
            or any(
                each.offer or self._settled_of(each.key) != (each.settled, each.offered)
                for each in synced.formers
            )
            or any(told.get(player) != points for player, points in synced.points.items())
        )

    def acknowledge(self, answers: Sequence[Answered], points: Mapping[str, int]) -> Acknowledged:
        """Write down what the KI answered and told, in one transaction; an answer twice is harmless.

        Raises JournalError if it cannot be written: then nothing of it is, and the KI is asked again. While
        results are held that the card does not take, answers are as well, and written with the first thing
        that it takes again.
        """
        held = self._held
        new = [each for each in answers if each.match not in held.answers]
        totals: dict[str, int] = {}
        for answer in new:
            if answer.match in held.results:
                for player, delta in deltas_of(held.results[answer.match].record):
                    totals[player] = totals.get(player, 0) + delta
        in_file = [each for each in new if each.match not in held.results]
        try:
            for player, delta in self._acknowledge(in_file, points).items():
                totals[player] = totals.get(player, 0) + delta
        except JournalError:
            if not held.results:
                raise
            for answer in in_file:
                rows = self._rows(f"{_WAITING_RECORD} LIMIT 1", (answer.match,))
                for player, delta in deltas_of(rows[0][0]) if rows else ():
                    totals[player] = totals.get(player, 0) + delta
                keys = self._rows(_KEY_OF, (answer.match,))
                if keys:
                    held.answers[answer.match] = answer, keys[0][0]
        for answer in new:
            if answer.match in held.results:
                held.answers[answer.match] = answer, held.results[answer.match].key
        return Acknowledged(totals, self.waiting())

    def _acknowledge(self, answers: Sequence[Answered], points: Mapping[str, int]) -> dict[str, int]:
        """Write answers to what is in the file, and those it is owed; the sums of the former's deltas."""
        totals: dict[str, int] = {}
        taken: list[tuple[bytes | None, str]] = []
        accepted: list[tuple[bytes | None, str]] = []
        owed = self._held.owed()
        with self._transaction():
            for answer in (*answers, *owed):
                rows = self._db.execute(_WAITING_RECORD, (answer.match,)).fetchall()
                for (record,) in rows if answer not in owed else ():
                    for player, delta in deltas_of(record):
                        totals[player] = totals.get(player, 0) + delta
                changed = self._db.execute(
                    _ANSWERED, (answer.state, answer.reason, answer.signature, answer.match)
                ).rowcount
                if changed and answer.state in TAKEN:
                    (key,) = self._db.execute(_KEY_OF, (answer.match,)).fetchone()
                    taken.append((key, answer.match))
                    if answer.state == "accepted":
                        accepted.append(taken[-1])
            ki_notes.tell_points(self._db, points)
            ki_notes.expect(self._db, accepted)
        self._deltas = None
        if self._holds is not None:
            for key, match in taken:
                if key:
                    self._holds[key] = joined(self._holds.get(key, NO_MATCHES), digest_of([match]))
        self._held.written(each.match for each in owed)
        return totals

    def told_points(self) -> dict[str, int]:
        """What the KI told last of each player, by KI number."""
        return {player: int(points) for player, points in self._rows("SELECT player, points FROM players")}

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of what is done in it, on the card, or nothing; raises JournalError."""
        self._expect_usable()
        try:
            if self._sync is not True:
                self._db.execute("PRAGMA synchronous = FULL")
                self._sync = True
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except BaseException as error:
            # It may be on the card after all: what is remembered of the file is read anew.
            self._deltas = self._holds = self._sync = None
            self._roll_back()
            if isinstance(error, sqlite3.Error):
                raise trouble(self.file, error) from None
            raise

    def _roll_back(self) -> None:
        # After some failures SQLite has rolled back by itself.
        with contextlib.suppress(sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
