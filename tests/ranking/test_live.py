"""The live stream: the newest state to each page, and nobody who does not read costs anything."""

from __future__ import annotations

import http.client
import socket
import time
from pathlib import Path

import pytest

from heek.ranking import connections, live
from tests.ranking.records import ANN, BEN, FakeTable
from tests.ranking.service import RunningKi, until


class Listener:
    """One page's stream."""

    def __init__(self, ki: RunningKi) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", ki.port, timeout=10)
        self._connection.request("GET", "/live")
        self.response = self._connection.getresponse()

    def next(self) -> tuple[str, str]:
        """The next event and its data; raises EOFError at the stream's end."""
        event = data = ""
        while True:
            line = self.response.readline().decode()
            if not line:
                raise EOFError
            name, _, value = line.rstrip("\n").partition(": ")
            if name == "event":
                event = value
            elif name == "data":
                data = value
            elif not name and event:
                return event, data

    def exhaust(self) -> None:
        """Read to the end, and raise what `next` raises there."""
        while True:
            self.next()

    def close(self) -> None:
        self.response.close()
        self._connection.close()


def stalled(ki: RunningKi) -> socket.socket:
    """A page that asks for the stream and never reads."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    sock.connect(("127.0.0.1", ki.port))
    sock.sendall(f"GET /live HTTP/1.1\r\nHost: {ki.host}\r\n\r\n".encode())
    return sock


def test_a_page_hears_of_every_change(ki: RunningKi) -> None:
    """A stream begins with the state of now, and tells another one whenever a result counts."""
    table = FakeTable()
    ki.introduce(table)
    listener = Listener(ki)
    assert listener.response.headers["Content-Type"].startswith("text/event-stream")
    event, first = listener.next()
    assert event == "changed"
    assert f"data-state={first}" in ki.get("/").text
    sent = table.sealed({ANN: 1, BEN: 1})
    ki.report(sent)
    event, second = listener.next()
    assert (event, second != first) == ("changed", True)
    assert f"data-state={second}" in ki.get("/").text
    listener.close()


def test_nothing_new_is_a_beat(ki: RunningKi, monkeypatch: pytest.MonkeyPatch) -> None:
    """While nothing changes the stream beats; what is sent twice changes nothing."""
    monkeypatch.setattr(live, "BEAT_S", 0.1)
    monkeypatch.setattr(live, "SHORTEST_S", 0.01)
    table = FakeTable()
    ki.introduce(table)
    sent = table.sealed({ANN: 1, BEN: 1})
    ki.report(sent)
    listener = Listener(ki)
    assert listener.next()[0] == "changed"
    ki.report(sent)
    assert [listener.next()[0] for _ in range(3)] == ["beat"] * 3
    listener.close()


def test_a_restart_is_another_state(tmp_path: Path) -> None:
    """A service that was started again has a state of its own, so a page that comes back looks again."""
    states = []
    for _ in range(2):
        with RunningKi(tmp_path) as ki:
            listener = Listener(ki)
            states.append(listener.next()[1])
            listener.close()
    assert states[0] != states[1]


def test_streams_are_bounded(ki: RunningKi, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are only so many streams; the next one is told to come again, and may once one has ended."""
    monkeypatch.setattr(live, "MOST_STREAMS", 3)
    listeners = [Listener(ki) for _ in range(3)]
    refused = Listener(ki)
    assert refused.response.status == 503
    assert refused.response.headers["Retry-After"] == "10"
    assert b"follow this board live already" in refused.response.read()
    listeners[0].close()

    def opened() -> bool:
        listener = Listener(ki)
        listener.close()
        return listener.response.status == 200

    until(opened, "a place for another stream")
    for each in listeners[1:]:
        each.close()


def test_who_does_not_read_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Twenty stalled pages: results are taken as ever, one that reads hears them, the others are dropped."""
    monkeypatch.setattr(live, "BEAT_S", 0.002)
    monkeypatch.setattr(live, "SHORTEST_S", 0.001)
    monkeypatch.setattr(live, "PATIENCE_S", 0.5)
    monkeypatch.setattr(connections, "BUFFER_BYTES", 1024)
    monkeypatch.setattr(connections, "KERNEL_BUFFER_BYTES", 2048)
    with RunningKi(tmp_path) as ki:
        table = FakeTable()
        ki.introduce(table)
        socks = [stalled(ki) for _ in range(20)]
        until(lambda: len(ki.service.streams) == 20, "twenty streams")
        listener = Listener(ki)
        before = time.monotonic()
        for _ in range(5):
            ki.report(table.sealed({ANN: 1, BEN: 1}))
        assert time.monotonic() - before < 3
        while listener.next()[0] != "changed":
            pass
        until(lambda: len(ki.service.streams) <= 1, "the stalled ones dropped", 20)
        assert not [each for each in caplog.records if each.levelname == "ERROR"]
        listener.close()
        for each in socks:
            each.close()


def test_it_ends_at_once_with_streams_open(tmp_path: Path) -> None:
    """Pages that listen, and pages that do not read, hold up no end."""
    ki = RunningKi(tmp_path)
    listeners = [Listener(ki) for _ in range(5)]
    socks = [stalled(ki) for _ in range(5)]
    until(lambda: len(ki.service.streams) == 10, "ten streams")
    assert ki.close() < 2
    for each in listeners:
        with pytest.raises((EOFError, ConnectionError, http.client.HTTPException)):
            each.exhaust()
        each.close()
    for sock in socks:
        sock.close()
