"""Who is let in: every request passes here before anything else looks at it.

What it guards against. *DNS rebinding*: a page of a stranger whose name suddenly leads to this machine; its
requests carry that name as `Host`, so only names by which this server is known pass, reading included.
*Cross-site requests*: another page in the same browser; whatever changes something needs an `Origin` that
is ours, byte for byte, and a content type that a form cannot send, and what the browser itself marks as
cross-site is refused. There are no CORS headers at all. *Framing and injection*: a content security policy
that takes nothing from elsewhere.

Who is who. On the table's own machine (a loopback peer, and in LAN mode a loopback `Host` besides) a browser
is the operator. In LAN mode anybody else is a phone that has joined, or is told to scan the QR code. Without
LAN mode anybody else only looks.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from heek.clock import SECOND, Duration, Instant
from heek.errors import PageRefusal
from heek.serving.addresses import bracketed, is_bare_address, is_loopback, is_wildcard
from heek.serving.headers import safe_headers, with_headers
from heek.web.doors import PageSettings
from heek.web.pace import Pace
from heek.web.phones import Phone, Phones

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

VISITOR: Final = "heek.visitor"
"""Where in the scope the visitor stands."""

COOKIE: Final = "heek-phone"

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = safe_headers(POLICY)

ASKS_AT_ONCE: Final = 150
ASK_EVERY: Final[Duration] = SECOND // 100
"""Of one phone: far more than three fingers can do, far less than what would be felt at the table."""

_OPEN_TO_ALL: Final = ("/join/", "/static/")
"""What a phone may have before it has joined: the way in, and what the page that shows it looks like."""

_OUTSIDE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><link rel="stylesheet" href="/static/page.css"></head>
<body class="outside"><main><h1>{title}</h1><p>{words}</p></main></body></html>
"""


class Role(Enum):
    """What a visitor is here."""

    OPERATOR = "operator"
    """At the table's own machine: may press all."""
    PHONE = "phone"
    """Has joined by the QR code: may press its own seat."""
    READER = "reader"
    """Looks from elsewhere; there is no LAN mode."""
    OUTSIDER = "outsider"
    """LAN mode, and has not joined."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks."""

    role: Role
    peer: str
    """The address that asks; never logged."""
    phone: Phone | None = None

    @property
    def owner(self) -> str:
        """Under which name this one's hands are kept."""
        return self.phone.cookie if self.phone is not None else self.peer


class Gate:
    """The ASGI application in front of all others; see the module."""

    def __init__(
        self,
        app: ASGIApp,
        settings: PageSettings,
        ports: Iterable[int],
        phones: Phones | None,
        clock: Callable[[], Instant],
    ) -> None:
        self._app = app
        self._names = Names(settings, ports)
        self._phones = phones
        self._clock = clock
        self._pace = Pace(ASKS_AT_ONCE, ASK_EVERY)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        send = with_headers(send, _HEADERS)
        visitor: Visitor | None = None
        try:
            headers = _Headers(scope["headers"])
            peer = scope["client"][0] if scope.get("client") else ""
            host = self._host(headers, peer)
            _refuse_cross_site(scope, headers)
            visitor = self._visitor(headers, host, peer)
            self._see_to_pace(visitor)
            if visitor.role is Role.OUTSIDER and not scope["path"].startswith(_OPEN_TO_ALL):
                raise PageRefusal(403, "scan the QR code of this table to play here")
            if scope["method"] not in ("GET", "HEAD"):
                _refuse_foreign(headers, host)
        except PageRefusal as refusal:
            outside = visitor is not None and visitor.role is Role.OUTSIDER
            page = outside and scope["method"] == "GET" and scope["path"] == "/"
            await (send_page if page else send_refusal)(send, refusal)
            return
        scope[VISITOR] = visitor
        await self._app(scope, receive, send)

    def _host(self, headers: _Headers, peer: str) -> str:
        host = headers.only("host", 421).lower()
        if host not in self._names:
            place = self._names.address(here=is_loopback(peer))
            raise PageRefusal(421, f"this table is not known by that name: open {place} instead")
        return host

    def _visitor(self, headers: _Headers, host: str, peer: str) -> Visitor:
        here = is_loopback(peer)
        if self._phones is None:
            return Visitor(Role.OPERATOR if here else Role.READER, peer)
        if here and self._names.is_loopback(host):
            return Visitor(Role.OPERATOR, peer)
        now = self._clock()
        for cookie in headers.cookies(COOKIE):
            phone = self._phones.known(cookie, now)
            if phone is not None:
                return Visitor(Role.PHONE, peer, phone)
        return Visitor(Role.OUTSIDER, peer)

    def _see_to_pace(self, visitor: Visitor) -> None:
        """Whoever is not the operator may not keep the table busy with answering."""
        if visitor.role is not Role.OPERATOR:
            wait = self._pace.take(visitor.owner, self._clock())
            if wait:
                raise PageRefusal(429, "this browser asks too often: wait a moment", wait)


