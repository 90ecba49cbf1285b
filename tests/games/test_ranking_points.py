"""Ranks, stakes and deltas by ki.md's rules version heek-1 and its friendlier sister."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.games.ranking_points import GRANT, RULES_VERSIONS, deltas, rank, stake

LIMITS = {1: 200, 2: 400, 3: 700, 4: 1100, 5: 1600, 6: 2200}
"""The spec's table: the most points of each rank."""


@pytest.mark.parametrize(("n", "most"), LIMITS.items())
def test_the_rank_table(n: int, most: int) -> None:
    """Each rank ends exactly at its limit, and the next point is the next rank."""
    assert rank(most) == n
    assert rank(most + 1) == n + 1
    assert rank(LIMITS.get(n - 1, 0) + 1) == n


@pytest.mark.parametrize("points", [0, -1, -5000])
def test_no_points_no_rank(points: int) -> None:
    """Rank 0 is for 0 points or fewer, and plays free."""
    assert rank(points) == 0
    assert stake(points) == 0


def test_a_new_account() -> None:
    """A new account holds 100 points, is of rank 1 and stakes one point."""
    assert (GRANT, rank(GRANT), stake(GRANT)) == (100, 1, 1)


def test_rules_versions() -> None:
    """A record names the version by the economy it was played under."""
    assert RULES_VERSIONS == {"stake": "heek-1", "award": "heek-1-award"}


@given(st.integers(-10_000, 10_000_000))
def test_rank_is_the_smallest_n(points: int) -> None:
    """Rank is the smallest n >= 1 with points <= 100 + 50 n (n + 1), and a stake is never more than held."""
    n = rank(points)
    if points <= 0:
        assert n == 0
    else:
        assert points <= 100 + 50 * n * (n + 1)
        assert n == 1 or points > 100 + 50 * (n - 1) * n
    assert stake(points) == min(n, max(points, 0))


def test_the_winner_receives_what_the_others_staked() -> None:
    """Under `stake` the others pay the winner their ranks; under `award` nobody pays."""
    assert deltas([1, 3, 2], [True] * 3, 1) == (-1, 3, -2)
    assert deltas([1, 3, 2], [True] * 3, 1, "award") == (0, 3, 0)


def test_guests_stake_nothing_and_take_nothing() -> None:
    """A guest at the table neither pays nor gets; if a guest wins, nothing moves."""
    assert deltas([1, 0, 2], [True, False, True], 0) == (2, 0, -2)
    assert deltas([1, 0, 2], [True, False, True], 1) == (0, 0, 0)
    assert deltas([1, 0, 2], [True, False, True], 1, "award") == (0, 0, 0)


def test_a_guest_with_a_stake_is_a_mistake() -> None:
    """An unrated player cannot have put anything in."""
    with pytest.raises(ValueError, match="not rated"):
        deltas([1, 1], [True, False], 0)


@given(st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=2, max_size=5), st.data())
def test_any_match_conserves_points(players: list[tuple[int, bool]], data: st.DataObject) -> None:
    """Under `stake` deltas sum to zero; under `award` nobody loses and the winner gets the same."""
    stakes = [put if known else 0 for put, known in players]
    rated = [known for _, known in players]
    winner = data.draw(st.integers(0, len(players) - 1))
    moved = deltas(stakes, rated, winner)
    awarded = deltas(stakes, rated, winner, "award")
    assert sum(moved) == 0
    assert moved[winner] == awarded[winner] == (sum(stakes) - stakes[winner] if rated[winner] else 0)
    for index, put in enumerate(stakes):
        if index != winner:
            assert moved[index] == (-put if rated[winner] else 0)
            assert awarded[index] == 0
