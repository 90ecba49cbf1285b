"""`heek doctor`: a line for everything that a table hangs on; a running table is left alone."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Final

from heek.cli import FAILED, OK, machine_output
from heek.cli.journal_place import INSTALLED, installed, journal_of
from heek.clock import MILLISECOND
from heek.errors import ConfigError

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
    parser.add_argument("--config", type=Path, metavar="FILE", help=f"default: {INSTALLED}, if it is there")
    parser.add_argument(
        "--fairness",
        action="store_true",
        help="instead: how fair the table was, up to the end of its last match, also while it runs",
    )
    parser.add_argument(
        "--state-dir", type=Path, metavar="DIR", help="with --fairness: the folder of the table's journal"
    )
    parser.add_argument("--json", action="store_true", help="for programs (controller/heek/doctor/README.md)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print every finding; 1 if something is wrong."""
    if arguments.fairness:
        return _fairness(arguments)
    from heek.doctor.examination import examine
    from heek.doctor.findings import Mark, document, text_lines, verdict
    from heek.doctor.machine import this_machine

    findings = list(examine(case_of(arguments.config, this_machine())))
    arguments.found = FAILED if verdict(findings) is Mark.WRONG else OK
    if arguments.json:
        machine_output()
        print(json.dumps(document(findings), ensure_ascii=False, indent=1))
    else:
        print("\n".join(text_lines(findings)))
    return int(arguments.found)


def _fairness(arguments: argparse.Namespace) -> int:
    """Print the figures that the journal has; 1 if they are not fair.

    Raises ConfigError or JournalError, with what to do, where there are none to be read.
    """
    from heek.config import Config, from_text, load
    from heek.errors import JournalError
    from heek.fairness.findings import lines, shortcomings
    from heek.journal import read_journal

    file = arguments.config or installed()
    config: Config = from_text(STANDARD, "the standard table") if file is None else load(file)
    folder = journal_of(arguments)
    with read_journal(folder) as journal:
        kept = journal.fairness()
    if kept is None:
        raise JournalError(
            f"{folder}: no match has ended yet whose figures are kept; play one, and ask again"
        )
    try:
        report = json.loads(kept.body)
        wrong = shortcomings(report, config.ahyoheek.settle / MILLISECOND)
        told = lines(report)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise JournalError(
            f"{folder}: the figures of fairness are damaged; play a match to its end, which writes new ones"
        ) from None
    if arguments.json:
        machine_output()
        print(json.dumps({"report": report, "shortcomings": wrong}, indent=1))
    else:
        verdict = [f"wrong: {each}" for each in wrong] or ["nothing is unfair"]
        print("\n".join([*told, "", *verdict]))
    return FAILED if wrong else OK


def case_of(file: Path | None, machine: Any) -> Any:
    """The table of a configuration on a machine; of the standard one if there is none that can be read."""
    from heek.config import from_text, load
    from heek.doctor.examination import Case

    file = file or installed()
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
