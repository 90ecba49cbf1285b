"""Golden bytes of what table and KI say to each other, and how they are written down in JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "vectors"


def vectors(name: str) -> Any:
    """What stands in one file of vectors."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def value_of(written: Any) -> Any:
    """The value that JSON stands for, in which a byte string is written as text: h'00ff'."""
    if isinstance(written, str) and written.startswith("h'"):
        return bytes.fromhex(written[2:-1])
    if isinstance(written, list):
        return [value_of(each) for each in written]
    if isinstance(written, dict):
        return {key: value_of(each) for key, each in written.items()}
    return written
