"""What all contacts of a story do, read off whole lists: presses, chords, noise, holds, trouble.

Left out: crosstalk within a station (chords far above what a hand can drum).
"""

from __future__ import annotations

from typing import Final

from heek.simulator.story import Story, contact_edges
from tests.second_opinion.keys import Keys

BUTTONS: Final = ("pen", "page", "beetle")
NEVER: Final = 10**18
SECOND: Final = 10**9
MS: Final = 10**6


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
        self.cut = False
        """It ended because the contact was set aside."""

    def place(self) -> tuple[int, int]:
        return self.seat, BUTTONS.index(self.button)


class Notice:
    """A contact that is found faulty, or well again."""

    def __init__(
        self, at: int, name: str, seat: int, button: str, since: int, fault: str | None = None
    ) -> None:
        self.at = at
        self.name = name
        self.seat = seat
        self.button = button
        self.start = since
        """It shows what is pressed at that instant; 0: nothing."""
        self.fault = fault
        self.revoked: list[Closure] = []
        """Presses that were none."""
        self.at_start_up = False

    def place(self) -> tuple[int, int]:
        return self.seat, BUTTONS.index(self.button)


class Contacts:
    """Everything that the edges of a story mean."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.keys = Keys(story)
        self.notices: list[Notice] = []
        self.closures = self.read_contacts()
        self.judge_presses()

    def read_contacts(self) -> list[Closure]:
        """Every closure of every contact, in the order of their starts."""
        edges: dict[tuple[int, str], list[tuple[int, bool, bool]]] = {}
        for edge in sorted(contact_edges(self.story), key=lambda edge: edge.at):
            changes = edges.setdefault((edge.seat, edge.button.value), [])
            changes.append((edge.at, edge.closed, edge.initial))
        closures = [closure for contact, changes in edges.items() for closure in self.read(*contact, changes)]
        # Silent: presses of one instant are taken by seat, then from the player's left.
        return sorted(closures, key=lambda closure: (closure.start, *closure.place()))

    def read(self, seat: int, button: str, changes: list[tuple[int, bool, bool]]) -> list[Closure]:
        """The closures of one contact; what is wrong with its switch goes into `notices`."""
        debounce, stuck = self.keys.span("stations.debounce_s"), self.keys.span("stations.stuck_s")
        closures: list[Closure] = []
        last, last_at, closed = None, 0, False
        # Milliseconds that edges and presses are ahead of 500 and 20 a second.
        ahead = pressed_ahead = 0
        burst = run = presses = press_at = 0
        run_counted, is_stuck, worn, flooding = False, False, False, False
        long_runs: list[int] = []
        for at, closes, initial in changes:
            if initial:
                last, closed, is_stuck = Closure(seat, button, at, True), True, True
                closures.append(last)
                continue
            if flooding:
                if closed or at <= last_at + 5 * SECOND:
                    last_at, closed = at, closes
                    continue
                self.notices.append(Notice(last_at + 5 * SECOND, "contact_healed", seat, button, 0))
                flooding, ahead, pressed_ahead, long_runs, run_counted = False, 0, 0, [], True
            gap = at - last_at
            if last is not None and closed and not is_stuck and max(last.start + stuck, last_at) < at:
                is_stuck, worn, long_runs, run_counted = True, False, [], True
                ahead = pressed_ahead = 0
            ahead = max(0, ahead - gap) + SECOND // 500
            if ahead > SECOND:
                flooding, is_stuck, worn = True, False, False
                self.set_aside(last, at, seat, button)
                last, last_at, closed = None, at, closes
                continue
            # A run of edges close behind each other is one bounce.
            if gap >= min(debounce, 15 * MS):
                run, run_counted = at, False
            else:
                long = max(150 * MS, 3 * debounce)
                was_worn = worn
                if not run_counted and at - run >= long // 2:
                    run_counted = True
                    long_runs.append(presses)
                    worn = worn or (len(long_runs) >= 3 and presses - long_runs[-3] < 20)
                worn = worn or (bool(long_runs) and run_counted and at - run >= long)
                if is_stuck:
                    if worn:
                        worn, long_runs, run_counted = False, [], True
                elif worn and not was_worn:
                    self.notices.append(Notice(at, "contact_faulty", seat, button, at, "chatter"))
            last_at, closed = at, closes
            if not closes:
                if last is not None:
                    last.end = at
            elif gap >= debounce and (last is None or last.end != NEVER):
                pressed_ahead = max(0, pressed_ahead - (at - press_at))
                if pressed_ahead == 0:
                    burst = at
                press_at = at
                pressed_ahead += 50 * MS
                is_stuck = False
                if pressed_ahead > 500 * MS:
                    flooding, worn = True, False
                    notice = self.set_aside(None, at, seat, button)
                    notice.revoked = [each for each in closures if each.start >= max(burst, at - SECOND)]
                    last = None
                    continue
                presses += 1
                last = Closure(seat, button, at, False)
                closures.append(last)
                if worn and presses - long_runs[-1] > 20:
                    worn, long_runs = False, []
                    self.notices.append(Notice(at, "contact_healed", seat, button, at))
            elif last is not None:
                last.openings.append((last.end, at))  # too short to count
                last.end = NEVER
            else:
                # Closed again at once after the start: no press, but it is held.
                last = Closure(seat, button, at, True)
                closures.append(last)
        if flooding and not closed:
            self.notices.append(Notice(last_at + 5 * SECOND, "contact_healed", seat, button, 0))
        return closures

    def set_aside(self, last: Closure | None, at: int, seat: int, button: str) -> Notice:
        if last is not None:
            last.cut = last.end == NEVER or last.end + self.keys.span("stations.debounce_s") > at
            last.end = min(last.end, at)
        notice = Notice(at, "contact_faulty", seat, button, at, "flood")
        self.notices.append(notice)
        return notice

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

    def contact_events(self) -> list[tuple[int, str, Closure | Notice]]:
        """When contacts get stuck, are found faulty, and heal."""
        stuck, debounce = self.keys.span("stations.stuck_s"), self.keys.span("stations.debounce_s")
        found: list[tuple[int, str, Closure | Notice]] = [(each.at, each.name, each) for each in self.notices]
        for closure in self.closures:
            since = 0 if closure.at_start_up else closure.start + stuck
            for opens, closes in closure.openings:
                if opens <= since < closes and not closure.at_start_up:
                    since = closes  # as with holds: the next edge decides
            if closure.end > since:
                found.append((since, "contact_stuck", closure))
                if closure.end != NEVER and not closure.cut:
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
