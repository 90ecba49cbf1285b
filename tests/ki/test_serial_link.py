"""The link on real pseudo terminals: it asks and is answered, survives its port, and holds up nobody."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from heek.clock import Instant, RealClock
from heek.errors import LinkError, LinkTooSlow
from heek.ki.delivery import MOST_MESSAGE, MessageArrived
from heek.ki.framing import FrameDecoder
from heek.ki.link import Request
from heek.ki.serial_link import SerialLink
from heek.ki.serial_port import advice_on_name, open_port
from heek.simulator.wire import Wire
from tests.ki.lines import BAUD, a_terminal, answer, far_end, no_hang, stuff, until


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    with no_hang():
        yield


@asynccontextmanager
async def a_link(port: str, **more: object) -> AsyncIterator[SerialLink]:
    """A link that is put away afterwards."""
    link = SerialLink(port, BAUD, **more)
    try:
        yield link
    finally:
        await link.close()


def echo(message: MessageArrived) -> bytes:
    """An answer that tells what was asked."""
    return answer(type=message.type, body=message.payload)


@pytest.mark.parametrize("request_", list(Request), ids=lambda each: each.name)
@pytest.mark.parametrize("size", [0, 100, 20_000])
def test_a_question_is_answered(request_: Request, size: int) -> None:
    """Each kind of question goes as its frame type, whole, and its answer comes back."""

    async def run() -> None:
        body = os.urandom(size)
        with Wire() as wire:
            async with far_end(wire.gateway_end, echo), a_link(wire.table_end) as link:
                assert await link.ask(request_, body) == answer(type=request_.frame_type, body=body)
                assert link.status().up
                assert link.status().text == "up"
                assert link.status().counters["sessions"] == 1

    asyncio.run(run())


def test_many_who_ask_at_once_get_each_their_own_answer() -> None:
    """Nine questions at once, of which two are under way at most, are answered each with its own."""

    async def run() -> None:
        with Wire(baud=BAUD) as wire:
            async with far_end(wire.gateway_end, echo) as far, a_link(wire.table_end) as link:
                answers = await asyncio.gather(*(link.ask(Request.RECORDS, b"%d" % at) for at in range(9)))
                assert far.sessions == 1
        assert answers == [answer(type=16, body=b"%d" % at) for at in range(9)]

    asyncio.run(run())


def test_the_next_question_is_on_the_wire_while_the_first_waits() -> None:
    """Two are under way and no more, and the answers belong to them in the order in which they were asked."""

    async def run() -> None:
        with Wire() as wire:
            async with far_end(wire.gateway_end) as far, a_link(wire.table_end) as link:
                asked = [asyncio.ensure_future(link.ask(Request.RECORDS, b"%d" % at)) for at in range(3)]
                await until(lambda: len(far.messages) == 2)
                await asyncio.sleep(0.1)
                assert [message.payload for message in far.messages] == [b"0", b"1"]
                far.line.send(32, answer(to="0"))
                await until(lambda: len(far.messages) == 3)
                far.line.send(32, answer(to="1"))
                far.line.send(32, answer(to="2"))
                assert await asyncio.gather(*asked) == [answer(to=str(at)) for at in range(3)]

    asyncio.run(run())


@pytest.mark.parametrize("given_up", [0, 1])
def test_who_asked_beside_one_that_is_given_up(given_up: int) -> None:
    """When one of two questions is given up the other one breaks, and is answered when it is asked again."""

    async def run() -> None:
        with Wire() as wire:
            async with far_end(wire.gateway_end) as far, a_link(wire.table_end) as link:
                asked = [asyncio.ensure_future(link.ask(Request.RECORDS, b"%d" % at)) for at in range(2)]
                await until(lambda: len(far.messages) == 2)
                asked[given_up].cancel()
                with pytest.raises(LinkError, match="a question was given up"):
                    await asked[1 - given_up]
                # Too late: they belong to a session that is over.
                far.line.send(32, answer(to="nobody"))
                again = asyncio.ensure_future(link.ask(Request.RECORDS, b"again"))
                await until(lambda: far.messages[-1].payload == b"again")
                far.line.send(32, answer(to="again"))
                assert await again == answer(to="again")
                await asyncio.gather(*asked, return_exceptions=True)

    asyncio.run(run())


def test_what_is_not_the_ki() -> None:
    """An answer that does not say that it is the KI's is none, and the line is good for the next one."""

    async def run() -> None:
        said = [b"<html>Log in</html>", answer(fine=1)]
        with Wire() as wire:
            async with (
                far_end(wire.gateway_end, lambda _: said.pop(0)) as far,
                a_link(wire.table_end) as link,
            ):
                with pytest.raises(LinkError, match="is not the KI"):
                    await link.ask(Request.RECORDS, b"")
                assert await link.ask(Request.RECORDS, b"") == answer(fine=1)
                assert far.sessions == 1

    asyncio.run(run())


