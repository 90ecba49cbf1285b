"""Who has joined by the QR code, and which phone plays which seat.

A phone joins with the token of the address that it scanned and gets a session, known by a random cookie.
Joining takes no seat: whatever fetches the link to show a preview of it gets a session that lapses. A
session may take one seat. Whoever has it keeps it while that phone is alive: its live stream is open, or it
was heard of within a minute. After that the next may take it, and the first one is told so. Whether the seat
is free in the game is not asked: a phone that comes back from a flat battery must get back to its own seat.

A phone that was away for ten minutes has let go of its seat, so that nobody who comes back days later plays
for whoever sits there then.

Pure: the time and the source of random bytes are arguments.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from heek.clock import SECOND, Duration, Instant
from heek.errors import PageRefusal
from heek.kinds import Seat
from heek.web.pace import Pace

MOST_PHONES: Final = 32
COOKIE_BYTES: Final = 16
"""128 bits, like the token."""

ALIVE: Final[Duration] = 60 * SECOND
"""How long a phone that is not heard of keeps its seat against another one."""

KEEPS_SEAT: Final[Duration] = 600 * SECOND
"""How long it keeps it when nobody else wants it."""

LAPSES: Final[Duration] = 12 * 3600 * SECOND
"""How long its session lives without a word."""

JOINS_AT_ONCE: Final = 20
JOIN_EVERY: Final[Duration] = 3 * SECOND
"""For each address: twenty at once, and twenty a minute after that."""

ALL_JOINS_AT_ONCE: Final = 120
ALL_JOINS_EVERY: Final[Duration] = SECOND // 2


@dataclass(slots=True, eq=False)
class Phone:
    """One phone's session."""

    cookie: str
    seen: Instant
    seat: Seat | None = None
    streams: int = 0
    """Live streams that are open."""

    def alive(self, now: Instant) -> bool:
        """Is it there, so far as anybody can tell?"""
        return self.streams > 0 or now - self.seen < ALIVE


class Phones:
    """All phones at one table with `seats`; `draw` gives that many random bytes."""

    def __init__(self, token: str, seats: tuple[Seat, ...], draw: Callable[[int], bytes]) -> None:
        self._token = token.encode()
        self._seats = seats
        self._draw = draw
        self._phones: dict[str, Phone] = {}
        self._pace = Pace(JOINS_AT_ONCE, JOIN_EVERY)
        self._pace_of_all = Pace(ALL_JOINS_AT_ONCE, ALL_JOINS_EVERY)

    def __len__(self) -> int:
        return len(self._phones)

    def join(self, token: str, peer: str, now: Instant) -> Phone:
        """A new session for whoever knows the token; `peer` is the address that asks.

        Raises PageRefusal: 403 for a wrong token, 429 for too many attempts, 503 for too many phones.
        """
        wait = self._pace.take(peer, now) or self._pace_of_all.take("", now)
        if wait:
            raise PageRefusal(
                429, f"too many attempts to join: wait {wait} s and scan the QR code again", wait
            )
        # Compared as bytes: str may hold what compare_digest does not take.
        if not hmac.compare_digest(token.encode(errors="replace"), self._token):
            raise PageRefusal(403, "this is not the address of this table: scan the QR code again")
        self._lapse(now)
        if len(self._phones) >= MOST_PHONES:
            idle = [phone for phone in self._phones.values() if phone.seat is None and not phone.streams]
            if not idle:
                raise PageRefusal(503, f"{MOST_PHONES} phones are here already: wait until one has left", 30)
            del self._phones[min(idle, key=lambda phone: phone.seen).cookie]
        phone = Phone(self._draw(COOKIE_BYTES).hex(), now)
        self._phones[phone.cookie] = phone
        return phone

    def known(self, cookie: str, now: Instant) -> Phone | None:
        """The phone of a cookie, which has been heard of now."""
        self._lapse(now)
        phone = self._phones.get(cookie)
        if phone is not None:
            phone.seen = now
        return phone

    def holder(self, seat: Seat) -> Phone | None:
        """The phone that has `seat`, alive or not."""
        return next((phone for phone in self._phones.values() if phone.seat == seat), None)

    def held(self, now: Instant) -> tuple[Seat, ...]:
        """The seats that no other phone may take now."""
        return tuple(
            sorted(
                phone.seat for phone in self._phones.values() if phone.seat is not None and phone.alive(now)
            )
        )

    def sit(self, phone: Phone, seat: Seat | None, now: Instant) -> list[Phone]:
        """Let `phone` play `seat` (None: none any more); gives the phones that have lost a seat by it.

        Raises PageRefusal: 404 where there is no such seat, 409 where another live phone has it.
        """
        if seat is not None and seat not in self._seats:
            raise PageRefusal(404, f"there is no seat {seat} at this table")
        if seat == phone.seat:
            return []
        moved = [phone] if phone.seat is not None else []
        holder = None if seat is None else self.holder(seat)
        if holder is not None:
            if holder.alive(now):
                raise PageRefusal(409, f"seat {seat} is held by another phone: take another seat")
            holder.seat = None
            moved.append(holder)
        phone.seat = seat
        return moved

    def _lapse(self, now: Instant) -> None:
        """Let go of the seats, and in the end of the sessions, of phones that have been away for too long."""
        for phone in list(self._phones.values()):
            away = 0 if phone.streams else now - phone.seen
            if away >= KEEPS_SEAT:
                phone.seat = None
            if away >= LAPSES:
                del self._phones[phone.cookie]
