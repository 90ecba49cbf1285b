"""From a table's link over a wire and the gateway to a real HTTP server, and back, through all trouble."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from heek.cli import main
from heek.errors import LinkError
from heek.ki.answers import Refused, read_batch_answer
from heek.ki.delivery import MORE, MOST_MESSAGE
from heek.ki.framing import Frame, FrameDecoder
from heek.ki.gateway import Gateway, ServiceNews
from heek.ki.http_link import HttpLink
from heek.ki.link import Request
from heek.ki.serial_link import SerialLink
from heek.simulator.wire import Wire
from tests.ki.lines import BAUD, answer, far_end, no_hang, stuffed_terminal, until


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    with no_hang():
        yield


@dataclass
class Service:
    """A small HTTP server that stands for the KI: what it was asked, and what it answers."""

    port: int
    asked: list[tuple[str, str, bytes]] = field(default_factory=list)
    """Path, content type, body."""
    came_via: list[str | None] = field(default_factory=list)
    """The `Via` header of each."""
    reply: Callable[[str, bytes], tuple[int, str, bytes]] = field(
        default=lambda path, body: (200, "application/cbor", answer(path=path, body=body))
    )
    go_on: threading.Event = field(default_factory=threading.Event)
    """No answer is given before this is set."""
    hold: bytes | None = None
    """The question that this is about; None: all of them."""

    def __post_init__(self) -> None:
        self.go_on.set()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"


def free_port() -> int:
    """A port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def a_service(port: int | None = None) -> Iterator[Service]:
    """The server, until the end of the block."""
    service = Service(0)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            service.asked.append((self.path, self.headers["Content-Type"], body))
            service.came_via.append(self.headers["Via"])
            if service.hold in (None, body):
                service.go_on.wait(20)
            status, kind, said = service.reply(self.path, body)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port or 0), Handler)
    service.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield service
    finally:
        service.go_on.set()
        server.shutdown()
        thread.join()
        server.server_close()


@asynccontextmanager
async def a_chain(wire: Wire, url: str) -> AsyncIterator[tuple[SerialLink, Gateway]]:
    """A table's link, the wire, and a gateway to the service at `url`."""
    gateway = Gateway(wire.gateway_end, BAUD, HttpLink(url))
    link = SerialLink(wire.table_end, BAUD)
    try:
        yield link, gateway
    finally:
        await link.close()
        await gateway.close()


@pytest.mark.parametrize("request_", list(Request), ids=lambda each: each.name)
def test_a_question_goes_all_the_way(request_: Request) -> None:
    """Each kind of question comes to the service at its path, as CBOR, and the answer back as it is."""

    async def run() -> None:
        with a_service() as service, Wire(baud=BAUD) as wire:
            async with a_chain(wire, service.url) as (link, gateway):
                assert await link.ask(request_, b"a body") == answer(path=request_.path, body=b"a body")
                assert service.asked == [(request_.path, "application/cbor", b"a body")]
                assert gateway.status().up

    asyncio.run(run())


def test_a_long_question_and_a_long_answer() -> None:
    """Twenty kilobytes go in many frames at the pace of the wire, and as many come back."""

    async def run() -> None:
        body = os.urandom(20_000)
        with a_service() as service, Wire(baud=BAUD) as wire:
            async with a_chain(wire, service.url) as (link, _):
                began = time.monotonic()
                assert await link.ask(Request.RECORDS, body) == answer(path="/v1/records", body=body)
                assert time.monotonic() - began > 2 * 20_000 * 10 / BAUD, "the wire has a pace"
                counters = link.status().counters
                assert counters["frames"] >= 40
                assert counters["round_trip_ms"] > 0

    asyncio.run(run())


