"""The rules of Ahyoheek by the spec: rounds by brute force, and matches rule by rule."""

from __future__ import annotations

from itertools import product
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.errors import IllegalAction
from heek.games.ahyoheek import (
    Action,
    Collection,
    MatchState,
    RoundClosed,
    Rules,
    SeatJoined,
    SeatsLeft,
    Void,
    Won,
    apply,
    initial,
    may_throw,
    missed_out,
    score_round,
)
from heek.kinds import KINDS, Kind, Seat

PEN, PAGE, BEETLE = Kind.PEN, Kind.PAGE, Kind.BEETLE
BEATS: Final = {
    "pen-page-beetle": {(PEN, PAGE), (PAGE, BEETLE), (BEETLE, PEN)},
    "pen-beetle-page": {(PEN, BEETLE), (BEETLE, PAGE), (PAGE, PEN)},
}
"""The spec's words, pair by pair: who beats whom."""
WORDS: Final = {"pen": PEN, "page": PAGE, "beetle": BEETLE}


def throws(words: str) -> dict[Seat, Kind]:
    """`pen - page` as seat 1's pen and seat 3's page."""
    return {seat: WORDS[word] for seat, word in enumerate(words.split(), 1) if word != "-"}


def after(state: MatchState, *rounds: str) -> MatchState:
    for words in rounds:
        state = apply(state, RoundClosed(throws(words)))
    return state


def left(state: MatchState, *seats: Seat) -> MatchState:
    return apply(state, SeatsLeft(seats))


def match(players: int = 5, **rules: int | str) -> MatchState:
    return initial(range(1, players + 1), Rules(**rules))  # type: ignore[arg-type]


def by_pairs(thrown: dict[Seat, Kind], cycle: str) -> tuple[dict[Seat, int], tuple[Seat, ...]]:
    """Round rules 1 to 3, comparing everybody with everybody."""
    beats = BEATS[cycle]
    points = {
        me: sum(((mine, other) in beats) - ((other, mine) in beats) for other in thrown.values())
        for me, mine in thrown.items()
    }
    best = max(points.values(), default=0)
    return points, tuple(seat for seat, won in points.items() if best > 0 and won == best)


# A round


def test_the_worked_example_decides_the_cycle() -> None:
    """One pen, two beetles, two pages score 0, -1, -1, +1, +1 and the two pages win."""
    score = score_round(throws("pen beetle beetle page page"))
    assert score.points == {1: 0, 2: -1, 3: -1, 4: 1, 5: 1}
    assert score.winners == (4, 5)


def test_the_other_cycle_turns_the_worked_example_round() -> None:
    """Under pen-beetle-page the same throws score 0, +1, +1, -1, -1 and the beetles win."""
    score = score_round(throws("pen beetle beetle page page"), "pen-beetle-page")
    assert score.points == {1: 0, 2: 1, 3: 1, 4: -1, 5: -1}
    assert score.winners == (2, 3)


@pytest.mark.parametrize("cycle", BEATS)
@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_all_throws_of_all_players(players: int, cycle: str) -> None:
    """Every one of 3^n rounds is scored as its pairs say, sums to zero, and one kind wins it."""
    for kinds in product(KINDS, repeat=players):
        thrown = dict(enumerate(kinds, 1))
        score = score_round(thrown, cycle)
        assert (dict(score.points), score.winners) == by_pairs(thrown, cycle)
        assert sum(score.points.values()) == 0
        assert len({thrown[seat] for seat in score.winners}) <= 1
        assert not score.void


@pytest.mark.parametrize("cycle", BEATS)
@pytest.mark.parametrize(("players", "winnerless"), [(2, 3), (3, 9), (4, 3), (5, 3)])
def test_how_many_rounds_have_no_winner(players: int, winnerless: int, cycle: str) -> None:
    """Nobody wins in 1/3 of the rounds of two and of three, in 3/81 of four and in 3/243 of five."""
    rounds = [dict(enumerate(kinds, 1)) for kinds in product(KINDS, repeat=players)]
    without = [each for each in rounds if not score_round(each, cycle).winners]
    assert len(without) == winnerless
    for each in without:
        assert not any(score_round(each, cycle).points.values())


