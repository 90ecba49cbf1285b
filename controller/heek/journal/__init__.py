"""Append, replay, results and outbox in one SQLite file that survives a pulled plug.

A table plays over a card that takes nothing, whether it was so at the start or becomes so: OLED, page and
`heek doctor` say NOT SAVING, up to a thousand results (`heek.journal.writer.MOST_RESULTS`) wait in memory and
go to the KI from there, and all is written when the card takes it again. What stops a start, with words that
say what to do: another heek on the folder, a file of a newer version, a damaged `table.key`, and what can be
neither written nor read.
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
    Ruling,
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
    "Ruling",
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
