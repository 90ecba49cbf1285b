"""One round as a time line: a lane a seat, every press, and its distance to the guard's end and the close.

It is put together from what the replayed table said (`heek.replay`) and judges nothing. Of a round that was
never revealed it names no button: a throw that stayed hidden at the table stays hidden here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from heek.clock import MILLISECOND, Duration, Instant
from heek.errors import RecordingError
from heek.kinds import Kind, Seat
from heek.session import events as ev
from heek.session.events import Event
from heek.stations.gestures import Edge

BOUNCE: Final = "bounce"
"""A closing edge after too short an opening: no press."""
ACCEPTED: Final = "accepted"
OPENED: Final = "opened"
LATE_DELIVERY: Final = "late_delivery"
THROWN: Final = "thrown"
"""Accepted, and the seat's last one: what was compared."""
REPLACED: Final = "replaced"
"""Accepted, and changed by a later press."""
SEATED: Final = "seated"
"""Accepted before the round opened: it took a seat, or got ready."""
HIDDEN: Final = "hidden"
"""Accepted in a round that was never compared."""
TABLE: Final = "table"
"""No press: the table threw at a seat of its own."""

FLOOD: Final = "flood"
"""Of a contact that opens and closes far too often, and is set aside until it is quiet."""

BEFORE: Final[Duration] = 300 * MILLISECOND
AFTER: Final[Duration] = 1000 * MILLISECOND
"""How much before the opening, and at most after the end, is shown."""
MARGIN: Final = 12
"""A share, one in so many, of the round: left free after the last thing that is shown."""


@dataclass(slots=True, eq=False)
class EdgeFate:
    """An edge, and what it came to."""

    edge: Edge
    fate: str = BOUNCE
    """`opened`, `bounce`, `accepted`, or the reason why not: that of `press_ignored`, or `late_delivery`."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A contact closed."""

    at: Instant
    opened_at: Instant | None
    """When it opened again; None: after the last edge that is known."""
    button: Kind | None
    """None in a round that was never revealed."""
    fate: str
    """`thrown`, `replaced`, `hidden`, `seated`, `bounce`, or the reason why it did not count."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One seat in the round."""

    seat: Seat
    name: str | None
    """Of who signed in there; None for a guest."""
    bot: bool
    throws: bool
    """Whether the seat might throw in this round."""
    throw: Kind | None
    points: int | None
    won: bool
    locked_at: Instant | None
    """When it was told that the seat had thrown."""
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """What is told in one line: a mark, or several of a bad contact that came to the same."""

    lane: Lane
    mark: Mark
    """The first of them."""
    until: Instant
    """When the last of them closed."""
    count: int


def _lines(lane: Lane) -> list[Line]:
    """The marks of a lane; between two presses, all bounces of a button are one line, and so is a flood."""
    lines: list[Line] = []
    running: dict[tuple[Kind | None, str], int] = {}
    for mark in lane.marks:
        key = (mark.button, mark.fate)
        if mark.fate not in (BOUNCE, FLOOD):
            running.clear()
        elif (place := running.get(key)) is not None:
            first = lines[place]
            lines[place] = Line(lane, first.mark, mark.at, first.count + 1)
            continue
        else:
            running[key] = len(lines)
        lines.append(Line(lane, mark, mark.at, 1))
    return lines


@dataclass(frozen=True, slots=True)
class PhotoFinish:
    """One round; instants are those of its daemon's clock."""

    match: str
    round: int
    opened: Instant
    guard_end: Instant
    countdown: Instant | None
    """When the countdown started."""
    deadline: Instant | None
    """When the countdown that started ends."""
    closed: Instant | None
    """None: the round was broken off."""
    closed_by: str
    """`throws`: all in the round had thrown; `deadline`; empty: it never closed."""
    ended: Instant
    ending: str
    """`revealed`, or why not: `throws`, `gap`, `match_won`, `match_void`."""
    late: bool
    """An edge was delivered after the round had been compared."""
    first: Instant
    last: Instant
    """What is shown."""
    lanes: tuple[Lane, ...]

    def held_until(self, mark: Mark) -> Instant:
        """How long the contact is known to have stayed closed: to its opening, else to the round's end."""
        return max(mark.at, min(self.ended if mark.opened_at is None else mark.opened_at, self.last))

    def margins(self, mark: Mark) -> tuple[Duration, Duration | None]:
        """How long after the guard's end, and how long before the close; below zero the other way round."""
        return mark.at - self.guard_end, None if self.closed is None else self.closed - mark.at

    def by_time(self) -> list[Line]:
        """What was pressed at all seats, first the first; what a bad contact adds to it is one line each."""
        lines = []
        for lane in self.lanes:
            if lane.bot and lane.locked_at is not None:
                lines.append(Line(lane, Mark(lane.locked_at, None, lane.throw, TABLE), lane.locked_at, 1))
            lines += _lines(lane)
        return sorted(lines, key=lambda line: (line.mark.at, line.lane.seat))


