"""A result over a real serial port: /dev/ttyS1 and ttyS2 are 16550s, joined by a cable."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from heek.wiring.pin_map import DEFAULT_STATIONS
from tests.virtual_pi.simulated_chip import SimulatedChip
from tests.virtual_pi.table_daemon import TableDaemon

PENS = {station.seat: station.pen for station in DEFAULT_STATIONS}
PAGES = {station.seat: station.page for station in DEFAULT_STATIONS}
BAUD = 115200
PORT = 8625


@pytest.fixture
def ki(tmp_path: Path) -> Iterator[Path]:
    """A KI that is starting, and the gateway at the far end of the cable; the ledger's file."""
    ledger = tmp_path / "ki.sqlite3"
    service = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "heek",
            "ki",
            "serve",
            "--port",
            str(PORT),
            "--database",
            str(ledger),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    gateway = subprocess.Popen(
        [
            *(sys.executable, "-m", "heek", "ki", "serial-gateway", "--first-sight"),
            *("--port", "/dev/ttyS2", "--baud", str(BAUD)),
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        yield ledger
    finally:
        for each in (gateway, service):
            each.terminate()
            each.wait(20)
        if service.stderr is not None:
            print("-- the KI said:", service.stderr.read(), file=sys.stderr)


def test_a_result_arrives_once(ki: Path, chip: SimulatedChip, table: Callable[..., TableDaemon]) -> None:
    """A match played on pins is in the KI's ledger, once, over the wire; nothing waits at the table."""
    daemon = table(
        {"ki.link": "serial", "ki.port": "/dev/ttyS1", "ki.baud": BAUD, "ahyoheek.target": 1}, warm=False
    )
    daemon.start()
    wait_until(lambda: answers(f"http://127.0.0.1:{PORT}"), 60)
    for name in ("seat_taken", "seat_ready"):
        for seat in (1, 2):
            press(chip, PENS[seat])
            assert daemon.has_told(name, seat=seat)
    assert daemon.has_told("round_opened")
    time.sleep(0.5)
    press(chip, PENS[1])
    assert daemon.has_told("throw_locked", seat=1)
    press(chip, PAGES[2])
    won = daemon.has_told("match_won", seat=1)
    assert won is not None
    match = won.event["match"]
    wait_until(lambda: matches(ki) == [match], 40)
    # Whatever would be sent twice had time for it.
    time.sleep(3)
    assert matches(ki) == [match]
    assert daemon.stop() == 0
    shown = subprocess.run(
        [sys.executable, "-m", "heek", "journal", "verify", str(daemon.state)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "0 results wait for the KI" in shown.stdout


def press(chip: SimulatedChip, line: int) -> None:
    chip.pull(line, False)
    time.sleep(0.05)
    chip.pull(line, True)
    time.sleep(0.05)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


def matches(ledger: Path) -> list[str]:
    """The matches in the KI's ledger."""
    with closing(sqlite3.connect(f"{ledger.as_uri()}?mode=ro", uri=True)) as db:
        return [str(uuid.UUID(bytes=row[0])) for row in db.execute("SELECT match FROM matches")]


def wait_until(so: Callable[[], bool], within: float) -> None:
    until = time.monotonic() + within
    while not so():
        if time.monotonic() > until:
            pytest.fail(f"not so within {within} s")
        time.sleep(0.2)
