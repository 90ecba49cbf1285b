"""The stations on gpiozero's pins: raw edges with their own stamps in, brightness out.

Of gpiozero only the pins are used, none of its devices: no bounce time, no hold thread, and no reservations,
whose lock is taken again by the garbage collector if it finds a forgotten device at the wrong moment. A pin
reports each edge with the stamp of its backend, and the callback does no more than hand it over.

Whose stamp that is differs. lgpio hands on the kernel's own, taken in the interrupt: CLOCK_MONOTONIC in whole
nanoseconds, and so it reaches the session (gpiozero would make seconds of it, as a float). RPi.GPIO tells no
time and no level: there the stamp is the instant at which its callback came, and the level is read after
that. Such a stamp is late by the time that the interrupt, RPi.GPIO's thread and Python's lock take, never
early; and of two edges closer than that it may see one level twice. `heek doctor` measures how late.

The backend that is configured opens, or the start stops with a reason and a remedy. There is no
fall-back: gpiozero's own search for a pin factory is never asked.

No LED is lit before the table asks for it, whichever way it is wired. gpiozero's own pins cannot promise
that: they claim an output low and start PWM with an empty duty cycle, which an LED that is lit by a low
level shows as a flash. So a pin here is claimed at its dark level, and PWM goes on from there. When it is let
go it becomes an input that is pulled to where its LED is dark, or where its button is open; gpiozero would
let it float, and an LED glow.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Protocol

from heek.clock import MILLISECOND, SECOND, Clock, Duration, Instant
from heek.errors import BackendError
from heek.kinds import KINDS, Kind, Seat
from heek.stations import header_chip
from heek.stations.gestures import Edge

PWM_FREQUENCY_HZ: Final = 200
"""Fast enough that a dim LED does not flicker, slow enough for software PWM."""

BUSY_PAUSE: Final[Duration] = 250 * MILLISECOND
BUSY_PAUSES: Final = 24
"""How often the start waits for lines that somebody holds, over all of them: six seconds.

