"""When a bot throws: after people have, well before the close, and never by the buttons at its seat."""

from __future__ import annotations

import random
from typing import Any

import pytest

from heek.kinds import Kind
from heek.session.bot_throws import BotThrow, pace_alone, pace_of_countdown
from heek.session.phases import Phase
from tests.session.at_table import AtTable, s

NEVER_VOID = {"idle": 600, "missed_limit": 0}


def pens(count: int) -> bytes:
    """Luck with which every bot throws a pen as soon as it may."""
    return bytes(count)


def match(*people: int, start: float = 2.0, **settings: Any) -> AtTable:
    """People sit down and are ready, one asks, and the match with bots at all other seats starts at 2.0 s."""
    table = AtTable(**{"bots": "ask", **settings})
    for seat in people:
        table.press(seat, 1.0)
    table.fill_seats(start)
    return table


def locked(table: AtTable, since: float = 0.0) -> list[tuple[float, int]]:
    return [(each["at"], each["seat"]) for each in table.told("throw_locked", since=since)]


@pytest.mark.parametrize("seed", range(20))
def test_bots_throw_a_moment_after_the_first_person(seed: int) -> None:
    """0.4 s to 1.6 s after the first throw, in an order and at a pace of their own; then the round closes."""
    table = match(1, random_bytes=random.Random(seed).randbytes)
    table.press(1, 10.0)
    table.run(9.9)
    assert not locked(table)
    table.run(12)
    first, *rest = locked(table)
    assert first == (10.0, 1)
    assert sorted(seat for _, seat in rest) == [2, 3, 4, 5]
    assert all(10.4 <= at <= 11.6 for at, _ in rest)
    assert len({at for at, _ in rest}) == 4
    assert table.revealed()[0]["closed"] == rest[-1][0]


@pytest.mark.parametrize("seed", range(20))
def test_in_a_countdown_of_a_second_they_throw_in_its_first_half(seed: int) -> None:
    """The shortest countdown leaves the person the other half to change the throw, or another to throw."""
    table = match(1, 2, countdown=1, random_bytes=random.Random(seed).randbytes)
    table.press(1, 3.0)
    table.run(5)
    assert all(3.4 <= at <= 3.5 for at, seat in locked(table) if seat > 2)
    assert table.revealed()[0]["throws"]["2"] is None
    assert table.revealed()[0]["closed"] == 4.0


def test_a_person_may_change_until_the_bots_have_thrown() -> None:
    """The last press before the close counts, though a bot has thrown already."""
    table = match(1, seats=(1, 2, 3), random_bytes=random.Random(3).randbytes, lobby=2)
    table.press(1, 5.0, "pen")
    table.press(1, 5.3, "beetle")
    table.run(8)
    assert table.revealed()[0]["throws"]["1"] == "beetle"


def test_the_deadline_passes_for_people_alone() -> None:
    """A person who does not throw misses the round; the bots have thrown long before."""
    table = match(1, 2, **NEVER_VOID)
    table.press(1, 3.0)
    table.run(9)
    assert table.revealed()[0]["closed"] == 8.0
    throws = table.revealed()[0]["throws"]
    assert [seat for seat, throw in throws.items() if throw is None] == ["2"]


@pytest.mark.parametrize("guard", [0, 0.3, 0.9])
def test_with_a_fixed_timer_they_throw_after_the_guard(guard: float) -> None:
    """The clock runs without people, so bots throw by it, within the first half of what the guard leaves."""
    table = match(1, timer="fixed", countdown=1, guard=guard, **NEVER_VOID)
    table.run(3.5)
    left = 1 - guard
    assert len(locked(table)) == 4
    assert all(s(2 + guard) <= at <= s(2 + guard + left / 2) for at, _ in locked(table))


def test_where_the_guard_leaves_no_time_nobody_throws() -> None:
    """A fixed countdown that is all guard is a round without throws, for bots as well."""
    table = match(1, timer="fixed", countdown=1, guard=1, missed_limit=2)
    table.run(4.5)
    assert not locked(table)
    assert table.left()[0][1:] == (1, "missed")
    assert {reason for _, seat, reason in table.left() if seat > 1} == {"leave"}


def test_bots_alone_in_sudden_death_play_it_out() -> None:
    """No person is in the round: they throw 1 s to 2 s after the guard, and the match does not idle."""
    table = match(1, target=1, idle=10, reveal=1, random_bytes=pens)
    table.press(1, 3.0, "page")
    table.run(3.45)
    assert table.one("sudden_death")["seats"] == [2, 3, 4, 5]
    table.run(40)
    rounds = table.told("round_opened", since=3.0)
    assert len(rounds) > 5
    for opened in rounds[:-1]:
        throws = [each for each in locked(table) if opened["at"] < each[0] < opened["at"] + 4]
        assert [each[1] for each in throws[:4]] == [2, 3, 4, 5]
        assert all(s(opened["at"] + 1.3) <= at <= s(opened["at"] + 2.3) for at, _ in throws[:4])
    assert not table.told("match_void")


