"""What a player may be called, and which names are alike."""

from __future__ import annotations

import unicodedata
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.errors import RankingRefusal
from heek.ki.numbers import ki_number
from heek.ranking.look_alikes import MOST_NAME, are_alike, chosen_name, looks, looks_drawn
from heek.ranking.names import FIRST, SECOND, names_for
from heek.unseen import first_unseen


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        (" Ann  of the\u00a0bridge ", "Ann of the bridge"),
        ("Zoe\u0308", "Zo\u00eb"),
        ("O\u2019Neil", "O\u2019Neil"),
        ("\uff21nn", "Ann"),
        ("Nguy\u1ec5n V\u0103n", "Nguy\u1ec5n V\u0103n"),
        ("\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd", None),
        ("\u0e2a\u0e21\u0e0a\u0e32\u0e22", None),
        ("\u0928\u0947\u0939\u093e", None),
        ("\u540d\u524d\u306eAnn", None),
        ("\ud55c\uae00 Kim", None),
        ("\u0410\u043d\u043d\u0430", None),
    ],
)
def test_names_of_many_scripts_are_names(typed: str, name: str | None) -> None:
    """In every script that people write, normalized, with single spaces and none around."""
    assert chosen_name(typed) == (unicodedata.normalize("NFKC", typed) if name is None else name)


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("A\u200bnn", "U+200B ZERO WIDTH SPACE"),
        ("\u202eevil", "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("\u2066Ann\u2069", "U+2066"),
        ("\u3164", "U+3164 HANGUL FILLER"),
        ("Ann\u034f", "U+034F COMBINING GRAPHEME JOINER"),
        ("Ann\ufe0f", "U+FE0F VARIATION SELECTOR-16"),
        ("Ann\U000e0041", "U+E0041 TAG LATIN CAPITAL LETTER A"),
        ("\u2800", "U+2800 BRAILLE PATTERN BLANK"),
        ("Ann\n", "U+000A"),
        ("\x1b[2J", "U+001B"),
        ("\ud800", "U+D800"),
        ("", "has no letter"),
        ("  ", "has no letter"),
        ("...", "has no letter"),
        (ki_number(7), "has no letter"),
        ("\u0410nn", "mixes Cyrillic and Latin"),
        ("Ann\u03bf", "mixes Greek and Latin"),
        ("Ann \u0661", "mixes Arabic and Latin"),
        ("\u13aann", "CHEROKEE LETTER GO"),
        ("\u1d00nn", "LATIN LETTER SMALL CAPITAL A"),
        ("\ua641\u043d\u043d", "CYRILLIC SMALL LETTER ZEMLYA"),
        ("Ann\U0001f642", "SLIGHTLY SMILING FACE"),
        ("Ann\u20dd", "COMBINING ENCLOSING CIRCLE"),
        ("e" + "\u0301\u0323" * 12, "on one letter"),
        ("e\u0301\u0301", "the same one twice"),
        ("\u0301Ann", "a mark without a letter"),
        ("Ann-\u0301", "a mark without a letter"),
        ("\u00b4Ann", "a mark without a letter"),
        ("x" * (MOST_NAME + 1), "has 33 characters; 32 are the most"),
        ("\ufdfa" * 3, "has 54 characters"),
    ],
)
def test_what_is_no_name_is_refused_in_one_line(typed: str, why: str) -> None:
    """What is wrong is named, with the character if it is one, and nothing of it can be a line of its own."""
    with pytest.raises(RankingRefusal) as refused:
        chosen_name(typed)
    assert why in str(refused.value)
    assert (refused.value.code, first_unseen(str(refused.value))) == ("malformed", None)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ann", "ANN"),
        ("Cop", "\u0421\u043e\u0440"),
        ("Tom", "\u0422\u043e\u043c"),
        ("AHHA", "\u0410\u041d\u041d\u0410"),
        ("POKEA", "\u03a1\u039f\u039a\u0395\u0391"),
        ("Ian", "lan"),
        ("Bob", "B0b"),
        ("Max", "rnax"),
        ("Wanda", "VVanda"),
        ("Zoe\u0308", "Zo\u00eb"),
        ("\u0421\u043e\u0451", "Co\u00eb"),
        ("O'Neil", "O\u2019Neil"),
        ("istanbul", "\u0130stanbul"),
        ("Level 1", "Level l"),
        ("\u0660\u0627", "0l"),
        ("\u529b", "\u30ab"),
        ("Ann Lee", "AnnLee"),
        ("Ann.", "Ann"),
        ("A nn", "Ann"),
        ("-Ann-", "ann"),
        ("O\u2019Neil", "ONeil"),
        ("A|ice", "Alice"),
        ("c orn", "com"),
    ],
)
def test_look_alikes_are_alike(one: str, other: str) -> None:
    """Capitals, other scripts, other letters and digits of the same looks; blanks and signs are none."""
    assert are_alike(one, other)
    assert are_alike(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ann", "Anne"),
        ("Zoe", "Zo\u00eb"),
        ("A|ice", "Aice"),
        ("AIICE", "alice"),
        ("Ben", "Den"),
        ("2", "3"),
    ],
)
def test_what_can_be_told_apart_is_not(one: str, other: str) -> None:
    """An accent, a letter more, and a capital I that no small l looks like when all are capitals."""
    assert not are_alike(one, other)