What holds a line at boot lets go of it soon (an overlay that is being changed, the table before this one that
is being killed); what holds it for longer will go on to."""


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
    except BackendError as error:
        raise BackendError(f"stations.pin_factory {pin_factory} does not open: {error}; {remedy}") from None
    except Exception as error:  # each backend has errors of its own; all mean that it does not open
        raise BackendError(
            f"stations.pin_factory {pin_factory} does not open: {_reason(error)}; check that this is a "
            "Raspberry Pi, that /dev/gpiochip* is there and that the user is in the group gpio "
            f"(sudo usermod -aG gpio USER); {remedy}"
        ) from None


@contextlib.contextmanager
def _pipe_put_away() -> Iterator[None]:
    """While lgpio is imported: a folder for its pipe, which is gone afterwards.

    Its import makes a pipe in the folder that LG_WD names, changes into that folder for good, and leaves the
    pipe behind when the process ends; where it may not write it fails. Both ends of the pipe are open when
    the import is done, so its name is of no more use.
    """
    try:
        here = os.open(".", os.O_RDONLY)
    except OSError:
        here = -1
    named = os.environ.get("LG_WD")
    folder = tempfile.mkdtemp(prefix=".lgpio-", dir=named if named and os.access(named, os.W_OK) else None)
    os.environ["LG_WD"] = folder
    try:
        yield
    finally:
        if here >= 0:
            os.fchdir(here)
            os.close(here)
        if named is None:
            del os.environ["LG_WD"]
        else:
            os.environ["LG_WD"] = named
        shutil.rmtree(folder, ignore_errors=True)


def _lgpio() -> Any:
    with _pipe_put_away():
        import lgpio
    from gpiozero.exc import PinPWMFixedValue
    from gpiozero.pins.lgpio import LGPIOFactory, LGPIOPin
    from gpiozero.pins.pi import PiPin

    pulls = {"up": lgpio.SET_PULL_UP, "down": lgpio.SET_PULL_DOWN, "floating": lgpio.SET_PULL_NONE}

    class Pin(LGPIOPin):  # type: ignore[misc]
        resting = "floating"
        _pwm: Any
        _pulsed = False
        """Whether lgpio's thread moves the line at this moment."""

        def close(self) -> None:
            handle = self.factory._handle
            if handle is None:
                return
            # To free it ends its PWM as well. And only a line that is claimed anew takes another pull.
            self._pwm, self._pulsed = None, False
            with contextlib.suppress(lgpio.error):
                lgpio.gpio_free(handle, self._number)
            lgpio.gpio_claim_input(handle, self._number, pulls[self.resting])

        def output_with_state(self, state: bool) -> None:
            lgpio.gpio_claim_output(self.factory._handle, self._number, int(state))

        def _call_when_changed(self, _chip: int, _gpio: int, level: int, ticks: int) -> None:
            PiPin._call_when_changed(self, ticks, level)

        def _set_frequency(self, value: float | None) -> None:
            if not value:
                self._still()
                self._pwm = None
            elif self.function != "output":
                raise PinPWMFixedValue(f"cannot start PWM on pin {self!r}")
            else:
                self._pwm = (value, 100 * lgpio.gpio_read(self.factory._handle, self._number))

        def _set_state(self, value: float) -> None:
            if not self._pwm:
                super()._set_state(value)
                return
            frequency, duty = self._pwm[0], round(100 * value)
            self._pwm = (frequency, duty)
            if 0 < duty < 100:
                lgpio.tx_pwm(self.factory._handle, self._number, frequency, duty)
                self._pulsed = True
                return
            # lgpio's thread would wake up and write two hundred times a second for an LED that is dark, and
            # would make it dark only at its next turn.
            self._still()
            lgpio.gpio_write(self.factory._handle, self._number, duty // 100)

        def _still(self) -> None:
            if self._pulsed:
                self._pulsed = False
                lgpio.tx_pwm(self.factory._handle, self._number, 0, 0)

    factory = LGPIOFactory(chip=header_chip.header(header_chip.chips()).number)
    # Which Pi it is gpiozero asks only for the first pin; a machine that is none shall be told so now.
    factory._get_revision()
    factory.pin_class = Pin
    return factory


def _rpigpio() -> Any:
    chip = next((chip for chip in header_chip.chips() if chip.label in header_chip.HEADER_LABELS), None)
    if chip is not None:
        # RPi.GPIO itself asks no chip; its namesake on lgpio would go by the board, not by the label.
        os.environ.setdefault("RPI_LGPIO_CHIP", str(chip.number))
    with _pipe_put_away():
        from RPi import GPIO
    from gpiozero.pins.pi import PiPin
    from gpiozero.pins.rpigpio import RPiGPIOFactory, RPiGPIOPin

    class Pin(RPiGPIOPin):  # type: ignore[misc]
        resting = "floating"
        _pwm: Any

        def close(self) -> None:
            # The end of its PWM pulls the line low; an input does not show that.
            GPIO.setup(self._number, GPIO.IN, self.GPIO_PULL_UPS[self.resting])
            self.frequency = None
            self.when_changed = None

        def _call_when_changed(self, _channel: int) -> None:
            at = time.monotonic_ns()
            PiPin._call_when_changed(self, at, GPIO.input(self._number))

        def _set_frequency(self, value: float | None) -> None:
            if self._pwm or not value:
                super()._set_frequency(value)
                return
            self._duty_cycle = float(GPIO.input(self._number))
            self._pwm = GPIO.PWM(self._number, value)
            self._pwm.start(100 * self._duty_cycle)
            self._frequency = value

    class Factory(RPiGPIOFactory):  # type: ignore[misc]
        def close(self) -> None:
            # Not GPIO.cleanup(), which would let every line float again.
            for pin in self.pins.values():
                pin.close()
            self.pins.clear()

    factory = Factory()
    factory.pin_class = Pin
    return factory


def _reason(error: BaseException) -> str:
    return str(error).strip("'\" ") or type(error).__name__


def _is_busy(error: BaseException) -> bool:
    """Does somebody else hold the line? lgpio says so in words alone."""
    return (isinstance(error, OSError) and error.errno == errno.EBUSY) or "gpio busy" in str(error).lower()


def put_out(factory: Any, leds: Sequence[int], *, active_high: bool = True) -> list[str]:
    """Make these LED lines dark, each by itself, and let them go; gives a line for each that would not."""
    troubles = []
    for number in leds:
        try:
            pin = factory.pin(number)
            pin.resting = "down" if active_high else "up"
            pin.output_with_state(not active_high)
            pin.close()
        except Exception as error:  # each backend has errors of its own
            told = header_chip.holder(_line_of(number)) if _is_busy(error) else ""
            troubles.append(f"GPIO{number}: " + (f"is held by {told}" if told else _reason(error)))
    _quietly(factory.close)
    return troubles


def _line_of(number: int) -> header_chip.Line | None:
    """What the kernel tells of a line of the header, if it can be asked."""
    try:
        chip = header_chip.header(header_chip.chips())
    except BackendError:
        return None
    return header_chip.lines(chip, [number]).get(number)


class Board:
    """All stations of the table. `on_edge` is called in whatever thread the backend reports from.

    `origin_ns` is where the table's instant 0 lies on the backend's clock, which is CLOCK_MONOTONIC for all
    of them. A line that somebody else holds is waited for, `BUSY_PAUSES` times over all lines, with
    `pause` (seconds); the LEDs that are claimed by then are dark. Raises BackendError, naming pin and seat,
    if a pin cannot be had; what had been claimed by then is let go again, dark.
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
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._factory = factory
        self._on_edge = on_edge
        self._origin_ns = origin_ns
        self._active_high = led_active_high
        self.led_pwm = led_pwm
        self._pause = pause
        self._pauses_left = BUSY_PAUSES
        self._users: dict[int, str] = {}
        self._buttons: dict[tuple[Seat, Kind], Any] = {}
        self._lamps: dict[Seat, Any] = {}
        self._levels: dict[Seat, float] = {}
        self._callbacks: list[Callable[[int, int], None]] = []
        # LEDs first: whatever a button has against it, they are dark by then.
        for station in stations:
            self._claim(station.led, f"LED of seat {station.seat}", partial(self._claim_lamp, station.seat))
        for station in stations:
            for kind in KINDS:
                number = getattr(station, kind.value)
                use = f"button {kind.value} of seat {station.seat}"
                self._claim(number, use, partial(self._claim_button, station.seat, kind))

    def _claim(self, number: int, use: str, claim: Callable[[Any], None]) -> None:
        """Have `claim` take a line, again and again while somebody else holds it."""
        try:
            if number in self._users:
                raise ValueError(f"it is the {self._users[number]} already")
            while True:
                try:
                    claim(self._factory.pin(number))
                    break
                except Exception as error:  # each backend has errors of its own
                    if not self._pauses_left or not _is_busy(error):
                        raise
                self._pauses_left -= 1
                self._pause(BUSY_PAUSE / SECOND)
            self._users[number] = use
        except Exception as error:
            holder = header_chip.holder(_line_of(number)) if _is_busy(error) else ""
            self.close()
            raise BackendError(_refusal(f"GPIO{number} ({use})", error, holder)) from None

    def _claim_lamp(self, seat: Seat, pin: Any) -> None:
        pin.resting = "down" if self._active_high else "up"
        pin.output_with_state(not self._active_high)
        self._lamps[seat], self._levels[seat] = pin, 0.0
        if self.led_pwm:
            pin.frequency = PWM_FREQUENCY_HZ

    def _claim_button(self, seat: Seat, kind: Kind, pin: Any) -> None:
        pin.resting = "up"
        pin.input_with_pull("up")
        self._buttons[seat, kind] = pin
        self._listen(seat, kind, pin)

    def _listen(self, seat: Seat, kind: Kind, pin: Any) -> None:
        def changed(stamp_ns: int, state: int) -> None:
            at: Instant = stamp_ns - self._origin_ns
            self._on_edge(Edge(at, seat, kind, not state))

        # gpiozero keeps only a weak reference to what it calls.
        self._callbacks.append(changed)
        pin.bounce = None
        pin.edges = "both"
        pin.when_changed = changed

    def closed_contacts(self) -> list[tuple[Seat, Kind]]:
        """The contacts that are closed at this moment."""
        return [key for key, pin in self._buttons.items() if not pin.state]

    def light(self, seat: Seat, level: float) -> bool:
        """Set an LED to 0.0 (off) to 1.0; writes nothing, and says so, if it shows that already."""
        if self._levels.get(seat) == level:
            return False
        self._levels[seat] = level
        pin = self._lamps[seat]
        if self.led_pwm:
            pin.state = level if self._active_high else 1.0 - level
        else:
            pin.state = (level >= 0.5) is self._active_high
        return True

    def close(self) -> None:
        """Switch every LED off and let all pins go; may be called twice and never raises."""
        for seat, pin in self._lamps.items():
            _quietly(partial(self.light, seat, 0.0))
            _quietly(pin.close)
        for pin in self._buttons.values():
            _quietly(partial(_deafen, pin))
            _quietly(pin.close)
        self._lamps, self._buttons, self._users, self._callbacks = {}, {}, {}, []
        _quietly(self._factory.close)


class LineWatch:
    """Any lines of the header as inputs that are pulled up: for somebody who does not know what hangs there.

    `on_move` gets the line's number, whether it is closed to ground, and the stamp in nanoseconds, in
    whatever thread the backend reports from. `refused` are the lines that cannot be had, with reasons.
    """

    def __init__(
        self,
        factory: Any,
        numbers: Sequence[int],
        on_move: Callable[[int, bool, int], None],
        *,
        dark_low: Sequence[int] = (),
    ) -> None:
        self._factory = factory
        self._pins: dict[int, Any] = {}
        self._callbacks: list[Callable[[int, int], None]] = []
        self.refused: dict[int, str] = {}
        for number in numbers:
            try:
                pin = factory.pin(number)
                pin.resting = "down" if number in dark_low else "up"
                pin.input_with_pull("up")
                self._pins[number] = pin
                self._listen(number, pin, on_move)
            except Exception as error:  # each backend has errors of its own
                self.refused[number] = _reason(error)

    def _listen(self, number: int, pin: Any, on_move: Callable[[int, bool, int], None]) -> None:
        def changed(stamp_ns: int, state: int) -> None:
            on_move(number, not state, stamp_ns)

        self._callbacks.append(changed)
        pin.bounce = None
        pin.edges = "both"
        pin.when_changed = changed

    def closed(self) -> list[int]:
        """The lines that are closed to ground at this moment."""
        return [number for number, pin in self._pins.items() if not pin.state]

    def close(self) -> None:
        """Let all lines go; may be called twice and never raises."""
        for pin in self._pins.values():
            _quietly(partial(_deafen, pin))
            _quietly(pin.close)
        self._pins, self._callbacks = {}, []
        _quietly(self._factory.close)


def _refusal(using: str, error: BaseException, holder: str) -> str:
    """Why a line cannot be used and what to do, in one line."""
    if holder:
        return (
            f"{using} cannot be used: it is held by {holder}; stop that, take its overlay out of config.txt, "
            "or give the station another pin (`heek doctor` lists who holds what)"
        )
    if "edge detection" in str(error):
        return (
            f"{using} cannot be used: {_reason(error)}; RPi.GPIO finds no edges on a Pi 5 nor on kernels "
            'from 6.6 on: set stations.pin_factory = "lgpio"'
        )
    return (
        f"{using} cannot be used: {_reason(error)}; give the station another pin, or see what `heek doctor` "
        "says of it"
    )


def _deafen(pin: Any) -> None:
    # gpiozero's lgpio pins go on listening when they are closed.
    pin.when_changed = None


def _quietly(step: Callable[[], object]) -> None:
    """The table is being put away: one pin that fails must not keep the others lit."""
    try:
        step()
    except Exception:  # the pin is gone already
        return
