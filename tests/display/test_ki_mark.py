"""What the OLED says of the KI, where, how often, and for how many bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.clock import MILLISECOND, SECOND
from heek.display import drawing, faces, font
from heek.display.burn_in import DARK_AFTER, FAULT_EVERY, Light, standing, stood
from heek.display.drawing import draw
from heek.display.ki_mark import PACE, KiMark, QuietKi, Reach
from heek.display.oled import Oled
from heek.display.screens import FAULT_PAGE, next_change, screen
from heek.kinds import KINDS
from heek.session.phases import Phase
from heek.session.view import SeatState, View
from tests.display.catalogue import (
    KI_AWAY,
    KI_CLAIMS,
    KI_TROUBLED,
    KI_UP,
    KI_WAITING,
    NAMED,
    PLAYING,
    T0,
    WORKED_EXAMPLE,
    five,
    seats,
    table,
    won,
)
from tests.display.test_burn_in import Bench
from tests.display.views import instants, ki_marks, views
from tests.display.wire import Module

pytestmark = pytest.mark.filterwarnings("ignore:Image.Image.getdata is deprecated")

ATTRACT = table(Phase.ATTRACT, five(state=SeatState.FREE))
ALONE = table(Phase.LOBBY, seats(s2={"state": SeatState.TAKEN}))
MARK_BYTES = 160
"""The small mark lies on two pages of the panel's memory and is at most 39 wide; a digit is dearer."""


# In words


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        (KI_UP, ("KI: up",)),
        (KI_WAITING, ("KI: 3 waiting", "last 14:02")),
        (KiMark(Reach.UP, 3), ("KI: 3 waiting",)),
        (KI_AWAY, ("KI: no link", "12 waiting")),
        (replace(KI_AWAY, waiting=0), ("KI: no link", "last 14:02")),
        (KiMark(Reach.DOWN), ("KI: no link",)),
        (KiMark(Reach.UNKNOWN), ("KI: looking for it",)),
        (KiMark(Reach.UNKNOWN, 2), ("KI: 2 waiting",)),
        (KI_TROUBLED, ("KI: up", "see the page")),
        (replace(KI_TROUBLED, waiting=2), ("KI: 2 waiting", "see the page")),
        (KI_CLAIMS, ("KI: not enrolled", "3 waiting")),
        (replace(KI_CLAIMS, waiting=0), ("KI: not enrolled",)),
    ],
)
def test_the_words(mark: KiMark, words: tuple[str, ...]) -> None:
    """Proves what is said of each state: backlog, link, last answer, and what somebody should do."""
    assert mark.words == words


@given(ki_marks.filter(bool))
def test_words_and_mark_fit_and_tell_whatever_waits(mark: KiMark) -> None:
    """Proves that two lines of 86 px and a mark of 39 x 8 hold every state, and that no backlog is hidden."""
    assert 1 <= len(mark.words) <= 2
    assert max(font.width_px(line) for line in mark.words) <= 86
    assert (str(mark.waiting) in " ".join(mark.words)) >= (mark.waiting > 0)
    bitmap = drawing._small_mark(mark.small)
    assert bitmap.width <= 39
    assert bitmap.height == 8
    assert bool(mark.small.waiting) is (mark.waiting > 0)


def test_small_marks_are_told_apart() -> None:
    """Proves that up, down, unknown, trouble, not enrolled, and a backlog each have a mark of their own."""
    marks = [KI_UP, KI_WAITING, KI_AWAY, replace(KI_AWAY, waiting=0), KI_TROUBLED, KI_CLAIMS]
    marks += [KiMark(Reach.UNKNOWN), replace(KI_WAITING, waiting=4)]
    assert len({drawing._small_mark(mark.small).tobytes() for mark in marks}) == len(marks)


# Where