def test_an_answer_that_comes_too_late_is_nobodys() -> None:
    """After the deadline the session is given up, so that a late answer is not taken for the next one."""

    async def run() -> None:
        with Wire() as wire:
            async with far_end(wire.gateway_end) as far, a_link(wire.table_end, deadline_s=0.3) as link:
                with pytest.raises(LinkTooSlow, match="gave no answer within"):
                    await link.ask(Request.RECORDS, b"first")
                # Whether or not the far end has heard already that it speaks to nobody.
                far.line.send(32, answer(to="first"))
                await until(lambda: far.sessions == 2 and link.status().up)
                question = asyncio.ensure_future(link.ask(Request.RECORDS, b"second"))
                await until(lambda: far.messages[-1].payload == b"second")
                far.line.send(32, answer(to="second"))
                assert await question == answer(to="second")

    asyncio.run(run())


def test_a_question_that_is_cancelled() -> None:
    """Who stops waiting leaves nothing behind that the next question could stumble over."""

    async def run() -> None:
        with Wire() as wire:
            async with far_end(wire.gateway_end) as far, a_link(wire.table_end) as link:
                question = asyncio.ensure_future(link.ask(Request.RECORDS, b"first"))
                await until(lambda: far.messages)
                question.cancel()
                await asyncio.gather(question, return_exceptions=True)
                # The next one may be asked at once: it waits for the new session.
                question = asyncio.ensure_future(link.ask(Request.RECORDS, b"second"))
                await until(lambda: far.messages[-1].payload == b"second")
                far.line.send(32, answer(to="second"))
                assert await question == answer(to="second")

    asyncio.run(run())


def test_an_answer_to_no_question_is_ignored() -> None:
    """An answer that nobody asked for changes nothing."""

    async def run() -> None:
        with Wire() as wire:
            async with far_end(wire.gateway_end, echo) as far, a_link(wire.table_end) as link:
                await until(lambda: link.status().up and far.line.is_open)
                far.line.send(32, answer(to="nobody"))
                far.line.send(40, b"of a type that is not known")
                assert await link.ask(Request.TABLE, b"?") == answer(type=17, body=b"?")

    asyncio.run(run())


def test_a_body_that_is_too_large() -> None:
    """What no line of ours carries is refused before anything of it is sent."""

    async def run() -> None:
        with Wire() as wire:
            async with a_link(wire.table_end) as link:
                with pytest.raises(LinkError, match="70001 bytes are too many"):
                    await link.ask(Request.RECORDS, bytes(MOST_MESSAGE + 1))

    asyncio.run(run())


def test_nobody_at_the_other_end(caplog: pytest.LogCaptureFixture) -> None:
    """A line on which nobody answers is told as that, once, in time, with what may be the reason."""

    async def run() -> None:
        with a_terminal() as (_, port):
            async with a_link(port) as link:
                began = time.monotonic()
                with pytest.raises(LinkError, match="calling the KI's end"):
                    await link.ask(Request.RECORDS, b"")
                assert time.monotonic() - began < 10
                await until(lambda: "nothing at all comes in" in link.status().text)
                assert not link.status().up
                # It goes on calling, and says no more about it.
                await until(lambda: link.status().counters["hellos"] >= 8)

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    assert len(caplog.records) == 1


