"""The link over HTTP against servers that answer, and against all the kinds that do not."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from heek.errors import LinkError
from heek.ki import cbor
from heek.ki.http_link import HttpLink
from heek.ki.link import Request

OK = cbor.encode({"ki": 1, "table": bytes(8)})


def answer(
    body: bytes = OK,
    status: str = "200 OK",
    kind: str = "application/cbor",
    more: str = "",
    close: bool = True,
) -> bytes:
    end = "Connection: close\r\n" if close else ""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}{end}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Server:
    """One that hears requests on a free port and hands each connection to `behave`."""

    def __init__(self, behave: Callable[[socket.socket, bytes], None]) -> None:
        self._behave = behave
        self.heard: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                heard = b""
                while b"\r\n\r\n" not in heard:
                    heard += connection.recv(65536)
                head, _, body = heard.partition(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                while len(body) < length:
                    body += connection.recv(65536)
                self.heard.append(head + b"\r\n\r\n" + body)
                self._behave(connection, body)

    def close(self) -> None:
        self._ended.set()
        self._socket.close()

    def wait(self, seconds: float) -> bool:
        """Whether the test is over."""
        return self._ended.wait(seconds)


@pytest.fixture
def serving() -> Iterator[Callable[[Callable[[Server, socket.socket], None]], Server]]:
    servers: list[Server] = []

    def serve(behave: Callable[[Server, socket.socket], None]) -> Server:
        server = Server(lambda connection, _: behave(server, connection))
        servers.append(server)
        return server

    yield serve
    for server in servers:
        server.close()


def ask(url: str, body: bytes = b"x", deadline_s: float = 5.0, times: int = 1) -> list[bytes | LinkError]:
    """What came of asking once or more over one link."""

    async def run() -> list[bytes | LinkError]:
        link = HttpLink(url, deadline_s=deadline_s)
        came: list[bytes | LinkError] = []
        for _ in range(times):
            try:
                came.append(await link.ask(Request.RECORDS, body))
            except LinkError as error:
                came.append(error)
            assert link.status().up is isinstance(came[-1], bytes)
        await link.close()
        return came

    return asyncio.run(run())


Serving = Callable[[Callable[[Server, socket.socket], None]], Server]


def test_an_answer_of_the_kis_comes_back(serving: Serving) -> None:
    """The body goes to the path of the request as CBOR, and the answer's body comes back, time after time."""
    server = serving(lambda _, connection: connection.sendall(answer()))
    assert ask(server.url, b"\x80", times=3) == [OK, OK, OK]
    head, _, body = server.heard[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/records HTTP/1.1")
    assert b"Content-Type: application/cbor" in head
    assert body == b"\x80"


def test_a_refusal_is_an_answer_too(serving: Serving) -> None:
    """What the KI says with another status is for the caller to read."""
    refusal = cbor.encode({"ki": 1, "error": "unknown_table", "text": "?"})
    server = serving(lambda _, connection: connection.sendall(answer(refusal, "403 Forbidden")))
    assert ask(server.url) == [refusal]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("200 OK", "does the network want a log-in?"),
        ("302 Found", "does the network want a log-in?"),
        ("511 Network Authentication Required", "does the network want a log-in?"),
        ("404 Not Found", "is ki.url right?"),
        ("401 Unauthorized", "is ki.url right?"),
        ("429 Too Many Requests", "it may be in trouble"),
        ("500 Internal Server Error", "it may be in trouble"),
        ("502 Bad Gateway", "it may be in trouble"),
    ],
)
def test_what_to_do_depends_on_what_answered(serving: Serving, status: str, words: str) -> None:
    """Each kind of stranger is named with the question that fits it."""
    server = serving(
        lambda _, connection: connection.sendall(answer(b"<html>", status=status, kind="text/html"))
    )
    (error,) = ask(server.url)
    assert words in str(error)


