"""Edges of contacts to presses and holds: debounce, chord, noise, stuck, all as a function of stamps.

What a contact is. Each of up to fifteen contacts is *open* or *closed* by its last edge, and *down* or
up by debounce: it goes down with a press (`heek.stations.contacts` says which closing is one) and comes up
when it has been open without a break for `debounce`. So bounce on closing or opening adds nothing, a short
opening ends no hold, and no press is ever delayed by its own bounce.

Who waits for whom. A press is judged `chord` after it closed, because only then is it known whether
other buttons closed with it: two of one seat within `chord` are none (`chord`), six over the table are none
(`noise`, which goes first: it is no seat's doing). Whole seconds of holding are judged from the same
stamps, so everything that comes out of here comes in the order of its stamps, `chord` behind the clock.
When a partner is delivered later than that, the press that was given out is revoked.

Deadlines that fall into an opening. When a hold would be complete while a contact is open for less than
`debounce`, nobody can know yet whether the hold goes on. It is decided by the next edge: closed again in
time, it is complete at that edge; otherwise it ended when the contact opened.

Who is set aside. A contact that is closed when the program starts might be a player or a bag on the
button; it is `stuck` until it opens, and so is one that is closed for longer than `stuck`. A contact that
floods (`heek.stations.contacts`) is ignored until it is quiet; what it had given out as presses since it
began to be too fast is revoked, for no finger made them. A station whose buttons close together again and
again, more often than a flat hand can drum, is crosstalk: all its buttons that took part are set aside.
Ignored contacts are as good as absent: they make no chord with the seat's other buttons, no noise, no hold.
A worn switch is told of and goes on counting. One contact has one trouble at a time; `HealReported` ends it.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import msgspec

from heek.clock import SECOND, Duration, Instant
from heek.kinds import KINDS, Kind, Seat
from heek.session.inputs import (
    ButtonHeld,
    FaultReported,
    HealReported,
    Input,
    LeaveAbandoned,
    LeaveHeld,
    LeaveWarned,
    PressDiscarded,
    Pressed,
    PressRevoked,
    StuckReported,
)
from heek.session.settings import GestureSettings
from heek.stations.contacts import (
    PRESSES,
    QUIET,
    Gauge,
    Past,
    Reading,
    Sense,
    Wear,
)
from heek.stations.contacts import Edge as Edge

LEAVE_WARNING: Final[Duration] = SECOND
"""From then on LED and OLED count down (spec/ahyoheek.md, "A match" 6)."""

NOISE_PRESSES: Final = 6
"""Presses within the chord time that no table of five players makes (spec/ahyoheek.md, "The clock")."""


CHORD_COST: Final[Duration] = SECOND // 30
CHORD_CREDIT: Final[Duration] = 30 * CHORD_COST
"""A flat hand drums ten times a second on three buttons for as long as it likes; see `Gauge`."""

Reason: TypeAlias = str
"""Why an edge or a press came to nothing; `REASONS` has all of them."""

REASONS: Final[tuple[Reason, ...]] = (
    "bounce",
    "chord",
    "noise",
    "stuck",
    "flood",
    "repeated",
    "lost",
    "too_old",
)
"""Closed too soon after opening; closed with others (two reasons); an edge of a contact that is set aside
(two); it said what was known; not rejected, but an opening before it never came; delivered so late that
nobody remembers what was before it."""

Rejected: TypeAlias = Mapping[tuple[Seat, Kind, Reason], int]

_REASON_OF: Final = {
    Sense.BOUNCE: "bounce",
    Sense.REPEATED: "repeated",
    Sense.FLOOD: "flood",
    Sense.PRESS_AFTER_LOSS: "lost",
    Sense.OPENING_READ: "lost",
}


class ContactAtRest(msgspec.Struct, frozen=True, array_like=True):
    """A contact that nobody has touched for a second: open, or stuck. Its gauges are empty by then."""

    seat: Seat
    button: Kind
    stuck: bool
    changed_at: Instant
    last_at: Instant
    pressed_at: Instant | None
    was_open: bool
    wear: Wear | None
    presses: int
    long_bounces: tuple[int, ...]


@dataclass(slots=True)
class _Contact:
    seat: Seat
    button: Kind
    reading: Reading
    past: Past
    down_since: Instant | None = None
    """When the press began that still holds the contact down; None: up."""
    stuck: bool = False
    alone: bool = True
    """No other working button of the seat has been closed during this press."""
    held_reported: bool = False
    quiet_at: Instant = 0
    """Flooding: when to look whether it has been quiet."""

    @property
    def closed(self) -> bool:
        return self.reading.closed

    @property
    def changed_at(self) -> Instant:
        return self.reading.changed_at

    @property
    def flooding(self) -> bool:
        return self.reading.wear is Wear.FLOOD

    def floods_at(self, at: Instant) -> bool:
        """It is set aside, and an edge at `at` finds it so."""
        return self.flooding and (self.closed or at <= self.reading.last_at + QUIET)

    @property
    def holding(self) -> bool:
        """Down, working, and closed at this very moment."""
        return self.closed and not self.stuck and self.down_since is not None


_Deadline: TypeAlias = "tuple[Instant, _Station, _Contact | None, str]"
"""When, where, at which contact (None: the two outer ones together), and what."""


@dataclass(slots=True)
class _Station:
    seat: Seat
    contacts: dict[Kind, _Contact]
    warned: bool = False
    left: bool = False
    """This hold has made the seat leave already."""
    deadline: _Deadline | None = None
    """What happens next here if no edge comes; worked out anew whenever something has changed."""
    chords: Gauge = field(default_factory=lambda: Gauge(CHORD_COST, CHORD_CREDIT))


@dataclass(slots=True, eq=False)
class _Press:
    at: Instant
    seat: Seat
    button: Kind
    counted: bool = False
    """It was given out as a press."""


class Gestures:
    """The contacts of one table; feed it edges, ask it for gestures.

    `closed` are the contacts that were closed at start-up, `now` the instant of start-up. A contact
    that is open then has been open since that instant, as far as anybody knows.
    """

    def __init__(
        self,
        settings: GestureSettings,
        seats: Iterable[Seat],
        *,
        closed: Iterable[tuple[Seat, Kind]] = (),
        now: Instant = 0,
    ) -> None:
        self._settings = settings
        self._stations = {
            seat: _Station(seat, {kind: self._new_contact(seat, kind, now) for kind in KINDS})
            for seat in seats
        }
        self._rejected: Counter[tuple[Seat, Kind, Reason]] = Counter()
        self.flooding: frozenset[tuple[Seat, Kind]] = frozenset()
        """The contacts that are ignored because they flood; may be looked at from any thread."""
        self._pending: list[Edge] = []
        self._recent: list[_Press] = []
        self._done_until = now
        self._out: list[Input] = []
        for seat, button in sorted(closed, key=lambda each: (each[0], KINDS.index(each[1]))):
            contact = self._stations[seat].contacts[button]
            contact.reading.closed, contact.reading.was_open = True, False
            contact.past.forget(contact.reading)
            contact.down_since, contact.stuck = now, True
            self._out.append(StuckReported(now, seat, button, now))
        for station in self._stations.values():
            self._look_ahead(station)

    def _new_contact(self, seat: Seat, kind: Kind, now: Instant) -> _Contact:
        reading = Reading(self._settings.debounce, False, now, now)
        return _Contact(seat, kind, reading, Past(reading))

    def ignores(self, edge: Edge) -> bool:
        """Its contact floods, and the edge will find it so; raises KeyError for a seat without a station."""
        return self._stations[edge.seat].contacts[edge.button].floods_at(edge.at)

    def feed(self, edge: Edge) -> None:
        """Take an edge in, in any order of delivery; raises KeyError for a seat without a station."""
        if self.ignores(edge):
            # It means nothing, so nobody has to be woken for it.
            self._take(edge)
        else:
            insort(self._pending, edge)

    def due(self) -> Instant | None:
        """The stamp of the next thing that will come out if no edge is fed; None: nothing will."""
        deadline = self._next_deadline()
        stamps = [] if deadline is None else [deadline[0]]
        if self._pending:
            stamps.append(self._pending[0].at)
        if self._out:
            stamps.append(self._out[0].at)
        return min(stamps, default=None)

    @property
    def rejected(self) -> Rejected:
        """How many edges and presses came to nothing since the start, by seat, button and reason.

        It names buttons: nobody outside may see it change while a round runs.
        """
        return {key: count for key, count in self._rejected.items() if count}

    def closed_contacts(self) -> list[tuple[Seat, Kind]]:
        """The contacts that are closed by the edges taken up to now."""
        return [
            (contact.seat, contact.button)
            for station in self._stations.values()
            for contact in station.contacts.values()
            if contact.closed
        ]

    @property
    def idle(self) -> bool:
        """Nothing is fed and waiting, and no working contact is down."""
        return not self._pending and not any(
            contact.down_since is not None and not contact.stuck
            for station in self._stations.values()
            for contact in station.contacts.values()
        )

    def rest(self) -> tuple[ContactAtRest, ...] | None:
        """How the contacts are when nobody has touched one for a second; None: somebody has, or does.

        From here on nothing that comes late is put before that. A contact that floods is never at rest.
        """
        contacts = [each for station in self._stations.values() for each in station.contacts.values()]
        still = all(each.stuck if each.closed else each.down_since is None for each in contacts)
        if not still or self.flooding or self._pending or self._recent or self._out:
            return None
        for each in contacts:
            each.past.forget(each.reading)
        return tuple(
            ContactAtRest(
                each.seat,
                each.button,
                each.stuck,
                each.reading.changed_at,
                each.reading.last_at,
                each.reading.pressed_at,
                each.reading.was_open,
                each.reading.wear,
                each.reading.presses,
                each.reading.long_bounces,
            )
            for each in contacts
        )

    def take_up_rest(self, contacts: Iterable[ContactAtRest], until: Instant) -> None:
        """Go on where others rested, which had come to `until`."""
        self._done_until = until
        for each in contacts:
            contact = self._stations[each.seat].contacts[each.button]
            contact.stuck = each.stuck
            contact.reading = Reading(
                self._settings.debounce,
                each.stuck,
                each.changed_at,
                each.last_at,
                each.pressed_at,
                each.wear,
                each.was_open,
                presses=each.presses,
                long_bounces=each.long_bounces,
            )
            contact.past.forget(contact.reading)
            contact.down_since = contact.changed_at if each.stuck else None
        for station in self._stations.values():
            self._look_ahead(station)

    def advance(self, until: Instant) -> list[Input]:
        """Everything that happened up to and including `until`, in the order of its stamps.

        `until` must lie `chord` behind the clock; an edge that is fed later with an earlier stamp comes
        out at the next call with its own stamp.
        """
        while True:
            edge_at = self._pending[0].at if self._pending else None
            deadline = self._next_deadline()
            if edge_at is not None and edge_at <= until and (deadline is None or edge_at <= deadline[0]):
                self._take(self._pending.pop(0))
            elif deadline is not None and deadline[0] <= until:
                self._fire(*deadline)
                self._look_ahead(deadline[1])
            else:
                break
        self._done_until = max(self._done_until, until)
        horizon = self._done_until - SECOND
        if self._recent and self._recent[0].at < horizon:
            self._recent = [press for press in self._recent if press.at >= horizon]
        out, self._out = self._out, []
        return out

    # Contacts

    def _take(self, edge: Edge) -> None:
        station = self._stations[edge.seat]
        contact = station.contacts[edge.button]
        reading = contact.reading
        if reading.wear is Wear.FLOOD:
            # Thousands a second may come of these: nothing is worked out for them (see "quiet").
            if not edge.read or reading.closed:
                self._count(contact, "flood")
                reading.take(edge)
            return
        if edge.at < reading.last_at:
            self._take_late(station, contact, edge)
            return
        before = reading.wear
        sense = reading.take(edge)
        if sense is Sense.NOTHING:
            return
        contact.past.add(edge, sense)
        self._count_sense(contact, sense, 1)
        if sense in PRESSES:
            if contact.down_since is not None:
                self._release(station, contact, edge.at)
            self._press(station, contact, edge.at)
        elif sense is Sense.BOUNCE and contact.down_since is None:
            # Closed again too soon to be a press (it can only be start-up): still it can stick.
            contact.down_since, contact.alone, contact.held_reported = edge.at, False, True
        self._report_wear(station, contact, before, edge.at)
        self._look_ahead(station)

    def _take_late(self, station: _Station, contact: _Contact, edge: Edge) -> None:
        """An edge from before others of its contact that are taken: all after it are read anew."""
        if edge.read:
            return
        placed = contact.past.place(edge)
        if placed is None:
            self._count(contact, "too_old")
            return
        before = contact.reading.wear
        contact.reading, changes = placed
        for sense, more in changes.senses.items():
            self._count_sense(contact, sense, more)
        if contact.down_since is not None and contact.reading.pressed_at is not None:
            contact.down_since = contact.reading.pressed_at
        for at in changes.lost:
            self._revoke_bounce(contact, at, edge.at)
        for at in changes.found:
            self._judge(station, contact, at)
        self._report_wear(station, contact, before, contact.reading.last_at)
        self._look_ahead(station)

    def _count_sense(self, contact: _Contact, sense: Sense, more: int) -> None:
        reason = _REASON_OF.get(sense)
        if reason is not None:
            self._count(contact, "stuck" if contact.stuck and reason == "bounce" else reason, more)

    def _count(self, contact: _Contact, reason: Reason, more: int = 1) -> None:
        self._rejected[contact.seat, contact.button, reason] += more

    def _press(self, station: _Station, contact: _Contact, at: Instant) -> None:
        contact.down_since, contact.held_reported = at, False
        others = [each for each in station.contacts.values() if each is not contact]
        contact.alone = not any(each.down_since is not None and not each.stuck for each in others)
        for each in others:
            each.alone = False
        self._judge(station, contact, at)

    def _judge(self, station: _Station, contact: _Contact, at: Instant) -> None:
        """Give a press out, or say why it is none."""
        press = _Press(at, contact.seat, contact.button)
        coming = self._coming(at + self._settings.chord)
        reason = self._verdict(press, [*self._recent, *coming])
        press.counted = reason is None
        self._out.append(
            Pressed(at, press.seat, press.button)
            if reason is None
            else PressDiscarded(at, press.seat, reason)
        )
        insort(self._recent, press, key=lambda each: each.at)
        if reason is not None:
            self._count(contact, reason)
            self._revoke_partners(press)
            if reason == "chord":
                self._judge_chords(station, at)

    # Switches that cannot be believed

    def _report_wear(self, station: _Station, contact: _Contact, before: Wear | None, at: Instant) -> None:
        wear = contact.reading.wear
        if wear is before or (contact.seat, contact.button) in self.flooding:
            return
        if wear is Wear.FLOOD:
            self._set_aside(station, contact, at)
            if contact.reading.press_gauge.spent_until > at + contact.reading.press_gauge.credit:
                self._revoke_flood(contact, at)
        elif contact.stuck:
            # It is ignored anyway, and has one trouble at a time.
            contact.reading.recover()
            contact.past.forget(contact.reading)
        elif wear is Wear.CHATTER:
            self._out.append(FaultReported(at, contact.seat, contact.button, wear.value, at))
        else:
            self._out.append(HealReported(at, contact.seat, contact.button, at))

    def _judge_chords(self, station: _Station, at: Instant) -> None:
        if not station.chords.add(at):
            return
        for contact in station.contacts.values():
            pressed_at = contact.reading.pressed_at
            if pressed_at is not None and pressed_at >= at - SECOND and not contact.flooding:
                contact.reading.wear = Wear.FLOOD
                self._set_aside(station, contact, at)
        station.chords.clear()

    def _set_aside(self, station: _Station, contact: _Contact, at: Instant) -> None:
        contact.stuck, contact.down_since, contact.quiet_at = False, None, at + QUIET
        contact.past.forget(contact.reading)
        self.flooding |= {(contact.seat, contact.button)}
        self._end_hold(station, contact, at)
        self._out.append(FaultReported(at, contact.seat, contact.button, Wear.FLOOD.value, at))

    def _revoke_flood(self, contact: _Contact, at: Instant) -> None:
        """What came since the contact began to be too fast was no finger either; a second back at most."""
        since = max(contact.reading.press_gauge.since, at - SECOND)
        for press in self._recent:
            if (
                press.counted
                and press.at >= since
                and (press.seat, press.button)
                == (
                    contact.seat,
                    contact.button,
                )
            ):
                self._revoke(press, at, "flood")

    def _look_for_quiet(self, contact: _Contact, at: Instant) -> None:
        reading = contact.reading
        if reading.closed:
            contact.quiet_at = at + QUIET
        elif reading.last_at + QUIET > at:
            contact.quiet_at = reading.last_at + QUIET
        else:
            reading.recover()
            contact.past.forget(reading)
            self.flooding -= {(contact.seat, contact.button)}
            self._out.append(HealReported(at, contact.seat, contact.button))

    # What closes with others

    def _revoke(self, press: _Press, at: Instant, reason: Reason) -> None:
        press.counted = False
        self._out.append(PressRevoked(max(at, press.at), press.seat, press.button, press.at, reason))

    def _revoke_bounce(self, contact: _Contact, pressed_at: Instant, at: Instant) -> None:
        """An edge that was delivered late shows that a press was bounce."""
        for press in self._recent:
            if (press.at, press.seat, press.button) == (pressed_at, contact.seat, contact.button):
                if press.counted:
                    self._revoke(press, at, "bounce")
                self._recent.remove(press)
                return

    def _revoke_partners(self, late: _Press) -> None:
        """A press that is delivered late can show that others, given out already, were none either."""
        for each in self._recent:
            if each.counted and abs(each.at - late.at) <= self._settings.chord:
                reason = self._verdict(each, [other for other in self._recent if other is not each])
                if reason is not None:
                    self._revoke(each, late.at, reason)
                    self._rejected[each.seat, each.button, reason] += 1

    def _verdict(self, press: _Press, others: list[_Press]) -> str | None:
        """Why a press counts as none beside those `others` that lie within `chord` before and after it."""
        chord = self._settings.chord
        near = [each for each in others if abs(each.at - press.at) <= chord]
        if not near:
            return None
        stamps = sorted([press.at, *(each.at for each in near)])
        for first in stamps:
            if first <= press.at <= first + chord and (
                sum(first <= stamp <= first + chord for stamp in stamps) >= NOISE_PRESSES
            ):
                return "noise"
        return "chord" if any(each.seat == press.seat for each in near) else None

    def _coming(self, until: Instant) -> list[_Press]:
        """The presses among the edges that are fed but not taken yet, up to and including `until`."""
        presses: list[_Press] = []
        readings: dict[tuple[Seat, Kind], Reading] = {}
        for edge in self._pending:
            if edge.at > until:
                break
            key = (edge.seat, edge.button)
            if key in self.flooding:
                continue
            reading = readings.get(key)
            if reading is None:
                reading = readings[key] = copy(self._stations[edge.seat].contacts[edge.button].reading)
            if edge.at >= reading.last_at and reading.take(edge) in PRESSES:
                presses.append(_Press(edge.at, edge.seat, edge.button))
        return presses

    def _release(self, station: _Station, contact: _Contact, at: Instant) -> None:
        contact.down_since = None
        if contact.stuck:
            contact.stuck = False
            self._out.append(HealReported(at, contact.seat, contact.button))
        self._end_hold(station, contact, at)

    def _end_hold(self, station: _Station, contact: _Contact, at: Instant) -> None:
        if contact.button is not Kind.PAGE:
            if station.warned:
                self._out.append(LeaveAbandoned(at, station.seat))
            station.warned = station.left = False

    # Deadlines

    def _next_deadline(self) -> _Deadline | None:
        found: _Deadline | None = None
        for station in self._stations.values():
            deadline = station.deadline
            if deadline is not None and (found is None or deadline[0] < found[0]):
                found = deadline
        return found

    def _look_ahead(self, station: _Station) -> None:
        """The earliest deadline of a station; of several at one instant the one that stands first."""
        station.deadline = min(self._deadlines(station), key=lambda each: each[0], default=None)

    def _deadlines(self, station: _Station) -> list[_Deadline]:
        contacts = station.contacts.values()
        settings = self._settings
        deadlines: list[_Deadline] = []
        for contact in contacts:
            if contact.flooding:
                deadlines.append((contact.quiet_at, station, contact, "quiet"))
            if contact.down_since is None:
                continue
            if not contact.closed:
                deadlines.append((contact.changed_at + settings.debounce, station, contact, "release"))
            elif not contact.stuck:
                # A closing edge after a short opening decides what fell into the opening.
                stuck_at = max(contact.down_since + settings.stuck, contact.changed_at)
                deadlines.append((stuck_at, station, contact, "stuck"))
                if contact.alone and not contact.held_reported:
                    held_at = max(contact.down_since + settings.hold, contact.changed_at)
                    deadlines.append((held_at, station, contact, "hold"))
        pen, beetle = station.contacts[Kind.PEN], station.contacts[Kind.BEETLE]
        if (
            not station.left
            and pen.holding
            and beetle.holding
            and pen.down_since is not None
            and beetle.down_since is not None
        ):
            since = max(pen.down_since, beetle.down_since)
            decided = max(pen.changed_at, beetle.changed_at)
            if not station.warned and settings.leave > LEAVE_WARNING:
                deadlines.append((max(since + LEAVE_WARNING, decided), station, None, "warn"))
            else:
                deadlines.append((max(since + settings.leave, decided), station, None, "leave"))
        return deadlines

    def _fire(self, at: Instant, station: _Station, contact: _Contact | None, name: str) -> None:
        if name == "release" and contact is not None:
            self._release(station, contact, at)
        elif name == "quiet" and contact is not None:
            self._look_for_quiet(contact, at)
        elif name == "stuck" and contact is not None:
            contact.stuck = True
            if contact.reading.wear is not None:
                contact.reading.recover()
                contact.past.forget(contact.reading)
            since = contact.down_since if contact.down_since is not None else at
            self._out.append(StuckReported(at, contact.seat, contact.button, since))
            if contact.button is not Kind.PAGE and station.warned:
                station.warned = False
                self._out.append(LeaveAbandoned(at, station.seat))
        elif name == "hold" and contact is not None:
            contact.held_reported = True
            self._out.append(ButtonHeld(at, contact.seat, contact.button))
        elif name == "warn":
            station.warned = True
            pen, beetle = station.contacts[Kind.PEN], station.contacts[Kind.BEETLE]
            since = max(pen.down_since or 0, beetle.down_since or 0)
            self._out.append(LeaveWarned(at, station.seat, since + self._settings.leave))
        else:
            station.left, station.warned = True, False
            self._out.append(LeaveHeld(at, station.seat))
