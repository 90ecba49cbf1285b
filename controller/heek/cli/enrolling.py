"""`heek enrol`: at which KI a table is enrolled, and how it comes to be enrolled anew."""

from __future__ import annotations

import argparse
from typing import Any

from heek.cli import OK
from heek.cli.journal_place import add_place, journal_of


def add_to(commands: Any) -> None:
    """Add `enrol` to the commands."""
    parser = commands.add_parser(
        "enrol",
        help="say at which KI the table is enrolled, or have it enrol anew",
        description="A table enrols by itself: beside the KI at first sight, elsewhere by a code that it "
        "shows and that is typed in at the KI (heek ki enrol CODE). Then it believes that KI alone.",
    )
    add_place(parser)
    parser.add_argument(
        "--again",
        action="store_true",
        help="forget that KI, for when it was replaced; the table must be stopped, and enrols when it starts",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Say it, or forget it; raises JournalError if there is no journal or the table still runs."""
    from heek.journal import open_journal, read_journal

    place = journal_of(arguments)
    with read_journal(place) as journal:
        pin, waiting, file = journal.pin(), journal.waiting(), journal.file
    if arguments.again:
        with open_journal(file.parent) as opened:
            opened.forget_service()
        was = "was enrolled nowhere" if pin is None else f"is no longer enrolled at {pin.name}"
        print(f"{file}: the table {was}; start it, and it enrols at the KI that it finds there")
    elif pin is None:
        print(f"{file}: the table is enrolled at no KI yet; {_results(waiting)} for one")
    else:
        how = "by its code" if pin.found == "code" else "at first sight"
        print(
            f"{file}: the table is enrolled at {pin.name} (key {_key_id(pin.service)}), {how}; "
            f"{_results(waiting)} for it"
        )
    return OK


def _key_id(public: bytes) -> str:
    from heek.ki.envelope import key_id

    return key_id(public).hex()


def _results(waiting: int) -> str:
    return "1 result waits" if waiting == 1 else f"{waiting} results wait"
