"""What a table in a test is played on: the door behind which the simulator stands, or a chip, or wood.

A `Level` is a kind of table that `--table` names; it opens one `Rig` for each test, and plays whole stories.
The fixture knows nothing else: whoever has another kind of table answers the hook `pytest_heek_level` with a
Level of his own. A level in real time waits where the simulator lets its clock pass; what it cannot do it
refuses by NotHere, and the test is skipped, told and counted.

Instants are nanoseconds on the test's own clock, 0 when the table is switched on. They may run ahead of what
has happened: steps are added in the order of their instants and come true when somebody looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from PIL import Image

from heek.clock import Instant
from heek.daemon import Daemon
from heek.errors import TableError
from heek.kinds import Seat
from heek.simulator.expectations import Verdict
from heek.simulator.runner import BuildDaemon, Report
from heek.simulator.steps import Expect, Step, Story


class NotHere(TableError):
    """This kind of table cannot do that; the text says what, to stand after the name of the kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What one test asks of its table."""

    keys: Mapping[str, object]
    """Configuration keys by their dotted names, unchecked."""
    source: str
    line: int
    """Where the test stands, for a message about one of the keys."""
    seed: int = 0
    """Of what the table draws by chance."""
    build: BuildDaemon = Daemon
    """What makes the daemon; another one is a mod."""


class Rig(Protocol):
    """One table of one test. All of its methods may raise NotHere."""

    @property
    def now(self) -> Instant:
        """What has happened up to here cannot be changed any more."""

    @property
    def rules_now(self) -> Instant:
        """The instant that the rules have come to; `lamp` and `screen` are told as of it."""

    def add(self, step: Step) -> None:
        """One more step that is no expectation: not before `now`, not before the last one."""

    def play_to(self, at: Instant) -> None:
        """Let come true what was added, and go on until the rules have caught up with `at`.

        Raises StoryError for a step that the running table refuses, and what the daemon raises.
        """

    def judge(self, step: Expect) -> Verdict:
        """Go on until it is known whether `step` holds; raises as `play_to`."""

    @property
    def lines(self) -> Sequence[str]:
        """Every event so far, as the journal has it."""

    def lamp(self, seat: Seat) -> str:
        """The name of the pattern that a seat's LED shows."""

    @property
    def screen(self) -> str:
        """The name of the OLED's screen; "off" without power."""

    @property
    def image(self) -> Image.Image:
        """The picture on the OLED: 128 x 64, one bit; a copy."""

    def close(self) -> Sequence[str]:
        """Leave the table as it should be found, also after a failure; says what was left behind."""


class Level(Protocol):
    """A kind of table."""

    def open(self, setup: Setup) -> Rig:
        """A table for one test, not yet switched on; raises StoryError for a wrong key, or NotHere."""

    def play(self, story: Story) -> tuple[Sequence[str], Report]:
        """Every event's line, and how it went; raises StoryError for what only the running table refuses."""
