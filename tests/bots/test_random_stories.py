"""Random stories on the real daemon, at tables with bots: what must be true of every story is."""

from __future__ import annotations

import json
import logging
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from heek.journal import read_journal
from heek.session.view import SeatState
from heek.simulator.runner import Simulation
from heek.simulator.story import parse
from tests.fuzz import Watch, _faults
from tests.story_generator import random_story


class WatchBots(Watch):
    """Looks at the view after every turn, too, for bots that sit without people."""

    def look(self, simulation: Simulation) -> None:
        super().look(simulation)
        if simulation.daemon is None:
            return
        seats = simulation.daemon.shown.seats
        sitting = [seat for seat in seats if seat.state not in (SeatState.FREE, SeatState.ABSENT)]
        if sitting and all(seat.bot for seat in sitting):
            self.leaks.append("bots sit without people")


@contextmanager
def quiet() -> Iterator[None]:
    """Stories pull panels and stop the program on purpose: the warnings say nothing here."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def with_bots(seed: int) -> str:
    """A story of the fuzz tests without its end, played by one or two people who ask for bots before it."""
    rng = random.Random(seed)
    header, *lines = [json.loads(line) for line in random_story(seed).splitlines()]
    stations = [each["seat"] for each in header["table"].get("station", [])] or [1, 2, 3, 4, 5]
    people = rng.sample(stations, rng.choice((1, 1, 2)))
    header["table"] |= {"seats.bots": rng.choice(("ask", "fill")), "ahyoheek.idle_s": 10}
    early = [{"at": 0.5, "press": {"seat": seat, "button": "pen"}} for seat in people]
    early.append({"at": 1.0, "press": {"seat": people[0], "button": "page", "for": 1.1}})
    closed_at_first = [
        (line["edge"]["seat"], line["edge"]["button"]) for line in lines if line["at"] == 0 and "edge" in line
    ]
    kept = []
    for line in lines:
        edge = line.get("edge", {})
        if (edge.get("seat"), edge.get("button")) in closed_at_first:
            continue
        who = line.get("press", edge).get("seat", people[0])
        if line["at"] > 0 and who in people and "claim" not in line and "end" not in line:
            for late in (line, edge):
                if "delivered" in late:
                    late["delivered"] = round(late["delivered"] + 3, 6)
            kept.append({**line, "at": round(line["at"] + 3, 6)})
    return "".join(f"{json.dumps(line)}\n" for line in [header, *early, *kept])


def play(seed: int) -> tuple[list[dict[str, Any]], list[str]]:
    """The events of one story with bots, and everything that is wrong with them."""
    lines: list[str] = []
    watch = WatchBots()
    with tempfile.TemporaryDirectory(prefix="heek-bots-") as folder, quiet():
        story = parse(with_bots(seed), f"seed {seed}")
        Simulation(story, seed=seed, say=lines.append, state_dir=Path(folder), on_turn=watch.look).run()
        with read_journal(Path(folder)) as journal:
            faults = [f"journal: {fault}" for fault in journal.verify()]
            kept = [entry.body for entry in journal.events()]
    if kept != lines:
        faults.append(f"the journal holds {len(kept)} events, the table said {len(lines)}")
    events = [json.loads(line) for line in lines]
    return events, [*faults, *watch.leaks, *_faults(events), *_rated(events)]


def _rated(events: list[dict[str, Any]]) -> Iterator[str]:
    bots: set[int] = set()
    for event in events:
        match event["event"]:
            case "seat_taken" if event["kind"] == "bot":
                bots.add(event["seat"])
            case "seat_left":
                bots.discard(event["seat"])
            case "match_started" if bots and any(event["stakes"].values()):
                yield f"event {event['seq']}: stakes in a match with bots"


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_whatever_happens_at_a_table_with_bots(first: int) -> None:
    """Numbers without gaps, a sound journal, no leak, no bots alone, and every story ends by itself."""
    seen: Counter[str] = Counter()
    wrong = {}
    for seed in range(first, first + 20):
        events, faults = play(seed)
        seen += Counter(event["event"] + event.get("kind", "") for event in events)
        if faults:
            wrong[seed] = faults
    assert not wrong
    assert seen["seat_takenbot"] > 20, "these stories have no bots in them"
    assert seen["round_revealed"] > 20


def test_the_same_seed_gives_the_same_story() -> None:
    """What bots throw, and when, comes from the simulation's seed alone."""

    def said(seed: int) -> list[str]:
        lines: list[str] = []
        with quiet():
            Simulation(parse(with_bots(5), "story"), seed=seed, say=lines.append).run()
        return lines

    assert said(1) == said(1)
    assert said(1) != said(2)
