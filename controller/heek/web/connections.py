"""One connection of a browser: uvicorn's, with bounds on what it may cost.

A head that does not come to its end in time or in size is cut off. Only little is kept for a browser that
does not read, by us and by the kernel, so that it never reads its way through old states. A peer that is
gone without a word (a phone whose battery died) is noticed. And what runs a stream can cut it off at once,
which closing a connection that still has something to send cannot.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

ABORT: Final = "heek.abort"
"""An extension in the scope: `call` cuts the connection off."""

HEAD_S: Final = 10.0
MOST_BYTES: Final = 64 * 1024
"""Of one head, or of what follows one; bodies have a far smaller bound of their own in the application."""

BUFFER_BYTES: Final = 16 * 1024
KERNEL_BUFFER_BYTES: Final = 32 * 1024
GONE_MS: Final = 30_000
"""How long what was sent may stay unacknowledged before the peer counts as gone (where the system can)."""


class Connection(HttpToolsProtocol):
    """See the module."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._bytes = 0
        """Received since the last head was complete: a body, and the next head."""
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=BUFFER_BYTES)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BUFFER_BYTES)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE_MS)
        self._head_begins()

    def data_received(self, data: bytes) -> None:
        if self._head_timer is None and (self.cycle is None or self.cycle.response_complete):
            self._head_begins()
        if self._bytes > MOST_BYTES:
            self._cut_off()
            return
        self._bytes += len(data)
        super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: {"call": self._cut_off}}

    def on_headers_complete(self) -> None:
        self._head_ends()
        self._bytes = 0
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_ends()
        super().connection_lost(exc)

    def _head_begins(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_S, self._cut_off)

    def _head_ends(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _cut_off(self) -> None:
        self._head_ends()
        if self.transport is not None:
            self.transport.abort()
