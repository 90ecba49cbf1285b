"""The second opinion on panels: what luma sends through a true bus makes the picture that was drawn."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from heek.display.oled import Oled
from tests.virtual_pi.panel_controller import CHANCE, HEIGHT, WIDTH, PanelController
from tests.virtual_pi.panel_wire import REST, Happened, Record, pictures, records

CONTROLLERS = ["ssd1306", "ssd1309", "sh1106"]
PICTURES = st.binary(min_size=WIDTH * HEIGHT // 8, max_size=WIDTH * HEIGHT // 8).map(
    lambda data: Image.frombytes("1", (WIDTH, HEIGHT), data)
)


class Bus:
    """What luma takes for smbus2's: writes every message down."""

    def __init__(self, *_: object) -> None:
        self.messages: list[bytes] = []

    def i2c_rdwr(self, *messages: Any) -> None:
        self.messages += [bytes(message) for message in messages]

    def write_i2c_block_data(self, _address: int, register: int, data: list[int]) -> None:
        self.messages.append(bytes([register, *data]))

    def close(self) -> None:
        pass


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Bus:
    """The one that luma opens for i2c-1."""
    one = Bus()
    monkeypatch.setattr("smbus2.SMBus", lambda *_: one)
    return one


def fed(driver: str, messages: list[bytes]) -> PanelController:
    controller = PanelController(driver)
    for message in messages:
        controller.take(message)
    return controller


@pytest.mark.parametrize("driver", CONTROLLERS)
def test_what_the_table_sends_is_what_is_seen(driver: str, bus: Bus) -> None:
    """The table's OLED on each controller: initialised whole, in its own words, each picture as drawn."""
    oled = Oled(driver)
    for number in range(3):
        image = Image.effect_noise((WIDTH, HEIGHT), 50 + number).convert("1")
        assert oled.show(image, 0).ok
        controller = fed(driver, bus.messages)
        assert controller.initialised
        assert controller.on
        # luma sends the SH1106 two commands of the SSD1306's, which do no harm.
        assert set(controller.unknown) <= ({0x20, 0x8D} if driver == "sh1106" else set())
        assert controller.picture().tobytes() == image.tobytes()
    oled.close()
    assert not any(fed(driver, bus.messages).picture().tobytes())


