"""The journal that the daemon writes: one transaction a batch, all of it or nothing."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, TypeAlias

from heek.durable import sync_folder
from heek.errors import BatchRefused, JournalDamaged, JournalError
from heek.journal import ki_notes
from heek.journal.checks import deltas_of
from heek.journal.lock import FolderLock
from heek.journal.outbox import JournalOutbox
from heek.journal.packing import packed, rest_of_line
from heek.journal.records import (
    Batch,
    Entry,
    Result,
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


class Journal(JournalOutbox):
    """An open journal; belongs to the thread that opened it. Made by `open_journal`."""

    def __init__(
        self, db: sqlite3.Connection, file: Path, lock: FolderLock, salvaged: Salvaged | None = None
    ) -> None:
        super().__init__(db, file)
        self._lock = lock
        self.salvaged = salvaged
        """What came over of a damaged journal at this opening or since; None: it was sound."""
        self._damage = ""
        self._aside = False
        self._last: int | None = None
        """None: not known, ask the file."""

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

    def there(self, matches: Collection[str]) -> set[str]:
        """Those of these matches whose results are in the file."""
        rows = self._rows(
            "SELECT match FROM results WHERE match IN (SELECT value FROM json_each(?))",
            (json.dumps(list(matches)),),
        )
        return {match for (match,) in rows}

    def last_seq(self) -> int:
        """The number of the last event, 0 if there is none."""
        if self._last is None:
            self._last = super().last_seq()
        return self._last

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
