"""Looking at a journal: beside a daemon, after its death, after a clean end; never a byte changed."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from heek.errors import JournalError
from heek.journal import Batch, open_journal, read_journal
from heek.journal.schema import FILE_NAME
from tests.journal.scripts import SCRIPT, assert_prefix, batch, entry, in_child, label


def prints(folder: Path) -> dict[str, str]:
    """Every file's contents, by name."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


def refusal(path: Path) -> str:
    with pytest.raises(JournalError) as caught:
        read_journal(path)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_reading_beside_a_running_daemon(folder: Path) -> None:
    """A reader sees each batch as soon as it is committed, and the daemon goes on writing and closing."""
    with open_journal(folder) as journal:
        with read_journal(folder) as reader:
            for number, one in enumerate(SCRIPT):
                journal.append(one)
                assert assert_prefix(reader) == number + 1
            assert reader.last_seq() == 13
            assert reader.player_deltas() == {"00000001": 8, "00000002": -8}
        assert assert_prefix(journal) == len(SCRIPT)


def test_reading_from_another_process_changes_nothing(folder: Path) -> None:
    """Beside a daemon, after its death, and after a clean end, no file changes, comes or goes."""

    def look() -> None:
        with read_journal(folder) as reader:
            assert_prefix(reader, least=2)

    journal = open_journal(folder)
    journal.append(SCRIPT[0])
    journal.append(SCRIPT[1])
    before = {file.name for file in folder.iterdir()}
    in_child(look)
    assert {file.name for file in folder.iterdir()} == before
    journal.abandon()
    kept = prints(folder)
    look()
    assert prints(folder) == kept
    open_journal(folder).close()
    kept = prints(folder)
    look()
    look()
    assert prints(folder) == kept
    assert not list(folder.glob("*-shm"))


def test_reading_files_copied_from_a_card(folder: Path) -> None:
    """File and log without the shared index are read whole, from a copy that is removed again."""
    journal = open_journal(folder)
    for one in SCRIPT:
        journal.append(one)
    copy = folder.parent / "copy"
    copy.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(folder / f"{FILE_NAME}{suffix}", copy)
    journal.close()
    kept = prints(copy)
    with read_journal(copy / FILE_NAME) as reader:
        assert assert_prefix(reader) == len(SCRIPT)
        scratch = Path(reader._copy.name) if reader._copy else None
        assert scratch is not None
        assert scratch.exists()
    assert not scratch.exists()
    assert prints(copy) == kept
    assert len(kept) == 2


def test_a_reader_cannot_write(folder: Path) -> None:
    """The connection itself refuses, in each way it is opened."""
    journal = open_journal(folder)
    with read_journal(folder) as reader, pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader._db.execute("DELETE FROM events")
    journal.close()
    with read_journal(folder) as reader, pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader._db.execute("DELETE FROM events")


@pytest.mark.fault("F053")
def test_a_slow_reader_does_not_let_the_log_grow(folder: Path) -> None:
    """Half-read events hold no old state: the log can be carried over and starts anew."""
    with open_journal(folder) as journal:
        journal.append(Batch(tuple(entry(seq) for seq in range(1, 1001)), False, None, label(1)))
        with read_journal(folder) as reader:
            events = reader.events()
            assert next(events).seq == 1
            for seq in range(1001, 3001):
                journal.append(batch(seq, 1, seq))
            journal.checkpoint()
            journal.append(batch(3001, 1, 3001))
            assert journal.log_bytes() < 5_000_000
            assert sum(1 for _ in events) == 3000


def test_a_daemon_that_starts_meanwhile_does_not_look_like_damage(folder: Path) -> None:
    """A still journal that is being judged while a daemon starts on it is judged again."""
    with open_journal(folder) as journal:
        journal.append(SCRIPT[0])
    with read_journal(folder) as reader:
        # What a torn look would have seen.
        reader._db.close()
        with open_journal(folder) as journal:
            journal.append(SCRIPT[1])
            assert reader.verify() == []
            assert reader.last_seq() == 5


def test_what_cannot_be_read_is_one_message_each(folder: Path) -> None:
    """Nothing there, an empty file, rubbish, no tables, another database: each is told, none is made."""
    assert "there is no journal; `heek run` makes one" in refusal(folder)
    folder.mkdir()
    assert "there is no journal; `heek run` makes one" in refusal(folder)
    file = folder / FILE_NAME
    file.write_bytes(b"")
    assert "is empty, so it is no journal" in refusal(folder)
    file.write_bytes(b"rubbish" * 1000)
    assert "is no journal, or is damaged" in refusal(file)
    file.unlink()
    db = sqlite3.connect(file, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    assert "has no tables, so it is no journal" in refusal(file)
    db.execute("CREATE TABLE other(x)")
    assert "is another program's database" in refusal(file)
    db.close()
    assert "cannot be read" in refusal(file / "below")
    assert sorted(path.name for path in folder.iterdir()) == [FILE_NAME]


def test_a_locked_journal_says_so(folder: Path) -> None:
    """A program that holds the file for itself alone is named as the reason."""
    open_journal(folder).close()
    db = sqlite3.connect(folder / FILE_NAME, isolation_level=None)
    db.execute("PRAGMA journal_mode = DELETE")
    db.execute("PRAGMA locking_mode = EXCLUSIVE")
    db.execute("BEGIN EXCLUSIVE")

    def look() -> None:
        # Without a shared index the file counts as still, and is readable whoever holds it.
        with read_journal(folder) as reader:
            assert reader.last_seq() == 0

    assert in_child(look) == 0
    db.execute("COMMIT")
    db.execute("PRAGMA journal_mode = WAL")
    db.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_a_folder_of_another_user(folder: Path) -> None:
    """A user who may not read the folder is told to run as the one who may."""
    open_journal(folder).close()

    def look() -> None:
        os.setuid(65534)
        assert "run as the user who runs heek" in refusal(folder)
        with pytest.raises(JournalError, match="give the folder to the user who runs heek"):
            open_journal(folder)

    folder.chmod(0o700)
    assert in_child(look) == 0


def test_a_journal_that_is_gone_is_not_one_that_never_was(tmp_path: Path) -> None:
    """The mark beside it tells: it is said that it is gone, and what to do."""
    with pytest.raises(JournalError, match="there is no journal"):
        read_journal(tmp_path)
    open_journal(tmp_path).close()
    (tmp_path / FILE_NAME).unlink()
    with pytest.raises(JournalError, match=r"is gone, though journal\.kept .* bring it back from a copy"):
        read_journal(tmp_path)
