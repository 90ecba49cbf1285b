"""Hands and eyes on an opened page: presses by clicks, fingers and keys, and what the page shows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from heek.clock import MILLISECOND
from heek.kinds import KINDS, Kind, Seat
from tests.web.table_for_pages import TableWithPage

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

PATIENCE_S = 40.0

KEYS = {
    1: ("Digit1", "Digit2", "Digit3"),
    2: ("KeyQ", "KeyW", "KeyE"),
    3: ("KeyA", "KeyS", "KeyD"),
    4: ("KeyZ", "KeyX", "KeyC"),
    5: ("Digit8", "Digit9", "Digit0"),
}

_Found = TypeVar("_Found")


class Opened:
    """A page in a browser that shows a table."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def button(self, seat: Seat, kind: Kind) -> Locator:
        """A seat's button."""
        return self.page.locator(f'.seat[data-seat="{seat}"] .contact[data-kind="{kind.value}"]')

    def place(self, seat: Seat) -> Locator:
        """Who sits there, in words."""
        return self.page.locator(f'.place[data-seat="{seat}"]')

    def key(self, seat: Seat, kind: Kind) -> str:
        """The key of a button, by where it lies."""
        return KEYS[seat][KINDS.index(kind)]

    def until(self, found: Callable[[], _Found], what: str = "", patience_s: float = PATIENCE_S) -> _Found:
        """Look again until `found` gives something true; fails after a while."""
        deadline = time.monotonic() + patience_s
        while not (value := found()):
            if time.monotonic() > deadline:
                raise AssertionError(f"this did not come within {patience_s} s: {what or found}")
            # The driver hears of the browser only while it is asked something.
            self.page.wait_for_timeout(15)
        return value

    def phase(self, name: str) -> None:
        """Wait until the page shows that phase."""
        self.page.wait_for_selector(f'body[data-phase="{name}"]')

    def beat(self, name: str) -> None:
        """Wait for that beat of a reveal."""
        self.page.wait_for_selector(f'body[data-beat="{name}"]')

    def text(self, selector: str) -> str:
        """The words of a node, whatever holds them together."""
        return self.page.inner_text(selector).replace("\u00a0", " ")

    def evaluate(self, expression: str, argument: Any = None) -> Any:
        """What an expression gives in the page."""
        return self.page.evaluate(expression, argument)

    def resize(self, width: int, height: int) -> None:
        """Another size of the window, in CSS pixels; the page has drawn itself anew when this is done."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def oled(self) -> bytes:
        """The picture on the page's OLED as 1,024 bytes, read from its pixels."""
        lit = self.page.evaluate(
            """() => {
                const canvas = document.getElementById("screen");
                const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                const lit = [];
                for (let dot = 0; dot < data.length; dot += 4) lit.push(data[dot] > 127 ? 1 : 0);
                return [canvas.width, canvas.height, lit.join("")];
            }"""
        )
        width, height, dots = lit
        assert (width, height, len(dots)) == (128, 64, 8192)
        return int(dots, 2).to_bytes(1024, "big")


def settled(opened: Opened, table: TableWithPage) -> None:
    """Wait until presses count: the round has been open for longer than its guard."""
    guard = table.config.session_settings().guard + 30 * MILLISECOND
    opened.phase("throw")
    opened.until(lambda: table.clock.now() > table.daemon.shown.since + guard, "the end of the guard")


def thrown(opened: Opened, seat: Seat) -> bool:
    """Does the page say that the seat has thrown, or is the round over?"""
    return bool(
        opened.evaluate(
            """seat => !["throw", "countdown"].includes(document.body.dataset.phase)
                || document.querySelector(`.seat[data-seat="${seat}"]`).hasAttribute("data-thrown")""",
            seat,
        )
    )
