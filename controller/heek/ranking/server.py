"""The KI's service: its address, its ledger and its loop, from the first line to the last.

It listens before it says that it is ready. Whatever its address is, it listens on loopback besides, because
what an operator asks is done for this machine alone. It ends within two seconds of being told to, whoever is
still connected.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import uvicorn
from starlette.responses import Response

from heek.clock import Clock
from heek.errors import RankingError
from heek.ranking.claims import Claims
from heek.ranking.connections import Connection
from heek.ranking.desk import Desk
from heek.ranking.enrol_page import EnrolPage
from heek.ranking.gate import ENROL_PATH, Gate
from heek.ranking.ledger import Ledger
from heek.ranking.live import Live
from heek.ranking.operating import Operating
from heek.ranking.reading import Reading
from heek.ranking.reports import Reports
from heek.ranking.service_keys import ServiceKey, operator_key, service_key
from heek.ranking.settings import ServiceSettings
from heek.ranking.store import Store, open_store
from heek.serving.addresses import BACKLOG, bracketed, is_loopback, is_wildcard, listen, trouble

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

log: Final = logging.getLogger("heek")

MOST_CONNECTIONS: Final = 256
HANDSHAKE_S: Final = 10.0
"""For TLS, until a connection counts as one."""
IDLE_S: Final = 15
"""How long a connection without a request stays open."""

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Service:
    """A KI that listens; `serve` it once. `stop` may come from any thread, at any time."""

    def __init__(self, settings: ServiceSettings, clock: Clock) -> None:
        """Listen, open the ledger and read the keys beside it, made if there are none yet.

        A ledger that is damaged is only read.

        Raises RankingError or KeyFileError, naming what cannot be had and what to do.
        """
        self._settings = settings
        self._sockets = _listen(settings.host, settings.port)
        self._tls_sockets: list[socket.socket] = []
        self.port: int = self._sockets[0].getsockname()[1]
        """Where it listens, also if it could choose."""
        try:
            self._sockets += _listen_on_loopback(settings.host, self._sockets)
        except BaseException:
            self._let_go()
            raise
        self.tls_port: int | None = None
        """The same with TLS; None: it does not."""
        try:
            if settings.tls_port is not None:
                self._tls_sockets = _listen(settings.host, settings.tls_port, "tls_port")
                self.tls_port = self._tls_sockets[0].getsockname()[1]
        except BaseException:
            self._let_go()
            raise
        try:
            self._store: Store = open_store(settings.database)
        except BaseException:
            self._let_go()
            raise
        try:
            self._ledger = Ledger(self._store, clock.wall_s)
            if self._store.damage is None:
                self._ledger.mend()
            else:
                log.error(
                    "%s; until the KI is started on a sound ledger it only reads: every write is refused",
                    self._store.damage,
                )
            self.key: ServiceKey = service_key(
                settings.database.parent, must_be_there=self._store.had_tables and not settings.new_key
            )
            """What it signs by."""
            self._operator_key = operator_key(settings.database.parent)
        except BaseException:
            self._store.close()
            self._let_go()
            raise
        self._clock = clock
        self.streams = Live(secrets.token_hex(4))
        """The pages that follow live."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: _Server | None = None
        self._stopped = threading.Event()

    @property
    def url(self) -> str:
        """Where a person on this machine finds the board."""
        host = self._settings.host
        return f"http://{bracketed('127.0.0.1' if is_wildcard(host) else host)}:{self.port}/"

    def serve(self, ready: Callable[[], None] = lambda: None) -> None:
        """Answer until `stop`; `ready` is called once it does."""
        try:
            asyncio.run(self._serve(ready))
        finally:
            self._store.close()
            self._let_go()

    def stop(self) -> None:
        """End all streams, let what is being judged come to its end, and stop listening."""
        self._stopped.set()
        if self._loop is not None:
            # It may have ended by itself just now.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._end)

    async def _serve(self, ready: Callable[[], None]) -> None:
        desk = Desk(self._store, self._ledger, self.streams)
        now, name = self._clock.now, self._settings.name
        operating = Operating(desk, now, Claims(self.key.public, name), self._operator_key)
        self._reports = Reports(desk, operating, now, self.key, name, demo=self._settings.demo)
        self._enrolling = EnrolPage(operating, name, now)
        reading = Reading(self._settings, desk, self.streams, self._enrolling, now)
        app = _App(self._reports, self._enrolling, reading)
        self._server = _Server(
            uvicorn.Config(
                Gate(app, self._settings, self.port, self.tls_port),
                http=Connection,
                ws="none",
                lifespan="off",
                loop="asyncio",
                log_config=None,
                log_level="error",
                access_log=False,
                # It would let anybody say that they are on this machine.
                proxy_headers=False,
                server_header=False,
                # By it a table can say how wrong its clock is, or ours.
                date_header=True,
                limit_concurrency=MOST_CONNECTIONS,
                backlog=BACKLOG,
                timeout_keep_alive=IDLE_S,
                timeout_graceful_shutdown=1,
            ),
            ready,
            self._tls_listening() if self._tls_sockets else None,
        )
        self._loop = asyncio.get_running_loop()
        if self._stopped.is_set():
            self._end()
        announcing = self._announcing()
        try:
            await self._server.serve(self._sockets)
        finally:
            self.streams.end()
            operating.close()
            if announcing is not None:
                announcing.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await announcing
            desk.close()

    def _tls_listening(self) -> _TlsListening:
        from heek.ranking.certificate import tls

        return _TlsListening(self._tls_sockets, tls(self.key.seed))

    def _announcing(self) -> asyncio.Task[None] | None:
        if not self._settings.announce:
            return None
        from heek.ki.announcement import Announcement
        from heek.ranking.announcing import Announcing

        announced = Announcement(self.key.id, self._settings.name, self.tls_port)
        announcing = Announcing(self._settings.host, self.port, announced)
        return asyncio.get_running_loop().create_task(announcing.run(), name="announcing")

    def _end(self) -> None:
        assert self._server is not None
        self.streams.end()
        self._reports.end()
        self._enrolling.end()
        self._server.should_exit = True

    def _let_go(self) -> None:
        for each in (*self._sockets, *self._tls_sockets):
            each.close()


