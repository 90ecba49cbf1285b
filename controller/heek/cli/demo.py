"""`heek demo`: the whole system on this machine, to play with: a simulated table, its page, and a KI.

The table runs in this process; the KI, and for the serial link the gateway at its end, in processes of
their own, which end when this one does, however it ends. All that is kept is kept in a folder that goes
with the demonstration.
"""

from __future__ import annotations

import argparse
import contextlib
import ipaddress
import logging
import secrets
import socket
import sys
import tempfile
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from heek.cli import FAILED
from heek.cli.child import HOST, START_PATIENCE_S, Child, ending
from heek.cli.closing_terminal import when_terminal_goes
from heek.errors import BackendError, ConfigError, PageError

if TYPE_CHECKING:
    from heek.cli.table_process import TableProcess
    from heek.simulator.wire import Wire

log: Final = logging.getLogger("heek")

TABLE_PORT: Final = 8125
KI_PORT: Final = 8625

BAUD: Final = 115200
AGAIN_S: Final = 1.0
"""After which a gateway that has ended by itself is started again."""

FIXED: Final = frozenset(
    {"stations.backend", "table.state_dir", "web.host", "web.port"}
    | {"ki.link", "ki.url", "ki.port", "ki.baud", "station"}
)
"""Keys that make it this demonstration."""


def add_to(commands: Any) -> None:
    """Add `demo` to the commands."""
    parser = commands.add_parser("demo", help="play on a simulated table in the browser, with a KI")
    parser.add_argument("--port", type=int, default=TABLE_PORT, metavar="N", help="of the table's page")
    parser.add_argument("--ki-port", type=int, default=KI_PORT, metavar="N", help="of the KI")
    parser.add_argument(
        "--link", choices=("http", "serial"), default="http", help="how results come to the KI"
    )
    parser.add_argument(
        "--lan",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help="let phones play: listen at this machine's address (or the one that is given)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a key of the configuration, as in a file: --set ahyoheek.target=1",
    )
    parser.add_argument("--terminal", action="store_true", help="watch two matches in this terminal instead")
    parser.add_argument("--fast", action="store_true", help="with --terminal: at once, not in real time")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the demonstration until Ctrl-C; raises TableError if it cannot start."""
    if arguments.terminal or arguments.fast:
        if arguments.lan is not None:
            raise PageError(
                "--lan: phones play on the page, and in the terminal there is none; leave one out"
            )
        from heek.cli import terminal_demo

        return terminal_demo.play(fast=arguments.fast)
    for name, port in (("--port", arguments.port), ("--ki-port", arguments.ki_port)):
        if not 0 < port < 65536:
            raise PageError(f"{name} {port}: a port is a number from 1 to 65535")
        _check_free(name, port)
    if arguments.port == arguments.ki_port:
        raise PageError(f"--port and --ki-port are both {arguments.port}; give two ports")
    logging.basicConfig(level="WARNING", format="%(levelname)s %(message)s", stream=sys.stderr)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="heek-demo-")))
        return _Stage(arguments, folder, stack).run()


class _Stage:
    """The parts of one demonstration."""

    def __init__(self, arguments: argparse.Namespace, folder: Path, stack: contextlib.ExitStack) -> None:
        self._arguments = arguments
        self._folder = folder
        self._lan_host = None if arguments.lan is None else _lan_address(arguments.lan)
        self._process: TableProcess | None = None
        self._ready = threading.Event()
        """The table stands, with its page."""
        self._wire: Wire | None = None
        self._ki_url = f"http://{HOST}:{arguments.ki_port}"
        self._children: list[Child] = []
        self._ki = self._child("KI", self._ki_command(), self._ki_ended)
        if arguments.link == "serial":
            from heek.simulator.wire import Wire

            self._wire = Wire(baud=BAUD)
            stack.callback(self._wire.close)
            self._gateway = self._child(
                "gateway",
                self._gateway_command(self._wire.gateway_end),
                self._gateway_ended,
            )
        # Whatever ends first, and however: the children go, then their wire, then the folder.
        stack.callback(self._end_children)

    def run(self) -> int:
        from heek.cli.table_process import Demonstration, TableProcess
        from heek.config import from_keys

        arguments = self._arguments
        keys: dict[str, object] = {
            "stations.backend": "mock",
            "table.state_dir": str(self._folder / "table"),
            "seats.bots": "ask",
            "web.host": HOST,
            "web.port": arguments.port,
            "ki.link": arguments.link,
            "log.level": "warning",
        }
        if self._wire is None:
            keys["ki.url"] = self._ki_url
        else:
            keys |= {"ki.port": self._wire.table_end, "ki.baud": BAUD}
        config = from_keys(keys | _typed(arguments.set), "heek demo")
        for child in self._children:
            child.start()
        process = TableProcess(
            config,
            Demonstration(
                ki_url=f"{self._ki_url}/",
                switch_ki=self._switch_ki,
                ki_stopped=lambda: self._ki.stopped or self._ki.ended,
                lan_host=self._lan_host,
                lan_token=None if self._lan_host is None else secrets.token_urlsafe(16),
            ),
        )
        self._process = process
        threading.Thread(target=self._await_ki, name="heek-demo", daemon=True).start()
        when_terminal_goes(process.stop)
        code = process.run(on_ready=lambda _: self._ready.set())
        return code if self._ki.failed is None else FAILED

    def _await_ki(self) -> None:
        """Say where everything is once all of it stands; end the demonstration if the KI does not."""
        process = self._process
        assert process is not None
        if not self._ki.listens(self._arguments.ki_port):
            process.stop()
            return
        page = process.page if self._ready.wait(START_PATIENCE_S) else None
        if page is None:
            return
        process.ki_came_up()
        lines = [
            "",
            f"  The table  {page.url}   five seats, simulated",
            f"  The KI     {self._ki_url}/   who ranks where",
        ]
        if self._wire is not None:
            lines.append(f"  The link   serial, {BAUD} baud, over two pseudo terminals")
        if page.join_url is not None:
            lines += ["", f"  Phones     {page.join_url}", "", *_qr_lines(page.join_url)]
            lines.append(
                "  Who has this address can take a seat; it is good until you end the demonstration."
            )
        lines += ["", "  Ctrl-C ends all of it.", ""]
        print("\n".join(lines), flush=True)

    def _switch_ki(self, running: bool) -> None:
        threading.Thread(target=self._do_switch_ki, args=(running,), daemon=True).start()

    def _do_switch_ki(self, running: bool) -> None:
        if running:
            self._ki.start()
            if self._ki.listens(self._arguments.ki_port) and self._process is not None:
                self._process.ki_came_up()
        else:
            self._ki.stop()
            if self._process is not None:
                # It finds nobody there, and says so.
                self._process.ki_came_up()

    def _ki_ended(self, code: int) -> None:
        """The KI has ended by itself, after it had come to listen: say so, and let the page offer it anew."""
        log.warning("the KI has ended by itself (%s); the page can start it again", ending(code))
        if self._process is not None:
            self._process.ki_came_up()

    def _gateway_ended(self, code: int) -> None:
        """Nobody stops the gateway on purpose, so it comes back."""
        log.warning("the gateway has ended by itself (%s) and is started again", ending(code))
        again = threading.Timer(AGAIN_S, self._gateway.start_again)
        again.daemon = True
        again.start()

    def _child(self, name: str, command: list[str], on_end: Callable[[int], None]) -> Child:
        child = Child(name, command, on_end)
        self._children.append(child)
        return child

    def _ki_command(self) -> list[str]:
        database = str(self._folder / "ki" / "ki.sqlite3")
        port = str(self._arguments.ki_port)
        return ["ki", "serve", "--demo", "--host", HOST, "--port", port, "--database", database]

    def _gateway_command(self, port: str) -> list[str]:
        # Nobody is there to enrol a table that lives as long as its demonstration.
        return ["ki", "serial-gateway", "--first-sight", "--port", port, "--url", self._ki_url]

    def _end_children(self) -> None:
        for child in reversed(self._children):
            child.stop()


def _typed(settings: list[str]) -> dict[str, object]:
    """`KEY=VALUE` as the configuration takes it; raises ConfigError for what is no such thing."""
    keys: dict[str, object] = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals or name.strip() in FIXED:
            why = "is no KEY=VALUE" if not equals else "is the demonstration's own"
            raise ConfigError(f"--set {text}: {why}; for example --set ahyoheek.target=1")
        try:
            keys[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            # A word without quotes is a word.
            keys[name.strip()] = value.strip()
    return keys


def _check_free(option: str, port: int) -> None:
    """Raise PageError if somebody listens at a port: before anything is started, and by the option's name."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        # As a server would: a port that was let go of a moment ago can be had.
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((HOST, port))
        except OSError as error:
            raise PageError(
                f"port {port} cannot be had ({error.strerror}); another demonstration? "
                f"End it, or give another one: {option} N"
            ) from None


