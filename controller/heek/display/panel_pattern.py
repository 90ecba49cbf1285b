"""What a panel shows while the table is tested: large words, and a pattern that shows a panel's faults.

The pattern's frame lies on the outermost dots, so that a picture that is shifted (the wrong driver) or cut
misses a side; its arrow points up, so that a panel that hangs upside down shows it; its fields of fine dots
show dead rows and columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image, ImageDraw

from heek.display import font

WIDTH_PX, HEIGHT_PX = 128, 64


def panel_pattern() -> Image.Image:
    """Frame, arrow, the word HEEK and fine dots: mode "1", 128 x 64."""
    image = Image.new("1", (WIDTH_PX, HEIGHT_PX))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, WIDTH_PX - 1, HEIGHT_PX - 1), outline=255)
    draw.polygon([(64, 4), (54, 16), (74, 16)], fill=255)
    draw.rectangle((61, 16, 67, 26), fill=255)
    word = font.rendered("HEEK", 2)
    image.paste(255, ((WIDTH_PX - word.width) // 2, 34), word)
    for y in range(4, 60):
        for x in (*range(4, 28), *range(100, 124)):
            if (x + y) % 2 == 0:
                draw.point((x, y), fill=255)
    return image


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
