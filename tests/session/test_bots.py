"""Bots sit down when they are asked or for the one who is alone, and never without people."""

from __future__ import annotations

from typing import Any

import pytest

from heek.errors import IllegalAction
from heek.session.machine import Session
from heek.session.phases import Phase
from heek.session.settings import SessionSettings
from heek.session.view import SeatState
from tests.session.at_table import FAST, AtTable, Told, s


def bots(table: AtTable) -> list[int]:
    return [seat.seat for seat in table.view.seats if seat.bot]


def people(table: AtTable) -> list[int]:
    return [
        seat.seat
        for seat in table.view.seats
        if not seat.bot and seat.state not in (SeatState.FREE, SeatState.ABSENT)
    ]


def asked(*seats: int, **settings: Any) -> AtTable:
    """Seat 1 sits down at 1.0 s and asks at 2.0 s; of five stations the match starts at once."""
    table = AtTable(**{"bots": "ask", **FAST, **settings}, **({"seats": seats} if seats else {}))
    table.press(1, 1.0)
    table.fill_seats(2.0)
    return table


def throws_every_round(table: AtTable, *seats: int, start: float = 3.0, until: float = 60.0) -> None:
    """Pens at these seats once a second, whatever the round."""
    at = start
    while at < until:
        for seat in seats:
            table.press(seat, round(at + seat / 100, 3), "pen", lasts=0.05)
        at += 1.0


def void(table: AtTable) -> Told:
    return table.one("match_void")


# Sitting down


def test_a_hold_of_the_middle_button_fills_the_seats() -> None:
    """Held for hold_s by who sits: every free wired seat gets a bot, told as one."""
    table = AtTable(bots="ask", seats=(1, 2, 4))
    table.press(1, 1.0)
    table.press(1, 2.0, "page", lasts=1.2)
    table.run(2.9)
    assert bots(table) == []
    table.run(3.0 + 0.003)
    assert [(each["at"], each["seat"], each["kind"]) for each in table.told("seat_taken")] == [
        (1.0, 1, "guest"),
        (3.0, 2, "bot"),
        (3.0, 4, "bot"),
    ]
    assert bots(table) == [2, 4]
    assert table.one("match_started")["at"] == 3.0


@pytest.mark.parametrize("button", ["pen", "beetle"])
def test_another_button_asks_for_no_bots(button: str) -> None:
    """Only the middle one does."""
    table = AtTable(bots="ask")
    table.press(1, 1.0, button, lasts=1.5)
    table.run(4)
    assert bots(table) == []


def test_never_is_never() -> None:
    """With the default neither hold, door nor waiting alone brings a bot."""
    table = AtTable(lobby=2)
    table.press(1, 1.0)
    table.press(1, 2.0, "page", lasts=1.5)
    table.fill_seats(4.0)
    table.run(20)
    assert [each["kind"] for each in table.told("seat_taken")] == ["guest"]
    assert not table.view.bots_allowed


def test_a_table_that_may_have_bots_needs_randomness() -> None:
    """Without a source it is refused at the start, not when the first bot would throw."""
    with pytest.raises(IllegalAction, match="random_bytes"):
        Session(SessionSettings(bots="ask"), new_match_id=lambda: "match")


def test_nobody_asks_at_an_empty_table() -> None:
    """Bots never sit down where no person sits."""
    table = AtTable(bots="ask")
    table.fill_seats(1.0)
    table.run(2)
    assert table.names(0, 9) == ["table_started"]


def test_asking_twice_does_no_harm() -> None:
    """The door's second call finds no free seat and changes nothing."""
    table = asked(1, 2, 3)
    table.fill_seats(2.5)
    table.run(3)
    assert len(table.told("seat_taken")) == 3
    assert not table.left()


