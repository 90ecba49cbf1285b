"""`heek ki enrol`, `void`, `restore`, `rename`, `erase` and `tables`: what the operator of a running KI does.

Each asks the KI that runs on this machine, and shows it the operator's key, which stands beside its ledger.
"""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heek.cli import OK
from heek.errors import RankingRefusal

if TYPE_CHECKING:
    from heek.ranking.operator_requests import Wish
    from heek.ranking.table_list import TableLine

TIMEOUT_S = 30.0


def add_to(commands: Any) -> None:
    """Add the operator's commands to those of `heek ki`."""
    enrol = _command(commands, "enrol", "take the table that shows this code", _enrol)
    enrol.add_argument("code", nargs="+", metavar="CODE", help="the eight letters on the table's display")
    enrol.add_argument("--replaces", metavar="TABLE", help="name or key of the table whose place it takes")
    for name, said, wish in (
        ("void", "declare a match void: what it moved is taken back", _void),
        ("restore", "take a void back", _restore),
    ):
        parser = _command(commands, name, said, wish)
        parser.add_argument("match", type=_match, metavar="MATCH", help="its id, as its page has it")
        _add_reason(parser)
    rename = _command(commands, "rename", "give a player another name", _rename)
    rename.add_argument("number", metavar="NUMBER", help="the player's KI number")
    rename.add_argument("name", metavar="NAME", help="what the player is called from now on")
    _add_reason(rename)
    erase = _command(commands, "erase", "replace a player's identity, and keep the entries", _erase)
    erase.add_argument("number", metavar="NUMBER", help="the player's KI number")
    _add_reason(erase)
    _command(commands, "tables", "list the tables, how they stand, and what was seen of them", _tables)


def _command(
    commands: Any, name: str, said: str, wish: Callable[[argparse.Namespace], Wish]
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=said,
        description=f"{said[:1].upper()}{said[1:]}. Asks the KI that runs on this machine, with the "
        "operator's key that stands beside its ledger.",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="table.toml of the KI, for its [service]")
    parser.add_argument("--database", type=Path, metavar="FILE", help="its ledger, if not by --config")
    parser.add_argument("--port", type=int, metavar="N", help="its port, if not by --config (8625)")
    parser.add_argument("--by", metavar="NAME", help="who does it, if not just the operator")
    parser.set_defaults(run=run, wish=wish)
    return parser


def _add_reason(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", required=True, metavar="WORDS", help="why; it is shown to the players")


def run(arguments: argparse.Namespace) -> int:
    """Have the running KI do it, and say what it said; raises TableError if it does not."""
    from heek.cli.ki_service import settings_of
    from heek.ranking.operator_requests import (
        MOST_ACTOR,
        OPERATOR,
        OperatorRequest,
        ask_operator,
        read_tables,
        refusal_words,
    )
    from heek.ranking.service_keys import read_operator_key

    settings, _ = settings_of(arguments)
    key = read_operator_key(settings.database.parent)
    actor = OPERATOR if arguments.by is None else _said(arguments.by, "--by", MOST_ACTOR, "say who does it")
    request = OperatorRequest(key, actor, arguments.wish(arguments))
    try:
        answer = ask_operator(settings.host, settings.port, request, TIMEOUT_S)
    except RankingRefusal as refusal:
        raise RankingRefusal(refusal.code, refusal_words(refusal), refusal.retry_s) from None
    if "said" in answer:
        print(answer["said"])
        return OK
    for line in _lines(*read_tables(answer)):
        print(line)
    return OK


def _enrol(arguments: argparse.Namespace) -> Wish:
    from heek.ki.claim import read_code
    from heek.ranking.operator_requests import MOST_REPLACED, Enrol

    try:
        # A code is shown in two groups, and may well be typed so.
        code = read_code("".join(arguments.code))
    except ValueError as error:
        raise RankingRefusal(
            "unknown_code", f"{error}; type it as the display shows it, heek ki enrol BCDF GHJK say"
        ) from None
    replaces = arguments.replaces
    if replaces is not None:
        replaces = _said(
            replaces, "--replaces", MOST_REPLACED, "give the old table's name or key (heek ki tables)"
        )
    return Enrol(code, replaces)


def _void(arguments: argparse.Namespace) -> Wish:
    from heek.ranking.operator_requests import Void

    return Void(arguments.match, _reason(arguments))


def _restore(arguments: argparse.Namespace) -> Wish:
    from heek.ranking.operator_requests import Restore

    return Restore(arguments.match, _reason(arguments))


def _rename(arguments: argparse.Namespace) -> Wish:
    from heek.ranking.look_alikes import chosen_name
    from heek.ranking.operator_requests import Rename

    # Said here already, for what is no text at all does not even get to the KI.
    return Rename(_number(arguments), chosen_name(arguments.name), _reason(arguments))


def _erase(arguments: argparse.Namespace) -> Wish:
    from heek.ranking.operator_requests import Erase

    return Erase(_number(arguments), _reason(arguments))


def _tables(_arguments: argparse.Namespace) -> Wish:
    from heek.ranking.operator_requests import ListTables

    return ListTables()


def _number(arguments: argparse.Namespace) -> str:
    """The KI number that was typed, perhaps in groups; raises RankingRefusal if none can be that."""
    from heek.ki.numbers import is_ki_number

    number = "".join(arguments.number.split())
    if not is_ki_number(number):
        raise RankingRefusal(
            "malformed",
            f"{arguments.number!r} is no KI number: eight digits, of which the last one checks the others, "
            "so one may be mistyped; type it as the player's page shows it",
        )
    return number


def _reason(arguments: argparse.Namespace) -> str:
    """What was typed after --reason; raises RankingRefusal if it cannot be shown as it is."""
    from heek.ranking.operator_requests import MOST_REASON

    return _said(
        arguments.reason, "--reason", MOST_REASON, 'say why in a few words, --reason "wrong seat" say'
    )


def _said(text: str, option: str, most: int, what: str) -> str:
    """What was typed after an option, without blanks around it; raises RankingRefusal, which says `what`."""
    said = text.strip()
    if not said:
        wrong = "is empty"
    elif len(said) > most:
        wrong = f"has {len(said)} characters, and {most} are the most"
    elif not said.isprintable():
        wrong = "has a character that cannot be shown, a line break perhaps"
    else:
        return said
    raise RankingRefusal("malformed", f"{option} {wrong}: {what}")


def _match(text: str) -> bytes:
    """The id of a match, or the address of its page."""
    try:
        return uuid.UUID(text.rstrip("/").rpartition("/")[2]).bytes
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no match; give its id as its page has it") from None


def _lines(tables: Iterable[TableLine], claims: Iterable[str]) -> Iterable[str]:
    from heek.ranking.table_words import finding_words, standing_words

    for each in tables:
        yield f"{each.name} (key {each.key_id.hex()}): {standing_words(each)}"
        for found in each.findings:
            yield f"  {finding_words(found)}"
    waiting = list(claims)
    for name in waiting:
        yield f"{name} shows a code: heek ki enrol CODE"
    if not waiting and not tables:
        yield "no table has reported here, and none shows a code"
