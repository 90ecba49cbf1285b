"""What the page's server is told when it is made: where to listen, and what it may ask of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from heek.clock import Instant
from heek.kinds import SEATS, Kind, Seat
from heek.web.metrics import KiFigures
from heek.web.photo_pages import DrawnMatch, ShownMatch


@dataclass(frozen=True, slots=True)
class PageSettings:
    """Where the page stands and what it says of itself."""

    host: str = "127.0.0.1"
    """`web.host`: a name or an address of this machine."""
    port: int = 8125
    """`web.port`: 0 for any free one (tests)."""
    name: str = "Table"
    """`table.name`."""
    simulated: bool = True
    """The pins are mock pins: a permanent mark says so."""
    seats: tuple[Seat, ...] = SEATS
    """The seats that have a station."""
    led_pwm: bool = True
    """Whether the LEDs can be dimmed: it decides what their patterns look like."""
    stamps: str = ""
    """Whose stamps a press is judged by, and how far off they may be; empty where the pins are simulated."""
    ki_url: str | None = None
    """Where a person finds the KI's board."""
    names: tuple[str, ...] = ()
    """Further names, without a port, under which browsers know this machine (`heek.local`)."""
    lan_host: str | None = None
    """The address at which phones find this machine; it is listened at besides `host`."""
    lan_token: str | None = None
    """The secret in the address that phones scan, 128 bits of it; None: no phone may press anything."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A player who has taken a seat's identity by a click, which proves nothing: unverified."""

    player: str
    """The KI number: eight digits."""
    name: str
    points: int


class PhotoFinishes(Protocol):
    """Where the pictures of past rounds come from; a RecordingError or JournalError of theirs is told."""

    def matches(self) -> Future[Sequence[ShownMatch]]:
        """The matches that are over and kept, newest first."""

    def match(self, match: str) -> Future[DrawnMatch]:
        """Everything that can be drawn of one match, by its UUID."""


@dataclass(frozen=True, slots=True)
class Doors:
    """What the page may ask of the table.

    Each is called on the page's thread, must be safe there and come back at once. None: there is no such
    thing here, and then there is no such endpoint either. What one raises as a TableError is told to
    whoever asked, in its own words.
    """

    now: Callable[[], Instant]
    """The table's clock, the one that every instant in the view is on."""
    contact: Callable[[Seat, Kind, bool], None] | None = None
    """Close (True) or open a contact of the mock pins. None with a real backend: nobody presses a real
    button over the network (the specification of the KI, "Nothing leaks before the reveal")."""
    fill_seats: Callable[[], None] | None = None
    """Ask bots to fill the empty seats."""
    sign_in: Callable[[Seat, str | None], Future[SignedIn]] | None = None
    """Demo only: a KI number (None: a new one) takes the seat's identity. A TableError in the future is
    told to whoever asked."""
    switch_ki: Callable[[bool], None] | None = None
    """Demo only: start (True) or stop the KI."""
    fairness: Callable[[], tuple[Mapping[str, Any] | None, Sequence[str]]] | None = None
    """The figures of fairness at the end of the last match (None: no match is over), and what is wrong."""
    ki_figures: Callable[[], KiFigures] | None = None
    """How it stands with the KI, for `/metrics`."""
    photo_finishes: PhotoFinishes | None = None
    """The rounds of matches that are over, from their edges."""
