"""The 40-pin header as a drawing: every place with its line, its use and whose it is.

Colour never speaks alone: each place has a shape (button round, LED diamond, ground square, the rest
rounded), the three kinds have their glyph, and the use stands beside it in words. The seat is
written in a pentagon, as on the table. Red, green and blue are the three kinds' and nothing else's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from heek.wiring.pin_map import HEADER, HeaderPin, StationPins, Use, use_of

_WIDTH: Final = 920
_ROW: Final = 34
_TOP: Final = 118
_LEFT_X: Final = 438
_RIGHT_X: Final = 482
_HEIGHT: Final = _TOP + 20 * _ROW + 118

_STONE: Final = "#1c1917"
_SLAB: Final = "#292420"
_EDGE: Final = "#4a423a"
_WORDS: Final = "#e7dfd3"
_QUIET: Final = "#a89c8c"
_KIND_COLOURS: Final = {"pen": "#e5706a", "page": "#7fbf7a", "beetle": "#74a7e8"}
_COLOURS: Final = {
    Use.LED: "#f3d27a",
    Use.OLED: "#d9c7ee",
    Use.SERIAL: "#c9b08a",
    Use.GROUND: "#8d8378",
    Use.POWER_3V3: "#e0a872",
    Use.POWER_5V: "#e0a872",
    Use.EEPROM: "#9b8f80",
    Use.FREE: "#9b8f80",
}

# Glyphs in a box of 16 x 16, drawn with strokes so that they stay readable when small.
_GLYPHS: Final = {
    "pen": '<path d="M3 13 L4.2 9.2 L11.2 2.2 L13.8 4.8 L6.8 11.8 Z M9.4 4 L12 6.6"/>',
    "page": '<path d="M4 2 H10 L12.5 4.5 V14 H4 Z M6.2 6.4 H10.2 M6.2 8.8 H10.2 M6.2 11.2 H10.2"/>',
    "beetle": (
        '<path d="M8 5 C11 5 12 7.4 12 9.6 C12 12.2 10.2 14 8 14 C5.8 14 4 12.2 4 9.6 C4 7.4 5 5 8 5 Z '
        "M8 5 V14 M6.2 5 C6.2 3.4 9.8 3.4 9.8 5 M4 8 L1.8 6.6 M12 8 L14.2 6.6 "
        'M4.2 11 L2 12.6 M11.8 11 L14 12.6"/>'
    ),
}


def header_svg(stations: Sequence[StationPins]) -> str:
    """The drawing for these stations as a standalone SVG document."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="system-ui, \'DejaVu Sans\', sans-serif" '
        'role="img" aria-labelledby="title">',
        '<title id="title">Header of the Ahyoheek table: 40 pins and what each is for</title>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="{_STONE}"/>',
        _text(_WIDTH / 2, 44, "The header of the table", size=24, weight=600),
        _text(
            _WIDTH / 2,
            70,
            "seen from above; pins 1 and 2 are at the end of the SD card, the even ones at the board's edge",
            size=14,
            colour=_QUIET,
        ),
        _slab(),
    ]
    for pin in HEADER:
        parts.extend(_place(pin, stations))
    parts.extend(_legend())
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _slab() -> str:
    left, right = _LEFT_X - 24, _RIGHT_X + 24
    return (
        f'<rect x="{left}" y="{_TOP - 24}" width="{right - left}" height="{20 * _ROW + 14}" rx="8" '
        f'fill="{_SLAB}" stroke="{_EDGE}" stroke-width="2"/>'
        + _text(_LEFT_X, _TOP - 30, "inner", size=11, colour=_QUIET, anchor="end")
        + _text(_RIGHT_X, _TOP - 30, "edge", size=11, colour=_QUIET, anchor="start")
    )


