"""Trouble that people met on serial lines, each kind on real pseudo terminals: named, survived, healed."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heek.errors import LinkError
from heek.ki import serial_line
from heek.ki.delivery import MessageArrived
from heek.ki.exchange import HELLO, Exchange
from heek.ki.framing import Frame, FrameDecoder
from heek.ki.gateway import Gateway
from heek.ki.link import Link, LinkStatus, Request
from heek.ki.serial_link import SerialLink
from heek.ki.serial_port import SerialPort, open_port
from heek.simulator.wire import Wire
from tests.ki.lines import BAUD, a_terminal, answer, far_end, no_hang, stuffed_terminal, until


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    with no_hang():
        yield


def echo(message: MessageArrived) -> bytes:
    """An answer that tells what was asked."""
    return answer(body=message.payload)


class Nobody(Link):
    """A service that is never asked."""

    async def ask(self, request: Request, _body: bytes) -> bytes:
        raise AssertionError(f"{request} was asked")

    def status(self) -> LinkStatus:
        return LinkStatus(True, "up")

    async def close(self) -> None:
        """Nothing to let go of."""


# One name for two adapters


@pytest.mark.fault("F058")
def test_the_name_leads_to_another_device_first(tmp_path: Path) -> None:
    """A device of another protocol under our name is quoted and told nothing; the right one is found."""

    async def run() -> None:
        name = tmp_path / "usb-Prolific_USB-Serial-if00-port0"
        heard = bytearray()
        with a_terminal() as (master, port), Wire() as wire:
            name.symlink_to(port)
            link = SerialLink(str(name), BAUD)
            loop = asyncio.get_running_loop()

            def gps() -> None:
                heard.extend(os.read(master, 4096))
                os.write(master, b"$GPGGA,123519,4807.038,N,01131.000,E,1,08\r\n")

            loop.add_reader(master, gps)
            with pytest.raises(LinkError):
                await link.ask(Request.RECORDS, b"a result")
            await until(lambda: "something else talks on the line" in link.status().text)
            assert "“$GPGGA,123519,4807.038,N,01131.000,E,1,0”" in link.status().text
            loop.remove_reader(master)
            assert {frame.type for frame in FrameDecoder().feed(bytes(heard))} == {HELLO}
            name.unlink()
            name.symlink_to(wire.gateway_end)
            async with far_end(wire.table_end, echo):
                # The old port must go for the name to be looked up anew, as an unplugged adapter does.
                link._line._lose("unplugged")
                assert await _ask_until_answered(link, b"a result") == answer(body=b"a result")
            await link.close()

    asyncio.run(run())


@pytest.mark.fault("F058")
def test_two_tables_on_one_cable(caplog: pytest.LogCaptureFixture) -> None:
    """Where the other end is a table too, both say so with its name, once, and send no result."""

    async def run() -> None:
        with Wire() as wire:
            one = SerialLink(wire.table_end, BAUD, name="Table 1")
            other = SerialLink(wire.gateway_end, BAUD, name="Tisch 2")
            await until(lambda: "wrong end" in one.status().text and "wrong end" in other.status().text)
            assert one.status().text.startswith(
                "the wrong end is on this line: a table (“Tisch 2”) instead of the KI's end; see which"
            )
            assert "a table (“Table 1”)" in other.status().text
            assert "/dev/serial/by-path" in one.status().text
            with pytest.raises(LinkError, match="the wrong end is on this line"):
                await one.ask(Request.RECORDS, b"a result")
            await other.close()
            # The right end in its place is welcome at once.
            gateway = Gateway(wire.gateway_end, BAUD, Nobody())
            await until(lambda: one.status().up)
            await one.close()
            await gateway.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert sum("Tisch 2" in each.getMessage() for each in caplog.records) == 1


def test_a_gateway_on_the_cable_of_a_gateway() -> None:
    """Two KI's ends on one cable name each other too."""

    async def run() -> None:
        with Wire() as wire:
            gateways = [Gateway(end, BAUD, Nobody()) for end in (wire.table_end, wire.gateway_end)]
            await until(lambda: all("a KI's end" in each.status().text for each in gateways))
            await asyncio.gather(*(each.close() for each in gateways))

    asyncio.run(run())


