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
from dataclasses import dataclass, replace
from typing import Final

from heek.clock import SECOND, Duration, Instant
from heek.errors import IllegalAction
from heek.games import ahyoheek
from heek.games.ahyoheek import MatchState, Rules, Void, Won
from heek.kinds import Kind, Seat
from heek.session import events as ev
from heek.session.exposure import view_of
from heek.session.inputs import (
    ButtonHeld,
    Claimed,
    HealReported,
    Input,
    LeaveAbandoned,
    LeaveHeld,
    LeaveWarned,
    OperatorReset,
    PressDiscarded,
    Pressed,
    StoodStill,
    StuckReported,
)
from heek.session.phases import Phase, Step, next_phase
from heek.session.points import KnownPoints, deltas_by_seat
from heek.session.seating import Occupant, Seating
from heek.session.settings import SessionSettings
from heek.session.state import KEPT_VERSION, Entry, Kept, KeptSeat, Match, MatchResult, Round
from heek.session.view import SeatState, View

RULES_SHOWN: Final[Duration] = 12 * SECOND
"""How long the rules stay on the OLED if nobody presses; our choice, long enough to read three pages."""

IN_MATCH: Final = frozenset({Phase.THROW, Phase.COUNTDOWN, Phase.SETTLE, Phase.REVEAL, Phase.RESUME})
ROUND_OPEN: Final = frozenset({Phase.THROW, Phase.COUNTDOWN, Phase.SETTLE})
ROUND_IN_PLAY: Final = frozenset({Phase.THROW, Phase.COUNTDOWN})
"""The phases that a standstill breaks off."""


@dataclass(frozen=True, slots=True)
class Effects:
    """What one call came to: events to keep and tell, results to report."""

    events: tuple[ev.Event, ...]
    results: tuple[MatchResult, ...]

    @property
    def durable(self) -> bool:
        """Among the events is one that must be on the disk before anybody celebrates."""
        return any(event.durable for event in self.events)


