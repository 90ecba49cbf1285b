"""Sitting down, getting ready, waiting, signing in, and the lobby after a match."""

from __future__ import annotations

import pytest

from heek.session.phases import Phase
from heek.session.view import SeatState
from tests.session.at_table import FAST, AtTable, in_match, ns


def won_match(*seats: int, **settings: object) -> AtTable:
    """A match that seat 1 wins in one round: thrown at 3.0, over at 3.03, lobby again at 11.03."""
    table = in_match(*seats, target=1, **settings)
    table.throw(3.0, {1: "pen"} | dict.fromkeys(seats[1:], "page"))
    return table


# Attract and lobby


def test_a_press_at_an_empty_seat_takes_it() -> None:
    """In attract any button of any seat takes the seat, at the press's own stamp."""
    table = AtTable()
    table.press(4, 1.234567, "beetle")
    table.run(2)
    assert table.told("seat_taken") == [
        {"seq": 2, "at": 1.234567, "event": "seat_taken", "seat": 4, "kind": "guest"}
    ]
    assert table.view.phase is Phase.LOBBY
    assert table.view.since == ns(1.234567)
    assert table.seat(4).state is SeatState.TAKEN


def test_the_press_that_takes_a_seat_is_not_the_ready_press() -> None:
    """Two who only sat down wait for lobby_s; the second press of each is ready."""
    table = AtTable()
    table.press(1, 1.0)
    table.press(2, 1.5)
    table.run(5)
    assert not table.told("seat_ready", "match_started")
    table.press(1, 6.0)
    table.run(6.5)
    assert table.one("seat_ready") == {"seq": 4, "at": 6.0, "event": "seat_ready", "seat": 1}
    assert table.seat(1).state is SeatState.READY


def test_lobby_s_since_the_last_was_taken() -> None:
    """The match starts lobby_s after the last seat was taken; one being ready does not put that off."""
    table = AtTable()
    table.press(1, 1.0)
    table.press(3, 4.0)
    table.press(1, 9.0)
    table.run(13.9)
    assert not table.told("match_started")
    assert table.view.until == ns(14.0)
    table.run(20)
    assert table.one("match_started") == {
        "seq": 5,
        "at": 14.0,
        "event": "match_started",
        "match": "match-1",
        "game": "ahyoheek",
        "seats": [1, 3],
        "stakes": {"1": 0, "3": 0},
    }
    assert table.one("round_opened") == {
        "seq": 6,
        "at": 14.0,
        "event": "round_opened",
        "match": "match-1",
        "round": 1,
        "seats": [1, 3],
    }


def test_at_the_lobbys_last_instant_a_press_still_sits_down() -> None:
    """At equal stamps edges go before timers: a seat taken at the very end puts the start off again."""
    table = AtTable(lobby=5)
    table.press(1, 1.0)
    table.press(2, 2.0)
    table.press(3, 7.0)
    table.run(30)
    assert table.one("match_started")["at"] == 12.0
    assert table.one("match_started")["seats"] == [1, 2, 3]


def test_all_ready_start_at_once() -> None:
    """When all are ready the match starts at the last ready press."""
    table = AtTable()
    for seat in (1, 2, 3):
        table.press(seat, 1.0)
    table.press(2, 2.0)
    table.press(3, 2.2)
    table.press(1, 2.4)
    table.run(3)
    assert table.names(2.4) == ["seat_ready", "match_started", "round_opened"]


def test_one_alone_never_starts() -> None:
    """A single ready seat waits for company."""
    table = AtTable()
    table.press(1, 1.0)
    table.press(1, 2.0)
    table.run(50)
    assert not table.told("match_started")
    assert table.view.until is None


def test_ready_stays_when_others_sit_down() -> None:
    """Who is ready need not press again for a newcomer: the newcomer's ready press starts it."""
    table = AtTable()
    table.press(1, 1.0)
    table.press(1, 2.0)
    table.press(5, 3.0)
    table.press(5, 4.0)
    table.run(6)
    assert [each["seat"] for each in table.told("seat_ready")] == [1, 5]
    assert table.one("match_started")["at"] == 4.0


def test_a_further_ready_press_says_nothing() -> None:
    """seat_ready comes once; pressing on changes nothing and delays nothing."""
    table = AtTable()
    table.press(1, 1.0)
    table.press(2, 1.5)
    for at in (2.0, 3.0, 4.0, 10.0):
        table.press(1, at)
    table.run(12)
    assert len(table.told("seat_ready")) == 1
    assert table.one("match_started")["at"] == 11.5


