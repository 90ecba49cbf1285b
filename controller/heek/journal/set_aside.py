"""Sets the files of a damaged journal aside and begins a new one, so that a cut at any moment loses nothing.

The files move, by renames alone, into a folder `damaged-N` beside where they stood. That folder also holds
how far it has come, so that whoever starts next goes on from there:

1. `moving`: the file that says why. While it is there, whatever of the journal still stands in the state
   folder belongs in here.
2. `salvaging`, into which `moving` is renamed when all has moved: a new journal is being made, in `begun`,
   of what can be read. When it is complete and on the card, one rename puts it in its place.
3. `report.txt`: it stands in its place. It says in words what was brought over.

A half-made new journal in `begun` is thrown away and made again; nothing else is ever removed. The caller
holds the lock on the state folder.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Final

from heek.durable import sync_folder, write_all
from heek.errors import JournalError
from heek.journal.pin_file import bring_back_pin
from heek.journal.salvage import Salvaged, bring_over, read_salvaged
from heek.journal.schema import FILE_NAME, MARKER_NAME, not_writable, open_database, trouble

MOVING: Final = "moving"
SALVAGING: Final = "salvaging"
REPORT: Final = "report.txt"
BEGUN: Final = "begun"

FILES: Final = (FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm", MARKER_NAME)
_BROUGHT_BACK: Final = "Another journal was put in its place meanwhile; nothing of this one was brought over."
_NAME: Final = re.compile(r"damaged-([1-9][0-9]{0,5})")


def damaged_folders(state_dir: Path) -> list[Path]:
    """Where damaged journals were set aside, oldest first; empty without a state folder."""
    try:
        found = [
            (int(match[1]), each) for each in state_dir.iterdir() if (match := _NAME.fullmatch(each.name))
        ]
    except OSError:
        return []
    return [folder for _, folder in sorted(found)]


def unfinished(state_dir: Path) -> Path | None:
    """The folder in which setting aside was cut short; None: nothing was."""
    for folder in damaged_folders(state_dir):
        if (folder / MOVING).exists() or (folder / SALVAGING).exists():
            return folder
    return None


def finish(state_dir: Path, last_seq: int | None = None) -> Salvaged | None:
    """Go on with what a cut interrupted; what came of it, None if there was nothing to do.

    `last_seq` as `bring_over` has it. Raises JournalError if the folder cannot be written.
    """
    folder = unfinished(state_dir)
    return None if folder is None else _go_on(state_dir, folder, last_seq)


def set_aside(state_dir: Path, reason: str, last_seq: int | None = None) -> Salvaged | None:
    """Set the damaged journal of this folder aside and put a new one in its place, with what can be read.

    `reason` is what was found, `last_seq` as `bring_over` has it. Raises JournalError, with what to do, if
    the folder cannot be written: then all is there, and the next start goes on.
    """
    folders = damaged_folders(state_dir)
    try:
        if folders and not any(folders[-1].iterdir()):
            # Made by a start that was cut short right after it.
            folder = folders[-1]
        else:
            number = int(folders[-1].name.split("-")[1]) + 1 if folders else 1
            folder = state_dir / f"damaged-{number}"
            folder.mkdir(mode=0o700)
        _write(folder / MOVING, f"{reason}\n")
        sync_folder(state_dir)
    except OSError as error:
        raise not_writable(state_dir, error) from None
    return _go_on(state_dir, folder, last_seq)


def _go_on(state_dir: Path, folder: Path, last_seq: int | None) -> Salvaged | None:
    try:
        if (folder / MOVING).exists():
            for name in FILES:
                if (state_dir / name).exists():
                    (state_dir / name).rename(folder / name)
            sync_folder(folder)
            sync_folder(state_dir)
            (folder / MOVING).rename(folder / SALVAGING)
            sync_folder(folder)
        if not (state_dir / FILE_NAME).exists():
            _begin(state_dir, folder, last_seq)
        salvaged = _in_place(state_dir / FILE_NAME, folder)
        shutil.rmtree(folder / BEGUN, ignore_errors=True)
        with (folder / SALVAGING).open("a", encoding="utf-8") as report:
            report.write(f"{_BROUGHT_BACK if salvaged is None else salvaged.sentence}\n")
            report.flush()
            os.fsync(report.fileno())
        (folder / SALVAGING).rename(folder / REPORT)
        sync_folder(folder)
    except JournalError:
        raise
    except OSError as error:
        raise not_writable(folder, error) from None
    return salvaged


def _begin(state_dir: Path, folder: Path, last_seq: int | None) -> None:
    """Make the new journal beside the old one and put it in its place."""
    begun = folder / BEGUN
    shutil.rmtree(begun, ignore_errors=True)
    begun.mkdir(mode=0o700)
    file = begun / FILE_NAME
    db = open_database(begun)
    try:
        bring_over(folder / FILE_NAME, db, folder.name, last_seq)
        bring_back_pin(db, state_dir)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise trouble(file, error) from None
    finally:
        db.close()
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    file.rename(state_dir / FILE_NAME)
    sync_folder(state_dir)


def _in_place(file: Path, folder: Path) -> Salvaged | None:
    """What the journal that now stands in its place says of how it was made; None: it is somebody's copy."""
    try:
        db = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
        try:
            salvaged = read_salvaged(db)
        finally:
            db.close()
    except sqlite3.Error:
        salvaged = None
    return salvaged if salvaged is not None and salvaged.folder == folder.name else None


def _write(file: Path, text: str) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        write_all(handle, text.encode())
        os.fsync(handle)
    finally:
        os.close(handle)
