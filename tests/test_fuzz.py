"""A seeded share of the fuzz campaign: 500 random stories, the same ones at every run."""

from __future__ import annotations

import pytest

from tests.fuzz import judge

BLOCK = 20


@pytest.mark.parametrize("first", range(0, 500, BLOCK))
def test_random_stories_keep_the_rules(first: int) -> None:
    """Numbered without gaps, points sum to zero, only seats in the round throw, no leak, one end a match."""
    failed = {seed: faults for seed, faults, _ in map(judge, range(first, first + BLOCK)) if faults}
    assert failed == {}


def test_random_stories_reach_what_they_are_for() -> None:
    """Proves that the stories are no empty exercise: they play rounds, end matches and survive cuts."""
    seen = sum((judge(seed)[2] for seed in range(60)), start=judge(60)[2])
    for event in ("round_revealed", "match_won", "match_void", "round_void", "press_ignored", "seat_claimed"):
        assert seen[event] > 0, event
    assert seen["table_started"] > 61