def test_no_link_says_nothing() -> None:
    """Proves that a table without a link shows the very pictures that it shows without this module."""
    lobby = table(Phase.LOBBY, five(), until_s=10)
    for view in (ATTRACT, ALONE, lobby, table(Phase.THROW, PLAYING, round=1), won("three")):
        for second in range(20):
            at = T0 + second * SECOND
            shown = screen(view, at)
            assert not getattr(shown, "ki", None)
            assert not getattr(shown, "small_ki", None)
            assert not isinstance(shown, faces.ClaimCode)


@given(view=views, now=instants, ki=ki_marks)
@settings(max_examples=300, deadline=None)
def test_the_ki_takes_nothing_from_a_round(view: View, now: int, ki: KiMark | None) -> None:
    """Proves that countdown, reveal, deciding throws, leaving and resume are the same with any KI."""
    shown = screen(view, now, ki=ki)
    quiet = (faces.Countdown, faces.Reveal, faces.Collections, faces.Leaving, faces.Resume, faces.Rules)
    if isinstance(shown, quiet):
        assert shown == screen(view, now)


@given(view=views, now=instants, ki=ki_marks)
@settings(max_examples=300, deadline=None)
def test_the_ki_changes_no_screens_name(view: View, now: int, ki: KiMark | None) -> None:
    """Proves that a story expects the same screens, whatever the KI does; a fault may give way to a code."""
    names = {screen(view, now, ki=ki).name, screen(view, now).name}
    assert len(names) == 1 or names == {"attract", "fault"}


@pytest.mark.parametrize("mark", [KI_UP, KI_WAITING, KI_AWAY, KI_TROUBLED])
@pytest.mark.parametrize(
    "view",
    [
        ATTRACT,
        ALONE,
        table(Phase.LOBBY, NAMED),
        table(Phase.LOBBY, NAMED, until_s=15),
        table(Phase.LOBBY, five(), until_s=15),
        table(Phase.THROW, PLAYING, round=3),
        won("three"),
        table(Phase.MATCH_OVER, PLAYING, until_s=8, void="idle"),
        replace(ATTRACT, not_saving=True),
    ],
)
def test_every_state_with_room_says_it(view: View, mark: KiMark) -> None:
    """Proves that within 15 s every waiting state, and each end of a match, says how it stands."""
    shown = [screen(view, T0 + second * SECOND, ki=mark) for second in range(15)]
    said = [getattr(each, "ki", None) or getattr(each, "small_ki", None) for each in shown]
    assert mark.words in said or mark.small in said


@pytest.mark.parametrize("mark", [KI_UP, KI_WAITING, KI_AWAY, KI_TROUBLED])
@pytest.mark.parametrize("name", ["", "The Cavern of Ae'gura"])
def test_a_free_table_always_says_it(mark: KiMark, name: str) -> None:
    """Proves that in no second of attract the picture is the one that it would be with another KI."""
    other = KiMark(Reach.UNKNOWN, 7)
    for second in range(faces.ATTRACT_FRAMES):
        at = T0 + second * SECOND
        pictures = {draw(screen(ATTRACT, at, table=name, ki=ki)).tobytes() for ki in (mark, other, None)}
        assert len(pictures) == 3, second


def test_a_lobby_that_counts_keeps_its_tall_number() -> None:
    """Proves that the mark above it costs the lobby's countdown not a dot."""
    view = table(Phase.LOBBY, five(), until_s=10)
    with_mark, without = (draw(screen(view, T0 + 3 * SECOND, ki=ki)) for ki in (KI_AWAY, None))
    digit = without.crop((44, 9, 84, 49))
    assert digit.getbbox() is not None
    assert with_mark.crop((44, 11, 84, 51)).tobytes() == digit.tobytes()


def test_names_take_turns_with_the_ki() -> None:
    """Proves that each name has two seconds, then the KI, then the first name again."""
    view = table(Phase.LOBBY, NAMED[:2], until_s=None)
    shown = [screen(view, T0 + 2 * turn * SECOND, ki=KI_WAITING) for turn in range(4)]
    assert [each.who and each.who[0] for each in shown] == [1, 2, None, 1]  # type: ignore[attr-defined]
    assert [each.ki for each in shown] == [(), (), KI_WAITING.words, ()]  # type: ignore[attr-defined]


