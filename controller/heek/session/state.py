"""What the session remembers of a match: who plays, the rounds so far, the round that is open.

Only the machine changes these; everybody else gets the frozen view. `keep` and `restore` turn what
must survive a pulled plug into JSON and back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import msgspec

from heek.clock import Instant
from heek.errors import JournalError
from heek.games.ahyoheek import MatchState, RoundScore, SeatJoined, SeatsLeft, apply
from heek.kinds import Kind, Seat
from heek.session.bot_throws import BotThrow, Pace
from heek.session.phases import Phase

KEPT_VERSION: Final = 1
"""Of the snapshot's layout; a newer one is refused, not guessed at."""


@dataclass(slots=True)
class Entry:
    """One player of a match; a seat that was left and joined again has two, the last one plays."""

    seat: Seat
    player: str | None
    name: str | None
    stake: int
    playing: bool = True
    bot: bool = False


@dataclass(slots=True)
class Match:
    """The match that is played or shown."""

    id: str
    state: MatchState
    entries: list[Entry]
    started_at: Instant | None
    """None: it was started by a process that is no more."""
    rated: bool = True
    """False with a bot in it, and once a signed-in player's identity was lost to a power cut."""
    round: int = 0
    """The number of the round opened last."""
    rounds: list[dict[Seat, Kind | None]] = field(default_factory=list)
    """The throws of every revealed round, for the record."""
    late_rounds: list[int] = field(default_factory=list)
    """Rounds for which an edge was delivered after they were compared."""

    def flag(self, number: int) -> None:
        """An edge was delivered after the round of this number had been compared."""
        if number not in self.late_rounds:
            self.late_rounds.append(number)

    def leave(self, seats: tuple[Seat, ...]) -> None:
        """These seats stood up at one instant and forfeit the match."""
        for seat in seats:
            self.entry(seat).playing = False
        self.state = apply(self.state, SeatsLeft(seats))

    def join(self, seat: Seat) -> None:
        """A seat sat down in the running match, with a stake of its own: a guest's, nothing."""
        self.state = apply(self.state, SeatJoined(seat))
        self.entries.append(Entry(seat, None, None, 0))

    def forget_players(self) -> None:
        """Nobody knows any more whether the same people sit here: they go on as guests, and nothing moves."""
        self.rated = False
        for entry in self.entries:
            entry.stake = 0
            if entry.playing:
                entry.player = entry.name = None

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
    locked: set[Seat] = field(default_factory=set)
    """Seats of which it has been told that they have thrown; that is told once a round."""
    beyond: list[tuple[Instant, Seat, Kind]] = field(default_factory=list)
    """Presses that are none because of other throws: after the close that those made, or after the throw that
    stands. They are looked at again when such a throw is revoked."""
    refused: set[tuple[Instant, Seat]] = field(default_factory=set)
    """Presses of which it has been told that they do not count."""
    deadline: Instant | None = None
    closed: Instant | None = None
    last_leave: Instant | None = None
    """When a seat of this round last stood up; it can be what makes all the others have thrown."""
    score: RoundScore | None = None
    """Once it has been compared and revealed."""
    revealed: dict[Seat, Kind | None] = field(default_factory=dict)
    bots: dict[Seat, BotThrow] = field(default_factory=dict, repr=False)
    """What the table itself throws in this round, decided when it opened."""
    pace: Pace | None = None
    """When bots throw, once that can be said."""

    @property
    def of_bots_alone(self) -> bool:
        """Nobody but the table itself may throw (any more)."""
        return all(seat in self.bots for seat in self.seats)

    def bots_due(self) -> list[tuple[Instant, Seat]]:
        """When each bot throws that has not yet, the earliest first."""
        if self.pace is None:
            return []
        return sorted(
            (self.pace.throws_at(self.bots[seat]), seat)
            for seat in self.seats
            if seat in self.bots and seat not in self.throws
        )

    def locked_in(self, seat: Seat, at: Instant) -> bool:
        """The seat has thrown no later than `at`."""
        return seat in self.throws and self.throws[seat][0][0] <= at

    def accept(self, seat: Seat, at: Instant, kind: Kind) -> bool:
        """Take a throw in by its stamp; whether it is the seat's first."""
        throws = self.throws.setdefault(seat, [])
        throws.append((at, kind))
        throws.sort(key=lambda each: each[0])
        return len(throws) == 1

    def take_out(self, seat: Seat, at: Instant, kind: Kind) -> bool:
        """A throw that was accepted did not count; False if there is no such throw."""
        throws = self.throws.get(seat, [])
        if (at, kind) not in throws:
            return False
        throws.remove((at, kind))
        if not throws:
            del self.throws[seat]
        return True

    def recount(self, *, allow_change: bool) -> list[tuple[Instant, Seat]]:
        """Sort all presses anew into throws and those beyond; gives each thrower's first throw."""
        presses = [
            (at, seat, kind)
            for seat, throws in self.throws.items()
            if seat not in self.bots
            for at, kind in throws
        ]
        presses = sorted([*presses, *self.beyond], key=lambda each: each[0])
        self.throws = {seat: throws for seat, throws in self.throws.items() if seat in self.bots}
        self.beyond = []
        firsts = []
        for at, seat, kind in presses:
            if self.after_close(at) or (seat in self.throws and not allow_change):
                self.beyond.append((at, seat, kind))
            elif seat in self.seats and self.accept(seat, at, kind):
                firsts.append((at, seat))
        return firsts

    def first_throw(self) -> Instant | None:
        """When the first of all throws closed; None: nobody has thrown."""
        return min((throws[0][0] for throws in self.throws.values()), default=None)

    def closes_at(self) -> Instant | None:
        """When all had thrown: the latest first throw, or the leave that made it so; None: not yet."""
        if not self.throws or not all(seat in self.throws for seat in self.seats):
            return None
        latest = max(throws[0][0] for throws in self.throws.values())
        return latest if self.last_leave is None else max(latest, self.last_leave)

    def close(self, at: Instant) -> list[tuple[Instant, Seat]]:
        """Nothing after `at` counts; what is taken out again: stamp and seat.

        That happens when a throw that is delivered late moves the close to before one taken already. A
        bot is never late: it throws at the close at the latest.
        """
        self.closed = at
        if self.pace is not None:
            for seat, bot in self.bots.items():
                if not self.locked_in(seat, at):
                    self.throws[seat] = [(at, bot.kind)]
        throws_of = [(seat, each) for seat, throws in self.throws.items() for each in throws]
        cut = sorted(
            ((stamp, seat, kind) for seat, (stamp, kind) in throws_of if stamp > at),
            key=lambda each: each[:2],
        )
        self.beyond += cut
        late = [(stamp, seat) for stamp, seat, _ in cut if (stamp, seat) not in self.refused]
        for throws in self.throws.values():
            throws[:] = [each for each in throws if each[0] <= at]
        self.throws = {seat: throws for seat, throws in self.throws.items() if throws}
        return late

    def withdraw(self, seats: tuple[Seat, ...], at: Instant) -> None:
        """Seats of this round stood up at `at`: they and their throws are out of it."""
        if any(seat in self.seats for seat in seats):
            self.last_leave = at
            self.seats = tuple(seat for seat in self.seats if seat not in seats)
            for seat in seats:
                self.throws.pop(seat, None)

    def after_close(self, at: Instant) -> bool:
        return self.closed is not None and at > self.closed

    def counting(self) -> dict[Seat, Kind]:
        """The throws that count, once the round is closed: each seat's last one."""
        return {seat: self.throws[seat][-1][1] for seat in self.seats if seat in self.throws}


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
    bot: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """What survives a power cut, as of the journal's last commit."""

    version: int
    phase: Phase
    seats: dict[Seat, KeptSeat]
    match: Match | None
    """Only while it is undecided."""
    round_open: bool


@dataclass(frozen=True, slots=True)
class SessionAtRest:
    """All that a session remembers while nobody plays, but for what it knows of players' points."""

    since: Instant
    """When the table was left."""
    last_at: Instant
    """Of the event that was told last."""
    emptied_at: Instant
    was: dict[Seat, str]
    """What a press of before `emptied_at` is, by seat."""
    troubles: tuple[tuple[Seat, Kind, str], ...]
    """What is told to be wrong with a button: `stuck`, or its `fault`."""


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
