"""What happened at the table, in the past tense, and how it reads as a line of JSON.

The names and fields are those of spec/ahyoheek.md, "What the table says". The journal, standard
output and everything that listens get the very same line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Final

import msgspec

from heek.clock import Instant, seconds_text
from heek.games.ahyoheek import Collection
from heek.kinds import Kind, Seat


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, at an instant by the rules' time."""

    durable: ClassVar[bool] = False
    """True for a reveal, a seat change and a result: committed with full synchronisation."""

    at: Instant


@dataclass(frozen=True, slots=True)
class TableStarted(Event):
    """The daemon began; `at` counts from here."""

    durable: ClassVar[bool] = True
    incarnation: str
    boot: str
    name: str


@dataclass(frozen=True, slots=True)
class SeatTaken(Event):
    durable: ClassVar[bool] = True
    seat: Seat
    kind: str = "guest"


@dataclass(frozen=True, slots=True)
class SeatClaimed(Event):
    durable: ClassVar[bool] = True
    seat: Seat
    player: str
    name: str


@dataclass(frozen=True, slots=True)
class SeatReady(Event):
    """The seat's player wants to begin; after a match or a power cut it confirms the seat, too."""

    seat: Seat


@dataclass(frozen=True, slots=True)
class SeatLeft(Event):
    durable: ClassVar[bool] = True
    seat: Seat
    reason: str


@dataclass(frozen=True, slots=True)
class MatchStarted(Event):
    match: str
    game: str
    seats: tuple[Seat, ...]
    stakes: Mapping[Seat, int]


@dataclass(frozen=True, slots=True)
class RoundOpened(Event):
    match: str
    round: int
    seats: tuple[Seat, ...]


@dataclass(frozen=True, slots=True)
class ThrowLocked(Event):
    seat: Seat


@dataclass(frozen=True, slots=True)
class CountdownStarted(Event):
    match: str
    round: int
    deadline: Instant


@dataclass(frozen=True, slots=True)
class PressIgnored(Event):
    """Never names the button: in a running round that would tell what a player wanted to throw."""

    seat: Seat
    reason: str


@dataclass(frozen=True, slots=True)
class LateDelivery(Event):
    """A press that closed in time for a round which was compared before the edge was delivered."""

    seat: Seat
    match: str
    round: int


@dataclass(frozen=True, slots=True)
class ContactStuck(Event):
    seat: Seat
    button: Kind


@dataclass(frozen=True, slots=True)
class ContactFaulty(Event):
    """`fault` is `chatter` (a worn switch that goes on counting) or `flood` (ignored until it heals)."""

    seat: Seat
    button: Kind
    fault: str


@dataclass(frozen=True, slots=True)
class ContactHealed(Event):
    """Whatever was wrong with it, stuck or faulty, is over."""

    seat: Seat
    button: Kind


@dataclass(frozen=True, slots=True)
class RoundRevealed(Event):
    durable: ClassVar[bool] = True
    match: str
    round: int
    closed: Instant
    throws: Mapping[Seat, Kind | None]
    points: Mapping[Seat, int]
    winners: tuple[Seat, ...]
    collections: Mapping[Seat, Collection]


@dataclass(frozen=True, slots=True)
class RoundVoid(Event):
    match: str
    round: int
    reason: str


@dataclass(frozen=True, slots=True)
class SuddenDeath(Event):
    match: str
    seats: tuple[Seat, ...]


@dataclass(frozen=True, slots=True)
class MatchWon(Event):
    durable: ClassVar[bool] = True
    match: str
    seat: Seat
    by: str
    rounds: int
    deltas: Mapping[Seat, int]


@dataclass(frozen=True, slots=True)
class MatchVoid(Event):
    durable: ClassVar[bool] = True
    match: str
    reason: str


EVENTS: Final[tuple[type[Event], ...]] = (
    TableStarted,
    SeatTaken,
    SeatClaimed,
    SeatReady,
    SeatLeft,
    MatchStarted,
    RoundOpened,
    ThrowLocked,
    CountdownStarted,
    PressIgnored,
    LateDelivery,
    ContactStuck,
    ContactFaulty,
    ContactHealed,
    RoundRevealed,
    RoundVoid,
    SuddenDeath,
    MatchWon,
    MatchVoid,
)

_INSTANTS: Final = frozenset({"at", "deadline", "closed"})


_NAMES: Final = {kind: re.sub(r"(?<!^)([A-Z])", r"_\1", kind.__name__).lower() for kind in EVENTS}


def event_name(kind: type[Event]) -> str:
    """`RoundRevealed` as the spec writes it: `round_revealed`; raises KeyError for what is not in EVENTS."""
    return _NAMES[kind]


def event_fields() -> dict[str, tuple[str, ...]]:
    """Every event's name, with the fields it has besides `seq`, `at` and `event`."""
    return dict(_SHAPES.values())


_SHAPES: Final = {
    kind: (event_name(kind), tuple(part.name for part in fields(kind) if part.name != "at"))
    for kind in EVENTS
}
_encoder: Final = msgspec.json.Encoder()


def event_line(seq: int, event: Event) -> str:
    """One event as a line of JSON without its newline: `seq`, `at`, `event`, then its own fields."""
    name, parts = _SHAPES[type(event)]
    body: dict[str, object] = {
        "seq": seq,
        "at": _raw_seconds(event.at),
        "event": name,
    }
    for part in parts:
        value = getattr(event, part)
        body[part] = _raw_seconds(value) if part in _INSTANTS else value
    return _encoder.encode(body).decode()


def _raw_seconds(instant: Instant) -> msgspec.Raw:
    return msgspec.Raw(seconds_text(instant).encode())
