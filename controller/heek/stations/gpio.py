"""The stations on gpiozero's pins: raw edges with their own stamps in, brightness out.

Nothing of gpiozero's own button logic is used: no bounce time, no hold thread. A pin reports each edge
with the stamp of its backend, and the callback does no more than hand it over.

The backend that is configured opens, or the start stops with a reason and a remedy. There is no
fall-back: gpiozero's own search for a pin factory is never asked.

No LED is lit before the table asks for it, whichever way it is wired. gpiozero's own pins cannot promise
that: they claim an output low and start PWM with an empty duty cycle, which an LED that is lit by a low
level shows as a flash. So a pin here is claimed at its dark level, and PWM goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

from heek.clock import SECOND, Clock, Instant
from heek.errors import BackendError
from heek.kinds import KINDS, Kind, Seat
from heek.stations.gestures import Edge

PWM_FREQUENCY_HZ: Final = 200
"""Fast enough that a dim LED does not flicker, slow enough for software PWM."""


class Pins(Protocol):
    """The GPIO numbers of one station (see `heek.wiring.pin_map.StationPins`)."""

    @property
    def seat(self) -> Seat: ...
    @property
    def pen(self) -> int: ...
    @property
    def page(self) -> int: ...
    @property
    def beetle(self) -> int: ...
    @property
    def led(self) -> int: ...


def open_factory(backend: str, pin_factory: str, clock: Clock) -> Any:
    """gpiozero's pin factory for `stations.backend` and `stations.pin_factory`.

    Raises BackendError, with what to do, if that very one cannot be opened.
    """
    if backend == "mock":
        from heek.stations.mock_pins import TableFactory

        return TableFactory(clock)
    remedy = 'on a machine without GPIO set stations.backend = "mock" to simulate the table'
    try:
        return _lgpio() if pin_factory == "lgpio" else _rpigpio()
    except ImportError as error:
        extra = "pi" if pin_factory == "lgpio" else "pi-legacy"
        raise BackendError(
            f"stations.pin_factory {pin_factory}: its Python module is not installed ({error}); "
            f"install heek with the extra [{extra}], or {remedy}"
        ) from None
    except Exception as error:  # each backend has errors of its own; all mean that it does not open
        raise BackendError(
            f"stations.pin_factory {pin_factory} does not open: {_reason(error)}; check that this is a "
            "Raspberry Pi, that /dev/gpiochip* is there and that the user is in the group gpio "
            f"(sudo usermod -aG gpio USER); {remedy}"
        ) from None


def _lgpio() -> Any:
    import lgpio
    from gpiozero.pins.lgpio import LGPIOFactory, LGPIOPin

    class Pin(LGPIOPin):  # type: ignore[misc]
        _pwm: Any

        def output_with_state(self, state: bool) -> None:
            lgpio.gpio_claim_output(self.factory._handle, self._number, int(state))

        def _set_frequency(self, value: float | None) -> None:
            if self._pwm or not value:
                super()._set_frequency(value)
                return
            duty = 100 * lgpio.gpio_read(self.factory._handle, self._number)
            lgpio.tx_pwm(self.factory._handle, self._number, value, duty)
            self._pwm = (value, duty)

    factory = LGPIOFactory()
    factory.pin_class = Pin
    return factory


def _rpigpio() -> Any:
    from gpiozero.pins.rpigpio import RPiGPIOFactory, RPiGPIOPin
    from RPi import GPIO

    class Pin(RPiGPIOPin):  # type: ignore[misc]
        _pwm: Any

        def close(self) -> None:
            # The end of its PWM pulls the line low; an input does not show that.
            GPIO.setup(self._number, GPIO.IN, GPIO.PUD_OFF)
            super().close()

        def _set_frequency(self, value: float | None) -> None:
            if self._pwm or not value:
                super()._set_frequency(value)
                return
            self._duty_cycle = float(GPIO.input(self._number))
            self._pwm = GPIO.PWM(self._number, value)
            self._pwm.start(100 * self._duty_cycle)
            self._frequency = value

    factory = RPiGPIOFactory()
    factory.pin_class = Pin
    return factory


def _reason(error: BaseException) -> str:
    return str(error).strip("'\" ") or type(error).__name__


class Board:
    """All stations of the table. `on_edge` is called in whatever thread the backend reports from.

    `origin_ns` is where the table's instant 0 lies on the backend's clock, which is CLOCK_MONOTONIC for all
    of them. Raises BackendError, naming pin and seat, if a pin cannot be had; what had been claimed by
    then is let go again, dark.
    """

    def __init__(
        self,
        factory: Any,
        stations: Sequence[Pins],
        on_edge: Callable[[Edge], None],
        *,
        origin_ns: int = 0,
        led_active_high: bool = True,
        led_pwm: bool = True,
    ) -> None:
        from gpiozero import InputDevice, OutputDevice

        self._factory = factory
        self._on_edge = on_edge
        self._origin_ns = origin_ns
        self._active_high = led_active_high
        self.led_pwm = led_pwm
        self._buttons: dict[tuple[Seat, Kind], Any] = {}
        self._lamps: dict[Seat, Any] = {}
        self._levels: dict[Seat, float] = {}
        self._callbacks: list[Callable[[float, int], None]] = []
        using = ""
        try:
            for station in stations:
                using = f"GPIO{station.led} (LED of seat {station.seat})"
                self._lamps[station.seat] = OutputDevice(
                    station.led, active_high=led_active_high, pin_factory=factory
                )
                if led_pwm:
                    self._lamps[station.seat].pin.frequency = PWM_FREQUENCY_HZ
                self._levels[station.seat] = 0.0
            for station in stations:
                for kind in KINDS:
                    number = getattr(station, kind.value)
                    using = f"GPIO{number} (button {kind.value} of seat {station.seat})"
                    button = InputDevice(number, pull_up=True, pin_factory=factory)
                    self._buttons[station.seat, kind] = button
                    self._listen(station.seat, kind, button.pin)
        except Exception as error:  # each backend has errors of its own
            self.close()
            raise BackendError(
                f"{using} cannot be used: {_reason(error)}; if it is busy, another program or an overlay "
                "in config.txt holds it: stop that, or give the station another pin"
            ) from None

    def _listen(self, seat: Seat, kind: Kind, pin: Any) -> None:
        def changed(ticks: float, state: int) -> None:
            at: Instant = round(ticks * SECOND) - self._origin_ns
            self._on_edge(Edge(at, seat, kind, not state))

        # gpiozero keeps only a weak reference to what it calls.
        self._callbacks.append(changed)
        pin.bounce = None
        pin.edges = "both"
        pin.when_changed = changed

    def closed_contacts(self) -> list[tuple[Seat, Kind]]:
        """The contacts that are closed at this moment."""
        return [key for key, button in self._buttons.items() if not button.pin.state]

    def light(self, seat: Seat, level: float) -> bool:
        """Set an LED to 0.0 (off) to 1.0; writes nothing, and says so, if it shows that already."""
        if self._levels.get(seat) == level:
            return False
        self._levels[seat] = level
        pin = self._lamps[seat].pin
        if self.led_pwm:
            pin.state = level if self._active_high else 1.0 - level
        else:
            pin.state = (level >= 0.5) is self._active_high
        return True

    def close(self) -> None:
        """Switch every LED off and let all pins go; may be called twice and never raises."""
        for seat, lamp in self._lamps.items():
            _quietly(partial(self.light, seat, 0.0))
            _quietly(lamp.close)
        for button in self._buttons.values():
            _quietly(partial(_deafen, button))
            _quietly(button.close)
        self._lamps, self._buttons, self._callbacks = {}, {}, []
        _quietly(self._factory.close)


def _deafen(button: Any) -> None:
    # gpiozero's lgpio pins go on listening when they are closed.
    button.pin.when_changed = None


def _quietly(step: Callable[[], object]) -> None:
    """The table is being put away: one pin that fails must not keep the others lit."""
    try:
        step()
    except Exception:  # the pin is gone already
        return
