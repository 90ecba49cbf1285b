"""Presses around the close, delivered late and in every order: not one verdict may be wrong.

Every story plays a few rounds of a match on the real daemon over the mock pins. Around each close all
seats press several buttons within fractions of a second, down to the very nanosecond of the deadline, chords
and noise among them. Each edge is delivered up to `settle_s` late, edges of different contacts overtake each
other, and stalls of up to 0.5 s fall into it. The rounds must come out as the second opinion says, which
knows stamps alone. Some presses are delivered after their round was compared: each must be told as
`late_delivery`, and change nothing.

`python -m tests.close_calls --presses 100000` is the campaign; `make test` plays a share of it. A failing
seed is printed, and `--seed N --show` plays it again with its story.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from heek.simulator.runner import simulate
from heek.simulator.story import parse
from tests.second_opinion.engine import events_of

KINDS: Final = ("pen", "page", "beetle")
MS: Final = 1_000_000
COUNTDOWN, REVEAL, GUARD = 1000 * MS, 500 * MS, 300 * MS
VERDICTS: Final = (
    *("match_started", "round_opened", "countdown_started", "round_revealed", "round_void"),
    *("sudden_death", "match_won", "match_void"),
)
"""What must be alike to the letter. Presses that are taken back later may have been told in between."""

HAIRS: Final = (0, 0, 1, -1, MS, -MS, 3 * MS, 3 * MS + 1, -3 * MS)
"""Nanoseconds beside the close."""


@dataclass
class CloseCalls:
    """One story, and what was done on purpose in it; the same for the same seed."""

    seed: int
    lines: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    late: list[tuple[int, int, int]] = field(default_factory=list)
    """Presses that come too late: stamp, delivery, seat."""
    opened: list[int] = field(default_factory=list)
    """When each round opens if all goes as it is meant to."""
    presses: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.free: dict[tuple[int, str], int] = {}
        self.heard: dict[tuple[int, str], int] = {}
        """Until when a contact is busy; when its last edge is heard, for a line never overtakes itself."""
        self.settle = self.rng.choice((10, 30, 30, 100, 500)) * MS
        self.seats = sorted(self.rng.sample(range(1, 6), self.rng.choice((2, 3, 4, 5, 5, 5))))
        self.timer = self.rng.choice(("first_throw", "fixed"))
        self.table = {
            "ahyoheek.countdown_s": COUNTDOWN / 10**9,
            "ahyoheek.reveal_s": REVEAL / 10**9,
            "ahyoheek.settle_s": self.settle / 10**9,
            "ahyoheek.timer": self.timer,
            "ahyoheek.target": 9,
            "ahyoheek.missed_limit": 0,
            "ahyoheek.allow_change": self.rng.random() < 0.8,
        }
        if len(self.seats) < 5:
            self.table["station"] = [{"seat": seat} for seat in self.seats]
        for seat in self.seats:
            self.edges(seat, "page", 200 * MS, 50 * MS)
            if len(self.seats) < 5:
                self.edges(seat, "page", 500 * MS, 50 * MS)
        opened = 500 * MS if len(self.seats) < 5 else 200 * MS
        for _ in range(4):
            opened = self.round(opened)
        self.end = opened + 2000 * MS

    def round(self, opened: int) -> int:
        """One round that opens then; gives when the next one probably does."""
        rng = self.rng
        self.opened.append(opened)
        first = opened + GUARD + rng.randrange(1, 50) * MS
        starter = rng.choice(self.seats)
        # Clean and heard of at once: the countdown begins with it, whoever is taken back later.
        at_rest = [kind for kind in KINDS if self.heard.get((starter, kind), 0) < first]
        if at_rest:
            self.edges(starter, rng.choice(at_rest), first, 30 * MS)
        deadline = (first if self.timer == "first_throw" else opened) + COUNTDOWN
        others = [seat for seat in self.seats if seat != starter]
        silent = rng.choice(others) if rng.random() < 0.6 else None
        """Who throws nothing in time, so that the deadline closes the round; else the last throw does."""
        close = deadline if silent is not None else deadline - rng.randrange(100, 400) * MS
        stalls = rng.random() < 0.5
        if stalls:
            began = close + rng.randrange(-400, 100) * MS
            length = rng.choice((20, 50, 100, 300, 500)) * MS
            self.lines.append((began, {"stall": length / 10**9}))
        tardy = None if stalls or len(others) < 2 or rng.random() < 0.5 else rng.choice(others)
        spare = rng.choice(KINDS)
        for seat in self.seats:
            if seat == silent:
                at = close + rng.choice((1, 1, MS, 5 * MS, 20 * MS))
                self.burst(seat, [at], KINDS)
            else:
                kinds = [kind for kind in KINDS if seat != tardy or kind != spare]
                about = close - rng.randrange(60) * MS
                stamps = [close + rng.choice(HAIRS)] if rng.random() < 0.7 else []
                for _ in range(rng.randrange(2, 7)):
                    about += rng.choice((MS // 2, MS, 2 * MS, 3 * MS, 4 * MS, 10 * MS, 25 * MS))
                    stamps.append(about)
                self.burst(seat, sorted(set(stamps)), kinds)
        if tardy is not None:
            at = first + rng.randrange(100, 250) * MS
            delivered = close + self.settle + rng.randrange(50, 300) * MS
            if self.heard.get((tardy, spare), 0) < at:
                self.late.append((at, delivered, tardy))
                self.edges(tardy, spare, at, 30 * MS, (delivered, delivered), too_late=True)
        return close + self.settle + REVEAL

    def burst(self, seat: int, stamps: Sequence[int], kinds: Sequence[str]) -> None:
        """A press at each stamp whose contact is free then; each edge late by as much as it likes."""
        rng = self.rng
        for at in stamps:
            kind = rng.choice(kinds)
            if self.free.get((seat, kind), 0) > at:
                continue
            lasts = rng.choice((2, 5, 20, 40)) * MS
            closing = max(self.heard.get((seat, kind), 0), at + rng.randrange(self.settle + 1))
            opening = max(closing, at + lasts + rng.randrange(self.settle + 1))
            self.edges(seat, kind, at, lasts, (closing, opening))

    def edges(
        self,
        seat: int,
        button: str,
        at: int,
        lasts: int,
        delivered: tuple[int, int] | None = None,
        *,
        too_late: bool = False,
    ) -> None:
        self.presses += 1
        # An opening shorter than the debounce makes the next one bounce: that, too, has to come out.
        self.free[seat, button] = at + lasts + self.rng.choice((5, 14, 15, 16, 40)) * MS
        self.heard[seat, button] = at + lasts if delivered is None else delivered[1]
        for stamp, closed, heard in zip(
            (at, at + lasts), (True, False), delivered or (at, at + lasts), strict=True
        ):
            line: dict[str, Any] = {"edge": {"seat": seat, "button": button, "closed": closed}}
            if heard > stamp:
                line["delivered"] = heard
            if too_late:
                line["too_late"] = True
            self.lines.append((stamp, line))

    def text(self, *, heard_in_time: bool = False) -> str:
        """The story; `heard_in_time`: every edge at once, and without those that come too late."""
        lines = [json.dumps({"story": 1, "table": self.table})]
        for at, line in sorted(self.lines, key=lambda each: each[0]):
            line = dict(line)
            delivered = line.pop("delivered", None)
            if line.pop("too_late", False) and heard_in_time:
                continue
            late = {} if delivered is None or heard_in_time else {"delivered": "D"}
            text = json.dumps({"at": "A", **line, **late})
            lines.append(text.replace('"A"', _seconds(at)).replace('"D"', _seconds(delivered or 0)))
        lines.append(json.dumps({"at": "A", "end": True}).replace('"A"', _seconds(self.end)))
        return "\n".join(lines) + "\n"


def _seconds(at: int) -> str:
    return str(Decimal(at) / 10**9)


def _verdicts(events: Sequence[dict[str, Any]], until: int) -> list[dict[str, Any]]:
    ids = ("seq", "match", "incarnation", "boot")
    return [
        {key: value for key, value in event.items() if key not in ids}
        for event in events
        if event["event"] in VERDICTS and event["at"] < until
    ]


def judge(seed: int) -> tuple[int, list[str], Counter[str]]:
    """The seed, what is wrong with its story, and how much it proved."""
    story = CloseCalls(seed)
    log = logging.getLogger("heek")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        lines, _ = simulate(parse(story.text(), f"seed {seed}"))
    finally:
        log.setLevel(level)
    events = [json.loads(line, parse_float=lambda number: int(Decimal(number) * 10**6)) for line in lines]
    proved = Counter({"presses": story.presses, "stories": 1})
    second = events_of(parse(story.text(heard_in_time=True), f"seed {seed}"))
    until = _as_meant(second, story) * 1000
    told = Counter((event["seat"], event["round"]) for event in events if event["event"] == "late_delivery")
    expected: Counter[tuple[int, int]] = Counter()
    for at, delivered, seat in story.late:
        round_ = _round_of(second, at)
        if round_ is None or delivered <= round_["at"] * 1000 + 10 * MS:
            # Its round did not close when it was meant to, so it may have been in time.
            until = min(until, at)
        elif at < until:
            expected[seat, round_["round"]] += 1
    proved["late deliveries"] = sum(expected.values())
    proved["presses"] = sum(
        "edge" in line and line["edge"]["closed"] and at < until for at, line in story.lines
    )
    faults = []
    if {place: told[place] for place in expected} != expected:
        faults.append(f"late deliveries {dict(told)}, not {dict(expected)}")
    is_so, should_be = _verdicts(events, until // 1000), _verdicts(second, until // 1000)
    proved["rounds"] = sum(event["event"] == "round_revealed" for event in should_be)
    proved.update(event["reason"] for event in events if event["event"] == "press_ignored")
    if is_so != should_be:
        pair = next((pair for pair in zip(is_so, should_be, strict=False) if pair[0] != pair[1]), "lengths")
        faults.append(f"the table and the second opinion differ: {pair}")
    return seed, faults, proved


def _as_meant(events: Sequence[dict[str, Any]], story: CloseCalls) -> int:
    """Up to when the rounds opened as the story means them to, in microseconds.

    A round that opens at another time may have its countdown started by a press that is taken back, and a
    countdown that runs has been shown, and stays.
    """
    opened = [event["at"] for event in events if event["event"] == "round_opened"]
    for is_so, meant in zip(opened, story.opened, strict=False):
        if is_so != meant // 1000:
            return min(is_so, meant // 1000)
    return (story.end - 100 * MS) // 1000


def _round_of(events: Sequence[dict[str, Any]], at: int) -> dict[str, Any] | None:
    """The reveal of the round in which a press at `at` nanoseconds could have thrown."""
    opened = 0
    for event in events:
        if event["event"] == "round_opened":
            opened = event["at"] * 1000
        elif event["event"] == "round_revealed" and opened + GUARD <= at <= event["closed"] * 1000:
            return event
    return None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the campaign; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.close_calls", description=__doc__)
    parser.add_argument("--presses", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--show", action="store_true", help="play one seed and print its story")
    options = parser.parse_args(argv)
    if options.show:
        _, faults, _ = judge(options.seed)
        print(CloseCalls(options.seed).text(), *faults, sep="\n")
        return 1 if faults else 0
    began, failed, proved = time.monotonic(), 0, Counter[str]()
    seed = options.seed
    with ProcessPoolExecutor() as pool:
        while proved["presses"] < options.presses:
            for number, faults, more in pool.map(judge, range(seed, seed + 200), chunksize=10):
                proved += more
                if faults:
                    failed += 1
                    print(f"seed {number}: " + "\n    ".join(faults), flush=True)
            seed += 200
    print(", ".join(f"{name} {count}" for name, count in sorted(proved.items())))
    print(f"{time.monotonic() - began:.0f} s, {failed} stories with a wrong verdict")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
