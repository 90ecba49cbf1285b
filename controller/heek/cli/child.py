"""A process of ours beside this one: started, watched, stopped, and never left behind."""

from __future__ import annotations

import contextlib
import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

from heek.cli import FAILED

log: Final = logging.getLogger("heek")

HOST: Final = "127.0.0.1"
START_PATIENCE_S: Final = 20.0
"""How long a child may take to listen; a slow machine compiles it first."""
END_PATIENCE_S: Final = 3.0


class Child:
    """A process of ours that ends when its standard input does, so that it never outlives us."""

    def __init__(self, name: str, command: list[str], on_end: Callable[[int], None]) -> None:
        """`on_end` hears, on another thread, the code with which it ended though nobody stopped it."""
        self._name = name
        self._on_end = on_end
        self._command = [sys.executable, "-m", "heek", *command, "--until-stdin-closes"]
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.stopped = False
        self.failed: int | None = None
        """The exit code with which it ended before it had come to listen."""

    @property
    def ended(self) -> bool:
        """It was started, and has ended by itself."""
        process = self._process
        return process is not None and process.poll() is not None

    def start_again(self) -> None:
        """Start it, unless it was stopped for good meanwhile."""
        if not self.stopped:
            self.start()

    def start(self) -> None:
        """Start it if it does not run."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                return
            # A session of its own: Ctrl-C is for us, and we end it when the table is done with it.
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
            )
            self.stopped = False
            threading.Thread(target=self._watch, args=(self._process,), daemon=True).start()

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        code = process.wait()
        # One that is stopped is let go of before it is told to end.
        if self._process is process and self.failed is None:
            self._on_end(code)

    def listens(self, port: int) -> bool:
        """Whether it has come to listen at `port`, in time and alive."""
        until = time.monotonic() + START_PATIENCE_S
        while time.monotonic() < until:
            process = self._process
            if process is None or self.stopped:
                return False
            code = process.poll()
            if code is not None:
                # It has said why on standard error.
                self.failed = code
                return False
            with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1):
                # Not somebody else who had the port before: then ours would have ended.
                if process.poll() is None:
                    return True
            time.sleep(0.03)
        log.error("the %s does not come to listen at port %d", self._name, port)
        self.failed = FAILED
        return False

    def stop(self) -> None:
        """End it, gently first; harmless when it has ended."""
        with self._lock:
            self.stopped = True
            process, self._process = self._process, None
            if process is None:
                return
            process.terminate()
            try:
                process.wait(END_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdin is not None:
                process.stdin.close()


def ending(code: int) -> str:
    """How a process ended, from the code that `Popen` gives."""
    return f"signal {-code}" if code < 0 else f"code {code}"