# The code


def test_a_free_table_shows_the_code_and_nothing_else() -> None:
    """Proves that the code stands still until somebody sits down, whole, in the order of its letters."""
    shown = {screen(ATTRACT, T0 + second * SECOND, ki=KI_CLAIMS) for second in range(90)}
    assert shown == {faces.ClaimCode(marks=(), code="BCDFGHJK")}


def test_a_waiting_lobby_takes_turns_with_the_code() -> None:
    """Proves that who sits down sees the lobby first, then the code, five seconds each."""
    shown = [screen(ALONE, T0 + second * SECOND, ki=KI_CLAIMS) for second in range(20)]
    assert [isinstance(each, faces.ClaimCode) for each in shown] == ([False] * 5 + [True] * 5) * 2
    assert next_change(ALONE, T0, ki=KI_CLAIMS) == T0 + 5 * SECOND


def test_no_code_covers_a_countdown() -> None:
    """Proves that from the moment at which the lobby counts down the code is gone until the table is free."""
    for view in (
        table(Phase.LOBBY, five(), until_s=20),
        table(Phase.THROW, PLAYING, round=1),
        table(Phase.COUNTDOWN, PLAYING, until_s=20),
        table(Phase.REVEAL, WORKED_EXAMPLE, until_s=20),
        won("three"),
        table(Phase.RESUME, PLAYING, until_s=20),
    ):
        shown = [screen(view, T0 + second * SECOND, ki=KI_CLAIMS) for second in range(20)]
        assert not any(isinstance(each, faces.ClaimCode) for each in shown)


def test_faults_and_code_take_turns() -> None:
    """Proves that each fault has its three seconds and the code six, whichever there are."""
    view = replace(ATTRACT, seats=seats(s3={"stuck": (KINDS[0],)}), not_saving=True)
    shown = [screen(view, T0 + second * SECOND, ki=KI_CLAIMS) for second in range(24)]
    assert [each.name for each in shown] == (["fault"] * 6 + ["attract"] * 6) * 2


@pytest.mark.parametrize("faults", [0, 1, 3])
def test_the_code_is_still_told_at_night(faults: int) -> None:
    """Proves that in a dark room the code comes up for six seconds of every minute, beside each fault."""
    rows = seats(**{f"s{seat}": {"stuck": (KINDS[0],)} for seat in range(1, faults + 1)})
    view = replace(ATTRACT, seats=rows)
    for minute in range(3):
        start = T0 + DARK_AFTER + minute * FAULT_EVERY
        shown = [
            screen(view, at, ki=KI_CLAIMS)
            for at in range(start, start + FAULT_EVERY, SECOND)
            if standing(view, at, KI_CLAIMS)[0].light is not Light.DARK
        ]
        assert sum(isinstance(each, faces.ClaimCode) for each in shown) == 6
        assert len(shown) == 6 + faults * FAULT_PAGE // SECOND


# How often


def test_what_matters_is_shown_at_once() -> None:
    """Proves that link, first waiting result, last answer, code and trouble do not wait for a minute."""
    quiet = QuietKi().tell(KI_UP, 0)
    for second, mark in enumerate(
        [KI_WAITING, KI_AWAY, replace(KI_AWAY, waiting=0), KI_UP, KI_TROUBLED, KI_CLAIMS, None, KI_UP], 1
    ):
        quiet = quiet.tell(mark, second * SECOND)
        assert quiet.shown == mark