@pytest.mark.parametrize("cycle", BEATS)
@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_all_throws_and_no_throws_in_a_match(players: int, cycle: str) -> None:
    """Over all 4^n rounds only throwers are compared, only winners collect, and below two it is void."""
    for kinds in product([*KINDS, None], repeat=players):
        thrown = {seat: kind for seat, kind in enumerate(kinds, 1) if kind is not None}
        state = apply(match(players, cycle=cycle), RoundClosed(thrown))
        points, winners = by_pairs(thrown, cycle)
        assert state.score is not None
        assert state.score.void == (len(thrown) < 2)
        assert state.revealed == (len(thrown) >= 2)
        if len(thrown) < 2:
            assert not state.score.points
            assert not state.score.winners
        else:
            assert (dict(state.score.points), state.score.winners) == (points, winners)
        for seat, held in state.collections.items():
            assert held.total == (seat in winners)
            assert seat not in winners or held.of(thrown[seat]) == 1
            assert state.missed[seat] == (seat not in thrown)


def test_seats_in_any_order_score_the_same() -> None:
    """A round's result does not depend on who is named first."""
    one = score_round({1: PEN, 2: PAGE, 3: PAGE})
    other = score_round({3: PAGE, 2: PAGE, 1: PEN})
    assert dict(one.points) == dict(other.points)
    assert set(one.winners) == set(other.winners)


# A match: three, total, sudden death


def test_three_of_one_kind_end_the_match() -> None:
    """Rule 1: the third of one kind ends it, two and other kinds do not."""
    state = after(match(2), "pen page", "pen page", "page beetle", "beetle pen")
    assert state.outcome is None
    assert state.collections[1] == Collection(pen=2, page=1, beetle=1)
    state = after(state, "pen page")
    assert state.outcome == Won(1, "three")
    assert may_throw(state) == ()
    assert state.revealed == 5


@pytest.mark.parametrize("target", [1, 2, 9])
def test_another_target(target: int) -> None:
    """Rule 1 goes by `target`."""
    state = match(2, target=target)
    for _ in range(target - 1):
        state = after(state, "pen page")
        assert state.outcome is None
    assert after(state, "pen page").outcome == Won(1, "three")


def test_several_at_once_greatest_total_wins() -> None:
    """Rule 2: of two who reach three pens together the one with a page beside them wins by total."""
    state = after(match(3), "pen pen page", "page beetle beetle", "pen pen page", "pen pen page")
    assert state.outcome == Won(1, "total")


def test_total_counts_only_among_those_who_reached_the_target() -> None:
    """Rule 2: somebody with more in all but without three of a kind does not win."""
    state = match(3)
    state = after(state, "beetle beetle pen", "pen page page", "beetle beetle pen")
    state = after(state, "page beetle beetle", "page beetle beetle", "pen page page")
    assert state.collections[1] == Collection(pen=2, page=2, beetle=2)
    state = after(state, "page beetle page")
    assert state.outcome == Won(1, "three")
    state = match(3)
    state = after(state, "pen page page", "pen page page", "page beetle beetle", "page beetle beetle")
    state = after(state, "page pen page", "page pen page", "page pen page")
    assert state.collections[1].total == 4
    assert state.outcome == Won(2, "three")


TIED: Final = ("pen pen page", "pen pen page", "pen pen page")


def test_still_tied_is_sudden_death_among_the_tied_alone() -> None:
    """Rule 3: the tied play on, the others keep their seats and watch."""
    state = after(match(3), *TIED)
    assert state.outcome is None
    assert state.tied == (1, 2)
    assert may_throw(state) == (1, 2)
    assert tuple(state.collections) == (1, 2, 3)
    with pytest.raises(IllegalAction, match="3"):
        after(state, "pen page page")


