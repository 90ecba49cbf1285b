"""`heek demo` as a whole: a table, its page and a KI in real processes, over HTTP and over serial."""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import heek
from heek.web.metrics import read_exposition

PACKAGES = str(Path(heek.__file__).parents[1])
PATIENCE_S = 40.0
QUICK = {
    "ahyoheek.target": 1,
    "ahyoheek.reveal_s": 0.5,
    "ahyoheek.match_over_s": 1,
    "ahyoheek.guard_s": 0.05,
    "seats.rematch_s": 60,
}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        return int(unused.getsockname()[1])


def until(what: Callable[[], Any], words: str, patience_s: float = PATIENCE_S) -> Any:
    """The first true answer of `what`, asked again and again."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            if answer := what():
                return answer
        time.sleep(0.03)
    raise AssertionError(f"not in {patience_s} s: {words}")


class Demo:
    """A demonstration in a process of its own, with hands at its page."""

    def __init__(self, *arguments: str, port: int | None = None, ki_port: int | None = None) -> None:
        self.port, self.ki_port = port or free_port(), ki_port or free_port()
        ports = ["--port", str(self.port), "--ki-port", str(self.ki_port)]
        rules = [word for key, value in QUICK.items() for word in ("--set", f"{key}={value}")]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "heek", "demo", *ports, *rules, *arguments],
            env={**os.environ, "PYTHONPATH": PACKAGES},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said = ""
        self._n = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line

    def is_ready(self) -> Demo:
        until(lambda: "Ctrl-C" in self.said or self.process.poll() is not None, "it says where everything is")
        assert self.process.poll() is None, self.errors()
        return self

    def errors(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def ask(self, method: str, path: str, body: object = None, *, ki: bool = False) -> Any:
        """The JSON that a request is answered with; raises ValueError if that is none."""
        port = self.ki_port if ki else self.port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        headers = {"Origin": f"http://127.0.0.1:{port}", "Content-Type": "application/json"}
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, headers if method == "POST" else {})
            answer = connection.getresponse()
            data = answer.read()
            assert answer.status < 400, (path, answer.status, data)
            return json.loads(data) if data else None
        finally:
            connection.close()

    def state(self) -> Any:
        return self.ask("GET", "/state")

    def board(self) -> Any:
        return self.ask("GET", "/v1/board", ki=True)

    def press(self, seat: int, button: str) -> None:
        for closed in (True, False):
            self._n += 1
            contact = {"seat": seat, "button": button, "closed": closed, "hand": "test", "n": self._n}
            self.ask("POST", "/contacts", contact)

    def sign_in(self, seat: int, player: str | None = None) -> Any:
        return self.ask("POST", f"/seats/{seat}/sign-in", {"player": player})

    def phase(self, *names: str) -> None:
        until(lambda: self.state()["phase"] in names, f"phase {names}")

    def throw(self, seat: int, button: str) -> None:
        """Press until it counts: the guard may still stand."""

        def thrown() -> bool:
            self.press(seat, button)
            state = self.state()
            return bool(state["seats"][seat - 1]["thrown"]) or state["phase"] not in ("throw", "countdown")

        until(thrown, f"seat {seat} has thrown")

    def play_match(self, winner: int, loser: int) -> None:
        """One round decides: pen beats page."""
        self.phase("throw")
        self.throw(winner, "pen")
        self.throw(loser, "page")
        self.phase("match_over")
        assert self.state()["winner"] == winner

    def ends(self, within: float = 8.0) -> int:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(within)
        self._reader.join(5)
        return code

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


@pytest.fixture
def demo() -> Iterator[Callable[..., Demo]]:
    started: list[Demo] = []

    def start(*arguments: str, **ports: int) -> Demo:
        started.append(Demo(*arguments, **ports))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def nobody_listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return False
    return True


@pytest.mark.parametrize("link", ["http", "serial"])
def test_results_reach_a_ki_that_was_stopped_once_each(demo: Callable[..., Demo], link: str) -> None:
    """Two sign in and play; the KI is stopped, they play on, it is started: all arrives, once."""
    table = demo("--link", link).is_ready()
    assert f"http://127.0.0.1:{table.port}/" in table.said
    assert f"http://127.0.0.1:{table.ki_port}/" in table.said
    assert table.state()["simulated"] is True
    table.press(1, "pen")
    table.press(2, "pen")
    until(lambda: table.state()["seats"][1]["state"] == "taken", "seat 2 is taken")
    one, two = table.sign_in(1), table.sign_in(2)
    assert one["player"] != two["player"]
    until(lambda: table.state()["seats"][0]["name"] == one["name"], "seat 1 shows its name")
    table.press(1, "page")
    table.press(2, "page")
    table.play_match(1, 2)
    until(lambda: table.state()["ki"]["waiting"] == 0, "the first result is reported")

    def points() -> dict[str, int]:
        return {each["player"]: each["points"] for each in table.board()["players"]}

    # The page says 0 waiting also in the moment before it has heard of the result.
    until(points, "the board has players")
    until(lambda: table.state()["ki"]["waiting"] == 0, "the table has heard of it")
    metrics = urllib.request.urlopen(f"http://127.0.0.1:{table.port}/metrics", timeout=5).read().decode()
    told = read_exposition(metrics)
    assert (told["heek_ki_up"], told["heek_link_up"], told["heek_ki_waiting"]) == (1, 1, 0)
    assert told["heek_link_frames" if link == "serial" else "heek_link_asked"] > 0

    assert points() == {one["player"]: 101, two["player"]: 99}
    table.ask("POST", "/ki", {"running": False})
    until(lambda: table.state()["ki"]["state"] == "stopped", "the page says that the KI is stopped")
    until(lambda: nobody_listens(table.ki_port), "nobody listens there")
    for winner, loser in ((1, 2), (1, 2)):
        table.phase("lobby")
        table.press(1, "pen")
        table.press(2, "pen")
        table.play_match(winner, loser)
    until(lambda: table.state()["ki"]["waiting"] == 2, "both results wait")
    table.ask("POST", "/ki", {"running": True})
    until(lambda: table.state()["ki"]["waiting"] == 0, "what waited is reported")
    until(lambda: table.state()["ki"]["state"] == "up", "the page says that the KI is there")
    assert points() == {one["player"]: 103, two["player"]: 97}
    player = table.ask("GET", f"/v1/players/{one['player']}", ki=True)
    assert player["points"] == 103
    assert table.ends() == 0
    assert table.errors() == ""
    assert nobody_listens(table.port)
    assert nobody_listens(table.ki_port)


def children_of(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see the processes")
def test_nothing_outlives_a_demonstration_that_is_killed(demo: Callable[..., Demo]) -> None:
    """kill -9 of the table's process: KI and gateway notice that it is gone, and end."""
    table = demo("--link", "serial").is_ready()
    children = children_of(table.process.pid)
    assert len(children) == 2
    table.process.kill()
    table.process.wait()

    def gone() -> bool:
        return not any(Path(f"/proc/{child}/exe").exists() for child in children)

    until(gone, "the children end")
    assert nobody_listens(table.ki_port)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see the processes")
