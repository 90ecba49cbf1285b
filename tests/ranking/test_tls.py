"""The KI over TLS: the same service at a second port, by the key that tables pin."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import stat
from pathlib import Path

import pytest

from heek.errors import RankingError
from heek.ki import cbor
from heek.ki.answers import read_batch_answer
from heek.ki.http_link import HttpLink
from heek.ki.link import Request
from tests.ranking.records import ANN, BEN, FakeTable, body
from tests.ranking.service import RunningKi
from tests.ranking.test_service import serving


def test_both_ports_are_one_ki(tmp_path: Path) -> None:
    """What is introduced over the one is known over the other, and the pinned key is the service's."""
    table = FakeTable()
    with RunningKi(tmp_path, tls_port=0) as ki:
        assert ki.service.tls_port not in (None, 0, ki.port)

        async def over_tls() -> tuple[bytes, bytes]:
            link = HttpLink(f"https://127.0.0.1:{ki.service.tls_port}")
            known = await link.ask(Request.TABLE, table.introduction())
            link.pinned = ki.service.key.public
            answered = await link.ask(Request.RECORDS, body(table.sealed({ANN: 1, BEN: 1})))
            await link.close()
            return known, answered

        known, answered = asyncio.run(over_tls())
        assert cbor.decode(known)["table"] == table.key_id
        assert [each.verdict.value for each in read_batch_answer(answered, 1).answers] == ["accepted"]
        assert ki.report(table.sealed({ANN: 1, BEN: 1}))["holds"][0] == 2
        assert ki.get("/").status == 200


def test_a_table_hears_how_wrong_its_clock_is(tmp_path: Path) -> None:
    """The KI's answers have a date, by which the link names the error of a clock in 1970."""
    from heek.clock import ManualClock

    with RunningKi(tmp_path) as ki:

        async def run() -> str:
            link = HttpLink(ki.url.rstrip("/"), clock=ManualClock(wall_s=0.0))
            await link.ask(Request.TABLE, FakeTable().introduction())
            await link.close()
            return link.status().text

        assert re.fullmatch(r"up; this clock is \d\d years behind the KI's", asyncio.run(run()))


def test_a_port_that_is_taken_is_named_as_the_one_it_is(tmp_path: Path) -> None:
    """The message names service.tls_port, and no half of a KI is left behind."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RankingError, match=rf"service\.tls_port {port}: another program has this port"):
            RunningKi(tmp_path, tls_port=port)


def test_connections_that_shake_no_hands_hold_up_nobody_and_no_end(tmp_path: Path) -> None:
    """Whoever connects to the TLS port and says nothing, or rubbish, costs the others nothing."""
    ki = RunningKi(tmp_path, tls_port=0)
    mute = [socket.create_connection(("127.0.0.1", ki.service.tls_port or 0)) for _ in range(20)]
    for each in mute[:10]:
        each.sendall(b"GET / HTTP/1.0\r\n\r\n")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(socket.create_connection(("127.0.0.1", ki.service.tls_port or 0))) as good:
        assert good.version() == "TLSv1.3"
        good.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{ki.service.tls_port}\r\n\r\n".encode())
        assert good.recv(64).startswith(b"HTTP/1.1 200")
    assert ki.close() < 5
    for each in mute:
        each.close()


def test_the_command_listens_with_tls_and_keeps_its_key(tmp_path: Path) -> None:
    """`--tls-port`: the key is made once, for its owner alone, and is the same after a restart."""
    keys = []
    for _ in range(2):
        with serving(tmp_path, "--tls-port", "0") as (process, _port):
            found = process.wait_for(r"with TLS at port (\d+)")
            pem = ssl.get_server_certificate(("127.0.0.1", int(found[1])))
            keys.append(pem)
    assert keys[0] == keys[1]
    assert stat.S_IMODE((tmp_path / "service.key").stat().st_mode) == 0o600
