"""Reads what the journal has kept; the same for the daemon and for who looks on.

Reads are short on purpose: whole pages of rows are fetched at once, so that nobody who reads slowly
holds an old state of the file and lets the write-ahead log grow without end.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from heek.errors import JournalError
from heek.journal import erased
from heek.journal.checks import check
from heek.journal.ki_notes import UNANSWERED, UNANSWERED_BEFORE, unanswered_deltas
from heek.journal.packing import unpacked, whole_line
from heek.journal.records import (
    NO_MATCHES,
    Acknowledgement,
    Digest,
    Entry,
    FairnessReport,
    Pin,
    RecordedPart,
    Result,
    SnapshotLabel,
)
from heek.journal.schema import (
    ACKNOWLEDGED_SINCE,
    DIGESTS_SINCE,
    ERASED_SINCE,
    KI_SINCE,
    KNOWN_SINCE,
    RECORDINGS_SINCE,
    trouble,
)

_PAGE: Final = 500
_PARTS_PAGE: Final = 50
"""Parts can be long."""
_RECORDS_PAGE: Final = 100
"""Records can have 64 KiB."""
_RECORDS_SINCE: Final = 2
"""The version of the schema whose results have them."""


class KeptRecords:
    """What stands in a journal. All methods raise JournalError when the file cannot be read."""

    def __init__(self, db: sqlite3.Connection, file: Path) -> None:
        self._db = db
        self.file: Final = file

    def last_seq(self) -> int:
        """The number of the last event, 0 if there is none."""
        return int(self._rows("SELECT coalesce(max(seq), 0) FROM events")[0][0])

    def events(self, after_seq: int = 0, limit: int | None = None) -> Iterator[Entry]:
        """The events with numbers above `after_seq`, in order, at most `limit` of them."""
        left, aliases = limit, self.erased()
        while left is None or left > 0:
            page = _PAGE if left is None else min(_PAGE, left)
            rows = self._rows(
                "SELECT seq, at_ns, event, body FROM events WHERE seq > ? ORDER BY seq LIMIT ?",
                (after_seq, page),
            )
            for row in rows:
                yield _entry(aliases, *row)
            if len(rows) < page:
                return
            after_seq = rows[-1][0]
            left = None if left is None else left - page

    def results(self) -> Iterator[Result]:
        """Every result, in the order in which they were written."""
        after, aliases = 0, self.erased()
        while rows := self._rows(
            "SELECT number, match, record FROM results WHERE number > ? ORDER BY number LIMIT ?",
            (after, _PAGE),
        ):
            for _, match, record in rows:
                # One that was played on past the news of it was written with the identity.
                yield Result(match, erased.record_without(record, aliases))
            after = rows[-1][0]

    def waiting(self) -> int:
        """How many results the KI has not acknowledged."""
        return int(self._rows("SELECT count(*) FROM outbox WHERE state = 'waiting'")[0][0])

    def refused(self) -> int:
        """How many results the KI has rejected or holds in conflict."""
        query = "SELECT count(*) FROM outbox WHERE state IN ('rejected', 'conflict')"
        return int(self._rows(query)[0][0])

    def player_deltas(self) -> dict[str, int]:
        """Ranking-points won and lost by KI number that are not in what the KI tells."""
        which = UNANSWERED if self._keeps(KI_SINCE) else UNANSWERED_BEFORE
        try:
            return unanswered_deltas(self._db, which)
        except sqlite3.Error as error:
            raise trouble(self.file, error) from None

    def pin(self) -> Pin | None:
        """The KI that the table believes; None: it was enrolled at none yet."""
        rows = self._rows("SELECT service, name, found FROM ki") if self._keeps(KI_SINCE) else []
        return Pin(bytes(rows[0][0]), str(rows[0][1]), str(rows[0][2])) if rows else None

    def is_known_as(self, key: bytes) -> bool:
        """Whether the table is enrolled: the KI that it believes knows it by the key of this id.

        As far as that has said; it may have been put back since from a backup in which it did not. Every
        place that tells people whether the table is enrolled asks this.
        """
        if not self._keeps(KNOWN_SINCE):
            return bool(self._keeps(KI_SINCE) and self._rows("SELECT 1 FROM ki WHERE key = ?", (key,)))
        return bool(self._rows("SELECT 1 FROM known_as WHERE key = ?", (key,)))

    def settled(self) -> int:
        """How many matches more the KI holds of this table than the journal knows it to have taken."""
        return self.difference()[0]

    def difference(self) -> Digest:
        """By what the KI's digest differs from ours, with the present key, and no offer has changed it."""
        # A file that only a reader has opened may be of the heek that kept it beside the KI's name.
        where = "digests JOIN ki USING(key)" if self._keeps(DIGESTS_SINCE) else "ki"
        rows = self._rows(f"SELECT settled_count, settled_xor FROM {where}") if self._keeps(KI_SINCE) else []
        return (int(rows[0][0]), bytes(rows[0][1])) if rows else NO_MATCHES

    def acknowledgement(self) -> Acknowledgement | None:
        """Who knows of the difference as it is now; None: nobody does, or there is none."""
        if not self._keeps(ACKNOWLEDGED_SINCE):
            return None
        rows = self._rows("SELECT count, xor, at_s, trust, by FROM acknowledged JOIN ki USING(key)")
        if not rows or (rows[0][0], bytes(rows[0][1])) != self.difference():
            return None
        count, xor, at_s, trust, by = rows[0]
        return Acknowledgement((int(count), bytes(xor)), int(at_s), str(trust), str(by))

    def voids(self) -> dict[str, str]:
        """The matches that an operator has declared void, each with the reason."""
        rows = self._rows("SELECT match, reason FROM voids") if self._keeps(KI_SINCE) else []
        return {str(match): str(reason) for match, reason in rows}

    def names(self) -> dict[str, str]:
        """What players are called now, by KI number, where the KI has told another name."""
        rows = self._rows("SELECT player, name FROM names") if self._keeps(KI_SINCE) else []
        return {str(player): str(name) for player, name in rows}

    def erased(self) -> dict[str, str]:
        """By KI number of each player whom the KI has erased: what is read in its place."""
        if not self._keeps(ERASED_SINCE):
            return {}
        return erased.aliases(self._rows("SELECT number, player FROM erased ORDER BY number"))

    def snapshot(self) -> tuple[bytes, SnapshotLabel] | None:
        """The newest state of the session and when it was taken; None if there never was one."""
        rows = self._rows("SELECT CAST(state AS BLOB), boot, mono_ns, wall_s, trust FROM snapshot")
        if not rows:
            return None
        state, *label = rows[0]
        return unpacked(state), SnapshotLabel(*label)

    def match_ends(self, limit: int | None = None) -> list[Entry]:
        """The last events of the matches that are over, newest first, as far back as recordings are kept."""
        if not self._keeps(RECORDINGS_SINCE):
            return []
        rows = self._rows(
            "SELECT seq, at_ns, event, body FROM events WHERE event IN ('match_won', 'match_void')"
            " AND seq >= (SELECT min(first_seq) FROM recordings) ORDER BY seq DESC LIMIT ?",
            (-1 if limit is None else limit,),
        )
        return [_entry({}, *row) for row in rows]

    def match_events(self, prefix: str) -> list[Entry]:
        """Every `match_started` whose match begins with `prefix`, oldest first; looks through all events."""
        rows = self._rows(
            "SELECT seq, at_ns, event, body FROM events WHERE event = 'match_started' ORDER BY seq"
        )
        entries = [_entry({}, *row) for row in rows]
        return [each for each in entries if str(_match_of(each.body)).startswith(prefix)]

    def match_start(self, last_seq: int) -> Entry | None:
        """The newest `match_started` up to that number: that of the match that is played or over then."""
        rows = self._rows(
            "SELECT seq, at_ns, event, body FROM events WHERE seq <= ? AND event = 'match_started'"
            " ORDER BY seq DESC LIMIT 1",
            (last_seq,),
        )
        return _entry({}, *rows[0]) if rows else None

    def next_match_start(self, after_seq: int) -> int | None:
        """The number of the first `match_started` after that event."""
        rows = self._rows(
            "SELECT seq FROM events WHERE seq > ? AND event = 'match_started' ORDER BY seq LIMIT 1",
            (after_seq,),
        )
        return int(rows[0][0]) if rows else None

    def recorded_parts(self, first_seq: int, last_seq: int, until_seq: int) -> list[RecordedPart]:
        """The parts of every recording that covers any of the events from `first_seq` to `last_seq`.

        In order, from the recording's beginning on; and those after them that go no further than `until_seq`.
        """
        if not self._keeps(RECORDINGS_SINCE):
            return []
        # By numbers alone, so that a long list of recordings is not looked through.
        began = self._rows("SELECT max(first_seq) FROM recordings WHERE first_seq <= ?", (first_seq,))[0][0]
        ended = self._rows("SELECT min(last_seq) FROM recording_parts WHERE last_seq >= ?", (last_seq,))[0][0]
        bounds = (
            first_seq if began is None else began,
            max(until_seq, last_seq if ended is None else ended),
        )
        rows = self._rows(
            "SELECT recording, after_seq, last_seq, CAST(inputs AS BLOB), CAST(beginning AS BLOB)"
            " FROM recording_parts LEFT JOIN recordings ON first_seq = recording"
            " WHERE last_seq BETWEEN ? AND ? AND (after_seq < ? OR last_seq <= ?) AND recording IN"
            " (SELECT recording FROM recording_parts WHERE last_seq BETWEEN ? AND ? AND after_seq < ?)"
            " ORDER BY last_seq",
            (*bounds, last_seq, until_seq, first_seq, bounds[1], last_seq),
        )
        return [RecordedPart(*row) for row in rows]

    def all_parts(self) -> Iterator[RecordedPart]:
        """Every part of every recording that is kept, in order."""
        after = -1
        while self._keeps(RECORDINGS_SINCE):
            rows = self._rows(
                "SELECT recording, after_seq, last_seq, CAST(inputs AS BLOB),"
                " iif(after_seq < recording, CAST(beginning AS BLOB), NULL)"
                " FROM recording_parts LEFT JOIN recordings ON first_seq = recording"
                " WHERE last_seq > ? ORDER BY last_seq LIMIT ?",
                (after, _PARTS_PAGE),
            )
            if not rows:
                return
            for row in rows:
                yield RecordedPart(*row)
            after = rows[-1][2]

    def fairness(self) -> FairnessReport | None:
        """The figures of fairness of the run that kept some last; None: no match has ended yet."""
        if not self._keeps(RECORDINGS_SINCE):
            return None
        rows = self._rows("SELECT incarnation, body, seq FROM fairness ORDER BY seq DESC LIMIT 1")
        return FairnessReport(*rows[0]) if rows else None

    def records_for_ki(self, *, everything: bool) -> Iterator[tuple[int, bytes | None]]:
        """Number and record of each result that waits, or of all, in the order in which they were written.

        The record is None in a result that an older version wrote. Raises JournalError also for a file of
        such a version that no newer one has opened yet.
        """
        self._expect_records()
        # Row by row by the index: to list all that wait anew for each page would take its square.
        waits = (
            ""
            if everything
            else " AND EXISTS(SELECT 1 FROM outbox WHERE outbox.match = results.match AND state = 'waiting')"
        )
        after = 0
        while rows := self._rows(
            f"SELECT number, cbor FROM results WHERE number > ?{waits} ORDER BY number LIMIT ?",
            (after, _RECORDS_PAGE),
        ):
            for number, cbor in rows:
                yield number, None if cbor is None else bytes(cbor)
            after = rows[-1][0]

    def records_numbered(self, numbers: Sequence[int]) -> Iterator[bytes]:
        """The records of results that `records_for_ki` has named, in that order."""
        for start in range(0, len(numbers), _RECORDS_PAGE):
            page = tuple(numbers[start : start + _RECORDS_PAGE])
            marks = ", ".join("?" * len(page))
            for (cbor,) in self._rows(
                f"SELECT cbor FROM results WHERE number IN ({marks}) AND cbor IS NOT NULL ORDER BY number",
                page,
            ):
                yield bytes(cbor)

    def records_of(self, matches: Sequence[str]) -> dict[str, tuple[bytes, bool]]:
        """Record, and whether it waits, by the match's UUID; only of those that have one."""
        self._expect_records()
        marks = ", ".join("?" * len(matches))
        rows = self._rows(
            "SELECT match, cbor, state = 'waiting' FROM results JOIN outbox USING(match)"
            f" WHERE match IN ({marks}) AND cbor IS NOT NULL",
            tuple(matches),
        )
        return {match: (bytes(cbor), bool(waits)) for match, cbor, waits in rows}

    def _expect_records(self) -> None:
        """Raise JournalError for a file that only a reader has opened, of a heek that kept no records."""
        if not self._keeps(_RECORDS_SINCE):
            raise JournalError(
                f"{self.file}: was kept by an older heek, and has no records to sign yet; start the table "
                "once, which makes them"
            )

    def _keeps(self, since: int) -> bool:
        """Whether the file has that schema or a later one; what only a reader has opened may be older."""
        return int(self._rows("PRAGMA user_version")[0][0]) >= since

    def verify(self) -> list[str]:
        """Everything that is wrong with the journal, one line each; empty if it is sound."""
        try:
            return check(self._db)
        except sqlite3.Error as error:
            return [str(trouble(self.file, error))]

    def _rows(self, query: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.ProgrammingError as error:
            raise JournalError(f"{self.file}: {error}") from None
        except sqlite3.Error as error:
            raise trouble(self.file, error) from None


def _entry(aliases: Mapping[str, str], seq: int, at_ns: int, event: str, written: str) -> Entry:
    line = whole_line(seq, at_ns, event, written)
    return Entry(seq, at_ns, event, erased.line_without(line, aliases) if event == erased.CLAIMED else line)


def _match_of(body: object) -> object:
    try:
        return json.loads(str(body)).get("match")
    except (ValueError, AttributeError, RecursionError):
        return None
