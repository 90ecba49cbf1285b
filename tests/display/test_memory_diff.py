"""Packing and comparing pictures: what is sent makes the new of the old, at no more than it must cost."""

from __future__ import annotations

import re
import warnings
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from heek.display.drawing import draw
from heek.display.memory_diff import PLANS, Write, bit_times, message_bit_times
from heek.display.panel_memory import BYTES, packed
from tests.display.catalogue import moments, screen_of
from tests.display.wire import Controller

CONTROLLERS = ["ssd1306", "ssd1309", "sh1106"]
OVERHEAD = {"ssd1306": 94, "ssd1309": 94, "sh1106": 67}
"""Bit times of a write beside its data, counted by hand: 8 or 5 bytes of command, 2 of data, 2 stops each."""


def by_hand(image: Image.Image) -> bytes:
    """Dot by dot as the data sheet has it."""
    dots: Any = image.load()
    return bytes(
        sum((dots[x, 8 * page + bit] > 0) << bit for bit in range(8)) for page in range(8) for x in range(128)
    )


@st.composite
def changes(draw_from: st.DrawFn) -> tuple[bytes, bytes]:
    """A memory and another: rectangles, specks and noise, near each other and apart, few and many."""
    old = bytearray(draw_from(st.binary(min_size=64, max_size=64))) * 16
    new = bytearray(old)
    for _ in range(draw_from(st.integers(0, 12))):
        page, column = draw_from(st.integers(0, 7)), draw_from(st.integers(0, 127))
        pages = draw_from(st.integers(1, 8 - page))
        columns = draw_from(st.integers(1, min(128 - column, draw_from(st.sampled_from([1, 3, 12, 128])))))
        for y, x in product(range(page, page + pages), range(column, column + columns)):
            new[128 * y + x] ^= 255
    for place in draw_from(st.sets(st.integers(0, BYTES - 1), max_size=40)):
        new[place] ^= 1
    return bytes(old), bytes(new)


def shown(driver: str, start: bytes, *plans: tuple[Write, ...]) -> bytes:
    """What a controller holds that held `start` and got the writes."""
    controller = Controller(driver)
    controller.mode = 0
    left = 0 if controller.windowed else 2
    for page in range(8):
        controller.memory[page][left : left + 128] = list(start[128 * page : 128 * page + 128])
    outside = [row[:left] + row[left + 128 :] for row in controller.memory]
    for write in (write for plan in plans for write in plan):
        controller.commands(list(write.command))
        controller.data(list(write.data))
        assert not controller.windowed or controller.at_home
    assert [row[:left] + row[left + 128 :] for row in controller.memory] == outside
    return bytes(byte for row in controller.memory for byte in row[left : left + 128])


@pytest.mark.parametrize("rotate", [0, 2])
@pytest.mark.parametrize("driver", CONTROLLERS)
def test_packed_is_what_luma_sends(driver: str, rotate: int) -> None:
    """Proves for every golden screen that our bytes are those of luma's driver, turned or not."""
    from luma.oled import device as drivers

    sent = bytearray()

    class Serial:
        def command(self, *_: int) -> None:
            """Where it goes is not asked here."""

        def data(self, data: list[int]) -> None:
            sent.extend(data)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Image.Image.getdata is deprecated")
        device: Any = getattr(drivers, driver)(Serial(), rotate=rotate)
        device.cleanup = lambda: None
        for name in list(moments())[::4]:
            picture = draw(screen_of(name))
            sent.clear()
            device.display(picture)
            assert bytes(sent) == packed(picture, rotate), name


@given(st.binary(min_size=BYTES, max_size=BYTES))
@settings(max_examples=30, deadline=None)
def test_any_picture_is_packed_as_the_data_sheet_says(dots: bytes) -> None:
    """Proves bit by bit that each dot is where the controller looks for it, and half a circle turns all."""
    picture = Image.frombytes("1", (128, 64), dots)
    assert packed(picture) == by_hand(picture)
    assert packed(picture, 2) == by_hand(picture.transpose(Image.Transpose.ROTATE_180))


def test_only_pictures_for_this_panel_are_packed() -> None:
    """Proves that another size, mode or rotation is refused by name."""
    with pytest.raises(ValueError, match=r"not 1 \(64, 128\)"):
        packed(Image.new("1", (64, 128)))
    with pytest.raises(ValueError, match=r"not L \(128, 64\)"):
        packed(Image.new("L", (128, 64)))
    with pytest.raises(ValueError, match="0 or 2 quarters, not 1"):
        packed(Image.new("1", (128, 64)), 1)