def test_a_number_waits_for_its_minute() -> None:
    """Proves that a backlog that drains is shown once a minute, then as it is, and the end of it at once."""
    quiet = QuietKi().tell(replace(KI_WAITING, waiting=1000), 5 * SECOND)
    for left in range(999, 500, -1):
        quiet = quiet.tell(replace(KI_WAITING, waiting=left), 6 * SECOND)
    assert quiet.shown is not None
    assert quiet.shown.waiting == 1000
    assert quiet.due == 5 * SECOND + PACE
    assert quiet.at(quiet.due - 1).shown == quiet.shown
    later = quiet.at(quiet.due)
    assert later.shown is not None
    assert later.shown.waiting == 501
    assert later.due is None
    assert later.tell(KI_UP, 66 * SECOND).shown == KI_UP


@given(st.lists(st.tuples(ki_marks, st.integers(0, 40)), max_size=40))
def test_the_newest_is_shown_within_a_minute(news: list[tuple[KiMark | None, int]]) -> None:
    """Proves for any news that what is shown is never wrong of the link, and never older than a minute."""
    quiet, now, known = QuietKi(), 0, None
    for mark, wait_s in news:
        now += wait_s * SECOND
        quiet, known = quiet.at(now).tell(mark, now), mark
        shown = quiet.shown
        assert (shown is None) is (known is None)
        if shown is not None and known is not None:
            assert (shown.reach, shown.claim, shown.trouble) == (known.reach, known.claim, known.trouble)
            assert bool(shown.waiting) is bool(known.waiting)
        assert quiet.due is None or now < quiet.due <= now + PACE
    assert quiet.at(now + PACE).shown == known


def test_the_painting_keeps_the_pace() -> None:
    """Proves that a real painting sends a number that moves on only when its minute has come."""
    bench = Bench()
    # Not on the minute, at which the picture moves by itself; and no LED moves at a free seat.
    start = 10 * SECOND
    view = replace(table(Phase.THROW, seats(), round=1), since=start)

    def shows(mark: KiMark | None) -> bool:
        moved = stood(draw(screen(view, bench.clock.now(), ki=mark)), standing(view, bench.clock.now())[0])
        return bench.painting.image.tobytes() == moved.tobytes()

    bench.clock.advance_to(start)
    bench.painting.tell_ki(KI_WAITING, start)
    bench.show(view, start + SECOND)
    sent = bench.panes.sent
    for waiting in range(4, 14):
        bench.painting.tell_ki(replace(KI_WAITING, waiting=waiting), bench.clock.now())
        bench.show(view, start + SECOND + waiting * MILLISECOND)
    assert bench.panes.sent == sent
    bench.show(view, start + PACE - 1)
    assert shows(KI_WAITING)
    bench.show(view, start + PACE)
    assert shows(replace(KI_WAITING, waiting=13))
    bench.painting.tell_ki(KI_UP, bench.clock.now())
    bench.show(view, start + PACE + MILLISECOND)
    assert shows(KI_UP)
    bench.painting.tell_ki(None, bench.clock.now())
    bench.show(view, start + PACE + 2 * MILLISECOND)
    assert shows(None)
    bench.painting.close()


@pytest.mark.parametrize("driver", ["ssd1306", "ssd1309", "sh1106"])
def test_what_a_change_costs(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves for each controller that the mark between two rounds costs little, and nothing unchanged."""
    module = Module(driver).plug_in(monkeypatch)
    oled = Oled(driver)
    view = table(Phase.THROW, PLAYING, round=3)
    marks = [KI_UP, KI_WAITING, replace(KI_WAITING, waiting=4), KI_AWAY, KI_CLAIMS, KI_TROUBLED, KI_UP]
    oled.show(draw(screen(view, T0, ki=marks[0])), 0)
    for mark in marks[1:]:
        module.forget()
        picture = draw(screen(view, T0, ki=mark))
        assert oled.show(picture, 0).ok
        assert 0 < module.data_bytes <= MARK_BYTES
        assert module.controller.picture().tobytes() == picture.tobytes()
        module.forget()
        assert oled.show(draw(screen(view, T0 + SECOND, ki=replace(mark))), 0).ok
        assert module.messages == 0
