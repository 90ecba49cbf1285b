"""Nothing that names a button or a throw of a running round leaves the table before the reveal."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.kinds import Kind
from heek.session.phases import Phase
from heek.session.state import keep
from tests.session.at_table import FAST, AtTable, in_match

RUNNING = (Phase.THROW, Phase.COUNTDOWN, Phase.SETTLE)
KINDS = ("pen", "page", "beetle")
TURNS = [dict(zip(KINDS, KINDS[by:] + KINDS[:by], strict=True)) for by in range(3)]
"""The same play with every button exchanged for the next one, or the one after it."""

PRESSES = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 4), st.sampled_from(KINDS)),
    max_size=14,
    unique_by=lambda each: each[:2],
)
"""Slots of 150 ms from 2.15 s on, a seat (4 is empty) and a button."""


def nothing_shown(table: AtTable) -> None:
    """While a round runs no seat's view holds a throw, points or a winner of it."""
    if table.view.phase in RUNNING:
        for seat in table.view.seats:
            assert seat.throw is None
            assert seat.points is None
            assert not seat.won_round


def seen(presses: list[tuple[int, int, str]], turn: dict[str, str], **how: Any) -> list[Any]:
    """All that anybody could see, up to the first reveal."""
    views: list[Any] = []
    table = in_match(1, 2, 3, watch=lambda each: views.append(each.view), **how)
    for slot, seat, button in presses:
        table.press(seat, round(2.15 + slot * 0.15 + seat * 0.01, 6), turn[button], lasts=0.05)
    table.run(9)
    shown = [index for index, each in enumerate(table.events) if each["event"] == "round_revealed"]
    before = [view for view in views if view.phase is not Phase.REVEAL]
    if shown:
        until = next(index for index, view in enumerate(views) if view.phase is Phase.REVEAL)
        return [table.events[: shown[0]], views[:until]]
    return [table.events, before]


@settings(max_examples=100, deadline=None)
@given(presses=PRESSES, by=st.integers(1, 2), allow_change=st.booleans())
def test_other_buttons_look_the_same(
    presses: list[tuple[int, int, str]], by: int, allow_change: bool
) -> None:
    """With every button exchanged for another, events and views are the same up to the reveal."""
    assert seen(presses, TURNS[0], allow_change=allow_change) == seen(
        presses, TURNS[by], allow_change=allow_change
    )


@settings(max_examples=50, deadline=None)
@given(presses=PRESSES, late=st.integers(0, 400))
def test_no_view_shows_a_running_round(presses: list[tuple[int, int, str]], late: int) -> None:
    """In random play over several rounds, late deliveries included, no view shows what is not revealed."""
    table = in_match(1, 2, 3, **FAST, watch=nothing_shown)
    for slot, seat, button in presses:
        at = round(2.15 + slot * 0.15 + seat * 0.01, 6)
        table.press(seat, at, button, lasts=0.05, delivered=round(at + late / 1000, 6))
    table.run(12)
    for told in table.events:
        if told["event"] not in ("round_revealed", "contact_stuck", "contact_faulty", "contact_healed"):
            assert not set(map(str, told.values())) & set(KINDS), told


def test_a_void_round_stays_hidden() -> None:
    """A single throw is never shown, neither while the next round runs nor in its reveal."""
    table = in_match(1, 2, 3, **FAST, watch=nothing_shown)
    table.press(1, 3.0, "beetle")
    table.play(["- pen page"], start=5.0)
    table.run(6.2)
    assert table.view.phase is Phase.REVEAL
    assert table.seat(1).throw is None
    assert "'beetle'," not in str(table.events)


def test_a_round_cut_short_by_the_matchs_end_stays_hidden() -> None:
    """A walkover in mid-round: match over shows no throw of the round that nobody revealed."""
    table = in_match(1, 2, reveal=0.5)
    table.play(["pen page"])
    table.press(1, 5.0, "beetle")
    table.hold(2, 5.5, 3.5)
    table.run(9)
    assert table.view.phase is Phase.MATCH_OVER
    assert table.seat(1).throw is None
    assert table.seat(1).points is None


def test_a_late_delivery_names_no_button() -> None:
    """late_delivery has seat, match and round alone."""
    table = in_match(1, 2, 3)
    table.press(1, 3.0, "pen")
    table.press(2, 4.0, "pen")
    table.press(3, 7.5, "beetle", delivered=9.0)
    table.run(10)
    assert set(table.one("late_delivery")) == {"seq", "at", "event", "seat", "match", "round"}


