"""The server's thread: it starts or says why not, takes states from anywhere, and ends in time."""

from __future__ import annotations

import contextlib
import errno
import http.client
import os
import socket
import threading
import time
from concurrent.futures import Future

import pytest

from heek.errors import PageError
from heek.web.doors import Doors, PageSettings, SignedIn
from heek.web.server import PageServer, _bind_trouble
from tests.web.serving import LAN, TOKEN, Browser, own_address, serving, state, until, view


def _server(settings: PageSettings) -> PageServer:
    return PageServer(settings, Doors(now=lambda: 0))


def test_a_port_that_is_taken() -> None:
    """The start fails in the caller's thread, naming both keys and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(
            PageError, match=f"web.host 127.0.0.1, web.port {port}: another program"
        ) as caught:
            _server(PageSettings(port=port)).start()
        assert "another web.port" in str(caught.value)


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("198.51.100.7", "no such address; use 127.0.0.1"),
        ("nowhere.invalid", "no such name"),
        ("a" * 300, "name"),
    ],
)
def test_a_host_that_is_not_ours(host: str, words: str) -> None:
    """An address of another machine, or a name that nobody knows, is told apart from a taken port."""
    with pytest.raises(PageError, match=words) as caught:
        _server(PageSettings(host=host, port=0)).start()
    assert "web.host" in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may listen anywhere")
def test_a_port_that_is_not_allowed() -> None:
    """Below 1024 the remedy is another port, not root."""
    with pytest.raises(PageError, match="1024 or more"):
        _server(PageSettings(port=80)).start()


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.EACCES, "web.port of 1024 or more"), (errno.ENOBUFS, "cannot be listened at")],
)
def test_what_else_can_be_in_the_way(number: int, words: str) -> None:
    """Each error of the system becomes one line with both keys."""
    text = _bind_trouble("127.0.0.1", 80, OSError(number, os.strerror(number)))
    assert text.startswith("web.host 127.0.0.1, web.port 80: ")
    assert words in text


def test_nothing_listens_beyond_loopback() -> None:
    """Without LAN mode the page stands at one loopback address alone."""
    with serving() as table:
        for address in ("127.0.0.2", *filter(None, [own_address()])):
            with pytest.raises(OSError, match="refused"):
                socket.create_connection((address, table.port), 2)


def test_the_phones_address_is_listened_at_besides() -> None:
    """In LAN mode there are two doors, and the QR code's address leads to the second one."""
    settings = PageSettings(port=0, lan_host="127.0.0.2", lan_token=TOKEN)
    with serving(settings) as table:
        assert table.server.url == f"http://127.0.0.1:{table.port}/"
        assert table.server.join_url == f"http://127.0.0.2:{table.port}/join/{TOKEN}"
        with socket.create_connection(("127.0.0.2", table.port), 5) as raw:
            raw.sendall(f"GET /state HTTP/1.1\r\nHost: 127.0.0.2:{table.port}\r\n\r\n".encode())
            assert raw.recv(100).startswith(b"HTTP/1.1 403")


