"""Who may ask the KI for what: every request passes here before anything else looks at it.

A table is no browser. Whatever changes something comes by POST, as CBOR, and is refused if a browser sent it,
which a browser always shows (`Origin`, `Sec-Fetch-Site`): so no page anywhere, ours included, can make
accounts or introduce tables. Reports need no more than that, since each record carries its signature. To
introduce a table, and to sign in by a click, one must besides be on the KI's own machine, not sent on by
somebody else. The same goes for what an operator does, who shows the operator's key as well; by that alone a
browser may send something, and only from our own page.

Pages are read under a name that is the KI's own, or a stranger's page could read them under its own name,
which suddenly leads here (DNS rebinding). No header lets other sites read; nothing is taken from elsewhere.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from heek.errors import RankingRefusal
from heek.ki.link import CONTENT_TYPE
from heek.ranking.settings import ServiceSettings
from heek.serving.addresses import bracketed, is_bare_address, is_loopback, is_wildcard
from heek.serving.headers import safe_headers, with_headers

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

ASKS: Final = "heek.asks"
"""Where in the scope it stands who asks."""

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS: Final = (*safe_headers(POLICY), (b"cross-origin-opener-policy", b"same-origin"))
ENROL_PATH: Final = "/enrol"
"""The one page that a browser may send something to."""
FORM_TYPE: Final = "application/x-www-form-urlencoded"
_SENT_ON: Final = ("forwarded", "via", "x-forwarded-for", "x-real-ip")


@dataclass(frozen=True, slots=True)
class Asks:
    """Who asks, as far as it matters."""

    here: bool
    """On the KI's own machine, and under a name of it; what a proxy sends on is not."""
    source: str
    """The address of whoever asks, or of the machine that sent it on: to be compared, never to be logged."""
    refused: RankingRefusal | None
    """Why nothing at all is done for whoever asks."""


class WrongName(RankingRefusal):
    """The request is for a name that is not this KI's."""


class Gate:
    """The ASGI application in front of all others; see the module."""

    def __init__(
        self, app: ASGIApp, settings: ServiceSettings, port: int, tls_port: int | None = None
    ) -> None:
        self._app = app
        self._names = Names(settings.host, port)
        self._tls_names = None if tls_port is None else Names(settings.host, tls_port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
        host = headers.get("host", [""])
        names = (self._tls_names if scope.get("scheme") == "https" else None) or self._names
        known = len(host) == 1 and host[0].lower() in names
        peer = scope["client"][0] if scope.get("client") else ""
        sent_on = any(name in headers for name in _SENT_ON)
        scope[ASKS] = Asks(
            here=known and is_loopback(peer) and not sent_on,
            source=peer,
            refused=self._refused(scope["method"], scope["path"], known, headers),
        )
        await self._app(scope, receive, with_headers(send, _HEADERS))

    def _refused(
        self, method: str, path: str, known: bool, headers: dict[str, list[str]]
    ) -> RankingRefusal | None:
        if method == "POST" and path == ENROL_PATH:
            return _form_refused(headers)
        if method == "POST":
            return _post_refused(headers)
        if not known:
            return WrongName(
                "malformed", f"this KI is not known by that name: open {self._names.address} instead"
            )
        if headers.get("sec-fetch-site") == ["cross-site"] and not _follows_link(headers):
            return RankingRefusal("not_enrolled", "another site asks for this page")
        return None


class Names:
    """The `Host` headers by which this KI is known, lower case."""

    def __init__(self, host: str, port: int) -> None:
        self._port = port
        self._any_address = is_wildcard(host)
        known = {"127.0.0.1", "localhost", "[::1]"}
        if self._any_address:
            own = socket.gethostname().lower()
            known |= {own, own.partition(".")[0], f"{own.partition('.')[0]}.local"}
        else:
            known.add(bracketed(host.lower()))
        self._known = frozenset(f"{name}:{port}" for name in known) | (known if port == 80 else frozenset())
        self.address = f"http://{bracketed('127.0.0.1' if self._any_address else host)}:{port}/"
        """Where a person finds the board."""

    def __contains__(self, host: str) -> bool:
        return host in self._known or (self._any_address and self._is_address(host))

    def _is_address(self, host: str) -> bool:
        """Where the KI listens at every address that its machine has, each of them will do."""
        name, colon, port = host.rpartition(":")
        if not colon:
            name, port = host, "80"
        return port == str(self._port) and is_bare_address(name)


def _follows_link(headers: dict[str, list[str]]) -> bool:
    """A person went from another site's page to one of ours."""
    return headers.get("sec-fetch-mode") == ["navigate"] and headers.get("sec-fetch-dest") == ["document"]


def _post_refused(headers: dict[str, list[str]]) -> RankingRefusal | None:
    if "origin" in headers or "sec-fetch-site" in headers:
        return RankingRefusal("not_enrolled", "tables report to the KI, browsers only look")
    if _content_type(headers) != CONTENT_TYPE:
        return RankingRefusal("malformed", f"the KI takes CBOR: send it as Content-Type: {CONTENT_TYPE}")
    return None


def _form_refused(headers: dict[str, list[str]]) -> RankingRefusal | None:
    """Only our own page sends the form. `Origin` says nothing: our pages tell nobody where they are."""
    if headers.get("sec-fetch-site", ["same-origin"]) != ["same-origin"]:
        return RankingRefusal("not_operator", "another site's page has sent this")
    if _content_type(headers) != FORM_TYPE:
        return RankingRefusal("malformed", "this is not what the page sends")
    return None


def _content_type(headers: dict[str, list[str]]) -> str:
    return headers.get("content-type", [""])[0].partition(";")[0].strip().lower()
