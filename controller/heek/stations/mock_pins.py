"""gpiozero's mock pins made honest: stamps of their own, and a finger that stays on the button.

The stock mock takes its stamps from the real clock, keeps every state it ever had, and opens a contact
when the program sets a pull, so that a button held at start-up silently is not held any more. These
pins stamp with the table's clock (or with the stamp of a late edge), keep nothing, and stay where the
outside world has put them. As outputs they do what the pins of `heek.stations.gpio` do on a real
backend: they are claimed at a level, PWM starts from it, and closed they rest on a pull. Like those they
report whole nanoseconds.
"""

from __future__ import annotations

from typing import Any, cast

from gpiozero.exc import PinPWMFixedValue
from gpiozero.pins.mock import MockFactory, MockPWMPin
from gpiozero.pins.pi import PiPin

from heek.clock import SECOND, Clock, Instant


class TablePin(MockPWMPin):  # type: ignore[misc]
    """A pin of the mock header: driven from outside as an input, read from outside as an output."""

    resting = "floating"
    """The pull of the input that it becomes when it is closed."""

    def __init__(self, factory: TableFactory, info: Any) -> None:
        self._driven: bool | None = None
        self._state: float
        self._last_change: float
        self.states: list[object]
        super().__init__(factory, info)

    def drive(self, level: bool, stamp: Instant | None = None) -> None:
        """The outside world puts the line to `level`; `stamp` is when it did, by default now."""
        self._driven = level
        if self._function != "input":
            return
        factory = cast("TableFactory", self.factory)
        factory.stamp = stamp
        try:
            if level:
                self.drive_high()
            else:
                self.drive_low()
        finally:
            factory.stamp = None

    @property
    def level(self) -> float:
        """What a meter on the line would show: 0.0 to 1.0."""
        return float(self._state)

    def close(self) -> None:
        resting = self.resting
        super().close()
        if self.function == "input":
            self.pull = resting

    def _call_when_changed(self) -> None:
        PiPin._call_when_changed(self, self.factory.stamp_ns(), self._state)

    def output_with_state(self, state: bool) -> None:
        self._change_state(float(state))
        self.function = "output"

    def _set_frequency(self, value: float | None) -> None:
        if value is not None and self._function != "output":
            raise PinPWMFixedValue(f"cannot start PWM on pin {self!r}")
        self._frequency = value

    def _set_pull(self, value: str) -> None:
        driven = self._driven
        super()._set_pull(value)
        if driven is not None and self._state != driven:
            self._state = driven

    def _change_state(self, value: float) -> bool:
        if self._state == value:
            return False
        self._state = value
        self._last_change = self.factory.ticks()
        return True

    def clear_states(self) -> None:
        self._last_change = 0.0
        self.states = []


class TableFactory(MockFactory):  # type: ignore[misc]
    """Mock pins of a Raspberry Pi 4; their ticks are seconds on the monotonic clock, as lgpio's are."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.stamp: Instant | None = None
        """While a late edge is handed over: when it really happened, on the table's clock."""
        super().__init__(revision="c03114", pin_class=TablePin)

    def ticks(self) -> float:
        return self.stamp_ns() / SECOND

    def stamp_ns(self) -> int:
        """The stamp of an edge that is handed over now, on the clock that the kernel stamps with."""
        return self._clock.origin_ns + (self._clock.now() if self.stamp is None else self.stamp)

    def line(self, number: int) -> TablePin:
        """The line of a GPIO number, made if it is not claimed yet."""
        return cast("TablePin", self.pin(number))

    def claimed(self) -> list[str]:
        """The pins that some device holds, by their names; none once everything was closed."""
        return sorted(
            info.name
            for info, holders in self._reservations.items()
            if any(holder() is not None for holder in holders)
        )