def _place(pin: HeaderPin, stations: Sequence[StationPins]) -> list[str]:
    """One place: the pin itself, its line's name, the glyph, the words and the seat."""
    use, words = use_of(pin, stations)
    left = pin.number % 2 == 1
    side = -1 if left else 1
    x = _LEFT_X if left else _RIGHT_X
    y = _TOP + ((pin.number - 1) // 2) * _ROW - 2
    anchor = "end" if left else "start"
    seat, _, part = words.removeprefix("seat ").partition(" ") if words.startswith("seat ") else ("", "", "")
    colour = _KIND_COLOURS.get(part) or _COLOURS[use]
    quiet = use in (Use.FREE, Use.EEPROM, Use.POWER_5V) or "spare" in words
    lines = [
        _pin_shape(x, y, use, colour),
        _text(x, y + 4, str(pin.number), size=11, colour=_STONE, weight=700),
    ]
    lines.append(
        f'<path d="M{x + side * 15} {y} H{x + side * 36}" stroke="{colour}" stroke-width="2" '
        f'opacity="{0.4 if quiet else 0.9}"/>'
    )
    lines.append(
        _text(
            x + side * 42,
            y + 5,
            pin.name,
            size=14,
            anchor=anchor,
            colour=_QUIET if quiet else _WORDS,
            mono=True,
        )
    )
    glyph_x = x + side * 118
    if part in _GLYPHS:
        lines.append(
            f'<g transform="translate({glyph_x - 10} {y - 10}) scale(1.25)" fill="none" stroke="{colour}" '
            f'stroke-width="1.4" stroke-linejoin="round" stroke-linecap="round">{_GLYPHS[part]}</g>'
        )
    elif use is Use.LED:
        lines.append(_rays(glyph_x, y, colour))
    text_x = x + side * 140
    label = {"led": "LED"}.get(part, part) if seat else words
    lines.append(_text(text_x, y + 5, label, size=15, anchor=anchor, colour=_QUIET if quiet else _WORDS))
    if seat:
        lines.append(_pentagon(x + side * 226, y, seat))
    return lines


def _pin_shape(x: float, y: float, use: Use, colour: str) -> str:
    if use is Use.BUTTON:
        return f'<circle cx="{x}" cy="{y}" r="13" fill="{colour}"/>'
    if use is Use.LED:
        return f'<path d="M{x} {y - 16} L{x + 16} {y} L{x} {y + 16} L{x - 16} {y} Z" fill="{colour}"/>'
    radius = 0 if use is Use.GROUND else 6
    return f'<rect x="{x - 12}" y="{y - 12}" width="24" height="24" rx="{radius}" fill="{colour}"/>'


def _rays(x: float, y: float, colour: str) -> str:
    """A lamp: a small disc with eight rays."""
    straight = "M0 -6 V-9 M0 6 V9 M-6 0 H-9 M6 0 H9"
    slanted = "M4.3 4.3 L6.4 6.4 M-4.3 4.3 L-6.4 6.4 M4.3 -4.3 L6.4 -6.4 M-4.3 -4.3 L-6.4 -6.4"
    return (
        f'<g transform="translate({x} {y})" stroke="{colour}" stroke-width="1.6" stroke-linecap="round">'
        f'<circle r="3.4" fill="{colour}" stroke="none"/><path d="{straight} {slanted}"/></g>'
    )


def _pentagon(x: float, y: float, seat: str) -> str:
    points = "0,-14 13.3,-4.3 8.2,11.3 -8.2,11.3 -13.3,-4.3"
    return (
        f'<g transform="translate({x} {y})"><polygon points="{points}" fill="{_SLAB}" stroke="{_QUIET}" '
        f'stroke-width="1.5"/>{_text(0, 5, seat, size=14, weight=700)}</g>'
    )


def _legend() -> list[str]:
    """What the shapes mean, in one line under the header, and the two warnings that save a Pi."""
    y = _TOP + 20 * _ROW + 26
    entries = (
        (Use.BUTTON, _QUIET, "button, closes to ground"),
        (Use.LED, _COLOURS[Use.LED], "LED, through its resistor"),
        (Use.GROUND, _COLOURS[Use.GROUND], "ground"),
        (Use.FREE, _QUIET, "all others"),
    )
    lines = []
    for x, (use, colour, words) in zip((110, 340, 580, 710), entries, strict=True):
        lines.append(_pin_shape(x, y, use, colour))
        lines.append(_text(x + 24, y + 5, words, size=14, anchor="start"))
    lines.append(_pentagon(836, y, "n"))
    lines.append(_text(858, y + 5, "seat", size=14, anchor="start"))
    lines.append(
        _text(
            _WIDTH / 2,
            y + 46,
            "Every line carries 3.3 V at most: nothing of the table goes to the 5 V pins.",
            size=14,
            colour=_QUIET,
        )
    )
    return lines


def _text(
    x: float,
    y: float,
    words: str,
    *,
    size: int,
    colour: str = _WORDS,
    anchor: str = "middle",
    weight: int = 400,
    mono: bool = False,
) -> str:
    family = " font-family=\"ui-monospace, 'DejaVu Sans Mono', monospace\"" if mono else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" font-weight="{weight}" fill="{colour}" '
        f'text-anchor="{anchor}"{family}>{escape(words)}</text>'
    )