@pytest.mark.fault("F064")
def test_a_login_console_on_the_line(caplog: pytest.LogCaptureFixture) -> None:
    """A console that talks and echoes is named, once, and a KI's end that comes after it is found."""

    def told(words: str) -> int:
        return sum(words in each.getMessage() for each in caplog.records)

    async def run() -> None:
        with Wire() as wire:
            async with a_link(wire.table_end) as link:
                # What came before the port was opened is thrown away.
                await until(lambda: link.status().text == "calling the KI's end")
                for _ in range(3):
                    wire.say(b"\r\nraspberrypi login: ", to_table=True)
                await until(lambda: "disable the login console" in link.status().text)
                await until(lambda: told("disable the login console") == 1)
                async with far_end(wire.gateway_end, echo) as far:
                    await until(lambda: link.status().up)
                    # A new session without an outage is no news.
                    far.line.restart("for a change")
                    await until(lambda: far.sessions == 2 and link.status().counters["sessions"] == 2)
                    wire.say(b"\r\n[  12.3] Kernel panic - not syncing\r\n" * 50, to_table=True)
                    assert await link.ask(Request.RECORDS, b"?") == answer(type=16, body=b"?")
                    assert link.status().counters["invalid_bytes"] > 60

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    assert (told("disable the login console"), told("answers again")) == (1, 1)


def test_a_line_that_sends_back_what_we_say() -> None:
    """A bridge between the two data lines, or a console's echo, is named as that, and is no KI."""

    async def run() -> None:
        with a_terminal() as (master, port):
            async with a_link(port) as link:
                loop = asyncio.get_running_loop()
                loop.add_reader(master, lambda: os.write(master, os.read(master, 4096)))
                await until(lambda: "sends back what we say" in link.status().text)
                loop.remove_reader(master)

    asyncio.run(run())


class HurriedClock:
    """A clock of which ten seconds pass in each."""

    def __init__(self) -> None:
        self._clock = RealClock()
        self.origin_ns = self._clock.origin_ns

    def now(self) -> Instant:
        return 10 * self._clock.now()

    def wall_s(self) -> float:
        return self._clock.wall_s()


def test_what_is_over_is_no_longer_told_as_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    """An echo that ends, then a console that talks and falls silent: each is told while it is there, once."""

    def told(words: str) -> int:
        return sum(words in each.getMessage() for each in caplog.records)

    async def run() -> None:
        with a_terminal() as (master, port):
            async with a_link(port, clock=HurriedClock()) as link:
                loop = asyncio.get_running_loop()
                loop.add_reader(master, lambda: os.write(master, os.read(master, 4096)))
                await until(lambda: "sends back what we say" in link.status().text)
                loop.remove_reader(master)
                loop.add_reader(master, lambda: os.read(master, 4096))
                await until(lambda: "nothing at all comes in" in link.status().text)
                os.write(master, b"\r\nraspberrypi login: ")
                await until(lambda: "something else talks on the line" in link.status().text)
                await until(lambda: "nothing at all comes in" in link.status().text)
                loop.remove_reader(master)

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    words = ("sends back what we say", "nothing at all comes in", "something else talks on the line")
    assert [told(each) for each in words] == [1, 1, 1]


def test_nothing_but_frames_is_written() -> None:
    """From opening to closing, with trouble in between, each byte on the port belongs to a frame."""

    async def run() -> None:
        seen = bytearray()
        with a_terminal() as (master, port):
            loop = asyncio.get_running_loop()
            loop.add_reader(master, lambda: seen.extend(os.read(master, 4096)))
            async with a_link(port) as link:
                os.write(master, b"login: \x00\xff\x13")
                with pytest.raises(LinkError):
                    await link.ask(Request.RECORDS, b"")
            loop.remove_reader(master)
        decoder = FrameDecoder()
        frames = decoder.feed(bytes(seen))
        assert len(frames) >= 3
        assert {frame.type for frame in frames} == {1}
        assert (decoder.counters.invalid_bytes, decoder.held) == (0, 0)

    asyncio.run(run())


@pytest.mark.fault("F061")
def test_flow_control_bytes_are_bytes() -> None:
    """XOFF, interrupt and the like are carried as what they are, in both directions."""

    async def run() -> None:
        body = bytes(range(256)) * 4 + b"\x13" * 300 + b"\x03\x04\x1a\x1c\r\n" * 50
        with Wire() as wire:
            async with far_end(wire.gateway_end, echo) as far, a_link(wire.table_end) as link:
                assert await link.ask(Request.RECORDS, body) == answer(type=16, body=body)
                assert far.messages[0].payload == body

    asyncio.run(run())


