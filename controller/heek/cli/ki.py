"""`heek ki`: the KI itself, what stands at its end of a serial link, and what its operator does."""

from __future__ import annotations

from typing import Any

from heek.cli import ki_gateway, ki_operator, ki_service


def add_to(commands: Any) -> None:
    """Add `ki` with its own commands."""
    parser = commands.add_parser(
        "ki", help="run the ranking service, or the gateway at its serial port; be its operator"
    )
    inner = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (ki_service, ki_gateway, ki_operator):
        command.add_to(inner)
