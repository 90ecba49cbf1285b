"""`heek journal`: look at what a table has kept, check that all of it is sound, carry it by hand."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from heek.cli import FAILED, OK, acknowledging, exporting, machine_output
from heek.cli.journal_place import add_place, journal_of

if TYPE_CHECKING:
    from heek.journal import Result

MOST: Final = 2**63 - 1
"""The largest number of an event that SQLite can hold."""


def add_to(commands: Any) -> None:
    """Add `journal` with its own actions to the commands."""
    parser = commands.add_parser("journal", help="show, verify or export what a table has kept")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    where = argparse.ArgumentParser(add_help=False)
    add_place(where).add_argument(
        "journal",
        type=Path,
        nargs="?",
        metavar="DIR",
        help="in place of both options: the table's state folder, or a journal's file",
    )
    show = actions.add_parser("show", parents=[where], help="the events, one a line")
    show.add_argument("--after", type=_number, default=0, metavar="SEQ", help="only events after this number")
    show.add_argument("--limit", type=_number, metavar="N", help="at most so many")
    show.add_argument("--json", action="store_true", help="as they stand in the journal")
    show.add_argument("--results", action="store_true", help="the results instead of the events")
    show.set_defaults(run=run_show)
    verify = actions.add_parser(
        "verify", parents=[where], help="check numbers, sums, recordings and the file itself"
    )
    verify.set_defaults(run=run_verify)
    exporting.add_to(actions)
    acknowledging.add_to(actions)


def _number(text: str) -> int:
    """A count or a number of an event, as far as SQLite can count."""
    number = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= number <= MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to {MOST}")
    return number


def run_show(arguments: argparse.Namespace) -> int:
    """Print events or results; works while the table runs."""
    from heek.journal import read_journal
    from heek.simulator.terminal import event_row
    from heek.telling import Teller

    with read_journal(journal_of(arguments)) as journal:
        if arguments.results or arguments.json:
            machine_output()
        if arguments.results:
            voids, names = journal.voids(), journal.names()
            for result in islice(journal.results(), arguments.limit):
                print(_shown(result, voids.get(result.match), names))
            return OK
        teller = Teller()
        for entry in journal.events(arguments.after, arguments.limit):
            if arguments.json:
                print(entry.body)
            else:
                event = json.loads(entry.body)
                print(f"{entry.seq:8d} {event_row(event, teller.tell(event))}")
    return OK


def _shown(result: Result, void: str | None, names: Mapping[str, str]) -> str:
    """A result as it was written, with what the KI has told of it since: that it is void, and who is who."""
    record = result.record.decode()
    if void is None and not any(player in record for player in names):
        return record
    value = json.loads(record)
    for seat in value["seats"]:
        seat["name"] = names.get(seat.get("player"), seat.get("name"))
    if void is not None:
        value["void"] = void
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def run_verify(arguments: argparse.Namespace) -> int:
    """Print every fault; 1 if there is one."""
    from heek.journal import read_journal
    from heek.kept_matches import recording_faults

    with read_journal(journal_of(arguments)) as journal:
        # In a file that is damaged itself, what is found in it may not even be read.
        faults = journal.verify() or recording_faults(journal)
        for fault in faults:
            print(fault)
        if faults:
            return FAILED
        print(
            f"{journal.file}: sound; {journal.last_seq()} events, {journal.waiting()} results wait for the KI"
        )
    return OK
