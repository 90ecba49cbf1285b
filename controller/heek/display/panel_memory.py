"""The bytes that a controller keeps for a picture: 8 pages of 128 columns, each byte 8 dots, low bit up.

SSD1306, SSD1309 and SH1106 lay their memory out alike. Dot (x, y) is bit y % 8 of byte 128 * (y // 8) + x. A
panel mounted upside down gets the picture turned by half a circle, as luma's drivers do it for `rotate = 2`.

Pillow holds a picture of mode "1" by rows, eight dots side by side in a byte, the left one in the high bit.
So the picture is laid on its side: then a row is what was a column, and each of its bytes is one byte of the
controller, wanted every eighth byte apart. The way it is turned decides which end comes first, and the two
ways are just the two rotations.
"""

from __future__ import annotations

from typing import Final

from PIL import Image

COLUMNS: Final = 128
PAGES: Final = 8
SIZE_PX: Final = (COLUMNS, 8 * PAGES)
BYTES: Final = COLUMNS * PAGES

_ON_ITS_SIDE: Final = {0: Image.Transpose.ROTATE_270, 2: Image.Transpose.ROTATE_90}


def packed(image: Image.Image, rotate: int = 0) -> bytes:
    """The `BYTES` bytes for `image`, turned by `rotate` quarters (0 or 2).

    Raises ValueError for another rotation, or a picture that is not 128 x 64 of mode "1".
    """
    if image.mode != "1" or image.size != SIZE_PX:
        raise ValueError(f"the OLED takes a picture of mode 1 and 128 x 64, not {image.mode} {image.size}")
    way = _ON_ITS_SIDE.get(rotate)
    if way is None:
        raise ValueError(f"the OLED is turned by 0 or 2 quarters, not {rotate}")
    rows = image.transpose(way).tobytes()
    return b"".join([rows[page::PAGES] for page in range(PAGES - 1, -1, -1)])