def test_sudden_death_wins_are_not_collected() -> None:
    """Rule 3: the collections stay what they were when sudden death began."""
    before = after(match(3), *TIED)
    state = after(before, "pen page -")
    assert state.outcome == Won(1, "sudden_death")
    assert state.collections == before.collections
    assert state.revealed == 4


def test_sudden_death_narrows_to_its_winners() -> None:
    """Rule 3: the winners of a round stay tied, losers and those who did not throw are out."""
    state = after(match(5), *["pen pen pen pen page"] * 3)
    assert state.tied == (1, 2, 3, 4)
    state = after(state, "pen pen page - -")
    assert state.tied == (1, 2)
    assert state.outcome is None
    assert after(state, "page pen - - -").outcome == Won(2, "sudden_death")


def test_a_sudden_death_round_without_a_winner_is_played_again() -> None:
    """Rule 3: nobody is out by a drawn or a void round, not even who did not throw in it."""
    state = after(match(5), *["pen pen pen pen page"] * 3)
    for words in ("pen pen pen - -", "pen page beetle - -", "pen - - - -", "- - - - -"):
        state = after(state, words)
        assert state.tied == (1, 2, 3, 4)
    assert state.sudden_death_winnerless == 4
    assert state.winnerless == 0


def test_one_tied_left_because_the_others_stood_up_wins_by_sudden_death() -> None:
    """Rule 3: it is not a walkover, with watchers at the table or without."""
    assert left(after(match(3), *TIED), 1).outcome == Won(2, "sudden_death")
    assert left(after(match(3), *TIED), 1, 3).outcome == Won(2, "sudden_death")
    two = left(after(match(3), *TIED), 3)
    assert two.outcome is None
    assert two.tied == (1, 2)
    assert left(two, 2).outcome == Won(1, "sudden_death")


def test_all_tied_gone_and_one_of_the_rest_has_three() -> None:
    """Rule 3: rule 1 is applied to the rest."""
    state = after(match(4), "page page beetle beetle", *["pen pen pen page"] * 3)
    assert state.tied == (1, 2)
    gone = left(state, 1, 2)
    assert gone.outcome == Won(3, "three")


def test_all_tied_gone_and_the_rest_are_judged_by_total() -> None:
    """Rule 3: rule 2 is applied to the rest."""
    state = match(5)
    state = after(state, "page page page beetle beetle", "page page beetle beetle beetle")
    state = after(state, *["pen pen pen pen page"] * 3)
    assert [state.collections[seat].total for seat in (1, 2, 3, 4)] == [5, 5, 4, 3]
    assert state.tied == (1, 2)
    assert left(state, 1, 2).outcome == Won(3, "total")


def test_all_tied_gone_and_a_second_sudden_death() -> None:
    """Fine points: a second sudden death is possible, and its limit counts anew."""
    state = match(5, sudden_death_limit=2)
    state = after(state, "page page beetle beetle beetle", *["pen pen pen pen page"] * 3)
    assert state.tied == (1, 2)
    state = after(state, "pen pen")
    state = left(state, 1, 2)
    assert state.tied == (3, 4)
    assert state.outcome is None
    state = apply(state, RoundClosed({3: PEN, 4: PEN}))
    assert state.outcome is None, "sudden_death_limit counts within one sudden death"
    assert apply(state, RoundClosed({})).outcome == Void("sudden_death_limit")


def test_all_tied_gone_and_ordinary_rounds_go_on() -> None:
    """Rule 3: if nobody else holds three, those who are left play on for their collections."""
    state = left(after(match(4), *["pen pen page page"] * 3), 1, 2)
    assert state.outcome is None
    assert state.tied == ()
    assert may_throw(state) == (3, 4)
    state = apply(state, RoundClosed({3: PEN, 4: PAGE}))
    assert state.collections[3] == Collection(pen=1)


