"""A real table beside a KI that is away and comes: OLED and page show the same of it, without being asked."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from heek.display.drawing import draw
from heek.display.faces import Lobby, Look, Mark
from heek.display.ki_mark import KiMark, Reach
from heek.kinds import SEATS
from tests.test_demo import PACKAGES, free_port, until

TABLE = """
[table]
name = "Test table"
state_dir = "{folder}/state"
[stations]
backend = "mock"
[[display]]
driver = "dummy"
[web]
port = {port}
[ki]
link = "http"
url = "http://127.0.0.1:{ki_port}"
"""


class Process:
    """A `heek` with these words, in a process of its own."""

    def __init__(self, *words: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "heek", *words],
            env={**os.environ, "PYTHONPATH": PACKAGES, "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self) -> str:
        """Stop it as systemd would; what it wrote to standard error."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.communicate(timeout=20)[1]


@pytest.fixture
def ports() -> tuple[int, int]:
    return free_port(), free_port()


@pytest.fixture
def table(tmp_path: Path, ports: tuple[int, int]) -> Iterator[Process]:
    file = tmp_path / "table.toml"
    file.write_text(TABLE.format(folder=tmp_path, port=ports[0], ki_port=ports[1]))
    process = Process("run", "--config", str(file))
    yield process
    assert "Traceback" not in process.end()


def state(port: int) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/state", timeout=10) as answer:
        return json.load(answer)


def sit_down(port: int, seat: int) -> None:
    for n, closed in enumerate((True, False), 1):
        body = {"seat": seat, "button": "pen", "closed": closed, "hand": "test", "n": n}
        urllib.request.urlopen(
            urllib.request.Request(
                f"http://127.0.0.1:{port}/contacts",
                json.dumps(body).encode(),
                {"Origin": f"http://127.0.0.1:{port}", "Content-Type": "application/json"},
            ),
            timeout=10,
        ).close()


def lobby_says(ki: KiMark) -> set[bytes]:
    """The lobby in which seat 2 waits alone, wherever the picture stands."""
    marks = tuple(Mark(seat, Look.HOLLOW if seat == 2 else Look.FREE) for seat in SEATS)
    picture = draw(Lobby(marks=marks, seconds=None, alone=True, who=None, ki=ki.words))
    moved = Image.new("1", picture.size)
    moved.paste(picture, (1, 0))
    return {picture.tobytes(), moved.tobytes()}


@pytest.mark.fault("F079")
@pytest.mark.usefixtures("table")
def test_a_ki_that_is_away_and_comes(tmp_path: Path, ports: tuple[int, int]) -> None:
    """Both say first that there is no link, and when the KI starts that it is up; the page has its name."""
    port, ki_port = ports
    until(lambda: state(port)["ki"]["state"] == "down", "nobody answers")
    sit_down(port, 2)
    away = lobby_says(KiMark(Reach.DOWN))
    until(lambda: base64.b64decode(state(port)["oled"]) in away, "the OLED says so")
    told = state(port)["ki"]
    assert told["text"] == "KI: not reached, nothing waiting"
    assert told["why"]
    assert told["service"] is None
    service = Process("ki", "serve", "--port", str(ki_port), "--database", str(tmp_path / "ki.sqlite3"))
    try:
        until(lambda: state(port)["ki"]["state"] == "up", "the KI answers")
        here = lobby_says(KiMark(Reach.UP))
        until(lambda: base64.b64decode(state(port)["oled"]) in here, "the OLED says so")
        until(lambda: state(port)["ki"]["service"], "the table knows whose it is")
    finally:
        assert "Traceback" not in service.end()
