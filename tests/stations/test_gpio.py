"""The stations on gpiozero's pins: edges in, brightness out, dark before and after, and no silent fall-back.

The lines are those of the table's mock factory, and where the real libraries have habits of their own
(lgpio, RPi.GPIO) fakes of them that have the same habits and write down every level.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from heek.clock import SECOND, ManualClock
from heek.errors import BackendError
from heek.kinds import KINDS, SEATS, Kind
from heek.stations import header_chip
from heek.stations.gestures import Edge
from heek.stations.gpio import BUSY_PAUSES, Board, LineWatch, open_factory, put_out
from heek.stations.header_chip import Chip, Line
from heek.stations.mock_pins import TableFactory, TablePin
from heek.wiring.pin_map import DEFAULT_STATIONS, USABLE, StationPins

PI_4 = (Chip(0, "pinctrl-bcm2711", 58), Chip(1, "raspberrypi-exp-gpio", 8))
LEDS = {station.seat: station.led for station in DEFAULT_STATIONS}


def ignore(_edge: Edge) -> None:
    """Nobody listens."""


class WatchedPin(TablePin):
    """A line that writes down what a meter on it would show after every change."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name in ("_function", "_state") and hasattr(self, "_state") and hasattr(self, "_function"):
            self.factory.trace.append((self._number, self._function, float(self._state)))


class WatchedFactory(TableFactory):
    def __init__(self) -> None:
        self.trace: list[tuple[int, str, float]] = []
        super().__init__(ManualClock())
        self.pin_class = WatchedPin


def glow(trace: list[tuple[int, str, float]], led: int, *, active_high: bool) -> list[float]:
    """How bright an LED on line `led` was, step by step; an input lights nothing."""
    shown = [
        0.0 if function == "input" else (level if active_high else 1 - level)
        for number, function, level in trace
        if number == led
    ]
    return [each for place, each in enumerate(shown) if place == 0 or each != shown[place - 1]]


# Edges


def test_edges_come_once_with_their_own_stamps() -> None:
    """Each edge of each button reaches `on_edge` once, with the stamp of the backend on the table's clock."""
    clock = ManualClock()
    factory = TableFactory(clock)
    seen: list[Edge] = []
    board = Board(factory, DEFAULT_STATIONS, seen.append)
    expected = []
    for station in DEFAULT_STATIONS:
        for kind in KINDS:
            for closed in (True, False):
                clock.advance_to(clock.now() + 1_234_567)
                factory.line(station.button(kind)).drive(not closed)
                expected.append(Edge(clock.now(), station.seat, kind, closed))
                # The same level again is no edge.
                factory.line(station.button(kind)).drive(not closed)
    # Edges compare by stamp and seat alone; here everything counts.
    assert [(e.at, e.seat, e.button, e.closed) for e in seen] == [
        (e.at, e.seat, e.button, e.closed) for e in expected
    ]
    board.close()


def test_a_late_edge_keeps_its_stamp() -> None:
    """An edge that is handed over late carries the instant at which the contact moved."""
    clock = ManualClock(now=5 * SECOND)
    factory = TableFactory(clock)
    seen: list[Edge] = []
    Board(factory, DEFAULT_STATIONS, seen.append)
    factory.line(DEFAULT_STATIONS[0].pen).drive(False, 3 * SECOND)
    assert [edge.at for edge in seen] == [3 * SECOND]


def test_stamps_count_from_the_tables_origin() -> None:
    """Stamps are counted from instant 0 of the table, whole nanoseconds from end to end, after years too."""
    origin = 98_765_432_109_876_543
    world = ManualClock()
    factory = TableFactory(world)
    seen: list[Edge] = []
    board = Board(factory, DEFAULT_STATIONS, seen.append, origin_ns=origin)
    for late in (1, 2, 3):
        factory.line(DEFAULT_STATIONS[0].pen).drive(late % 2 == 0, origin + 7 * SECOND + late)
    assert [edge.at for edge in seen] == [7 * SECOND + 1, 7 * SECOND + 2, 7 * SECOND + 3]
    board.close()


def test_edges_may_come_from_any_thread() -> None:
    """`on_edge` is called in the backend's own thread: the board makes nothing of whose it is."""
    factory = TableFactory(ManualClock())
    threads: list[str] = []
    board = Board(factory, DEFAULT_STATIONS, lambda _: threads.append(threading.current_thread().name))
    reader = threading.Thread(target=lambda: factory.line(4).drive(False), name="reader")
    reader.start()
    reader.join()
    assert threads == ["reader"]
    board.close()


def test_no_threads_and_no_bounce_time() -> None:
    """Fifteen buttons and five LEDs make no thread, and no backend is asked to hold edges back."""
    before = threading.active_count()
    factory = TableFactory(ManualClock())
    board = Board(factory, DEFAULT_STATIONS, ignore)
    for seat in SEATS:
        board.light(seat, 0.5)
    assert threading.active_count() == before
    buttons = [factory.line(number) for station in DEFAULT_STATIONS for number in station.buttons]
    assert {(pin.bounce, pin.edges, pin.pull, pin.function) for pin in buttons} == {
        (None, "both", "up", "input")
    }
    board.close()
    assert threading.active_count() == before


