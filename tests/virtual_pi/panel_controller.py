"""What an OLED's controller makes of the bytes on its wire: SSD1306 (and SSD1309) and SH1106.

The two differ in more than a number. The SSD1306 has 128 columns and counts through a window of columns and
pages in three ways; the SH1106 has 132, of which the glass shows 2 to 129, knows pages alone, and never
steps to the next one by itself. Both start with the display off, and what their memory holds then is chance;
here it is a pattern that no screen of the table has, so that a picture that was not sent whole shows.

A panel is mounted so that it reads upright with segments and commons both reversed (0xA1, 0xC8), as they are
sold. Written from the data sheets; nothing here imports heek or luma: it is the second opinion on what they
send.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from PIL import Image

WIDTH: Final = 128
HEIGHT: Final = 64
PAGES: Final = HEIGHT // 8

CHANCE: Final = 0xA5
"""What the memory holds after power came: every other dot or so."""

_ARGUMENTS: Final[Mapping[int, int]] = {
    0x20: 1, 0x21: 2, 0x22: 2, 0x26: 6, 0x27: 6, 0x29: 5, 0x2A: 5, 0x81: 1, 0x8D: 1, 0xA3: 2, 0xA8: 1,
    0xAD: 1, 0xD3: 1, 0xD5: 1, 0xD9: 1, 0xDA: 1, 0xDB: 1,
}  # fmt: skip
"""Commands that take bytes after them, and how many."""

_SSD1306_ALONE: Final = frozenset({0x20, 0x21, 0x22, 0x26, 0x27, 0x29, 0x2A, 0x2E, 0x2F, 0x8D, 0xA3})
"""What an SH1106 does not have: it passes over such a byte, and takes the next for a command."""

SETTINGS: Final = ("multiplex", "clock", "precharge", "commons", "vcom", "charge_pump", "contrast")
"""What an initialisation has to set for the picture to be as the data sheet wants it."""


class PanelController:
    """One controller; `driver` is `ssd1306`, `ssd1309` or `sh1106`.

    `commands` counts every command by its byte; `unknown` holds what no data sheet explains; `data_bytes`
    counts what was written into the memory.
    """

    def __init__(self, driver: str = "ssd1306") -> None:
        if driver not in ("ssd1306", "ssd1309", "sh1106"):
            raise ValueError(f"no such controller: {driver}")
        self.driver = driver
        self._sh1106 = driver == "sh1106"
        self._columns = 132 if self._sh1106 else WIDTH
        self.lose_power()

    def lose_power(self) -> None:
        """Forget everything, as after a pulled cable."""
        self.on = self.inverted = self.all_on = False
        self.start_line = self.offset = 0
        self.mirrored = self.flipped = False
        self.settings: dict[str, int] = {}
        self.unknown: list[int] = []
        self.commands: dict[int, int] = {}
        self.data_bytes = 0
        self._memory = [bytearray([CHANCE] * self._columns) for _ in range(PAGES)]
        self._mode = 2
        self._column = self._page = 0
        self._first_column, self._last_column = 0, WIDTH - 1
        self._first_page, self._last_page = 0, PAGES - 1
        self._open: list[int] = []
        """A command that still waits for its arguments; they may come in the next message."""

    @property
    def initialised(self) -> bool:
        """Whether everything that an initialisation must set was set since power came."""
        wanted = set(SETTINGS)
        if self.driver != "ssd1306":
            # The SSD1309 has no charge pump; the SH1106's is on by itself.
            wanted.discard("charge_pump")
        return wanted <= self.settings.keys()

    def take(self, message: bytes) -> None:
        """One I2C message that was written to the panel."""
        rest = message
        while rest:
            control, rest = rest[0], rest[1:]
            if control & 0x3F:
                self.unknown.append(control)
                return
            # With the continuation bit one byte follows, and then another control byte.
            part, rest = (rest[:1], rest[1:]) if control & 0x80 else (rest, b"")
            if control & 0x40:
                self._write(part)
            else:
                for byte in part:
                    self._command(byte)

    def picture(self) -> Image.Image:
        """What a person sees: mode "1", 128 x 64; black while the display is off."""
        if not self.on:
            return Image.new("1", (WIDTH, HEIGHT))
        if self.all_on:
            return Image.new("1", (WIDTH, HEIGHT), 1)
        margin = 2 if self._sh1106 else 0
        ram = Image.new("1", (WIDTH, HEIGHT))
        for page, columns in enumerate(self._memory):
            seen = bytes(columns[margin : margin + WIDTH])
            # A byte is eight dots downwards, the lowest bit at the top.
            strip = Image.frombytes("1", (8, WIDTH), seen, "raw", "1;R")
            ram.paste(strip.transpose(Image.Transpose.TRANSPOSE), (0, 8 * page))
        shift = (self.start_line + self.offset) % HEIGHT
        if shift:
            moved = Image.new("1", ram.size)
            moved.paste(ram, (0, -shift))
            moved.paste(ram, (0, HEIGHT - shift))
            ram = moved
        if not self.mirrored:
            ram = ram.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        if not self.flipped:
            ram = ram.transpose(Image.Transpose.FLIP_TOP_BOTTOM)
        return ram.point(lambda dot: 255 - dot) if self.inverted else ram

    # Commands

    def _command(self, byte: int) -> None:
        self._open.append(byte)
        first = self._open[0]
        known = not self._sh1106 or first not in _SSD1306_ALONE
        if known and len(self._open) <= _ARGUMENTS.get(first, 0):
            return
        arguments, self._open = self._open[1:], []
        self.commands[first] = self.commands.get(first, 0) + 1
        self._obey(first, arguments)

    def _obey(self, command: int, arguments: list[int]) -> None:
        simple: dict[int, Callable[[], None]] = {
            0xA0: lambda: self._set("mirrored", False),
            0xA1: lambda: self._set("mirrored", True),
            0xA4: lambda: self._set("all_on", False),
            0xA5: lambda: self._set("all_on", True),
            0xA6: lambda: self._set("inverted", False),
            0xA7: lambda: self._set("inverted", True),
            0xAE: lambda: self._set("on", False),
            0xAF: lambda: self._set("on", True),
            0x2E: lambda: None,
            0xE3: lambda: None,
        }
        keeps = {
            0x81: "contrast", 0x8D: "charge_pump", 0xA8: "multiplex", 0xAD: "charge_pump", 0xD5: "clock",
            0xD9: "precharge", 0xDA: "commons", 0xDB: "vcom",
        }  # fmt: skip
        if self._sh1106 and command in _SSD1306_ALONE:
            self.unknown.append(command)
        elif command in simple:
            simple[command]()
        elif command in keeps:
            self.settings[keeps[command]] = arguments[0]
        elif command == 0xD3:
            self.offset = arguments[0] & 0x3F
        elif 0x40 <= command <= 0x7F:
            self.start_line = command & 0x3F
        elif 0xC0 <= command <= 0xCF:
            self.flipped = bool(command & 8)
        elif 0xB0 <= command <= 0xB7:
            self._page = command & 7
        elif command <= 0x0F:
            self._column = (self._column & 0xF0) | command
        elif command <= 0x1F:
            self._column = (self._column & 0x0F) | (command & 0x0F) << 4
        elif self._sh1106:
            # It has no windows; 0x30 to 0x33 set the voltage of its pump.
            if not 0x30 <= command <= 0x33:
                self.unknown.append(command)
        elif command == 0x20:
            self._mode = arguments[0] & 3
        elif command == 0x21:
            self._first_column, self._last_column = (each & 0x7F for each in arguments)
            self._column = self._first_column
        elif command == 0x22:
            self._first_page, self._last_page = (each & 7 for each in arguments)
            self._page = self._first_page
        else:
            self.unknown.append(command)

    def _set(self, name: str, value: bool) -> None:
        setattr(self, name, value)

    # Memory

    def _write(self, data: bytes) -> None:
        self.data_bytes += len(data)
        for byte in data:
            if self._column < self._columns:
                self._memory[self._page][self._column] = byte
            self._step()

    def _step(self) -> None:
        """Where the next byte goes."""
        if self._sh1106:
            self._column = min(self._column + 1, self._columns)
        elif self._mode == 2:
            self._column = (self._column + 1) % WIDTH
        elif self._mode == 0:
            if self._column != self._last_column:
                self._column = (self._column + 1) % WIDTH
                return
            self._column = self._first_column
            self._page = self._first_page if self._page == self._last_page else (self._page + 1) % PAGES
        else:
            if self._page != self._last_page:
                self._page = (self._page + 1) % PAGES
                return
            self._page = self._first_page
            at_end = self._column == self._last_column
            self._column = self._first_column if at_end else (self._column + 1) % WIDTH