def _lan_address(given: str) -> str:
    """The address at which phones will find this machine; raises BackendError if it is not one of ours.

    `given` is what `--lan` was given, empty for the machine's own.
    """
    own = _own_address()
    if not given:
        if own is None:
            raise BackendError(
                "LAN: this machine has no address in a local network; join one, or name it: --lan ADDRESS"
            )
        return own
    hint = "an address of this machine in the local network" + (f", such as {own}" if own else "")
    try:
        with contextlib.suppress(ValueError):
            if ipaddress.ip_address(given).is_loopback:
                log.warning("--lan %s: no phone reaches that address; give %s", given, hint)
        family = socket.getaddrinfo(given, None, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.bind((given, 0))
    except OSError:
        raise BackendError(f"--lan {given}: this machine has no such address; give {hint}") from None
    return given


def _own_address() -> str | None:
    """This machine's address in the local network; None if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            # Sends nothing: it only asks which address would be used (192.0.2.1 is nobody's, RFC 5737).
            asked.connect(("192.0.2.1", 9))
            address = str(asked.getsockname()[0])
        except OSError:
            return None
    return None if not address or address.startswith("127.") else address


def _qr_lines(url: str) -> list[str]:
    """A QR code for a dark or light terminal, two rows a line, with the margin that scanners want."""
    import segno

    matrix = [list(row) for row in segno.make(url, error="l", micro=False).matrix_iter(border=4)]
    if len(matrix) % 2:
        matrix.append([0] * len(matrix[0]))
    lines = []
    for upper, lower in zip(matrix[::2], matrix[1::2], strict=True):
        # A light ground drawn in full blocks, for dark terminals; scanners take the inverse as well.
        blocks = "".join(
            {(0, 0): "█", (0, 1): "▀", (1, 0): "▄", (1, 1): " "}[bool(a), bool(b)]
            for a, b in zip(upper, lower, strict=True)
        )
        lines.append(f"  {blocks}")
    return lines
