"""People at the pure table: they press, time passes, and what the table said is a list of dicts.

`AtTable` plays the daemon's part over `heek.table.Table` and nothing more: it hands edges over when they
are delivered, wakes the table when it asks for it, sleeps through stalls and reports long ones. Times are
seconds. What the table said stands in `events`, read back from the very lines of JSON that others get.
"""

from __future__ import annotations

import heapq
import json
import random
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from heek.clock import Instant, nanoseconds
from heek.kinds import Kind, Seat
from heek.session.events import Event, event_line
from heek.session.settings import GestureSettings, SessionSettings
from heek.session.state import Kept, MatchResult, keep, restore
from heek.session.view import SeatView, View
from heek.stations.gestures import Edge
from heek.table import Table

Told = dict[str, Any]
"""One event as read back from its line of JSON."""

DURATIONS = frozenset(
    {"lobby", "lobby_idle", "rematch", "leave", "countdown", "reveal"}
    | {"match_over", "idle", "guard", "settle", "resume_max"}
)
GESTURES = frozenset(["debounce", "chord", "stuck", "hold", "leave"])
FAST: dict[str, Any] = {"countdown": 1, "reveal": 0.5}
"""Short rounds: a round every 2 s fits, whether all throw or only some."""


def ns(seconds: float) -> Instant:
    """Seconds as they are written, as exact nanoseconds."""
    return nanoseconds(Decimal(str(seconds)))


def s(seconds: float) -> float:
    """A computed time as the table writes it."""
    return round(seconds, 6)