@given(image=PICTURES, mode=st.sampled_from([0, 1]))
@settings(max_examples=30, deadline=None)
def test_an_ssd1306_counts_along_and_down(image: Image.Image, mode: int) -> None:
    """Horizontal and vertical counting through the whole window give the same picture."""
    columns = [
        [sum(bool(image.getpixel((x, 8 * page + bit))) << bit for bit in range(8)) for x in range(WIDTH)]
        for page in range(HEIGHT // 8)
    ]
    order = (
        [byte for page in columns for byte in page]
        if mode == 0
        else [columns[page][x] for x in range(WIDTH) for page in range(HEIGHT // 8)]
    )
    controller = fed("ssd1306", [bytes([0, 0x20, mode, 0xA1, 0xC8, 0xAF]), bytes([0x40, *order])])
    assert controller.picture().tobytes() == image.tobytes()


@given(first=st.integers(0, 127), width=st.integers(1, 128), page=st.integers(0, 7), wraps=st.integers(0, 2))
def test_an_ssd1306_stays_in_its_window(first: int, width: int, page: int, wraps: int) -> None:
    """A window of one page takes what is written round and round, and nothing beside it changes."""
    last = min(first + width - 1, 127)
    width = last - first + 1
    data = bytes([0xFF] * (width * (wraps + 1)))
    window = bytes([0, 0x20, 0, 0x21, first, last, 0x22, page, page, 0xA1, 0xC8, 0xAF])
    seen = fed("ssd1306", [window, b"\x40" + data]).picture()
    lit = sum(bool(seen.getpixel((x, 8 * page))) for x in range(WIDTH) if first <= x <= last)
    assert lit == width
    expected = sum(bool(CHANCE & 1) for x in range(WIDTH) if not first <= x <= last)
    assert sum(bool(seen.getpixel((x, 8 * page))) for x in range(WIDTH) if not first <= x <= last) == expected


def test_an_sh1106_never_goes_to_the_next_page() -> None:
    """What is written past its last column is lost; the glass shows columns 2 to 129."""
    controller = fed("sh1106", [b"\x00\xa1\xc8\xaf\xb3\x02\x10", b"\x40" + b"\xff" * 200])
    seen = controller.picture()
    assert all(seen.getpixel((x, 24)) for x in range(WIDTH))
    below = [bool(seen.getpixel((0, 32 + bit))) for bit in range(8)]
    assert below == [bool(CHANCE >> bit & 1) for bit in range(8)]


def test_without_power_it_forgets() -> None:
    """After a pulled cable it is off, uninitialised and full of chance; a half initialisation is none."""
    controller = fed("ssd1306", [b"\x00\xaf\xa5"])
    assert all(byte == 0xFF for byte in controller.picture().tobytes())
    controller.lose_power()
    assert not controller.on
    assert not controller.initialised
    assert not any(controller.picture().tobytes())
    controller.take(b"\x00\xaf\x8d\x14\xa8\x3f")
    assert any(controller.picture().tobytes())
    assert not controller.initialised


def test_settings_of_the_glass_change_the_picture() -> None:
    """Upright, mirrored, upside down, inverted and scrolled by a start line are five pictures."""
    data = b"\x40" + b"\x01" + b"\x00" * 1023
    clear = bytes([0, 0x20, 0, 0xAF])
    seen = {
        extra: fed("ssd1306", [clear + extra, data]).picture().tobytes()
        for extra in (b"\xa1\xc8", b"\xa0\xc8", b"\xa1\xc0", b"\xa1\xc8\xa7", b"\xa1\xc8\x48")
    }
    assert len(set(seen.values())) == 5


def test_commands_may_be_split_and_mixed() -> None:
    """An argument in the next message, and single bytes with the continuation bit, are understood."""
    controller = fed("ssd1306", [b"\x00\x81", b"\x00\x7f", b"\x80\xaf\x80\xa7\x40\x55"])
    assert controller.settings["contrast"] == 0x7F
    assert (controller.on, controller.inverted, controller.data_bytes) == (True, True, 1)
    assert controller.commands == {0x81: 1, 0xAF: 1, 0xA7: 1}


@given(st.binary(max_size=60), st.sampled_from(CONTROLLERS))
def test_any_bytes_give_a_picture(message: bytes, driver: str) -> None:
    """Rubbish on the wire is counted as unknown at most, and there is always a picture."""
    controller = fed(driver, [message, message])
    assert controller.picture().size == (WIDTH, HEIGHT)


def test_an_unknown_controller_is_refused() -> None:
    """A name that is no controller of ours is an error at once."""
    with pytest.raises(ValueError, match="ssd1327"):
        PanelController("ssd1327")


# The wire


def raw(at_ns: int, kind: int, data: bytes = b"") -> bytes:
    return struct.pack("=QHH", at_ns, kind, len(data)) + data


def test_records_are_read_as_the_module_writes_them() -> None:
    """Whole records come out as they went in; half a head or a short body is refused."""
    data = raw(5, 0, b"\x40\x01") + raw(7, 1) + raw(9, 2)
    assert records(data) == [
        Record(5, Happened.WRITTEN, b"\x40\x01"),
        Record(7, Happened.PULLED),
        Record(9, Happened.PLUGGED),
    ]
    with pytest.raises(ValueError, match="half a record"):
        records(data + b"\x00")
    with pytest.raises(ValueError, match="cut short"):
        records(data[:13])


def test_a_picture_is_what_stays() -> None:
    """What is overwritten at once is no picture; a pulled panel is dark; what does not change counts once."""
    on = b"\x00\x20\x00\xa1\xc8\xaf"
    full, empty = b"\x40" + b"\xff" * 1024, b"\x40" + b"\x00" * 1024
    wire = [
        Record(0, Happened.WRITTEN, on),
        Record(1, Happened.WRITTEN, empty),
        Record(2, Happened.WRITTEN, full),
        Record(2 + REST, Happened.WRITTEN, full),
        Record(2 + 2 * REST, Happened.PULLED),
        Record(2 + 3 * REST, Happened.PLUGGED),
        Record(2 + 4 * REST, Happened.WRITTEN, on),
        Record(3 + 4 * REST, Happened.WRITTEN, full),
    ]
    shown = [(each.since_ns, sum(each.image.tobytes()) > 0) for each in pictures(wire, "ssd1306")]
    assert shown == [(2, True), (2 + 2 * REST, False), (3 + 4 * REST, True)]
