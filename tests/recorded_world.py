"""A small world round a recorded table: people, troubles and power cuts, played the way the daemon plays.

`RecordedWorld` hands edges over when they are delivered, drives the table, numbers what it says, and takes
the parts of the recording that go with it, as the journal would. Times are milliseconds.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from itertools import groupby
from typing import Any

from heek.clock import MILLISECOND, SECOND, Instant
from heek.kinds import KINDS, Kind, Seat
from heek.recorded_table import Part, RecordedTable
from heek.recording import Recording, decode
from heek.session.events import event_line
from heek.session.floor import Effects
from heek.session.settings import GestureSettings, SessionSettings
from heek.session.state import keep, restore
from heek.stations.gestures import Edge

PLAYERS = {1: "40220173", 2: "40220181", 3: "40220199"}


def quick(**changes: Any) -> SessionSettings:
    """A table at which a match takes seconds."""
    return SessionSettings(
        **{
            "lobby": 2 * SECOND,
            "lobby_idle": 10 * SECOND,
            "rematch": 3 * SECOND,
            "bots": "ask",
            "target": 2,
            "countdown": SECOND,
            "reveal": SECOND // 2,
            "match_over": SECOND,
            "idle": 10 * SECOND,
            "guard": 50 * MILLISECOND,
        }
        | changes
    )


class RecordedWorld:
    """One table through all its starts."""

    def __init__(self, settings: SessionSettings | None = None, seed: int = 1, **how: Any) -> None:
        self.settings = quick() if settings is None else settings
        self.gestures = GestureSettings(stuck=5 * SECOND)
        self.luck = random.Random(seed)
        self.how = how
        self.lines: list[str] = []
        self.parts: list[Part] = []
        self.taken: list[tuple[int, str]] = []
        """With each part: how many there were before it, and the phase in which it was given out."""
        self.now: Instant = 0
        self.unsettled = 0
        self._steps: list[tuple[Instant, int, Callable[[], None]]] = []
        self._count = 0
        self._start(None)

    def _start(self, kept: bytes | None, *, short_cut: bool = False) -> None:
        self.now = 0
        self._steps = []
        self.table = RecordedTable(
            self.settings,
            self.gestures,
            random_bytes=self.luck.randbytes,
            closed=[] if kept is None else [(2, Kind.PEN)],
            own_deltas={"40220173": -3},
            told_points={"40220173": 250, "40220181": 700},
            **self.how,
        )
        state = None if kept is None else restore(kept)
        effects = self.table.start("inc", "boot", state, short_cut=short_cut, first_seq=len(self.lines) + 1)
        self._take(effects)
        self.advance()

    # What happens

    def at(self, delay: float, step: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._steps, (self.now + round(delay * MILLISECOND), self._count, step))

    def edge(self, seat: Seat, button: Kind, closed: bool, delay: float, late: float = 0) -> None:
        edge = Edge(self.now + round(delay * MILLISECOND), seat, button, closed)
        self.at(delay + late, lambda: self.table.feed(edge))

    def press(
        self, seat: Seat, button: Kind, delay: float = 0, lasts: float = 80, late: float = 0, bounces: int = 0
    ) -> None:
        """A press; with bounces its contact opens and closes so many times within some milliseconds."""
        self.edge(seat, button, True, delay, late)
        for number in range(bounces):
            self.edge(seat, button, False, delay + 2 * number + 1, late)
            self.edge(seat, button, True, delay + 2 * number + 2, late)
        self.edge(seat, button, False, delay + lasts, late)

    def swing(self, seat: Seat, button: Kind, period: float, lasts: float, late: float = 0) -> None:
        """A line that opens and closes by itself, so many times, closed for a third of each period."""
        for number in range(round(lasts / period)):
            self.edge(seat, button, True, number * period, late)
            self.edge(seat, button, False, number * period + period / 3, late)

    def read(self, seat: Seat, button: Kind) -> None:
        """The line is looked at, and is open."""
        self.table.feed(Edge(self.now, seat, button, False, read=True))

    def round_of(self, seats: tuple[Seat, ...], late: float = 0) -> None:
        """Each seat presses something within half a second."""
        for seat in seats:
            self.press(seat, self.luck.choice(KINDS), self.luck.uniform(60, 500), late=late)

    def stand_still(self, lasts: float) -> None:
        """The program does nothing for so long; edges keep their stamps."""
        began, ended = self.now, self.now + round(lasts * MILLISECOND)
        self.now = ended
        while self._steps and self._steps[0][0] <= ended:
            heapq.heappop(self._steps)[2]()
        self.table.stood_still(began, ended)
        self.advance()

    def cut(self, *, short_cut: bool) -> None:
        """The power fails, and the table starts again on what its journal kept."""
        self._start(keep(self.table.kept()), short_cut=short_cut)

    def run(self, lasts: float) -> None:
        """Let time pass, driving the table whenever it or somebody has something to do."""
        end = self.now + round(lasts * MILLISECOND)
        while True:
            stamps = [step[0] for step in self._steps[:1]]
            due = self.table.due()
            if due is not None:
                # A round that may not be compared yet is looked at again a little later.
                stamps.append(max(due, self.now + (10 * MILLISECOND if self.unsettled else 0)))
            at = min([*stamps, end])
            self.now = max(self.now, at)
            while self._steps and self._steps[0][0] <= self.now:
                heapq.heappop(self._steps)[2]()
            self.advance()
            if at >= end:
                return

    def advance(self) -> None:
        settled = self.unsettled == 0
        self.unsettled = max(0, self.unsettled - 1)
        self._take(self.table.advance(self.now, settled=settled))
        self.table.renew(self.now, len(self.lines) + 1)

    def _take(self, effects: Effects) -> None:
        for event in effects.events:
            self.lines.append(event_line(len(self.lines) + 1, event))
        part = self.table.part(effects.events, len(self.lines))
        if part is not None:
            self.taken.append((len(self.parts), self.table.view.phase.value))
            self.parts.append(part)

    # What was recorded

    def recordings(self) -> list[tuple[Recording, int]]:
        """Each recording as read back from its bytes, and the number of the last event that it covers."""
        found = []
        for _, group in groupby(self.parts, key=lambda part: part.recording):
            parts = list(group)
            found.append(
                (decode(parts[0].beginning or b"", [each.inputs for each in parts]), parts[-1].last_seq)
            )
        return found
