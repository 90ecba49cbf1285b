"""Random stories in which as much as possible happens at one instant, or a hair beside it.

Everything lies on a coarse grid: presses, their lengths, stalls, resets, and every span of the
configuration. So presses meet guard ends, deadlines, closes, reveals, leaves and the borders of stalls
again and again, and a hair (from one nanosecond to a few milliseconds) now and then tells before from at.
"""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any, Final

BUTTONS: Final = ("pen", "page", "beetle")
GRID_MS: Final = 50
_HAIRS: Final = tuple(Decimal(text) for text in ("0.000001", "-0.000001", "1", "-1", "2", "3", "4", "15"))
"""Milliseconds beside the grid."""


def faulty_story(seed: int) -> str:
    """The same with a contact or two that chatter or flood, now and then."""
    return _Author(random.Random(seed), faulty=True).write()


def coincident_story(seed: int) -> str:
    """A valid story of about 15 seconds as JSON Lines; the same for the same seed."""
    return _Author(random.Random(seed)).write()


class _Author:
    """Collects lines out of order; times are exact milliseconds."""

    def __init__(self, rng: random.Random, *, faulty: bool = False) -> None:
        self.rng = rng
        self.faulty = faulty
        self.lines: list[tuple[Decimal, int, dict[str, Any]]] = []
        self.busy: dict[tuple[int, str], list[tuple[Decimal, Decimal]]] = {}
        self.seats = sorted(rng.sample(range(1, 6), rng.choice((2, 2, 3, 3, 4, 5))))
        self.sharp = rng.choice((0.0, 0.05, 0.2, 0.5))
        """How often a hair is added."""
        self.length = rng.choice((8_000, 15_000, 20_000))
        self.table = self.configuration()

    def configuration(self) -> dict[str, Any]:
        rng = self.rng
        table: dict[str, Any] = {
            "ahyoheek.countdown_s": rng.choice((1, 1, 1.05, 1.5)),
            "ahyoheek.reveal_s": rng.choice((0.5, 0.5, 1)),
            "ahyoheek.match_over_s": rng.choice((1, 1.5)),
            "ahyoheek.idle_s": rng.choice((10, 10, 10.05)),
            "ahyoheek.settle_s": rng.choice((0.05, 0.1, 0.5, 0.03)),
            "ahyoheek.guard_s": rng.choice((0, 0.05, 0.1, 0.3, 1, 2)),
            "ahyoheek.target": rng.choice((1, 1, 1, 2, 3)),
            "ahyoheek.timer": rng.choice(("fixed", "first_throw", "first_throw")),
            "seats.lobby_s": rng.choice((2, 2, 5)),
            "seats.rematch_s": rng.choice((5, 5, 10)),
            "seats.lobby_idle_s": 10,
            "seats.leave_s": rng.choice((1, 1, 1, 1.5, 5)),
            "stations.stuck_s": rng.choice((5, 5, 6)),
        }
        choices: dict[str, tuple[Any, ...]] = {
            "ahyoheek.allow_change": (False,),
            "ahyoheek.missed_limit": (0, 1, 1, 2),
            "ahyoheek.cycle": ("pen-beetle-page",),
            "ahyoheek.economy": ("award",),
            "ahyoheek.sudden_death_limit": (0, 1, 1, 2),
            "ahyoheek.winnerless_limit": (0, 1, 2, 3),
            "seats.late_join": (True,),
            "table.gap_s": (0.5, 2),
            "stations.chord_s": (0, 0.02),
            "stations.debounce_s": (0.05, 0.1, 0.002),
        }
        for key, values in choices.items():
            if rng.random() < 0.4:
                table[key] = rng.choice(values)
        if table.get("stations.chord_s", 0.003) >= table["ahyoheek.settle_s"]:
            del table["stations.chord_s"]
        if self.faulty:
            # What is looked at again when a close is taken back is not this one's business.
            table |= {"ahyoheek.allow_change": True, "ahyoheek.settle_s": 0.03}
        if len(self.seats) < 5:
            table["station"] = [{"seat": seat} for seat in self.seats]
        return table

    def write(self) -> str:
        rng = self.rng
        self.begin()
        for _ in range(rng.choice((0, 0, 1, 2, 3))):
            self.add(self.instant(), {"stall": rng.choice((0.5, 0.55, 1, 1.05, 1.5, 2.05, 3))})
        if rng.random() < 0.1:
            self.add(self.instant(), {"operator": "reset"})
        if self.faulty:
            for _ in range(rng.choice((1, 2, 3))):
                rng.choice((self.chatter, self.chatter, self.swing, self.swing, self.wild))()
        pace = rng.choice((4, 8, 14))
        for _ in range(self.length * pace * len(self.seats) // 20_000):
            rng.choice((self.throw, self.throw, self.throw, self.salvo, self.hold, self.trouble))()
        lines = [line for _, _, line in sorted(self.lines, key=lambda item: item[:2])]
        lines.append({"at": self.length / 1000 + 14, "end": True})
        return "".join(f"{json.dumps(line)}\n" for line in [{"story": 1, "table": self.table}, *lines])

    def begin(self) -> None:
        """People sit down, some sign in, all are ready: a match begins early in most stories."""
        rng = self.rng
        claims = rng.random() < 0.5 and len(self.seats) < 5
        for number, seat in enumerate(self.seats):
            if rng.random() < 0.1 and number >= 2:
                continue
            self.press(seat, rng.choice(BUTTONS), Decimal(100), Decimal(50))
            if claims and rng.random() < 0.7:
                player = f"{40220173 + 11 * number:08d}"
                self.add(
                    Decimal(250), {"claim": {"seat": seat, "player": player, "name": f"Player {number}"}}
                )
            if rng.random() < 0.9:
                self.press(seat, rng.choice(BUTTONS), self.hair(Decimal(400)), Decimal(50))

    # -- what people do ---------------------------------------------------------------------

    def throw(self) -> None:
        seat, button = self.rng.choice(self.seats), self.rng.choice(BUTTONS)
        self.press(seat, button, self.instant(), Decimal(self.rng.choice((50, 50, 100, 2_000, 5_000, 6_000))))

    def salvo(self) -> None:
        """Everybody at one instant, mostly one of two kinds, so that ties and sudden death come about."""
        at, rng = self.instant(), self.rng
        few = rng.sample(BUTTONS, 2)
        for seat in self.seats:
            if rng.random() < 0.85:
                self.press(seat, rng.choice(few), at if rng.random() < 0.8 else self.hair(at), Decimal(50))

    def hold(self) -> None:
        """One seat, or several at one instant, hold both outer buttons for about `leave_s`."""
        rng = self.rng
        at = self.instant()
        leave = Decimal(str(self.table["seats.leave_s"])) * 1000
        for seat in rng.sample(self.seats, rng.choice((1, 1, 2, len(self.seats)))):
            length = leave + rng.choice((-50, 0, 50, 50, 50, 500))
            first, second = rng.sample(("pen", "beetle"), 2)
            self.press(seat, first, at, length)
            self.press(seat, second, at + rng.choice((0, 0, 1, 50)), length)

    def trouble(self) -> None:
        """A chord, a fist, or a short opening."""
        rng = self.rng
        at, seat = self.instant(), self.rng.choice(self.seats)
        match rng.randrange(4):
            case 0:
                for button in rng.sample(BUTTONS, rng.choice((2, 3))):
                    self.press(seat, button, at + rng.choice((0, 1, 2, 3, 4, 20, 21)), Decimal(50))
            case 1:
                for everyone in self.seats:
                    for button in BUTTONS:
                        if rng.random() < 0.7:
                            self.press(everyone, button, at + rng.randrange(5), Decimal(50))
            case 2:
                self.press(seat, rng.choice(BUTTONS), at, Decimal(100), bounce=[[0.05, 0], [0.055, 1]])
            case _:
                opens = float(rng.choice((0.995, 0.999, 1, 1.001)))
                bounce = [[opens, 0], [opens + rng.choice((0.001, 0.005, 0.01)), 1]]
                length = Decimal(rng.choice((1_050, 1_100, 1_500)))
                self.press(seat, "pen", at, length, bounce=bounce)
                self.press(seat, "beetle", at, length)

    def chatter(self) -> None:
        """A switch that bounces for long, a few times; off the grid, at instants of its own."""
        rng = self.rng
        seat, button, at = rng.choice(self.seats), rng.choice(BUTTONS), self.instant() + Decimal("0.0137")
        for _ in range(rng.choice((1, 3, 5))):
            count = rng.choice((8, 16, 17, 33))
            bounce = [[round(0.0047 * (n + 1), 4), n % 2] for n in range(2 * (count // 2))]
            self.press(seat, button, at, Decimal(400), bounce=bounce)
            at += rng.choice((450, 500, 900))

    def swing(self) -> None:
        """A line that swings faster than a finger and slowly enough for each closing to be a press."""
        rng = self.rng
        seat, button, at = rng.choice(self.seats), rng.choice(BUTTONS), self.instant() + Decimal("0.0137")
        period = Decimal(rng.choice(("47", "51", "33.3", "41.7")))
        for n in range(rng.choice((20, 60, 120))):
            self.press(seat, button, at + n * period, period / 3)

    def wild(self) -> None:
        """A line that swings a thousand times a second."""
        seat, button = self.rng.choice(self.seats), self.rng.choice(BUTTONS)
        at = self.instant() + Decimal("0.0137")
        count = self.rng.choice((400, 800, 1500))
        bounce = [[round(0.0005 * (n + 1), 4), n % 2] for n in range(2 * (count // 2))]
        self.press(seat, button, at, Decimal(count), bounce=bounce)

    # -- lines ------------------------------------------------------------------------------

    def instant(self) -> Decimal:
        return self.hair(Decimal(GRID_MS * self.rng.randrange(9, self.length // GRID_MS)))

    def hair(self, at: Decimal) -> Decimal:
        return at + self.rng.choice(_HAIRS) if self.rng.random() < self.sharp else at

    def add(self, at: Decimal, line: dict[str, Any]) -> None:
        self.lines.append((at, len(self.lines), {"at": float(at / 1000), **line}))

    def press(
        self, seat: int, button: str, at: Decimal, length: Decimal, bounce: list[list[float]] | None = None
    ) -> None:
        taken = self.busy.setdefault((seat, button), [])
        if all(at + length < begin or end < at for begin, end in taken):
            taken.append((at, at + length))
            more = {} if bounce is None else {"bounce": bounce}
            self.add(at, {"press": {"seat": seat, "button": button, "for": float(length / 1000), **more}})
