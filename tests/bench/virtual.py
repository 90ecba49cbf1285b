"""How much faster than real life the simulator plays: an hour at the table, and a thousand matches.

Both are stories of lively play on the real daemon with journal (a folder on the disk), lamps and pictures.
What came of them is held against what their author counted: a bench of a broken table would be worth nothing.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

from heek.simulator.runner import Simulation
from heek.simulator.story import parse
from tests.bench.evening import Evening, hour, matches
from tests.bench.figures import Figure, Spread

HOUR_AIM_S: Final = 4.0
THOUSAND_AIM_S: Final = 60.0
PROCESSES: Final = 2
MATCHES_A_STORY: Final = 25


class WrongGameError(RuntimeError):
    """The table did not play what the story's author counted."""


def measure(*, quick: bool = False, full: bool = False) -> list[Figure]:
    """An hour several times, and matches on two processes; `full`: all thousand of them.

    Raises WrongGameError if rounds or results are not those of the story.
    """
    runs, seconds = (1, 120) if quick else (5, 3600)
    hours = [play(hour(seed, seconds)) * 3600 / seconds for seed in range(runs)]
    return [
        Figure(
            "hour",
            "an hour of five-seat play",
            "s",
            Spread.of(hours),
            "s in real time",
            Spread.of([3600]),
            inverse=True,
            aim=HOUR_AIM_S,
            note="from the story's text to its end, journal and drawing included"
            + (f"; {seconds} s played, scaled to an hour" if seconds != 3600 else ""),
        ),
        _thousand(1000 if full else 2 if quick else 2 * MATCHES_A_STORY, 1 if quick or full else 3),
    ]


def _thousand(count: int, runs: int) -> Figure:
    a_story = min(MATCHES_A_STORY, count // PROCESSES)
    stories = [matches(a_story, seed) for seed in range(count // a_story)]
    took = []
    # Started afresh, not forked: a copy of this process would carry its memory and its threads.
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(play, [matches(1, seed) for seed in range(2 * PROCESSES)]))  # starts and warms them
        for _ in range(runs):
            began = time.perf_counter()
            list(pool.map(play, stories))
            took.append((time.perf_counter() - began) * 1000 / count)
    note = f"{PROCESSES} processes"
    if count != 1000:
        note += f"; {count} matches played, scaled to a thousand (--full plays them all)"
    return Figure(
        "thousand_matches",
        "a thousand five-seat matches",
        "s",
        Spread.of(took),
        "s in real time",
        Spread.of([sum(story.seconds for story in stories) * 1000 / count]),
        inverse=True,
        aim=THOUSAND_AIM_S,
        note=note,
    )


def play(evening: Evening) -> float:
    """Play a story with a journal on the disk; the seconds it took. Raises WrongGameError."""
    counts = dict.fromkeys(("round_revealed", "match_won"), 0)

    def say(line: str) -> None:
        for event in counts:
            counts[event] += f'"event":"{event}"' in line

    with tempfile.TemporaryDirectory(prefix="heek-bench-") as folder:
        began = time.perf_counter()
        Simulation(parse(evening.text, "bench"), say=say, state_dir=Path(folder)).run()
        took = time.perf_counter() - began
    if counts != {"round_revealed": evening.rounds, "match_won": evening.won}:
        raise WrongGameError(
            f"the table made {counts} of a story with {evening.rounds} rounds and {evening.won} matches won"
        )
    return took
