"""The link over Wi-Fi or Ethernet: one HTTP request a question, with a deadline on the whole of it.

Each question has a thread and a connection of its own (`heek.ki.http_call`), so that nothing of a network
that has gone half dead is used again, and the loop waits for nobody: neither a question that is given up nor
the end of the program waits for a resolver that hangs.

An answer counts only if it says that it is the KI's: a login page that answers 200 to everything does not.
Over TLS the other end must besides hold the key that this table has pinned (`pinned`). Before there is one,
any key is taken, but for claiming and introducing alone, and an answer that tells the KI's key must tell the
very key of the connection it came over.

No redirect is followed, and no proxy of the environment is used. The proxies that people's settings name
are for the web, and the KI stands in the same room: behind one it would not be found. And a proxy that
speaks for the KI would take the place of its key. A KI beyond a proxy is reached by a tunnel.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import Final

from heek import __version__
from heek.clock import Clock, RealClock
from heek.errors import LinkError, RecordError
from heek.ki import cbor
from heek.ki.answers import Refused, is_the_kis
from heek.ki.envelope import key_id
from heek.ki.http_call import Call, Reply
from heek.ki.http_dates import clock_words, date_s, retry_s
from heek.ki.link import CONTENT_TYPE, MOST_ANSWER_BYTES, LinkStatus, Request
from heek.ki.whereabouts import Configured, Place, Whereabouts

DEADLINE_S: Final = 20.0
"""For a whole request: name, connection, handshake, sending, answer."""
LEAST_BEHIND_S: Final = 2.0
"""By less than this no clock is called wrong."""
GRACE_S: Final = 1.0
"""A thread that is late by so much more is given up."""

_BEFORE_ENROLMENT: Final = frozenset({Request.CLAIM, Request.TABLE})


class HttpLink:
    """A KI at `url` (`http://HOST:PORT` or `https://HOST:PORT`), or one that `whereabouts` finds.

    Raises ValueError if the address is none. Belongs to one loop. `via` says in each request that it is sent
    on for somebody else, and by whom.
    """

    def __init__(
        self,
        url: str = "",
        *,
        whereabouts: Whereabouts | None = None,
        deadline_s: float = DEADLINE_S,
        clock: Clock | None = None,
        via: str | None = None,
    ) -> None:
        self._whereabouts = whereabouts or Configured(url)
        self._deadline_s = deadline_s
        self._clock = clock or RealClock()
        self._via = via
        self._lock = asyncio.Lock()
        self._call: Call | None = None
        self._answer: asyncio.Future[bytes] | None = None
        self._closed = False
        self._status = LinkStatus(False, "not asked yet")
        self._asked = self._failed = self._strangers = 0
        self._ahead_s: float | None = None
        self._at = "up"
        self.pinned: bytes | None = None
        """The public key (32 bytes) of the KI that this table is enrolled at; None: at none yet."""

    async def ask(self, request: Request, body: bytes) -> bytes:
        """The KI's answer to one request; raises LinkError when there is none that counts in time."""
        async with self._lock:
            self._asked += 1
            try:
                answer = await self._within_deadline(request, body)
            except Refused:
                # Nobody was asked.
                raise
            except LinkError as error:
                self._failed += 1
                self._report(up=False, text=str(error))
                raise
            self._report(up=True, text=self._at)
            return answer

    def status(self) -> LinkStatus:
        return self._status

    async def close(self) -> None:
        """End what is under way; does not wait for a name server that does not answer."""
        self._closed = True
        self._whereabouts.close()
        if self._call is not None:
            self._call.cut()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(LinkError("the link is closed"))

    def _report(self, *, up: bool, text: str) -> None:
        counters = {"asked": self._asked, "failed": self._failed, "strangers": self._strangers}
        if self._ahead_s is not None:
            # A date has whole seconds and is some time on its way: below that nothing is known.
            counters["clock_behind_s"] = 0 if abs(self._ahead_s) < LEAST_BEHIND_S else round(self._ahead_s)
        words = clock_words(self._ahead_s)
        remarks = (words[0].upper() + words[1:],) if words else ()
        self._status = LinkStatus(up, text, counters, remarks)

    async def _within_deadline(self, request: Request, body: bytes) -> bytes:
        if self._closed:
            raise LinkError("the link is closed")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bytes] = loop.create_future()
        deadline = time.monotonic() + self._deadline_s
        call = Call(self._whereabouts.where, deadline, self._deadline_s)
        self._call, self._answer = call, answer

        def settle(came: bytes | Exception) -> None:
            if answer.done():
                return
            if isinstance(came, Exception):
                answer.set_exception(came)
            else:
                answer.set_result(came)

        def work() -> None:
            came: bytes | Exception
            try:
                came = self._asked_at(call, deadline, request, body)
            except Exception as error:
                came = error
            # The loop may have ended by now: then nobody waits.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, came)

        threading.Thread(target=work, name="heek-ki", daemon=True).start()
        try:
            async with asyncio.timeout(self._deadline_s + GRACE_S):
                return await answer
        except TimeoutError:
            raise call.late() from None
        finally:
            # Also when whoever asked does not wait any more.
            call.cut()
            self._call = self._answer = None

    # On the thread of a question

    def _asked_at(self, call: Call, deadline: float, request: Request, body: bytes) -> bytes:
        pinned = self.pinned
        place = self._whereabouts.find(deadline, pinned)
        if place.tls and pinned is None and request not in _BEFORE_ENROLMENT:
            refused = Refused("this table is not enrolled at the KI yet")
            refused.code = "unknown_table"
            raise refused
        seen: list[bytes] = []
        try:
            reply = call.run(
                place.addresses,
                self._head(place, request, len(body)) + body,
                (lambda key: seen.append(_judged_key(place, key, pinned))) if place.tls else None,
            )
            answer = self._judged(place, reply)
        except LinkError:
            self._whereabouts.failed()
            raise
        if place.tls and pinned is None:
            _check_told_key(answer, seen[0])
        self._whereabouts.worked(reply.address)
        # Nobody has configured which: it is said.
        self._at = f"up, {place.name} at {place.where}" if place.name else "up"
        return answer

    def _head(self, place: Place, request: Request, size: int) -> bytes:
        via = f"Via: {self._via}\r\n" if self._via is not None else ""
        return (
            f"POST {request.path} HTTP/1.1\r\nHost: {place.where}\r\nUser-Agent: heek/{__version__}\r\n"
            f"Accept: {CONTENT_TYPE}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {size}\r\n"
            f"{via}Connection: close\r\n\r\n"
        ).encode("ascii")

    def _judged(self, place: Place, reply: Reply) -> bytes:
        date = date_s(reply.date)
        self._ahead_s = None if date is None else date - self._clock.wall_s()
        if reply.kind == CONTENT_TYPE and len(reply.data) <= MOST_ANSWER_BYTES and is_the_kis(reply.data):
            return reply.data
        self._strangers += 1
        words = clock_words(self._ahead_s)
        error = LinkError(
            f"what answers at {place.where} is not the KI (HTTP {reply.status}, {reply.kind}); "
            f"{_advice(reply.status)}{f' ({words})' if words else ''}"
        )
        error.retry_s = retry_s(reply.retry_after, reply.date)
        raise error


