"""One daemon on one state folder: a lock that the kernel takes back when its holder dies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from heek.durable import FULL
from heek.errors import JournalError
from heek.journal.schema import not_writable

LOCK_NAME: Final = "journal.lock"


class FolderLock:
    """The lock on a state folder, held from its making until `release` or the process's death.

    Raises JournalError if somebody else has it (naming the process), or if the folder cannot be
    written. The file itself stays: to remove it would let two holders lock two files of one name.

    With `reading` nothing is written: a lock that is there already is taken, as far as that can be, and a
    folder without one is had without.
    """

    def __init__(self, folder: Path, *, reading: bool = False) -> None:
        import fcntl

        self._handle = -1
        try:
            flags = os.O_RDONLY if reading else os.O_RDWR | os.O_CREAT
            self._handle = os.open(folder / LOCK_NAME, flags, 0o600)
        except OSError as error:
            if not reading:
                raise not_writable(folder, error) from None
            if (pid := holder(folder)) is not None:
                raise _held(folder, str(pid or "unknown")) from None
            return
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not reading:
                os.ftruncate(self._handle, 0)
                os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            said = os.pread(self._handle, 32, 0).decode("ascii", "replace").strip() or "unknown"
            self.release()
            raise _held(folder, said) from None
        except OSError as error:
            # A full disk must not keep a table from playing: the number is for a message alone.
            if error.errno in FULL:
                return
            self.release()
            raise not_writable(folder, error) from None

    def release(self) -> None:
        """Let others have the folder; harmless when done already."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def _held(folder: Path, pid: str) -> JournalError:
    return JournalError(
        f"{folder}: another heek runs on this state folder (pid {pid}); "
        "stop that one, or give this one its own table.state_dir"
    )


def holder(folder: Path, locks: Path = Path("/proc/locks")) -> int | None:
    """The process that runs a table on this state folder, None if none does; as far as can be told.

    Asked of the kernel's list of locks: to try the lock would be in the way of a table that starts.
    """
    try:
        status = (folder / LOCK_NAME).stat()
        listed = locks.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    inode = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in listed.splitlines():
        words = line.split()
        # "7: FLOCK  ADVISORY  WRITE 1234 b3:02:5678 0 EOF"; with "->" after the number it only waits.
        if len(words) >= 6 and words[1] == "FLOCK" and words[5] == inode:
            return int(words[4]) if words[4].isdigit() else 0
    return None
