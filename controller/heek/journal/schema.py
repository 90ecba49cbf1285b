"""The journal's tables, and how their file is opened, made and judged sound.

`user_version` is the version of the schema, `application_id` says that the file is ours. An event and a
result are never changed or removed, but for a player's identity that the KI has erased: results lose it, and
events and recordings are read without it (`heek.journal.erased`). The snapshot is replaced, a result's place
in the outbox learns what the KI answered, and of the recordings the oldest are given up. A file of an older
schema is brought up to this one when the daemon opens it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from pathlib import Path
from typing import Final

from heek.durable import FULL, READ_ONLY, leave_mark
from heek.errors import JournalDamaged, JournalError, JournalUnwritable

FILE_NAME: Final = "journal.sqlite3"
MARKER_NAME: Final = "journal.kept"
"""Says that a journal was made here. SQLite takes an emptied file for a new one, and an integrity
check answers "ok" to it; only a mark outside of the file can tell that there was something in it."""

VERSION: Final = 6
RECORDINGS_SINCE: Final = 3
KI_SINCE: Final = 4
ACKNOWLEDGED_SINCE: Final = 5
DIGESTS_SINCE: Final = 5
KNOWN_SINCE: Final = 5
ERASED_SINCE: Final = 6
APPLICATION_ID: Final = 0x6865656B  # "heek"

PAGE_BYTES: Final = 512
"""Of a new file's pages; one that is there keeps its own. A commit writes whole pages, and nearly each one is
of a single short event: with pages of 4 KiB, SQLite's own choice, the card takes three times as much."""

LOG_BYTES: Final = 1024 * 1024
"""How long the log gets, in a dozen lively matches, before it is carried over into the file: a page that is
written many times meanwhile is carried over once. A longer one saves next to nothing, and it takes it longer
until it is written over from its beginning, which costs the file system no new blocks."""

BUSY_MS: Final = 250
"""How long to wait for somebody else's lock. Short: the table plays on and tries again."""

_RECORDINGS: Final = (
    "CREATE TABLE recordings(first_seq INTEGER PRIMARY KEY, beginning BLOB NOT NULL)",
    """CREATE TABLE recording_parts(
        last_seq INTEGER PRIMARY KEY, recording INTEGER NOT NULL, after_seq INTEGER NOT NULL,
        inputs BLOB NOT NULL)""",
    "CREATE INDEX match_ends ON events(seq) WHERE event IN ('match_won', 'match_void')",
)
"""What events can be replayed from (`heek.recording`), by the numbers of the events, and which ones end a
match. No foreign key: a part whose beginning the card lost must not keep the events from being kept."""

_FAIRNESS: Final = (
    "CREATE TABLE fairness(incarnation TEXT PRIMARY KEY, seq INTEGER NOT NULL, body TEXT NOT NULL)",
)

_KI: Final = (
    """CREATE TABLE ki(
        id INTEGER PRIMARY KEY CHECK(id = 1),
        service BLOB NOT NULL, name TEXT NOT NULL, found TEXT NOT NULL, key BLOB NOT NULL,
        news INTEGER NOT NULL DEFAULT 0, mark BLOB NOT NULL DEFAULT (zeroblob(8)))""",
    """CREATE TABLE news(
        number INTEGER PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL, understood INTEGER NOT NULL)""",
    "CREATE TABLE voids(match TEXT PRIMARY KEY, reason TEXT NOT NULL)",
    "CREATE TABLE names(player TEXT PRIMARY KEY, name TEXT NOT NULL)",
)
"""`ki` has one row once the table is enrolled: the service's public key and name, how it was found (`code` or
`sight`), the key id that the table had then, number and mark of the last news. `news` is what the KI told, as
it came; `voids` and `names` are what that comes to: which matches are void now, what players are called."""

_DIGESTS: Final = (
    """CREATE TABLE digests(
        key BLOB PRIMARY KEY,
        settled_count INTEGER NOT NULL, settled_xor BLOB NOT NULL,
        offered_count INTEGER, offered_xor BLOB)""",
)
"""By key id, as the table may have had others before: the difference of digests that is settled, and what the
KI should hold while an offer is under way (`heek.ki.settlement`). A key without a row agrees with the KI."""

