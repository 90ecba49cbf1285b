"""The KI's end of a serial line: each question that comes out of it goes to the service, the answer back.

The gateway knows nothing of what it carries. It asks for the table over HTTP and hands back what the service
said, in the order of the questions, of which a table may have two under way. If the service cannot be asked,
it says that itself, at once, so that the table knows that the line is good and the service is not. An answer
goes into the session that its question came from, or nowhere: a table that has started again since would take
it for the answer to something else.

One machine may have many of them, each with a port and a way to the service of its own, so that a table whose
port is stuck, or whose question takes long, holds up no other. They share the loop, on which none of them
waits, and what is told of the service: it is away for all of them, and that is one piece of news.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from heek.clock import Clock, RealClock
from heek.errors import LinkError
from heek.ki.answers import encode_refusal
from heek.ki.delivery import MOST_MESSAGE, MessageArrived, MessageOversized
from heek.ki.exchange import Happening, Identity, Role, SessionEnded, SessionOpened
from heek.ki.link import ANSWER_FRAME, MOST_ASKED, Link, LinkStatus, Request
from heek.ki.serial_line import SerialLine

log: Final = logging.getLogger("heek")

MOST_GIVEN_UP: Final = 3
"""Questions that nobody waits for any more may be at the service at once; beyond that none is asked."""
RETRY_S: Final = 2
"""When to ask again if the service cannot be reached."""

_REQUESTS: Final = {request.frame_type: request for request in Request}


@dataclass(slots=True, eq=False)
class _Question:
    """One of the session that has not been answered."""

    answer: bytes | None = None
    """What is to be said to it, once that is known; it goes when those before it have gone."""
    task: asyncio.Task[None] | None = None
    """Asks the service."""


class ServiceNews:
    """Says once that the service does not answer, and once that it does again, however many ask it."""

    def __init__(self) -> None:
        self._away = False

    def answered(self) -> None:
        """It said something."""
        if self._away:
            log.info("the service answers again")
        self._away = False

    def failed(self, error: LinkError) -> None:
        """It could not be asked."""
        if not self._away:
            log.warning("the service: %s", error)
        self._away = True


class Gateway:
    """Between the serial port `port` and `service`, the link by which the service is asked.

    Opens the port at once, and belongs to the loop it is made on; `close` closes both. `news` is what the
    gateways of one machine share; None: this one is alone.
    """

    def __init__(
        self,
        port: str,
        baud: int,
        service: Link,
        *,
        clock: Clock | None = None,
        news: ServiceNews | None = None,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._port = port
        self._service = service
        self._news = ServiceNews() if news is None else news
        self._loop = asyncio.get_running_loop()
        self._asked: deque[_Question] = deque()
        """The session's questions that are not answered yet, in order."""
        self._given_up: set[asyncio.Task[None]] = set()
        self._line = SerialLine(
            port,
            baud,
            loop=self._loop,
            clock=clock or RealClock(),
            far_end="the table",
            on_happening=self._happened,
            me=Identity(Role.KI, socket.gethostname()),
            random_bytes=random_bytes,
        )
        self._line.start()

    def status(self) -> LinkStatus:
        """How the line to the table stands."""
        return self._line.status()

    async def close(self) -> None:
        """Let go of the port and of the service; what is under way is given up."""
        await self._line.close()
        await self._service.close()
        tasks = [*self._given_up, *(each.task for each in self._asked if each.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _happened(self, happening: Happening) -> None:
        match happening:
            case SessionOpened(peer=peer):
                log.info("%s: %s is on the line", self._port, peer.name or "the table")
            case SessionEnded(reason=reason):
                log.info("%s: the table's session is over: %s", self._port, reason)
                self._give_up()
            case MessageOversized():
                self._refuse("too_large", f"a question has at most {MOST_MESSAGE} bytes on a serial line")
            case MessageArrived(type=kind, payload=body):
                self._take(kind, body)

    def _take(self, kind: int, body: bytes) -> None:
        request = _REQUESTS.get(kind)
        if request is None:
            self._refuse("malformed", f"a question of the type {kind} is not known here")
        elif len(self._given_up) >= MOST_GIVEN_UP:
            self._refuse("busy", "the service has not answered earlier questions yet", RETRY_S)
        elif (question := self._next()) is not None:
            task = question.task = self._loop.create_task(self._fetch(question, request, body))
            task.add_done_callback(self._given_up.discard)

    def _next(self) -> _Question | None:
        """A place behind the questions that wait; None, and the session is over, if there is none."""
        if len(self._asked) >= MOST_ASKED:
            # It takes no part in the order that tells its answers apart.
            self._line.restart("the table asked again before it had its answers")
            return None
        question = _Question()
        self._asked.append(question)
        return question

    async def _fetch(self, question: _Question, request: Request, body: bytes) -> None:
        try:
            answer = await self._service.ask(request, body)
        except LinkError as error:
            self._news.failed(error)
            answer = encode_refusal("unavailable", str(error), RETRY_S)
        else:
            self._news.answered()
        self._settle(question, answer)

    def _refuse(self, code: str, text: str, retry_s: int | None = None) -> None:
        question = self._next()
        if question is not None:
            self._settle(question, encode_refusal(code, text, retry_s))

    def _settle(self, question: _Question, answer: bytes) -> None:
        """Say it when its turn has come; of a session that is over, to nobody."""
        question.answer = answer
        while self._asked and self._asked[0].answer is not None:
            self._answer(self._asked.popleft().answer or b"")

    def _give_up(self) -> None:
        """The session is over; what the service is asked in its name is answered to nobody."""
        self._given_up |= {
            each.task for each in self._asked if each.task is not None and not each.task.done()
        }
        self._asked.clear()

    def _answer(self, answer: bytes) -> None:
        if len(answer) > MOST_MESSAGE:
            answer = encode_refusal("unavailable", "the service's answer is too long for a serial line")
        try:
            self._line.send(ANSWER_FRAME, answer)
        except LinkError as error:
            # The session ended this very moment; the table hears of that.
            log.info("%s: an answer is not sent: %s", self._port, error)
