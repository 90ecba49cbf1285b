"""The KI as a process: it says when it is ready, ends when told to, and loses nothing when killed."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from heek.ki import cbor
from heek.ki.answers import encode_sign_in
from heek.ki.link import CONTENT_TYPE
from tests.ranking.records import ANN, BEN, FakeTable, body
from tests.ranking.service import until

CONTROLLER = Path(__file__).parents[2] / "controller"


class Process:
    """`heek ki serve`, or another program that serves, with what it writes to standard error."""

    def __init__(self, command: Sequence[str], **more: Any) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, *command],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(CONTROLLER), "PYTHONUNBUFFERED": "1"},
            **more,
        )
        self.said = b""

    def wait_for(self, pattern: str, within_s: float = 30.0) -> re.Match[str]:
        """Read what it says until it has said that."""
        assert self.popen.stderr is not None
        deadline = time.monotonic() + within_s
        while not (found := re.search(pattern, self.said.decode())):
            left = deadline - time.monotonic()
            readable, _, _ = select.select([self.popen.stderr], [], [], max(left, 0))
            data = os.read(self.popen.stderr.fileno(), 65536) if readable else b""
            assert data, f"{pattern!r} was not said, but:\n{self.said.decode()}"
            self.said += data
        return found

    def end(self, within_s: float = 10.0) -> tuple[int, str]:
        """Wait for its end: the exit code and all that it said."""
        out, err = self.popen.communicate(timeout=within_s)
        return self.popen.returncode, (self.said + err + out).decode()


@contextlib.contextmanager
def serving(folder: Path, *arguments: str, **more: Any) -> Iterator[tuple[Process, int]]:
    command = ["-m", "heek", "ki", "serve", "--port", "0", "--database", str(folder / "ki.sqlite3")]
    process = Process([*command, *arguments], **more)
    try:
        ready = process.wait_for(r"is ready: http://127\.0\.0\.1:(\d+)/")
        yield process, int(ready[1])
    finally:
        process.popen.kill()
        process.popen.communicate()


def ask(port: int, method: str, path: str, data: bytes = b"") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, data or None, {"Content-Type": CONTENT_TYPE})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def report(port: int, data: bytes) -> Any:
    return cbor.decode(ask(port, "POST", "/v1/records", data)[1])


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_when_told_to(tmp_path: Path, stop: signal.Signals) -> None:
    """On SIGTERM or Ctrl-C it ends within two seconds and with success, with a page listening."""
    with serving(tmp_path) as (process, port):
        assert ask(port, "GET", "/healthz") == (200, b"ok\n")
        listening = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        listening.request("GET", "/live")
        listening.getresponse()
        before = time.monotonic()
        process.popen.send_signal(stop)
        code, said = process.end()
        assert time.monotonic() - before < 2
        assert (code, said.splitlines()[-1]) == (0, "INFO KI has stopped")
        listening.close()


def test_a_slow_request_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """A request that does not come to its end is told that the KI stops, and leaves no fault in the log."""
    with serving(tmp_path) as (process, port), socket.create_connection(("127.0.0.1", port), 10) as sock:
        head = (
            f"POST /v1/records HTTP/1.1\r\nHost: x\r\nContent-Type: {CONTENT_TYPE}\r\n"
            "Content-Length: 9\r\n\r\n"
        )
        sock.sendall(head.encode())
        assert ask(port, "GET", "/healthz")[0] == 200
        before = time.monotonic()
        process.popen.terminate()
        code, said = process.end()
        assert time.monotonic() - before < 2
        response = http.client.HTTPResponse(sock)
        response.begin()
        assert cbor.decode(response.read())["error"] == "busy"
    assert code == 0
    assert len(said.splitlines()) == 2, said


def test_nobodys_address_is_logged(tmp_path: Path) -> None:
    """What it writes has no line for a request, and no client's address."""
    with serving(tmp_path, "--demo") as (process, port):
        table = FakeTable()
        ask(port, "POST", "/v1/tables", table.introduction())
        report(port, body(table.sealed({ANN: 1, BEN: 1})))
        ask(port, "POST", "/v1/demo/players", encode_sign_in(None))
        ask(port, "GET", "/")
        ask(port, "GET", "/nothing")
        ask(port, "POST", "/v1/records", b"rubbish")
        process.popen.terminate()
        _, said = process.end()
    lines = said.splitlines()
    assert len(lines) == 3, said
    assert "is ready" in lines[0]
    assert "Table 1 has introduced itself" in lines[1]
    assert not any("127.0.0.1" in line for line in lines[1:])


def test_it_ends_with_whoever_started_it(tmp_path: Path) -> None:
    """With --until-stdin-closes no service stays behind when its starter is gone, and it says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["-m", "heek", "ki", "serve", "--port", str(port), "--until-stdin-closes"]
    process = Process([*command, "--database", str(tmp_path / "ki.sqlite3")], stdin=subprocess.PIPE)
    try:
        until(lambda: _answers(port), "an answer", 30)
        assert process.popen.stdin is not None
        process.popen.stdin.close()
        process.popen.stdin = None
        assert process.end(3) == (0, "")
    finally:
        process.popen.kill()
        process.popen.communicate()


def _answers(port: int) -> bool:
    try:
        return ask(port, "GET", "/healthz")[0] == 200
    except OSError:
        return False


KILLED_BEFORE_IT_ANSWERS = """
import os, signal, sys
from pathlib import Path
from heek.clock import RealClock
from heek.ranking import ledger, server
from heek.ranking.settings import ServiceSettings
import logging
logging.basicConfig(level="INFO", stream=sys.stderr)
ingest = ledger.Ledger.ingest
def ingest_and_die(self, body):
    ingest(self, body)
    os.kill(os.getpid(), signal.SIGKILL)
