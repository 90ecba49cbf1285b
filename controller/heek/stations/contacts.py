"""What the edges of one contact say: its level, its presses, and whether its switch can be believed.

What is a press. A closing edge, if the contact had been open without a break for `debounce`. All else that
an edge can be has a name here (`Sense`), so that every edge which comes to nothing can be counted.

Edges that never came. The kernel keeps a short queue a line, and a program that stood still finds the
oldest of a full one gone. That shows as an edge that says what is known already. A second closing without
an opening between them is a press if it comes so long after the last edge that a finger can have let go and
pressed again (50 ms, or `debounce`): the opening in between was lost. A second opening tells of a press that
nobody can put a time to; it is counted and no more. A line that is read (not heard of) mends only one thing:
a contact that was believed closed and is open.

Edges that come late. A contact's edges mean what their stamps say, in whatever order they are delivered. So
a contact remembers its last edges, and one that belongs between them is put there and all after it are read
anew: presses that come to light are given out, those that turn out bounce are taken back.

Which switch can be believed. Three gauges, all of stamps alone:

* Bounce. Real switches bounce for up to 20 ms, and the lightest tap with its bounce at both ends is over
  in 60 ms. A run of edges none of which is as much as `debounce` (at most 15 ms) behind the one before is one
  bounce; one of 150 ms, or three of 75 ms within 20 presses, is `chatter`: the switch is worn. Debounce
  makes one press of it all the same, with the right stamp, so a worn switch is told of and goes on
  counting: taking it away would take away a throw that somebody made. After 20 presses without, it is
  well again.
* Presses. The fastest finger makes about 16 a second. What makes more than 20 a second for long enough to be
  10 ahead of that is no finger: `flood`.
* Edges. Fifteen presses a second with five bounces at both ends are 330 edges a second. What makes more than
  500 for long enough to be 500 ahead is a line that swings: `flood`, too, though debounce has made but one
  press of it.

A contact that floods says nothing about what a player wants. It is set aside until it has been open, with no
edge at all, for 5 s.

What cannot be told. A line that swings more slowly than a finger can, and a worn switch that opens for
longer than `debounce` while it is held, make presses like anybody's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from heek.clock import MILLISECOND, SECOND, Duration, Instant
from heek.kinds import Kind, Seat

LONGEST_GAP: Final[Duration] = 15 * MILLISECOND
"""Within one bounce, whatever `debounce` is: with a long one a fast finger is no worn switch."""

CHATTER: Final[Duration] = 150 * MILLISECOND
"""A bounce as long as that is a worn switch; or three times `debounce`, if that is longer."""

LONG_BOUNCES: Final = 3
"""So many bounces of half that length within `CLEAN_PRESSES` are, too."""

CLEAN_PRESSES: Final = 20
"""Presses without a long bounce after which a worn switch is well again."""

PRESS_COST: Final[Duration] = SECOND // 20
"""From one press to the next, by the fastest finger there is."""

PRESS_CREDIT: Final[Duration] = 10 * PRESS_COST
EDGE_COST: Final[Duration] = SECOND // 500
EDGE_CREDIT: Final[Duration] = 500 * EDGE_COST

QUIET: Final[Duration] = 5 * SECOND
"""A contact that flooded is believed again when it has been open without an edge for so long."""

KEPT_EDGES: Final = 128
"""So many edges at least a contact remembers, for those that are delivered late."""


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """A contact closed or opened at `at`, by the kernel's stamp."""

    at: Instant
    seat: Seat
    button: Kind = field(compare=False)
    closed: bool = field(compare=False)
    read: bool = field(default=False, compare=False)
    """The line was read at `at`, nobody heard it change: counts only for a contact believed closed."""


class Sense(Enum):
    """What one edge is."""

    PRESS = "press"
    PRESS_AFTER_LOSS = "press after loss"
    """The opening before it never came."""
    OPENING = "opening"
    OPENING_READ = "opening read"
    """Nobody heard the contact open: the line was read, and it is."""
    BOUNCE = "bounce"
    """It closed too soon after it had opened, or after the start."""
    REPEATED = "repeated"
    """It says what is known already, so at least one other edge was lost."""
    FLOOD = "flood"
    NOTHING = "nothing"
    """A line was read that stands as it is believed to."""


PRESSES: Final = frozenset({Sense.PRESS, Sense.PRESS_AFTER_LOSS})


class Wear(Enum):
    """What is wrong with a switch."""

    CHATTER = "chatter"
    FLOOD = "flood"


@dataclass(slots=True)
class Gauge:
    """How far something is ahead of the pace that is believed; it forgets at that pace.

    `spent_until` is the instant at which all of it is forgotten (GCRA's theoretical arrival time).
    """

    cost: Duration
    credit: Duration
    spent_until: Instant = 0
    since: Instant = 0
    """When it was last empty: what it holds began then."""

    def add(self, at: Instant) -> bool:
        """One more at `at`; True if that is more than can be believed."""
        if self.spent_until <= at:
            self.spent_until = self.since = at
        self.spent_until += self.cost
        return self.spent_until - at > self.credit

    def clear(self) -> None:
        self.spent_until = 0


