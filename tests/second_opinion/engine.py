"""A second opinion: Ahyoheek's rules written once more, from the specification alone.

Nothing here knows how the table does it. A story goes in, the events that the specification demands come
out, for a comparison with what the table really says. The style is the plainest there is: all edges are
known beforehand (`contacts`); after that one loop goes
from instant to instant, takes presses, then claims and the operator, then holds, then timers.

It is one long module on purpose: it is read from top to bottom beside the specification.

Left out: power cuts, and edges that are delivered late. Times are integer nanoseconds inside and integer
microseconds in the events; the ids of matches are not said. Where the specification is silent the table's
own choice is followed, and a comment that begins with "Silent:" says so.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from heek.simulator.steps import Claim, End, Operator, Stall
from heek.simulator.story import Story
from tests.second_opinion.contacts import NEVER, Closure, Contacts, Notice
from tests.second_opinion.keys import Keys

Event: TypeAlias = dict[str, Any]


def events_of(story: Story) -> list[Event]:
    """Every event that the story must cause, up to its end, without `seq` and ids; times in microseconds."""
    return _Table(story).play()


class _Player:
    """Who sits at a seat."""

    def __init__(self) -> None:
        self.account: str | None = None
        self.confirmed = True
        self.ready = False
        # In a match:
        self.stake = 0
        self.collection = {"pen": 0, "page": 0, "beetle": 0}
        self.missed = 0


class _Table:
    def __init__(self, story: Story) -> None:
        self.story = story
        self.events: list[Event] = []
        self.now = 0
        self.keys = Keys(story)
        self.contacts = Contacts(story)
        self.stalls = self.standstills()
        # The session.
        self.phase = "lobby"
        """lobby (attract is a lobby without seats), throw (countdown too), settle, reveal, over."""
        self.seats: dict[int, _Player] = {}
        self.points: dict[str, int] = {}
        self.last_seated = 0
        self.lobby_since = 0
        self.few_since = 0
        self.phase_ends = NEVER
        """Of settle, reveal and over."""
        # The match.
        self.round = 0
        self.in_round: list[int] = []
        self.sudden = False
        """The round is one of sudden death."""
        self.throws: dict[int, str] = {}
        self.history: dict[int, list[tuple[int, str]]] = {}
        """Every press that was a throw, for those that turn out to be none."""
        self.locked: set[int] = set()
        self.opened = 0
        self.opened_by_press = False
        self.deadline = NEVER
        self.closed = 0
        self.last_throw = 0
        self.revealed = 0
        self.winnerless = 0
        self.tied: list[int] = []
        self.deadlocked = 0
        self.leaving: list[int] = []
        """Those who left in the settle window."""
        self.pool: list[tuple[int, _Player]] = []
        """Everybody who ever staked in this match."""
        self.untold: list[Event] = []

    def standstills(self) -> list[tuple[int, int]]:
        """Begin and end of every stall that is longer than the gap; overlapping ones are one."""
        joined: list[tuple[int, int]] = []
        for step in self.story.steps:
            if isinstance(step, Stall):
                begin, end = step.at, step.at + step.duration
                if joined and begin <= joined[-1][1]:
                    joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
                else:
                    joined.append((begin, end))
        return [(begin, end) for begin, end in joined if end - begin > self.keys.span("table.gap_s")]

    def standing(self) -> tuple[int, int] | None:
        """The standstill that now lies in."""
        for begin, end in self.stalls:
            if begin < self.now <= end:
                return begin, end
        return None

    # -- the loop ---------------------------------------------------------------------------

    def play(self) -> list[Event]:
        presses = [closure for closure in self.contacts.closures if not closure.at_start_up]
        claims = [step for step in self.story.steps if isinstance(step, Claim)]
        resets = [step for step in self.story.steps if isinstance(step, Operator)]
        contacts = sorted(self.contacts.contact_events(), key=lambda item: (item[0], item[2].place()))
        leaves = self.contacts.leaves()
        ends = [step.at for step in self.story.steps if isinstance(step, End)]
        end = ends[0] if ends else NEVER
        self.say("table_started", name=self.keys.value("table.name"))
        while True:
            waiting = [press.start for press in presses[:1]]
            waiting += [step.at for step in [*claims[:1], *resets[:1]]]
            waiting += [item[0] for item in contacts[:1]] + [item[0] for item in leaves[:1]]
            waiting.append(self.next_timer())
            if min(waiting) >= min(end, NEVER):
                return self.events
            self.now = max(self.now, min(waiting))
            while presses and presses[0].start <= self.now:
                press = presses.pop(0)
                for item in [item for item in contacts if item[0] <= self.now]:
                    healed_by_press = isinstance(item[2], Notice) and item[2].start == press.start
                    same = (item[2].seat, item[2].button) == (press.seat, press.button)
                    if same and not healed_by_press:
                        contacts.remove(item)
                        self.tell_contact(*item[1:])
                self.press(press)
            while contacts and contacts[0][0] <= self.now:
                _, name, closure = contacts.pop(0)
                self.tell_contact(name, closure)
            gone = []
            while leaves and leaves[0][0] <= self.now:
                gone.append(leaves.pop(0)[1])
            if self.phase == "throw" and self.throws and self.deadline == NEVER:
                self.start_countdown()
            # Silent: who leaves at the instant at which all have thrown is gone before the close.
            self.leave(gone)
            if self.phase == "throw":
                self.maybe_close()
            if self.phase == "lobby" and self.at_once():
                self.start_match()
                self.opened_by_press = True
            # Silent: holds and contacts are gestures, so they come with the edges, before the operator.
            while claims and claims[0].at <= self.now:
                self.claim(claims.pop(0))
            while resets and resets[0].at <= self.now:
                resets.pop(0)
                self.reset()
            while self.next_timer() <= self.now:
                self.timer()
            self.tell_untold()

    def say(self, event: str, **fields: Any) -> None:
        self.events.append({"at": self.now // 1000, "event": event, **fields})

    def tell_contact(self, name: str, closure: Closure | Notice) -> None:
        fields: dict[str, Any] = {"seat": closure.seat, "button": closure.button}
        if isinstance(closure, Notice) and closure.fault is not None:
            fields["fault"] = closure.fault
        running = self.phase in ("throw", "settle") and closure.seat in self.in_round
        contact = (closure.seat, closure.button)
        behind = any((each["seat"], each["button"]) == contact for each in self.untold)
        if behind or (running and closure.start >= self.opened and not closure.at_start_up):
            self.untold.append({"event": name, **fields})
        else:
            self.say(name, **fields)
        if isinstance(closure, Notice):
            for press in closure.revoked:
                self.revoke(press)

    def revoke(self, press: Closure) -> None:
        """A press of the running round was none; what came of it besides its throw stays."""
        mine = self.history.get(press.seat, [])
        if self.phase not in ("throw", "settle") or (press.start, press.button) not in mine:
            return
        mine.remove((press.start, press.button))
        if mine:
            self.throws[press.seat] = mine[-1][1]
        else:
            del self.throws[press.seat]
        at = max(press.start // 1000, self.events[-1]["at"])
        self.events.append({"at": at, "event": "press_ignored", "seat": press.seat, "reason": "flood"})

    def tell_untold(self) -> None:
        """Silent: what was kept back for a round comes last at the instant at which that round ended."""
        if self.phase not in ("throw", "settle") or self.opened == self.now:
            for event in self.untold:
                self.say(**event)
            self.untold = []

    # -- presses ----------------------------------------------------------------------------

    def press(self, press: Closure) -> None:
        seat = press.seat
        if press.reason is not None:
            self.ignore(seat, press.reason)
        elif self.phase == "lobby":
            self.press_in_lobby(seat)
        elif self.phase == "over":
            self.ignore(seat, "match_closed" if seat in self.seats else "not_seated")
        elif self.watches(seat):
            self.ignore(seat, "not_in_round")
        elif seat not in self.seats:
            if self.phase == "reveal" and self.keys.value("seats.late_join") and not self.tied:
                self.take(seat)
                self.enter_match(seat)
            else:
                self.ignore(seat, "not_seated")
        elif self.phase in ("throw", "settle") and self.now < self.opened + self.keys.span(
            "ahyoheek.guard_s"
        ):
            self.ignore(seat, "guard")
        elif self.phase == "throw":
            self.press_in_round(seat, press.button)
        else:
            self.ignore(seat, "late")

    def watches(self, seat: int) -> bool:
        """Whether others play sudden death without this seat.

        Silent: in the reveal the round that is shown decides, so sudden death begins with its first round.
        """
        return self.sudden and seat not in self.in_round

    def ignore(self, seat: int, reason: str) -> None:
        self.say("press_ignored", seat=seat, reason=reason)

    def press_in_lobby(self, seat: int) -> None:
        if seat not in self.seats:
            self.take(seat)
        elif not self.seats[seat].ready:
            player = self.seats[seat]
            if not player.confirmed:
                self.last_seated = self.now
            player.confirmed = player.ready = True
            self.say("seat_ready", seat=seat)

    def take(self, seat: int) -> None:
        self.seats[seat] = _Player()
        self.say("seat_taken", seat=seat, kind="guest")
        self.last_seated = self.now
        if len(self.seats) <= 1:
            self.few_since = self.now

    def press_in_round(self, seat: int, button: str) -> None:
        if self.standing():
            self.ignore(seat, "late")
        elif seat in self.throws and not self.keys.value("ahyoheek.allow_change"):
            self.ignore(seat, "locked")
        else:
            self.throws[seat] = button
            self.history.setdefault(seat, []).append((self.now, button))
            self.last_throw = self.now
            if seat not in self.locked:
                self.locked.add(seat)
                self.say("throw_locked", seat=seat)

    def start_countdown(self) -> None:
        self.deadline = self.now + self.keys.span("ahyoheek.countdown_s")
        self.say("countdown_started", round=self.round, deadline=self.deadline // 1000)

    def maybe_close(self) -> None:
        if not self.standing() and all(seat in self.throws for seat in self.in_round):
            self.close()

    def close(self) -> None:
        self.phase = "settle"
        self.closed = self.now
        self.phase_ends = self.now + self.keys.span("ahyoheek.settle_s")

    # -- lobby ------------------------------------------------------------------------------

    def claim(self, claim: Claim) -> None:
        self.seats[claim.seat].account = claim.player
        self.say("seat_claimed", seat=claim.seat, player=claim.player, name=claim.name)

    def lobby_starts_at(self) -> int:
        """When the match begins, if nobody does anything; NEVER with an unconfirmed seat or fewer than two.

        Silent: "at once" comes after everything else of its instant, so who leaves then does not play.
        """
        players = list(self.seats.values())
        if len(players) < 2 or not all(player.confirmed for player in players):
            return NEVER
        return self.now if self.at_once() else self.last_seated + self.keys.span("seats.lobby_s")

    def at_once(self) -> bool:
        players = list(self.seats.values())
        confirmed = all(player.confirmed for player in players)
        return (
            len(players) >= 2 and confirmed and (len(players) == 5 or all(player.ready for player in players))
        )

    def start_match(self) -> None:
        self.pool = []
        self.revealed = self.winnerless = self.round = 0
        self.tied = []
        self.last_throw = self.now
        for seat in sorted(self.seats):
            self.enter_match(seat)
        self.say(
            "match_started",
            game="ahyoheek",
            seats=sorted(self.seats),
            stakes={str(seat): self.seats[seat].stake for seat in sorted(self.seats)},
        )
        self.open_round()

    def enter_match(self, seat: int) -> None:
        player = self.seats[seat]
        player.collection = {"pen": 0, "page": 0, "beetle": 0}
        player.missed = 0
        player.stake = 0
        if player.account is not None:
            points = self.points.setdefault(player.account, 100)
            player.stake = rank(points)
        self.pool.append((seat, player))

    # -- rounds -----------------------------------------------------------------------------

    def open_round(self) -> None:
        self.phase = "throw"
        self.round += 1
        self.sudden = bool(self.tied)
        self.in_round = sorted(self.tied or self.seats)
        self.throws = {}
        self.history = {}
        self.locked = set()
        self.leaving = []
        self.opened = self.now
        self.opened_by_press = False
        self.deadline = NEVER
        self.say("round_opened", round=self.round, seats=list(self.in_round))
        if self.keys.value("ahyoheek.timer") == "fixed":
            self.start_countdown()

    def end_round(self) -> None:
        """The settle window is over: compare."""
        if len(self.throws) < 2:
            self.say("round_void", round=self.round, reason="throws")
            winners: list[int] = []
        else:
            winners = self.reveal()
        if not self.decide(winners):
            if self.last_throw + self.keys.span("ahyoheek.idle_s") > self.now:
                self.stand_up_after_round()
            else:
                self.void_by_idle()  # at this very instant, so no further round opens
        else:
            self.really_leave(sorted(self.leaving))

    def reveal(self) -> list[int]:
        points = {}
        for seat, throw in self.throws.items():
            others = [other for name, other in self.throws.items() if name != seat]
            points[seat] = sum(self.beats(throw, other) - self.beats(other, throw) for other in others)
        best = max(points.values())
        winners = sorted(seat for seat in points if points[seat] == best and best > 0)
        self.revealed += 1
        if not self.tied:
            for seat in winners:
                self.seats[seat].collection[self.throws[seat]] += 1
        self.say(
            "round_revealed",
            round=self.round,
            closed=self.closed // 1000,
            throws={str(seat): self.throws.get(seat) for seat in self.in_round},
            points={str(seat): points[seat] for seat in points},
            winners=winners,
            collections={str(seat): dict(self.seats[seat].collection) for seat in self.seats},
        )
        return winners

    def beats(self, one: str, other: str) -> bool:
        order = self.keys.value("ahyoheek.cycle").split("-")
        return bool(order[(order.index(one) + 1) % 3] == other)

    def decide(self, winners: list[int]) -> bool:
        """Whether the round ended the match."""
        if self.tied:
            if winners:
                self.tied = winners
                if len(winners) == 1:
                    self.win(winners[0], "sudden_death")
                    return True
                return False
            self.deadlocked += 1
            if self.deadlocked == self.keys.value("ahyoheek.sudden_death_limit"):
                self.void("sudden_death_limit")
                return True
            return False
        if winners:
            self.winnerless = 0
            return self.rules_one_and_two()
        self.winnerless += 1
        if self.winnerless == self.keys.value("ahyoheek.winnerless_limit"):
            self.void("winnerless_limit")
            return True
        return False

    def rules_one_and_two(self) -> bool:
        """Whether somebody has won; begins sudden death when the greatest total is shared."""
        full = [
            seat
            for seat in sorted(self.seats)
            if max(self.seats[seat].collection.values()) >= self.keys.value("ahyoheek.target")
        ]
        if not full:
            return False
        totals = {seat: sum(self.seats[seat].collection.values()) for seat in full}
        best = [seat for seat in full if totals[seat] == max(totals.values())]
        if len(best) == 1:
            self.win(best[0], "three" if len(full) == 1 else "total")
            return True
        self.tied = best
        self.deadlocked = 0
        self.say("sudden_death", seats=best)
        return False

    def stand_up_after_round(self) -> None:
        void = len(self.throws) < 2
        limit = self.keys.value("ahyoheek.missed_limit")
        missing = []
        for seat in self.in_round:
            if seat in self.throws:
                # Silent: a throw in a round that is broken off leaves the count, as that round does.
                self.seats[seat].missed = 0
            else:
                self.seats[seat].missed += 1
                if limit and self.seats[seat].missed >= limit:
                    missing.append(seat)
        self.phase = "reveal"
        self.phase_ends = NEVER if void else self.now + self.keys.span("ahyoheek.reveal_s")
        for seat in sorted({*missing, *self.leaving}):
            self.stand_up(seat, "leave" if seat in self.leaving else "missed")  # Silent: which one of both
        self.leaving = []
        if not self.judge_who_is_left() and void:
            self.open_round()

    def judge_who_is_left(self) -> bool:
        """After somebody stood up in a match; whether that ended it."""
        was_tied = bool(self.tied)
        self.tied = [seat for seat in self.tied if seat in self.seats]
        if not self.seats:
            self.void("empty")
            return True
        if was_tied and len(self.tied) == 1:
            self.win(self.tied[0], "sudden_death")
            return True
        if len(self.seats) == 1:
            if self.revealed:
                self.win(next(iter(self.seats)), "walkover")
            else:
                self.void("empty")
            return True
        if was_tied and not self.tied:
            if self.phase in ("throw", "settle"):
                self.say("round_void", round=self.round, reason="throws")
            if self.rules_one_and_two():
                return True
            if self.phase in ("throw", "settle"):
                self.open_round()
        return False

    # -- ends of a match --------------------------------------------------------------------

    def win(self, winner: int, by: str) -> None:
        won = next(player for seat, player in self.pool if player is self.seats[winner])
        deltas = {str(seat): 0 for seat, _ in self.pool}
        for seat, player in self.pool:
            if won.account is None or player is won:
                continue
            deltas[str(winner)] += player.stake
            self.points[won.account] += player.stake
            if self.keys.value("ahyoheek.economy") == "stake" and player.account is not None:
                deltas[str(seat)] -= player.stake
                self.points[player.account] -= player.stake
        self.say("match_won", seat=winner, by=by, rounds=self.revealed, deltas=deltas)
        self.match_over()

    def void(self, reason: str) -> None:
        self.say("match_void", reason=reason)
        self.match_over()

    def match_over(self) -> None:
        self.phase = "over"
        self.phase_ends = self.now + self.keys.span("ahyoheek.match_over_s")
        self.tied = []

    def everybody_stands_up(self, reason: str) -> None:
        for seat in sorted(self.seats):
            self.stand_up(seat, reason)
        self.phase = "lobby"
        self.phase_ends = NEVER
        self.tied = []

    def stand_up(self, seat: int, reason: str) -> None:
        del self.seats[seat]
        if len(self.seats) == 1:
            self.few_since = self.now
        self.say("seat_left", seat=seat, reason=reason)

    # -- leaving, operator, timers ----------------------------------------------------------

    def leave(self, seats: list[int]) -> None:
        seats = [seat for seat in seats if seat in self.seats]
        if not seats:
            return
        if self.phase == "settle":
            self.leaving += seats
            return
        self.really_leave(seats)

    def really_leave(self, seats: list[int]) -> None:
        for seat in seats:
            self.stand_up(seat, "leave")
            self.throws.pop(seat, None)
            if seat in self.in_round:
                self.in_round.remove(seat)
        if not seats:
            return
        if self.phase in ("throw", "reveal"):
            in_play = self.phase == "throw"
            number = self.round
            if not self.judge_who_is_left() and in_play and number == self.round:
                self.maybe_close()

    def reset(self) -> None:
        if self.phase in ("throw", "settle", "reveal"):
            self.say("match_void", reason="operator")
        self.everybody_stands_up("operator")

    def next_timer(self) -> int:
        due = []
        if self.phase == "lobby" and self.seats:
            due.append(self.lobby_starts_at())
            if len(self.seats) < 2:
                due.append(self.few_since + self.keys.span("seats.lobby_idle_s"))
            if not all(player.confirmed for player in self.seats.values()):
                due.append(self.lobby_since + self.keys.span("seats.rematch_s"))
        if self.phase in ("settle", "reveal", "over"):
            due.append(self.phase_ends)
        if self.phase in ("throw", "settle", "reveal"):
            due.append(self.last_throw + self.keys.span("ahyoheek.idle_s"))
        if self.phase == "throw":
            due.append(self.deadline_seen())
            due += [end for _, end in self.stalls if end >= self.now and self.opened_within(end)]
        return min(due, default=NEVER)

    def opened_within(self, end: int) -> bool:
        """Whether the running round was there when a standstill ended.

        Silent: at that instant it ends after what presses cause, and before timers.
        """
        return self.opened < end or (self.opened == end and self.opened_by_press)

    def deadline_seen(self) -> int:
        """The deadline, unless it falls into a standstill."""
        if any(begin < self.deadline <= end for begin, end in self.stalls):
            return NEVER
        return self.deadline

    def timer(self) -> None:
        idle = self.last_throw + self.keys.span("ahyoheek.idle_s")
        if self.phase == "lobby":
            self.lobby_timer()
        elif self.phase == "settle" and self.phase_ends <= self.now:
            self.end_round()
        elif self.phase == "reveal" and self.phase_ends <= self.now:
            self.open_round()
        elif self.phase == "over":
            self.phase = "lobby"
            self.lobby_since = self.few_since = self.now
            for player in self.seats.values():
                player.confirmed = player.ready = False
        elif self.phase == "throw" and any(
            end == self.now and self.opened_within(end) for _, end in self.stalls
        ):
            self.say("round_void", round=self.round, reason="gap")
            if idle > self.now:
                self.open_round()
            else:
                self.void_by_idle()
        elif self.phase == "throw" and self.deadline_seen() <= self.now:
            self.close()
        else:
            self.void_by_idle()

    def void_by_idle(self) -> None:
        self.say("match_void", reason="idle")
        self.everybody_stands_up("idle")

    def lobby_timer(self) -> None:
        late = [seat for seat in sorted(self.seats) if not self.seats[seat].confirmed]
        if late and self.lobby_since + self.keys.span("seats.rematch_s") <= self.now:
            for seat in late:
                self.stand_up(seat, "rematch")
        elif len(self.seats) < 2:
            for seat in sorted(self.seats):
                self.stand_up(seat, "idle")
        else:
            self.start_match()


def rank(points: int) -> int:
    """The rank of a player with so many ranking-points, which is the stake."""
    if points <= 0:
        return 0
    n = 1
    while points > 100 + 50 * n * (n + 1):
        n += 1
    return min(n, points)
