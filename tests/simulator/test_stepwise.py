"""A simulation played step by step: the same table as in one go, and it tells what it leaves behind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gpiozero import LED

from heek.clock import MILLISECOND, SECOND
from heek.config import Config
from heek.daemon import Daemon, World
from heek.errors import StoryError
from heek.kinds import Kind
from heek.simulator.runner import BuildDaemon, Simulation, simulate
from heek.simulator.steps import Claim, End, Expect, Press, RawEdge, Stall, Story
from heek.simulator.story import StoryReader, parse
from heek.simulator.story_line import Place
from tests.story_generator import random_story

FOREVER = 1000 * SECOND


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Any]:
    """Makes open simulations, and closes them."""
    made: list[Simulation] = []

    def open_one(build: BuildDaemon = Daemon) -> tuple[Simulation, list[str]]:
        lines: list[str] = []
        simulation = Simulation(Story(source="steps"), say=lines.append, build=build)
        made.append(simulation)
        simulation.open(tmp_path)
        return simulation, lines

    yield open_one
    for simulation in made:
        simulation.close()


@pytest.mark.parametrize("seed", range(25))
def test_looking_changes_nothing(seed: int, tmp_path: Path) -> None:
    """Stopped at random instants to be looked at, a table says the same bytes as in one go."""
    story = parse(random_story(seed), "story")
    end = max((step.at for step in story.steps if isinstance(step, End)), default=25 * SECOND)
    steps = [step for step in story.steps if not isinstance(step, End)]
    wanted, _ = simulate(Story(story.table, (*steps, End(at=end))), seed=seed)
    rng = random.Random(seed)
    lines: list[str] = []
    simulation = Simulation(story, seed=seed, say=lines.append)
    simulation.open(tmp_path)
    stands_at, stands_until = FOREVER, 0
    try:
        for step in steps:
            latest = min(step.at, stands_at) - 3 * MILLISECOND
            if rng.random() < 0.2 and latest > simulation.now:
                simulation.play_to(rng.randrange(simulation.now, latest))
            if isinstance(step, Stall):
                # A look would last until its end, and what happens meanwhile is not added yet.
                stands_at = min(step.at, stands_at)
                stands_until = max(step.at + step.duration, stands_until)
            if step.at > stands_until:
                stands_at, stands_until = FOREVER, 0
            simulation.add(step)
        simulation.play_to(end)
    finally:
        assert simulation.close() == ()
    assert lines == wanted


def test_an_expectation_is_judged_when_it_is_fulfilled(opened: Any) -> None:
    """With `within` the table stands where what was expected came true; without luck, at its end."""
    simulation, _ = opened()
    simulation.add(Press(at=2 * SECOND, seat=1, button=Kind.PEN))
    verdict = simulation.judge(Expect(at=SECOND, event={"event": "seat_taken"}, within=5 * SECOND))
    assert (verdict.failure, verdict.event["seat"], simulation.rules_now) == ("", 1, 2 * SECOND)
    verdict = simulation.judge(Expect(at=2 * SECOND, event={"event": "seat_left"}, within=SECOND))
    assert verdict.failure.startswith("steps:0: at 2 to 3 s:")
    assert simulation.rules_now == 3 * SECOND


def test_a_refused_claim_is_raised_and_the_table_plays_on(opened: Any) -> None:
    """A claim at an empty seat is told to who plays, once; what happens next happens as ever."""
    simulation, lines = opened()
    simulation.add(Claim(at=SECOND, line=7, seat=1, player="40220173", name="Shorah"))
    with pytest.raises(StoryError, match=r"^steps:7: "):
        simulation.play_to(SECOND)
    simulation.add(Press(at=2 * SECOND, seat=1, button=Kind.PEN))
    simulation.play_to(2 * SECOND)
    assert "seat_taken" in lines[-1]
    assert simulation.lamp(1) == "taken"
    assert simulation.screen == "lobby"


def test_a_daemon_that_runs_on_is_told(opened: Any) -> None:
    """A mod's daemon that is closed but keeps a pin of its own and a task is found out, each by its name."""

    class Leaky(Daemon):
        def __init__(self, config: Config, world: World, loop: asyncio.AbstractEventLoop) -> None:
            super().__init__(config, world, loop)
            self.task = loop.create_task(asyncio.sleep(3600), name="endless")
            self.kept = LED(14, pin_factory=self._board._factory)

    simulation, _ = opened(Leaky)
    simulation.play_to(SECOND)
    assert simulation.close() == (
        "GPIO14 is still claimed after the daemon was closed",
        "task 'endless' still runs after the daemon was closed",
    )
    assert simulation.close() == ()


def test_a_daemon_that_cleans_up_leaves_nothing(opened: Any) -> None:
    """What a daemon cancels when it is closed, or had when its power was cut, is no leak."""

    class Tidy(Daemon):
        def __init__(self, config: Config, world: World, loop: asyncio.AbstractEventLoop) -> None:
            super().__init__(config, world, loop)
            self.task = loop.create_task(asyncio.sleep(3600))

        def close(self) -> None:
            self.task.cancel()
            super().close()

    simulation, lines = opened(Tidy)
    place, reader = Place("steps", 1), StoryReader("steps")
    for at, power in ((1, "cut"), (2, "on")):
        simulation.add(reader.step(place, {"at": at, "power": power}))
    simulation.play_to(3 * SECOND)
    assert sum("table_started" in line for line in lines) == 2
    assert simulation.close() == ()


def test_a_mistake_leaves_the_reader_as_it_was() -> None:
    """After a line that is not valid the next one is judged as if that had not been there."""
    reader = StoryReader("steps", {"station": [{"seat": 1}, {"seat": 2}]})
    with pytest.raises(StoryError, match=r"^steps:1: seat 3 is absent"):
        reader.step(Place("steps", 1), {"at": 5, "press": {"seat": 3, "button": "pen"}})
    with pytest.raises(StoryError, match=r'^steps:2: unknown button "penn"; did you mean "pen"\?$'):
        reader.step(Place("steps", 2), {"at": 5, "edge": {"seat": 1, "button": "penn", "closed": True}})
    step = reader.step(Place("steps", 3), {"at": 1, "edge": {"seat": 1, "button": "pen", "closed": True}})
    assert step == RawEdge(at=SECOND, seat=1, button=Kind.PEN, closed=True)
    assert reader.steps == [step]
