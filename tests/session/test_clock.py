"""The clock of a round: guard, countdown, close, settle, reveal, and every reason a press is ignored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.session.phases import Phase
from heek.session.view import SeatState
from tests.session.at_table import FAST, AtTable, in_match, ns, s

# The worked example


def test_the_worked_example_to_its_reveal() -> None:
    """From edges to exactly the spec's events: the first test of the table."""
    table = in_match(1, 2, 3, 4, 5)
    for seat, (at, button) in enumerate(
        [(3.0, "pen"), (3.5, "beetle"), (4.0, "beetle"), (4.5, "page"), (5.25, "page")], 1
    ):
        table.press(seat, at, button)
    table.run(9)
    none = {"pen": 0, "page": 0, "beetle": 0}
    page = {"pen": 0, "page": 1, "beetle": 0}
    assert table.told(since=2.5, until=9) == [
        {"seq": 9, "at": 3.0, "event": "throw_locked", "seat": 1},
        {
            "seq": 10,
            "at": 3.0,
            "event": "countdown_started",
            "match": "match-1",
            "round": 1,
            "deadline": 8.0,
        },
        {"seq": 11, "at": 3.5, "event": "throw_locked", "seat": 2},
        {"seq": 12, "at": 4.0, "event": "throw_locked", "seat": 3},
        {"seq": 13, "at": 4.5, "event": "throw_locked", "seat": 4},
        {"seq": 14, "at": 5.25, "event": "throw_locked", "seat": 5},
        {
            "seq": 15,
            "at": 5.28,
            "event": "round_revealed",
            "match": "match-1",
            "round": 1,
            "closed": 5.25,
            "throws": {"1": "pen", "2": "beetle", "3": "beetle", "4": "page", "5": "page"},
            "points": {"1": 0, "2": -1, "3": -1, "4": 1, "5": 1},
            "winners": [4, 5],
            "collections": {"1": none, "2": none, "3": none, "4": page, "5": page},
        },
    ]
    table.run(9.5)
    assert table.one("round_opened", round=2)["at"] == 9.28


def test_what_a_round_shows() -> None:
    """The view follows the phases; thrown shows that a seat has thrown, and the reveal shows all."""
    table = in_match(1, 2, 3)
    table.run(2.5)
    assert (table.view.phase, table.view.since, table.view.until) == (Phase.THROW, ns(2.0), None)
    assert table.seat(1).state is SeatState.TAKEN
    table.press(1, 3.0, "pen")
    table.run(3.5)
    assert (table.view.phase, table.view.since, table.view.until) == (Phase.COUNTDOWN, ns(3.0), ns(8.0))
    assert [table.seat(seat).thrown for seat in (1, 2, 3)] == [True, False, False]
    assert [table.seat(seat).in_round for seat in (1, 2, 3, 4)] == [True, True, True, False]
    table.press(3, 4.0, "page")
    table.run(8.02)
    assert (table.view.phase, table.view.since) == (Phase.SETTLE, ns(8.0))
    assert table.seat(1).throw is None
    table.run(8.1)
    assert (table.view.phase, table.view.since, table.view.until) == (Phase.REVEAL, ns(8.03), ns(12.03))
    seats = [table.seat(seat) for seat in (1, 2, 3)]
    assert [seat.throw and seat.throw.value for seat in seats] == ["pen", None, "page"]
    assert [seat.points for seat in seats] == [1, None, -1]
    assert [seat.won_round for seat in seats] == [True, False, False]
    table.run(12.1)
    assert (table.view.phase, table.view.since, table.view.round) == (Phase.THROW, ns(12.03), 2)
    assert table.seat(1).throw is None


# Guard


def test_presses_in_the_guard_are_ignored() -> None:
    """[open, open + guard_s) is ignored to the last nanosecond; a press exactly at its end counts."""
    table = in_match(1, 2, 3)
    table.press(1, 2.2)
    table.press(2, 2.299999999)
    table.press(3, 2.3)
    table.run(4)
    assert table.ignored() == [(2.2, 1, "guard"), (2.299999, 2, "guard")]
    assert table.one("throw_locked") == {"seq": 12, "at": 2.3, "event": "throw_locked", "seat": 3}