def test_asking_in_a_match_does_nothing() -> None:
    """Bots join in the lobby alone."""
    table = AtTable(bots="ask", **FAST)
    for seat in (1, 2):
        table.press(seat, 1.0)
        table.press(seat, 1.5)
    table.fill_seats(3.0)
    table.press(1, 3.5, "page", lasts=1.5)
    table.run(6)
    assert bots(table) == []


def test_bots_are_ready_at_once() -> None:
    """A person who is ready starts the match with them; one who is not has lobby_s."""
    table = AtTable(bots="ask", seats=(1, 2, 3), lobby=10)
    table.press(1, 1.0)
    table.fill_seats(2.0)
    table.run(3)
    assert [table.seat(seat).state for seat in (1, 2, 3)] == [
        SeatState.TAKEN,
        SeatState.READY,
        SeatState.READY,
    ]
    assert table.view.until == 12 * 10**9
    table.press(1, 4.0)
    table.run(5)
    assert table.one("match_started")["at"] == 4.0


def test_two_people_may_ask_too() -> None:
    """With more than one person the table fills the rest, if it is asked to."""
    table = AtTable(bots="ask")
    table.press(1, 1.0)
    table.press(3, 1.0)
    table.press(3, 2.0, "page", lasts=1.5)
    table.run(3.1)
    assert bots(table) == [2, 4, 5]


# Alone


def test_fill_comes_after_lobby_s() -> None:
    """Who waits alone and is not ready gets company after lobby_s, and the view says when."""
    table = AtTable(bots="fill", lobby=10)
    table.press(2, 1.0)
    table.run(5)
    assert table.view.bots_at == 11 * 10**9
    table.run(12)
    assert [each["at"] for each in table.told("seat_taken")] == [1.0, 11.0, 11.0, 11.0, 11.0]
    assert table.one("match_started")["at"] == 11.0


def test_fill_comes_at_once_for_who_is_ready() -> None:
    """A second press alone: bots sit down and the match starts at that instant."""
    table = AtTable(bots="fill")
    table.press(2, 1.0)
    table.press(2, 3.0)
    table.run(4)
    assert table.one("match_started")["at"] == 3.0
    assert bots(table) == [1, 3, 4, 5]
    table.run(62.9)
    assert not table.told("match_void"), "idle counts from the match's start"
    table.run(63.1)
    assert void(table)["at"] == 63.0


def test_fill_does_nothing_for_two() -> None:
    """A bot would make their match unrated, so two people have to ask."""
    table = AtTable(bots="fill", lobby=5, **FAST)
    table.press(1, 1.0)
    table.press(2, 4.0)
    table.run(10)
    assert table.one("match_started")["seats"] == [1, 2]
    assert table.view.bots_at is None


def test_fill_waits_anew_when_the_second_stands_up() -> None:
    """Left alone again, the first has lobby_s since the last one sat down."""
    table = AtTable(bots="fill", lobby=10)
    table.press(1, 1.0)
    table.press(2, 4.0)
    table.hold(2, 5.0, 3.1)
    table.run(15)
    assert {each["at"] for each in table.told("seat_taken") if each["kind"] == "bot"} == {14.0}


def test_fill_does_not_come_to_a_lobby_that_empties_first() -> None:
    """With a lobby_s above lobby_idle_s the one alone is sent away as ever."""
    table = AtTable(bots="fill", lobby=60, lobby_idle=20)
    table.press(1, 1.0)
    table.run(80)
    assert table.left() == [(21.0, 1, "idle")]
    assert len(table.told("seat_taken")) == 1


def test_fill_is_before_the_lobby_empties_at_one_instant() -> None:
    """Where both are due together, company comes."""
    table = AtTable(bots="fill", lobby=20, lobby_idle=20)
    table.press(1, 1.0)
    table.run(21.1)
    assert len(bots(table)) == 4


# Making room, and going


