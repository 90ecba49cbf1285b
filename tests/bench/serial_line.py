"""What the serial line carries of what its wire could, records a second to the ledger, and CPU a frame.

A backlog is matches of five that took twelve rounds, in the requests that a table makes of them. What counts
as carried is the records' envelopes; all else (frames around them, acknowledgements, turnarounds, the answers
and the time that the service takes for them) is overhead. The same backlog goes under virtual time between
two exchanges, with both ends taking 2 ms to look at what came, as on a bad day of a Pi: one request at a
time, with two under way, and with one byte in a thousand changed. And it goes in real time over a paced wire
between two pseudo terminals, with the gateway and a real service behind it, until the ledger has it.

CPU a frame is that of our reader (a loop that watches the port) and of pyserial's `read_until`, by turns, on
a pseudo terminal that is full all the time.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from heek.cli.table_process import serial_bytes
from heek.clock import MILLISECOND, SECOND
from heek.ki.answers import (
    BatchAnswer,
    RecordAnswer,
    Verdict,
    encode_batch_answer,
    read_batch_answer,
    read_table_answer,
)
from heek.ki.delivery import BITS_A_BYTE
from heek.ki.envelope import Envelope, batch, split_batch
from heek.ki.framing import Frame, FrameDecoder
from heek.ki.gateway import Gateway
from heek.ki.http_link import HttpLink
from heek.ki.link import ANSWER_FRAME, Request
from heek.ki.record import decode_record
from heek.ki.serial_link import SerialLink
from heek.ki.serial_port import SerialPort, open_port
from heek.ki.signed_answer import sign_answer
from heek.simulator.wire import Wire
from tests.bench.figures import Figure, Spread
from tests.ki.wires import BAUD, Conversation, Noisy
from tests.ranking.records import ANN, BEATEN, BEN, CLEO, DAN, EVE, PEN, FakeTable
from tests.ranking.service import RunningKi

AIM: Final = 1 / 0.9
"""Times the records' own time on the wire: 90 % of the wire's rate is theirs."""
TURNAROUND: Final = 2 * MILLISECOND
ROUNDS: Final = 12
SERVICE_SEED: Final = bytes(32)
FRAME_BYTES: Final = 64
"""As in the measurements by which the way of reading was chosen."""


class WrongCargoError(RuntimeError):
    """What arrived is not what was sent: the bench or the line is broken."""


def measure(*, quick: bool = False) -> list[Figure]:
    """All of them; raises WrongCargoError if a record did not arrive, once."""
    runs, records = (1, 20) if quick else (5, 150)
    backlog = _backlog(records)
    bare = Spread.of([_bare_s(backlog)])
    clean = [_virtual(backlog, run, chance=0.0) for run in range(runs)]
    noisy = [_virtual(backlog, run, chance=0.001) for run in range(runs)]
    two = [_virtual(backlog, run, chance=0.0, under_way=2) for run in range(runs)]
    real = [_real(records, run, under_way=2) for run in range(1 if quick else 3)]
    real_one = [_real(records, run, under_way=1) for run in range(1 if quick else 3)]
    ours, theirs = _cpu_per_frame(1 if quick else 5, 200 if quick else 2000)
    note = f"{records} records, {len(batch(backlog)):,} bytes; 115200 baud; "
    return [
        Figure(
            "serial_backlog",
            "serial: a backlog, virtual wire",
            "s",
            Spread.of(clean),
            "s its records alone",
            bare,
            aim=AIM,
            aim_is_ratio=True,
            note=note + "each end answers after 2 ms; answers count as overhead",
        ),
        Figure(
            "serial_backlog_two",
            "serial: the same, two requests under way",
            "s",
            Spread.of(two),
            "s its records alone",
            bare,
            aim=AIM,
            aim_is_ratio=True,
            note="the wire carries the next request while the answer to the first comes back",
        ),
        Figure(
            "serial_backlog_real",
            "serial: a backlog to the ledger",
            "s",
            Spread.of(real_one),
            "s its records alone",
            bare,
            aim=AIM,
            aim_is_ratio=True,
            note=note + "paced pseudo terminals, gateway, HTTP, service and its data base",
        ),
        Figure(
            "serial_backlog_real_two",
            "serial: so, two requests under way",
            "s",
            Spread.of(real),
            "s its records alone",
            bare,
            aim=AIM,
            aim_is_ratio=True,
            note="the service takes its time for one while the other is on the wire",
        ),
        Figure(
            "serial_records",
            "serial: records a second, to the ledger",
            "1/s",
            Spread.of(records / took for took in real),
            note="two requests under way",
        ),
        Figure(
            "serial_backlog_noisy",
            "serial: the same, one byte in 1000 bad",
            "s",
            Spread.of(noisy),
            "s its records alone",
            bare,
            note="virtual wire, both directions",
        ),
        Figure(
            "serial_frame_cpu",
            "serial: CPU a frame of 64 bytes",
            "us",
            Spread.of(ours),
            "us with read_until",
            Spread.of(theirs),
            aim=0.1,
            aim_is_ratio=True,
            note="a port that is full all the time; reading, unframing, CRC",
        ),
    ]


def _backlog(count: int) -> list[Envelope]:
    table = FakeTable()
    rounds = tuple(
        {place: PEN if place == 1 + at % 5 else BEATEN[PEN] for place in range(1, 6)} for at in range(ROUNDS)
    )
    return [table.sealed({ANN: 2, BEN: 1, CLEO: 1, DAN: 1, EVE: 1}, rounds=rounds) for _ in range(count)]


def _requests(backlog: Sequence[Envelope]) -> Iterator[list[Envelope]]:
    """As a table makes them: as many records as go into one request over serial."""
    together: list[Envelope] = []
    size = 0
    for each in backlog:
        length = len(each.record)
        if together and size + length > serial_bytes(BAUD):
            yield together
            together, size = [], 0
        together.append(each)
        size += length
    yield together


def _bare_s(backlog: Sequence[Envelope]) -> float:
    """How long the envelopes alone are on the wire."""
    return sum(len(each.encode()) for each in backlog) * BITS_A_BYTE / BAUD


def _virtual(backlog: Sequence[Envelope], seed: int, *, chance: float, under_way: int = 1) -> float:
    conversation = Conversation(
        Noisy(seed, chance, TURNAROUND), Noisy(seed + 1000, chance, TURNAROUND), seed=seed
    ).opened()
    table, ki = conversation.left, conversation.right
    began = conversation.now
    requests = [batch(each) for each in _requests(backlog)]
    sent = answered = 0
    while len(table.arrived) < len(requests):
        while sent < len(requests) and sent < len(table.arrived) + under_way:
            conversation.send(table, requests[sent], Request.RECORDS.frame_type)
            sent += 1
        while answered < len(ki.arrived):
            conversation.send(ki, _answer_to(ki.arrived[answered]), ANSWER_FRAME)
            answered += 1
        if conversation.now - began > 3600 * SECOND or not conversation.step(conversation.now + 60 * SECOND):
            raise WrongCargoError("the backlog does not go")
    if ki.arrived != requests:
        raise WrongCargoError("other records arrived than were sent")
    return (conversation.now - began) / SECOND


def _answer_to(body: bytes) -> bytes:
    """What the KI says to records that are all new, signed as it does."""
    verdicts = [
        RecordAnswer(Verdict.ACCEPTED, None, decode_record(each.record).match)
        for each in split_batch(body)
        if isinstance(each, Envelope)
    ]
    return sign_answer(encode_batch_answer(BatchAnswer(tuple(verdicts))), Request.RECORDS, body, SERVICE_SEED)


def _real(count: int, seed: int, *, under_way: int) -> float:
    backlog, table = _backlog(count), FakeTable()

    async def run(url: str) -> float:
        with Wire(baud=BAUD, seed=seed) as wire:
            gateway = Gateway(wire.gateway_end, BAUD, HttpLink(url))
            link = SerialLink(wire.table_end, BAUD)
            try:
                read_table_answer(await link.ask(Request.TABLE, table.introduction()))
                began = time.perf_counter()
                requests = list(_requests(backlog))
                room = asyncio.Semaphore(under_way)

                async def ask(request: Sequence[Envelope]) -> bytes:
                    async with room:
                        return await link.ask(Request.RECORDS, batch(request))

                answers = await asyncio.gather(*map(ask, requests))
                took = time.perf_counter() - began
            finally:
                await link.close()
                await gateway.close()
        taken = sum(
            each.verdict is Verdict.ACCEPTED
            for said, request in zip(answers, requests, strict=True)
            for each in read_batch_answer(said, len(request)).answers
        )
        if taken != count:
            raise WrongCargoError(f"the ledger has taken {taken} of {count} records")
        return took

    with tempfile.TemporaryDirectory(prefix="heek-bench-") as folder, RunningKi(Path(folder)) as ki:
        return asyncio.run(run(ki.url.rstrip("/")))


# CPU


def _cpu_per_frame(runs: int, frames: int) -> tuple[list[float], list[float]]:
    """Microseconds of this thread a frame: ours, and with pyserial's `read_until`, by turns."""
    ours, theirs = [], []
    for run in range(runs):
        coded = [
            Frame(16, 1, at % 65536, 0, os.urandom(FRAME_BYTES - 19)).encode()
            for at in range(run, run + frames)
        ]
        ours.append(_read_all(coded, _with_loop))
        theirs.append(_read_all(coded[: max(frames // 10, 1)], _with_read_until))
    return ours, theirs


def _read_all(coded: Sequence[bytes], read: Callable[[str, int], int]) -> float:
    with _fed(b"".join(coded)) as name:
        began = time.thread_time_ns()
        count = read(name, len(coded))
        took = (time.thread_time_ns() - began) / 1000 / len(coded)
    if count != len(coded):
        raise WrongCargoError(f"{count} of {len(coded)} frames were read")
    return took


@contextmanager
def _fed(data: bytes) -> Iterator[str]:
    """A port into which somebody writes as fast as it takes it, from when it is opened on."""
    master, port = os.openpty()
    tty.setraw(port)
    started = threading.Event()

    def feed() -> None:
        started.wait(5)
        at = 0
        while at < len(data):
            at += os.write(master, data[at : at + 4096])

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    try:
        # The port is flushed when it is opened; what is fed earlier would be lost.
        threading.Timer(0.1, started.set).start()
        yield os.ttyname(port)
    finally:
        started.set()
        feeder.join(10)
        os.close(port)
        os.close(master)


def _with_loop(name: str, frames: int) -> int:
    """As the serial line does it: the loop watches, one read takes all there is."""

    async def run() -> int:
        loop = asyncio.get_running_loop()
        port: SerialPort = open_port(name, BAUD)
        decoder = FrameDecoder()
        done = loop.create_future()

        def readable() -> None:
            decoder.feed(port.read() or b"")
            if decoder.counters.frames >= frames and not done.done():
                done.set_result(None)

        loop.add_reader(port.fileno(), readable)
        try:
            await asyncio.wait_for(done, 30)
        finally:
            loop.remove_reader(port.fileno())
            port.close()
        return decoder.counters.frames

    return asyncio.run(run())


def _with_read_until(name: str, frames: int) -> int:
    """As most programs do it."""
    from serial import Serial

    serial: Any = Serial(name, BAUD, timeout=30)
    decoder = FrameDecoder()
    try:
        while decoder.counters.frames < frames:
            decoder.feed(serial.read_until(b"\0"))
    finally:
        serial.close()
    return decoder.counters.frames
