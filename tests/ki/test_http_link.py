"""The link over HTTP against servers that answer, and against all the kinds that do not (F070 to F080)."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from heek.clock import ManualClock
from heek.errors import LinkError, LinkTooSlow
from heek.ki import cbor
from heek.ki.http_link import HttpLink
from heek.ki.link import LinkStatus, Request
from tests.ki.http_stub import OK, Server, answer

Serving = Callable[[Callable[[Server, socket.socket], None]], Server]
NOON = "Tue, 30 Nov 2027 12:00:00 GMT"
NOON_S = 1_827_576_000.0


@pytest.fixture
def serving() -> Iterator[Serving]:
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
        ("407 Proxy Authentication Required", "a proxy stands in between"),
        ("401 Unauthorized", "is ki.url right?"),
        ("429 Too Many Requests", "it may be in trouble"),
        ("500 Internal Server Error", "it may be in trouble"),
        ("502 Bad Gateway", "it may be in trouble"),
        ("503 Service Unavailable", "it may be in trouble"),
    ],
)
def test_what_to_do_depends_on_what_answered(serving: Serving, status: str, words: str) -> None:
    """Each kind of stranger is named with the question that fits it."""
    server = serving(
        lambda _, connection: connection.sendall(answer(b"<html>", status=status, kind="text/html"))
    )
    (error,) = ask(server.url)
    assert words in str(error)


@pytest.mark.fault("F070")
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


@pytest.mark.fault("F076")
def test_retry_after_is_told(serving: Serving) -> None:
    """Seconds, or a date relative to the answer's own; an hour at most, and nonsense is nothing (F076)."""
    for text, expected in (
        ("120", 120.0),
        ("0", 0.0),
        ("86400", 3600.0),
        ("-5", None),
        ("soon", None),
        ("Tue, 30 Nov 2027 12:00:30 GMT", 30.0),
        ("Tue, 30 Nov 2027 11:00:00 GMT", 0.0),
    ):
        reply = answer(b"", "503 Busy", "text/html", f"Retry-After: {text}\r\nDate: {NOON}\r\n")
        server = serving(lambda _, connection, reply=reply: connection.sendall(reply))  # type: ignore[misc]
        (error,) = ask(server.url)
        assert isinstance(error, LinkError)
        assert (text, error.retry_s) == (text, expected)


def status_of(url: str, clock: ManualClock) -> LinkStatus:
    """The link's status after one question, by a table whose wall clock is that."""

    async def run() -> LinkStatus:
        link = HttpLink(url, clock=clock)
        with contextlib.suppress(LinkError):
            await link.ask(Request.RECORDS, b"x")
        await link.close()
        return link.status()

    return asyncio.run(run())


@pytest.mark.fault("F073")
@pytest.mark.parametrize(
    ("wall_s", "words"),
    [
        (NOON_S - 600, "This clock is 10 min behind the KI's"),
        (NOON_S + 600, "This clock is 10 min ahead of the KI's"),
        (0.0, "This clock is 58 years behind the KI's"),
        (NOON_S - 30, ""),
    ],
)
def test_a_wrong_clock_is_named_and_nothing_else(serving: Serving, wall_s: float, words: str) -> None:
    """The Date header tells how wrong the clocks are: that is said, the answer counts all the same (F073)."""
    reply = answer(more=f"Date: {NOON}\r\n")
    server = serving(lambda _, connection: connection.sendall(reply))
    status = status_of(server.url, ManualClock(wall_s=wall_s))
    assert (status.up, status.text, status.remarks) == (True, "up", (words,) if words else ())
    assert abs(status.counters["clock_behind_s"] - (NOON_S - wall_s)) <= 1