ledger.Ledger.ingest = ingest_and_die
server.run(ServiceSettings(database=Path(sys.argv[1]), port=0), RealClock())
"""


def test_killed_between_commit_and_answer(tmp_path: Path) -> None:
    """What was committed and never answered is a duplicate when it comes again, and counts once."""
    table = FakeTable()
    sent = body(table.sealed({ANN: 1, BEN: 1}, ANN), table.sealed({ANN: 1, BEN: 1}, ANN))
    process = Process(["-c", KILLED_BEFORE_IT_ANSWERS, str(tmp_path / "ki.sqlite3")])
    try:
        port = int(process.wait_for(r"is ready: http://127\.0\.0\.1:(\d+)/")[1])
        assert ask(port, "POST", "/v1/tables", table.introduction())[0] == 200
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            report(port, sent)
        assert process.end()[0] == -signal.SIGKILL
    finally:
        process.popen.kill()
        process.popen.communicate()
    with serving(tmp_path) as (_, port):
        answer = report(port, sent)
        assert [each[0] for each in answer["answers"]] == ["duplicate", "duplicate"]
        assert answer["points"] == {ANN: 102, BEN: 98}
        assert answer["holds"][0] == 2


def test_killed_at_any_moment(tmp_path: Path) -> None:
    """Killed again and again while a table reports, it ends with every match counted once."""
    table = FakeTable()
    sent = [table.sealed({ANN: 1, BEN: 1}, ANN) for _ in range(60)]
    waiting, at = list(sent), 0
    while waiting:
        with serving(tmp_path) as (process, port):
            ask(port, "POST", "/v1/tables", table.introduction())
            at += 1
            for number in range(6 + 7 * at):
                if not waiting:
                    break
                if number == 3 * at:
                    # Into the next request, at no moment in particular.
                    with socket.create_connection(("127.0.0.1", port), 10) as sock:
                        data = body(*waiting[:5])
                        head = (
                            f"POST /v1/records HTTP/1.1\r\nHost: x\r\nContent-Type: {CONTENT_TYPE}\r\n"
                            f"Content-Length: {len(data)}\r\n\r\n"
                        )
                        sock.sendall(head.encode() + data)
                        process.popen.kill()
                    break
                answer = report(port, body(waiting[0]))
                assert answer["answers"][0][0] in ("accepted", "duplicate")
                waiting.pop(0)
    with serving(tmp_path) as (_, port):
        answer = report(port, body(*sent))
        assert {each[0] for each in answer["answers"]} == {"duplicate"}
        assert answer["points"] == {ANN: 160, BEN: 40}
        assert answer["holds"][0] == 60


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--port", "{taken}"], 1, "another program has this port"),
        (["--host", "192.0.2.1"], 1, "this machine has no such address"),
        (["--host", "nowhere.invalid"], 1, "no such name is known here"),
        (["--database", "/proc/nowhere/ki.sqlite3"], 1, "service.database"),
        (["--database", "{folder}"], 1, "is a folder"),
        (["--port", "70000"], 2, "is no port"),
        (["--name", ""], 2, "1 to 24 characters"),
        (["--config", "{folder}/nothing.toml"], 2, "there is no such file"),
    ],
    ids=lambda value: str(value),
)
def test_what_cannot_be_had_is_named(tmp_path: Path, arguments: list[str], code: int, said: str) -> None:
    """Port, address, ledger or configuration that cannot be used: one line with the remedy, no traceback."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        filled = [each.format(taken=taken.getsockname()[1], folder=tmp_path) for each in arguments]
        base = ["-m", "heek", "ki", "serve", "--port", "0", "--database", str(tmp_path / "ki.sqlite3")]
        got, text = Process([*base, *filled]).end(20)
    assert got == code, text
    assert said in text
    assert "Traceback" not in text


def test_the_configuration_says_where(tmp_path: Path) -> None:
    """[service] names port, ledger and name; what is typed goes before it."""
    config = tmp_path / "table.toml"
    database = tmp_path / "elsewhere" / "ledger.sqlite3"
    config.write_text(
        f'[service]\nport = 1\ndatabase = "{database}"\nname = "The museum"\n', encoding="utf-8"
    )
    process = Process(["-m", "heek", "ki", "serve", "--config", str(config), "--port", "0"])
    try:
        ready = process.wait_for(r"The museum is ready: http://127\.0\.0\.1:(\d+)/, ledger in (\S+)")
        assert ready[2] == str(database)
        assert b"The museum" in ask(int(ready[1]), "GET", "/")[1]
    finally:
        process.popen.kill()
        process.popen.communicate()
