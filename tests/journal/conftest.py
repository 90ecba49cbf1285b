"""A state folder for each test, in memory where the machine has such a place."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journal.scripts import quick_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="heek-test-", dir=quick_folder()) as name:
        yield Path(name) / "state"