def test_an_ignored_press_names_no_button() -> None:
    """press_ignored has seat and reason alone, whatever the reason."""
    table = in_match(1, 2, 3, allow_change=False)
    table.press(1, 2.1)
    table.press(1, 3.0)
    table.press(1, 4.0)
    table.press(4, 4.5)
    table.press(2, 5.0, "pen")
    table.press(2, 5.001, "page")
    table.run(6)
    assert {reason for _, _, reason in table.ignored()} == {"guard", "locked", "not_seated", "chord"}
    for told in table.told("press_ignored"):
        assert set(told) == {"seq", "at", "event", "seat", "reason"}


def test_a_stuck_contact_in_a_long_countdown() -> None:
    """With a countdown longer than stuck_s a throw that is held down is not told by contact_stuck either."""
    table = in_match(1, 2, countdown=30, stuck=5, watch=None)
    table.press(1, 3.0, "beetle", lasts=12)
    table.run(20)
    assert table.view.phase is Phase.COUNTDOWN
    assert not table.told("contact_stuck", "contact_faulty", "contact_healed")
    assert table.seat(1).stuck == ()


def flutter(table: AtTable, seat: int, button: str, at: float, lasts: float, gap: float = 0.01) -> None:
    """A contact that closes and opens again and again from `at` for `lasts`, and is open then."""
    for step in range(2 * round(lasts / gap / 2)):
        table.edge(seat, button, step % 2 == 0, round(at + gap * step, 6))


@pytest.mark.parametrize(("gap", "fault"), [(0.01, "chatter"), (0.017, "flood"), (0.0001, "flood")])
def test_a_contact_that_is_found_faulty_in_a_round(gap: float, fault: str) -> None:
    """Whether worn or wild, its button is not named before the reveal, by event or view; then it is."""
    table = in_match(1, 2, 3, countdown=10)
    flutter(table, 1, "beetle", 3.0, 2.0, gap)
    table.run(6)
    assert table.view.phase is Phase.COUNTDOWN
    assert not table.told("contact_faulty", "contact_healed")
    assert table.seat(1).faults == ()
    table.press(2, 6.5, "pen")
    table.run(14)
    shown = [told["event"] for told in table.events if told["at"] > 10]
    assert shown.index("contact_faulty") > min(
        shown.index(each) for each in shown if each.startswith("round_")
    )
    assert table.told("contact_faulty")[0]["fault"] == fault
    if fault == "chatter":
        assert table.seat(1).faults == ((Kind.BEETLE, "chatter"),)


def test_a_faulty_contact_of_who_does_not_play_is_told_at_once() -> None:
    """Nothing is hidden of an empty seat: its button is no throw."""
    table = in_match(1, 2, countdown=10)
    flutter(table, 4, "pen", 3.0, 1.5, 0.0001)
    table.run(4.8)
    assert table.view.phase in RUNNING
    assert table.one("contact_faulty", seat=4)["at"] < 3.1
    assert table.seat(4).faults == ((Kind.PEN, "flood"),)


def test_a_worn_switch_that_heals_by_a_throw() -> None:
    """The press that shows a worn switch well again is a throw: its healing is told after the reveal."""
    table = AtTable(countdown=2, reveal=0.5)
    table.press(1, 1.0)
    flutter(table, 1, "pen", 2.0, 0.3)
    for press in range(18):
        table.press(1, round(3 + press * 0.2, 6), "pen")
    table.press(2, 7.0)
    table.throw(7.5, {1: "page", 2: "page"})
    for press in range(3):
        table.press(1, round(8 + press * 0.2, 6), "pen")
    table.run(8.9)
    assert table.view.phase is Phase.COUNTDOWN
    assert table.seat(1).faults == ((Kind.PEN, "chatter"),)
    assert not table.told("contact_healed")
    table.press(2, 9, "page")
    table.run(9.2)
    names = [told["event"] for told in table.events]
    assert names.index("contact_healed") > names.index("round_revealed")
    assert table.seat(1).faults == ()


