"""The page's glyphs are the OLED's: filled again, the outlines give the drawing back."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageChops, ImageFilter

from heek.display.glyphs import kind
from heek.kinds import KINDS, Kind
from heek.web.glyphs_svg import SIZE_PX, TOLERANCE_PX, _off, kinds_svg, outlines, path, simplified

_SVG = "{http://www.w3.org/2000/svg}"


def _loops(data: str) -> list[list[tuple[int, int]]]:
    return [
        [(int(x), int(y)) for x, y in re.findall(r"(\d+) (\d+)", loop)] for loop in data.split("Z") if loop
    ]


def _filled(loops: list[list[tuple[int, int]]], size: tuple[int, int]) -> Image.Image:
    """Outlines filled by the even-odd rule: a dot is lit if its middle lies within."""
    filled = Image.new("1", size)
    for y in range(size[1]):
        middle = y + 0.5
        crossings = sorted(
            u + (middle - v) * (x - u) / (w - v)
            for loop in loops
            for (u, v), (x, w) in zip(loop, [*loop[1:], loop[0]], strict=True)
            if (v <= middle) is not (w <= middle)
        )
        for start, end in zip(crossings[::2], crossings[1::2], strict=True):
            first, last = math.ceil(start - 0.5), math.ceil(end - 0.5)
            filled.paste(255, (first, y, last, y + 1))
    return filled


@pytest.mark.parametrize("which", KINDS)
def test_a_symbol_is_the_oleds_drawing(which: Kind) -> None:
    """Hardly a dot differs, and none that is farther from an edge than the tolerance."""
    drawn = kind(which, SIZE_PX)
    again = _filled(_loops(path(which)), drawn.size)
    differing = ImageChops.logical_xor(drawn, again).convert("L")
    assert differing.histogram()[255] < 0.01 * SIZE_PX**2
    edge = Image.new("L", (SIZE_PX + 2, SIZE_PX + 2))
    edge.paste(drawn.convert("L"), (1, 1))
    wide = 2 * round(TOLERANCE_PX + 1) + 1
    near = ImageChops.difference(
        edge.filter(ImageFilter.MaxFilter(wide)), edge.filter(ImageFilter.MinFilter(wide))
    ).crop((1, 1, SIZE_PX + 1, SIZE_PX + 1))
    assert ImageChops.subtract(differing, near).getbbox() is None


@pytest.mark.parametrize("which", KINDS)
def test_a_symbol_is_small(which: Kind) -> None:
    """A few dozen corners are enough, in the box, in whole numbers."""
    loops = _loops(path(which))
    assert sum(map(len, loops)) < 200
    assert all(0 <= value <= SIZE_PX for loop in loops for point in loop for value in point)
    assert len(path(which)) < 4000


def test_the_document_is_three_symbols() -> None:
    """It is well formed, takes the colour of the text round it, and holds no script or style."""
    root = ET.fromstring(kinds_svg())
    symbols = root.findall(f"{_SVG}symbol")
    assert [symbol.get("id") for symbol in symbols] == ["pen", "page", "beetle"]
    assert {symbol.get("viewBox") for symbol in symbols} == {f"0 0 {SIZE_PX} {SIZE_PX}"}
    shapes = [shape for symbol in symbols for shape in symbol]
    assert {(shape.tag, shape.get("fill")) for shape in shapes} == {(f"{_SVG}path", "currentColor")}


def test_dots_that_touch_at_a_corner_stay_two() -> None:
    """Each of them has an outline of its own, and so have two holes."""
    touching = Image.new("1", (4, 4))
    touching.paste(255, (1, 1, 2, 2))
    touching.paste(255, (2, 2, 3, 3))
    assert sorted(map(sorted, outlines(touching))) == [
        [(1, 1), (1, 2), (2, 1), (2, 2)],
        [(2, 2), (2, 3), (3, 2), (3, 3)],
    ]


bitmaps = st.integers(1, 7).flatmap(
    lambda width: st.lists(st.lists(st.booleans(), min_size=width, max_size=width), min_size=1, max_size=7)
)


@given(bitmaps)
def test_outlines_hold_every_dot(rows: list[list[bool]]) -> None:
    """For any bitmap, the outlines filled by the even-odd rule are that bitmap."""
    bitmap = Image.new("1", (len(rows[0]), len(rows)))
    bitmap.putdata([255 if dot else 0 for row in rows for dot in row])
    loops = outlines(bitmap)
    for y, row in enumerate(rows):
        for x, dot in enumerate(row):
            assert _inside(loops, x, y) is dot
    for loop in loops:
        for (x, y), (u, v) in zip(loop, [*loop[1:], loop[0]], strict=True):
            assert (x == u) is not (y == v), "an edge is level or upright, and none has no length"


def _inside(loops: list[list[tuple[int, int]]], x: int, y: int) -> bool:
    """Even-odd: how often a ray to the left from the middle of a dot crosses an upright edge."""
    crossings = 0
    for loop in loops:
        for (u, v), (_, w) in zip(loop, [*loop[1:], loop[0]], strict=True):
            crossings += u <= x and min(v, w) <= y < max(v, w)
    return crossings % 2 == 1


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=3, max_size=40), st.floats(0.1, 5)
)
def test_what_is_left_out_lies_near(loop: list[tuple[int, int]], tolerance: float) -> None:
    """Every corner left out lies within the tolerance of the line between its neighbours that stayed."""
    left = simplified(loop, tolerance)
    assert set(left) <= set(loop)
    places: list[int] = []
    at = 0
    for point in left:
        at = loop.index(point, at)
        places.append(at)
    for first, last in zip(places, [*places[1:], len(loop)], strict=True):
        for between in range(first + 1, last):
            assert _off(loop[between], loop[first], loop[last % len(loop)]) <= tolerance
