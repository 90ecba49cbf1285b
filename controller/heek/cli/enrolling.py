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
    """Say it, or forget it.

    Raises JournalError if there is no journal or the table still runs, KeyFileError if its key is not sound.
    """
    from heek.journal import open_journal, read_journal
    from heek.ki.table_key import key_if_any

    place = journal_of(arguments)
    with read_journal(place) as journal:
        pin, waiting, file = journal.pin(), journal.waiting(), journal.file
        if not arguments.again:
            key = key_if_any(file.parent)
            known = key is not None and journal.is_known_as(key.id)
    if arguments.again:
        with open_journal(file.parent) as opened:
            opened.forget_service()
        was = "was enrolled nowhere" if pin is None else f"is no longer enrolled at {pin.name}"
        print(f"{file}: the table {was}; start it, and it enrols at the KI that it finds there")
    elif pin is None:
        print(f"{file}: the table is enrolled at no KI yet; {_results(waiting)} for one")
    elif not known:
        why = "has no key yet" if key is None else f"has the key {key.id.hex()}, unknown there"
        alone = f"{pin.name} alone (key {_key_id(pin.service)})"
        print(
            f"{file}: the table is not enrolled; it believes {alone}, and {why}: running, it shows a code, "
            f"to be typed in there (heek ki enrol CODE); {_results(waiting)} for it"
        )
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
