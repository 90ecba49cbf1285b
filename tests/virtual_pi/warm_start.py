"""Starts `heek run` by a fork of a process that has imported the table already.

An emulated processor needs 4 s to import a table, and most tests begin with a start. What a forked one does
from there on is the same, in a process of its own: the command line, its signals, its exit code. Tests that
are about a start or an end take a new Python all the same.

lgpio is not imported beforehand: it starts a thread and makes a pipe where that happens, which no fork takes
along.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Final

IMPORTED: Final = (
    "tests.virtual_pi.warm_start",
    "heek.cli.table_process", "heek.config", "heek.display.oled", "heek.stations.gpio", "heek.web.server",
    "gpiozero", "luma.core.interface.serial", "luma.oled.device", "smbus2", "nacl.signing",
)  # fmt: skip

_context: Final = multiprocessing.get_context("forkserver")


def get_ready() -> None:
    """Begin to import, beside whatever else is done; the first start waits for it."""
    _context.set_forkserver_preload(list(IMPORTED))
    forkserver.ensure_running()


class WarmProcess:
    """One `heek` with some words; as much of subprocess.Popen as TableDaemon uses."""

    def __init__(self, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        get_ready()
        heard, said = _context.Pipe(duplex=False)
        self._process = _context.Process(target=_run, args=(said, list(words), folder, dict(environment)))
        self._process.start()
        said.close()
        self.stderr: IO[str] = os.fdopen(os.dup(heard.fileno()))
        heard.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code; raises subprocess.TimeoutExpired."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("heek", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(said: Connection, words: list[str], folder: Path, environment: dict[str, str]) -> None:
    """In the fork: be `heek`."""
    os.dup2(said.fileno(), sys.__stderr__.fileno() if sys.__stderr__ is not None else 2)
    said.close()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    os.chdir(folder)
    os.environ.update(environment)
    sys.argv = ["heek", *words]
    from heek.cli import main

    code = main(words)
    # A fork leaves without them.
    atexit._run_exitfuncs()
    sys.exit(code)
