"""The link over TLS: the key that a table has pinned is compared before a byte of ours is sent."""

from __future__ import annotations

import asyncio
import datetime
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from heek.errors import LinkError
from heek.ki import cbor
from heek.ki.answers import Refused
from heek.ki.claim import encode_enrolled, encode_waiting
from heek.ki.envelope import key_id, public_key
from heek.ki.http_link import HttpLink
from heek.ki.link import Request
from heek.ranking.certificate import tls
from tests.ki.foreign_certificates import made, serving_with
from tests.ki.http_stub import OK, Server, answer

SEED, OTHER = bytes(range(32)), bytes(32)
PINNED = public_key(SEED)


def says(body: bytes) -> Callable[[socket.socket, bytes], None]:
    return lambda connection, _: connection.sendall(answer(body))


@pytest.fixture
def serving() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def serve(context: ssl.SSLContext | None, body: bytes = OK) -> Server:
        servers.append(Server(says(body), context))
        return servers[-1]

    yield serve
    for each in servers:
        each.close()


def ask(url: str, pinned: bytes | None, request: Request = Request.RECORDS) -> bytes:
    """The answer to one question of a table that has pinned that key."""

    async def run() -> bytes:
        link = HttpLink(url, deadline_s=5.0)
        link.pinned = pinned
        try:
            return await link.ask(request, b"a secret of the table")
        finally:
            await link.close()

    return asyncio.run(run())


def test_the_pinned_key_is_all_it_takes(serving: Callable[..., Server]) -> None:
    """No authority, no name: the KI of the pinned key is asked and its answer counts."""
    server = serving(tls(SEED))
    assert ask(server.url, PINNED) == OK
    assert server.heard[0].endswith(b"a secret of the table")


def test_another_key_gets_not_a_byte(serving: Callable[..., Server]) -> None:
    """Whoever holds another key hears nothing of the request; both keys are named, and what to do."""
    server = serving(tls(OTHER))
    with pytest.raises(LinkError) as caught:
        ask(server.url, PINNED)
    assert key_id(public_key(OTHER)).hex() in str(caught.value)
    assert key_id(PINNED).hex() in str(caught.value)
    assert "heek enrol --again" in str(caught.value)
    assert (server.met, server.heard) == (1, [])


@pytest.mark.fault("F070")
@pytest.mark.parametrize("pinned", [PINNED, None])
def test_a_portals_certificate_gets_not_a_byte(
    serving: Callable[..., Server], tmp_path: Path, pinned: bytes | None
) -> None:
    """A certificate without a key of a KI is a portal's, before enrolment and after (F070)."""
    key = ec.generate_private_key(ec.SECP256R1())
    server = serving(serving_with(tmp_path, key, made(key, hashes.SHA256())))
    with pytest.raises(LinkError, match="does the network want a log-in"):
        ask(server.url, pinned, Request.TABLE)
    assert (server.met, server.heard) == (1, [])


@pytest.mark.parametrize("year", [1975, 2090])
def test_no_time_of_a_certificate_matters(serving: Callable[..., Server], tmp_path: Path, year: int) -> None:
    """It has ended long ago, or has not begun: the table may think that it is 1970 itself."""
    key = Ed25519PrivateKey.from_private_bytes(SEED)
    since = datetime.datetime(year, 1, 1, tzinfo=datetime.UTC)
    server = serving(serving_with(tmp_path, key, made(key, None, since=since)))
    assert ask(server.url, PINNED) == OK


def test_before_enrolment_only_claiming_and_introducing_go_out(serving: Callable[..., Server]) -> None:
    """Nothing else is said to a key that nobody has proven; who asks hears that the table is unknown."""
    server = serving(tls(SEED), encode_waiting())
    for request in (Request.RECORDS, Request.SYNC, Request.PLAYER):
        with pytest.raises(Refused) as caught:
            ask(server.url, None, request)
        assert caught.value.code == "unknown_table"
    assert server.heard == []
    assert ask(server.url, None, Request.CLAIM) == encode_waiting()
    assert ask(server.url, None, Request.TABLE) == encode_waiting()


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (Request.CLAIM, lambda public: encode_enrolled(public, "KI", bytes(32))),
        (Request.TABLE, lambda public: cbor.encode({"ki": 1, "table": bytes(8), "public": public})),
    ],
)
def test_the_key_that_is_told_must_be_that_of_the_connection(
    serving: Callable[..., Server], request_: Request, told: Callable[[bytes], bytes]
) -> None:
    """Somebody in between, who passes on what the KI says, cannot pass on its TLS."""
    assert ask(serving(tls(SEED), told(PINNED)).url, None, request_) == told(PINNED)
    with pytest.raises(LinkError, match="stands between this table and the KI"):
        ask(serving(tls(OTHER), told(PINNED)).url, None, request_)


def test_older_tls_and_none_at_all_are_named(serving: Callable[..., Server]) -> None:
    """What speaks TLS 1.2 at best, or plain HTTP, is asked nothing, and the port is what to look at."""
    old = tls(SEED)
    old.minimum_version = ssl.TLSVersion.TLSv1_2
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    server = serving(old)
    with pytest.raises(LinkError, match="does not speak TLS as a KI does"):
        ask(server.url, PINNED)
    assert server.heard == []
    with socket.create_server(("127.0.0.1", 0)) as plain:

        def refuse() -> None:
            connection, _ = plain.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=refuse)
        thread.start()
        with pytest.raises(LinkError, match="does not speak TLS as a KI does"):
            ask(f"https://127.0.0.1:{plain.getsockname()[1]}", PINNED)
        thread.join(10)


@pytest.mark.fault("F074")
def test_a_handshake_that_never_ends_is_given_up() -> None:
    """Who takes the connection and says nothing is given up at the deadline (F074)."""
    with socket.create_server(("127.0.0.1", 0)) as mute:

        async def run() -> None:
            link = HttpLink(f"https://127.0.0.1:{mute.getsockname()[1]}", deadline_s=0.3)
            link.pinned = PINNED
            with pytest.raises(LinkError, match=r"did not answer within 0\.3 s"):
                await link.ask(Request.RECORDS, b"x")
            await link.close()

        asyncio.run(asyncio.wait_for(run(), 10))
