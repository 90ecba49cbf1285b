"""Pictures: shape, memory, fit, and glyphs that nobody mistakes from any side."""

from __future__ import annotations

import time
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from PIL import Image, ImageChops

from heek.display import drawing, font, glyphs, table_top
from heek.display.drawing import draw
from heek.display.faces import ATTRACT_FRAMES, Attract, Look
from heek.display.ki_mark import KiMark, Reach
from heek.display.screens import screen
from heek.kinds import KINDS, SEATS
from heek.session.view import View
from tests.display.catalogue import KI_AWAY, KI_TROUBLED, KI_WAITING, moments, screen_of
from tests.display.views import instants, ki_marks, views


@given(view=views, now=instants, ki=ki_marks)
@settings(max_examples=150, deadline=None)
def test_any_view_can_be_drawn(view: View, now: int, ki: KiMark | None) -> None:
    """Proves that no view, whatever its names and numbers, raises, and that the picture fits the panel."""
    picture = draw(screen(view, now, table="T" * 24, ki=ki))
    assert (picture.mode, picture.size) == ("1", (128, 64))


@given(view=views, now=instants, ki=ki_marks)
@settings(max_examples=150, deadline=None)
def test_any_view_leaves_the_margins_dark(view: View, now: int, ki: KiMark | None) -> None:
    """Proves that the picture may move by its margins, and that nothing lit is cut off then."""
    left, _, right, bottom = draw(screen(view, now, table="T" * 24, ki=ki)).getbbox() or (64, 32, 64, 32)
    assert left >= table_top.MARGIN_LEFT_PX
    assert right <= 128 - table_top.MARGIN_RIGHT_PX
    assert bottom <= 64 - table_top.MARGIN_BELOW_PX


@pytest.mark.parametrize("name", moments())
def test_every_golden_screen_leaves_the_margins_dark(name: str) -> None:
    """Proves the same of the screens with the most on them."""
    left, _, right, bottom = draw(screen_of(name)).getbbox() or (64, 32, 64, 32)
    assert (left >= 1, right <= 127, bottom <= 63) == (True, True, True)


def test_equal_screens_share_one_picture() -> None:
    """Proves that a screen that comes back is not drawn again."""
    assert draw(screen_of("reveal")) is draw(screen_of("reveal"))


def test_the_memory_of_pictures_is_bounded() -> None:
    """Proves that a year of names cannot fill the memory, and that an attract loop fits in it."""
    bound = draw.cache_info().maxsize
    assert bound is not None
    assert ATTRACT_FRAMES < bound <= 1024


@pytest.mark.parametrize("name", moments())
def test_every_text_fits_the_panel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves that no line of text runs over an edge of the screen, on any golden screen."""
    real = drawing._text
    seen: list[tuple[str, int, int, int, int]] = []

    def watched(image: Image.Image, text: str, middle: tuple[int, int], scale: int = 1) -> None:
        bitmap = font.rendered(text, scale)
        left, top = middle[0] - bitmap.width // 2, middle[1] - font.CAPITAL_PX * scale // 2
        box = bitmap.getbbox() or (0, 0, 0, 0)
        seen.append((text, left + box[0], top + box[1], left + box[2], top + box[3]))
        real(image, text, middle, scale)

    monkeypatch.setattr(drawing, "_text", watched)
    draw.__wrapped__(screen_of(name))
    assert [line for line in seen if line[1] < 0 or line[2] < 0 or line[3] > 128 or line[4] > 64] == []


def squared(bitmap: Image.Image, edge: int = 48) -> Image.Image:
    """Centred on a black square, so that shapes of any size can be laid over each other."""
    square = Image.new("1", (edge, edge))
    box = bitmap.getbbox()
    assert box is not None
    cut = bitmap.crop(box)
    square.paste(cut, ((edge - cut.width) // 2, (edge - cut.height) // 2))
    return square


def difference(one: Image.Image, other: Image.Image) -> int:
    """How many dots differ."""
    return ImageChops.logical_xor(squared(one), squared(other)).histogram()[-1]


@pytest.mark.parametrize("size", [glyphs.SMALL_PX, glyphs.MEDIUM_PX, glyphs.LARGE_PX])
def test_no_kind_looks_like_another_from_any_side(size: int) -> None:
    """Proves that whichever way two kinds are turned, a sixth of the square differs or more."""
    for one, other in combinations(KINDS, 2):
        for turns in range(4):
            for other_turns in range(4):
                apart = difference(glyphs.kind(one, size, turns), glyphs.kind(other, size, other_turns))
                assert apart >= size * size / 6, (one, other, turns, other_turns)


def test_winners_look_different_from_losers() -> None:
    """Proves that an inverted glyph has little in common with the plain one."""
    for kind in KINDS:
        assert difference(glyphs.tile(kind), glyphs.kind(kind)) > 23 * 23 / 2


def test_no_digit_is_another_upside_down() -> None:
    """Proves that a digit read from the far side is no other digit, 6 and 9 included."""
    for one, other in combinations(range(10), 2):
        turned = glyphs.turned(glyphs.number(other, 55), 2)
        assert difference(glyphs.number(one, 55).resize((32, 48)), turned.resize((32, 48))) > 60, (one, other)


def test_countdown_digits_are_as_tall_as_the_free_screen() -> None:
    """Proves that a digit fills its height to the dot, so nothing is wasted above seat 1's side."""
    for digit in range(10):
        box = glyphs.number(digit, drawing._DIGIT_PX).getbbox()
        assert box is not None
        assert box[3] - box[1] == drawing._DIGIT_PX == 55


