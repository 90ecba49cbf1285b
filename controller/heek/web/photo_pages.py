"""The pages of the photo finish: which matches can be shown, a match's rounds, and a round's time line.

The picture has no fixed size: every place on the time line is a percentage of it, and every mark is as large
as letters are, from a phone to a wall. What it shows stands below it in words, too.
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
    void_words,
)
from heek.serving.markup import Content, Markup, element
from heek.web.sheet import sheet

_NEAR_PERMILLE: Final = 90
"""Of the time line: marks that are nearer than this would cover each other, and lie one below the other."""
_ROWS: Final = {Kind.PEN: "18%", Kind.PAGE: "50%", Kind.BEETLE: "82%"}
"""Where the three buttons' marks lie then; elsewhere all are in the middle."""
_MIDDLE: Final = "50%"


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
    void: str | None = None
    """Why an operator of the KI has declared the match void (may be empty); None: nobody has."""


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
        _void(drawn),
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
        _void(drawn),
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


def _void(drawn: DrawnMatch) -> Markup | None:
    if drawn.void is None:
        return None
    return element("p", f"This match is {void_words(drawn.void)}.", class_="note")


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
    return _shape("line", x1=x, x2=x, y1=0, y2="100%", class_=kind)


def _clock_lines(finish: PhotoFinish) -> list[Markup]:
    begin, end = _at(finish, finish.opened), _at(finish, finish.guard_end)
    width = f"{float(end[:-1]) - float(begin[:-1]):.3f}%"
    shapes = [_shape("rect", x=begin, y=0, width=width, height="100%", class_="guard")]
    named = (
        ("opened", finish.opened),
        ("countdown", finish.countdown),
        ("ended", finish.ended),
        ("closed", finish.closed),
    )
    return shapes + [_line(finish, at, kind) for kind, at in named if at is not None]


def _scale(finish: PhotoFinish) -> Markup:
    """The names of the clock's instants over the lanes, in two rows, so that near ones do not meet."""
    labels = [(finish.opened, "opens, guard", "1rem"), (finish.countdown, "countdown", "2.2rem")]
    labels.append(
        (finish.closed, "close", "1rem") if finish.closed is not None else (finish.ended, "over", "1rem")
    )
    texts = []
    for at, words, y in labels:
        if at is not None:
            x = _at(finish, at)
            side = "end" if float(x[:-1]) > 80 else "start"
            texts.append(_shape("text", words, x=x, y=y, text_anchor=side))
    return _shape("svg", *texts, class_="scale", height="2.6rem", width="100%", aria_hidden="true")


def _lane(finish: PhotoFinish, lane: Lane) -> Markup:
    held = []
    marks = []
    for mark, y in zip(lane.marks, _heights(finish, lane.marks), strict=True):
        begin_x, end_x = _at(finish, mark.at), _at(finish, finish.held_until(mark))
        held.append(_shape("line", x1=begin_x, x2=end_x, y1=y, y2=y, class_=f"held {_colour(mark.button)}"))
        marks.append(_shape("svg", *_mark(mark), x=begin_x, y=y, class_="mark"))
    if lane.bot and lane.locked_at is not None:
        dot = _shape("circle", r=".4rem", class_=f"bot {_colour(lane.throw)}")
        marks.append(_shape("svg", dot, x=_at(finish, lane.locked_at), y=_MIDDLE, class_="mark"))
    picture = _shape(
        "svg",
        *_clock_lines(finish),
        _shape("line", x1="0%", x2="100%", y1=_MIDDLE, y2=_MIDDLE, class_="time") if lane.throws else None,
        *held,
        *marks,
        class_="lane",
        height="5.2rem",
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


def _heights(finish: PhotoFinish, marks: Sequence[Mark]) -> list[str]:
    """Where in its lane each mark lies: in the middle, or in its button's row if another's is near."""
    near = (finish.last - finish.first) * _NEAR_PERMILLE // 1000
    heights = []
    for mark in marks:
        crowded = any(other.button is not mark.button and abs(other.at - mark.at) < near for other in marks)
        heights.append(_ROWS[mark.button] if crowded and mark.button is not None else _MIDDLE)
    return heights


def _upright(half: str, kind: str) -> Markup:
    return _shape("line", y1=f"-{half}", y2=half, class_=kind)


def _mark(mark: Mark) -> list[Markup]:
    """What stands about the instant of a press, as large as letters are."""
    colour = _colour(mark.button)
    if mark.fate == BOUNCE:
        return [_upright(".4rem", f"bounce {colour}")]
    shapes = [_upright(".75rem", f"press {colour}")]
    if mark.button is not None:
        shapes.append(
            _shape(
                "use",
                href=f"/kinds.svg#{mark.button.value}",
                x="-.8rem",
                y="-.8rem",
                width="1.6rem",
                height="1.6rem",
                class_=f"{colour}{'' if mark.fate == THROWN else ' faint'}",
            )
        )
    if mark.fate == THROWN:
        shapes.append(_shape("circle", r="1.1rem", class_=f"thrown {colour}"))
    elif mark.fate not in (REPLACED, HIDDEN, SEATED):
        shapes.append(_shape("line", x1="-.7rem", x2=".7rem", y1="-.7rem", y2=".7rem", class_="cross"))
        shapes.append(_shape("line", x1="-.7rem", x2=".7rem", y1=".7rem", y2="-.7rem", class_="cross"))
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
        "Shaded: the guard, in which no press counts. In a ring: counted. Faint: replaced. "
        "Struck through: did not count. A short stroke: a bounce of the contact. "
        "The bar behind a mark: how long the contact stayed closed.",
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
