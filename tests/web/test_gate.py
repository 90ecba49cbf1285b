"""The gate: nobody presses, or reads, who has no business here."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from heek.clock import SECOND
from heek.serving.addresses import is_loopback
from heek.web.doors import PageSettings
from heek.web.gate import ASKS_AT_ONCE, Gate, Role, Visitor
from heek.web.phones import Phones
from tests.web.serving import LAN, TOKEN, Served, serving

PRESS = {"seat": 1, "button": "pen", "closed": True, "hand": "h", "n": 1}
FOREIGN = ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}"]
READABLE = ["/", "/about", "/state", "/live", "/kinds.svg", "/static/x.js", "/healthz", "/nothing"]


@pytest.fixture(scope="module")
def table() -> Any:
    with serving(fill_seats=lambda: None, switch_ki=print) as served:
        yield served


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("path", READABLE)
def test_a_foreign_host_reads_nothing(table: Served, name: str, path: str) -> None:
    """A page whose name was bound anew to this machine (DNS rebinding) gets nothing, reading included."""
    answer = table.browser().get(path, Host=name.format(port=table.port))
    assert answer.status == 421
    assert f"http://127.0.0.1:{table.port}/" in answer.words


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_host_presses_nothing(table: Served, name: str) -> None:
    """Nor can it press, though its Origin agrees with its Host."""
    foreign = name.format(port=table.port)
    before = len(table.presses)
    answer = table.browser().post("/contacts", PRESS, Host=foreign, Origin=f"http://{foreign}")
    assert answer.status == 421
    assert len(table.presses) == before


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]", "LOCALHOST"])
def test_every_name_of_this_machine_opens_the_page(table: Served, name: str) -> None:
    """The names by which a browser on this machine can know the table all work, in any case."""
    assert table.browser(name).get("/state").status == 200


def test_two_hosts_are_none(table: Served) -> None:
    """A request that names two hosts is refused rather than guessed about, and so is one without any."""
    for hosts in (f"Host: 127.0.0.1:{table.port}\r\nHost: evil.example\r\n", ""):
        with socket.create_connection(("127.0.0.1", table.port), 5) as raw:
            raw.sendall(f"GET /state HTTP/1.1\r\n{hosts}\r\n".encode())
            assert raw.recv(4096).startswith((b"HTTP/1.1 421", b"HTTP/1.1 400"))


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": None},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://localhost:{port}"},
        {"Origin": "http://127.0.0.1:8625"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "none"},
        {"Content_Type": None},
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/x-www-form-urlencoded"},
    ],
)
@pytest.mark.parametrize("path", ["/contacts", "/bots", "/ki"])
def test_no_other_site_presses(table: Served, path: str, headers: dict[str, str | None]) -> None:
    """What a form, a script or a sandboxed frame of another site can send is refused with words."""
    given = {name: value and value.format(port=table.port) for name, value in headers.items()}
    before = len(table.presses)
    answer = table.browser().post(path, PRESS, **given)
    assert answer.status in (403, 415)
    assert answer.words
    assert len(table.presses) == before


def test_our_own_page_presses(table: Served) -> None:
    """The counterpart: what our page sends, with all that a browser adds, closes the contact."""
    answer = table.browser().post(
        "/contacts",
        PRESS | {"n": 99},
        Sec_Fetch_Site="same-origin",
        Content_Type="application/json; charset=utf-8",
    )
    assert (answer.status, answer.json) == (200, {"held": True})
    assert table.presses[-1] == (1, "pen", True)


def test_another_site_cannot_even_look(table: Served) -> None:
    """A stranger's page cannot hold our streams open; a person who follows its link gets the page."""
    browser = table.browser()
    assert browser.get("/live", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="cors").status == 403
    link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert browser.get("/state", **link, Sec_Fetch_Dest="iframe").status == 403
    assert browser.get("/healthz", **link, Sec_Fetch_Dest="document").status == 200


@pytest.mark.parametrize("path", ["/state", "/nothing", "/kinds.svg", "/contacts"])
def test_every_answer_is_armoured(table: Served, path: str) -> None:
    """Every answer, refusals too, carries the policy, and none says a word of CORS or of what serves it."""
    headers = table.browser().get(path).headers
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; ")
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] in ("no-store", "no-cache")
    assert not [name for name in headers if name.startswith("access-control") or name in ("server", "date")]


