"""Edges that arrive late or out of order, and a program that is slow: stamps decide, not delivery."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.kinds import Kind
from heek.session.events import event_line
from heek.session.inputs import Input, Pressed
from heek.session.machine import Session
from heek.session.phases import Phase
from heek.session.settings import SessionSettings
from tests.session.at_table import FAST, AtTable, Told, in_match, ns
from tests.session.test_lobby import won_match

KINDS = ["pen", "page", "beetle"]


def judged(table: AtTable) -> list[Any]:
    """What players see of a round, whatever the order of delivery: how it closed and what it came to."""
    told = [each for each in table.events if each["event"] in ("round_revealed", "round_void", "match_won")]
    return [{key: value for key, value in each.items() if key not in ("seq", "at")} for each in told]


# Late, but in time to be compared


def test_a_press_before_the_deadline_delivered_while_settling_counts() -> None:
    """The contact closed in time; that the program heard of it after the close does not matter."""
    table = in_match(1, 2, 3)
    table.press(1, 3.0, "pen")
    table.press(2, 7.99, "page", delivered=8.02)
    table.run(9)
    told = table.one("round_revealed")
    assert told["throws"] == {"1": "pen", "2": "page", "3": None}
    assert (told["closed"], told["at"]) == (8.0, 8.03)


def test_the_last_throw_delivered_while_settling_moves_the_close_back() -> None:
    """All had thrown at 7.9 by their stamps, so that is the close, and a change at 7.95 was too late."""
    table = in_match(1, 2, settle=0.2)
    table.press(1, 3.0, "pen")
    table.press(1, 7.95, "beetle")
    table.press(2, 7.9, "page", delivered=8.05)
    table.run(9)
    told = table.one("round_revealed")
    assert told["closed"] == 7.9
    assert told["throws"] == {"1": "pen", "2": "page"}
    assert [(seat, reason) for _, seat, reason in table.ignored()] == [(1, "late")]


def test_a_late_press_delivered_early_is_still_late() -> None:
    """A press stamped after the close is late, also when it is handed over together with earlier ones."""
    table = in_match(1, 2, 3)
    table.press(1, 3.0, "pen")
    table.stall(7.9, 0.3)
    table.press(2, 7.95, "page")
    table.press(3, 8.005, "page")
    table.run(9)
    assert table.one("round_revealed")["throws"] == {"1": "pen", "2": "page", "3": None}
    assert table.ignored() == [(8.005, 3, "late")]


def test_changes_delivered_in_the_wrong_order() -> None:
    """Of two presses of one seat the one that closed last counts, whichever was heard first."""
    table = in_match(1, 2, 3)
    table.press(1, 3.0, "pen")
    table.press(2, 4.0, "pen", delivered=4.02)
    table.press(2, 4.01, "page", delivered=4.01)
    table.run(9)
    assert table.one("round_revealed")["throws"]["2"] == "page"


def test_the_first_press_delivered_second_without_allow_change() -> None:
    """Without allow_change the press that closed first counts, whichever was heard first."""
    table = in_match(1, 2, allow_change=False)
    table.press(1, 3.0, "pen")
    table.press(2, 4.0, "pen", delivered=4.02)
    table.press(2, 4.01, "page", delivered=4.01)
    table.run(9)
    assert table.one("round_revealed")["throws"]["2"] == "pen"


def test_the_first_throw_delivered_second_sets_the_deadline() -> None:
    """The countdown started with the first throw by its stamp, so that is what the close counts from."""
    table = in_match(1, 2, 3)
    table.press(1, 3.0, "pen", delivered=3.025)
    table.press(2, 3.01, "page", delivered=3.01)
    table.press(3, 8.005, "page")
    table.run(9)
    told = table.one("round_revealed")
    assert told["closed"] == 8.0
    assert told["throws"]["3"] is None


def test_at_never_goes_back() -> None:
    """An edge that is taken after later ones counts by its stamp; its event carries the last `at`."""
    table = in_match(1, 2, 3)
    table.press(1, 3.0, "pen")
    table.press(2, 3.9, "page", delivered=4.2)
    table.press(3, 4.1, "page")
    table.run(9)
    assert [(each["at"], each["seat"]) for each in table.told("throw_locked")] == [
        (3.0, 1),
        (4.1, 3),
        (4.1, 2),
    ]
    assert table.one("round_revealed")["closed"] == 4.1


def test_all_events_are_numbered_without_gaps() -> None:
    """The lines of a whole match carry seq 1, 2, 3 ... and an `at` that never decreases."""
    table = in_match(1, 2, 3, **FAST)
    table.play(["pen page page", "pen - page", "- - pen", "page page pen", "pen page page"])
    table.run(20)
    assert [each["seq"] for each in table.events] == list(range(1, len(table.events) + 1))
    stamps = [each["at"] for each in table.events]
    assert stamps == sorted(stamps)


@pytest.mark.parametrize("delivered", [None, 5.03])
def test_lobby_s_goes_by_stamps(delivered: float | None) -> None:
    """The last one to sit down by the stamps counts, whoever was heard last."""
    table = AtTable()
    table.press(1, 1.0)
    table.press(2, 4.98, delivered=delivered)
    table.press(3, 5.0)
    table.run(16)
    assert table.one("match_started")["at"] == 15.0


# Too late


def test_late_delivery() -> None:
    """An edge delivered after its round was compared is recorded and flags the round, nothing more."""
    table = in_match(1, 2, 3)
    table.press(1, 3.0, "pen")
    table.press(2, 4.0, "page")
    table.press(3, 7.5, "beetle", delivered=9.0)
    table.run(10)
    told = table.one("late_delivery")
    assert (told["seat"], told["match"], told["round"]) == (3, "match-1", 1)
    assert told["at"] == 8.03
    assert "beetle" not in str(told)
    assert not table.ignored()
    assert len(table.told("throw_locked")) == 2


@pytest.mark.parametrize("delivered", [8.2, 12.2, 14.0])
def test_late_delivery_whenever_it_comes(delivered: float) -> None:
    """In the reveal, in the next round's guard, in the next round: it is no press of the next round."""
    table = in_match(1, 2, 3)
    table.press(1, 3.0, "pen")
    table.press(2, 4.0, "page")
    table.press(3, 7.5, "beetle", delivered=delivered)
    table.run(15)
    assert table.one("late_delivery")["round"] == 1
    assert len(table.told("throw_locked")) == 2
    assert not table.ignored()


