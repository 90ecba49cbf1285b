"""What a test must not leave to the next one: threads, and gpiozero's factory for everybody."""

from __future__ import annotations

import sys
import threading
from typing import Any

PATIENCE_S = 1.0
"""How long a thread that was told to end may take to do so."""


class Watch:
    """Remembers how things stood before a test; what has been added since is a leak."""

    def __init__(self) -> None:
        self._threads = set(threading.enumerate())
        self._factory = _default_factory()

    def left(self) -> list[str]:
        """One line for each leak; what can be put back is put back, so that the next test is not blamed."""
        left = []
        for thread in threading.enumerate():
            if thread not in self._threads:
                thread.join(PATIENCE_S)
                if thread.is_alive():
                    left.append(f"thread {thread.name!r} still runs; end it before the test does")
        if _default_factory() is not self._factory:
            left.append("gpiozero.Device.pin_factory is another one; give devices theirs by pin_factory=")
            sys.modules["gpiozero"].Device.pin_factory = self._factory
        return left


def _default_factory() -> Any:
    """What gpiozero gives to devices that name no factory; None as long as nobody has asked."""
    gpiozero = sys.modules.get("gpiozero")
    return None if gpiozero is None else gpiozero.Device.pin_factory
