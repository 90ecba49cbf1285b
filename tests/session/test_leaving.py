"""Standing up in a match: by hold, by misses, several at once, and what it does to round and match."""

from __future__ import annotations

import pytest

from heek.session.phases import Phase
from tests.session.at_table import FAST, in_match, ns

TIED = ["pen pen page"] * 3
"""At 3.0, 5.0 and 7.0: seats 1 and 2 are tied at 7.03, the fourth round opens at 7.53."""


# By hold


def test_leaving_shows_from_one_second_on() -> None:
    """Both outer buttons held: from 1 s on the view says when the seat will stand up, then it does."""
    table = in_match(1, 2, 3)
    table.hold(2, 4.0, 3.5)
    table.run(4.99)
    assert table.seat(2).leaves_at is None
    table.run(5.01)
    assert table.seat(2).leaves_at == ns(7.0)
    table.run(7.1)
    assert table.left() == [(7.0, 2, "leave")]
    assert table.seat(2).leaves_at is None
    assert table.seat(2).collection is None


def test_letting_go_ends_the_countdown() -> None:
    """Let go before leave_s: nobody leaves, and the warning goes once the contact is open for good."""
    table = in_match(1, 2)
    table.hold(2, 4.0, 2.9)
    table.run(6.8)
    assert table.seat(2).leaves_at == ns(7.0)
    table.run(7.5)
    assert table.seat(2).leaves_at is None
    assert not table.left()


def test_held_together_counts_from_the_second_button() -> None:
    """leave_s counts from when both are closed, and the presses were throws: the last one closed."""
    table = in_match(1, 2, 3)
    table.hold(2, 4.0, 3.5, first=0.5)
    table.run(6)
    assert [each["seat"] for each in table.told("throw_locked")] == [2]
    table.run(8)
    assert table.left() == [(7.0, 2, "leave")]


def test_the_presses_of_a_hold_count_as_a_throw() -> None:
    """Let go in time, what was closed last is the seat's throw."""
    table = in_match(1, 2)
    table.hold(2, 4.0, 2.0, first=0.5)
    table.press(1, 7.0, "pen")
    table.run(8)
    assert table.one("round_revealed")["throws"] == {"1": "pen", "2": "beetle"}


@pytest.mark.parametrize("button", ["pen", "page", "beetle"])
def test_one_button_held_never_leaves(button: str) -> None:
    """However long it is held."""
    table = in_match(1, 2)
    table.press(1, 3.0, button, lasts=15)
    table.run(19)
    assert not table.left()


def test_page_and_an_outer_button_never_leave() -> None:
    """Only both outer buttons together make a seat leave."""
    table = in_match(1, 2)
    table.press(1, 3.0, "page", lasts=6)
    table.press(1, 3.5, "pen", lasts=6)
    table.run(10)
    assert not table.left()


def test_leaving_withdraws_the_throw() -> None:
    """Round rule 6: the throw goes with the seat; the seat is not in the reveal at all."""
    table = in_match(1, 2, 3, 4)
    table.press(1, 3.0, "pen")
    table.press(2, 3.5, "page")
    table.press(3, 3.6, "page")
    table.hold(2, 4.0, 3.5)
    table.run(9)
    told = table.one("round_revealed")
    assert told["throws"] == {"1": "pen", "3": "page", "4": None}
    assert told["points"] == {"1": 1, "3": -1}
    assert set(told["collections"]) == {"1", "3", "4"}


def test_a_countdown_runs_on_when_the_only_thrower_leaves() -> None:
    """Fine points: once it runs it runs to its deadline."""
    table = in_match(1, 2, 3)
    table.press(2, 3.0)
    table.hold(2, 3.5, 3.5)
    table.run(9)
    assert table.left() == [(6.5, 2, "leave")]
    assert table.one("round_void")["at"] == 8.03
    assert len(table.told("countdown_started")) == 1


def test_leaving_can_close_the_round() -> None:
    """All who are left have thrown: the close is the stamp of the leave that made it so."""
    table = in_match(1, 2, 3)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.hold(3, 3.5, 3.5)
    table.run(7)
    assert table.one("round_revealed")["closed"] == 6.5
    assert table.one("round_revealed")["at"] == 6.53
    assert table.one("round_revealed")["throws"] == {"1": "pen", "2": "page"}


def test_leaving_in_throw_opens_nothing_new() -> None:
    """The round goes on with those who are left."""
    table = in_match(1, 2, 3)
    table.hold(3, 3.0, 3.5)
    table.throw(7.0, {1: "pen", 2: "page"})
    table.run(8)
    assert len(table.told("round_opened")) == 1
    assert table.one("round_revealed")["closed"] == 7.0


