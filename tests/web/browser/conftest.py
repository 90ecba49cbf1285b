"""A headless Chromium for the tests of the page, and what every page it opens is held to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.chromium import chromium
from tests.web.browser.hands import Opened
from tests.web.browser.shown import ShownTable
from tests.web.table_for_pages import QUICK, TableWithPage

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PLAYED: dict[str, object] = QUICK | {
    "ahyoheek.countdown_s": 10,
    "ahyoheek.reveal_s": 1.5,
    "ahyoheek.match_over_s": 1.5,
}
"""Times for a match that a browser plays: a busy machine may be slow; who has all thrown ends a round."""

LAPTOP = {"width": 1366, "height": 768}
PHONE = {"width": 360, "height": 740}

_ENDED = "ERR_INCOMPLETE_CHUNKED_ENCODING"
"""What Chromium writes when a table is switched off under an open stream, as at the end of many a test."""

_EYES = "Multiple readback operations using getImageData"
"""What it writes of the tests' own looking at the OLED's pixels."""

_TROUBLE = re.compile(r"Failed to load resource|EventSource's response has")
"""What it writes of a server that is away or answers otherwise, which is what some tests are about."""


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of this folder."""
    yield from chromium()


Opener = Callable[..., Opened]
Server = Callable[[Any], Any]


@pytest.fixture
def serve() -> Iterator[Server]:
    """Starts tables and their pages; they are switched off after the browser has left them."""
    with ExitStack() as tables:
        yield tables.enter_context


@pytest.fixture
def open_page(browser: Browser, serve: Server) -> Iterator[Opener]:
    """Opens pages, each in a context of its own; none may have failed, or asked anybody but its table."""
    del serve  # Only so that tables end after this.
    contexts = []
    complaints: list[str] = []

    def open_one(
        url: str,
        *,
        wait: bool = True,
        expect_trouble: bool = False,
        script: str | None = None,
        **options: Any,
    ) -> Opened:
        context = browser.new_context(**({"viewport": LAPTOP} | options))
        contexts.append(context)
        context.set_default_timeout(40000)
        page = context.new_page()
        if script is not None:
            page.add_init_script(script)
        origin = "/".join(url.split("/")[:3])

        def on_console(message: Any) -> None:
            text = message.text
            expected = _ENDED in text or _EYES in text or (expect_trouble and _TROUBLE.match(text))
            if message.type in ("error", "warning") and not expected:
                complaints.append(text)

        def on_request(request: Any) -> None:
            if not request.url.startswith((f"{origin}/", "data:")):
                complaints.append(f"asked {request.url}")

        page.on("console", on_console)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", on_request)
        page.goto(url)
        if wait:
            page.wait_for_selector("body[data-link=live][data-phase]")
        return Opened(page)

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def table(tmp_path: Path, serve: Server) -> TableWithPage:
    """A real table on mock pins, with short times, and its page."""
    running: TableWithPage = serve(TableWithPage(tmp_path, **PLAYED))
    return running


@pytest.fixture
def shown(serve: Server) -> ShownTable:
    """A page that shows whatever it is told to."""
    running: ShownTable = serve(ShownTable())
    return running
