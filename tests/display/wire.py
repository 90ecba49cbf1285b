"""An OLED module as its wire sees it: an SMBus under smbus2's name, and the controller that reads along.

Nothing here knows how the program packs or compares pictures: the controllers are written from their data
sheets, and what they show is worked out dot by dot. A command they do not know, or data for a place that a
datasheet leaves open, fails the test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from PIL import Image

NOP: Final = 0xE3
DISPLAY_OFF: Final = 0xAE
DISPLAY_ON: Final = 0xAF

_ARGUMENTS: Final = {
    0x20: 1,  # memory mode
    0x21: 2,  # column window
    0x22: 2,  # page window
    0x81: 1,  # contrast
    0x8D: 1,  # charge pump
    0xA8: 1,  # multiplex
    0xD3: 1,  # offset
    0xD5: 1,  # clock
    0xD9: 1,  # pre-charge
    0xDA: 1,  # COM pins
    0xDB: 1,  # VCOMH
}
_PLAIN: Final = {0xA0, 0xA1, 0xA4, 0xA6, 0xC0, 0xC8, NOP} | set(range(0x40, 0x80))


class Controller:
    """What an SSD1306, SSD1309 or SH1106 makes of the bytes; fresh from power-on: snow, and dark."""

    def __init__(self, driver: str) -> None:
        self.windowed = driver != "sh1106"
        self.columns = 128 if self.windowed else 132
        self.power_on()

    def power_on(self) -> None:
        """All settings gone, the memory full of chance."""
        self.memory = [[(31 * x + 97 * page) % 251 for x in range(self.columns)] for page in range(8)]
        self.lit = False
        self.pumped = False
        self.contrast = 0x7F
        self.mode: int | None = None
        self.window = (0, 127, 0, 7)
        self.column = self.page = 0

    def commands(self, payload: list[int]) -> None:
        left = list(payload)
        while left:
            command = left.pop(0)
            # An SH1106 has no memory mode: luma sends it one, and its argument is a command to it.
            count = 0 if command == 0x20 and not self.windowed else _ARGUMENTS.get(command, 0)
            assert len(left) >= count, f"command {command:#x} is cut off"
            arguments, left = left[:count], left[count:]
            self._command(command, arguments)

    def _command(self, command: int, arguments: list[int]) -> None:
        if command in (DISPLAY_OFF, DISPLAY_ON):
            self.lit = command == DISPLAY_ON
        elif command == 0x20 and arguments:
            self.mode = arguments[0]
        elif command == 0x8D:
            self.pumped = arguments == [0x14]
        elif command == 0x81:
            self.contrast = arguments[0]
        elif command in (0x21, 0x22):
            assert self.windowed, "an SH1106 has no windows"
            first, last = arguments
            assert first <= last <= (127 if command == 0x21 else 7)
            if command == 0x21:
                self.window = (first, last, *self.window[2:])
                self.column = first
            else:
                self.window = (*self.window[:2], first, last)
                self.page = first
        elif 0xB0 <= command <= 0xB7 and not self.windowed:
            self.page = command & 7
        elif command <= 0x1F and not self.windowed:
            high = command >= 0x10
            self.column = self.column & 0x0F | (command & 0x0F) << 4 if high else self.column & 0xF0 | command
        else:
            assert command in _PLAIN or command in _ARGUMENTS or command == 0x20, f"command {command:#x}"

    def data(self, payload: list[int]) -> None:
        if self.windowed:
            assert self.mode == 0, "data before horizontal addressing"
        for byte in payload:
            assert self.column < self.columns, "data beyond the right edge"
            self.memory[self.page][self.column] = byte
            self.column += 1
            if self.windowed and self.column > self.window[1]:
                self.column = self.window[0]
                self.page = self.window[2] if self.page == self.window[3] else self.page + 1

    @property
    def at_home(self) -> bool:
        """The pointer stands where the window begins: nothing was left half filled."""
        return (self.column, self.page) == (self.window[0], self.window[2])

    def picture(self) -> Image.Image:
        """What the glass shows, 128 x 64; dark while the display is off or its pump is."""
        image = Image.new("1", (128, 64))
        left = 0 if self.windowed else 2
        if not self.lit or not self.pumped:
            return image
        for y in range(64):
            for x in range(128):
                if self.memory[y // 8][x + left] >> y % 8 & 1:
                    image.putpixel((x, y), 255)
        return image


class Module:
    """A panel on a bus, and a record of what came over the wire.

    `error` fails every message while it is set, `fails_after` those after so many more. `on_message` is
    called before each one.
    """

    def __init__(self, driver: str = "ssd1306", bus: int = 1, address: int = 0x3C) -> None:
        self.controller = Controller(driver)
        self.bus, self.address = bus, address
        self.error: OSError | None = None
        self.fails_after: int | None = None
        self.on_message: Callable[[], None] | None = None
        self.opened = 0
        self.closed = 0
        self.forget()

    def forget(self) -> None:
        """Start a new record."""
        self.data_bytes = self.command_bytes = self.messages = self.bits = 0
        self.sent: list[tuple[int, ...]] = []
        """Each message from its control byte on."""

    def message(self, address: int, payload: list[int]) -> None:
        """Address and payload as they stand on the wire."""
        if self.on_message is not None:
            self.on_message()
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                raise OSError(121, "Remote I/O error")
        if self.error is not None:
            raise self.error
        if address != self.address:
            raise OSError(121, "Remote I/O error")
        control, body = payload[0], payload[1:]
        assert control in (0x00, 0x40)
        assert body, "a message that says nothing"
        self.messages += 1
        self.bits += 9 * (len(payload) + 1) + 2
        self.sent.append(tuple(payload))
        if control == 0x00:
            self.command_bytes += len(body)
            self.controller.commands(body)
        else:
            self.data_bytes += len(body)
            self.controller.data(body)

    def plug_in(self, monkeypatch: pytest.MonkeyPatch) -> Module:
        """Be what `smbus2.SMBus` opens, so that luma takes the way that it takes on a Pi."""
        import smbus2

        module = self

        class Bus:
            def __init__(self, number: int) -> None:
                if number != module.bus:
                    raise FileNotFoundError(2, "No such file or directory", f"/dev/i2c-{number}")
                module.opened += 1

            def __enter__(self) -> Bus:
                return self

            def __exit__(self, *_: object) -> None:
                self.close()

            def write_i2c_block_data(self, address: int, register: int, block: list[int]) -> None:
                assert len(block) <= 32
                module.message(address, [register, *block])

            def i2c_rdwr(self, *messages: Any) -> None:
                for each in messages:
                    module.message(each.addr, list(each))

            def read_byte(self, address: int) -> int:
                if address != module.address or module.error is not None:
                    raise OSError(121, "Remote I/O error")
                return 0

            def close(self) -> None:
                module.closed += 1

        monkeypatch.setattr(smbus2, "SMBus", Bus)
        return self