def test_late_delivery_for_a_void_round() -> None:
    """A throw in time for a round that was void for want of it is recorded, too."""
    table = in_match(1, 2)
    table.press(1, 3.0, "pen")
    table.press(2, 7.5, "beetle", delivered=8.2)
    table.run(9)
    assert table.one("round_void")["reason"] == "throws"
    assert table.one("late_delivery")["round"] == 1


def test_late_delivery_for_the_deciding_round() -> None:
    """In match over, too; the result is told already and stays."""
    table = in_match(1, 2, 3, target=1)
    table.press(1, 3.0, "pen")
    table.press(2, 4.0, "page")
    table.press(3, 7.5, "beetle", delivered=8.5)
    table.run(9)
    assert table.one("match_won")["seat"] == 1
    assert table.one("late_delivery")["round"] == 1


def test_late_delivery_two_rounds_later() -> None:
    """However late it comes it is recorded as what it is."""
    table = in_match(1, 2, 3, **FAST)
    table.play(["pen page -", "pen pen pen"])
    table.press(3, 3.5, "beetle", delivered=5.3)
    table.run(6)
    assert table.one("late_delivery")["round"] == 1


def test_a_late_round_is_flagged_in_the_result() -> None:
    """The match's record names the round for which an edge came too late."""
    table = in_match(1, 2, 3, **FAST)
    table.play(["pen page -", "pen page page", "pen page page", "pen page page"])
    table.press(3, 3.5, "beetle", delivered=4.3)
    table.run(12)
    assert table.results[0].late_rounds == (1,)


