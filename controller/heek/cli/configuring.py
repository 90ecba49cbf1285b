"""`heek config`: check a configuration, show what it comes to, print one, or the boot settings for it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from heek.cli import OK


def add_to(commands: Any) -> None:
    """Add `config check`, `config show`, `config example` and `config boot` to the commands."""
    parser = commands.add_parser("config", help="check, show or start a configuration")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    check = actions.add_parser("check", help="name every mistake in a file")
    check.add_argument("file", type=Path, metavar="FILE")
    check.set_defaults(run=run_check)
    show = actions.add_parser("show", help="the whole configuration that a file comes to")
    show.add_argument("file", type=Path, metavar="FILE")
    show.set_defaults(run=run_show)
    example = actions.add_parser("example", help="every key with its default and its meaning")
    example.set_defaults(run=run_example)
    boot = actions.add_parser("boot", help="what a file needs in the Pi's config.txt: pins as they are wired")
    boot.add_argument("file", type=Path, metavar="FILE")
    boot.set_defaults(run=run_boot)


def run_check(arguments: argparse.Namespace) -> int:
    """Say that the file is fine; raises ConfigError with every mistake if it is not.

    One of a KI alone needs no table, for `heek ki serve` takes it so.
    """
    from heek.config import is_for_service_alone, load, service_alone_words

    if is_for_service_alone(arguments.file):
        print(f"{arguments.file}: fine; {service_alone_words(arguments.file)}")
        return OK
    config = load(arguments.file)
    print(f"{arguments.file}: fine; {config.table.name}, seats {', '.join(map(str, config.seat_numbers))}")
    return OK


def run_show(arguments: argparse.Namespace) -> int:
    """Print the effective configuration as TOML."""
    from heek.config import load, show

    print(show(load(arguments.file)), end="")
    return OK


def run_example(_arguments: argparse.Namespace) -> int:
    """Print a complete, commented file."""
    from heek.config import example

    print(example(), end="")
    return OK


def run_boot(arguments: argparse.Namespace) -> int:
    """Print the boot settings for the stations and the LEDs' polarity of a file."""
    from heek.config import load
    from heek.wiring.documents import boot_settings

    config = load(arguments.file)
    settings = boot_settings(
        config.wired,
        led_active_high=config.stations.led_active_high,
        provenance="Made from a table's configuration by `heek config boot FILE`; edit that.",
    )
    print(settings, end="")
    return OK
