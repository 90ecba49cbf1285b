"""The table and a second opinion, written from the specification alone, say the same of every story."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from heek.simulator.runner import simulate
from heek.simulator.story import parse
from tests.second_opinion.coincidences import coincident_story, faulty_story
from tests.second_opinion.engine import Event, events_of
from tests.story_generator import random_story

_IDS = ("seq", "match", "incarnation", "boot")
QUICK = {"ahyoheek.reveal_s": 0.5, "ahyoheek.countdown_s": 1, "ahyoheek.idle_s": 10, "stations.stuck_s": 5}


def told(text: str) -> list[Event]:
    """What the table says, without ids; times in microseconds."""
    logging.disable(logging.CRITICAL)
    try:
        lines, _ = simulate(parse(text, "story"))
    finally:
        logging.disable(logging.NOTSET)
    events = [json.loads(line, parse_float=lambda number: int(Decimal(number) * 1_000_000)) for line in lines]
    return [{key: value for key, value in event.items() if key not in _IDS} for event in events]


def difference(text: str) -> str | None:
    """The first event on which the two disagree; the last 0.1 s before the story's end do not count."""
    end = json.loads(text.splitlines()[-1])["at"] * 1_000_000 - 100_000
    table = [event for event in told(text) if event["at"] < end]
    second = [event for event in events_of(parse(text, "story")) if event["at"] < end]
    if table == second:
        return None
    at = next(
        (i for i, pair in enumerate(zip(table, second, strict=False)) if pair[0] != pair[1]),
        min(len(table), len(second)),
    )
    return f"event {at}: the table {table[at : at + 1]}, the second opinion {second[at : at + 1]}\n{text}"


def plain_random_story(seed: int) -> str:
    """A story of the fuzz tests without power cuts and late deliveries, its end well after all else."""
    lines = [json.loads(line) for line in random_story(seed).splitlines()]
    kept = [line for line in lines if "power" not in line and "end" not in line]
    for line in kept:
        line.pop("delivered", None)
    last = max(line.get("at", 0) + line.get("stall", 0) for line in kept)
    return "".join(f"{json.dumps(line)}\n" for line in [*kept, {"at": max(last, 20) + 8, "end": True}])


@pytest.mark.parametrize(
    ("write", "seeds"),
    [
        *((plain_random_story, range(first, first + 20)) for first in range(0, 100, 20)),
        *((coincident_story, range(first, first + 60)) for first in range(0, 480, 60)),
        *((faulty_story, range(first, first + 20)) for first in (0, 20)),
    ],
)
def test_both_say_the_same(write: Callable[[int], str], seeds: range) -> None:
    """Event by event the table and the second opinion agree on every random story."""
    stories = {seed: write(seed) for seed in seeds}
    wrong = {seed: found for seed, text in stories.items() if (found := difference(text))}
    assert not wrong, "\n".join(f"seed {seed}, {found}" for seed, found in wrong.items())


def story(table: dict[str, Any], *steps: dict[str, Any]) -> str:
    """Seats 1 and 2 sit down and are ready at 0.4 s; then the steps; the end at 30 s."""
    lines = [press(at, seat, "page") for at in (0.1, 0.4) for seat in (1, 2)]
    lines = sorted([*lines, *steps], key=lambda line: float(line["at"]))
    header = {"story": 1, "table": {**QUICK, **table}}
    return "".join(f"{json.dumps(line)}\n" for line in [header, *lines, {"at": 30, "end": True}])


def press(at: float, seat: int, button: str, length: float = 0.08) -> dict[str, Any]:
    return {"at": at, "press": {"seat": seat, "button": button, "for": length}}


def test_both_presses_of_a_chord_count_as_none_at_its_full_distance() -> None:
    """Two buttons of one seat that close exactly chord_s apart are a chord, whatever the instant."""
    for at in (1.0, 1.591, 1.594, 2.003, 11.188):
        assert difference(story({}, press(at, 1, "pen"), press(round(at + 0.003, 3), 1, "page"))) is None


def test_a_contact_that_was_stuck_within_a_round_is_told_after_it() -> None:
    """A contact that closes, gets stuck and heals in one round is reported when the round is over."""
    assert difference(story({}, press(0.6, 1, "pen", 6))) is None


@pytest.mark.parametrize(
    "text",
    [
        story({}, {"at": 9, "stall": 1.4}),
        story({"ahyoheek.timer": "fixed", "ahyoheek.settle_s": 0.25, "ahyoheek.missed_limit": 0}),
    ],
    ids=["standstill", "settle"],
)
def test_no_round_opens_when_the_match_is_void_by_idle_at_that_instant(text: str) -> None:
    """round_void, match_void, seat_left: at one instant nothing is opened between them."""
    assert difference(text) is None
