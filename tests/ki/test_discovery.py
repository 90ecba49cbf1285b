"""KIs that announce themselves and tables that look for them, over the multicast of this machine alone."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from heek.errors import LinkError
from heek.ki.announcement import Announcement
from heek.ki.discovery import Discovered
from heek.ki.envelope import key_id, public_key
from heek.ki.http_link import HttpLink
from heek.ki.link import Request
from heek.ranking.announcing import Announcing, own_addresses
from heek.ranking.certificate import tls
from tests.ki.http_stub import OK, Server, answer

# Each test has a service type of its own; one worker is enough for what only waits.
pytestmark = pytest.mark.xdist_group("dns_sd")

HERE = ["127.0.0.1"]
RELTO, TERALUM = public_key(bytes(32)), public_key(bytes(range(32)))


@pytest.fixture
def kind() -> str:
    """A service type that nobody else on this machine has."""
    return f"_h{secrets.token_hex(5)}._tcp.local."


class Announced:
    """One KI that is announced on a loop of its own until it is closed."""

    def __init__(self, kind: str, public: bytes, name: str, port: int, tls_port: int | None = None) -> None:
        announced = Announcement(key_id(public), name, tls_port)
        self._announcing = Announcing("0.0.0.0", port, announced, lambda: HERE, kind)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._task = self._loop.create_task(self._announcing.run())
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._task)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(20)
        assert not self._thread.is_alive()


Announce = Callable[..., Announced]


@pytest.fixture
def announce(kind: str) -> Iterator[Announce]:
    made: list[Announced] = []

    def start(*arguments: object) -> Announced:
        made.append(Announced(kind, *arguments))  # type: ignore[arg-type]
        return made[-1]

    yield start
    for each in made:
        each.close()


def looked_for(kind: str, pinned: bytes | None, seconds: float = 20.0) -> tuple[Discovered, str]:
    """Who looked, and what was found within the time: name and place."""
    looking = Discovered(HERE, kind)
    deadline = time.monotonic() + seconds
    while True:
        try:
            place = looking.find(deadline, pinned)
            return looking, f"{place.name} {place.where} {place.tls}"
        except LinkError:
            if time.monotonic() >= deadline:
                raise


def test_a_table_that_is_enrolled_nowhere_takes_whom_it_finds(kind: str, announce: Announce) -> None:
    """Name and place are those of the KI that announces itself, without TLS where it has none."""
    announce(RELTO, "Relto", 8625)
    assert looked_for(kind, None)[1] == "Relto 127.0.0.1:8625 False"


def test_a_table_that_is_enrolled_takes_its_own_kis_alone(kind: str, announce: Announce) -> None:
    """Another KI in the same network is passed by, and named where the right one is missing."""
    announce(TERALUM, "Teralum", 9000, 9001)
    with pytest.raises(LinkError) as caught:
        looked_for(kind, RELTO, 4.0)
    assert f"(key {key_id(RELTO).hex()}) does not announce itself" in str(caught.value)
    assert f"found instead: Teralum (key {key_id(TERALUM).hex()})" in str(caught.value)
    announce(RELTO, "Relto", 8625)
    assert looked_for(kind, RELTO)[1] == "Relto 127.0.0.1:8625 False"
    assert looked_for(kind, TERALUM)[1] == "Teralum 127.0.0.1:9001 True"


def test_nobody_there_says_what_to_do(kind: str) -> None:
    """A network without a KI is named with the two ways out."""
    with pytest.raises(LinkError, match=r"heek ki serve --host 0\.0\.0\.0\)\? Or say where it is: ki\.url"):
        looked_for(kind, None, 0.5)


def test_a_place_is_kept_until_nobody_answers_there(kind: str, announce: Announce) -> None:
    """It is not looked for again while it answers; after a failure it is, and has moved meanwhile."""
    first = announce(RELTO, "Relto", 8625)
    looking, _ = looked_for(kind, RELTO)
    first.close()
    assert looking.find(time.monotonic(), RELTO).where == "127.0.0.1:8625"
    announce(RELTO, "Relto", 9625)
    looking.failed()
    deadline = time.monotonic() + 20
    while looking.find(deadline, RELTO).where != "127.0.0.1:9625":
        # Who heard of the old place just before it was taken back.
        looking.failed()
        assert time.monotonic() < deadline


def test_closing_ends_a_look(kind: str) -> None:
    """Whoever looks is not waited for."""
    looking = Discovered(HERE, kind)
    ended: list[str] = []

    def look() -> None:
        try:
            looking.find(time.monotonic() + 60, None)
        except LinkError as error:
            ended.append(str(error))

    thread = threading.Thread(target=look)
    thread.start()
    while thread.is_alive():
        looking.close()
        thread.join(0.1)
    assert ended == ["the link is closed"]


def test_a_link_without_an_address_asks_whom_it_finds(kind: str, announce: Announce) -> None:
    """From a question to its answer over TLS, at a place that nobody configured."""
    server = Server(lambda connection, _: connection.sendall(answer()), tls(bytes(32)))
    announce(RELTO, "Relto", 1, server.port)

    async def run() -> bytes:
        link = HttpLink(whereabouts=Discovered(HERE, kind))
        link.pinned = RELTO
        try:
            while True:
                with contextlib.suppress(LinkError):
                    return await link.ask(Request.RECORDS, b"x")
        finally:
            await link.close()

    assert asyncio.run(asyncio.wait_for(run(), 40)) == OK
    server.close()


def test_what_is_announced_is_what_others_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """No loopback, no address that is nowhere, and nothing but the one that was given."""
    assert own_addresses("192.0.2.7") == ["192.0.2.7"]
    assert own_addresses("127.0.0.1") == []
    assert "127.0.0.1" not in own_addresses("0.0.0.0")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: (_ for _ in ()).throw(socket.gaierror()))
    assert own_addresses("no-such-host.invalid") == []
