"""kill -9 of the real table and the real KI while a match goes from one to the other: a share of all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journal.test_kill import run_under_shim


@pytest.mark.parametrize(
    ("side", "first", "stride", "calls"), [("table", 5, 9, 100), ("ki", 5, 17, 150)], ids=["table", "KI"]
)
def test_killed_at_writes_of_a_match_on_its_way(
    tmp_path: Path, side: str, first: int, stride: int, calls: int
) -> None:
    """Whatever the last call was: after a restart what the journal holds is at the KI exactly once."""
    options = ("--side", side, "--first", str(first), "--stride", str(stride))
    report = run_under_shim(tmp_path, "tests.killed_processes", *options, timeout_s=300)
    # Guards against a shim that is not called, and against a life that always ends at one place.
    assert report["calls"] > calls
    assert len(report["seen"]) >= 2
