"""The pages of the photo finish: which matches can be shown, a match's rounds, and a round's time line.

The picture has no fixed width: every place on the time line is a percentage of it, so letters and marks keep
their size from a phone to a wall. What it shows stands below it in words, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from heek.clock import Instant
from heek.kinds import Kind
from heek.photo_finish.values import (
    BOUNCE,
    HIDDEN,
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
from heek.photo_finish.words import (
    close_words,
    contradiction_words,
    ending_words,
    lane_words,
    line_words,
    round_words,
    rounds_words,
    seat_words,
    since_opening,
)
from heek.serving.markup import Content, Markup, element
from heek.web.sheet import sheet

HEIGHT_PX: Final = 56
"""Of a lane."""
_MIDDLE: Final = HEIGHT_PX // 2
_GLYPH_PX: Final = 26


@dataclass(frozen=True, slots=True)
class ShownMatch:
    """A match that is over and kept."""

    match: str
    rounds: int | None
    """Revealed ones, if known."""
    ending: str


@dataclass(frozen=True, slots=True)
class DrawnMatch:
    """Everything that can be drawn of one match."""

    match: str
    rounds: tuple[RoundEnding, ...]
    finishes: tuple[PhotoFinish, ...]
    differs: int | None = None
    """The first event of the journal that is not what came of the edges; None: they agree."""


def matches_html(name: str, matches: Sequence[ShownMatch]) -> bytes:
    """`/photofinish`: the matches that can be shown, newest first."""
    if matches:
        listed: Content = element(
            "ol",
            *(
                element(
                    "li",
                    element(
                        "a",
                        element("span", _short(each.match), class_="match-id"),
                        element("span", each.ending),
                        element("span", rounds_words(each.rounds), class_="dim")
                        if each.rounds is not None
                        else None,
                        href=f"/photofinish/{each.match}",
                    ),
                )
                for each in matches
            ),
            class_="matches",
        )
    else:
        listed = element("p", "No match is kept yet: play one to its end, and it stands here.")
    said = "Every edge of these matches is kept. A match shows who pressed when, and what counted."
    return sheet(
        name, "Photo finish", element("p", said, class_="dim"), listed, back=("/fairness", "Fairness")
    )


def match_html(name: str, drawn: DrawnMatch) -> bytes:
    """`/photofinish/MATCH`: its rounds."""
    able = {each.round for each in drawn.finishes}
    rows = []
    for each in drawn.rounds:
        words = (element("span", f"Round {each.number}"), _round(each))
        if each.number in able:
            rows.append(element("li", element("a", *words, href=f"/photofinish/{drawn.match}/{each.number}")))
        else:
            lost = element("span", "its edges went with the power", class_="dim")
            rows.append(element("li", element("p", *words, lost)))
    listed = element("ol", *rows, class_="matches") if rows else element("p", "No round of it was opened.")
    return sheet(
        name,
        f"Match {_short(drawn.match)}",
        _contradiction(drawn),
        listed,
        back=("/photofinish", "All matches"),
    )


def round_html(name: str, drawn: DrawnMatch, finish: PhotoFinish) -> bytes:
    """`/photofinish/MATCH/ROUND`: the time line, and all of it in words."""
    numbers = [each.round for each in drawn.finishes]
    place = numbers.index(finish.round)
    path = f"/photofinish/{drawn.match}"
    steps = element(
        "p",
        element("a", f"‹ Round {numbers[place - 1]}", href=f"{path}/{numbers[place - 1]}") if place else None,
        element("a", f"Round {numbers[place + 1]} ›", href=f"{path}/{numbers[place + 1]}")
        if place + 1 < len(numbers)
        else None,
        class_="steps",
    )
    return sheet(
        name,
        f"Round {finish.round}: {ending_words(finish.ending)}",
        _contradiction(drawn),
        _clock(finish),
        element("div", _scale(finish), *(_lane(finish, lane) for lane in finish.lanes), class_="lanes"),
        _key(),
        _words(finish),
        steps,
        back=(path, f"Match {_short(drawn.match)}"),
    )


def refusal_html(name: str, words: str) -> bytes:
    """Why there is nothing to be seen here."""
    return sheet(
        name,
        "Nothing to show",
        element("p", f"{words[:1].upper()}{words[1:]}."),
        back=("/photofinish", "All matches"),
    )


def _contradiction(drawn: DrawnMatch) -> Markup | None:
    if drawn.differs is None:
        return None
    words = contradiction_words(drawn.differs)
    return element("p", f"{words[:1].upper()}{words[1:]}.", class_="note")


def _short(match: str) -> str:
    return match.partition("-")[0]


def _round(ended: RoundEnding) -> Markup:
    """In words, and beside them the glyphs of what was thrown, the winners' bright."""
    glyphs = [
        element("span", _glyph(throw), class_=None if seat in ended.winners else "faint")
        for seat, throw in sorted(ended.throws.items())
        if throw is not None
    ]
    return element("span", *glyphs, element("span", round_words(ended)), class_="outcome")