async def _ask_until_answered(link: SerialLink, body: bytes) -> bytes:
    deadline = time.monotonic() + 30
    while True:
        try:
            return await link.ask(Request.RECORDS, body)
        except LinkError:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)


# The cable is pulled


@pytest.mark.fault("F059")
@pytest.mark.parametrize("at", [0, 1, 2, 5])
def test_the_device_vanishes_in_mid_write(tmp_path: Path, at: int) -> None:
    """Pulled while a long question is being written, the link says so once and goes on with the next port."""

    async def run() -> None:
        name = tmp_path / "adapter"
        with Wire(baud=BAUD) as wire, Wire() as other:
            name.symlink_to(wire.table_end)
            async with far_end(wire.gateway_end) as far, far_end(other.gateway_end, echo):
                link = SerialLink(str(name), BAUD)
                await until(lambda: link.status().up)
                question = asyncio.ensure_future(link.ask(Request.RECORDS, bytes(60_000)))
                frames = far.line.status().counters["frames"]
                await until(lambda: far.line.status().counters["frames"] >= frames + at)
                name.unlink()
                name.symlink_to(other.table_end)
                wire.close()
                with pytest.raises(LinkError, match="broke before the answer came"):
                    await question
                assert await _ask_until_answered(link, b"again") == answer(body=b"again")
                await link.close()

    asyncio.run(run())


