"""Who sits where, and what a lobby waits for before a match may start.

Bots sit at the table for somebody's sake: they confirm when a person has, they stand up with the last
person, and nothing that waits for people counts them as one.
"""

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
    bot: bool = False
    """The table itself plays here."""
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
    bots_dismissed: bool = False
    """Somebody has sent the bots away: they do not come back unasked while anybody sits."""

    def sit_down(self, seat: Seat, at: Instant, *, bot: bool = False) -> None:
        """A person, or the table itself, which is ready at once."""
        self.occupants[seat] = Occupant(SeatState.READY if bot else SeatState.TAKEN, bot=bot)
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
        if occupant.bot:
            raise IllegalAction(
                f"a bot plays at seat {seat}, so it cannot be claimed; press a button there first"
            )
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

    def people(self) -> list[Seat]:
        """The seats at which somebody sits who is not the table itself."""
        return [seat for seat, each in self.occupants.items() if not each.bot]

    def bots(self) -> list[Seat]:
        return [seat for seat, each in self.occupants.items() if each.bot]

    def person_at(self, seat: Seat) -> bool:
        occupant = self.occupants.get(seat)
        return occupant is not None and not occupant.bot

    def somebody_is_here(self) -> bool:
        """A person sits who has pressed since this lobby opened."""
        return any(each.confirmed and not each.bot for each in self.occupants.values())

    def waits_alone(self) -> Occupant | None:
        """The only one who sits, a person who has confirmed; None: nobody, or there are more."""
        if len(self.occupants) != 1 or not self.somebody_is_here():
            return None
        (alone,) = self.occupants.values()
        return alone

    def fills_at(self, lobby: Duration) -> Instant | None:
        """When the table takes the free seats for the one who waits alone; at once, in the past, if ready."""
        alone = self.waits_alone()
        if alone is None or self.bots_dismissed:
            return None
        return self.changed if alone.state is SeatState.READY else max(self.last_joined + lobby, self.changed)

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
        return {seat: KeptSeat(who.player, who.name, who.bot) for seat, who in sorted(self.occupants.items())}
