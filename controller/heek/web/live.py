"""The live page: server-sent events, to each browser no more than it can take.

A stream keeps nothing but how much of the newest state its browser has seen. A slow one skips what came
between, a stalled one costs a small buffer and is dropped after half a minute, and neither is ever waited
for. Every state is whole, so a browser that connects again is up to date with the first thing it gets.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from heek.clock import SECOND, Instant
from heek.errors import PageRefusal
from heek.serving.connections import ABORT
from heek.web.state import retimed, same_but_for_now

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

MOST_STREAMS: Final = 64
MOST_OF_PHONE: Final = 4
"""Streams of one phone: when there is one more, its oldest ends, which is a page that was left."""

RETRY_MS: Final = 2000
"""After how long a browser connects again by itself."""


@dataclass(frozen=True, slots=True)
class Tempo:
    """The times by which streams and holds run, in seconds."""

    beat_s: float = 5.0
    shortest_s: float = 0.05
    """Between two states to one browser: twenty a second."""
    patience_s: float = 30.0
    """How long a browser may not read before it is dropped."""
    lease_s: float = 3.0
    """How long a contact stays closed without a word from its hand; the page says one each second."""


class Live:
    """All streams; lives on one event loop."""

    def __init__(self, now: Callable[[], Instant], tempo: Tempo) -> None:
        self._now = now
        self._tempo = tempo
        self._state: bytes | None = None
        self._revision = 0
        self._about_revision = 0
        self._streams: list[Stream] = []
        self._ended = False

    def __len__(self) -> int:
        return len(self._streams)

    @property
    def state(self) -> bytes | None:
        """The newest state with the time of now; None before the first."""
        return None if self._state is None else retimed(self._state, self._now())

    @property
    def revision(self) -> int:
        """Rises with every state that looks different."""
        return self._revision

    def show(self, state: bytes) -> None:
        """A new state: wake every stream that can take it."""
        if self._state is not None and same_but_for_now(state, self._state):
            return
        self._state = state
        self._revision += 1
        self._wake()

    def renew_about(self) -> None:
        """What browsers may do here has changed: let every stream look at its own."""
        self._about_revision += 1
        self._wake()

    @property
    def about_revision(self) -> int:
        """Rises whenever what browsers may do here may have changed."""
        return self._about_revision

    def end(self) -> None:
        """End all streams at once, whether their browsers read or not."""
        self._ended = True
        for stream in list(self._streams):
            stream.end(cut=True)

    def _wake(self) -> None:
        for stream in self._streams:
            stream.woken.set()

    def beat(self) -> bytes:
        """The event that proves that the table lives, and what time it is there."""
        return b'event: beat\ndata: {"now":%.6f}\n\n' % (self._now() / SECOND)

    def open(self, owner: str | None, about: Callable[[], bytes]) -> Stream:
        """A new stream; `owner` is the phone that it belongs to, `about` what `GET /about` would say.

        Raises PageRefusal when there are too many.
        """
        if self._ended:
            raise PageRefusal(503, "the table is being stopped", RETRY_MS // 1000)
        own = [stream for stream in self._streams if owner is not None and stream.owner == owner]
        if len(own) >= MOST_OF_PHONE:
            self.close(own[0])
        elif len(self._streams) >= MOST_STREAMS:
            raise PageRefusal(503, f"{MOST_STREAMS} pages look at this table already: close one of them", 10)
        stream = Stream(self, owner, about, self._tempo)
        self._streams.append(stream)
        return stream

    def close(self, stream: Stream) -> None:
        """End one stream; may be called twice."""
        if stream in self._streams:
            self._streams.remove(stream)
        stream.end()


class Stream:
    """One browser's stream."""

    def __init__(self, live: Live, owner: str | None, about: Callable[[], bytes], tempo: Tempo) -> None:
        self.owner = owner
        self.woken = asyncio.Event()
        self._live = live
        self._about = about
        self._tempo = tempo
        self._ended = False
        self._writing = False
        self._abort: Callable[[], None] | None = None
        self._seen = 0
        self._about_seen = -1
        self._told: bytes | None = None
        self._state_from = 0.0
        """When the next state may go, on the loop's clock."""

    def end(self, *, cut: bool = False) -> None:
        """Let it end; with `cut`, or if its browser does not read, in the middle of what it says."""
        self._ended = True
        self.woken.set()
        if (cut or self._writing) and self._abort is not None:
            self._abort()

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the browser goes, does not read, or the stream is ended."""
        self._abort = scope.get("extensions", {}).get(ABORT, {}).get("call")
        leaving = asyncio.create_task(self._gone(receive))
        try:
            with contextlib.suppress(TimeoutError):
                await self._write(send, b"retry: %d\n\n" % RETRY_MS, start=True)
                await self._go_on(send)
                await self._write(send, b"", more=False)
                return
            # It has not read for so long that not even a farewell would get through.
            if self._abort is not None:
                self._abort()
                await asyncio.wait({leaving}, timeout=self._tempo.patience_s)
        finally:
            leaving.cancel()
            self._live.close(self)

    async def _go_on(self, send: Send) -> None:
        loop = asyncio.get_running_loop()
        beat_at = loop.time() + self._tempo.beat_s
        while not self._ended:
            # Until the connection takes more nothing is chosen: what waits would be old when it goes.
            await self._write(send, b"")
            self.woken.clear()
            now = loop.time()
            beat = now >= beat_at
            events = self._news(now, look_at_about=beat)
            if beat:
                events += self._live.beat()
                beat_at = now + self._tempo.beat_s
            if events:
                await self._write(send, events)
            elif self._seen != self._live.revision:
                # There is a newer state, but this browser has only just had one.
                await asyncio.sleep(min(self._state_from, beat_at) - now)
            else:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(beat_at):
                        await self.woken.wait()

    def _news(self, now: float, *, look_at_about: bool) -> bytes:
        """What has changed for this browser since it was last written to."""
        events = b""
        if look_at_about or self._about_seen != self._live.about_revision:
            self._about_seen = self._live.about_revision
            told = self._about()
            if told != self._told:
                self._told = told
                events += b"event: about\ndata: " + told + b"\n\n"
        if self._seen != self._live.revision and now >= self._state_from:
            self._seen = self._live.revision
            self._state_from = now + self._tempo.shortest_s
            events += b"event: state\ndata: " + (self._live.state or b"{}") + b"\n\n"
        return events

    async def _write(self, send: Send, body: bytes, *, start: bool = False, more: bool = True) -> None:
        """Hand on to the connection; raises TimeoutError if that takes nothing for too long."""
        self._writing = True
        try:
            async with asyncio.timeout(self._tempo.patience_s):
                if start:
                    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
                    await send({"type": "http.response.start", "status": 200, "headers": headers})
                await send({"type": "http.response.body", "body": body, "more_body": more})
        finally:
            self._writing = False

    async def _gone(self, receive: Receive) -> None:
        """Wait until the browser has gone."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self.end()