def test_a_noisy_wire() -> None:
    """Where one byte in two thousand is changed, questions and answers come whole all the same."""

    async def run() -> None:
        with a_service() as service, Wire(noise=0.0005, seed=4) as wire:
            async with a_chain(wire, service.url) as (link, gateway):
                for at in range(6):
                    body = b"%d" % at + os.urandom(1500)
                    assert await link.ask(Request.RECORDS, body) == answer(path="/v1/records", body=body)
                # What is hit differs from run to run, with what the frames hold.
                assert sum(each.status().counters["crc_errors"] for each in (link, gateway)) > 0

    asyncio.run(run())


def test_the_service_is_down_and_comes_up(caplog: pytest.LogCaptureFixture) -> None:
    """Without a service the table is told so at once, by the gateway; when it is there, its answer comes."""

    async def run() -> None:
        port = free_port()
        with Wire() as wire:
            async with a_chain(wire, f"http://127.0.0.1:{port}") as (link, _):
                began = time.monotonic()
                for _ in range(3):
                    said = await link.ask(Request.RECORDS, b"")
                    with pytest.raises(Refused, match="nothing listens at") as refused:
                        read_batch_answer(said, 0)
                    assert (refused.value.code, refused.value.retry_s) == ("unavailable", 2)
                assert time.monotonic() - began < 3
                assert link.status().up
                with a_service(port):
                    assert await link.ask(Request.RECORDS, b"?") == answer(path="/v1/records", body=b"?")

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    said = [each.getMessage() for each in caplog.records]
    assert sum("nothing listens at" in each for each in said) == 1
    assert sum("the service answers again" in each for each in said) == 1


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ((200, "text/html", b"<html>Log in</html>"), "is not the KI"),
        ((200, "application/cbor", b"\xa0"), "is not the KI"),
        ((302, "text/html", b""), "is not the KI"),
        ((200, "application/cbor", b""), "is not the KI"),
    ],
)
def test_what_answers_is_not_the_ki(reply: tuple[int, str, bytes], words: str) -> None:
    """A login page that says 200 to everything is not taken for the service."""

    async def run() -> None:
        with a_service() as service, Wire() as wire:
            service.reply = lambda path, body: reply  # noqa: ARG005
            async with a_chain(wire, service.url) as (link, _):
                said = await link.ask(Request.RECORDS, b"")
                with pytest.raises(Refused, match=words) as refused:
                    read_batch_answer(said, 0)
                assert refused.value.code == "unavailable"

    asyncio.run(run())


def test_the_service_refuses() -> None:
    """A refusal of the service's own comes to the table as it is, whatever its status."""

    async def run() -> None:
        refusal = answer(error="unknown_table", text="introduce yourself")
        with a_service() as service, Wire() as wire:
            service.reply = lambda path, body: (403, "application/cbor", refusal)  # noqa: ARG005
            async with a_chain(wire, service.url) as (link, _):
                assert await link.ask(Request.RECORDS, b"") == refusal

    asyncio.run(run())


def test_an_answer_that_no_line_carries() -> None:
    """An answer of the service that is too long is told as that, and does not stop the line."""

    async def run() -> None:
        with a_service() as service, Wire() as wire:
            service.reply = lambda path, body: (200, "application/cbor", answer(x=bytes(80_000)))  # noqa: ARG005
            async with a_chain(wire, service.url) as (link, _):
                with pytest.raises(Refused, match="too long for a serial line"):
                    read_batch_answer(await link.ask(Request.RECORDS, b""), 0)
                service.reply = lambda path, body: (200, "application/cbor", answer())  # noqa: ARG005
                assert await link.ask(Request.RECORDS, b"") == answer()

    asyncio.run(run())


def test_the_wire_is_cut_and_joined() -> None:
    """A question on a wire that is cut ends with LinkError; when it is joined, the link comes up again."""

    async def run() -> None:
        with a_service() as service, Wire() as wire:
            async with a_chain(wire, service.url) as (link, gateway):
                assert await link.ask(Request.RECORDS, b"1") == answer(path="/v1/records", body=b"1")
                wire.cut()
                with pytest.raises(LinkError, match="broke before the answer came"):
                    await link.ask(Request.RECORDS, b"2")
                assert not link.status().up
                await until(lambda: not gateway.status().up)
                wire.join()
                await until(lambda: link.status().up and gateway.status().up)
                assert await link.ask(Request.RECORDS, b"3") == answer(path="/v1/records", body=b"3")
                assert [body for _, _, body in service.asked] == [b"1", b"3"]

    asyncio.run(run())


