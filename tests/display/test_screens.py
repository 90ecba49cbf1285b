"""What is shown when: names, precedence, digits, blinks, and the instant of the next change."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.clock import MILLISECOND, SECOND
from heek.display import faces
from heek.display.drawing import draw
from heek.display.ki_mark import KiMark
from heek.display.screens import FAULT_PAGE, next_change, screen
from heek.kinds import KINDS, SEATS, Kind
from heek.session.phases import Phase
from heek.session.view import Collection, SeatState, View
from tests.display.catalogue import (
    EVERY_FAULT,
    PLAYING,
    T0,
    WORKED_EXAMPLE,
    but,
    five,
    moments,
    seats,
    table,
    won,
)
from tests.display.views import instants, ki_marks, views


@given(view=views, now=instants, part=st.floats(0, 1, exclude_max=True), ki=ki_marks)
@settings(max_examples=400, deadline=None)
def test_next_change_is_exact(view: View, now: int, part: float, ki: KiMark | None) -> None:
    """Proves that a screen stays as it is until `next_change` and differs at that very nanosecond."""
    shown = screen(view, now, ki=ki)
    change = next_change(view, now, ki=ki)
    horizon = now + 300 * SECOND if change is None else change
    assert horizon > now
    for instant in (now + round((horizon - now - 1) * part), horizon - 1):
        assert screen(view, instant, ki=ki) == shown
    if change is not None:
        assert screen(view, change, ki=ki) != shown


@given(view=views, now=instants)
@settings(max_examples=200, deadline=None)
def test_screens_are_named_values(view: View, now: int) -> None:
    """Proves that any view gives a hashable screen with one of the eleven names."""
    shown = screen(view, now)
    assert shown.name in faces.SCREEN_NAMES
    assert hash(shown) == hash(screen(view, now))


@given(view=views, now=instants)
@settings(max_examples=200, deadline=None)
def test_nothing_blinks_above_one_hertz(view: View, now: int) -> None:
    """Proves that two changes and the way back take a second, save where digits fall as well."""
    view = replace(view, until=None, seats=tuple(replace(row, leaves_at=None) for row in view.seats))
    view = replace(view, rules_since=None, bots_at=None)
    first = next_change(view, now)
    second = None if first is None else next_change(view, first)
    if first is not None and second is not None:
        assert second - first >= SECOND // 2


@given(view=views, now=instants, kinds=st.lists(st.sampled_from(KINDS), min_size=5, max_size=5))
@settings(max_examples=200, deadline=None)
def test_no_screen_of_a_running_round_knows_a_throw(view: View, now: int, kinds: list[Kind]) -> None:
    """Proves that even a view that leaked throws would not show one before the reveal."""
    view = replace(view, phase=Phase.COUNTDOWN if view.target % 2 else Phase.THROW)
    leaky = replace(
        view, seats=tuple(replace(row, throw=k) for row, k in zip(view.seats, kinds, strict=True))
    )
    clean = replace(view, seats=tuple(replace(row, throw=None) for row in view.seats))
    assert screen(leaky, now) == screen(clean, now)


@given(view=views, now=instants)
@settings(max_examples=200, deadline=None)
def test_absent_seats_are_not_drawn(view: View, now: int) -> None:
    """Proves that a seat without a station has neither mark nor pips."""
    absent = {row.seat for row in view.seats if row.state is SeatState.ABSENT}
    shown = screen(view, now)
    assert not absent & {mark.seat for mark in shown.marks}
    assert not absent & {tally.seat for tally in getattr(shown, "tallies", ())}


@pytest.mark.parametrize(
    ("phase", "name"),
    [
        (Phase.LOBBY, "leaving"),
        (Phase.THROW, "leaving"),
        (Phase.RESUME, "leaving"),
        (Phase.COUNTDOWN, "countdown"),
        (Phase.SETTLE, "countdown"),
        (Phase.REVEAL, "reveal"),
        (Phase.MATCH_OVER, "match_over"),
    ],
)
def test_a_leaver_never_covers_clock_or_result(phase: Phase, name: str) -> None:
    """Proves in which phases leaving takes the screen, and that else the seat's mark has the digit."""
    rows = but(WORKED_EXAMPLE, s3={"leaves_at": T0 + 2 * SECOND})
    shown = screen(table(phase, rows, until_s=5, winner=4, by="three", round=1), T0)
    assert shown.name == name
    assert {mark.seat: mark.leaving_s for mark in shown.marks} == {1: None, 2: None, 3: 2, 4: None, 5: None}


