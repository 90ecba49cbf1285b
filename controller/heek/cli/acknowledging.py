"""`heek journal acknowledge`: an operator knows of a difference to the KI that nothing can mend."""

from __future__ import annotations

import argparse
from typing import Any, Final

from heek.cli import OK
from heek.cli.journal_place import add_place, journal_of

MOST_NAME: Final = 32
"""Characters of who it is."""
OPERATOR: Final = "the operator"
"""Who it was, where nobody says more."""


def add_to(actions: Any) -> None:
    """Add `acknowledge` to the actions of `heek journal`."""
    parser = actions.add_parser(
        "acknowledge",
        help="know of matches that only the KI holds, so that they are told no more",
        description="After a table's card was put back from a backup the KI holds matches that the table "
        "does not know, and nothing can mend that. Who has seen to it says so here. It is kept in the "
        "journal, and told again if the difference becomes another. The table must not run meanwhile: "
        "systemctl stop heek, and start it again afterwards.",
    )
    parser.add_argument("--by", type=_name, default=OPERATOR, metavar="NAME", help="who it is")
    add_place(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Note it, and say what it is; raises JournalError if there is no journal, or the table runs."""
    from heek.boot import wall_trust
    from heek.clock import RealClock
    from heek.journal import open_journal, read_journal
    from heek.ki.settlement import acknowledged_words, words

    # Looked at first, so that none is made where there is none.
    with read_journal(journal_of(arguments)) as reader:
        file, before = reader.file, reader.acknowledgement()
    with open_journal(file.parent) as journal:
        known = journal.acknowledge_difference(arguments.by, int(RealClock().wall_s()), wall_trust())
        difference = words(journal.difference())
    if known is None or difference is None:
        print(f"{file}: the KI and this journal agree; there is nothing to acknowledge")
        return OK
    already = "" if before is None else " already"
    print(
        f"{file}: {difference.partition(':')[0]}; acknowledged{already} "
        f"{acknowledged_words(known.by, known.at_s, known.trust)}, and told again when it changes"
    )
    return OK


def _name(text: str) -> str:
    from heek.unseen import first_unseen

    name = text.strip()
    if not 0 < len(name) <= MOST_NAME or first_unseen(name) is not None:
        raise argparse.ArgumentTypeError(f"{text!r} is no name: 1 to {MOST_NAME} characters that can be seen")
    return name