def test_all_tied_gone_and_one_player_left_walks_over() -> None:
    """Rules 3 and 8: a single watcher without three wins by walkover, a round having been revealed."""
    assert left(after(match(3), *TIED), 1, 2).outcome == Won(3, "walkover")


def test_a_watcher_who_leaves_changes_nothing_in_sudden_death() -> None:
    """Rule 3: the tied play on when a watcher stands up."""
    state = left(after(match(5), *["pen pen pen page page"] * 3), 5)
    assert state.tied == (1, 2, 3)
    assert state.outcome is None


# A match: limits, missed, leaving


def test_sudden_death_limit() -> None:
    """Rule 4: after so many sudden-death rounds without a winner, void ones counted, it is void."""
    state = after(match(3, sudden_death_limit=3), *TIED, "pen pen", "pen -")
    assert state.outcome is None
    assert after(state, "page page").outcome == Void("sudden_death_limit")


def test_winnerless_limit_counts_rounds_running() -> None:
    """Rule 4: drawn and void rounds count together, a winner starts the count anew."""
    state = after(match(2, winnerless_limit=3, missed_limit=0), "pen pen", "- -", "pen page")
    assert state.winnerless == 0
    state = after(state, "pen -", "page page")
    assert state.outcome is None
    assert after(state, "beetle beetle").outcome == Void("winnerless_limit")


def test_limits_of_0_are_none() -> None:
    """config: 0 switches each of the three limits off."""
    state = match(3, sudden_death_limit=0, winnerless_limit=0, missed_limit=0)
    state = after(state, *["pen pen pen"] * 60, *["- - -"] * 60)
    assert state.outcome is None
    assert missed_out(state) == ()
    state = after(state, *TIED, *["pen pen"] * 30)
    assert state.outcome is None


def test_missed_limit() -> None:
    """Rule 5: three rounds missed running, revealed or void; a throw sets the count to 0."""
    state = after(match(3), "pen page -", "pen - -")
    assert missed_out(state) == ()
    assert missed_out(after(state, "pen pen -")) == (3,)
    state = after(state, "pen pen pen", "pen pen -", "pen pen -")
    assert missed_out(state) == ()
    assert state.missed[3] == 2


def test_watching_sudden_death_leaves_the_count() -> None:
    """Rule 5: a watcher neither misses a round nor is forgiven one."""
    state = after(match(4), "pen pen page page", "pen pen page -", "pen pen page -")
    assert state.tied == (1, 2)
    state = after(state, "pen pen", "pen pen", "page page")
    assert state.missed[4] == 2
    assert missed_out(state) == ()


def test_the_third_miss_in_the_deciding_round_no_longer_matters() -> None:
    """Rule 5 and the fine points: neither in a round that is won nor in one that reaches a limit."""
    won = after(match(3), "pen page -", "pen page -", "pen page -")
    assert won.outcome == Won(1, "three")
    assert missed_out(won) == ()
    void = after(match(3, winnerless_limit=3), *["pen pen -"] * 3)
    assert void.outcome == Void("winnerless_limit")
    assert missed_out(void) == ()


def test_standing_up_forfeits_the_collection() -> None:
    """Rule 7: who is gone holds nothing any more and cannot throw."""
    state = left(after(match(3), "pen page page"), 1)
    assert tuple(state.collections) == (2, 3)
    assert may_throw(state) == (2, 3)
    with pytest.raises(IllegalAction):
        after(state, "pen page page")
    with pytest.raises(IllegalAction):
        left(state, 1)


def test_walkover_needs_a_revealed_round() -> None:
    """Rule 8: one player left wins if a round was revealed; void rounds do not count as such."""
    assert left(after(match(2), "pen pen"), 1).outcome == Won(2, "walkover")
    assert left(match(2), 1).outcome == Void("empty")
    assert left(after(match(2), "pen -", "- -"), 1).outcome == Void("empty")


