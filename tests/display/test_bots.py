"""A bot is marked wherever seats are shown, by a sign that is the same from every side."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heek.clock import SECOND
from heek.display import faces, glyphs, table_top
from heek.display.drawing import draw
from heek.display.screens import next_change, screen
from heek.kinds import KINDS, SEATS, Seat
from heek.session.phases import Phase
from heek.session.view import SeatState, View
from tests.display.catalogue import NAMES, T0, but, moments, seats, table
from tests.display.test_drawing import difference

ALONE = table(Phase.LOBBY, seats(s1={"state": SeatState.TAKEN}), bots_allowed=True)
SEATED = sorted(
    name
    for name, (view, _, _) in moments().items()
    if view.phase is not Phase.ATTRACT and not name.startswith("rules") and "bots" not in name
)


def sitting(view: View) -> list[Seat]:
    return [row.seat for row in view.seats if row.state not in (SeatState.FREE, SeatState.ABSENT)]


@pytest.mark.parametrize("name", SEATED)
def test_every_screen_with_seats_marks_each_bot(name: str) -> None:
    """Whoever of those who sit is a bot: the picture has the cogwheel there, whole and with a dark rim."""
    view, now, cycle = moments()[name]
    for seat in sitting(view):
        rows = but(view.seats, **{f"s{seat}": {"bot": True, "leaves_at": None}})
        shown = screen(replace(view, seats=rows), now, cycle)
        picture = draw(shown)
        if isinstance(shown, faces.Reveal):
            places, sign = table_top.GLYPH_BOTS, glyphs.sign("bot_small")
        elif hasattr(shown, "tallies"):
            places, sign = table_top.BLOCK_BOTS, glyphs.sign("bot_small")
        else:
            places, sign = table_top.BOTS, glyphs.sign("bot")
        x, y = places[seat]
        left, top = x - sign.width // 2, y - sign.height // 2
        there = picture.crop((left, top, left + sign.width, top + sign.height))
        assert there.tobytes() == sign.tobytes(), (name, seat)
        around = picture.crop((left - 1, top - 1, left + sign.width + 1, top + sign.height + 1))
        around.paste(0, (1, 1, 1 + sign.width, 1 + sign.height))
        assert around.getbbox() is None, (name, seat)


@pytest.mark.parametrize("name", ["bot", "bot_small", "bot_large"])
def test_the_sign_is_the_same_from_every_side(name: str) -> None:
    """Turned by quarters, or seen in a mirror, it is itself."""
    sign = glyphs.sign(name)
    for turns in range(4):
        assert glyphs.turned(sign, turns).tobytes() == sign.tobytes()


def test_the_sign_is_no_kind() -> None:
    """At the size of the small kinds a sixth of the square or more differs from each of them."""
    for kind in KINDS:
        for turns in range(4):
            apart = difference(glyphs.sign("bot_small"), glyphs.kind(kind, glyphs.SMALL_PX, turns))
            assert apart >= glyphs.SMALL_PX**2 / 6


def test_the_signs_of_all_seats_lie_inside_the_screen() -> None:
    """With their rims but for what the edge itself is, and apart from each other."""
    for places, name in (
        (table_top.BOTS, "bot"),
        (table_top.BLOCK_BOTS, "bot_small"),
        (table_top.GLYPH_BOTS, "bot_small"),
    ):
        half = glyphs.sign(name).width // 2
        for seat in SEATS:
            x, y = places[seat]
            assert half <= x < 128 - half
            assert half <= y < 64 - half


def test_who_waits_alone_reads_how_to_ask() -> None:
    """Two seconds of waiting for one more and two of the way to company take turns."""
    pages = [screen(ALONE, T0 + 2 * turn * SECOND) for turn in range(4)]
    assert [page.bots for page in pages if isinstance(page, faces.Lobby)] == [False, True, False, True]
    assert next_change(ALONE, T0) == T0 + 2 * SECOND


def test_who_waits_alone_sees_the_bots_come() -> None:
    """Where they come by themselves, the page counts the seconds down to it."""
    view = replace(ALONE, bots_at=T0 + 10 * SECOND)
    shown = [screen(view, T0 + at * SECOND) for at in (2, 3, 6, 7)]
    assert [page.bots_s for page in shown if isinstance(page, faces.Lobby)] == [8, 7, 4, 3]


@pytest.mark.parametrize(
    "view",
    [
        replace(ALONE, bots_allowed=False),
        replace(ALONE, seats=but(ALONE.seats, s4={"state": SeatState.TAKEN})),
        replace(ALONE, until=T0 + 5 * SECOND),
    ],
)
def test_nobody_else_reads_of_bots(view: View) -> None:
    """Without bots, for two people, or when the match is about to start, the lobby is as ever."""
    for at in range(6):
        shown = screen(view, T0 + at * SECOND)
        assert isinstance(shown, faces.Lobby)
        assert not shown.bots


def test_the_names_go_on_beside_it() -> None:
    """A signed-in player who waits alone is still named on both pages."""
    view = replace(ALONE, seats=but(ALONE.seats, s1={"name": NAMES[1]}))
    for at in (0, 2):
        shown = screen(view, T0 + at * SECOND)
        assert isinstance(shown, faces.Lobby)
        assert shown.who == (1, NAMES[1])


def test_the_rules_have_a_page_about_bots_where_there_may_be_any() -> None:
    """A fourth page of 4 s, and none at other tables."""
    for allowed, pages in ((True, [0, 1, 2, 3, 0]), (False, [0, 1, 2, 0, 1])):
        view = replace(ALONE, rules_since=T0, bots_allowed=allowed)
        shown = [screen(view, T0 + 4 * turn * SECOND) for turn in range(5)]
        assert [page.page for page in shown if isinstance(page, faces.Rules)] == pages
