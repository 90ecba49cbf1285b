"""The ledger's file: how it is opened, made, locked, judged sound, and closed.

One connection writes, a few only read; SQLite's WAL lets them do so at once. A commit is on the disk before
it returns (`synchronous=FULL`), because the service answers after it and a table then forgets.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event, func, inspect, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from heek.durable import READ_ONLY, leave_mark
from heek.errors import RankingError
from heek.ranking.chains import link_all
from heek.ranking.schema import VERSION, ledger_version, metadata, tables

log: Final = logging.getLogger("heek")

BUSY_MS: Final = 2000
"""How long to wait for another program that looks into the file."""

READERS: Final = 2
"""Connections, and threads, that only read."""


_DAMAGE_REMEDY: Final = (
    "it is damaged or no ledger; move it away and bring back a copy, "
    "or begin anew: the tables then offer all their results again"
)


class LedgerUnsound(RankingError):
    """A look at the whole ledger has found that it does not hold together; the text says what to do."""


class Store:
    """An open ledger; made by `open_store`, closed once."""

    def __init__(
        self,
        file: Path,
        lock: int,
        writer: Engine,
        reader: Engine,
        *,
        had_tables: bool,
        damage: str | None = None,
    ) -> None:
        self.file = file
        self.had_tables = had_tables
        """When it was opened, tables had reported here that know the KI by its key; also if none can tell."""
        self.damage = damage
        """Why it is only read, and what to do; None: it was sound when it was opened."""
        self.writer = writer
        """For one thread."""
        self.reader = reader
        """For up to `READERS` threads."""
        self._lock = lock

    def empty_log(self) -> bool:
        """Bring all that stands in the log into the file; False if a reader was in the way."""
        raw = self.writer.raw_connection()
        try:
            cursor = raw.cursor()
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            busy, *_ = cursor.fetchone() or (1,)
            return not busy
        finally:
            raw.close()

    def close(self) -> None:
        """Close the file, and let others have it."""
        self.reader.dispose()
        self.writer.dispose()
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1


def open_store(file: Path) -> Store:
    """Open the ledger in this file, made if there is none, for this process alone.

    One that is damaged where a ledger was kept is open for reading alone (`Store.damage`): people who look
    are to be told, and there may be nobody who reads a log. Raises RankingError, with what to do, if the
    folder or file cannot be used, another KI has it, it is gone or emptied, another program's or a newer
    version's, or no data base where no ledger ever was. Nothing is ever deleted.
    """
    _make_folder(file.parent)
    lock = _lock(file)
    writer = reader = None
    try:
        _refuse_emptied(file)
        _make_private(file)
        writer = _engine(file, writes=True, size=1)
        reader = _engine(file, writes=False, size=READERS)
        try:
            had_tables = _settle(writer, file)
        except (LedgerUnsound, DBAPIError) as error:
            damage = _damage_of(file, error)
            if damage is None or not marker_of(file).exists():
                raise
            writer.dispose()
            # Whoever should try to write all the same is refused by the connection.
            writer = _engine(file, writes=False, size=1)
            return Store(file, lock, writer, reader, had_tables=True, damage=damage)
        _mark(file)
        return Store(file, lock, writer, reader, had_tables=had_tables)
    except BaseException as error:
        for engine in (writer, reader):
            if engine is not None:
                engine.dispose()
        os.close(lock)
        if isinstance(error, DBAPIError):
            raise trouble(file, error) from None
        raise


def trouble(file: Path, error: DBAPIError) -> RankingError:
    """What the data base refused, with what to do about it."""
    text = _first_cause(error)
    if "locked" in text or "busy" in text:
        remedy = "another program has it open; close that program (an SQLite browser?)"
    elif "full" in text:
        remedy = "the disk is full; make room, nothing is lost: the tables keep their results and ask again"
    elif "readonly" in text or "unable to open" in text or "I/O" in text:
        remedy = (
            "it, or its folder, cannot be written; give both to the user that runs the KI, or see to the disk"
        )
    elif _tells_damage(text):
        remedy = _DAMAGE_REMEDY
    else:
        remedy = "see to the file and its disk"
    return RankingError(f"{file}: {text.splitlines()[0] if text else 'not usable'}; {remedy}")


def _damage_of(file: Path, error: LedgerUnsound | DBAPIError) -> str | None:
    """What is damaged, with what to do; None: what was refused is no damage."""
    if isinstance(error, LedgerUnsound):
        return str(error)
    return str(trouble(file, error)) if is_damage(error) else None


def is_damage(error: DBAPIError) -> bool:
    """Does the file not hold together? Nothing else that is refused stays so for ever."""
    return _tells_damage(_first_cause(error))


def _tells_damage(text: str) -> bool:
    return "malformed" in text or "not a database" in text


def _first_cause(error: DBAPIError) -> str:
    """What went wrong first: after a full disk SQLite has rolled back, and knows its savepoints no more."""
    text = str(error.orig)
    earlier: BaseException | None = error
    while "no such savepoint" in text and earlier is not None:
        earlier = earlier.__context__
        if isinstance(earlier, DBAPIError):
            text = str(earlier.orig)
    return text


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise RankingError(f"{folder}: is a file; give the ledger a folder (service.database)") from None
    except OSError as error:
        raise _not_writable(folder, error) from None


def marker_of(file: Path) -> Path:
    """What stands beside a ledger once one was kept there: `ki.kept`, for `ki.sqlite3`."""
    return file.with_name(f"{file.stem}.kept")


def _refuse_emptied(file: Path) -> None:
    """An emptied or vanished ledger is none to begin anew in silently; SQLite would even delete its log."""
    log, marker = file.with_name(f"{file.name}-wal"), marker_of(file)
    try:
        there = file.exists()
        if there and file.stat().st_size > 0:
            return
        witnesses = [log] if log.exists() and log.stat().st_size > 0 else []
        if marker.exists():
            witnesses.append(marker)
    except OSError:
        return
    if witnesses:
        names = " and ".join(each.name for each in witnesses)
        raise RankingError(
            f"{file}: is {'empty' if there else 'gone'}, though {names} beside it "
            f"{'says' if len(witnesses) == 1 else 'say'} that a ledger was kept here; bring back a copy, or, "
            f"to begin anew on purpose, move {names} away: the tables then offer all their results again"
        )


def _mark(file: Path) -> None:
    """Make the marker; after the tables are durable, else a cut in between would look like a loss."""
    marker = marker_of(file)
    if marker.exists():
        return
    try:
        leave_mark(
            marker, b"A ledger is kept here; heek knows by this that it is damaged when gone or empty.\n"
        )
    except OSError as error:
        raise _not_writable(marker, error) from None


def _make_private(file: Path) -> None:
    """An empty file that only this user can read, or the one that is there made so.

    SQLite gives its side files the same mode.
    """
    try:
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.fchmod(handle, 0o600)
        finally:
            os.close(handle)
    except IsADirectoryError:
        raise RankingError(f"{file}: is a folder; service.database names a file") from None
    except OSError as error:
        raise _not_writable(file, error) from None


def _lock(file: Path) -> int:
    """Hold a lock beside the file until it is closed; raises RankingError if somebody else does."""
    import fcntl

    beside = file.with_name(f"{file.name}.lock")
    try:
        handle = os.open(beside, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise _not_writable(beside, error) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise RankingError(
            f"{file}: another KI runs on this ledger; stop it, or give this one its own service.database"
        ) from None
    except OSError as error:
        os.close(handle)
        raise _not_writable(beside, error) from None
    return handle


def _not_writable(path: Path, error: OSError) -> RankingError:
    remedy = "give it to the user that runs the KI, or set another service.database"
    if error.errno == errno.EROFS:
        remedy = READ_ONLY
    return RankingError(f"{path}: cannot be written ({error.strerror}); {remedy}")


def _engine(file: Path, *, writes: bool, size: int) -> Engine:
    engine = create_engine(
        f"sqlite:///{file}",
        poolclass=QueuePool,
        pool_size=size,
        max_overflow=0,
        connect_args={"check_same_thread": False, "timeout": BUSY_MS / 1000},
    )

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _record: object) -> None:
        # Transactions are ours to begin: the driver would begin none before a SAVEPOINT.
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")
        # So that an INSERT OR REPLACE is seen by the triggers that refuse it.
        connection.execute("PRAGMA recursive_triggers = ON")
        if writes:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            # What an erasure takes away is not to be found in free space.
            connection.execute("PRAGMA secure_delete = ON")
        else:
            connection.execute("PRAGMA query_only = ON")

    @event.listens_for(engine, "begin")
    def begun(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _settle(engine: Engine, file: Path) -> bool:
    """Make the tables of an empty file, or see that those there are are ours, of this version, and sound.

    Whether it has tables of ours that know the KI by its key.
    """
    with engine.begin() as connection:
        found = set(inspect(connection).get_table_names())
        if not found:
            metadata.create_all(connection)
            connection.execute(ledger_version.insert().values(id=1, version=VERSION))
            return False
        if ledger_version.name not in found:
            raise RankingError(f"{file}: is another program's data base; set another service.database")
        version = connection.execute(select(func.max(ledger_version.c.version))).scalar()
        if version is None or not 0 < version <= VERSION:
            raise RankingError(
                f"{file}: was written by a newer heek (ledger {version}, this one knows {VERSION}); "
                "install that version again, or set another service.database"
            )
        look_through(connection, file)
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
        if broken is not None:
            raise LedgerUnsound(
                f"{file}: its table {broken[0]} does not hold together; another program has written to it, "
                "so bring back a copy from before that"
            )
        if version < VERSION:
            _bring_up(connection, file, version)
            # A KI of version 1 had no key.
            return False
        return connection.execute(select(tables.c.id).limit(1)).first() is not None


def look_through(connection: Connection, file: Path) -> None:
    """Read every page of the file; raises LedgerUnsound, or DBAPIError, if it does not hold together."""
    found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
    if found != "ok":
        words = " ".join(str(found).replace("*** in database main ***", "").split())
        raise LedgerUnsound(f"{file}: {words}; {_DAMAGE_REMEDY}")


def _bring_up(connection: Connection, file: Path, version: int) -> None:
    """Make the ledger of an older version one of this, within the transaction: wholly or not at all."""
    # Version 2 only adds tables; what version 1 has stays as it is.
    metadata.create_all(connection)
    link_all(connection)
    connection.execute(ledger_version.update().values(version=VERSION))
    log.info("%s: the ledger is of version %d now, it was of %d", file, VERSION, version)


@contextlib.contextmanager
def told(file: Path) -> Iterator[None]:
    """Turn what the data base refuses in this block into RankingError."""
    try:
        yield
    except DBAPIError as error:
        raise trouble(file, error) from error
