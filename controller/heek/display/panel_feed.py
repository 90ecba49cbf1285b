"""Hands pictures to the panels without ever waiting for one: the newest wins, frames are skipped.

A full frame takes 23 ms on I2C at 400 kHz, 93 ms at 100 kHz, and a panel that is pulled can hold a write much
longer. So each
panel is spoken to on an executor, one picture at a time; what is drawn meanwhile replaces what waits.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future

from PIL import Image

from heek.clock import Clock, Instant
from heek.display.oled import Oled


class PanelFeed:
    """One panel and the picture that it shall show; use it from one thread.

    `wake` is called from the executor's thread when a picture has been sent or has failed.
    """

    def __init__(self, panel: Oled, executor: Executor, clock: Clock, wake: Callable[[], None]) -> None:
        self.panel = panel
        self._executor = executor
        self._clock = clock
        self._wake = wake
        self._wanted: tuple[Image.Image, bool] | None = None
        self._busy: Future[object] | None = None

    @property
    def retry_at(self) -> Instant | None:
        """When a panel that failed is to be tried again; None: it works, or is at work."""
        return None if self._busy is not None else self.panel.retry_at

    def show(self, image: Image.Image, *, dimmed: bool = False) -> None:
        """Let the panel show `image` as soon as it can, with little light if it is `dimmed`."""
        self._wanted = (image, dimmed)
        self._next()

    def settle(self) -> None:
        """Look whether the panel is done, and go on with what waits or is to be tried again."""
        if self._busy is not None and self._busy.done():
            self._busy = None
            self._next()

    def again(self, now: Instant, image: Image.Image, *, dimmed: bool = False) -> None:
        """Try a failed panel again with the picture of the moment, if it is time."""
        retry_at = self.retry_at
        if retry_at is not None and retry_at <= now:
            self.show(image, dimmed=dimmed)

    def renew(self, image: Image.Image, *, dimmed: bool = False) -> None:
        """Build the panel anew: one that lost its power for a moment answers again, but stays dark."""
        self._executor.submit(self.panel.renew)
        self.show(image, dimmed=dimmed)

    def close(self) -> None:
        """Blank the panel after what it is at; does not wait."""
        self._wanted = None
        self._executor.submit(self.panel.close)

    def _next(self) -> None:
        if self._busy is not None or self._wanted is None:
            return
        (image, dimmed), self._wanted = self._wanted, None
        self._busy = self._executor.submit(self.panel.show, image, self._clock.now(), dimmed=dimmed)
        if self._busy.done():
            self._busy = None
        else:
            self._busy.add_done_callback(lambda _: self._wake())
