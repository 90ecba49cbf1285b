"""A match in play: its rounds are opened, thrown in, closed, compared and revealed, until it is decided.

What a press in a match comes to is decided here, in the order of the reasons that spec/ahyoheek.md gives
("Fine points"); so is what follows when seats stand up in the middle of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from heek.clock import Instant
from heek.errors import IllegalAction
from heek.games import ahyoheek
from heek.games.ahyoheek import MatchState, Rules, Void, Won
from heek.kinds import Kind, Seat
from heek.session import events as ev
from heek.session.bot_throws import BotThrows, pace_alone, pace_of_countdown
from heek.session.floor import Floor
from heek.session.inputs import StoodStill
from heek.session.phases import Phase, Step
from heek.session.points import KnownPoints, deltas_by_seat
from heek.session.settings import SessionSettings
from heek.session.state import Entry, Match, Round
from heek.session.view import SeatState

ROUND_OPEN: Final = frozenset({Phase.THROW, Phase.COUNTDOWN, Phase.SETTLE})
ROUND_IN_PLAY: Final = frozenset({Phase.THROW, Phase.COUNTDOWN})
"""The phases that a standstill breaks off."""

ROUNDS_REMEMBERED: Final = 64
"""An edge that is delivered later than so many rounds is no longer known to have been in time."""


class Play:
    """The match that is played or shown, if any, and its round."""

    def __init__(
        self,
        floor: Floor,
        settings: SessionSettings,
        points: KnownPoints,
        new_match_id: Callable[[], str],
        bots: BotThrows,
        on_idle: Callable[[Instant], None],
    ) -> None:
        self._floor = floor
        self._settings = settings
        self._points = points
        self._new_match_id = new_match_id
        self._bots = bots
        self._on_idle = on_idle
        self.match: Match | None = None
        self.round: Round | None = None
        self.last_throw: Instant = 0
        """Match start or last accepted throw: what `idle_s` counts from."""
        self.standstills: list[StoodStill] = []
        """Those whose end has not been reached by rule yet; one can follow another at once."""
        self.leave_after: list[Seat] = []
        """Seats that left while their round was settling; they are compared first."""
        self._closed_rounds: deque[tuple[str, Round]] = deque(maxlen=ROUNDS_REMEMBERED)
        """The rounds compared or broken off last, for edges that are delivered after them."""

    # Presses

    def late_delivery(self, at: Instant, seat: Seat) -> bool:
        """Take a press that was in time for a round which has been compared already; False if it was not."""
        late_for = self._late_for(at, seat)
        if late_for is None:
            return False
        self._flag(*late_for, at, seat)
        return True

    def _late_for(self, at: Instant, seat: Seat) -> tuple[str, Round] | None:
        """The round that this press was in time for, if that has been compared already."""
        for match_id, round_ in reversed(self._closed_rounds):
            if round_.closed is None or at > round_.closed:
                break
            thrower = seat in round_.seats and seat not in round_.bots
            if thrower and round_.opened + self._settings.guard <= at:
                return match_id, round_
        return None

    def revoke(self, at: Instant, seat: Seat, button: Kind, reason: str) -> None:
        """A press that was taken was none, as an edge shows that was delivered after it.

        A throw of the running round is taken out again, and if the round had closed by it, it has not closed,
        or later: presses after that close, or after that throw, are looked at again. What else came of it (a
        seat taken, a countdown that runs) has been shown, and stays. A round that was compared with it stays
        as it was shown, and is flagged (a flood has no late edge, and is told by `contact_faulty`).
        """
        round_ = self.round if self._floor.phase in ROUND_OPEN else None
        if round_ is not None and (at, seat, button) in round_.beyond:
            round_.beyond.remove((at, seat, button))
            return
        if round_ is None or seat in round_.bots or not round_.take_out(seat, at, button):
            if reason != "flood":
                self._flag_revoked(at, seat, button)
            return
        self._floor.ignore(at, seat, reason)
        closed, deadline = round_.closed, round_.deadline
        by_throws = (
            self._floor.phase is Phase.SETTLE
            and closed is not None
            and deadline is not None
            and closed < deadline
        )
        if by_throws:
            round_.closed = None
        for first, thrower in round_.recount(allow_change=self._settings.allow_change):
            self._lock(round_, thrower, first)
        if not by_throws:
            return
        closes = round_.closes_at()
        if closes is not None and (deadline is None or closes <= deadline):
            self._close(round_, closes)
            return
        leaving, self.leave_after = self.leave_after, []
        self._floor.go(Step.CLOSE_REVOKED, closed or at)
        if leaving:
            self.stand_up(dict.fromkeys(leaving, "leave"), at)

    def _flag_revoked(self, at: Instant, seat: Seat, button: Kind) -> None:
        for match_id, round_ in self._closed_rounds:
            if seat not in round_.bots and (at, button) in round_.throws.get(seat, []):
                self._flag(match_id, round_, at, seat)

    def _flag(self, match_id: str, round_: Round, at: Instant, seat: Seat) -> None:
        if self.match is not None and self.match.id == match_id:
            self.match.flag(round_.number)
        self._floor.emit(ev.LateDelivery(at, seat, match_id, round_.number))

    def press(self, at: Instant, seat: Seat, button: Kind) -> None:
        """A press while a match is played or shown: a throw, a seat taken, or a reason why not.

        Nobody sits where the table plays itself, yet the seat is not free.
        """
        seated = self._floor.seating.person_at(seat)
        if self._floor.phase is Phase.RESUME:
            self._press_in_resume(at, seat, seated)
        elif self._floor.phase is Phase.MATCH_OVER:
            in_match_over = "late" if at < self._floor.since else "match_closed"
            self._floor.ignore(at, seat, in_match_over if seated else "not_seated")
        elif self.round is not None:
            self._throw(at, seat, button, seated, self.round)

    def _press_in_resume(self, at: Instant, seat: Seat, seated: bool) -> None:
        if not seated:
            self._floor.ignore(at, seat, "not_seated")
        elif not self._floor.seating.occupants[seat].confirmed:
            self._floor.confirm(seat, at)

    def _throw(self, at: Instant, seat: Seat, button: Kind, seated: bool, round_: Round) -> None:
        if round_.sudden_death and seat not in round_.seats:
            self._floor.ignore(at, seat, "not_in_round")
        elif not seated:
            self._press_at_empty_seat(at, seat)
        elif round_.opened <= at < round_.opened + self._settings.guard:
            self._floor.ignore(at, seat, "guard")
        elif self._is_late(at, seat, round_):
            if self._floor.phase is Phase.SETTLE and seat in round_.seats and not self.stood_still_at(at):
                round_.beyond.append((at, seat, button))
            self._refuse(round_, at, seat, "late")
        elif not self._settings.allow_change and round_.locked_in(seat, at):
            round_.beyond.append((at, seat, button))
            self._refuse(round_, at, seat, "locked")
        else:
            if round_.accept(seat, at, button):
                self._lock(round_, seat, at)
            elif not self._settings.allow_change:
                # It closed before the one that was taken for the first, and was delivered after it.
                stamp, kind = round_.throws[seat].pop()
                round_.beyond.append((stamp, seat, kind))
                self._refuse(round_, stamp, seat, "locked")
            self.last_throw = max(self.last_throw, at)

    def _refuse(self, round_: Round, at: Instant, seat: Seat, reason: str) -> None:
        round_.refused.add((at, seat))
        self._floor.ignore(at, seat, reason)

    def _press_at_empty_seat(self, at: Instant, seat: Seat) -> None:
        match = self.match
        if (
            self._settings.late_join
            and self._floor.phase is Phase.REVEAL
            and match is not None
            and not match.state.tied
            and seat not in self._floor.seating.occupants
            and at >= self._floor.since
        ):
            match.join(seat)
            self._floor.sit_down(seat, at)
        else:
            self._floor.ignore(at, seat, "not_seated")

    def _is_late(self, at: Instant, seat: Seat, round_: Round) -> bool:
        return (
            at < round_.opened
            or self.stood_still_at(at)
            or round_.after_close(at)
            or seat not in round_.seats
        )

    def stood_still_at(self, at: Instant) -> bool:
        """Whether a round in play was hidden from its players at that instant."""
        return self._floor.phase in ROUND_IN_PLAY and any(
            still.at < at <= still.ended for still in self.standstills
        )

    # Rounds

    def start(self, at: Instant) -> None:
        """A match begins among all who sit."""
        settings = self._settings
        occupants = self._floor.seating.occupants
        seats = sorted(occupants)
        rules = Rules(
            settings.target,
            settings.cycle,
            settings.missed_limit,
            settings.sudden_death_limit,
            settings.winnerless_limit,
        )
        rated = not self._floor.seating.bots()
        entries = []
        for seat in seats:
            who = occupants[seat]
            who.state = SeatState.TAKEN
            stake = self._points.stake(who.player) if rated else 0
            entries.append(Entry(seat, who.player, who.name, stake, bot=who.bot))
        match = Match(
            self._new_match_id(), ahyoheek.initial(seats, rules), entries, started_at=at, rated=rated
        )
        self._bots.forget()
        self.match = match
        self._floor.seating.fewer_since = None
        self.last_throw = at
        stakes = {entry.seat: entry.stake for entry in entries}
        self._floor.emit(ev.MatchStarted(at, match.id, "ahyoheek", tuple(seats), stakes))
        self.open_round(Step.MATCH_STARTED, at)

    def start_countdown_if_thrown(self) -> None:
        """The first throw of a round starts its countdown."""
        round_ = self.round
        first = round_.first_throw() if round_ is not None else None
        if round_ is None or first is None:
            return
        deadline = first + self._settings.countdown
        if self._floor.phase is Phase.THROW:
            self._start_countdown(round_, first, deadline)
        elif self._settings.timer == "first_throw" and round_.deadline is not None:
            # The first throw can be delivered second: then the countdown began before it was told.
            round_.deadline = min(round_.deadline, deadline)
            if self._floor.phase is Phase.SETTLE and round_.closed is not None and deadline < round_.closed:
                self._close(round_, deadline)

    def close_if_all_thrown(self) -> None:
        """All in the round have thrown: it closes, or has closed earlier than was thought."""
        round_ = self.round
        if round_ is None or self._floor.phase not in (Phase.COUNTDOWN, Phase.SETTLE):
            return
        at = round_.closes_at()
        if at is not None and not self.stood_still_at(at) and (round_.closed is None or at < round_.closed):
            self._close(round_, at)

    def bots_due(self) -> Instant | None:
        """When the table throws next at a seat of its own; None: not before somebody does something."""
        if self.round is None or self._floor.phase not in ROUND_IN_PLAY:
            return None
        due = self.round.bots_due()
        return due[0][0] if due and not self.stood_still_at(due[0][0]) else None

    def throw_bots(self, at: Instant) -> None:
        """The table throws at those of its own seats whose time has come."""
        round_ = self.round
        if round_ is None:
            raise IllegalAction("there is no round for a bot to throw in")
        for due, seat in round_.bots_due():
            if due <= at:
                round_.accept(seat, due, round_.bots[seat].kind)
                self._lock(round_, seat, due)
                if round_.of_bots_alone:
                    # Elsewhere only people keep a match from being idle.
                    self.last_throw = max(self.last_throw, due)
        self.start_countdown_if_thrown()
        self.close_if_all_thrown()

    def _lock(self, round_: Round, seat: Seat, at: Instant) -> None:
        if seat not in round_.locked:
            round_.locked.add(seat)
            self._floor.emit(ev.ThrowLocked(at, seat))

    def _close(self, round_: Round, at: Instant) -> None:
        if self._floor.phase is Phase.COUNTDOWN:
            self._floor.go(Step.CLOSED, at)
        self._floor.since = at
        late = round_.close(at)
        for seat in round_.seats:
            if seat in round_.bots and seat in round_.throws:
                self._lock(round_, seat, at)
        for stamp, seat in late:
            self._refuse(round_, stamp, seat, "late")

    def pass_deadline(self, at: Instant) -> None:
        """The countdown has run out."""
        if self.round is not None:
            self._close(self.round, at)

    def end_standstill(self, at: Instant) -> None:
        """Players see the clock again: the round that they did not see is broken off."""
        still = self.standstills.pop(0)
        if self._floor.phase in ROUND_IN_PLAY and self.round is not None:
            self.round.closed = still.at
            self._break_off(self.round, at, "gap")
            self.open_round(Step.REOPENED, at)

    def open_round(self, step: Step, at: Instant) -> None:
        """The next round opens, under the next number, unless the match is void by idle at this instant."""
        match = self.match
        if match is None:
            raise IllegalAction("a round cannot be opened without a match")
        if self._floor.phase is Phase.RESUME:
            self.last_throw = at
        if self.last_throw + self._settings.idle <= at:
            # At one instant the match is void before its next round opens.
            self._on_idle(at)
            return
        match.round += 1
        seats = ahyoheek.may_throw(match.state)
        round_ = self.round = Round(match.round, seats, at, bool(match.state.tied))
        if bots := [seat for seat in seats if seat in self._floor.seating.bots()]:
            round_.bots = self._bots.decide(bots, match.state, match.rounds)
        self._pace_bots_alone(round_, at)
        self._floor.go(step, at)
        self._floor.emit(ev.RoundOpened(at, match.id, match.round, seats))
        if self._settings.timer == "fixed":
            self._start_countdown(round_, at, at + self._settings.countdown)

    def _pace_bots_alone(self, round_: Round, at: Instant) -> None:
        """If no person may throw in the round that is open, or none any more, nobody waits for one."""
        if round_.pace is None and round_.of_bots_alone and self._settings.timer == "first_throw":
            round_.pace = pace_alone(max(at, round_.opened + self._settings.guard))

    def _start_countdown(self, round_: Round, at: Instant, deadline: Instant) -> None:
        round_.deadline = deadline
        if round_.pace is None:
            round_.pace = pace_of_countdown(at, round_.opened + self._settings.guard, deadline)
        self._floor.go(Step.COUNTDOWN_STARTED, at)
        self._floor.emit(ev.CountdownStarted(at, self._match_id(), round_.number, deadline))

    def compare(self, at: Instant) -> None:
        """The round has settled: compare, reveal, judge, and let go who leaves by it."""
        match, round_ = self.match, self.round
        if match is None or round_ is None:
            raise IllegalAction("there is no round to compare")
        throws = round_.counting()
        before: MatchState = match.state
        match.state = ahyoheek.apply(before, ahyoheek.RoundClosed(throws))
        score = match.state.score
        leave_after, self.leave_after = self.leave_after, []
        missed = [seat for seat in ahyoheek.missed_out(match.state) if self._floor.seating.person_at(seat)]
        leaving = dict.fromkeys(missed, "missed")
        leaving |= dict.fromkeys(leave_after, "leave")
        if score is None or score.void:
            self._break_off(round_, at, "throws")
        else:
            self._reveal(match, round_, throws, score, at)
        if match.state.outcome is not None:
            self._decide(match, at)
        else:
            if match.state.tied and not before.tied:
                self._floor.emit(ev.SuddenDeath(at, match.id, match.state.tied))
            if round_.score is not None:
                self._floor.go(Step.REVEALED, at)
        if leaving:
            self.stand_up(leaving, at)
        if self._floor.phase is Phase.SETTLE:
            self.open_round(Step.REOPENED, at)

    def _reveal(
        self, match: Match, round_: Round, throws: dict[Seat, Kind], score: ahyoheek.RoundScore, at: Instant
    ) -> None:
        round_.score = score
        round_.revealed = {seat: throws.get(seat) for seat in round_.seats}
        self._closed_rounds.append((match.id, round_))
        match.rounds.append(round_.revealed)
        self._floor.emit(
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
        self._closed_rounds.append((self._match_id(), round_))
        self._floor.emit(ev.RoundVoid(at, self._match_id(), round_.number, reason))

    # Ends

    def _decide(self, match: Match, at: Instant) -> None:
        """The match has an outcome: say so, and show it."""
        outcome = match.state.outcome
        if isinstance(outcome, Won):
            self._win(match, outcome, at)
        elif isinstance(outcome, Void):
            self._floor.emit(ev.MatchVoid(at, match.id, outcome.reason))
        self._floor.go(Step.MATCH_DECIDED, at)

    def _win(self, match: Match, won: Won, at: Instant) -> None:
        result = self._points.settle(match, won, self._settings.economy, at)
        self._floor.emit(
            ev.MatchWon(at, match.id, won.seat, won.by, match.state.revealed, deltas_by_seat(result))
        )
        self._floor.report(result)

    def stand_up(self, reasons: Mapping[Seat, str], at: Instant) -> None:
        """Seats stand up at one instant, and what follows from it is judged once all are gone."""
        seats = self._floor.vacate(reasons, at)
        match = self.match
        if match is not None and match.state.outcome is None:
            self._forfeit(match, seats, at)

    def _forfeit(self, match: Match, seats: tuple[Seat, ...], at: Instant) -> None:
        before = match.state
        match.leave(seats)
        round_ = self.round
        in_play = self._floor.phase in ROUND_OPEN and round_ is not None
        if in_play and round_ is not None:
            round_.withdraw(seats, at)
            self._pace_bots_alone(round_, at)
        if match.state.outcome is not None:
            self._decide(match, at)
        elif before.tied and not set(before.tied) - set(seats):
            compared = bool(self._closed_rounds) and self._closed_rounds[-1][1] is round_
            broken_off = in_play and not compared and round_ is not None
            if broken_off and round_ is not None:
                round_.closed = at
                self._break_off(round_, at, "throws")
            if match.state.tied:
                self._floor.emit(ev.SuddenDeath(at, match.id, match.state.tied))
            if broken_off:
                self.open_round(Step.REOPENED, at)

    def rest(self) -> None:
        """Nobody has played for so long that no edge can belong to a round of then: forget the rounds."""
        self._closed_rounds.clear()

    def abandon(self) -> None:
        """Nothing of the match is left on the table."""
        self.match = self.round = None
        self.leave_after = []

    def _match_id(self) -> str:
        return self.match.id if self.match is not None else ""