def test_contacts_closed_at_start() -> None:
    """What is held while the program starts is named, and setting the pull does not open it."""
    factory = TableFactory(ManualClock())
    factory.line(DEFAULT_STATIONS[1].page).drive(False)
    factory.line(DEFAULT_STATIONS[4].pen).drive(False)
    seen: list[Edge] = []
    board = Board(factory, DEFAULT_STATIONS, seen.append)
    assert board.closed_contacts() == [(2, Kind.PAGE), (5, Kind.PEN)]
    assert seen == []
    factory.line(DEFAULT_STATIONS[1].page).drive(True)
    assert board.closed_contacts() == [(5, Kind.PEN)]
    assert [(edge.seat, edge.closed) for edge in seen] == [(2, False)]


def test_nothing_is_said_after_close() -> None:
    """A contact that moves while or after the table is put away calls nobody."""
    factory = TableFactory(ManualClock())
    seen: list[Edge] = []
    board = Board(factory, DEFAULT_STATIONS, seen.append)
    pin = factory.line(DEFAULT_STATIONS[0].pen)
    board.close()
    pin.drive(False)
    assert seen == []


# Lamps


@pytest.mark.parametrize("pwm", [True, False], ids=["PWM", "plain"])
@pytest.mark.parametrize("active_high", [True, False], ids=["active high", "active low"])
def test_no_led_is_lit_before_it_is_asked_for_nor_after_close(active_high: bool, pwm: bool) -> None:
    """From the first claim to the last release an LED glows exactly when the table says so (F022)."""
    factory = WatchedFactory()
    board = Board(factory, DEFAULT_STATIONS, ignore, led_active_high=active_high, led_pwm=pwm)
    for led in LEDS.values():
        assert glow(factory.trace, led, active_high=active_high) == [0.0]
    board.light(2, 0.5 if pwm else 1.0)
    board.light(3, 1.0)
    board.light(3, 0.0)
    board.light(4, 1.0)
    assert factory.line(LEDS[4]).level == (1.0 if active_high else 0.0)
    board.close()
    played = {seat: glow(factory.trace, led, active_high=active_high) for seat, led in LEDS.items()}
    assert played == {
        1: [0.0],
        2: [0.0, 0.5 if pwm else 1.0, 0.0],
        3: [0.0, 1.0, 0.0],
        4: [0.0, 1.0, 0.0],
        5: [0.0],
    }
    last = {number: function for number, function, _ in factory.trace}
    assert {last[led] for led in LEDS.values()} == {"input"}


def test_light_writes_only_changes() -> None:
    """A level that an LED has already is not written again."""
    factory = WatchedFactory()
    writes: list[float] = []
    set_state = WatchedPin._set_state
    board = Board(factory, DEFAULT_STATIONS, ignore)

    def counted(self: WatchedPin, value: float) -> None:
        writes.append(value)
        set_state(self, value)

    pin = factory.line(LEDS[1])
    pin.__class__ = type("Counted", (WatchedPin,), {"_set_state": counted})
    for level in (0.0, 0.0, 0.12, 0.12, 0.12, 1.0, 1.0, 0.0):
        board.light(1, level)
    assert writes == [0.12, 1.0, 0.0]


def test_plain_pins_show_half_and_more_as_on() -> None:
    """Without PWM there is on and off: from a half on."""
    factory = TableFactory(ManualClock())
    board = Board(factory, DEFAULT_STATIONS, ignore, led_pwm=False)
    shown = []
    for level in (0.49, 0.5, 0.0, 1.0):
        board.light(1, level)
        shown.append(factory.line(LEDS[1]).level)
    assert shown == [0.0, 1.0, 0.0, 1.0]
    assert factory.line(LEDS[1]).frequency is None


def test_garbage_collection_puts_no_led_out() -> None:
    """Nothing of a board hangs on a name that somebody forgot to keep (F025)."""
    factory = TableFactory(ManualClock())
    seen: list[Edge] = []
    board = Board(factory, list(DEFAULT_STATIONS), seen.append)
    for seat in SEATS:
        board.light(seat, 1.0)
    for _ in range(3):
        gc.collect()
    assert [factory.line(led).level for led in LEDS.values()] == [1.0] * 5
    factory.line(DEFAULT_STATIONS[0].pen).drive(False)
    assert len(seen) == 1


def test_close_twice() -> None:
    """A board may be put away twice, and its pins can be had again by the next one."""
    factory = TableFactory(ManualClock())
    for _ in range(20):
        board = Board(factory, DEFAULT_STATIONS, ignore)
        board.light(1, 1.0)
        board.close()
        board.close()
    assert factory.pins == {}


