"""`heek run`: the daemon on this machine, until it is told to stop.

Ready for systemd: logs go to standard error, SIGTERM and Ctrl-C end it cleanly with code 0, and SIGUSR1 is
the operator's reset (`systemctl kill --signal=SIGUSR1 heek`).
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from heek.cli import FAILED, OK
from heek.errors import JournalError

if TYPE_CHECKING:
    from heek.config import Config, DisplayConfig
    from heek.display.oled import Oled

log: Final = logging.getLogger("heek")

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

PANEL_PATIENCE_S: Final = 2.0
"""At the end: how long a panel may take to go dark before it is left as it is."""


def add_to(commands: Any) -> None:
    """Add `run` to the commands."""
    parser = commands.add_parser("run", help="run the table of a configuration")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="table.toml")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the table until SIGTERM or Ctrl-C; raises TableError if it cannot start."""
    # The operator's reset, while there is nothing to reset, would be the end of the process.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    from heek.config import load

    config = load(arguments.config)
    logging.basicConfig(level=config.log.level.upper(), format="%(levelname)s %(message)s", stream=sys.stderr)
    _prepare_state_dir(config.table.state_dir)
    return _run(config)


def _prepare_state_dir(folder: Path) -> None:
    """Make the folder, see that it can be written, and point lgpio at it before anybody imports that.

    lgpio makes a FIFO in the working directory when it is imported, and fails where it may not.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = folder / f".writable-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except FileExistsError:
        raise JournalError(f"table.state_dir {folder}: is a file; name a folder") from None
    except OSError as error:
        raise JournalError(
            f"table.state_dir {folder}: cannot be written ({error.strerror}); "
            "give it to the user that runs heek, or name another folder"
        ) from None
    os.environ["LG_WD"] = str(folder)


def _run(config: Config) -> int:
    from heek.boot import this_boot
    from heek.clock import RealClock
    from heek.daemon import Daemon, World

    loop = asyncio.new_event_loop()
    failed: list[BaseException] = []

    def on_exception(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        failed.append(context.get("exception") or RuntimeError(context["message"]))
        log.error("the table stops: %s", context["message"], exc_info=context.get("exception"))
        loop.stop()

    loop.set_exception_handler(on_exception)
    for stop in STOP_SIGNALS:
        # Not by the loop: it gives a signal its default back when it closes, and then the signal kills.
        signal.signal(stop, lambda *_: loop.call_soon_threadsafe(loop.stop))
    journal_executor = ThreadPoolExecutor(1, "heek-journal")
    panel_executor = ThreadPoolExecutor(1, "heek-panel")
    world = World(
        clock=RealClock(),
        boot=this_boot(),
        journal_executor=journal_executor,
        panel_executor=panel_executor,
        random_bytes=os.urandom,
        open_pins=_open_pins,
        open_panel=_open_panel,
        on_line=lambda line: log.debug("%s", line),
    )
    daemon = Daemon(config, world, loop)
    try:
        signal.signal(signal.SIGUSR1, lambda *_: loop.call_soon_threadsafe(daemon.reset))
        log.info(
            "%s is ready: seats %s on %s, journal in %s",
            config.table.name,
            ", ".join(map(str, config.seat_numbers)),
            _pins_named(config),
            config.table.state_dir,
        )
        if config.stations.backend == "mock":
            log.info("the pins are simulated: nobody can press them here; `heek demo` plays by itself")
        loop.run_forever()
    finally:
        daemon.close()
        journal_executor.shutdown()
        for late in (*STOP_SIGNALS, signal.SIGUSR1):
            # Whoever asks for the end again gets the one that is under way.
            signal.signal(late, signal.SIG_IGN)
        loop.close()
    dark = wait([panel_executor.submit(lambda: None)], timeout=PANEL_PATIENCE_S)
    log.info("%s has stopped", config.table.name)
    code = FAILED if failed else OK
    if dark.not_done:
        # A panel hangs in its bus; its thread would keep the process, and systemd, waiting.
        logging.shutdown()
        os._exit(code)
    panel_executor.shutdown()
    return code


def _pins_named(config: Config) -> str:
    return "mock pins" if config.stations.backend == "mock" else config.stations.pin_factory


def _open_pins(config: Config, clock: Any) -> Any:
    from heek.stations.gpio import open_factory

    return open_factory(config.stations.backend, config.stations.pin_factory, clock)


def _open_panel(display: DisplayConfig) -> Oled:
    from heek.display.oled import Oled

    return Oled(display.driver, display.bus, display.address, display.rotate)
