"""The phase the table is in, the order in which it tells what happens, and who sits there.

Everything that changes the session does so through here: one place that asks the table of transitions, and
one that sees to it that `at` never goes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from heek.clock import Instant
from heek.kinds import Seat
from heek.session import events as ev
from heek.session.inputs import Claimed
from heek.session.phases import Phase, Step, next_phase
from heek.session.seating import Seating
from heek.session.state import MatchResult

Timer: TypeAlias = "tuple[Instant, Callable[[Instant], None]]"
"""When, and what passes then."""


@dataclass(frozen=True, slots=True)
class Effects:
    """What one call came to: events to keep and tell, results to report."""

    events: tuple[ev.Event, ...]
    results: tuple[MatchResult, ...]
    refused: tuple[tuple[Claimed, str], ...] = ()
    """Claims that the table could not take; each with the reason, and what to do."""

    @property
    def durable(self) -> bool:
        """Among the events is one that must be on the disk before anybody celebrates."""
        return any(event.durable for event in self.events)


class Floor:
    """The phase since when, the seats, and what has not been told yet.

    `witness` gets every event with its own instant, before one that comes late is moved to the last `at`.
    """

    def __init__(
        self, phase: Phase = Phase.ATTRACT, witness: Callable[[ev.Event], None] | None = None
    ) -> None:
        self.phase = phase
        self.since: Instant = 0
        """When the phase began by rule."""
        self.seating = Seating()
        self._witness = witness
        self._last_at: Instant = 0
        self._events: list[ev.Event] = []
        self._results: list[MatchResult] = []
        self._refused: list[tuple[Claimed, str]] = []

    def go(self, step: Step, at: Instant) -> None:
        """Take a step; raises IllegalTransition, and changes nothing, if the table has no such step."""
        self.phase = next_phase(self.phase, step)
        self.since = at

    def emit(self, event: ev.Event) -> None:
        """Tell an event, at its own instant or, if later ones have been told, at the last one's."""
        if self._witness is not None:
            self._witness(event)
        if event.at < self._last_at:
            event = replace(event, at=self._last_at)
        self._last_at = event.at
        self._events.append(event)

    def ignore(self, at: Instant, seat: Seat, reason: str) -> None:
        """Tell that a press did not count."""
        self.emit(ev.PressIgnored(at, seat, reason))

    def sit_down(self, seat: Seat, at: Instant, *, bot: bool = False) -> None:
        self.seating.sit_down(seat, at, bot=bot)
        self.emit(ev.SeatTaken(at, seat, "bot" if bot else "guest"))

    def confirm(self, seat: Seat, at: Instant) -> None:
        self.seating.confirm(seat, at)
        self.emit(ev.SeatReady(at, seat))

    def vacate(self, reasons: Mapping[Seat, str], at: Instant) -> tuple[Seat, ...]:
        """Seats stand up at one instant; gives them in order. What follows is for others to judge.

        When the last person goes, all bots go along.
        """
        if not set(self.seating.people()) - set(reasons):
            reasons = dict.fromkeys(self.seating.bots(), "leave") | dict(reasons)
        seats = tuple(sorted(reasons))
        for seat in seats:
            del self.seating.occupants[seat]
            self.emit(ev.SeatLeft(at, seat, reasons[seat]))
        return seats

    def rest(self) -> Instant:
        """Nobody sits, and nothing waits to be told: forget who sat; the `at` that was told last."""
        self.seating = Seating()
        return self._last_at

    def take_up_rest(self, since: Instant, last_at: Instant) -> None:
        """Go on where another floor rested."""
        self.since, self._last_at = since, last_at

    def report(self, result: MatchResult) -> None:
        self._results.append(result)

    def refuse(self, claim: Claimed, why: str) -> None:
        self._refused.append((claim, why))

    def effects(self) -> Effects:
        """Everything told since the last call."""
        effects = Effects(tuple(self._events), tuple(self._results), tuple(self._refused))
        self._events, self._results, self._refused = [], [], []
        return effects
