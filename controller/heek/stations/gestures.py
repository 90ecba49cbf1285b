"""Edges of contacts to presses and holds: debounce, chord, noise, stuck, all as a function of stamps.

What a contact is. Each of up to fifteen contacts is *open* or *closed* by its last edge, and *down* or
up by debounce: it goes down with the first closing edge and comes up when it has been open without a
break for `debounce`. A closing edge is a press if the contact had been open for `debounce` before it; its
time is that of this edge. So bounce on closing or opening adds nothing, a short opening ends no hold, and
no press is ever delayed by its own bounce.

Who waits for whom. A press is judged `chord` after it closed, because only then is it known whether
other buttons closed with it: two of one seat within `chord` are none (`chord`), six over the table are none
(`noise`, which goes first: it is no seat's doing). Whole seconds of holding are judged from the same
stamps, so everything that comes out of here comes in the order of its stamps, `chord` behind the clock.
When a partner is delivered later than that, the press that was given out is revoked.

Deadlines that fall into an opening. When a hold would be complete while a contact is open for less than
`debounce`, nobody can know yet whether the hold goes on. It is decided by the next edge: closed again in
time, it is complete at that edge; otherwise it ended when the contact opened.

What the table cannot show. A contact that is closed when the program starts might be a player or a bag on
the button; it is `stuck` until it opens. A worn switch that chatters for longer than `debounce` makes
presses, and nothing in the stamps tells them from a player's.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from heek.clock import SECOND, Duration, Instant
from heek.kinds import KINDS, Kind, Seat
from heek.session.inputs import (
    ButtonHeld,
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

LEAVE_WARNING: Final[Duration] = SECOND
"""From then on LED and OLED count down (spec/ahyoheek.md, "A match" 6)."""

NOISE_PRESSES: Final = 6
"""Presses within the chord time that no table of five players makes (spec/ahyoheek.md, "The clock")."""


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """A contact closed or opened at `at`, by the kernel's stamp."""

    at: Instant
    seat: Seat
    button: Kind = field(compare=False)
    closed: bool = field(compare=False)


@dataclass(frozen=True, slots=True)
class ContactAtRest:
    """A contact that nobody touches: open, or stuck."""

    seat: Seat
    button: Kind
    changed_at: Instant
    stuck: bool


@dataclass(slots=True)
class _Contact:
    seat: Seat
    button: Kind
    closed: bool = False
    changed_at: Instant = 0
    down_since: Instant | None = None
    """When the press began that still holds the contact down; None: up."""
    stuck: bool = False
    alone: bool = True
    """No other working button of the seat has been closed during this press."""
    held_reported: bool = False

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
            seat: _Station(seat, {kind: _Contact(seat, kind, changed_at=now) for kind in KINDS})
            for seat in seats
        }
        self._pending: list[Edge] = []
        self._recent: list[_Press] = []
        self._done_until = now
        self._out: list[Input] = []
        for seat, button in sorted(closed, key=lambda each: (each[0], KINDS.index(each[1]))):
            contact = self._stations[seat].contacts[button]
            contact.closed, contact.down_since, contact.stuck = True, now, True
            self._out.append(StuckReported(now, seat, button, now))
        for station in self._stations.values():
            self._look_ahead(station)

    def feed(self, edge: Edge) -> None:
        """Take an edge in, in any order of delivery; raises KeyError for a seat without a station."""
        self._stations[edge.seat]
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
    def idle(self) -> bool:
        """Nothing is fed and waiting, and no working contact is down."""
        return not self._pending and not any(
            contact.down_since is not None and not contact.stuck
            for station in self._stations.values()
            for contact in station.contacts.values()
        )

    def rest(self) -> tuple[ContactAtRest, ...] | None:
        """How the contacts are when nobody has touched one for a second; None: somebody has, or does."""
        contacts = [each for station in self._stations.values() for each in station.contacts.values()]
        still = all(
            each.stuck and each.closed if each.closed else each.down_since is None for each in contacts
        )
        if not still or self._pending or self._recent or self._out:
            return None
        return tuple(ContactAtRest(each.seat, each.button, each.changed_at, each.stuck) for each in contacts)

    def take_up_rest(self, contacts: Iterable[ContactAtRest], until: Instant) -> None:
        """Go on where others rested, which had come to `until`."""
        self._done_until = until
        for each in contacts:
            contact = self._stations[each.seat].contacts[each.button]
            contact.closed = contact.stuck = each.stuck
            contact.changed_at = each.changed_at
            contact.down_since = each.changed_at if each.stuck else None
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
        if edge.closed == contact.closed or edge.at < contact.changed_at:
            return
        open_for = edge.at - contact.changed_at
        contact.closed, contact.changed_at = edge.closed, edge.at
        if edge.closed:
            self._close(station, contact, edge.at, open_for)
        self._look_ahead(station)

    def _close(self, station: _Station, contact: _Contact, at: Instant, open_for: Duration) -> None:
        if open_for >= self._settings.debounce:
            if contact.down_since is not None:
                self._release(station, contact, at)
            self._press(station, contact, at)
        elif contact.down_since is None:
            # Closed again too soon to be a press (it can only be start-up): still it can stick.
            contact.down_since, contact.alone, contact.held_reported = at, False, True

    def _press(self, station: _Station, contact: _Contact, at: Instant) -> None:
        contact.down_since, contact.held_reported = at, False
        others = [each for each in station.contacts.values() if each is not contact]
        contact.alone = not any(each.down_since is not None and not each.stuck for each in others)
        for each in others:
            each.alone = False
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
            self._revoke_partners(press)

    def _revoke_partners(self, late: _Press) -> None:
        """A press that is delivered late can show that others, given out already, were none either."""
        for each in self._recent:
            if each.counted and abs(each.at - late.at) <= self._settings.chord:
                reason = self._verdict(each, [other for other in self._recent if other is not each])
                if reason is not None:
                    each.counted = False
                    at = max(late.at, each.at)
                    self._out.append(PressRevoked(at, each.seat, each.button, each.at, reason))

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
        contacts: dict[tuple[Seat, Kind], tuple[bool, Instant]] = {}
        for edge in self._pending:
            if edge.at > until:
                break
            key = (edge.seat, edge.button)
            contact = self._stations[edge.seat].contacts[edge.button]
            closed, changed_at = contacts.get(key, (contact.closed, contact.changed_at))
            if edge.closed == closed or edge.at < changed_at:
                continue
            if edge.closed and edge.at - changed_at >= self._settings.debounce:
                presses.append(_Press(edge.at, edge.seat, edge.button))
            contacts[key] = (edge.closed, edge.at)
        return presses

    def _release(self, station: _Station, contact: _Contact, at: Instant) -> None:
        contact.down_since = None
        if contact.stuck:
            contact.stuck = False
            self._out.append(HealReported(at, contact.seat, contact.button))
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
        elif name == "stuck" and contact is not None:
            contact.stuck = True
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
