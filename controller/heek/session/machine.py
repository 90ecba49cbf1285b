"""The session: stamped inputs in, events and a frozen view out.

What it sees. Presses and holds, already judged by the gestures; the operator; the news that the program
stood still. Each carries the instant it happened at. It never asks what time it is.

Time is the rules' time. `advance(inputs, until)` first lets every timer pass that lies before an input,
then takes the input, and in the end lets pass what lies up to `until`. A phase begins at the instant at
which its predecessor ended by rule, however late the program got there; so the events are a function of
the stamped inputs alone. At equal stamps edges go first, then the operator, then timers. All edges of one
instant are taken before anything follows from them: five throws at once are five `throw_locked`, and then
the countdown starts.

Who wins a tie. A press at the very instant of the close counts. The close is the deadline, or, when all
seats in the round have thrown, the latest of their first throws, or the stamp of the leave that made it
so. It is worked out again for every throw that is delivered while the round settles, so the order of
delivery within the settle time changes nothing.

What is late. A press after the close is `late`. A press that closed in time but was delivered after its
round was compared is a `late_delivery`; the round stays as it was shown, and the record says so. A press
that is delivered after later ones were taken counts by its stamp, while its event carries the last `at`,
so that `at` never decreases.

A standstill. Players could not see the clock in it: its presses are `late`, no deadline of a round passes
in it, and at its end the round in play, or opened in it, is broken off and the next one opens. Everything
else (lobby, reveal, idle, leaving) goes by its own stamps as ever. A round that had closed before the
standstill began is compared as ever: nobody missed anything of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from heek.clock import Instant
from heek.errors import IllegalAction
from heek.games.ahyoheek import Void
from heek.kinds import Kind, Seat
from heek.session import events as ev
from heek.session.bot_throws import BotThrows
from heek.session.exposure import STUCK, view_of
from heek.session.floor import Effects, Floor, Timer
from heek.session.inputs import (
    BotsAsked,
    BotsDismissed,
    ButtonHeld,
    Claimed,
    FaultReported,
    HealReported,
    Input,
    LeaveAbandoned,
    LeaveHeld,
    LeaveWarned,
    OperatorReset,
    PointsTold,
    PressDiscarded,
    Pressed,
    PressRevoked,
    StoodStill,
    StuckReported,
)
from heek.session.lobby import Lobby
from heek.session.phases import Phase, Step
from heek.session.play import ROUND_OPEN, Play
from heek.session.points import KnownPoints
from heek.session.seating import Occupant, Seating
from heek.session.settings import SessionSettings
from heek.session.state import KEPT_VERSION, Kept, KeptSeat, SessionAtRest
from heek.session.view import SeatState, View

ContactReport: TypeAlias = StuckReported | FaultReported | HealReported

IN_MATCH: Final = ROUND_OPEN | {Phase.REVEAL, Phase.RESUME}


def _no_luck(_count: int) -> bytes:
    raise IllegalAction("no bot may sit at this table, so there is nothing to draw for")


class Session:
    """One table's session.

    `new_match_id` draws the match's UUID. `random_bytes` gives so many bytes to the bots; it must be there
    unless `settings.bots` is `never` (IllegalAction). `own_deltas` are what this table reported, or will
    report, of each player and the KI has not acknowledged yet; `told_points` what the KI told of them last.
    `witness` gets every event as it is told, with the instant of what it is about.
    """

    def __init__(
        self,
        settings: SessionSettings,
        *,
        new_match_id: Callable[[], str],
        random_bytes: Callable[[int], bytes] | None = None,
        own_deltas: Mapping[str, int] | None = None,
        told_points: Mapping[str, int] | None = None,
        witness: Callable[[ev.Event], None] | None = None,
    ) -> None:
        if random_bytes is None and settings.bots != "never":
            raise IllegalAction("a table with bots needs a source of randomness; give it random_bytes")
        self._settings = settings
        self._floor = Floor(witness=witness)
        self._points = KnownPoints(own_deltas or {}, told_points)
        self._play = Play(
            self._floor,
            settings,
            self._points,
            new_match_id,
            BotThrows(random_bytes or _no_luck),
            on_idle=lambda at: self._abandon(at, "idle"),
        )
        self._lobby = Lobby(self._floor, settings, self._play.start)
        self._held_back: list[Input] = []
        """Inputs that lie behind a round which may not be compared yet."""
        self._leaving: list[Seat] = []
        """Seats that leave at the instant in hand; all of them go before anything is judged."""
        self._troubles: dict[tuple[Seat, Kind], str] = {}
        self._untold: list[tuple[int, ContactReport]] = []
        """What contacts did that closed in the round of that number: their button may be a throw."""
        self._view: View | None = None
        self._timer: Timer | None = None
        self._timer_known = False

    # The doors

    @property
    def view(self) -> View:
        """The table as everybody may see it now."""
        if self._view is None:
            self._view = view_of(
                self._settings,
                self._floor.phase,
                self._floor.since,
                self._phase_end(),
                self._floor.seating.occupants,
                self._play.match,
                self._play.round,
                self._troubles,
                self._lobby.rules_since,
                self._lobby.fills_at(),
            )
        return self._view

    def start(
        self, incarnation: str, boot: str, kept: Kept | None = None, *, short_cut: bool = False
    ) -> Effects:
        """Begin at instant 0, with what the journal kept.

        `short_cut` says that the power cut is known to have been no longer than `resume_max_s`:
        signed-in seats of a match that goes on keep their identity.
        """
        self._changed()
        self._floor.emit(ev.TableStarted(0, incarnation, boot, self._settings.name))
        if kept is not None and kept.seats:
            self._take_up(kept, short_cut)
        return self._floor.effects()

    def advance(self, inputs: Iterable[Input], until: Instant, *, settled: bool = True) -> Effects:
        """Take `inputs` in the order of their stamps, and let every timer pass up to `until`.

        With `settled` false edges may still be on their way: no round is compared, and what lies behind
        that waits for the next call.
        """
        ordered = sorted([*self._held_back, *inputs], key=lambda each: (each.at, each.order))
        self._held_back = []
        position = 0
        while position < len(ordered):
            at = ordered[position].at
            if not self._pass_timers(at, inclusive=False, settled=settled):
                self._held_back = ordered[position:]
                return self._floor.effects()
            while position < len(ordered) and ordered[position].at == at and ordered[position].order == 0:
                self._take(ordered[position])
                position += 1
            self._end_of_edges(at)
            while position < len(ordered) and ordered[position].at == at:
                self._take(ordered[position])
                position += 1
        self._pass_timers(until, inclusive=True, settled=settled)
        return self._floor.effects()

    def due(self) -> Instant | None:
        """When the next timer passes if nothing happens; None: the table waits for people."""
        timer = self._next_timer()
        return timer[0] if timer is not None else None

    def kept(self) -> Kept:
        """What must survive a power cut."""
        match = self._play.match
        if match is not None and match.state.outcome is not None:
            match = None
        return Kept(
            version=KEPT_VERSION,
            phase=self._floor.phase,
            seats=self._floor.seating.kept(),
            match=match,
            round_open=self._floor.phase in ROUND_OPEN,
        )

    @property
    def points(self) -> KnownPoints:
        """What this table knows of players' points."""
        return self._points

    def rest(self) -> SessionAtRest | None:
        """What is left to remember when nobody plays; None: somebody does, or something is under way.

        From here on the session remembers no more than that, so that another one can go on in its place.
        """
        resting = self._floor.phase is Phase.ATTRACT and self.due() is None
        if not resting or self._held_back or self._leaving or self._untold or self._play.standstills:
            return None
        self._play.rest()
        emptied_at, was = self._lobby.rest()
        troubles = tuple((seat, kind, trouble) for (seat, kind), trouble in self._troubles.items())
        return SessionAtRest(self._floor.since, self._floor.rest(), emptied_at, was, troubles)

    def take_up_rest(self, rest: SessionAtRest) -> None:
        """Go on where another session rested, in place of `start`."""
        self._changed()
        self._floor.take_up_rest(rest.since, rest.last_at)
        self._lobby.take_up_rest(rest.emptied_at, rest.was)
        self._troubles = {(seat, kind): trouble for seat, kind, trouble in rest.troubles}

    # Inputs

    def _take(self, item: Input) -> None:
        self._changed()
        match item:
            case Pressed(at, seat, button):
                self._press(at, seat, button)
            case PressDiscarded(at, seat, reason):
                self._floor.ignore(at, seat, reason)
            case PressRevoked(_, seat, button, pressed_at, reason):
                self._play.revoke(pressed_at, seat, button, reason)
            case LeaveWarned(_, seat, leaves_at):
                self._warn(seat, leaves_at)
            case LeaveAbandoned(_, seat):
                self._warn(seat, None)
            case LeaveHeld(at, seat):
                self._leave_held(at, seat)
            case ButtonHeld(at, seat, button):
                if self._floor.phase is Phase.LOBBY:
                    self._lobby.hold(at, seat, button)
            case BotsAsked(at):
                self._lobby.ask_bots(at)
            case BotsDismissed(at):
                self._lobby.dismiss_bots(at)
            case StuckReported() | FaultReported() | HealReported():
                self._report_contact(item)
            case Claimed():
                self._claim(item)
            case OperatorReset(at):
                self._abandon(at, "operator")
            case PointsTold(_, points, acknowledged):
                self._points.tell(points, acknowledged)
            case StoodStill():
                self._play.standstills.append(item)
            case _:
                raise IllegalAction(f"the session knows no input {item!r}")

    def _report_contact(self, report: ContactReport) -> None:
        """Tell it, unless it shows what was pressed in the round that is running: that may be a throw."""
        round_ = self._play.round if self._floor.phase in ROUND_OPEN else None
        contact = (report.seat, report.button)
        kept_back = any((each.seat, each.button) == contact for _, each in self._untold)
        if round_ is not None and report.seat in round_.seats and report.seat not in round_.bots:
            kept_back = kept_back or report.since >= round_.opened
        if kept_back:
            self._untold.append((round_.number if round_ is not None else 0, report))
        else:
            self._tell_contact(report)

    def _tell_contact(self, report: ContactReport) -> None:
        at, seat, button = report.at, report.seat, report.button
        match report:
            case StuckReported():
                self._troubles[seat, button] = STUCK
                self._floor.emit(ev.ContactStuck(at, seat, button))
            case FaultReported(fault=fault):
                self._troubles[seat, button] = fault
                self._floor.emit(ev.ContactFaulty(at, seat, button, fault))
            case HealReported():
                self._troubles.pop((seat, button), None)
                self._floor.emit(ev.ContactHealed(at, seat, button))

    def _tell_untold(self, _at: Instant) -> None:
        """The round is over in which these contacts stuck, or were found faulty."""
        untold, self._untold = self._untold, []
        for _, report in untold:
            self._tell_contact(report)

    def _press(self, at: Instant, seat: Seat, button: Kind) -> None:
        if self._play.late_delivery(at, seat):
            return
        if self._floor.phase in (Phase.ATTRACT, Phase.LOBBY):
            self._lobby.press(at, seat)
        else:
            self._play.press(at, seat, button)

    def _warn(self, seat: Seat, leaves_at: Instant | None) -> None:
        occupant = self._floor.seating.occupants.get(seat)
        if occupant is not None and not occupant.bot:
            occupant.leaves_at = leaves_at

    def _leave_held(self, at: Instant, seat: Seat) -> None:
        self._warn(seat, None)
        if not self._floor.seating.person_at(seat):
            return
        round_ = self._play.round
        if self._floor.phase is Phase.SETTLE and round_ is not None and round_.after_close(at):
            self._play.leave_after.append(seat)
        else:
            self._leaving.append(seat)

    def _claim(self, claim: Claimed) -> None:
        seat, phase = claim.seat, self._floor.phase
        try:
            if phase not in (Phase.ATTRACT, Phase.LOBBY):
                raise IllegalAction(
                    f"seat {seat} cannot be claimed in phase {phase.value}; claim it in the lobby"
                )
            self._floor.seating.claim(seat, claim.player, claim.name)
        except IllegalAction as error:
            self._floor.refuse(claim, str(error))
        else:
            self._floor.emit(ev.SeatClaimed(claim.at, seat, claim.player, claim.name))

    def _end_of_edges(self, at: Instant) -> None:
        """What follows from the edges of one instant, once all of them are taken."""
        self._changed()
        self._play.start_countdown_if_thrown()
        if self._leaving:
            leaving, self._leaving = self._leaving, []
            self._stand_up(dict.fromkeys(leaving, "leave"), at)
        self._play.close_if_all_thrown()
        self._lobby.end_of_edges(at)
        if self._floor.phase is Phase.RESUME and not self._floor.seating.unconfirmed():
            self._play.open_round(Step.REOPENED, at)

    # Timers

    def _pass_timers(self, until: Instant, *, inclusive: bool, settled: bool) -> bool:
        """Let timers pass; False if a round is in the way that must not be compared yet."""
        while (timer := self._next_timer()) is not None:
            at, pass_timer = timer
            if at > until or (at == until and not inclusive):
                break
            if self._floor.phase is Phase.SETTLE and not settled:
                return False
            self._changed()
            pass_timer(at)
        return True

    def _changed(self) -> None:
        """What was worked out from the state no longer holds."""
        self._view = None
        self._timer_known = False

    def _next_timer(self) -> Timer | None:
        """The earliest timer, worked out once after each change."""
        if not self._timer_known:
            self._timer = min(self._timers(), key=lambda each: each[0], default=None)
            self._timer_known = True
        return self._timer

    def _timers(self) -> list[Timer]:
        """All timers that run; of several at one instant the one that stands first passes first."""
        settings = self._settings
        timers: list[Timer] = []
        if self._play.standstills:
            timers.append((self._play.standstills[0].ended, self._play.end_standstill))
        bots_due = self._play.bots_due()
        if bots_due is not None:
            timers.append((bots_due, self._play.throw_bots))
        match self._floor.phase:
            case Phase.LOBBY:
                timers += self._lobby.timers()
            case Phase.COUNTDOWN:
                deadline = self._play.round.deadline if self._play.round is not None else None
                if deadline is not None and not self._play.stood_still_at(deadline):
                    timers.append((deadline, self._play.pass_deadline))
            case Phase.SETTLE:
                timers.append((self._floor.since + settings.settle, self._play.compare))
            case Phase.REVEAL:
                timers.append((self._floor.since + settings.reveal, self._end_reveal))
            case Phase.MATCH_OVER:
                timers.append((self._floor.since + settings.match_over, self._end_match_over))
            case Phase.RESUME:
                timers.append((self._floor.since + settings.rematch, self._end_resume))
            case _:
                pass
        if self._floor.phase in IN_MATCH and self._floor.phase is not Phase.RESUME:
            timers.append((self._play.last_throw + settings.idle, lambda at: self._abandon(at, "idle")))
        if self._untold and not self._plays(self._untold[0][0]):
            timers.append((self._floor.since, self._tell_untold))
        return timers

    def _phase_end(self) -> Instant | None:
        """What `View.until` says."""
        settings = self._settings
        match self._floor.phase:
            case Phase.LOBBY:
                return self._lobby.until()
            case Phase.COUNTDOWN:
                return self._play.round.deadline if self._play.round is not None else None
            case Phase.REVEAL:
                return self._floor.since + settings.reveal
            case Phase.MATCH_OVER:
                return self._floor.since + settings.match_over
            case Phase.RESUME:
                return self._floor.since + settings.rematch
            case _:
                return None

    def _plays(self, number: int) -> bool:
        round_ = self._play.round
        return self._floor.phase in ROUND_OPEN and round_ is not None and round_.number == number

    def _end_reveal(self, at: Instant) -> None:
        self._play.open_round(Step.REOPENED, at)

    def _end_match_over(self, at: Instant) -> None:
        self._play.abandon()
        self._lobby.give_way(at, "match_closed")
        if self._floor.seating.occupants:
            self._lobby.reopen(at)
        else:
            self._floor.go(Step.ALL_STOOD_UP, at)

    def _end_resume(self, at: Instant) -> None:
        absent = self._floor.seating.unconfirmed()
        if absent:
            self._stand_up(dict.fromkeys(absent, "power"), at)
        if self._floor.phase is Phase.RESUME:
            self._play.open_round(Step.REOPENED, at)

    # Standing up

    def _stand_up(self, reasons: Mapping[Seat, str], at: Instant) -> None:
        """Seats stand up at one instant, in whatever phase."""
        if self._floor.phase is Phase.LOBBY:
            self._lobby.stand_up(reasons, at)
        else:
            self._play.stand_up(reasons, at)

    def _abandon(self, at: Instant, reason: str) -> None:
        """Void by idle or operator, or a reset outside a match: all stand up at that instant."""
        match = self._play.match if self._floor.phase in IN_MATCH else None
        if self._floor.phase is not Phase.ATTRACT:
            self._lobby.give_way(at, "match_closed" if self._floor.phase is Phase.MATCH_OVER else "late")
        if match is not None:
            self._floor.emit(ev.MatchVoid(at, match.id, reason))
        self._floor.vacate(dict.fromkeys(self._floor.seating.occupants, reason), at)
        self._floor.seating = Seating()
        self._leaving = []
        self._play.abandon()
        self._lobby.rules_since = None
        if match is not None:
            self._floor.go(Step.MATCH_ABANDONED, at)
        elif self._floor.phase is not Phase.ATTRACT:
            self._floor.go(Step.ALL_STOOD_UP, at)

    # After a power cut

    def _take_up(self, kept: Kept, short_cut: bool) -> None:
        match = kept.match
        if match is None:
            # Nothing was at stake: who still wants to play sits down again.
            for seat in sorted(kept.seats):
                self._floor.emit(ev.SeatLeft(0, seat, "power"))
            return
        match.started_at = None
        if not short_cut and any(who.player is not None for who in kept.seats.values()):
            match.forget_players()
        for seat, who in sorted(kept.seats.items()):
            known = who if short_cut else KeptSeat(None, None)
            state = SeatState.TAKEN if who.bot else SeatState.UNCONFIRMED
            self._floor.seating.occupants[seat] = Occupant(state, known.player, known.name, who.bot)
        self._play.match = match
        if not self._settings.resume:
            match.state = replace(match.state, outcome=Void("power"))
            self._floor.emit(ev.MatchVoid(0, match.id, "power"))
            self._floor.phase = Phase.MATCH_OVER
        else:
            if kept.round_open:
                self._floor.emit(ev.RoundVoid(0, match.id, match.round, "power"))
            self._floor.phase = Phase.RESUME
        unwired = [seat for seat in kept.seats if seat not in self._settings.seats]
        if unwired:
            self._stand_up(dict.fromkeys(unwired, "power"), 0)
