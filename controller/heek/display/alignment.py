"""The picture by which a person sees whether a panel is driven as it should be.

The program cannot see it: an SSD1306 and an SH1106 acknowledge each other's commands. What gives it away is
the glass. A frame runs along the outermost dots: with the wrong driver, or a module whose memory lies
otherwise, it stands two columns aside and a stripe of chance is at an edge, or only one page is drawn. The
four corners differ, so a picture that is turned or mirrored is seen; the words give the driver, and which way
is up.
"""

from __future__ import annotations

from typing import Final

from PIL import Image

from heek.display import font
from heek.display.table_top import HEIGHT_PX, WIDTH_PX

_CORNER_PX: Final = 7
_CROSS_PX: Final = 9


def alignment(driver: str, where: str = "") -> Image.Image:
    """The picture for a panel with `driver`: mode "1", 128 x 64. `where`, as `i2c-1 0x3c`, stands below."""
    image = Image.new("1", (WIDTH_PX, HEIGHT_PX), 255)
    image.paste(0, (1, 1, WIDTH_PX - 1, HEIGHT_PX - 1))
    right, below = WIDTH_PX - 3 - _CORNER_PX, HEIGHT_PX - 3 - _CORNER_PX
    _box(image, 3, 3)
    _box(image, right, 3, rim_px=1)
    _box(image, 3, below, rim_px=2)
    # The fourth corner is a step, which no turn and no mirror makes of one of the others.
    for step in range(_CORNER_PX):
        image.paste(
            255, (right + step, below + _CORNER_PX - 1 - step, right + _CORNER_PX, below + _CORNER_PX - step)
        )
    middle_x, middle_y = WIDTH_PX // 2, HEIGHT_PX // 2
    for x, y, width, height in (
        (middle_x - _CROSS_PX, middle_y, 2 * _CROSS_PX + 1, 1),
        (middle_x, middle_y - _CROSS_PX, 1, 2 * _CROSS_PX + 1),
    ):
        image.paste(255, (x, y, x + width, y + height))
    for text, y in ((f"TOP {driver.upper()}", 12), (where, 52)):
        words = font.rendered(text)
        image.paste(255, (middle_x - words.width // 2, y - font.CAPITAL_PX // 2), words)
    return image


def _box(image: Image.Image, left: int, top: int, rim_px: int = 0) -> None:
    """A lit square, or the rim of one, `rim_px` wide."""
    image.paste(255, (left, top, left + _CORNER_PX, top + _CORNER_PX))
    if rim_px:
        image.paste(0, (left + rim_px, top + rim_px, left + _CORNER_PX - rim_px, top + _CORNER_PX - rim_px))
