"""A real browser, and a KI with an evening's matches in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.chromium import chromium
from tests.ranking.ki_for_pages import Evening
from tests.ranking.service import RunningKi

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Headless Chromium for all tests of this folder."""
    yield from chromium()


@pytest.fixture
def evening() -> Evening:
    return Evening()


@pytest.fixture
def full(tmp_path: Path, evening: Evening) -> Iterator[RunningKi]:
    """A KI with sixty matches of three tables."""
    with RunningKi(tmp_path) as ki:
        for table in evening.tables:
            ki.introduce(table)
        for _ in range(60):
            ki.report(evening.match())
        yield ki


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages; the test fails if one writes on its console, or asks another host for anything."""
    contexts: list[Any] = []
    faults: list[str] = []

    def opened(ki: RunningKi, path: str = "/", *, quiet: bool = False, **context: Any) -> Page:
        made = browser.new_context(**({"viewport": {"width": 1366, "height": 768}} | context))
        contexts.append(made)
        page = made.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        if not quiet:
            page.on("console", lambda message: faults.append(message.text))

        def asked(request: Any) -> None:
            if not request.url.startswith(ki.url):
                faults.append(f"asks for {request.url}")

        page.on("request", asked)
        page.goto(ki.url + path.lstrip("/"))
        return page

    yield opened
    for each in contexts:
        each.close()
    assert faults == []
