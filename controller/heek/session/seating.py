"""Who sits where, and what a lobby waits for before a match may start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from heek.clock import Duration, Instant
from heek.errors import IllegalAction
from heek.games.ahyoheek import ROUND_MINIMUM
from heek.kinds import SEATS, Seat
from heek.session.state import KeptSeat
from heek.session.view import SeatState

FULL_TABLE: Final = len(SEATS)
"""Confirmed seats at which a match starts at once."""


@dataclass(slots=True)
class Occupant:
    """Who sits at a seat; `player` is a KI number, None for a guest."""

    state: SeatState = SeatState.TAKEN
    player: str | None = None
    name: str | None = None
    leaves_at: Instant | None = None
    """When the seat will stand up, once it has been warned of it."""

    @property
    def confirmed(self) -> bool:
        return self.state is not SeatState.UNCONFIRMED


@dataclass(slots=True)
class Seating:
    """The occupants by seat, and since when things are as they are in this lobby."""

    occupants: dict[Seat, Occupant] = field(default_factory=dict)
    last_joined: Instant = 0
    """When a seat was last taken or confirmed."""
    changed: Instant = 0
    """When anybody last sat down, confirmed or stood up."""
    fewer_since: Instant | None = None
    """Since when there have been fewer than two; None: there are two, or this is no lobby."""

    def sit_down(self, seat: Seat, at: Instant) -> None:
        self.occupants[seat] = Occupant()
        self.last_joined = max(self.last_joined, at)

    def confirm(self, seat: Seat, at: Instant) -> None:
        """The player of an unconfirmed seat has pressed: the seat is theirs, and ready."""
        self.occupants[seat].state = SeatState.READY
        self.last_joined = max(self.last_joined, at)

    def claim(self, seat: Seat, player: str, name: str) -> None:
        """A signed-in player takes a seat's identity; raises IllegalAction if that cannot be."""
        occupant = self.occupants.get(seat)
        if occupant is None:
            raise IllegalAction(f"seat {seat} is empty and cannot be claimed; press a button there first")
        other = next((each for each, who in self.occupants.items() if who.player == player), None)
        if other is not None and other != seat:
            raise IllegalAction(f"player {player} already sits at seat {other} and cannot claim seat {seat}")
        occupant.player, occupant.name = player, name

    def reopen(self, at: Instant) -> None:
        """A lobby after a match: the same seats, each to be confirmed."""
        for occupant in self.occupants.values():
            occupant.state = SeatState.UNCONFIRMED
        self.last_joined = at
        self.fewer_since = None
        self.count(at)

    def count(self, at: Instant) -> None:
        """Somebody has sat down or stood up in the lobby."""
        self.changed = at
        if len(self.occupants) >= ROUND_MINIMUM:
            self.fewer_since = None
        elif self.fewer_since is None:
            self.fewer_since = at

    def unconfirmed(self) -> list[Seat]:
        return [seat for seat, each in self.occupants.items() if not each.confirmed]

    def starts_at(self, lobby: Duration) -> Instant | None:
        """When a match starts if nobody does anything more; None: somebody has to."""
        if len(self.occupants) < ROUND_MINIMUM or self.unconfirmed():
            return None
        return max(self.last_joined + lobby, self.changed)

    def starts_at_once(self) -> bool:
        """All are ready, or the table is full."""
        if len(self.occupants) < ROUND_MINIMUM:
            return False
        seated = self.occupants.values()
        return all(each.state is SeatState.READY for each in seated) or (
            len(seated) == FULL_TABLE and not self.unconfirmed()
        )

    def kept(self) -> dict[Seat, KeptSeat]:
        """What of it survives a power cut."""
        return {seat: KeptSeat(who.player, who.name) for seat, who in sorted(self.occupants.items())}
