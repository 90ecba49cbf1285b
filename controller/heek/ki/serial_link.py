"""The link over a serial line: a question is a message, its answer another one, in the same order.

Two questions may be under way, so that the wire is busy with one while the KI thinks about the other. Answers
bear no number: the first one belongs to the question that was asked first in the same session. So whoever
stops waiting, for whatever reason, gives the session up with it, and the late answer falls into the void
between two sessions instead of before the next question; who has asked beside it hears that the line broke,
and asks again. An answer that comes before its question is known to have arrived is none to it.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from heek.clock import SECOND, Clock, RealClock
from heek.errors import LinkError, LinkTooSlow
from heek.ki.answers import is_the_kis
from heek.ki.delivery import MOST_MESSAGE, MessageArrived, MessageDelivered, MessageOversized, wire_time
from heek.ki.exchange import Happening, Identity, Role, SessionEnded, SessionOpened
from heek.ki.link import ANSWER_FRAME, MOST_ASKED, LinkStatus, Request
from heek.ki.serial_line import SerialLine

DEADLINE_S: Final = 30.0
"""For an answer, the time that the question itself is on the line not counted."""
NOISY: Final = 20
"""For how many times its time on the wire a question may be on the line. Where one byte in five hundred is
damaged the line carries a twelfth; whoever gave up earlier would begin anew for ever."""
PATIENCE_S: Final = 3.0
"""How long a question waits for the line to have a session; a peer that is there answers HELLO sooner."""

FAR_END: Final = "the KI's end"


@dataclass(slots=True, eq=False)
class _Question:
    """One that was put on the line."""

    number: int
    """Under which the line reports that it has arrived."""
    answer: asyncio.Future[bytes]
    arrived: bool = False


class SerialLink:
    """A KI at the other end of the serial port `port`, which is opened at once, on the loop that runs.

    `name` is what the other end is told of this table. `on_up` is called on that loop each time there is a
    session again.
    """

    def __init__(
        self,
        port: str,
        baud: int,
        *,
        name: str = "",
        clock: Clock | None = None,
        on_up: Callable[[], None] | None = None,
        deadline_s: float = DEADLINE_S,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.pinned: bytes | None = None
        """Of no use here: the line itself says who is at its other end."""
        self._baud = baud
        self._on_up = on_up
        self._deadline_s = deadline_s
        self._room = asyncio.Semaphore(MOST_ASKED)
        self._open = asyncio.Event()
        self._asked: deque[_Question] = deque()
        """The questions of the session that have no answer yet, in order."""
        self._closed = False
        self._line = SerialLine(
            port,
            baud,
            loop=self._loop,
            clock=clock or RealClock(),
            far_end=FAR_END,
            on_happening=self._happened,
            me=Identity(Role.TABLE, name),
            random_bytes=random_bytes,
        )
        self._line.start()

    async def ask(self, request: Request, body: bytes) -> bytes:
        """The KI's answer to one request; raises LinkError when there is none that counts in time.

        What was asked may have been done all the same; the KI says "duplicate" when it is asked again.
        """
        if len(body) > MOST_MESSAGE:
            raise LinkError(
                f"{len(body)} bytes are too many for the serial line; {MOST_MESSAGE} are the most"
            )
        async with self._room:
            await self._have_session()
            answer = await self._answer_to(request, body)
        if not is_the_kis(answer):
            raise LinkError("what answers on the serial line is not the KI; is it another program's port?")
        return answer

    def status(self) -> LinkStatus:
        return self._line.status()

    async def close(self) -> None:
        """Let go of the port; what is under way ends with LinkError."""
        self._closed = True
        await self._line.close()

    async def _have_session(self) -> None:
        if self._closed:
            raise LinkError("the link is closed")
        if self._line.in_trouble:
            raise LinkError(self._line.status().text)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._open.wait()
        except TimeoutError:
            raise LinkError(self._line.status().text) from None

    async def _answer_to(self, request: Request, body: bytes) -> bytes:
        deadline_s = self._deadline_s * (1 + len(self._asked)) + NOISY * self._line_s(body)
        question = _Question(self._line.send(request.frame_type, body), self._loop.create_future())
        self._asked.append(question)
        try:
            async with asyncio.timeout(deadline_s):
                return await question.answer
        except TimeoutError:
            raise LinkTooSlow(f"{FAR_END} gave no answer within {deadline_s:.0f} s") from None
        finally:
            if question in self._asked:
                self._asked.remove(question)
                self._line.restart("a question was given up")

    def _line_s(self, body: bytes) -> float:
        """How long a question, and what may be before it, is on the wire, in seconds."""
        ahead = MOST_MESSAGE if self._asked else 0
        return wire_time(len(body) + ahead, self._baud) / SECOND

    def _happened(self, happening: Happening) -> None:
        match happening:
            case SessionOpened():
                self._open.set()
                if self._on_up is not None:
                    self._on_up()
            case SessionEnded(reason=reason):
                self._open.clear()
                while self._asked:
                    self._settle(LinkError(f"the line to {FAR_END} broke before the answer came ({reason})"))
            case MessageDelivered(number=number):
                for question in self._asked:
                    question.arrived = question.arrived or question.number == number
            case MessageArrived(type=kind, payload=payload) if kind == ANSWER_FRAME and self._may_come():
                self._settle(payload)
            case MessageOversized(type=kind) if kind == ANSWER_FRAME and self._may_come():
                self._settle(LinkError(f"{FAR_END} answered with more than {MOST_MESSAGE} bytes"))

    def _may_come(self) -> bool:
        """Is there a question that the next answer can belong to?"""
        return bool(self._asked) and self._asked[0].arrived

    def _settle(self, outcome: bytes | LinkError) -> None:
        """The first question's answer, or why there is none."""
        answer = self._asked.popleft().answer
        if answer.done():
            # Whoever asked has stopped waiting this very moment.
            return
        if isinstance(outcome, LinkError):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)