def test_five_confirmed_start_at_once() -> None:
    """A full table starts when the fifth sits down, ready or not."""
    table = in_match(1, 2, 3, 4, 5).run(3)
    assert table.names(2.0) == ["seat_taken", "match_started", "round_opened"]


def test_a_table_with_fewer_stations_waits() -> None:
    """Where three stations are wired three confirmed are not five: lobby_s counts."""
    table = AtTable(seats=(1, 2, 4))
    for seat in (1, 2, 4):
        table.press(seat, 1.0)
    table.run(12)
    assert table.one("match_started")["at"] == 11.0
    assert table.seat(3).state is SeatState.ABSENT


def test_a_lobby_of_one_empties() -> None:
    """A lobby with fewer than two for lobby_idle_s empties: `idle`, and attract again."""
    table = AtTable(lobby_idle=20)
    table.press(2, 1.0)
    table.press(2, 15.0)
    table.run(22)
    assert table.left() == [(21.0, 2, "idle")]
    assert table.view.phase is Phase.ATTRACT


def test_lobby_idle_counts_from_when_it_became_fewer_than_two() -> None:
    """Company ends the wait, and the wait begins anew when the company stands up."""
    table = AtTable(lobby_idle=20, lobby=60)
    table.press(1, 1.0)
    table.press(2, 10.0)
    table.hold(2, 30.0, 3.2)
    table.run(60)
    assert table.left() == [(33.0, 2, "leave"), (53.0, 1, "idle")]


def test_a_second_one_who_sits_down_at_the_last_instant_keeps_the_lobby() -> None:
    """A press exactly when the lobby would empty comes first."""
    table = AtTable(lobby_idle=20)
    table.press(1, 1.0)
    table.press(2, 21.0)
    table.run(22)
    assert not table.left()
    table.run(40)
    assert table.one("match_started")["at"] == 31.0


def test_leaving_in_the_lobby() -> None:
    """Both outer buttons held stand up from the lobby; the last one leaves it in attract."""
    table = AtTable()
    table.press(1, 1.0)
    table.hold(1, 2.0, 3.5)
    table.run(4)
    assert table.seat(1).leaves_at == ns(5.0)
    table.run(6)
    assert table.left() == [(5.0, 1, "leave")]
    assert table.view.phase is Phase.ATTRACT


def test_the_rest_all_ready_start_when_the_last_other_leaves() -> None:
    """Leaving can make all who are left ready: the match starts at that instant."""
    table = AtTable()
    for seat in (1, 2, 3):
        table.press(seat, 1.0)
    table.press(1, 2.0)
    table.press(2, 2.5)
    table.hold(3, 3.0, 3.1)
    table.run(8)
    assert table.names(6.0) == ["seat_left", "match_started", "round_opened"]
    assert table.one("match_started")["seats"] == [1, 2]


def test_a_reset_outside_a_match() -> None:
    """The operator's button empties a lobby without any match event."""
    table = AtTable()
    table.press(1, 1.0)
    table.press(4, 1.5)
    table.reset(3.0)
    table.run(30)
    assert table.names(3.0, 30) == ["seat_left", "seat_left"]
    assert table.left() == [(3.0, 1, "operator"), (3.0, 4, "operator")]
    assert table.view.phase is Phase.ATTRACT


def test_a_reset_of_an_empty_table_says_nothing() -> None:
    """In attract there is nobody to send away."""
    table = AtTable()
    table.reset(1.0)
    table.run(2)
    assert table.names(0.5, 2) == []


def test_edges_before_the_operator_at_one_instant() -> None:
    """A press at the very instant of a reset comes first, so its seat is sent away, too."""
    table = AtTable()
    table.reset(2.0)
    table.press(3, 2.0)
    table.run(3)
    assert table.names(2.0) == ["seat_taken", "seat_left"]


def test_the_rules_on_a_hold_of_the_right_button() -> None:
    """In the lobby the beetle held for hold_s shows the rules, the pen or the page do not."""
    table = AtTable()
    table.press(1, 1.0, "pen", lasts=1.5)
    table.press(1, 3.0, "page", lasts=1.5)
    table.press(1, 5.0, "beetle", lasts=0.9)
    table.run(6.5)
    assert table.view.rules_since is None
    table.press(1, 7.0, "beetle", lasts=1.1)
    table.run(8.2)
    assert table.view.rules_since == ns(8.0)


def test_a_hold_counts_only_while_the_others_are_open() -> None:
    """The rules do not come up while another button of the seat is down."""
    table = AtTable()
    table.press(1, 1.0, "page", lasts=3)
    table.press(1, 1.5, "beetle", lasts=2)
    table.run(5)
    assert table.view.rules_since is None


