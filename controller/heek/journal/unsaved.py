"""What a table has of its journal while the state folder cannot be written: in memory, all that decides.

A card that comes back read-only must not keep a table from playing. So what can still be read is copied
(results, outbox, what the KI told, the state of the match under way, the number of the last event), and
answers every question that a journal is asked; every write is refused, so whoever writes (`JournalWriter`)
keeps what is to be written, as with a card that takes nothing while the table runs.

When the folder can be written again its journal must be the one that was copied. Another one's events would
have the same numbers, and what waits would be taken for what stands there: then it is left alone, and told.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from heek.errors import JournalEmpty, JournalError, JournalUnwritable
from heek.journal.lock import FolderLock
from heek.journal.reader import JournalReader, read_journal
from heek.journal.records import Batch, Entry
from heek.journal.schema import FILE_NAME, MARKER_NAME, database_in_memory
from heek.journal.set_aside import unfinished
from heek.journal.store import Journal

_LEFT: Final = frozenset({"events", "recordings", "recording_parts", "fairness"})
"""Much larger than all else, and nothing is decided by them."""


class UnsavedJournal(Journal):
    """A journal that reads as the one of the folder did, and takes nothing. Made by `open_unsaved`."""

    def __init__(self, db: sqlite3.Connection, file: Path, why: JournalUnwritable) -> None:
        """Raises JournalError if another heek runs on the folder."""
        super().__init__(db, file, FolderLock(file.parent, reading=True))
        self._why = why

    @property
    def last_entry(self) -> Entry | None:
        """The last event that was in the file; None: there was none."""
        return next(self.events(self.last_seq() - 1), None)

    def append(self, batch: Batch) -> None:  # noqa: ARG002
        """Raises JournalUnwritable, always."""
        raise JournalUnwritable(str(self._why))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        raise JournalUnwritable(str(self._why))
        yield

    def checkpoint(self) -> None:
        """Nothing has to be carried over."""

    def let_go(self) -> None:
        """Give the folder free, for the journal that is to be opened in it."""
        self._lock.release()

    def hold_on(self) -> None:
        """Have the folder again, as far as that can be: somebody else may have it now."""
        with contextlib.suppress(JournalError):
            self._lock = FolderLock(self.file.parent, reading=True)

    def expect_same(self, journal: Journal) -> None:
        """Raise JournalError if the folder's journal is not the one that this was copied from."""
        last = journal.last_seq()
        if self.last_entry != next(journal.events(last - 1), None):
            raise JournalError(
                f"{journal.file}: is not the journal that was there when the table started "
                f"(it ends with event {last}, that one with {self.last_seq()}); what is played is in memory "
                "alone: let the results reach the KI, then start the table anew"
            )


def open_unsaved(state_dir: Path, why: JournalUnwritable) -> UnsavedJournal:
    """What can be read of this folder's journal, which could not be opened, for the reason `why`.

    Raises JournalError if what is there cannot be read or is not for us, or another heek runs on it; `why`
    itself if a journal was being set aside, and cannot be until the folder is writable.
    """
    file = state_dir / FILE_NAME
    journal = UnsavedJournal(database_in_memory(), file, why)
    try:
        if unfinished(state_dir) is not None:
            raise why
        if _is_anything_there(file):
            try:
                reader = read_journal(file)
            except JournalEmpty:
                if not _was_never_filled(file):
                    raise
            else:
                _copy(reader, journal._db)
    except BaseException:
        journal.abandon()
        raise
    return journal


def _copy(reader: JournalReader, db: sqlite3.Connection) -> None:
    """All that decides, out of a journal that is closed then; raises JournalError if it cannot be read."""
    with reader:
        reader.copy_into(db, _LEFT)
        for entry in reader.events(reader.last_seq() - 1):
            db.execute(
                "INSERT INTO events(seq, at_ns, event, body) VALUES(?, ?, ?, ?)",
                (entry.seq, entry.at_ns, entry.event, entry.body),
            )


def _was_never_filled(file: Path) -> bool:
    """A file without tables is of a first start that was cut or had no room, unless a journal was kept there.

    That says its marker; or a log beside an empty file, as `open_database` sees it.
    """
    log = file.with_name(f"{FILE_NAME}-wal")
    try:
        lost = file.stat().st_size == 0 and log.exists() and log.stat().st_size > 0
        return not lost and not file.with_name(MARKER_NAME).exists()
    except OSError:
        return False


def _is_anything_there(file: Path) -> bool:
    """Raises JournalError if not even that can be told."""
    try:
        return any(each.exists() for each in (file, file.with_name(MARKER_NAME)))
    except OSError as error:
        raise JournalError(
            f"{file}: cannot be read ({error.strerror}); run as the user who runs heek"
        ) from None