@pytest.mark.parametrize("driver", CONTROLLERS)
@given(pair=changes())
@settings(max_examples=150, deadline=None)
def test_writes_turn_the_old_memory_into_the_new_one(driver: str, pair: tuple[bytes, bytes]) -> None:
    """Proves for any two memories that the controller ends with the new one, its pointer at rest."""
    old, new = pair
    plan = PLANS[driver]
    assert shown(driver, old, plan(old, new)) == new
    assert shown(driver, old, plan(None, new)) == new
    assert shown(driver, old, plan(old, new), plan(new, old)) == old


@pytest.mark.parametrize("driver", CONTROLLERS)
@given(pair=changes())
@settings(max_examples=150, deadline=None)
def test_writes_cost_no_more_than_the_frame_nor_than_runs(driver: str, pair: tuple[bytes, bytes]) -> None:
    """Proves that neither the whole frame nor one write for each run of changes would be cheaper."""
    old, new = pair
    plan = PLANS[driver]
    cost = bit_times(plan(old, new))
    assert cost <= bit_times(plan(None, new))
    differs = bytes(one != other for one, other in zip(old, new, strict=True))
    runs = [
        found.end() - found.start()
        for page in range(8)
        for found in re.finditer(rb"\x01+", differs[128 * page : 128 * page + 128])
    ]
    assert cost <= sum(OVERHEAD[driver] + 9 * length for length in runs)
    assert (cost == 0) is (old == new)


def cheapest_runs(differs: list[int], overhead: int) -> int:
    """The least for one page, a byte at 14, by trying every way to join neighbouring changes."""
    best = [0] + [1 << 30] * len(differs)
    for end in range(1, len(differs) + 1):
        for begin in range(end):
            length = differs[end - 1] - differs[begin] + 1
            best[end] = min(best[end], best[begin] + overhead + 14 * length)
    return best[-1]


@pytest.mark.parametrize("driver", CONTROLLERS)
@given(places=st.lists(st.sets(st.integers(0, 127), max_size=14), min_size=8, max_size=8))
@settings(max_examples=150, deadline=None)
def test_runs_within_a_page_are_joined_where_that_is_cheaper(driver: str, places: list[set[int]]) -> None:
    """Proves that page by page nothing beats an SH1106's runs, and the others do as well or better."""
    new = bytearray(BYTES)
    for page, columns in enumerate(places):
        for column in columns:
            new[128 * page + column] = 255
    writes = PLANS[driver](bytes(BYTES), bytes(new))
    cost = sum(OVERHEAD[driver] + 14 * len(write.data) for write in writes)
    best = sum(cheapest_runs(sorted(columns), OVERHEAD[driver]) for columns in places)
    assert cost == best if driver == "sh1106" else cost <= best


def test_a_tall_change_is_one_window() -> None:
    """Proves that on an SSD1306 pages are joined: a block of 3 pages by 10 is one write, not three."""
    new = bytearray(BYTES)
    for page, column in product(range(2, 5), range(60, 70)):
        new[128 * page + column] = 255
    assert PLANS["ssd1306"](bytes(BYTES), bytes(new)) == (
        Write((0x21, 60, 69, 0x22, 2, 4), bytes([255]) * 30),
    )
    assert len(PLANS["sh1106"](bytes(BYTES), bytes(new))) == 3


def test_changes_far_apart_are_windows_of_their_own() -> None:
    """Proves that two seats' marks at either end are not joined by what lies between them, whatever pages."""
    new = bytearray(BYTES)
    for page, column in [*product(range(1, 4), range(5, 9)), *product(range(2, 6), range(100, 104))]:
        new[128 * page + column] = 255
    assert [write.command for write in PLANS["ssd1306"](bytes(BYTES), bytes(new))] == [
        (0x21, 5, 8, 0x22, 1, 3),
        (0x21, 100, 103, 0x22, 2, 5),
    ]


def test_an_sh1106_is_told_its_column_two_to_the_right() -> None:
    """Proves page, low and high column of a run that crosses 16 columns, with the offset of the glass."""
    new = bytearray(BYTES)
    new[128 * 3 + 14] = 1
    assert PLANS["sh1106"](bytes(BYTES), bytes(new)) == (Write((0xB3, 0x00, 0x11), b"\x01"),)


def test_the_wire_is_counted_as_it_was_measured() -> None:
    """Proves that a whole frame costs the bit times of luma's, 9,310 and 9,752."""
    assert bit_times(PLANS["ssd1306"](None, bytes(BYTES))) == 9310
    assert bit_times(PLANS["sh1106"](None, bytes(BYTES))) == 9752
    assert message_bit_times(1024) == 9236
