"""Stations go into a configuration's text where they stand, and nothing else of it moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.config import example, from_text
from heek.config.station_tables import station_tables, with_stations
from heek.errors import ConfigError
from heek.wiring.pin_map import DEFAULT_STATIONS, USABLE, StationPins

HEAD = '# my table\n[stations]\nbackend = "mock" # for now\n'
TEXT = (
    HEAD
    + """
# the window side
[[station]]
seat = 1
pen = 4 # the red wire
led = 22

[[station]] # the door
seat = 2

[[display]]
driver = "dummy"
"""
)
NEW = (
    StationPins(1, 5, 6, 13, 12),
    StationPins(2, 24, 25, 8, 23),
    StationPins(4, 16, 20, 21, 26),
)


def test_numbers_change_where_they_stand() -> None:
    """Comments, order and all else stay; a role that was left out is added, a new seat comes behind."""
    assert with_stations(TEXT, NEW, "t.toml") == (
        HEAD
        + """
# the window side
[[station]]
seat = 1
pen = 5 # the red wire
led = 12
page = 6
beetle = 13

[[station]] # the door
seat = 2
pen = 24
page = 25
beetle = 8
led = 23

[[station]]
seat = 4
pen = 16
page = 20
beetle = 21
led = 26

[[display]]
driver = "dummy"
"""
    )


def test_a_seat_that_is_no_more_goes_and_its_comments_stay() -> None:
    """The table of a seat that was not learned is taken out, but nobody's notes are."""
    text = TEXT.replace(
        'driver = "dummy"\n', 'driver = "dummy"\n[[station]]\n# a spare\nseat = 5\nled = 26\n'
    )
    result = with_stations(text, NEW[:2], "t.toml")
    assert "# a spare" in result
    assert "seat = 5" not in result
    assert [station.seat for station in from_text(result, "t.toml").wired] == [1, 2]


def test_a_file_without_stations_gets_them_at_its_end() -> None:
    """Where there was no table of a station they come last, with an empty line before."""
    assert with_stations(HEAD, NEW, "t.toml") == HEAD + "\n" + station_tables(NEW)


def test_the_same_stations_change_nothing() -> None:
    """The example with its own stations is the example, letter by letter."""
    assert with_stations(example(), DEFAULT_STATIONS, "example") == example()


@pytest.mark.parametrize(
    "text",
    [HEAD.replace("[stations]", "station = [{seat = 1}, {seat = 2}]\n[stations]"), HEAD + "nonsense = 1\n"],
    ids=["written in line", "with a mistake"],
)
def test_what_cannot_be_changed_is_refused(text: str) -> None:
    """A text that this does not understand, or that has mistakes, is an error and no damage."""
    with pytest.raises(ConfigError, match=r"^t\.toml"):
        with_stations(text, NEW, "t.toml")


@given(
    st.permutations(USABLE),
    st.lists(st.integers(1, 5), min_size=2, max_size=5, unique=True),
    st.sampled_from([HEAD, TEXT, example()]),
)
def test_what_is_written_is_what_is_read(lines: list[int], seats: list[int], text: str) -> None:
    """Any wiring put into any of these files is what the file then says, and put in again changes nothing."""
    stations = [StationPins(seat, *lines[4 * n : 4 * n + 4]) for n, seat in enumerate(seats)]
    result = with_stations(text, stations, "t.toml")
    assert from_text(result, "t.toml").wired == tuple(sorted(stations, key=lambda station: station.seat))
    assert with_stations(result, stations, "t.toml") == result