_KNOWN: Final = ("CREATE TABLE known_as(key BLOB PRIMARY KEY)",)
"""The key ids by which the KI of the row in `ki` knows this table, as far as it has said."""

_ACKNOWLEDGED: Final = (
    """CREATE TABLE acknowledged(
        key BLOB PRIMARY KEY, count INTEGER NOT NULL, xor BLOB NOT NULL,
        at_s INTEGER NOT NULL, trust TEXT NOT NULL, by TEXT NOT NULL)""",
)
"""By key id: the settled difference that an operator knows of, who and when that was (by the wall clock, and
how far it was believed). It is told no more as long as it stays the same."""

_ERASED: Final = ("CREATE TABLE erased(number INTEGER PRIMARY KEY, player TEXT NOT NULL UNIQUE)",)
"""The KI numbers of players whose identity a KI has erased, in the order in which it told that; it stays when
the table goes over to another KI."""

_TABLES: Final = (
    """CREATE TABLE events(
        seq INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, event TEXT NOT NULL, body TEXT NOT NULL)""",
    """CREATE TABLE snapshot(
        id INTEGER PRIMARY KEY CHECK(id = 1), state BLOB NOT NULL,
        boot TEXT NOT NULL, mono_ns INTEGER NOT NULL, wall_s REAL NOT NULL, trust TEXT NOT NULL)""",
    """CREATE TABLE results(
        number INTEGER PRIMARY KEY, match TEXT NOT NULL UNIQUE, record BLOB NOT NULL, cbor BLOB, key BLOB)""",
    """CREATE TABLE outbox(
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        match TEXT NOT NULL UNIQUE REFERENCES results(match),
        state TEXT NOT NULL DEFAULT 'waiting', reason TEXT, again INTEGER NOT NULL DEFAULT 0,
        signature BLOB)""",
    "CREATE TABLE players(player TEXT PRIMARY KEY, points INTEGER NOT NULL)",
    "CREATE INDEX outbox_waiting ON outbox(position) WHERE state = 'waiting'",
    *_RECORDINGS,
    *_FAIRNESS,
    *_KI,
    *_DIGESTS,
    *_KNOWN,
    *_ACKNOWLEDGED,
    *_ERASED,
)
"""`results.record` is the match as JSON, for people and for our own sums; `results.cbor` the bytes that are
signed and sent, `results.key` the key id in them. `outbox.state` is `waiting`, or what the KI answered; with
`again` it had answered once and is offered again. `outbox.signature` is that under which it was answered: of
a key that the table has lost since, it cannot be made again. `players` is what it told of them."""

_UPGRADES: Final = {
    1: (
        "ALTER TABLE results ADD COLUMN cbor BLOB",
        "ALTER TABLE outbox ADD COLUMN reason TEXT",
        "CREATE TABLE players(player TEXT PRIMARY KEY, points INTEGER NOT NULL)",
        "CREATE INDEX outbox_waiting ON outbox(position) WHERE state = 'waiting'",
    ),
    2: (*_RECORDINGS, *_FAIRNESS),
    3: (
        "ALTER TABLE results ADD COLUMN key BLOB",
        "ALTER TABLE outbox ADD COLUMN again INTEGER NOT NULL DEFAULT 0",
        *_KI,
    ),
    4: (
        "ALTER TABLE outbox ADD COLUMN signature BLOB",
        *_DIGESTS,
        *_KNOWN,
        *_ACKNOWLEDGED,
        "INSERT INTO known_as(key) SELECT key FROM ki",
    ),
    5: (
        *_ERASED,
        # As this version can make something of its news, so could the one that kept it.
        """INSERT OR IGNORE INTO erased(player) SELECT json_extract(body, '$.player') FROM news
            WHERE kind = 'erased' AND understood AND json_valid(body)
            AND json_type(body, '$.player') = 'text' ORDER BY number""",
    ),
}
"""By version: what brings a file to the next one."""

