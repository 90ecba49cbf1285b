"""What the session is told, each stamped with the instant it happened at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from heek.clock import Instant
from heek.kinds import Kind, Seat


@dataclass(frozen=True, slots=True)
class Input:
    """Something from outside; `at` is when it happened, not when the program got to it."""

    order: ClassVar[int] = 0
    """At equal stamps edges (0) come before the operator (1); the session's own timers come last."""

    at: Instant


@dataclass(frozen=True, slots=True)
class Pressed(Input):
    """A contact closed after having been open for the debounce time, and it was no noise."""

    seat: Seat
    button: Kind


@dataclass(frozen=True, slots=True)
class PressDiscarded(Input):
    """A press that counts as none; `reason` is `chord` or `noise`."""

    seat: Seat
    reason: str


@dataclass(frozen=True, slots=True)
class PressRevoked(Input):
    """A press that was given out as one counts as none after all.

    `at` is the instant of what shows it, `pressed_at` that of the press. `reason` is `chord` or `noise` (a
    partner was delivered late), `bounce` (an edge of its own contact was), or `flood` (more
    of the same followed than a finger makes).
    """

    seat: Seat
    button: Kind
    pressed_at: Instant
    reason: str


@dataclass(frozen=True, slots=True)
class LeaveWarned(Input):
    """Both outer buttons have been held for 1 s; the seat stands up at `leaves_at` if they stay so."""

    seat: Seat
    leaves_at: Instant


@dataclass(frozen=True, slots=True)
class LeaveAbandoned(Input):
    """One of the two was let go."""

    seat: Seat


@dataclass(frozen=True, slots=True)
class LeaveHeld(Input):
    """Both outer buttons have been held for `leave_s`."""

    seat: Seat


@dataclass(frozen=True, slots=True)
class ButtonHeld(Input):
    """One button alone has been held for `hold_s`."""

    seat: Seat
    button: Kind


@dataclass(frozen=True, slots=True)
class StuckReported(Input):
    """A contact was closed at start-up, or has been for longer than `stuck_s`."""

    seat: Seat
    button: Kind
    since: Instant = field(default=0, compare=False)
    """When it closed."""


@dataclass(frozen=True, slots=True)
class FaultReported(Input):
    """A contact cannot be believed: `fault` is `chatter` (a worn switch; it counts) or `flood` (ignored)."""

    seat: Seat
    button: Kind
    fault: str
    since: Instant = field(default=0, compare=False)
    """When it closed last, as far as that shows what somebody presses."""


@dataclass(frozen=True, slots=True)
class HealReported(Input):
    """A contact that was reported stuck or faulty works again."""

    seat: Seat
    button: Kind
    since: Instant = field(default=0, compare=False)
    """The press that shows it; 0: that it is open shows it."""


@dataclass(frozen=True, slots=True)
class Claimed(Input):
    """A signed-in player takes the identity of a seat; refused outside the lobby."""

    order: ClassVar[int] = 1
    seat: Seat
    player: str
    name: str


@dataclass(frozen=True, slots=True)
class BotsAsked(Input):
    """A visitor asks the table to take the free seats itself; nothing comes of it outside the lobby."""

    order: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class BotsDismissed(Input):
    """A visitor asks the bots to stand up again; nothing comes of it outside the lobby."""

    order: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class OperatorReset(Input):
    """The operator sends everybody away."""

    order: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class StoodStill(Input):
    """The program did nothing from `at` until `ended`, for longer than `table.gap_s`."""

    order: ClassVar[int] = 1
    ended: Instant


@dataclass(frozen=True, slots=True)
class PointsTold(Input):
    """The KI told what players hold, and which of this table's deltas are in that already."""

    order: ClassVar[int] = 1
    points: Mapping[str, int]
    """By KI number."""
    acknowledged: Mapping[str, int]
    """The sum, by KI number, of the deltas in those records that the KI has answered for now."""