@dataclass(slots=True)
class Reading:
    """What the edges of one contact have said up to now; `copy.copy` before looking ahead."""

    debounce: Duration
    closed: bool
    changed_at: Instant
    last_at: Instant
    """Of the last edge, also one that changed nothing."""
    pressed_at: Instant | None = None
    wear: Wear | None = None
    was_open: bool = True
    """False for a contact that was closed at the start and has not opened since."""
    bounce_since: Instant = 0
    bounce_counted: bool = False
    presses: int = 0
    long_bounces: tuple[int, ...] = ()
    """How many presses there had been at each of the last ones."""
    press_gauge: Gauge = field(default_factory=lambda: Gauge(PRESS_COST, PRESS_CREDIT))
    edge_gauge: Gauge = field(default_factory=lambda: Gauge(EDGE_COST, EDGE_CREDIT))

    def __copy__(self) -> Reading:
        other = Reading(
            self.debounce,
            self.closed,
            self.changed_at,
            self.last_at,
            self.pressed_at,
            self.wear,
            self.was_open,
            self.bounce_since,
            self.bounce_counted,
            self.presses,
            self.long_bounces,
        )
        other.press_gauge, other.edge_gauge = copy(self.press_gauge), copy(self.edge_gauge)
        return other

    def take(self, edge: Edge) -> Sense:
        """The next edge; one whose stamp lies before the last one's has to be put in its place first."""
        at, closed = edge.at, edge.closed
        if edge.read:
            return self._read(at, closed)
        if self.wear is Wear.FLOOD:
            if at >= self.last_at:
                self._note(at, closed)
            return Sense.FLOOD
        if self.edge_gauge.add(at):
            self._flood(at, closed)
            return Sense.FLOOD
        self._judge_bounce(at)
        changed = closed is not self.closed
        if not changed and (
            not closed or not self.was_open or at - self.last_at < max(self.debounce, PRESS_COST)
        ):
            self.last_at = at
            return Sense.REPEATED
        open_for = at - (self.changed_at if changed else self.last_at)
        self._note(at, closed)
        if not closed:
            self.was_open = True
            return Sense.OPENING
        if open_for < self.debounce:
            return Sense.BOUNCE
        if self.press_gauge.add(at):
            self.wear = Wear.FLOOD
            return Sense.FLOOD
        self.pressed_at = at
        self._count_press()
        return Sense.PRESS if changed else Sense.PRESS_AFTER_LOSS

    def recover(self) -> None:
        """The switch is believed again; what was held against it is forgotten."""
        self.wear = None
        self.bounce_counted, self.long_bounces = True, ()
        self.press_gauge.clear()
        self.edge_gauge.clear()

    def _note(self, at: Instant, closed: bool) -> None:
        if closed is not self.closed or closed:
            self.changed_at = at
        self.closed, self.last_at = closed, at

    def _flood(self, at: Instant, closed: bool) -> None:
        self.wear = Wear.FLOOD
        self._note(at, closed)

    def _read(self, at: Instant, closed: bool) -> Sense:
        if closed or not self.closed:
            return Sense.NOTHING
        self.closed, self.changed_at, self.last_at, self.was_open = False, at, at, True
        return Sense.OPENING_READ

    def _judge_bounce(self, at: Instant) -> None:
        if at - self.last_at >= min(self.debounce, LONGEST_GAP):
            self.bounce_since, self.bounce_counted = at, False
            return
        lasted, worn = at - self.bounce_since, max(CHATTER, 3 * self.debounce)
        if not self.bounce_counted and lasted >= worn // 2:
            self.bounce_counted = True
            self.long_bounces = (*self.long_bounces[1 - LONG_BOUNCES :], self.presses)
            if len(self.long_bounces) == LONG_BOUNCES and self.presses - self.long_bounces[0] < CLEAN_PRESSES:
                self.wear = Wear.CHATTER
        if self.bounce_counted and lasted >= worn and self.long_bounces:
            self.wear = Wear.CHATTER

    def _count_press(self) -> None:
        self.presses += 1
        if self.wear is Wear.CHATTER and self.presses - self.long_bounces[-1] > CLEAN_PRESSES:
            self.wear, self.long_bounces = None, ()


@dataclass(frozen=True, slots=True)
class Placed:
    """What an edge that was put between others has changed."""

    senses: Mapping[Sense, int]
    """How many more (or fewer) there are of each sense."""
    found: tuple[Instant, ...]
    """Presses that nobody knew of."""
    lost: tuple[Instant, ...]
    """Presses that turn out to be none."""


class Past:
    """The last edges of one contact, and what was known before the first of them."""

    def __init__(self, reading: Reading) -> None:
        self._before = copy(reading)
        self._edges: list[tuple[Edge, Sense]] = []

    def add(self, edge: Edge, sense: Sense) -> None:
        """An edge that was read in its turn."""
        self._edges.append((edge, sense))
        if len(self._edges) >= 2 * KEPT_EDGES:
            for old, _ in self._edges[:KEPT_EDGES]:
                self._before.take(old)
            del self._edges[:KEPT_EDGES]

    def forget(self, reading: Reading) -> None:
        """From here on nothing that comes late is put before `reading`."""
        self._before = copy(reading)
        self._edges.clear()

    def place(self, edge: Edge) -> tuple[Reading, Placed] | None:
        """Put a late edge where it belongs; gives what the contact's edges say now, None if it is too old."""
        index = next((index for index, (each, _) in enumerate(self._edges) if each.at > edge.at), None)
        if index is None or edge.at < self._before.last_at:
            return None
        reading = copy(self._before)
        for each, _ in self._edges[:index]:
            reading.take(each)
        after = self._edges[index:]
        changed: list[tuple[Edge, Sense]] = []
        for each in (edge, *(each for each, _ in after)):
            changed.append((each, reading.take(each)))
        self._edges[index:] = changed
        return reading, _difference(after, changed)


def _difference(before: list[tuple[Edge, Sense]], after: list[tuple[Edge, Sense]]) -> Placed:
    was = {edge.at for edge, sense in before if sense in PRESSES}
    now = {edge.at for edge, sense in after if sense in PRESSES}
    senses = Counter(sense for _, sense in after)
    senses.subtract(sense for _, sense in before)
    return Placed(senses, tuple(sorted(now - was)), tuple(sorted(was - now)))