def test_the_guard_of_later_rounds() -> None:
    """Each round has its own guard, from its own opening."""
    table = in_match(1, 2, **FAST)
    table.play(["pen page"])
    table.press(1, 3.829999999)
    table.press(2, 3.83)
    table.run(4)
    assert table.one("round_opened", round=2)["at"] == 3.53
    assert table.ignored() == [(3.829999, 1, "guard")]
    assert table.told("throw_locked")[-1]["seat"] == 2


def test_a_press_at_the_opening_itself_is_no_throw() -> None:
    """A press at the very instant at which the next round opens does not become a throw in it."""
    table = in_match(1, 2, **FAST)
    table.play(["pen page"])
    table.press(1, 3.53)
    table.run(6)
    assert len(table.told("throw_locked")) == 2
    assert [(at, seat) for at, seat, _ in table.ignored()] == [(3.53, 1)]
    assert table.ignored()[0][2] in ("guard", "late")


def test_no_guard() -> None:
    """With guard_s = 0 a press right after the opening counts."""
    table = in_match(1, 2, guard=0)
    table.press(1, 2.016, lasts=0.01)
    table.press(2, 2.1)
    table.run(3)
    assert [each["seat"] for each in table.told("throw_locked")] == [2], "1 was down until 2.08"
    table = in_match(1, 2, 3, guard=0)
    table.press(1, 2.2)
    table.run(3)
    assert table.one("throw_locked")["at"] == 2.2


# Countdown and close


def test_the_first_throw_starts_the_countdown() -> None:
    """Nothing runs before the first throw, and the deadline is countdown_s after it."""
    table = in_match(1, 2, countdown=7)
    table.run(30)
    assert not table.told("countdown_started")
    table.press(2, 31.5)
    table.run(32)
    assert table.names(31.5) == ["throw_locked", "countdown_started"]
    assert table.one("countdown_started")["deadline"] == 38.5


def test_five_presses_at_one_instant() -> None:
    """Five throw_locked, then the countdown, then all have thrown: the close is that instant."""
    table = in_match(1, 2, 3, 4, 5)
    table.throw(3.0, {1: "pen", 2: "beetle", 3: "beetle", 4: "page", 5: "page"})
    table.run(4)
    assert table.names(3.0) == ["throw_locked"] * 5 + ["countdown_started"]
    assert [each["seat"] for each in table.told("throw_locked")] == [1, 2, 3, 4, 5]
    assert table.one("round_revealed")["closed"] == 3.0
    assert table.one("round_revealed")["at"] == 3.03
    assert not table.ignored()


def test_the_deadline_closes() -> None:
    """Without everybody's throw the close is the deadline, and settle_s later it is revealed."""
    table = in_match(1, 2, 3, settle=0.1)
    table.press(1, 3.0, "pen")
    table.press(2, 5.0, "beetle")
    table.run(9)
    told = table.one("round_revealed")
    assert (told["closed"], told["at"]) == (8.0, 8.1)
    assert told["throws"] == {"1": "pen", "2": "beetle", "3": None}
    assert told["points"] == {"1": -1, "2": 1}


def test_a_press_exactly_at_the_deadline_counts() -> None:
    """At or before the close counts; a nanosecond after it does not."""
    table = in_match(1, 2, 3, 4)
    table.press(1, 3.0, "pen")
    table.press(2, 8.0, "page")
    table.press(3, 8.000000001, "page")
    table.run(9)
    assert table.one("round_revealed")["throws"] == {"1": "pen", "2": "page", "3": None, "4": None}
    assert table.ignored() == [(8.0, 3, "late")]


def test_the_last_throw_exactly_at_the_deadline() -> None:
    """The close is the deadline and the latest first throw both: one close, one reveal."""
    table = in_match(1, 2)
    table.press(1, 3.0, "pen")
    table.press(2, 8.0, "page")
    table.run(9)
    assert table.one("round_revealed")["closed"] == 8.0
    assert table.one("round_revealed")["at"] == 8.03


def test_all_thrown_close_by_the_latest_first_throw() -> None:
    """The close is the latest of the first throws, not of the changes, and a change after it is late."""
    table = in_match(1, 2, 3)
    table.press(1, 3.0, "pen")
    table.press(2, 3.5, "pen")
    table.press(1, 4.0, "page")
    table.press(3, 4.5, "pen")
    table.press(2, 4.500000001, "beetle")
    table.press(1, 4.52, "beetle")
    table.run(6)
    told = table.one("round_revealed")
    assert (told["closed"], told["at"]) == (4.5, 4.53)
    assert told["throws"] == {"1": "page", "2": "pen", "3": "pen"}
    assert table.ignored() == [(4.5, 2, "late"), (4.52, 1, "late")]