# A slow program


def test_short_stalls_change_nothing() -> None:
    """A program that sleeps for less than gap_s says the same, line for line."""

    def story(stalls: bool) -> list[Told]:
        table = in_match(1, 2, 3, reveal=2)
        table.play(["pen page page", "page page pen", "pen - page"], step=4)
        table.hold(3, 14.2, 3.4)
        if stalls:
            for at in (0.9, 2.0, 2.95, 4.5, 6.9, 8.6, 10.5, 11.9, 14.0, 15.1, 17.0):
                table.stall(at, 0.95 if at not in (2.0, 2.95) else 0.9)
        return table.run(30).events

    assert story(stalls=True) == story(stalls=False)


def test_a_stall_of_gap_s_is_no_standstill() -> None:
    """Only more than gap_s breaks a round off."""
    table = in_match(1, 2)
    table.press(1, 3.0, "pen")
    table.stall(4.0, 1.0)
    table.press(2, 4.5, "page")
    table.run(6)
    assert not table.told("round_void")
    assert table.one("round_revealed")["closed"] == 4.5


@settings(max_examples=60, deadline=None)
@given(stalls=st.lists(st.tuples(st.integers(5, 120), st.integers(10, 990)), max_size=6))
def test_any_short_stalls_change_nothing(stalls: list[tuple[int, int]]) -> None:
    """Wherever they fall, stalls of less than gap_s change no line."""

    def story(pauses: list[tuple[int, int]]) -> list[Told]:
        table = in_match(1, 2, 3, **FAST)
        table.play(["pen page page", "page page pen", "pen - page", "- - pen"])
        end = 0.0
        for at, lasts in sorted(pauses):
            if at / 10 > end:  # stalls that touch would be one long one
                table.stall(at / 10, lasts / 1000)
                end = at / 10 + lasts / 1000 + 0.01
        return table.run(13).events

    assert story(stalls) == story([])


def test_a_round_is_not_compared_before_all_edges_are_drained() -> None:
    """With edges still on their way (`settled` false) comparing waits, and then goes by the rules' time."""
    table = in_match(1, 2, 3)
    table.press(1, 3.0, "pen")
    table.run(8.0)
    late = Pressed(ns(7.99), 2, Kind.PAGE)
    session = table.table._session
    assert session.advance([], ns(8.5), settled=False).events == ()
    effects = session.advance([late], ns(8.5), settled=True)
    names = [json.loads(event_line(1, event))["event"] for event in effects.events]
    assert names == ["throw_locked", "round_revealed"]
    revealed = json.loads(event_line(1, effects.events[-1]))
    assert (revealed["closed"], revealed["at"]) == (8.0, 8.03)


def test_what_lies_behind_an_undrained_round_waits() -> None:
    """Presses after the round that cannot be compared yet are kept and taken in order later."""
    table = in_match(1, 2, reveal=0.5)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.run(3.01)
    session = table.table._session
    behind = Pressed(ns(4.0), 1, Kind.PAGE)
    assert session.advance([behind], ns(4.1), settled=False).events == ()
    effects = session.advance([], ns(4.1), settled=True)
    told = [json.loads(event_line(1, event)) for event in effects.events]
    assert [(each["event"], each["at"]) for each in told] == [
        ("round_revealed", 3.03),
        ("round_opened", 3.53),
        ("throw_locked", 4.0),
        ("countdown_started", 4.0),
    ]
    assert session.advance([], ns(4.2), settled=True).events == (), "nothing is taken twice"


# Any order of delivery


