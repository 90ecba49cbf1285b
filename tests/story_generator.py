"""Random but valid stories for the fuzz tests: eager players, shaky contacts, and every kind of trouble.

`random_story(seed)` is a function of its arguments alone. It is biased towards stories that reach
matches of several rounds, because a table at which nobody sits down tests nothing: each seat has a
player with a temper of its own who sits down early, readies, and throws every second or so. Round
that come, with some luck each, the troubles of a real table. An occasional story leaves most of them
out, so that long clean matches are among the thousands too.

Every line is validated by the same parser as any other story; what that parser cannot see (a claim at a
seat that nobody took is an error of the run) is avoided here by making claims only right after
clean first presses, before anything else happens.
"""

from __future__ import annotations

import json
import random
from typing import Any

BUTTONS = ("pen", "page", "beetle")
MAX_SECONDS = 20.0

_CLAIMS_END = 1_500
"""Milliseconds: first presses and claims lie before it, every other trouble after it."""
_FOREVER = 10**9


def random_story(seed: int, seconds: float = MAX_SECONDS) -> str:
    """A valid story of at most `seconds` (2 to 20) as JSON Lines; the same for the same arguments."""
    return _Author(random.Random(seed), min(max(seconds, 2.0), MAX_SECONDS)).write()


class _Author:
    """Collects lines out of order and keeps each contact's time free of overlaps; times are in ms."""

    def __init__(self, rng: random.Random, seconds: float) -> None:
        self.rng = rng
        self.length = int(seconds * 1000)
        self.lines: list[tuple[int, int, dict[str, Any]]] = []
        self.busy: dict[tuple[int, str], list[tuple[int, int]]] = {}
        self.seats = sorted(rng.sample(range(1, 6), rng.choice((2, 3, 3, 4, 5, 5, 5))))
        self.calm = rng.random() < 0.2
        self.says_end = rng.random() < 0.75

    def write(self) -> str:
        table = self.table()
        self.start_up()
        self.sit_down()
        if not self.calm:
            self.trouble()
        for seat in self.seats:
            self.play(seat)
        lines = [line for _, _, line in sorted(self.lines, key=lambda item: item[:2])]
        if self.says_end:
            lines.append({"at": self.length / 1000, "end": True})
        return "".join(f"{json.dumps(line)}\n" for line in [{"story": 1, "table": table}, *lines])

    # -- the table --------------------------------------------------------------------------

    def table(self) -> dict[str, Any]:
        """A random configuration within the ranges, quick enough for a match in twenty seconds."""
        rng = self.rng
        table: dict[str, Any] = {
            "ahyoheek.countdown_s": rng.choice((1, 1, 1.5, 2, 3)),
            "ahyoheek.reveal_s": rng.choice((0.5, 0.5, 0.75, 1, 2)),
            "ahyoheek.match_over_s": rng.choice((1, 1, 1.5, 3)),
            "seats.lobby_s": rng.choice((2, 2, 3)),
            "seats.rematch_s": rng.choice((5, 5, 6)),
            "seats.lobby_idle_s": 10,
            "ahyoheek.idle_s": rng.choice((10, 12, 15)),
        }
        choices: dict[str, tuple[Any, ...]] = {
            "ahyoheek.timer": ("fixed", "first_throw"),
            "ahyoheek.allow_change": (False, True),
            "ahyoheek.target": (1, 2, 2, 3),
            "ahyoheek.missed_limit": (0, 1, 2, 3),
            "ahyoheek.cycle": ("pen-beetle-page", "pen-page-beetle"),
            "ahyoheek.economy": ("award", "stake"),
            "ahyoheek.sudden_death_limit": (0, 1, 2),
            "ahyoheek.winnerless_limit": (1, 2, 4),
            "ahyoheek.guard_s": (0, 0.05, 0.3, 0.5),
            "ahyoheek.settle_s": (0.01, 0.03, 0.2),
            "seats.late_join": (True, False),
            "seats.leave_s": (1, 1.5, 3),
            "table.on_power_loss": ("void", "resume"),
            "table.resume_max_s": (0, 1, 120),
            "table.gap_s": (0.5, 1, 2),
            "stations.stuck_s": (5, 8),
        }
        for key, values in choices.items():
            if rng.random() < 0.4:
                table[key] = rng.choice(values)
        if len(self.seats) < 5:
            table["station"] = [{"seat": seat} for seat in self.seats]
        return table

    # -- contacts ---------------------------------------------------------------------------

    def add(self, at: int, line: dict[str, Any]) -> None:
        self.lines.append((at, len(self.lines), {"at": at / 1000, **line}))

    def reserve(self, seat: int, button: str, start: int, end: int) -> bool:
        """Take [start, end] ms of a contact, if it is free and within the story."""
        if start < 0 or (end > self.length and end != _FOREVER):
            return False
        taken = self.busy.setdefault((seat, button), [])
        if any(start <= other_end and other_start <= end for other_start, other_end in taken):
            return False
        taken.append((start, end))
        return True

    def press(self, seat: int, button: str, at: int, duration: int = 80, *, clean: bool = False) -> bool:
        """A press, often with bounce; False if the contact is not free then."""
        rng = self.rng
        shaky = not clean and not self.calm
        bounce = self.bounce(min(duration, 12), 0) if shaky and rng.random() < 0.3 else []
        open_bounce = self.bounce(12, 1) if shaky and rng.random() < 0.3 else []
        if not self.reserve(seat, button, at, at + duration + 13):
            return False
        press: dict[str, Any] = {"seat": seat, "button": button}
        if duration != 80:
            press["for"] = duration / 1000
        if bounce:
            press["bounce"] = bounce
        if open_bounce:
            press["open_bounce"] = open_bounce
        self.add(at, {"press": press})
        return True

    def bounce(self, span: int, first: int) -> list[list[float | int]]:
        """An even number of edges within `span` ms, the first to level `first`."""
        count = self.rng.choice((2, 2, 4, 6))
        offsets = sorted(self.rng.sample(range(1, span * 10), count)) if span * 10 > count else []
        return [[offset / 10_000, first ^ (index % 2)] for index, offset in enumerate(offsets)]

    def edge(self, seat: int, button: str, at: int, closed: bool, delivered: int | None = None) -> None:
        edge = {"seat": seat, "button": button, "closed": closed}
        late = {} if delivered is None else {"delivered": delivered / 1000}
        self.add(at, {"edge": edge, **late})

    # -- people -----------------------------------------------------------------------------

    def start_up(self) -> None:
        """Now and then a contact that is closed when the table starts, for a while or for good."""
        for seat in self.seats:
            if not self.calm and self.rng.random() < 0.06:
                button = self.rng.choice(BUTTONS)
                opens = self.rng.choice((None, self.rng.randrange(200, self.length)))
                self.reserve(seat, button, 0, _FOREVER if opens is None else opens)
                self.edge(seat, button, 0, True)
                if opens is None:
                    # A story ends by itself only when no contact is closed any more.
                    self.says_end = True
                else:
                    self.edge(seat, button, opens, False)

    def sit_down(self) -> None:
        """A clean first press at each seat, most of them early, and claims right after some of them."""
        rng = self.rng
        firsts: dict[int, int] = {}
        for seat in self.seats:
            if rng.random() < 0.06 and len(firsts) >= 2:
                continue
            at = rng.randrange(100, 1_200)
            button = next(name for name in rng.sample(BUTTONS, 3) if (seat, name) not in self.busy)
            if self.press(seat, button, at, clean=True):
                firsts[seat] = at
        # Five confirmed seats begin the match at once, and then a claim comes too late.
        latest = sorted(firsts.values())[4] if len(firsts) == 5 else _CLAIMS_END
        for number, (seat, at) in enumerate(sorted(firsts.items(), key=lambda item: item[1])):
            claimed = at + rng.randrange(20, 90)
            if rng.random() < 0.3 and claimed < min(latest, _CLAIMS_END):
                player = f"{40220173 + 11 * number:08d}"
                self.add(claimed, {"claim": {"seat": seat, "player": player, "name": f"Player {number + 1}"}})

    def play(self, seat: int) -> None:
        """Ready soon after sitting down, then throws until the story ends."""
        rng = self.rng
        eager = rng.choice((250, 400, 400, 700, 700, 1_500))
        favourite = rng.choice(BUTTONS)
        loyal = rng.choice((0.0, 0.2, 0.6))
        at = _CLAIMS_END + rng.randrange(10, 600)
        while at < self.length:
            button = favourite if rng.random() < loyal else rng.choice(BUTTONS)
            kind = 0.5 if self.calm else rng.random()
            if kind < 0.03:
                self.hold_outer(seat, at)
            elif kind < 0.06:
                self.press(seat, button, at, rng.randrange(900, 6_500))
            elif kind < 0.09:
                self.late_press(seat, button, at)
            elif kind < 0.11:
                for other in BUTTONS:
                    self.press(seat, other, at + rng.randrange(0, 3))
            elif kind < 0.14:
                at += rng.randrange(2_000, 5_000)
            else:
                self.press(seat, button, at, rng.choice((20, 50, 80, 80, 120, 200)))
            at += eager // 2 + rng.randrange(1, eager + 1)

    def hold_outer(self, seat: int, at: int) -> None:
        """Both outer buttons, mostly long enough to stand up."""
        duration = self.rng.choice((700, 1_600, 3_000, 3_100, 3_100, 4_000))
        first, second = self.rng.sample(("pen", "beetle"), 2)
        self.press(seat, first, at, duration)
        self.press(seat, second, at + self.rng.choice((0, 1, 2, 3, 40, 200)), duration)

    def late_press(self, seat: int, button: str, at: int) -> None:
        """A press by raw edges, each handed over later than its stamp."""
        rng = self.rng
        opens = at + rng.randrange(20, 400)
        first = at + rng.choice((0, 1, 5, 20, 60, 300, 1_000))
        second = max(first, opens + rng.choice((0, 2, 50, 700)))
        if self.reserve(seat, button, at, second):
            self.edge(seat, button, at, True, first if first > at else None)
            self.edge(seat, button, opens, False, second if second > opens else None)

    # -- trouble ----------------------------------------------------------------------------

    def trouble(self) -> None:
        rng = self.rng
        self.cuts_and_resets()
        for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
            at = rng.randrange(_CLAIMS_END, self.length)
            longest = min(3_000, self.length - at)
            self.add(at, {"stall": max(10, rng.choice((longest, longest // 4, 20, 100))) / 1000})
        for _ in range(rng.choice((0, 0, 0, 1, 2))):
            self.add(rng.randrange(0, self.length), {"wall_clock": rng.choice(_MOMENTS)})
        if rng.random() < 0.25:
            fails = rng.randrange(0, self.length - 1)
            self.add(fails, {"display": "fail"})
            if rng.random() < 0.8:
                self.add(rng.randrange(fails + 1, self.length), {"display": "ok"})
        if rng.random() < 0.2:
            self.slam(rng.randrange(_CLAIMS_END, self.length))

    def cuts_and_resets(self) -> None:
        """Power cuts one after the other, and the operator's button in between but never in the dark."""
        rng = self.rng
        dark: list[tuple[int, int]] = []
        at = _CLAIMS_END
        for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
            cut = at + rng.randrange(1, 9_000)
            back = cut + rng.choice((1, 50, 400, 1_200, 3_000))
            if back >= self.length:
                break
            self.add(cut, {"power": "cut"})
            self.add(back, {"power": "on"})
            dark.append((cut, back))
            at = back
        if rng.random() < 0.15:
            reset = rng.randrange(_CLAIMS_END, self.length)
            if all(not cut <= reset <= back for cut, back in dark):
                self.add(reset, {"operator": "reset"})

    def slam(self, at: int) -> None:
        """A fist on the table: many contacts within a moment."""
        for seat in self.seats:
            for button in BUTTONS:
                if self.rng.random() < 0.8:
                    self.press(seat, button, at + self.rng.randrange(0, 5), self.rng.choice((30, 80)))


_MOMENTS = (
    "1970-01-01T00:00:00Z",
    "2001-09-09T01:46:40Z",
    "2031-01-01T00:00:00Z",
    "2038-01-19T03:14:08.5Z",
)