@dataclass(frozen=True, slots=True)
class Sitting:
    """What one recording came to, as far as a round's picture needs it."""

    events: Sequence[Event]
    edges: Sequence[EdgeFate]
    """In the order of their stamps."""
    guard: Duration
    settle: Duration
    bots: frozenset[Seat] = frozenset()
    names: Mapping[Seat, str] | None = None
    """Who sat where when it began."""


@dataclass(frozen=True, slots=True)
class RoundEnding:
    """A round of a match, and how it ended."""

    number: int
    ending: str
    drawable: bool
    """False: a power cut broke it off, and took its edges."""
    throws: Mapping[Seat, Kind | None] = field(default_factory=dict)
    """What was shown of a revealed round; empty of another."""
    winners: tuple[Seat, ...] = ()
    names: Mapping[Seat, str] = field(default_factory=dict)
    """Who had signed in at these seats when it opened."""


def rounds_of(match: str, sittings: Iterable[Sitting]) -> list[RoundEnding]:
    """The rounds of a match, in order."""
    found: dict[int, RoundEnding] = {}
    for sitting in sittings:
        open_: int | None = None
        names: dict[Seat, str] = {}
        for place, event in enumerate(sitting.events):
            if isinstance(event, ev.RoundOpened) and event.match == match:
                open_ = event.round
                names, _ = _who(sitting, place)
            elif (ending := _ending(event, match)) is not None:
                number, how = ending
                number = open_ if number is None else number
                if number is not None and number not in found:
                    drawable = number == open_
                    found[number] = (
                        RoundEnding(number, how, drawable, event.throws, event.winners, names)
                        if isinstance(event, ev.RoundRevealed)
                        else RoundEnding(number, how, drawable)
                    )
                open_ = None
    return [found[number] for number in sorted(found)]


def photo_finish(match: str, number: int, sittings: Iterable[Sitting]) -> PhotoFinish:
    """The picture of one round; raises RecordingError if there is none of it."""
    listed = list(sittings)
    for sitting in listed:
        for place, event in enumerate(sitting.events):
            if isinstance(event, ev.RoundOpened) and (event.match, event.round) == (match, number):
                drawn = _Round(sitting, place, event).draw()
                if drawn is not None:
                    return drawn
    rounds = rounds_of(match, listed)
    if any(each.number == number for each in rounds):
        raise RecordingError(
            f"match {match}: round {number} was broken off by a power cut, which took its edges with it"
        )
    numbers = f"1 to {rounds[-1].number}" if rounds else "none"
    raise RecordingError(f"match {match}: there is no round {number}; it has rounds {numbers}")


def _ending(event: Event, match: str) -> tuple[int | None, str] | None:
    """The number of the round that this event ends (None: the open one), and how."""
    ended: tuple[str, int | None, str]
    match event:
        case ev.RoundRevealed():
            ended = (event.match, event.round, "revealed")
        case ev.RoundVoid():
            ended = (event.match, event.round, event.reason)
        case ev.MatchWon():
            ended = (event.match, None, "match_won")
        case ev.MatchVoid():
            ended = (event.match, None, "match_void")
        case _:
            return None
    return ended[1:] if ended[0] == match else None


def _who(sitting: Sitting, place: int) -> tuple[dict[Seat, str], frozenset[Seat]]:
    """Who has signed in, and where bots sit, before the event at that place."""
    names = dict(sitting.names or {})
    bots = set(sitting.bots)
    for event in sitting.events[:place]:
        match event:
            case ev.SeatTaken(_, seat, kind):
                names.pop(seat, None)
                (bots.add if kind == "bot" else bots.discard)(seat)
            case ev.SeatClaimed(_, seat, _, name):
                names[seat] = name
                if not name:
                    # The KI has erased who that was.
                    del names[seat]
            case ev.SeatLeft(_, seat, _):
                names.pop(seat, None)
                bots.discard(seat)
            case _:
                pass
    return names, frozenset(bots)


