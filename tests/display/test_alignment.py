"""The picture that shows a person whether a panel is driven right."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from PIL import Image

from heek.display.alignment import alignment
from heek.display.oled import DRIVERS
from tests.display.test_golden import compare

GOLDEN = Path(__file__).parent / "alignment"


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_picture_is_its_golden_one(driver: str, pytestconfig: pytest.Config) -> None:
    """Proves that the picture for each driver is the one that somebody looked at."""
    picture = alignment(driver, "i2c-1 0x3c")
    golden = GOLDEN / f"{driver}.png"
    if pytestconfig.getoption("--renew-golden"):
        GOLDEN.mkdir(exist_ok=True)
        picture.save(golden, optimize=True)
    compare(f"alignment-{driver}", golden, picture)


def test_the_frame_lies_on_the_outermost_dots() -> None:
    """Proves that two columns aside, as with the wrong driver, a whole side of the frame is gone."""
    dots = alignment("sh1106").load()
    assert dots is not None
    assert all(dots[x, y] for x in range(128) for y in (0, 63))
    assert all(dots[x, y] for y in range(64) for x in (0, 127))
    assert not any(dots[x, 32] for x in (1, 2, 125, 126))


def test_no_corner_is_taken_for_another() -> None:
    """Proves that a picture that is turned or mirrored in any way has another corner in each place."""
    picture = alignment("ssd1306")
    corners = [picture.crop((x, y, x + 12, y + 12)) for x in (0, 116) for y in (0, 52)]
    for one, other in combinations(corners, 2):
        ways = [other.transpose(way).tobytes() for way in Image.Transpose]
        assert one.tobytes() not in [other.tobytes(), *ways]


def test_the_words_name_driver_and_place() -> None:
    """Proves that two panels side by side are told apart by what they show."""
    assert alignment("ssd1306", "i2c-1 0x3c").tobytes() != alignment("ssd1306", "i2c-1 0x3d").tobytes()
    assert alignment("ssd1306").tobytes() != alignment("sh1106").tobytes()
