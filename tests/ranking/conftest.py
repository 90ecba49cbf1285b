"""A ledger in a folder of the test, and a KI that listens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from heek.ki.answers import read_introduction
from heek.ranking.ledger import Ledger
from heek.ranking.store import Store, open_store
from tests.ranking.records import FakeTable
from tests.ranking.service import RunningKi


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "ki" / "ki.sqlite3")
    yield opened
    opened.close()


@pytest.fixture
def ledger(store: Store) -> Ledger:
    return Ledger(store, lambda: 1_900_000_000.0)


@pytest.fixture
def table(ledger: Ledger) -> FakeTable:
    """A table that the ledger knows."""
    fake = FakeTable()
    ledger.introduce(*read_introduction(fake.introduction()))
    return fake


@pytest.fixture
def ki(tmp_path: Path) -> Iterator[RunningKi]:
    with RunningKi(tmp_path) as running:
        yield running
