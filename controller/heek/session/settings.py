"""The numbers the session and the gestures play by, as exact nanoseconds.

Defaults and ranges are those of spec/config.md; `heek.config` reads them from the file and refuses
what is out of range, so nothing here checks again.
"""

from __future__ import annotations

from dataclasses import dataclass

from heek.clock import MILLISECOND, SECOND, Duration
from heek.kinds import SEATS, Seat


@dataclass(frozen=True, slots=True)
class GestureSettings:
    """How edges of contacts become presses and holds."""

    debounce: Duration = 15 * MILLISECOND
    chord: Duration = 3 * MILLISECOND
    stuck: Duration = 20 * SECOND
    hold: Duration = SECOND
    """`seats.hold_s`: a hold in the lobby."""
    leave: Duration = 3 * SECOND
    """`seats.leave_s`: both outer buttons held together."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """The clock and the limits of Ahyoheek at this table."""

    name: str = "Table 1"
    seats: tuple[Seat, ...] = SEATS
    """Those that have a station, ascending; the others are absent."""
    lobby: Duration = 10 * SECOND
    lobby_idle: Duration = 60 * SECOND
    rematch: Duration = 15 * SECOND
    bots: str = "never"
    """`never`, `ask` or `fill`: whether the table may take seats itself."""
    late_join: bool = False
    target: int = 3
    cycle: str = "pen-page-beetle"
    timer: str = "first_throw"
    """`first_throw` or `fixed`."""
    countdown: Duration = 5 * SECOND
    reveal: Duration = 4 * SECOND
    match_over: Duration = 8 * SECOND
    idle: Duration = 60 * SECOND
    guard: Duration = 300 * MILLISECOND
    settle: Duration = 30 * MILLISECOND
    allow_change: bool = True
    missed_limit: int = 3
    sudden_death_limit: int = 20
    winnerless_limit: int = 50
    economy: str = "stake"
    """`stake` or `award`."""
    resume: bool = True
    """`table.on_power_loss` is `resume`, not `void`."""
    resume_max: Duration = 120 * SECOND