def test_a_clock_that_is_as_right_as_can_be_told_is_not_behind(serving: Serving) -> None:
    """A date of whole seconds says nothing of less than two."""
    reply = answer(more=f"Date: {NOON}\r\n")
    server = serving(lambda _, connection: connection.sendall(reply))
    for wall_s, behind in ((NOON_S + 1.4, 0), (NOON_S - 1.9, 0), (NOON_S + 5, -5)):
        assert status_of(server.url, ManualClock(wall_s=wall_s)).counters["clock_behind_s"] == behind


@pytest.mark.fault("F073")
def test_a_refusal_by_a_wrong_clock_is_no_bad_key(serving: Serving) -> None:
    """A 401 of who looks at clocks is named with the clock's error; it settles nothing (F073)."""
    reply = answer(b"skew", "401 Unauthorized", "text/plain", f"Date: {NOON}\r\n")
    server = serving(lambda _, connection: connection.sendall(reply))
    status = status_of(server.url, ManualClock(wall_s=NOON_S - 600))
    assert not status.up
    assert "HTTP 401" in status.text
    assert status.text.endswith("(this clock is 10 min behind the KI's)")


@pytest.mark.fault("F074")
def test_a_server_that_says_nothing_is_given_up(serving: Serving) -> None:
    """The deadline ends it, and the next question goes out on a new connection."""
    server = serving(lambda server, _: server.wait(1.0) and None)
    began = time.monotonic()
    errors = ask(server.url, deadline_s=0.2, times=2)
    assert all("did not answer within 0.2 s" in str(error) for error in errors)
    assert all(isinstance(error, LinkTooSlow) for error in errors)
    assert time.monotonic() - began < 3


@pytest.mark.fault("F074")
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


@pytest.mark.fault("F074")
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
        assert f"{server.port} broke off" in str(error)


def test_nobody_there_is_named() -> None:
    """A port that nobody listens at, and a name that nobody knows."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    (error,) = ask(f"http://127.0.0.1:{port}")
    assert str(error) == f"nothing listens at 127.0.0.1:{port}; is the KI running?"
    (error,) = ask("http://no-such-host.invalid:8625")
    assert "no address is known for no-such-host.invalid" in str(error)


class Names:
    """What the resolver says, in place of the system's: a list of (family, address), or what it raises."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.says: Callable[[], list[Any]] = list
        self.asked = 0
        real = socket.getaddrinfo

        def resolve(host: str, port: int, *rest: Any, **named: Any) -> list[Any]:
            if host != "ki.test":
                return real(host, port, *rest, **named)
            self.asked += 1
            return [(family, socket.SOCK_STREAM, 6, "", at) for family, at in self.says()]

        monkeypatch.setattr(socket, "getaddrinfo", resolve)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    return Names(monkeypatch)


def raises(error: Exception) -> Callable[[], list[Any]]:
    def say() -> list[Any]:
        raise error

    return say


def asked_in_turn(url: str, *before: Callable[[], None], deadline_s: float = 5.0) -> list[bytes | LinkError]:
    """What came of one question after each of these, over one link."""

    async def run() -> list[bytes | LinkError]:
        link = HttpLink(url, deadline_s=deadline_s)
        came: list[bytes | LinkError] = []
        for each in before:
            each()
            try:
                came.append(await link.ask(Request.RECORDS, b"x"))
            except LinkError as error:
                came.append(error)
        await link.close()
        return came

    return asyncio.run(run())


@pytest.mark.fault("F071")
def test_a_resolver_that_comes_late_is_used_as_soon_as_it_is_there(serving: Serving, names: Names) -> None:
    """Made without any resolver, a link works as soon as there is one, and when that has died (F071)."""
    server = serving(lambda _, connection: connection.sendall(answer()))
    nobody = raises(socket.gaierror(socket.EAI_AGAIN, "no resolver"))
    there = lambda: [(socket.AF_INET, ("127.0.0.1", server.port))]  # noqa: E731

    def let(say: Callable[[], list[Any]]) -> Callable[[], None]:
        return lambda: setattr(names, "says", say)

    first, second, third = asked_in_turn(
        f"http://ki.test:{server.port}", let(nobody), let(there), let(nobody)
    )
    assert "no address is known for ki.test" in str(first)
    assert (second, third) == (OK, OK)
    assert names.asked == 3


