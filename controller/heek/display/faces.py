"""The screens there are: for each a frozen value that holds all that its picture needs.

Equal values look alike; that is what lets a picture be drawn once and sent once. `name` is the word by which
stories and the page call the screen; several values may share one (a reveal has two halves).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final

from heek.display.ki_mark import SmallMark, Words
from heek.kinds import Kind, Seat

ATTRACT_FRAMES: Final = 60
"""Pictures of the attract loop, one a second."""

FAULT_SHIFTS: Final = 4
"""Heights at which the fault screen stands in turn, so that it does not burn in."""

SCREEN_NAMES: Final = (
    "attract",
    "lobby",
    "rules",
    "throw",
    "countdown",
    "reveal",
    "match_over",
    "void",
    "leaving",
    "fault",
    "resume",
)


class Look(Enum):
    """How a seat's side of the table is drawn."""

    FREE = "free"
    HOLLOW = "hollow"
    """Taken, or in the round and not thrown."""
    FULL = "full"
    """Ready, or has thrown."""
    DASHED = "dashed"
    """Unconfirmed: its player has yet to press."""
    THIN = "thin"
    """Sits, but has no part in this round or result; also the dark half of a blink."""
    WINNER = "winner"


@dataclass(frozen=True, slots=True)
class Mark:
    """One seat's mark; absent seats have none."""

    seat: Seat
    look: Look
    leaving_s: int | None = None
    """Whole seconds until it stands up, while it is about to."""
    stuck: bool = False
    """One of its buttons is ignored: stuck, or it floods."""
    bot: bool = False
    """The table itself plays there."""
    worn: bool = False
    """One of its buttons has a worn switch, and counts all the same."""


@dataclass(frozen=True, slots=True)
class Tally:
    """One seat's collection, and which kind it has just won (None in the dark half of its blink)."""

    seat: Seat
    counts: tuple[int, int, int]
    """Pens, pages, beetles: what is lit."""


@dataclass(frozen=True, slots=True)
class Thrown:
    """What one seat threw in the round that is shown."""

    seat: Seat
    kind: Kind | None
    won: bool
    watching: bool
    """Had no part in the round (sudden death among others)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What all screens have; `name` is that of the story format."""

    name: ClassVar[str]
    marks: tuple[Mark, ...]
    not_saving: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Attract(Screen):
    name = "attract"
    frame: int
    """0 to `ATTRACT_FRAMES` - 1."""
    table: str
    ki: Words = ()
    """What is said of the KI, in turn with the table's name; empty: nothing."""
    small_ki: SmallMark | None = None
    """The KI while title and name have their turn; None: nothing is said of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimCode(Screen):
    """The code by which an operator enrols the table; nobody sits."""

    name = "attract"
    code: str
    """Eight letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LobbyClaimCode(ClaimCode):
    """The same in turn with a lobby that waits."""

    name = "lobby"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(Screen):
    name = "fault"
    seat: Seat | None
    """Whose buttons are in trouble; None: the journal is."""
    buttons: tuple[Kind, ...]
    trouble: str
    """`stuck`, `flood` or `chatter`. Without a seat: `journal` if it was damaged; empty: not saved."""
    shift: int
    """0 to `FAULT_SHIFTS` - 1: the height at which it stands."""
    ki: SmallMark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lobby(Screen):
    name = "lobby"
    seconds: int | None
    """To the match's start; None: it waits for people."""
    alone: bool
    """Fewer than two sit."""
    who: tuple[Seat, str] | None
    """A signed-in player whose name is shown now."""
    bots: bool = False
    """Instead of waiting for one more: how to ask for bots, or when they come."""
    bots_s: int | None = None
    """On that page: whole seconds until they come unasked."""
    ki: Words = ()
    """What is said of the KI, in the place of a name; empty: nothing."""
    small_ki: SmallMark | None = None
    """The same above a countdown that has no names below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules(Screen):
    name = "rules"
    page: int
    """0: what beats what; 1: what wins; 2: how to leave; 3: how to ask for bots."""
    ring: tuple[Kind, Kind, Kind]
    """Each beats the next, the last the first."""
    target: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Throw(Screen):
    name = "throw"
    round: int
    tallies: tuple[Tally, ...]
    target: int
    sudden_death: bool
    ki: SmallMark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Countdown(Screen):
    name = "countdown"
    seconds: int
    sudden_death: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reveal(Screen):
    """All throws at once."""

    name = "reveal"
    throws: tuple[Thrown, ...]
    sudden_death: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Collections(Screen):
    """The second half of the reveal: what has been won so far."""

    name = "reveal"
    tallies: tuple[Tally, ...]
    target: int
    sudden_death: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidingThrows(Reveal):
    """The throws that decided the match, before its winner."""

    name = "match_over"


@dataclass(frozen=True, slots=True, kw_only=True)
class LastThrows(Reveal):
    """The throws of the round after which the match was void."""

    name = "void"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchOver(Screen):
    name = "match_over"
    winner: Seat
    by: str
    kind: Kind | None
    """What it holds enough of; None where that did not decide."""
    target: int
    total: int
    player: str | None
    """The winner's name, on the pages that show it."""
    ki: Words = ()
    """What is said of the KI, on the pages that say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Void(Screen):
    name = "void"
    reason: str
    ki: SmallMark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving(Screen):
    name = "leaving"
    seat: Seat
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume(Screen):
    name = "resume"
    seconds: int | None
    round: int | None
    tallies: tuple[Tally, ...]
    target: int
