"""The pin map: the only place where a pin of the table is written.

Numbers are GPIO numbers (BCM), not places on the header; `HEADER` knows the places. Nothing here
touches a pin: config.py takes the defaults and lets `check_pins` judge what a file says instead, and
`heek.wiring.documents` draws the pinout from the same values.

Why these lines (hardware/README.md tells it at length):

* GPIO2 and 3 carry the OLED's I2C and have fixed pull-ups; GPIO14 and 15 are the UART.
* At power-on the chip itself pulls GPIO0-8 up and GPIO9-27 down, and for a few seconds nothing of
  ours runs. So every LED is on a line that is pulled down (it stays dark), and all five free lines
  that are pulled up serve buttons; the other ten buttons are pulled up by the boot partition.
* Each station's four lines and its ground lie side by side on the header, so that one short cable
  goes to each side of the table.
* GPIO18 and 19 stay free: two separate hardware PWM channels, for a later servo or buzzer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from heek.kinds import KINDS, Kind, Seat

Gpio: TypeAlias = int
"""A line of the Pi's header by its GPIO (BCM) number; 2 to 27 can be used."""

GPIO_MIN: Final[Gpio] = 2
GPIO_MAX: Final[Gpio] = 27


@dataclass(frozen=True, slots=True)
class StationPins:
    """The four lines of one station, as GPIO numbers."""

    seat: Seat
    pen: Gpio
    page: Gpio
    beetle: Gpio
    led: Gpio

    def button(self, kind: Kind) -> Gpio:
        """The line of one button."""
        return {Kind.PEN: self.pen, Kind.PAGE: self.page, Kind.BEETLE: self.beetle}[kind]

    @property
    def buttons(self) -> tuple[Gpio, ...]:
        """The three button lines, from the player's left."""
        return tuple(self.button(kind) for kind in KINDS)

    @property
    def roles(self) -> tuple[tuple[str, Gpio], ...]:
        """All four lines with the configuration's word for each: pen, page, beetle, led."""
        return (*((kind.value, self.button(kind)) for kind in KINDS), ("led", self.led))


DEFAULT_STATIONS: Final[tuple[StationPins, ...]] = (
    StationPins(seat=1, pen=4, page=17, beetle=27, led=22),
    StationPins(seat=2, pen=24, page=25, beetle=8, led=23),
    StationPins(seat=3, pen=9, page=11, beetle=7, led=10),
    StationPins(seat=4, pen=5, page=6, beetle=13, led=12),
    StationPins(seat=5, pen=16, page=20, beetle=21, led=26),
)
"""The table as it is built: five stations, seat 1 first."""

OLED_SDA: Final[Gpio] = 2
OLED_SCL: Final[Gpio] = 3
UART_TX: Final[Gpio] = 14
UART_RX: Final[Gpio] = 15

RESERVED: Final[dict[Gpio, str]] = {
    OLED_SDA: "the OLED's I2C (SDA)",
    OLED_SCL: "the OLED's I2C (SCL)",
    UART_TX: "the serial line to the KI (UART TX)",
    UART_RX: "the serial line to the KI (UART RX)",
}
"""Lines that no station may use, and what they are for."""

USABLE: Final[tuple[Gpio, ...]] = tuple(
    gpio for gpio in range(GPIO_MIN, GPIO_MAX + 1) if gpio not in RESERVED
)
"""The 22 lines that stations may use, ascending."""


def free_lines(stations: Sequence[StationPins]) -> tuple[Gpio, ...]:
    """The usable lines that these stations leave over, ascending."""
    used = {gpio for station in stations for _, gpio in station.roles}
    return tuple(gpio for gpio in USABLE if gpio not in used)


def check_pins(stations: Sequence[StationPins]) -> list[str]:
    """Every mistake in a pin map, one line each in the order of the stations; empty if it is right.

    Refused are a line outside GPIO2 to 27, one that is reserved (`RESERVED`), and one that is used
    twice. Whether the seats themselves make sense is the configuration's to judge.
    """
    mistakes: list[str] = []
    users: dict[Gpio, str] = {}
    advice = _advice(free_lines(stations))
    for station in stations:
        for role, gpio in station.roles:
            user = f"seat {station.seat} {role}"
            if not GPIO_MIN <= gpio <= GPIO_MAX:
                mistakes.append(f"{user}: {_outside(gpio)}; {advice}")
            elif gpio in RESERVED:
                mistakes.append(f"{user}: GPIO{gpio} is reserved for {RESERVED[gpio]}; {advice}")
            elif gpio in users:
                mistakes.append(f"{user}: GPIO{gpio} is already used by {users[gpio]}; {advice}")
            else:
                users[gpio] = user
    return mistakes


def ranges(lines: Iterable[Gpio]) -> str:
    """Lines in the notation of the Pi's boot partition: ascending, runs joined, as `4-9,11`."""
    runs: list[list[Gpio]] = []
    for gpio in sorted(set(lines)):
        if runs and gpio == runs[-1][-1] + 1:
            runs[-1].append(gpio)
        else:
            runs.append([gpio])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _advice(free: tuple[Gpio, ...]) -> str:
    return f"free: GPIO {ranges(free).replace(',', ', ')}" if free else "no other line is free"


