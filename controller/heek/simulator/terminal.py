"""The table drawn in a terminal: the OLED's picture, five LEDs, and the last events in plain words.

Everything but `Canvas` is a pure function from values to text, so a frame can be compared with a file.
A frame never exceeds the size it is given. What gives way when the room is small, in this order:
the border, then the picture's size (half blocks, braille, braille of every second pixel), then the
picture; the clock, the LEDs and at least one event stay longest.

Without a terminal to draw on (a pipe, `TERM=dumb`, an encoding without block characters) there is a
plain mode: one line an event, nothing else.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Final, TextIO, TypeAlias

from heek.kinds import SEATS, Seat
from heek.telling import Event, Teller, event_line, printable

if TYPE_CHECKING:
    from PIL import Image

__all__ = [
    "Canvas",
    "Lamp",
    "Teller",
    "braille",
    "can_draw",
    "colour_allowed",
    "event_line",
    "event_row",
    "frame",
    "half_blocks",
    "lamp_rows",
    "repaint",
]

WIDTH_PX: Final = 128
HEIGHT_PX: Final = 64

ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[2J\x1b[H"
"""The alternate screen, without a cursor, empty."""
LEAVE: Final = "\x1b[0m\x1b[?25h\x1b[?1049l"
"""Undoes ENTER."""
_HOME: Final = "\x1b[H"
_REST_OF_LINE: Final = "\x1b[K"
_REST_OF_SCREEN: Final = "\x1b[J"

_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "free": ("free", "free"),
    "taken": ("taken", "taken"),
    "unconfirmed": ("press to stay", "press"),
    "your_turn": ("your turn", "throw"),
    "thrown": ("thrown", "thrown"),
    "time_running_out": ("time runs out", "hurry"),
    "leaving": ("leaving", "leaves"),
    "won": ("won", "won"),
    "fault": ("fault", "fault"),
}
"""A pattern in words, and in at most 7 letters for a narrow terminal."""

_PLAIN: Final = "\x1b[0m"
_DIM: Final = "\x1b[2m"
_AMBER: Final = "\x1b[33m"
_BRIGHT: Final = "\x1b[1;33m"

_HALVES: Final = " ▄▀█"
_DOTS: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bits of a braille cell, row by row."""

_Rows: TypeAlias = list[list[int]]
"""Pixels, 0 or 1, top row first."""


@dataclass(frozen=True, slots=True)
class Lamp:
    """One seat's LED at one instant."""

    seat: Seat
    pattern: str
    """By the name that stories use (`your_turn`)."""
    brightness: float
    """0 (off) to 1 (full)."""


# -- the picture --------------------------------------------------------------------------------


def half_blocks(image: Image.Image) -> list[str]:
    """A 128 x 64 picture as 32 lines of 128 characters, two pixels each; lit pixels are drawn.

    Raises ValueError for a picture of another size or of more than one bit a pixel.
    """
    rows = _pixels(image)
    return [
        "".join(_HALVES[2 * upper + lower] for upper, lower in zip(rows[y], rows[y + 1], strict=True))
        for y in range(0, HEIGHT_PX, 2)
    ]


def braille(image: Image.Image) -> list[str]:
    """A 128 x 64 picture as 16 lines of 64 braille characters, eight pixels each.

    Raises ValueError for a picture of another size or of more than one bit a pixel.
    """
    return _braille(_pixels(image))


def _small(image: Image.Image) -> list[str]:
    """Half the size of `braille`: a dot for every four pixels of which two are lit."""
    rows = _pixels(image)
    return _braille(
        [
            [
                int(rows[y][x] + rows[y][x + 1] + rows[y + 1][x] + rows[y + 1][x + 1] >= 2)
                for x in range(0, WIDTH_PX, 2)
            ]
            for y in range(0, HEIGHT_PX, 2)
        ]
    )


def _braille(rows: _Rows) -> list[str]:
    return [
        "".join(
            chr(0x2800 + sum(_DOTS[dy][dx] for dy in range(4) for dx in range(2) if rows[y + dy][x + dx]))
            for x in range(0, len(rows[0]), 2)
        )
        for y in range(0, len(rows), 4)
    ]


