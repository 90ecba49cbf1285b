"""What the KI's service is told at its start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

FILE_NAME: Final = "ki.sqlite3"
"""Of the ledger, in the state folder."""


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """`[service]` of the configuration, and what the command line says on top of it."""

    database: Path
    host: str = "127.0.0.1"
    """The address to listen at; `0.0.0.0` or `::` for all that the machine has."""
    port: int = 8625
    """0: one that is free."""
    name: str = "KI"
    """What the pages call it."""
    tls_port: int | None = None
    """Where it listens with TLS besides; 0: one that is free; None: nowhere."""
    announce: bool = False
    """Tell the local network where it is (DNS-SD)."""
    demo: bool = False
    """On loopback a seat may claim a KI number by a click; all such players are marked unverified."""
    new_key: bool = False
    """Begin with a new key if the ledger has tables, but the key that they know is gone."""
