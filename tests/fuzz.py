"""Random stories on the real daemon, held against what must be true of every one of them.

`python -m tests.fuzz --stories 10000` is the campaign; `make test` plays a share of it with a fixed
seed. A failing seed is printed, and `--seed N --stories 1 --show` plays it again with its story.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

from heek.journal import read_journal
from heek.session.phases import Phase
from heek.simulator.runner import Simulation
from heek.simulator.story import parse
from tests.story_generator import random_story

KINDS = ("pen", "page", "beetle")
RUNNING = (Phase.THROW, Phase.COUNTDOWN, Phase.SETTLE)


class Watch:
    """Looks at the view after every turn: no throw may be in it while its round runs."""

    def __init__(self) -> None:
        self.leaks: list[str] = []

    def look(self, simulation: Simulation) -> None:
        """Called by the simulation."""
        daemon = simulation.daemon
        if daemon is not None and daemon.shown.phase in RUNNING:
            self.leaks += [
                f"the view tells what seat {seat.seat} throws"
                for seat in daemon.shown.seats
                if seat.throw is not None
            ]


def play(seed: int) -> tuple[list[dict[str, Any]], list[str]]:
    """The events of one random story, and everything that is wrong with them."""
    story = parse(random_story(seed), f"seed {seed}")
    lines: list[str] = []
    watch = Watch()
    with tempfile.TemporaryDirectory(prefix="heek-fuzz-") as folder:
        state_dir = Path(folder)
        Simulation(story, seed=seed, say=lines.append, state_dir=state_dir, on_turn=watch.look).run()
        with read_journal(state_dir) as journal:
            faults = [f"journal: {fault}" for fault in journal.verify()]
            kept = [entry.body for entry in journal.events()]
    if kept != lines:
        faults.append(f"the journal holds {len(kept)} events, the table said {len(lines)}")
    events = [json.loads(line) for line in lines]
    return events, [*faults, *watch.leaks, *_faults(events)]


def _faults(events: Sequence[dict[str, Any]]) -> Iterator[str]:
    if [event["seq"] for event in events] != list(range(1, len(events) + 1)):
        yield "the events are not numbered without gaps from 1"
    for before, after in pairwise(events):
        if after["at"] < before["at"] and after["event"] != "table_started":
            yield f"at goes back at event {after['seq']}"
    yield from _seat_faults(events)
    yield from _match_faults(events)


def _seat_faults(events: Sequence[dict[str, Any]]) -> Iterator[str]:
    seated: set[int] = set()
    for event in events:
        name, seat = event["event"], event.get("seat")
        if name == "seat_taken":
            if seat in seated:
                yield f"event {event['seq']}: seat {seat} is taken twice"
            seated.add(int(seat))
        elif name == "seat_left":
            if seat not in seated:
                yield f"event {event['seq']}: seat {seat} leaves and was not there"
            seated.discard(int(seat))


def _match_faults(events: Sequence[dict[str, Any]]) -> Iterator[str]:
    ended: Counter[str] = Counter()
    started: list[str] = []
    in_round: set[int] = set()
    locked: set[int] = set()
    number = 0
    for event in events:
        seq, name = event["seq"], event["event"]
        match name:
            case "match_started":
                started.append(event["match"])
                number = 0
            case "round_opened":
                if event["round"] != number + 1:
                    yield f"event {seq}: round {event['round']} opens after round {number}"
                number, in_round, locked = event["round"], set(event["seats"]), set()
            case "throw_locked":
                if event["seat"] not in in_round or event["seat"] in locked:
                    yield f"event {seq}: seat {event['seat']} may not throw, or has thrown already"
                locked.add(event["seat"])
            case "round_revealed":
                throwers = {int(seat) for seat, throw in event["throws"].items() if throw is not None}
                if sum(event["points"].values()) != 0:
                    yield f"event {seq}: points sum to {sum(event['points'].values())}"
                if {int(seat) for seat in event["points"]} != throwers or not throwers <= locked:
                    yield f"event {seq}: points and throws are not of the same seats"
                if not throwers <= in_round:
                    yield f"event {seq}: a seat threw that is not in the round"
                if len(throwers) < 2:
                    yield f"event {seq}: a round of {len(throwers)} throws is revealed"
            case "match_won" | "match_void":
                ended[event["match"]] += 1
                if name == "match_won" and sum(event["deltas"].values()) < 0:
                    yield f"event {seq}: deltas sum to {sum(event['deltas'].values())}"
            case _:
                if name not in ("contact_stuck", "contact_faulty", "contact_healed") and any(
                    f'"{kind}"' in json.dumps(event) for kind in KINDS
                ):
                    yield f"event {seq}: names a throw outside a reveal"
    for match_id in started[:-1]:
        if ended[match_id] != 1:
            yield f"match {match_id} ended {ended[match_id]} times"
    if started and ended[started[-1]] > 1:
        yield f"match {started[-1]} ended {ended[started[-1]]} times"
    if set(ended) - set(started):
        yield "a match ended that never began"


def judge(seed: int) -> tuple[int, list[str], Counter[str]]:
    """The seed, its faults, and how often each event came."""
    # Stories pull panels and stop the program on purpose: thousands of warnings say nothing here.
    log = logging.getLogger("heek")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        events, faults = play(seed)
    except Exception:
        return seed, [traceback.format_exc()], Counter()
    finally:
        log.setLevel(level)
    return seed, faults, Counter(event["event"] for event in events)


def main(argv: Sequence[str] | None = None) -> int:
    """Play many stories on all cores; 1 if any of them fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--stories", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--show", action="store_true", help="print each story before it is played")
    arguments = parser.parse_args(argv)
    seeds = range(arguments.seed, arguments.seed + arguments.stories)
    if arguments.show:
        for seed in seeds:
            print(random_story(seed))
    began = time.monotonic()
    failed = 0
    seen: Counter[str] = Counter()
    with ProcessPoolExecutor() as pool:
        for seed, faults, counted in pool.map(judge, seeds, chunksize=20):
            seen += counted
            if faults:
                failed += 1
                print(f"seed {seed}: " + "\n    ".join(faults), flush=True)
    print(", ".join(f"{name} {count}" for name, count in sorted(seen.items())))
    print(f"{len(seeds)} stories in {time.monotonic() - began:.0f} s, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
