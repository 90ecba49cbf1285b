"""Pen, page and beetle, the big digits and the small signs, as 1-bit bitmaps made once and shared.

Big shapes are described by geometry in a box of 24 x 24 and drawn eight times too large before they
are cut down, so that every size and every quarter turn has clean edges. What is 9 px or smaller is drawn
by hand, because there each dot counts. Every bitmap is shared: paste from it, never draw on it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from PIL import Image, ImageDraw

from heek.kinds import Kind

LARGE_PX: Final = 23
MEDIUM_PX: Final = 17
SMALL_PX: Final = 7
# All odd: what stands in the middle (a nib's slit, a beetle's seam) is then one clean column.

_FINE: Final = 8
"""How many times too large a shape is drawn before it is cut down to pixels."""

_SMALL_ART: Final = {
    Kind.PEN: """
        ..###..
        ..###..
        .#####.
        .#####.
        ..#.#..
        ..#.#..
        ...#...
    """,
    Kind.PAGE: """
        ####...
        #####..
        ######.
        #....#.
        ######.
        #....#.
        ######.
    """,
    Kind.BEETLE: """
        #..#..#
        .#####.
        ..#.#..
        ###.###
        ..#.#..
        .##.##.
        #.###.#
    """,
}

_SIGN_ART: Final = {
    "not_saving": """
        ..#####..
        .##...##.
        ##...####
        #...###.#
        #..###..#
        #.###...#
        ####...##
        .##...##.
        ..#####..
    """,
    "sudden_death": """
        ##.....##
        ###...###
        .###.###.
        ..#####..
        ...###...
        ..#####..
        #.##.##.#
        .##...##.
        ##.#.#.##
    """,
    "pip": """
        .##.
        ####
        ####
        ####
        .##.
    """,
    "no_pip": """
        ....
        ....
        .##.
        ....
        ....
    """,
    "no_throw": """
        .........
        .........
        .........
        #########
        #########
        #########
        .........
        .........
        .........
    """,
    "bot": """
        ...###...
        .#.###.#.
        ..#####..
        ###...###
        ###...###
        ###...###
        ..#####..
        .#.###.#.
        ...###...
    """,
    "bot_large": """
        ....###....
        .##.###.##.
        .#########.
        ..###.###..
        ####...####
        ###.....###
        ####...####
        ..###.###..
        .#########.
        .##.###.##.
        ....###....
    """,
    "bot_small": """
        ..#.#..
        .#####.
        ##...##
        .#...#.
        ##...##
        .#####.
        ..#.#..
    """,
    "hourglass": """
        #####
        .#.#.
        .###.
        ..#..
        ..#..
        .#.#.
        .###.
        #####
    """,
    "up": """
        ......#
        .....##
        .....#.
        #...##.
        ##..#..
        .####..
        ..##...
        ..#....
    """,
    "down": """
        .....
        #...#
        ##.##
        .###.
        ..#..
        .###.
        ##.##
        #...#
    """,
    "plus": """
        .#.
        ###
        .#.
    """,
    "watching": """
        .##.
        ####
        ####
        .##.
    """,
}


def from_art(art: str) -> Image.Image:
    """Rows of `#` and `.` as a bitmap of mode "1"; all rows must be of one length."""
    rows = art.split()
    bitmap = Image.new("1", (len(rows[0]), len(rows)))
    bitmap.putdata([255 if dot == "#" else 0 for row in rows for dot in row])
    return bitmap


@lru_cache(maxsize=64)
def sign(name: str) -> Image.Image:
    """A small sign by name: a key of `_SIGN_ART`."""
    return from_art(_SIGN_ART[name])


@lru_cache(maxsize=64)
def kind(which: Kind, size: int = LARGE_PX, turns: int = 0) -> Image.Image:
    """One of the three kinds in a square of `size` px, turned clockwise by `turns` quarters.

    `SMALL_PX` is drawn by hand; any other size from 12 px up comes from geometry.
    """
    upright = from_art(_SMALL_ART[which]) if size == SMALL_PX else _shape(which, size)
    return turned(upright, turns)


@lru_cache(maxsize=64)
def tile(which: Kind, size: int = LARGE_PX, turns: int = 0) -> Image.Image:
    """A kind inverted, black on a lit tile that is 4 px wider than the glyph: it has won."""
    edge = size + 4
    fine = Image.new("L", (edge * _FINE, edge * _FINE))
    ImageDraw.Draw(fine).rounded_rectangle((0, 0, edge * _FINE - 1, edge * _FINE - 1), 3 * _FINE, fill=255)
    bitmap = cut_down(fine, (edge, edge))
    bitmap.paste(0, (2, 2), kind(which, size, turns))
    return bitmap


def turned(bitmap: Image.Image, turns: int) -> Image.Image:
    """`bitmap` turned clockwise by quarters; dot for dot, nothing is smoothed."""
    way = (None, Image.Transpose.ROTATE_270, Image.Transpose.ROTATE_180, Image.Transpose.ROTATE_90)[turns % 4]
    return bitmap if way is None else bitmap.transpose(way)


def cut_down(fine: Image.Image, size: tuple[int, int]) -> Image.Image:
    """A drawing of mode "L" as a bitmap of `size`: a pixel is lit if half of it is."""
    return fine.resize(size, Image.Resampling.BOX).point(lambda level: 255 * (level >= 128), mode="1")


class _Pencil:
    """Draws shapes given in a 24 x 24 box into a fine square drawing of `size` pixels."""

    def __init__(self, size: int) -> None:
        self.image = Image.new("L", (size * _FINE, size * _FINE))
        self._draw = ImageDraw.Draw(self.image)
        self._scale = size * _FINE / 24

    def _points(self, points: tuple[tuple[float, float], ...]) -> list[tuple[float, float]]:
        return [(x * self._scale, y * self._scale) for x, y in points]

    def area(self, *points: tuple[float, float], lit: bool = True) -> None:
        self._draw.polygon(self._points(points), fill=255 * lit)

    def oval(self, left: float, top: float, right: float, bottom: float, *, lit: bool = True) -> None:
        box = self._points(((left, top), (right, bottom)))
        self._draw.ellipse([box[0], box[1]], fill=255 * lit)

    def stroke(self, width: float, *points: tuple[float, float], lit: bool = True) -> None:
        """A line of round ends; never thinner than 1 px, or a small glyph would lose it."""
        thick = max(width * self._scale, _FINE * 1.05)
        fine = self._points(points)
        self._draw.line(fine, fill=255 * lit, width=round(thick), joint="curve")
        for x, y in fine:
            self._draw.ellipse((x - thick / 2, y - thick / 2, x + thick / 2, y + thick / 2), fill=255 * lit)


def _shape(which: Kind, size: int) -> Image.Image:
    pencil = _Pencil(size)
    if which is Kind.PEN:
        pencil.area((8, 0), (16, 0), (16.6, 4.4), (7.4, 4.4))
        pencil.area((7, 6), (17, 6), (19, 12.5), (12.6, 24), (11.4, 24), (5, 12.5))
        pencil.oval(10.2, 10.4, 13.8, 14, lit=False)
        pencil.stroke(1.2, (12, 13), (12, 22), lit=False)
    elif which is Kind.PAGE:
        pencil.area((3, 0), (14, 0), (21, 7), (21, 24), (3, 24))
        pencil.stroke(1.2, (13.6, 0), (13.6, 7.4), (21, 7.4), lit=False)
        for y in (11, 15, 19):
            pencil.area((6, y), (18, y), (18, y + 1.9), (6, y + 1.9), lit=False)
    else:
        for side in (1, -1):
            for leg in (
                ((7, 11), (3.6, 8.6), (1.6, 4.4)),
                ((7, 15), (1, 15)),
                ((7, 18), (3.6, 20), (1.6, 23.4)),
            ):
                pencil.stroke(2, *((12 + side * (x - 12), y) for x, y in leg))
            pencil.stroke(1.4, (12 + side * 2.2, 3), (12 + side * 4.6, 0.8))
        pencil.oval(5.4, 7.4, 18.6, 24)
        pencil.oval(7.6, 1.6, 16.4, 9.6)
        pencil.stroke(1.2, (6, 9.4), (18, 9.4), lit=False)
        pencil.stroke(1.2, (12, 9.4), (12, 22), lit=False)
    bitmap = cut_down(pencil.image, (size, size))
    if which is not Kind.PAGE:
        # The two halves must agree to the dot, or a turned glyph looks bent.
        half = bitmap.crop((0, 0, (size + 1) // 2, size))
        bitmap.paste(half.transpose(Image.Transpose.FLIP_LEFT_RIGHT), (size - half.width, 0))
    return bitmap


# Strokes of the big digits in a box 20 wide and 32 high, chamfered like letters cut in stone. All share their
# bars and uprights, so that from one second to the next only what differs is sent to the panel.
_Path = tuple[tuple[float, float], ...]
_DIGITS: Final[dict[str, tuple[_Path, ...]]] = {
    "0": (((4, 0), (16, 0), (20, 4), (20, 28), (16, 32), (4, 32), (0, 28), (0, 4), (4, 0), (16, 0)),),
    "1": (((13, 3), (17, 0), (20, 0), (20, 32)),),
    "2": (((0, 0), (16, 0), (20, 4), (20, 12), (16, 16), (4, 16), (0, 20), (0, 32), (20, 32)),),
    "3": (
        ((0, 0), (16, 0), (20, 4), (20, 12), (16, 16), (5, 16)),
        ((16, 16), (20, 20), (20, 28), (16, 32), (0, 32)),
    ),
    "4": (((0, 0), (0, 12), (4, 16), (20, 16)), ((20, 0), (20, 32))),
    "5": (((20, 0), (0, 0), (0, 16), (16, 16), (20, 20), (20, 28), (16, 32), (0, 32)),),
    "6": (((20, 0), (0, 0), (0, 32), (20, 32), (20, 16), (0, 16)),),
    "7": (((0, 0), (20, 0), (20, 32)),),
    "8": (
        ((4, 0), (16, 0), (20, 4), (20, 12), (16, 16), (4, 16), (0, 12), (0, 4), (4, 0), (16, 0)),
        ((4, 16), (16, 16), (20, 20), (20, 28), (16, 32), (4, 32), (0, 28), (0, 20), (4, 16), (16, 16)),
    ),
    "9": (((0, 32), (16, 32), (20, 28), (20, 4), (16, 0), (4, 0), (0, 4), (0, 12), (4, 16), (20, 16)),),
}


@lru_cache(maxsize=128)
def number(value: int, height: int) -> Image.Image:
    """A whole number of 0 or more in digits `height` px tall.

    Bars are about an eighth of that thick and uprights a little more. Of 55 and 37 px the three bars of all
    digits lie 8 px apart or a multiple of that, so each keeps to one page of the panel's memory. A 6 or 9
    that stands alone is underlined, as on a billiard ball: people read it from both sides. Its lower half
    makes room, the upper one stays as it is.
    """
    text = str(value)
    stroke = max(3, round(height / 7.6))
    upright = round(1.2 * stroke)
    digit_px, gap_px = round(0.5 * height), max(2, stroke // 2 + 1)
    width = len(text) * (digit_px + gap_px) - gap_px
    down = (height - stroke) / 32
    under = stroke + 1 if value in (6, 9) else 0
    lower = down - under / 16
    # A drawing that is narrower than it shall be, by what makes uprights thicker than bars.
    narrow = stroke / upright
    fine = Image.new("L", (round(width * narrow * _FINE), height * _FINE))
    draw = ImageDraw.Draw(fine)
    r = stroke * _FINE / 2
    for index, figure in enumerate(text):
        left = index * (digit_px + gap_px) + upright / 2
        across = (digit_px - upright) / 20
        for path in _DIGITS[figure]:
            points = [
                (
                    (left + x * across) * narrow * _FINE,
                    (stroke / 2 + min(y, 16) * down + max(0, y - 16) * lower) * _FINE,
                )
                for x, y in path
            ]
            draw.line(points, fill=255, width=stroke * _FINE, joint="curve")
            for x, y in (points[0], points[-1]):
                draw.rectangle((x - r, y - r, x + r - 1, y + r - 1), fill=255)
    if under:
        top = (height - stroke + 1) * _FINE
        draw.rectangle((fine.width // 2, top, fine.width, height * _FINE - 1), fill=255)
    return cut_down(fine, (width, height))


@lru_cache(maxsize=64)
def arrow(dx: float, dy: float, size: int) -> Image.Image:
    """A thick arrow in a square of `size` px that points along (dx, dy), y downwards; not (0, 0)."""
    length = (dx * dx + dy * dy) ** 0.5
    ux, uy = dx / length, dy / length
    pencil = _Pencil(size)

    def at(along: float, across: float) -> tuple[float, float]:
        return (12 + along * ux - across * uy, 12 + along * uy + across * ux)

    pencil.area(at(-11, 3), at(1, 3), at(1, 9.5), at(11.5, 0), at(1, -9.5), at(1, -3), at(-11, -3))
    return cut_down(pencil.image, (size, size))
