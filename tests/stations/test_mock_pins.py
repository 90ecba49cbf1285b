"""The mock pins refuse what real ones refuse, and stay where the outside world has put them."""

from __future__ import annotations

import pytest
from gpiozero.exc import PinFixedPull, PinInvalidPin, PinPWMFixedValue, PinSetInput

from heek.clock import SECOND, ManualClock, StartedClock
from heek.stations.mock_pins import TableFactory

PEN, LED = 4, 22


def test_a_held_contact_stays_closed_when_a_pull_is_set() -> None:
    """A finger is stronger than a pull-up: the contact is closed before, while and after it is set."""
    factory = TableFactory(ManualClock())
    line = factory.line(PEN)
    line.drive(False)
    line.pull = "up"
    assert not line.state
    line.drive(True)
    assert line.state


def test_an_open_contact_follows_the_pull() -> None:
    """Nobody touches the line: it is where the pull puts it."""
    line = TableFactory(ManualClock()).line(PEN)
    line.pull = "up"
    assert line.state
    line.pull = "down"
    assert not line.state


def test_ticks_are_the_tables_clock() -> None:
    """Stamps are seconds on the clock that the table was given, origin included."""
    world = ManualClock(now=90 * SECOND)
    clock = StartedClock(world)
    factory = TableFactory(clock)
    world.advance_to(92 * SECOND)
    assert factory.ticks() == 92.0
    factory.stamp = SECOND
    assert factory.ticks() == 91.0


def test_an_edge_is_stamped_now_or_when_it_happened() -> None:
    """`drive` reports one edge, with the stamp it was given, and the stamp does not stick."""
    clock = ManualClock(now=5 * SECOND)
    factory = TableFactory(clock)
    line = factory.line(PEN)
    line.pull = "up"
    seen: list[tuple[int, bool]] = []

    def changed(stamp_ns: int, state: bool) -> None:
        seen.append((stamp_ns, state))

    line.when_changed = changed
    line.drive(False)
    line.drive(True, 2 * SECOND + 1)
    line.drive(True)
    line.drive(False)
    assert seen == [(5_000_000_000, False), (2_000_000_001, True), (5_000_000_000, False)]
    assert factory.stamp is None


def test_the_stamp_does_not_stick_when_the_listener_fails() -> None:
    """A listener that raises leaves the next edge its own stamp."""
    clock = ManualClock(now=5 * SECOND)
    factory = TableFactory(clock)
    line = factory.line(PEN)
    line.pull = "up"

    def changed(_ticks: float, _state: bool) -> None:
        raise ValueError("deaf")

    line.when_changed = changed
    with pytest.raises(ValueError, match="deaf"):
        line.drive(False, SECOND)
    assert factory.stamp is None


def test_an_output_is_not_driven_from_outside() -> None:
    """A finger on an LED's line changes nothing while we drive it; afterwards it shows."""
    line = TableFactory(ManualClock()).line(LED)
    line.output_with_state(True)
    line.drive(False)
    assert line.level == 1.0
    line.function = "input"
    assert not line.state


def test_what_a_real_pin_refuses() -> None:
    """An input cannot be written or pulsed, an output has no pull, and a number must be on the header."""
    factory = TableFactory(ManualClock())
    line = factory.line(LED)
    with pytest.raises(PinSetInput):
        line.state = 1
    with pytest.raises(PinPWMFixedValue):
        line.frequency = 200
    line.output_with_state(False)
    with pytest.raises(PinFixedPull):
        line.pull = "up"
    with pytest.raises(PinFixedPull):
        factory.line(2).pull = "down"
    with pytest.raises(PinInvalidPin):
        factory.line(28)


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_pwm_starts_and_ends_at_the_level_of_the_line(level: float) -> None:
    """Switching PWM on or off changes no level, as with the pins that the table has on a real backend."""
    line = TableFactory(ManualClock()).line(LED)
    line.output_with_state(bool(level))
    line.frequency = 200
    assert (line.level, line.frequency) == (level, 200)
    line.state = 0.25
    line.frequency = None
    assert (line.level, line.frequency) == (0.25, None)


def test_a_line_keeps_no_history() -> None:
    """An hour of blinking must not fill the memory: the stock mock keeps every state it ever had."""
    line = TableFactory(ManualClock()).line(LED)
    line.output_with_state(False)
    for _ in range(100):
        line.state = 1
        line.state = 0
    assert line.states == []


def test_the_same_number_is_the_same_line() -> None:
    """The outside world and the program talk of one line."""
    factory = TableFactory(ManualClock())
    assert factory.line(PEN) is factory.line(PEN)
