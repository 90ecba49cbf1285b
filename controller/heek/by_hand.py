"""Records that travel by hand: out of the journal into a file, and the KI's receipt back into the journal.

For a table without any link, and for one whose link has been gone for too long. Nothing depends on the order
of things: a record that is exported twice, or goes by the link as well, counts once, and a receipt that comes
late or twice changes nothing.
"""

from __future__ import annotations

import uuid
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import cbor2

from heek.errors import LinkError
from heek.journal import Answered, Journal
from heek.journal.kept import KeptRecords
from heek.ki.answers import encode_introduction, read_batch_answer
from heek.ki.envelope import batch, seal
from heek.ki.export_file import write_export
from heek.ki.link import Request
from heek.ki.receipt_file import AnsweredBatch
from heek.ki.signed_answer import check_answer
from heek.ki.table_key import TableKey


@dataclass(slots=True)
class Exportable:
    """Which results of a journal can be exported, and how many cannot."""

    numbers: array[int] = field(default_factory=lambda: array("q"))
    name: str = ""
    """What the table called itself in the newest of them."""
    of_other_keys: int = 0
    """Records that are bound to a key that the table no longer has."""
    unwritten: int = 0
    """Results that an older version wrote, and that have no record yet."""


def exportable(journal: KeptRecords, key: bytes, *, everything: bool) -> Exportable:
    """The results that wait, or all, as far as the key with this id can sign for them.

    Raises JournalError if the journal cannot be read.
    """
    found = Exportable()
    for number, record in journal.records_for_ki(everything=everything):
        if record is None:
            found.unwritten += 1
            continue
        table, name = _whose(record)
        if table != key:
            found.of_other_keys += 1
            continue
        found.numbers.append(number)
        found.name = name
    return found


def export(
    journal: KeptRecords, found: Exportable, key: TableKey, name: str, write: Callable[[bytes], object]
) -> None:
    """Write the records that were found as an export; `name` is how the table introduces itself.

    Raises JournalError if the journal cannot be read any more, and what `write` raises.
    """
    envelopes = (seal(record, key.seed) for record in journal.records_numbered(found.numbers))
    write_export(write, len(found.numbers), envelopes, encode_introduction(key.seed, name))


@dataclass(slots=True)
class Received:
    """What came of a receipt."""

    acknowledged: int = 0
    """Results that waited, and wait no longer."""
    already: int = 0
    """Results that had been answered for."""
    not_counting: int = 0
    """Of those acknowledged, how many the KI has not counted: in conflict, or rejected."""
    missing: int = 0
    """Results that this journal does not have."""
    doubtful: int = 0
    """Results in answers that could not be believed."""
    doubt: str = ""
    """Why the first of those answers could not."""


def receive(
    journal: Journal, key: TableKey, batches: Iterable[AnsweredBatch], pinned: bytes | None
) -> Received:
    """Keep what the KI answered, batch by batch; an answer that cannot be believed spoils no other.

    `pinned` is the public key (32 bytes) of the service that this table is enrolled at: then each answer must
    be signed by it for what this table has sent. Raises JournalError if the card does not take it.
    """
    received = Received()
    for each in batches:
        matches = [str(uuid.UUID(bytes=match)) for match in each.matches]
        kept = journal.records_of(matches)
        received.missing += sum(match not in kept for match in matches)
        try:
            answer = read_batch_answer(each.answer, len(matches))
            if any(
                said.match not in (None, match)
                for said, match in zip(answer.answers, each.matches, strict=True)
            ):
                raise LinkError("the answer is to other matches than it stands beside")
            if pinned is not None:
                if len(kept) < len(matches):
                    raise LinkError("what was asked cannot be made again: some of it is not in this journal")
                asked = batch(seal(kept[match][0], key.seed) for match in matches)
                check_answer(each.answer, Request.RECORDS, asked, pinned)
        except LinkError as error:
            received.doubtful += sum(match in kept for match in matches)
            received.doubt = received.doubt or str(error)
            continue
        waiting = {match: record for match, (record, waits) in kept.items() if waits}
        received.acknowledged += len(waiting)
        received.already += len(kept) - len(waiting)
        answers = [
            Answered(match, said.verdict.value, said.reason, _signature(waiting[match], key))
            for match, said in zip(matches, answer.answers, strict=True)
            if match in waiting
        ]
        received.not_counting += sum(each.state in ("conflict", "rejected") for each in answers)
        if answers:
            # Where nothing waited any more, what it tells of players is older than what is known.
            journal.acknowledge(answers, answer.points)
    return received


def _signature(record: bytes, key: TableKey) -> bytes | None:
    """That under which the record was exported; None: by a key that the table has no more."""
    return seal(record, key.seed).signature if _whose(record)[0] == key.id else None


def _whose(record: bytes) -> tuple[bytes, str]:
    """Table and name of a record that this table has made itself."""
    value = cbor2.loads(record)
    return value["table"], value["name"]
