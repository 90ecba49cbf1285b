"""What `heek simulate` makes of a story: its events, and what lamps and screen show from when to when.

The virtual Pi is held against this. The story plays once, under virtual time; every turn of the simulated
daemon leaves a moment with what it showed.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from heek.clock import Instant
from heek.display.screens import screen
from heek.kinds import Seat
from heek.simulator.runner import Simulation
from heek.simulator.steps import Story


@dataclass(frozen=True, slots=True)
class Moment:
    """What the table showed from an instant of the story on."""

    at: Instant
    patterns: Mapping[Seat, str]
    """The LEDs', by their names in stories; empty while there is no power."""
    screen: str
    image: bytes
    """The picture, as `Image.tobytes` gives it."""


@dataclass(frozen=True, slots=True)
class Reference:
    """How a story goes by itself."""

    events: tuple[Mapping[str, Any], ...]
    moments: tuple[Moment, ...]
    screens: Mapping[bytes, frozenset[str]]
    """Every picture that was shown, with the screens that it belongs to."""
    ended_at: Instant

    def at(self, instant: Instant) -> Moment | None:
        """What was shown at `instant`; None before the first turn."""
        place = bisect.bisect_right([moment.at for moment in self.moments], instant)
        return self.moments[place - 1] if place else None

    def pattern_until(self, seat: Seat, instant: Instant) -> tuple[str, Instant | None]:
        """An LED's pattern at `instant`, and when it changed; None: not any more."""
        now = self.at(instant)
        pattern = now.patterns.get(seat, "free") if now is not None else "free"
        for moment in self.moments:
            if moment.at > instant and moment.patterns.get(seat, "free") != pattern:
                return pattern, moment.at
        return pattern, None

    def screen_until(self, instant: Instant) -> tuple[str, Instant | None]:
        """The screen at `instant`, and when it changed."""
        now = self.at(instant)
        name = now.screen if now is not None else "off"
        for moment in self.moments:
            if moment.at > instant and moment.screen != name:
                return name, moment.at
        return name, None


def reference(story: Story) -> Reference:
    """Play `story` on the simulator; raises what that raises, and ValueError if its expectations fail."""
    lines: list[str] = []
    moments: list[Moment] = []
    screens: dict[bytes, set[str]] = {}

    def turned(simulation: Simulation) -> None:
        daemon = simulation.daemon
        if daemon is None:
            return
        patterns = {seat: lamp.pattern.value for seat, lamp in daemon.lamps.items()}
        name = screen(daemon.shown, daemon.now).name
        image = daemon.image.tobytes()
        screens.setdefault(image, set()).add(name)
        moment = Moment(simulation.now, patterns, name, image)
        if not moments or replace(moments[-1], at=moment.at) != moment:
            moments.append(moment)

    report = Simulation(story, say=lines.append, on_turn=turned).run()
    if report.failures:
        raise ValueError("\n".join(report.failures))
    return Reference(
        tuple(json.loads(line) for line in lines),
        tuple(moments),
        {image: frozenset(names) for image, names in screens.items()},
        report.ended_at,
    )