ROUND = st.dictionaries(
    st.integers(1, 3),
    st.lists(
        st.tuples(
            st.integers(0, 11).map(lambda slot: 2900 + 60 * slot),
            st.integers(0, 9),
            st.sampled_from(KINDS),
            st.integers(0, 29),
        ),
        max_size=4,
        unique_by=lambda each: each[0],
    ),
    min_size=1,
)


def shuffled(presses: dict[int, list[tuple[int, int, str, int]]], *, late: bool, settle: float) -> AtTable:
    table = in_match(1, 2, 3, countdown=0.5, reveal=3, settle=settle)
    for seat, each in presses.items():
        for slot, jitter, button, delay in each:
            at = (slot + jitter) / 1000
            table.press(seat, at, button, lasts=0.02, delivered=round(at + delay / 1000, 6) if late else None)
    return table.run(4.5)


@settings(max_examples=200, deadline=None)
@given(presses=ROUND)
def test_order_of_delivery_within_the_settle_time_changes_nothing(
    presses: dict[int, list[tuple[int, int, str, int]]],
) -> None:
    """Delays of less than settle_s, different for every edge, change no close, no throw and no winner.

    The first throw of the round is delivered at once here: what an earlier one means for a countdown that
    has been announced is a test of its own.
    """
    first = min((each[0] + each[1] for list_ in presses.values() for each in list_), default=0)
    presses = {
        seat: [
            (slot, jitter, button, 0 if slot + jitter <= first + 30 else delay)
            for slot, jitter, button, delay in each
        ]
        for seat, each in presses.items()
    }
    in_order, out_of_order = (
        shuffled(presses, late=False, settle=0.03),
        shuffled(presses, late=True, settle=0.03),
    )
    assert judged(in_order) == judged(out_of_order)
    assert not out_of_order.told("late_delivery")
    assert sorted(each["seat"] for each in in_order.told("throw_locked")) == sorted(
        each["seat"] for each in out_of_order.told("throw_locked")
    )
    assert sorted((seat, reason) for _, seat, reason in in_order.ignored()) == sorted(
        (seat, reason) for _, seat, reason in out_of_order.ignored()
    )


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_batches_do_not_matter(data: st.DataObject) -> None:
    """The same inputs in one call, or one by one, give the same events: time is an argument."""
    stamps = sorted(data.draw(st.sets(st.integers(1000, 9000), min_size=8, max_size=30)))
    inputs: list[Input] = [
        Pressed(stamp * 1_000_000, data.draw(st.integers(1, 3)), Kind(data.draw(st.sampled_from(KINDS))))
        for stamp in stamps
    ]

    def told(batches: list[tuple[list[Input], int]]) -> list[str]:
        session = Session(SessionSettings(countdown=ns(1), reveal=ns(0.5)), new_match_id=lambda: "m")
        lines: list[str] = []
        for batch, until in batches:
            lines += [event_line(1, event) for event in session.advance(batch, until).events]
        return lines

    end = ns(20)
    at_once = told([(inputs, end)])
    one_by_one = told([([each], each.at) for each in inputs] + [([], end)])
    ticking = told(
        [([], each.at - 1) for each in inputs[:1]] + [([e], e.at + 500) for e in inputs] + [([], end)]
    )
    assert at_once == one_by_one == ticking


# Across phases


def test_a_throw_delivered_after_an_operators_reset() -> None:
    """The press was made in the match that is no more: it takes no seat."""
    table = in_match(1, 2)
    table.press(1, 3.0, delivered=3.05)
    table.reset(3.01)
    table.run(4)
    assert table.ignored() == [(3.01, 1, "late")]
    assert table.view.phase is Phase.ATTRACT


def test_a_press_at_an_empty_seat_delivered_after_an_operators_reset() -> None:
    """Nobody could sit down at that instant, so nobody does."""
    table = in_match(1, 2)
    table.press(3, 3.0, delivered=3.05)
    table.reset(3.01)
    table.press(3, 3.2)
    table.run(4)
    assert table.ignored() == [(3.01, 3, "not_seated")]
    assert [each["at"] for each in table.told("seat_taken", since=3)] == [3.2]


