"""What goes into the journal and comes out of it, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

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
    key: bytes | None = None
    """The key id (8 bytes) that `cbor` names; None where an older version wrote it."""
    signature: bytes | None = None
    """Of `cbor`, by that key (64 bytes), once the KI has answered to it."""


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


Digest: TypeAlias = tuple[int, bytes]
"""Of matches: their count, and the xor of their ids (16 bytes)."""

NO_MATCHES: Final[Digest] = (0, bytes(16))
NOBODYS: Final = b""
"""The key id of bytes that are no record."""
NO_MARK: Final = bytes(8)
"""Of no news."""


@dataclass(frozen=True, slots=True)
class Pin:
    """The KI that the table believes, since it was enrolled there: no other one's answers count from then on.

    Whether it is enrolled there now is another question: the KI may not know the key that it has today
    (`KeptRecords.is_known_as`).
    """

    service: bytes
    """Its public key, 32 bytes."""
    name: str
    found: str
    """`code`: an operator typed in the table's code; `sight`: on loopback or a wire, at first sight."""


@dataclass(frozen=True, slots=True)
class News:
    """One thing that the KI told, numbered from 1; told twice it changes nothing."""

    number: int
    kind: str
    """`voided` or `restored` (of a match), `named` or `erased` (of a player); others are kept alone."""
    body: str
    """All that was told, as JSON."""
    about: str | None = None
    """The match (UUID), or the KI number; None: this version can make nothing of it."""
    text: str = ""
    """The reason, or the name."""
    mark: bytes = NO_MARK
    """By which the KI knows it from another one that it told under that number (8 bytes)."""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """An operator has said to know by what the KI's digest differs, and that this is all right."""

    difference: Digest
    at_s: int
    """Seconds since 1970, by the wall clock."""
    trust: str
    """How far that was to be believed (`heek.boot.wall_trust`)."""
    by: str
    """Who it was, as they called themselves."""


@dataclass(frozen=True, slots=True)
class FormerKey:
    """A key that the table had before, and what is known of the results that are signed by it."""

    key: bytes
    """Its key id, 8 bytes."""
    holds: Digest
    """Of the results that the KI has taken from this key."""
    settled: Digest = NO_MATCHES
    offered: Digest | None = None
    """As in `KiNotes`."""


@dataclass(frozen=True, slots=True)
class SettledKey:
    """What a comparison of digests came to for a key of the table, or one that it had before."""

    key: bytes
    settled: Digest
    offered: Digest | None
    offer: bool = False
    """Have every result that is signed by this key wait again."""


@dataclass(frozen=True, slots=True)
class KiNotes:
    """What the journal knows of its way with the KI."""

    pin: Pin | None
    news: int
    """The highest number of news that is kept."""
    mark: bytes
    """Of the news with that number."""
    strange_news: int
    """News that this version can make nothing of."""
    settled: Digest
    """By what the KI's digest may differ from ours, since an offer has not changed it."""
    offered: Digest | None
    """What the KI should hold by now, since an offer is under way; None: none is."""
    holds: Digest
    """Of the results that the KI has taken from the table's present key."""
    waiting: int
    """Results that the KI has not answered for."""
    refused: int
    """Results that the KI has rejected, or that are in conflict there."""
    formers: tuple[FormerKey, ...]
    """The keys that the table had before and that results are signed by, the newest first."""
    held: bool
    """Results, or answers to them, are in memory alone, since the card takes nothing."""
    acknowledged: Digest = NO_MATCHES
    """The settled difference that an operator knows of; any other one is told."""
    known: bool = False
    """The KI that is pinned knows the table by this key, as far as it has said: the table is enrolled."""


@dataclass(frozen=True, slots=True)
class Synced:
    """What the KI's answer on how things stand comes to; written as one."""

    points: Mapping[str, int]
    news: tuple[News, ...] = ()
    settled: Digest = NO_MATCHES
    offered: Digest | None = None
    offer: bool = False
    """Have every result of the present key wait again."""
    news_anew: bool = False
    """The news begin at the first one, in place of all that were kept: the KI no longer has those."""
    formers: tuple[SettledKey, ...] = ()


@dataclass(frozen=True, slots=True)
class Answered:
    """What the KI said to one result."""

    match: str
    state: str
    """`accepted`, `duplicate`, `conflict` or `rejected`."""
    reason: str | None = None
    signature: bytes | None = None
    """Under which the record was sent (64 bytes); None: it is not known."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """A match of this table that is void from now on, or counts again."""

    match: str
    void: bool
    reason: str
    """An operator's; may be empty."""
    ended_s: float | None
    """The wall clock's time at the match's end; None: that is not known, or was not believed."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What a set of answers came to."""

    deltas: Mapping[str, int]
    """By KI number: what of our own deltas is in what the KI tells now, or counts no more."""
    waiting: int
    """Results that the KI has not answered for."""
    rulings: tuple[Ruling, ...] = ()
    """What is new in the answer of this table's matches."""


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
