"""Two exchanges and a wire between them under virtual time: perfect, byte by byte, lossy, late.

A wire is a function from the bytes that an end writes to the pieces that come out at the other end, each
after a delay. The conversation moves the clock from one thing that is due to the next; nothing ever waits.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from heek.clock import SECOND, Duration, Instant
from heek.ki.delivery import MOST_MESSAGE, MOST_WAITING, MessageArrived, MessageDelivered
from heek.ki.exchange import NOBODY, Exchange, Happening, Identity, SessionEnded, SessionOpened, State
from heek.ki.framing import LONGEST_CODED

BAUD = 115200
SLOW_BAUD = 1200

Wire = Callable[[bytes], list[tuple[Duration, bytes]]]
"""What an end writes to what comes out at the other, each piece after its delay."""


def _time(size: int, baud: int = BAUD) -> Duration:
    return size * 10 * SECOND // baud


def perfect(data: bytes) -> list[tuple[Duration, bytes]]:
    """Everything comes, whole, after its time on the wire."""
    return [(_time(len(data)), data)]


def slow(data: bytes) -> list[tuple[Duration, bytes]]:
    """So it does at 1,200 baud."""
    return [(_time(len(data), SLOW_BAUD), data)]


def byte_by_byte(data: bytes) -> list[tuple[Duration, bytes]]:
    """Everything comes, one byte at a time."""
    return [(_time(at + 1), data[at : at + 1]) for at in range(len(data))]


def cut(_data: bytes) -> list[tuple[Duration, bytes]]:
    """Nothing comes."""
    return []


@dataclass
class Lossy:
    """Drops, doubles, flips and cuts what is written, and adds rubbish, each with a chance of `chance`."""

    seed: int
    chance: float = 0.1

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def __call__(self, data: bytes) -> list[tuple[Duration, bytes]]:
        dice = self._random
        if dice.random() < self.chance:
            return []
        if dice.random() < self.chance:
            flipped = bytearray(data)
            for _ in range(dice.randint(1, 4)):
                flipped[dice.randrange(len(flipped))] ^= 1 << dice.randrange(8)
            data = bytes(flipped)
        if dice.random() < self.chance:
            start = dice.randrange(len(data))
            data = data[:start] + data[start + dice.randint(1, 40) :]
        if dice.random() < self.chance:
            data = dice.randbytes(dice.randint(1, 30)) + data
        pieces = [(_time(len(data)), data)] if data else []
        if data and dice.random() < self.chance:
            pieces.append((_time(2 * len(data)), data))
        return pieces


@dataclass
class Noisy:
    """Changes one bit of each byte with a chance of `chance`, as a long cable beside a motor does.

    `turnaround` is how long the other end takes to look at what came.
    """

    seed: int
    chance: float = 0.0
    turnaround: Duration = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def __call__(self, data: bytes) -> list[tuple[Duration, bytes]]:
        dice = self._random
        return [
            (
                _time(len(data)) + self.turnaround,
                bytes(
                    byte ^ 1 << dice.randrange(8) if dice.random() < self.chance else byte for byte in data
                ),
            )
        ]


@dataclass
class Late:
    """Loses nothing, but holds some of what is written back far beyond the resend, so that it overtakes."""

    seed: int
    longest: Duration = 4 * SECOND

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def __call__(self, data: bytes) -> list[tuple[Duration, bytes]]:
        dice = self._random
        delay = dice.randint(0, self.longest) if dice.random() < 0.3 else 0
        pieces = [(_time(len(data)) + delay, data)]
        if dice.random() < 0.1:
            pieces.append((_time(len(data)) + dice.randint(0, self.longest), data))
        return pieces


@dataclass
class End:
    """One end: its exchange and all that happened to it."""

    exchange: Exchange
    wire: Wire
    happened: list[tuple[Instant, Happening]] = field(default_factory=list)
    written: int = 0
    """Bytes that it has put on the wire."""
    free_at: Instant = 0
    """Until then the wire is busy with what was written before."""

    def of(self, kind: type) -> list[Happening]:
        """What happened of one kind, in order."""
        return [each for _, each in self.happened if isinstance(each, kind)]

    @property
    def arrived(self) -> list[bytes]:
        """The payloads of the messages that came."""
        return [each.payload for _, each in self.happened if isinstance(each, MessageArrived)]

    @property
    def delivered(self) -> list[int]:
        """The numbers of the messages that are known to have come to the other end."""
        return [each.number for _, each in self.happened if isinstance(each, MessageDelivered)]

    @property
    def lost(self) -> list[int]:
        """The numbers of the messages that were reported lost."""
        return [number for _, each in self.happened if isinstance(each, SessionEnded) for number in each.lost]

    @property
    def sessions(self) -> int:
        """How many sessions were opened."""
        return len(self.of(SessionOpened))


class Conversation:
    """Two ends on a wire. `left` and `right` may be given other wires at any time."""

    def __init__(
        self,
        left_wire: Wire = perfect,
        right_wire: Wire | None = None,
        *,
        seed: int = 0,
        baud: int = BAUD,
        left_versions: tuple[int, int] = (1, 1),
        right_versions: tuple[int, int] = (1, 1),
        left_is: Identity = NOBODY,
        right_is: Identity = NOBODY,
    ) -> None:
        self.now: Instant = 0
        self._seed = seed
        self._baud = baud
        self._nonces = count(1)
        self.left = End(self._exchange(left_versions, left_is), left_wire)
        self.right = End(self._exchange(right_versions, right_is), right_wire or left_wire)
        self._coming: list[tuple[Instant, int, bool, bytes]] = []
        self._order = count()

    def _exchange(self, versions: tuple[int, int] = (1, 1), me: Identity = NOBODY) -> Exchange:
        dice = random.Random(f"{self._seed}/{next(self._nonces)}")
        return Exchange(baud=self._baud, random_bytes=dice.randbytes, versions=versions, me=me)

    def start(self) -> None:
        """Both ends open their ports."""
        self.left.exchange.connect(self.now)
        self.right.exchange.connect(self.now)
        self.turn()

    def replace(self, end: End, versions: tuple[int, int] = (1, 1), me: Identity = NOBODY) -> None:
        """The program at one end dies and starts again; what is on the wire stays there."""
        end.exchange = self._exchange(versions, me)
        end.exchange.connect(self.now)
        self.turn()

    def send(self, end: End, payload: bytes, kind: int = 16) -> int:
        """Have an end send a message."""
        number = end.exchange.send(kind, payload)
        self.turn()
        return number

    def inject(self, end: End, data: bytes, after: Duration = 0) -> None:
        """Bytes that nobody sent come to an end."""
        heapq.heappush(self._coming, (self.now + after, next(self._order), end is self.right, data))

    def turn(self) -> None:
        """Put on the wire what both ends want to write now, and hold them to their bounds."""
        for end in (self.left, self.right):
            while data := end.exchange.to_write(self.now):
                end.written += len(data)
                start = max(self.now, end.free_at)
                end.free_at = start + _time(len(data), self._baud)
                for delay, piece in end.wire(data):
                    heapq.heappush(self._coming, (start + delay, next(self._order), end is self.left, piece))
            due = end.exchange.due()
            assert due is None or due > self.now, "an end wants to be woken for nothing, for ever"
            assert end.exchange.held <= LONGEST_CODED + (1 + MOST_WAITING) * MOST_MESSAGE

    def step(self, until: Instant) -> bool:
        """Do the next thing that is due by `until`; False: there is none, and it is `until` now."""
        dues = [end.exchange.due() for end in (self.left, self.right)]
        instants = [due for due in dues if due is not None]
        if self._coming:
            instants.append(self._coming[0][0])
        at = min(instants, default=until + 1)
        if at > until:
            self.now = until
            return False
        self.now = max(self.now, at)
        while self._coming and self._coming[0][0] <= self.now:
            _, _, to_right, data = heapq.heappop(self._coming)
            end = self.right if to_right else self.left
            self._note(end, end.exchange.receive(data, self.now))
        for end in (self.left, self.right):
            self._note(end, end.exchange.advance(self.now))
        self.turn()
        return True

    def _note(self, end: End, happened: list[Happening]) -> None:
        end.happened.extend((self.now, each) for each in happened)

    def run(self, span: Duration) -> None:
        """Let time pass."""
        until = self.now + span
        while self.step(until):
            pass

    def run_until(self, condition: Callable[[], bool], within: Duration = 60 * SECOND) -> Duration:
        """Let time pass until something holds; returns how long it took, fails if it never does."""
        began = self.now
        while not condition():
            assert self.step(began + within), f"it has not come to that within {within / SECOND} s"
        return self.now - began

    @property
    def open(self) -> bool:
        """Both ends have a session."""
        return self.left.exchange.state is State.OPEN and self.right.exchange.state is State.OPEN

    def opened(self) -> Conversation:
        """Start, and go on until both ends have a session."""
        self.start()
        self.run_until(lambda: self.open)
        return self
