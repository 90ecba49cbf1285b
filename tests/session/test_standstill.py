"""A standstill: players could not see the clock, so the round in play is broken off and opened again."""

from __future__ import annotations

import pytest

from heek.session.phases import Phase
from tests.session.at_table import FAST, AtTable, in_match, ns, s


def gaps(table: AtTable) -> list[tuple[float, int]]:
    return [(each["at"], each["round"]) for each in table.told("round_void") if each["reason"] == "gap"]


def opened(table: AtTable) -> list[tuple[float, int]]:
    return [(each["at"], each["round"]) for each in table.told("round_opened")]


def test_in_throw() -> None:
    """A round nobody has thrown in yet is broken off at the standstill's end, and the next number opens."""
    table = in_match(1, 2)
    table.stall(3.0, 1.5)
    table.run(6)
    assert table.names(4.5) == ["round_void", "round_opened"]
    assert table.one("round_void") == {
        "seq": 8,
        "at": 4.5,
        "event": "round_void",
        "match": "match-1",
        "round": 1,
        "reason": "gap",
    }
    assert opened(table) == [(2.0, 1), (4.5, 2)]


def test_in_countdown_presses_in_it_are_late() -> None:
    """A throw of before is void with the round, a press in the standstill is `late`."""
    table = in_match(1, 2)
    table.press(1, 3.0, "pen")
    table.stall(4.0, 2.0)
    table.press(2, 5.0, "page")
    table.run(7)
    assert gaps(table) == [(6.0, 1)]
    assert table.ignored() == [(5.0, 2, "late")]
    assert table.told("throw_locked", since=3.5) == []
    assert "'pen'" not in str(table.events)
    assert not table.seat(1).thrown


def test_presses_at_the_edges_of_a_standstill() -> None:
    """A press at its first instant was made in time; one at its last instant was in it."""
    table = in_match(1, 2, 3, 4)
    table.stall(4.0, 2.0)
    table.press(1, 4.0)
    table.press(2, 4.000000001)
    table.press(3, 6.0)
    table.press(4, 6.000000001)
    table.run(7)
    assert [each["seat"] for each in table.told("throw_locked")] == [1]
    assert [(seat, reason) for _, seat, reason in table.ignored()] == [
        (2, "late"),
        (3, "late"),
        (4, "guard"),
    ]


def test_a_press_of_before_that_is_heard_after_it() -> None:
    """An edge from just before the standstill keeps its stamp: it was a throw, and is void with its round."""
    table = in_match(1, 2)
    table.press(1, 3.999, "pen")
    table.stall(4.0, 2.0)
    table.run(7)
    assert [(each["at"], each["seat"]) for each in table.told("throw_locked")] == [(3.999, 1)]
    assert gaps(table) == [(6.0, 1)]


@pytest.mark.fault("F043")
def test_the_deadline_inside_it_does_not_close() -> None:
    """Nobody saw the countdown end: no reveal, no miss."""
    table = in_match(1, 2, 3)
    table.press(1, 3.0, "pen")
    table.press(2, 4.0, "page")
    table.stall(7.0, 2.0)
    table.run(12)
    assert not table.revealed()
    assert gaps(table) == [(9.0, 1)]
    assert opened(table)[-1] == (9.0, 2)


@pytest.mark.parametrize(("began", "ended"), [(3.0, 8.0), (7.0, 8.0)])
def test_the_deadline_exactly_at_its_end(began: float, ended: float) -> None:
    """A deadline at the last instant of a standstill lies in it."""
    table = in_match(1, 2, 3, gap=0.5)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.stall(began, s(ended - began))
    table.run(9)
    assert gaps(table) == [(8.0, 1)]
    assert not table.revealed()


def test_the_deadline_exactly_at_its_beginning() -> None:
    """A round that had closed before the standstill began is compared as ever, at the rules' time."""
    table = in_match(1, 2, 3)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.stall(8.0, 2.0)
    table.run(11)
    assert not gaps(table)
    assert table.one("round_revealed")["at"] == 8.03
    assert table.one("round_revealed")["closed"] == 8.0


def test_in_settle_the_round_is_compared_as_ever() -> None:
    """It had closed before; the reveal is at close + settle_s however late the program ran."""
    table = in_match(1, 2)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.stall(3.01, 2.0)
    table.run(8)
    assert table.one("round_revealed")["at"] == 3.03
    assert not gaps(table)
    assert opened(table)[-1] == (7.03, 2)