@pytest.mark.parametrize(
    "reply",
    [
        answer(b"<html>log in</html>", kind="text/html"),
        answer(b"", kind="text/html"),
        answer(OK, kind="text/html"),
        answer(b"<html>", kind="application/cbor"),
        answer(cbor.encode({"ok": True})),
        answer(b""),
        answer(b"{}", kind="application/json"),
        answer(b"", status="302 Found", more="Location: http://127.0.0.1:1/login\r\n"),
        answer(b"", status="511 Network Authentication Required", kind="text/html"),
        answer(b"<html>bad gateway", status="502 Bad Gateway", kind="text/html"),
    ],
)
def test_a_portal_is_not_the_ki(serving: Serving, reply: bytes) -> None:
    """200 with a login page, an empty 200, a redirect, 511, 502: none of them counts, and each is named."""
    server = serving(lambda _, connection: connection.sendall(reply))
    (error,) = ask(server.url)
    assert isinstance(error, LinkError)
    assert "is not the KI" in str(error)
    assert len(server.heard) == 1


def test_retry_after_is_told(serving: Serving) -> None:
    """Seconds are passed on; a date is not, for this clock may stand in 1970."""
    for text, expected in (("120", 120.0), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("-1", None)):
        reply = answer(b"", "503 Busy", "text/html", f"Retry-After: {text}\r\n")
        server = serving(lambda _, connection, reply=reply: connection.sendall(reply))  # type: ignore[misc]
        (error,) = ask(server.url)
        assert isinstance(error, LinkError)
        assert error.retry_s == expected


def test_a_server_that_says_nothing_is_given_up(serving: Serving) -> None:
    """The deadline ends it, and the next question goes out on a new connection."""
    server = serving(lambda server, _: server.wait(1.0) and None)
    began = time.monotonic()
    errors = ask(server.url, deadline_s=0.2, times=2)
    assert all("did not answer within 0.2 s" in str(error) for error in errors)
    assert time.monotonic() - began < 3


def test_a_slow_drip_is_given_up(serving: Serving) -> None:
    """A byte now and then is no answer: the deadline is for the whole, not for each read."""

    def drip(server: Server, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while not server.wait(0.05):
            connection.sendall(b"x")

    began = time.monotonic()
    (error,) = ask(serving(drip).url, deadline_s=0.4)
    assert "did not answer" in str(error)
    assert time.monotonic() - began < 3


def test_an_answer_without_end_is_cut(serving: Serving) -> None:
    """Two hundred megabytes are not read: a mebibyte is enough to see that this is not the KI."""
    sent = [0]

    def flood(_: Server, connection: socket.socket) -> None:
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/cbor\r\nContent-Length: 200000000\r\n\r\n"
        )
        for _ in range(3000):
            connection.sendall(bytes(65536))
            sent[0] += 65536

    (error,) = ask(serving(flood).url)
    assert "is not the KI" in str(error)
    assert sent[0] < 50_000_000


def test_what_breaks_off_is_named(serving: Serving) -> None:
    """Half an answer, none at all, and rubbish instead of HTTP."""
    for reply in (answer()[:-3], b"", b"SSH-2.0-OpenSSH\r\n"):
        server = serving(lambda _, connection, reply=reply: connection.sendall(reply))  # type: ignore[misc]
        (error,) = ask(server.url)
        assert "broke off" in str(error) or "is not the KI" in str(error)


def test_nobody_there_is_named() -> None:
    """A port that nobody listens at, and a name that nobody knows."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    (error,) = ask(f"http://127.0.0.1:{port}")
    assert str(error) == f"nothing listens at 127.0.0.1:{port}; is the KI running?"
    (error,) = ask("http://no-such-host.invalid:8625")
    assert "no address is known for no-such-host.invalid" in str(error)


def test_a_name_server_that_does_not_answer_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up that hangs is past its deadline; until it comes back each question is refused at once."""
    back = threading.Event()

    def hang(*_: object, **__: object) -> None:
        back.wait(5)
        raise socket.gaierror("at last")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    began = time.monotonic()
    errors = ask("http://ki.local:8625", deadline_s=0.2, times=3)
    assert time.monotonic() - began < 2
    back.set()
    assert "did not answer within" in str(errors[0])
    assert ["no address is found for ki.local" in str(error) for error in errors[1:]] == [True, True]


def test_what_is_no_address_is_refused_at_once() -> None:
    """The configuration checks it; a mistake of ours is no link."""
    for url in ("https://a", "ki.local:8625", "http://"):
        with pytest.raises(ValueError, match="is not like http://"):
            HttpLink(url)
