"""`heek ki`: the KI itself, what stands at its end of a serial link, and what comes to it by hand."""

from __future__ import annotations

from typing import Any

from heek.cli import ki_gateway, ki_import, ki_service


def add_to(commands: Any) -> None:
    """Add `ki` with its own commands."""
    parser = commands.add_parser(
        "ki", help="run the ranking service, the gateway at its serial port, or bring it a file"
    )
    inner = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (ki_service, ki_gateway, ki_import):
        command.add_to(inner)