def test_a_person_takes_a_bots_seat_in_the_lobby() -> None:
    """Bot up, person down, at the instant of the press; it is not the ready press."""
    table = asked(1, 2, 3, lobby=10)
    table.press(3, 4.0)
    table.run(5)
    assert table.names(4.0) == ["seat_left", "seat_taken"]
    assert table.left() == [(4.0, 3, "leave")]
    assert table.told("seat_taken")[-1]["kind"] == "guest"
    assert table.seat(3).state is SeatState.TAKEN
    assert bots(table) == [2]


def test_a_bots_seat_is_not_free_in_a_match() -> None:
    """A press there is one at an unseated place, also with late join, in throw, reveal and match over."""
    table = asked(target=1, late_join=True, match_over=8, reveal=1)
    table.press(2, 2.5)
    throws_every_round(table, 1, until=4)
    table.press(3, 4.7)
    table.run(30)
    table_seats = {each["seat"]: each["kind"] for each in table.told("seat_taken")}
    assert table_seats[2] == table_seats[3] == "bot"
    assert table.ignored(2) == [(2.5, 2, "not_seated")]
    assert {reason for _, _, reason in table.ignored(3)} == {"not_seated"}


def test_held_outer_buttons_do_not_make_a_bot_leave() -> None:
    """Neither in the lobby nor in a match; and its mark does not count down."""
    table = asked(1, 2, 3, lobby=5, idle=10)
    table.edge(2, "pen", True, 2.5)
    table.edge(2, "beetle", True, 2.5)
    table.run(4)
    assert table.seat(2).leaves_at is None
    table.run(6)
    assert bots(table) == [2, 3]
    table.edge(2, "pen", False, 6.0)
    table.edge(2, "beetle", False, 6.0)
    table.hold(3, 8.0, 4)
    table.run(13)
    assert table.view.phase in (Phase.THROW, Phase.COUNTDOWN)
    assert table.seat(3).leaves_at is None
    assert not table.left()


def test_a_bots_seat_cannot_be_claimed() -> None:
    """The refusal says who sits there and what to do."""
    table = asked(1, 2, 3, lobby=10)
    table.claim(3.0, 2, "40220173")
    table.run(4)
    assert table.refused == ["a bot plays at seat 2, so it cannot be claimed; press a button there first"]


@pytest.mark.parametrize("revealed", [False, True])
def test_the_last_person_takes_all_bots_along(revealed: bool) -> None:
    """At one instant all stand up, the match is void, and nobody wins by walkover."""
    table = asked()
    if revealed:
        table.press(1, 3.0)
    table.hold(1, 6.0, 3.2)
    table.run(9.5)
    assert table.left() == [(9.0, seat, "leave") for seat in (1, 2, 3, 4, 5)]
    assert (void(table)["at"], void(table)["reason"]) == (9.0, "empty")
    assert not table.told("match_won")


def test_bots_play_on_while_a_person_does() -> None:
    """Of two people one stands up: the match goes on with the bots, and no walkover is given."""
    table = AtTable(bots="ask", **FAST)
    table.press(1, 1.0)
    table.press(2, 1.0)
    table.fill_seats(2.0)
    table.hold(2, 3.0, 3.2)
    throws_every_round(table, 1, start=3.5, until=9)
    table.run(9)
    assert table.left() == [(6.0, 2, "leave")]
    assert bots(table) == [3, 4, 5]
    assert table.told("round_opened", since=6.1)


def test_a_last_person_who_misses_too_much_takes_them_along() -> None:
    """missed for the person, leave for the bots, one instant."""
    table = asked(timer="fixed", missed_limit=2)
    table.run(20)
    last = table.left()[0][0]
    assert table.left() == [(last, 1, "missed"), *((last, seat, "leave") for seat in (2, 3, 4, 5))]
    assert void(table)["reason"] == "empty"


def test_a_match_of_the_absent_is_void_by_idle() -> None:
    """Bots throw nothing before a person has, so idle_s passes as ever and all stand up."""
    table = asked(idle=10)
    table.run(60)
    assert void(table)["reason"] == "idle"
    assert {(at, reason) for at, _, reason in table.left()} == {(12.0, "idle")}
    assert not table.told("throw_locked")
    assert table.view.phase is Phase.ATTRACT