class _App:
    """The ASGI application behind the gate."""

    def __init__(self, reports: Reports, enrolling: EnrolPage, reading: Reading) -> None:
        self._reports = reports
        self._enrolling = enrolling
        self._reading = reading

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp
        match scope["method"]:
            case "POST" if scope["path"] == ENROL_PATH:
                answer = await self._enrolling.answer(scope, receive)
            case "POST":
                answer = await self._reports.answer(scope, receive)
            case "GET" | "HEAD":
                answer = await self._reading.answer(scope)
            case _:
                allow = {"Allow": "GET, HEAD, POST", "Connection": "close"}
                answer = Response("the KI knows GET and POST\n", 405, allow, "text/plain")
        await answer(scope, receive, send)


@dataclass(frozen=True, slots=True)
class _TlsListening:
    sockets: list[socket.socket]
    context: ssl.SSLContext


class _Server(uvicorn.Server):
    """Uvicorn's server, but signals are the caller's, it says when it answers, and listens twice if told to.

    With and without TLS it is one server: one bound for all connections, one end for all.
    """

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], over_tls: _TlsListening | None
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._over_tls = over_tls

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._over_tls is not None:
            for each in self._over_tls.sockets:
                self.servers.append(await self._listen_over_tls(each, self._over_tls.context))
        self._ready()

    async def _listen_over_tls(self, sock: socket.socket, context: ssl.SSLContext) -> asyncio.Server:
        return await asyncio.get_running_loop().create_server(
            lambda: Connection(
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            ),
            sock=sock,
            ssl=context,
            backlog=BACKLOG,
            ssl_handshake_timeout=HANDSHAKE_S,
            ssl_shutdown_timeout=1.0,
        )


def run(settings: ServiceSettings, clock: Clock, *, until_stdin_closes: bool = False) -> None:
    """Serve on the main thread until SIGTERM or Ctrl-C; raises RankingError if it cannot start.

    With `until_stdin_closes` also until standard input ends: whoever started this process and held the
    other end is gone then, and nothing is left behind.
    """
    service: Service | None = None
    told = threading.Event()

    def stop(*_: object) -> None:
        told.set()
        if service is not None:
            service.stop()

    before = {each: signal.signal(each, stop) for each in STOP_SIGNALS}
    try:
        service = Service(settings, clock)
        if told.is_set():
            service.stop()
        if until_stdin_closes:
            threading.Thread(target=_wait_for_end_of_input, args=(stop,), daemon=True).start()
        over_tls = f", with TLS at port {service.tls_port}" if service.tls_port is not None else ""
        service.serve(
            lambda: log.info(
                "%s is ready: %s%s, ledger in %s", settings.name, service.url, over_tls, settings.database
            )
        )
        log.info("%s has stopped", settings.name)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _wait_for_end_of_input(stop: Callable[[], None]) -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    stop()


def _listen(host: str, port: int, key: str = "port") -> list[socket.socket]:
    """Listen at every address of `host`; raises RankingError. `key` is the port's in the configuration."""
    try:
        return listen(host, port)
    except (OSError, UnicodeError) as error:
        words = trouble("service", host, port, error, " (another KI?)")
        raise RankingError(words.replace("service.port", f"service.{key}")) from None


def _listen_on_loopback(host: str, sockets: list[socket.socket]) -> list[socket.socket]:
    """Sockets at 127.0.0.1, where operators ask, unless those of `host` hear them; raises RankingError."""
    if is_loopback(host) or any(each.getsockname()[0] in ("127.0.0.1", "0.0.0.0") for each in sockets):
        return []
    return _listen("127.0.0.1", sockets[0].getsockname()[1])
