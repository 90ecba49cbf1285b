"""The KI that the table is enrolled at, once more beside the journal: a damaged journal does not lose it.

Results can be carved out of a broken file; one short row that lay on its first page cannot, and without it a
table would want a code again, or believe whoever answers first. The journal is what counts: `ki.pin` follows
it, is read only when a new journal takes the place of a damaged one, and goes when the table is to forget its
KI.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import zlib
from pathlib import Path
from typing import Final

from heek.durable import sync_folder, write_all
from heek.journal.ki_notes import be_known
from heek.journal.schema import not_writable

PIN_NAME: Final = "ki.pin"
_FORM: Final = re.compile(
    r"heek-ki-pin 1\nservice ([0-9a-f]{64})\nkey ((?:[0-9a-f]{2})+)\nfound ([a-z]{1,20})\nname ([^\n]+)\n"
)
_MOST_BYTES: Final = 1024


def keep_pin(db: sqlite3.Connection, folder: Path) -> None:
    """Let the file say what the journal does; what the card does not take is written at the next start."""
    file = folder / PIN_NAME
    with contextlib.suppress(OSError, sqlite3.Error):
        row = db.execute("SELECT service, key, found, name FROM ki").fetchone()
        if row is None:
            file.unlink(missing_ok=True)
            return
        service, key, found, name = bytes(row[0]).hex(), bytes(row[1]).hex(), str(row[2]), str(row[3])
        text = f"heek-ki-pin 1\nservice {service}\nkey {key}\nfound {found}\nname {name}\n".encode()
        content = text + f"sum {zlib.crc32(text):08x}\n".encode()
        with contextlib.suppress(FileNotFoundError):
            if file.read_bytes() == content:
                return
            # Rather none than that of another KI, should there be no room for the new one.
            file.unlink()
        _write(file, content)


def forget_pin(folder: Path) -> None:
    """Remove the file; raises JournalError if that cannot be."""
    try:
        (folder / PIN_NAME).unlink(missing_ok=True)
    except OSError as error:
        raise not_writable(folder, error) from None
    sync_folder(folder)


def bring_back_pin(db: sqlite3.Connection, folder: Path) -> None:
    """Enrol a new journal where the file says, if what came over of the damaged one does not say where.

    News are to be told from the first one again. Raises sqlite3.Error if the journal cannot be written.
    """
    if db.execute("SELECT count(*) FROM ki").fetchone()[0]:
        return
    found = _read(folder / PIN_NAME)
    if found is not None:
        db.execute(
            "INSERT INTO ki(id, service, name, found, key) VALUES(1, ?, ?, ?, ?)",
            (bytes.fromhex(found[1]), found[4], found[3], bytes.fromhex(found[2])),
        )
        # If it does not know that key any more, it says so when it is asked.
        be_known(db, bytes.fromhex(found[2]))


def _read(file: Path) -> re.Match[str] | None:
    """The file's text, matched with its form; None if it is not there, or not whole."""
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES)
        text, _, told = content.rpartition(b"sum ")
        if told != f"{zlib.crc32(text):08x}\n".encode():
            return None
        return _FORM.fullmatch(text.decode())
    except (OSError, UnicodeDecodeError):
        return None


def _write(file: Path, content: bytes) -> None:
    # Under another name first: a cut in between must not leave half of it.
    draft = file.with_name(f".{file.name}.part")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        try:
            write_all(handle, content)
            os.fsync(handle)
        finally:
            os.close(handle)
        draft.rename(file)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(file.parent)
