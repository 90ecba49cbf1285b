"""A disk with room for some bytes, but not for all: what was there stays, and nothing half is taken for all.

Each file that heek writes beside the journal is written with room for 0, 1, 2, … bytes of it (F049). What a
full disk does to the journal stands in tests/journal, what to the ledger in tests/ranking.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from heek.cli.selftesting import write_over
from heek.errors import TableError
from heek.journal import Pin, open_journal, read_journal
from heek.journal.pin_file import PIN_NAME, keep_pin
from heek.ki.table_key import table_key
from heek.ranking.service_keys import operator_key, service_key
from heek.whole_file import whole_file
from tests.cli.commands import environment
from tests.journal.scripts import in_child
from tests.web.serving import Browser, until

OLD = b"what was there before, and is worth keeping\n"
PIN = Pin(bytes(range(32)), "The KI", "code")


@dataclass(frozen=True)
class Written:
    """A file, and what writes it into a folder; `new` is one that was not there before."""

    name: str
    write: Callable[[Path], object]
    new: bool = False


def rewrite(folder: Path) -> None:
    with whole_file(folder / "export.heek", replace=True) as writing:
        writing.write(b"x" * 150)


def pin(folder: Path) -> None:
    with open_journal(folder) as journal:
        journal.pin_service(PIN, b"tablekey")


FILES = {
    "configuration": Written("table.toml", lambda folder: write_over(folder / "table.toml", "[table]\n" * 9)),
    "export": Written("export.heek", rewrite),
    "table's key": Written("table.key", lambda folder: table_key(folder, lambda: bytes(32)), new=True),
    "KI's key": Written("service.key", lambda folder: service_key(folder, must_be_there=False), new=True),
    "operator's key": Written("operator.key", operator_key, new=True),
}


@contextlib.contextmanager
def room(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes: the kernel takes what fits, and refuses the rest."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.fault("F049")
@pytest.mark.parametrize("kind", FILES)
def test_room_for_some_of_it(tmp_path: Path, kind: str) -> None:
    """F049: with too little room the old file is whole, no part of the new one is left, and it is said."""
    written = FILES[kind]

    def run() -> None:
        sample = folder_with(tmp_path / "sample", written)
        written.write(sample)
        size = (sample / written.name).stat().st_size
        assert size > 10
        for most in range(size):
            folder = folder_with(tmp_path / f"{most}", written)
            before = {each.name: each.read_bytes() for each in folder.iterdir()}
            with room(most), pytest.raises(TableError, match=r"make room|is no room"):
                written.write(folder)
            assert {each.name: each.read_bytes() for each in folder.iterdir()} == before, most
            written.write(folder)
            assert (folder / written.name).stat().st_size == size

    assert in_child(run) == 0


def folder_with(folder: Path, written: Written) -> Path:
    folder.mkdir(mode=0o700)
    if not written.new:
        (folder / written.name).write_bytes(OLD)
    return folder


@pytest.mark.fault("F049")
def test_room_for_some_of_the_pin(tmp_path: Path) -> None:
    """F049: the pin beside the journal is whole or not there; the journal's own counts, and play goes on."""

    def run() -> None:
        pin(tmp_path)
        whole = (tmp_path / PIN_NAME).read_bytes()
        for most in range(len(whole)):
            with open_journal(tmp_path) as journal:
                (tmp_path / PIN_NAME).unlink(missing_ok=True)
                with room(most):
                    keep_pin(journal._db, tmp_path)
            assert not (tmp_path / PIN_NAME).exists(), most
            assert not list(tmp_path.glob(f".{PIN_NAME}*"))
            pin(tmp_path)
            assert (tmp_path / PIN_NAME).read_bytes() == whole

    assert in_child(run) == 0


TABLE = """
[table]
name = "Test table"
state_dir = "{state}"
[stations]
backend = "mock"
[[display]]
driver = "dummy"
[web]
port = {port}
[log]
level = "debug"
"""


@pytest.mark.fault("F049", "F050")
def test_a_log_that_takes_nothing_stops_no_game(tmp_path: Path) -> None:
    """F049, F050: standard error leads to a full disk; presses count, all is kept, the end is a clean one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    config = tmp_path / "table.toml"
    config.write_text(TABLE.format(state=tmp_path / "state", port=port))
    with (
        open("/dev/full", "wb") as full,  # noqa: PTH123
        subprocess.Popen(
            [sys.executable, "-m", "heek", "run", "--config", str(config)],
            env=environment(),
            stdout=full,
            stderr=full,
        ) as run,
    ):
        browser = Browser(port, "127.0.0.1")

        def answers() -> bool:
            with contextlib.suppress(OSError):
                return browser.get("/state").status == 200
            return False

        try:
            until(answers, 20)
            for seat in (1, 2):
                assert browser.press(seat).status == 200
                assert browser.press(seat, closed=False).status == 200
            until(
                lambda: [each["state"] for each in browser.get("/state").json["seats"]][:2] != ["free"] * 2,
                10,
            )
            assert browser.get("/healthz").status == 200
            run.send_signal(signal.SIGTERM)
            assert run.wait(20) == 0
        finally:
            run.kill()
    with read_journal(tmp_path / "state") as journal:
        assert journal.verify() == []
        kept = [each.event for each in journal.events()]
    assert kept.count("seat_taken") == 2
