"""kill -9 of the real table and the real KI while a match goes from one to the other: a share of all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import heek
from tests.journal.test_kill import build_shim


@pytest.mark.parametrize(
    ("side", "first", "stride", "calls"), [("table", 5, 9, 100), ("ki", 5, 17, 150)], ids=["table", "KI"]
)
def test_killed_at_writes_of_a_match_on_its_way(
    tmp_path: Path, side: str, first: int, stride: int, calls: int
) -> None:
    """Whatever the last call was: after a restart what the journal holds is at the KI exactly once."""
    library = build_shim(tmp_path)
    command = ["-m", "tests.killed_processes", "--side", side, "--first", str(first), "--stride", str(stride)]
    outcome = subprocess.run(
        [sys.executable, *command],
        env={
            **os.environ,
            "LD_PRELOAD": str(library),
            "PYTHONPATH": os.pathsep.join([str(Path(heek.__file__).parents[1]), str(Path.cwd())]),
        },
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr
    report = json.loads(outcome.stdout)
    # Guards against a shim that is not called, and against a life that always ends at one place.
    assert report["calls"] > calls
    assert len(report["seen"]) >= 2