def test_a_fixed_timer_does_not_keep_the_absent_going() -> None:
    """Where the clock runs anyway and nobody is sent away for missing, idle still ends it."""
    table = asked(timer="fixed", missed_limit=0, idle=10, target=9, winnerless_limit=0)
    table.run(60)
    assert void(table)["reason"] == "idle"
    assert table.revealed()
    assert table.view.phase is Phase.ATTRACT


def test_a_reset_sends_bots_away_too() -> None:
    """The operator's button is for all."""
    table = asked()
    table.reset(4.0)
    table.run(5)
    assert table.left() == [(4.0, seat, "operator") for seat in (1, 2, 3, 4, 5)]


# Sent away


def test_asked_again_at_a_full_table_the_bots_stand_up() -> None:
    """A second hold of the middle button sends them away; the people stay, and may play rated."""
    table = AtTable(bots="ask", seats=(1, 2, 3, 4), lobby=30)
    table.press(1, 1.0)
    table.press(2, 1.0)
    table.press(1, 2.0, "page", lasts=1.5)
    table.press(1, 5.0, "page", lasts=1.5)
    table.run(7)
    assert table.left() == [(6.0, 3, "leave"), (6.0, 4, "leave")]
    assert people(table) == [1, 2]


def test_a_door_sends_them_away_too() -> None:
    """And a lobby of one empties again, counted from then."""
    table = asked(1, 2, 3, lobby=30, lobby_idle=20)
    table.dismiss_bots(5.0)
    table.run(30)
    assert table.left() == [(5.0, 2, "leave"), (5.0, 3, "leave"), (25.0, 1, "idle")]


def test_bots_that_were_sent_away_do_not_come_back_unasked() -> None:
    """With `fill` the one who wants to be alone is left alone; the next visitor gets bots again."""
    table = AtTable(bots="fill", seats=(1, 2, 3), lobby=5, lobby_idle=30)
    table.press(1, 1.0)
    table.dismiss_bots(8.0)
    table.run(7)
    assert bots(table) == [2, 3]
    table.run(20)
    assert bots(table) == []
    assert table.view.bots_at is None
    table.run(39)
    assert table.view.phase is Phase.ATTRACT
    table.press(1, 40.0)
    table.run(46)
    assert bots(table) == [2, 3]


def test_who_asks_again_has_changed_their_mind() -> None:
    """After bots were sent away and asked for, they come unasked again, too."""
    table = AtTable(bots="fill", seats=(1, 2), lobby=5, lobby_idle=60)
    table.press(1, 1.0)
    table.dismiss_bots(8.0)
    table.fill_seats(9.0)
    table.press(2, 10.0)
    table.hold(2, 11.0, 3.1)
    table.run(20)
    assert [each["at"] for each in table.told("seat_taken") if each["kind"] == "bot"] == [6.0, 9.0, 15.0]


def test_nothing_is_sent_away_in_a_match() -> None:
    """The door does nothing once it has started."""
    table = asked()
    table.dismiss_bots(3.0)
    table.run(4)
    assert bots(table) == [2, 3, 4, 5]


# After a match


def until_won(table: AtTable, at: float = 3.0) -> float:
    """Seat 1 throws once a second, one kind after the other, until the match is won; the time then."""
    while not table.told("match_won"):
        table.press(1, at, ("pen", "page", "beetle")[round(at) % 3], lasts=0.05)
        table.run(at + 0.9)
        at += 1
    return at


def over() -> AtTable:
    """A match with bots that was won, and match over has been shown."""
    table = asked(target=1, match_over=1, rematch=15)
    table.run(until_won(table) + 1)
    assert table.view.phase is Phase.LOBBY
    return table


