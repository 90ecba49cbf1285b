"""Where the five seats lie on the screen, and how a side of the table is drawn.

The screen is the table seen from above, its front edge at the bottom: seat 1 sits there, the others follow
clockwise. Each seat's mark is its side of the five-sided table, a thick bar; the roof is open at the top so
that the countdown's digit can be tall. Where collections are shown the sides are slim and lie straight.

The outermost column on either side and the lowest row are left dark: the whole picture moves by that much
now and then, so that it does not burn in.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, TypeAlias

from PIL import Image, ImageDraw

from heek.display.faces import Look
from heek.display.glyphs import cut_down
from heek.kinds import Seat

WIDTH_PX: Final = 128
HEIGHT_PX: Final = 64
MARGIN_LEFT_PX: Final = 1
MARGIN_RIGHT_PX: Final = 1
MARGIN_BELOW_PX: Final = 1
"""What every screen leaves dark."""

Place: TypeAlias = tuple[int, int]
"""x and y in pixels, from the top left corner."""

GLYPHS: Final[dict[Seat, Place]] = {1: (64, 49), 2: (16, 41), 3: (39, 13), 4: (88, 13), 5: (111, 41)}
"""Centres of the big glyphs of a reveal."""

TURNS: Final[dict[Seat, int]] = {1: 0, 2: 1, 3: 2, 4: 2, 5: 3}
"""Quarter turns clockwise after which a glyph stands upright for the one who sits there."""

BLOCKS: Final[dict[Seat, Place]] = {1: (53, 32), 2: (9, 32), 3: (20, 5), 4: (85, 5), 5: (96, 32)}
"""Top left corners of the blocks of pips (23 x 26)."""

SIDES: Final[dict[Seat, Place]] = {1: (64, 57), 2: (12, 46), 3: (20, 15), 4: (107, 15), 5: (115, 46)}
"""Middles of the five sides."""

BLOCK_SIDES: Final[dict[Seat, Place]] = {1: (64, 57), 2: (6, 44), 3: (31, 6), 4: (96, 6), 5: (121, 44)}
"""Middles of the sides where there are blocks of pips."""

NOTES: Final[dict[Seat, Place]] = {1: (92, 59), 2: (21, 40), 3: (6, 8), 4: (121, 8), 5: (106, 40)}
"""Where a seat's small "!" stands beside its side of the table."""

BLOCK_NOTES: Final[dict[Seat, Place]] = {1: (83, 59), 2: (4, 59), 3: (13, 5), 4: (114, 5), 5: (112, 59)}
"""Where the "!" stands where there are blocks of pips."""

EDGE_NOTES: Final[dict[Seat, Place]] = {1: (84, 59), 2: (3, 41), 3: (3, 5), 4: (124, 5), 5: (124, 41)}
"""Where the "!" stands on screens that show no seats."""

GLYPH_NOTES: Final[dict[Seat, Place]] = {1: (83, 57), 2: (37, 42), 3: (16, 7), 4: (111, 7), 5: (90, 42)}
"""Where "!" and the seconds of a leaver stand beside the big glyphs."""

BOTS: Final[dict[Seat, Place]] = {1: (64, 58), 2: (13, 46), 3: (20, 14), 4: (107, 14), 5: (114, 46)}
"""Where the cogwheel of a bot stands: in the middle of its side of the table."""

BLOCK_BOTS: Final[dict[Seat, Place]] = {1: (45, 59), 2: (4, 27), 3: (5, 4), 4: (122, 4), 5: (123, 27)}
"""Where a small one stands where there are blocks of pips."""

GLYPH_BOTS: Final[dict[Seat, Place]] = {1: (44, 58), 2: (16, 59), 3: (17, 20), 4: (110, 20), 5: (111, 59)}
"""Where a small one stands beside the big glyphs."""

_Ends: TypeAlias = tuple[tuple[float, float], tuple[float, float]]
_ENDS: Final[dict[Seat, _Ends]] = {
    1: ((43.0, 60.0), (85.0, 60.0)),
    2: ((4.0, 33.0), (21.5, 59.5)),
    3: ((5.0, 24.5), (35.0, 4.0)),
    4: ((123.0, 24.5), (93.0, 4.0)),
    5: ((124.0, 33.0), (106.5, 59.5)),
}
_BLOCK_ENDS: Final[dict[Seat, _Ends]] = {
    1: ((50.0, 61.0), (78.0, 61.0)),
    2: ((3.0, 32.0), (3.0, 54.0)),
    3: ((17.0, 2.0), (45.0, 2.0)),
    4: ((83.0, 2.0), (111.0, 2.0)),
    5: ((125.0, 32.0), (125.0, 54.0)),
}
_FINE: Final = 8


def keep_margins(image: Image.Image) -> Image.Image:
    """`image`, 128 x 64, with its margins made dark."""
    image.paste(0, (0, 0, MARGIN_LEFT_PX, HEIGHT_PX))
    image.paste(0, (WIDTH_PX - MARGIN_RIGHT_PX, 0, WIDTH_PX, HEIGHT_PX))
    image.paste(0, (0, HEIGHT_PX - MARGIN_BELOW_PX, WIDTH_PX, HEIGHT_PX))
    return image


@lru_cache(maxsize=128)
def side(seat: Seat, look: Look, *, slim: bool = False) -> tuple[Image.Image, Place]:
    """The bar of one seat and where its top left corner goes.

    `slim`: the straight thin bar that goes with a block of pips.
    """
    fine = Image.new("L", (WIDTH_PX * _FINE, HEIGHT_PX * _FINE))
    draw = ImageDraw.Draw(fine)
    (x0, y0), (x1, y1) = (_BLOCK_ENDS if slim else _ENDS)[seat]
    thick, rim, line = (4.0, 1.0, 1.0) if slim else (6.6, 1.7, 2.2)
    length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5

    def bar(start: float, end: float, width: float, lit: bool = True) -> None:
        """From `start` to `end` of the side, both 0 to 1."""
        across = (-(y1 - y0) / length * width / 2, (x1 - x0) / length * width / 2)
        ends = [(x0 + (x1 - x0) * part, y0 + (y1 - y0) * part) for part in (start, end)]
        corners = [
            ((x + sign * across[0]) * _FINE, (y + sign * across[1]) * _FINE)
            for (x, y), sign in zip((ends[0], ends[0], ends[1], ends[1]), (1, -1, -1, 1), strict=True)
        ]
        draw.polygon(corners, fill=255 * lit)

    if look in (Look.FULL, Look.HOLLOW):
        bar(0, 1, thick)
        if look is Look.HOLLOW:
            bar(rim / length, 1 - rim / length, thick - 2 * rim, lit=False)
    elif look is Look.WINNER:
        bar(0, 1, thick + 4)
    elif look is Look.DASHED:
        for part in range(4):
            bar(part * 0.27, part * 0.27 + 0.19, thick)
    elif look is Look.THIN:
        bar(0, 1, line)
    else:
        for part in range(5):
            bar(part * 0.235 + 0.005, part * 0.235 + 0.06, line)
    bitmap = keep_margins(cut_down(fine, (WIDTH_PX, HEIGHT_PX)))
    box = bitmap.getbbox()
    assert box is not None
    return bitmap.crop(box), (box[0], box[1])
