"""The pattern shows what is wrong with a panel, and the words of a test are never cut."""

from __future__ import annotations

import pytest

from heek.display.panel_pattern import large_words, panel_pattern


def test_the_pattern_shows_shifts_cuts_and_a_turn() -> None:
    """Every outermost dot is lit, and turned by a half it is another picture."""
    image = panel_pattern()
    assert (image.mode, image.size) == ("1", (128, 64))
    edge = [(x, y) for x in range(128) for y in (0, 63)] + [(x, y) for x in (0, 127) for y in range(64)]
    assert all(image.getpixel(dot) for dot in edge)
    assert image.rotate(180).tobytes() != image.tobytes()
    # Every row and every column is lit somewhere, so that a dead one shows.
    assert all(image.crop((0, y, 128, y + 1)).getbbox() for y in range(64))
    assert all(image.crop((x, 0, x + 1, 64)).getbbox() for x in range(128))


@pytest.mark.parametrize(
    "words",
    [("HANDS OFF",), ("SEAT 3", "PRESS", "BEETLE"), ("SEAT 1", "LET GO", "PAGE"), ("ALL DARK?",), ("…",)],
)
def test_words_stay_inside(words: tuple[str, ...]) -> None:
    """Each of a test's words is drawn with a dark margin: nothing of it lies beyond the panel."""
    box = large_words(words).getbbox()
    assert box is not None
    assert box[0] > 0
    assert box[1] >= 0
    assert box[2] < 128
    assert box[3] <= 64
