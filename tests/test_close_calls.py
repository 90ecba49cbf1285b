"""A seeded share of the campaign around the close: the same stories at every run."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.close_calls import judge

BLOCK = 10


@pytest.mark.parametrize("first", range(0, 60, BLOCK))
def test_not_one_wrong_verdict(first: int) -> None:
    """Stamps alone decide, whatever the order of delivery; what is too late is told and changes nothing."""
    proved: Counter[str] = Counter()
    wrong = {}
    for seed, faults, more in map(judge, range(first, first + BLOCK)):
        proved += more
        if faults:
            wrong[seed] = faults
    assert wrong == {}
    for what in ("rounds", "late deliveries", "chord", "late"):
        assert proved[what] > 0, f"the stories are an empty exercise: no {what}"