def _outside(gpio: int) -> str:
    if gpio in (0, 1):
        return f"GPIO{gpio} belongs to the EEPROM of a HAT; use GPIO{GPIO_MIN} to {GPIO_MAX}"
    text = f"{gpio} is no GPIO number of the header ({GPIO_MIN} to {GPIO_MAX})"
    if 1 <= gpio <= len(HEADER):
        # People read numbers off a drawing of the header; tell them what they meant.
        place = HEADER[gpio - 1]
        text += f"; header pin {gpio} is {place.name}"
    return text


class Use(Enum):
    """What a place on the 40-pin header is for at this table."""

    BUTTON = "button"
    LED = "LED"
    OLED = "OLED"
    SERIAL = "serial"
    GROUND = "ground"
    POWER_3V3 = "3.3 V"
    POWER_5V = "5 V"
    EEPROM = "HAT EEPROM"
    FREE = "free"


@dataclass(frozen=True, slots=True)
class HeaderPin:
    """One place on the 40-pin header."""

    number: int
    """1 to 40; odd ones are the inner row, pin 1 is at the end of the SD card."""
    name: str
    """`3V3`, `5V`, `GND` or `GPIO4`."""

    @property
    def gpio(self) -> Gpio | None:
        """The GPIO number, 0 to 27; None for supply and ground."""
        return int(self.name.removeprefix("GPIO")) if self.name.startswith("GPIO") else None


# The header of every Pi with 40 pins, left column and right column of each row in turn.
_HEADER_ROWS: Final = """
    3V3    5V
    GPIO2  5V
    GPIO3  GND
    GPIO4  GPIO14
    GND    GPIO15
    GPIO17 GPIO18
    GPIO27 GND
    GPIO22 GPIO23
    3V3    GPIO24
    GPIO10 GND
    GPIO9  GPIO25
    GPIO11 GPIO8
    GND    GPIO7
    GPIO0  GPIO1
    GPIO5  GND
    GPIO6  GPIO12
    GPIO13 GND
    GPIO19 GPIO16
    GPIO26 GPIO20
    GND    GPIO21
"""

HEADER: Final[tuple[HeaderPin, ...]] = tuple(
    HeaderPin(number, name) for number, name in enumerate(_HEADER_ROWS.split(), start=1)
)
"""All 40 places, pin 1 first."""

STATION_GROUNDS: Final[dict[Seat, int]] = {1: 9, 2: 20, 3: 25, 4: 30, 5: 39}
"""Header pin of the ground that runs in each station's cable."""

OLED_3V3: Final[int] = 1
OLED_GROUND: Final[int] = 6
SERIAL_GROUND: Final[int] = 14
"""Header pins of supply and ground beside the OLED's and the serial line's own."""


def header_pin(gpio: Gpio) -> int:
    """The place on the header, 1 to 40, of a GPIO number; raises ValueError outside 0 to 27."""
    for pin in HEADER:
        if pin.gpio == gpio:
            return pin.number
    raise ValueError(f"GPIO{gpio} is not on the header; it has GPIO0 to GPIO{GPIO_MAX}")


def pulled_up_at_power_on(gpio: Gpio) -> bool:
    """Whether the chip pulls this line up before any software runs (else it pulls it down)."""
    return gpio <= 8


def use_of(pin: HeaderPin, stations: Sequence[StationPins] = DEFAULT_STATIONS) -> tuple[Use, str]:
    """What a place on the header is for, and the words for a drawing or a table.

    The words name seat and part (`seat 2 page`), or the signal and whose it is.
    """
    if pin.gpio is None:
        return _supply(pin, stations)
    for station in stations:
        for role, gpio in station.roles:
            if gpio == pin.gpio:
                return (Use.LED if role == "led" else Use.BUTTON), f"seat {station.seat} {role}"
    if pin.gpio in (0, 1):
        return Use.EEPROM, "HAT EEPROM, leave open"
    signals = {
        OLED_SDA: (Use.OLED, "OLED SDA"),
        OLED_SCL: (Use.OLED, "OLED SCL"),
        UART_TX: (Use.SERIAL, "serial TX to the KI"),
        UART_RX: (Use.SERIAL, "serial RX from the KI"),
    }
    return signals.get(pin.gpio, (Use.FREE, "free"))


def _supply(pin: HeaderPin, stations: Sequence[StationPins]) -> tuple[Use, str]:
    if pin.name == "GND":
        seats = {station.seat for station in stations}
        cables = [f"seat {seat}" for seat, place in STATION_GROUNDS.items() if place == pin.number]
        if pin.number == OLED_GROUND:
            cables.append("OLED")
        if pin.number == SERIAL_GROUND:
            cables.append("serial")
        cables = [cable for cable in cables if not cable.startswith("seat") or int(cable[-1]) in seats]
        return Use.GROUND, f"{cables[0]} ground" if cables else "ground, spare"
    if pin.name == "3V3":
        return Use.POWER_3V3, "OLED supply 3.3 V" if pin.number == OLED_3V3 else "3.3 V, spare"
    return Use.POWER_5V, "5 V, leave open"
