"""Edges of contacts as a finger or a fault makes them, and what the gestures make of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from heek.clock import MILLISECOND, SECOND
from heek.kinds import KINDS, Kind, Seat
from heek.session.inputs import Input, PressDiscarded, Pressed
from heek.session.settings import GestureSettings
from heek.stations.gestures import Edge, Gestures

MS = MILLISECOND
PEN, PAGE, BEETLE = KINDS
FOREVER = 10**6 * SECOND


def edges(seat: Seat, button: Kind, *changes: float, first: bool = True) -> list[Edge]:
    """A contact that closes, opens, closes ... at these milliseconds."""
    return [Edge(round(at * MS), seat, button, (index % 2 == 0) == first) for index, at in enumerate(changes)]


def judged(
    *contacts: list[Edge], until: float | None = None, closed: Iterable[tuple[Seat, Kind]] = (), **how: Any
) -> list[Input]:
    """What comes out of these edges by `until` ms (or in the end)."""
    gestures = Gestures(GestureSettings(**how), (1, 2, 3, 4, 5), closed=closed)
    for edge in sorted(edge for contact in contacts for edge in contact):
        gestures.feed(edge)
    return gestures.advance(FOREVER if until is None else round(until * MS))


def presses(out: list[Input]) -> list[tuple[float, Seat, str]]:
    return [(each.at / MS, each.seat, each.button.value) for each in out if isinstance(each, Pressed)]


def discarded(out: list[Input]) -> list[tuple[float, Seat, str]]:
    return [(each.at / MS, each.seat, each.reason) for each in out if isinstance(each, PressDiscarded)]


def of(out: list[Input], *kinds: type[Input]) -> list[Input]:
    return [each for each in out if isinstance(each, kinds)]
