"""One connection of a browser or a table: uvicorn's, with bounds on what it may cost.

A head that does not come to its end in time or in size is cut off. Only little is kept for a browser that
does not read, by us and by the kernel, so that it never reads its way through old states. A peer that is
gone without a word (a phone whose battery died) is noticed. And what runs a stream can cut it off at once,
which closing a connection that still has something to send cannot.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

ABORT: Final = "heek.abort"
"""An extension in the scope: `call` cuts the connection off."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a connection may cost."""

    head_s: float
    """Until a head must have come to its end."""
    buffer_bytes: int
    kernel_buffer_bytes: int
    gone_ms: int
    """How long what was sent may stay unacknowledged before the peer counts as gone (where it can be set)."""


class BoundedConnection(HttpToolsProtocol):
    """See the module; who derives from it says the bounds, and what may be received."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_timer: asyncio.TimerHandle | None = None

    def bounds(self) -> Bounds:
        """Asked when the connection is made, and when a head begins."""
        raise NotImplementedError

    def takes(self, size: int) -> bool:
        """Whether so many bytes more may be received."""
        raise NotImplementedError

    @property
    def in_head(self) -> bool:
        """A head has begun and not ended."""
        return self._head_timer is not None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        bounds = self.bounds()
        transport.set_write_buffer_limits(high=bounds.buffer_bytes)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, bounds.kernel_buffer_bytes)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, bounds.gone_ms)
        self.head_begins()

    def data_received(self, data: bytes) -> None:
        if not self.in_head and (self.cycle is None or self.cycle.response_complete):
            self.head_begins()
        if not self.takes(len(data)):
            self.cut_off()
            return
        super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: {"call": self.cut_off}}

    def on_headers_complete(self) -> None:
        self.head_ends()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def head_begins(self) -> None:
        self._head_timer = self.loop.call_later(self.bounds().head_s, self.cut_off)

    def head_ends(self) -> None:
        self._stop_timer()

    def cut_off(self) -> None:
        """End the connection now, whatever waits to be sent."""
        self._stop_timer()
        if self.transport is not None:
            self.transport.abort()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
