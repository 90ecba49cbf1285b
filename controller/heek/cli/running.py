"""`heek run`: the daemon on this machine, until it is told to stop.

Ready for systemd: logs go to standard error, SIGTERM and Ctrl-C end it cleanly with code 0, and SIGUSR1 is
the operator's reset (`systemctl kill --signal=SIGUSR1 heek`).
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from heek.errors import JournalError

if TYPE_CHECKING:
    from heek.cli.table_process import TableProcess
    from heek.config import Config

log: Final = logging.getLogger("heek")

DRAWN: Final = {
    "--seed": "its randomness",
    "--key": "its signing key",
    "--key-id": "its signing key",
    "--table-id": "its signing key",
    "--incarnation": "its incarnation",
    "--match-id": "the id of each match",
}
"""What nobody gives a real table, by the option under which somebody might try."""


def add_to(commands: Any) -> None:
    """Add `run` to the commands."""
    parser = commands.add_parser("run", help="run the table of a configuration")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="table.toml")
    for option, what in DRAWN.items():
        parser.add_argument(option, nargs="?", action=_Refuse, const=what, help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


class _Refuse(argparse.Action):
    """Says of an option why there is none such; `const` names what it would give the table."""

    def __call__(
        self, parser: argparse.ArgumentParser, _: object, __: object, option_string: str | None = None
    ) -> NoReturn:
        parser.error(
            f"argument {option_string}: a real table draws {self.const} itself, so that nobody can foresee "
            "or choose it; for what can be played again there is heek simulate --seed"
        )


def run(arguments: argparse.Namespace) -> int:
    """Run the table until SIGTERM or Ctrl-C; raises TableError if it cannot start."""
    # The operator's reset, while there is nothing to reset, would be the end of the process.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    from heek.config import load

    config = load(arguments.config)
    logging.basicConfig(level=config.log.level.upper(), format="%(levelname)s %(message)s", stream=sys.stderr)
    if config.log.level == "debug":
        log.warning("log.level is debug, which wears out the card for nothing: take it out when you are done")
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
    from heek.cli.table_process import TableProcess

    return TableProcess(config).run(on_ready=lambda process: _say_ready(config, process))


def _say_ready(config: Config, process: TableProcess) -> None:
    log.info(
        "%s is ready: seats %s on %s, journal in %s",
        config.table.name,
        ", ".join(map(str, config.seat_numbers)),
        "mock pins"
        if config.stations.backend == "mock"
        else f"{config.stations.pin_factory} ({process.stamps})",
        config.table.state_dir,
    )
    if process.page is not None:
        log.info("its page: %s", process.page.url)
    if config.stations.backend == "mock" and process.page is None:
        log.info("the pins are simulated and there is no page: nobody can press them here")