class Session:
    """One table's session.

    `new_match_id` draws the match's UUID; `own_deltas` are what this table reported, or will report,
    of each player and the KI has not acknowledged yet.
    """

    def __init__(
        self,
        settings: SessionSettings,
        *,
        new_match_id: Callable[[], str],
        own_deltas: Mapping[str, int] | None = None,
    ) -> None:
        self._settings = settings
        self._new_match_id = new_match_id
        self._points = KnownPoints(own_deltas or {})
        self._phase = Phase.ATTRACT
        self._since: Instant = 0
        self._held_back: list[Input] = []
        """Inputs that lie behind a round which may not be compared yet."""
        self._last_at: Instant = 0
        self._seating = Seating()
        self._match: Match | None = None
        self._round: Round | None = None
        self._closed_round: tuple[str, Round] | None = None
        """The round compared or broken off last, for edges that are delivered after it."""
        self._leaving: list[Seat] = []
        """Seats that leave at the instant in hand; all of them go before anything is judged."""
        self._leave_after: list[Seat] = []
        """Seats that left while their round was settling; they are compared first."""
        self._last_throw: Instant = 0
        """Match start or last accepted throw: what `idle_s` counts from."""
        self._standstill: StoodStill | None = None
        self._stuck: dict[Seat, frozenset[Kind]] = {}
        self._rules_since: Instant | None = None
        self._events: list[ev.Event] = []
        self._results: list[MatchResult] = []
        self._view: View | None = None

    # The doors

    @property
    def view(self) -> View:
        """The table as everybody may see it now."""
        if self._view is None:
            self._view = view_of(
                self._settings,
                self._phase,
                self._since,
                self._phase_end(),
                self._seating.occupants,
                self._match,
                self._round,
                self._stuck,
                self._rules_since,
            )
        return self._view

    def start(
        self, incarnation: str, boot: str, kept: Kept | None = None, *, short_cut: bool = False
    ) -> Effects:
        """Begin at instant 0, with what the journal kept.

        `short_cut` says that the power cut is known to have been no longer than `resume_max_s`:
        signed-in seats of a match that goes on keep their identity.
        """
        self._emit(ev.TableStarted(0, incarnation, boot, self._settings.name))
        if kept is not None and kept.seats:
            self._take_up(kept, short_cut)
        return self._effects()

    def advance(self, inputs: Iterable[Input], until: Instant, *, settled: bool = True) -> Effects:
        """Take `inputs` in the order of their stamps, and let every timer pass up to `until`.

        With `settled` false edges may still be on their way: no round is compared, and what lies behind
        that waits for the next call. Raises IllegalAction for a claim that the table cannot take; what
        came before it is done and comes out with the next call.
        """
        ordered = sorted([*self._held_back, *inputs], key=lambda each: (each.at, each.order))
        self._held_back = []
        position = 0
        while position < len(ordered):
            at = ordered[position].at
            if not self._pass_timers(at, inclusive=False, settled=settled):
                self._held_back = ordered[position:]
                return self._effects()
            while position < len(ordered) and ordered[position].at == at and ordered[position].order == 0:
                self._take(ordered[position])
                position += 1
            self._end_of_edges(at)
            while position < len(ordered) and ordered[position].at == at:
                self._take(ordered[position])
                position += 1
        self._pass_timers(until, inclusive=True, settled=settled)
        return self._effects()

    def due(self) -> Instant | None:
        """When the next timer passes if nothing happens; None: the table waits for people."""
        timer = self._next_timer()
        return timer[0] if timer is not None else None

    def kept(self) -> Kept:
        """What must survive a power cut."""
        match = self._match if self._match is not None and self._match.state.outcome is None else None
        return Kept(
            version=KEPT_VERSION,
            phase=self._phase,
            seats=self._seating.kept(),
            match=match,
            round_open=self._phase in ROUND_OPEN,
        )

    # Inputs

    def _take(self, item: Input) -> None:
        self._view = None
        match item:
            case Pressed(at, seat, button):
                self._press(at, seat, button)
            case PressDiscarded(at, seat, reason):
                self._ignore(at, seat, reason)
            case LeaveWarned(_, seat, leaves_at):
                self._warn(seat, leaves_at)
            case LeaveAbandoned(_, seat):
                self._warn(seat, None)
            case LeaveHeld(at, seat):
                self._leave_held(at, seat)
            case ButtonHeld(at, _, button):
                if button is Kind.BEETLE and self._phase is Phase.LOBBY:
                    self._rules_since = at
            case StuckReported(at, seat, button):
                self._stuck[seat] = self._stuck.get(seat, frozenset()) | {button}
                self._emit(ev.ContactStuck(at, seat, button))
            case HealReported(at, seat, button):
                self._stuck[seat] = self._stuck.get(seat, frozenset()) - {button}
                self._emit(ev.ContactHealed(at, seat, button))
            case Claimed(at, seat, player, name):
                self._claim(at, seat, player, name)
            case OperatorReset(at):
                self._abandon(at, "operator")
            case StoodStill():
                self._standstill = item
            case _:
                raise IllegalAction(f"the session knows no input {item!r}")

    def _press(self, at: Instant, seat: Seat, button: Kind) -> None:
        occupant = self._seating.occupants.get(seat)
        late_for = self._late_for(at, seat)
        if late_for is not None:
            match_id, round_ = late_for
            if self._match is not None and self._match.id == match_id:
                self._match.late_rounds.append(round_.number)
            self._emit(ev.LateDelivery(at, seat, match_id, round_.number))
        elif self._phase in (Phase.ATTRACT, Phase.LOBBY):
            self._press_in_lobby(at, seat, occupant)
        elif self._phase is Phase.RESUME:
            if occupant is None:
                self._ignore(at, seat, "not_seated")
            elif not occupant.confirmed:
                self._confirm(at, seat)
        elif self._phase is Phase.MATCH_OVER:
            self._ignore(at, seat, "not_seated" if occupant is None else "match_closed")
        elif self._round is not None:
            self._press_in_match(at, seat, button, occupant, self._round)

    def _press_in_lobby(self, at: Instant, seat: Seat, occupant: Occupant | None) -> None:
        self._rules_since = None
        if occupant is None:
            self._sit_down(at, seat)
            if self._phase is Phase.ATTRACT:
                self._go(Step.SEAT_TAKEN, at)
            self._seating.count(at)
        elif not occupant.confirmed:
            self._confirm(at, seat)
        elif occupant.state is SeatState.TAKEN:
            occupant.state = SeatState.READY
            self._emit(ev.SeatReady(at, seat))

    def _confirm(self, at: Instant, seat: Seat) -> None:
        self._seating.confirm(seat, at)
        self._emit(ev.SeatReady(at, seat))

    def _sit_down(self, at: Instant, seat: Seat) -> None:
        self._seating.sit_down(seat, at)
        self._emit(ev.SeatTaken(at, seat))

    def _press_in_match(
        self, at: Instant, seat: Seat, button: Kind, occupant: Occupant | None, round_: Round
    ) -> None:
        if round_.sudden_death and seat not in round_.seats:
            self._ignore(at, seat, "not_in_round")
        elif occupant is None:
            self._press_at_empty_seat(at, seat, round_)
        elif round_.opened <= at < round_.opened + self._settings.guard:
            self._ignore(at, seat, "guard")
        elif self._is_late(at, seat, round_):
            self._ignore(at, seat, "late")
        elif seat in round_.throws and not self._settings.allow_change:
            self._ignore(at, seat, "locked")
        else:
            if round_.accept(seat, at, button):
                self._emit(ev.ThrowLocked(at, seat))
            self._last_throw = max(self._last_throw, at)

    def _press_at_empty_seat(self, at: Instant, seat: Seat, round_: Round) -> None:
        match = self._match
        if (
            self._settings.late_join
            and self._phase is Phase.REVEAL
            and match is not None
            and not match.state.tied
            and round_.after_close(at)
        ):
            match.join(seat)
            self._sit_down(at, seat)
        else:
            self._ignore(at, seat, "not_seated")

    def _is_late(self, at: Instant, seat: Seat, round_: Round) -> bool:
        return (
            at < round_.opened
            or self._stood_still_at(at)
            or round_.after_close(at)
            or seat not in round_.seats
        )

    def _stood_still_at(self, at: Instant) -> bool:
        still = self._standstill
        return still is not None and still.at < at <= still.ended and self._phase in ROUND_IN_PLAY

    def _late_for(self, at: Instant, seat: Seat) -> tuple[str, Round] | None:
        """The round that this press was in time for, if that has been compared already."""
        if self._closed_round is None:
            return None
        _, round_ = self._closed_round
        in_time = (
            seat in round_.seats
            and round_.closed is not None
            and round_.opened + self._settings.guard <= at <= round_.closed
        )
        return self._closed_round if in_time else None

    def _warn(self, seat: Seat, leaves_at: Instant | None) -> None:
        if seat in self._seating.occupants:
            self._seating.occupants[seat].leaves_at = leaves_at

    def _leave_held(self, at: Instant, seat: Seat) -> None:
        self._warn(seat, None)
        if seat not in self._seating.occupants:
            return
        if self._phase is Phase.SETTLE and self._round is not None and self._round.after_close(at):
            self._leave_after.append(seat)
        else:
            self._leaving.append(seat)

    def _claim(self, at: Instant, seat: Seat, player: str, name: str) -> None:
        if self._phase not in (Phase.ATTRACT, Phase.LOBBY):
            raise IllegalAction(
                f"seat {seat} cannot be claimed in phase {self._phase.value}; claim it in the lobby"
            )
        self._seating.claim(seat, player, name)
        self._emit(ev.SeatClaimed(at, seat, player, name))

    # What follows from the edges of one instant

    def _end_of_edges(self, at: Instant) -> None:
        round_ = self._round
        first = round_.first_throw() if round_ is not None else None
        if self._phase is Phase.THROW and round_ is not None and first is not None:
            self._start_countdown(round_, first, first + self._settings.countdown)
        if self._leaving:
            leaving, self._leaving = self._leaving, []
            self._stand_up(dict.fromkeys(leaving, "leave"), at)
        if self._phase in (Phase.COUNTDOWN, Phase.SETTLE) and self._round is not None:
            self._close_if_all_thrown(self._round)
        elif self._phase is Phase.LOBBY and self._seating.starts_at_once():
            self._start_match(at)
        elif self._phase is Phase.RESUME and not self._seating.unconfirmed():
            self._open_round(Step.REOPENED, at)

    def _close_if_all_thrown(self, round_: Round) -> None:
        at = round_.closes_at()
        if at is not None and not self._stood_still_at(at) and (round_.closed is None or at < round_.closed):
            self._close(round_, at)

    def _close(self, round_: Round, at: Instant) -> None:
        if self._phase is Phase.COUNTDOWN:
            self._go(Step.CLOSED, at)
        self._since = at
        for stamp, seat in round_.close(at):
            self._ignore(stamp, seat, "late")

    # Timers

    def _pass_timers(self, until: Instant, *, inclusive: bool, settled: bool) -> bool:
        """Let timers pass; False if a round is in the way that must not be compared yet."""
        while (timer := self._next_timer()) is not None:
            at, pass_timer = timer
            if at > until or (at == until and not inclusive):
                break
            if self._phase is Phase.SETTLE and not settled:
                return False
            self._view = None
            pass_timer(at)
        return True

    def _next_timer(self) -> tuple[Instant, Callable[[Instant], None]] | None:
        """The earliest timer; of several at one instant the one that stands first here."""
        settings = self._settings
        timers: list[tuple[Instant, Callable[[Instant], None]]] = []
        if self._standstill is not None:
            timers.append((self._standstill.ended, self._end_standstill))
        match self._phase:
            case Phase.LOBBY:
                if self._seating.unconfirmed():
                    timers.append((self._since + settings.rematch, self._end_rematch))
                start = self._seating.starts_at(settings.lobby)
                if start is not None:
                    timers.append((start, self._start_match))
                if self._seating.fewer_since is not None:
                    timers.append((self._seating.fewer_since + settings.lobby_idle, self._end_lobby))
            case Phase.COUNTDOWN:
                deadline = self._round.deadline if self._round is not None else None
                if deadline is not None and not self._stood_still_at(deadline):
                    timers.append((deadline, self._pass_deadline))
            case Phase.SETTLE:
                timers.append((self._since + settings.settle, self._compare))
            case Phase.REVEAL:
                timers.append((self._since + settings.reveal, self._end_reveal))
            case Phase.MATCH_OVER:
                timers.append((self._since + settings.match_over, self._end_match_over))
            case Phase.RESUME:
                timers.append((self._since + settings.rematch, self._end_resume))
            case _:
                pass
        if self._phase in IN_MATCH and self._phase is not Phase.RESUME:
            timers.append((self._last_throw + settings.idle, lambda at: self._abandon(at, "idle")))
        if self._rules_since is not None:
            timers.append((self._rules_since + RULES_SHOWN, self._end_rules))
        return min(timers, key=lambda each: each[0]) if timers else None

    def _phase_end(self) -> Instant | None:
        """What `View.until` says."""
        settings = self._settings
        match self._phase:
            case Phase.LOBBY:
                start = self._seating.starts_at(settings.lobby)
                if start is None and self._seating.unconfirmed():
                    return self._since + settings.rematch
                return start
            case Phase.COUNTDOWN:
                return self._round.deadline if self._round is not None else None
            case Phase.REVEAL:
                return self._since + settings.reveal
            case Phase.MATCH_OVER:
                return self._since + settings.match_over
            case Phase.RESUME:
                return self._since + settings.rematch
            case _:
                return None

    def _pass_deadline(self, at: Instant) -> None:
        if self._round is not None:
            self._close(self._round, at)

    def _end_rules(self, _at: Instant) -> None:
        self._rules_since = None

    def _end_standstill(self, at: Instant) -> None:
        still, self._standstill = self._standstill, None
        if self._phase in ROUND_IN_PLAY and self._round is not None and still is not None:
            self._round.closed = still.at
            self._break_off(self._round, at, "gap")
            self._open_round(Step.REOPENED, at)

    # Lobby

    def _end_rematch(self, at: Instant) -> None:
        self._stand_up(dict.fromkeys(self._seating.unconfirmed(), "rematch"), at)
        if self._phase is Phase.LOBBY and self._seating.starts_at_once():
            self._start_match(at)

    def _end_lobby(self, at: Instant) -> None:
        self._stand_up(dict.fromkeys(self._seating.occupants, "idle"), at)

    # Rounds

    def _start_match(self, at: Instant) -> None:
        settings = self._settings
        seats = sorted(self._seating.occupants)
        rules = Rules(
            settings.target,
            settings.cycle,
            settings.missed_limit,
            settings.sudden_death_limit,
            settings.winnerless_limit,
        )
        entries = []
        for seat in seats:
            occupant = self._seating.occupants[seat]
            occupant.state = SeatState.TAKEN
            stake = self._points.stake(occupant.player)
            entries.append(Entry(seat, occupant.player, occupant.name, stake))
        self._match = Match(self._new_match_id(), ahyoheek.initial(seats, rules), entries, started_at=at)
        self._seating.fewer_since = self._rules_since = None
        self._last_throw = at
        self._emit(
            ev.MatchStarted(
                at,
                self._match.id,
                "ahyoheek",
                tuple(seats),
                {entry.seat: entry.stake for entry in entries},
            )
        )
        self._open_round(Step.MATCH_STARTED, at)

    def _open_round(self, step: Step, at: Instant) -> None:
        match = self._match
        if match is None:
            raise IllegalAction("a round cannot be opened without a match")
        if self._phase is Phase.RESUME:
            self._last_throw = at
        match.round += 1
        seats = ahyoheek.may_throw(match.state)
        self._round = Round(match.round, seats, at, bool(match.state.tied))
        self._go(step, at)
        self._emit(ev.RoundOpened(at, match.id, match.round, seats))
        if self._settings.timer == "fixed":
            self._start_countdown(self._round, at, at + self._settings.countdown)

    def _start_countdown(self, round_: Round, at: Instant, deadline: Instant) -> None:
        round_.deadline = deadline
        self._go(Step.COUNTDOWN_STARTED, at)
        self._emit(ev.CountdownStarted(at, self._match_id(), round_.number, deadline))

    def _compare(self, at: Instant) -> None:
        """The round has settled: compare, reveal, judge, and let go who leaves by it."""
        match, round_ = self._match, self._round
        if match is None or round_ is None:
            raise IllegalAction("there is no round to compare")
        throws = round_.counting()
        before: MatchState = match.state
        match.state = ahyoheek.apply(before, ahyoheek.RoundClosed(throws))
        score = match.state.score
        leave_after, self._leave_after = self._leave_after, []
        leaving = dict.fromkeys(ahyoheek.missed_out(match.state), "missed")
        leaving |= dict.fromkeys(leave_after, "leave")
        if score is None or score.void:
            self._break_off(round_, at, "throws")
        else:
            self._reveal(match, round_, throws, score, at)
        if match.state.outcome is not None:
            self._decide(match, at)
        else:
            if match.state.tied and not before.tied:
                self._emit(ev.SuddenDeath(at, match.id, match.state.tied))
            if round_.score is not None:
                self._go(Step.REVEALED, at)
        if leaving:
            self._stand_up(leaving, at)
        if self._phase is Phase.SETTLE:
            self._open_round(Step.REOPENED, at)

    def _reveal(
        self, match: Match, round_: Round, throws: dict[Seat, Kind], score: ahyoheek.RoundScore, at: Instant
    ) -> None:
        round_.score = score
        round_.revealed = {seat: throws.get(seat) for seat in round_.seats}
        self._closed_round = (match.id, round_)
        match.rounds.append(round_.revealed)
        self._emit(
            ev.RoundRevealed(
                at,
                match.id,
                round_.number,
                round_.closed if round_.closed is not None else at,
                round_.revealed,
                score.points,
                score.winners,
                match.state.collections,
            )
        )

    def _break_off(self, round_: Round, at: Instant, reason: str) -> None:
        self._closed_round = (self._match_id(), round_)
        self._emit(ev.RoundVoid(at, self._match_id(), round_.number, reason))

    def _end_reveal(self, at: Instant) -> None:
        self._open_round(Step.REOPENED, at)

    # Ends

    def _decide(self, match: Match, at: Instant) -> None:
        """The match has an outcome: say so, and show it."""
        outcome = match.state.outcome
        if isinstance(outcome, Won):
            self._win(match, outcome, at)
        elif isinstance(outcome, Void):
            self._emit(ev.MatchVoid(at, match.id, outcome.reason))
        self._go(Step.MATCH_DECIDED, at)

    def _win(self, match: Match, won: Won, at: Instant) -> None:
        result = self._points.settle(match, won, self._settings.economy, at)
        self._emit(ev.MatchWon(at, match.id, won.seat, won.by, match.state.revealed, deltas_by_seat(result)))
        self._results.append(result)

    def _stand_up(self, reasons: Mapping[Seat, str], at: Instant) -> None:
        """Seats stand up at one instant, and what follows from it is judged once all are gone."""
        for seat in sorted(reasons):
            del self._seating.occupants[seat]
            self._emit(ev.SeatLeft(at, seat, reasons[seat]))
        if self._phase is Phase.LOBBY:
            self._seating.count(at)
            if not self._seating.occupants:
                self._go(Step.ALL_STOOD_UP, at)
                self._seating.fewer_since = self._rules_since = None
        elif self._phase in IN_MATCH and self._match is not None:
            self._forfeit(self._match, tuple(sorted(reasons)), at)

    def _forfeit(self, match: Match, seats: tuple[Seat, ...], at: Instant) -> None:
        before = match.state
        match.leave(seats)
        round_ = self._round
        in_play = self._phase in ROUND_OPEN and round_ is not None
        if in_play and round_ is not None:
            round_.withdraw(seats, at)
        if match.state.outcome is not None:
            self._decide(match, at)
        elif before.tied and not set(before.tied) - set(seats):
            compared = self._closed_round is not None and self._closed_round[1] is round_
            broken_off = in_play and not compared and round_ is not None
            if broken_off and round_ is not None:
                round_.closed = at
                self._break_off(round_, at, "throws")
            if match.state.tied:
                self._emit(ev.SuddenDeath(at, match.id, match.state.tied))
            if broken_off:
                self._open_round(Step.REOPENED, at)

    def _abandon(self, at: Instant, reason: str) -> None:
        """Void by idle or operator, or a reset outside a match: all stand up at that instant."""
        match = self._match
        in_match = self._phase in IN_MATCH and match is not None
        if in_match and match is not None:
            self._emit(ev.MatchVoid(at, match.id, reason))
        for seat in sorted(self._seating.occupants):
            self._emit(ev.SeatLeft(at, seat, reason))
        self._seating = Seating()
        self._leaving, self._leave_after = [], []
        self._match = self._round = None
        self._rules_since = None
        if in_match:
            self._go(Step.MATCH_ABANDONED, at)
        elif self._phase is not Phase.ATTRACT:
            self._go(Step.ALL_STOOD_UP, at)

    def _end_match_over(self, at: Instant) -> None:
        self._match = self._round = None
        if not self._seating.occupants:
            self._go(Step.ALL_STOOD_UP, at)
            return
        self._go(Step.LOBBY_OPENED, at)
        self._seating.reopen(at)

    # After a power cut

    def _take_up(self, kept: Kept, short_cut: bool) -> None:
        match = kept.match
        if match is None:
            for seat in sorted(kept.seats):
                self._emit(ev.SeatLeft(0, seat, "power"))
            return
        match.started_at = None
        if not short_cut and any(who.player is not None for who in kept.seats.values()):
            match.forget_players()
        for seat, who in sorted(kept.seats.items()):
            known = who if short_cut else KeptSeat(None, None)
            self._seating.occupants[seat] = Occupant(SeatState.UNCONFIRMED, known.player, known.name)
        self._match = match
        if not self._settings.resume:
            match.state = _voided(match.state, "power")
            self._emit(ev.MatchVoid(0, match.id, "power"))
            self._phase = Phase.MATCH_OVER
            return
        if kept.round_open:
            self._emit(ev.RoundVoid(0, match.id, match.round, "power"))
        self._phase = Phase.RESUME
        unwired = [seat for seat in kept.seats if seat not in self._settings.seats]
        if unwired:
            self._stand_up(dict.fromkeys(unwired, "power"), 0)

    def _end_resume(self, at: Instant) -> None:
        absent = self._seating.unconfirmed()
        if absent:
            self._stand_up(dict.fromkeys(absent, "power"), at)
        if self._phase is Phase.RESUME:
            self._open_round(Step.REOPENED, at)

    # Telling

    def _match_id(self) -> str:
        return self._match.id if self._match is not None else ""

    def _go(self, step: Step, at: Instant) -> None:
        self._phase = next_phase(self._phase, step)
        self._since = at

    def _ignore(self, at: Instant, seat: Seat, reason: str) -> None:
        self._emit(ev.PressIgnored(at, seat, reason))

    def _emit(self, event: ev.Event) -> None:
        if event.at < self._last_at:
            event = replace(event, at=self._last_at)
        self._last_at = event.at
        self._events.append(event)
        self._view = None

    def _effects(self) -> Effects:
        effects = Effects(tuple(self._events), tuple(self._results))
        self._events, self._results = [], []
        return effects


def _voided(state: MatchState, reason: str) -> MatchState:
    return replace(state, outcome=Void(reason))
