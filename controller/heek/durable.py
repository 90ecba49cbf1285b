"""What it takes that a new name in a folder is still there after a pulled plug."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


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
