"""`heek ki`: the KI itself, the gateways at its serial ports, what comes to it by hand, and its operator."""

from __future__ import annotations

from typing import Any

from heek.cli import ki_gateway, ki_import, ki_operator, ki_service


def add_to(commands: Any) -> None:
    """Add `ki` with its own commands."""
    said = "run the ranking service or the gateway at its serial ports, bring it a file, be its operator"
    parser = commands.add_parser("ki", help=said)
    inner = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (ki_service, ki_gateway, ki_import, ki_operator):
        command.add_to(inner)