# The port


@pytest.mark.fault("F065")
def test_a_port_that_is_not_there_yet(tmp_path: Path) -> None:
    """A missing port is named, asked for again, and used when it is there; no restart is needed."""

    async def run() -> None:
        name = tmp_path / "serial0"
        came_up: list[bool] = []
        with Wire() as wire:
            async with (
                a_link(str(name), on_up=lambda: came_up.append(True)) as link,
                far_end(wire.gateway_end, echo),
            ):
                await until(
                    lambda: link.status().text == f"port missing: {name}; plug it in, or give another name"
                )
                began = time.monotonic()
                with pytest.raises(LinkError, match="port missing"):
                    await link.ask(Request.RECORDS, b"")
                assert time.monotonic() - began < 1, "nobody need wait for a port that is not there"
                assert came_up == []
                name.symlink_to(wire.table_end)
                await until(lambda: link.status().up)
                assert came_up == [True]
                assert await link.ask(Request.RECORDS, b"?") == answer(type=16, body=b"?")

    asyncio.run(run())


@pytest.mark.fault("F059")
def test_a_port_that_goes_and_comes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """When the adapter is pulled the question fails at once, one line says so, and a new one is used."""
    name = tmp_path / "serial0"

    def told() -> int:
        return sum(f"port missing: {name} went away" in each.getMessage() for each in caplog.records)

    async def run() -> None:
        with Wire() as wire:
            name.symlink_to(wire.table_end)
            async with a_link(str(name)) as link, far_end(wire.gateway_end) as far:
                question = asyncio.ensure_future(link.ask(Request.RECORDS, b"first"))
                await until(lambda: far.messages)
                began = time.monotonic()
                wire.close()
                name.unlink()
                with pytest.raises(LinkError, match="broke before the answer came"):
                    await question
                assert time.monotonic() - began < 2
                assert "went away" in link.status().text
                await until(lambda: "plug it in, or give" in link.status().text)
                # The kernel gives the numbers of terminals out again: this one is no business of the old end.
                await far.line.close()
                with Wire() as other:
                    name.symlink_to(other.table_end)
                    async with far_end(other.gateway_end, echo):
                        await until(lambda: link.status().up)
                        assert await link.ask(Request.RECORDS, b"?") == answer(type=16, body=b"?")
                        assert told() == 1
                        other.close()
                        # Another outage, so another line.
                        await until(lambda: told() == 2)

    with caplog.at_level(logging.INFO):
        asyncio.run(run())


def test_a_second_opener_is_refused() -> None:
    """A port that one link has is refused to another, which says so, and gets it when it is free."""

    async def run() -> None:
        with Wire() as wire:
            async with far_end(wire.gateway_end, echo):
                async with a_link(wire.table_end) as first:
                    await until(lambda: first.status().up)
                    second = SerialLink(wire.table_end, BAUD)
                    await until(lambda: "is taken by another program" in second.status().text)
                    assert await first.ask(Request.RECORDS, b"?") == answer(type=16, body=b"?")
                await until(lambda: second.status().up)
                await second.close()

    asyncio.run(run())


