"""Where a command finds a table's journal: what people may type, and what is meant if they type nothing."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

INSTALLED: Final = Path("/etc/heek/table.toml")
"""The configuration that the unit runs: taken where none is named, if it is there."""


def installed() -> Path | None:
    """The configuration that the unit runs; None if there is none, or it is not for us to see."""
    try:
        return INSTALLED if INSTALLED.exists() else None
    except OSError:
        return None


def add_place(parser: argparse.ArgumentParser) -> argparse._MutuallyExclusiveGroup:
    """Add `--config` and `--state-dir`, of which one may be given; a third may be added to the group."""
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help=f"the table's configuration; default: {INSTALLED}, if it is there",
    )
    place.add_argument("--state-dir", type=Path, metavar="DIR", help="the table's state folder")
    return place


def journal_of(arguments: argparse.Namespace) -> Path:
    """The state folder or the journal's file that was meant.

    Raises ConfigError for a configuration that cannot be read.
    """
    from heek.config import default_state_dir, load

    named: Path | None = arguments.state_dir or getattr(arguments, "journal", None)
    if named is not None:
        return named
    config: Path | None = arguments.config or installed()
    return default_state_dir() if config is None else load(config).table.state_dir