def test_a_press_in_match_over_delivered_in_the_lobby() -> None:
    """It confirms nothing: the rematch had not been asked for yet."""
    table = won_match(1, 2)
    over = 11.03
    table.press(1, over - 0.005, delivered=over + 0.02)
    table.run(over + 1)
    assert [reason for _, _, reason in table.ignored()] == ["match_closed"]
    assert table.told("seat_ready", since=over - 1) == []


def test_a_chord_partner_delivered_late_takes_the_throw_back() -> None:
    """Two buttons of one seat within chord_s are none, also when the second is heard of much later."""
    table = in_match(1, 2, 3)
    table.press(1, 3.0, "pen")
    table.press(1, 3.002, "page", delivered=3.01)
    table.press(2, 4.0, "page")
    table.press(3, 4.5, "pen")
    table.run(9)
    assert table.one("round_revealed")["throws"] == {"1": None, "2": "page", "3": "pen"}
    assert [reason for _, seat, reason in table.ignored() if seat == 1] == ["chord", "chord"]


def test_an_earlier_throw_stays_when_a_chord_is_taken_back() -> None:
    """Only the press that was none is taken out; what the seat threw before still counts."""
    table = in_match(1, 2)
    table.press(1, 3.0, "beetle")
    table.press(1, 3.5, "pen")
    table.press(1, 3.502, "page", delivered=3.51)
    table.press(2, 4.0, "page")
    table.run(9)
    assert table.one("round_revealed")["throws"] == {"1": "beetle", "2": "page"}


def test_several_late_edges_flag_a_round_once() -> None:
    """The record names each round that an edge came too late for, not each edge."""
    table = in_match(1, 2, 3, target=1)
    table.press(1, 3.0, "pen")
    table.press(2, 4.0, "pen")
    table.press(3, 5.0, "pen", delivered=8.2)
    table.press(3, 6.0, "page", delivered=8.3)
    table.play(["pen page page"], start=13)
    table.run(20)
    assert len(table.told("late_delivery")) == 2
    assert [result.late_rounds for result in table.results] == [(1,)]


def test_a_revoked_throw_reopens_the_round_that_it_closed() -> None:
    """A round that closed by a throw which was none has not closed; nobody has missed it."""
    table = in_match(1, 2)
    table.press(1, 3.0, "pen")
    table.press(2, 4.0, "pen")
    table.press(2, 4.001, "beetle", delivered=4.010)
    table.press(2, 5.0, "page")
    table.run(9)
    told = table.one("round_revealed")
    assert told["closed"] == 5.0
    assert told["throws"] == {"1": "pen", "2": "page"}
    assert table.told("round_void") == []
    assert [each["seat"] for each in table.told("throw_locked")] == [1, 2]


def test_who_left_while_a_revoked_close_settled_has_left() -> None:
    """The round goes on without the seat that left in its settle time, at the instant at which it left."""
    table = in_match(1, 2, 3, settle=0.2)
    table.press(3, 2.5, "pen")
    table.hold(3, 3.0, 3.3, first=0.02)
    table.press(1, 5.9, "pen")
    table.press(2, 5.95, "pen")
    table.press(2, 5.951, "beetle", delivered=6.05)
    table.press(2, 6.5, "page")
    table.run(9)
    assert [seat for _, seat, _ in table.left()] == [3]
    assert table.one("round_revealed")["throws"] == {"1": "pen", "2": "page"}


def test_a_press_revoked_after_its_round_was_compared_flags_it() -> None:
    """The reveal stays as it was shown; the record says that an edge came too late for it."""
    table = in_match(1, 2, target=1)
    table.press(1, 3.0, "pen")
    table.press(2, 4.0, "page")
    table.press(2, 4.001, "beetle", delivered=4.1)
    table.run(20)
    assert table.one("round_revealed")["throws"] == {"1": "pen", "2": "page"}
    assert [(each["seat"], each["round"]) for each in table.told("late_delivery")] == [(2, 1)]
    assert [result.late_rounds for result in table.results] == [()]


