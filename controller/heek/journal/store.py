"""The journal that the daemon writes: one transaction a batch, all of it or nothing."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeAlias

from heek.durable import sync_folder
from heek.errors import BatchRefused, JournalDamaged, JournalError
from heek.journal import ki_notes
from heek.journal.checks import deltas_of
from heek.journal.held import TAKEN, Held
from heek.journal.kept import KeptRecords
from heek.journal.ki_notes import UNANSWERED, digest_of, joined
from heek.journal.lock import FolderLock
from heek.journal.packing import packed, rest_of_line
from heek.journal.pin_file import forget_pin, keep_pin
from heek.journal.records import (
    NO_MARK,
    NO_MATCHES,
    Acknowledged,
    Acknowledgement,
    Answered,
    Batch,
    Digest,
    Entry,
    FormerKey,
    KiNotes,
    Pin,
    Result,
    Synced,
)
from heek.journal.salvage import Salvaged
from heek.journal.schema import (
    FILE_NAME,
    close_as_it_is,
    not_writable,
    open_database,
    trouble,
)
from heek.journal.set_aside import finish, set_aside, unfinished

_INSERT_EVENT: Final = "INSERT INTO events(seq, at_ns, event, body) VALUES(?, ?, ?, ?)"
_REPLACE_SNAPSHOT: Final = (
    "INSERT OR REPLACE INTO snapshot(id, state, boot, mono_ns, wall_s, trust) VALUES(1, ?, ?, ?, ?, ?)"
)
_INSERT_RESULT: Final = "INSERT INTO results(match, record, cbor, key) VALUES(?, ?, ?, ?)"
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
_INSERT_RECORDING: Final = "INSERT INTO recordings(first_seq, beginning) VALUES(?, ?)"
_INSERT_PART: Final = "INSERT INTO recording_parts(last_seq, recording, after_seq, inputs) VALUES(?, ?, ?, ?)"
_REPLACE_FAIRNESS: Final = "INSERT OR REPLACE INTO fairness(incarnation, seq, body) VALUES(?, ?, ?)"
_FORGET_FAIRNESS: Final = (
    "DELETE FROM fairness WHERE seq < (SELECT seq FROM fairness ORDER BY seq DESC LIMIT 1 OFFSET ?)"
)
RUNS_KEPT: Final = 50
"""Of so many runs of the table the last figures of fairness are kept."""

_INSERT_OUTBOX: Final = "INSERT INTO outbox(match, state, reason, signature) VALUES(?, ?, ?, ?)"
_NO_RECORD: Final = "the table's own journal: it is too large for a record"


def open_journal(state_dir: Path) -> Journal:
    """Open the journal of a state folder, made if there is none, for this process alone.

    Raises JournalError, with what to do, if another heek runs on the folder, the file is another program's or
    a newer version's; JournalUnwritable if the folder cannot be written; JournalDamaged if the file is
    damaged, emptied or gone, or was being set aside when the power was cut. Nothing is ever deleted.
    """
    with _locked(state_dir) as lock:
        if (folder := unfinished(state_dir)) is not None:
            raise JournalDamaged(
                f"{state_dir / FILE_NAME}: was being set aside in {folder.name}; start the table "
                "(`heek run`), which goes on with that"
            )
        return Journal(open_database(state_dir), state_dir / FILE_NAME, lock)


def open_or_salvage(state_dir: Path) -> Journal:
    """The same; but a journal that is damaged, emptied or gone is set aside, and a new one goes on.

    `Journal.salvaged` then says what came over. Raises JournalError as `open_journal` does, and if the card
    does not take what has to be written: then all is there, and the next start goes on with it.
    """
    with _locked(state_dir) as lock:
        salvaged = finish(state_dir)
        try:
            db = open_database(state_dir)
        except JournalDamaged as error:
            if salvaged is not None:
                # What was written just now is damaged again: the card is broken, and so would be the next.
                raise
            salvaged = set_aside(state_dir, str(error))
            db = open_database(state_dir)
        return Journal(db, state_dir / FILE_NAME, lock, salvaged)


@contextlib.contextmanager
def _locked(state_dir: Path) -> Iterator[FolderLock]:
    """The state folder, made if there is none, and its lock; let go of if what is done with it fails."""
    try:
        made = not state_dir.exists()
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if made:
            sync_folder(state_dir.parent)
    except OSError as error:
        raise not_writable(state_dir, error) from None
    lock = FolderLock(state_dir)
    try:
        yield lock
    except BaseException:
        lock.release()
        raise


class Journal(KeptRecords):
    """An open journal; belongs to the thread that opened it. Made by `open_journal`."""

    def __init__(
        self, db: sqlite3.Connection, file: Path, lock: FolderLock, salvaged: Salvaged | None = None
    ) -> None:
        super().__init__(db, file)
        self._lock = lock
        self.salvaged = salvaged
        """What came over of a damaged journal at this opening or since; None: it was sound."""
        self.usable = True
        """False after a `begin_anew` that failed: nothing can be read or written until one succeeds."""
        self._damage = ""
        self._aside = False
        # None: not known, ask the file.
        self._last: int | None = None
        self._sync: bool | None = None
        self._deltas: dict[str, int] | None = None
        self._holds: dict[bytes, Digest] | None = None
        """Of all keys that results are signed by, in the order in which they came."""
        self._held = Held()

    def begin_anew(self, reason: str, last_seq: int) -> None:
        """Set the file aside, which has turned out damaged, and go on in a new one with what can be read.

        What is held stays held. The events go on from `last_seq`. Raises JournalError if the card does not
        take what has to be written: then all is there; try this again, or the next start does it.
        """
        folder = self.file.parent
        self._roll_back()
        if self.usable:
            self.usable, self._damage = False, reason
            with contextlib.suppress(sqlite3.Error):
                close_as_it_is(self._db, self.file)
        if not self._aside:
            salvaged = (
                finish(folder, last_seq) if unfinished(folder) else set_aside(folder, self._damage, last_seq)
            )
            self.salvaged, self._aside = salvaged, True
        self._db = open_database(folder)
        self._last = self._sync = self._deltas = self._holds = None
        self.usable, self._aside = True, False

    def _expect_usable(self) -> None:
        if not self.usable:
            raise JournalDamaged(
                f"{self.file}: is damaged and could not be set aside yet; make room on the card, or see to it"
            )

    def _rows(self, query: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        self._expect_usable()
        return super()._rows(query, values)

    def there(self, matches: Collection[str]) -> set[str]:
        """Those of these matches whose results are in the file."""
        rows = self._rows(
            "SELECT match FROM results WHERE match IN (SELECT value FROM json_each(?))",
            (json.dumps(list(matches)),),
        )
        return {match for (match,) in rows}

    def hold(self, results: Sequence[Result]) -> None:
        """These could not be written yet; they are sent all the same, and answers to them kept."""
        self._held.hold(results)

    def take_held(self, other: Journal) -> None:
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

    def last_seq(self) -> int:
        """The number of the last event, 0 if there is none."""
        if self._last is None:
            self._last = super().last_seq()
        return self._last

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

    def meet_with_key(self, key: bytes) -> None:
        """The table has the key of this id from now on; raises JournalError."""
        with self._transaction():
            ki_notes.meet_with_key(self._db, key)
        keep_pin(self._db, self.file.parent)

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
            deltas = ki_notes.take(self._db, synced, key)
        self._deltas = None
        if synced.offer or any(each.offer for each in synced.formers):
            self._holds = None
        return Acknowledged(deltas, self.waiting())

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

    def append(self, batch: Batch) -> None:
        """Write a batch in one transaction; with `batch.sync` it is on the card when this returns.

        Raises BatchRefused if its numbers do not go on from the last one, a match has a result already,
        or a value cannot be kept: to try again is of no use. Raises JournalError if it could not be
        written (full, read-only, broken, locked): to try the same batch again may help. Either way
        nothing of it is in the journal.
        """
        self._expect_usable()
        last = self.last_seq()
        for place, entry in enumerate(batch.entries, start=1):
            if entry.seq != last + place:
                raise BatchRefused(
                    f"{self.file}: event {entry.seq} cannot come after {last + place - 1}; "
                    "numbers go up by one without gaps"
                )
        records = [_row(result) for result in batch.results]
        try:
            self._write(batch, records)
        except BaseException as error:
            self._last = self._sync = self._deltas = self._holds = None
            self._roll_back()
            if isinstance(error, sqlite3.IntegrityError):
                raise BatchRefused(f"{self.file}: {error}; a number or a match is there already") from None
            if isinstance(error, OverflowError | UnicodeError | sqlite3.InterfaceError):
                raise BatchRefused(f"{self.file}: a value cannot be kept: {error}") from None
            if isinstance(error, sqlite3.ProgrammingError):
                # A wrong thread, or a journal that is closed: a mistake of ours, not of the card.
                raise BatchRefused(f"{self.file}: {error}") from None
            if isinstance(error, sqlite3.Error):
                raise trouble(self.file, error) from None
            raise
        self._last = last + len(batch.entries)
        if any(each.match in self._held.answers for each in batch.results):
            self._holds = self._deltas = None
        self._held.written(each.match for each in batch.results)
        if self._deltas is not None:
            for result in batch.results:
                for player, delta in deltas_of(result.record):
                    self._deltas[player] = self._deltas.get(player, 0) + delta

    def _write(self, batch: Batch, records: list[_Row]) -> None:
        db = self._db
        if batch.sync is not self._sync:
            # In a write-ahead log FULL syncs at each commit, and with it every commit before; NORMAL
            # leaves that to the next FULL one or to the checkpoint.
            db.execute("PRAGMA synchronous = FULL" if batch.sync else "PRAGMA synchronous = NORMAL")
            self._sync = batch.sync
        db.execute("BEGIN IMMEDIATE")
        db.executemany(_INSERT_EVENT, [_event_row(entry) for entry in batch.entries])
        if batch.snapshot is not None:
            label = batch.label
            db.execute(
                _REPLACE_SNAPSHOT,
                (packed(batch.snapshot), label.boot, label.mono_ns, label.wall_s, label.trust),
            )
        for match, record, cbor, key in records:
            db.execute(_INSERT_RESULT, (match, record, cbor, key))
            # With a key and no bytes it could be made no record, and never will be.
            refused = key is not None and cbor is None
            state, reason = ("rejected", _NO_RECORD) if refused else ("waiting", None)
            signature = None
            if match in self._held.answers:
                answer, _ = self._held.answers[match]
                state, reason, signature = answer.state, answer.reason, answer.signature
                if state == "accepted":
                    ki_notes.expect(db, [(key, match)])
            db.execute(_INSERT_OUTBOX, (match, state, reason, signature))
        if batch.recorded is not None:
            part = batch.recorded
            if part.beginning is not None:
                db.execute(_INSERT_RECORDING, (part.recording, part.beginning))
            db.execute(_INSERT_PART, (part.last_seq, part.recording, part.after_seq, part.inputs))
        if batch.fairness is not None and batch.entries:
            fairness = batch.fairness
            db.execute(_REPLACE_FAIRNESS, (fairness.incarnation, batch.entries[-1].seq, fairness.body))
            db.execute(_FORGET_FAIRNESS, (RUNS_KEPT - 1,))
        db.execute("COMMIT")

    def _roll_back(self) -> None:
        # After some failures SQLite has rolled back by itself.
        with contextlib.suppress(sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def forget_recordings(self, most_bytes: int) -> int:
        """Give up the oldest whole recordings until at most `most_bytes` are left; how many were given up.

        The newest always stays. Raises JournalError if the card does not take it.
        """
        sizes = self._rows(
            "SELECT recording, sum(length(inputs)) FROM recording_parts GROUP BY recording ORDER BY 1 DESC"
        )
        total = given_up = 0
        for recording, size in sizes:
            total += size
            if total > most_bytes and recording != sizes[0][0]:
                with self._transaction():
                    self._db.execute("DELETE FROM recording_parts WHERE recording <= ?", (recording,))
                    self._db.execute("DELETE FROM recordings WHERE first_seq <= ?", (recording,))
                given_up = sum(1 for each, _ in sizes if each <= recording)
                break
        return given_up

    def log_bytes(self) -> int:
        """The size of the write-ahead log; much more than 1 MB means that somebody holds an old state."""
        try:
            return self.file.with_name(f"{FILE_NAME}-wal").stat().st_size
        except OSError:
            return 0

    def checkpoint(self) -> None:
        """Carry the write-ahead log over into the file, as far as readers allow: for quiet moments.

        Raises JournalError if the card does not take it; nothing is lost by that.
        """
        self._rows("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Carry everything over into the one file and let go of the folder; harmless when done already."""
        # What cannot be carried over stays in the log, where the next start finds it.
        with contextlib.suppress(sqlite3.Error):
            self._roll_back()
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        try:
            self._db.close()
        except sqlite3.Error as error:
            raise JournalError(f"{self.file}: cannot be closed: {error}") from None
        finally:
            self._lock.release()

    def abandon(self) -> None:
        """Let go of everything as the death of the process would: no commit, no checkpoint.

        For stories in which the power is cut: what was not committed is gone, the log stays as it is.
        """
        try:
            close_as_it_is(self._db, self.file)
        finally:
            self._lock.release()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _event_row(entry: Entry) -> tuple[int, int, str, str]:
    """An event as it is written; raises BatchRefused for what is no line."""
    if not isinstance(entry.body, str) or not isinstance(entry.at_ns, int):
        raise BatchRefused(f"event {entry.seq}: a value cannot be kept: a line is text, an instant a number")
    rest = rest_of_line(entry.seq, entry.at_ns, entry.event, entry.body)
    return entry.seq, entry.at_ns, entry.event, rest


_Row: TypeAlias = tuple[str, bytes, bytes | None, bytes | None]


def _row(result: Result) -> _Row:
    """A result as it is written; raises BatchRefused if the KI could never make sense of it."""
    try:
        seats = json.loads(result.record)["seats"]
        sound = isinstance(seats, list) and all(isinstance(seat, dict) for seat in seats)
    except (ValueError, TypeError, KeyError, RecursionError):
        sound = False
    if not sound or not result.match:
        raise BatchRefused(f"result {result.match!r}: its record must be a JSON object with a list of seats")
    return result.match, result.record, result.cbor, result.key