def test_quarter_turns_come_back() -> None:
    """Proves that four quarter turns change nothing and each one moves clockwise."""
    art = glyphs.from_art("##. ... ...")
    assert glyphs.turned(art, 1).tobytes() == glyphs.from_art("..# ..# ...").tobytes()
    assert glyphs.turned(art, 4) is art


def test_sides_of_a_seat_are_told_apart() -> None:
    """Proves that every look of every seat has a picture of its own, and lies inside the screen."""
    for slim in (False, True):
        for seat in SEATS:
            sides = [table_top.side(seat, look, slim=slim) for look in Look]
            assert len({(bitmap.size, bitmap.tobytes(), place) for bitmap, place in sides}) == len(Look)
            for bitmap, (x, y) in sides:
                assert x >= 0 <= y
                assert x + bitmap.width <= 128
                assert y + bitmap.height <= 64


def attract(frame: int, table: str, ki: KiMark | None) -> Attract:
    words, small = ((), None) if ki is None else (ki.words, ki.small)
    return Attract(marks=(), frame=frame, table=table, ki=words, small_ki=small)


@pytest.mark.parametrize("ki", [None, KI_WAITING])
def test_attract_has_distinct_frames_that_spare_the_panel(ki: KiMark | None) -> None:
    """Proves that no dot is lit in more than three quarters of the attract loop."""
    lit = [0] * (128 * 64)
    pictures = set()
    for frame in range(ATTRACT_FRAMES):
        picture = draw(attract(frame, "Table 1", ki))
        pictures.add(picture.tobytes())
        pixels = picture.convert("L").tobytes()
        lit = [count + (pixel > 0) for count, pixel in zip(lit, pixels, strict=True)]
    assert len(pictures) == ATTRACT_FRAMES
    assert max(lit) <= ATTRACT_FRAMES * 3 / 4


def test_an_uncached_screen_is_drawn_fast() -> None:
    """Proves that drawing pastes ready bitmaps: its best time is far below that of drawing shapes."""
    shown: list[Any] = [screen_of(name) for name in moments()]
    for each in shown:
        draw.__wrapped__(each)
    best = min(_time_of(shown) for _ in range(5))
    assert best / len(shown) < 0.0005


def _time_of(shown: list[Any]) -> float:
    start = time.perf_counter()
    for each in shown:
        draw.__wrapped__(each)
    return time.perf_counter() - start


@pytest.mark.parametrize("ki", [None, KI_WAITING, KI_AWAY, KI_TROUBLED, KiMark(Reach.DOWN, 1234)])
@pytest.mark.parametrize("table", ["", "Table 1", "The Cavern of Ae'gura", "W" * 24])
def test_attract_glyphs_never_touch_the_words(
    table: str, ki: KiMark | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves that in each frame a dark dot lies between the walking glyphs, the words and the KI's mark."""
    boxes: list[tuple[int, int, int, int]] = []

    def watched(_image: Image.Image, bitmap: Image.Image, middle: tuple[int, int]) -> None:
        left, top = middle[0] - bitmap.width // 2, middle[1] - bitmap.height // 2
        box = bitmap.getbbox()
        assert box is not None
        boxes.append((left + box[0], top + box[1], left + box[2], top + box[3]))

    monkeypatch.setattr(drawing, "_centred", watched)
    for frame in range(ATTRACT_FRAMES):
        boxes.clear()
        draw.__wrapped__(attract(frame, table, ki))
        said = boxes[len(KINDS) :]
        assert len(said) == 1 + (ki is not None and frame % 15 < 11), "the KI has its words or its mark"
        for (left, top, right, bottom), (x0, y0, x1, y1) in combinations(boxes, 2):
            assert x1 < left or x0 > right or y1 < top or y0 > bottom, frame
