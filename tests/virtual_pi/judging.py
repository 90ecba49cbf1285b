"""Whether a table in real time did what a story expects: pure, and told apart from the machine being slow.

An event of the daemon has the stamp of what caused it, so when it came is judged by its stamp and not by when
somebody heard of it. All instants here are of the story. A machine that closes a contact some milliseconds
late makes all that follows as late: `TOLERANCE` is what that may come to.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from heek.clock import MILLISECOND, SECOND, Duration, Instant, nanoseconds
from heek.simulator.steps import Expect
from heek.simulator.story_line import seconds_shown
from heek.stations.lamps import Pattern, steps

TOLERANCE: Final[Duration] = 100 * MILLISECOND
SAME: Final[Duration] = 20 * MILLISECOND
"""Instants of the same event, here and in the simulator: both have them of the kernel, but of two places in
its code, some 10 us apart; an emulated processor was held up between them for 5 ms at worst."""

DRAWN: Final = frozenset({"seq", "incarnation", "match", "boot"})
"""Fields that are drawn anew, or counted, for each run."""
TIMES: Final = frozenset({"at", "deadline", "closed"})
"""Fields that hold an instant of the daemon's own clock, in seconds."""

LEVEL_ERROR: Final = 0.05
DIM_ERROR: Final = 0.45
"""Of an LED's brightness, 0 to 1, by some dozens of samples: of one that is steadily on or off, and of one
whose PWM a thread makes, in an emulated machine that has other things to do."""
LOOKS: Final = 3
APART: Final[Duration] = 120 * MILLISECOND
STEADY: Final[Duration] = 40 * MILLISECOND
"""So long before and after a sample a blinking LED has to stay as it is."""


@dataclass(frozen=True, slots=True)
class Told:
    """An event as the daemon told it, and when that was in the story."""

    event: Mapping[str, Any]
    at: Instant
    fields_at: Mapping[str, Duration] = field(default_factory=dict)
    """Its `TIMES`, since the story put the power on."""


def bare(event: Mapping[str, Any]) -> dict[str, Any]:
    """An event without its instants and without what is drawn anew for each run."""
    return {name: value for name, value in event.items() if name not in DRAWN | TIMES}


def differences(
    ours: Sequence[Mapping[str, Any]],
    simulated: Sequence[Mapping[str, Any]],
    *,
    until: Instant | None = None,
    same: Duration = SAME,
    timed: bool = True,
) -> list[str]:
    """Where two lists of events part, in a line or two; empty if they are the same.

    `timed`: their instants must agree as well, within `same`. `until` is when both were ended, on the
    clock of the last events: what came just before or after may stand in one alone.
    """
    one, other = _settled(ours, until), _settled(simulated, until)
    for number, (mine, theirs) in enumerate(zip(one, other, strict=False), start=1):
        if bare(mine) != bare(theirs):
            return [f"event {number} is {bare(mine)}", f"simulated: {bare(theirs)}"]
        for name in TIMES & mine.keys() if timed else ():
            if abs(nanoseconds(mine[name]) - nanoseconds(theirs[name])) > same:
                return [f"event {number}, {mine['event']}: {name} is {mine[name]}, simulated {theirs[name]}"]
    if len(one) != len(other):
        more, where = (one, "here") if len(one) > len(other) else (other, "simulated")
        extra = bare(more[min(len(one), len(other))])
        return [f"{len(one)} events instead of {len(other)}; only {where}: {extra}"]
    return []


def _settled(events: Sequence[Mapping[str, Any]], until: Instant | None) -> list[Mapping[str, Any]]:
    """Without those at the end that came about when everything was ended, or after."""
    kept = list(events)
    while kept and until is not None and nanoseconds(kept[-1]["at"]) > until - TOLERANCE:
        kept.pop()
    return kept


def judge_events(expected: Sequence[Expect], told: Sequence[Told], source: str) -> list[str]:
    """One line for each expectation of an event that did not hold, in the order of the story."""
    failures = []
    cursor = 0
    for step in expected:
        if step.event is None:
            continue
        until = step.at + step.within + (-TOLERANCE if step.negated else TOLERANCE)
        found = next(
            (
                number
                for number, each in enumerate(told)
                if number >= cursor and each.at <= until and _matches(each, step.event)
            ),
            None,
        )
        if found is not None and not step.negated:
            cursor = found + 1
        elif (found is None) is not step.negated:
            what = "came, and must not have" if step.negated else "did not come"
            failures.append(f"{source}:{step.line}: at {seconds_shown(step.at)} s: {dict(step.event)} {what}")
    return failures


