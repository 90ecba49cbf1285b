"""Figures of many measurements in one line."""

from __future__ import annotations

from collections.abc import Sequence


def share_below(values: Sequence[float], share: float) -> float:
    """The value that a share (0 to 1) of all values do not exceed; raises ValueError for none."""
    if not values:
        raise ValueError("nothing was measured")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def spread(values: Sequence[float], unit: str = "ms") -> str:
    """Median, 99th of a hundred, and the worst."""
    median, p99 = share_below(values, 0.5), share_below(values, 0.99)
    return f"median {median:.1f}, p99 {p99:.1f}, worst {max(values):.1f} {unit} of {len(values)}"
