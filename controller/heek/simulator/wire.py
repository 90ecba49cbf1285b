"""A serial wire between two pseudo terminals, for a demo without a cable and for tests of both its ends.

A thread of its own carries bytes both ways, at the pace of a baud rate if it is told one. The wire can be
cut, and what is sent meanwhile is lost; it can be noisy; and an end that takes nothing loses what comes, as
at a port that nobody reads. The wire holds both terminals open, as the kernel holds a real port, so that an
end may be closed and opened again.
"""

from __future__ import annotations

import contextlib
import os
import random
import select
import threading
import time
import tty
from collections import deque
from types import TracebackType
from typing import Final, Self

from heek.ki.delivery import BITS_A_BYTE

CHUNK_BYTES: Final = 64
"""Carried at once on a wire with a pace: six milliseconds at 115200 baud."""
BUFFER_BYTES: Final = 4096
"""On the way in each direction; a sender that is faster than the wire has to wait, as with a real port."""


class _Direction:
    """What goes from one terminal to the other."""

    def __init__(self, source: int, target: int) -> None:
        self.source = source
        self.target = target
        self.waiting: deque[tuple[float, bytes]] = deque()
        """Each chunk with the instant at which its last byte has come along, by the monotonic clock."""
        self.size = 0
        """Bytes that wait."""
        self.last_at = 0.0
        """When the last chunk of all will have come along."""


class Wire:
    """A wire; `close` it, or use it in a `with`.

    `table_end` and `gateway_end` are the names of its ports. `baud` is the pace of each direction; None:
    none. `noise` is the chance of each byte to be changed, drawn from `seed`.
    """

    def __init__(self, *, baud: int | None = None, noise: float = 0.0, seed: int = 0) -> None:
        self._byte_s = 0.0 if baud is None else BITS_A_BYTE / baud
        self._noise = noise
        self._random = random.Random(seed)
        self.lost_bytes = 0
        """How many bytes were sent and did not arrive."""
        self._cut = False
        self._closing = False
        self._fds: list[int] = []
        try:
            table, self.table_end = self._terminal()
            gateway, self.gateway_end = self._terminal()
            self._woken, self._wake = os.pipe()
            self._fds += [self._woken, self._wake]
        except OSError:
            self._close_all()
            raise
        self._directions = (_Direction(table, gateway), _Direction(gateway, table))
        self._masters = (table, gateway)
        self._thread = threading.Thread(target=self._carry, name="heek-wire", daemon=True)
        self._thread.start()

    def _terminal(self) -> tuple[int, str]:
        master, port = os.openpty()
        self._fds += [master, port]
        # Raw from the first moment: a terminal echoes otherwise, and takes some bytes for commands.
        tty.setraw(port)
        os.set_blocking(master, False)
        return master, os.ttyname(port)

    def cut(self) -> None:
        """From now on nothing arrives, and nobody is told."""
        self._cut = True

    def join(self) -> None:
        """Mend it; what was sent meanwhile is lost."""
        self._cut = False

    def say(self, data: bytes, *, to_table: bool) -> None:
        """Bytes that neither end sent come to one of them, as from a console that shares the line."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._masters[0 if to_table else 1], data)

    def close(self) -> None:
        """Take both ports away, as an unplugged adapter does; may be called twice."""
        if not self._closing:
            self._closing = True
            os.write(self._wake, b"!")
            self._thread.join()
            self._close_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _close_all(self) -> None:
        fds, self._fds = self._fds, []
        for fd in fds:
            os.close(fd)

    # On the thread

    def _carry(self) -> None:
        while not self._closing:
            now = time.monotonic()
            waits = [each.waiting[0][0] - now for each in self._directions if each.waiting]
            sources = [each.source for each in self._directions if each.size < BUFFER_BYTES]
            ready, _, _ = select.select(
                [self._woken, *sources], [], [], max(min(waits), 0.0) if waits else None
            )
            for direction in self._directions:
                if direction.source in ready:
                    self._take(direction)
                self._give(direction)

    def _take(self, direction: _Direction) -> None:
        try:
            data = os.read(direction.source, BUFFER_BYTES)
        except OSError:
            return
        step = CHUNK_BYTES if self._byte_s else BUFFER_BYTES
        at = max(direction.last_at, time.monotonic())
        for start in range(0, len(data), step):
            chunk = data[start : start + step]
            at += len(chunk) * self._byte_s
            direction.waiting.append((at, chunk))
        direction.size += len(data)
        direction.last_at = at

    def _give(self, direction: _Direction) -> None:
        now = time.monotonic()
        while direction.waiting and direction.waiting[0][0] <= now:
            _, chunk = direction.waiting.popleft()
            direction.size -= len(chunk)
            taken = 0
            if not self._cut:
                # An end that takes nothing loses what comes; nothing in the world waits for it.
                with contextlib.suppress(OSError):
                    taken = os.write(direction.target, self._spoilt(chunk))
            self.lost_bytes += len(chunk) - taken

    def _spoilt(self, chunk: bytes) -> bytes:
        if not self._noise:
            return chunk
        dice = self._random
        return bytes(byte ^ 1 << dice.randrange(8) if dice.random() < self._noise else byte for byte in chunk)
