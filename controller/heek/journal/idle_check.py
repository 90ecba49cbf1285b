"""The full check of a journal's file, for when nobody plays: it reads every page and every index.

The check at the start is a quick one: it leaves out the indexes. This one takes seconds on a large journal,
so it runs beside the journal's own thread, over a connection that only reads, and gives way at once when
somebody sits down.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final

from heek.errors import JournalError
from heek.journal.reader import read_journal

STEPS: Final = 2_000
"""Of SQLite's machine between two looks whether somebody has come: well under a millisecond."""

MOST: Final = 20


def full_check(state_dir: Path, busy: Callable[[], bool]) -> list[str] | None:
    """What is wrong with the file, one line each; None: `busy` became true before the check was through.

    A file that cannot be read now (locked, no room for a temporary copy) is told like any other fault.
    """
    try:
        with read_journal(state_dir) as journal:
            return journal.integrity(busy, STEPS, MOST)
    except JournalError as error:
        return [str(error)]
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            return None
        return [f"{state_dir}: {error}"]
    except sqlite3.Error as error:
        return [f"{state_dir}: is damaged ({error})"]
