"""The table's own small letters: text as 1-bit bitmaps, for every string there is.

Capitals are 8 px high, a line takes 10 px with what hangs below it. Text comes from outside (names that
people chose), so nothing raises here: a letter with an accent that is not drawn below loses the accent,
and a character that is not known at all becomes one visible mark (`UNKNOWN`), control characters included.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

from PIL import Image

LINE_PX: Final = 10
"""Height of a line: 8 px for capitals and ascenders, 2 px below them."""

CAPITAL_PX: Final = 8
UNKNOWN: Final = "\N{REPLACEMENT CHARACTER}"
"""Stands for every character that has no drawing."""
ELLIPSIS: Final = "\N{HORIZONTAL ELLIPSIS}"

_SPACE_PX: Final = 3
_ART: Final = r"""
A     B     C     D     E     F     G     H     I   J     K     L     M
.###. ####. .###. ####. ##### ##### .###. #...# ### ....# #...# #.... #...#
#...# #...# #...# #...# #.... #.... #...# #...# .#. ....# #...# #.... ##.##
#...# #...# #.... #...# #.... #.... #.... #...# .#. ....# #..#. #.... #.#.#
#...# ####. #.... #...# ####. ####. #.... ##### .#. ....# ###.. #.... #.#.#
##### #...# #.... #...# #.... #.... #.### #...# .#. ....# #..#. #.... #...#
#...# #...# #.... #...# #.... #.... #...# #...# .#. #...# #...# #.... #...#
#...# #...# #...# #...# #.... #.... #...# #...# .#. #...# #...# #.... #...#
#...# ####. .###. ####. ##### #.... .###. #...# ### .###. #...# ##### #...#

N     O     P     Q     R     S     T     U     V     W     X     Y     Z
#...# .###. ####. .###. ####. .###. ##### #...# #...# #...# #...# #...# #####
##..# #...# #...# #...# #...# #...# ..#.. #...# #...# #...# #...# #...# ....#
##..# #...# #...# #...# #...# #.... ..#.. #...# #...# #...# .#.#. #...# ...#.
#.#.# #...# #...# #...# #...# .##.. ..#.. #...# #...# #...# ..#.. .#.#. ..#..
#.#.# #...# ####. #...# ####. ...#. ..#.. #...# #...# #.#.# ..#.. ..#.. ..#..
#..## #...# #.... #.#.# #.#.. ....# ..#.. #...# .#.#. #.#.# .#.#. ..#.. .#...
#..## #...# #.... #..#. #..#. #...# ..#.. #...# .#.#. ##.## #...# ..#.. #....
#...# .###. #.... .##.# #...# .###. ..#.. .###. ..#.. #...# #...# ..#.. #####

0     1   2     3     4     5     6     7     8     9     a     b     c
.###. .#. .###. .###. ...#. ##### ..##. ##### .###. .###. ..... #.... ....
#...# ##. #...# #...# ..##. #.... .#... ....# #...# #...# ..... #.... ....
#..## .#. ....# ....# .#.#. #.... #.... ....# #...# #...# .###. ####. .##.
#.#.# .#. ...#. ..##. #..#. ####. ####. ...#. .###. #...# ....# #...# #..#
#.#.# .#. ..#.. ....# #..#. ....# #...# ...#. #...# .#### .#### #...# #...
##..# .#. .#... ....# ##### ....# #...# ..#.. #...# ....# #...# #...# #...
#...# .#. #.... #...# ...#. #...# #...# ..#.. #...# ...#. #...# #...# #..#
.###. ### ##### .###. ...#. .###. .###. ..#.. .###. .##.. .#### ####. .##.

d     e     f    g     h     i j   k    l  m     n     o     p
....# ..... ..## ..... #.... # ..# #... #. ..... ..... ..... .....
....# ..... .#.. ..... #.... . ... #... #. ..... ..... ..... .....
.#### .###. .#.. .#### #.##. # ..# #..# #. ##.#. #.##. .###. ####.
#...# #...# ###. #...# ##..# # ..# #.#. #. #.#.# ##..# #...# #...#
#...# ##### .#.. #...# #...# # ..# ##.. #. #.#.# #...# #...# #...#
#...# #.... .#.. #...# #...# # ..# #.#. #. #.#.# #...# #...# #...#
#...# #...# .#.. #...# #...# # ..# #..# #. #.#.# #...# #...# #...#
.#### .###. .#.. .#### #...# # ..# #..# .# #.#.# #...# .###. ####.
..... ..... .... ....# ..... . #.# .... .. ..... ..... ..... #....
..... ..... .... .###. ..... . .#. .... .. ..... ..... ..... #....