def _pixels(image: Image.Image) -> _Rows:
    if image.mode != "1" or image.size != (WIDTH_PX, HEIGHT_PX):
        raise ValueError(
            f"the picture is {image.size}, mode {image.mode}; the OLED's is {WIDTH_PX} x {HEIGHT_PX}, one bit"
        )
    data = image.tobytes()
    stride = WIDTH_PX // 8
    return [[data[y * stride + x // 8] >> (7 - x % 8) & 1 for x in range(WIDTH_PX)] for y in range(HEIGHT_PX)]


# -- the lamps ----------------------------------------------------------------------------------


def lamp_rows(lamps: Sequence[Lamp], width: int, *, colour: bool = False) -> list[str]:
    """Two lines of at most `width` columns: the five seats with their LEDs, and their patterns in words.

    A seat without a lamp is shown as absent. With `colour` the LEDs get ANSI attributes, which
    take no columns.
    """
    by_seat = {lamp.seat: lamp for lamp in lamps}
    cell = min(width // len(SEATS), 18)
    narrow = cell < 1 + max(len(long) for long, _ in _WORDS.values())
    leds, words = "", ""
    for seat in SEATS:
        lamp = by_seat.get(seat)
        word = "-"
        if lamp is not None:
            pattern = printable(lamp.pattern)
            word = _WORDS.get(pattern, (pattern, pattern))[int(narrow)]
        led, attribute = ("-", _DIM) if lamp is None else _led(lamp.brightness)
        text = _centred(f"{seat} {led}", cell)
        leds += text.replace(led, f"{attribute}{led}{_PLAIN}") if colour else text
        words += _centred(clip(word, max(cell - 1, 0)), cell)
    margin = " " * ((width - cell * len(SEATS)) // 2)
    return [f"{margin}{leds}".rstrip(), f"{margin}{words}".rstrip()]


def _led(brightness: float) -> tuple[str, str]:
    if brightness <= 0:
        return "○", _DIM
    return ("◐", _AMBER) if brightness < 0.5 else ("●", _BRIGHT)


# -- the frame ----------------------------------------------------------------------------------

_PICTURES: Final[tuple[tuple[int, int, int, Callable[[Image.Image], list[str]]], ...]] = (
    (130, 128, 32, half_blocks),
    (64, 64, 16, braille),
    (32, 32, 8, _small),
)
"""The ways to draw a picture, the best first: least width of the terminal, columns, rows, how."""

_LEAST_REST: Final = 4
"""Lines that a picture leaves to others: the clock, two for the lamps, one event."""


def frame(
    width: int,
    height: int,
    image: Image.Image | None,
    lamps: Sequence[Lamp],
    lines: Sequence[str],
    clock_text: str,
    *,
    colour: bool = False,
) -> str:
    """The whole table as at most `height` lines of at most `width` columns, joined by newlines.

    `lines` are events in words, the oldest first; the last ones that fit are shown. `image` is the
    OLED's 128 x 64 picture, or None while no panel answers. From 40 x 12 on everything is there.
    """
    if width < 1 or height < 1:
        return ""
    rows = [_title(width, clock_text)]
    rows += _picture(width, height, image)
    rows += lamp_rows(lamps, width, colour=colour)
    room = max(height - len(rows), 0)
    if room:
        rows += [clip(printable(line), width) for line in lines[-room:]]
    # A terminal lower than clock and lamps: what moves stands above, so the end gives way.
    return "\n".join(rows[:height])


def _title(width: int, clock_text: str) -> str:
    """The clock at the right edge, and the game's name at the left if both fit."""
    clock = clip(printable(clock_text), width)
    gap = width - cells(clock) - len("Ahyoheek")
    return f"Ahyoheek{' ' * gap}{clock}" if gap > 0 else clock


def _picture(width: int, height: int, image: Image.Image | None) -> list[str]:
    """The picture in the best way for which there is room, with a border if there is room for that."""
    for least_width, columns, rows, draw in _PICTURES:
        if width < least_width or height < rows + _LEAST_REST:
            continue
        drawn = draw(image) if image is not None else _no_panel(columns, rows)
        margin = " " * ((width - columns) // 2)
        if width < columns + 2 or height < rows + 2 + _LEAST_REST:
            return [margin + line for line in drawn]
        margin = margin[1:]
        edge = "─" * columns
        return [f"{margin}┌{edge}┐", *(f"{margin}│{line}│" for line in drawn), f"{margin}└{edge}┘"]
    return []


def _no_panel(columns: int, rows: int) -> list[str]:
    lines = [" " * columns] * rows
    lines[rows // 2] = _centred(clip("the OLED does not answer", columns), columns)
    return lines


def cells(text: str) -> int:
    """How many columns a text takes in a terminal."""
    return sum(_cells_of(char) for char in text)


def clip(text: str, width: int) -> str:
    """The text, or as much of it as fits `width` columns with “…” at the end."""
    if cells(text) <= width:
        return text
    if width < 1:
        return ""
    kept, room = "", width - 1
    for char in text:
        room -= _cells_of(char)
        if room < 0:
            break
        kept += char
    return f"{kept}…"


def _cells_of(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _centred(text: str, width: int) -> str:
    """The text in the middle of `width` columns, cut if it is longer."""
    text = clip(text, width)
    left = (width - cells(text)) // 2
    return " " * left + text + " " * (width - cells(text) - left)


# -- the terminal -------------------------------------------------------------------------------


def event_row(event: Event, sentence: str | None = None) -> str:
    """A line of plain mode: the event's time in seconds and its sentence."""
    at = event.get("at")
    clock = f"{at:10.3f} s" if isinstance(at, int | float) and 0 <= at < 1e9 else " " * 12
    return f"{clock}  {event_line(event) if sentence is None else sentence}"


def repaint(text: str) -> str:
    """The bytes that replace the last frame by this one, without flicker: no clearing beforehand."""
    lines = text.replace("\n", f"{_REST_OF_LINE}\r\n")
    return f"{_HOME}{lines}{_REST_OF_LINE}{_REST_OF_SCREEN}"


def can_draw(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether frames can be drawn there; if not, plain mode is for it."""
    if not stream.isatty() or environ.get("TERM", "dumb") == "dumb":
        return False
    try:
        "▀⣿●┌…".encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def colour_allowed(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether to use ANSI colours: a terminal, not a dumb one, and no NO_COLOR in the environment."""
    return stream.isatty() and environ.get("TERM", "dumb") != "dumb" and not environ.get("NO_COLOR")


class Canvas:
    """A terminal taken over for drawing, as a context manager that always gives it back.

    On leaving, also by an exception, the cursor and what stood there before come back.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream: Final = stream
        self._last: str | None = None

    def __enter__(self) -> Canvas:
        self._write(ENTER)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._write(LEAVE)

    def show(self, text: str) -> bool:
        """Put a frame on the terminal; False, and nothing is sent, if it is the one that stands there."""
        if text == self._last:
            return False
        self._write(repaint(text))
        self._last = text
        return True

    def forget(self) -> None:
        """The terminal's size has changed: the next frame is sent whatever stood there before."""
        self._last = None

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
