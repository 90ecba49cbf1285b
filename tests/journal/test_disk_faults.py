"""Cards that fill up, turn read-only or are held by a slow reader: nothing that was there is lost."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from heek.clock import SECOND, ManualClock
from heek.errors import JournalError
from heek.journal import InlineExecutor, JournalWriter, NotSaved, Written, open_journal, open_or_salvage
from heek.journal.schema import FILE_NAME
from heek.ki.table_key import FILE_NAME as KEY_NAME
from tests.journal.damage import season, without_log
from tests.journal.scripts import SCRIPT, batch, in_child

NOBODY = 65534


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system to fill")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "heek-test", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"this machine lets nobody mount: {mounted.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def fill_up(disk: Path) -> Path:
    """Leave no room on it; the file that takes it all."""
    hog = disk / "hog"
    with hog.open("wb", buffering=0) as opened:
        for size in (65536, 4096, 512):
            try:
                while opened.write(bytes(size)) == size:
                    pass
            except OSError:
                continue
    return hog


@pytest.mark.fault("F049")
def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    """F049: no room for anything else: the table plays on, and all is written when there is room again."""
    clock = ManualClock()
    writer = JournalWriter(small_disk / "state", InlineExecutor(), clock)
    (small_disk / "state" / KEY_NAME).write_text("the table's own key")
    assert isinstance(writer.submit(SCRIPT[0]).result(), Written)
    hog = fill_up(small_disk)
    seq, number = 4, 100
    while isinstance(writer.submit(batch(seq, 40, number, sync=True)).result(), Written):
        seq, number = seq + 40, number + 1
    assert "check that there is space left on the card" in writer.status.reason
    assert isinstance(writer.submit(batch(seq + 40, 1, 999, sync=True, match="m-9")).result(), NotSaved)
    hog.unlink()
    clock.advance_to(2 * SECOND)
    assert writer.retry().result().saving
    writer.close()
    assert (small_disk / "state" / KEY_NAME).read_text() == "the table's own key"
    with open_journal(small_disk / "state") as journal:
        assert journal.last_seq() == seq + 40
        assert [each.match for each in journal.results()] == ["m-9"]
        assert journal.verify() == []


@pytest.mark.fault("F046", "F049")
def test_a_damaged_journal_on_a_full_disk(small_disk: Path) -> None:
    """F046 and F049 at once: the start says that there is no room, and the next one goes on."""
    folder = small_disk / "state"
    season(folder, matches=30, waiting=10)
    without_log(folder)
    data = (folder / FILE_NAME).read_bytes()
    (folder / FILE_NAME).write_bytes(b"\0" * 4096 + data[4096:])
    hog = fill_up(small_disk)
    with pytest.raises(JournalError, match=r"make room on the card|space left on the card"):
        open_or_salvage(folder)
    kept = [each for each in (folder / FILE_NAME, folder / "damaged-1" / FILE_NAME) if each.exists()]
    assert [each.read_bytes()[4096:] for each in kept] == [data[4096:]]
    hog.unlink()
    with open_or_salvage(folder) as journal:
        assert journal.waiting() >= 10
        assert len(list(journal.results())) == 30
        assert journal.verify() == []


@pytest.mark.fault("F050")
def test_a_disk_that_came_back_read_only(small_disk: Path) -> None:
    """F050: mounted read-only after errors, sound or damaged: the start says so, and changes nothing."""
    folder = small_disk / "state"
    season(folder, matches=2, waiting=1)
    for damaged in (False, True):
        if damaged:
            (folder / FILE_NAME).write_bytes(b"\0" * 4096)
        before = {each.name: each.read_bytes() for each in folder.iterdir()}
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
        try:
            with pytest.raises(JournalError, match=r"cannot be written \(Read-only file system\)"):
                open_or_salvage(folder)
        finally:
            subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
        assert {each.name: each.read_bytes() for each in folder.iterdir()} == before
    with open_or_salvage(folder) as journal:
        assert journal.salvaged is not None
        assert journal.verify() == []


@pytest.mark.fault("F050")
def test_a_folder_that_this_user_may_not_write(tmp_path: Path) -> None:
    """F050 as an ordinary user: with mode 555 nothing starts or changes, and the words say what to do."""
    folder = tmp_path / "state"
    season(folder, matches=2, waiting=1)
    without_log(folder)
    before = (folder / FILE_NAME).read_bytes()

    def try_it() -> None:
        if os.geteuid() == 0:
            os.setuid(NOBODY)
        with pytest.raises(JournalError) as caught:
            open_or_salvage(folder)
        assert "give the folder to the user who runs heek" in str(caught.value)

    for each in (tmp_path, *tmp_path.parents):
        if os.geteuid() == 0 and each.stat().st_uid == 0 and each != Path("/"):
            each.chmod(each.stat().st_mode | 0o011)
    folder.chmod(0o555)
    try:
        assert in_child(try_it) == 0
    finally:
        folder.chmod(0o700)
    assert (folder / FILE_NAME).read_bytes() == before
    assert not (folder / "damaged-1").exists()


@pytest.mark.fault("F053")
def test_a_reader_that_never_finishes_keeps_the_log_only_while_it_reads(folder: Path) -> None:
    """F053: pinned, the log grows and its size is told; let go, a checkpoint brings it back to its limit."""
    import sqlite3

    with open_journal(folder) as journal:
        journal.append(batch(1, 1, 1))
        pinned = sqlite3.connect(f"{(folder / FILE_NAME).as_uri()}?mode=ro", uri=True, isolation_level=None)
        pinned.execute("BEGIN")
        pinned.execute("SELECT count(*) FROM events").fetchone()
        for number in range(2, 1502):
            journal.append(batch(number, 1, number))
        journal.checkpoint()
        assert journal.log_bytes() > 8 << 20
        pinned.execute("ROLLBACK")
        pinned.close()
        journal.checkpoint()
        journal.append(batch(1502, 1, 1502))
        journal.checkpoint()
        assert journal.log_bytes() <= 4 << 20
        assert journal.verify() == []
