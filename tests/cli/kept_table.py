"""A state folder such as a table leaves it: a key, and a journal whose results wait for the KI."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path

from heek.journal import Batch, Result, SnapshotLabel, open_journal
from heek.ki.envelope import Envelope
from heek.ki.record import decode_record
from heek.ki.result import result_json
from heek.ki.table_key import table_key
from tests.ranking.records import ANN, BEN, FakeTable


def result_of(envelope: Envelope) -> Result:
    """The result that a table keeps of a match, from the record that it would send."""
    record = decode_record(envelope.record)
    return Result(str(uuid.UUID(bytes=record.match)), result_json(record), envelope.record)


def keep(folder: Path, results: Iterable[Result]) -> None:
    """Put results into the journal of a state folder, where they wait."""
    label = SnapshotLabel("boot", 0, 0.0, "none")
    with open_journal(folder) as journal:
        journal.append(Batch((), True, None, label, tuple(results)))


def kept_table(folder: Path, table: FakeTable, count: int) -> list[Envelope]:
    """A state folder of this table with so many results; what it would send."""
    envelopes = [table.sealed({ANN: 1, BEN: 1}) for _ in range(count)]
    keep(folder, map(result_of, envelopes))
    table_key(folder, lambda: table.seed)
    return envelopes
