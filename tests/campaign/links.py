"""The ways between tables and KI: one as HTTP, in memory, one a serial line with its gateway, as bad as told.

A way's word says how it is just now (`LINKS` in the plan). Nothing is ever in two machines at once: what is
sent is bytes, and they arrive in the other machine's context, if it is on then.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from heek.clock import SECOND, Clock
from heek.errors import LinkError
from heek.ki import cbor, gateway, serial_link
from heek.ki.answers import is_the_kis
from heek.ki.exchange import Exchange, Happening, State
from heek.ki.gateway import Gateway
from heek.ki.link import Link, LinkStatus, Request
from heek.ki.serial_link import SerialLink
from tests.campaign.machines import Machine
from tests.campaign.plan import PLAYERS
from tests.ki.wires import Late, Lossy, cut, perfect

if TYPE_CHECKING:
    from tests.campaign.tables import Table

DEADLINE_S: Final = 20.0
BAUD: Final = 115200
LATEST_S: Final = 200.0
PORTAL: Final = b"<html><title>Welcome</title>Please log in.</html>"
RICH: Final = 5000
MOST_RECORDED: Final = 20


class Far(Protocol):
    """Who answers: the KI."""

    @property
    def machine(self) -> Machine: ...

    def take(self, request: Request, body: bytes, source: str | None, reply: Callable[[bytes], None]) -> bool:
        """Have it answer, in its own time; False if nobody listens."""


@dataclass
class Way:
    """The road between one table and the KI, whatever goes over it."""

    dice: random.Random
    far: Far
    source: str | None
    """The table's address; None: the KI takes what comes over it as from its own machine."""
    word: str = "good"
    recorded: list[bytes] = field(default_factory=list)
    """Answers that somebody on the line has written down."""
    under_way_until: float = 0.0
    """By the loop's time: when the last question arrives that is under way."""


def _later(loop: asyncio.AbstractEventLoop, delay_s: float, what: Callable[..., Any], *args: Any) -> None:
    """Do something that belongs to no machine."""
    loop.call_later(delay_s, what, *args, context=contextvars.Context())


class HttpWay:
    """A link as the HTTP one is, without a network; belongs to one start of a table."""

    def __init__(self, way: Way, loop: asyncio.AbstractEventLoop, *, good: bool = False) -> None:
        """`good`: whatever the way's word is, this part of it is not concerned."""
        self._way = way
        self._loop = loop
        self._good = good

    async def ask(self, request: Request, body: bytes) -> bytes:
        answer: asyncio.Future[bytes] = self._loop.create_future()
        self._send(request, body, answer)
        try:
            async with asyncio.timeout(DEADLINE_S):
                data = await answer
        except TimeoutError:
            raise LinkError("the KI did not answer in time") from None
        if not is_the_kis(data):
            raise LinkError("what answers is not the KI; does the network want a log-in?")
        return data

    def status(self) -> LinkStatus:
        return LinkStatus(True, "up")

    async def close(self) -> None:
        """Nothing is open."""

    def _send(self, request: Request, body: bytes, answer: asyncio.Future[bytes]) -> None:
        way, dice = self._way, self._way.dice
        word = "good" if self._good else way.word
        if word == "down" or (word == "lossy" and dice.random() < 0.4):
            return
        if word == "portal" or (word == "playback" and dice.random() < 0.6):
            # The portal may even know how the KI speaks; who has listened knows what it said.
            said = _forged(request, body)
            if dice.random() < 0.4:
                said = dice.choice(way.recorded) if word == "playback" and way.recorded else PORTAL
            _later(self._loop, 0.02, _tell, answer, said)
            return
        copies = dice.choice((2, 3)) if word == "double" else 1
        for _ in range(copies):
            delay = dice.uniform(0.001, LATEST_S if word in ("late", "double") else 0.03)
            way.under_way_until = max(way.under_way_until, self._loop.time() + delay)
            asked = _damaged(dice, body) if word == "damaged" and dice.random() < 0.5 else body
            _later(self._loop, delay, self._arrive, request, asked, answer)

    def _arrive(self, request: Request, body: bytes, answer: asyncio.Future[bytes]) -> None:
        if not self._way.far.take(request, body, self._way.source, lambda said: self._back(said, answer)):
            _later(self._loop, 0.001, _fail, answer)

    def _back(self, said: bytes, answer: asyncio.Future[bytes]) -> None:
        way, dice = self._way, self._way.dice
        if len(way.recorded) < MOST_RECORDED:
            way.recorded.append(said)
        word = "good" if self._good else way.word
        if word == "down" or (word == "lossy" and dice.random() < 0.4):
            return
        if word == "damaged" and dice.random() < 0.5:
            said = _damaged(dice, said)
        _later(self._loop, dice.uniform(0.001, LATEST_S if word == "late" else 0.03), _tell, answer, said)


def _forged(request: Request, body: bytes) -> bytes:
    """What a KI might answer to that, if it had taken everything and each player were rich; not signed."""
    asked = cbor.decode(body)
    said: dict[str, object] = {"ki": 1, "points": dict.fromkeys(PLAYERS, RICH)}
    match request:
        case Request.RECORDS:
            said |= {"answers": [["accepted", None, None]] * len(asked), "holds": [0, bytes(16)]}
        case Request.SYNC:
            said |= {"n": asked["n"], "mark": bytes(8), "holds": asked["holds"], "now_s": 0}
            said |= {"news": [], "newest": asked["news"]}
    return cbor.encode(said)


