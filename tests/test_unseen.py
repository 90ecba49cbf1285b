"""Characters in which there is nothing to see."""

from __future__ import annotations

import pytest

from heek.config import from_text
from heek.errors import ConfigError
from heek.ki.answers import SignedIn, encode_signed_in, read_signed_in
from heek.ki.numbers import ki_number
from heek.telling import printable
from heek.unseen import first_unseen, is_unseen

UNSEEN = [
    "\u200b",
    "\u202e",
    "\u2066",
    "\u00ad",
    "\u3164",
    "\uffa0",
    "\u034f",
    "\ufe0f",
    "\u2800",
    "\x00",
    "\ud800",
]


@pytest.mark.parametrize("character", UNSEEN, ids=ascii)
def test_they_are_found_and_named(character: str) -> None:
    """Zero-width ones, what turns the direction of writing, fillers, selectors, controls, half a pair."""
    assert is_unseen(character)
    found = first_unseen(f"Ann{character}")
    assert found is not None
    assert found.startswith(f"U+{ord(character):04X}")


def test_what_can_be_seen_is_left_alone() -> None:
    """Letters and signs of all kinds, marks on letters, and plain spaces."""
    assert first_unseen("Ann O\u2019Neil, Zoe\u0308, \u540d\u524d \U0001f600 \u05d0 \u0e2a\u0e34") is None


# Half a pair is no text, and no CBOR can hold it.
@pytest.mark.parametrize("character", UNSEEN[:-1], ids=ascii)
def test_they_are_in_no_name_that_a_table_shows(character: str) -> None:
    """Not in that of who signs in, which is the number if nothing else is left; nor in a sentence."""
    number = ki_number(7)
    for name, shown in ((f"Ann{character}", "Ann"), (character, number)):
        signed = read_signed_in(encode_signed_in(SignedIn(number, name, 100)))
        assert signed.name == shown
    assert printable(f"A{character}nn") == "A?nn"


def test_they_are_in_no_tables_name() -> None:
    """Of two tables with names that look the same one would be taken for the other."""
    with pytest.raises(
        ConfigError, match=r"table.name: has a character that nobody can see \(U\+3164 HANGUL"
    ):
        from_text('[table]\nname = "Table 1\u3164"\n[stations]\nbackend = "mock"\n', "table.toml")