def test_the_first_leaver_has_the_screen() -> None:
    """Proves that of two leavers the one who goes first is shown, the lower seat at a tie."""
    rows = but(
        PLAYING,
        s4={"leaves_at": T0 + SECOND},
        s2={"leaves_at": T0 + SECOND},
        s1={"leaves_at": T0 + 2 * SECOND},
    )
    shown = screen(table(Phase.THROW, rows, round=1), T0)
    assert isinstance(shown, faces.Leaving)
    assert (shown.seat, shown.seconds) == (2, 1)


def test_countdown_reads_begun_seconds() -> None:
    """Proves the digits of a countdown of 5 s at and around the whole seconds, and 0 after its end."""
    view = table(Phase.COUNTDOWN, PLAYING, until_s=5, round=1)

    def digit(at: int) -> int:
        shown = screen(view, T0 + at)
        assert isinstance(shown, faces.Countdown)
        return shown.seconds

    assert [digit(s * SECOND) for s in range(7)] == [5, 4, 3, 2, 1, 0, 0]
    assert digit(SECOND - 1) == 5
    assert digit(5 * SECOND - 1) == 1


def test_the_third_pip_blinks() -> None:
    """Proves that what a winner has just won is lit for half a second and dark for the next."""
    rows = but(WORKED_EXAMPLE, s4={"collection": Collection(0, 3, 2)})
    view = table(Phase.REVEAL, rows, until_s=4, round=1)
    lit, dark = screen(view, T0 + 2 * SECOND), screen(view, T0 + 2500 * MILLISECOND)
    assert isinstance(lit, faces.Collections)
    assert isinstance(dark, faces.Collections)
    assert lit.tallies[3].counts == (0, 3, 2)
    assert dark.tallies[3].counts == (0, 2, 2)
    assert lit.tallies[0] == dark.tallies[0]


def test_sudden_death_adds_no_pip_and_blinks_none() -> None:
    """Proves that the collections stand still in sudden death, where nothing is added to them."""
    view = table(Phase.REVEAL, WORKED_EXAMPLE, until_s=4, round=1, sudden_death=True)
    assert next_change(view, T0 + 2 * SECOND) is None


def test_match_over_shows_the_throws_first() -> None:
    """Proves that the deciding throws are shown for 2.5 s, for half of a short match over."""
    view = won("three", 4, collection=Collection(0, 3, 2))
    assert isinstance(screen(view, T0), faces.DecidingThrows)
    assert next_change(view, T0) == T0 + 2500 * MILLISECOND
    assert isinstance(screen(view, T0 + 2500 * MILLISECOND), faces.MatchOver)
    assert next_change(replace(view, until=T0 + SECOND), T0) == T0 + SECOND // 2


def test_a_result_without_throws_is_shown_at_once() -> None:
    """Proves that a walkover between rounds does not show an empty reveal first."""
    view = table(Phase.MATCH_OVER, but(PLAYING, s2={"won_match": True}), until_s=8, winner=2, by="walkover")
    assert isinstance(screen(view, T0), faces.MatchOver)


def test_faults_take_turns_and_never_stand_still() -> None:
    """Proves that attract becomes fault, that each fault gets its page, and that one alone still moves."""
    rows = seats(s2={"stuck": (Kind.PEN,)}, s5={"stuck": (Kind.PAGE, Kind.BEETLE)})
    view = table(Phase.ATTRACT, rows, not_saving=True)
    pages = [screen(view, T0 + 3 * n * SECOND) for n in range(4)]
    assert [page.seat for page in pages if isinstance(page, faces.Fault)] == [None, 2, 5, None]
    alone = table(Phase.ATTRACT, seats(s2={"stuck": (Kind.PEN,)}))
    assert next_change(alone, T0) == T0 + 3 * SECOND


