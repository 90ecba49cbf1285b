"""`heek ki serial-gateway`: the KI's end of one serial line or of many, until it is told to stop.

To the KI it looks like a program on its own machine, but what it carries comes from elsewhere. It says so in
a `Via` header, so the KI takes no table over it that is not enrolled; `--first-sight` leaves that header
out, for a demonstration, or where whoever can plug in a cable is trusted.

Logs go to standard error; nothing but frames ever goes to the port. SIGTERM and Ctrl-C end it with code 0.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from heek.cli import OK
from heek.errors import ConfigError

log: Final = logging.getLogger("heek")

DEFAULT_BAUD: Final = 115200
DEFAULT_URL: Final = "http://127.0.0.1:8625"
STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
BAUDS: Final = range(1200, 4_000_001)
"""As in `ki.baud`."""
VIA: Final = "1.1 heek-gateway"
"""What the KI is told of whatever comes over a line."""


def add_to(commands: Any) -> None:
    """Add `serial-gateway` to the commands of `heek ki`."""
    parser = commands.add_parser("serial-gateway", help="bring what comes over serial ports to the KI")
    parser.add_argument(
        "--port",
        required=True,
        action="append",
        metavar="NAME",
        help="such as /dev/serial/by-id/...; give it again for each further table",
    )
    parser.add_argument("--baud", type=int, default=DEFAULT_BAUD, metavar="N", help="default: %(default)s")
    parser.add_argument("--url", default=DEFAULT_URL, metavar="URL", help="of the KI; default: %(default)s")
    parser.add_argument(
        "--first-sight",
        action="store_true",
        help="let the KI take tables on these lines that nobody has enrolled; for demonstrations",
    )
    # For a program that starts this one: standard input ends with it, however it ends.
    parser.add_argument("--until-stdin-closes", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the gateway until SIGTERM or Ctrl-C; raises ConfigError if what was typed makes none."""
    if arguments.baud not in BAUDS:
        raise ConfigError(
            f"--baud {arguments.baud}: give a rate from {BAUDS[0]} to {BAUDS[-1]}, such as {DEFAULT_BAUD}"
        )
    if arguments.url.startswith("https:"):
        raise ConfigError(
            f"--url {arguments.url}: a gateway is enrolled nowhere, so it cannot tell the KI by its key; "
            "use http:// (what it carries is signed at both ends)"
        )
    ports: list[str] = arguments.port
    for port in ports:
        if _can_never_be_a_port(port):
            raise ConfigError(f"--port {port} is no serial port; give the name of one")
    _check_different(ports)
    supervised: bool = arguments.until_stdin_closes
    logging.basicConfig(
        # Whoever started us speaks for us: the page of the table says how the link is.
        level=logging.ERROR if supervised else logging.INFO,
        format="%(levelname)s %(message)s",
        stream=sys.stderr,
    )
    via = None if arguments.first_sight else VIA
    asyncio.run(_run(ports, arguments.baud, arguments.url, via, supervised=supervised))
    return OK


def _check_different(ports: list[str]) -> None:
    """Raise ConfigError if two names lead to one port: the second would find it taken, by this program."""
    known: dict[str, str] = {}
    for port in ports:
        leads_to = os.path.realpath(port)
        other = known.get(leads_to)
        if other == port:
            raise ConfigError(f"--port {port} is given twice; give each port once")
        if other is not None:
            raise ConfigError(f"--port {port} and --port {other} are one port; give each port once")
        known[leads_to] = port


def _can_never_be_a_port(name: str) -> bool:
    """Is something else there by that name? A port that is missing, or is not ours to open, may come."""
    try:
        tried = os.open(name, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY)
    except IsADirectoryError:
        return True
    except (OSError, ValueError):
        return False
    try:
        return not os.isatty(tried)
    finally:
        os.close(tried)


async def _run(ports: list[str], baud: int, url: str, via: str | None, *, supervised: bool) -> None:
    from heek.ki.gateway import Gateway, ServiceNews
    from heek.ki.http_link import HttpLink

    try:
        services = [HttpLink(url, via=via) for _ in ports]
    except ValueError as error:
        raise ConfigError(f"--url {error}") from None
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in STOP_SIGNALS:
        # Not by the loop: while it closes, a signal would be told to a pipe that is gone.
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))
    if supervised:
        threading.Thread(
            target=_await_end_of_input, args=(lambda: loop.call_soon_threadsafe(stop.set),), daemon=True
        ).start()
    news = ServiceNews()
    gateways = [
        Gateway(port, baud, service, news=news) for port, service in zip(ports, services, strict=True)
    ]
    log.info("the gateway is ready: %s at %d baud to the KI at %s", ", ".join(ports), baud, url)
    await stop.wait()
    await asyncio.gather(*(gateway.close() for gateway in gateways))
    for number in STOP_SIGNALS:
        # Whoever asks for the end again gets the one that is under way.
        signal.signal(number, signal.SIG_IGN)
    log.info("the gateway has stopped")


def _await_end_of_input(then: Callable[[], object]) -> None:
    """Wait on a thread: not every kind of standard input can be watched by a loop."""
    try:
        # Not sys.stdin, whose lock the end of the process would wait for.
        while os.read(0, 4096):
            pass
    except OSError:
        pass
    with contextlib.suppress(RuntimeError):
        then()