def test_the_first_bot_of_such_a_round_starts_the_countdown() -> None:
    """As a person's throw would, and the round closes when the last of them has thrown."""
    luck = pens
    table = match(1, target=1, reveal=1, countdown=1, random_bytes=lambda count: luck(count))
    table.press(1, 3.0, "page")
    table.run(4)
    luck = random.Random(1).randbytes
    table.run(7)
    opened = table.told("round_opened")[1]["at"]
    thrown = locked(table, opened)[:4]
    assert len({at for at, _ in thrown}) == 4
    started = table.told("countdown_started", since=opened)[0]
    assert (started["at"], started["deadline"]) == (thrown[0][0], s(thrown[0][0] + 1))
    assert table.revealed()[1]["closed"] == thrown[3][0]


def test_the_last_person_of_a_round_stands_up_and_the_bots_go_on() -> None:
    """A watcher still sits: the bots that are tied need nobody's throw any more."""
    table = match(1, 2, target=1, reveal=1, random_bytes=pens)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.run(5)
    assert table.one("sudden_death")["seats"] == [1, 3, 4, 5]
    assert not table.told("throw_locked", since=4.5)
    table.hold(1, 5.0, 3.1)
    table.run(8.5)
    assert not table.told("throw_locked", since=4.5)
    table.run(10.5)
    assert [seat for _, seat in locked(table, 9.0)] == [3, 4, 5]
    assert {at for at, _ in locked(table, 9.0)} == {9.0}


def test_with_a_fixed_timer_bots_alone_throw_by_the_clock() -> None:
    """Also where no person may throw the countdown runs already, and they throw in its first half."""
    table = match(1, target=1, reveal=1, timer="fixed", countdown=2, guard=0, random_bytes=pens)
    table.press(1, 2.5, "page")
    table.run(8)
    assert table.one("sudden_death")["seats"] == [2, 3, 4, 5]
    opened = table.told("round_opened")[1]["at"]
    assert [at for at, _ in locked(table, opened)[:4]] == [s(opened + 0.4)] * 4


# Buttons at its seat


def test_its_buttons_throw_nothing() -> None:
    """Presses at a bot's seat are of nobody who sits, before and after it has thrown, at any delivery."""
    table = match(1, random_bytes=pens)
    table.press(2, 2.1)
    table.press(2, 2.5)
    table.press(1, 3.0, "page")
    table.press(2, 3.2, "beetle")
    table.press(3, 3.4, "beetle")
    table.press(4, 3.3, "beetle", delivered=5.0)
    table.run(6)
    assert table.ignored() == [
        (2.1, 2, "not_seated"),
        (2.5, 2, "not_seated"),
        (3.2, 2, "not_seated"),
        (3.4, 3, "not_seated"),
        (table.ignored(4)[0][0], 4, "not_seated"),
    ]
    assert not table.told("late_delivery")
    assert table.revealed()[0]["throws"] == {"1": "page", "2": "pen", "3": "pen", "4": "pen", "5": "pen"}


@pytest.mark.parametrize("late", [3.42, 4.0])
def test_a_press_that_is_revoked_there_takes_no_throw_out(late: float) -> None:
    """Its partner is delivered late; the bot's throw of the very same instant and kind stays."""
    table = match(1, random_bytes=pens)
    table.press(1, 3.0, "page")
    table.press(2, 3.4, "pen")
    table.press(2, 3.401, "page", delivered=late)
    table.run(6)
    assert table.revealed()[0]["throws"]["2"] == "pen"
    assert table.ignored(2) == [(3.4, 2, "not_seated"), (table.ignored(2)[1][0], 2, "chord")]
    assert not table.told("late_delivery")


def test_a_contact_stuck_at_its_seat_changes_nothing() -> None:
    """It is told at once, as at an empty seat: it can be no throw. The bot plays on."""
    table = match(1, stuck=5, countdown=30, random_bytes=pens, **NEVER_VOID)
    table.edge(2, "pen", True, 2.5)
    table.press(1, 9.0)
    table.run(12)
    assert table.one("contact_stuck")["at"] == 7.5
    assert table.revealed()[0]["throws"]["2"] == "pen"


