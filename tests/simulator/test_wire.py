"""The simulated wire carries bytes both ways as a wire would, and lets go of everything at its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from heek.ki.serial_port import SerialPort, open_port
from heek.simulator.wire import BITS_A_BYTE, Wire
from tests.ki.lines import no_hang

BAUD = 115200


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    with no_hang():
        yield


def read(port: SerialPort, size: int, within_s: float = 10.0) -> bytes:
    """So many bytes from a port; fails if they do not come in time."""
    got, deadline = b"", time.monotonic() + within_s
    while len(got) < size:
        assert time.monotonic() < deadline, f"{len(got)} of {size} bytes have come"
        got += port.read() or b""
    return got


def write(port: SerialPort, data: bytes) -> None:
    """All of it, as fast as the port takes it."""
    while data:
        data = data[port.write(data) :]


@pytest.mark.parametrize("baud", [None, BAUD])
def test_all_bytes_both_ways(baud: int | None) -> None:
    """Every byte there is comes through in both directions at once, in order and unchanged."""
    everything = bytes(range(256)) * 8
    with Wire(baud=baud) as wire:
        table, gateway = open_port(wire.table_end, BAUD), open_port(wire.gateway_end, BAUD)
        write(table, everything)
        write(gateway, everything[::-1])
        assert read(gateway, len(everything)) == everything
        assert read(table, len(everything)) == everything[::-1]
        table.close()
        gateway.close()


def test_the_pace_of_a_rate() -> None:
    """At 9,600 baud 960 bytes take a second and no less, in both directions at once."""
    with Wire(baud=9600) as wire:
        table, gateway = open_port(wire.table_end, BAUD), open_port(wire.gateway_end, BAUD)
        began = time.monotonic()
        write(table, bytes(960))
        write(gateway, bytes(960))
        read(gateway, 960)
        read(table, 960)
        assert time.monotonic() - began >= 960 * BITS_A_BYTE / 9600
        table.close()
        gateway.close()


def test_a_cut_loses_what_is_sent() -> None:
    """What is sent while the wire is cut never comes; what is sent after it is joined does."""
    with Wire() as wire:
        table, gateway = open_port(wire.table_end, BAUD), open_port(wire.gateway_end, BAUD)
        write(table, b"before.")
        assert read(gateway, 7) == b"before."
        wire.cut()
        write(table, b"lost")
        deadline = time.monotonic() + 10
        while wire.lost_bytes < 4:
            assert time.monotonic() < deadline
        wire.join()
        write(table, b"after.")
        assert read(gateway, 6) == b"after."
        table.close()
        gateway.close()


def test_noise_changes_some_bytes() -> None:
    """A noisy wire changes about as many bytes as it is told, the same ones for the same seed."""
    came = []
    for _ in range(2):
        with Wire(noise=0.05, seed=7) as wire:
            table, gateway = open_port(wire.table_end, BAUD), open_port(wire.gateway_end, BAUD)
            for _ in range(4):
                write(table, bytes(500))
                came.append(read(gateway, 500))
            table.close()
            gateway.close()
    assert came[:4] == came[4:]
    changed = sum(byte != 0 for part in came[:4] for byte in part)
    assert 50 < changed < 200


def test_an_end_that_reads_nothing_stops_nobody() -> None:
    """An end that takes nothing loses what comes, and the other direction works on."""
    with Wire() as wire:
        table, gateway = open_port(wire.table_end, BAUD), open_port(wire.gateway_end, BAUD)
        for _ in range(100):
            write(table, bytes(4096))
        write(gateway, b"still here")
        assert read(table, 10) == b"still here"
        table.close()
        gateway.close()


def test_a_port_may_be_closed_and_opened_again() -> None:
    """The wire is there whether or not somebody has its ports open."""
    with Wire() as wire:
        for at in range(5):
            table, gateway = open_port(wire.table_end, BAUD), open_port(wire.gateway_end, BAUD)
            write(table, b"%d" % at)
            assert read(gateway, 1) == b"%d" % at
            table.close()
            gateway.close()


def test_its_end_takes_the_ports_away() -> None:
    """After the wire its ports are gone, as an unplugged adapter's, and so are its thread and files."""
    before = _held()
    wire = Wire()
    table = open_port(wire.table_end, BAUD)
    wire.close()
    wire.close()
    with pytest.raises(OSError, match="No such device"):
        read(table, 1)
    table.close()
    assert not Path(wire.table_end).exists()
    assert _held() == before


def _held() -> tuple[int, int]:
    """How many files and threads this process has."""
    return len(list(Path("/dev/fd").iterdir())), threading.active_count()