class _Round:
    """Puts one round together."""

    def __init__(self, sitting: Sitting, place: int, opened: ev.RoundOpened) -> None:
        self._sitting = sitting
        self._opened = opened
        self._place = place
        self._rest = sitting.events[place + 1 :]

    def draw(self) -> PhotoFinish | None:
        opened, sitting = self._opened, self._sitting
        length = next(
            (number for number, each in enumerate(self._rest) if _ending(each, opened.match) is not None),
            None,
        )
        if length is None:
            return None
        during, end = self._rest[:length], self._rest[length]
        ending = _ending(end, opened.match)
        revealed = end if isinstance(end, ev.RoundRevealed) else None
        closed = revealed.closed if revealed is not None else None
        if isinstance(end, ev.RoundVoid) and end.reason == "throws":
            closed = end.at - sitting.settle
        # What is pressed from the next round's opening on belongs there.
        next_opened = next(
            (each.at for each in self._rest[length:] if isinstance(each, ev.RoundOpened)), end.at + AFTER
        )
        first = max(opened.at - BEFORE, self._shown_before())
        last = min(end.at + AFTER, next_opened)
        names, bots = _who(sitting, self._place)
        countdown = next((each for each in during if isinstance(each, ev.CountdownStarted)), None)
        locked = {each.seat: each.at for each in during if isinstance(each, ev.ThrowLocked)}
        lanes = []
        for seat in sorted({*opened.seats, *names, *bots, *self._pressing(first, last)}):
            throw = revealed.throws.get(seat) if revealed is not None else None
            lanes.append(
                Lane(
                    seat,
                    names.get(seat),
                    seat in bots,
                    seat in opened.seats,
                    throw,
                    revealed.points.get(seat) if revealed is not None else None,
                    revealed is not None and seat in revealed.winners,
                    locked.get(seat),
                    self._marks(seat, first, last, closed, revealed, throw is not None),
                )
            )
        latest = max([end.at, *(mark.at for lane in lanes for mark in lane.marks)])
        last = min(last, latest + (latest - first) // MARGIN)
        return PhotoFinish(
            opened.match,
            opened.round,
            opened.at,
            opened.at + sitting.guard,
            None if countdown is None else countdown.at,
            None if countdown is None else countdown.deadline,
            closed,
            self._closed_by(during, closed, countdown, revealed),
            end.at,
            ending[1] if ending is not None else "",
            any(
                isinstance(each, ev.LateDelivery) and (each.match, each.round) == (opened.match, opened.round)
                for each in self._rest
            ),
            first,
            last,
            tuple(lanes),
        )

    @staticmethod
    def _closed_by(
        during: Sequence[Event],
        closed: Instant | None,
        countdown: ev.CountdownStarted | None,
        revealed: ev.RoundRevealed | None,
    ) -> str:
        if closed is None:
            return ""
        # A first throw that is delivered second moves the deadline, so that an early close proves nothing
        # yet. Where fewer than two had thrown, only those who left can have made it all.
        if revealed is not None:
            all_threw = None not in revealed.throws.values()
        else:
            all_threw = any(isinstance(each, ev.SeatLeft) for each in during)
        return "throws" if all_threw and countdown is not None and closed < countdown.deadline else "deadline"

    def _shown_before(self) -> Instant:
        """What belongs to the round before is shown there."""
        ends = (ev.RoundVoid, ev.MatchStarted)
        before = [each.at for each in self._sitting.events[: self._place] if isinstance(each, ends)]
        return before[-1] if before else 0

    def _pressing(self, first: Instant, last: Instant) -> set[Seat]:
        return {
            each.edge.seat
            for each in self._sitting.edges
            if first <= each.edge.at <= last and each.edge.closed
        }

    def _marks(
        self,
        seat: Seat,
        first: Instant,
        last: Instant,
        closed: Instant | None,
        revealed: ev.RoundRevealed | None,
        threw: bool,
    ) -> tuple[Mark, ...]:
        mine = [each for each in self._sitting.edges if each.edge.seat == seat and each.edge.at >= first]
        # A press that opens the round has its very instant, and none in the guard is accepted.
        open_from = max(self._opened.at + self._sitting.guard, self._opened.at + 1)
        until = last if closed is None else closed
        counts = [each for each in mine if each.fate == ACCEPTED and open_from <= each.edge.at <= until]
        marks = []
        for number, each in enumerate(mine):
            if not each.edge.closed or each.edge.at > last:
                continue
            opened_at = next(
                (
                    later.edge.at
                    for later in mine[number + 1 :]
                    if later.edge.button is each.edge.button and not later.edge.closed
                ),
                None,
            )
            fate = each.fate
            if fate == ACCEPTED and each.edge.at < open_from:
                fate = SEATED
            elif fate == ACCEPTED and revealed is None:
                fate = HIDDEN
            elif fate == ACCEPTED:
                fate = THROWN if threw and counts and each is counts[-1] else REPLACED
            button = each.edge.button if revealed is not None else None
            marks.append(Mark(each.edge.at, opened_at, button, fate))
        return tuple(marks)