@pytest.mark.parametrize("hold", [5.005, 5.02, 5.03])
def test_leaving_while_settling_is_compared_first(hold: float) -> None:
    """Who leaves in the settle window, its last instant included, is in the reveal and leaves after it."""
    table = in_match(1, 2, 3)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.hold(2, hold, 3.5)
    table.run(9)
    told = table.one("round_revealed")
    assert told["throws"] == {"1": "pen", "2": "page", "3": None}
    assert table.names(8.03)[:2] == ["round_revealed", "seat_left"]
    assert table.left() == [(8.03, 2, "leave")]


def test_leaving_exactly_at_the_close_is_not_in_the_reveal() -> None:
    """At the deadline itself edges go first, so the seat has left the round before it closes."""
    table = in_match(1, 2, 3)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.hold(2, 5.0, 3.5)
    table.run(9)
    assert table.left() == [(8.0, 2, "leave")]
    assert table.one("round_void")["reason"] == "throws"


def test_leaving_while_the_deciding_round_settles() -> None:
    """Compared first: the leaver wins the match and leaves after it."""
    table = in_match(1, 2, 3, target=1)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.hold(1, 5.01, 3.5)
    table.run(9)
    assert table.names(8.03) == ["round_revealed", "match_won", "seat_left"]
    assert table.one("match_won")["seat"] == 1


def test_leaving_in_the_reveal() -> None:
    """The seat is gone at once; the next round opens by the reveal's own time."""
    table = in_match(1, 2, 3)
    table.throw(3.0, {1: "pen", 2: "page", 3: "page"})
    table.hold(3, 3.2, 3.5)
    table.run(8)
    assert table.left() == [(6.2, 3, "leave")]
    assert table.one("round_opened", round=2) == {
        "seq": len(table.events),
        "at": 7.03,
        "event": "round_opened",
        "match": "match-1",
        "round": 2,
        "seats": [1, 2],
    }


# Walkover, empty


def test_walkover_in_mid_round() -> None:
    """A round was revealed: the last player wins at the leave's stamp, the round without an event."""
    table = in_match(1, 2, reveal=0.5)
    table.play(["pen page"])
    table.press(1, 5.0, "page")
    table.hold(2, 5.5, 3.5)
    table.run(20)
    assert table.names(8.5) == ["seat_left", "match_won"]
    assert table.one("match_won") == {
        "seq": table.one("match_won")["seq"],
        "at": 8.5,
        "event": "match_won",
        "match": "match-1",
        "seat": 1,
        "by": "walkover",
        "rounds": 1,
        "deltas": {"1": 0, "2": 0},
    }
    assert not table.told("round_void")
    assert not table.told("round_revealed", since=5)


def test_no_walkover_without_a_revealed_round() -> None:
    """Only void rounds before: the match is void, reason `empty`, and its winner is nobody."""
    table = in_match(1, 2)
    table.press(1, 3.0)
    table.hold(2, 9.0, 3.5)
    table.run(13)
    assert table.told("round_void")
    assert table.names(12.0) == ["seat_left", "match_void"]
    assert table.one("match_void")["reason"] == "empty"
    assert table.view.phase is Phase.MATCH_OVER
    assert table.view.void == "empty"


def test_walkover_in_the_reveal() -> None:
    """Leaving in the reveal ends the match then."""
    table = in_match(1, 2)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.hold(1, 3.3, 3.5)
    table.run(7)
    assert (table.one("match_won")["at"], table.one("match_won")["seat"]) == (6.3, 2)


def test_the_last_two_leave_at_one_instant() -> None:
    """Several who leave at one instant all leave first, then it is judged: void, no walkover."""
    table = in_match(1, 2, reveal=0.5)
    table.play(["pen page"])
    table.hold(1, 4.0, 3.5)
    table.hold(2, 4.0, 3.5)
    table.run(8)
    assert table.names(7.0) == ["seat_left", "seat_left", "match_void"]
    assert table.one("match_void")["reason"] == "empty"


def test_four_leave_at_one_instant() -> None:
    """Four of five leave together: the fifth walks over, once."""
    table = in_match(1, 2, 3, 4, 5, reveal=5)
    table.throw(3.0, {1: "pen", 2: "page", 3: "page", 4: "page", 5: "page"})
    for seat in (1, 2, 3, 4):
        table.hold(seat, 3.5, 3.5, first=0.05 * seat)
    table.run(8)
    assert table.left() == [(6.5, seat, "leave") for seat in (1, 2, 3, 4)]
    assert table.names(6.5) == ["seat_left"] * 4 + ["match_won"]
    assert (table.one("match_won")["seat"], table.one("match_won")["by"]) == (5, "walkover")


# Missed


