"""Table and KI as processes on two hosts, and a network between them that fails in every way it can.

The KI is `heek ki serve`; the table has the daemon's journal, reporting and link. After each fault all
matches arrive by themselves, and at the end each is in the ledger once.
"""

from __future__ import annotations

import json
import queue
import sqlite3
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from heek.journal import Pin, open_journal
from heek.ki.answers import encode_introduction
from heek.ki.table_key import TableKey, table_key
from tests.ki.foreign_certificates import made, serving_with
from tests.ranking.service import RunningKi
from tests.two_hosts.namespaces import KI_AT, NOBODY_AT, PORTAL_AT, TwoHosts, missing

PORT, TLS_PORT = 8625, 8626
PATIENCE_S = 120.0
"""Between two tries lies half a minute at most after so few failures; the machine may be busy."""

pytestmark = [
    pytest.mark.skipif((reason := missing()) is not None, reason=str(reason)),
    # One network after the other.
    pytest.mark.xdist_group("two_hosts"),
]


class Ki:
    """`heek ki serve` on its host; its ledger is read as a file."""

    def __init__(self, hosts: TwoHosts, folder: Path, address: str = KI_AT) -> None:
        self._hosts = hosts
        self._ledger = folder / "ki.sqlite3"
        self._address = address
        self.start()

    def start(self) -> None:
        self._process = self._hosts.start(
            self._hosts.ki,
            "heek",
            *("ki", "serve", "--host", self._address, "--port", str(PORT), "--tls-port", str(TLS_PORT)),
            *("--database", str(self._ledger), "--name", "Relto"),
            ready="is ready",
            stderr=subprocess.PIPE,
        )
        assert self._process.stderr is not None
        threading.Thread(target=self._process.stderr.read, daemon=True).start()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def operator(self, *words: str) -> str:
        """What `heek ki` says to its operator on the KI's host."""
        where = ("--database", str(self._ledger), "--port", str(PORT))
        return self._hosts.run(self._hosts.ki, "heek", "ki", *words, *where)

    def matches(self) -> list[str]:
        """The matches that count."""
        with sqlite3.connect(self._ledger.as_uri() + "?mode=ro", uri=True) as opened:
            return [str(uuid.UUID(bytes=each)) for (each,) in opened.execute("SELECT match FROM matches")]


class Table:
    """The table on its host."""

    def __init__(self, hosts: TwoHosts, folder: Path, *url: str) -> None:
        self._hosts = hosts
        self._process = hosts.start(
            hosts.table, "tests.two_hosts.table", str(folder), *url, ready="the table is there"
        )
        self._said: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.status: dict[str, Any] = {}
        self.told: list[dict[str, Any]] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.put(json.loads(line))

    def win(self, count: int) -> list[str]:
        """So many matches are won; their ids, once they are in the journal."""
        assert self._process.stdin is not None
        self._process.stdin.write("match\n" * count)
        self._process.stdin.flush()
        won: list[str] = []
        self.until(lambda told: bool(won.extend([told["won"]] if "won" in told else []) or len(won) == count))
        return won

    def until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next thing said for which that holds."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                told = self._said.get(timeout=max(deadline - time.monotonic(), 0.01))
            except queue.Empty:
                raise AssertionError(f"the table never said so, but {self.told[-5:]}") from None
            self.told.append(told)
            if condition(told):
                return told

    def fails(self, words: str) -> None:
        """Until the table says that with these words."""
        self.until(lambda told: told.get("state") == "down" and words in told["why"])

    def delivers(self) -> None:
        """Until nothing waits and the KI answers."""
        self.until(lambda told: told.get("state") == "up" and told["waiting"] == 0)

    def stop(self) -> None:
        self._hosts.stop(self._process)


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[TwoHosts]:
    made = TwoHosts(tmp_path)
    yield made
    made.close()


@pytest.fixture
def key(tmp_path: Path) -> TableKey:
    """The key of a table that was enrolled before: each of the two knows the other's."""
    (tmp_path / "table").mkdir()
    key = table_key(tmp_path / "table", lambda: bytes(range(32)))
    with RunningKi(tmp_path, name="Relto") as ki:
        assert ki.post("/v1/tables", encode_introduction(key.seed, "Table 1")).status == 200
        public = ki.service.key.public
    journal = open_journal(tmp_path / "table")
    journal.pin_service(Pin(public, "Relto", "code"), key.id)
    journal.close()
    return key


@pytest.fixture
def ki(hosts: TwoHosts, key: TableKey, tmp_path: Path) -> Ki:  # noqa: ARG001
    return Ki(hosts, tmp_path / "ki")


URLS = [f"http://ki.test:{PORT}", f"https://ki.test:{TLS_PORT}"]


