"""LEDs that blink for long, are put away in the middle of it, and rigs whose forerunner broke down."""

from __future__ import annotations

import random
import threading
from dataclasses import replace

import pytest

from heek.clock import MILLISECOND, SECOND, ManualClock
from heek.errors import BackendError
from heek.kinds import SEATS, Kind
from heek.stations.gestures import Edge
from heek.stations.gpio import Board, open_factory
from heek.stations.lamps import Pattern, steps
from heek.stations.mock_pins import TableFactory
from heek.wiring.pin_map import DEFAULT_STATIONS
from tests.stations.test_gpio import (
    LEDS,
    FakeLgpio,
    FakeRpiGpio,
    WatchedFactory,
    glow,
    ignore,
    libraries,
)

__all__ = ["libraries"]

TEN_MINUTES_MS = 10 * 60 * 1000


def level_at(pattern: Pattern, now_ms: int) -> float:
    """What a pattern that runs from instant 0 shows, reckoned here by itself."""
    cycle = steps(pattern, pwm=True)
    offset = now_ms * MILLISECOND % sum(span for span, _ in cycle)
    for span, level in cycle:
        if offset < span:
            return level
        offset -= span
    raise AssertionError


def test_asking_for_the_same_blink_again_and_again_costs_nothing(
    libraries: tuple[FakeLgpio, FakeRpiGpio],
) -> None:
    """Ten minutes of a blink asked for every 5 ms: a write for each change, and no thread (F019)."""
    lgpio, _ = libraries
    before = threading.active_count()
    board = Board(open_factory("gpio", "lgpio", ManualClock()), DEFAULT_STATIONS, ignore)
    lgpio.trace.clear()
    changes, shown = 0, 0.0
    for now_ms in range(0, TEN_MINUTES_MS, 5):
        level = level_at(Pattern.TIME_RUNNING_OUT, now_ms)
        changes += level != shown
        shown = level
        for seat in SEATS:
            board.light(seat, level)
    assert changes == TEN_MINUTES_MS // 250
    assert len(lgpio.trace) == changes * len(SEATS)
    assert threading.active_count() == before
    board.close()


@pytest.mark.parametrize("name", ["lgpio", "rpigpio"])
@pytest.mark.parametrize("active_high", [True, False], ids=["active high", "active low"])
def test_put_away_at_any_moment_of_a_blink(
    libraries: tuple[FakeLgpio, FakeRpiGpio], name: str, active_high: bool
) -> None:
    """Two hundred ends in the midst of five blinking LEDs: dark each time, at once, no thread left (F020)."""
    library = libraries[name == "rpigpio"]
    chance = random.Random(20)
    before = threading.active_count()
    for _ in range(200):
        library.trace.clear()
        board = Board(
            open_factory("gpio", name, ManualClock()), DEFAULT_STATIONS, ignore, led_active_high=active_high
        )
        for now_ms in range(0, chance.randrange(2000), 50):
            for seat, pattern in zip(SEATS, Pattern, strict=False):
                board.light(seat, level_at(pattern, now_ms + chance.randrange(50)))
        board.close()
        for led in LEDS.values():
            assert glow(library.trace, led, active_high=active_high)[-1] == 0.0
    assert threading.active_count() == before


def test_put_away_from_inside_a_callback() -> None:
    """A board that is closed by what it reports to comes to an end, dark, and says nothing more (F020)."""
    factory = WatchedFactory()
    seen: list[Edge] = []

    def close(edge: Edge) -> None:
        seen.append(edge)
        board.close()

    board = Board(factory, DEFAULT_STATIONS, close)
    board.light(3, 1.0)
    pens = [factory.line(station.pen) for station in DEFAULT_STATIONS]
    for pen in pens:
        pen.drive(False)
    assert [(edge.seat, edge.button) for edge in seen] == [(1, Kind.PEN)]
    assert glow(factory.trace, LEDS[3], active_high=True)[-1] == 0.0


@pytest.mark.parametrize("name", ["mock", "lgpio", "rpigpio"])
def test_two_hundred_rigs_in_any_order(libraries: tuple[FakeLgpio, FakeRpiGpio], name: str) -> None:
    """The same lines over and over, one set-up in five failing half-way: none is left dirty (F127, F133).

    gpiozero's own factories share their pins over all of a process, so a line that one rig kept would be
    another's in the next.
    """
    chance = random.Random(127)
    for _ in range(200):
        stations = list(DEFAULT_STATIONS)
        chance.shuffle(stations)
        broken = chance.random() < 0.2
        if broken:
            stations[chance.randrange(5)] = replace(stations[0], seat=9, beetle=77)
        backend, pin_factory = ("mock", "lgpio") if name == "mock" else ("gpio", name)
        factory = open_factory(backend, pin_factory, ManualClock())
        if broken:
            with pytest.raises(BackendError):
                Board(factory, stations, ignore)
        else:
            board = Board(factory, stations, ignore)
            board.light(1, 1.0)
            board.close()
        assert factory.pins == {}
    assert (libraries[0].callbacks, libraries[1].callbacks) == ({}, {})


def test_mock_pins_dim_leds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mock that the table takes has PWM, whatever gpiozero's own settings say (F128)."""
    monkeypatch.setenv("GPIOZERO_PIN_FACTORY", "mock")
    monkeypatch.setenv("GPIOZERO_MOCK_PIN_CLASS", "mockpin")
    factory = open_factory("mock", "lgpio", ManualClock(now=SECOND))
    assert isinstance(factory, TableFactory)
    board = Board(factory, DEFAULT_STATIONS, ignore, led_pwm=True)
    board.light(1, 0.12)
    assert factory.line(LEDS[1]).level == 0.12
    board.close()
