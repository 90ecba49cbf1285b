"""Expectations, without a table: what counts as fulfilled, from where on, and until when."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from heek.clock import MILLISECOND, SECOND
from heek.simulator.expectations import Expectations
from heek.simulator.steps import Expect


class Bench:
    """Expectations about a table whose lamps and screen a test sets by hand."""

    def __init__(self) -> None:
        self.lamps = dict.fromkeys(range(1, 6), "free")
        self.screen = "attract"
        self.all = Expectations(lambda seat, _: self.lamps[seat], lambda _: self.screen, "story")
        self._line = 0

    def say(self, event: str, **fields: object) -> None:
        self.all.heard(json.dumps({"event": event, **fields}))

    def expect(self, at: float, *, negated: bool = False, within: float = 0, **wanted: Any) -> None:
        """An expectation of the next line, begun at its own instant."""
        self._line += 1
        step = Expect(
            at=round(at * SECOND),
            line=self._line,
            negated=negated,
            within=round(within * SECOND),
            **wanted,
        )
        self.all.begin(step, step.at)

    def failed(self) -> list[int]:
        """The lines that did not hold."""
        return [verdict.step.line for verdict in self.all.verdicts if verdict.failure]


def _event(name: str, **fields: object) -> Mapping[str, object]:
    return {"event": name, **fields}


def test_an_event_is_matched_once_and_in_order() -> None:
    """Each expectation looks behind the event that the last one matched; what it passed over is gone."""
    bench = Bench()
    for seat in (1, 2, 3):
        bench.say("seat_taken", seat=seat)
    bench.expect(1, event=_event("seat_taken", seat=2))
    bench.expect(1, event=_event("seat_taken"))
    bench.expect(1, event=_event("seat_taken"))
    bench.expect(1, event=_event("seat_taken", seat=1))
    assert bench.failed() == [3, 4]


def test_one_that_failed_moves_nothing() -> None:
    """After an expectation that failed the next one looks from where that one looked."""
    bench = Bench()
    bench.say("seat_taken", seat=1)
    bench.expect(1, event=_event("seat_taken", seat=2))
    bench.expect(1, event=_event("seat_taken", seat=1))
    assert bench.failed() == [1]


def test_what_must_not_come_moves_nothing() -> None:
    """A negative expectation about an event neither takes it away nor passes others over."""
    bench = Bench()
    bench.say("seat_taken", seat=1)
    bench.say("seat_left", seat=1)
    bench.expect(1, negated=True, event=_event("seat_left"))
    bench.expect(1, negated=True, event=_event("match_won"))
    bench.expect(1, event=_event("seat_taken"))
    bench.expect(1, event=_event("seat_left"))
    assert bench.failed() == [1]


def test_lamps_and_screens_leave_the_cursor_alone() -> None:
    """A lamp or a screen in between does not count as a matched event."""
    bench = Bench()
    bench.say("seat_taken", seat=1)
    bench.expect(1, lamp=(1, "free"))
    bench.expect(1, screen="attract")
    bench.expect(1, event=_event("seat_taken"))
    bench.expect(1, lamp=(1, "taken"))
    bench.expect(1, negated=True, screen="attract")
    assert bench.failed() == [4, 5]


@pytest.mark.parametrize("delay_ms", [0, 499, 500])
def test_within_waits_so_long(delay_ms: int) -> None:
    """`within` lets it become so until then, its last instant included."""
    bench = Bench()
    bench.expect(1, within=0.5, screen="throw")
    now = SECOND + delay_ms * MILLISECOND
    bench.screen = "throw"
    bench.all.look(now)
    assert bench.failed() == []
    assert len(bench.all.verdicts) == 1
    assert bench.all.next_deadline() is None


def test_within_ends() -> None:
    """It is judged at its end, and what becomes so later is too late."""
    bench = Bench()
    bench.expect(1, within=0.5, screen="throw")
    assert bench.all.verdicts == []
    assert bench.all.next_deadline() == 1500 * MILLISECOND
    bench.all.look(1500 * MILLISECOND)
    bench.screen = "throw"
    bench.all.look(1501 * MILLISECOND)
    assert bench.failed() == [1]


def test_not_within_must_not_become_so() -> None:
    """With both, it fails as soon as it is so at any time until then, and holds if it never was."""
    bench = Bench()
    bench.expect(1, negated=True, within=0.5, screen="throw")
    bench.expect(1, negated=True, within=0.5, screen="reveal")
    bench.screen = "throw"
    bench.all.look(1200 * MILLISECOND)
    bench.screen = "attract"
    bench.all.look(1500 * MILLISECOND)
    bench.screen = "reveal"
    bench.all.look(1501 * MILLISECOND)
    assert bench.failed() == [1]
    assert len(bench.all.verdicts) == 2


def test_waiting_for_an_event_looks_behind_later_matches() -> None:
    """Of two that wait the earlier line matches first; the other needs an event after it."""
    bench = Bench()
    bench.expect(1, within=2, event=_event("seat_taken"))
    bench.expect(1, within=2, event=_event("seat_taken"))
    bench.say("seat_taken", seat=1)
    bench.all.look(1500 * MILLISECOND)
    assert len(bench.all.verdicts) == 1
    bench.say("seat_taken", seat=2)
    bench.all.look(1600 * MILLISECOND)
    assert len(bench.all.verdicts) == 2
    assert bench.failed() == []


def test_the_end_judges_what_still_waits() -> None:
    """When the story is over, what has not become so fails, and what must not have come holds."""
    bench = Bench()
    bench.expect(1, within=60, event=_event("match_won"))
    bench.expect(1, negated=True, within=60, event=_event("match_won"))
    bench.all.finish(2 * SECOND)
    assert bench.failed() == [1]
    assert bench.all.failures() == [
        'story:1: at 1 to 2 s: {"event": "match_won"} did not come; since the last match came: nothing'
    ]


def test_failures_come_in_the_order_of_the_lines() -> None:
    """However late a waiting one is judged, its line comes where it stands."""
    bench = Bench()
    bench.expect(1, within=5, screen="throw")
    bench.expect(2, screen="reveal")
    bench.all.look(6 * SECOND)
    assert [line.split(": ")[0] for line in bench.all.failures()] == ["story:1", "story:2"]


FIELDS = [
    ({"at": 7}, {"at": 7.0}, True),
    ({"at": 7.03}, {"at": 7.03}, True),
    ({"at": 7.03}, {"at": 7.030001}, False),
    ({"seats": [1, 2]}, {"seats": [1, 2]}, True),
    ({"seats": [1]}, {"seats": [1, 2]}, False),
    ({"seats": [2, 1]}, {"seats": [1, 2]}, False),
    ({"throws": {"1": "pen", "2": None}}, {"throws": {"1": "pen", "2": None}}, True),
    ({"throws": {"1": "pen"}}, {"throws": {"1": "pen", "2": None}}, False),
    ({"points": {"1": 0}}, {"points": {"1": 0.0}}, True),
    ({"seat": 1}, {"seat": True}, False),
    ({"seat": True}, {"seat": 1}, False),
    ({"player": "1"}, {"player": 1}, False),
    ({"player": 1}, {"player": "1"}, False),
    ({"at": 1.5}, {"at": "1.5"}, False),
    ({"at": "1.5"}, {"at": 1.5}, False),
    ({"at": None}, {"at": 1.5}, False),
    ({"at": Decimal("7.03")}, {"at": 7.03}, True),
    ({"at": Decimal("7.03")}, {"at": [7.03]}, False),
    ({"at": [1.5]}, {"at": 1.5}, False),
    ({"at": {}}, {"at": 1.5}, False),
    ({"at": "x"}, {"at": 1.5}, False),
    ({"missing": None}, {"at": 1.5}, False),
    ({}, {"at": 1.5, "more": 1}, True),
]


@pytest.mark.parametrize(("wanted", "told", "same"), FIELDS)
def test_fields_are_compared_as_json(wanted: dict[str, object], told: dict[str, object], same: bool) -> None:
    """At least the fields that are given must be there, whole and by value; a wrong kind is no crash."""
    bench = Bench()
    bench.say("something", **told)
    bench.expect(1, event=_event("something", **wanted))
    assert bench.failed() == ([] if same else [1])
