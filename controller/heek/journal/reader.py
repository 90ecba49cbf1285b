"""Opens a journal to look at, beside a running daemon or without one; writes and makes nothing.

SQLite's write-ahead log needs a second file, -shm, that a reader would make if it is missing. Three
cases, then: with -shm (a daemon runs, or died) it is mapped read-only; without -shm and without a
log (a clean end) the file is complete by itself and opened as one that nobody changes; without -shm
but with a log (files copied from a card) both are copied to a folder of ours and read there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from heek.errors import JournalEmpty, JournalError
from heek.journal.kept import KeptRecords
from heek.journal.schema import BUSY_MS, FILE_NAME, MARKER_NAME, check_version, trouble

if TYPE_CHECKING:
    import tempfile


def read_journal(path: Path) -> JournalReader:
    """Open the journal in a state folder, or a journal file, for reading only.

    Raises JournalError if there is none, or it is empty (JournalEmpty), no journal, damaged, a newer
    version's, not readable for this user or locked.
    """
    file = path
    try:
        file = path / FILE_NAME if path.is_dir() else path
        size = file.stat().st_size
    except FileNotFoundError:
        if file.with_name(MARKER_NAME).exists():
            raise JournalError(
                f"{file}: is gone, though {MARKER_NAME} beside it says that one was kept here; bring it "
                "back from a copy, or start the table (`heek run`), which goes on with a new one"
            ) from None
        raise JournalError(
            f"{file}: there is no journal; `heek run` makes one, in the folder that table.state_dir names"
        ) from None
    except OSError as error:
        raise JournalError(
            f"{file}: cannot be read ({error.strerror}); run as the user who runs heek"
        ) from None
    if size == 0:
        raise JournalEmpty(f"{file}: is empty, so it is no journal; bring it back from a copy")
    return JournalReader(file)


class JournalReader(KeptRecords):
    """A journal open for reading. Made by `read_journal`."""

    def __init__(self, file: Path) -> None:
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._alone = False
        super().__init__(self._connect(file), file)
        try:
            if check_version(self._db, file) == 0:
                raise JournalEmpty(f"{file}: has no tables, so it is no journal; bring it back from a copy")
        except sqlite3.OperationalError as error:
            self.close()
            raise trouble(file, error) from None
        except sqlite3.Error as error:
            self.close()
            raise JournalError(
                f"{file}: is no journal, or is damaged ({error}); nothing was changed"
            ) from None
        except JournalError:
            self.close()
            raise

    def verify(self) -> list[str]:
        """Everything that is wrong with the journal, one line each; empty if it is sound."""
        faults = super().verify()
        if faults and self._alone and _beside(self.file, "-shm").exists():
            # A daemon started meanwhile and wrote into the file that we took for a still one.
            self._db.close()
            self._db = self._connect(self.file)
            faults = super().verify()
        return faults

    def integrity(self, busy: Callable[[], bool], steps: int, most: int) -> list[str]:
        """What SQLite finds wrong with pages and indexes, at most so many lines; empty if nothing.

        Asks `busy` every so many steps, and raises sqlite3.OperationalError ("interrupted") once it says so.
        """
        self._db.set_progress_handler(lambda: int(busy()), steps)
        try:
            rows = self._db.execute(f"PRAGMA integrity_check({int(most)})").fetchall()
        finally:
            self._db.set_progress_handler(None, 0)
        return [f"{self.file}: {' '.join(str(line).split())}" for (line,) in rows if line != "ok"]

    def copy_into(self, db: sqlite3.Connection, but: Collection[str]) -> None:
        """Copy every table but those named into another database, as far as that one has it.

        Raises JournalError if one cannot be read.
        """
        try:
            for (name,) in db.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
            ).fetchall():
                there = _columns(self._db, name)
                columns = [f'"{each}"' for each in _columns(db, name) if each in there]
                if name not in but and columns:
                    chosen, marks = ", ".join(columns), ", ".join("?" * len(columns))
                    rows = self._db.execute(f"SELECT {chosen} FROM {name}")
                    db.executemany(f"INSERT INTO {name}({chosen}) VALUES({marks})", rows)
        except sqlite3.Error as error:
            raise trouble(self.file, error) from None

    def close(self) -> None:
        """Close the file; harmless when done already."""
        self._db.close()
        if self._copy is not None:
            self._copy.cleanup()

    def __enter__(self) -> JournalReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _connect(self, file: Path) -> sqlite3.Connection:
        log, shared = _beside(file, "-wal"), _beside(file, "-shm")
        self._alone = False
        try:
            if shared.exists():
                options = "mode=ro&readonly_shm=1"
            elif log.exists() and log.stat().st_size > 0:
                file = self._copied(file, log)
                options = "mode=rw"
            else:
                self._alone = True
                options = "mode=ro&immutable=1"
            uri = f"{file.absolute().as_uri()}?{options}"
            return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_MS / 1000)
        except OSError as error:
            raise JournalError(f"{file}: cannot be read ({error.strerror or error})") from None
        except sqlite3.Error as error:
            raise trouble(file, error) from None

    def _copied(self, file: Path, log: Path) -> Path:
        # Rarely needed, and slow to import on a small machine.
        import shutil
        import tempfile

        self._copy = tempfile.TemporaryDirectory(prefix="heek-journal-")
        for source in (file, log):
            shutil.copyfile(source, Path(self._copy.name) / source.name)
        return Path(self._copy.name) / file.name


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [str(row[1]) for row in db.execute(f"PRAGMA table_info({table})")]


def _beside(file: Path, suffix: str) -> Path:
    return file.with_name(file.name + suffix)
