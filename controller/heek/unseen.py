"""Characters in which there is nothing to see, or which move what stands beside them.

`str.isprintable` refuses controls, formats (zero-width ones, those that turn the direction of writing) and
what is assigned to nothing. Some letters, marks and symbols are as empty and pass it: a name of a single
Hangul filler looks like no name at all.
"""

from __future__ import annotations

import unicodedata
from typing import Final

_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_EMPTY: Final = frozenset(
    [
        # Default_Ignorable_Code_Point (Unicode 15), as far as it is not in those categories.
        0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x180E), 0x180F, 0x3164, 0xFFA0,
        *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0),
        # And drawn as nothing all the same: a Braille cell without dots, a note without a head.
        0x2800, 0x1D159,
    ]
)  # fmt: skip


def is_unseen(character: str) -> bool:
    """Whether this one character is drawn as nothing, or changes how others are drawn. A space is not."""
    return unicodedata.category(character) in _CATEGORIES or ord(character) in _EMPTY


def first_unseen(text: str) -> str | None:
    """The first such character of a text, as people can look it up: "U+200B ZERO WIDTH SPACE"."""
    for each in text:
        if is_unseen(each):
            return f"U+{ord(each):04X} {unicodedata.name(each, '')}".rstrip()
    return None