def test_close_goes_on_past_a_pin_that_fails() -> None:
    """One LED that cannot be written does not leave the others lit."""
    factory = WatchedFactory()
    board = Board(factory, DEFAULT_STATIONS, ignore)
    for seat in SEATS:
        board.light(seat, 1.0)

    def broken(_self: WatchedPin, _value: float) -> None:
        raise OSError("gone")

    factory.line(LEDS[1]).__class__ = type("Broken", (WatchedPin,), {"_set_state": broken})
    board.close()
    for seat in SEATS[1:]:
        assert glow(factory.trace, LEDS[seat], active_high=True)[-1] == 0.0


def test_a_pin_used_twice_names_pin_seat_and_role() -> None:
    """Two stations on one pin: the error says which, of which seat and what for; all is let go, dark."""
    factory = WatchedFactory()
    twice = [DEFAULT_STATIONS[0], StationPins(seat=2, pen=24, page=22, beetle=8, led=23)]
    with pytest.raises(BackendError, match=r"^GPIO22 \(button page of seat 2\) cannot be used: .*; give"):
        Board(factory, twice, ignore, led_active_high=False)
    assert glow(factory.trace, 22, active_high=False) == [0.0]
    assert factory.pins == {}


def test_an_led_pin_used_twice_names_it_too() -> None:
    """The same for an LED."""
    twice = [DEFAULT_STATIONS[0], StationPins(seat=2, pen=24, page=25, beetle=8, led=22)]
    with pytest.raises(BackendError, match=r"^GPIO22 \(LED of seat 2\) cannot be used: "):
        Board(TableFactory(ManualClock()), twice, ignore)


def test_a_pin_that_is_none_is_named() -> None:
    """A number that the header does not have is the same clear error."""
    wrong = [StationPins(seat=3, pen=77, page=25, beetle=8, led=22)]
    with pytest.raises(BackendError, match=r"^GPIO77 \(button pen of seat 3\) cannot be used: "):
        Board(TableFactory(ManualClock()), wrong, ignore)


# Backends: fakes of the two libraries, with their habits


class FakeLgpio(ModuleType):
    """lgpio's module: claims an output low unless told, and changes nothing of one that it has already.

    Only a line that was let go takes another pull (gpiozero's own comment in `LGPIOPin._set_pull`).
    """

    class error(Exception):  # noqa: N801 - lgpio's own name
        pass

    def __init__(self) -> None:
        super().__init__("lgpio")
        self.SET_PULL_NONE, self.SET_PULL_UP, self.SET_PULL_DOWN = 128, 32, 64
        self.RISING_EDGE, self.FALLING_EDGE, self.BOTH_EDGES = 1, 2, 3
        self.trace: list[tuple[int, str, float]] = []
        self.levels: dict[int, float] = {}
        self.modes: dict[int, str] = {}
        self.pulls: dict[int, int] = {}
        self.debounce: dict[int, int] = {}
        self.callbacks: dict[int, Callable[[int, int, int, int], None]] = {}
        self.closed: list[int] = []
        self.open_error: Exception | None = None
        self.claim_error: dict[int, Exception] = {}
        self.busy_for: dict[int, int] = {}
        """How many claims of a line still fail since somebody else holds it."""
        self.opened: list[int] = []
        self.pulsed: set[int] = set()
        """Lines that its thread moves."""

    def note(self, gpio: int, mode: str, level: float) -> None:
        self.modes[gpio], self.levels[gpio] = mode, level
        self.trace.append((gpio, mode, level))

    def gpiochip_open(self, chip: int) -> int:
        if self.open_error is not None:
            raise self.open_error
        self.opened.append(chip)
        return 17

    def gpiochip_close(self, handle: int) -> None:
        self.closed.append(handle)

    def gpio_claim_input(self, _handle: int, gpio: int, flags: int = 0) -> None:
        if gpio in self.claim_error:
            raise self.claim_error[gpio]
        if self.busy_for.get(gpio, 0):
            self.busy_for[gpio] -= 1
            raise self.error("GPIO busy")
        if gpio not in self.modes:
            self.pulls[gpio] = flags
        self.note(gpio, "input", 1.0 if flags & self.SET_PULL_UP else 0.0)

    def gpio_claim_output(self, _handle: int, gpio: int, level: int = 0, _flags: int = 0) -> None:
        if self.modes.get(gpio) != "output":
            self.note(gpio, "output", float(level))

    def gpio_claim_alert(self, _handle: int, gpio: int, _edges: int, flags: int = 0) -> None:
        self.pulls[gpio] = flags

    def callback(self, _handle: int, gpio: int, _edges: int, call: Callable[..., None]) -> Any:
        self.callbacks[gpio] = call
        handle = ModuleType("callback")
        handle.cancel = lambda: self.callbacks.pop(gpio, None)  # type: ignore[attr-defined]
        return handle

    def gpio_free(self, _handle: int, gpio: int) -> None:
        self.pulsed.discard(gpio)
        if self.modes.pop(gpio, None) is None:
            raise self.error("GPIO not allocated")

    def gpio_get_mode(self, _handle: int, gpio: int) -> int:
        return 2 if self.modes.get(gpio) == "output" else self.pulls.get(gpio, 0)

    def gpio_read(self, _handle: int, gpio: int) -> int:
        return int(self.levels[gpio] > 0)

    def gpio_write(self, _handle: int, gpio: int, level: int) -> None:
        assert self.modes[gpio] == "output"
        assert gpio not in self.pulsed, "lgpio's thread would write over it"
        self.note(gpio, "output", float(level))

    def tx_pwm(self, _handle: int, gpio: int, frequency: float, duty: float) -> None:
        assert self.modes[gpio] == "output"
        if frequency:
            self.pulsed.add(gpio)
            self.note(gpio, "output", duty / 100)
        elif gpio in self.pulsed:
            # It stays at whatever level it had at that moment.
            self.pulsed.remove(gpio)
        else:
            raise self.error("bad PWM micros")

    def gpio_set_debounce_micros(self, _handle: int, gpio: int, micros: int) -> None:
        self.debounce[gpio] = micros


