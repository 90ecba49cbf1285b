"""A file on a stick: there whole or not at all, whatever the stick has against it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from heek.errors import CarriedFileError, JournalError
from heek.whole_file import not_read, whole_file
from tests.cli.commands import environment

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a file system")


def write(
    file: Path,
    data: bytes = b"all of it",
    *,
    replace: bool = False,
    meanwhile: Callable[[], object] = lambda: None,
) -> None:
    with whole_file(file, replace=replace) as writing:
        writing.write(data)
        meanwhile()


def names(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


def fails(number: int) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


@contextlib.contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    """A file system in memory, which is as small as the options say."""
    folder.mkdir(exist_ok=True)
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "heek-test", str(folder)], check=False)
    if mount.returncode:
        pytest.skip("this machine does not let a test mount anything")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_file_is_there_at_the_end_and_nothing_beside_it(tmp_path: Path) -> None:
    """It has its name only after the block, and no draft stays."""
    with whole_file(tmp_path / "file") as writing:
        writing.write(b"half")
        writing.flush()
        assert not (tmp_path / "file").exists()
        writing.write(b" and half")
    assert (tmp_path / "file").read_bytes() == b"half and half"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("there", ["file", "link to nothing", "folder"])
def test_what_is_there_is_left_as_it_is(there: str, tmp_path: Path) -> None:
    """A file, a link to nothing and a folder are each named and kept, before anything is written."""
    name = tmp_path / "file"
    begun: list[bool] = []
    if there == "file":
        name.write_text("mine")
    elif there == "folder":
        name.mkdir()
    else:
        name.symlink_to("nowhere")
    with pytest.raises(CarriedFileError, match="is there already, and is left as it is"):
        write(name, meanwhile=lambda: begun.append(True))
    assert not begun
    assert names(tmp_path) == ["file"]
    assert name.is_symlink() or name.is_dir() or name.read_text() == "mine"


@pytest.mark.parametrize("links", [True, False])
def test_what_comes_into_being_meanwhile_is_left_as_it_is(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who writes the same name while we do keeps it, also where there are no hard links (FAT)."""
    if not links:
        monkeypatch.setattr(os, "link", fails(errno.EPERM))
    with pytest.raises(CarriedFileError, match="is there already"):
        write(tmp_path / "file", meanwhile=lambda: (tmp_path / "file").write_bytes(b"theirs"))
    assert (tmp_path / "file").read_bytes() == b"theirs"
    assert names(tmp_path) == ["file"]


def test_a_stick_without_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FAT knows neither hard links nor owners, and other file systems no locks."""
    monkeypatch.setattr(os, "link", fails(errno.EPERM))
    monkeypatch.setattr(os, "chmod", fails(errno.EPERM))
    monkeypatch.setattr(fcntl, "flock", fails(errno.ENOLCK))
    write(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"all of it"
    assert names(tmp_path) == ["file"]


def test_a_file_in_the_place_of_another(tmp_path: Path) -> None:
    """With `replace` the new one takes the place of the old one, and of nothing half: a failure keeps it."""
    write(tmp_path / "file", b"old")
    with pytest.raises(ZeroDivisionError):
        write(tmp_path / "file", b"new", replace=True, meanwhile=lambda: 1 // 0)
    assert (tmp_path / "file").read_bytes() == b"old"
    write(tmp_path / "file", b"new", replace=True)
    assert (tmp_path / "file").read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


def test_what_one_who_was_killed_has_left_is_written_over(tmp_path: Path) -> None:
    """Killed in the middle there is no file, and the next one under its name leaves nothing of it lying."""
    program = (
        "import os, sys; from pathlib import Path; from heek.whole_file import whole_file\n"
        "with whole_file(Path(sys.argv[1])) as writing:\n"
        "    writing.write(bytes(100_000)); writing.flush(); os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "file")], env=environment(), check=False
    )
    assert killed.returncode == -9
    assert names(tmp_path) == [".file.part"]
    write(tmp_path / "file")
    assert names(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"all of it"


def test_two_who_write_the_same_file(tmp_path: Path) -> None:
    """The second one is told to wait, and the first one's file is whole."""
    with whole_file(tmp_path / "file") as writing:
        writing.write(b"all ")
        with pytest.raises(CarriedFileError, match="another heek writes this just now"):
            write(tmp_path / "file")
        writing.write(b"of it")
    assert (tmp_path / "file").read_bytes() == b"all of it"
    assert names(tmp_path) == ["file"]


def test_a_draft_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """Nobody has us write over a file of their choosing by a link in the draft's place."""
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / ".file.part").symlink_to("mine")
    with pytest.raises(CarriedFileError, match="cannot be written"):
        write(tmp_path / "file")
    assert (tmp_path / "mine").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("call", "number", "words"),
    [
        ("fsync", errno.ENOSPC, "no room left; make room, or take another stick"),
        ("fsync", errno.EFBIG, "no room left"),
        ("fsync", errno.EIO, "was the stick pulled out"),
        ("link", errno.EIO, "was the stick pulled out"),
        ("link", errno.ENODEV, "was the stick pulled out"),
        ("open", errno.EROFS, "it can only be read there"),
        ("open", errno.EACCES, "you may not write there"),
        ("open", errno.ENAMETOOLONG, "name another file"),
    ],
)
def test_what_the_medium_has_against_it_is_said(
    call: str, number: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each trouble has its own words, whenever it comes, and leaves nothing."""
    monkeypatch.setattr(os, call, fails(number))
    with pytest.raises(CarriedFileError, match=words) as raised:
        write(tmp_path / "file")
    assert str(raised.value).startswith(f"{tmp_path / 'file'}: cannot be written: ")
    monkeypatch.undo()
    assert names(tmp_path) == []


@pytest.mark.fault("F049")
@needs_root
def test_a_full_stick(tmp_path: Path) -> None:
    """On a file system with no room left: the words, and not half a file."""
    with mounted(tmp_path / "stick", "size=64k"):
        with pytest.raises(CarriedFileError, match="no room left"):
            write(tmp_path / "stick" / "file", bytes(1 << 20))
        assert names(tmp_path / "stick") == []
        write(tmp_path / "stick" / "file", bytes(1 << 10))


@needs_root
def test_a_read_only_stick(tmp_path: Path) -> None:
    """On a file system that is mounted for reading alone."""
    with (
        mounted(tmp_path / "stick", "ro"),
        pytest.raises(CarriedFileError, match="it can only be read there"),
    ):
        write(tmp_path / "stick" / "file")


def test_no_such_folder(tmp_path: Path) -> None:
    """A stick that is not mounted is a folder that is not there."""
    with pytest.raises(CarriedFileError, match="is the stick mounted"):
        write(tmp_path / "stick" / "file")


def test_another_files_trouble_is_not_told_as_this_ones(tmp_path: Path) -> None:
    """What the block itself cannot read, of the journal or of a file, stays what it was."""
    with pytest.raises(JournalError, match="the journal"), whole_file(tmp_path / "file"):
        raise JournalError("the journal cannot be read")
    with pytest.raises(FileNotFoundError), whole_file(tmp_path / "file"):
        (tmp_path / "elsewhere").read_bytes()
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOENT, "no such file; is the stick mounted"),
        (errno.EIO, "was the stick pulled out"),
        (errno.EISDIR, "it is a folder"),
        (errno.EACCES, "Permission denied"),
    ],
)
def test_why_a_file_cannot_be_read(number: int, words: str) -> None:
    """Reading has words of its own."""
    said = str(not_read(Path("file"), OSError(number, os.strerror(number))))
    assert said.startswith("file: cannot be read: ")
    assert words in said
