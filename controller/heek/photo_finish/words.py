"""What the marks of a photo finish are called, and how times and distances read."""

from __future__ import annotations

from typing import Final

from heek.clock import MILLISECOND, SECOND, Duration
from heek.photo_finish.values import (
    BOUNCE,
    HIDDEN,
    LATE_DELIVERY,
    REPLACED,
    SEATED,
    THROWN,
    Lane,
    Mark,
    PhotoFinish,
)

FATES: Final = {
    THROWN: "counted",
    REPLACED: "replaced by a later press",
    HIDDEN: "never compared",
    SEATED: "before the round: sat down, or ready",
    BOUNCE: "bounce of the contact, no press",
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


def contradiction_words(seq: int) -> str:
    """What stands over a drawing of which the journal tells otherwise, from event `seq` on."""
    return f"not what the journal tells: its event {seq} is not what comes of the edges drawn here"


def seat_words(lane: Lane) -> str:
    """Who sits there."""
    if lane.bot:
        return f"seat {lane.seat} (bot)"
    return f"seat {lane.seat}" if lane.name is None else f"seat {lane.seat} {lane.name}"


def milliseconds(span: Duration) -> str:
    """A distance with its microseconds: `12.345 ms`."""
    sign = "-" if span < 0 else ""
    whole, rest = divmod(abs(span), MILLISECOND)
    return f"{sign}{whole}.{rest // 1000:03d} ms"


def since_opening(finish: PhotoFinish, at: int) -> str:
    """An instant, counted from the round's opening: `+1.234567 s`."""
    span = at - finish.opened
    whole, rest = divmod(abs(span), SECOND)
    return f"{'-' if span < 0 else '+'}{whole}.{rest // 1000:06d} s"


def margin_words(finish: PhotoFinish, mark: Mark) -> str:
    """The distance that decides: to the guard's end for what came before it, else to the close."""
    after_guard, before_close = finish.margins(mark)
    if after_guard < 0:
        return f"{milliseconds(-after_guard)} before the guard's end"
    if before_close is None:
        return f"{milliseconds(after_guard)} after the guard's end"
    if before_close == 0:
        return "at the very close"
    if before_close > 0:
        return f"{milliseconds(before_close)} before the close"
    return f"{milliseconds(-before_close)} after the close"
