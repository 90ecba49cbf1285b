"""What a story expects, held against what the table said and shows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from heek.clock import Instant
from heek.simulator.steps import Expect
from heek.simulator.story_line import seconds_shown


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one expectation; `failure` is empty if it held."""

    step: Expect
    failure: str = ""
    event: Mapping[str, object] | None = None
    """The event that came, if one was looked for."""


@dataclass(slots=True)
class _Waiting:
    step: Expect
    until: Instant
    """On the story's clock."""
    cursor: int = 0
    """How many events lay before what this expectation may match, when it began to wait."""
    event: Mapping[str, object] | None = None
    """The one that matched."""


class Expectations:
    """The expectations of one story, in the order of its lines.

    An expected event must come after the one that the last such expectation matched; one that must not come
    (`not`) moves nothing. With `within` a thing may become so until then; with both, it must not become so
    until then.
    """

    def __init__(
        self, lamp: Callable[[int, Instant], str], screen: Callable[[Instant], str], source: str
    ) -> None:
        """`lamp` and `screen` tell what the table shows at an instant of the story."""
        self._lamp = lamp
        self._screen = screen
        self._source = source
        self._events: list[Mapping[str, object]] = []
        self._lines: list[str] = []
        self._cursor = 0
        self._waiting: list[_Waiting] = []
        self.verdicts: list[Verdict] = []

    def heard(self, line: str) -> None:
        """The table said something: one line of JSON."""
        self._lines.append(line)

    def next_deadline(self) -> Instant | None:
        """When the first of those that wait is to be judged."""
        return min((each.until for each in self._waiting), default=None)

    def begin(self, step: Expect, now: Instant) -> None:
        """It is time for `step`, and all work due by now is done."""
        self._waiting.append(_Waiting(step, step.at + step.within, self._cursor))
        self.look(now)

    def look(self, now: Instant) -> None:
        """Something may have changed: judge what can be judged at `now`."""
        if not self._waiting:
            return
        still: list[_Waiting] = []
        for each in self._waiting:
            fulfilled = self._so(each, now)
            if fulfilled:
                failure = self._failure(each, now) if each.step.negated else ""
                self.verdicts.append(Verdict(each.step, failure, each.event))
            elif now >= each.until:
                failure = "" if each.step.negated else self._failure(each, now)
                self.verdicts.append(Verdict(each.step, failure))
            else:
                still.append(each)
        self._waiting = still

    def finish(self, now: Instant) -> None:
        """The story is over: what still waits has had its time."""
        for each in self._waiting:
            each.until = now
        self.look(now)

    def failures(self) -> list[str]:
        """One line for each that did not hold, in the order of the story."""
        failed = [each for each in self.verdicts if each.failure]
        return [each.failure for each in sorted(failed, key=lambda each: each.step.line)]

    def _so(self, each: _Waiting, now: Instant) -> bool:
        step = each.step
        if step.event is not None:
            return self._event_came(each, step.event)
        if step.lamp is not None:
            return self._lamp(step.lamp[0], now) == step.lamp[1]
        return self._screen(now) == step.screen

    def _event_came(self, each: _Waiting, wanted: Mapping[str, object]) -> bool:
        while len(self._events) < len(self._lines):
            self._events.append(json.loads(self._lines[len(self._events)]))
        first = each.cursor if each.step.negated else max(each.cursor, self._cursor)
        for index in range(first, len(self._events)):
            if _has(self._events[index], wanted):
                each.event = self._events[index]
                if not each.step.negated:
                    self._cursor = index + 1
                return True
        return False

    def _failure(self, each: _Waiting, now: Instant) -> str:
        step = each.step
        when = seconds_shown(step.at) + (f" to {seconds_shown(each.until)}" if step.within else "")
        place = f"{self._source}:{step.line}: at {when} s"
        if step.event is not None:
            wanted = json.dumps(dict(step.event), default=float)
            if step.negated:
                return f"{place}: {wanted} came, and must not have"
            since = [str(event["event"]) for event in self._events[max(each.cursor, self._cursor) :]]
            return (
                f"{place}: {wanted} did not come; since the last match came: {', '.join(since) or 'nothing'}"
            )
        if step.lamp is not None:
            seat, wanted = step.lamp
            return f"{place}: lamp {seat} is {self._lamp(seat, now)}, expected {_not(step)}{wanted}"
        return f"{place}: the screen is {self._screen(now)}, expected {_not(step)}{step.screen}"


def _not(step: Expect) -> str:
    return "not " if step.negated else ""


def _has(event: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    return all(name in event and _equal(event[name], value) for name, value in wanted.items())


def _equal(told: object, wanted: object) -> bool:
    """Equal as JSON: maps must agree whole, numbers by value (1 and 1.0 are one), true is no 1."""
    if isinstance(told, bool) or isinstance(wanted, bool):
        return told is wanted
    if isinstance(told, Mapping) and isinstance(wanted, Mapping):
        return told.keys() == wanted.keys() and all(_equal(told[key], wanted[key]) for key in told)
    if isinstance(told, list) and isinstance(wanted, list | tuple):
        return len(told) == len(wanted) and all(map(_equal, told, wanted))
    if isinstance(wanted, Decimal):
        return told == float(wanted)
    return told == wanted
