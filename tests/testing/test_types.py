"""The fixture's types: a type checker takes what is meant and refuses what is not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

SAMPLE = """\
from heek.testing.table import Table

def test_meant(table: Table) -> None:
    table.seat(1).press("pen", bounce=[(0.002, 0), (0.004, 1)])
    points: dict[str, int] = table.expect(event="round_revealed", within=1, round=1)["points"]
    table.expect(lamp=1, pattern="taken", within=1)
    table.expect_no(screen="reveal")
    lamp: str = table.lamp(1) + table.seat(1).lamp
    table.image.save("frame.png")

def test_not_meant(table: Table) -> None:
    table.seat("1")  # arg-type
    table.expect(lamp=1)  # call-overload
    table.expect(screen="lobby")["event"]  # index
    table.seat(1).press()  # call-arg
    table.screen = "lobby"  # misc
    table.sit(1)  # attr-defined
"""


def test_the_words_are_typed(tmp_path: Path) -> None:
    """mypy --strict, as a user runs it over the installed package, finds exactly the mistakes."""
    file = tmp_path / "sample.py"
    file.write_text(SAMPLE)
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = {
        (int(line), code)
        for line, code in re.findall(
            r"sample\.py:(\d+): error: .*\[([a-z-]+)\]$", result.stdout, re.MULTILINE
        )
    }
    wanted = {
        (number, line.partition("# ")[2])
        for number, line in enumerate(SAMPLE.splitlines(), start=1)
        if "# " in line
    }
    assert found == wanted, result.stdout + result.stderr
