"""What a test asks of the person at the table, and what comes back: values alone, with `now` in each."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

from heek.clock import MILLISECOND, SECOND, Duration, Instant
from heek.kinds import Kind, Seat

PATIENCE: Final[Duration] = 20 * SECOND
"""How long a button that is asked for may take to be pressed."""
SETTLED: Final[Duration] = 250 * MILLISECOND
"""Open for so long: the finger is off, and no bounce comes any more."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked at this moment."""

    text: str
    """For the terminal: one line."""
    words: tuple[str, ...]
    """For the OLED: up to four short lines."""
    takes_answers: bool = True
    """Whether a typed line is an answer to it; else only time and contacts count."""
    lit: frozenset[Seat] = frozenset()
    """The LEDs that are lit meanwhile."""
    pattern: bool = False
    """The panel shows its test pattern in place of the words."""
    until: Instant | None = None
    """When it goes on by itself."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A contact closed or opened at `at`. `where` is a (seat, kind), or the number of a line."""

    at: Instant
    where: Any
    closed: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """Somebody typed a line."""

    at: Instant
    text: str


@dataclass(frozen=True, slots=True)
class Passed:
    """Nothing came until `at`."""

    at: Instant


Input: TypeAlias = Moved | Answer | Passed
Course: TypeAlias = Generator[Ask, Input, None]
"""A test: it yields what it asks and is sent what came; when it returns it is over."""


class Verdict(Enum):
    """How one part stands."""

    OK = "ok"
    NEVER_SEEN = "never seen"
    STUCK = "stuck"
    SWAPPED = "swapped"
    CHATTERING = "chattering"
    JOINED = "joined"
    """Another contact closes with it: two wires touch."""
    DARK = "dark"
    LIT = "lit"
    """It cannot be put out."""
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Result:
    """One part of the table and how it stands."""

    part: str
    """`seat 2 page`, `seat 2 LED`, `panel`."""
    verdict: Verdict
    text: str = ""
    """What was seen, and what to do; empty where it is fine."""


class Conversation:
    """A course under way: what it asks, and what it is told."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self.over = False
        self.ask: Ask = next(course)

    def tell(self, what: Input) -> None:
        """Let the course go on; nothing once it is over."""
        if self.over:
            return
        try:
            self.ask = self._course.send(what)
        except StopIteration:
            self.over = True


def name_of(where: tuple[Seat, Kind]) -> str:
    """A contact as messages name it."""
    return f"seat {where[0]} {where[1].value}"


PLACES: Final = {Kind.PEN: "left", Kind.PAGE: "middle", Kind.BEETLE: "right"}
"""Where a button is, seen from its seat."""
