"""How matches end at the table: won, tied, endless, idle, reset, and what the players gain or lose."""

from __future__ import annotations

from typing import Any

import pytest

from heek.session.phases import Phase
from heek.session.view import SeatState
from tests.session.at_table import FAST, AtTable, in_match, ns, s

TIED = ["pen pen page"] * 3
"""At 3.0, 5.0 and 7.0: seats 1 and 2 are tied at 7.03, the fourth round opens at 7.53."""


def signed_in(*players: str, points: dict[str, int] | None = None, **settings: Any) -> AtTable:
    """Seats 1, 2 ... claimed at 1.5 s by these players ("" for a guest); the match starts at 2.0 s."""
    table = in_match(
        *range(1, len(players) + 1),
        own_deltas={player: held - 100 for player, held in (points or {}).items()},
        **settings,
    )
    for seat, player in enumerate(players, 1):
        if player:
            table.claim(1.5, seat, player, f"name {player}")
    return table


# Won


def test_three_of_a_kind() -> None:
    """round_revealed and match_won at one instant, straight to match over, which shows the throws."""
    table = in_match(1, 2, 3, **FAST)
    table.play(["pen page -", "pen pen pen", "- pen page", "pen page -", "pen - page"])
    table.run(13)
    assert table.names(12.03) == ["round_revealed", "match_won"]
    assert table.one("match_won") == {
        "seq": len(table.events),
        "at": 12.03,
        "event": "match_won",
        "match": "match-1",
        "seat": 1,
        "by": "three",
        "rounds": 5,
        "deltas": {"1": 0, "2": 0, "3": 0},
    }
    assert table.view.phase is Phase.MATCH_OVER
    assert (table.view.since, table.view.until) == (ns(12.03), ns(20.03))
    assert (table.view.winner, table.view.by) == (1, "three")
    assert table.seat(1).won_match
    thrown = [table.seat(seat).throw for seat in (1, 2, 3)]
    assert [each and each.value for each in thrown] == ["pen", None, "page"]


def test_by_total() -> None:
    """Two reach three pens in one round, the one with a page more wins."""
    table = in_match(1, 2, 3, **FAST)
    table.play(["page beetle beetle", *TIED])
    table.run(10)
    assert (table.one("match_won")["seat"], table.one("match_won")["by"]) == (1, "total")
    assert not table.told("sudden_death")


def test_void_rounds_do_not_count_as_rounds() -> None:
    """`rounds` of match_won are the revealed ones; the numbers of rounds run on over void ones."""
    table = in_match(1, 2, **FAST)
    table.play(["pen page", "pen -", "pen page", "- pen", "pen page"])
    table.run(13)
    assert table.one("match_won")["rounds"] == 3
    assert [each["round"] for each in table.told("round_opened")] == [1, 2, 3, 4, 5]


# Sudden death


def test_sudden_death() -> None:
    """After the reveal, at its instant; then only the tied may throw, and the winner takes the match."""
    table = in_match(1, 2, 3, **FAST)
    table.play([*TIED, "page pen"])
    table.press(3, 9.0)
    table.run(10)
    assert table.names(7.03) == ["round_revealed", "sudden_death"]
    assert table.one("sudden_death")["seats"] == [1, 2]
    assert table.one("round_opened", round=4)["seats"] == [1, 2]
    told = table.one("round_revealed", round=4)
    assert told["throws"] == {"1": "page", "2": "pen"}
    assert set(told["collections"]) == {"1", "2", "3"}
    assert told["collections"]["2"] == {"pen": 3, "page": 0, "beetle": 0}
    assert table.one("match_won")["by"] == "sudden_death"
    assert table.one("match_won")["seat"] == 2
    assert table.one("match_won")["rounds"] == 4
    assert table.ignored() == [(9.0, 3, "not_in_round")]


def test_sudden_death_is_told_once() -> None:
    """Narrowing from three to two is no second sudden_death event."""
    table = in_match(1, 2, 3, 4, **FAST)
    table.play([*["pen pen pen page"] * 3, "pen pen page", "pen pen", "pen page"])
    table.run(15)
    assert [each["seats"] for each in table.told("sudden_death")] == [[1, 2, 3]]
    assert [each["seats"] for each in table.told("round_opened", since=7)] == [[1, 2, 3], [1, 2], [1, 2]]
    assert (table.one("match_won")["at"], table.one("match_won")["seat"]) == (13.03, 1)


