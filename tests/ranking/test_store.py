"""The ledger's file: private, its own, and refused with a reason where it cannot be used."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from pathlib import Path

import pytest
from sqlalchemy import inspect
from sqlalchemy.exc import DBAPIError

from heek.errors import RankingError
from heek.ranking.ledger import Ledger
from heek.ranking.schema import VERSION, metadata
from heek.ranking.service_keys import service_key
from heek.ranking.store import Store, open_store
from tests.ranking.records import ANN, BEN, FakeTable, body

VERSION_1 = (Path(__file__).parent / "ledger_of_version_1.sql").read_text(encoding="utf-8")
"""A ledger as version 1 wrote it: four matches of two tables count, one is a conflict, one waits."""


def refused(file: Path) -> str:
    with pytest.raises(RankingError) as error:
        open_store(file).close()
    text = str(error.value)
    assert "\n" not in text
    assert str(file.name) in text or str(file.parent) in text
    return text


def test_files_are_private(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """Nobody else can read the ledger, its side files or its folder."""
    ledger.ingest(body(table.sealed({ANN: 1, BEN: 1})))
    folder = store.file.parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = list(folder.iterdir())
    assert len(files) >= 3
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}


def test_a_file_that_all_could_read_is_made_private(tmp_path: Path) -> None:
    """A ledger that was copied here with open permissions is closed to others."""
    file = tmp_path / "ki.sqlite3"
    file.touch(0o644)
    file.chmod(0o644)
    open_store(file).close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_commit_waits_for_the_disk(store: Store) -> None:
    """The writing connection has WAL, full synchronisation and foreign keys; a reading one cannot write."""
    with store.writer.begin() as connection:
        for pragma, value in (("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)):
            assert connection.exec_driver_sql(f"PRAGMA {pragma}").scalar() == value
    with store.reader.begin() as connection, pytest.raises(Exception, match="readonly"):
        connection.exec_driver_sql("DELETE FROM players")


def test_one_ki_to_a_ledger(store: Store) -> None:
    """A second service on the same file is refused until the first one has closed it."""
    assert "another KI runs on this ledger" in refused(store.file)
    store.close()
    open_store(store.file).close()


def test_a_newer_ledger_is_refused(tmp_path: Path) -> None:
    """A file of a newer version is named as one, and stays as it is."""
    file = tmp_path / "ki.sqlite3"
    open_store(file).close()
    with sqlite3.connect(file) as db:
        db.execute("UPDATE ledger_version SET version = ?", (VERSION + 1,))
    db.close()
    assert f"newer heek (ledger {VERSION + 1}, this one knows {VERSION})" in refused(file)


def test_another_programs_file_is_refused(tmp_path: Path) -> None:
    """A data base that is not ours is left alone."""
    file = tmp_path / "ki.sqlite3"
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE somebody(s)")
    db.close()
    assert "another program's data base" in refused(file)


@pytest.mark.fault("F046")
def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """What is no data base is refused with what to do; where a ledger was kept, it is one that broke."""
    file = tmp_path / "ki.sqlite3"
    file.write_bytes(b"this is no data base, whatever its name says" * 50)
    assert "damaged or no ledger" in refused(file)
    (tmp_path / "ki.kept").touch()
    store = open_store(file)
    assert "damaged or no ledger" in (store.damage or "")
    # Its tables cannot be asked, so its key is not to be made anew in silence.
    assert store.had_tables
    store.close()


def test_a_ledger_that_does_not_hold_together_is_only_read(
    ledger: Ledger, store: Store, table: FakeTable
) -> None:
    """What another program wrote past the constraints is found at the start."""
    ledger.ingest(body(table.sealed({ANN: 1, BEN: 1})))
    store.close()
    with sqlite3.connect(store.file) as db:
        db.execute("DELETE FROM players")
    db.close()
    again = open_store(store.file)
    assert "does not hold together" in (again.damage or "")
    again.close()


def test_a_folder_or_a_place_in_a_file_is_refused(tmp_path: Path) -> None:
    """A path that cannot be a file is refused by name."""
    assert "is a folder" in refused(tmp_path)
    (tmp_path / "file").write_text("")
    assert "service.database" in refused(tmp_path / "file" / "ki.sqlite3")
    assert "service.database" in refused(Path("/proc/nowhere/ki.sqlite3"))


def test_a_half_made_file_is_made_whole(tmp_path: Path) -> None:
    """An empty file, as a cut at the first start leaves it, becomes a ledger."""
    file = tmp_path / "ki.sqlite3"
    file.touch()
    open_store(file).close()
    open_store(file).close()


@pytest.mark.fault("F046")
@pytest.mark.parametrize("gone", [True, False], ids=["gone", "empty"])
def test_a_ledger_that_was_there_is_missed(tmp_path: Path, gone: bool) -> None:
    """Vanished or emptied: refused with what to do, nothing made; without its marker it begins anew."""
    file, marker = tmp_path / "ki.sqlite3", tmp_path / "ki.kept"
    open_store(file).close()
    assert stat.S_IMODE(marker.stat().st_mode) == 0o600
    copy = file.read_bytes()
    if gone:
        file.unlink()
    else:
        file.write_bytes(b"")
    for _ in range(2):
        said = refused(file)
        assert f"ki.sqlite3: is {'gone' if gone else 'empty'}, though ki.kept beside it says" in said
        assert "bring back a copy, or, to begin anew on purpose, move ki.kept away" in said
    assert file.exists() is not gone
    file.write_bytes(copy)
    open_store(file).close()
    file.write_bytes(b"")
    marker.unlink()
    open_store(file).close()
    assert marker.exists()


def test_an_older_ledger_gets_its_marker(tmp_path: Path) -> None:
    """One that was kept before there were markers has it after the next start, and counts as kept then."""
    file, marker = tmp_path / "ki.sqlite3", tmp_path / "ki.kept"
    open_store(file).close()
    marker.unlink()
    open_store(file).close()
    file.unlink()
    assert "ki.kept beside it" in refused(file)


def test_a_key_without_a_ledger_is_no_loss(tmp_path: Path) -> None:
    """The key may have been brought here before the first ledger."""
    service_key(tmp_path)
    open_store(tmp_path / "ki.sqlite3").close()


def older(tmp_path: Path, script: str) -> Path:
    file = tmp_path / "ki.sqlite3"
    with sqlite3.connect(file) as db:
        db.executescript(script)
    db.close()
    return file


def test_a_ledger_of_version_1_is_brought_up(tmp_path: Path) -> None:
    """What it has stays as it is, its records get their places, and it goes on as one of this version."""
    file = older(tmp_path, VERSION_1)
    for _ in range(2):
        store = open_store(file)
        with store.reader.begin() as connection:
            assert connection.exec_driver_sql("SELECT version FROM ledger_version").scalar() == VERSION
            assert connection.exec_driver_sql("SELECT count(*), sum(seq) FROM links").one() == (6, 1 + 15)
            places = connection.exec_driver_sql(
                "SELECT count(*) FROM links AS one JOIN links AS other ON other.record_hash = one.prev"
            )
            assert places.scalar() == 4
            assert connection.exec_driver_sql("SELECT count(*) FROM findings").scalar() == 0
            assert set(inspect(connection).get_table_names()) == set(metadata.tables)
        store.close()
    store = open_store(file)
    ledger = Ledger(store, lambda: 0.0)
    assert ledger.mend() == 0
    answer, _ = ledger.ingest(body(FakeTable(2, "Table 2").sealed({ANN: 1, BEN: 1})))
    assert answer.points == {ANN: 102, BEN: 97}
    with store.writer.begin() as connection:
        connection.exec_driver_sql("INSERT INTO rulings VALUES (1, 1, 1, NULL, 'operator', 'so', 0, 1)")
        with pytest.raises(DBAPIError, match="only added to"):
            connection.exec_driver_sql("DELETE FROM rulings")
    store.close()


def test_a_ledger_that_cannot_be_brought_up_stays_as_it_was(tmp_path: Path) -> None:
    """If the step to this version fails in the middle, the file is the older one, whole."""
    file = older(tmp_path, f"{VERSION_1}\nCREATE TABLE links (not_ours INTEGER);")
    with pytest.raises(RankingError):
        open_store(file)
    with sqlite3.connect(file) as db:
        assert db.execute("SELECT version FROM ledger_version").fetchall() == [(1,)]
        names = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    db.close()
    assert "rulings" not in names


def test_a_read_only_file_system_is_named_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To give the file to somebody else would not help; to mount it for writing does."""

    def refuse(*_: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", refuse)
    said = refused(tmp_path / "ki.sqlite3")
    assert "(Read-only file system); its file system is read-only: mount it for writing" in said
    assert "give it to" not in said
