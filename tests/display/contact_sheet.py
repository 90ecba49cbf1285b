"""Every golden screen at four times its size in one picture: `python -m tests.display.contact_sheet`."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from heek.display import font
from heek.display.drawing import draw
from tests.display.catalogue import moments, screen_of

SHEET = Path(__file__).parents[2] / "controller" / "heek" / "display" / "screens.png"
_SCALE = 4
_COLUMNS = 4
_BORDER_PX = 2
_GAP_PX = 16
_CAPTION_PX = 24


def contact_sheet(names: list[str] | None = None) -> Image.Image:
    """All golden screens (or those of `names`) with their captions, in rows of four; mode "1"."""
    shown = names or list(moments())
    cell_w = 128 * _SCALE + 2 * _BORDER_PX + _GAP_PX
    cell_h = 64 * _SCALE + 2 * _BORDER_PX + _GAP_PX + _CAPTION_PX
    rows = -(-len(shown) // _COLUMNS)
    sheet = Image.new("1", (_COLUMNS * cell_w + _GAP_PX, rows * cell_h + _GAP_PX))
    for index, name in enumerate(shown):
        x = _GAP_PX + index % _COLUMNS * cell_w
        y = _GAP_PX + index // _COLUMNS * cell_h
        picture = draw(screen_of(name))
        large = picture.resize((128 * _SCALE, 64 * _SCALE), Image.Resampling.NEAREST)
        frame = Image.new("1", (large.width + 2 * _BORDER_PX, large.height + 2 * _BORDER_PX), 255)
        frame.paste(large, (_BORDER_PX, _BORDER_PX))
        sheet.paste(frame, (x, y))
        sheet.paste(font.rendered(name, 2), (x, y + frame.height + 3))
    return sheet


if __name__ == "__main__":
    contact_sheet().save(SHEET, optimize=True)
    print(f"wrote {SHEET}")