def test_a_change_at_the_instant_of_the_close_counts() -> None:
    """The one who changes while the last one throws has changed in time."""
    table = in_match(1, 2)
    table.press(1, 3.0, "pen")
    table.press(1, 4.0, "beetle")
    table.press(2, 4.0, "page")
    table.run(6)
    assert table.one("round_revealed")["throws"] == {"1": "beetle", "2": "page"}


def test_a_changed_throw_is_locked_once() -> None:
    """throw_locked comes once a round; a change says nothing and moves no deadline."""
    table = in_match(1, 2, 3)
    table.press(1, 3.0, "pen")
    table.press(1, 4.0, "page")
    table.press(1, 7.0, "beetle")
    table.press(2, 7.5, "pen")
    table.run(9)
    assert [(each["at"], each["seat"]) for each in table.told("throw_locked")] == [(3.0, 1), (7.5, 2)]
    assert table.one("round_revealed")["throws"]["1"] == "beetle"
    assert table.one("round_revealed")["closed"] == 8.0


def test_without_allow_change_the_first_press_counts() -> None:
    """allow_change off: further presses are `locked`; after the close `late` goes before it."""
    table = in_match(1, 2, 3, allow_change=False)
    table.press(1, 3.0, "pen")
    table.press(1, 4.0, "page")
    table.press(2, 5.0, "pen")
    table.press(1, 8.01, "page")
    table.run(10)
    assert table.ignored() == [(4.0, 1, "locked"), (8.01, 1, "late")]
    assert table.one("round_revealed")["throws"]["1"] == "pen"


def test_a_press_in_the_reveal_is_late() -> None:
    """`late` after the close and in the reveal, whether the seat threw or not."""
    table = in_match(1, 2, 3)
    table.play(["pen page -"])
    table.press(1, 9.0)
    table.press(3, 10.0)
    table.run(12)
    assert table.ignored() == [(9.0, 1, "late"), (10.0, 3, "late")]


def test_a_press_at_an_empty_seat_while_a_match_runs() -> None:
    """`not_seated` in throw (before the guard's reason), countdown, settle and reveal; nobody sits down."""
    table = in_match(1, 2)
    table.press(4, 2.1)
    table.press(4, 2.5)
    table.press(1, 3.0, "pen")
    table.press(5, 4.0)
    table.press(5, 8.01)
    table.press(2, 7.0, "page")
    table.press(3, 9.0)
    table.run(10)
    assert [(seat, reason) for _, seat, reason in table.ignored()] == [
        (4, "not_seated"),
        (4, "not_seated"),
        (5, "not_seated"),
        (5, "not_seated"),
        (3, "not_seated"),
    ]


# Void


def test_fewer_than_two_throws_are_void() -> None:
    """One throw: void at close + settle, the throw stays hidden, the next number opens at once."""
    table = in_match(1, 2, 3)
    table.press(2, 3.0, "beetle")
    table.run(9)
    assert table.told(since=8.0) == [
        {"seq": 12, "at": 8.03, "event": "round_void", "match": "match-1", "round": 1, "reason": "throws"},
        {
            "seq": 13,
            "at": 8.03,
            "event": "round_opened",
            "match": "match-1",
            "round": 2,
            "seats": [1, 2, 3],
        },
    ]
    assert "beetle" not in str(table.events)
    assert table.seat(2).throw is None
    assert not table.seat(2).thrown


# Fixed timer


def test_a_fixed_timer_starts_with_the_round() -> None:
    """timer = fixed: the countdown starts when the round opens, guard included."""
    table = in_match(1, 2, 3, timer="fixed")
    table.press(1, 2.1)
    table.press(1, 3.0, "pen")
    table.press(2, 6.0, "page")
    table.run(8)
    assert table.names(2.0) == ["seat_ready"] * 3 + ["match_started", "round_opened", "countdown_started"]
    assert table.one("countdown_started")["deadline"] == 7.0
    assert table.ignored() == [(2.1, 1, "guard")]
    assert table.one("round_revealed")["closed"] == 7.0