def test_bots_confirm_when_a_person_has() -> None:
    """Until then they are unconfirmed like everybody; then all are ready and the next match starts."""
    table = over()
    now = round(table.now / 10**9 + 1, 3)
    assert {table.seat(seat).state for seat in (1, 2, 3, 4, 5)} == {SeatState.UNCONFIRMED}
    assert not table.told("seat_ready", since=3.0)
    table.press(1, now)
    table.run(now + 0.1)
    assert [each["seat"] for each in table.told("seat_ready", since=now)] == [1, 2, 3, 4, 5]
    assert len(table.told("match_started")) == 2


def test_nobody_confirms_and_all_stand_up() -> None:
    """Bots alone keep no lobby: after rematch_s the table is empty."""
    table = over()
    table.run(60)
    assert {reason for _, _, reason in table.left()} == {"rematch"}
    assert len(table.left()) == 5
    assert table.view.phase is Phase.ATTRACT
    assert len(table.told("match_started")) == 1


def test_a_press_that_is_none_confirms_no_bot() -> None:
    """Noise at the table is nobody: two buttons at once in the lobby after a match change nothing."""
    table = over()
    now = round(table.now / 10**9 + 1, 3)
    table.press(1, now, "pen")
    table.press(1, now, "page")
    table.run(now + 1)
    assert not table.told("seat_ready", since=3.0)


def test_nobody_asks_who_has_not_confirmed() -> None:
    """In the lobby after a match the door brings no bots before somebody is there again."""
    table = AtTable(bots="ask", seats=(1, 2, 3), target=1, match_over=1, **FAST)
    for seat in (1, 2):
        table.press(seat, 1.0)
        table.press(seat, 1.5)
    table.throw(2.0, {1: "pen", 2: "page"})
    table.fill_seats(5.0)
    table.run(6)
    assert table.view.phase is Phase.LOBBY
    assert bots(table) == []
    table.press(1, 7.0)
    table.fill_seats(8.0)
    table.run(9)
    assert bots(table) == [3]


def test_a_late_press_at_a_bots_seat_was_at_nobodys() -> None:
    """Delivered after match over it says what it was when it closed, as one at an empty seat does."""
    table = asked(target=1, match_over=1, rematch=15)
    at = until_won(table)
    ended = table.one("match_won")["at"] + 1
    assert ended > at
    table.press(2, s(ended - 0.05), delivered=s(ended + 0.5))
    table.press(1, s(ended - 0.05), delivered=s(ended + 0.5))
    table.run(ended + 1)
    assert [reason for _, seat, reason in table.ignored(2)] == ["not_seated"]
    assert table.ignored(1)[-1][2] == "match_closed"


def test_somebody_new_is_a_person_to_play_with() -> None:
    """A newcomer takes a bot's seat; the rest confirm for the newcomer, and stay when the first goes."""
    table = over()
    now = round(table.now / 10**9 + 1, 3)
    table.press(4, now)
    table.run(now + 0.1)
    assert table.names(now) == ["seat_left", "seat_taken", *["seat_ready"] * 3]
    table.run(now + 20)
    assert (table.left()[1][1:]) == (1, "rematch")
    assert table.told("match_started")[-1]["seats"] == [2, 3, 4, 5]


def test_who_leaves_in_match_over_takes_them_along() -> None:
    """Match over is shown to its end, then the table is empty."""
    table = asked(target=1, match_over=8)
    at = until_won(table)
    assert table.view.phase is Phase.MATCH_OVER
    table.hold(1, at, 3.2)
    table.run(at + 4)
    assert bots(table) == []
    assert table.view.phase is Phase.MATCH_OVER
    table.run(at + 10)
    assert table.view.phase is Phase.ATTRACT


# What is at stake


