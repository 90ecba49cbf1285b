"""Learns which line each button is on: asks for one after the other and takes the line that closes.

LEDs are not learned: to find one, a line that nobody knows would have to be driven, and behind it may be a
button to ground. They stay where the configuration has them, or where `led` is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from heek.clock import Instant
from heek.kinds import KINDS, Kind, Seat
from heek.selftest.asking import PLACES, SETTLED, Answer, Ask, Course, Moved, name_of
from heek.selftest.walk import QUIET, QUIT, SKIP
from heek.wiring.pin_map import StationPins, check_pins


class Learning:
    """Seats are asked for in turn; `standard` gives the LEDs. `closed` are lines closed when it begins."""

    def __init__(
        self,
        seats: Sequence[Seat],
        standard: Sequence[StationPins],
        *,
        now: Instant,
        closed: Iterable[int] = (),
    ) -> None:
        self._seats = tuple(seats)
        self._leds = {station.seat: station.led for station in standard}
        self._now = now
        self._dead = set(closed)
        """Lines that are closed, or move, while nobody touches anything: none of them is a button."""
        self._found: dict[int, tuple[Seat, Kind]] = {}
        self.skipped: list[Seat] = []
        self.finished = False

    @property
    def stations(self) -> tuple[StationPins, ...]:
        """What was learned: the seats whose three buttons are known."""
        lines = {where: number for number, where in self._found.items()}
        return tuple(
            StationPins(
                seat,
                lines[seat, Kind.PEN],
                lines[seat, Kind.PAGE],
                lines[seat, Kind.BEETLE],
                self._leds[seat],
            )
            for seat in self._seats
            if all((seat, kind) in lines for kind in KINDS)
        )

    def mistakes(self) -> list[str]:
        """Why what was learned makes no table, a line each; empty if it does."""
        stations = self.stations
        if not 2 <= len(stations) <= 5:
            count = "1 station was" if len(stations) == 1 else f"{len(stations)} stations were"
            return [f"{count} learned; two to five make a table"]
        return check_pins(stations)

    def course(self) -> Course:
        """Ask for every button of every seat."""
        until = self._now + QUIET
        while self._now < until:
            what = yield Ask(
                "Hands off the table for two seconds: nobody touches a button.",
                ("HANDS OFF",),
                takes_answers=False,
                until=until,
            )
            self._now = max(self._now, what.at)
            if isinstance(what, Moved):
                self._dead.add(what.where)
        for seat in self._seats:
            for kind in KINDS:
                before = ""
                while True:
                    what = yield Ask(
                        f"{before}Seat {seat}: press {kind.value} (the {PLACES[kind]} button) once. "
                        "[s: this seat is absent, q: quit]",
                        (f"SEAT {seat}", "PRESS", kind.value.upper()),
                    )
                    self._now = max(self._now, what.at)
                    word = what.text.strip().lower() if isinstance(what, Answer) else ""
                    if word in QUIT:
                        return
                    if word in SKIP or not isinstance(what, Moved):
                        if word in SKIP:
                            break
                        continue
                    if not what.closed or what.where in self._dead:
                        continue
                    if what.where not in self._found:
                        self._found[what.where] = (seat, kind)
                        yield from self._let_go(what.where)
                        break
                    before = f"GPIO{what.where} is {name_of(self._found[what.where])} already. "
                    yield from self._let_go(what.where)
                if (seat, kind) not in self._found.values():
                    self._forget(seat)
                    break
        self.finished = True

    def _forget(self, seat: Seat) -> None:
        self.skipped.append(seat)
        self._found = {number: where for number, where in self._found.items() if where[0] != seat}

    def _let_go(self, number: int) -> Course:
        """Wait until the line is open and still: the next button is another one."""
        closed, quiet_at = True, self._now + SETTLED
        while closed or self._now < quiet_at:
            what = yield Ask(
                f"GPIO{number}: let it go.",
                ("LET GO",),
                takes_answers=False,
                until=None if closed else quiet_at,
            )
            self._now = max(self._now, what.at)
            if isinstance(what, Moved) and what.where == number:
                closed, quiet_at = what.closed, self._now + SETTLED
