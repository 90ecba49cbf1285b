"""One finding after another, and how people and programs read them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

FORM: Final = 1
"""Of the JSON; another number means that a reader of this one may misunderstand it."""


class Mark(Enum):
    """How a thing stands."""

    OK = "ok"
    WARNING = "warning"
    """The table plays, but not as well as it could, or not for long."""
    WRONG = "wrong"
    """Something of the table will not work."""
    SKIPPED = "skipped"
    """Not looked at; `found` says why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    area: str
    """`pins`, `panel`, `serial`, `system`, `boot`, `ki`, `table`: for grouping."""
    what: str
    """What was looked at; with the area it is unique in a report, and the same in every report."""
    mark: Mark
    found: str
    """One line."""
    remedy: str = ""
    """What to do, one line; empty where nothing is to be done."""


def verdict(findings: Iterable[Finding]) -> Mark:
    """The worst mark; what was skipped is no worse than fine."""
    marks = {finding.mark for finding in findings}
    return next((mark for mark in (Mark.WRONG, Mark.WARNING) if mark in marks), Mark.OK)


def text_lines(findings: Iterable[Finding]) -> list[str]:
    """For people: mark, what, found, and what to do; a last line counts."""
    rows = list(findings)
    width = max((len(f"{row.area}: {row.what}") for row in rows), default=0)
    lines = []
    for row in rows:
        what = f"{row.area}: {row.what}"
        line = f"{row.mark.value:<8} {what:<{width}}  {row.found}"
        lines.append(f"{line}; {row.remedy}" if row.remedy else line)
    counts = [f"{sum(row.mark is mark for row in rows)} {mark.value}" for mark in Mark]
    lines.append(f"{len(rows)} looked at: {', '.join(counts)}")
    return lines


def document(findings: Iterable[Finding]) -> dict[str, Any]:
    """For programs; doctor/README.md describes it."""
    rows = list(findings)
    return {
        "form": FORM,
        "verdict": verdict(rows).value,
        "findings": [
            {
                "area": row.area,
                "what": row.what,
                "mark": row.mark.value,
                "found": row.found,
                "remedy": row.remedy,
            }
            for row in rows
        ],
    }
