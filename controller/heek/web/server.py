"""The page's server: a thread and a loop of its own beside the table, so that browsers cost it nothing.

The table hands over a state whenever something changed and never waits: the newest wins. What browsers ask
comes back through the doors, on this server's thread.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Final

import uvicorn

from heek.clock import Instant, nanoseconds
from heek.errors import PageError
from heek.serving.addresses import BACKLOG, bracketed, is_wildcard, listen, trouble
from heek.web.app import PageApp
from heek.web.connections import Connection
from heek.web.doors import Doors, PageSettings
from heek.web.gate import Gate
from heek.web.live import Live, Tempo
from heek.web.phones import Phones

log: Final = logging.getLogger("heek")

MOST_CONNECTIONS: Final = 200
IDLE_S: Final = 60
"""How long a connection without a request stays open."""

STOP_S: Final = 3.0
"""After this the thread is left to die with the process."""


class PageServer:
    """The table's page at one address; `start` it once, `stop` it once."""

    def __init__(
        self,
        settings: PageSettings,
        doors: Doors,
        tempo: Tempo | None = None,
        clock: Callable[[], Instant] = time.monotonic_ns,
    ) -> None:
        """`clock` is the browsers' time: how long a phone was away, how often it asks."""
        self._settings = settings
        self._clock = clock
        tempo = tempo or Tempo()
        self._live = Live(doors.now, tempo)
        self._phones = (
            None if settings.lan_token is None else Phones(settings.lan_token, settings.seats, os.urandom)
        )
        self._app = PageApp(settings, doors, self._live, self._phones, clock, nanoseconds(tempo.lease_s))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._server: uvicorn.Server | None = None
        self._running = threading.Event()
        self._newest: bytes | None = None
        self._handed_over = False
        self.port: int = settings.port
        """Where it listens, also if it could choose."""

    @property
    def url(self) -> str:
        """Where a person on this machine finds the page."""
        host = self._settings.host
        return f"http://{bracketed('127.0.0.1' if is_wildcard(host) else host)}:{self.port}/"

    @property
    def join_url(self) -> str | None:
        """What phones scan; None without LAN mode. It is a secret: it lets whoever has it press."""
        settings = self._settings
        if settings.lan_token is None:
            return None
        return f"http://{bracketed(settings.lan_host or settings.host)}:{self.port}/join/{settings.lan_token}"

    def start(self) -> None:
        """Listen, and serve on a thread of its own; raises PageError if the address cannot be had."""
        sockets = _listen(self._settings)
        self.port = sockets[0].getsockname()[1]
        gate = Gate(self._app.asgi, self._settings, [self.port], self._phones, self._clock)
        self._server = uvicorn.Server(
            uvicorn.Config(
                gate,
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
                date_header=False,
                limit_concurrency=MOST_CONNECTIONS,
                backlog=BACKLOG,
                timeout_keep_alive=IDLE_S,
                timeout_graceful_shutdown=1,
            )
        )
        self._thread = threading.Thread(target=self._run, args=(sockets,), name="heek-page", daemon=True)
        self._thread.start()
        self._running.wait()

    def publish(self, state: bytes) -> None:
        """Show a state of `heek.web.state`; from any thread, waits for nothing, the newest wins."""
        self._newest = state
        if not self._handed_over:
            self._handed_over = True
            self._call(self._show_newest)

    def stop(self) -> None:
        """Open every contact that a browser holds, end all streams and stop listening; within 2 s."""
        if self._thread is None:
            return
        self._call(self._end)
        self._thread.join(STOP_S)
        if self._thread.is_alive():
            log.warning("the page's server does not end; it is left to itself")

    def _call(self, what: Callable[[], None]) -> None:
        loop = self._loop
        if loop is not None:
            try:
                loop.call_soon_threadsafe(what)
            except RuntimeError:
                # It has ended: nobody looks any more.
                return

    # On the page's thread

    def _run(self, sockets: list[socket.socket]) -> None:
        try:
            asyncio.run(self._serve(sockets))
        except Exception:
            log.exception("the page's server has failed; the table plays on without its page")
        finally:
            self._running.set()
            for each in sockets:
                each.close()

    async def _serve(self, sockets: list[socket.socket]) -> None:
        assert self._server is not None
        self._loop = asyncio.get_running_loop()
        self._show_newest()
        self._running.set()
        try:
            await self._server.serve(sockets)
        finally:
            self._app.close()

    def _show_newest(self) -> None:
        self._handed_over = False
        if self._newest is not None:
            self._live.show(self._newest)

    def _end(self) -> None:
        assert self._server is not None
        self._app.close()
        self._server.should_exit = True


def _listen(settings: PageSettings) -> list[socket.socket]:
    """Sockets at `web.host` and, in LAN mode, at the address for phones; raises PageError."""
    sockets = _bind(settings.host, settings.port)
    lan = settings.lan_host
    if lan is not None and lan != settings.host and not is_wildcard(settings.host):
        try:
            sockets += _bind(lan, sockets[0].getsockname()[1])
        except PageError:
            for each in sockets:
                each.close()
            raise
    return sockets


def _bind(host: str, port: int) -> list[socket.socket]:
    """Listen at every address of `host`; raises PageError."""
    try:
        return listen(host, port)
    except (OSError, UnicodeError) as error:
        raise PageError(_bind_trouble(host, port, error)) from error


def _bind_trouble(host: str, port: int, error: OSError | UnicodeError) -> str:
    return trouble("web", host, port, error)
