"""The lobby: people sit down and get ready, bots take seats for them, and those who stay away stand up.

Bots. The table may take seats itself: when it is asked to, or for the one who waits alone. A bot is there
for somebody's sake. A person who presses at its seat has it; it confirms when a person has; when the last
person stands up it goes along (`Floor.vacate`). So it never keeps a table going, nor a lobby from emptying.
Asked again with no seat free, the bots stand up: two who want a rated match need not start anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from heek.clock import SECOND, Duration, Instant
from heek.kinds import Kind, Seat
from heek.session import events as ev
from heek.session.floor import Floor, Timer
from heek.session.phases import Phase, Step
from heek.session.settings import SessionSettings
from heek.session.view import SeatState

RULES_PAGE_SHOWN: Final[Duration] = 4 * SECOND
RULES_PAGES: Final = 3
"""How long the rules stay on the OLED if nobody presses; our choice, long enough to read all pages.

Where there may be bots, there is one more."""


class Lobby:
    """Attract and lobby; `start_match` begins a match among all who sit."""

    def __init__(
        self, floor: Floor, settings: SessionSettings, start_match: Callable[[Instant], None]
    ) -> None:
        self._floor = floor
        self._settings = settings
        self._start_match = start_match
        self.rules_since: Instant | None = None
        self._bots_asked = False
        """Somebody has held the middle button for so long, at the instant in hand."""
        self._emptied_at: Instant = 0
        """When a match, or a lobby that all stood up from, gave way to the present lobby or attract."""
        self._was: dict[Seat, str] = {}
        """What a press was until then, by seat; at all others `not_seated`."""

    # What people do

    def press(self, at: Instant, seat: Seat) -> None:
        """A press at an empty seat takes it, at an unconfirmed one confirms it, else it is ready."""
        if at < self._emptied_at:
            self._floor.ignore(at, seat, self._was.get(seat, "not_seated"))
            return
        self.rules_since = None
        seating = self._floor.seating
        if seat in seating.bots():
            self._floor.vacate({seat: "leave"}, at)
        occupant = seating.occupants.get(seat)
        if occupant is None:
            self._floor.sit_down(seat, at)
            if self._floor.phase is Phase.ATTRACT:
                self._floor.go(Step.SEAT_TAKEN, at)
            seating.count(at)
        elif not occupant.confirmed:
            self._floor.confirm(seat, at)
        elif occupant.state is SeatState.TAKEN:
            occupant.state = SeatState.READY
            self._floor.emit(ev.SeatReady(at, seat))

    def hold(self, at: Instant, seat: Seat, button: Kind) -> None:
        """A hold in the lobby: right, the rules; middle, bots, for who sits there."""
        if button is Kind.BEETLE:
            self.rules_since = at
        elif button is Kind.PAGE and self._floor.seating.person_at(seat):
            self._bots_asked = True

    def end_of_edges(self, at: Instant) -> None:
        """What follows from the edges of one instant, once all of them are taken."""
        asked, self._bots_asked = self._bots_asked, False
        if self._floor.phase is Phase.LOBBY:
            if asked and not self._seat_bots(at):
                self.dismiss_bots(at)
            self._follow(at)

    def _follow(self, at: Instant) -> None:
        """What follows at once when somebody has sat down, confirmed, got ready or stood up."""
        seating = self._floor.seating
        if seating.somebody_is_here():
            for seat in seating.unconfirmed():
                if seating.occupants[seat].bot:
                    self._floor.confirm(seat, at)
        fills_at = self.fills_at()
        if fills_at is not None and fills_at <= at:
            self._seat_bots(at)
        if seating.starts_at_once():
            self._begin(at)

    # Bots

    def ask_bots(self, at: Instant) -> None:
        """The table takes all free seats, if it may and somebody is here to play with."""
        self._seat_bots(at)
        if self._floor.phase is Phase.LOBBY:
            self._follow(at)

    def dismiss_bots(self, at: Instant) -> None:
        """Bots stand up while people wait for others; they come again when they are asked."""
        seating = self._floor.seating
        if seating.bots() and self._floor.phase is Phase.LOBBY:
            self._floor.vacate(dict.fromkeys(seating.bots(), "leave"), at)
            seating.bots_dismissed = True
            seating.count(at)

    def fills_at(self) -> Instant | None:
        """When bots take the free seats unasked; None: they do not."""
        if self._settings.bots != "fill" or self._floor.phase is not Phase.LOBBY:
            return None
        return self._floor.seating.fills_at(self._settings.lobby)

    def _seat_bots(self, at: Instant) -> bool:
        """Whether there were any seats for them."""
        seating = self._floor.seating
        free = [seat for seat in self._settings.seats if seat not in seating.occupants]
        allowed = self._settings.bots != "never" and self._floor.phase is Phase.LOBBY
        if not free or not allowed or not seating.somebody_is_here():
            return False
        for seat in free:
            self._floor.sit_down(seat, at, bot=True)
        seating.bots_dismissed = False
        seating.count(at)
        return True

    # Timers

    def timers(self) -> list[Timer]:
        """All timers of the lobby; of several at one instant the one that stands first passes first."""
        settings, seating = self._settings, self._floor.seating
        timers: list[Timer] = []
        if seating.unconfirmed():
            timers.append((self._floor.since + settings.rematch, self._end_rematch))
        start = seating.starts_at(settings.lobby)
        if start is not None:
            timers.append((start, self._begin))
        fills_at = self.fills_at()
        if fills_at is not None:
            timers.append((fills_at, self.ask_bots))
        if seating.fewer_since is not None:
            timers.append((seating.fewer_since + settings.lobby_idle, self._end_idle))
        if self.rules_since is not None:
            pages = RULES_PAGES + (settings.bots != "never")
            timers.append((self.rules_since + pages * RULES_PAGE_SHOWN, self._end_rules))
        return timers

    def until(self) -> Instant | None:
        """When the match starts, or those who have not confirmed stand up."""
        start = self._floor.seating.starts_at(self._settings.lobby)
        if start is None and self._floor.seating.unconfirmed():
            return self._floor.since + self._settings.rematch
        return start

    def _begin(self, at: Instant) -> None:
        self.rules_since = None
        self._start_match(at)

    def _end_rematch(self, at: Instant) -> None:
        self.stand_up(dict.fromkeys(self._floor.seating.unconfirmed(), "rematch"), at)
        if self._floor.phase is Phase.LOBBY:
            self._follow(at)

    def _end_idle(self, at: Instant) -> None:
        self.stand_up(dict.fromkeys(self._floor.seating.occupants, "idle"), at)

    def _end_rules(self, _at: Instant) -> None:
        self.rules_since = None

    # Standing up

    def stand_up(self, reasons: Mapping[Seat, str], at: Instant) -> None:
        """Seats stand up at one instant."""
        seating = self._floor.seating
        if not set(seating.people()) - set(reasons):
            self.give_way(at, "late")
        self._floor.vacate(reasons, at)
        seating.count(at)
        if not seating.occupants:
            self._floor.go(Step.ALL_STOOD_UP, at)
            seating.fewer_since = self.rules_since = None
            seating.bots_dismissed = False

    def give_way(self, at: Instant, reason: str) -> None:
        """Who sits now will sit no more, or has to confirm: a press of before is none of the present."""
        self._emptied_at = at
        self._was = dict.fromkeys(self._floor.seating.people(), reason)

    def rest(self) -> tuple[Instant, dict[Seat, str]]:
        """When those who sat gave way, and what a press of before is since then."""
        return self._emptied_at, dict(self._was)

    def take_up_rest(self, emptied_at: Instant, was: Mapping[Seat, str]) -> None:
        """Go on where another lobby rested."""
        self._emptied_at, self._was = emptied_at, dict(was)

    def reopen(self, at: Instant) -> None:
        """A lobby after a match: the same seats, each to be confirmed."""
        if self._settings.bots == "never":
            # They were kept over a power cut by a table that had them.
            self._floor.vacate(dict.fromkeys(self._floor.seating.bots(), "leave"), at)
        self._floor.go(Step.LOBBY_OPENED, at)
        self._floor.seating.reopen(at)