def test_the_table_starts_again_while_the_service_thinks() -> None:
    """The answer to what the old table asked never comes to the new one, which gets its own."""

    async def run() -> None:
        with a_service() as service, Wire() as wire:
            service.go_on.clear()
            gateway = Gateway(wire.gateway_end, BAUD, HttpLink(service.url))
            old = SerialLink(wire.table_end, BAUD)
            question = asyncio.ensure_future(old.ask(Request.PLAYER, b"old"))
            await until(lambda: service.asked)
            await old.close()
            with pytest.raises(LinkError):
                await question
            new = SerialLink(wire.table_end, BAUD)
            question = asyncio.ensure_future(new.ask(Request.RECORDS, b"new"))
            await until(lambda: new.status().up and new.status().counters["frames"] > 2)
            service.go_on.set()
            assert await question == answer(path="/v1/records", body=b"new")
            await new.close()
            await gateway.close()

    asyncio.run(run())


def test_a_service_that_hangs_takes_no_more_than_a_few() -> None:
    """While the service answers nothing, tables that start again and again pile nothing up behind it."""

    async def run() -> None:
        with a_service() as service, Wire() as wire:
            service.go_on.clear()
            gateway = Gateway(wire.gateway_end, BAUD, HttpLink(service.url))
            for at in range(3):
                async with far_end(wire.table_end) as table:
                    await until(lambda table=table: table.line.is_open)
                    table.line.send(16, b"%d" % at)
                    await until(lambda at=at: len(gateway._given_up) == at and bool(gateway._asked))
            async with far_end(wire.table_end) as table:
                await until(lambda: table.line.is_open and len(gateway._given_up) == 3)
                table.line.send(16, b"one more")
                await until(lambda: table.messages)
                with pytest.raises(Refused) as refused:
                    read_batch_answer(table.messages[0].payload, 0)
                assert refused.value.code == "busy"
                service.go_on.set()
                await until(lambda: not gateway._given_up)
                table.line.send(16, b"and another")
                await until(lambda: len(table.messages) == 2)
                assert table.messages[1].payload == answer(path="/v1/records", body=b"and another")
            await gateway.close()

    asyncio.run(run())


def test_a_table_that_asks_three_times_at_once() -> None:
    """A third question before the first answer ends the session: no table of ours does that."""

    async def run() -> None:
        with a_service() as service, Wire() as wire:
            service.go_on.clear()
            gateway = Gateway(wire.gateway_end, BAUD, HttpLink(service.url))
            async with far_end(wire.table_end) as table:
                await until(lambda: table.line.is_open)
                for body in (b"first", b"second", b"third"):
                    table.line.send(16, body)
                await until(lambda: table.endings)
                service.go_on.set()
                await until(lambda: table.line.is_open and not gateway._given_up)
                assert table.messages == []
                table.line.send(16, b"fourth")
                await until(lambda: table.messages)
                assert table.messages[0].payload == answer(path="/v1/records", body=b"fourth")
            await gateway.close()

    asyncio.run(run())


def test_two_questions_are_answered_in_their_order() -> None:
    """While the service thinks about one question the next comes over, and answers keep the order."""

    async def run() -> None:
        with a_service() as service, Wire() as wire:
            service.go_on.clear()
            gateway = Gateway(wire.gateway_end, BAUD, HttpLink(service.url))
            async with far_end(wire.table_end) as table:
                await until(lambda: table.line.is_open)
                table.line.send(16, b"a long thought")
                # What the gateway itself refuses has to wait for its turn too.
                table.line.send(99, b"what is that?")
                await until(lambda: len(gateway._asked) == 2)
                assert table.messages == []
                service.go_on.set()
                await until(lambda: len(table.messages) == 2)
                assert table.messages[0].payload == answer(path="/v1/records", body=b"a long thought")
                with pytest.raises(Refused, match="type 99"):
                    read_batch_answer(table.messages[1].payload, 0)
            await gateway.close()

    asyncio.run(run())