class AtTable:
    """One table from its start; keyword arguments are settings, durations in seconds."""

    def __init__(
        self,
        *,
        kept: Kept | None = None,
        short_cut: bool = False,
        own_deltas: Mapping[str, int] | None = None,
        told_points: Mapping[str, int] | None = None,
        closed: Iterable[tuple[Seat, str]] = (),
        gap: float = 1,
        watch: Callable[[AtTable], None] | None = None,
        random_bytes: Callable[[int], bytes] | None = None,
        **settings: Any,
    ) -> None:
        both: dict[str, Any] = {
            name: ns(value) if name in DURATIONS | GESTURES else value for name, value in settings.items()
        }
        self.settings = SessionSettings(
            **{name: value for name, value in both.items() if name not in GESTURES}
        )
        self.table = Table(
            self.settings,
            GestureSettings(**{name: value for name, value in both.items() if name in GESTURES}),
            new_match_id=self._new_match_id,
            random_bytes=random_bytes or random.Random(1).randbytes,
            closed=[(seat, Kind(button)) for seat, button in closed],
            own_deltas=own_deltas,
            told_points=told_points,
        )
        self.events: list[Told] = []
        self.results: list[MatchResult] = []
        self.refused: list[str] = []
        self.now: Instant = 0
        self.watch = watch
        self._gap = ns(gap)
        self._matches = 0
        self._count = 0
        """Of steps: those of one instant are done in the order they were asked for."""
        self._steps: list[tuple[Instant, int, Callable[[], None]]] = []
        self._stalls: list[tuple[Instant, Instant]] = []
        self._take(self.table.start("inc", "boot", kept, short_cut=short_cut))

    # What people do

    def edge(
        self, seat: Seat, button: str, closed: bool, at: float, *, delivered: float | None = None
    ) -> None:
        """A contact changes at `at`; the program hears of it at `delivered`."""
        edge = Edge(ns(at), seat, Kind(button), closed)
        self._at(at if delivered is None else delivered, lambda: self.table.feed(edge))

    def press(
        self,
        seat: Seat,
        at: float,
        button: str = "page",
        *,
        lasts: float = 0.08,
        delivered: float | None = None,
    ) -> None:
        """A contact closes at `at` for `lasts`; `delivered` is when the closing edge arrives."""
        self.edge(seat, button, True, at, delivered=delivered)
        opens = s(at + lasts)
        self.edge(seat, button, False, opens, delivered=None if delivered is None else max(opens, delivered))

    def throw(self, at: float, throws: Mapping[Seat, str]) -> None:
        """Several seats press at one instant."""
        for seat, button in throws.items():
            self.press(seat, at, button)

    def play(self, rounds: Iterable[str], *, start: float = 3.0, step: float = 2.0) -> None:
        """Rounds as words, one a seat from seat 1 on: `pen page -`; at `start`, `start + step` ..."""
        for number, words in enumerate(rounds):
            for seat, word in enumerate(words.split(), 1):
                if word != "-":
                    self.press(seat, s(start + number * step), word)

    def hold(self, seat: Seat, at: float, lasts: float, *, first: float = 0.0) -> None:
        """Both outer buttons closed from `at` for `lasts`; the pen `first` seconds before the beetle.

        With `first` 0 the two close at one instant, so they are no press and only the hold counts.
        """
        self.press(seat, s(at - first), "pen", lasts=s(lasts + first))
        self.press(seat, at, "beetle", lasts=lasts)

    def claim(self, at: float, seat: Seat, player: str, name: str = "Shorah") -> None:
        self._at(at, lambda: self.table.claim(ns(at), seat, player, name))

    def tell_points(
        self, at: float, points: Mapping[str, int], acknowledged: Mapping[str, int] | None = None
    ) -> None:
        self._at(at, lambda: self.table.tell_points(ns(at), points, acknowledged or {}))

    def fill_seats(self, at: float) -> None:
        self._at(at, lambda: self.table.fill_seats(ns(at)))

    def dismiss_bots(self, at: float) -> None:
        self._at(at, lambda: self.table.dismiss_bots(ns(at)))

    def reset(self, at: float) -> None:
        self._at(at, lambda: self.table.reset(ns(at)))

    def stall(self, at: float, lasts: float) -> None:
        """The program does nothing from `at` on."""
        began, ended = ns(at), ns(s(at + lasts))
        self._stalls.append((began, ended))
        if ended - began > self._gap:
            self._at(s(at + lasts), lambda: self.table.stood_still(began, ended))
        else:
            self._at(s(at + lasts), lambda: None)

    def cut(self, *, short_cut: bool = False, **settings: Any) -> AtTable:
        """The power fails now; the table that starts again on what survives."""
        return AtTable(kept=restore(keep(self.table.kept())), short_cut=short_cut, **settings)

    # Time

    def run(self, until: float) -> AtTable:
        """Let time pass to `until`, waking the table as the daemon would."""
        end = ns(until)
        while True:
            stamps = [step[0] for step in self._steps[:1]]
            due = self.table.due()
            if due is not None:
                stamps.append(due)
            if not stamps or min(stamps) > end:
                break
            at = self._awake(max(min(stamps), self.now))
            if at > end:
                break
            self._wake(at)
        if self._awake(end) == end:
            self._wake(end)
        return self

    @property
    def view(self) -> View:
        return self.table.view

    def seat(self, seat: Seat) -> SeatView:
        return self.table.view.seats[seat - 1]

    # What the table said

    def told(self, *names: str, since: float = -1.0, until: float = 1e9) -> list[Told]:
        """Events of these names (all without any) from `since` to `until`, both included."""
        return [
            each
            for each in self.events
            if (not names or each["event"] in names) and since <= each["at"] <= until
        ]

    def one(self, name: str, **fields: Any) -> Told:
        """The only event of this name with these fields; fails if there are more or none."""
        found = [
            each
            for each in self.told(name)
            if all(each.get(field) == value for field, value in fields.items())
        ]
        assert len(found) == 1, f"{len(found)} events {name} {fields} among {self.events}"
        return found[0]

    def names(self, since: float, until: float | None = None) -> list[str]:
        """The names of what was said at `since`, or from then to `until`."""
        return [each["event"] for each in self.told(since=since, until=since if until is None else until)]

    def ignored(self, seat: Seat | None = None) -> list[tuple[float, Seat, str]]:
        return [
            (each["at"], each["seat"], each["reason"])
            for each in self.told("press_ignored")
            if seat is None or each["seat"] == seat
        ]

    def left(self) -> list[tuple[float, Seat, str]]:
        return [(each["at"], each["seat"], each["reason"]) for each in self.told("seat_left")]

    def revealed(self) -> list[Told]:
        return self.told("round_revealed")

    # Inside

    def _at(self, at: float, step: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._steps, (ns(at), self._count, step))

    def _awake(self, at: Instant) -> Instant:
        while True:
            asleep = [ended for began, ended in self._stalls if began <= at < ended]
            if not asleep:
                return at
            at = max(asleep)

    def _wake(self, now: Instant) -> None:
        self.now = now
        while self._steps and self._steps[0][0] <= now:
            heapq.heappop(self._steps)[2]()
        self._take(self.table.advance(now))
        due = self.table.due()
        assert due is None or due > now, "the table asks to be woken for what it has just done"
        if self.watch is not None:
            self.watch(self)

    def take(self, now: float) -> None:
        """Let the table advance to `now`, whatever it asked for."""
        self.now = ns(now)
        self._take(self.table.advance(self.now))

    def _take(self, effects: Any) -> None:
        self.refused += [why for _, why in effects.refused]
        for event in effects.events:
            self._tell(event)
        self.results.extend(effects.results)

    def _tell(self, event: Event) -> None:
        told = json.loads(event_line(len(self.events) + 1, event))
        assert not self.events or told["at"] >= self.events[-1]["at"], f"`at` went back: {told}"
        self.events.append(told)

    def _new_match_id(self) -> str:
        self._matches += 1
        return f"match-{self._matches}"


def in_match(*seats: Seat, **settings: Any) -> AtTable:
    """A table whose match among `seats` starts at 2.0 s exactly; its first round opens then.

    All but the last sit down at 1.0 s. With fewer than five all get ready at 2.0 s, and a full table
    starts when the last sits down then.
    """
    table = AtTable(**settings)
    *early, last = seats
    for seat in early:
        table.press(seat, 1.0)
    table.press(last, 2.0 if len(seats) == 5 else 1.0)
    if len(seats) < 5:
        for seat in seats:
            table.press(seat, 2.0)
    return table
