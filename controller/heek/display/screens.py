"""What the OLED shows: a view and the time, turned into the words and marks of one screen.

A screen is a frozen value that holds everything its picture needs and nothing else, so two moments that
look alike are equal and are drawn and sent once. What moves by itself (a digit, a blink, a page) changes at
instants that follow from the view; `next_change` names the next of them, so nobody has to poll.

Nobody may hide the clock or the result: a seat that is about to leave takes the whole screen only where
nothing else is at stake (lobby, throw, resume); elsewhere its own mark shows the seconds. Nothing here
blinks faster than once a second, and every screen that can stay for ever moves.

A table with a link says how it stands with the KI wherever there is room: while it is free in a mark, and in
words in turn with its name; below what the lobby waits for (in turn with the players' names), above the
lobby's countdown, between two rounds, and after a match. A code that an operator is to type in has the free
table's whole screen, and takes turns with faults and with a lobby that waits; it never covers a countdown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from heek.clock import MILLISECOND, SECOND, Duration, Instant
from heek.display.faces import (
    ATTRACT_FRAMES,
    FAULT_SHIFTS,
    Attract,
    ClaimCode,
    Collections,
    Countdown,
    DecidingThrows,
    Fault,
    LastThrows,
    Leaving,
    Lobby,
    LobbyClaimCode,
    Look,
    Mark,
    MatchOver,
    Resume,
    Reveal,
    Rules,
    Screen,
    Tally,
    Throw,
    Thrown,
    Void,
)
from heek.display.ki_mark import KiMark
from heek.kinds import KINDS, Kind, Seat
from heek.session.phases import Phase
from heek.session.view import SeatState, SeatView, View

__all__ = ["FAULT_PAGE", "Screen", "next_change", "screen", "urgent_pages"]

_BLINK: Final[Duration] = 500 * MILLISECOND
_NAME_PAGE: Final[Duration] = 2 * SECOND
_RULES_PAGE: Final[Duration] = 4 * SECOND
FAULT_PAGE: Final[Duration] = 3 * SECOND
"""How long the fault screen tells of one fault before it tells of the next."""
_CLAIM_PAGES: Final = 2
"""As long as so many faults a code stands among them."""
_LOBBY_PAGE: Final[Duration] = 5 * SECOND
"""How long a waiting lobby and the code take turns."""
_THROWS_FIRST: Final[Duration] = 2500 * MILLISECOND
_RULES_PAGES: Final = 3
"""One more where there may be bots."""


def screen(
    view: View, now: Instant, cycle: str = "pen-page-beetle", table: str = "", ki: KiMark | None = None
) -> Screen:
    """The screen of `view` at `now`.

    `cycle` is `ahyoheek.cycle` (for the rules), `table` the table's name (for attract; empty: not shown),
    `ki` how it stands with the KI (None: the table has no link, and nothing is said).
    """
    phase = view.phase
    if phase is Phase.ATTRACT:
        return _attract(view, now, table, ki)
    if phase in _LEAVING_MAY_COVER:
        leaver = _first_leaver(view)
        if leaver is not None and leaver.leaves_at is not None:
            return Leaving(
                marks=_marks(view, now),
                not_saving=view.not_saving,
                seat=leaver.seat,
                seconds=_seconds_until(leaver.leaves_at, now),
            )
    if phase is Phase.LOBBY:
        if view.rules_since is not None:
            return _rules(view, view.rules_since, now, cycle)
        return _lobby(view, now, ki)
    if phase is Phase.THROW:
        return Throw(
            marks=_marks(view, now),
            not_saving=view.not_saving,
            round=view.round or 1,
            tallies=_tallies(view),
            target=view.target,
            sudden_death=view.sudden_death,
            ki=None if ki is None or view.sudden_death else ki.small,
        )
    if phase in (Phase.COUNTDOWN, Phase.SETTLE):
        running = phase is Phase.COUNTDOWN and view.until is not None
        return Countdown(
            marks=_marks(view, now),
            not_saving=view.not_saving,
            seconds=_seconds_until(view.until, now) if running and view.until is not None else 0,
            sudden_death=view.sudden_death,
        )
    if phase is Phase.REVEAL:
        return _reveal(view, now)
    if phase is Phase.MATCH_OVER:
        return _match_over(view, now, ki)
    return Resume(
        marks=_marks(view, now),
        not_saving=view.not_saving,
        seconds=None if view.until is None else _seconds_until(view.until, now),
        round=view.round,
        tallies=_tallies(view),
        target=view.target,
    )


def next_change(
    view: View, now: Instant, cycle: str = "pen-page-beetle", table: str = "", ki: KiMark | None = None
) -> Instant | None:
    """The first instant after `now` at which the screen differs if view and KI do not change; None: never."""
    shown = screen(view, now, cycle, table, ki)
    tick = now
    for _ in range(_MOST_TICKS):
        following = min(_ticks(view, tick, ki), default=None)
        if following is None:
            return None
        if screen(view, following, cycle, table, ki) != shown:
            return following
        tick = following
    return None


def urgent_pages(view: View, ki: KiMark | None = None) -> int:
    """How many pages of `FAULT_PAGE` each a free table has to show instead of attract; 0: none.

    Faults, one after the other, and the code that somebody is to type in at the KI.
    """
    return len(_faults(view)) + _claim_pages(ki)


_LEAVING_MAY_COVER: Final = frozenset({Phase.LOBBY, Phase.THROW, Phase.RESUME})
_MOST_TICKS: Final = 64
"""Ticks without a visible change after which a screen counts as still: more than any of them has."""


def _ticks(view: View, now: Instant, ki: KiMark | None) -> Iterator[Instant]:
    """The next instant after `now` of each thing that moves; a tick need not change the picture."""
    since = view.since
    for row in view.seats:
        if row.leaves_at is not None:
            yield from _next_second(row.leaves_at, now)
    if view.phase is Phase.ATTRACT:
        yield _next_of(since, FAULT_PAGE if urgent_pages(view, ki) else SECOND, now)
    elif view.phase in (Phase.LOBBY, Phase.RESUME):
        if any(row.state is SeatState.UNCONFIRMED for row in view.seats):
            yield _next_of(since, _BLINK, now)
        if view.phase is Phase.LOBBY and (_names(view) or _may_have_bots(view)):
            yield _next_of(since, _NAME_PAGE, now)
        if view.phase is Phase.LOBBY and _claims(ki):
            yield _next_of(since, _LOBBY_PAGE, now)
        if view.phase is Phase.LOBBY and view.bots_at is not None:
            yield from _next_second(view.bots_at, now)
        if view.phase is Phase.LOBBY and view.rules_since is not None:
            yield _next_of(view.rules_since, _RULES_PAGE, now)
    elif view.phase is Phase.REVEAL:
        half = _half_of_reveal(view)
        if half is not None and now < half:
            yield half
        elif half is not None and not view.sudden_death and any(row.won_round for row in view.seats):
            yield _next_of(half, _BLINK, now)
    elif view.phase is Phase.MATCH_OVER:
        result_from = _winner_from(view)
        if now < result_from:
            yield result_from
        elif view.winner is not None:
            yield _next_of(result_from, _BLINK, now)
    if view.until is not None and view.phase in (Phase.LOBBY, Phase.COUNTDOWN, Phase.RESUME):
        yield from _next_second(view.until, now)


def _next_of(origin: Instant, period: Duration, now: Instant) -> Instant:
    return origin + ((now - origin) // period + 1) * period


def _next_second(end: Instant, now: Instant) -> Iterator[Instant]:
    """When `_seconds_until(end)` next falls by one; nothing once it is 0."""
    left = _seconds_until(end, now)
    if left > 0:
        yield end - (left - 1) * SECOND


def _seconds_until(end: Instant, now: Instant) -> int:
    """Whole seconds left, begun ones counted, as a countdown is read: 5 until 4 s are left; never below 0."""
    return max(0, -((now - end) // SECOND))


def _lit(origin: Instant, now: Instant) -> bool:
    """The bright half of a blink of 1 Hz that began at `origin`."""
    return (now - origin) // _BLINK % 2 == 0


def _first_leaver(view: View) -> SeatView | None:
    leavers = [row for row in view.seats if row.leaves_at is not None]
    return min(leavers, key=lambda row: (row.leaves_at or 0, row.seat), default=None)


def _marks(view: View, now: Instant) -> tuple[Mark, ...]:
    return tuple(
        Mark(
            row.seat,
            _look(view, row, now),
            None if row.leaves_at is None else _seconds_until(row.leaves_at, now),
            bool(row.stuck) or any(fault != "chatter" for _, fault in row.faults),
            row.bot,
            any(fault == "chatter" for _, fault in row.faults),
        )
        for row in view.seats
        if row.state is not SeatState.ABSENT
    )


def _look(view: View, row: SeatView, now: Instant) -> Look:
    if row.state is SeatState.FREE:
        return Look.FREE
    if view.phase in (Phase.LOBBY, Phase.RESUME):
        if row.state is SeatState.UNCONFIRMED:
            return Look.DASHED if _lit(view.since, now) else Look.THIN
        return Look.FULL if row.state is SeatState.READY or view.phase is Phase.RESUME else Look.HOLLOW
    if view.phase is Phase.MATCH_OVER:
        if row.seat == view.winner:
            result_from = _winner_from(view)
            return Look.WINNER if now >= result_from and _lit(result_from, now) else Look.HOLLOW
        return Look.THIN
    if not row.in_round:
        return Look.THIN
    if view.phase is Phase.REVEAL:
        return Look.FULL if row.won_round else Look.HOLLOW
    return Look.FULL if row.thrown else Look.HOLLOW


def _tallies(view: View, *, dark: bool = False) -> tuple[Tally, ...]:
    """The collections of all seats in the match; `dark`: without what this round has added."""
    tallies = []
    for row in view.seats:
        if row.collection is None or row.state is SeatState.ABSENT:
            continue
        won = row.throw if dark and row.won_round and not view.sudden_death else None
        pens, pages, beetles = (max(0, row.collection.of(kind) - (kind is won)) for kind in KINDS)
        tallies.append(Tally(row.seat, (pens, pages, beetles)))
    return tuple(tallies)


def _faults(view: View) -> list[tuple[Seat | None, tuple[Kind, ...], str]]:
    """What the fault screen has to tell, a page each: the journal first (no seat), then seat by seat."""
    pages: list[tuple[Seat | None, tuple[Kind, ...], str]] = [(None, (), "")] if view.not_saving else []
    if view.journal:
        pages.append((None, (), "journal"))
    for row in view.seats:
        if row.state is not SeatState.ABSENT:
            faulty = {
                name: tuple(kind for kind, fault in row.faults if fault == name)
                for name in ("flood", "chatter")
            }
            troubles = {"stuck": row.stuck, **faulty}
            pages += [(row.seat, buttons, trouble) for trouble, buttons in troubles.items() if buttons]
    return pages


def _claims(ki: KiMark | None) -> bool:
    return ki is not None and ki.claim is not None


def _claim_pages(ki: KiMark | None) -> int:
    return _CLAIM_PAGES if _claims(ki) else 0


def _attract(view: View, now: Instant, table: str, ki: KiMark | None) -> Screen:
    faults = _faults(view)
    pages = urgent_pages(view, ki)
    if not pages:
        frame = (now - view.since) // SECOND % ATTRACT_FRAMES
        words, small = ((), None) if ki is None else (ki.words, ki.small)
        return Attract(marks=(), not_saving=False, frame=frame, table=table, ki=words, small_ki=small)
    page = (now - view.since) // FAULT_PAGE
    if page % pages >= len(faults) and ki is not None and ki.claim is not None:
        # Its line has the place of the mark for not saving, which has a page of its own here.
        return ClaimCode(marks=(), code=ki.claim)
    seat, buttons, trouble = faults[page % pages]
    return Fault(
        marks=_marks(view, now),
        not_saving=view.not_saving,
        seat=seat,
        buttons=buttons,
        trouble=trouble,
        shift=page % FAULT_SHIFTS,
        ki=None if ki is None else ki.small,
    )


def _names(view: View) -> list[tuple[Seat, str]]:
    """The signed-in players, whose names the lobby shows in turn."""
    return [(row.seat, row.name) for row in view.seats if row.name is not None]


def _lobby(view: View, now: Instant, ki: KiMark | None) -> Screen:
    waits = view.until is None
    if ki is not None and ki.claim is not None and waits and (now - view.since) // _LOBBY_PAGE % 2 == 1:
        return LobbyClaimCode(marks=(), code=ki.claim)
    # Below what the lobby waits for stand the names in turn, and what is said of the KI after the last.
    names: list[tuple[Seat, str] | None] = [*_names(view)]
    if ki is not None and (names or waits):
        names.append(None)
    turn = (now - view.since) // _NAME_PAGE
    who = names[turn % len(names)] if names else None
    bots = _may_have_bots(view) and (now - view.since) // _NAME_PAGE % 2 == 1
    return Lobby(
        marks=_marks(view, now),
        not_saving=view.not_saving,
        seconds=None if view.until is None else _seconds_until(view.until, now),
        alone=_sitting(view) < 2,
        who=who,
        bots=bots,
        bots_s=_seconds_until(view.bots_at, now) if bots and view.bots_at is not None else None,
        ki=ki.words if ki is not None and names and who is None else (),
        small_ki=ki.small if ki is not None and not names else None,
    )


def _sitting(view: View) -> int:
    return sum(row.state not in (SeatState.ABSENT, SeatState.FREE) for row in view.seats)


def _may_have_bots(view: View) -> bool:
    """Somebody waits alone and could have company."""
    return view.bots_allowed and view.until is None and _sitting(view) == 1


def _rules(view: View, since: Instant, now: Instant, cycle: str) -> Rules:
    first, second, third = (Kind(word) for word in cycle.split("-"))
    return Rules(
        marks=_marks(view, now),
        not_saving=view.not_saving,
        page=(now - since) // _RULES_PAGE % (_RULES_PAGES + view.bots_allowed),
        ring=(first, second, third),
        target=view.target,
    )


def _half_of_reveal(view: View) -> Instant | None:
    """When the reveal turns from the throws to the collections; None: it has no end, so it does not."""
    return None if view.until is None else view.since + (view.until - view.since) // 2


def _thrown(view: View) -> tuple[Thrown, ...]:
    return tuple(
        Thrown(row.seat, row.throw, row.won_round, not row.in_round)
        for row in view.seats
        if row.state not in (SeatState.ABSENT, SeatState.FREE) or row.throw is not None
    )


def _reveal(view: View, now: Instant) -> Screen:
    half = _half_of_reveal(view)
    if half is None or now < half:
        return Reveal(
            marks=_marks(view, now),
            not_saving=view.not_saving,
            throws=_thrown(view),
            sudden_death=view.sudden_death,
        )
    return Collections(
        marks=_marks(view, now),
        not_saving=view.not_saving,
        tallies=_tallies(view, dark=not _lit(half, now)),
        target=view.target,
        sudden_death=view.sudden_death,
    )


def _winner_from(view: View) -> Instant:
    """When match over turns from the throws to the result: at once if no throw is shown."""
    if all(row.throw is None for row in view.seats):
        return view.since
    if view.until is None:
        return view.since + _THROWS_FIRST
    return view.since + min(_THROWS_FIRST, (view.until - view.since) // 2)


def _match_over(view: View, now: Instant, ki: KiMark | None) -> Screen:
    marks = _marks(view, now)
    result_from = _winner_from(view)
    if now < result_from:
        last = DecidingThrows if view.winner is not None else LastThrows
        return last(
            marks=marks,
            not_saving=view.not_saving,
            throws=_thrown(view),
            sudden_death=view.sudden_death,
        )
    winner = next((row for row in view.seats if row.seat == view.winner), None)
    if winner is None:
        small = None if ki is None else ki.small
        return Void(marks=marks, not_saving=view.not_saving, reason=view.void or "", ki=small)
    by, held = view.by or "", winner.collection
    kind = None
    if by in ("three", "total") and held is not None:
        kind = max(KINDS, key=held.of)
    # How it was won, the winner's name, and what is said of the KI: of the result that waits, or has arrived.
    turn = (now - result_from) // _NAME_PAGE % (2 if ki is None else 3)
    return MatchOver(
        marks=marks,
        not_saving=view.not_saving,
        winner=winner.seat,
        by=by,
        kind=kind,
        target=view.target,
        total=0 if held is None else held.total,
        player=winner.name if turn == 1 else None,
        ki=ki.words if ki is not None and turn == 2 else (),
    )
