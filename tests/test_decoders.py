"""A seeded share of the campaign on everything that reads bytes: the same inputs at every run."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.decoders import decoders, judge

BLOCK = 2200


@pytest.mark.parametrize("first", range(0, 5 * BLOCK, BLOCK))
def test_any_bytes_are_a_message_one_clear_error_or_nothing(first: int) -> None:
    """No other exception, no more memory or steps than a multiple of the input; and no empty exercise."""
    came: Counter[tuple[str, str]] = Counter()
    faults = []
    for seed, name, what, fault in map(judge, range(first, first + BLOCK)):
        came[name, what] += 1
        if fault:
            faults.append(f"seed {seed}, {name}: {fault}")
    assert faults == []
    for decoder in decoders():
        assert came[decoder.name, "read"] > 0, decoder.name
        if decoder.refuses is not None:
            assert came[decoder.name, "refused"] > 0, decoder.name
    assert came["exchange", "talked"] > 0
