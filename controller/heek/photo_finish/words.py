"""What the marks of a photo finish are called, and how times and distances read."""

from __future__ import annotations

from typing import Final

from heek.clock import MILLISECOND, SECOND, Duration
from heek.kinds import Seat
from heek.photo_finish.values import (
    BOUNCE,
    FLOOD,
    HIDDEN,
    LATE_DELIVERY,
    REPLACED,
    SEATED,
    TABLE,
    THROWN,
    Lane,
    Line,
    Mark,
    PhotoFinish,
    RoundEnding,
)

FATES: Final = {
    THROWN: "counted",
    REPLACED: "replaced by a later press",
    HIDDEN: "never compared",
    SEATED: "before the round: sat down, or ready",
    BOUNCE: "bounce of the contact, no press",
    FLOOD: "of a contact that floods, set aside",
    TABLE: "thrown by the table itself",
    LATE_DELIVERY: "in time, but delivered after the reveal",
    "guard": "in the guard",
    "late": "too late",
    "locked": "had thrown already",
    "not_seated": "nobody sits there",
    "not_in_round": "not in this round",
    "match_closed": "the match was over",
    "chord": "two buttons of the seat at once",
    "noise": "six buttons at once, all over the table",
}

ENDINGS: Final = {
    "revealed": "revealed",
    "throws": "void: fewer than two had thrown",
    "gap": "void: the program stood still",
    "power": "void: the power was cut",
    "match_won": "cut short: the match was won",
    "match_void": "cut short: the match was void",
}


def fate_words(mark: Mark) -> str:
    """What became of a press."""
    return FATES.get(mark.fate, mark.fate.replace("_", " "))


def ending_words(ending: str) -> str:
    """How a round ended."""
    return ENDINGS.get(ending, ending.replace("_", " "))


def round_words(ended: RoundEnding) -> str:
    """How a round ended, for a list: `won by seat 1 with pen; seat 2 Shorah page, seat 3 nothing`."""
    if not ended.throws:
        return ending_words(ended.ending)
    won, others = [], []
    for seat, throw in sorted(ended.throws.items()):
        who, what = _at_seat(seat, ended.names.get(seat)), "nothing" if throw is None else throw.value
        if seat in ended.winners:
            won.append(f"{who} with {what}")
        else:
            others.append(f"{who} {what}")
    said = f"won by {' and '.join(won)}" if won else "nobody won"
    return f"{said}; {', '.join(others)}" if others else said


def rounds_words(count: int | None) -> str:
    """How many rounds a match had: `1 round`; it may be unknown."""
    return "? rounds" if count is None else f"{count} round{'' if count == 1 else 's'}"


def void_words(reason: str) -> str:
    """How a match ended that an operator of the KI has declared void: `void: wrong seat (by the KI)`."""
    return f"void: {reason} (by the KI)" if reason else "void (by the KI)"


def contradiction_words(seq: int) -> str:
    """What stands over a drawing of which the journal tells otherwise, from event `seq` on."""
    return f"not what the journal tells: its event {seq} is not what comes of the edges drawn here"


def seat_words(lane: Lane) -> str:
    """Who sits there."""
    if lane.bot:
        return f"seat {lane.seat} (bot)"
    return _at_seat(lane.seat, lane.name)


def _at_seat(seat: Seat, name: str | None) -> str:
    return f"seat {seat}" if name is None else f"seat {seat} {name}"


def line_words(finish: PhotoFinish, line: Line) -> tuple[str, str]:
    """What a line came to, and how far from what decides; of several, how many and until when."""
    if line.count == 1:
        return fate_words(line.mark), "" if line.mark.fate == TABLE else margin_words(finish, line.mark)
    return f"{line.count} × {fate_words(line.mark)}", f"the last at {since_opening(finish, line.until)}"


def lane_words(finish: PhotoFinish, lane: Lane) -> str:
    """What the round was for a seat: `seat 2 Shorah: page, -1`."""
    said = seat_words(lane)
    if lane.throw is not None:
        said += f": {lane.throw.value}"
        said += f", {lane.points:+d}" if lane.points else ", 0" if lane.points == 0 else ""
        said += ", won" if lane.won else ""
    elif lane.bot:
        said += ": the table itself"
    elif not lane.throws:
        said += ": not in this round"
    elif finish.ending == "revealed":
        said += ": no throw"
    if not lane.marks and not lane.bot:
        said += ", pressed nothing" if ": " in said else ": pressed nothing"
    return said


def close_words(finish: PhotoFinish) -> str:
    """Why the round closed when it did; empty if it did not."""
    if finish.closed_by == "throws" and finish.closed is not None and finish.deadline is not None:
        left = distance(finish.deadline - finish.closed)
        return f"all had thrown, with {left} of the countdown left"
    return "the countdown ran out" if finish.closed_by else ""


def distance(span: Duration) -> str:
    """A distance: `12.345 ms`, and from a second on `1.234 s`."""
    sign = "-" if span < 0 else ""
    unit, name = (MILLISECOND, "ms") if abs(span) < SECOND else (SECOND, "s")
    whole, rest = divmod(abs(span), unit)
    return f"{sign}{whole}.{rest * 1000 // unit:03d} {name}"


def since_opening(finish: PhotoFinish, at: int) -> str:
    """An instant, counted from the round's opening: `+1.234567 s`."""
    span = at - finish.opened
    whole, rest = divmod(abs(span), SECOND)
    return f"{'-' if span < 0 else '+'}{whole}.{rest // 1000:06d} s"


def margin_words(finish: PhotoFinish, mark: Mark) -> str:
    """The distance that decides: to the guard's end for what came before it, else to the close."""
    after_guard, before_close = finish.margins(mark)
    if after_guard < 0:
        return f"{distance(-after_guard)} before the guard's end"
    if before_close is None:
        return f"{distance(after_guard)} after the guard's end"
    if before_close == 0:
        return "at the very close"
    if before_close > 0:
        return f"{distance(before_close)} before the close"
    return f"{distance(-before_close)} after the close"