def test_every_kind_of_trouble_has_a_page_of_its_own() -> None:
    """Proves that a seat's stuck, flooding and worn buttons are told in turn, then the next seat's."""
    view = table(Phase.ATTRACT, seats(**EVERY_FAULT))
    pages = [screen(view, T0 + 3 * n * SECOND) for n in range(4)]
    assert [(page.seat, page.trouble, page.buttons) for page in pages if isinstance(page, faces.Fault)] == [
        (1, "stuck", (Kind.PEN,)),
        (1, "flood", (Kind.PAGE,)),
        (1, "chatter", (Kind.BEETLE,)),
        (4, "chatter", (Kind.PEN,)),
    ]


def test_an_ignored_button_and_a_worn_one_have_different_marks() -> None:
    """Proves that a mark tells a button that is ignored from one that is worn and counts, and knows both."""
    rows = seats(
        s1={"faults": ((Kind.PEN, "flood"),)},
        s2={"faults": ((Kind.PEN, "chatter"),)},
        s3={"stuck": (Kind.PEN,), "faults": ((Kind.PAGE, "chatter"),)},
    )
    marks = screen(table(Phase.THROW, rows, round=1), T0).marks
    assert [(mark.stuck, mark.worn) for mark in marks[:4]] == [
        (True, False),
        (False, True),
        (True, True),
        (False, False),
    ]


def test_a_stuck_contact_of_an_absent_seat_is_no_fault() -> None:
    """Proves that a seat without a station cannot put the fault screen up."""
    rows = seats(s2={"state": SeatState.ABSENT, "stuck": (Kind.PEN,)})
    assert screen(table(Phase.ATTRACT, rows), T0).name == "attract"


def test_attract_moves_once_a_second_in_sixty_pictures() -> None:
    """Proves that attract never stands still and repeats itself within sixty distinct screens."""
    view = table(Phase.ATTRACT, five(state=SeatState.FREE))
    assert next_change(view, T0) == T0 + SECOND
    assert len({screen(view, T0 + s * SECOND) for s in range(240)}) == faces.ATTRACT_FRAMES


def test_rules_alternate_and_follow_the_cycle() -> None:
    """Proves the three pages of 4 s and that the ring is that of the configured cycle."""
    view = table(Phase.LOBBY, five(), rules_since=T0)
    pages = [screen(view, T0 + 4 * n * SECOND) for n in range(4)]
    assert [page.page for page in pages if isinstance(page, faces.Rules)] == [0, 1, 2, 0]
    other = screen(view, T0, cycle="pen-beetle-page")
    assert isinstance(other, faces.Rules)
    assert other.ring == (Kind.PEN, Kind.BEETLE, Kind.PAGE)


def test_every_moment_knows_its_trouble() -> None:
    """Proves that each screen of a troubled table carries all five "!" and the mark for not saving."""
    for name, (view, now, cycle) in moments().items():
        if name.endswith("-troubles"):
            shown = screen(view, now, cycle)
            assert [mark.seat for mark in shown.marks if mark.stuck] == list(SEATS), name
            assert shown.not_saving, name


def test_a_damaged_journal_takes_its_turn() -> None:
    """Proves that what is told of the journal has a page of its own, beside the others."""
    view = table(Phase.ATTRACT, seats(s2={"stuck": (Kind.PEN,)}), not_saving=True, journal=("Set aside.",))
    pages = [screen(view, T0 + number * FAULT_PAGE) for number in range(4)]
    told = [(page.seat, page.trouble) for page in pages if isinstance(page, faces.Fault)]
    assert told == [(None, ""), (None, "journal"), (2, "stuck"), (None, "")]
    alone = screen(table(Phase.ATTRACT, seats(), journal=("Set aside.",)), T0)
    assert isinstance(alone, faces.Fault)
    assert not alone.not_saving
    assert draw(alone).tobytes() != draw(replace(alone, trouble="")).tobytes()
