"""What all contacts of a story do, read off whole lists: presses, chords, noise, holds, stuck contacts."""

from __future__ import annotations

from typing import Final

from heek.simulator.story import Story, contact_edges
from tests.second_opinion.keys import Keys

BUTTONS: Final = ("pen", "page", "beetle")
NEVER: Final = 10**18


class Closure:
    """A contact that is closed, short openings not counted, from `start` to `end` (NEVER: for good)."""

    def __init__(self, seat: int, button: str, start: int, at_start_up: bool) -> None:
        self.seat = seat
        self.button = button
        self.start = start
        self.at_start_up = at_start_up
        self.end = NEVER
        self.openings: list[tuple[int, int]] = []
        """Short ones: from when to when."""
        self.reason: str | None = None
        """Why it is no press: chord or noise."""

    def place(self) -> tuple[int, int]:
        return self.seat, BUTTONS.index(self.button)


class Contacts:
    """Everything that the edges of a story mean."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.keys = Keys(story)
        self.closures = self.read_contacts()
        self.judge_presses()

    def read_contacts(self) -> list[Closure]:
        """Every closure of every contact, in the order of their starts."""
        debounce = self.keys.span("stations.debounce_s")
        closures: list[Closure] = []
        latest: dict[tuple[int, str], Closure] = {}
        for edge in sorted(contact_edges(self.story), key=lambda edge: edge.at):
            contact = (edge.seat, edge.button.value)
            last = latest.get(contact)
            if not edge.closed:
                if last is not None:
                    last.end = edge.at
            elif last is None or edge.at - last.end >= debounce:
                latest[contact] = Closure(*contact, edge.at, edge.initial)
                closures.append(latest[contact])
            else:
                last.openings.append((last.end, edge.at))  # too short to count
                last.end = NEVER
        # Silent: presses of one instant are taken by seat, then from the player's left.
        return sorted(closures, key=lambda closure: (closure.start, *closure.place()))

    def judge_presses(self) -> None:
        """Find the presses that are none."""
        chord = self.keys.span("stations.chord_s")
        presses = [closure for closure in self.closures if not closure.at_start_up]
        for press in presses:
            near = [other for other in presses if abs(other.start - press.start) <= chord]
            for first in near:
                if first.start <= press.start:
                    window = [other for other in near if 0 <= other.start - first.start <= chord]
                    if len({(other.seat, other.button) for other in window}) >= 6:
                        press.reason = "noise"
            mine = [other for other in near if other.seat == press.seat and other.button != press.button]
            if mine and press.reason is None:
                press.reason = "chord"

    def contact_events(self) -> list[tuple[int, str, Closure]]:
        """When contacts get stuck and heal."""
        stuck, debounce = self.keys.span("stations.stuck_s"), self.keys.span("stations.debounce_s")
        found = []
        for closure in self.closures:
            since = 0 if closure.at_start_up else closure.start + stuck
            for opens, closes in closure.openings:
                if opens <= since < closes and not closure.at_start_up:
                    since = closes  # as with holds: the next edge decides
            if closure.end > since:
                found.append((since, "contact_stuck", closure))
                if closure.end != NEVER:
                    found.append((closure.end + debounce, "contact_healed", closure))
        return found

    def leaves(self) -> list[tuple[int, int]]:
        """When which seat has held both outer buttons for long enough."""
        stuck, leave = self.keys.span("stations.stuck_s"), self.keys.span("seats.leave_s")
        found = []
        for pen in self.closures:
            for beetle in self.closures:
                if (pen.button, beetle.button) != ("pen", "beetle") or pen.seat != beetle.seat:
                    continue
                if pen.at_start_up or beetle.at_start_up:
                    continue
                done = max(pen.start, beetle.start) + leave
                # Decided: a hold whose end falls into a short opening is over at the edge that ends it.
                for opens, closes in sorted(pen.openings + beetle.openings):
                    if opens <= done < closes:
                        done = closes
                # At equal stamps edges come before timers: who lets go at that instant stays.
                if all(done < closure.end and done < closure.start + stuck for closure in (pen, beetle)):
                    found.append((done, pen.seat))
        return sorted(found)