@given(st.text(max_size=40))
def test_whatever_is_typed_is_a_name_or_refused(typed: str) -> None:
    """A name is normalized, so given again it is the same, and it is like itself however it is written."""
    try:
        name = chosen_name(typed)
    except RankingRefusal:
        return
    assert chosen_name(name) == name
    assert 0 < len(name) <= MOST_NAME
    assert first_unseen(name) is None
    assert are_alike(name, name.casefold())


def test_drawn_names_are_never_alike() -> None:
    """Words look different, and so do numbers: two drawn names that differ are not alike."""
    for words in (FIRST, SECOND):
        for small in (0, 1):
            assert len({looks(each)[small] for each in words}) == len(words)
    assert len({looks(f"x {number}") for number in range(2000)}) == 2000
    pairs = [one + other for one in FIRST for other in SECOND]
    for small in (0, 1):
        seen = {looks(pair)[small] for pair in pairs}
        assert len(seen) == len(pairs)
        # So no digits that look like letters make another pair of it.
        assert not any(each[:end] in seen for each in seen for end in range(1, len(each)))


@given(st.integers(0, 10**7 - 1), st.sampled_from([str.upper, str.lower, str.title, str]))
def test_a_drawn_name_looks_drawn(number: int, written: type[str]) -> None:
    """In whatever letters, with digits and letters changed for their look-alikes; nobody can choose one."""
    for name in islice(names_for(ki_number(number)), 4):
        assert looks_drawn(written(name))
        assert looks_drawn(name.replace("1", "l").replace("0", "O"))
        assert looks_drawn(name.replace("l", "1"))
        assert looks_drawn(name.replace(" ", ""))
        assert looks_drawn(name.replace(" ", " - "))
        assert chosen_name(name) == name


@pytest.mark.parametrize(
    "name", ["Ann", "Calm Keeper", "Calm Keeper of Tees", "Calm Otto 7", "Calm Keeper 7 x"]
)
def test_other_names_do_not_look_drawn(name: str) -> None:
    """Two of those words and a number are drawn; anything else is somebody's choice."""
    assert not looks_drawn(name)


@pytest.mark.parametrize(
    "name",
    [
        "guest", "a guest", "A  GUEST", "the Guest", "Guest 3", "guest3", "G.u.e.s.t", "Guests", "aguest",
        "Bot", "a bot", "B0T", "Bot 2", "Bot#2", "Seat 1", "seat5", "SEAT l", "the seat 4", "Se at 1",
        "KI", "the KI", "K1", "ki", "KI operator", "Operator", "the 0perator", "an operator", "erased",
        "ERASED", "void", "VOlD", "vo|d", "Winner", "the vvinner", "Guest-Bot", "nobody", "Seats 1",
    ],
)  # fmt: skip
def test_no_player_is_called_what_is_no_player(name: str) -> None:
    """With or without an article or a number, in any letters that look so, with signs in it or none."""
    with pytest.raises(RankingRefusal, match="is what pages and displays call somebody who is no player"):
        chosen_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "Aki", "Anki", "Kiki", "Kim", "Kilo", "Akil", "Botond", "Abbot", "Seaton", "Ben the winner",
        "Guesting Ann", "A", "The", "Al 2", "Kio", "Bo", "Winnie", "Operatora", "A 1",
    ],
)  # fmt: skip
def test_names_that_only_hold_such_a_word_are_names(name: str) -> None:
    """People are called Aki, Kiki and Botond."""
    assert chosen_name(name) == name
