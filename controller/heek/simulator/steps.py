"""What a story is made of: its typed steps, the words it may use, and the raw edges that it causes.

A story is values only. Who makes them from text is `heek.simulator.story`; who carries them out is
the runner of a level (mock pins, a simulated chip, the rig), which asks `contact_edges` for every
edge of every contact and need not know what a press or a bounce is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from heek.clock import MILLISECOND, Duration, Instant
from heek.display.faces import SCREEN_NAMES
from heek.kinds import Kind, Seat
from heek.session.events import event_fields
from heek.stations.lamps import Pattern

DEFAULT_PRESS: Final[Duration] = 80 * MILLISECOND
"""How long a press keeps its contact closed when the story does not say."""

PATTERNS: Final[tuple[str, ...]] = tuple(pattern.value for pattern in Pattern)
"""The LED's patterns by the names that an expectation uses."""

SCREENS: Final[tuple[str, ...]] = SCREEN_NAMES
"""The OLED's screens by the names that an expectation uses."""

EVENT_FIELDS: Final[Mapping[str, tuple[str, ...]]] = event_fields()
"""Every event that may be expected, with its fields.

An expectation may name fields that do not stand here; the list serves to catch misspelt ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    at: Instant
    """When it happens, in nanoseconds from the story's start, 0 or more."""
    line: int = field(default=0, compare=False)
    """Where it stands in its file, from 1; two steps that differ in this alone are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Press(_Line):
    """A contact closes at `at` and opens `duration` later, with the bounce that the story asks for."""

    seat: Seat
    button: Kind
    duration: Duration = DEFAULT_PRESS
    bounce: tuple[tuple[Duration, bool], ...] = ()
    """Raw edges after the closing: offset from it, and whether the contact is closed from then on."""
    open_bounce: tuple[tuple[Duration, bool], ...] = ()
    """The same after the opening."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawEdge(_Line):
    """One edge of one contact; at 0 it is the state at start-up."""

    seat: Seat
    button: Kind
    closed: bool
    delivered: Instant | None = None
    """When the program is handed the edge, if later than its stamp `at`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(_Line):
    """A signed-in player takes a seat's identity."""

    seat: Seat
    player: str
    """KI number: eight digits."""
    name: str
    """1 to 24 characters, none of them a control character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall(_Line):
    """The program does nothing for `duration`; edges keep their stamps."""

    duration: Duration


@dataclass(frozen=True, slots=True, kw_only=True)
class WallClock(_Line):
    """The wall clock jumps to `wall_s`, in seconds since 1970."""

    wall_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Display(_Line):
    """The OLED answers from now on, or stops answering."""

    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ki(_Line):
    """The link to the KI comes up or goes down."""

    up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Power(_Line):
    """The process dies between two I/O calls, or starts again on the same state directory."""

    on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator(_Line):
    """The operator's button."""

    action: str = "reset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect(_Line):
    """What must be so, or must not; exactly one of `event`, `lamp` and `screen` is given."""

    event: Mapping[str, object] | None = None
    """The event's name under `event`, and the fields that it must have at least."""
    lamp: tuple[Seat, str] | None = None
    screen: str | None = None
    negated: bool = False
    within: Duration = 0
    """It may become so as late as this after `at`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End(_Line):
    """The story's end, whatever still runs."""


Step: TypeAlias = Press | RawEdge | Claim | Stall | WallClock | Display | Ki | Power | Operator | Expect | End


@dataclass(frozen=True, slots=True)
class Story:
    """A valid story: configuration keys by their dotted names, and the steps in order of `at`."""

    table: Mapping[str, object] = field(default_factory=dict)
    """Values as JSON gave them; the configuration checks them, and the keys."""
    steps: tuple[Step, ...] = ()
    source: str = field(default="story", compare=False)
    """The file it came from, as messages name it."""
    header_line: int = field(default=1, compare=False)
    """Where `table` stands, for a message about one of its keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactEdge:
    """One change of one contact, with its stamp and the instant at which the program gets it."""

    seat: Seat
    button: Kind
    closed: bool
    at: Instant
    delivered: Instant
    line: int
    """Of the step that causes it."""
    initial: bool = False
    """It is at 0: the contact's state when the table starts, rather than an edge."""


def contact_edges(story: Story) -> list[ContactEdge]:
    """All raw edges that the presses and edges of a valid story cause, in order of delivery.

    Edges delivered at the same instant keep the order of their lines. Within one contact every
    edge changes its level, and neither stamps nor deliveries ever decrease.
    """
    handover = Handover()
    edges = [edge for step in story.steps for edge in handover.edges(step)]
    # A stable sort: file order, and a press's own order, decide between equal deliveries.
    edges.sort(key=lambda edge: edge.delivered)
    return edges


class Handover:
    """Makes edges of steps, one step after the other in the order of their instants.

    A kernel hands over the edges of one line in their order, so an edge waits for one before it that comes
    late.
    """

    def __init__(self) -> None:
        self._handed_over: dict[tuple[Seat, Kind], Instant] = {}

    def edges(self, step: Step) -> list[ContactEdge]:
        """The edges that this step causes; none if it is about something else than a contact."""
        match step:
            case Press():
                opening = step.at + step.duration
                changes = [
                    (step.at, True),
                    *((step.at + offset, closed) for offset, closed in step.bounce),
                    (opening, False),
                    *((opening + offset, closed) for offset, closed in step.open_bounce),
                ]
                return [self._edge(step, closed, at, at) for at, closed in changes]
            case RawEdge():
                delivered = step.at if step.delivered is None else step.delivered
                return [self._edge(step, step.closed, step.at, delivered)]
            case _:
                return []

    def _edge(self, step: Press | RawEdge, closed: bool, at: Instant, delivered: Instant) -> ContactEdge:
        contact = step.seat, step.button
        delivered = max(delivered, self._handed_over.get(contact, 0))
        self._handed_over[contact] = delivered
        return ContactEdge(
            seat=step.seat,
            button=step.button,
            closed=closed,
            at=at,
            delivered=delivered,
            line=step.line,
            initial=at == 0,
        )