def _advice(status: int) -> str:
    """What to look at when something else than the KI has answered with this status."""
    if status == 407:
        return "a proxy stands in between and wants a name: the table's network must reach the KI directly"
    if status == 429 or 500 <= status < 511 or status > 511:
        return "it may be in trouble, or a proxy before it; see the KI's log"
    if 400 <= status < 500:
        return "is ki.url right?"
    # A page to log in at comes with 200, a redirect, or the 511 that is meant for it.
    return "does the network want a log-in?"


def _judged_key(place: Place, key: bytes | None, pinned: bytes | None) -> bytes:
    """The key of the other end if it may be asked; raises LinkError before anything is sent to it."""
    if key is None:
        raise LinkError(
            f"what answers at {place.where} over TLS is not the KI: its certificate has no key of one; "
            "does the network want a log-in?"
        )
    if pinned is not None and key != pinned:
        raise LinkError(
            f"another KI answers at {place.where} than the one this table is enrolled at (key "
            f"{key_id(key).hex()} instead of {key_id(pinned).hex()}); if the KI was replaced, enrol this "
            "table anew: heek enrol --again"
        )
    return key


def _check_told_key(answer: bytes, key: bytes) -> None:
    """Raise LinkError if the answer tells another key of the KI than the connection that it came over has."""
    try:
        told = cbor.decode(answer).get("public")
    except (RecordError, AttributeError):
        return
    if told is not None and told != key:
        raise LinkError("somebody stands between this table and the KI: the KI's own key is another one")