def test_the_counts_of_edges_stand_still_while_a_round_runs() -> None:
    """A bounce that is counted at a button would tell who presses it: it shows when the round is over."""
    table = in_match(1, 2, countdown=5, reveal=2)
    table.run(2.5)
    before = dict(table.table.rejected)
    for closed, at in ((True, 3.0), (False, 3.002), (True, 3.004), (False, 3.2)):
        table.edge(1, "beetle", closed, at)
    table.run(4)
    assert table.view.phase is Phase.COUNTDOWN
    assert table.table.rejected == before
    table.press(2, 4.5, "pen")
    table.run(5)
    assert table.view.phase is Phase.REVEAL
    assert table.table.rejected == before | {(1, Kind.BEETLE, "bounce"): 1}


def seen_with_bots(kinds: int, delays: int, presses: list[tuple[int, int, str]]) -> tuple[list[Any], Any]:
    """All that anybody could see up to the first reveal, and the reveal; bots sit at 3 and 4.

    `kinds` is the seed of what they throw, `delays` that of when; a round's delays are drawn first.
    """
    luck = random.Random(delays)
    drawn = 0

    def random_bytes(count: int) -> bytes:
        nonlocal luck, drawn
        drawn += 1
        if drawn == 3:
            luck = random.Random(kinds)
        return luck.randbytes(count)

    views: list[Any] = []
    table = AtTable(
        bots="ask", seats=(1, 2, 3, 4), random_bytes=random_bytes, watch=lambda each: views.append(each.view)
    )
    for seat in (1, 2):
        table.press(seat, 1.0)
    table.fill_seats(1.5)
    for seat in (1, 2):
        table.press(seat, 2.0)
    for slot, seat, button in presses:
        if seat in (1, 2):
            table.press(seat, round(2.15 + slot * 0.15 + seat * 0.01, 6), button, lasts=0.05)
    table.run(16)
    revealed = table.revealed()
    if not revealed:
        return [table.events, views], None
    until = next(index for index, view in enumerate(views) if view.phase is Phase.REVEAL)
    return [table.events[: table.events.index(revealed[0])], views[:until]], revealed[0]["throws"]


@settings(max_examples=100, deadline=None)
@given(presses=PRESSES, delays=st.integers(0, 99), kinds=st.tuples(st.integers(0, 99), st.integers(0, 99)))
def test_other_bots_throws_look_the_same(
    presses: list[tuple[int, int, str]], delays: int, kinds: tuple[int, int]
) -> None:
    """Whatever bots have decided to throw, events and views are the same up to the reveal."""
    (one, _), (other, _) = (seen_with_bots(seed, delays, presses) for seed in kinds)
    assert one == other


def test_bots_do_throw_other_things_with_other_luck() -> None:
    """The property above is not empty: the throws that it hides differ."""
    presses = [(5, 1, "pen"), (6, 2, "pen")]
    throws = [seen_with_bots(kinds, 1, presses)[1] for kinds in range(8)]
    assert all(throws)
    assert len({str(each) for each in throws}) > 2


@settings(max_examples=50, deadline=None)
@given(presses=PRESSES, late=st.integers(0, 400), seed=st.integers(0, 99))
def test_no_view_shows_what_a_bot_throws(presses: list[tuple[int, int, str]], late: int, seed: int) -> None:
    """In random play with bots over several rounds nothing is shown before its reveal."""
    table = AtTable(bots="ask", **FAST, watch=nothing_shown, random_bytes=random.Random(seed).randbytes)
    for seat in (1, 2):
        table.press(seat, 1.0)
    table.fill_seats(2.0)
    for slot, seat, button in presses:
        at = round(2.15 + slot * 0.15 + seat * 0.01, 6)
        table.press(seat, at, button, lasts=0.05, delivered=round(at + late / 1000, 6))
    table.run(12)
    for told in table.events:
        if told["event"] not in ("round_revealed", "contact_stuck", "contact_faulty", "contact_healed"):
            assert not set(map(str, told.values())) & set(KINDS), told


def test_what_survives_a_power_cut_holds_nothing_that_a_bot_has_decided() -> None:
    """The snapshot of a running round on the disk is the same whatever the bots are about to throw."""

    def kept(seed: int) -> bytes:
        luck = random.Random(seed)
        table = AtTable(bots="ask", random_bytes=luck.randbytes)
        table.press(1, 1.0)
        table.fill_seats(2.0)
        table.press(1, 3.0, "pen")
        table.run(3.3)
        assert table.view.phase is Phase.COUNTDOWN
        return keep(table.table.kept())

    assert len({kept(seed) for seed in range(6)}) == 1
