"""The page of one match: who played, what moved, and the throws of every round."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from heek.kinds import Seat
from heek.ranking.board import TRUSTED, At, MatchPage, Played
from heek.ranking.frame import glyph, page, unverified
from heek.ranking.words import counted, ruled, signed, time_words, winner_name, won_how
from heek.serving.markup import Content, Markup, element

MOST_ROUNDS: Final = 300
"""Rounds that are shown of one match; one of ordinary length has some ten."""


def match_html(service: str, state: str, shown: MatchPage, notice: str | None = None) -> bytes:
    """`/matches/{id}`: who played, what moved, and the throws of every round."""
    played = shown.played
    name = winner_name(played)
    title = f"{name[:1].upper()}{name[1:]} {won_how(played)}"
    return page(
        service,
        state,
        f"{title} · {service}",
        element(
            "section",
            element("p", element("a", "The board", href="/"), class_="back"),
            element("h2", glyph(played.won_with), element("span", title)),
            element("p", _circumstances(shown), _corrected(shown), class_="quiet"),
            *_rulings(shown),
            _seats_table(shown),
            element("p", "Another version of this result came later and was set aside.", class_="note")
            if shown.conflicts
            else None,
            class_="match",
            aria_label="The match",
        ),
        element(
            "section", element("h2", "The rounds"), *_rounds(shown), class_="rounds", aria_label="The rounds"
        ),
        kind="match-page",
        notice=notice,
    )


def _seats_table(shown: MatchPage) -> Markup:
    heads = ("Seat", "Player", "Stake", "Points")
    winner = max(place for place, each in enumerate(shown.seats) if each.seat == shown.record.winner)
    return element(
        "table",
        element("thead", element("tr", *(element("th", word, scope="col") for word in heads))),
        element(
            "tbody",
            *(_seat_row(each, place == winner, shown.played) for place, each in enumerate(shown.seats)),
        ),
    )


def _rulings(shown: MatchPage) -> Iterable[Markup]:
    """Whether it counts, and why; what was said before only where that is not all."""
    for number, each in enumerate(shown.rulings, start=1):
        last = number == len(shown.rulings)
        said = f"{ruled(each)[:1].upper()}{ruled(each)[1:]}."
        if last and each.voids:
            said = f"{said} Nothing of it counts."
        yield element("p", said, class_="note void" if last and each.voids else "note")


def _seat_row(at: At, won: bool, played: Played) -> Markup:
    person, rated = at.person, played.rated
    return element(
        "tr",
        element("td", at.seat),
        element(
            "th",
            element("a", person.name, href=f"/players/{person.number}") if person else at.kind,
            unverified(person) if person else None,
            element("span", "winner", class_="tag winner") if won else None,
            scope="row",
        ),
        element("td", at.stake if person and rated else "–", class_="number"),
        element("td", _moved(at, played), class_="number"),
        class_="won" if won else None,
    )


def _moved(at: At, played: Played) -> Content:
    if at.person is None or not played.rated:
        return "–"
    if played.void:
        return element("s", signed(at.delta)) if at.delta else "0"
    return signed(at.delta)


def _circumstances(shown: MatchPage) -> str:
    played = shown.played
    said = f"{played.table}, {counted(played.rounds, 'round', 'rounds')}"
    if not played.rated:
        said += ", not rated: nothing moves"
    time = shown.record.t
    if time.trust in TRUSTED and (when := time_words(time.wall_s)):
        said += f", {when}"
    return said


def _corrected(shown: MatchPage) -> Markup | None:
    """When it was, where the table did not know: told by the KI's clock and how long ago the table says."""
    when = None if shown.corrected_s is None else time_words(shown.corrected_s)
    if when is None:
        return None
    words = "The table's clock was not set then; the KI has worked out when it was."
    return element("span", f", {when} ", element("span", "by the KI's clock", class_="tag", title=words))


def _rounds(shown: MatchPage) -> Iterable[Content]:
    seats = sorted({each.seat for each in shown.seats})
    rounds = shown.record.rounds[:MOST_ROUNDS]
    if shown.replay.cycle is None:
        yield element(
            "p",
            "The record shows the throws, but not which way round the kinds beat each other.",
            class_="quiet",
        )
    else:
        yield element("p", "A framed throw won its round.", class_="quiet")
    names = {each.seat: each for each in shown.seats}
    heads = [element("th", "Round", scope="col")]
    heads += [
        element("th", element("span", "Seat ", class_="unseen"), seat, _seat_title(names[seat]), scope="col")
        for seat in seats
    ]
    rows = [
        element(
            "tr",
            element("th", number, scope="row"),
            *(_throw(shown, number, seat) for seat in seats),
        )
        for number in range(1, len(rounds) + 1)
    ]
    yield element(
        "div",
        element("table", element("thead", element("tr", *heads)), element("tbody", *rows)),
        class_="wide",
        tabindex=0,
        role="group",
        aria_label="The throws of every round",
    )
    left = len(shown.record.rounds) - len(rounds)
    if left:
        yield element("p", f"And {counted(left, 'more round', 'more rounds')}.", class_="quiet")


def _seat_title(at: At) -> Markup:
    return element("span", at.person.name if at.person else at.kind, class_="seat-name")


def _throw(shown: MatchPage, number: int, seat: Seat) -> Markup:
    throws = shown.record.rounds[number - 1]
    if seat not in throws:
        return element("td", element("span", "not in this round", class_="unseen"), class_="out")
    kind = throws[seat]
    if kind is None:
        return element("td", element("span", "no throw", class_="unseen"), "–", class_="none")
    won = seat in shown.replay.winners[number - 1]
    return element(
        "td",
        glyph(kind.value),
        element("span", kind.value, ", won the round" if won else None, class_="unseen"),
        class_="won" if won else None,
    )