def test_presses_while_others_play_sudden_death() -> None:
    """`not_in_round` comes before every other reason: guard, not_seated, late."""
    table = in_match(1, 2, 3, **FAST)
    table.play(TIED)
    table.press(3, 7.6)
    table.press(3, 8.0)
    table.press(4, 8.2)
    table.throw(9.0, {1: "pen", 2: "pen"})
    table.press(3, 9.02)
    table.press(3, 9.3)
    table.run(9.5)
    assert table.ignored(3) == [
        (7.6, 3, "not_in_round"),
        (8.0, 3, "not_in_round"),
        (9.02, 3, "not_in_round"),
        (9.3, 3, "not_in_round"),
    ]
    assert table.ignored(4) == [(8.2, 4, "not_in_round")]


def test_in_the_reveal_that_begins_sudden_death_all_are_late() -> None:
    """The round shown was everybody's; nobody plays sudden death yet."""
    table = in_match(1, 2, 3, **FAST)
    table.play(TIED)
    table.press(3, 7.2)
    table.press(1, 7.3)
    table.run(8)
    assert table.ignored() == [(7.2, 3, "late"), (7.3, 1, "late")]


def test_sudden_death_limit() -> None:
    """After so many sudden-death rounds without a winner, void ones counted, the match is void."""
    table = in_match(1, 2, 3, **FAST, sudden_death_limit=3)
    table.play([*TIED, "pen pen", "pen -", "page page"])
    table.run(14)
    assert table.names(13.03) == ["round_revealed", "match_void"]
    assert table.one("match_void") == {
        "seq": len(table.events),
        "at": 13.03,
        "event": "match_void",
        "match": "match-1",
        "reason": "sudden_death_limit",
    }
    assert table.view.phase is Phase.MATCH_OVER
    assert table.view.void == "sudden_death_limit"
    table.run(22)
    assert table.view.phase is Phase.LOBBY
    assert [table.seat(seat).state for seat in (1, 2, 3)] == [SeatState.UNCONFIRMED] * 3


def test_winnerless_limit() -> None:
    """Fifty by default; here three ordinary rounds running, drawn or void."""
    table = in_match(1, 2, **FAST, winnerless_limit=3)
    table.play(["pen pen", "pen page", "page page", "pen -", "page -"])
    table.run(14)
    assert table.names(12.03) == ["round_void", "match_void"]
    assert table.one("match_void")["reason"] == "winnerless_limit"


# Idle and operator


def test_idle() -> None:
    """No throw for idle_s since the match's start: void, all stand up at that instant, attract."""
    table = in_match(1, 2, 5, idle=30)
    table.press(1, 2.1)
    table.run(40)
    assert table.names(32.0) == ["match_void"] + ["seat_left"] * 3
    assert table.one("match_void")["reason"] == "idle"
    assert table.left() == [(32.0, seat, "idle") for seat in (1, 2, 5)]
    assert table.view.phase is Phase.ATTRACT
    assert [table.seat(seat).state for seat in (1, 2, 5)] == [SeatState.FREE] * 3


def test_idle_counts_from_the_last_accepted_throw_changes_too() -> None:
    """A change puts idle off; a late press or one in the guard does not."""
    table = in_match(1, 2, 3, idle=30)
    table.press(1, 3.0, "pen")
    table.press(2, 4.0, "page")
    table.press(1, 7.5, "page")
    table.press(1, 9.0, "page")
    table.press(2, 12.1)
    table.run(40)
    assert table.one("round_opened", round=2)["at"] == 12.03
    assert [reason for _, _, reason in table.ignored()] == ["late", "guard"]
    assert table.one("match_void")["at"] == 37.5


def test_a_throw_at_the_last_instant_keeps_the_match() -> None:
    """A press exactly when idle would come goes first."""
    table = in_match(1, 2, idle=30)
    table.press(1, 32.0, "pen")
    table.run(33)
    assert not table.told("match_void")
    assert table.view.phase is Phase.COUNTDOWN