def test_questions_that_are_none() -> None:
    """A type that nobody knows and a question that is too long are answered with what is wrong."""

    async def run() -> None:
        with a_service() as service, Wire() as wire:
            gateway = Gateway(wire.gateway_end, BAUD, HttpLink(service.url))
            async with far_end(wire.table_end) as table:
                await until(lambda: table.line.is_open)
                table.line.send(99, b"what is that?")
                await until(lambda: len(table.messages) == 1)
                # No end of ours sends so much, so the frames are made by hand.
                delivery = table.line._exchange._session.delivery
                too_long = 1 + MOST_MESSAGE // 1024
                for at in range(too_long + 1):
                    kind = 16 if at == too_long else 16 + MORE
                    delivery._seq += 1
                    frame = Frame(kind, delivery._out_id, delivery._seq, delivery._received, bytes(1024), 1)
                    table.line._write(frame.encode())
                    sent = gateway._line._exchange.counters.frames
                    await until(lambda sent=sent: gateway._line._exchange.counters.frames > sent, within_s=5)
                await until(lambda: len(table.messages) == 2)
                codes = []
                for message in table.messages:
                    with pytest.raises(Refused) as refused:
                        read_batch_answer(message.payload, 0)
                    codes.append(refused.value.code)
                assert codes == ["malformed", "too_large"]
                assert service.asked == []
            await gateway.close()

    asyncio.run(run())


# The command


@pytest.mark.parametrize(("typed", "via"), [([], "1.1 heek-gateway"), (["--first-sight"], None)])
def test_what_is_carried_comes_from_elsewhere(typed: list[str], via: str | None) -> None:
    """The KI hears by `Via` that a table is not on its machine, unless the operator wants it unheard."""

    async def run() -> None:
        with a_service() as service, Wire() as wire, a_command(wire.gateway_end, service.url, *typed):
            link = SerialLink(wire.table_end, BAUD)
            await link.ask(Request.RECORDS, b"?")
            await link.close()
            assert service.came_via == [via]

    asyncio.run(run())


def test_many_tables_on_one_machine() -> None:
    """Eight lines of one process carry their questions at the same time, each its own and none another's."""

    async def run() -> None:
        with a_service() as service, contextlib.ExitStack() as stack:
            wires = [stack.enter_context(Wire(baud=BAUD)) for _ in range(8)]
            more = [each for wire in wires[1:] for each in ("--port", wire.gateway_end)]
            stack.enter_context(a_command(wires[0].gateway_end, service.url, *more))
            links = [SerialLink(wire.table_end, BAUD) for wire in wires]
            for at in range(3):
                bodies = [b"%d/%d" % (at, table) + os.urandom(2000) for table in range(8)]
                answers = await asyncio.gather(
                    *(link.ask(Request.RECORDS, body) for link, body in zip(links, bodies, strict=True))
                )
                assert answers == [answer(path="/v1/records", body=body) for body in bodies]
            # One whose question takes long is waited for by nobody else.
            service.hold = b"slow"
            service.go_on.clear()
            slow = asyncio.ensure_future(links[0].ask(Request.RECORDS, b"slow"))
            await until(lambda: service.asked[-1][2] == b"slow")
            await asyncio.gather(*(link.ask(Request.RECORDS, b"quick") for link in links[1:]))
            assert not slow.done()
            service.go_on.set()
            await slow
            for link in links:
                assert link.status().counters["sessions"] == 1
                await link.close()

    asyncio.run(run())