def test_a_ki_that_dies_is_said_and_can_be_started_again(demo: Callable[..., Demo]) -> None:
    """kill -9 of the KI: the terminal names it, the page calls it stopped and starts it; nothing is lost."""
    table = demo().is_ready()
    (ki,) = children_of(table.process.pid)
    os.kill(ki, signal.SIGKILL)
    until(lambda: table.state()["ki"]["state"] == "stopped", "the page says that the KI is stopped")
    table.ask("POST", "/ki", {"running": True})
    until(lambda: table.state()["ki"]["state"] == "up", "the page says that the KI is there")
    assert table.ends() == 0
    assert table.errors() == "WARNING the KI has ended by itself (signal 9); the page can start it again\n"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see the processes")
def test_a_gateway_that_dies_comes_back(demo: Callable[..., Demo]) -> None:
    """kill -9 of the gateway: another one takes its place at the same wire, and the KI is reached again."""
    table = demo("--link", "serial").is_ready()
    until(lambda: table.state()["ki"]["state"] == "up", "the page says that the KI is there")

    def gateways() -> list[int]:
        return [
            child
            for child in children_of(table.process.pid)
            if b"serial-gateway" in Path(f"/proc/{child}/cmdline").read_bytes()
        ]

    (gateway,) = gateways()
    os.kill(gateway, signal.SIGKILL)
    until(lambda: [each for each in gateways() if each != gateway], "there is another gateway")
    player = until(lambda: sign_in_somebody(table), "somebody can sign in again")
    assert re.fullmatch("[0-9]{8}", player)
    assert table.ends() == 0
    assert table.errors().startswith(
        "WARNING the gateway has ended by itself (signal 9) and is started again\n"
    )