def test_a_reset_in_a_match() -> None:
    """The operator's button: match void, all stand up, nothing told of the round; the table is free."""
    for at, phase in ((2.5, "throw"), (3.5, "countdown"), (8.01, "settle"), (9.0, "reveal")):
        table = in_match(1, 2, 3)
        if at > 3:
            table.throw(3.0, {1: "pen", 2: "page"})
        table.reset(at)
        table.run(at - 0.0001)
        assert table.view.phase.value in (phase, "countdown" if phase == "settle" else phase)
        table.run(30)
        assert table.names(at)[-4:] == ["match_void"] + ["seat_left"] * 3
        assert (table.one("match_void")["at"], table.one("match_void")["reason"]) == (at, "operator")
        assert table.left() == [(at, seat, "operator") for seat in (1, 2, 3)]
        assert not table.told("round_void")
        assert len(table.told("round_opened")) == 1
        assert table.view.phase is Phase.ATTRACT
        table.press(4, 31.0)
        table.run(32)
        assert table.one("seat_taken", seat=4)["at"] == 31.0


def test_a_reset_at_the_instant_of_the_reveal() -> None:
    """The operator goes before timers: the round is not revealed any more."""
    table = in_match(1, 2)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.reset(3.03)
    table.run(4)
    assert not table.revealed()
    assert "page" not in str(table.events)


def test_nothing_of_a_void_match_stays() -> None:
    """The points of those who left are nobody's: the next match begins from nothing."""
    table = in_match(1, 2, **FAST)
    table.play(["pen page", "pen page"])
    table.reset(6.0)
    for seat in (1, 2):
        table.press(seat, 7.0)
        table.press(seat, 8.0)
    table.throw(9.0, {1: "pen", 2: "page"})
    table.run(10)
    assert table.told("match_started")[-1]["match"] == "match-2"
    told = table.revealed()[-1]
    assert told["match"] == "match-2"
    assert told["round"] == 1
    assert told["collections"]["1"] == {"pen": 1, "page": 0, "beetle": 0}


# Stakes and deltas


def test_stakes_are_ranks() -> None:
    """Each signed-in player stakes rank points, a guest nothing, a player never seen one."""
    table = signed_in("a", "b", "c", "", points={"b": 201, "c": 0}).run(3)
    assert table.one("match_started")["stakes"] == {"1": 1, "2": 2, "3": 0, "4": 0}


def test_the_winner_receives_what_the_others_staked() -> None:
    """Deltas sum to zero and name every seat of the match."""
    table = signed_in("a", "b", "", points={"b": 500}, target=1)
    table.throw(3.0, {1: "pen", 2: "page", 3: "page"})
    table.run(4)
    assert table.one("match_won")["deltas"] == {"1": 3, "2": -3, "3": 0}
    result = table.results[0]
    assert (result.winner, result.by, result.deltas, result.rated) == (1, "three", (3, -3, 0), True)
    assert [entry.player for entry in result.entries] == ["a", "b", None]
    assert result.rules == "heek-1"


def test_award() -> None:
    """economy = award: the winner receives the same, nobody loses."""
    table = signed_in("a", "b", points={"b": 500}, target=1, economy="award")
    table.throw(3.0, {1: "pen", 2: "page"})
    table.run(4)
    assert table.one("match_won")["deltas"] == {"1": 3, "2": 0}
    assert table.results[0].rules == "heek-1-award"


def test_a_guest_who_wins_moves_nothing() -> None:
    """If a guest wins nothing moves."""
    table = signed_in("", "b", "c", target=1)
    table.throw(3.0, {1: "pen", 2: "page", 3: "page"})
    table.run(4)
    assert table.one("match_won")["deltas"] == {"1": 0, "2": 0, "3": 0}


def test_a_leavers_stake_stays_in_the_pool() -> None:
    """Rule 7: who stands up in a match loses the stake to the winner."""
    table = signed_in("a", "b", "c", points={"c": 300}, **FAST, target=2)
    table.play(["pen page page"])
    table.hold(3, 4.0, 3.2)
    table.play(["pen page"], start=8.0)
    table.run(10)
    assert table.left() == [(7.0, 3, "leave")]
    assert table.one("match_won")["deltas"] == {"1": 3, "2": -1, "3": -2}


def test_a_walkover_moves_the_stakes() -> None:
    """The leavers pay the one who stayed."""
    table = signed_in("a", "b", **FAST)
    table.play(["pen page"])
    table.hold(1, 4.0, 3.2)
    table.run(8)
    assert table.one("match_won")["by"] == "walkover"
    assert table.one("match_won")["deltas"] == {"1": -1, "2": 1}