def _clock(finish: PhotoFinish) -> Markup:
    facts = [("Guard until", since_opening(finish, finish.guard_end))]
    if finish.countdown is not None:
        facts.append(("Countdown from", since_opening(finish, finish.countdown)))
    if finish.closed is not None:
        facts.append(("Closed at", f"{since_opening(finish, finish.closed)}: {close_words(finish)}"))
    facts.append(
        ("Revealed at" if finish.ending == "revealed" else "Over at", since_opening(finish, finish.ended))
    )
    listed = element(
        "dl", *(element("div", element("dt", name), element("dd", at)) for name, at in facts), class_="facts"
    )
    late = (
        element("p", "An edge of this round was delivered after it had been compared.", class_="note")
        if finish.late
        else None
    )
    hidden = (
        element("p", "This round was never revealed, so no button is named here either.", class_="note")
        if finish.ending != "revealed"
        else None
    )
    return element("div", listed, late, hidden)


# The picture


def _at(finish: PhotoFinish, at: Instant) -> str:
    """A place on the time line, in percent of its width."""
    span = max(finish.last - finish.first, 1)
    # Whole numbers up to the last step: the same picture on every machine.
    share = min(max((at - finish.first) * 100_000 // span, 0), 100_000)
    return f"{share // 1000}.{share % 1000:03d}%"


def _shape(name: str, /, *content: Content, **attributes: str | int | None) -> Markup:
    return element(name, *content, **attributes)


def _line(finish: PhotoFinish, at: Instant, kind: str) -> Markup:
    x = _at(finish, at)
    return _shape("line", x1=x, x2=x, y1=0, y2=HEIGHT_PX, class_=kind)


def _clock_lines(finish: PhotoFinish) -> list[Markup]:
    begin, end = _at(finish, finish.opened), _at(finish, finish.guard_end)
    width = f"{float(end[:-1]) - float(begin[:-1]):.3f}%"
    shapes = [_shape("rect", x=begin, y=0, width=width, height=HEIGHT_PX, class_="guard")]
    named = (
        ("opened", finish.opened),
        ("countdown", finish.countdown),
        ("ended", finish.ended),
        ("closed", finish.closed),
    )
    return shapes + [_line(finish, at, kind) for kind, at in named if at is not None]


def _scale(finish: PhotoFinish) -> Markup:
    """The names of the clock's instants over the lanes, in two rows, so that near ones do not meet."""
    labels = [(finish.opened, "opens", 14), (finish.countdown, "countdown", 30)]
    labels.append((finish.closed, "close", 14) if finish.closed is not None else (finish.ended, "over", 14))
    texts = []
    for at, words, y in labels:
        if at is not None:
            x = _at(finish, at)
            side = "end" if float(x[:-1]) > 80 else "start"
            texts.append(_shape("text", words, x=x, y=y, text_anchor=side))
    return _shape("svg", *texts, class_="scale", height=36, width="100%", aria_hidden="true")


def _lane(finish: PhotoFinish, lane: Lane) -> Markup:
    held = []
    marks = []
    for mark in lane.marks:
        begin_x, end_x = _at(finish, mark.at), _at(finish, finish.held_until(mark))
        held.append(
            _shape(
                "line", x1=begin_x, x2=end_x, y1=_MIDDLE, y2=_MIDDLE, class_=f"held {_colour(mark.button)}"
            )
        )
        marks += _mark(finish, mark)
    if lane.bot and lane.locked_at is not None:
        marks.append(
            _shape(
                "circle", cx=_at(finish, lane.locked_at), cy=_MIDDLE, r=6, class_=f"bot {_colour(lane.throw)}"
            )
        )
    picture = _shape(
        "svg",
        *_clock_lines(finish),
        _shape("line", x1="0%", x2="100%", y1=_MIDDLE, y2=_MIDDLE, class_="time") if lane.throws else None,
        *held,
        *marks,
        class_="lane",
        height=HEIGHT_PX,
        width="100%",
        aria_hidden="true",
    )
    who = element(
        "p",
        element("span", seat_words(lane)),
        _glyph(lane.throw) if lane.throw is not None else None,
        element("span", "won", class_="tag") if lane.won else None,
        class_="who",
    )
    return element("div", who, picture, class_="row won" if lane.won else "row")


def _mark(finish: PhotoFinish, mark: Mark) -> list[Markup]:
    x = _at(finish, mark.at)
    colour = _colour(mark.button)
    if mark.fate == BOUNCE:
        return [_shape("line", x1=x, x2=x, y1=_MIDDLE - 6, y2=_MIDDLE + 6, class_=f"bounce {colour}")]
    shapes = [_shape("line", x1=x, x2=x, y1=_MIDDLE - 12, y2=_MIDDLE + 12, class_=f"press {colour}")]
    if mark.button is not None:
        shapes.append(
            _shape(
                "use",
                href=f"/kinds.svg#{mark.button.value}",
                x=x,
                y=_MIDDLE - _GLYPH_PX // 2,
                width=_GLYPH_PX,
                height=_GLYPH_PX,
                transform=f"translate({-_GLYPH_PX // 2} 0)",
                class_=f"{colour}{'' if mark.fate == THROWN else ' faint'}",
            )
        )
    if mark.fate == THROWN:
        shapes.append(_shape("circle", cx=x, cy=_MIDDLE, r=18, class_=f"thrown {colour}"))
    elif mark.fate not in (REPLACED, HIDDEN, SEATED):
        for sign in (-1, 1):
            shapes.append(
                _shape(
                    "line",
                    x1=x,
                    x2=x,
                    y1=_MIDDLE - 16,
                    y2=_MIDDLE + 16,
                    class_=f"cross {'down' if sign < 0 else 'up'}",
                )
            )
    return shapes


def _colour(kind: Kind | None) -> str:
    return "unknown" if kind is None else kind.value


def _glyph(kind: Kind) -> Markup:
    return _shape(
        "svg",
        element("title", kind.value),
        _shape("use", href=f"/kinds.svg#{kind.value}"),
        viewBox="0 0 24 24",
        class_=f"glyph-mark {kind.value}",
        role="img",
    )


def _key() -> Markup:
    return element(
        "p",
        "In a ring: counted. Faint: replaced. Struck through: did not count. "
        "A short stroke: a bounce of the contact. The bar behind a mark: how long the contact stayed closed.",
        class_="dim small",
    )


# In words


def _words(finish: PhotoFinish) -> Markup:
    seats = element("ul", *(element("li", lane_words(finish, lane)) for lane in finish.lanes), class_="said")
    rows = [_line_words(finish, line) for line in finish.by_time()]
    pressed = element("ol", *rows, class_="marks") if rows else element("p", "Nobody pressed anything.")
    return element("section", seats, element("h2", "By time"), pressed, aria_label="In words")


def _line_words(finish: PhotoFinish, line: Line) -> Markup:
    mark = line.mark
    fate, margin = line_words(finish, line)
    return element(
        "li",
        element("span", since_opening(finish, mark.at), class_="when"),
        element("span", seat_words(line.lane), class_="whose"),
        element("span", "?" if mark.button is None else mark.button.value, class_=_colour(mark.button)),
        element("span", fate),
        element("span", margin, class_="dim") if margin else None,
        class_="counted" if mark.fate in (THROWN, TABLE) else None,
    )