def test_a_stuck_port_holds_up_no_other() -> None:
    """Beside a port that takes nothing, one that is missing and a question that hangs, a table is served."""

    async def run() -> None:
        with a_service() as service, Wire() as good, Wire() as waiting, stuffed_terminal() as stuck:
            news = ServiceNews()
            names = [stuck, "/dev/ttyUSB987", waiting.gateway_end, good.gateway_end]
            gateways = [Gateway(name, BAUD, HttpLink(service.url), news=news) for name in names]
            thinking, link = SerialLink(waiting.table_end, BAUD), SerialLink(good.table_end, BAUD)
            service.hold = b"slow"
            service.go_on.clear()
            await until(lambda: thinking.status().up and link.status().up)
            question = asyncio.ensure_future(thinking.ask(Request.RECORDS, b"slow"))
            await until(lambda: any(body == b"slow" for _, _, body in service.asked))
            began, asked = time.monotonic(), 0
            while "takes no bytes" not in gateways[0].status().text:
                await link.ask(Request.RECORDS, b"quick")
                asked += 1
                assert time.monotonic() - began < 20
            assert asked > 20
            assert "port missing" in gateways[1].status().text
            assert not question.done()
            service.go_on.set()
            await question
            await asyncio.gather(link.close(), thinking.close())
            await asyncio.gather(*(gateway.close() for gateway in gateways))

    asyncio.run(run())


def test_the_service_is_news_once_for_all(caplog: pytest.LogCaptureFixture) -> None:
    """Three tables find the service away and find it there again: that is one line each in the log."""

    async def run() -> None:
        port = free_port()
        news = ServiceNews()
        with contextlib.ExitStack() as stack:
            wires = [stack.enter_context(Wire()) for _ in range(3)]
            url = f"http://127.0.0.1:{port}"
            gateways = [Gateway(wire.gateway_end, BAUD, HttpLink(url), news=news) for wire in wires]
            links = [SerialLink(wire.table_end, BAUD) for wire in wires]
            await asyncio.gather(*(link.ask(Request.RECORDS, b"") for link in links))
            with a_service(port):
                await asyncio.gather(*(link.ask(Request.RECORDS, b"") for link in links))
            await asyncio.gather(*(link.close() for link in links))
            await asyncio.gather(*(gateway.close() for gateway in gateways))

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    said = [each.getMessage() for each in caplog.records]
    assert sum("nothing listens at" in each for each in said) == 1
    assert sum("the service answers again" in each for each in said) == 1


