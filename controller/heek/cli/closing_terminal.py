"""Notices that the terminal is closed from which this program was started."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable


def when_terminal_goes(then: Callable[[], object]) -> None:
    """Call `then` when the terminal that this was started from is closed.

    The kernel tells only whoever leads the terminal's session, and that may be a `make` which goes on
    waiting for us. Whoever starts us under `nohup` wants to be left alone.
    """
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return
    terminal = next((number for number in (0, 1, 2) if _is_terminal(number)), None)
    if terminal is None:
        return

    def watch() -> None:
        poll = select.poll()
        poll.register(terminal, 0)
        # Not every system can watch a terminal like this; one that cannot says so at once.
        if any(what & select.POLLHUP for _, what in poll.poll()):
            then()

    threading.Thread(target=watch, name="heek-terminal", daemon=True).start()


def _is_terminal(number: int) -> bool:
    try:
        return os.isatty(number)
    except OSError:
        return False