def sign_in_somebody(table: Demo) -> str | None:
    """Through the whole link: only the KI knows numbers. None while it is not reached."""
    table.press(1, "pen")
    try:
        return str(table.sign_in(1)["player"])
    except AssertionError:
        return None


def test_a_terminal_that_closes_ends_it(
    demo: Callable[..., Demo], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGHUP ends it as Ctrl-C does: what it kept in its folder is gone, and so are its children."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    table = demo().is_ready()
    (folder,) = tmp_path.glob("heek-demo-*")
    table.process.send_signal(signal.SIGHUP)
    assert table.process.wait(8) == 0
    assert table.errors() == ""
    assert not folder.exists()
    assert nobody_listens(table.ki_port)


LEADER = """
import signal, subprocess, sys
# As make does when it leads a session: it takes the hang-up for itself, and waits for what it runs.
signal.signal(signal.SIGHUP, lambda *_: None)
subprocess.Popen(sys.argv[1:]).wait()
"""


def test_it_ends_with_its_terminal_whoever_leads_the_session() -> None:
    """The terminal of a session that another program leads is closed: the demonstration ends as well."""
    ports = free_port(), free_port()
    master, slave = os.openpty()
    demo = ["-m", "heek", "demo", "--port", str(ports[0]), "--ki-port", str(ports[1])]
    leader = subprocess.Popen(
        [sys.executable, "-c", LEADER, sys.executable, *demo],
        env={**os.environ, "PYTHONPATH": PACKAGES},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    try:
        said = b""
        while b"Ctrl-C" not in said:
            said += os.read(master, 4096)
        os.close(master)
        until(lambda: nobody_listens(ports[0]) and nobody_listens(ports[1]), "table and KI have ended")
        assert leader.wait(PATIENCE_S) == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader.pid, signal.SIGKILL)
        leader.wait()


def test_a_port_that_is_taken_is_named(demo: Callable[..., Demo]) -> None:
    """One line names the port and the option that gives another; nothing is started."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for option, ports in (("--port", {"port": port}), ("--ki-port", {"ki_port": port})):
            table = demo(**ports)
            assert table.process.wait(PATIENCE_S) == 1
            assert re.fullmatch(
                rf"heek: port {port} cannot be had \(Address already in use\); another demonstration\? "
                rf"End it, or give another one: {option} N\n",
                table.errors(),
            )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "ahyoheek.target=0"], "ahyoheek.target: 0 is out of range"),
        (["--set", "stations.backend=gpio"], "is the demonstration's own"),
        (["--set", "target"], "is no KEY=VALUE"),
        (["--set", "ahyoheek.targe=1"], "did you mean ahyoheek.target?"),
        (["--lan", "192.0.2.77"], "heek: --lan 192.0.2.77: this machine has no such address; give"),
        (["--lan", "--terminal"], "heek: --lan: phones play on the page"),
    ],
)
def test_what_cannot_be_is_named(demo: Callable[..., Demo], arguments: list[str], words: str) -> None:
    """A key that is wrong or the demonstration's own, and an address that is not this machine's."""
    table = demo(*arguments)
    assert table.process.wait(PATIENCE_S) in (1, 2)
    errors = table.errors()
    assert words in errors
    assert "Traceback" not in errors
    assert until(lambda: nobody_listens(table.ki_port), "the KI has ended")


def test_rules_can_be_tried(demo: Callable[..., Demo]) -> None:
    """`--set` takes words with and without quotes, and the table plays by them."""
    table = demo("--set", "ahyoheek.economy=award", "--set", 'table.name="Rel to"').is_ready()
    assert table.state()["table"] == "Rel to"
    assert table.ends() == 0


def test_phones_get_an_address_with_a_secret_and_a_picture_of_it(demo: Callable[..., Demo]) -> None:
    """`--lan` prints the address to join at, 128 bits of chance in it, and its QR code; the KI stays home."""
    table = demo("--lan", "127.0.0.2").is_ready()
    match = re.search(rf"http://127\.0\.0\.2:{table.port}/join/([A-Za-z0-9_-]{{22,}})", table.said)
    assert match is not None
    assert table.said.count("█") > 100
    connection = http.client.HTTPConnection("127.0.0.2", table.port, timeout=10)
    connection.request("GET", "/state")
    assert connection.getresponse().status == 403
    connection.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", table.ki_port), timeout=1)
    assert table.ends() == 0
