"""The body of a table's request, read piece by piece within bounds of size and time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from heek.errors import RankingRefusal

if TYPE_CHECKING:
    from starlette.types import Receive

MOST_BYTES: Final = 1 << 20
BODY_S: Final = 10.0
"""In which all of it must have come."""

_DRAINED_BYTES: Final = 4 * MOST_BYTES
"""Of a body that is too large, so much is read and thrown away, or its sender would not see the answer."""


class BodyLost(Exception):
    """Whoever asked has gone in the middle of it."""


class Bodies:
    """All bodies that are under way; lives on one event loop."""

    def __init__(self) -> None:
        self._deadlines: set[asyncio.Timeout] = set()
        self._ended = False

    def end(self) -> None:
        """Wait for none of them any longer."""
        self._ended = True
        for each in self._deadlines:
            each.reschedule(asyncio.get_running_loop().time())

    async def read(self, receive: Receive, declared: str | None) -> bytes:
        """All of a request's body; `declared` is its Content-Length.

        Raises RankingRefusal if it is too large or does not come in time, BodyLost if nobody waits any more.
        """
        body: bytes | None = None
        deadline = asyncio.timeout(0 if self._ended else BODY_S)
        try:
            async with deadline:
                self._deadlines.add(deadline)
                body = await _read(receive, declared)
        except TimeoutError:
            if self._ended:
                raise RankingRefusal("busy", "the KI is being stopped", 2) from None
            raise RankingRefusal("malformed", f"the request did not come within {BODY_S:g} s") from None
        finally:
            self._deadlines.discard(deadline)
        if body is None:
            raise RankingRefusal("too_large", f"a request has at most {MOST_BYTES} bytes")
        return body


async def _read(receive: Receive, declared: str | None) -> bytes | None:
    """All that comes; None if it is too much."""
    pieces: list[bytes] = []
    size = 0
    much = declared is not None and declared.isascii() and declared.isdigit() and int(declared) > MOST_BYTES
    more = True
    while more and size <= _DRAINED_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BodyLost
        piece = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(piece)
        much = much or size > MOST_BYTES
        if much:
            pieces.clear()
        else:
            pieces.append(piece)
    return None if much else b"".join(pieces)
