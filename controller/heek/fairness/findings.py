"""A report of fairness in words: its rows for a terminal, and what is wrong with it, with what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

UNEVEN_MS: Final = 5.0
"""How far the medians of two buttons may lie apart: the settle time, 30 ms, is a wide roof above it."""
ENOUGH: Final = 20
"""Presses of one button from which on its median says something."""
SEEN_AT_ONCE_MS: Final = 20.0
"""Within it nobody sees which of two LEDs was first; people tell flashes apart from about 20 ms on."""


def shortcomings(report: Mapping[str, Any], settle_ms: float) -> list[str]:
    """What is unfair, or near it, each in one line with what to do; empty: nothing.

    `settle_ms` is how long a round waits for edges on their way (`ahyoheek.settle_s`).
    """
    found = []
    if late := report["late_deliveries"]:
        found.append(
            f"{_count(late, 'press', 'presses')} came after the round had been compared, and did not count: "
            "take load off this machine, or raise ahyoheek.settle_s"
        )
    if dropped := report["dropped"]:
        found.append(
            f"{_count(dropped, 'edge', 'edges')} never came: a button or its wire floods the pins (see `heek "
            "doctor`), or the machine is too busy"
        )
    if (lag := report["lag"]["max_ms"]) > settle_ms:
        found.append(
            f"the loop came {lag:.0f} ms late once, more than the {settle_ms:.0f} ms a round waits for: "
            "presses kept their stamps, but see what else runs here"
        )
    pressed = [row for row in report["buttons"] if row["count"] >= ENOUGH]
    if pressed:
        slow = max(pressed, key=lambda row: row["median_ms"])
        fast = min(pressed, key=lambda row: row["median_ms"])
        longer = slow["median_ms"] - fast["median_ms"]
        if longer > UNEVEN_MS:
            found.append(
                f"seat {slow['seat']}'s {slow['button']} waits {longer:.1f} ms longer for its verdict than "
                f"seat {fast['seat']}'s {fast['button']}: no throw is lost by it; look at that button with "
                "`heek selftest`"
            )
    if (apart := report["reveals"]["p99_ms"]) > SEEN_AT_ONCE_MS:
        found.append(
            f"at a reveal the last LED follows the first after {apart:.0f} ms, so one player can see the "
            "result before another: take load off this machine"
        )
    return found


def lines(report: Mapping[str, Any]) -> list[str]:
    """The report for a terminal, 80 columns at most."""
    presses = sum(row["count"] for row in report["buttons"])
    stamps = {
        "kernel": "stamped by the kernel as the contact closed",
        "simulated": "on simulated pins",
        "callback": "stamped when the program was called, a little after the contact closed",
    }
    out = [
        f"{_count(presses, 'press', 'presses')}, {stamps[report['stamps']]}",
        f"{_count(report['late_deliveries'], 'late delivery', 'late deliveries')}, "
        f"{_count(report['dropped'], 'dropped edge', 'dropped edges')}",
        "",
        f"{'':22}{'count':>9}{'median':>10}{'p99':>10}{'longest':>11}",
    ]
    for row in report["buttons"]:
        if row["count"]:
            out.append(_row(f"seat {row['seat']} {row['button']}, verdict", row))
    out.append(_row("loop behind its time", report["lag"]))
    out.append(_row("first to last LED", report["reveals"]))
    return out


def _row(what: str, figures: Mapping[str, Any]) -> str:
    return f"{what:22}{figures['count']:9d}" + "".join(
        f"{figures[key]:{width}.2f} ms" for key, width in (("median_ms", 7), ("p99_ms", 7), ("max_ms", 8))
    )


def _count(number: int, one: str, many: str) -> str:
    return f"{number or 'no'} {one if number == 1 else many}"
