"""What the tests of real ports share: polling with a deadline, and a far end made by hand."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
import tty
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from heek.clock import RealClock
from heek.ki import cbor
from heek.ki.delivery import MessageArrived
from heek.ki.exchange import Happening, SessionEnded, SessionOpened
from heek.ki.link import ANSWER_FRAME
from heek.ki.serial_line import SerialLine

BAUD = 115200


async def until(condition: Callable[[], object], within_s: float = 15.0) -> None:
    """Wait until something holds; fails if it does not in time."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"it has not come to that within {within_s} s"
        await asyncio.sleep(0.005)


def answer(**more: object) -> bytes:
    """An answer as the KI gives one."""
    return cbor.encode({"ki": 1, **more})


class FarEnd:
    """The other end of a link or gateway: everything that happens there, and a hand to answer."""

    def __init__(self, port: str, *, answers: Callable[[MessageArrived], bytes | None] | None = None) -> None:
        self.happened: list[Happening] = []
        self._answers = answers
        self.line = SerialLine(
            port,
            BAUD,
            loop=asyncio.get_running_loop(),
            clock=RealClock(),
            far_end="the end under test",
            on_happening=self._take,
        )
        self.line.start()

    def _take(self, happening: Happening) -> None:
        self.happened.append(happening)
        if isinstance(happening, MessageArrived) and self._answers is not None:
            said = self._answers(happening)
            if said is not None:
                self.line.send(ANSWER_FRAME, said)

    @property
    def messages(self) -> list[MessageArrived]:
        """The messages that came, in order."""
        return [each for each in self.happened if isinstance(each, MessageArrived)]

    @property
    def sessions(self) -> int:
        """Sessions that were opened."""
        return sum(isinstance(each, SessionOpened) for each in self.happened)

    @property
    def endings(self) -> list[str]:
        """Why sessions ended."""
        return [each.reason for each in self.happened if isinstance(each, SessionEnded)]


@contextmanager
def no_hang(seconds: int = 60) -> Iterator[None]:
    """A call that never returns becomes a failure of the test, not of the whole run."""

    def ring(_number: int, _frame: object) -> None:
        raise AssertionError(f"it still hangs after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@asynccontextmanager
async def far_end(
    port: str, answers: Callable[[MessageArrived], bytes | None] | None = None
) -> AsyncIterator[FarEnd]:
    """A far end that is put away afterwards."""
    end = FarEnd(port, answers=answers)
    try:
        yield end
    finally:
        await end.line.close()


@contextmanager
def a_terminal() -> Iterator[tuple[int, str]]:
    """A pseudo terminal by hand: its master, and the name of its port."""
    master, port = os.openpty()
    tty.setraw(port)
    os.set_blocking(master, False)
    try:
        yield master, os.ttyname(port)
    finally:
        for fd in (master, port):
            os.close(fd)


async def stuff(fd: int) -> int:
    """Write until nothing more goes in, and the kernel has moved nothing on for a while; returns how much."""
    full = stuffed = 0
    while full < 20:
        try:
            while True:
                stuffed += os.write(fd, b"x" * 4096)
                full = 0
        except BlockingIOError:
            full += 1
        with contextlib.suppress(BlockingIOError):
            while os.write(fd, b"x"):
                stuffed += 1
                full = 0
        await asyncio.sleep(0.005)
    return stuffed


@contextmanager
def stuffed_terminal() -> Iterator[str]:
    """The name of a port that takes nothing: it is full, and nobody reads at the other end.

    Whoever lets go of it throws out what fills it, so it takes bytes when it is opened again.
    """
    with a_terminal() as (_, port):
        stuffing = os.open(port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            for _ in range(20):
                with contextlib.suppress(BlockingIOError):
                    while os.write(stuffing, b"x" * 4096):
                        pass
                with contextlib.suppress(BlockingIOError):
                    while os.write(stuffing, b"x"):
                        pass
                time.sleep(0.005)
            yield port
        finally:
            os.close(stuffing)
