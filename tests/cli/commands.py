"""Runs the command as people do: in a process of its own, from this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
STORIES = ROOT / "tests" / "stories"


def environment(**more: str) -> dict[str, str]:
    """What a process needs to find the package in this checkout."""
    return os.environ | {"PYTHONPATH": str(ROOT / "controller")} | more


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "heek", *arguments]


def heek(*arguments: str, send: bytes | None = None, **more: str) -> subprocess.CompletedProcess[bytes]:
    """`heek` with these arguments; `send` goes to its standard input, `more` into its environment."""
    return subprocess.run(
        command(*arguments), input=send, env=environment(**more), capture_output=True, timeout=60, check=False
    )


def shell(line: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    """A line for bash in which $HEEK is the command."""
    return subprocess.run(
        ["bash", "-c", line],
        env=environment(HEEK=f"{sys.executable} -m heek", **more),
        cwd=STORIES,
        capture_output=True,
        timeout=60,
        check=False,
    )
