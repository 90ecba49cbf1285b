"""What each LED shows: from the view and the time to a pattern, and from the pattern to a brightness.

Patterns are told apart without colour (look.md, "The LED"): free: off; taken: steady, dim; your turn: slow
breath; thrown: steady, full; time running out and not thrown: even blink, 2 Hz; unconfirmed: one short flash
a second; leaving: shortening blinks; won: three long, pause; fault: two short, long pause. Nothing flashes
above 3 Hz. On pins without PWM dim becomes on with a short wink, and the breath an even blink of 3 s.

Every pattern runs from instant 0, so that asking again never restarts it and equal patterns blink
together; only leaving is counted back from the instant at which the seat stands up.

Where the table plays itself, the LED never asks anybody to press: it is dim until the bot has thrown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from heek.clock import MILLISECOND, SECOND, Duration, Instant
from heek.kinds import Seat
from heek.session.phases import Phase
from heek.session.view import SeatState, SeatView, View

Steps: TypeAlias = tuple[tuple[Duration, float], ...]
"""A cycle of (how long, how bright 0 to 1)."""


class Pattern(Enum):
    """What an LED says."""

    FREE = "free"
    TAKEN = "taken"
    UNCONFIRMED = "unconfirmed"
    YOUR_TURN = "your_turn"
    THROWN = "thrown"
    TIME_RUNNING_OUT = "time_running_out"
    LEAVING = "leaving"
    WON = "won"
    FAULT = "fault"


RUNNING_OUT: Final[Duration] = 5 * SECOND
"""The last seconds of a countdown, in which a seat that has not thrown is warned."""

DIM: Final = 0.12
_BREATHS: Final = 24


def _steps(*steps: tuple[int, float]) -> Steps:
    return tuple((milliseconds * MILLISECOND, level) for milliseconds, level in steps)


def _breath() -> Steps:
    """One breath of 2.4 s in steps of 100 ms: never quite dark, never quite full."""
    return tuple(
        (100 * MILLISECOND, round(0.05 + 0.55 * (1 - math.cos(2 * math.pi * step / _BREATHS)) / 2, 3))
        for step in range(_BREATHS)
    )


_SHARED: Final[dict[Pattern, Steps]] = {
    Pattern.FREE: _steps((1000, 0.0)),
    Pattern.THROWN: _steps((1000, 1.0)),
    Pattern.TIME_RUNNING_OUT: _steps((250, 1.0), (250, 0.0)),
    Pattern.UNCONFIRMED: _steps((100, 1.0), (900, 0.0)),
    Pattern.WON: _steps((400, 1.0), (200, 0.0), (400, 1.0), (200, 0.0), (400, 1.0), (1400, 0.0)),
    Pattern.FAULT: _steps((120, 1.0), (230, 0.0), (120, 1.0), (1530, 0.0)),
}
_PWM: Final[dict[Pattern, Steps]] = _SHARED | {
    Pattern.TAKEN: _steps((1000, DIM)),
    Pattern.YOUR_TURN: _breath(),
}
_PLAIN: Final[dict[Pattern, Steps]] = _SHARED | {
    Pattern.TAKEN: _steps((1900, 1.0), (100, 0.0)),
    Pattern.YOUR_TURN: _steps((1500, 1.0), (1500, 0.0)),
}

_LEAVING_PERIODS: Final = tuple(period * MILLISECOND for period in (334, 334, 334, 500, 500, 1000))
"""Blinks before the seat stands up, the last one first; earlier ones take 1 s each."""


@dataclass(frozen=True, slots=True)
class Lamp:
    """One LED at one instant."""

    pattern: Pattern
    level: float
    """0 off to 1 full; without PWM 0 or 1."""
    until: Instant | None
    """When the level or the pattern changes if the view does not; None: never."""


def steps(pattern: Pattern, *, pwm: bool) -> Steps:
    """The cycle of a pattern; raises KeyError for `leaving`, which has none."""
    return (_PWM if pwm else _PLAIN)[pattern]


def pattern(view: View, seat: Seat, now: Instant) -> Pattern:
    """What the LED of `seat` (1 to 5) says at `now`."""
    place = view.seats[seat - 1]
    if place.leaves_at is not None:
        return Pattern.LEAVING
    match view.phase:
        case Phase.THROW | Phase.COUNTDOWN | Phase.SETTLE:
            if place.thrown and place.in_round:
                return Pattern.THROWN
            if not place.in_round or place.bot:
                return _sitting(place)
            warned = view.phase is not Phase.THROW and (view.until is None or view.until - now <= RUNNING_OUT)
            return Pattern.TIME_RUNNING_OUT if warned else Pattern.YOUR_TURN
        case Phase.REVEAL if place.won_round and place.state is not SeatState.FREE:
            return Pattern.WON
        case Phase.MATCH_OVER if place.won_match:
            return Pattern.WON
        case _:
            return _sitting(place)


def _sitting(place: SeatView) -> Pattern:
    if place.state is SeatState.UNCONFIRMED and not place.bot:
        return Pattern.UNCONFIRMED
    if place.stuck or place.faults:
        return Pattern.FAULT
    return Pattern.FREE if place.state in (SeatState.FREE, SeatState.ABSENT) else Pattern.TAKEN


def lamp(view: View, seat: Seat, now: Instant, *, pwm: bool = True) -> Lamp:
    """The LED of `seat` at `now`."""
    shown = pattern(view, seat, now)
    leaves_at = view.seats[seat - 1].leaves_at
    if shown is Pattern.LEAVING and leaves_at is not None:
        level, until = _leaving(leaves_at, now)
        return Lamp(shown, level, until)
    cycle = steps(shown, pwm=pwm)
    if len(cycle) == 1:
        return Lamp(shown, cycle[0][1], _warning(view, shown))
    level, until = _at(cycle, now)
    warning = _warning(view, shown)
    return Lamp(shown, level, until if warning is None or warning <= now else min(until, warning))


def _at(cycle: Steps, now: Instant) -> tuple[float, Instant]:
    """The level of a cycle at `now`, and when its next step begins."""
    offset = now % sum(span for span, _ in cycle)
    for span, level in cycle:
        if offset < span:
            return level, now + span - offset
        offset -= span
    return cycle[0][1], now


def _warning(view: View, shown: Pattern) -> Instant | None:
    """When `your turn` becomes `time running out` in a long countdown."""
    if shown is Pattern.YOUR_TURN and view.phase is Phase.COUNTDOWN and view.until is not None:
        return view.until - RUNNING_OUT
    return None


def _leaving(leaves_at: Instant, now: Instant) -> tuple[float, Instant | None]:
    """On for the first half of each blink; blinks shorten towards the end, then the LED stays on."""
    if now >= leaves_at:
        return 1.0, None
    end = leaves_at
    for period in _LEAVING_PERIODS:
        if now >= end - period:
            break
        end -= period
    else:
        period = SECOND
        end -= (end - now - 1) // period * period
    dark_from = end - period // 2
    return (1.0, dark_from) if now < dark_from else (0.0, end)