def test_a_failed_start_leaves_nothing_open() -> None:
    """When the phones' address cannot be had, the first one is given back."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with pytest.raises(PageError, match=r"198\.51\.100\.7"):
        _server(PageSettings(port=port, lan_host="198.51.100.7", lan_token=TOKEN)).start()
    socket.create_server(("127.0.0.1", port)).close()


def test_the_port_is_free_again_at_once() -> None:
    """A table that is started anew finds its own port, connections of the last one or not."""
    with serving() as table:
        live = table.browser().live()
        live.next("state")
        port = table.port
    with serving(PageSettings(port=port)) as table:
        assert table.browser().get("/state").status == 200
    live.until_end()


def test_it_stops_in_time_with_streams_open(caplog: pytest.LogCaptureFixture) -> None:
    """Twenty open streams, half of which nobody reads, and a request that never ends: two seconds at most."""
    with serving() as table:
        readers = [table.browser().live(buffer=2048) for _ in range(20)]
        for number in range(2, 500):
            table.server.publish(state(view(round_number=number)))
        half = socket.create_connection(("127.0.0.1", table.port), 5)
        half.sendall(b"POST /contacts HTTP/1.1\r\nHost: 127.0.0.1")
        began = time.monotonic()
        table.server.stop()
        assert time.monotonic() - began < 2.0
        assert not [each for each in threading.enumerate() if each.name == "heek-page"]
        for reader in readers:
            reader.until_end()
        half.close()
        assert caplog.text == "", "an end that goes as it should is no news"
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", table.port), 2)


def test_it_stops_in_time_while_somebody_signs_in() -> None:
    """A KI that never answers holds up no end: two seconds at most."""
    asked = threading.Event()

    def sign_in(_seat: int, _player: str | None) -> Future[SignedIn]:
        asked.set()
        return Future()

    with serving(sign_in=sign_in) as table:
        browser = table.browser()

        def ask() -> None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                browser.post("/seats/1/sign-in", {"player": None})

        waiting = threading.Thread(target=ask)
        waiting.start()
        assert asked.wait(10)
        began = time.monotonic()
        table.server.stop()
        assert time.monotonic() - began < 2.0
        waiting.join(10)
        assert not waiting.is_alive()


def test_a_head_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who connects and says nothing, or half a request, is cut off; a stream that is open is not."""
    monkeypatch.setattr("heek.web.connections.HEAD_S", 0.2)
    with serving() as table:
        live = table.browser().live()
        idle = [socket.create_connection(("127.0.0.1", table.port), 5) for _ in range(3)]
        idle[1].sendall(b"GET / HTTP/1.1\r\nHost: ")
        idle[2].sendall(f"GET /state HTTP/1.1\r\nHost: 127.0.0.1:{table.port}\r\n\r\n".encode())
        assert idle[2].recv(15) == b"HTTP/1.1 200 OK"
        idle[2].sendall(b"GET / HTTP/1.1\r\n")
        for each in idle:
            with contextlib.suppress(ConnectionError):
                while each.recv(65536):
                    pass
            each.close()
        table.server.publish(state(view(round_number=2)))
        while live.next("state")["round"] != 2:
            pass


def test_it_opens_every_contact_at_its_end() -> None:
    """A server that stops under a finger leaves no contact closed behind it."""
    with serving() as table:
        table.browser().press(1, "pen", hand="a")
        table.browser().press(2, "page", hand="b")
        table.server.stop()
        assert sorted(table.presses[2:]) == [(1, "pen", False), (2, "page", False)]


def test_states_come_from_any_thread() -> None:
    """Before the start, from many threads at once or after the end: the newest is shown, nobody waits."""
    server = _server(PageSettings(port=0))
    server.publish(state(view(round_number=41)))
    server.start()
    browser = Browser(server.port, "127.0.0.1")
    until(lambda: browser.get("/state").json["round"] == 41)

    def hand_over(base: int) -> None:
        for number in range(base, base + 200):
            server.publish(state(view(round_number=number)))

    threads = [threading.Thread(target=hand_over, args=(base,)) for base in (1000, 2000, 3000)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(10)
    server.publish(state(view(round_number=42)))
    until(lambda: browser.get("/state").json["round"] == 42)
    server.stop()
    server.stop()
    server.publish(state(view(round_number=43)))


def test_a_server_that_was_never_started_stops() -> None:
    """Stopping what never ran is no error."""
    _server(PageSettings(port=0)).stop()


def test_the_token_is_not_told() -> None:
    """Nothing that the server answers to anybody holds the secret that lets a phone in."""
    with serving(LAN) as table:
        pages = [table.browser().get(path) for path in ("/", "/about", "/state", "/nothing", "/join/wrong")]
        pages += [table.browser("table.lan").get(path) for path in ("/", "/about", "/join/wrong")]
        phone = table.phone(1)
        pages += [phone.get(path) for path in ("/", "/about", "/state")]
        assert not [page for page in pages if TOKEN.encode() in page.body or TOKEN in str(page.headers)]