def test_a_round_void_within_it_opens_another_that_is_void_too() -> None:
    """Closed in time with one throw it is void by `throws`; what opened then is broken off at the end."""
    table = in_match(1, 2)
    table.press(1, 3.0)
    table.stall(8.01, 2.0)
    table.run(11)
    assert [(each["at"], each["round"], each["reason"]) for each in table.told("round_void")] == [
        (8.03, 1, "throws"),
        (10.01, 2, "gap"),
    ]
    assert opened(table)[-1] == (10.01, 3)


def test_all_had_thrown_just_before_it() -> None:
    """The last throw closed before the standstill and is heard after it: compared as ever."""
    table = in_match(1, 2)
    table.press(1, 3.0, "pen")
    table.press(2, 3.999, "page")
    table.stall(4.0, 2.0)
    table.run(7)
    assert (table.one("round_revealed")["closed"], table.one("round_revealed")["at"]) == (3.999, 4.029)
    assert not gaps(table)


def test_a_press_in_time_delivered_after_it() -> None:
    """A press of before the standstill that comes even later is recorded for the round it was made in."""
    table = in_match(1, 2)
    table.press(1, 3.0, "pen")
    table.stall(4.0, 2.0)
    table.press(2, 3.9, "page", delivered=6.5)
    table.run(7)
    assert table.one("late_delivery")["round"] == 1
    assert not table.told("throw_locked", since=3.5)


def test_in_match_over() -> None:
    """Nothing is in play: the lobby opens at its time, also if that lies within the standstill."""
    table = in_match(1, 2, target=1)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.stall(10.0, 4.0)
    table.press(1, 12.0)
    table.press(2, 13.0)
    table.run(15)
    assert [each["at"] for each in table.told("seat_ready", since=5)] == [12.0, 13.0]
    assert table.told("match_started")[-1]["at"] == 13.0
    assert gaps(table) == [(14.0, 1)]


def test_in_reveal_nothing_is_broken_off() -> None:
    """A standstill within the reveal breaks no round; its presses are late as in any reveal."""
    table = in_match(1, 2)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.stall(4.0, 2.0)
    table.press(1, 5.0)
    table.run(8)
    assert not table.told("round_void")
    assert table.ignored() == [(5.0, 1, "late")]
    assert opened(table) == [(2.0, 1), (7.03, 2)]


def test_a_round_opened_within_it_is_void() -> None:
    """The reveal ends in the standstill: the round that opened then is broken off at its end."""
    table = in_match(1, 2)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.stall(6.0, 4.0)
    table.press(1, 9.0)
    table.run(11)
    assert opened(table) == [(2.0, 1), (7.03, 2), (10.0, 3)]
    assert gaps(table) == [(10.0, 2)]
    assert table.ignored() == [(9.0, 1, "late")]


def test_a_fixed_timers_round_opened_and_over_within_it() -> None:
    """With a fixed timer the whole countdown may lie in the standstill: void by gap, not by its throws."""
    table = in_match(1, 2, timer="fixed", countdown=2)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.stall(6.0, 6.0)
    table.run(13)
    assert [(each["round"], each["reason"]) for each in table.told("round_void")] == [(2, "gap")]
    assert opened(table) == [(2.0, 1), (7.03, 2), (12.0, 3)]


def test_in_the_lobby_presses_count() -> None:
    """Sitting down and getting ready go by their own stamps, standstill or not."""
    table = AtTable()
    table.stall(0.9, 3.0)
    table.press(1, 1.0)
    table.press(2, 2.0)
    table.run(12.5)
    assert [each["at"] for each in table.told("seat_taken")] == [1.0, 2.0]
    assert table.one("match_started")["at"] == 12.0


def test_a_match_started_within_it() -> None:
    """The lobby runs out in the standstill: the match starts by rule, and its first round is void."""
    table = AtTable(lobby=5)
    table.press(1, 1.0)
    table.press(2, 2.0)
    table.stall(6.0, 3.0)
    table.run(10)
    assert table.one("match_started")["at"] == 7.0
    assert opened(table) == [(7.0, 1), (9.0, 2)]
    assert gaps(table) == [(9.0, 1)]


@pytest.mark.fault("F043")
def test_it_counts_neither_as_missed_nor_as_winnerless() -> None:
    """Broken-off rounds leave the counts: two misses before stay two, the limit of winnerless stays far."""
    table = in_match(1, 2, 3, **FAST, winnerless_limit=4)
    table.play(["pen pen -", "pen pen -"])
    for at in (7.0, 10.0, 13.0):
        table.stall(at, 1.5)
    table.play(["pen pen pen"], start=15.0)
    table.run(16)
    assert len(gaps(table)) == 3
    assert not table.left()
    assert not table.told("match_void")
    table.play(["pen pen -"], start=17.0)
    table.run(20)
    assert table.one("match_void")["reason"] == "winnerless_limit"


