"""`heek selftest` on mock pins: typed fingers, verdicts, a file that is written only when asked, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tomllib
from pathlib import Path

import pytest

from heek.cli import FAILED, MISTAKE, OK, main
from heek.cli.selftesting import Desk, write_over
from heek.clock import SECOND, ManualClock
from heek.errors import ConfigError
from heek.journal.lock import FolderLock
from heek.selftest.asking import Passed
from heek.stations import gpio
from heek.stations.mock_pins import TableFactory
from tests.cli.commands import command, environment, heek, shell

TWO = "[[station]]\nseat = 1 # the window\n[[station]]\nseat = 2\n"
ORDER = ("pen", "page", "beetle")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "table.toml"
    file.write_text(
        f'[table]\nstate_dir = "{tmp_path}/state"\n[stations]\nbackend = "mock"\n[web]\nport = 0\n{TWO}',
        encoding="utf-8",
    )
    return file


def typed(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def test_a_walk_on_mock_pins(table: Path) -> None:
    """All buttons pressed by typed lines and all LEDs seen: 0, a line each; with --json on stdout alone."""
    fingers = [f"press {seat} {kind}" for seat in (1, 2) for kind in ORDER]
    run = heek("selftest", "--config", str(table), "--json", send=typed(*fingers, "y", "y", "y"))
    assert run.returncode == OK, run.stderr
    told = json.loads(run.stdout)
    assert told["passed"]
    assert [part["verdict"] for part in told["parts"]] == ["ok"] * 8
    assert b"Seat 2: press beetle (the right button)" in run.stderr


def test_a_walk_that_is_left(table: Path) -> None:
    """Input that ends in the middle is a walk that was not finished: 1, with what was found by then."""
    run = heek("selftest", "--config", str(table), send=typed("press 1 pen", "s"))
    assert run.returncode == FAILED
    said = run.stdout.decode().splitlines()
    assert said[-3:] == [
        "ok          seat 1 pen",
        "skipped     seat 1 page",
        "2 parts: 1 ok, 0 not, 1 skipped; it was not finished",
    ]


def test_a_line_that_is_not_understood_is_said_not_to_be(table: Path) -> None:
    """Slips are answered with the question again, and lines that are understood are not."""
    slips = ("press 1 pen", "foo bar", "press 9 pen", "", "s")
    run = heek("selftest", "--config", str(table), send=typed(*slips))
    said = run.stdout.decode().splitlines()
    refused = [line for line in said if "no answer" in line]
    assert (
        refused
        == ["That is no answer here. Seat 1: press page (the middle button) once, and let it go. [s: skip]"]
        * 3
    )
    assert said[-2] == "skipped     seat 1 page"


def test_a_wrong_button_is_named_at_once(table: Path) -> None:
    """While it is held down there is something to read: which one it is."""
    run = heek("selftest", "--config", str(table), send=typed("press 2 beetle"))
    assert "That was seat 2 beetle; let it go." in run.stdout.decode().splitlines()


@pytest.mark.parametrize("typed_from", ["<&-", "0>/dev/null"])
def test_nobody_can_type(typed_from: str, table: Path) -> None:
    """Closed, or open for writing alone: the walk ends as if nothing more was typed."""
    run = shell(f"$HEEK selftest --config {table} {typed_from}")
    assert run.returncode == FAILED
    assert run.stdout.decode().splitlines()[-1] == "0 parts: 0 ok, 0 not, 0 skipped; it was not finished"
    assert run.stderr == b""


LEARNED = {1: (18, 19, 20), 2: (4, 5, 6)}
LEARN = [f"press {number}" for seat in LEARNED for number in LEARNED[seat]]


def test_learning_prints_and_writes_nothing(table: Path) -> None:
    """Without --write the tables are shown and the file is as it was, alone in its folder.

    The seats that the file has are asked for, and no others.
    """
    before = table.read_bytes()
    run = heek("selftest", "--config", str(table), "--learn", send=typed(*LEARN))
    assert run.returncode == OK, run.stderr
    assert b"pen = 18\npage = 19\nbeetle = 20\nled = 22\n" in run.stdout
    assert table.read_bytes() == before
    assert [path.name for path in table.parent.glob("*table*")] == ["table.toml"]


def test_learning_writes_when_it_is_told_to(table: Path) -> None:
    """With --write the file has the new stations and its comments, and the old one stands beside it."""
    before = table.read_bytes()
    run = heek("selftest", "--config", str(table), "--learn", "--write", "--json", send=typed(*LEARN))
    assert run.returncode == OK, run.stderr
    told = json.loads(run.stdout)
    assert (told["form"], told["mistakes"]) == (1, [])
    written = table.read_text()
    assert "seat = 1 # the window\n" in written
    assert tomllib.loads(written)["station"] == told["stations"]
    assert {station["seat"]: station["pen"] for station in told["stations"]} == {1: 18, 2: 4}
    assert table.with_name("table.toml.old").read_bytes() == before


def test_a_wiring_that_makes_no_table_is_not_written(table: Path) -> None:
    """A button on the line of an LED is told, and the file stays."""
    before = table.read_bytes()
    lines = [line.replace("18", "23") for line in LEARN]
    run = heek("selftest", "--config", str(table), "--learn", "--write", send=typed(*lines))
    assert run.returncode == FAILED
    assert b"GPIO23 is already used by" in run.stderr
    assert table.read_bytes() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("learn", [False, True], ids=["walk", "learn"])
def test_ctrl_c_leaves_the_file_and_says_nothing(table: Path, number: signal.Signals, learn: bool) -> None:
    """In the middle of it Ctrl-C or SIGTERM is the end: 130, no traceback, nothing written."""
    before = table.read_bytes()
    more = ["--learn", "--write"] if learn else []
    with subprocess.Popen(
        command("selftest", "--config", str(table), *more),
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as run:
        assert run.stdout is not None
        assert run.stdin is not None
        assert b"Hands off" in run.stdout.readline()
        run.send_signal(number)
        assert run.wait(20) == 130
        assert run.stderr is not None
        assert run.stderr.read() == b""
    assert table.read_bytes() == before


def test_a_running_table_keeps_its_pins(table: Path) -> None:
    """While a table runs on the same state folder nothing is tested."""
    state = table.parent / "state"
    state.mkdir()
    lock = FolderLock(state)
    run = heek("selftest", "--config", str(table), send=b"")
    lock.release()
    assert run.returncode == FAILED
    assert f"a table runs (pid {os.getpid()})".encode() in run.stderr


def test_write_goes_with_learn(table: Path) -> None:
    """--write alone is a mistake of the call."""
    run = heek("selftest", "--config", str(table), "--write", send=b"")
    assert run.returncode == MISTAKE
    assert run.stderr.startswith(b"--write: goes with --learn")


def test_the_old_file_is_never_lost(tmp_path: Path) -> None:
    """Each writing keeps the file before it under a name of its own, with its rights."""
    file = tmp_path / "table.toml"
    file.write_text("one")
    file.chmod(0o640)
    assert write_over(file, "two").name == "table.toml.old"
    assert write_over(file, "three").name == "table.toml.old-1"
    assert [path.read_text() for path in sorted(tmp_path.iterdir())] == ["three", "one", "two"]
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_file_that_cannot_be_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that takes no file: one line, and the file as it was, alone."""
    file = tmp_path / "table.toml"
    file.write_text("one")

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "link", refused)
    with pytest.raises(ConfigError, match=r"table\.toml: cannot be written \(Permission denied\)"):
        write_over(file, "two")
    assert [path.name for path in tmp_path.iterdir()] == ["table.toml"]
    assert file.read_text() == "one"


def test_ctrl_c_leaves_every_led_dark(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The LED that is lit at that moment is put out, and its line let go to rest dark."""
    factory = TableFactory(ManualClock())
    lit: list[float] = []

    def interrupted(_desk: object, _until: object, *, takes_answers: bool) -> Passed:
        if takes_answers:
            lit.append(factory.line(22).level)
            raise KeyboardInterrupt
        return Passed(10 * SECOND)

    monkeypatch.setattr(gpio, "open_factory", lambda *_: factory)
    monkeypatch.setattr(Desk, "next", interrupted)
    monkeypatch.setattr(Desk, "listen", lambda _desk: None)
    pins = [factory.line(22), factory.line(23)]
    term = signal.getsignal(signal.SIGTERM)
    try:
        assert main(["selftest", "--config", str(table)]) == 130
    finally:
        signal.signal(signal.SIGTERM, term)
    assert lit == [1.0]
    assert [(pin.function, pin.pull, pin.level) for pin in pins] == [("input", "down", 0.0)] * 2