_DIGESTS_OUT_OF_KI: Final = (
    """INSERT INTO digests(key, settled_count, settled_xor, offered_count, offered_xor)
        SELECT key, settled_count, settled_xor, offered_count, offered_xor FROM ki""",
    *(
        f"ALTER TABLE ki DROP COLUMN {column}"
        for column in ("settled_count", "settled_xor", "offered_count", "offered_xor")
    ),
)
"""Of version 4, where they stood in `ki`."""


def open_database(folder: Path) -> sqlite3.Connection:
    """Open the journal of a state folder for writing, made if there was none, checked if there was.

    The caller holds the folder's lock. Raises JournalError with a remedy: JournalDamaged if what was kept
    here is damaged, emptied or gone. Such files stay byte for byte as they are.
    """
    file, marker = folder / FILE_NAME, folder / MARKER_NAME
    # By its size alone: to open and close the file beside SQLite would drop SQLite's own locks on it.
    size = file.stat().st_size if file.exists() else 0
    had_data = marker.exists()
    log = file.with_name(f"{FILE_NAME}-wal")
    witnesses = [marker] if had_data else []
    if log.exists() and log.stat().st_size > 0:
        # SQLite would delete the log of an empty file, and with it what may be saved by hand.
        witnesses.append(log)
    if size == 0 and witnesses:
        gone = "is empty" if file.exists() else "is gone"
        names = " and ".join(witness.name for witness in witnesses)
        raise JournalDamaged(
            f"{file}: {gone}, though {names} beside it {'says' if len(witnesses) == 1 else 'say'} that a "
            f"journal was kept here; {SALVAGE}"
        )
    made = not file.exists()
    try:
        _for_its_owner_alone(file)
        db = sqlite3.connect(file, isolation_level=None, timeout=BUSY_MS / 1000)
    except sqlite3.Error as error:
        raise trouble(file, error) from None
    except OSError as error:
        raise not_writable(folder, error) from None
    try:
        try:
            _settle(db, file, had_data)
        except sqlite3.Error:
            if made:
                close_as_it_is(db, file)
                _take_back(file)
            raise
        if not had_data:
            _mark(marker)
    except UnicodeDecodeError:
        # Of the schema's own text, on its way into Python: no error of SQLite's.
        close_as_it_is(db, file)
        raise damaged(file, "it has a text that is no UTF-8") from None
    except sqlite3.Error as error:
        close_as_it_is(db, file)
        raise trouble(file, error) from None
    except OSError as error:
        close_as_it_is(db, file)
        if isinstance(error, JournalError):
            raise
        raise not_writable(folder, error) from None
    return db


def _for_its_owner_alone(file: Path) -> None:
    """Names and matches are nobody else's business. SQLite gives log and index the mode of the file."""
    if not file.exists():
        # Empty, as SQLite would make it, but never open to others, whatever the umask.
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
    for each in (file, file.with_name(f"{FILE_NAME}-wal"), file.with_name(f"{FILE_NAME}-shm")):
        # Not ours, or on a file system without modes: then whoever mounted it has said who may read it.
        with contextlib.suppress(OSError):
            if each.stat().st_mode & 0o077:
                each.chmod(0o600)


def _take_back(file: Path) -> None:
    """Remove what this opening made and a card could not take whole: it was never a journal."""
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(OSError):
            file.with_name(f"{file.name}{suffix}").unlink(missing_ok=True)


def close_as_it_is(db: sqlite3.Connection, file: Path) -> None:
    """Close without carrying the write-ahead log over into the file, which the last one to close does.

    A reader that closes after us, and cannot write, keeps SQLite from that.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(sqlite3.Error, UnicodeDecodeError):
            witness = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
            stack.callback(witness.close)
            witness.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        db.close()


def check_version(db: sqlite3.Connection, file: Path) -> int:
    """The schema's version, 0 for a file without any table; raises JournalError if it is not for us."""
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    application = int(db.execute("PRAGMA application_id").fetchone()[0])
    tables = int(db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])
    if application != APPLICATION_ID and (application or tables or version):
        raise JournalError(
            f"{file}: is another program's database; set table.state_dir to a folder of its own"
        )
    if version > VERSION:
        raise JournalError(
            f"{file}: was written by a newer heek (schema {version}, this one knows {VERSION}); "
            "install that version again, or set table.state_dir to another folder"
        )
    return version