class Names:
    """The `Host` headers by which this server is known, lower case."""

    def __init__(self, settings: PageSettings, ports: Iterable[int]) -> None:
        loopback = ("127.0.0.1", "localhost", "[::1]")
        given = [settings.host, *([settings.lan_host] if settings.lan_host else []), *settings.names]
        self._any_address = any(is_wildcard(name) for name in given)
        self._ports = tuple(ports)
        self._loopback = frozenset(self._with_ports(loopback))
        self._known = self._loopback | frozenset(
            self._with_ports(bracketed(name.lower()) for name in given if not is_wildcard(name))
        )
        self._here = settings.host if not is_wildcard(settings.host) else "127.0.0.1"
        self._elsewhere = settings.lan_host or self._here

    def address(self, *, here: bool) -> str:
        """Where to send a person whose browser is, or is not, on this machine."""
        return f"http://{bracketed(self._here if here else self._elsewhere)}:{self._ports[0]}/"

    def __contains__(self, host: str) -> bool:
        return host in self._known or (self._any_address and self._is_address(host))

    def is_loopback(self, host: str) -> bool:
        """Does this name lead to the very machine that asks?"""
        return host in self._loopback

    def _with_ports(self, names: Iterable[str]) -> list[str]:
        listed = list(names)
        with_ports = [f"{name}:{port}" for name in listed for port in self._ports]
        return with_ports + (listed if 80 in self._ports else [])

    def _is_address(self, host: str) -> bool:
        """Where the table listens at every address that its machine has, each of them will do."""
        name, colon, port = host.rpartition(":")
        if not colon or not port.isascii() or not port.isdigit() or int(port) not in self._ports:
            return False
        return is_bare_address(name)


class _Headers:
    """A request's headers by name; a header that stands twice is not guessed about."""

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:
        self._raw = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw]

    def all(self, name: str) -> list[str]:
        return [value for each, value in self._raw if each == name]

    def get(self, name: str) -> str | None:
        values = self.all(name)
        return values[0] if values else None

    def only(self, name: str, status: int) -> str:
        values = self.all(name)
        if len(values) != 1:
            raise PageRefusal(
                status, f"a request here has one {name.title()} header; this one has {len(values)}"
            )
        return values[0]

    def cookies(self, name: str) -> list[str]:
        parts = [part.strip().partition("=") for line in self.all("cookie") for part in line.split(";")]
        return [value for each, _, value in parts if each == name]


def _refuse_cross_site(scope: Scope, headers: _Headers) -> None:
    """What the browser marks as another site's doing, unless a person follows a link to the page."""
    site = headers.get("sec-fetch-site")
    if site in (None, "same-origin", "none"):
        return
    follows_link = (
        scope["method"] == "GET"
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )
    if not follows_link:
        raise PageRefusal(403, "another site asks for this: only the table's own page may")


def _refuse_foreign(headers: _Headers, host: str) -> None:
    """What changes something comes from our own page, by a script of it."""
    if headers.only("origin", 403).lower() != f"http://{host}":
        raise PageRefusal(
            403, "this request comes from another site: only the table's own page may press here"
        )
    if headers.get("sec-fetch-site") not in (None, "same-origin"):
        raise PageRefusal(403, "another site asks for this: only the table's own page may")
    kind = (headers.get("content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise PageRefusal(415, "the table takes JSON: send it as Content-Type: application/json")


def refusal_headers(refusal: PageRefusal) -> dict[str, str]:
    """What goes with a refusal besides its words."""
    headers = {} if refusal.retry_s is None else {"Retry-After": str(refusal.retry_s)}
    # What was sent along has not been read: the connection is of no more use.
    return headers | ({"Connection": "close"} if refusal.status in (413, 415, 421, 503) else {})


def refusal_body(refusal: PageRefusal) -> bytes:
    """A refusal's words as JSON."""
    return msgspec.json.encode({"error": str(refusal)})


async def send_refusal(send: Send, refusal: PageRefusal) -> None:
    """Answer with a refusal as JSON."""
    await _send(send, refusal, b"application/json", refusal_body(refusal))


async def send_page(send: Send, refusal: PageRefusal) -> None:
    """Answer with a refusal as a page that a person reads."""
    await _send(send, refusal, b"text/html; charset=utf-8", refusal_page(refusal))


def refusal_page(refusal: PageRefusal) -> bytes:
    """A refusal's words as a page that a person reads."""
    words = html.escape(str(refusal))
    return _OUTSIDE.format(title="The heek table", words=f"{words[:1].upper()}{words[1:]}.").encode()


async def _send(send: Send, refusal: PageRefusal, kind: bytes, body: bytes) -> None:
    headers: list[tuple[bytes, bytes]] = [
        (b"content-type", kind),
        (b"content-length", str(len(body)).encode()),
        *((name.lower().encode(), value.encode()) for name, value in refusal_headers(refusal).items()),
    ]
    start: dict[str, Any] = {"type": "http.response.start", "status": refusal.status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})