@pytest.mark.fault("F061")
def test_a_peer_that_never_reads() -> None:
    """A port that takes nothing holds up neither loop nor exit; it is opened anew, and then works."""

    async def run() -> None:
        with a_terminal() as (master, port):
            # Somebody has filled it to the brim, and at the other end nobody reads.
            stuffing = os.open(port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
            stuffed = await stuff(stuffing)
            async with a_link(port) as link:
                ticks, began = 0, time.monotonic()
                longest = 0.0
                while "takes no bytes" not in link.status().text:
                    before = time.monotonic()
                    await asyncio.sleep(0.005)
                    longest = max(longest, time.monotonic() - before)
                    ticks += 1
                    assert time.monotonic() - began < 20
                assert ticks > 100
                assert longest < 2, "the loop was held up"
                # Putting it away has thrown out what waited, so there is room after it. Who reads before it
                # is open again reads what would have been thrown out.
                await until(lambda: "takes no bytes" not in link.status().text)
                seen = bytearray()
                asyncio.get_running_loop().add_reader(master, lambda: seen.extend(os.read(master, 4096)))
                decoder = FrameDecoder()
                await until(lambda: any(frame.type == 1 for frame in decoder.feed(bytes(seen))))
                assert seen.count(b"x") < stuffed / 2
                asyncio.get_running_loop().remove_reader(master)
            os.close(stuffing)

    asyncio.run(run())


def test_closing_ends_what_is_under_way() -> None:
    """A question that is under way when the link is closed ends with LinkError, and so does a later one."""

    async def run() -> None:
        with Wire() as wire:
            async with far_end(wire.gateway_end) as far:
                link = SerialLink(wire.table_end, BAUD)
                question = asyncio.ensure_future(link.ask(Request.RECORDS, b"?"))
                await until(lambda: far.messages)
                await link.close()
                with pytest.raises(LinkError):
                    await question
                with pytest.raises(LinkError, match="the link is closed"):
                    await link.ask(Request.RECORDS, b"?")
                assert not link.status().up
                await link.close()
                # The port is free: somebody else can have it at once.
                open_port(wire.table_end, BAUD).close()

    asyncio.run(run())


def test_closing_while_it_opens() -> None:
    """A link that is closed before its port is open leaves no port behind."""

    async def run() -> None:
        with Wire() as wire:
            for _ in range(20):
                link = SerialLink(wire.table_end, BAUD)
                await link.close()
                open_port(wire.table_end, BAUD).close()

    asyncio.run(run())


def test_what_is_no_serial_port(tmp_path: Path) -> None:
    """A file, a folder and a device of another kind are named as what they are not."""
    file = tmp_path / "file"
    file.touch()
    for name in (str(file), os.devnull):
        with pytest.raises(LinkError, match=re.escape(f"{name} is no serial port")):
            open_port(name, BAUD)
    with pytest.raises(LinkError, match="cannot be opened: Is a directory"):
        open_port(str(tmp_path), BAUD)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EACCES, "no permission for {}: add this user to the group dialout"),
        (errno.EBUSY, "{} is taken by another program"),
        (errno.ENODEV, "port missing: {}"),
        (errno.EMFILE, "{} cannot be opened: Too many open files"),
    ],
)
def test_trouble_is_told_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    """What the kernel has against opening the port is told in words, with what to do."""
    import serial

    name = str(tmp_path / "ttyS9")

    def refuse(_self: object) -> None:
        raise serial.SerialException(number, "as the kernel says it")

    monkeypatch.setattr(serial.Serial, "open", refuse)
    with pytest.raises(LinkError, match=re.escape(words.format(name))):
        open_port(name, BAUD)


def test_a_baud_rate_that_no_port_has() -> None:
    """A rate that cannot be set is told by its number."""
    with a_terminal() as (_, port), pytest.raises(LinkError, match="cannot be set to -5 baud"):
        open_port(port, -5)


@pytest.mark.fault("F058")
@pytest.mark.parametrize(
    ("name", "advised"),
    [
        ("/dev/ttyUSB0", True),
        ("/dev/ttyACM12", True),
        ("/dev/serial/by-id/usb-FTDI_x-if00-port0", False),
        ("/dev/serial0", False),
        ("/dev/ttyAMA0", False),
    ],
)
def test_names_that_change_are_warned_of(name: str, advised: bool) -> None:
    """A name that is dealt out in the order of plugging gets the advice to use one that stays."""
    advice = advice_on_name(name)
    assert (advice is not None) is advised
    assert advice is None or "/dev/serial/by-id" in advice


def test_the_warning_is_given_once(caplog: pytest.LogCaptureFixture) -> None:
    """A link on such a name warns when it is made, and not each time it tries the port."""

    async def run() -> None:
        async with a_link("/dev/ttyUSB987") as link:
            await until(lambda: "port missing" in link.status().text)

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    said = [each.getMessage() for each in caplog.records]
    assert sum("by-id" in each for each in said) == 1
    assert sum("port missing" in each for each in said) == 1
