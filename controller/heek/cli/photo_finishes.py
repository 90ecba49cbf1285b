"""The pictures of past rounds for the page, made beside the table: nothing here may make a press wait.

The list is one short read of the journal. To replay a match takes from a tenth of a second to many, of pure
computing; in a thread it would take its turns with the table's loop. So it is done by `heek photofinish` in a
process of its own, one at a time, and what came of it is remembered: a match that is over never changes. But
the KI may declare it void or restore it, which is looked up each time, or erase who played in it: then what
is remembered is forgotten.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from heek.cli import OK
from heek.errors import RecordingError
from heek.journal import read_journal
from heek.kept_matches import kept_matches
from heek.web.photo_pages import DrawnMatch, ShownMatch

REMEMBERED: Final = 16
"""Matches; each some tens of kilobytes."""

PATIENCE_S: Final = 50.0


class ReplayedMatches:
    """Implements `heek.web.doors.PhotoFinishes` over a journal. `close` it in the end."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._executor = ThreadPoolExecutor(1, "heek-photo")
        self._remembered: OrderedDict[str, DrawnMatch] = OrderedDict()
        self._erased: set[str] = set()
        """The players whom the KI had erased when that was drawn."""
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def matches(self) -> Future[Sequence[ShownMatch]]:
        """The matches that are over and kept, newest first."""
        return self._executor.submit(self._matches)

    def match(self, match: str) -> Future[DrawnMatch]:
        """Everything that can be drawn of one match."""
        return self._executor.submit(self._match, match)

    def close(self) -> None:
        """Let go; a replay that runs is ended."""
        self._closed = True
        self._executor.shutdown(wait=False, cancel_futures=True)
        process = self._process
        if process is not None:
            with contextlib.suppress(OSError):
                process.kill()

    def _matches(self) -> list[ShownMatch]:
        with read_journal(self._state_dir) as journal:
            return [ShownMatch(each.match, each.rounds, each.ending) for each in kept_matches(journal)]

    def _match(self, match: str) -> DrawnMatch:
        with read_journal(self._state_dir) as journal:
            void, erased = journal.voids().get(match), set(journal.erased())
        if erased != self._erased:
            self._erased = erased
            self._remembered.clear()
        found = self._remembered.get(match)
        if found is None:
            found = self._remembered[match] = self._replayed(match)
            if len(self._remembered) > REMEMBERED:
                self._remembered.popitem(last=False)
        self._remembered.move_to_end(match)
        if found.void != void:
            found = self._remembered[match] = replace(found, void=void)
        return found

    def _replayed(self, match: str) -> DrawnMatch:
        command = [sys.executable, "-m", "heek", "photofinish", "--json", "--patient"]
        command += ["--state-dir", str(self._state_dir), match]
        try:
            self._process = process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            if self._closed:
                process.kill()
            try:
                out, said = process.communicate(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                raise RecordingError(
                    f"match {match} takes too long to replay here; use heek photofinish"
                ) from None
        except OSError as error:
            raise RecordingError(f"heek photofinish cannot be started ({error.strerror or error})") from None
        finally:
            self._process = None
        # One that contradicts the journal is drawn, and ends with 1 all the same.
        if process.returncode != OK and not out:
            lines = said.decode(errors="replace").strip().splitlines()
            raise RecordingError(lines[-1].removeprefix("heek: ") if lines else "heek photofinish was ended")
        try:
            return msgspec.json.decode(out, type=DrawnMatch)
        except msgspec.MsgspecError as error:
            raise RecordingError(f"heek photofinish gave what cannot be read ({error})") from None
