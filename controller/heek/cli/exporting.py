"""`heek journal export` and `heek journal receive`: records out by hand, and the KI's receipt back in."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from heek.cli import FAILED, OK
from heek.cli.journal_place import add_place, installed, journal_of
from heek.errors import CarriedFileError, ConfigError, JournalError, KeyFileError, RecordError, TableError

if TYPE_CHECKING:
    from heek.by_hand import Exportable, Received
    from heek.ki.table_key import TableKey

STANDARD_OUTPUT: Final = Path("-")


def add_to(actions: Any) -> None:
    """Add `export` and `receive` to the actions of `heek journal`."""
    export = actions.add_parser(
        "export",
        help="write the signed records into a file, to be taken to the KI on a stick",
        description="Writes the results that wait for the KI, signed as they would be sent, into a new file. "
        "Works while the table runs, and changes nothing in it: what is exported waits on until the KI has "
        "answered, by the link or by a receipt. At the KI: heek ki import FILE.",
    )
    add_place(export)
    export.add_argument("--all", action="store_true", help="every result, also those that were answered for")
    export.add_argument(
        "--out",
        type=_file,
        default=Path(),
        metavar="FILE",
        help="a new file, or a folder (the stick) for one with a name of its own, or - for standard output; "
        "default: this folder",
    )
    export.set_defaults(run=run_export)
    receive = actions.add_parser(
        "receive",
        help="take in the receipt that heek ki import wrote, so that nothing in it waits any more",
        description="Takes in what the KI answered to an export. The table must not run meanwhile: "
        "systemctl stop heek, and start it again afterwards.",
    )
    receive.add_argument("receipt", type=_file, metavar="RECEIPT", help="what heek ki import wrote")
    add_place(receive)
    receive.set_defaults(run=run_receive)


def _file(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("'' names no file")
    return Path(text)


def run_export(arguments: argparse.Namespace) -> int:
    """Write the file; nothing is written if there is nothing to export."""
    from heek.by_hand import export, exportable
    from heek.journal import read_journal
    from heek.whole_file import whole_file

    state_dir = journal_of(arguments)
    out: Path = arguments.out
    if out == STANDARD_OUTPUT and sys.stdout.isatty():
        raise ConfigError("--out -: standard output is a terminal; lead it into a file or a program")
    with read_journal(state_dir) as journal:
        key = _key(state_dir)
        found = exportable(journal, key.id, everything=arguments.all)
        if not found.numbers:
            print(f"nothing {'is kept' if arguments.all else 'waits'} for the KI; no file is written")
            _tell_left_out(found)
            return OK
        name = _table_name(arguments) or found.name
        if out == STANDARD_OUTPUT:
            export(journal, found, key, name, sys.stdout.buffer.write)
            sys.stdout.buffer.flush()
        else:
            file = out / _file_name(key, found) if out.is_dir() else out
            with whole_file(file) as writing:
                export(journal, found, key, name, writing.write)
            print(f"{file}: {_count(len(found.numbers), 'record')} of {name}")
            print(f"at the KI: heek ki import {file.name}")
        _tell_left_out(found)
    return OK


def _key(state_dir: Path) -> TableKey:
    """The key that is there; none is made, since nothing could be bound to it."""
    from heek.ki.table_key import FILE_NAME, table_key

    if not state_dir.is_dir():
        raise JournalError(f"{state_dir}: name the table's state folder, for its key is there, too")

    def nothing() -> NoReturn:
        raise KeyFileError(
            f"{state_dir / FILE_NAME}: there is no key, so nothing can be signed; start the table once, "
            "which makes one and binds to it what waits"
        )

    return table_key(state_dir, nothing)


def _table_name(arguments: argparse.Namespace) -> str | None:
    """As the configuration has it that was named, or that the unit runs."""
    config: Path | None = arguments.config or (None if arguments.state_dir else installed())
    if config is None:
        return None
    from heek.config import load

    return load(config).table.name


def _file_name(key: TableKey, found: Exportable) -> str:
    """Another one whenever there is more to export."""
    return f"heek-{key.id.hex()}-{found.numbers[-1]}.export"


def _tell_left_out(found: Exportable) -> None:
    if found.unwritten:
        print(
            f"{_count(found.unwritten, 'result')} of an older heek left out; start the table once, which "
            "makes records of them",
            file=sys.stderr,
        )
    if found.of_other_keys:
        print(
            f"{_count(found.of_other_keys, 'record')} left out that another key is to sign; the table binds "
            "to its own key what waits of them when it starts",
            file=sys.stderr,
        )


def run_receive(arguments: argparse.Namespace) -> int:
    """Take the receipt in; 1 if the KI does not count a result, or if part of the receipt is no good."""
    from heek.by_hand import receive
    from heek.journal import open_journal, read_journal
    from heek.ki.receipt_file import batches, survey
    from heek.whole_file import not_read

    state_dir = journal_of(arguments)
    file: Path = arguments.receipt
    # Looked at first, so that none is made where there is none.
    read_journal(state_dir).close()
    key = _key(state_dir)
    try:
        with file.open("rb") as source:
            table = survey(source)
            if table != key.id:
                raise RecordError(f"is for another table (key {table.hex()}; this one has {key.id.hex()})")
            source.seek(0)
            with open_journal(state_dir) as journal:
                pin = journal.pin()
                received = receive(journal, key, batches(source), None if pin is None else pin.service)
                waiting = journal.waiting()
    except RecordError as error:
        raise CarriedFileError(f"{file}: {error}") from None
    except OSError as error:
        if isinstance(error, TableError):
            raise
        raise not_read(file, error) from None
    return _tell_received(file, received, waiting)


def _tell_received(file: Path, received: Received, waiting: int) -> int:
    already = f", {received.already} answered for already" if received.already else ""
    print(f"{_count(received.acknowledged, 'result')} acknowledged{already}; {waiting} wait on")
    if received.not_counting:
        print(f"the KI does not count {received.not_counting} of them; heek ki import has said why")
    if received.missing:
        print(
            f"{_count(received.missing, 'result')} not in this journal; was its card put back from a backup?"
        )
    if received.doubtful:
        print(f"{file}: {received.doubtful} not acknowledged: {received.doubt}", file=sys.stderr)
    return FAILED if received.not_counting or received.doubtful else OK


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