def test_a_match_with_a_bot_is_not_rated() -> None:
    """Signed-in players stake nothing, whoever wins gains nothing, and the result says so."""
    table = AtTable(bots="ask", target=1, **FAST, own_deltas={"40220173": 300})
    table.press(1, 1.0)
    table.press(2, 1.0)
    table.claim(1.5, 1, "40220173", "Shorah")
    table.claim(1.5, 2, "10000000", "Yeesha")
    table.fill_seats(2.0)
    throws_every_round(table, 1, 2, until=30)
    table.run(30)
    assert set(table.told("match_started")[0]["stakes"].values()) == {0}
    assert set(table.told("match_won")[0]["deltas"].values()) == {0}
    result = table.results[0]
    assert not result.rated
    assert [entry.bot for entry in result.entries] == [False, False, True, True, True]
    assert set(result.deltas) == {0}


def test_the_next_match_without_bots_is_rated_again() -> None:
    """Stakes come back when all bots have made room."""
    table = AtTable(bots="ask", seats=(1, 2), target=1, match_over=1, **FAST, own_deltas={"40220173": 300})
    table.press(1, 1.0)
    table.claim(1.5, 1, "40220173", "Shorah")
    table.fill_seats(2.0)
    table.press(2, 3.0)
    table.claim(3.5, 2, "10000000", "Yeesha")
    table.press(1, 4.0)
    table.press(2, 4.0)
    table.run(5)
    assert table.one("match_started")["stakes"] == {"1": 2, "2": 1}


# A power cut


def test_bots_come_back_as_bots() -> None:
    """They are confirmed: the match goes on when the people have pressed, with the bots as they were."""
    table = asked()
    table.press(1, 3.0)
    table.run(4.5)
    again = table.cut(bots="ask", **FAST)
    assert bots(again) == [2, 3, 4, 5]
    assert {again.seat(seat).state for seat in (2, 3, 4, 5)} == {SeatState.TAKEN}
    again.press(1, 2.0)
    again.run(3)
    assert again.one("round_opened")["at"] == 2.0
    again.press(1, 4.0)
    again.run(6)
    assert None not in again.revealed()[0]["throws"].values()


def test_bots_do_not_come_back_alone() -> None:
    """Nobody presses after the cut: the absent stand up, the bots go along, the match is void."""
    table = asked()
    table.press(1, 3.0)
    table.run(4.5)
    again = table.cut(bots="ask", **FAST, rematch=5)
    again.run(30)
    assert again.left() == [(5.0, 1, "power"), *((5.0, seat, "leave") for seat in (2, 3, 4, 5))]
    assert void(again)["reason"] == "empty"
    assert again.view.phase is Phase.ATTRACT


def test_a_cut_in_the_lobby_empties_it() -> None:
    """Bots of a lobby stand up like everybody."""
    table = asked(1, 2, 3, lobby=30)
    table.run(5)
    again = table.cut(bots="ask", seats=(1, 2, 3))
    assert again.left() == [(0.0, seat, "power") for seat in (1, 2, 3)]


def test_a_person_whose_station_is_gone_takes_the_bots_along() -> None:
    """The only person's seat is not wired any more after the cut: nobody is left to play with."""
    table = asked()
    table.run(4)
    again = table.cut(bots="ask", seats=(2, 3, 4), **FAST)
    again.run(1)
    assert len(again.left()) == 5
    assert void(again)["reason"] == "empty"


def test_a_table_that_no_longer_has_bots_plays_the_match_out() -> None:
    """After the match the bots that it kept stand up, and the people are asked for another."""
    table = AtTable(bots="ask", seats=(1, 2, 3), target=1, **FAST)
    table.press(1, 1.0)
    table.press(2, 1.0)
    table.fill_seats(2.0)
    table.press(1, 2.5)
    table.press(2, 2.5)
    table.run(3)
    again = table.cut(seats=(1, 2, 3), target=1, match_over=1, **FAST)
    again.press(1, 1.0)
    again.press(2, 1.0)
    throws_every_round(again, 1, until=20)
    again.run(8)
    assert again.told("match_won")
    again.run(10)
    (left,) = again.left()
    assert left[1:] == (3, "leave")
    assert left[0] == again.one("match_won")["at"] + 1