def trouble(file: Path, error: sqlite3.Error) -> JournalError:
    """What SQLite refused, with what to do about it."""
    text = str(error)
    kind: type[JournalError] = JournalError
    if file.is_dir():
        return JournalError(f"{file}: is a folder, so it is no journal; move it aside")
    if "decode" in text:
        # SQLite would tell the whole text.
        return damaged(file, "it has a text that is no UTF-8")
    if "locked" in text or "busy" in text:
        remedy = "another program has it open; close that program (an SQLite browser?)"
    elif "readonly" in text or "unable to open" in text:
        kind = JournalUnwritable
        remedy = (
            "check that the user who runs heek may write the file and its folder, and that the card is sound"
        )
    elif "full" in text or "disk I/O" in text:
        kind = JournalUnwritable
        remedy = "check that there is space left on the card and that it is sound"
    elif "malformed" in text or "not a database" in text or type(error) is sqlite3.DatabaseError:
        return damaged(file, text)
    else:
        remedy = "check the card and the folder"
    return kind(f"{file}: {text}; {remedy}")


SALVAGE: Final = (
    "nothing was changed or deleted: bring it back from a copy, or start the table (`heek run`), "
    "which sets it aside and goes on with what can still be read of it"
)


def damaged(file: Path, what: str) -> JournalDamaged:
    """The file is broken; it stays where and as it is."""
    return JournalDamaged(f"{file}: is damaged ({what}); {SALVAGE}")


def not_writable(folder: Path, error: OSError) -> JournalError:
    """The state folder cannot be made or written: JournalUnwritable, unless no folder can be there."""
    kind: type[JournalError] = JournalUnwritable
    if error.errno in FULL:
        remedy = "make room on the card"
    elif error.errno == errno.EROFS:
        remedy = READ_ONLY
    elif error.errno in (errno.EEXIST, errno.ENOTDIR):
        kind, remedy = JournalError, "set table.state_dir to a folder"
    else:
        remedy = (
            "give the folder to the user who runs heek, or set table.state_dir to one that is that user's"
        )
    return kind(f"{folder}: cannot be written ({error.strerror or error}); {remedy}")


def _settle(db: sqlite3.Connection, file: Path, had_data: bool) -> None:
    db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    version = check_version(db, file)
    if version == 0 and had_data:
        raise damaged(file, "it has no tables")
    if version != 0:
        # Checked before anything is written: what is damaged must stay as it is.
        found = [str(row[0]) for row in db.execute("PRAGMA quick_check(3)")]
        if found != ["ok"]:
            raise damaged(file, " ".join("; ".join(found).split()))
    # Of no effect on a file that has pages.
    db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise JournalError(
            f"{file}: this file system cannot keep a write-ahead log (journal mode {mode}); "
            "set table.state_dir to a folder on a local disk"
        )
    db.execute("PRAGMA foreign_keys = ON")
    page = int(db.execute("PRAGMA page_size").fetchone()[0])
    db.execute(f"PRAGMA wal_autocheckpoint = {LOG_BYTES // page}")
    # No more than that is left lying afterwards.
    db.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
    db.execute("PRAGMA synchronous = FULL")
    if version == VERSION:
        return
    db.execute("BEGIN IMMEDIATE")
    for statement in _TABLES if version == 0 else _upgrade_from(version):
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {VERSION}")
    db.execute("COMMIT")


def database_in_memory() -> sqlite3.Connection:
    """A journal without anything in it, nor a file under it."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    for statement in (*_TABLES, f"PRAGMA user_version = {VERSION}"):
        db.execute(statement)
    return db


def _upgrade_from(version: int) -> list[str]:
    statements = [statement for each in range(version, VERSION) for statement in _UPGRADES[each]]
    return statements + (list(_DIGESTS_OUT_OF_KI) if version == KI_SINCE else [])


def _mark(marker: Path) -> None:
    leave_mark(
        marker, b"A journal is kept here; heek knows by this that it is damaged when it is gone or empty.\n"
    )
