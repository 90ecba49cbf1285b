"""`heek ki import`: bring a file of records, which came on a stick, to the KI that runs."""

from __future__ import annotations

import argparse
import asyncio
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final

from heek.cli import FAILED, OK
from heek.errors import CarriedFileError, ConfigError, LinkError, RecordError, TableError

if TYPE_CHECKING:
    from heek.ki.by_hand import Delivered, Delivery
    from heek.ki.export_file import Export

URL: Final = "http://127.0.0.1:8625/"
SUFFIX: Final = ".receipt"
_MOST_IN_MEMORY: Final = 1 << 20
_PIECE: Final = 1 << 16
_KEY_BYTES: Final = 32


def add_to(commands: Any) -> None:
    """Add `import` to the commands of `heek ki`."""
    parser = commands.add_parser(
        "import",
        help="bring the records of a table, exported to a file, to the KI that runs",
        description="Brings what heek journal export wrote to the running KI, by the way that tables "
        "report. Each record counts once, however often it is imported or sent. Beside FILE a receipt is "
        "written, for the table: heek journal receive. Exits with 1 if some record does not count.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="what heek journal export wrote")
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="table.toml of the KI, for its [service]: where and who it is",
    )
    parser.add_argument("--url", metavar="URL", help=f"the KI, if not by --config; default: {URL}")
    parser.add_argument(
        "--key",
        type=_key,
        metavar="HEX",
        help="the KI's public key, 64 hexadecimal digits: `public` in the service.key beside its ledger. "
        "With it no answer counts that the KI has not signed; https:// wants one",
    )
    parser.set_defaults(run=run)


def _key(text: str) -> bytes:
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise argparse.ArgumentTypeError(f"{text!r} is no public key: 64 hexadecimal digits")
    return key


def run(arguments: argparse.Namespace) -> int:
    """Import, and say what came of it; raises TableError if the file is none, or the KI does not answer."""
    from heek.ki.export_file import survey
    from heek.whole_file import not_read

    file: Path = arguments.file
    try:
        _refuse_what_never_ends(file)
        with file.open("rb") as source, tempfile.SpooledTemporaryFile(_MOST_IN_MEMORY) as answers:
            try:
                export = survey(source)
            except RecordError as error:
                raise RecordError(f"{error}; nothing of it was sent") from None
            if not export.envelopes:
                print(f"{file}: has no records in it")
                return OK
            source.seek(0)
            done, batches = asyncio.run(_deliver(_place(arguments), export, source, answers))
            _tell(export, done)
            _write_receipt(file.with_name(file.name + SUFFIX), export.table, batches, answers)
    except RecordError as error:
        raise CarriedFileError(f"{file}: {error}") from None
    except OSError as error:
        if isinstance(error, TableError):
            raise
        raise not_read(file, error) from None
    return OK if done.all_count else FAILED


def _refuse_what_never_ends(file: Path) -> None:
    """A pipe or a device may hang or be read for ever, and is read twice; raises CarriedFileError."""
    mode = file.stat().st_mode
    # A folder is refused when it is opened, with words of its own.
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise CarriedFileError(f"{file}: is no file but a device or pipe; copy it to a file, and import that")


def _place(arguments: argparse.Namespace) -> tuple[str, bytes | None]:
    """Where the KI is, and its public key if it was named; raises ConfigError for TLS without one.

    Raises KeyFileError if a configuration says where its key is, and it is not there.
    """
    url: str = arguments.url or URL
    key: bytes | None = arguments.key
    if arguments.config is not None:
        from heek.cli.ki_service import settings_of
        from heek.ranking.service_keys import read_service_key
        from heek.serving.addresses import bracketed, is_loopback

        settings, _ = settings_of(arguments)
        # Wherever else it listens, it does so on loopback.
        host = settings.host if is_loopback(settings.host) else "127.0.0.1"
        url = arguments.url or f"http://{bracketed(host)}:{settings.port}/"
        key = key or read_service_key(settings.database.parent).public
    if url.lower().startswith("https:") and key is None:
        raise ConfigError(
            f"--url {url}: over TLS nothing is sent before it is known to whom; name the KI's public key "
            "with --key (it stands in the service.key beside its ledger)"
        )
    return url, key


async def _deliver(
    place: tuple[str, bytes | None], export: Export, source: BinaryIO, answers: IO[bytes]
) -> tuple[Delivered, int]:
    """What became of the records; the KI's answers are written to `answers`, so many of them."""
    from heek.ki.by_hand import Delivery
    from heek.ki.export_file import envelopes
    from heek.ki.http_link import HttpLink
    from heek.ki.receipt_file import AnsweredBatch

    url, pinned = place
    kept = 0

    def keep(batch: AnsweredBatch) -> None:
        nonlocal kept
        answers.write(batch.encode())
        kept += 1

    try:
        link = HttpLink(url)
    except ValueError as error:
        raise ConfigError(f"--url {error}") from None
    link.pinned = pinned
    delivery = Delivery(link, export, keep, asyncio.sleep, pinned)
    try:
        return await delivery.deliver(envelopes(source)), kept
    except (LinkError, RecordError, OSError):
        _tell_broken_off(export, delivery)
        raise
    finally:
        await link.close()


def _tell(export: Export, done: Delivered) -> None:
    print(f"{export.name} (key {export.table.hex()}): {export.envelopes} records")
    print(
        f"  {done.accepted} accepted, {done.already} there already, {done.conflict} in conflict, "
        f"{done.rejected} rejected"
    )
    for match, words in done.told:
        print(f"  match {match}: {words}")
    more = done.conflict + done.rejected - len(done.told)
    if more:
        print(f"  and {more} more that do not count")


def _tell_broken_off(export: Export, delivery: Delivery) -> None:
    answered = delivery.done.answered
    if answered:
        print(
            f"{answered} of {export.envelopes} records were answered for, then it broke off; each counts "
            "once, so import the whole file again",
            file=sys.stderr,
        )


def _write_receipt(receipt: Path, table: bytes, count: int, answers: IO[bytes]) -> None:
    """Written last and in one go; raises CarriedFileError, when the records are at the KI all the same."""
    from heek.ki.receipt_file import write_receipt
    from heek.whole_file import whole_file

    answers.seek(0)

    def pieces() -> Iterator[bytes]:
        while piece := answers.read(_PIECE):
            yield piece

    try:
        # In the place of an older one: this one says all that that one did.
        with whole_file(receipt, replace=True) as writing:
            write_receipt(writing.write, table, count, pieces())
    except CarriedFileError as error:
        raise CarriedFileError(
            f"the KI has the records, but the table will not learn of it: {error}, and import again"
        ) from None
    print(f"{receipt}: take it back to the table: heek journal receive {receipt.name}")