def test_a_late_press_from_before_a_reset_takes_no_seat_even_if_another_did() -> None:
    """Who sits down right after a reset does not turn the presses of before into presses of the lobby."""
    table = in_match(1, 2)
    table.reset(4.0)
    table.press(3, 4.004)
    table.press(2, 3.999, delivered=4.01)
    table.run(5)
    assert [each["seat"] for each in table.told("seat_taken", since=3)] == [3]
    assert [(seat, reason) for _, seat, reason in table.ignored()] == [(2, "late")]


def test_a_late_press_from_before_a_lobby_was_reset_takes_no_seat() -> None:
    """Also a lobby is over at its reset."""
    table = AtTable()
    table.press(2, 1.0)
    table.press(2, 2.999, delivered=3.01)
    table.reset(3.0)
    table.run(5)
    assert len(table.told("seat_taken")) == 1
    assert table.view.phase is Phase.ATTRACT


def test_a_throw_that_another_seats_late_one_makes_late_leaves_the_round_without_it() -> None:
    """The first throw is delivered after its own countdown has run out: what came after that is no throw."""
    table = in_match(1, 2, 3, countdown=1)
    table.press(2, 4.5, "page")
    table.press(1, 3.0, "pen", delivered=4.6)
    table.run(6)
    assert table.one("round_void")["reason"] == "throws"
    assert [(seat, reason) for _, seat, reason in table.ignored()] == [(2, "late")]


def test_a_press_after_a_close_that_is_taken_back_counts() -> None:
    """All had thrown, one press was a chord after all: what came after that close is in time again."""
    table = in_match(1, 2, settle=0.1)
    table.press(1, 3.0, "page")
    table.press(2, 3.1, "pen")
    table.press(1, 3.12, "beetle")
    table.press(2, 3.101, "page", delivered=3.15)
    table.press(2, 4.0, "page")
    table.run(5)
    revealed = table.one("round_revealed")
    assert (revealed["closed"], revealed["throws"]["1"], revealed["throws"]["2"]) == (4.0, "beetle", "page")


def test_a_close_moves_to_the_next_throw_when_the_first_is_taken_back() -> None:
    """Who pressed again after a first throw that was none has thrown by that press: the close is there."""
    table = in_match(1, 2, settle=0.1)
    table.press(1, 3.0, "page")
    table.press(2, 3.1, "pen")
    table.press(2, 3.13, "beetle")
    table.press(2, 3.101, "page", delivered=3.15)
    table.run(4)
    revealed = table.one("round_revealed")
    assert (revealed["closed"], revealed["throws"]["2"]) == (3.13, "beetle")


def test_what_stood_behind_a_throw_that_is_taken_back_counts() -> None:
    """With allow_change off the second press was locked out by a first one that was none: it is the throw."""
    table = in_match(1, 2, allow_change=False)
    table.press(1, 3.0, "pen")
    table.press(1, 3.05, "beetle")
    table.press(1, 3.001, "page", delivered=3.06)
    table.press(2, 4.0, "page")
    table.run(5)
    assert table.one("round_revealed")["throws"]["1"] == "beetle"


def test_a_late_press_that_was_none_does_not_come_back() -> None:
    """After the close, and a chord besides: when the close is taken back it still counts as none."""
    table = in_match(1, 2, settle=0.1)
    table.press(1, 3.0, "page")
    table.press(2, 3.1, "pen")
    table.press(1, 3.12, "beetle")
    table.press(1, 3.121, "pen", delivered=3.14)
    table.press(2, 3.101, "page", delivered=3.15)
    table.press(2, 4.0, "page")
    table.run(5)
    assert table.one("round_revealed")["throws"]["1"] == "page"
