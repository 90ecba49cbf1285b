"""The words of a test are never cut."""

from __future__ import annotations

import pytest

from heek.display.large_words import large_words


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