# Claims


def test_a_claim_names_the_seat() -> None:
    """A signed-in player takes the seat's identity in the lobby."""
    table = AtTable()
    table.press(1, 1.0)
    table.claim(2.0, 1, "40220173", "Shorah")
    table.run(3)
    assert table.one("seat_claimed") == {
        "seq": 3,
        "at": 2.0,
        "event": "seat_claimed",
        "seat": 1,
        "player": "40220173",
        "name": "Shorah",
    }
    assert table.seat(1).name == "Shorah"


def test_a_claim_at_the_instant_the_seat_is_taken() -> None:
    """At equal stamps the edge goes first, so the seat is there to be claimed."""
    table = AtTable()
    table.claim(1.0, 1, "40220173")
    table.press(1, 1.0)
    table.run(2)
    assert table.names(1.0) == ["seat_taken", "seat_claimed"]


@pytest.mark.parametrize("at", [0.5, 2.5, 3.5])
def test_a_claim_outside_the_lobby(at: float) -> None:
    """A claim in attract, in a match or in match over is refused."""
    table = won_match(1, 2)
    table.claim(at, 1, "40220173")
    table.run(4)
    assert len(table.refused) == 1
    assert "seat 1" in table.refused[0]
    assert not table.told("seat_claimed")


def test_a_claim_at_an_empty_seat() -> None:
    """A seat that nobody took cannot be claimed."""
    table = AtTable()
    table.press(1, 1.0)
    table.claim(2.0, 3, "40220173")
    table.run(3)
    assert len(table.refused) == 1
    assert "seat 3 is empty" in table.refused[0]


def test_one_player_cannot_sit_twice() -> None:
    """Faults F110: a second seat claimed by the same player is refused with the reason."""
    table = AtTable()
    table.press(1, 1.0)
    table.press(2, 1.0)
    table.claim(2.0, 1, "40220173")
    table.claim(3.0, 2, "40220173")
    table.run(4)
    assert len(table.refused) == 1
    assert "already sits at seat 1" in table.refused[0]


def test_a_refused_claim_loses_nothing_else() -> None:
    """What was pressed before and after a refused claim is taken, also when all come in one go."""
    table = AtTable()
    table.stall(0.5, 0.9)
    table.press(1, 1.0)
    table.claim(1.1, 3, "40220173")
    table.press(2, 1.2)
    table.run(3)
    assert len(table.refused) == 1
    assert [each["seat"] for each in table.told("seat_taken")] == [1, 2]


def test_standing_up_signs_out() -> None:
    """ki.md: the next visitor at the seat never plays as the last one."""
    table = AtTable()
    table.press(1, 1.0)
    table.claim(2.0, 1, "40220173")
    table.hold(1, 3.0, 3.2)
    table.press(1, 8.0)
    table.press(2, 9.0)
    table.run(20)
    assert table.seat(1).name is None
    assert table.one("match_started")["stakes"] == {"1": 0, "2": 0}


# Match over and rematch


def test_match_over_then_a_lobby_of_the_same_seats() -> None:
    """match_over_s after the end the same seats are in the lobby, each unconfirmed."""
    table = won_match(1, 2).run(11.0)
    assert table.view.phase is Phase.MATCH_OVER
    assert table.view.until == ns(11.03)
    assert table.view.winner == 1
    table.run(11.1)
    assert table.view.phase is Phase.LOBBY
    assert table.view.since == ns(11.03)
    assert [table.seat(seat).state for seat in (1, 2, 3)] == [
        SeatState.UNCONFIRMED,
        SeatState.UNCONFIRMED,
        SeatState.FREE,
    ]
    assert not table.left()


def test_the_press_that_confirms_a_rematch_is_the_ready_press() -> None:
    """One press each and the next match begins, under a new UUID and with round 1."""
    table = won_match(1, 2)
    table.press(2, 12.0)
    table.press(1, 13.0)
    table.run(13.5)
    assert [(each["at"], each["seat"]) for each in table.told("seat_ready", since=11)] == [
        (12.0, 2),
        (13.0, 1),
    ]
    assert not table.told("seat_taken", since=3), "a seat already taken is never taken again"
    assert table.told("match_started")[-1]["match"] == "match-2"
    assert table.told("round_opened")[-1] == {
        "seq": len(table.events),
        "at": 13.0,
        "event": "round_opened",
        "match": "match-2",
        "round": 1,
        "seats": [1, 2],
    }


