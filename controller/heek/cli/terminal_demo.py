"""`heek demo --terminal`: the worked example and a whole match of five, played by stories."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections import deque
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from heek.cli import OK

if TYPE_CHECKING:
    from heek.simulator.runner import Simulation

STORIES: Final = (
    ("worked_example.jsonl", "The worked example: one pen, two beetles, two pages"),
    ("five_seats.jsonl", "A whole match of five"),
)
LINES_KEPT: Final = 200


def play(*, fast: bool) -> int:
    """Play the stories; Ctrl-C and SIGTERM end it and give the terminal back as it was."""
    from heek.simulator.story import parse
    from heek.simulator.terminal import can_draw

    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    drawn = not fast and can_draw(sys.stdout, os.environ)
    for name, title in STORIES:
        text = resources.files("heek.simulator").joinpath("demo", name).read_text(encoding="utf-8")
        story = parse(text, name)
        if drawn:
            _draw(story, title)
        else:
            _tell(story, title, fast=fast)
    return OK


def _stop(_signal: int, _frame: object) -> None:
    raise SystemExit(OK)


def _tell(story: Any, title: str, *, fast: bool) -> None:
    """One line an event; with `fast` the last picture of the match after them."""
    from heek.simulator.runner import Simulation
    from heek.simulator.terminal import event_row, half_blocks
    from heek.telling import Teller

    teller = Teller()
    pictures: deque[Any] = deque(maxlen=1)

    def say(line: str) -> None:
        event = json.loads(line)
        print(event_row(event, teller.tell(event)), flush=not fast)

    def look(simulation: Simulation) -> None:
        daemon = simulation.daemon
        if daemon is not None and daemon.shown.winner is not None:
            pictures.append(daemon.image)

    print(f"\n{title} (SIMULATED)\n")
    Simulation(story, say=say, on_turn=look, pace=None if fast else time.sleep).run()
    for picture in pictures:
        print("\n" + "\n".join(half_blocks(picture)))


def _draw(story: Any, title: str) -> None:
    """The table on the whole screen, in real time."""
    from heek.clock import seconds_text
    from heek.simulator.runner import Simulation
    from heek.simulator.terminal import Canvas, Lamp, colour_allowed, event_row, frame
    from heek.telling import Teller

    teller = Teller()
    lines: deque[str] = deque([f"{title} (SIMULATED)"], maxlen=LINES_KEPT)
    colour = colour_allowed(sys.stdout, os.environ)

    def say(line: str) -> None:
        event = json.loads(line)
        lines.append(event_row(event, teller.tell(event)))

    with Canvas(sys.stdout) as canvas:

        def show(simulation: Simulation) -> None:
            daemon = simulation.daemon
            if daemon is None:
                return
            size = shutil.get_terminal_size()
            lamps = [Lamp(seat, lit.pattern.value, lit.level) for seat, lit in daemon.lamps.items()]
            clock_text = f"SIMULATED  {seconds_text(simulation.now)[:-4]} s"
            canvas.show(
                frame(size.columns, size.lines, daemon.image, lamps, list(lines), clock_text, colour=colour)
            )

        Simulation(story, say=say, on_turn=show, pace=time.sleep).run()
    # The screen is given back as it was; what happened stays to be read.
    print("\n".join(lines), end="\n\n")