def _matches(told: Told, wanted: Mapping[str, object]) -> bool:
    for name, value in wanted.items():
        if name in TIMES:
            near = told.fields_at.get(name)
            if near is None or abs(near - nanoseconds(float(str(value)))) > TOLERANCE:
                return False
        elif name not in told.event or not _same(told.event[name], value):
            return False
    return True


def _same(told: object, wanted: object) -> bool:
    if isinstance(told, bool) or isinstance(wanted, bool):
        return told is wanted
    if isinstance(told, Mapping) and isinstance(wanted, Mapping):
        return told.keys() == wanted.keys() and all(_same(told[key], wanted[key]) for key in told)
    if isinstance(told, list) and isinstance(wanted, list | tuple):
        return len(told) == len(wanted) and all(map(_same, told, wanted))
    return told == wanted


# Lamps


def level_at(pattern: str, at: Instant, *, pwm: bool = True) -> float:
    """How bright an LED with a cyclic pattern is at an instant of the daemon's clock."""
    cycle = steps(Pattern(pattern), pwm=pwm)
    offset = at % sum(span for span, _ in cycle)
    for span, level in cycle:
        if offset < span:
            return level
        offset -= span
    return cycle[0][1]


def moments_to_look(pattern: str, first: Instant, last: Instant, *, pwm: bool = True) -> list[Instant]:
    """When to look at an LED, on the daemon's clock, in [first, last], to tell its pattern by its level.

    Up to `LOOKS` instants for each level that the pattern has and keeps for long enough, `APART` from each
    other: a thread that drives an LED may be held up once. For a breath, which changes all the time, its
    darkest and its brightest instants.
    """
    cycle = steps(Pattern(pattern), pwm=pwm)
    steady = 0 if pattern == Pattern.YOUR_TURN.value and pwm else STEADY
    levels = {level for _, level in cycle}
    if len(levels) > 2:
        levels = {min(levels), max(levels)}
    found: dict[float, list[Instant]] = {level: [] for level in levels}
    at = first
    while at <= last and any(len(each) < LOOKS for each in found.values()):
        level = level_at(pattern, at, pwm=pwm)
        if (
            level in levels
            and len(found[level]) < LOOKS
            and (not found[level] or at - found[level][-1] >= APART)
            and (level_at(pattern, at - steady, pwm=pwm) == level == level_at(pattern, at + steady, pwm=pwm))
        ):
            found[level].append(at)
        at += 20 * MILLISECOND
    return sorted(at for each in found.values() for at in each)


def unlike(looks: Sequence[tuple[float, Instant]], pattern: str, *, pwm: bool = True) -> list[float]:
    """What was measured of an LED at levels at which most looks do not fit its pattern; empty: it is that.

    `looks` are brightnesses and their instants on the daemon's clock.
    """
    by_level: dict[float, list[tuple[float, bool]]] = {}
    for measured, at in looks:
        fits = is_level(measured, pattern, at, pwm=pwm)
        by_level.setdefault(level_at(pattern, at, pwm=pwm), []).append((measured, fits))
    return [
        statistics.median(measured for measured, _ in each)
        for each in by_level.values()
        if 2 * sum(fits for _, fits in each) <= len(each)
    ]


def changes(pattern: str, first: Instant, last: Instant, *, pwm: bool = True) -> bool:
    """Whether a blinking LED went on or off between two instants of the daemon's clock."""
    if pattern == Pattern.YOUR_TURN.value and pwm:
        return False
    return level_at(pattern, first, pwm=pwm) != level_at(pattern, last, pwm=pwm)


def is_level(measured: float, pattern: str, at: Instant, *, pwm: bool = True) -> bool:
    """Whether a measured brightness is that of the pattern at an instant of the daemon's clock.

    A breath may be a step (0.1 s) off. One that is dim must be neither quite dark nor quite full.
    """
    near = SECOND // 10 if pattern == Pattern.YOUR_TURN.value and pwm else 0
    levels = [level_at(pattern, at + each, pwm=pwm) for each in (-near, 0, near)]
    if levels[1] in (0.0, 1.0):
        return abs(measured - levels[1]) <= LEVEL_ERROR
    return 0.0 < measured < 1.0 and min(levels) - DIM_ERROR <= measured <= max(levels) + DIM_ERROR
