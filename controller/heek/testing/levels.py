"""The kinds of tables that tests play on: which one a run has, and how one that nobody has is refused."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from heek.testing.rig import Level

LEVELS: Final = ("sim", "virtual-pi")
CANNOT: Final = "heek_cannot"
"""The property of an item that tells what its kind of table could not do."""

_LEVEL: Final = pytest.StashKey["Level"]()


def level(config: pytest.Config) -> Level:
    """The kind of table that `--table` names; raises pytest.UsageError if nobody has it."""
    if _LEVEL not in config.stash:
        name = str(config.getoption("--table"))
        found = config.hook.pytest_heek_level(name=name, config=config)
        if found is None:
            raise pytest.UsageError(f"--table={name}: {_why_not(name)}")
        config.stash[_LEVEL] = found
    return config.stash[_LEVEL]


def _why_not(name: str) -> str:
    if name == "virtual-pi":
        return (
            "no virtual Pi is at hand; a plugin or the conftest.py of its VM joins it by the hook "
            "pytest_heek_level (heek/testing/hooks.py); take --table=sim"
        )
    near = difflib.get_close_matches(name, LEVELS, n=1)
    return "there is no such kind of table; " + (f"did you mean {near[0]}?" if near else "take sim")
