"""A headless Chromium for tests that look at pages as people do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ARGUMENTS = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def installed() -> str | None:
    """The Chromium of this machine, if there is one."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def chromium() -> Iterator[Browser]:
    """Launch one, and end it; skips, with the reason, where there is none, but in CI there must be one.

    For a fixture of package scope: while playwright's driver is there, its own loop runs on this thread,
    and no test of another package could run one.
    """
    program = installed()
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("there is no Chromium; .ci/run installs it")
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        yield browser
        browser.close()