def test_in_sudden_death_of_others_a_press_there_is_not_in_the_round() -> None:
    """The first of several reasons, as at any seat."""
    table = match(1, target=1, reveal=1, random_bytes=pens)
    table.press(1, 3.0, "beetle")
    table.run(3.45)
    assert table.told("match_won"), "a beetle beats four pens"
    table = match(1, 2, target=1, reveal=1, random_bytes=pens)
    table.throw(3.0, {1: "beetle", 2: "beetle"})
    table.press(3, 6.0)
    table.run(7)
    assert table.one("sudden_death")["seats"] == [1, 2]
    assert table.ignored() == [(6.0, 3, "not_in_round")]


# Trouble


def test_a_bot_does_not_throw_in_a_standstill() -> None:
    """The round that nobody could see is broken off, and the bots throw in the next one after a person."""
    table = match(1, random_bytes=pens)
    table.press(1, 3.0)
    table.stall(3.1, 2)
    table.press(1, 7.0)
    table.run(9)
    assert table.one("round_void")["reason"] == "gap"
    assert [at for at, seat in locked(table) if seat > 1] == [7.4] * 4


def test_a_bot_throws_by_the_rules_time_in_a_short_stall() -> None:
    """A program that was away for less than gap_s finds the throws where they belong."""
    table = match(1, random_bytes=pens)
    table.press(1, 3.0)
    table.stall(3.1, 0.8)
    table.run(5)
    assert [at for at, seat in locked(table) if seat > 1] == [3.4] * 4


def test_a_bot_is_in_time_though_the_countdown_began_before_it_was_told() -> None:
    """The first throw is delivered last, so the close moves to before the bots' throws: they throw at it."""
    table = match(1, 2, countdown=1, **NEVER_VOID, random_bytes=pens)
    table.press(2, 3.0, "page", delivered=4.25)
    table.press(1, 3.9, "page")
    table.run(4.2)
    assert locked(table)[0] == (3.9, 1)
    assert not table.revealed()
    table.run(6)
    revealed = table.revealed()[0]
    assert revealed["closed"] == 4.0
    assert {seat: revealed["throws"][seat] for seat in "345"} == dict.fromkeys("345", "pen")
    assert not [each for each in table.ignored() if each[1] > 2]
    assert sorted(seat for _, seat in locked(table)) == [1, 2, 3, 4, 5]


def test_a_bot_never_stands_up_for_missing() -> None:
    """Rounds that nobody could throw in count for people alone."""
    table = match(1, timer="fixed", countdown=1, guard=1, missed_limit=1)
    table.run(5)
    assert [each for each in table.left() if each[2] == "missed"] == [(table.left()[0][0], 1, "missed")]


# As values


def test_what_it_has_decided_is_not_in_its_repr() -> None:
    """A log or a traceback that names it tells how soon, never what."""
    for kind in Kind:
        assert kind.value not in repr(BotThrow(kind, 5)).lower()


def test_paces() -> None:
    """The spans of a long countdown, of a short one, of one with a guard, of none, and without people."""
    second, ms = 10**9, 10**6
    assert [
        (pace.soonest, pace.latest)
        for pace in (
            pace_of_countdown(0, 0, 5 * second),
            pace_of_countdown(0, 0, second),
            pace_of_countdown(0, 900 * ms, second),
            pace_alone(7 * second),
        )
        if pace is not None
    ] == [
        (400 * ms, 1600 * ms),
        (400 * ms, 500 * ms),
        (950 * ms, 950 * ms),
        (8 * second, 9 * second),
    ]
    assert pace_of_countdown(0, second, second) is None


def test_a_new_match_is_begun_anew() -> None:
    """What a bot collected in the last match is forgotten: it draws for a kind again."""
    luck = 1
    table = match(1, seats=(1, 2), target=1, match_over=1, random_bytes=lambda _: bytes([luck]))
    table.press(1, 3.0)
    table.press(1, 4.0, "pen")
    table.run(5.5)
    assert table.revealed()[0]["throws"]["2"] == "page"
    luck = 5
    table.press(1, 8.0)
    table.press(1, 9.0, "pen")
    table.run(11)
    assert table.revealed()[1]["throws"]["2"] == "beetle"


def test_the_same_luck_gives_the_same_game() -> None:
    """All events of a match are the same for the same presses and the same draws, and others for others."""

    def played(seed: int) -> list[Any]:
        table = match(1, reveal=1, random_bytes=random.Random(seed).randbytes)
        for second in range(3, 40):
            table.press(1, second, "pen", lasts=0.05)
        table.run(40)
        assert table.view.phase is not Phase.ATTRACT
        return table.events

    assert played(5) == played(5)
    assert played(5) != played(6)
