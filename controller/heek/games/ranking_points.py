"""Ranking-points, rank and stake: what a match moves between KI accounts (spec/ki.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

GRANT: Final = 100
"""What a new KI account holds; a player never seen stands at this, too."""

RULES_VERSIONS: Final = {"stake": "heek-1", "award": "heek-1-award"}
"""The rules version that a record names, by `ahyoheek.economy`."""


def rank(points: int) -> int:
    """The rank of `points`: 0 for 0 or fewer, else the smallest n >= 1 with points <= 100 + 50 n (n + 1)."""
    if points <= 0:
        return 0
    n = 1
    while points > 100 + 50 * n * (n + 1):
        n += 1
    return n


def stake(points: int) -> int:
    """What a rated player with `points` puts in: rank points, never more than they hold, 0 at rank 0."""
    return max(0, min(rank(points), points))


def deltas(
    stakes: Sequence[int], rated: Sequence[bool], winner: int, economy: str = "stake"
) -> tuple[int, ...]:
    """What each player of a match gains or loses, in the order of `stakes`.

    `winner` is an index. A winner who is not rated moves nothing. With `economy="stake"` the sum is
    zero; with `"award"` the winner receives the same and nobody loses. Raises ValueError if an
    unrated player has a stake.
    """
    if any(put and not known for put, known in zip(stakes, rated, strict=True)):
        raise ValueError("a player who is not rated has no stake")
    if not rated[winner]:
        return (0,) * len(stakes)
    pot = sum(stakes) - stakes[winner]
    losses = [0 if economy == "award" else -put for put in stakes]
    losses[winner] = pot
    return tuple(losses)