def test_a_fixed_timer_closes_early_when_all_have_thrown() -> None:
    """timer = fixed: as soon as every seat has thrown the round closes, and no second countdown starts."""
    table = in_match(1, 2, timer="fixed")
    table.throw(4.0, {1: "pen", 2: "page"})
    table.run(5)
    assert table.one("round_revealed")["closed"] == 4.0
    assert len(table.told("countdown_started")) == 1


def test_a_fixed_timer_without_a_throw() -> None:
    """timer = fixed: rounds without a throw are void one after the other, each with its own countdown."""
    table = in_match(1, 2, timer="fixed", countdown=2, missed_limit=0)
    table.run(8)
    assert [(each["at"], each["round"]) for each in table.told("round_void")] == [
        (4.03, 1),
        (6.06, 2),
    ]
    assert table.names(4.03) == ["round_void", "round_opened", "countdown_started"]
    assert table.told("countdown_started")[1]["deadline"] == 6.03


# Chord and noise, on the table


def test_two_buttons_at_once_are_no_throw() -> None:
    """Two buttons of one seat within chord_s count as none: `chord`, and a later press still can."""
    table = in_match(1, 2)
    table.press(1, 3.0, "pen")
    table.press(1, 3.003, "page")
    table.press(2, 3.5, "pen")
    table.run(4)
    assert [(seat, reason) for _, seat, reason in table.ignored()] == [(1, "chord"), (1, "chord")]
    assert [each["seat"] for each in table.told("throw_locked")] == [2]


def test_noise_moves_nothing() -> None:
    """Six closing together over the table count as none, in attract and in a running round."""
    table = AtTable()
    for seat in (1, 2, 3):
        table.press(seat, 1.0, "pen", lasts=0.05)
        table.press(seat, 1.001, "beetle", lasts=0.05)
    table.run(2)
    assert table.view.phase is Phase.ATTRACT
    assert {reason for _, _, reason in table.ignored()} == {"noise"}
    table = in_match(1, 2, 3)
    for seat in (1, 2, 3, 4, 5):
        table.press(seat, 3.0, "pen", lasts=0.05)
    table.press(1, 3.003, "beetle", lasts=0.05)
    table.run(4)
    assert {reason for _, _, reason in table.ignored()} == {"noise"}
    assert not table.told("throw_locked")


# A stuck button


def test_the_seat_plays_on_beside_a_stuck_button() -> None:
    """A contact closed at start-up is reported, ignored until it opens, and the others work."""
    table = in_match(1, 2, closed=[(1, "pen")])
    table.throw(3.0, {1: "beetle", 2: "page"})
    table.edge(1, "pen", False, 4.0)
    table.run(5)
    assert table.told("contact_stuck") == [
        {"seq": 2, "at": 0.0, "event": "contact_stuck", "seat": 1, "button": "pen"}
    ]
    assert table.one("contact_healed")["at"] == 4.015
    assert table.one("round_revealed")["throws"]["1"] == "beetle"
    assert table.seat(1).stuck == ()


def test_a_throw_held_down_for_ever() -> None:
    """A button held longer than stuck_s is reported at that time; its throw had counted."""
    table = in_match(1, 2)
    table.press(1, 3.0, "pen", lasts=30)
    table.press(2, 3.5, "page")
    table.run(34)
    assert table.one("round_revealed")["throws"]["1"] == "pen"
    assert table.one("contact_stuck")["at"] == 23.0
    assert table.one("contact_healed")["at"] == 33.015


# Late join


def test_late_join_is_off() -> None:
    """Without seats.late_join a press at an empty seat in the reveal is `not_seated`."""
    table = in_match(1, 2)
    table.play(["pen page"])
    table.press(3, 4.0)
    table.run(6)
    assert table.ignored() == [(4.0, 3, "not_seated")]