def test_a_void_match_moves_nothing() -> None:
    """Nobody gains or loses, leavers included: the next stakes are what they were, and no result goes out."""
    table = signed_in("a", "b", "c", points={"a": 201}, **FAST)
    table.play(["pen page page"])
    table.hold(3, 4.0, 3.2)
    table.reset(8.0)
    for seat in (1, 2):
        table.press(seat, 9.0)
    table.claim(9.5, 2, "a")
    table.claim(9.5, 1, "c")
    for seat in (1, 2):
        table.press(seat, 10.0)
    table.run(11)
    assert table.results == []
    assert table.told("match_started")[-1]["stakes"] == {"1": 1, "2": 2}


def test_deltas_over_two_matches() -> None:
    """The second match's stakes come from the points after the first: ranks may have changed."""
    table = signed_in("a", "b", points={"a": 200, "b": 201}, target=1)
    table.throw(3.0, {1: "pen", 2: "page"})
    for seat in (1, 2):
        table.press(seat, 12.0)
    table.throw(13.0, {1: "page", 2: "pen"})
    table.run(14)
    first, second = table.told("match_started")
    assert (first["stakes"], second["stakes"]) == ({"1": 1, "2": 2}, {"1": 2, "2": 1})
    assert [each["deltas"] for each in table.told("match_won")] == [{"1": 2, "2": -2}, {"1": -2, "2": 2}]


def test_a_rematch_keeps_the_sign_in_and_a_new_sitter_does_not_get_it() -> None:
    """Who confirms stays signed in; who does not is signed out, and the next one there is a guest."""
    table = signed_in("a", "b", target=1)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.press(1, 12.0)
    table.run(27)
    assert table.left() == [(s(26.03), 2, "rematch")]
    table.press(2, 28.0)
    table.press(2, 29.0)
    table.run(30)
    assert table.seat(1).name == "name a"
    assert table.told("match_started")[-1]["stakes"] == {"1": 1, "2": 0}


def test_the_result_keeps_the_throws_of_every_revealed_round() -> None:
    """What the record needs for a replay: throws of revealed rounds alone, stamps of start and end."""
    table = in_match(1, 2, **FAST, target=2)
    table.play(["pen page", "pen -", "pen page"])
    table.run(9)
    result = table.results[0]
    assert [{seat: kind and kind.value for seat, kind in each.items()} for each in result.rounds] == [
        {1: "pen", 2: "page"},
        {1: "pen", 2: "page"},
    ]
    assert (result.started_at, result.ended_at) == (ns(2.0), ns(7.03))


def test_a_seat_left_and_joined_again_pays_once() -> None:
    """With late_join another sits down where a staking player left: that stake still is in the pool."""
    table = signed_in("a", "b", "c", points={"c": 300}, reveal=5, target=2, late_join=True, idle=30)
    table.throw(3.0, {1: "pen", 2: "page", 3: "page"})
    table.hold(3, 3.2, 3.5)
    table.press(3, 7.5)
    table.throw(9.0, {1: "pen", 2: "page", 3: "page"})
    table.run(10)
    assert table.told("seat_taken")[-1]["at"] == 7.5
    assert table.one("match_won")["deltas"] == {"1": 3, "2": -1, "3": -2}
    assert sum(table.results[0].deltas) == 0


def test_every_won_match_gives_one_result() -> None:
    """Results are reported once, void matches not at all."""
    table = in_match(1, 2, target=1)
    table.throw(3.0, {1: "pen", 2: "page"})
    for seat in (1, 2):
        table.press(seat, 12.0)
    table.throw(13.0, {1: "pen", 2: "page"})
    table.run(40)
    assert [result.match for result in table.results] == ["match-1", "match-2"]
    assert len(table.told("match_won")) == 2


@pytest.mark.parametrize("cycle", ["pen-page-beetle", "pen-beetle-page"])
def test_the_cycle_of_the_settings(cycle: str) -> None:
    """The table plays the cycle it is set to."""
    table = in_match(1, 2, cycle=cycle)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.run(4)
    assert table.one("round_revealed")["winners"] == [1 if cycle == "pen-page-beetle" else 2]
