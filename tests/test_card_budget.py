"""What a match writes to the card: counted, never timed, and held against the journal's budget (F056)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import heek.journal
from tests.bench.card import BLOCK, written
from tests.bench.evening import hour

README = Path(heek.journal.__file__).with_name("README.md")
SECONDS = 300


def stated() -> tuple[dict[str, int], int]:
    """The budget of a match in the README's words, and the bytes of an hour without anybody."""
    text = " ".join(README.read_text("utf-8").replace("*", "").split())
    found = re.search(
        r"at most (\d+) kB in writes, (\d+) kB in whole blocks and (\d+) syncs a match; "
        r"an hour without anybody under (\d+) kB",
        text,
    )
    assert found is not None
    written_kb, blocks_kb, syncs, idle_kb = map(int, found.groups())
    return {"bytes": 1000 * written_kb, "blocks": 1000 * blocks_kb // BLOCK, "syncs": syncs}, 1000 * idle_kb


def test_a_match_stays_within_its_budget() -> None:
    """Five lively seats for some minutes: what a match wrote is what the README allows, and not much less.

    What a table without anybody writes in an hour, its start and end among it, is taken off.
    """
    budget, idle = stated()
    won = hour(0, SECONDS).won
    assert won >= 4
    nobody, told = written("idle", 0, 3600), written("hour", 0, SECONDS)
    assert 0 < nobody["bytes"] < idle
    assert 0.7 * budget["bytes"] < (told["bytes"] - nobody["bytes"]) / won <= budget["bytes"]
    if not told["syncs"]:
        pytest.skip("the bytes are within the budget; to count syncs and blocks needs strace")
    assert 0.7 * budget["blocks"] < (told["blocks"] - nobody["blocks"]) / won <= budget["blocks"]
    assert 0.7 * budget["syncs"] < (told["syncs"] - nobody["syncs"]) / won <= budget["syncs"]
