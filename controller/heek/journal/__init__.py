"""Append, replay, results and outbox in one SQLite file that survives a pulled plug.

A table plays on over a card that takes nothing while it runs. It does not start on one: a state folder that
is read-only then, or a damaged `table.key` in it, stops the start with words that say what to do.
"""

from heek.journal.reader import JournalReader, read_journal
from heek.journal.records import (
    NOBODYS,
    Acknowledged,
    Acknowledgement,
    Answered,
    Batch,
    Entry,
    FairnessReport,
    FormerKey,
    KiNotes,
    News,
    Pin,
    RecordedPart,
    Result,
    SettledKey,
    SnapshotLabel,
    Synced,
)
from heek.journal.salvage import Salvaged
from heek.journal.store import Journal, open_journal, open_or_salvage
from heek.journal.writer import InlineExecutor, JournalWriter, NotSaved, WriterStatus, Written

__all__ = [
    "NOBODYS",
    "Acknowledged",
    "Acknowledgement",
    "Answered",
    "Batch",
    "Entry",
    "FairnessReport",
    "FormerKey",
    "InlineExecutor",
    "Journal",
    "JournalReader",
    "JournalWriter",
    "KiNotes",
    "News",
    "NotSaved",
    "Pin",
    "RecordedPart",
    "Result",
    "Salvaged",
    "SettledKey",
    "SnapshotLabel",
    "Synced",
    "WriterStatus",
    "Written",
    "open_journal",
    "open_or_salvage",
    "read_journal",
]
