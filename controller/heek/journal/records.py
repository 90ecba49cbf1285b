"""What goes into the journal and comes out of it, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from heek.clock import Instant

Trust: TypeAlias = str
"""How far the wall clock can be believed: `none`, `saved`, `ntp` or `service`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of the table."""

    seq: int
    """From 1, without gaps, over the table's whole life."""
    at_ns: Instant
    event: str
    body: str
    """The whole line of the event as JSON text, `seq`, `at` and `event` included."""


@dataclass(frozen=True, slots=True)
class SnapshotLabel:
    """When a snapshot was taken, by every clock there is; so that a restart can tell how long it was off."""

    boot: str
    """The machine's boot id: with the same one, `mono_ns` of both can be compared."""
    mono_ns: int
    wall_s: float
    """Seconds since 1970."""
    trust: Trust


@dataclass(frozen=True, slots=True)
class Result:
    """One finished match, to be kept for ever and sent to the KI once."""

    match: str
    """UUID; there is one result of a match."""
    record: bytes
    """JSON object with `seats`: a list of objects with `seat`, `kind`, `player`, `name`, `stake`, `delta`."""
    cbor: bytes | None = None
    """The record as it is signed and sent; None in a result that an older version wrote."""


@dataclass(frozen=True, slots=True)
class RecordedPart:
    """A piece of the recording from which events can be replayed; its bytes are opaque here."""

    recording: int
    """The number of the first event that comes out of the recording."""
    after_seq: int
    """The last event that the part before covers; one less than `recording` for the first part."""
    last_seq: int
    """The last event that this part covers."""
    inputs: bytes
    beginning: bytes | None = None
    """With the first part alone."""


@dataclass(frozen=True, slots=True)
class FairnessReport:
    """How fair one run of the table has been up to a match's end; the last one of each run is kept."""

    incarnation: str
    body: str
    """JSON (`heek.fairness.figures.Fairness.report`)."""
    seq: int = 0
    """The number of the last event before it; known once it is kept."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What the KI said to one result."""

    match: str
    state: str
    """`accepted`, `duplicate`, `conflict` or `rejected`."""
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What a set of answers came to."""

    deltas: Mapping[str, int]
    """By KI number: the sum of the deltas in those results that had been waiting."""
    waiting: int
    """Results that the KI has not answered for."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction writes: all of it or nothing."""

    entries: tuple[Entry, ...]
    """Their numbers go on from the last one written."""
    sync: bool
    """Whether it must survive a pulled plug; else it survives the death of the process alone."""
    snapshot: bytes | None
    """The session's state after these entries, opaque; None: the snapshot before stays, with its label."""
    label: SnapshotLabel
    """Of `snapshot`; not kept without one."""
    results: tuple[Result, ...] = ()
    recorded: RecordedPart | None = None
    fairness: FairnessReport | None = None
