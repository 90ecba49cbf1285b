"""What the session remembers: who sits where, the match they play, the round that is open.

Only the machine changes these; everybody else gets the frozen view. `keep` and `restore` turn what
must survive a pulled plug into JSON and back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import msgspec

from heek.clock import Instant
from heek.errors import JournalError
from heek.games.ahyoheek import MatchState, RoundScore
from heek.kinds import Kind, Seat
from heek.session.phases import Phase
from heek.session.view import SeatState

KEPT_VERSION: Final = 1
"""Of the snapshot's layout; a newer one is refused, not guessed at."""


@dataclass(slots=True)
class Occupant:
    """Who sits at a seat; `player` is a KI number, None for a guest."""

    state: SeatState = SeatState.TAKEN
    player: str | None = None
    name: str | None = None
    leaves_at: Instant | None = None

    @property
    def confirmed(self) -> bool:
        return self.state is not SeatState.UNCONFIRMED


@dataclass(slots=True)
class Entry:
    """One player of a match; a seat that was left and joined again has two, the last one plays."""

    seat: Seat
    player: str | None
    name: str | None
    stake: int
    playing: bool = True


@dataclass(slots=True)
class Match:
    """The match that is played or shown."""

    id: str
    state: MatchState
    entries: list[Entry]
    started_at: Instant | None
    """None: it was started by a process that is no more."""
    rated: bool = True
    """False once a signed-in player's identity was lost to a power cut."""
    round: int = 0
    """The number of the round opened last."""
    rounds: list[dict[Seat, Kind | None]] = field(default_factory=list)
    """The throws of every revealed round, for the record."""
    late_rounds: list[int] = field(default_factory=list)
    """Rounds for which an edge was delivered after they were compared."""

    def entry(self, seat: Seat) -> Entry:
        """Who plays at `seat` now; raises StopIteration if nobody does."""
        return next(entry for entry in self.entries if entry.playing and entry.seat == seat)


@dataclass(slots=True)
class Round:
    """The round that is open, settling, or shown."""

    number: int
    seats: tuple[Seat, ...]
    opened: Instant
    sudden_death: bool
    throws: dict[Seat, list[tuple[Instant, Kind]]] = field(default_factory=dict)
    """Every accepted throw in the order of its stamps; the last one at or before the close counts."""
    deadline: Instant | None = None
    closed: Instant | None = None
    last_leave: Instant | None = None
    """When a seat of this round last stood up; it can be what makes all the others have thrown."""
    score: RoundScore | None = None
    """Once it has been compared and revealed."""
    revealed: dict[Seat, Kind | None] = field(default_factory=dict)

    def first_throws(self) -> list[Instant]:
        return [throws[0][0] for throws in self.throws.values()]

    def all_thrown(self) -> bool:
        return all(seat in self.throws for seat in self.seats)


@dataclass(frozen=True, slots=True)
class MatchResult:
    """A match that was won, as the KI will hear of it."""

    match: str
    rules: str
    winner: Seat
    by: str
    entries: tuple[Entry, ...]
    deltas: tuple[int, ...]
    """In the order of `entries`."""
    rounds: tuple[dict[Seat, Kind | None], ...]
    late_rounds: tuple[int, ...]
    rated: bool
    started_at: Instant | None
    ended_at: Instant


@dataclass(frozen=True, slots=True)
class KeptSeat:
    player: str | None
    name: str | None


@dataclass(frozen=True, slots=True)
class Kept:
    """What survives a power cut, as of the journal's last commit."""

    version: int
    phase: Phase
    seats: dict[Seat, KeptSeat]
    match: Match | None
    """Only while it is undecided."""
    round_open: bool


def keep(kept: Kept) -> bytes:
    """As JSON."""
    return msgspec.json.encode(kept)


def restore(snapshot: bytes) -> Kept:
    """From JSON; raises JournalError if this program cannot read it."""
    try:
        kept = msgspec.json.decode(snapshot, type=Kept)
    except msgspec.MsgspecError as error:
        raise JournalError(
            f"the journal's snapshot of the running match cannot be read ({error}); "
            "start once with an empty state folder, or with the version of heek that wrote it"
        ) from None
    if kept.version != KEPT_VERSION:
        raise JournalError(
            f"the journal's snapshot has layout {kept.version}, this heek reads {KEPT_VERSION}; "
            "start the version of heek that wrote it"
        )
    return kept
