"""The command that writes the generated documents, or tells which are out of date."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from heek.errors import DocumentsError
from heek.wiring.documents import differences, documents, write


def main(argv: Sequence[str] | None = None) -> int:
    """Run `write` or `check`; gives the exit code: 0 well, 1 out of date, 2 a mistake in the call."""
    parser = argparse.ArgumentParser(
        prog="python -m heek.wiring",
        description="Pinout, header drawing, boot settings and phase diagram, made from the code.",
    )
    parser.add_argument("action", choices=("write", "check"), help="write them, or tell which differ")
    parser.add_argument("--root", type=Path, default=Path(), help="the project's folder (default: here)")
    arguments = parser.parse_args(argv)
    root: Path = arguments.root
    if not (root / "controller" / "heek").is_dir():
        print(
            f"{root.absolute()}: not the project's folder (no controller/heek in it); give it with --root",
            file=sys.stderr,
        )
        return 2
    try:
        return _write(root) if arguments.action == "write" else _check(root)
    except DocumentsError as error:
        print(error, file=sys.stderr)
        return 2


def _write(root: Path) -> int:
    written = write(root)
    print("written: " + ", ".join(written) if written else "all documents were up to date")
    return 0


def _check(root: Path) -> int:
    lines = differences(root)
    for line in lines:
        print(line, file=sys.stderr)
    if not lines:
        print(f"generated documents: {len(documents())} up to date")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