@contextmanager
def a_command(port: str, url: str, *more: str, stdin: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """`heek ki serial-gateway` as a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "heek", "ki", "serial-gateway", "--port", port, "--url", url, *more],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_the_command(end: signal.Signals) -> None:
    """It carries questions until SIGTERM or Ctrl-C, ends with 0, and writes nothing but log lines."""

    async def run() -> None:
        with a_service() as service, Wire() as wire, a_command(wire.gateway_end, service.url) as process:
            link = SerialLink(wire.table_end, BAUD)
            await until(lambda: link.status().up)
            assert await link.ask(Request.RECORDS, b"?") == answer(path="/v1/records", body=b"?")
            await link.close()
            process.send_signal(end)
            out, err = await asyncio.to_thread(process.communicate, timeout=10)
            assert process.returncode == 0
            assert out == b""
            lines = err.decode().splitlines()
            assert (
                lines[0]
                == f"INFO the gateway is ready: {wire.gateway_end} at 115200 baud to the KI at {service.url}"
            )
            assert lines[-1] == "INFO the gateway has stopped"
            assert all(line.startswith(("INFO ", "WARNING ")) for line in lines)

    asyncio.run(run())


def test_the_gateway_dies_in_the_middle() -> None:
    """A gateway that is killed and started again is found, and what was under way is asked anew."""

    async def run() -> None:
        with a_service() as service, Wire() as wire:
            link = SerialLink(wire.table_end, BAUD)
            with a_command(wire.gateway_end, service.url) as process:
                await until(lambda: link.status().up)
                service.go_on.clear()
                question = asyncio.ensure_future(link.ask(Request.RECORDS, b"?"))
                await until(lambda: service.asked)
                process.kill()
                process.wait()
            service.go_on.set()
            with a_command(wire.gateway_end, service.url):
                with pytest.raises(LinkError, match="broke before the answer came"):
                    await question
                assert await link.ask(Request.RECORDS, b"?") == answer(path="/v1/records", body=b"?")
            await link.close()

    asyncio.run(run())


def test_the_port_of_the_gateway_goes_and_comes(tmp_path: Path) -> None:
    """The gateway stays when its port vanishes, says so in one line, and goes on with the next one."""

    async def run() -> None:
        name = tmp_path / "adapter"
        with a_service() as service, Wire() as wire:
            name.symlink_to(wire.gateway_end)
            with a_command(str(name), service.url) as process:
                async with far_end(wire.table_end) as table:
                    await until(lambda: table.line.is_open)
                wire.close()
                name.unlink()
                with Wire() as other:
                    name.symlink_to(other.gateway_end)
                    link = SerialLink(other.table_end, BAUD)
                    await until(lambda: link.status().up)
                    assert await link.ask(Request.TABLE, b"?") == answer(path="/v1/tables", body=b"?")
                    await link.close()
                    process.terminate()
                    _, err = await asyncio.to_thread(process.communicate, timeout=10)
        assert process.returncode == 0
        assert err.decode().count("went away") == 1

    asyncio.run(run())


def test_the_command_ends_with_its_parent() -> None:
    """Told to, it ends when its standard input does, and says nothing while all is well."""

    async def run() -> None:
        with (
            a_service() as service,
            Wire() as wire,
            a_command(
                wire.gateway_end, service.url, "--until-stdin-closes", stdin=subprocess.PIPE
            ) as process,
        ):
            async with far_end(wire.table_end) as table:
                await until(lambda: table.line.is_open)
            out, err = await asyncio.to_thread(process.communicate, timeout=10)
            assert (process.returncode, out, err) == (0, b"", b"")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["--port", "/dev/x", "--baud", "5"], "--baud 5: give a rate from 1200 to 4000000"),
        (["--port", "/dev/x", "--url", "ftp://here"], "is not like http://HOST:PORT"),
        (["--port", "/dev/x", "--url", "http://h:99999"], "--url"),
        (["--port", "/dev/null"], "--port /dev/null is no serial port; give the name of one"),
        (["--port", "/"], "--port / is no serial port"),
        (["--port", __file__], "is no serial port"),
        (["--port", "/dev/x", "--port", "/dev/x"], "--port /dev/x is given twice"),
        (["--port", "/dev/x", "--port", "/dev/../dev/x"], "--port /dev/../dev/x and --port /dev/x are one"),
        (["--port", "/dev/x", "--port", "/dev/null"], "--port /dev/null is no serial port"),
    ],
)
def test_mistakes_in_what_was_typed(typed: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A rate, an address or a port that is none ends the command with 2 and one line."""
    assert main(["ki", "serial-gateway", *typed]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said


def test_nothing_but_frames_comes_from_the_gateway() -> None:
    """Whatever comes to its port, what goes out of it is frames."""

    async def run() -> None:
        seen = bytearray()
        master, port = os.openpty()
        os.set_blocking(master, False)
        loop = asyncio.get_running_loop()
        gateway = Gateway(os.ttyname(port), BAUD, HttpLink(f"http://127.0.0.1:{free_port()}"))
        await until(lambda: gateway.status().text == "calling the table")
        loop.add_reader(master, lambda: seen.extend(os.read(master, 4096)))
        os.write(master, b"root\r\nls\r\n\x03\x04" + os.urandom(500))
        await until(lambda: len(seen) > 60)
        await gateway.close()
        loop.remove_reader(master)
        os.close(master)
        os.close(port)
        decoder = FrameDecoder()
        assert {frame.type for frame in decoder.feed(bytes(seen))} == {1}
        assert (decoder.counters.invalid_bytes, decoder.held) == (0, 0)

    asyncio.run(run())