def test_a_preflight_gets_nothing(table: Served) -> None:
    """A browser that asks whether another site may press is told nothing that it could take for a yes."""
    answer = table.browser().ask(
        "OPTIONS", "/contacts", Origin="http://evil.example", Access_Control_Request_Method="POST"
    )
    assert answer.status == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


class Entrance:
    """A gate with nothing behind it, for requests from addresses that this machine has not got."""

    def __init__(self, settings: PageSettings) -> None:
        self.now = 0
        phones = None if settings.lan_token is None else Phones(TOKEN, (1, 2), lambda count: bytes(count))
        self._gate = Gate(self._app, settings, [8125], phones, lambda: self.now)
        self._seen: list[Any] = []

    async def _app(self, scope: Any, _receive: Any, _send: Any) -> None:
        self._seen.append(scope["heek.visitor"])

    async def _send(self, message: Any) -> None:
        self._seen.append(message.get("status"))

    def ask(self, peer: str, host: str) -> Role | int:
        """What comes of a request: who it is from, or the status of the refusal."""
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/state",
            "client": (peer, 50000),
            "headers": [(b"host", host.encode()), (b"x-forwarded-for", b"127.0.0.1")],
        }
        self._seen = []
        asyncio.run(self._gate(scope, None, self._send))  # type: ignore[arg-type]
        found = self._seen[0]
        return found.role if isinstance(found, Visitor) else int(found)


@pytest.mark.parametrize(
    ("settings", "peer", "host", "expected"),
    [
        (PageSettings(), "127.0.0.1", "127.0.0.1:8125", Role.OPERATOR),
        (PageSettings(), "::1", "[::1]:8125", Role.OPERATOR),
        (PageSettings(), "::ffff:127.0.0.1", "localhost:8125", Role.OPERATOR),
        (PageSettings(host="192.168.1.5"), "192.168.1.9", "192.168.1.5:8125", Role.READER),
        (PageSettings(host="192.168.1.5"), "192.168.1.9", "192.168.1.6:8125", 421),
        (PageSettings(host="0.0.0.0"), "192.168.1.9", "192.168.1.5:8125", Role.READER),
        (PageSettings(host="0.0.0.0"), "192.168.1.9", "evil.example:8125", 421),
        (PageSettings(host="0.0.0.0"), "192.168.1.9", "192.168.1.5:8126", 421),
        (PageSettings(host="0.0.0.0"), "192.168.1.9", "192.168.1.5", 421),
        (PageSettings(host="::"), "fe80::1%eth0", "[fd00::2]:8125", Role.READER),
        (PageSettings(host="0.0.0.0", names=("heek.local",)), "10.0.0.9", "heek.local:8125", Role.READER),
        (LAN, "192.168.1.9", "table.lan:8125", 403),
        (LAN, "127.0.0.1", "table.lan:8125", 403),
        (LAN, "192.168.1.9", "127.0.0.1:8125", 403),
        (LAN, "127.0.0.1", "127.0.0.1:8125", Role.OPERATOR),
    ],
)
def test_who_is_who(settings: PageSettings, peer: str, host: str, expected: Role | int) -> None:
    """The operator is who sits at the machine; no header can say so; from elsewhere one looks, or joins."""
    assert Entrance(settings).ask(peer, host) == expected


def test_a_reader_that_asks_too_often_waits() -> None:
    """From elsewhere nobody can keep the table busy: so many at once, then a hundred a second, each."""
    entrance = Entrance(PageSettings(host="0.0.0.0"))
    host = "192.168.1.5:8125"
    asked = [entrance.ask("192.168.1.9", host) for _ in range(ASKS_AT_ONCE + 1)]
    assert asked == [Role.READER] * ASKS_AT_ONCE + [429]
    assert entrance.ask("192.168.1.10", host) is Role.READER
    assert [entrance.ask("127.0.0.1", "127.0.0.1:8125") for _ in range(2 * ASKS_AT_ONCE)][-1] is Role.OPERATOR
    entrance.now = SECOND // 100
    assert [entrance.ask("192.168.1.9", host) for _ in range(2)] == [Role.READER, 429]


@pytest.mark.parametrize(
    ("address", "here"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("192.0.2.1", False),
        ("", False),
        ("unix", False),
    ],
)
def test_what_is_loopback(address: str, here: bool) -> None:
    """Only an address of the machine itself counts as one; what is none at all does not."""
    assert is_loopback(address) is here
