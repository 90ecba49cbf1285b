"""The pin map is right by its own rules, and what it refuses it names."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.kinds import KINDS, SEATS
from heek.wiring.pin_map import (
    DEFAULT_STATIONS,
    HEADER,
    RESERVED,
    STATION_GROUNDS,
    USABLE,
    StationPins,
    Use,
    check_pins,
    free_lines,
    header_pin,
    pulled_up_at_power_on,
    ranges,
    use_of,
)


def test_default_map_has_no_mistake_and_leaves_two_lines() -> None:
    """The table as built has five stations on 20 of 22 lines, and its own check finds nothing wrong."""
    assert check_pins(DEFAULT_STATIONS) == []
    assert [station.seat for station in DEFAULT_STATIONS] == list(SEATS)
    assert len(USABLE) == 22
    assert free_lines(DEFAULT_STATIONS) == (18, 19)


def test_no_led_can_glow_before_software_runs() -> None:
    """Every LED is on a line that the chip pulls down at power-on."""
    assert not [station for station in DEFAULT_STATIONS if pulled_up_at_power_on(station.led)]


def test_all_lines_pulled_up_at_power_on_are_buttons() -> None:
    """The five free lines that the chip pulls up are all spent on buttons."""
    buttons = {gpio for station in DEFAULT_STATIONS for gpio in station.buttons}
    assert {gpio for gpio in USABLE if pulled_up_at_power_on(gpio)} <= buttons


def test_each_station_lies_together_on_the_header() -> None:
    """A station's four lines and its ground span five rows of the header at most, and share no ground."""
    for station in DEFAULT_STATIONS:
        places = [header_pin(gpio) for _, gpio in station.roles] + [STATION_GROUNDS[station.seat]]
        rows = [(place - 1) // 2 for place in places]
        assert max(rows) - min(rows) <= 4, station
        assert HEADER[STATION_GROUNDS[station.seat] - 1].name == "GND"
    assert len(set(STATION_GROUNDS.values())) == len(SEATS)


def test_header_is_the_real_one() -> None:
    """The header has 40 places with GPIO0 to 27 once each, 8 grounds, two of each supply."""
    names = [pin.name for pin in HEADER]
    assert [pin.number for pin in HEADER] == list(range(1, 41))
    assert sorted(pin.gpio for pin in HEADER if pin.gpio is not None) == list(range(28))
    assert (names.count("GND"), names.count("3V3"), names.count("5V")) == (8, 2, 2)
    # Three places that everybody knows by heart.
    assert (header_pin(4), header_pin(17), header_pin(21)) == (7, 11, 40)


def test_header_pin_refuses_what_is_not_there() -> None:
    """A GPIO that the header lacks is a ValueError that says what there is."""
    with pytest.raises(ValueError, match="GPIO28 is not on the header"):
        header_pin(28)


def test_roles_and_buttons_follow_the_players_left() -> None:
    """Buttons come as pen, page, beetle, and the LED last."""
    station = StationPins(seat=3, pen=4, page=5, beetle=6, led=7)
    assert station.roles == (("pen", 4), ("page", 5), ("beetle", 6), ("led", 7))
    assert station.buttons == tuple(station.button(kind) for kind in KINDS) == (4, 5, 6)


def test_pin_used_twice_names_both_users() -> None:
    """The second user of a line is told who has it and what is free."""
    stations = [*DEFAULT_STATIONS[:4], replace(DEFAULT_STATIONS[4], beetle=DEFAULT_STATIONS[0].pen)]
    assert check_pins(stations) == [
        "seat 5 beetle: GPIO4 is already used by seat 1 pen; free: GPIO 18-19, 21",
    ]


@pytest.mark.parametrize(
    ("gpio", "words"),
    [
        (2, "GPIO2 is reserved for the OLED's I2C (SDA)"),
        (3, "GPIO3 is reserved for the OLED's I2C (SCL)"),
        (14, "GPIO14 is reserved for the serial line to the KI (UART TX)"),
        (15, "GPIO15 is reserved for the serial line to the KI (UART RX)"),
        (0, "GPIO0 belongs to the EEPROM of a HAT"),
        (1, "GPIO1 belongs to the EEPROM of a HAT"),
        (37, "37 is no GPIO number of the header (2 to 27); header pin 37 is GPIO26"),
        (28, "28 is no GPIO number of the header (2 to 27); header pin 28 is GPIO1"),
        (99, "99 is no GPIO number of the header (2 to 27)"),
        (-1, "-1 is no GPIO number of the header (2 to 27)"),
    ],
)
def test_each_wrong_line_is_named_with_its_reason(gpio: int, words: str) -> None:
    """A reserved or impossible line is refused with seat, part and reason."""
    (mistake,) = check_pins([replace(DEFAULT_STATIONS[1], led=gpio)])
    assert mistake.startswith(f"seat 2 led: {words}")
    assert "; free: GPIO " in mistake


def test_all_mistakes_are_told_at_once() -> None:
    """One call lists every mistake, in the order of stations and parts."""
    stations = [
        StationPins(1, pen=2, page=4, beetle=4, led=30),
        StationPins(2, pen=4, page=5, beetle=6, led=14),
    ]
    assert [mistake.split(":")[0] for mistake in check_pins(stations)] == [
        "seat 1 pen",
        "seat 1 beetle",
        "seat 1 led",
        "seat 2 pen",
        "seat 2 led",
    ]


@given(st.permutations(USABLE), st.integers(1, 5))
def test_any_distinct_usable_lines_are_accepted(lines: list[int], count: int) -> None:
    """Every choice of distinct usable lines makes a table; what is left over is exactly the rest."""
    stations = [StationPins(seat, *lines[4 * seat - 4 : 4 * seat]) for seat in range(1, count + 1)]
    assert check_pins(stations) == []
    assert set(free_lines(stations)) == set(lines[4 * count :])


@given(st.lists(st.integers(-5, 45), min_size=8, max_size=8))
def test_a_map_is_accepted_exactly_when_it_is_sound(lines: list[int]) -> None:
    """check_pins is silent if and only if all lines are distinct and usable."""
    stations = [StationPins(1, *lines[:4]), StationPins(2, *lines[4:])]
    sound = len(set(lines)) == 8 and set(lines) <= set(USABLE)
    assert (check_pins(stations) == []) is sound


@given(st.sets(st.integers(0, 27)))
def test_ranges_say_exactly_these_lines(lines: set[int]) -> None:
    """The boot partition's notation, read back, gives the same lines in ascending order."""
    back: list[int] = []
    for part in filter(None, ranges(lines).split(",")):
        first, _, last = part.partition("-")
        back.extend(range(int(first), int(last or first) + 1))
    assert back == sorted(lines)


def test_every_place_has_a_use_that_fits() -> None:
    """Uses add up: 15 buttons, 5 LEDs, 2 free; a reserved line is never a station's."""
    uses = [use_of(pin)[0] for pin in HEADER]
    assert (uses.count(Use.BUTTON), uses.count(Use.LED), uses.count(Use.FREE)) == (15, 5, 2)
    assert {use_of(pin)[0] for pin in HEADER if pin.gpio in RESERVED} == {Use.OLED, Use.SERIAL}


def test_ground_of_an_absent_station_is_spare() -> None:
    """With two stations the grounds of the other three are not given to anybody."""
    assert use_of(HEADER[38], DEFAULT_STATIONS) == (Use.GROUND, "seat 5 ground")
    assert use_of(HEADER[38], DEFAULT_STATIONS[:2]) == (Use.GROUND, "ground, spare")
