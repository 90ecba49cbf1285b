"""Pen, page and beetle as SVG symbols, traced from the OLED's own drawing.

Screens, page and printed glyphs share one drawing. The bitmap that `heek.display.glyphs` makes is taken at
a large size, walked round along the edges of its pixels, and of each outline only those corners are kept
that matter. Along a slope the edges are stairs, whose corners lie within a pixel and a half of any line
between two of them; so what is left differs from the drawing by no more than that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final, TypeAlias

from PIL import Image

from heek.display.glyphs import kind
from heek.kinds import KINDS, Kind

SIZE_PX: Final = 384
"""Of the bitmap that is traced; also the symbols' view box."""

TOLERANCE_PX: Final = 1.4
"""How far an outline may pass from a corner that it leaves out."""

Point: TypeAlias = tuple[int, int]

_RUN: Final = re.compile(rb"\xff+")
"""Neighbours in a row that are lit."""


def kinds_svg() -> str:
    """An SVG document with a symbol for each kind, `pen`, `page`, `beetle`, in the colour of text."""
    symbols = "".join(
        f'<symbol id="{each.value}" viewBox="0 0 {SIZE_PX} {SIZE_PX}">'
        f'<path fill="currentColor" fill-rule="evenodd" d="{path(each)}"/></symbol>'
        for each in KINDS
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg">{symbols}</svg>\n'


def path(which: Kind) -> str:
    """The outline of a kind as SVG path data, in a box of `SIZE_PX`; holes come out by the even-odd rule."""
    loops = [simplified(loop) for loop in outlines(kind(which, SIZE_PX))]
    return "".join("M" + "L".join(f"{x} {y}" for x, y in loop) + "Z" for loop in loops)


def outlines(bitmap: Image.Image) -> list[list[Point]]:
    """Every closed line between lit and dark, along the pixels' edges, lit on its right hand."""
    ways: dict[Point, list[Point]] = {}
    for start, end in _edges(bitmap):
        ways.setdefault(start, []).append(end)
    loops = []
    while ways:
        start = next(iter(ways))
        loop = [start]
        while True:
            here = loop[-1]
            on = ways[here]
            # Where two pixels touch at a corner: turn so that each keeps an outline of its own.
            end = on[0] if len(on) == 1 else max(on, key=lambda there: _right_turn(loop, there))
            on.remove(end)
            if not on:
                del ways[here]
            if end == start:
                break
            loop.append(end)
        loops.append(loop)
    return loops


def _edges(bitmap: Image.Image) -> Iterator[tuple[Point, Point]]:
    """The edges of the lit area, lit on the right hand: upright ones a pixel long, level ones whole."""
    width, height = bitmap.size
    dots = bitmap.convert("L").tobytes()
    above = 0
    for y in range(height + 1):
        # A row as one number: what differs from the row above comes out at the speed of C.
        row = dots[y * width : (y + 1) * width]
        here = int.from_bytes(row)
        for found in _RUN.finditer((here & ~above).to_bytes(width)):
            yield (found.start(), y), (found.end(), y)
        for found in _RUN.finditer((above & ~here).to_bytes(width)):
            yield (found.end(), y), (found.start(), y)
        for found in _RUN.finditer(row):
            yield (found.start(), y + 1), (found.start(), y)
            yield (found.end(), y), (found.end(), y + 1)
        above = here


def _right_turn(loop: list[Point], there: Point) -> int:
    """What it is to go on from the end of `loop`: above 0 to the right, below to the left (y grows down)."""
    if len(loop) < 2:
        return 0
    (x, y), here = loop[-2:]
    return (here[0] - x) * (there[1] - here[1]) - (here[1] - y) * (there[0] - here[0])


def simplified(loop: list[Point], tolerance: float = TOLERANCE_PX) -> list[Point]:
    """A closed line with only those corners that it needs to stay within `tolerance` of all it had."""
    far = max(range(len(loop)), key=lambda at: math.dist(loop[0], loop[at]))
    there = _thinned([*loop[: far + 1]], tolerance)
    back = _thinned([*loop[far:], loop[0]], tolerance)
    return there[:-1] + back[:-1]


def _thinned(line: list[Point], tolerance: float) -> list[Point]:
    """Douglas and Peucker: keep the point farthest from the chord, if it is too far, and go on there."""
    keep = {0, len(line) - 1}
    parts = [(0, len(line) - 1)]
    while parts:
        first, last = parts.pop()
        if last - first < 2:
            continue
        at = max(range(first + 1, last), key=lambda each: _off(line[each], line[first], line[last]))
        if _off(line[at], line[first], line[last]) > tolerance:
            keep.add(at)
            parts += [(first, at), (at, last)]
    return [line[at] for at in sorted(keep)]


def _off(point: Point, start: Point, end: Point) -> float:
    """How far a point lies from the line through two others."""
    length = math.dist(start, end)
    if not length:
        return math.dist(point, start)
    return (
        abs((end[0] - start[0]) * (start[1] - point[1]) - (start[0] - point[0]) * (end[1] - start[1]))
        / length
    )