def test_late_join_in_the_reveal() -> None:
    """Rule 10: the seat sits down in the reveal and plays from the next round with nothing collected."""
    table = in_match(1, 2, late_join=True, **FAST)
    table.play(["pen page", "page beetle pen"])
    table.press(3, 3.2)
    table.run(5.2)
    assert table.one("seat_taken", seat=3)["at"] == 3.2
    assert table.revealed()[0]["collections"].keys() == {"1", "2"}
    assert table.one("round_opened", round=2)["seats"] == [1, 2, 3]
    assert table.revealed()[1]["collections"]["3"] == {"pen": 0, "page": 0, "beetle": 0}
    assert table.revealed()[1]["throws"] == {"1": "page", "2": "beetle", "3": "pen"}


@pytest.mark.parametrize("at", [2.1, 2.9, 3.02, 3.03, 3.6])
def test_late_join_only_in_a_reveal(at: float) -> None:
    """Rule 10: not in guard, throw, settle (its last instant included), nor in the next round."""
    table = in_match(1, 2, late_join=True, **FAST)
    table.play(["pen page"])
    table.press(3, at)
    table.run(6)
    assert table.ignored(3) == [(at, 3, "not_seated")]


def test_late_join_goes_by_the_stamp() -> None:
    """A press that closed while the round settled, delivered in the reveal, was not made in a reveal."""
    table = in_match(1, 2, late_join=True)
    table.play(["pen page"])
    table.press(3, 3.02, delivered=3.2)
    table.run(4)
    assert not table.told("seat_taken", since=2.5)
    assert [(seat, reason) for _, seat, reason in table.ignored()] == [(3, "not_seated")]


def test_late_join_not_in_sudden_death() -> None:
    """Rule 10: nobody sits down between sudden-death rounds."""
    table = in_match(1, 2, 3, late_join=True, **FAST)
    table.play(["pen pen page"] * 3)
    table.press(4, 7.2)
    table.run(8)
    assert table.told("sudden_death")
    assert not table.told("seat_taken", since=2.5)


# Any round


@given(
    throws=st.dictionaries(
        st.integers(1, 3),
        st.lists(
            st.builds(
                lambda slot, jitter, button: (2900 + 150 * slot + jitter, button),
                st.integers(0, 4),
                st.integers(0, 80),
                st.sampled_from(["pen", "page", "beetle"]),
            ),
            max_size=3,
            unique_by=lambda each: (each[0] - 2900) // 150,
        ),
    )
)
def test_any_round_counts_the_last_press_in_time(throws: dict[int, list[tuple[int, str]]]) -> None:
    """Against the spec's sentences for random presses of three seats: close, throws, locks, ignored."""
    table = in_match(1, 2, 3, countdown=0.5, reveal=3)
    pressed = {seat: sorted(each) for seat, each in throws.items() if each}
    for seat, presses in pressed.items():
        for at, button in presses:
            table.press(seat, at / 1000, button, lasts=0.02)
    table.run(3.0 + 0.9)
    firsts = {seat: presses[0][0] for seat, presses in pressed.items()}
    if not firsts:
        assert table.names(2.5, 3.9) == []
        return
    deadline = min(firsts.values()) + 500
    in_time = {seat for seat, first in firsts.items() if first <= deadline}
    close = min(deadline, max(firsts.values())) if in_time == {1, 2, 3} else deadline
    if any(at > close for presses in pressed.values() for at, _ in presses) and len(in_time) < 2:
        return  # the next round is open by then; its guard is another test's
    counted = {seat: [each for each in presses if each[0] <= close] for seat, presses in pressed.items()}
    counted = {seat: presses for seat, presses in counted.items() if presses}
    assert {each["seat"]: each["at"] for each in table.told("throw_locked")} == {
        seat: presses[0][0] / 1000 for seat, presses in counted.items()
    }
    assert table.one("countdown_started")["deadline"] == s(deadline / 1000)
    if close / 1000 + 0.04 > 3.9:
        return
    if len(counted) >= 2:
        told = table.one("round_revealed")
        assert (told["closed"], told["at"]) == (s(close / 1000), s(close / 1000 + 0.03))
        assert told["throws"] == {
            str(seat): counted[seat][-1][1] if seat in counted else None for seat in (1, 2, 3)
        }
        late = sorted(
            (at / 1000, seat) for seat, presses in pressed.items() for at, _ in presses if at > close
        )
        assert sorted((at, seat) for at, seat, _ in table.ignored()) == late
        assert {reason for _, _, reason in table.ignored()} <= {"late"}
    else:
        assert table.one("round_void")["at"] == s(close / 1000 + 0.03)
