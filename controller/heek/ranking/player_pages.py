"""The page of one player: points, rank, and the reason for every change."""

from __future__ import annotations

from typing import Final

from heek.games.ranking_points import GRANT
from heek.ranking.board import Change, PlayerPage, rank_limit
from heek.ranking.frame import badge, more, page, unverified
from heek.ranking.words import counted, match_line, reason, signed
from heek.serving.markup import Content, Markup, element

_COURSE_WIDTH: Final = 300
_COURSE_HEIGHT: Final = 80


def player_html(service: str, state: str, shown: PlayerPage, notice: str | None = None) -> bytes:
    """`/players/{number}`: points, rank, and the reason for every change."""
    person = shown.person
    changes = [_change_item(each) for each in shown.changes]
    if shown.following is None:
        changes.append(
            element(
                "li",
                element("span", signed(GRANT), class_="delta"),
                " ",
                element(
                    "span",
                    element("strong", "grant"),
                    ": the account was made",
                    class_="why",
                ),
                element("span", f"{GRANT}", class_="total"),
                data_key="grant",
            )
        )
    place = "none yet" if shown.place is None else f"{shown.place} of {shown.ranked}"
    return page(
        service,
        state,
        f"{person.name} at {service}",
        element(
            "section",
            element("p", element("a", "The board", href="/"), class_="back"),
            element("h2", person.name, unverified(person)),
            element("p", f"KI number {person.number}", class_="quiet"),
            element(
                "dl",
                _fact("Points", shown.points, "points"),
                _fact("Rank", badge(shown.rank), "rank"),
                _fact("Place", place, "place"),
                _fact("Matches", f"{shown.won} won of {shown.played}", "won"),
            ),
            _to_next(shown),
            _course(shown.changes) if len(shown.changes) > 1 else None,
            class_="player",
            aria_label=person.name,
        ),
        element(
            "section",
            element("h2", "Why the points are what they are"),
            element("p", "Newest first; on the right what they were afterwards.", class_="quiet"),
            element("ol", *changes, class_="changes", data_list="changes"),
            more(f"/players/{person.number}?before={shown.following}", "Earlier matches")
            if shown.following is not None
            else None,
            class_="reasons",
            aria_label="Every change and its reason",
        ),
        announced=str(reason(shown.changes[0])) if shown.changes else None,
        kind="player-page",
        notice=notice,
    )


def _change_item(change: Change) -> Markup:
    said, note = reason(change), _note(change).strip()
    return element(
        "li",
        element("span", said.delta, class_="delta"),
        " ",
        element(
            "span",
            element("strong", said.what),
            ": ",
            element("a", said.why or f"{match_line(change.played)}", href=f"/matches/{change.played.match}"),
            element("span", f" {note}", class_="quiet") if note else None,
            class_="why",
        ),
        element("span", element("span", "then ", class_="unseen"), max(0, change.total), class_="total"),
        data_key=change.played.match if change.ruling is None else f"{change.played.match}-{change.key}",
        class_=_class(change),
    )


def _note(change: Change) -> str:
    if change.ruling is not None:
        return ""
    said = "The table knew other points then." if change.stale else ""
    return f"{said} It was declared void since." if change.played.void else said


def _class(change: Change) -> str | None:
    if change.ruling is not None:
        return "ruling"
    if change.played.void:
        return "void"
    return "won" if change.mine else None


def _to_next(shown: PlayerPage) -> Markup:
    low = 0 if shown.rank <= 1 else rank_limit(shown.rank - 1)
    high = 1 if shown.rank == 0 else rank_limit(shown.rank) + 1
    words = f"{counted(shown.to_next, 'point', 'points')} to rank {shown.rank + 1}"
    return element(
        "p",
        element("meter", words, min=low, max=high, value=max(low, shown.total), aria_label=words),
        element("span", words, aria_hidden="true"),
        class_="to-next",
    )


def _course(changes: tuple[Change, ...]) -> Markup:
    """The points after each of these matches, as a line."""
    totals = [changes[-1].total - changes[-1].delta, *(each.total for each in reversed(changes))]
    low, high = min(totals), max(totals)
    step = _COURSE_WIDTH / (len(totals) - 1)
    height = _COURSE_HEIGHT / max(1, high - low)
    points = " ".join(f"{at * step:.1f},{(high - total) * height:.1f}" for at, total in enumerate(totals))
    played = sum(each.ruling is None for each in changes)
    words = f"From {totals[0]} to {totals[-1]} points in {counted(played, 'match', 'matches')}."
    below = f"0,{_COURSE_HEIGHT} {points} {_COURSE_WIDTH},{_COURSE_HEIGHT}"
    return element(
        "figure",
        element(
            "svg",
            element("polygon", points=below),
            element("polyline", points=points, vector_effect="non-scaling-stroke"),
            viewBox=f"0 0 {_COURSE_WIDTH} {_COURSE_HEIGHT}",
            preserveAspectRatio="none",
            aria_hidden="true",
        ),
        element("figcaption", f"{words} Lowest {low}, highest {high}."),
        class_="course",
    )


def _fact(name: str, value: Content, class_: str) -> Markup:
    return element("div", element("dt", name), element("dd", value), class_=class_)
