"""Draws a photo finish for a terminal, as wide as that is, within reason."""

from __future__ import annotations

import textwrap
from typing import Final

from heek.clock import Instant
from heek.photo_finish.values import BOUNCE, HIDDEN, REPLACED, SEATED, THROWN, Lane, PhotoFinish
from heek.photo_finish.words import close_words, ending_words, lane_words, line_words, since_opening

WIDTH: Final = 80
NARROWEST: Final = 40
WIDEST: Final = 120
"""Columns: below, the marks would lie on each other; above, the eye loses its line."""
_LABEL: Final = 9
_ROOM: Final = 28
"""Columns that the words of a press must have beside it; with fewer they stand below."""
_TIED: Final = "\N{NO-BREAK SPACE}"

_PLAIN: Final = {
    "line": "-",
    "held": "=",
    "end": "|",
    THROWN: "O",
    REPLACED: "o",
    HIDDEN: "?",
    BOUNCE: ".",
    SEATED: "+",
    "": "x",
}
_DRAWN: Final = {
    "line": "·",
    "held": "━",
    "end": "│",
    THROWN: "●",
    REPLACED: "○",
    HIDDEN: "?",
    BOUNCE: "▪",
    SEATED: "+",
    "": "×",
}


def drawable_in(encoding: str | None) -> bool:
    """Whether a terminal of that encoding has the signs of the drawing."""
    try:
        "".join(_DRAWN.values()).encode(encoding or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True


def photo_finish_text(finish: PhotoFinish, *, width: int = WIDTH, plain: bool = False) -> str:
    """The round's time line and every press in it, without a last newline.

    `width`: how many columns it may have; it takes NARROWEST to WIDEST.
    `plain`: in ASCII alone, names included.
    """
    signs = _PLAIN if plain else _DRAWN
    width = min(max(width, NARROWEST), WIDEST)
    axis = width - _LABEL
    lines = _wrapped(f"match {finish.match}, round {finish.round}", width)
    for words in (ending_words(finish.ending), *_clock(finish)):
        lines += _wrapped(words, width, "  ")
    lines += ["", *_heads(finish, signs, axis)]
    lines += [_drawn_lane(finish, lane, signs, axis) for lane in finish.lanes]
    key = "  ".join(
        f"{signs[fate]}{_TIED}{words}"
        for fate, words in (
            (THROWN, "counted"),
            (REPLACED, "replaced"),
            ("", f"not{_TIED}counted"),
            (BOUNCE, "bounce"),
            (SEATED, f"sat{_TIED}down"),
            ("held", "held"),
        )
    )
    indent = " " * _LABEL
    lines += ["", *textwrap.wrap(key, width, initial_indent=indent, subsequent_indent=indent), ""]
    for lane in finish.lanes:
        lines += _wrapped(lane_words(finish, lane), width)
    pressed = _by_time(finish, width)
    if pressed:
        lines += ["", "by time:", *pressed]
    text = "\n".join(line.rstrip() for line in lines).replace(_TIED, " ")
    return text.replace("×", "x").encode("ascii", "replace").decode() if plain else text


def _wrapped(words: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(words, width, initial_indent=indent, subsequent_indent=f"{indent}  ")


def _clock(finish: PhotoFinish) -> list[str]:
    guard = f"guard to {since_opening(finish, finish.guard_end)}"
    if finish.countdown is None:
        counted = "nobody threw"
    else:
        counted = f"countdown from {since_opening(finish, finish.countdown)}"
    words = [f"{guard}, {counted}"]
    if finish.closed is not None:
        words.append(f"close at {since_opening(finish, finish.closed)}: {close_words(finish)}")
    over = finish.ending if finish.ending == "revealed" else "over"
    words.append(f"{over} at {since_opening(finish, finish.ended)}")
    if finish.late:
        words.append("an edge of this round was delivered after it had been compared")
    return words


def _column(finish: PhotoFinish, at: Instant, axis: int) -> int:
    span = max(finish.last - finish.first, 1)
    return min(max((at - finish.first) * (axis - 1) // span, 0), axis - 1)


def _stations(finish: PhotoFinish, axis: int) -> list[tuple[int, str]]:
    """The columns at which the clock does something."""
    named = [
        (finish.opened, "open"),
        (finish.guard_end, "guard"),
        (finish.countdown, "count"),
        (finish.closed, "close"),
        (finish.ended, "end"),
    ]
    return [(_column(finish, at, axis), name) for at, name in named if at is not None]


def _heads(finish: PhotoFinish, signs: dict[str, str], axis: int) -> list[str]:
    """The names of the clock's instants above their columns; close ones get a row of their own."""
    rows: list[list[str]] = []
    for column, name in _stations(finish, axis):
        start = min(column, axis - len(name))
        for row in rows:
            if all(each == " " for each in row[max(start - 1, 0) : start + len(name) + 1]):
                break
        else:
            row = [" "] * axis
            rows.append(row)
        row[start : start + len(name)] = name
    ticks = [" "] * axis
    for column, _ in _stations(finish, axis):
        ticks[column] = signs["end"]
    return [" " * _LABEL + "".join(row) for row in [*reversed(rows), ticks]]


def _drawn_lane(finish: PhotoFinish, lane: Lane, signs: dict[str, str], axis: int) -> str:
    row = [signs["line"] if lane.throws else " "] * axis
    for column, _ in _stations(finish, axis):
        row[column] = signs["end"]
    for mark in lane.marks:
        begin = _column(finish, mark.at, axis)
        end = _column(finish, finish.held_until(mark), axis)
        for column in range(begin, end + 1):
            row[column] = signs["held"]
    # The most telling one last: several can fall on one column.
    rank = [SEATED, BOUNCE, "", REPLACED, HIDDEN, THROWN]
    for mark in sorted(lane.marks, key=lambda each: rank.index(each.fate if each.fate in rank else "")):
        row[_column(finish, mark.at, axis)] = signs.get(mark.fate, signs[""])
    return f"seat {lane.seat:<{_LABEL - 5}}{''.join(row)}"


def _by_time(finish: PhotoFinish, width: int) -> list[str]:
    """Every press in its order, whoever's it was."""
    seat = max((len(str(lane.seat)) for lane in finish.lanes), default=1) + 5
    lines = []
    for line in finish.by_time():
        button = "?" if line.mark.button is None else line.mark.button.value
        begin = (
            f"{since_opening(finish, line.mark.at):>13}  {f'seat {line.lane.seat}':<{seat}}  {button:<6}  "
        )
        said = [each for each in line_words(finish, line) if each]
        if width - len(begin) < _ROOM:
            lines.append(begin)
            begin = " " * 4
        if len(begin) + len("; ".join(said)) <= width:
            said = ["; ".join(said)]
        for each in said:
            lines += textwrap.wrap(each, width, initial_indent=begin, subsequent_indent=" " * len(begin))
            begin = " " * len(begin)
    return lines
