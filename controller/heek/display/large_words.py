"""What a panel asks while the table is tested: a few words, as large as they go."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image

from heek.display import font
from heek.display.table_top import HEIGHT_PX, WIDTH_PX


def large_words(words: Sequence[str]) -> Image.Image:
    """Up to three short lines, as large as they go, centred: mode "1", 128 x 64."""
    image = Image.new("1", (WIDTH_PX, HEIGHT_PX))
    lines = list(words)[:3]
    step = HEIGHT_PX // max(1, len(lines))
    for number, line in enumerate(lines):
        scale = 2 if font.width_px(line, 2) <= WIDTH_PX else 1
        bitmap = font.rendered(line, scale)
        top = number * step + (step - font.CAPITAL_PX * scale) // 2
        image.paste(255, ((WIDTH_PX - bitmap.width) // 2, top), bitmap)
    return image
