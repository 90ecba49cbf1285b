"""The frozen picture of the table that lamps, screens and pages are drawn from.

A view never names the throw of a seat in the running round: `SeatView.throw` is None until the
reveal (spec/ki.md, "Nothing leaks before the reveal"). It holds instants, not "now": what moves by
itself (a countdown digit, a blink) is a function of the view and the time it is drawn at.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from heek.clock import Instant
from heek.games.ahyoheek import Collection as Collection
from heek.kinds import Kind, Seat
from heek.session.phases import Phase


class SeatState(Enum):
    """How a seat is occupied."""

    ABSENT = "absent"
    """No station is wired there."""
    FREE = "free"
    UNCONFIRMED = "unconfirmed"
    """Kept from the last match or over a power cut; its player has not pressed yet."""
    TAKEN = "taken"
    READY = "ready"


@dataclass(frozen=True, slots=True)
class SeatView:
    """One seat as everybody may see it."""

    seat: Seat
    state: SeatState
    name: str | None = None
    """A signed-in player's name; None for a guest."""
    bot: bool = False
    """The table itself sits there; a match with a bot is not rated."""
    collection: Collection | None = None
    """None for a seat that is not in the match (or when no match is shown)."""
    in_round: bool = False
    """May throw in the round that is running, or could in the one that is shown."""
    thrown: bool = False
    """Has thrown in the running round; never what."""
    throw: Kind | None = None
    """In reveal and match over: what it threw in the round shown."""
    points: int | None = None
    """In reveal and match over: its round-points, if it threw."""
    won_round: bool = False
    won_match: bool = False
    leaves_at: Instant | None = None
    """Both outer buttons are held since 1 s or more: when the seat will stand up."""
    stuck: tuple[Kind, ...] = ()
    """Buttons that are reported stuck, in button order."""
    faults: tuple[tuple[Kind, str], ...] = ()
    """Buttons that are reported faulty, in button order: `chatter` (it counts) or `flood` (ignored)."""


@dataclass(frozen=True, slots=True)
class View:
    """The whole table; `seats` has five entries, seat 1 first."""

    phase: Phase
    since: Instant
    """When the phase began by rule."""
    until: Instant | None
    """When it will end if nobody does anything: the countdown's deadline, the match's start in a
    lobby that waits, the end of reveal, match over and resume. None: it waits for people."""
    seats: tuple[SeatView, ...]
    target: int = 3
    """Of one kind to end the match."""
    round: int | None = None
    """The round's number, from 1, while a match runs or is shown."""
    sudden_death: bool = False
    winner: Seat | None = None
    """Match over: who won."""
    by: str | None = None
    """Match over, won: `three`, `total`, `sudden_death` or `walkover`."""
    void: str | None = None
    """Match over, void: the reason as in `match_void`."""
    rules_since: Instant | None = None
    """The rules are asked for (a hold of the right button in the lobby), since then."""
    bots_allowed: bool = False
    """A visitor in the lobby may ask the table to take the free seats itself."""
    bots_at: Instant | None = None
    """When it does so by itself for the one who waits alone in the lobby, if nobody comes."""
    not_saving: bool = False
    """The journal cannot be written: the table plays on but keeps nothing."""
    journal: tuple[str, ...] = ()
    """What else an operator should know of the journal, a sentence each: it was damaged and is set aside."""