@pytest.mark.fault("F071")
def test_an_address_that_is_nowhere_is_not_this_machine(serving: Serving, names: Names) -> None:
    """A filter that answers 0.0.0.0 does not send the table's results to whatever listens here (F071)."""
    server = serving(lambda _, connection: connection.sendall(answer()))
    names.says = lambda: [(socket.AF_INET, ("0.0.0.0", server.port))]
    (error,) = ask(f"http://ki.test:{server.port}")
    assert "0.0.0.0, which is nowhere" in str(error)
    assert server.met == 0


@pytest.fixture
def black_hole() -> Iterator[int]:
    """A port of 127.0.0.1 that takes no connection and refuses none: its queue is full for ever."""
    hole = socket.socket()
    hole.bind(("127.0.0.1", 0))
    hole.listen(0)
    waiting = []
    for _ in range(3):
        each = socket.socket()
        each.setblocking(False)
        each.connect_ex(hole.getsockname())
        waiting.append(each)
    yield hole.getsockname()[1]
    for each in [hole, *waiting]:
        each.close()


@pytest.mark.fault("F080")
def test_a_black_hole_behind_one_address_does_not_eat_the_deadline(
    serving: Serving, names: Names, black_hole: int
) -> None:
    """With one address that swallows all, the other is reached within the deadline (F080)."""
    server = serving(lambda _, connection: connection.sendall(answer()))
    names.says = lambda: [
        (socket.AF_INET, ("127.0.0.1", black_hole)),
        (socket.AF_INET, ("127.0.0.1", server.port)),
    ]
    assert ask(f"http://ki.test:{server.port}", deadline_s=2.0, times=2) == [OK, OK]
    names.says = lambda: [(socket.AF_INET, ("127.0.0.1", black_hole))]
    (error,) = ask(f"http://ki.test:{server.port}", deadline_s=0.3)
    assert "did not answer within 0.3 s" in str(error)


@pytest.mark.fault("F071")
def test_a_name_server_that_does_not_answer_holds_nobody_up(names: Names) -> None:
    """Each question ends at its deadline, and those that follow soon begin no look-up more (F071)."""
    back = threading.Event()

    def hang() -> list[Any]:
        back.wait(20)
        raise socket.gaierror("at last")

    names.says = hang
    errors = ask("http://ki.test:8625", deadline_s=0.1, times=3)
    assert ["no address is found for ki.test in time" in str(error) for error in errors] == [True] * 3
    assert names.asked == 1
    back.set()


@pytest.mark.fault("F071")
def test_what_was_found_late_serves_the_next_question(serving: Serving, names: Names) -> None:
    """A look-up that outlasts the deadline is not thrown away (F071: a name server that takes its time)."""
    server = serving(lambda _, connection: connection.sendall(answer()))
    back, done = threading.Event(), threading.Event()

    def slow() -> list[Any]:
        back.wait(20)
        done.set()
        return [(socket.AF_INET, ("127.0.0.1", server.port))]

    def nothing() -> None:
        names.says = slow

    def come_back() -> None:
        back.set()
        done.wait(20)

    first, second = asked_in_turn(f"http://ki.test:{server.port}", nothing, come_back, deadline_s=0.5)
    assert "no address is found" in str(first)
    assert second == OK
    assert names.asked <= 2


HANGS_AND_ENDS = """
import asyncio, socket, time
socket.getaddrinfo = lambda *_, **__: time.sleep(300)
from heek.errors import LinkError
from heek.ki.http_link import HttpLink
from heek.ki.link import Request

async def run():
    link = HttpLink("http://ki.test:8625", deadline_s=0.1)
    try:
        await link.ask(Request.RECORDS, b"")
    except LinkError as error:
        print(error)
    await link.close()

asyncio.run(run())
"""


