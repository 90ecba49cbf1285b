"""The LED at a bot's seat tells what a person's would, but never asks anybody to press."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from heek.kinds import SEATS, Kind
from heek.session.phases import Phase
from heek.session.view import SeatState, SeatView, View
from heek.stations.lamps import Pattern, pattern
from tests.display.views import SINCE, instants, views


def lamp(phase: Phase, **seat: object) -> Pattern:
    """What the LED of a bot at seat 1 says."""
    rows = tuple(replace(SeatView(each, SeatState.TAKEN, bot=True), **seat) for each in SEATS)  # type: ignore[arg-type]
    return pattern(View(phase, SINCE, SINCE + 10**9, rows), 1, SINCE)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (lamp(Phase.LOBBY, state=SeatState.READY), Pattern.TAKEN),
        (lamp(Phase.LOBBY, state=SeatState.UNCONFIRMED), Pattern.TAKEN),
        (lamp(Phase.THROW, in_round=True), Pattern.TAKEN),
        (lamp(Phase.COUNTDOWN, in_round=True), Pattern.TAKEN),
        (lamp(Phase.COUNTDOWN, in_round=True, thrown=True), Pattern.THROWN),
        (lamp(Phase.SETTLE, in_round=True, thrown=True), Pattern.THROWN),
        (lamp(Phase.COUNTDOWN), Pattern.TAKEN),
        (lamp(Phase.REVEAL, won_round=True), Pattern.WON),
        (lamp(Phase.MATCH_OVER, won_match=True), Pattern.WON),
        (lamp(Phase.LOBBY, stuck=(Kind.PEN,)), Pattern.FAULT),
    ],
)
def test_a_bots_lamp(shown: Pattern, expected: Pattern) -> None:
    """Dim where a person would be asked to press; else as ever."""
    assert shown is expected


@given(view=views, now=instants)
def test_a_bots_lamp_asks_for_nothing(view: View, now: int) -> None:
    """In no view does the LED of a bot breathe, warn, or flash for a confirmation."""
    rows = tuple(replace(row, bot=True, leaves_at=None) for row in view.seats)
    shown = {pattern(replace(view, seats=rows), seat, now) for seat in SEATS}
    assert not shown & {Pattern.YOUR_TURN, Pattern.TIME_RUNNING_OUT, Pattern.UNCONFIRMED}