q     r    s    t    u     v     w     x     y     z    !  "   #
..... .... .... .#.. ..... ..... ..... ..... ..... .... ## #.# .#.#.
..... .... .... .#.. ..... ..... ..... ..... ..... .... ## #.# .#.#.
.#### #.## .### ###. #...# #...# #...# #...# #...# #### ## #.# #####
#...# ##.. #... .#.. #...# #...# #...# .#.#. #...# ...# ## ... .#.#.
#...# #... .##. .#.. #...# #...# #.#.# ..#.. #...# ..#. ## ... .#.#.
#...# #... ...# .#.. #...# .#.#. #.#.# ..#.. #...# .#.. .. ... #####
#...# #... ...# .#.. #..## .#.#. #.#.# .#.#. #...# #... ## ... .#.#.
.#### #... ###. ..## .##.# ..#.. .#.#. #...# .#### #### ## ... .#.#.
....# .... .... .... ..... ..... ..... ..... ....# .... .. ... .....
....# .... .... .... ..... ..... ..... ..... .###. .... .. ... .....

$     %     &     ' (   )   *     +     ,  -    .  /    :
..#.. ##..# .##.. # ..# #.. ..... ..... .. .... .. ...# ..
.#### ##..# #..#. # .#. .#. ..#.. ..... .. .... .. ...# ..
#.#.. ...#. #..#. # #.. ..# #.#.# ..#.. .. .... .. ..#. ##
#.#.. ..#.. .##.. . #.. ..# .###. ..#.. .. .... .. ..#. ##
.###. ..#.. #.#.# . #.. ..# #.#.# ##### .. #### .. .#.. ..
..#.# .#... #..#. . #.. ..# ..#.. ..#.. .. .... .. .#.. ..
####. #..## #..#. . .#. .#. ..... ..#.. .# .... ## #... ##
..#.. #..## .##.# . ..# #.. ..... ..... .# .... ## #... ##
..... ..... ..... . ... ... ..... ..... #. .... .. .... ..

