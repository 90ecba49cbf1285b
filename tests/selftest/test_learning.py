"""Learning finds the line of each button, in order, and makes a table of it or says why not."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from heek.kinds import KINDS, SEATS, Kind
from heek.selftest.learning import Learning
from heek.wiring.pin_map import DEFAULT_STATIONS, USABLE, StationPins
from tests.selftest.person import Person, Press, clean

LINES = {(station.seat, kind): station.button(kind) for station in DEFAULT_STATIONS for kind in KINDS}


def learned(person: Person, seats: Any = SEATS, closed: Any = ()) -> Learning:
    learning = Learning(seats, DEFAULT_STATIONS, now=0, closed=closed)
    person.take_part(learning.course())
    return learning


@given(st.permutations(USABLE))
def test_any_wiring_is_found(order: list[int]) -> None:
    """Whatever lines the buttons are on, that is what is learned; LEDs stay where they are."""
    wiring = dict(zip(LINES, order, strict=False))
    learning = learned(Person(lambda where, _time: clean(wiring[where])))
    assert learning.finished
    assert [station.seat for station in learning.stations] == list(SEATS)
    for station in learning.stations:
        assert station.buttons == tuple(wiring[station.seat, kind] for kind in KINDS)
        assert station.led == DEFAULT_STATIONS[station.seat - 1].led


def test_seats_that_are_skipped_are_absent() -> None:
    """A seat that is skipped at any of its buttons has no station, and its lines may be another's."""

    def presses(where: Any, _time: int) -> Press | str:
        if where in ((2, Kind.PEN), (4, Kind.BEETLE)):
            return "s"
        return clean(LINES[where])

    learning = learned(Person(presses))
    assert [station.seat for station in learning.stations] == [1, 3, 5]
    assert learning.skipped == [2, 4]
    assert learning.mistakes() == []


def test_a_line_that_is_somebodys_already_is_asked_again() -> None:
    """The same button twice is told, with whose it is, and the next line that comes is taken."""

    def presses(where: Any, time: int) -> Press:
        return clean(LINES[1, Kind.PEN] if where == (1, Kind.PAGE) and time == 1 else LINES[where])

    person = Person(presses)
    assert learned(person).stations == DEFAULT_STATIONS
    assert any(ask.text.startswith("GPIO4 is seat 1 pen already. ") for ask in person.asks)


def test_lines_that_are_closed_or_move_by_themselves_are_no_buttons() -> None:
    """A line closed from the start, and one that moves while nobody touches anything, are never taken."""

    def presses(where: Any, _time: int) -> Press:
        stray = [(0, 18, True), (1, 18, False), (2, 19, True), (3, 19, False)]
        return [*stray, *[(ms + 10, line, closed) for ms, line, closed in clean(LINES[where])]]

    person = Person(presses, before=[(500, 19, True), (600, 19, False)])
    assert learned(person, closed=[18]).stations == DEFAULT_STATIONS


def test_a_button_on_an_leds_line_is_a_mistake() -> None:
    """What makes no table is told before anything is written: a line used twice, too few seats."""
    clash = dict(LINES)
    clash[2, Kind.PEN] = DEFAULT_STATIONS[0].led
    learning = learned(Person(lambda where, _time: clean(clash[where])))
    assert any("GPIO22 is already used by seat 1 led" in mistake for mistake in learning.mistakes())
    alone = learned(Person(lambda where, _time: clean(LINES[where])), seats=(1,))
    assert alone.mistakes() == ["1 station was learned; two to five make a table"]


def test_quit_leaves_it_unfinished() -> None:
    """`q` ends it, and what was learned by then is known but not finished."""
    learning = learned(Person(lambda where, _time: "q" if where[0] == 3 else clean(LINES[where])))
    assert not learning.finished
    assert learning.stations == DEFAULT_STATIONS[:2]
    assert isinstance(learning.stations[0], StationPins)
