"""Letters: what is drawn, how wide it is, and that no text can raise."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.display import font

anything = st.text(st.characters(codec=None, exclude_categories=()), max_size=60)


def test_printable_ascii_and_dni_letters_are_drawn() -> None:
    """Proves that every printable ASCII character and the letters of Äcädmü have drawings of their own."""
    wanted = set(string.printable) - set("\t\n\r\x0b\x0c") | set("äÄüÜöÖ")
    assert wanted <= font.characters()


def test_no_two_characters_look_alike() -> None:
    """Proves that every character has a picture of its own."""
    pictures = {}
    for character in sorted(font.characters()):
        bitmap = font.rendered(character)
        pictures.setdefault((bitmap.size, bitmap.tobytes()), []).append(character)
    assert [alike for alike in pictures.values() if len(alike) > 1] == []


@given(text=anything, scale=st.sampled_from((1, 2, 3)))
def test_any_text_draws_in_its_box(text: str, scale: int) -> None:
    """Proves that no character raises, that width is as told, and that a line is never higher than a line."""
    bitmap = font.rendered(text, scale)
    assert bitmap.size == (max(1, font.width_px(text)) * scale, font.LINE_PX * scale)


def test_no_letter_of_a_code_looks_like_a_vowel() -> None:
    """Proves that at three times the size curves are filled and corners keep their edge: D is no O."""
    letters = {letter: font.rendered(letter, 3).tobytes() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
    assert len(set(letters.values())) == 26
    d, o = font.rendered("D", 3), font.rendered("O", 3)
    assert d.getpixel((0, 0)) == d.getpixel((0, 23)) == 255
    assert o.getpixel((0, 0)) == o.getpixel((0, 23)) == 0
    assert o.getpixel((2, 2)) == 255


@pytest.mark.parametrize(
    "odd", ["名", "\U0001f600", "\u05d0", "\u202e", "\n", "\ud800", "\x00", "\u0301", "\u200b"]
)
def test_unknown_characters_become_a_visible_mark(odd: str) -> None:
    """Proves that what has no drawing is seen to be there."""
    assert font.drawable(f"a{odd}b") == f"a{font.UNKNOWN}b"
    assert font.rendered(odd).getbbox() is not None


@pytest.mark.parametrize(
    ("text", "shown"),
    [("O’Neil", "O'Neil"), ("Zoë", "Zoe"), ("Ærø", "�r�"), ("Åse — “é”", 'Ase - "e"'), ("Äcädmü", "Äcädmü")],
)
def test_near_characters_stand_in(text: str, shown: str) -> None:
    """Proves that accents and curly quotes are read as their plain letters."""
    assert font.drawable(text) == shown


@given(text=anything, width=st.integers(12, 128), lines=st.integers(1, 3))
def test_wrapped_lines_fit(text: str, width: int, lines: int) -> None:
    """Proves that no wrapped line is wider than its box nor one more than there is room for."""
    done = font.wrapped(text, width, lines)
    assert len(done) <= lines
    assert all(font.width_px(line) <= width for line in done)


@given(text=st.text(st.characters(exclude_categories=("Cs",)), max_size=24))
def test_a_lawful_name_is_never_cut(text: str) -> None:
    """Proves that nothing of a name that fits its lines is lost."""
    done = font.wrapped(text, 128, 3)
    assert "".join(done).replace(" ", "") == font.drawable(text).replace(" ", "")


def test_what_is_cut_says_so() -> None:
    """Proves that a text beyond its box ends in an ellipsis."""
    assert font.wrapped("W" * 60, 80, 2)[-1].endswith(font.ELLIPSIS)
