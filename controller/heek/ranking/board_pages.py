"""The page of the board: places, and the matches that came last.

Everything that is shown is text put into elements by `heek.serving.markup`, which escapes it. A page is whole
without its script; the script keeps it up to date by fetching it again. Elements that stand for one and the
same thing from one state of a page to the next carry a `data-key`.
"""

from __future__ import annotations

from collections.abc import Iterable

from heek.games.ranking_points import GRANT
from heek.ranking.board import (
    Board,
    Line,
    Played,
)
from heek.ranking.frame import badge, glyph, more, page, unverified
from heek.ranking.invariant import AWARD
from heek.ranking.words import (
    but,
    counted,
    how,
    match_line,
    what_was_won,
    winner_name,
)
from heek.serving.markup import Markup, element


def board_page(
    service: str,
    state: str,
    demo: bool,
    board: Board,
    played: Iterable[Played],
    notice: str | None = None,
) -> bytes:
    """`/`: places, and the matches that came last."""
    lines = board.lines
    latest = list(played)
    return page(
        service,
        state,
        f"The board of {service}",
        element(
            "section",
            element("h2", "The board"),
            _board_table(lines) if lines else _empty_board(),
            more(f"/?after={board.following}", "Further down the board") if board.following else None,
            class_="board",
            aria_label="The board",
        ),
        element(
            "section",
            element("h2", "Last matches"),
            element("ol", *(_match_item(each) for each in latest), class_="matches", data_list="matches")
            if latest
            else element("p", "None yet.", class_="quiet"),
            class_="last",
            aria_label="Last matches",
        ),
        _how_it_counts(board.rules, demo, board.ranked),
        announced=f"{latest[0].table}: {match_line(latest[0])}" if latest else None,
        kind="board-page",
        notice=notice,
    )


def _board_table(lines: Iterable[Line]) -> Markup:
    heads = (("Place", "place"), ("Player", "who"), ("Rank", "rank"), ("Points", "points"), ("Won", "won"))
    return element(
        "table",
        element(
            "thead", element("tr", *(element("th", word, scope="col", class_=cls) for word, cls in heads))
        ),
        element("tbody", *(_board_row(line) for line in lines), data_list="board"),
    )


def _board_row(line: Line) -> Markup:
    person = line.person
    return element(
        "tr",
        element("td", line.place, class_="place"),
        element(
            "th",
            element("a", person.name, href=f"/players/{person.number}"),
            element("span", person.number, unverified(person), class_="number"),
            scope="row",
            class_="who",
        ),
        element("td", badge(line.rank), class_="rank"),
        element("td", line.points, class_="points"),
        element("td", line.won, element("span", f" of {line.played}", class_="quiet"), class_="won"),
        data_key=person.number,
        class_=f"metal-{line.place}" if line.place <= 3 else None,
    )


def _empty_board() -> Markup:
    return element(
        "div",
        element("p", "Nobody is on the board yet.", class_="lead"),
        element(
            "p",
            "Sit down at a table, sign in at your seat and play a match: "
            "its result appears here by itself, a moment after it is won.",
        ),
        class_="empty",
    )


def _match_item(played: Played) -> Markup:
    return element(
        "li",
        element(
            "a",
            glyph(played.won_with),
            element(
                "span",
                element("span", f"{played.table}: ", class_="table"),
                element("strong", winner_name(played)),
                f" won{what_was_won(played)}, {how(played)}, {counted(played.rounds, 'round', 'rounds')}",
                element("span", but(played), class_="quiet") if but(played) else None,
                class_="line",
            ),
            href=f"/matches/{played.match}",
        ),
        data_key=played.match,
        class_="void" if played.void else None,
    )


def _how_it_counts(rules: str | None, demo: bool, ranked: int) -> Markup:
    pays = (
        "The winner of a match receives what the others staked; on this board nobody loses their stake."
        if rules == AWARD
        else "The winner of a match receives what the others staked, and they lose it. "
        "Nothing else makes points."
    )
    return element(
        "section",
        element("h2", "How it counts"),
        element(
            "p",
            f"A new account holds {GRANT} points. Everybody stakes as many points as their rank is high. "
            f"{pays} "
            "Guests and bots stake nothing. Equal points share a place.",
        ),
        element(
            "p",
            element("span", "unverified", class_="tag"),
            " Nobody has proven yet that the number is theirs"
            + (": in this demonstration a click is enough." if demo else "."),
        ),
        element("p", f"{counted(ranked, 'player', 'players')} on the board.", class_="quiet")
        if ranked
        else None,
        element("p", element("a", "The tables that report here", href="/tables"), class_="more"),
        class_="how",
        aria_label="How it counts",
    )