@pytest.mark.fault("F059")
@pytest.mark.parametrize("method", ["read", "write"])
def test_every_error_of_a_vanished_port_is_the_same_outage(
    method: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever call meets the loss first, the port is put away, told of in one line, and opened anew."""
    real = getattr(SerialPort, method)
    gone = threading.Event()

    def vanishing(port: SerialPort, *more: bytes) -> object:
        if gone.is_set():
            gone.clear()
            raise OSError(5, "Input/output error")
        return real(port, *more)

    async def run() -> None:
        monkeypatch.setattr(SerialPort, method, vanishing)
        with Wire() as wire:
            async with far_end(wire.gateway_end, echo):
                link = SerialLink(wire.table_end, BAUD)
                await until(lambda: link.status().up)
                gone.set()
                assert await _ask_until_answered(link, b"?") == answer(body=b"?")
                await link.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    ours = [each.getMessage() for each in caplog.records if "/dev/pts" in each.getMessage()]
    assert sum("went away" in each for each in ours) == 1


@pytest.mark.fault("F059", "F061")
@pytest.mark.parametrize("what", ["close", "open"])
def test_a_driver_that_never_comes_back(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that hangs in closing or in opening holds up neither the loop nor the end of the link."""
    hangs = threading.Event()

    def hang(*_: object) -> None:
        hangs.wait(20)
        if what == "open":
            raise LinkError("it has given up")

    async def run() -> None:
        with Wire() as wire:
            if what == "open":
                monkeypatch.setattr(serial_line, "open_port", hang)
            link = SerialLink(wire.table_end, BAUD)
            if what == "close":
                await until(lambda: link.status().text.startswith("calling"))
                monkeypatch.setattr(SerialPort, "close", hang)
                link._line._lose("unplugged")
            longest, began = 0.0, time.monotonic()
            while time.monotonic() - began < 0.5:
                before = time.monotonic()
                await asyncio.sleep(0.005)
                longest = max(longest, time.monotonic() - before)
            assert longest < 0.4, "the loop was held up"
            with pytest.raises(LinkError):
                await asyncio.wait_for(link.ask(Request.RECORDS, b"?"), 10)
            began = time.monotonic()
            await link.close()
            assert time.monotonic() - began < 5
            hangs.set()

    asyncio.run(run())


# Writes


@pytest.mark.fault("F062")
def test_a_full_port_takes_nothing_at_once() -> None:
    """A hundred writes to a port that is full come back at once and say that they wrote nothing."""
    with stuffed_terminal() as name:
        port = open_port(name, BAUD)
        try:
            # Opening has thrown out what was there: fill it again.
            while port.write(bytes(4096)):
                pass
            time.sleep(0.05)
            while port.write(bytes(4096)):
                pass
            assert [port.write(bytes(4096)) for _ in range(100)] == [0] * 100
        finally:
            port.close()


@pytest.mark.fault("F061")
def test_a_gateway_whose_port_takes_nothing_ends_when_it_is_told_to() -> None:
    """SIGTERM ends the process within its time though a port of it is full and nobody reads there."""
    with stuffed_terminal() as port:
        process = subprocess.Popen(
            [sys.executable, "-m", "heek", "ki", "serial-gateway", "--port", port], stderr=subprocess.PIPE
        )
        assert process.stderr is not None
        assert b"is ready" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        _, err = process.communicate(timeout=15)
        assert process.returncode == 0
        assert time.monotonic() - began < 10
        assert b"Traceback" not in err


# What else talks


@pytest.mark.fault("F064")
def test_a_console_speaks_in_the_middle_of_frames() -> None:
    """A login prompt and a kernel's last words within our frames cost time, and no byte of a question."""

    async def run() -> None:
        dice = random.Random(3)
        said = (
            b"\r\nraspberrypi login: ",
            b"[  12.345678] Kernel panic - not syncing: Attempted to kill init!\r\n",
        )
        with Wire(baud=BAUD) as wire:
            async with far_end(wire.gateway_end, echo) as far:
                link = SerialLink(wire.table_end, BAUD)
                await until(lambda: link.status().up)
                bodies = [dice.randbytes(6000) for _ in range(3)]
                for body in bodies:
                    question = asyncio.ensure_future(link.ask(Request.RECORDS, body))
                    for _ in range(6):
                        await asyncio.sleep(0.04)
                        wire.say(dice.choice(said), to_table=dice.random() < 0.5)
                    assert await question == answer(body=body)
                assert [message.payload for message in far.messages] == bodies
                counted = [end.status().counters["invalid_bytes"] for end in (link, far.line)]
                assert sum(counted) > 100
                await link.close()

    asyncio.run(run())


def test_a_wrong_baud_rate_is_told_as_garbage() -> None:
    """Bytes of which none is a word and none a frame are told as another rate, not as a console."""

    async def run() -> None:
        dice = random.Random(1)
        with a_terminal() as (master, port):
            link = SerialLink(port, BAUD)
            await until(lambda: link.status().text.startswith("calling"))
            loop = asyncio.get_running_loop()
            # At another rate each frame comes as some bytes of another kind.
            loop.add_reader(master, lambda: (os.read(master, 4096), os.write(master, dice.randbytes(20))))
            await until(lambda: "only garbage comes, no frame" in link.status().text)
            assert "see that both ends have 115200 baud" in link.status().text
            loop.remove_reader(master)
            await link.close()

    asyncio.run(run())


def test_it_is_logged_once_though_what_is_said_changes(caplog: pytest.LogCaptureFixture) -> None:
    """A console that says something else each second is one line in the log."""

    async def run() -> None:
        with a_terminal() as (master, port):
            link = SerialLink(port, BAUD)
            numbers = iter(range(10_000))
            await until(lambda: link.status().text.startswith("calling"))
            loop = asyncio.get_running_loop()
            loop.add_reader(
                master, lambda: (os.read(master, 4096), os.write(master, b"uptime %d s\r\n" % next(numbers)))
            )
            await until(lambda: "something else talks" in link.status().text)
            first = link.status().text
            await until(lambda: link.status().text != first)
            loop.remove_reader(master)
            await link.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert sum("something else talks" in each.getMessage() for each in caplog.records) == 1


@pytest.mark.fault("F065")
def test_sending_works_and_receiving_does_not() -> None:
    """On a line of one direction the deaf end says that nothing comes, the other that it is not heard."""

    async def run() -> None:
        with a_terminal() as (deaf, deaf_port), a_terminal() as (heard, heard_port):
            loop = asyncio.get_running_loop()
            loop.add_reader(deaf, lambda: os.write(heard, os.read(deaf, 4096)))
            loop.add_reader(heard, lambda: os.read(heard, 4096))
            table = SerialLink(deaf_port, BAUD)
            gateway = Gateway(heard_port, BAUD, Nobody())
            await until(lambda: "nothing at all comes in" in table.status().text)
            await until(lambda: "does not hear us" in gateway.status().text)
            for master in (deaf, heard):
                loop.remove_reader(master)
            await table.close()
            await gateway.close()

    asyncio.run(run())


def test_versions_that_do_not_fit_are_told() -> None:
    """A peer of another version is told by its numbers, with what to do."""

    async def run() -> None:
        with a_terminal() as (master, port):
            link = SerialLink(port, BAUD)
            await until(lambda: link.status().text.startswith("calling"))
            os.write(master, Frame(HELLO, payload=struct.pack("<BBII", 2, 3, 77, 0)).encode())
            await until(lambda: "speaks versions 2 to 3" in link.status().text)
            assert "this one 1 to 1; update the older of the two programs" in link.status().text
            await link.close()

    asyncio.run(run())


_TELLS = """
import asyncio, os, sys
import grp, pwd, serial, termios
from heek.ki.serial_link import SerialLink

async def run(name):
    link = SerialLink(name, 115200)
    told = ""
    while True:
        if link.status().text != told:
            told = link.status().text
            print(told, flush=True)
        await asyncio.sleep(0.02)

if os.geteuid() == 0:
    os.setgroups([])
    os.setuid(65534)
asyncio.run(run(sys.argv[1]))
"""
"""Says how the link stands, as a user who is not root: root may open everything."""


@pytest.mark.fault("F064")
def test_the_right_to_the_port_is_lost_while_it_is_open() -> None:
    """When a login hangs the port up and takes its rights away, that is told as such, with the console."""
    with tempfile.TemporaryDirectory() as folder, a_terminal() as (_, taken):
        Path(folder).chmod(0o755)
        name = Path(folder) / "serial0"
        master, port = os.openpty()
        name.symlink_to(os.ttyname(port))
        Path(os.ttyname(port)).chmod(0o666)
        Path(taken).chmod(0o600 if os.geteuid() == 0 else 0)
        process = subprocess.Popen(
            [sys.executable, "-c", _TELLS, str(name)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        try:
            _until_told(process.stdout.readline, "calling the KI's end")
            name.unlink()
            name.symlink_to(taken)
            os.close(port)
            os.close(master)
            told = _until_told(process.stdout.readline, "no permission for")
            assert any("went away" in each for each in told)
            assert "disable the login console on the port" in told[-1]
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def _until_told(line: Callable[[], str], words: str) -> list[str]:
    told: list[str] = []
    while not told or words not in told[-1]:
        said = line()
        assert said, f"it has ended without {words!r}: {told}"
        told.append(said)
    return told


# Opening resets the peer


@pytest.mark.fault("F068")
def test_a_peer_that_resets_when_its_port_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deaf for 2.5 s, then a banner, then there: nothing is delivered before, and the port is opened once."""
    opened: list[str] = []

    def count(name: str, baud: int) -> SerialPort:
        opened.append(name)
        return open_port(name, baud)

    async def run() -> None:
        with a_terminal() as (master, port):
            monkeypatch.setattr(serial_line, "open_port", count)
            link = SerialLink(port, BAUD)
            await until(lambda: opened)
            loop = asyncio.get_running_loop()
            boots_until = loop.time() + 2.5
            peer = Exchange(baud=BAUD, random_bytes=os.urandom)
            asked: list[bytes] = []

            def hear() -> None:
                data = os.read(master, 65_536)
                now = time.monotonic_ns()
                if loop.time() < boots_until:
                    return
                if not asked and peer.state.value == "shut":
                    os.write(master, b"\r\nets Jul 29 2019 12:21:46\r\nrst:0x1 (POWERON_RESET)\r\n")
                    peer.connect(now)
                for each in peer.receive(data, now):
                    if isinstance(each, MessageArrived):
                        asked.append(each.payload)
                        peer.send(32, answer(body=each.payload))
                while said := peer.to_write(now):
                    os.write(master, said)

            loop.add_reader(master, hear)
            for at in range(5):
                body = b"result %d" % at
                assert await _ask_until_answered(link, body) == answer(body=body)
                if at == 0:
                    assert loop.time() >= boots_until
            assert asked == [b"result %d" % at for at in range(5)]
            assert len(opened) == 1
            loop.remove_reader(master)
            await link.close()

    asyncio.run(run())
