"""The outbox: what waits for the KI, what it answered, and files of an older schema."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heek.errors import JournalError
from heek.journal import Answered, Batch, open_journal, read_journal
from heek.journal.ki_notes import digest_of
from heek.journal.records import NO_MATCHES
from heek.journal.schema import FILE_NAME, VERSION
from tests.journal.scripts import WITHOUT_KI, batch


def with_cbor(first: int, number: int, match: str, cbor: bytes) -> Batch:
    made = batch(first, 1, number, sync=True, match=match)
    return replace(made, results=tuple(replace(result, cbor=cbor) for result in made.results))


def fill(folder: Path, count: int = 3) -> None:
    with open_journal(folder) as journal:
        for number in range(1, count + 1):
            journal.append(with_cbor(number, number, f"m-{number}", b"c" * 10 + bytes([number])))


def test_what_waits_comes_oldest_first_and_within_bounds(tmp_path: Path) -> None:
    """A request's worth of results: by number, by bytes, but always one, however large it is."""
    fill(tmp_path)
    with open_journal(tmp_path) as journal:
        assert [each.match for each in journal.unsent(10, 1000)] == ["m-1", "m-2", "m-3"]
        assert [each.match for each in journal.unsent(2, 1000)] == ["m-1", "m-2"]
        assert [each.match for each in journal.unsent(10, 22)] == ["m-1", "m-2"]
        assert [each.cbor for each in journal.unsent(10, 1)] == [b"c" * 10 + b"\x01"]
        assert journal.last_cbor() == b"c" * 10 + b"\x03"


class LyingCard:
    """A data base whose next commit is made, and told as failed."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.lies = True

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        done = self._db.execute(sql, *args)
        if self.lies and sql == "COMMIT":
            self.lies = False
            raise sqlite3.OperationalError("disk I/O error")
        return done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)


def test_an_answer_whose_commit_was_told_as_failed_is_known(tmp_path: Path) -> None:
    """The KI is asked again and says the same: digest and deltas are those of the file."""
    first = "00000000-0000-4000-8000-000000000001"
    with open_journal(tmp_path) as journal:
        made = with_cbor(1, 1, first, b"c")
        journal.append(replace(made, results=(replace(made.results[0], key=b"tablekey"),)))
        assert journal.ki_notes(b"tablekey").holds == NO_MATCHES
        assert journal.player_deltas() != {}
        journal._db = LyingCard(journal._db)  # type: ignore[assignment]
        with pytest.raises(JournalError, match="I/O error"):
            journal.acknowledge([Answered(first, "accepted")], {})
        journal.acknowledge([Answered(first, "duplicate")], {})
        assert journal.ki_notes(b"tablekey").holds == digest_of([first])
        assert journal.player_deltas() == {}


def test_an_answer_is_kept_and_takes_the_result_out_of_the_backlog(tmp_path: Path) -> None:
    """Each answer counts once, in any order; deltas of what was answered are told, the points are kept."""
    fill(tmp_path)
    with open_journal(tmp_path) as journal:
        told = journal.acknowledge(
            [Answered("m-2", "accepted"), Answered("m-3", "rejected", "why not")], {"00000001": 104}
        )
        assert (told.waiting, told.deltas) == (1, {"00000001": 8, "00000002": -8})
        assert journal.player_deltas() == {"00000001": 4, "00000002": -4}
        again = journal.acknowledge([Answered("m-2", "duplicate")], {"00000001": 104})
        assert (again.waiting, again.deltas) == (1, {})
        unknown = journal.acknowledge([Answered("m-9", "accepted")], {})
        assert (unknown.waiting, unknown.deltas) == (1, {})
    with open_journal(tmp_path) as journal:
        assert [each.match for each in journal.unsent(10, 1000)] == ["m-1"]
        assert journal.told_points() == {"00000001": 104}
        assert journal.verify() == []
    states = sqlite3.connect(tmp_path / FILE_NAME).execute(
        "SELECT state, reason FROM outbox ORDER BY position"
    )
    assert states.fetchall() == [("waiting", None), ("accepted", None), ("rejected", "why not")]


def test_an_answer_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    """Somebody holds the file: the answer is an error, and the result waits as before."""
    fill(tmp_path, 1)
    with open_journal(tmp_path) as journal:
        other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalError, match="close that program"):
            journal.acknowledge([Answered("m-1", "accepted")], {"00000001": 1})
        other.execute("ROLLBACK")
        other.close()
        assert (journal.waiting(), journal.told_points()) == (1, {})
        journal.append(with_cbor(2, 2, "m-2", b"x"))
        assert journal.acknowledge([Answered("m-1", "accepted")], {}).waiting == 1


def as_version_1(folder: Path) -> None:
    """Turn a journal into one of the first schema, as heek wrote it before there was a KI."""
    db = sqlite3.connect(folder / FILE_NAME, isolation_level=None)
    db.executescript(
        WITHOUT_KI
        + "DROP TABLE fairness; DROP INDEX match_ends; DROP TABLE recordings; DROP TABLE recording_parts;"
        "DROP INDEX outbox_waiting; DROP TABLE players; ALTER TABLE outbox DROP COLUMN reason;"
        "ALTER TABLE results DROP COLUMN cbor; PRAGMA user_version = 1;"
    )
    db.close()


def test_a_journal_of_the_first_schema_goes_on(tmp_path: Path) -> None:
    """An older file keeps all it has; its results are given their bytes for the KI later."""
    fill(tmp_path)
    as_version_1(tmp_path)
    with read_journal(tmp_path) as reader:
        assert (reader.waiting(), reader.verify()) == (3, [])
    with open_journal(tmp_path) as journal:
        assert (journal.waiting(), journal.last_seq(), journal.last_cbor()) == (3, 3, None)
        assert journal.unsent(10, 1000) == []
        old = journal.unwritten()
        assert [each.match for each in old] == ["m-1", "m-2", "m-3"]
        journal.write_cbor([replace(each, cbor=each.match.encode()) for each in old])
        assert [each.cbor for each in journal.unsent(10, 1000)] == [b"m-1", b"m-2", b"m-3"]
        assert (journal.unwritten(), journal.last_cbor()) == ([], b"m-3")
        journal.append(with_cbor(4, 4, "m-4", b"new"))
    version = sqlite3.connect(tmp_path / FILE_NAME).execute("PRAGMA user_version").fetchone()[0]
    assert version == VERSION == 6
