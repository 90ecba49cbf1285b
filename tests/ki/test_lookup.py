"""Which address is tried first, and which next."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.ki.lookup import MOST_ADDRESSES, Address, in_order

ADDRESSES = st.builds(
    lambda new, number: Address(
        socket.AF_INET6 if new else socket.AF_INET, (f"::{number}" if new else f"10.0.0.{number}", 8625)
    ),
    st.booleans(),
    st.integers(1, 6),
)


@pytest.mark.fault("F080")
@given(st.lists(ADDRESSES, max_size=20), ADDRESSES | st.none())
def test_addresses_are_tried_by_turns_the_proven_one_first(
    found: list[Address], worked: Address | None
) -> None:
    """Each once, eight at most, both kinds among the first two, and before all the one that worked last."""
    order = in_order(found, worked)
    assert len(order) == len(set(order)) == min(len(set(found)), MOST_ADDRESSES)
    assert set(order) <= set(found)
    if worked in found:
        assert order[0] == worked
    elif found:
        assert order[0] == found[0]
    if worked is None and len({each.family for each in found}) == 2:
        assert order[0].family != order[1].family
