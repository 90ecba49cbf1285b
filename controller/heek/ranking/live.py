"""The live pages: server-sent events that say that something has changed, to each browser what it can take.

An event is a number that rises with every change of the ledger; the page then fetches itself again and shows
what is new, so there is one way in which a page comes to be. A stream keeps nothing but the number that its
browser has seen last: a slow one skips what came between, one that does not read is dropped after half a
minute, and neither is ever waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from heek.errors import RankingRefusal
from heek.serving.connections import ABORT

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

MOST_STREAMS: Final = 64
BEAT_S: Final = 5.0
SHORTEST_S: Final = 0.5
"""Between two events to one browser: each makes it fetch its page."""
PATIENCE_S: Final = 30.0
"""How long a browser may not read before it is dropped."""
RETRY_MS: Final = 2000
"""After how long a browser connects again by itself."""


class Live:
    """All streams; lives on one event loop."""

    def __init__(self, instance: str) -> None:
        self._instance = instance
        """Another one at each start of the service: a page that comes back then fetches itself again."""
        self._revision = 0
        self._streams: list[Stream] = []
        self._ended = False

    def __len__(self) -> int:
        return len(self._streams)

    @property
    def revision(self) -> int:
        """Rises with every change of the ledger."""
        return self._revision

    @property
    def state(self) -> str:
        """What tells one state of all pages from another, for this service and all before it."""
        return f"{self._instance}-{self._revision}"

    def changed(self) -> None:
        """The ledger has changed: wake every stream that can take it."""
        self._revision += 1
        for stream in self._streams:
            stream.woken.set()

    def end(self) -> None:
        """End all streams at once, whether their browsers read or not."""
        self._ended = True
        for stream in list(self._streams):
            stream.end()

    def open(self) -> Stream:
        """A new stream; raises RankingRefusal when there are too many."""
        if self._ended:
            raise RankingRefusal("busy", "the KI is being stopped", 2)
        if len(self._streams) >= MOST_STREAMS:
            raise RankingRefusal("busy", f"{MOST_STREAMS} pages follow this board live already", 10)
        stream = Stream(self)
        self._streams.append(stream)
        return stream

    def close(self, stream: Stream) -> None:
        """Forget one stream; may be called twice."""
        if stream in self._streams:
            self._streams.remove(stream)


class Stream:
    """One browser's stream."""

    def __init__(self, live: Live) -> None:
        self.woken = asyncio.Event()
        self._live = live
        self._ended = False
        self._abort: Callable[[], None] | None = None
        self._told: str | None = None

    def end(self) -> None:
        """End it now, also in the middle of what it says."""
        self._ended = True
        if self._abort is not None:
            self._abort()
        self.woken.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the browser goes, does not read, or the stream is ended."""
        self._abort = scope.get("extensions", {}).get(ABORT, {}).get("call")
        leaving = asyncio.create_task(self._gone(receive))
        try:
            headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
            await self._send(send, {"type": "http.response.start", "status": 200, "headers": headers})
            await self._write(send, b"retry: %d\n\n" % RETRY_MS)
            while not self._ended:
                await self._go_on(send)
        except TimeoutError:
            # It has not read for so long that not even a farewell would get through.
            self.end()
        finally:
            # The connection hears of its end first: to it a stream that just stops is a fault.
            await asyncio.sleep(0)
            leaving.cancel()
            self._live.close(self)

    async def _go_on(self, send: Send) -> None:
        """Say what is new, or after a while that all is well."""
        state = self._live.state
        if state != self._told:
            self._told = state
            self.woken.clear()
            await self._write(send, f'event: changed\ndata: "{state}"\n\n'.encode())
            await asyncio.sleep(SHORTEST_S)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BEAT_S):
                await self.woken.wait()
        if not self.woken.is_set():
            await self._write(send, b"event: beat\ndata: 1\n\n")
        self.woken.clear()

    async def _write(self, send: Send, body: bytes) -> None:
        await self._send(send, {"type": "http.response.body", "body": body, "more_body": True})

    async def _send(self, send: Send, message: dict[str, object]) -> None:
        """Hand on to the connection; raises TimeoutError if that takes nothing for too long."""
        async with asyncio.timeout(PATIENCE_S):
            await send(message)

    async def _gone(self, receive: Receive) -> None:
        """Wait until the browser has gone."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._ended = True
        self.woken.set()
