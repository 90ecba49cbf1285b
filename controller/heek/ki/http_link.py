"""The link over Wi-Fi or Ethernet: one HTTP request a question, with a deadline on the whole of it.

The standard library's client works on a thread of its own; the loop cuts its connection when the deadline
passes, because a time-out for each read does not end a server that sends a byte now and then. An answer
counts only if it says that it is the KI's: a login page that answers 200 to everything does not. No
redirect is followed, no proxy of the environment is used.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Final
from urllib.parse import urlsplit

from heek import __version__
from heek.errors import LinkError
from heek.ki.answers import is_the_kis
from heek.ki.link import CONTENT_TYPE, MOST_ANSWER_BYTES, LinkStatus, Request

DEADLINE_S: Final = 20.0
"""For a whole request: name, connection, sending, answer."""


class HttpLink:
    """A KI at `url` (`http://HOST:PORT`); raises ValueError if that is none. Belongs to one loop."""

    def __init__(self, url: str, *, deadline_s: float = DEADLINE_S) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"{url!r} is not like http://HOST:PORT")
        self._host = parts.hostname
        self._port = parts.port or 80
        self._deadline_s = deadline_s
        self._where = f"[{self._host}]:{self._port}" if ":" in self._host else f"{self._host}:{self._port}"
        self._thread = ThreadPoolExecutor(1, "heek-ki")
        self._lock = asyncio.Lock()
        self._connection: http.client.HTTPConnection | None = None
        self._busy: asyncio.Future[bytes] | None = None
        self._closed = False
        self._status = LinkStatus(False, "not asked yet")
        self.pinned: bytes | None = None
        """The public key (32 bytes) of the KI that this table is enrolled at; None: at none yet."""
        self._asked = self._failed = 0

    async def ask(self, request: Request, body: bytes) -> bytes:
        """The KI's answer to one request; raises LinkError when there is none that counts in time."""
        async with self._lock:
            self._asked += 1
            try:
                answer = await self._within_deadline(request, body)
            except LinkError as error:
                self._failed += 1
                self._report(up=False, text=str(error))
                raise
            self._report(up=True, text="up")
            return answer

    def status(self) -> LinkStatus:
        return self._status

    async def close(self) -> None:
        """End what is under way; does not wait for a name server that does not answer."""
        self._closed = True
        self._cut()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _report(self, *, up: bool, text: str) -> None:
        self._status = LinkStatus(up, text, {"asked": self._asked, "failed": self._failed})

    async def _within_deadline(self, request: Request, body: bytes) -> bytes:
        if self._closed:
            raise LinkError("the link is closed")
        if self._busy is not None and not self._busy.done():
            # Past its deadline, and still looking up the name: there is nothing to cut it by.
            raise LinkError(f"no address is found for {self._host}; is the network there?")
        loop = asyncio.get_running_loop()
        self._busy = loop.run_in_executor(self._thread, self._post, request.path, body)
        done, _ = await asyncio.wait([self._busy], timeout=self._deadline_s)
        if not done:
            if self._cut():
                await asyncio.wait([self._busy], timeout=1.0)
            self._busy.add_done_callback(_look_at)
            raise LinkError(f"{self._where} did not answer within {self._deadline_s:g} s")
        return self._busy.result()

    def _cut(self) -> bool:
        """Break off what is under way; False if there is nothing yet to break off."""
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
            return True
        return False

    # On the thread

    def _post(self, path: str, body: bytes) -> bytes:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=self._deadline_s)
        self._connection = connection
        try:
            connection.request(
                "POST",
                path,
                body,
                {"Content-Type": CONTENT_TYPE, "Accept": CONTENT_TYPE, "User-Agent": f"heek/{__version__}"},
            )
            response = connection.getresponse()
            data = response.read(MOST_ANSWER_BYTES + 1)
            return self._judged(response, data)
        except LinkError:
            raise
        except socket.gaierror:
            raise LinkError(f"no address is known for {self._host}; is the network there?") from None
        except ConnectionRefusedError:
            raise LinkError(f"nothing listens at {self._where}; is the KI running?") from None
        except TimeoutError:
            raise LinkError(f"{self._where} did not answer within {self._deadline_s:g} s") from None
        except (http.client.HTTPException, OSError, ValueError) as error:
            words = getattr(error, "strerror", None) or type(error).__name__
            raise LinkError(f"{self._where} broke off ({words})") from None
        finally:
            self._connection = None
            connection.close()

    def _judged(self, response: http.client.HTTPResponse, data: bytes) -> bytes:
        kind = response.headers.get_content_type()
        if kind == CONTENT_TYPE and len(data) <= MOST_ANSWER_BYTES and is_the_kis(data):
            return data
        error = LinkError(
            f"what answers at {self._where} is not the KI (HTTP {response.status}, {kind}); "
            f"{_advice(response.status)}"
        )
        error.retry_s = _seconds(response.headers.get("Retry-After"))
        raise error


def _advice(status: int) -> str:
    """What to look at when something else than the KI has answered with this status."""
    if status == 429 or 500 <= status < 511 or status > 511:
        return "it may be in trouble, or a proxy before it; see the KI's log"
    if 400 <= status < 500:
        return "is ki.url right?"
    # A page to log in at comes with 200, a redirect, or the 511 that is meant for it.
    return "does the network want a log-in?"


def _seconds(text: str | None) -> float | None:
    """`Retry-After` as seconds; None for a date, which a clock that was never set cannot tell."""
    return float(text) if text is not None and text.isascii() and text.isdigit() else None


def _look_at(future: asyncio.Future[bytes]) -> None:
    """Nobody waits any more: take the exception, so that it is not told as one never looked at."""
    if not future.cancelled():
        future.exception()
