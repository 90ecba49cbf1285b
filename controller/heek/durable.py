"""What it takes that a file is on the disk whole, under its name, after a full disk or a pulled plug."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import Final

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""By these numbers a disk says that there is no room."""
READ_ONLY: Final = (
    "its file system is read-only: mount it for writing, and see to the card or disk, since a kernel makes a "
    "broken one so by itself (dmesg says why)"
)
"""What to do about EROFS: no owner and no mode of the folder would change it."""


def write_all(handle: int, data: bytes) -> None:
    """Write all of it; raises OSError where a disk with little room has taken but a part."""
    while data:
        data = data[os.write(handle, data) :]


def sync_folder(folder: Path) -> None:
    """Make new names in a folder survive a pulled plug, where the file system can do that."""
    # Some cannot; it is no reason not to play or to serve.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def leave_mark(marker: Path, words: bytes) -> None:
    """Leave a file that says something was kept here, for its owner alone, on the disk when this returns.

    Raises OSError. Called once what it speaks of is durable: else a cut in between would look like a loss.
    """
    handle = os.open(marker, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.write(handle, words)
        os.fsync(handle)
    finally:
        os.close(handle)
    sync_folder(marker.parent)