def test_nobody_left_is_void() -> None:
    """Rule 8: several who leave at one instant all leave first, then it is judged."""
    assert left(after(match(2), "pen page"), 1, 2).outcome == Void("empty")
    assert left(after(match(3), *TIED), 1, 2, 3).outcome == Void("empty")
    assert left(after(match(5), "pen page page page page"), 1, 2, 3, 4).outcome == Won(5, "walkover")


def test_a_late_joiner_has_an_empty_collection() -> None:
    """Rule 10: the seat plays from the next round, not in sudden death, and never twice."""
    state = apply(after(match(2), "pen page"), SeatJoined(4))
    assert state.collections[4] == Collection()
    assert may_throw(state) == (1, 2, 4)
    with pytest.raises(IllegalAction):
        apply(state, SeatJoined(4))
    with pytest.raises(IllegalAction):
        apply(after(match(3), *TIED), SeatJoined(5))


def test_nothing_is_played_after_the_end() -> None:
    """A match that has an outcome takes no action."""
    over = after(match(2), *["pen page"] * 3)
    for action in (RoundClosed({}), SeatsLeft((1,)), SeatJoined(3)):
        with pytest.raises(IllegalAction):
            apply(over, action)


def test_a_match_needs_two() -> None:
    """Two to five stations make a table; one player makes no match."""
    with pytest.raises(IllegalAction):
        initial([3], Rules())


# Any match

KIND_OR_NONE = st.sampled_from([*KINDS, None])


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_match_keeps_its_promises(data: st.DataObject) -> None:
    """In random play collections only grow, counts stay in bounds, and an outcome is the end."""
    players = data.draw(st.integers(2, 5))
    rules = Rules(
        data.draw(st.integers(1, 4)),
        data.draw(st.sampled_from(sorted(BEATS))),
        data.draw(st.integers(0, 4)),
        data.draw(st.integers(0, 4)),
        data.draw(st.integers(0, 6)),
    )
    state = initial(range(1, players + 1), rules)
    for _ in range(30):
        seats = may_throw(state)
        assert seats
        assert set(state.tied) <= set(state.collections)
        assert len(state.tied) != 1
        assert len(state.collections) >= 2
        assert set(state.missed) == set(state.collections)
        action: Action
        kind = data.draw(st.sampled_from("rrrrrrlj"))
        if kind == "r":
            thrown = {seat: data.draw(KIND_OR_NONE) for seat in seats}
            action = RoundClosed({seat: kind for seat, kind in thrown.items() if kind is not None})
        elif kind == "l":
            going = data.draw(st.sets(st.sampled_from(sorted(state.collections)), min_size=1))
            action = SeatsLeft(tuple(sorted(going)))
        elif state.tied or len(state.collections) == 5:
            continue
        else:
            action = SeatJoined(min({1, 2, 3, 4, 5} - set(state.collections)))
        before, state = state, apply(state, action)
        for seat, held in state.collections.items():
            was = before.collections.get(seat, Collection())
            assert all(held.of(each) >= was.of(each) for each in KINDS)
            assert held.total - was.total in (0, 1)
            if before.tied:
                assert held == was
        if isinstance(action, RoundClosed):
            assert state.score is not None
            assert sum(state.score.points.values()) == 0
            assert set(state.score.points) <= set(seats)
            assert state.revealed - before.revealed == (len(action.throws) >= 2)
            if before.tied and state.tied and state.score.winners:
                assert state.tied == state.score.winners
        if state.outcome is not None:
            assert may_throw(state) == ()
            assert missed_out(state) == ()
            if isinstance(state.outcome, Won):
                assert state.outcome.seat in state.collections
            with pytest.raises(IllegalAction):
                apply(state, RoundClosed({}))
            return
        going_now = missed_out(state)
        for seat, count in state.missed.items():
            assert not rules.missed_limit or count <= rules.missed_limit
            assert (seat in going_now) == bool(rules.missed_limit and count == rules.missed_limit)
        if going_now:
            state = apply(state, SeatsLeft(going_now))
            if state.outcome is not None:
                return