@pytest.mark.parametrize("lobby", [10, 60])
def test_who_has_not_confirmed_after_rematch_s_stands_up(lobby: float) -> None:
    """`rematch` at lobby + rematch_s; the others, all ready, start at that instant, whatever lobby_s."""
    table = won_match(1, 2, 3, lobby=lobby)
    table.press(1, 12.0)
    table.press(3, 13.0)
    table.run(30)
    assert table.left() == [(26.03, 2, "rematch")]
    assert table.names(26.03) == ["seat_left", "match_started", "round_opened"]
    assert table.told("match_started")[-1]["seats"] == [1, 3]


def test_a_confirming_press_at_the_last_instant_counts() -> None:
    """A press exactly at rematch_s goes before the timer."""
    table = won_match(1, 2)
    table.press(1, 12.0)
    table.press(2, 26.03)
    table.run(27)
    assert not table.left()
    assert table.told("match_started")[-1]["at"] == 26.03


def test_nobody_wants_a_rematch() -> None:
    """All stand up together and the table is in attract."""
    table = won_match(1, 2, 5).run(30)
    assert table.left() == [(26.03, 1, "rematch"), (26.03, 2, "rematch"), (26.03, 5, "rematch")]
    assert table.view.phase is Phase.ATTRACT


def test_one_unconfirmed_holds_the_lobby() -> None:
    """The lobby needs all seats confirmed: lobby_s alone does not start a match over an absent player."""
    table = won_match(1, 2, 3, lobby=2)
    table.press(1, 12.0)
    table.press(4, 12.5)
    table.press(2, 13.0)
    table.run(26)
    assert len(table.told("match_started")) == 1
    table.run(27)
    assert table.left() == [(26.03, 3, "rematch")]
    assert table.told("match_started")[-1]["at"] == 26.03
    assert table.told("match_started")[-1]["seats"] == [1, 2, 4]


def test_lobby_s_since_the_last_was_confirmed() -> None:
    """In a rematch lobby with a newcomer who is not ready, lobby_s runs from the last confirmation."""
    table = won_match(1, 2, lobby=5)
    table.press(3, 12.0)
    table.press(1, 13.0)
    table.press(2, 14.0)
    table.run(25)
    assert table.told("match_started")[-1]["at"] == 19.0


def test_five_confirm_a_rematch() -> None:
    """With five the last confirmation starts the match at once."""
    table = won_match(1, 2, 3, 4, 5)
    for number, seat in enumerate((5, 3, 1, 2, 4)):
        table.press(seat, 12.0 + number)
    table.run(17)
    assert table.told("match_started")[-1]["at"] == 16.0


def test_the_walkover_winner_alone_in_the_lobby() -> None:
    """A lobby of one that confirms waits lobby_idle_s for others and then empties."""
    table = in_match(1, 2, **FAST, lobby_idle=30)
    table.play(["pen page"])
    table.hold(2, 4.0, 3.5)
    table.press(1, 16.0)
    table.run(60)
    assert table.one("match_won")["at"] == 7.0
    assert table.left() == [(7.0, 2, "leave"), (45.0, 1, "idle")]


def test_leaving_in_match_over() -> None:
    """Who stands up in match over is not in the lobby after it; the last one leaves the table empty."""
    table = won_match(1, 2)
    table.hold(1, 4.0, 3.2)
    table.run(12)
    assert table.left() == [(7.0, 1, "leave")]
    assert table.seat(1).state is SeatState.FREE
    table = won_match(1, 2)
    table.hold(1, 4.0, 3.2)
    table.hold(2, 5.0, 3.2)
    table.run(12)
    assert table.left() == [(7.0, 1, "leave"), (8.0, 2, "leave")]
    assert table.view.phase is Phase.ATTRACT
    table.press(1, 13.0)
    table.run(14)
    assert table.told("seat_taken")[-1]["at"] == 13.0


def test_a_reset_in_match_over() -> None:
    """All stand up; the match stays won and no event voids it."""
    table = won_match(1, 2)
    table.reset(5.0)
    table.run(20)
    assert table.left() == [(5.0, 1, "operator"), (5.0, 2, "operator")]
    assert table.names(5.0, 20) == ["seat_left", "seat_left"]
    assert table.view.phase is Phase.ATTRACT


def test_presses_in_match_over() -> None:
    """`match_closed` at a seated seat, `not_seated` at an empty one."""
    table = won_match(1, 2)
    table.press(2, 5.0)
    table.press(4, 6.0)
    table.run(7)
    assert table.ignored() == [(5.0, 2, "match_closed"), (6.0, 4, "not_seated")]
