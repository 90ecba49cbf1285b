"""The kind of table that `--table=sim` is: the simulator, under virtual time."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from heek.clock import Instant
from heek.display.panel_memory import SIZE_PX
from heek.kinds import Seat
from heek.simulator.expectations import Verdict
from heek.simulator.runner import Report, Simulation, simulate
from heek.simulator.steps import Expect, Ki, Step, Story
from heek.testing.rig import NotHere, Setup


class SimulatedRig:
    """A simulation that is played step by step; its journal lives as long as it does."""

    def __init__(self, setup: Setup) -> None:
        self._lines: list[str] = []
        self._has_link = setup.keys.get("ki.link", "none") != "none"
        self._simulation = Simulation(
            Story(setup.keys, source=setup.source, header_line=setup.line),
            seed=setup.seed,
            say=self._lines.append,
            build=setup.build,
        )
        self._folder = tempfile.TemporaryDirectory(prefix="heek-table-")
        try:
            self._simulation.open(Path(self._folder.name))
        except BaseException:
            self._folder.cleanup()
            raise

    @property
    def now(self) -> Instant:
        return self._simulation.now

    @property
    def rules_now(self) -> Instant:
        return self._simulation.rules_now

    def add(self, step: Step) -> None:
        if isinstance(step, Ki) and not self._has_link:
            raise NotHere("has no link to a KI (ki.link)")
        self._simulation.add(step)

    def play_to(self, at: Instant) -> None:
        _refuse_inside_a_loop()
        self._simulation.play_to(at)

    def judge(self, step: Expect) -> Verdict:
        _refuse_inside_a_loop()
        return self._simulation.judge(step)

    @property
    def lines(self) -> Sequence[str]:
        return self._lines

    def lamp(self, seat: Seat) -> str:
        return self._simulation.lamp(seat)

    @property
    def screen(self) -> str:
        return self._simulation.screen

    @property
    def image(self) -> Image.Image:
        daemon = self._simulation.daemon
        return Image.new("1", SIZE_PX) if daemon is None else daemon.image.copy()

    def close(self) -> Sequence[str]:
        try:
            return self._simulation.close()
        finally:
            self._folder.cleanup()


class SimulatedLevel:
    """Tables that cost nothing, each one as new."""

    def open(self, setup: Setup) -> SimulatedRig:
        return SimulatedRig(setup)

    def play(self, story: Story) -> tuple[Sequence[str], Report]:
        return simulate(story)


def _refuse_inside_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        "the table has an event loop of its own: write this test as a plain function, not async"
    )