def test_a_throw_in_a_broken_off_round_does_not_reset_the_count() -> None:
    """Rule 5: a round that the table broke off leaves the count of misses, throw or not."""
    table = in_match(1, 2, 3, **FAST)
    table.play(["pen pen -", "pen pen -"])
    table.press(3, 7.0)
    table.stall(7.1, 1.5)
    table.play(["pen pen -"], start=9.0)
    table.run(12)
    assert gaps(table) == [(8.6, 3)]
    assert table.left() == [(10.03, 3, "missed")]


def test_leaving_within_it() -> None:
    """A hold goes by its own stamps: the seat stands up in the standstill, and what follows follows then."""
    table = in_match(1, 2, 3)
    table.hold(3, 3.0, 3.5)
    table.stall(4.0, 4.0)
    table.run(9)
    assert table.left() == [(6.0, 3, "leave")]
    assert gaps(table) == [(8.0, 1)]
    assert table.told("round_opened")[-1]["seats"] == [1, 2]
    table = in_match(1, 2)
    table.hold(2, 3.0, 3.5)
    table.stall(4.0, 4.0)
    table.run(9)
    assert (table.one("match_void")["at"], table.one("match_void")["reason"]) == (6.0, "empty")
    assert not gaps(table)


def test_leaving_within_it_closes_no_round() -> None:
    """The leave that makes all the others have thrown lies in the standstill: void by gap all the same."""
    table = in_match(1, 2, 3)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.hold(3, 3.2, 3.5)
    table.stall(5.0, 2.5)
    table.run(9)
    assert table.left() == [(6.2, 3, "leave")]
    assert not table.revealed()
    assert gaps(table) == [(7.5, 1)]


def test_idle_within_it() -> None:
    """idle_s is the rules' time, too."""
    table = in_match(1, 2, idle=20)
    table.stall(10.0, 30.0)
    table.run(41)
    assert (table.one("match_void")["at"], table.one("match_void")["reason"]) == (22.0, "idle")
    assert table.left() == [(22.0, 1, "idle"), (22.0, 2, "idle")]
    assert not gaps(table)
    assert table.view.phase is Phase.ATTRACT


def test_two_standstills_in_a_row() -> None:
    """Each breaks off the round that is in play then."""
    table = in_match(1, 2)
    table.stall(3.0, 1.5)
    table.stall(4.5005, 1.5)
    table.run(8)
    assert gaps(table) == [(4.5, 1), (6.0005, 2)]
    assert opened(table)[-1] == (6.0005, 3)


def test_in_sudden_death() -> None:
    """The tied stay tied, and the limit does not count it."""
    table = in_match(1, 2, 3, **FAST, sudden_death_limit=2)
    table.play(["pen pen page"] * 3)
    table.stall(8.0, 1.5)
    table.play(["pen pen -"], start=10.0)
    table.run(11)
    assert gaps(table) == [(9.5, 4)]
    assert table.told("round_opened")[-1]["seats"] == [1, 2]
    assert not table.told("match_void")


def test_play_goes_on_after_it() -> None:
    """The round that opens at its end is a round like any other, with a guard of its own."""
    table = in_match(1, 2)
    table.stall(3.0, 2.0)
    table.press(1, 5.2)
    table.throw(5.3, {1: "beetle", 2: "pen"})
    table.run(6)
    assert table.ignored() == [(5.2, 1, "guard")]
    table = in_match(1, 2)
    table.stall(3.0, 2.0)
    table.throw(5.3, {1: "beetle", 2: "pen"})
    table.run(6)
    assert table.one("round_revealed")["round"] == 2
    assert table.one("round_revealed")["winners"] == [1]


def test_one_standstill_right_after_another() -> None:
    """Stopped, continued for a moment, stopped again: both rounds are broken off, nobody has missed any."""
    table = in_match(1, 2, 3, missed_limit=1)
    table.press(1, 2.5, "pen")
    table.run(2.9)
    # Each is told as the daemon tells it, and the program has no time to catch up between the two.
    for began, ended in ((3.0, 9.0), (9.0, 10.5)):
        table.table.stood_still(ns(began), ns(ended))
        table.take(ended)
    table.run(12)
    assert gaps(table) == [(9.0, 1), (10.5, 2)]
    assert table.left() == []
