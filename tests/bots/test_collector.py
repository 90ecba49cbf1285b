"""The collector commits, moves when it is beaten, and sees only what everybody has seen."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.bots.collector import LOOKS_BACK, STRAYS, Decision, Seen, decide
from heek.games.ahyoheek import CYCLES, Collection
from heek.kinds import KINDS, SEATS, Kind, Seat
from tests.bots.tournament import HABITS, Collector, play, share

PEN, PAGE, BEETLE = KINDS
BEATS = CYCLES["pen-page-beetle"]
EMPTY = Collection()

collections = st.builds(Collection, *[st.integers(0, 2)] * 3)
seen_matches = st.builds(
    Seen,
    st.sampled_from(list(CYCLES.values())),
    st.lists(st.dictionaries(st.sampled_from(SEATS), st.none() | st.sampled_from(KINDS)), max_size=6),
    st.fixed_dictionaries(dict.fromkeys(SEATS, collections)),
    st.booleans(),
)


def steady(below: int) -> int:
    """Draws the last of what is left, so that the collector never strays."""
    return below - 1


def seen(*rounds: dict[Seat, Kind | None], own: Collection = EMPTY, sudden: bool = False) -> Seen:
    return Seen(BEATS, rounds, {1: own, 2: EMPTY, 3: EMPTY}, sudden)


def test_it_stays_with_its_kind() -> None:
    """Nothing seen against it, it throws what it collects, and goes on collecting that."""
    assert decide(PAGE, seen(), 1, steady) == Decision(PAGE, PAGE)
    assert decide(PAGE, seen({1: PAGE, 2: PAGE}), 1, steady) == Decision(PAGE, PAGE)


def test_two_throws_of_three_are_of_its_kind() -> None:
    """It strays now and then, as often as its constant says, and collects its kind all the same."""
    rng = random.Random(4)
    decisions = [decide(PAGE, seen(), 1, rng.randrange) for _ in range(6000)]
    assert {each.collecting for each in decisions} == {PAGE}
    expected = 1 - (1 / STRAYS) * (2 / 3)
    assert Counter(each.throw for each in decisions)[PAGE] / 6000 == pytest.approx(expected, abs=0.03)


def test_it_moves_when_its_kind_is_beaten() -> None:
    """What the others keep throwing beats its kind: it moves to what beats theirs."""
    assert decide(PAGE, seen({2: PEN}, {2: PEN}), 1, steady).collecting is BEETLE
    assert decide(PAGE, seen({2: PEN, 3: PEN}), 1, steady).collecting is BEETLE


def test_it_does_not_move_for_an_even_score() -> None:
    """As often beating as beaten is no reason to give up a kind."""
    assert decide(PAGE, seen({2: PEN}, {2: BEETLE}), 1, steady).collecting is PAGE


def test_it_forgets_old_rounds() -> None:
    """What was thrown longer ago than it looks back counts for nothing."""
    rounds: list[dict[Seat, Kind | None]] = [{2: PEN}, *[{2: None} for _ in range(LOOKS_BACK)]]
    assert decide(PAGE, seen(*rounds), 1, steady).collecting is PAGE
    assert decide(PAGE, seen(*rounds[:-1]), 1, steady).collecting is BEETLE


def test_its_own_throws_do_not_count_against_it() -> None:
    """It looks at the others alone."""
    assert decide(PAGE, seen({1: PEN}, {1: PEN}), 1, steady).collecting is PAGE


def test_it_moves_to_a_kind_it_holds_more_of() -> None:
    """Two beetles won by chance are nearer to three than none of its own kind."""
    assert decide(PAGE, seen(own=Collection(0, 0, 2)), 1, steady).collecting is BEETLE
    assert decide(PAGE, seen(own=Collection(0, 1, 1)), 1, steady).collecting is PAGE


def test_it_does_not_move_to_a_kind_that_is_beaten_more() -> None:
    """However many it holds of a kind, it does not follow it into defeat."""
    held = Collection(0, 0, 2)
    assert decide(PEN, seen({2: PAGE}, own=held), 1, steady).collecting is PEN


def test_without_a_memory_it_begins_with_what_it_holds_most_of() -> None:
    """In a new match it draws for a kind; after a power cut its collection tells it what it was about."""
    assert decide(None, seen(own=Collection(1, 0, 2)), 1, steady).collecting is BEETLE
    rng = random.Random(4)
    assert {decide(None, seen(), 1, rng.randrange).collecting for _ in range(50)} == set(KINDS)


def test_in_sudden_death_it_throws_evenly() -> None:
    """Nothing is collected there, so each kind comes a third of the time."""
    rng = random.Random(4)
    thrown = Counter(decide(PAGE, seen(sudden=True), 1, rng.randrange).throw for _ in range(6000))
    for kind in KINDS:
        assert thrown[kind] / 6000 == pytest.approx(1 / 3, abs=0.03)


def test_it_goes_by_the_cycle_in_force() -> None:
    """Where pen beats beetle, pens are answered with pages."""
    other = Seen(CYCLES["pen-beetle-page"], [{2: PEN}], {1: Collection(), 2: Collection()})
    assert decide(BEETLE, other, 1, steady).collecting is PAGE


@settings(max_examples=200, deadline=None)
@given(match=seen_matches, collecting=st.none() | st.sampled_from(KINDS), seed=st.integers(0, 999))
def test_the_same_seed_gives_the_same_decision(match: Seen, collecting: Kind | None, seed: int) -> None:
    """Whatever has been seen, a decision is one of the kinds and a function of its arguments."""
    first, again = (decide(collecting, match, 3, random.Random(seed).randrange) for _ in range(2))
    assert first == again
    assert isinstance(first.throw, Kind)


@settings(max_examples=100, deadline=None)
@given(match=seen_matches, collecting=st.none() | st.sampled_from(KINDS), draws=st.integers(0, 2**64))
def test_a_source_that_always_draws_the_same_is_enough(
    match: Seen, collecting: Kind | None, draws: int
) -> None:
    """No bad source of randomness makes it think for ever."""
    assert decide(collecting, match, 1, lambda below: draws % below).throw in KINDS


@pytest.mark.parametrize("collectors", [1, 2, 4])
@pytest.mark.parametrize("habit", ["always the same kind", "every kind alike"])
def test_who_does_not_think_wins_less_than_a_fair_share(habit: str, collectors: int) -> None:
    """“Always the same” and throwing evenly both lose to it more than they win, at a table of any size."""
    part, half = share(HABITS[habit], collectors, 1000)
    assert part + half < 1 / (collectors + 1)


def test_who_pays_attention_beats_it() -> None:
    """It is an opponent for newcomers: answering its last throw wins most matches."""
    part, half = share(HABITS["what beats the first other's last throw"], 1, 500)
    assert part - half > 0.5


def test_collectors_among_themselves_come_to_an_end() -> None:
    """A thousand matches of two collectors: hardly one is void, and none is one-sided."""
    rng = random.Random(7)
    played = [play([Collector(), Collector()], rng) for _ in range(1000)]
    winners = Counter(winner for winner, _ in played)
    assert winners[None] <= 5
    assert abs(winners[1] - winners[2]) < 150
    assert sum(len(rounds) for _, rounds in played) / 1000 < 20
