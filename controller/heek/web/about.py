"""What one browser is told about this table and about what it may do here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from heek.clock import MILLISECOND, SECOND, Instant
from heek.kinds import SEATS, Seat
from heek.session.phases import Phase
from heek.session.view import SeatState, SeatView, View
from heek.stations.lamps import Pattern, lamp, steps
from heek.web.doors import Doors, PageSettings

_LONGEST_LEAVE: Final = 10 * SECOND
"""The greatest `seats.leave_s` there may be."""


def about(
    settings: PageSettings,
    doors: Doors,
    *,
    operator: bool,
    phone: bool = False,
    seat: Seat | None = None,
    held: Iterable[Seat] = (),
) -> dict[str, Any]:
    """What `GET /about` answers.

    `operator`: the browser runs on the table's own machine. `phone`: it has joined by the QR code and plays
    `seat`, if it has taken one. `held` are the seats that phones hold, its own among them.
    """
    may_press = doors.contact is not None
    press: str | list[Seat] = "none"
    if may_press and operator:
        press = "all"
    elif may_press and phone:
        press = [] if seat is None else [seat]
    return {
        "simulated": settings.simulated,
        "seats": list(settings.seats),
        "stamps": settings.stamps,
        "press": press,
        "bots": doors.fill_seats is not None and (operator or (phone and seat is not None)),
        "sign_in": doors.sign_in is not None and operator,
        "switch_ki": doors.switch_ki is not None and operator,
        "photo_finish": doors.photo_finishes is not None,
        "ki_url": None if phone else settings.ki_url,
        "lan": settings.lan_token is not None,
        "phone": phone,
        "held": sorted(held),
        "cycles": lamp_cycles(pwm=settings.led_pwm),
        "leaving": leaving_steps(),
    }


def lamp_cycles(*, pwm: bool) -> dict[str, list[list[float]]]:
    """Every pattern that repeats, as steps of `[milliseconds, level 0 to 1]`; each runs from instant 0."""
    return {
        pattern.value: [[span / MILLISECOND, level] for span, level in steps(pattern, pwm=pwm)]
        for pattern in Pattern
        if pattern is not Pattern.LEAVING
    }


def leaving_steps() -> list[list[float]]:
    """The pattern that runs towards an end: `[milliseconds before leaves_at, level from then on]`.

    It is read off the very function that drives the LED, so it cannot say anything else.
    """
    leaves_at = _LONGEST_LEAVE
    seats = tuple(
        SeatView(seat, SeatState.TAKEN, leaves_at=leaves_at if seat == SEATS[0] else None) for seat in SEATS
    )
    view = View(Phase.LOBBY, since=0, until=None, seats=seats)
    listed: list[list[float]] = []
    now: Instant | None = 0
    while now is not None:
        lit = lamp(view, SEATS[0], now)
        listed.append([(leaves_at - now) / MILLISECOND, lit.level])
        now = lit.until
    return listed
