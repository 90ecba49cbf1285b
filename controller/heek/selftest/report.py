"""What came of a self-test, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from heek.selftest.asking import Result, Verdict

FORM: Final = 1
GOOD: Final = (Verdict.OK, Verdict.SKIPPED)


def passed(results: Sequence[Result], *, finished: bool) -> bool:
    """Whether everything that was asked for was fine; what was skipped was not asked for."""
    return finished and all(result.verdict in GOOD for result in results)


def text_lines(results: Sequence[Result], *, finished: bool) -> list[str]:
    """A line for each part, and one that counts."""
    width = max((len(result.part) for result in results), default=0)
    lines = [
        f"{result.verdict.value:<11} {result.part:<{width}}  {result.text}".rstrip() for result in results
    ]
    bad = sum(result.verdict not in GOOD for result in results)
    skipped = sum(result.verdict is Verdict.SKIPPED for result in results)
    end = "" if finished else "; it was not finished"
    lines.append(
        f"{len(results)} parts: {len(results) - bad - skipped} ok, {bad} not, {skipped} skipped{end}"
    )
    return lines


def document(results: Sequence[Result], *, finished: bool) -> dict[str, Any]:
    """For programs; selftest/README.md describes it."""
    return {
        "form": FORM,
        "finished": finished,
        "passed": passed(results, finished=finished),
        "parts": [
            {"part": result.part, "verdict": result.verdict.value, "text": result.text} for result in results
        ],
    }
