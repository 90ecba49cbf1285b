"""Hands of five players who press around the close of quick rounds, on a simulated chip, in real time.

What they do is drawn by chance, when they do it follows from what the table says: a round is planned when
its `round_opened` is heard. Around its close all seats press several buttons within fractions of a second,
chords and noise among them, and in half of the rounds the daemon stands still (SIGSTOP) for up to 0.5 s. The
first throw of each round stands alone: a countdown that began stays, whatever a later edge says.

Nothing is judged here: the recording that the table keeps and the kernel's own trace are asked afterwards.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from heek.clock import MILLISECOND, SECOND, nanoseconds
from heek.wiring.pin_map import DEFAULT_STATIONS
from tests.virtual_pi.simulated_chip import SimulatedChip
from tests.virtual_pi.table_daemon import TableDaemon

KINDS: Final = ("pen", "page", "beetle")
COUNTDOWN: Final = SECOND
GUARD: Final = 100 * MILLISECOND
PATIENCE_S: Final = 20.0
SPIN: Final = MILLISECOND
STATIONS: Final = {station.seat: station for station in DEFAULT_STATIONS}


def keys(seed: int) -> dict[str, object]:
    """The configuration of one sitting; the same for the same seed."""
    chance = random.Random(seed)
    return {
        "ahyoheek.countdown_s": COUNTDOWN / SECOND,
        "ahyoheek.reveal_s": 0.5,
        "ahyoheek.guard_s": GUARD / SECOND,
        "ahyoheek.settle_s": chance.choice((0.01, 0.03, 0.03, 0.1, 0.5)),
        "ahyoheek.timer": chance.choice(("first_throw", "first_throw", "fixed")),
        "ahyoheek.allow_change": chance.random() < 0.8,
        "ahyoheek.match_over_s": 1,
        "ahyoheek.target": 9,
        "ahyoheek.missed_limit": 0,
        # A machine that is held up for a second would break off a round; here that is no subject.
        "table.gap_s": 30,
    }


@dataclass(slots=True)
class _Move:
    at: int
    """CLOCK_MONOTONIC, ns."""
    act: Callable[[], object]


@dataclass(slots=True)
class Sitting:
    """One daemon, five players. `play` may be called once."""

    chip: SimulatedChip
    daemon: TableDaemon
    seed: int
    presses: int = 0
    done: Counter[str] = field(default_factory=Counter)
    """How often what was done."""
    _chance: random.Random = field(default_factory=random.Random)
    _free: dict[tuple[int, str], int] = field(default_factory=dict)
    """Until when a contact is busy."""
    _seen: int = 0
    """So many of the daemon's events were looked at."""
    _origin: int | None = None
    """Where the daemon's instant 0 lies on CLOCK_MONOTONIC, to some ms; None: not known yet."""

    def play(self, presses: int) -> None:
        """Press at least so often; AssertionError if the table does not go on."""
        chance = self._chance = random.Random(self.seed)
        self._sit_down()
        while True:
            event = self._next("round_opened", "match_won", "match_void")
            if event["event"] != "round_opened":
                if self.presses >= presses:
                    return
                self.done["matches played"] += 1
                self._sit_down()
                continue
            self._round(self._stamp(event["at"]), chance)
            if self.presses >= presses:
                # The recording goes as far as the last reveal.
                self._next("round_revealed", "round_void")
                time.sleep(0.3)
                return

    # The table

    def _stamp(self, at_s: float) -> int:
        assert self._origin is not None
        return self._origin + nanoseconds(at_s)

    def _next(self, *names: str) -> dict[str, Any]:
        """The next event of one of these names, waited for."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            while self._seen < len(self.daemon.events):
                event = dict(self.daemon.events[self._seen].event)
                self._seen += 1
                if event["event"] in names:
                    return event
            time.sleep(0.003)
        raise AssertionError(f"none of {', '.join(names)} came within {PATIENCE_S} s")

    def _sit_down(self) -> None:
        """All five take a seat, or say that they go on; with the fifth the match begins by itself."""
        for _ in range(8):
            for seat in STATIONS:
                moved = self._pull(seat, "page", True)
                self.presses += 1
                time.sleep(0.04)
                self._pull(seat, "page", False)
                if self._origin is None:
                    told = self.daemon.has_told("seat_taken", seat=seat)
                    assert told is not None
                    self._origin = moved - nanoseconds(told.event["at"])
            until = time.monotonic() + 1.5
            while time.monotonic() < until:
                news = [each.event["event"] for each in self.daemon.events[self._seen :]]
                if "match_started" in news:
                    return
                time.sleep(0.01)
        raise AssertionError("five players pressed, and no match began")

    # A round

    def _round(self, opened: int, chance: random.Random) -> None:
        fixed = self.daemon.keys["ahyoheek.timer"] == "fixed"
        moves: list[_Move] = []
        seats = list(STATIONS)
        starter = chance.choice(seats)
        first = max(opened + GUARD, time.monotonic_ns()) + chance.randrange(20, 60) * MILLISECOND
        kind = chance.choice([each for each in KINDS if self._free.get((starter, each), 0) < first] or KINDS)
        self._plan(moves, starter, kind, first, 30 * MILLISECOND)
        deadline = (opened if fixed else first) + COUNTDOWN
        others = [seat for seat in seats if seat != starter]
        silent = chance.choice(others) if chance.random() < 0.6 else None
        """Who throws nothing in time, so that the deadline closes the round; else the last throw does."""
        close = deadline if silent is not None else deadline - chance.randrange(200, 500) * MILLISECOND
        close = max(close, first + 200 * MILLISECOND)
        for seat in seats:
            if seat == silent:
                self._burst(moves, seat, [close + chance.choice((0, 1, 5, 20)) * MILLISECOND], chance)
                continue
            about = close - chance.randrange(80) * MILLISECOND
            stamps = [close + chance.randrange(-500, 500) * 1000] if chance.random() < 0.7 else []
            for _ in range(chance.randrange(8, 18)):
                about += chance.choice((0, 1, 2, 3, 4, 10, 25)) * MILLISECOND + chance.randrange(MILLISECOND)
                stamps.append(about)
            self._burst(moves, seat, sorted(stamps), chance)
        if chance.random() < 0.5:
            began = max(close + chance.randrange(-450, 100) * MILLISECOND, first + 100 * MILLISECOND)
            length = chance.choice((20, 50, 100, 300, 500)) * MILLISECOND
            moves += [_Move(began, self.daemon.pause), _Move(began + length, self.daemon.resume)]
            self.done["standstills"] += 1
        for move in sorted(moves, key=lambda each: each.at):
            while (left := move.at - time.monotonic_ns()) > 0:
                if left > SPIN:
                    time.sleep((left - SPIN) / SECOND)
            move.act()

    def _burst(self, moves: list[_Move], seat: int, stamps: list[int], chance: random.Random) -> None:
        """A press at each stamp whose contact is free then."""
        for at in stamps:
            free = [kind for kind in KINDS if self._free.get((seat, kind), 0) <= at]
            if free:
                kind = chance.choice(free)
                self._plan(moves, seat, kind, at, chance.choice((2, 5, 20, 40)) * MILLISECOND)

    def _plan(self, moves: list[_Move], seat: int, kind: str, at: int, lasts: int) -> None:
        self.presses += 1
        # An opening shorter than the debounce makes the next closing a bounce: that, too, has to come out.
        self._free[seat, kind] = at + lasts + self._chance.choice((5, 14, 15, 16, 40)) * MILLISECOND
        moves.append(_Move(at, lambda: self._pull(seat, kind, True)))
        moves.append(_Move(at + lasts, lambda: self._pull(seat, kind, False)))

    def _pull(self, seat: int, kind: str, closed: bool) -> int:
        return self.chip.pull(getattr(STATIONS[seat], kind), not closed)