@pytest.fixture(params=URLS, ids=["http", "https"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.fault("F074", "F079")
def test_a_cable_that_is_cut_swallows_and_is_slow(hosts: TwoHosts, ki: Ki, tmp_path: Path, url: str) -> None:
    """Unplugged, swallowing all in the middle of a connection, as slow as a modem: all arrives, once each."""
    table = Table(hosts, tmp_path / "table", url)
    won = table.win(2)
    table.delivers()
    with hosts.unplugged():
        won += table.win(3)
        table.until(lambda told: told.get("state") == "down" and told["waiting"] == 3)
    table.delivers()
    with hosts.swallowed():
        won += table.win(3)
        table.fails("did not answer within")
    table.delivers()
    with hosts.slowed(16_000):
        won += table.win(5)
        table.delivers()
    ki.kill()
    won += table.win(1)
    table.fails("nothing listens")
    ki.start()
    table.delivers()
    assert sorted(ki.matches()) == sorted(won)


@pytest.mark.fault("F070")
def test_a_portal_before_the_ki(hosts: TwoHosts, ki: Ki, tmp_path: Path, url: str) -> None:
    """A login page in the KI's place takes nothing off the table's hands, with TLS and without (F070)."""
    secret = ec.generate_private_key(ec.SECP256R1())
    serving_with(tmp_path, secret, made(secret, hashes.SHA256()))
    hosts.start(hosts.ki, "tests.two_hosts.portal", PORTAL_AT, str(PORT), ready="portal")
    certificate = str(tmp_path / "foreign.pem")
    hosts.start(hosts.ki, "tests.two_hosts.portal", PORTAL_AT, str(TLS_PORT), certificate, ready="portal")
    hosts.says(a=[PORTAL_AT])
    table = Table(hosts, tmp_path / "table", url)
    won = table.win(3)
    table.fails("does the network want a log-in?")
    assert ki.matches() == []
    hosts.says(a=[KI_AT])
    table.delivers()
    hosts.says(a=[PORTAL_AT])
    won += table.win(2)
    table.fails("does the network want a log-in?")
    hosts.says(a=[KI_AT])
    table.delivers()
    assert sorted(ki.matches()) == sorted(won)


@pytest.mark.fault("F071", "F080")
def test_names_that_come_late_go_away_and_lead_nowhere(hosts: TwoHosts, ki: Ki, tmp_path: Path) -> None:
    """No resolver at the start, a dead one later, a black hole before the right address (F071, F080)."""
    hosts.resolver(there=False)
    table = Table(hosts, tmp_path / "table", URLS[0])
    won = table.win(2)
    table.fails("no address is known for ki.test")
    hosts.resolver(there=True)
    table.delivers()
    # What was known once is used while nobody answers for the name.
    hosts.says(silent=True)
    won += table.win(1)
    table.delivers()
    hosts.says(a=[KI_AT], aaaa=[NOBODY_AT])
    won += table.win(1)
    table.delivers()
    table.stop()
    # Nor does it need to have known the right one before.
    table = Table(hosts, tmp_path / "table", URLS[0])
    won += table.win(1)
    table.delivers()
    hosts.says(a=["0.0.0.0"])
    won += table.win(1)
    table.fails("which is nowhere")
    hosts.says(a=[KI_AT])
    table.delivers()
    assert sorted(ki.matches()) == sorted(won)


def test_a_ki_that_is_found_by_its_announcement(hosts: TwoHosts, ki: Ki, tmp_path: Path) -> None:
    """A table without an address finds the KI it is enrolled at, loses it, and finds it again."""
    table = Table(hosts, tmp_path / "table")
    won = table.win(2)
    table.until(lambda told: told.get("state") == "up" and "Relto at 10.77.0.1:8626" in told["link"])
    table.delivers()
    ki.kill()
    with hosts.unplugged():
        won += table.win(2)
        table.until(lambda told: told.get("state") == "down")
    ki.start()
    table.delivers()
    assert sorted(ki.matches()) == sorted(won)


def test_a_table_is_enrolled_by_its_code_over_tls(hosts: TwoHosts, tmp_path: Path) -> None:
    """A new table finds a KI, shows its code, is taken by whoever types it in there, and pins its key."""
    ki = Ki(hosts, tmp_path / "ki", "0.0.0.0")
    (tmp_path / "table").mkdir()
    table = Table(hosts, tmp_path / "table")
    won = table.win(2)
    code = table.until(lambda told: bool(told.get("claim")) and told["link"].startswith("up"))["claim"]
    assert ki.matches() == []
    ki.operator("enrol", code)
    table.until(lambda told: told.get("service") == "Relto")
    table.delivers()
    assert sorted(ki.matches()) == sorted(won)
    # Over TLS, at either address of its host.
    assert table.told[-1]["link"] in [f"up, Relto at {each}:{TLS_PORT}" for each in (KI_AT, PORTAL_AT)]
