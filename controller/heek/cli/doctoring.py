"""`heek doctor`: a line for everything that a table hangs on; a running table is left alone."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Final

from heek.cli import FAILED, OK, machine_output
from heek.errors import ConfigError

DEFAULT_FILE: Final = Path("/etc/heek/table.toml")
"""Taken where no configuration is named, if it is there: the one that the unit runs."""

STANDARD: Final = '[stations]\nbackend = "gpio"\n'
"""The table that is looked at where there is no configuration, or a broken one."""


def add_to(commands: Any) -> None:
    """Add `doctor` to the commands."""
    parser = commands.add_parser(
        "doctor",
        help="look at pins, panel, ports, clock, disk and boot settings, and say what to do",
        description="Looks at everything that a table hangs on: a line each, with what to do. Ends with 0 if "
        "nothing is wrong (warnings alone are 0), else with 1. It leaves a running table alone.",
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help=f"default: {DEFAULT_FILE}, if it is there"
    )
    parser.add_argument("--json", action="store_true", help="for programs (controller/heek/doctor/README.md)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print every finding; 1 if something is wrong."""
    from heek.doctor.examination import examine
    from heek.doctor.findings import Mark, document, text_lines, verdict
    from heek.doctor.machine import this_machine

    findings = list(examine(case_of(arguments.config, this_machine())))
    if arguments.json:
        machine_output()
        print(json.dumps(document(findings), ensure_ascii=False, indent=1))
    else:
        print("\n".join(text_lines(findings)))
    return FAILED if verdict(findings) is Mark.WRONG else OK


def case_of(file: Path | None, machine: Any) -> Any:
    """The table of a configuration on a machine; of the standard one if there is none that can be read."""
    from heek.config import from_text, load
    from heek.doctor.examination import Case

    if file is None and DEFAULT_FILE.exists():
        file = DEFAULT_FILE
    mistakes: tuple[str, ...] = ()
    config = None
    if file is not None:
        try:
            config = load(file)
        except ConfigError as error:
            mistakes = tuple(str(error).splitlines())
    if config is None:
        config = from_text(STANDARD, "the standard table")
    return Case(machine, config, str(file or ""), mistakes, machine.table_pid(config.table.state_dir))