@pytest.mark.fault("F071", "F074")
def test_a_resolver_that_hangs_does_not_hold_up_the_end_of_the_program() -> None:
    """The process ends although a look-up of its own has not come back (F074)."""
    done = subprocess.run(
        [sys.executable, "-c", HANGS_AND_ENDS], capture_output=True, text=True, timeout=60, check=True
    )
    assert "no address is found for ki.test in time" in done.stdout
    assert done.stderr == ""


def test_closing_ends_what_is_under_way(serving: Serving) -> None:
    """Whoever waits for an answer is told at once that the link is closed; a later question as well."""
    server = serving(lambda server, _: server.wait(20) and None)

    async def run() -> None:
        link = HttpLink(server.url)
        asking = asyncio.create_task(link.ask(Request.RECORDS, b"x"))
        while not server.heard:
            await asyncio.sleep(0.01)
        await link.close()
        with pytest.raises(LinkError, match="the link is closed"):
            await asking
        with pytest.raises(LinkError, match="the link is closed"):
            await link.ask(Request.RECORDS, b"x")

    asyncio.run(asyncio.wait_for(run(), 10))


def test_a_question_that_nobody_waits_for_any_more_is_cut(serving: Serving) -> None:
    """Cancelled in the middle, the link answers the next question over a connection of its own."""

    def behave(server: Server, connection: socket.socket) -> None:
        if server.met == 1:
            connection.settimeout(20)
            assert connection.recv(1) == b""  # cut, not waited out
        else:
            connection.sendall(answer())

    server = serving(behave)

    async def run() -> None:
        link = HttpLink(server.url)
        asking = asyncio.create_task(link.ask(Request.RECORDS, b"x"))
        while not server.heard:
            await asyncio.sleep(0.01)
        asking.cancel()
        assert await link.ask(Request.RECORDS, b"y") == OK
        await link.close()

    asyncio.run(asyncio.wait_for(run(), 15))
    assert server.met == 2


@pytest.mark.parametrize("piece", [b"HTTP/1.1 100 Continue\r\n\r\n", b"X: " + bytes(1000).hex().encode()])
def test_a_head_without_end_is_cut(serving: Serving, piece: bytes) -> None:
    """Neither interim answers nor header lines for ever: a bounded part is read, and memory stays small."""
    sent = [0]

    def flood(server: Server, connection: socket.socket) -> None:
        if piece.startswith(b"X"):
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while not server.wait(0):
            connection.sendall(1000 * piece)
            sent[0] += 1000 * len(piece)

    (error,) = ask(serving(flood).url)
    assert "broke off" in str(error)
    assert sent[0] < 50_000_000


def test_who_sends_on_for_another_says_so(serving: Serving) -> None:
    """A gateway's requests carry the header by which the KI knows that they come from elsewhere."""
    server = serving(lambda _, connection: connection.sendall(answer()))

    async def run() -> None:
        link = HttpLink(server.url, via="1.1 heek-gateway")
        await link.ask(Request.RECORDS, b"x")
        await link.close()

    asyncio.run(run())
    assert b"\r\nVia: 1.1 heek-gateway\r\n" in server.heard[0]


def test_no_proxy_of_the_environment_is_used(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """The KI is in the same room; what is set for the web does not stand between it and the table."""
    server = serving(lambda _, connection: connection.sendall(answer()))
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert ask(server.url) == [OK]


@pytest.mark.parametrize(
    "url",
    ["ftp://a", "ki.local:8625", "http://", "http://a:0", "http://a:70000", "http://a b", "http://a/x", ""],
)
def test_what_is_no_address_is_refused_at_once(url: str) -> None:
    """The configuration checks it; a mistake of ours is no link."""
    with pytest.raises(ValueError, match="is not like http://"):
        HttpLink(url)