def test_three_misses_running_stand_up() -> None:
    """missed_limit rounds, revealed or void: the seat stands up with the reveal and the rest play on."""
    table = in_match(1, 2, 3, **FAST)
    table.play(["pen page -", "pen - -", "pen pen -"])
    table.run(10)
    assert table.left() == [(8.03, 3, "missed")]
    assert table.names(8.03) == ["round_revealed", "seat_left"]
    assert table.told("round_opened")[-1]["seats"] == [1, 2]


def test_the_third_miss_in_a_void_round() -> None:
    """round_void, seat_left, and then the next round opens without it."""
    table = in_match(1, 2, 3, **FAST)
    table.play(["pen page -", "pen page -", "pen - -"])
    table.run(9)
    assert table.names(8.03) == ["round_void", "seat_left", "round_opened"]
    assert table.told("round_opened")[-1]["seats"] == [1, 2]


def test_a_throw_sets_the_count_to_0() -> None:
    """Two misses, one throw, two misses: the seat sits."""
    table = in_match(1, 2, 3, **FAST)
    table.play(["pen pen -", "pen pen -", "pen pen pen", "pen pen -", "pen pen -"])
    table.run(14)
    assert not table.left()


def test_a_throw_that_the_leave_of_others_made_void_is_a_throw() -> None:
    """A single throw in a void round sets the count to 0, too."""
    table = in_match(1, 2, 3, **FAST)
    table.play(["pen pen -", "pen pen -", "- - pen", "pen pen -", "pen pen -"])
    table.run(14)
    assert not table.left()


def test_missed_in_the_deciding_round_no_longer_matters() -> None:
    """The third miss in the round that decides: the seat keeps its place for the rematch."""
    table = in_match(1, 2, 3, **FAST)
    table.play(["pen page -"] * 3)
    table.run(9)
    assert table.names(8.03) == ["round_revealed", "match_won"]
    assert not table.left()


def test_missed_in_a_round_that_reaches_a_limit_no_longer_matters() -> None:
    """Fine points: a round that makes the match void by a limit is a deciding one."""
    table = in_match(1, 2, 3, **FAST, winnerless_limit=3)
    table.play(["pen pen -"] * 3)
    table.run(9)
    assert table.names(8.03) == ["round_revealed", "match_void"]
    assert not table.left()


def test_all_but_one_missed_out() -> None:
    """Two reach the limit in one round: both go first, then the third walks over."""
    table = in_match(1, 2, 3, **FAST)
    table.play(["pen page page", "pen - -", "pen - -", "pen - -"])
    table.run(11)
    assert table.names(10.03) == ["round_void", "seat_left", "seat_left", "match_won"]
    assert (table.one("match_won")["seat"], table.one("match_won")["by"]) == (1, "walkover")
    assert table.one("match_won")["rounds"] == 1


def test_everybody_missed_out() -> None:
    """With a fixed timer nobody may throw at all: all stand up by the third void round."""
    table = in_match(1, 2, timer="fixed", countdown=1)
    table.run(10)
    assert table.left() == [(5.09, 1, "missed"), (5.09, 2, "missed")]
    assert table.names(5.09) == ["round_void", "seat_left", "seat_left", "match_void"]
    assert table.one("match_void")["reason"] == "empty"


def test_missed_limit_off() -> None:
    """missed_limit = 0: nobody stands up for missing."""
    table = in_match(1, 2, 3, **FAST, missed_limit=0)
    table.play(["pen pen -"] * 6)
    table.run(16)
    assert not table.left()


def test_missed_and_leaving_at_one_reveal() -> None:
    """Who misses out and who left in the settle window go together, then it is judged once."""
    table = in_match(1, 2, 3, 4, **FAST)
    table.play(["pen page - pen", "pen pen - page", "page page - page"])
    table.hold(4, 5.01, 3.2)
    table.run(10)
    assert [(at, seat) for at, seat, _ in table.left()] == [(8.03, 3), (8.03, 4)]
    assert table.told("round_opened")[-1]["seats"] == [1, 2]


# In sudden death


def test_watching_leaves_the_count_of_misses() -> None:
    """A watcher with two misses sits through sudden death."""
    table = in_match(1, 2, 3, 4, **FAST)
    table.play(["pen pen page page", "pen pen page -", "pen pen page -"])
    table.play(["page page", "page page", "page beetle"], start=9.0)
    table.run(14)
    assert not table.left()
    assert table.one("match_won")["by"] == "sudden_death"


def test_the_other_tied_one_stands_up() -> None:
    """Two left, both tied, one leaves: sudden_death, not walkover."""
    table = in_match(1, 2, 3, **FAST)
    table.play(TIED)
    table.hold(3, 8.0, 3.2)
    table.hold(1, 12.0, 3.2)
    table.run(16)
    assert table.left() == [(11.0, 3, "leave"), (15.0, 1, "leave")]
    assert table.names(15.0) == ["seat_left", "match_won"]
    assert (table.one("match_won")["seat"], table.one("match_won")["by"]) == (2, "sudden_death")


