"""`heek ki serve`: the KI, on this machine, until it is told to stop."""

from __future__ import annotations

import argparse
import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heek.cli import OK

if TYPE_CHECKING:
    from heek.ranking.settings import ServiceSettings


def add_to(commands: Any) -> None:
    """Add `serve` to the commands of `heek ki`."""
    parser = commands.add_parser(
        "serve",
        help="take the tables' results, keep the ledger, show the board",
        description="The KI: takes match records from tables, keeps the ledger of ranking-points and shows "
        "the board. What is given here goes before the [service] of the configuration.",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="table.toml, for its [service]")
    parser.add_argument("--host", metavar="ADDRESS", help="where to listen (127.0.0.1)")
    parser.add_argument("--port", type=_port, metavar="N", help="its port, 0 for a free one (8625)")
    parser.add_argument(
        "--tls-port",
        type=_port,
        metavar="N",
        help="listen there with TLS besides, 0 for a free one (nowhere)",
    )
    parser.add_argument(
        "--no-announce",
        action="store_true",
        help="do not tell the local network where the KI is; at 127.0.0.1 it never is told",
    )
    parser.add_argument(
        "--database", type=Path, metavar="FILE", help="the ledger (ki.sqlite3 in the state folder)"
    )
    parser.add_argument("--name", type=_name, metavar="NAME", help="what the pages call it (KI)")
    parser.add_argument(
        "--demo", action="store_true", help="on loopback a seat may claim a KI number by a click, unverified"
    )
    parser.add_argument(
        "--new-key",
        action="store_true",
        help="if service.key is gone, begin with a new one; every table must then be enrolled anew",
    )
    parser.add_argument("--until-stdin-closes", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C; raises TableError if it cannot start."""
    settings, level = settings_of(arguments)
    if arguments.until_stdin_closes:
        # Whoever started us speaks for us, as long as all is well.
        level = "WARNING"
    logging.basicConfig(level=level, format="%(levelname)s %(message)s", stream=sys.stderr)
    from heek.clock import RealClock
    from heek.ranking import server

    server.run(settings, RealClock(), until_stdin_closes=arguments.until_stdin_closes)
    return OK


def settings_of(arguments: argparse.Namespace) -> tuple[ServiceSettings, str]:
    """What the command line says, else the configuration, else the defaults; and what is logged."""
    from heek.config.values import default_state_dir
    from heek.ranking.settings import FILE_NAME, ServiceSettings
    from heek.serving.addresses import is_loopback

    given: dict[str, Any] = {}
    level = "INFO"
    if arguments.config is not None:
        from heek.config import load_service

        service, log = load_service(arguments.config)
        level = log.level.upper()
        given = {"host": service.host, "port": service.port, "name": service.name}
        if service.tls_port:
            given["tls_port"] = service.tls_port
        if service.database:
            given["database"] = Path(service.database)
    for key in ("host", "port", "tls_port", "name", "database"):
        if getattr(arguments, key, None) is not None:
            given[key] = getattr(arguments, key)
    if "database" not in given:
        given["database"] = default_state_dir() / FILE_NAME
    given["database"] = given["database"].absolute()
    settings = ServiceSettings(
        **given, demo=getattr(arguments, "demo", False), new_key=getattr(arguments, "new_key", False)
    )
    here_alone = is_loopback(settings.host) or settings.host == "localhost"
    silent = here_alone or getattr(arguments, "no_announce", True)
    return replace(settings, announce=not silent), level


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 0 to 65535")
    return int(text)


def _name(text: str) -> str:
    if not 0 < len(text.strip()) <= 24 or not text.isprintable():
        raise argparse.ArgumentTypeError("a name has 1 to 24 characters that can be shown")
    return text.strip()
