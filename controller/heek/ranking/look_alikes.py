"""What a player may be called by choice, so that nobody is taken for somebody else.

**What a name is made of.** It is normalized (NFKC, single spaces) and then has letters, marks and digits of
one script in everyday use, or of those in which Japanese, Korean or Chinese are written together with Latin,
and a few signs between them. So no Cyrillic letter stands among Latin ones, and whole alphabets of
look-alikes (phonetic, dead ones) are none here. Nothing is in a name that nobody can see.

**What is alike.** A whole word may still be of another script, or of other letters of its own: "Cop" in
Cyrillic, "lan" and "Ian". Each name has two looks, as it is written and in small letters, both with every
letter and digit replaced by the one that it looks like, and without blanks and signs: "Ann.", "A nn" and
"Ann" have one look, for nobody reads a dot from across a table. Two names are alike if they share a look.
Which letters are alike is a matter of taste at its edges; here they are rather too many than too few, for all
that follows is that somebody picks another name.

**Who is no player.** Board, pages and displays say "a guest", "a bot", "seat 1", "the operator" where no
player has a name, so no player is called that, with or without an article or a number.

**Names that are drawn** (`heek.ranking.names`) are never alike each other, and no chosen one has their form.
So whoever gets an account need not be compared with anybody.

This is the idea of Unicode's UTS 39, with a list of our own for the scripts that are taken. No library does
it: `confusable-homoglyphs` has had no release since January 2024, has no skeletons, and reads what is written
from right to left wrongly; the others are younger than their first operator.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import permutations
from typing import Final

from heek.errors import RankingRefusal
from heek.ranking.names import FIRST, SECOND
from heek.unseen import first_unseen

MOST_NAME: Final = 32
"""Characters of a name, normalized."""
MOST_MARKS: Final = 4
"""On one letter, as in UTS 39."""

_SCRIPTS: Final = frozenset(
    {
        "LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "HEBREW", "ARABIC", "DEVANAGARI", "BENGALI", "GURMUKHI",
        "GUJARATI", "ORIYA", "TAMIL", "TELUGU", "KANNADA", "MALAYALAM", "SINHALA", "THAI", "LAO", "TIBETAN",
        "MYANMAR", "GEORGIAN", "HANGUL", "ETHIOPIC", "KHMER", "HIRAGANA", "KATAKANA", "BOPOMOFO", "CJK",
        "THAANA",
    }
)  # fmt: skip
"""In everyday use (UAX 31, "recommended"), as the names of their letters begin."""
_ALSO_CALLED: Final = {
    "ARABIC-INDIC": "ARABIC",
    "EXTENDED": "ARABIC",
    "KATAKANA-HIRAGANA": "KATAKANA",
    "IDEOGRAPHIC": "CJK",
}
_TOGETHER: Final = (
    {"LATIN", "CJK", "HIRAGANA", "KATAKANA"},
    {"LATIN", "CJK", "HANGUL"},
    {"LATIN", "CJK", "BOPOMOFO"},
)
_EVERYDAY: Final = {
    "LATIN": (range(0x02B0), range(0x1E00, 0x1F00)),
    "CYRILLIC": (range(0x0400, 0x0530),),
}
"""What lies beyond these is of phoneticians and historians, and full of look-alikes."""
_ANY: Final = ""

NO_PLAYER: Final = ("guest", "bot", "seat", "operator", "KI", "erased", "void", "winner", "nobody")
"""What board, pages and displays call somebody, or something, that is no player."""
_ARTICLES: Final = ("a", "an", "the")
_SHORT: Final = 3
"""Letters of a word that is a part of many names."""
_SIGNS: Final = frozenset(" !\"#$%&'()*+,-./:;=?@[]_|~‘’ʻʼ–—·")
_BETWEEN_WORDS: Final = "[" + re.escape("".join(sorted(_SIGNS - {"|"}))) + "]"

_ALIKE: Final = (
    "l1I|ǀІӀӏΙլוןا", "O0ОΟՕ", "oоοσօჿסه",
    "aаαɑ", "cсϲ", "dԁ", "eе", "gɡց", "hһհ", "iіιɩıɪ", "jјϳȷ", "kкκĸ", "mм", "nηոɴ", "pрρ", "qԛզ", "rгʀ",
    "sѕ", "tтτ", "uυս", "vνѵʋ", "wѡԝωաɯ", "xхχ", "yуγүʏ", "bьʙ",
    "AАΑ", "BВΒ", "CСϹ", "EЕΕ", "FϜ", "GԌ", "HНΗ", "JЈͿ", "KКΚ", "LԼ", "MМΜϺ", "NΝ", "PРΡ", "QԚ", "SЅՏ",
    "TТΤ", "UՍ", "VѴ", "WԜ", "XХΧ", "YҮУΥ", "ZΖ", "ΓГ", "ΠП", "ΦФ", "πп", "φф", "ßβ",
    "一ー", "二ニ", "三ミ", "工エ", "力カ", "夕タ", "卜ト", "八ハ", "口ロ", "ヘへ", "リり",
    "'‘’ʻʼ", "-–—",
)  # fmt: skip
"""In each group all look like the first one."""
_LOOKS_LIKE: Final = {ord(each): group[0] for group in _ALIKE for each in group[1:]}
_RUN_TOGETHER: Final = (("rn", "m"), ("vv", "w"), ("i\u0307", "i"), ("j\u0307", "j"))

_DRAWN_DIGITS: Final = frozenset("lo23456789")
"""How the digits look: `1` as l, `0` as o."""


def chosen_name(text: str) -> str:
    """The name that somebody wants to have, normalized; raises RankingRefusal, which says what is wrong."""
    unseen = first_unseen(text)
    if unseen is not None:
        raise _refused(
            f"has a character that nobody can see, or that moves what stands beside it ({unseen})",
            "type it again without",
        )
    name = " ".join(unicodedata.normalize("NFKC", text).split())
    if len(name) > MOST_NAME:
        raise _refused(f"has {len(name)} characters", f"{MOST_NAME} are the most")
    letters = [each for each in name if each not in _SIGNS]
    scripts = set()
    for each in letters:
        script = _script(each)
        if script is None:
            raise _refused(
                f"has {each!r} (U+{ord(each):04X} {unicodedata.name(each, 'without a name')})",
                "a name has letters of a script in everyday use, digits and simple signs",
            )
        scripts.add(script)
    if not any(unicodedata.category(each)[0] == "L" for each in letters):
        raise _refused("has no letter", "give it one")
    scripts.discard(_ANY)
    if len(scripts) > 1 and not any(scripts <= each for each in _TOGETHER):
        words = " and ".join(each.capitalize() for each in sorted(scripts))
        raise _refused(f"mixes {words}, some of whose letters look alike", "write it in one script")
    if not _marks_stand_well(name):
        raise _refused(
            f"has a mark without a letter, the same one twice, or more than {MOST_MARKS} on one letter",
            "leave some out",
        )
    if _says_no_player(name):
        raise _refused(
            f"{name!r} is what pages and displays call somebody who is no player ({', '.join(NO_PLAYER)})",
            "choose another",
        )
    return name


def looks(name: str) -> tuple[str, str]:
    """How a name looks as it is written, and in small letters, without blanks and signs."""
    plain = unicodedata.normalize("NFKC", name)
    return _look(plain), _look(plain.casefold())


def are_alike(one: str, other: str) -> bool:
    """Whether one name might be taken for the other."""
    return any(mine == its for mine, its in zip(looks(one), looks(other), strict=True))


def looks_drawn(name: str) -> bool:
    """Whether a name has the form of those that the KI draws, or looks as if it had."""
    for look, words in zip(looks(name), _DRAWN_WORDS, strict=True):
        for end in range(1, len(look)):
            if look[:end] in words and _DRAWN_DIGITS.issuperset(look[end:]):
                return True
    return False


def _refused(what: str, remedy: str) -> RankingRefusal:
    return RankingRefusal("malformed", f"the name {what}; {remedy}")


def _script(character: str) -> str | None:
    """Whose letter, mark or digit it is; `_ANY` for those of all scripts, None if it belongs in no name."""
    category = unicodedata.category(character)
    if category[0] not in "LM" and category != "Nd":
        return None
    first = unicodedata.name(character, "").partition(" ")[0]
    if first in ("DIGIT", "COMBINING") and category != "Me":
        return _ANY
    script = _ALSO_CALLED.get(first, first)
    everyday = _EVERYDAY.get(script)
    if script not in _SCRIPTS or (everyday and not any(ord(character) in each for each in everyday)):
        return None
    return script


def _marks_stand_well(name: str) -> bool:
    """Whether each mark has a letter to stand on, and none a heap of them."""
    marks, before = MOST_MARKS, ""
    for each in unicodedata.normalize("NFKD", name):
        if unicodedata.category(each)[0] == "M":
            marks += 1
            if marks > MOST_MARKS or each == before:
                return False
        else:
            marks = MOST_MARKS if each in _SIGNS else 0
        before = each
    return True


def _look(text: str) -> str:
    letters = (_as_digit(each) for each in unicodedata.normalize("NFKD", text))
    # What looks like a letter is one by now, `|` say, and what stands for several signs is a sign.
    look = "".join(each for each in "".join(letters).translate(_LOOKS_LIKE) if each not in _SIGNS)
    for pair, one in _RUN_TOGETHER:
        look = look.replace(pair, one)
    return "".join(look.casefold().split())


def _says_no_player(name: str) -> bool:
    """Whether all that a name says is one of `NO_PLAYER`, or two, or looks as if it did."""
    words = [each for each in re.split(_BETWEEN_WORDS, unicodedata.normalize("NFKC", name)) if each]
    if len(words) > 1 and words[0].casefold() in _ARTICLES:
        words = words[1:]
    if len(words) > 1 and _DRAWN_DIGITS.issuperset(looks(words[-1])[1]):
        words = words[:-1]
    # A number may also stand right behind it; only real digits, or Kilo would be KI 10.
    whole = "".join(words)
    without = whole.rstrip("".join(each for each in whole if each.isdecimal()))
    return any(
        look in called
        for said in (whole, without)
        for look, called in zip(looks(said), _NO_PLAYER_LOOKS, strict=True)
    )


def _as_digit(character: str) -> str:
    """A digit of any script as ours, everything else as it is."""
    return character if character.isascii() else str(unicodedata.decimal(character, character))


_DRAWN_WORDS: Final = tuple(
    frozenset(looks(first + second)[small] for first in FIRST for second in SECOND) for small in (0, 1)
)
"""The looks of every two words that names are drawn from, as written and in small letters."""


def _no_player_looks() -> tuple[frozenset[str], frozenset[str]]:
    said = [word + end for word in NO_PLAYER for end in ("", "s")]
    said += [one + other for one, other in permutations(NO_PLAYER, 2)]
    # An article without a blank; not before the short ones, or nobody could be called Aki.
    said += [article + word for article in _ARTICLES for word in NO_PLAYER if len(word) > _SHORT]
    written = {looks(form)[0] for word in said for form in (word, word.upper(), word.title())}
    return frozenset(written), frozenset(looks(word)[1] for word in said)


_NO_PLAYER_LOOKS: Final = _no_player_looks()