def test_one_of_three_tied_stands_up_in_mid_round() -> None:
    """The round goes on among the two others, with the throws they made."""
    table = in_match(1, 2, 3, 4, reveal=0.5)
    table.play(["pen pen pen page"] * 3)
    table.press(1, 9.0, "pen")
    table.hold(3, 9.2, 3.2)
    table.press(2, 13.0, "page")
    table.run(14)
    assert table.names(12.2) == ["seat_left"]
    assert not table.told("round_void")
    assert table.one("round_revealed", round=4)["throws"] == {"1": "pen", "2": "page"}
    assert table.one("match_won")["by"] == "sudden_death"


def test_a_tied_one_misses_out() -> None:
    """A tied seat that misses three rounds stands up: the other wins by sudden_death."""
    table = in_match(1, 2, 3, **FAST)
    table.play([*TIED, "pen -", "pen -", "pen -"])
    table.run(15)
    assert table.names(14.03) == ["round_void", "seat_left", "match_won"]
    assert (table.one("match_won")["seat"], table.one("match_won")["by"]) == (1, "sudden_death")


def test_all_tied_gone_in_mid_round() -> None:
    """That round is void (`throws`) without misses, and the rest play ordinary rounds."""
    table = in_match(1, 2, 3, 4, **FAST)
    table.play(["pen pen page -", "pen pen page -", "pen pen page page"])
    table.hold(1, 8.0, 3.2)
    table.hold(2, 8.0, 3.2)
    table.run(11.5)
    assert table.left() == [(11.0, 1, "leave"), (11.0, 2, "leave")]
    assert table.names(11.0) == ["seat_left", "seat_left", "round_void", "round_opened"]
    assert table.one("round_void")["reason"] == "throws"
    assert table.told("round_opened")[-1]["round"] == 5
    assert table.told("round_opened")[-1]["seats"] == [3, 4]
    assert not table.view.sudden_death


def test_all_tied_gone_and_a_second_sudden_death() -> None:
    """Rules 1 and 2 for the rest: round_void, sudden_death anew, round_opened among those."""
    table = in_match(1, 2, 3, 4, 5, **FAST)
    table.play(["page page beetle beetle beetle", *["pen pen pen pen page"] * 3])
    table.hold(1, 10.0, 3.2)
    table.hold(2, 10.0, 3.2)
    table.run(13.5)
    assert [each["seats"] for each in table.told("sudden_death")] == [[1, 2], [3, 4]]
    assert table.names(13.0) == ["seat_left", "seat_left", "round_void", "sudden_death", "round_opened"]
    assert table.told("round_opened")[-1]["seats"] == [3, 4]


def test_all_tied_gone_and_the_match_is_decided() -> None:
    """Rule 1 for the rest: one alone has three; the round closes without an event of its own."""
    table = in_match(1, 2, 3, 4, **FAST)
    table.play(["page page beetle beetle", *["pen pen pen page"] * 3])
    table.hold(1, 10.0, 3.2)
    table.hold(2, 10.0, 3.2)
    table.run(14)
    assert table.names(13.0) == ["seat_left", "seat_left", "match_won"]
    assert (table.one("match_won")["seat"], table.one("match_won")["by"]) == (3, "three")


def test_all_tied_gone_in_the_reveal() -> None:
    """Between rounds there is none to break off: the next round opens when the reveal is over."""
    table = in_match(1, 2, 3, 4, countdown=1, reveal=4)
    table.play(["pen pen page page"] * 3, step=5)
    table.hold(1, 13.2, 3.2)
    table.hold(2, 13.2, 3.2)
    table.run(18)
    assert table.names(16.2) == ["seat_left", "seat_left"]
    assert not table.told("round_void")
    assert table.told("round_opened")[-1] == {
        "seq": len(table.events),
        "at": 17.03,
        "event": "round_opened",
        "match": "match-1",
        "round": 4,
        "seats": [3, 4],
    }


def test_all_tied_leave_while_settling() -> None:
    """Compared first; then the tied are gone and the rest are judged."""
    table = in_match(1, 2, 3, 4, 5, **FAST, settle=0.2, leave=1.5)
    table.play(["page page beetle beetle beetle", *["pen pen pen pen page"] * 3, "page page"])
    for seat in (1, 2):
        table.hold(seat, 9.6, 2.0)
    table.run(13)
    assert table.one("round_revealed", round=5)["throws"] == {"1": "page", "2": "page"}
    assert table.names(11.2) == ["round_revealed", "seat_left", "seat_left", "sudden_death"]
    assert table.told("round_opened")[-1]["seats"] == [3, 4]