;  <    =    >    ?     @     [   \    ]   ^     _     `  {
.. .... .... .... .###. .###. ### #... ### ..#.. ..... #. ..##
.. ...# .... #... #...# #...# #.. #... ..# .#.#. ..... .# .#..
## ..#. .... .#.. ....# ....# #.. .#.. ..# #...# ..... .. .#..
## .#.. #### ..#. ...#. .##.# #.. .#.. ..# ..... ..... .. #...
.. #... .... ...# ..#.. #.#.# #.. ..#. ..# ..... ..... .. .#..
.. .#.. #### ..#. ..#.. #.#.# #.. ..#. ..# ..... ..... .. .#..
## ..#. .... .#.. ..... #.#.# #.. ...# ..# ..... ..... .. .#..
.# ...# .... #... ..#.. .###. ### ...# ### ..... ..... .. ..##
#. .... .... .... ..... ..... ... .... ... ..... ##### .. ....

| }    ~     ä     ö     ü     Ä     Ö     Ü     ×     …     �
# ##.. ..... .#.#. .#.#. .#.#. .#.#. .#.#. .#.#. ..... ..... #####
# ..#. ..... ..... ..... ..... ..... .###. ..... ..... ..... #...#
# ..#. ..... .###. .###. #...# .###. #...# #...# #...# ..... #.#.#
# ...# .#... ....# #...# #...# #...# #...# #...# .#.#. ..... ##.##
# ..#. #.#.# .#### #...# #...# #...# #...# #...# ..#.. ..... ##.##
# ..#. ...#. #...# #...# #...# ##### #...# #...# .#.#. ..... #.#.#
# ..#. ..... #...# #...# #..## #...# #...# #...# #...# #.#.# #...#
# ##.. ..... .#### .###. .##.# #...# .###. .###. ..... #.#.# #####
# .... ..... ..... ..... ..... ..... ..... ..... ..... ..... .....
# .... ..... ..... ..... ..... ..... ..... ..... ..... ..... .....
"""

_ALIKE: Final = {
    "\N{LEFT SINGLE QUOTATION MARK}": "'",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{LEFT DOUBLE QUOTATION MARK}": '"',
    "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
    "\N{EN DASH}": "-",
    "\N{EM DASH}": "-",
    "\N{NO-BREAK SPACE}": " ",
    "\N{LATIN SMALL LETTER SHARP S}": "ss",
}


@lru_cache(maxsize=1)
def _letters() -> dict[str, tuple[str, ...]]:
    """Each drawn character with its rows; read from the drawing above at the first use."""
    letters: dict[str, tuple[str, ...]] = {" ": ("." * _SPACE_PX,)}
    for block in _ART.strip("\n").split("\n\n"):
        header, *rows = block.split("\n")
        cells = [row.split() for row in rows]
        for column, character in enumerate(header.split()):
            letters[character] = tuple(row[column] for row in cells)
    return letters


@lru_cache(maxsize=1)
def characters() -> frozenset[str]:
    """Every character that has a drawing of its own."""
    return frozenset(_letters())


def drawable(text: str) -> str:
    """`text` in characters that have a drawing; what cannot be shown becomes `UNKNOWN`."""
    letters = _letters()
    known = []
    for character in text:
        if character in letters:
            known.append(character)
        elif character in _ALIKE:
            known.append(_ALIKE[character])
        else:
            bare = unicodedata.normalize("NFD", character)
            accents = all(unicodedata.combining(mark) for mark in bare[1:])
            known.append(bare[0] if len(bare) > 1 and accents and bare[0] in letters else UNKNOWN)
    return "".join(known)


def width_px(text: str, scale: int = 1) -> int:
    """How wide `text` is drawn, in pixels, at scale 1, 2 or 3; 0 for an empty string."""
    letters = _letters()
    known = drawable(text)
    return scale * (sum(len(letters[c][0]) + 1 for c in known) - 1) if known else 0


@lru_cache(maxsize=512)
def rendered(text: str, scale: int = 1) -> Image.Image:
    """`text` on one line as a bitmap of mode "1".

    Scale 1 is 10 px high; 2 is 20 and 3 is 30, their corners smoothed.

    The picture is shared: paste from it, never draw on it.
    """
    letters = _letters()
    rows = [[False] * max(1, width_px(text)) for _ in range(LINE_PX)]
    x = 0
    for character in drawable(text):
        art = letters[character]
        for y, row in enumerate(art):
            for dx, dot in enumerate(row):
                if dot == "#":
                    rows[y][x + dx] = True
        x += len(art[0]) + 1
    if scale == 2:
        rows = _doubled(rows)
    elif scale == 3:
        rows = _tripled(rows)
    bitmap = Image.new("1", (len(rows[0]), len(rows)))
    bitmap.putdata([255 if dot else 0 for row in rows for dot in row])
    return bitmap


@lru_cache(maxsize=256)
def wrapped(text: str, width: int, lines: int) -> tuple[str, ...]:
    """`text` as at most `lines` lines of at most `width` px: at spaces where it goes, else within a word.

    What does not fit even so is cut and ends in an ellipsis, so that one sees that it was cut; names
    within their lawful length never need it on our screens.
    """
    words = drawable(text).split()
    done: list[str] = []
    line = ""
    for word in words:
        joined = f"{line} {word}" if line else word
        if width_px(joined) <= width:
            line = joined
            continue
        if line:
            done.append(line)
        while width_px(word) > width:
            cut = max(1, next(n for n in range(len(word), -1, -1) if width_px(word[:n]) <= width))
            done.append(word[:cut])
            word = word[cut:]
        line = word
    if line:
        done.append(line)
    if len(done) <= lines:
        return tuple(done)
    last = done[lines - 1]
    while last and width_px(last + ELLIPSIS) > width:
        last = last[:-1]
    return (*done[: lines - 1], last + ELLIPSIS)


def _doubled(rows: list[list[bool]]) -> list[list[bool]]:
    """Twice the size by the EPX rule: a corner is rounded where two neighbours agree."""
    height, width = len(rows), len(rows[0])

    def at(x: int, y: int) -> bool:
        return 0 <= x < width and 0 <= y < height and rows[y][x]

    out = [[False] * (2 * width) for _ in range(2 * height)]
    for y in range(height):
        for x in range(width):
            here, up, right = at(x, y), at(x, y - 1), at(x + 1, y)
            left, down = at(x - 1, y), at(x, y + 1)
            out[2 * y][2 * x] = up if left == up and left != down and up != right else here
            out[2 * y][2 * x + 1] = right if up == right and up != left and right != down else here
            out[2 * y + 1][2 * x] = left if down == left and down != right and left != up else here
            out[2 * y + 1][2 * x + 1] = down if right == down and right != up and down != left else here
    return out


def _tripled(rows: list[list[bool]]) -> list[list[bool]]:
    """Three times the size: each dot is nine, and a step of a curve or a slope is filled by one.

    Corners keep their edge: a D that loses it is read as an O.
    """
    height, width = len(rows), len(rows[0])

    def at(x: int, y: int) -> bool:
        return 0 <= x < width and 0 <= y < height and rows[y][x]

    out = [[False] * (3 * width) for _ in range(3 * height)]
    for y in range(height):
        for x in range(width):
            for down in (-1, 0, 1):
                for right in (-1, 0, 1):
                    inside = at(x + right, y) and at(x, y + down) and right and down
                    step = inside and not at(x - right, y) and not at(x, y - down)
                    out[3 * y + 1 + down][3 * x + 1 + right] = at(x, y) or bool(step)
    return out
