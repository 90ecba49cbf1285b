"""A figure: what was measured, what a user would have otherwise, and the aim; as a table and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Spread:
    """Several runs of one measurement."""

    median: float
    least: float
    most: float
    runs: int

    @classmethod
    def of(cls, runs: Iterable[float]) -> Spread:
        """Raises StatisticsError for no run at all."""
        values = sorted(runs)
        return cls(statistics.median(values), values[0], values[-1], len(values))

    def text(self) -> str:
        """`12.3 (11.9..14.0)`; a single run has no range."""
        if self.runs == 1:
            return number(self.median)
        return f"{number(self.median)} ({number(self.least)}..{number(self.most)})"


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. `ratio` is how many times `otherwise` this is (or the reverse, see `per`)."""

    key: str
    """Its name in the JSON file: letters, digits and `_`; it stays while the words may change."""
    words: str
    unit: str
    value: Spread
    otherwise: str = ""
    """What the user would have without us, or the floor that nobody gets below; empty: no such thing."""
    otherwise_value: Spread | None = None
    inverse: bool = False
    """The ratio is told the other way round: how many times the value `otherwise` is."""
    aim: float | None = None
    """The most that is allowed; None: no aim."""
    aim_is_ratio: bool = False
    """The aim is about the ratio, not about the value."""
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Between the two medians; None if there is nothing to compare with, or it is 0."""
        if self.otherwise_value is None:
            return None
        above, below = self.value.median, self.otherwise_value.median
        if self.inverse:
            above, below = below, above
        return above / below if below else None

    @property
    def met(self) -> bool | None:
        """Whether the aim is met by the median; None: there is none, or nothing to judge it by."""
        judged = self.ratio if self.aim_is_ratio else self.value.median
        return None if self.aim is None or judged is None else judged <= self.aim

    def as_json(self) -> dict[str, Any]:
        return {
            "words": self.words,
            "unit": self.unit,
            **_spread_json(self.value),
            "otherwise": self.otherwise or None,
            "otherwise_value": None if self.otherwise_value is None else _spread_json(self.otherwise_value),
            "ratio": self.ratio,
            "aim": self.aim,
            "aim_of": None if self.aim is None else "ratio" if self.aim_is_ratio else "value",
            "met": self.met,
            "note": self.note or None,
        }


def _spread_json(spread: Spread) -> dict[str, float | int]:
    return {"median": spread.median, "min": spread.least, "max": spread.most, "runs": spread.runs}


def number(value: float) -> str:
    """Three digits that matter, thousands apart: `0.0123`, `4.56`, `12,345`."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    digits = 2
    while abs(value) < 10 ** (2 - digits) and digits < 6:
        digits += 1
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") or "0"


_HEAD = ("figure", "measured", "otherwise", "ratio", "aim", "met")


def table(figures: Sequence[Figure]) -> str:
    """For people: one line a figure, the notes below."""
    rows = [_HEAD, *(_row(figure) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    lines += ["", *(f"{figure.words}: {figure.note}" for figure in figures if figure.note)]
    return "\n".join(line.rstrip() for line in lines).rstrip() + "\n"


def _row(figure: Figure) -> tuple[str, ...]:
    otherwise = figure.otherwise
    if figure.otherwise_value is not None:
        otherwise = f"{figure.otherwise_value.text()} {otherwise}"
    aim = ""
    if figure.aim is not None:
        aim = f"<= {number(figure.aim)} {'x' if figure.aim_is_ratio else figure.unit}"
    ratio = figure.ratio
    return (
        figure.words,
        f"{figure.value.text()} {figure.unit}",
        otherwise,
        "" if ratio is None else f"{number(ratio)} x",
        aim,
        {True: "yes", False: "NO", None: ""}[figure.met],
    )
