"""The golden screens at four times their size: all in one picture, and six of a match for the README.

`python -m tests.display.contact_sheet` writes both.
"""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from heek.display import font
from heek.display.drawing import draw
from tests.display.catalogue import moments, screen_of

SHEET = Path(__file__).parents[2] / "controller" / "heek" / "display" / "screens.png"
GLANCE = SHEET.with_name("glance.png")
GLANCE_NAMES = ["attract-7", "lobby-two", "countdown-3", "reveal", "reveal-collections", "match-over-three"]
_SCALE = 4
_COLUMNS = 4
_BORDER_PX = 2
_GAP_PX = 16
_CAPTION_PX = 24


def contact_sheet(names: list[str] | None = None) -> Image.Image:
    """All golden screens with captions in rows of four, or those of `names` in rows of three; mode "1"."""
    shown = names or list(moments())
    columns = _COLUMNS if names is None else 3
    cell_w = 128 * _SCALE + 2 * _BORDER_PX + _GAP_PX
    cell_h = 64 * _SCALE + 2 * _BORDER_PX + _GAP_PX + _CAPTION_PX
    rows = -(-len(shown) // columns)
    sheet = Image.new("1", (columns * cell_w + _GAP_PX, rows * cell_h + _GAP_PX))
    for index, name in enumerate(shown):
        x = _GAP_PX + index % columns * cell_w
        y = _GAP_PX + index // columns * cell_h
        picture = draw(screen_of(name))
        large = picture.resize((128 * _SCALE, 64 * _SCALE), Image.Resampling.NEAREST)
        frame = Image.new("1", (large.width + 2 * _BORDER_PX, large.height + 2 * _BORDER_PX), 255)
        frame.paste(large, (_BORDER_PX, _BORDER_PX))
        sheet.paste(frame, (x, y))
        sheet.paste(font.rendered(name, 2), (x, y + frame.height + 3))
    return sheet


if __name__ == "__main__":
    for file, names in ((SHEET, None), (GLANCE, GLANCE_NAMES)):
        contact_sheet(names).save(file, optimize=True)
        print(f"wrote {file}")