def _damaged(dice: random.Random, data: bytes) -> bytes:
    made = bytearray(data)
    for _ in range(dice.randint(1, 3)):
        made[dice.randrange(len(made))] ^= 1 << dice.randrange(8)
    return bytes(made[: dice.randint(1, len(made))] if dice.random() < 0.1 else made)


def _tell(answer: asyncio.Future[bytes], said: bytes) -> None:
    if not answer.done():
        answer.set_result(said)


def _fail(answer: asyncio.Future[bytes]) -> None:
    if not answer.done():
        answer.set_exception(LinkError("nothing listens there"))
        # Who asked may be without power, and never look.
        answer.exception()


class Counted:
    """A link that counts the requests with records that a table has sent over it."""

    def __init__(self, link: Link, table: Table) -> None:
        self._link = link
        self._table = table

    async def ask(self, request: Request, body: bytes) -> bytes:
        self._table.offers += request is Request.RECORDS
        return await self._link.ask(request, body)

    def status(self) -> LinkStatus:
        return self._link.status()

    async def close(self) -> None:
        await self._link.close()


# The serial line


class Cable:
    """Two ends of a line, each in its machine; what one writes comes out at the other after its time."""

    def __init__(self, way: Way, loop: asyncio.AbstractEventLoop, seed: int) -> None:
        self.way = way
        self.loop = loop
        self._ends: dict[bool, CableLine] = {}
        self._lossy, self._late = Lossy(seed), Late(seed)

    def plug(self, line: CableLine, *, at_table: bool) -> None:
        """An end's program has opened its port."""
        self._ends[at_table] = line

    def carry(self, data: bytes, *, from_table: bool) -> None:
        """What an end has written."""
        match self.way.word:
            case "down" | "portal":
                pieces = cut(data)
            case "lossy" | "damaged":
                pieces = self._lossy(data)
            case "late":
                pieces = self._late(data)
            case "double":
                pieces = [*perfect(data), *perfect(data)]
            case "playback":
                # A loop: what is said comes back.
                pieces, from_table = perfect(data), not from_table
            case _:
                pieces = perfect(data)
        for delay, piece in pieces:
            _later(self.loop, delay / SECOND, self._come, not from_table, piece)

    def _come(self, to_table: bool, piece: bytes) -> None:
        line = self._ends.get(to_table)
        if line is not None and line.boot == line.machine.boots:
            line.machine.run(lambda: line.receive(piece))


class CableLine:
    """What `heek.ki.serial_line.SerialLine` is to a link and a gateway, on a cable of the campaign."""

    def __init__(
        self,
        port: str,
        baud: int,
        *,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        far_end: str,  # noqa: ARG002
        on_happening: Callable[[Happening], None],
        random_bytes: Callable[[int], bytes],
        **_more: object,
    ) -> None:
        self._cable, self.machine, self._at_table = _PORTS[port]
        self.boot = self.machine.boots
        self._loop = loop
        self._clock = clock
        self._on_happening = on_happening
        self._exchange = Exchange(baud=baud, random_bytes=random_bytes)
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def is_open(self) -> bool:
        return self._exchange.state is State.OPEN

    @property
    def in_trouble(self) -> bool:
        return False

    def start(self) -> None:
        self._cable.plug(self, at_table=self._at_table)
        self._exchange.connect(self._clock.now())
        self._turn()

    def send(self, kind: int, payload: bytes) -> int:
        number = self._exchange.send(kind, payload)
        self._loop.call_soon(self._turn)
        return number

    def restart(self, reason: str) -> None:
        self._tell(self._exchange.restart(self._clock.now(), reason))
        self._loop.call_soon(self._turn)

    def status(self) -> LinkStatus:
        return LinkStatus(self.is_open, "up" if self.is_open else "calling")

    async def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._tell(self._exchange.disconnect())

    def receive(self, data: bytes) -> None:
        """Bytes have come."""
        self.machine.step("bytes from the line")
        if not self._closed:
            self._tell(self._exchange.receive(data, self._clock.now()))
            self._turn()

    def _turn(self) -> None:
        if self._closed:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._clock.now()
        self._tell(self._exchange.advance(now))
        while data := self._exchange.to_write(now):
            self._cable.carry(data, from_table=self._at_table)
        due = self._exchange.due()
        if due is not None:
            self._timer = self._loop.call_later(max(due - now, 1000) / SECOND, self._turn)

    def _tell(self, happened: list[Happening]) -> None:
        for each in happened:
            self._on_happening(each)


_PORTS: dict[str, tuple[Cable, Machine, bool]] = {}


@contextlib.contextmanager
def cables() -> Any:
    """As long as it lasts, serial links and gateways speak over cables of the campaign."""
    real = serial_link.SerialLine, gateway.SerialLine
    serial_link.SerialLine = gateway.SerialLine = CableLine  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        serial_link.SerialLine, gateway.SerialLine = real  # type: ignore[misc]
        _PORTS.clear()


def serial_way(cable: Cable, table: Machine, on_up: Callable[[], None]) -> SerialLink:
    """The table's end of a cable; in the table's context, once a start."""
    port = f"/dev/{table.name}"
    _PORTS[port] = (cable, table, True)
    return SerialLink(port, BAUD, clock=table.clock, on_up=on_up, random_bytes=table.world.dice.randbytes)


def gateway_at(cable: Cable, ki: Machine, table: Machine) -> Gateway:
    """The KI's end of a cable; in the KI's context, once a start."""
    port = f"/dev/{table.name}-gateway"
    _PORTS[port] = (cable, ki, False)
    return Gateway(
        port,
        BAUD,
        HttpWay(cable.way, cable.loop, good=True),
        clock=ki.clock,
        random_bytes=table.world.dice.randbytes,
    )