class FakeRpiGpio(ModuleType):
    """RPi.GPIO's module: an output starts low unless told, PWM starts where it is told and ends low."""

    def __init__(self) -> None:
        super().__init__("RPi.GPIO")
        self.BCM, self.IN, self.OUT = 11, 1, 0
        self.PUD_OFF, self.PUD_DOWN, self.PUD_UP = 20, 21, 22
        self.RISING, self.FALLING, self.BOTH = 31, 32, 33
        self.I2C, self.SPI, self.HARD_PWM, self.SERIAL, self.UNKNOWN = 42, 41, 43, 40, -1
        self.trace: list[tuple[int, str, float]] = []
        self.levels: dict[int, float] = {}
        self.modes: dict[int, str] = {}
        self.pulls: dict[int, int] = {}
        self.bounces: list[int] = []
        self.read_after: list[int] = []
        self.callbacks: dict[int, Callable[[int], None]] = {}
        fake = self

        class PWM:
            def __init__(self, gpio: int, _frequency: float) -> None:
                if fake.modes.get(gpio) != "output":
                    raise RuntimeError("You must setup() the GPIO channel as an output first")
                self.gpio = gpio

            def start(self, duty: float) -> None:
                fake.note(self.gpio, "output", duty / 100)

            def ChangeDutyCycle(self, duty: float) -> None:  # noqa: N802 - RPi.GPIO's own name
                fake.note(self.gpio, "output", duty / 100)

            def stop(self) -> None:
                fake.note(self.gpio, fake.modes[self.gpio], 0.0)

        self.PWM = PWM

    def note(self, gpio: int, mode: str, level: float) -> None:
        self.modes[gpio], self.levels[gpio] = mode, level
        self.trace.append((gpio, mode, level))

    def setmode(self, _mode: int) -> None:
        pass

    def setwarnings(self, _on: bool) -> None:
        pass

    def setup(self, gpio: int, direction: int, pull_up_down: int = 20, initial: int = -1) -> None:
        if direction == self.OUT:
            self.note(gpio, "output", float(max(initial, 0)))
        else:
            self.pulls[gpio] = pull_up_down
            self.note(gpio, "input", float(pull_up_down == self.PUD_UP))

    def gpio_function(self, gpio: int) -> int:
        return self.OUT if self.modes.get(gpio) == "output" else self.IN

    def input(self, gpio: int) -> int:
        return int(self.levels[gpio])

    def output(self, gpio: int, value: int) -> None:
        assert isinstance(value, int), f"RPi.GPIO takes 0, 1, True or False, not {value!r}"
        self.note(gpio, "output", float(value))

    def add_event_detect(
        self, gpio: int, _edge: int, callback: Callable[[int], None], bouncetime: int
    ) -> None:
        self.bounces.append(bouncetime)
        self.callbacks[gpio] = callback

    def remove_event_detect(self, gpio: int) -> None:
        self.callbacks.pop(gpio, None)

    def cleanup(self, gpio: int | None = None) -> None:
        for number in list(self.modes) if gpio is None else [gpio]:
            self.pulls[number] = self.PUD_OFF
            self.note(number, "input", 0.0)


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[FakeLgpio, FakeRpiGpio]]:
    """Both libraries on a Raspberry Pi 4, forgotten again afterwards."""
    from gpiozero.pins import local

    lgpio, rpi_gpio = FakeLgpio(), FakeRpiGpio()
    package = ModuleType("RPi")
    package.GPIO = rpi_gpio  # type: ignore[attr-defined]
    monkeypatch.setattr(local, "get_pi_revision", lambda: 0xC03114)
    monkeypatch.setattr(header_chip, "chips", lambda: PI_4)
    monkeypatch.setattr(header_chip, "lines", lambda _chip, _numbers: {})
    monkeypatch.delenv("RPI_LGPIO_CHIP", raising=False)
    for name, module in (("lgpio", lgpio), ("RPi", package), ("RPi.GPIO", rpi_gpio)):
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("gpiozero.pins.lgpio", "gpiozero.pins.rpigpio"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield lgpio, rpi_gpio
    local.LocalPiFactory.pins.clear()
    local.LocalPiFactory._reservations.clear()
    for name in ("gpiozero.pins.lgpio", "gpiozero.pins.rpigpio"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["lgpio", "rpigpio"])
@pytest.mark.parametrize("pwm", [True, False], ids=["PWM", "plain"])
@pytest.mark.parametrize("active_high", [True, False], ids=["active high", "active low"])
def test_no_flash_on_the_real_libraries(
    libraries: tuple[FakeLgpio, FakeRpiGpio], name: str, active_high: bool, pwm: bool
) -> None:
    """Through lgpio and RPi.GPIO too an LED glows exactly when the table says so (F022)."""
    trace = libraries[name == "rpigpio"].trace
    factory = open_factory("gpio", name, ManualClock())
    board = Board(factory, DEFAULT_STATIONS, ignore, led_active_high=active_high, led_pwm=pwm)
    board.light(2, 0.12 if pwm else 1.0)
    board.light(3, 1.0)
    board.light(3, 0.0)
    board.close()
    played = {
        seat: [round(level, 6) for level in glow(trace, led, active_high=active_high)]
        for seat, led in LEDS.items()
    }
    assert played == {
        1: [0.0],
        2: [0.0, 0.12 if pwm else 1.0, 0.0],
        3: [0.0, 1.0, 0.0],
        4: [0.0],
        5: [0.0],
    }


@pytest.mark.parametrize("active_high", [True, False], ids=["active high", "active low"])
def test_only_a_dim_led_is_pulsed(libraries: tuple[FakeLgpio, FakeRpiGpio], active_high: bool) -> None:
    """A dark table has lgpio's thread move nothing; full and dark are steady, and at once."""
    lgpio, _ = libraries
    board = Board(
        open_factory("gpio", "lgpio", ManualClock()), DEFAULT_STATIONS, ignore, led_active_high=active_high
    )
    pulsed = []
    for level in (0.0, 0.29, 1.0, 0.5, 0.0, 0.12):
        board.light(1, level)
        pulsed.append(set(lgpio.pulsed))
    dim = {LEDS[1]}
    assert pulsed == [set(), dim, set(), dim, set(), dim]
    shown = glow(lgpio.trace, LEDS[1], active_high=active_high)
    assert [round(level, 6) for level in shown] == [0.0, 0.29, 1.0, 0.5, 0.0, 0.12]
    board.close()
    assert lgpio.pulsed == set()


def test_edges_of_lgpio(libraries: tuple[FakeLgpio, FakeRpiGpio]) -> None:
    """An alert of lgpio becomes one edge with the kernel's stamp; a low line is a closed contact."""
    lgpio, _ = libraries
    seen: list[Edge] = []
    board = Board(
        open_factory("gpio", "lgpio", ManualClock()), DEFAULT_STATIONS, seen.append, origin_ns=40 * SECOND
    )
    lgpio.callbacks[24](0, 24, 0, 41_500_000_000)
    lgpio.callbacks[24](0, 24, 1, 41_600_000_000)
    assert [(edge.at, edge.seat, edge.button, edge.closed) for edge in seen] == [
        (1_500_000_000, 2, Kind.PEN, True),
        (1_600_000_000, 2, Kind.PEN, False),
    ]
    assert len(lgpio.callbacks) == 15
    assert set(lgpio.debounce.values()) <= {0}
    lgpio.levels[24] = 0.0
    assert board.closed_contacts() == [(2, Kind.PEN)]
    board.close()
    assert lgpio.callbacks == {}
    assert lgpio.closed == [17]


def test_rpigpio_is_given_no_bounce_time(libraries: tuple[FakeLgpio, FakeRpiGpio]) -> None:
    """RPi.GPIO would swallow edges in a bounce time; -666 is its own word for none."""
    _, rpi_gpio = libraries
    board = Board(open_factory("gpio", "rpigpio", ManualClock()), DEFAULT_STATIONS, ignore)
    assert rpi_gpio.bounces == [-666] * 15
    board.close()


def test_stamps_of_lgpio_stay_whole(libraries: tuple[FakeLgpio, FakeRpiGpio]) -> None:
    """Two edges a nanosecond apart keep their distance, where a float has no nanoseconds left."""
    lgpio, _ = libraries
    origin = 9_504_000_000_000_001
    seen: list[Edge] = []
    Board(open_factory("gpio", "lgpio", ManualClock()), DEFAULT_STATIONS, seen.append, origin_ns=origin)
    lgpio.callbacks[24](0, 24, 0, origin + 5)
    lgpio.callbacks[4](0, 4, 0, origin + 6)
    assert [edge.at for edge in seen] == [5, 6]
    assert all(isinstance(edge.at, int) for edge in seen)


def test_stamps_of_rpigpio_are_those_of_the_callback(
    libraries: tuple[FakeLgpio, FakeRpiGpio], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through RPi.GPIO an edge has the instant at which its callback came, taken before the level is read."""
    _, rpi_gpio = libraries
    seen: list[Edge] = []
    Board(open_factory("gpio", "rpigpio", ManualClock()), DEFAULT_STATIONS, seen.append, origin_ns=1000)
    times = iter([41_000, 42_000])
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(times))
    read = rpi_gpio.input

    def late(gpio: int) -> int:
        level = read(gpio)
        rpi_gpio.read_after.append(gpio)
        return level

    monkeypatch.setattr(rpi_gpio, "input", late)
    for level in (0.0, 1.0):
        rpi_gpio.levels[24] = level
        rpi_gpio.callbacks[24](24)
    assert [(edge.at, edge.seat, edge.closed) for edge in seen] == [(40_000, 2, True), (41_000, 2, False)]
    assert rpi_gpio.read_after == [24, 24]


@pytest.mark.parametrize("factory", ["lgpio", "rpigpio"])
@pytest.mark.parametrize("active_high", [True, False], ids=["active high", "active low"])
def test_lines_rest_where_leds_are_dark_and_buttons_open(
    libraries: tuple[FakeLgpio, FakeRpiGpio], factory: str, active_high: bool
) -> None:
    """After close no line floats: each LED's is pulled to its dark level, each button's up (F023)."""
    lgpio, rpi_gpio = libraries
    board = Board(
        open_factory("gpio", factory, ManualClock()), DEFAULT_STATIONS, ignore, led_active_high=active_high
    )
    board.light(1, 1.0)
    board.close()
    if factory == "lgpio":
        pulls, up, down = lgpio.pulls, lgpio.SET_PULL_UP, lgpio.SET_PULL_DOWN
    else:
        pulls, up, down = rpi_gpio.pulls, rpi_gpio.PUD_UP, rpi_gpio.PUD_DOWN
    dark = down if active_high else up
    assert {pulls[led] for led in LEDS.values()} == {dark}
    assert {pulls[number] for station in DEFAULT_STATIONS for number in station.buttons} == {up}


@pytest.mark.parametrize("factory", ["lgpio", "rpigpio"])
@pytest.mark.parametrize("active_high", [True, False], ids=["active high", "active low"])
def test_after_a_crash_the_lamps_are_put_out(
    libraries: tuple[FakeLgpio, FakeRpiGpio], factory: str, active_high: bool
) -> None:
    """A line that a killed table left lit goes dark, is lit by nothing of the help, and rests dark (F022)."""
    library = libraries[factory == "rpigpio"]
    lit = float(active_high)
    for led in LEDS.values():
        library.levels[led] = lit
    troubles = put_out(
        open_factory("gpio", factory, ManualClock()), list(LEDS.values()), active_high=active_high
    )
    assert troubles == []
    for led in LEDS.values():
        assert glow(library.trace, led, active_high=active_high) == [0.0]
    # And the table that comes after it claims them all, dark.
    library.trace.clear()
    board = Board(
        open_factory("gpio", factory, ManualClock()), DEFAULT_STATIONS, ignore, led_active_high=active_high
    )
    for led in LEDS.values():
        assert glow(library.trace, led, active_high=active_high) == [0.0]
    board.close()


def test_one_lamp_that_is_held_leaves_the_others_to_go_out(
    libraries: tuple[FakeLgpio, FakeRpiGpio], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that somebody holds is told with its holder; the others are put out all the same."""
    lgpio, _ = libraries
    lgpio.busy_for[LEDS[2]] = 99
    monkeypatch.setattr(
        header_chip, "lines", lambda _chip, _numbers: {LEDS[2]: Line(LEDS[2], True, "lg", True)}
    )
    factory = open_factory("gpio", "lgpio", ManualClock())
    troubles = put_out(factory, list(LEDS.values()))
    assert troubles == [f"GPIO{LEDS[2]}: is held by “lg”: a program that uses lgpio, perhaps another table"]
    assert {number for number, _, _ in lgpio.trace} == set(LEDS.values()) - {LEDS[2]}


def test_the_header_is_opened_by_its_label(
    libraries: tuple[FakeLgpio, FakeRpiGpio], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chip is the one with a header's label, whatever its number and whatever board it is."""
    chips = (Chip(0, "gpio-brcmstb@107d508500", 32), Chip(7, "pinctrl-rp1", 54))
    monkeypatch.setattr(header_chip, "chips", lambda: chips)
    open_factory("gpio", "lgpio", ManualClock()).close()
    assert libraries[0].opened == [7]
    open_factory("gpio", "rpigpio", ManualClock()).close()
    assert os.environ["RPI_LGPIO_CHIP"] == "7"


@pytest.mark.usefixtures("libraries")
def test_no_header_is_one_line_with_all_chips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a header's chip nothing opens, and the error lists what is there."""
    monkeypatch.setattr(header_chip, "chips", lambda: (Chip(0, "INT33FF:00", 98),))
    with pytest.raises(BackendError) as caught:
        open_factory("gpio", "lgpio", ManualClock())
    text = str(caught.value)
    assert text.startswith(
        "stations.pin_factory lgpio does not open: the header's GPIO chip is not there: none"
    )
    assert "gpiochip0 [INT33FF:00] 98 lines" in text
    assert "\n" not in text


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize("named", [True, False], ids=["LG_WD", "no LG_WD"])
def test_lgpio_leaves_no_pipe_and_the_working_folder_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, named: bool
) -> None:
    """lgpio's import makes its pipe in LG_WD and stays there; afterwards all is as it was before."""
    keep, here = tmp_path / "state", tmp_path / "here"
    keep.mkdir()
    here.mkdir()
    fakes = tmp_path / "fakes"
    fakes.mkdir()
    (fakes / "lgpio.py").write_text(
        "import os\n"
        "os.chdir(os.environ['LG_WD'])\n"
        "os.mkfifo('.lgd-nfy0')\n"
        "seen = os.getcwd()\n"
        "raise OSError('seen in ' + seen)\n"
    )
    monkeypatch.delitem(sys.modules, "lgpio")
    monkeypatch.syspath_prepend(str(fakes))
    monkeypatch.chdir(here)
    monkeypatch.setenv("TMPDIR", str(keep))
    monkeypatch.setattr(tempfile, "tempdir", None)
    if named:
        monkeypatch.setenv("LG_WD", str(keep))
    else:
        monkeypatch.delenv("LG_WD", raising=False)
    with pytest.raises(BackendError, match=rf"seen in {keep}/\.lgpio-"):
        open_factory("gpio", "lgpio", ManualClock())
    assert Path.cwd() == here
    assert list(keep.iterdir()) == list(here.iterdir()) == []
    assert os.environ.get("LG_WD") == (str(keep) if named else None)


def test_a_line_that_is_busy_for_a_while_is_waited_for(libraries: tuple[FakeLgpio, FakeRpiGpio]) -> None:
    """Five seconds of a held line are no failure (F011); the LEDs wait dark."""
    lgpio, _ = libraries
    lgpio.busy_for.update({6: 12, 23: 8})
    pauses: list[float] = []
    board = Board(open_factory("gpio", "lgpio", ManualClock()), DEFAULT_STATIONS, ignore, pause=pauses.append)
    assert sum(pauses) == 5.0
    assert len(lgpio.callbacks) == 15
    for led in LEDS.values():
        assert glow(lgpio.trace, led, active_high=True) == [0.0]
    board.close()


def test_a_busy_line_is_told_by_name(
    libraries: tuple[FakeLgpio, FakeRpiGpio], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that another program keeps: which, who has it, and what to do; the others are let go, dark."""
    lgpio, _ = libraries
    lgpio.claim_error[6] = lgpio.error("'GPIO busy'")
    monkeypatch.setattr(header_chip, "lines", lambda _chip, _numbers: {6: Line(6, True, "w1-gpio", False)})
    factory = open_factory("gpio", "lgpio", ManualClock())
    pauses: list[float] = []
    with pytest.raises(BackendError) as caught:
        Board(factory, DEFAULT_STATIONS, ignore, pause=pauses.append)
    assert str(caught.value) == (
        "GPIO6 (button page of seat 4) cannot be used: it is held by “w1-gpio”; stop that, take its overlay "
        "out of config.txt, or give the station another pin (`heek doctor` lists who holds what)"
    )
    assert len(pauses) == BUSY_PAUSES
    assert lgpio.closed == [17]
    for led in LEDS.values():
        assert glow(lgpio.trace, led, active_high=True) == [0.0]


@pytest.mark.parametrize("name", ["lgpio", "rpigpio"])
def test_any_line_can_be_watched(libraries: tuple[FakeLgpio, FakeRpiGpio], name: str) -> None:
    """Each edge with its line and stamp; one that is held is told, and stops no other."""
    lgpio, rpi_gpio = libraries
    lgpio.busy_for[9] = 99
    seen: list[tuple[int, bool, int]] = []
    watch = LineWatch(
        open_factory("gpio", name, ManualClock()), USABLE, lambda *move: seen.append(move), dark_low=[22]
    )
    if name == "lgpio":
        assert watch.refused == {9: "GPIO busy"}
        lgpio.callbacks[18](0, 18, 0, 5_000)
        assert seen == [(18, True, 5_000)]
        lgpio.levels[27] = 0.0
        assert watch.closed() == [27]
    watch.close()
    watch.close()
    pulls, down, up = (
        (lgpio.pulls, lgpio.SET_PULL_DOWN, lgpio.SET_PULL_UP)
        if name == "lgpio"
        else (rpi_gpio.pulls, rpi_gpio.PUD_DOWN, rpi_gpio.PUD_UP)
    )
    assert (pulls[22], pulls[18]) == (down, up)
    assert (lgpio.callbacks, rpi_gpio.callbacks) == ({}, {})


def test_edges_that_rpigpio_cannot_find(
    libraries: tuple[FakeLgpio, FakeRpiGpio], monkeypatch: pytest.MonkeyPatch
) -> None:
    """RPi.GPIO on a kernel that it does not know: the pin, the cause and the other library (F010)."""
    _, rpi_gpio = libraries

    def refused(gpio: int, *_: object, **__: object) -> None:
        if gpio == 17:
            raise RuntimeError("Failed to add edge detection")

    monkeypatch.setattr(rpi_gpio, "add_event_detect", refused)
    with pytest.raises(
        BackendError,
        match=r"^GPIO17 \(button page of seat 1\) cannot be used: Failed to add edge detection; "
        r'RPi.GPIO finds .* set stations.pin_factory = "lgpio"$',
    ):
        Board(open_factory("gpio", "rpigpio", ManualClock()), DEFAULT_STATIONS, ignore)


@pytest.mark.parametrize(
    "error",
    [
        FakeLgpio.error("'can not open gpiochip'"),
        PermissionError(13, "Permission denied", "/dev/gpiochip0"),
        FakeLgpio.error(),
    ],
    ids=["cannot be opened", "permission denied", "without a word"],
)
def test_a_chip_that_does_not_open(libraries: tuple[FakeLgpio, FakeRpiGpio], error: Exception) -> None:
    """No chip, no permission: one line with the reason and the remedy, and no mock in its place."""
    libraries[0].open_error = error
    with pytest.raises(BackendError) as caught:
        open_factory("gpio", "lgpio", ManualClock())
    text = str(caught.value)
    reason = str(error).strip("'") or "error"
    assert text.startswith(f"stations.pin_factory lgpio does not open: {reason}; check that")
    assert "group gpio" in text
    assert 'stations.backend = "mock"' in text
    assert "\n" not in text


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize("name", ["lgpio", "rpigpio"])
def test_not_a_raspberry_pi(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A machine that is no Pi is said to be none, by lgpio at its opening, by RPi.GPIO at its import."""
    from gpiozero.exc import PinUnknownPi
    from gpiozero.pins import local

    def unknown() -> int:
        raise PinUnknownPi("unable to locate Pi revision in /proc/device-tree or /proc/cpuinfo")

    monkeypatch.setattr(local, "get_pi_revision", unknown)
    if name == "rpigpio":
        refuse(monkeypatch, "RPi", RuntimeError("This module can only be run on a Raspberry Pi!"))
    with pytest.raises(
        BackendError, match=rf"^stations.pin_factory {name} does not open: .*Pi.*; check that"
    ):
        open_factory("gpio", name, ManualClock())


def refuse(monkeypatch: pytest.MonkeyPatch, module: str, error: Exception) -> None:
    """Let the import of `module` and of all in it raise `error`."""

    class Hook:
        def find_spec(self, name: str, *_: object) -> None:
            if name.split(".")[0] == module:
                raise error

    for name in [each for each in sys.modules if each.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Hook(), *sys.meta_path])


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize(
    ("name", "module", "extra"), [("lgpio", "lgpio", "pi"), ("rpigpio", "RPi", "pi-legacy")]
)
def test_a_library_that_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str, extra: str
) -> None:
    """A missing library names the extra to install; the other one, which is there, is not taken instead."""
    refuse(monkeypatch, module, ModuleNotFoundError(f"No module named '{module}'"))
    monkeypatch.setenv("GPIOZERO_PIN_FACTORY", "mock")
    with pytest.raises(BackendError) as caught:
        open_factory("gpio", name, ManualClock())
    assert str(caught.value) == (
        f"stations.pin_factory {name}: its Python module is not installed (No module named '{module}'); "
        f"install heek with the extra [{extra}], or on a machine without GPIO set stations.backend = "
        '"mock" to simulate the table'
    )


@pytest.mark.parametrize("said", ["mock", "pigpio", "nonsense"])
def test_the_environment_chooses_nothing(
    libraries: tuple[FakeLgpio, FakeRpiGpio], monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """GPIOZERO_PIN_FACTORY changes neither backend, and gpiozero's default factory is never made."""
    import gpiozero

    monkeypatch.setenv("GPIOZERO_PIN_FACTORY", said)
    monkeypatch.setattr(gpiozero.Device, "pin_factory", None)
    monkeypatch.setattr(gpiozero.Device, "_default_pin_factory", lambda: pytest.fail("gpiozero was asked"))
    mock = open_factory("mock", "lgpio", ManualClock())
    assert isinstance(mock, TableFactory)
    Board(mock, DEFAULT_STATIONS, ignore).close()
    real = open_factory("gpio", "lgpio", ManualClock())
    assert type(real).__name__ == "LGPIOFactory"
    board = Board(real, DEFAULT_STATIONS, ignore)
    assert libraries[0].modes[LEDS[1]] == "output"
    board.close()
    assert gpiozero.Device.pin_factory is None
