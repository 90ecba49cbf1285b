"""One screen drawn as a 1-bit picture of 128 x 64, by pasting bitmaps that are made once.

Equal screens give the same picture object out of a bounded memory, so a screen that comes back costs
nothing. Pictures are shared: nobody draws on one that came from here.
"""

from __future__ import annotations

import math
from functools import lru_cache, singledispatch
from typing import Final

from PIL import Image

from heek.display import font, glyphs, table_top
from heek.display.faces import (
    ATTRACT_FRAMES,
    Attract,
    ClaimCode,
    Collections,
    Countdown,
    Fault,
    Leaving,
    Lobby,
    Look,
    Mark,
    MatchOver,
    Resume,
    Reveal,
    Rules,
    Screen,
    Tally,
    Throw,
    Void,
)
from heek.display.ki_mark import SmallMark, Words
from heek.display.table_top import HEIGHT_PX, WIDTH_PX, Place
from heek.kinds import KINDS, Kind, Seat

MIDDLE_PX: Final = WIDTH_PX // 2

VOID_WORDS: Final = {
    "idle": "nobody threw for too long",
    "empty": "too few are left to play",
    "operator": "reset by the operator",
    "power": "power was cut",
    "sudden_death_limit": "sudden death without end",
    "winnerless_limit": "too many rounds tied",
}
"""Why a match was void, in words, because no glyph can say it."""

_TROUBLES: Final = {"stuck": "STUCK", "flood": "FAULTY", "chatter": "WORN"}

_DIGIT_PX: Final = 55
"""The countdown's digit: as tall as the screen less the side of seat 1 below it."""
_TWO_DIGITS_PX: Final = 37
_ARROWS: Final[dict[Seat, Place]] = {1: (64, 47), 2: (34, 37), 3: (38, 26), 4: (89, 26), 5: (93, 37)}
"""Where the arrow to a leaver's side stands."""
_FAULT_STEPS: Final = ((0, 0), (1, 1), (0, 2), (-1, 1))
"""Pixels to the right and up at which the fault screen stands in turn."""
_WORDS_PX: Final = 78
"""Width for words inside the sides of the table."""
_CODE_GAP_PX: Final = 6
"""Between the letters of a code that somebody is to type in."""
_KI_STATES: Final = {"enrol": "?", "trouble": "!", "unknown": "…"}
"""What follows "KI" in its small mark. That it is down, or up and has all, is said by a sign."""


@lru_cache(maxsize=256)
def draw(screen: Screen) -> Image.Image:
    """The picture of `screen`: mode "1", 128 x 64. Do not change it; it is shared with the next caller."""
    image = Image.new("1", (WIDTH_PX, HEIGHT_PX))
    _paint(screen, image)
    if screen.not_saving:
        _stamp(image, glyphs.sign("not_saving"), (WIDTH_PX - 10, HEIGHT_PX - 10))
    return image


@singledispatch
def _paint(screen: Screen, _image: Image.Image) -> None:
    raise TypeError(f"no drawing for the screen {screen!r}")


@_paint.register
def _attract(screen: Attract, image: Image.Image) -> None:
    """The three kinds walk round the table, clockwise, each upright for whom it passes."""
    frame = screen.frame
    for index, kind in enumerate(KINDS):
        angle = 2 * math.pi * (frame / ATTRACT_FRAMES + index / 3)
        x = min(max(64 - 76 * math.sin(angle), 9), 118)
        y = min(max(32 + 36 * math.cos(angle), 9), 54)
        way = round(4 * (frame / ATTRACT_FRAMES + index / 3)) % 4
        _centred(image, glyphs.kind(kind, glyphs.MEDIUM_PX, way), (round(x), round(y)))
    beat = frame % 15
    if screen.ki:
        # The title has longest, the table's name and the KI share the rest.
        names_turn, kis_turn = bool(screen.table) and 7 <= beat < 11, beat >= 11
    else:
        names_turn, kis_turn = bool(screen.table) and beat >= 10, False
    words = _ki_words(screen.ki) if kis_turn else _table_words(screen.table) if names_turn else _title()
    # Every other half minute the words face those who sit at the far side.
    turns = 2 if frame >= ATTRACT_FRAMES // 2 else 0
    words = glyphs.turned(words, turns)
    # They drift as far as the glyphs leave room, so that no dot is lit for most of the day.
    down = round((2 if names_turn or kis_turn else 4) * math.sin(4 * math.pi * frame / ATTRACT_FRAMES))
    right = round(math.sin(10 * math.pi * frame / ATTRACT_FRAMES))
    if screen.small_ki is not None and not kis_turn:
        # A glyph passes seat 1, then one the far side, by turns: the mark stands where none does.
        low = ATTRACT_FRAMES // 12 <= frame % (ATTRACT_FRAMES // 3) < ATTRACT_FRAMES // 4
        mark = glyphs.turned(_small_mark(screen.small_ki), turns)
        _centred(image, mark, (MIDDLE_PX + right, (55 if low else 8) + down // 2))
    _centred(image, words, (MIDDLE_PX + right, 32 + down))


@_paint.register
def _claim_code(screen: ClaimCode, image: Image.Image) -> None:
    """As large as two groups of four go, and what to do with it in one line."""
    for group, top in ((screen.code[:4], 1), (screen.code[4:], 28)):
        letters = [font.rendered(letter, 3) for letter in group]
        x = MIDDLE_PX - (sum(letter.width + _CODE_GAP_PX for letter in letters) - _CODE_GAP_PX) // 2
        for letter in letters:
            _stamp(image, letter, (x, top))
            x += letter.width + _CODE_GAP_PX
    _text(image, "At the KI: heek ki enrol", (MIDDLE_PX, 59))


@_paint.register
def _fault(screen: Fault, image: Image.Image) -> None:
    _sides(image, screen.marks)
    icons, words, deed = (15, 33, 46) if screen.ki is None else (12, 28, 39)
    if screen.seat is None:
        _centred(image, _warning(), (MIDDLE_PX, icons))
        _text(image, "JOURNAL DAMAGED" if screen.trouble else "NOT SAVING", (MIDDLE_PX, words))
    else:
        for index, kind in enumerate(screen.buttons):
            x = MIDDLE_PX - 9 * (len(screen.buttons) - 1) + 18 * index
            _centred(image, glyphs.kind(kind, glyphs.MEDIUM_PX), (x, icons))
        _text(image, f"SEAT {screen.seat} {_TROUBLES[screen.trouble]}", (MIDDLE_PX, words))
    _text(image, "press to play", (MIDDLE_PX, deed))
    _small_ki(image, screen.ki, (MIDDLE_PX, 51))
    right, up = _FAULT_STEPS[screen.shift]
    moved = image.copy()
    image.paste(0, (0, 0, WIDTH_PX, HEIGHT_PX))
    image.paste(moved, (right, -up))


@_paint.register
def _lobby(screen: Lobby, image: Image.Image) -> None:
    _sides(image, screen.marks)
    middle = 30 if screen.who is None and not screen.ki else 18
    if screen.bots:
        _ask_for_bots(image, screen.bots_s, (MIDDLE_PX, middle))
    elif screen.seconds is not None:
        tall = (40, 34, 26)[min(len(str(screen.seconds)), 3) - 1]
        # A row of dots lower where something is said above it: the tallest has 40 of the 48 px there are.
        down = -1 if screen.small_ki is None else 1
        number = glyphs.number(screen.seconds, tall if middle == 30 else min(tall, 28))
        _centred(image, number, (MIDDLE_PX, middle + down))
    else:
        _lines(image, ("ONE", "MORE") if screen.alone else ("PRESS", "TO PLAY"), (MIDDLE_PX, middle))
    if screen.who is not None:
        seat, name = screen.who
        _lines(image, font.wrapped(f"{seat} {name}", _WORDS_PX - 4, 2), (MIDDLE_PX, 43))
    else:
        _lines(image, screen.ki, (MIDDLE_PX, 43))
    _small_ki(image, screen.small_ki, (MIDDLE_PX, 5))


@_paint.register
def _rules(screen: Rules, image: Image.Image) -> None:
    _notes(image, screen.marks, table_top.EDGE_NOTES)
    if screen.page == 0:
        places: tuple[Place, ...] = ((64, 12), (101, 43), (27, 43))
        for index, kind in enumerate(screen.ring):
            (x, y), (to_x, to_y) = places[index], places[(index + 1) % 3]
            _centred(image, glyphs.kind(kind), (x, y))
            _centred(image, glyphs.arrow(to_x - x, to_y - y, 15), ((x + to_x) // 2, (y + to_y) // 2))
    elif screen.page == 1:
        for row, kind in enumerate(KINDS):
            _repeated(image, kind, screen.target, (36, 10 + 21 * row), 21)
        _lines(image, (f"{screen.target} of a", "kind win"), (97, 31))
    elif screen.page == 3:
        _centred(image, glyphs.kind(Kind.PAGE), (34, 20))
        _centred(image, glyphs.arrow(1, 0, 15), (MIDDLE_PX, 20))
        _centred(image, _cogwheel(), (94, 20))
        _text(image, "hold: bots sit down", (MIDDLE_PX, 44))
    else:
        _centred(image, glyphs.kind(Kind.PEN), (28, 20))
        _centred(image, glyphs.kind(Kind.BEETLE), (100, 20))
        _text(image, "+", (MIDDLE_PX, 20), 2)
        _text(image, "hold both: stand up", (MIDDLE_PX, 44))


@_paint.register
def _throw(screen: Throw, image: Image.Image) -> None:
    _tallies(image, screen.marks, screen.tallies, screen.target)
    _text(image, str(screen.round), (MIDDLE_PX, 10), 2)
    if screen.sudden_death:
        _centred(image, glyphs.sign("sudden_death"), (MIDDLE_PX, 25))
    _small_ki(image, screen.ki, (MIDDLE_PX, 25))


@_paint.register
def _countdown(screen: Countdown, image: Image.Image) -> None:
    tall = _DIGIT_PX if screen.seconds < 10 else _TWO_DIGITS_PX
    _centred(image, glyphs.number(screen.seconds, tall), (MIDDLE_PX, _DIGIT_PX // 2 - (tall < _DIGIT_PX)))
    _sides(image, screen.marks)
    if screen.sudden_death:
        for x in (34, 94):
            _centred(image, glyphs.sign("sudden_death"), (x, 30))


@_paint.register
def _reveal(screen: Reveal, image: Image.Image) -> None:
    for thrown in screen.throws:
        place, turns = table_top.GLYPHS[thrown.seat], table_top.TURNS[thrown.seat]
        if thrown.kind is not None:
            bitmap = glyphs.tile if thrown.won else glyphs.kind
            _centred(image, bitmap(thrown.kind, glyphs.LARGE_PX, turns), place)
        else:
            _centred(image, glyphs.sign("watching" if thrown.watching else "no_throw"), place)
    if screen.sudden_death:
        _centred(image, glyphs.sign("sudden_death"), (MIDDLE_PX, 28))
    elif not any(thrown.won for thrown in screen.throws):
        _text(image, "=", (MIDDLE_PX, 26), 2)
    for mark in screen.marks:
        if mark.leaving_s is not None:
            _boxed(image, f"{mark.leaving_s}{_note(mark)}", table_top.GLYPH_NOTES[mark.seat])
    unboxed = tuple(mark for mark in screen.marks if mark.leaving_s is None)
    _notes(image, unboxed, table_top.GLYPH_NOTES)
    _bots(image, screen.marks, table_top.GLYPH_BOTS)


@_paint.register
def _collections(screen: Collections, image: Image.Image) -> None:
    _tallies(image, screen.marks, screen.tallies, screen.target)
    if screen.sudden_death:
        _centred(image, glyphs.sign("sudden_death"), (MIDDLE_PX, 16))


@_paint.register
def _match_over(screen: MatchOver, image: Image.Image) -> None:
    _sides(image, screen.marks)
    _text(image, f"SEAT {screen.winner}", (MIDDLE_PX, 6))
    x, y = table_top.SIDES[screen.winner]
    _centred(image, glyphs.arrow(x - MIDDLE_PX, y - 30, 19), (MIDDLE_PX, 21))
    if screen.ki:
        _lines(image, screen.ki, (MIDDLE_PX, 43))
    elif screen.player is not None:
        _lines(image, font.wrapped(screen.player, _WORDS_PX - 2, 2), (MIDDLE_PX, 43))
    elif screen.by == "walkover":
        _text(image, "WALKOVER", (MIDDLE_PX, 42))
    elif screen.by == "sudden_death":
        _lines(image, ("SUDDEN", "DEATH"), (MIDDLE_PX, 43))
    elif screen.by == "total":
        _lines(image, ("MOST WON", f"{screen.total} in all"), (MIDDLE_PX, 43))
    elif screen.kind is not None:
        _repeated(image, screen.kind, screen.target, (MIDDLE_PX, 43), 21)


@_paint.register
def _void(screen: Void, image: Image.Image) -> None:
    _sides(image, screen.marks)
    _text(image, "VOID", (MIDDLE_PX, 18 if screen.ki is None else 20), 2)
    _lines(image, font.wrapped(VOID_WORDS.get(screen.reason, screen.reason), _WORDS_PX, 2), (MIDDLE_PX, 42))
    _small_ki(image, screen.ki, (MIDDLE_PX, 5))


@_paint.register
def _leaving(screen: Leaving, image: Image.Image) -> None:
    """The seconds in the middle, and an arrow to the side that is left; the other sides step back."""
    for mark in screen.marks:
        back = Look.FREE if mark.look is Look.FREE else Look.THIN
        _side(image, mark.seat, Look.FULL if mark.seat == screen.seat else back)
    _bots(image, screen.marks, table_top.BOTS)
    _notes(image, screen.marks, table_top.NOTES)
    _centred(image, glyphs.number(screen.seconds, 38), (MIDDLE_PX, 20))
    x, y = _ARROWS[screen.seat]
    to_x, to_y = table_top.SIDES[screen.seat]
    _centred(image, glyphs.arrow(to_x - x, to_y - y, 15), (x, y))


@_paint.register
def _resume(screen: Resume, image: Image.Image) -> None:
    _tallies(image, screen.marks, screen.tallies, screen.target)
    if screen.seconds is not None:
        _text(image, str(screen.seconds), (MIDDLE_PX, 10), 2)
    _text(image, "PRESS", (MIDDLE_PX, 25))


def _stamp(image: Image.Image, bitmap: Image.Image, corner: Place) -> None:
    """Light what `bitmap` lights; its dark dots leave the picture as it is."""
    image.paste(255, corner, bitmap)


def _centred(image: Image.Image, bitmap: Image.Image, middle: Place) -> None:
    image.paste(255, (middle[0] - bitmap.width // 2, middle[1] - bitmap.height // 2), bitmap)


def _text(image: Image.Image, text: str, middle: Place, scale: int = 1) -> None:
    """One line, its capitals centred on `middle`."""
    bitmap = font.rendered(text, scale)
    half = font.CAPITAL_PX * scale // 2
    image.paste(255, (middle[0] - bitmap.width // 2, middle[1] - half), bitmap)


def _lines(image: Image.Image, lines: tuple[str, ...], middle: Place) -> None:
    first = middle[1] - (len(lines) - 1) * (font.LINE_PX + 1) // 2
    for index, line in enumerate(lines):
        _text(image, line, (middle[0], first + index * (font.LINE_PX + 1)))


@lru_cache(maxsize=1)
def _title() -> Image.Image:
    """AHYOHEEK in large letters, set a dot closer than text is, so that the glyphs have room beside it."""
    letters = [font.rendered(letter, 2) for letter in "AHYOHEEK"]
    title = Image.new("1", (sum(letter.width + 1 for letter in letters) - 1, 2 * font.CAPITAL_PX))
    x = 0
    for letter in letters:
        title.paste(255, (x, 0), letter)
        x += letter.width + 1
    return title


@lru_cache(maxsize=4)
def _table_words(name: str) -> Image.Image:
    """The table's name on up to two lines, between the glyphs that walk round it."""
    lines = font.wrapped(name, 86, 2)
    words = Image.new("1", (86, max(1, (font.LINE_PX + 1) * len(lines))))
    for index, line in enumerate(lines):
        text = font.rendered(line)
        words.paste(255, ((86 - text.width) // 2, index * (font.LINE_PX + 1)), text)
    return words


@lru_cache(maxsize=8)
def _ki_words(lines: Words) -> Image.Image:
    """What is said of the KI, as large as a table's name."""
    words = Image.new("1", (86, (font.LINE_PX + 1) * len(lines)))
    for index, line in enumerate(lines):
        text = font.rendered(line)
        words.paste(255, ((86 - text.width) // 2, index * (font.LINE_PX + 1)), text)
    return words


def _small_ki(image: Image.Image, mark: SmallMark | None, middle: Place) -> None:
    """How it stands with the KI, 8 px high, centred; None: nothing."""
    if mark is not None:
        bitmap = _small_mark(mark)
        _stamp(image, bitmap, (middle[0] - bitmap.width // 2, middle[1] - bitmap.height // 2))


@lru_cache(maxsize=64)
def _small_mark(mark: SmallMark) -> Image.Image:
    """At most 39 x 8: it fits between the collections."""
    pieces = [(0, font.rendered("KI"))]
    if mark.state in _KI_STATES:
        pieces.append((2, font.rendered(_KI_STATES[mark.state])))
    elif mark.state == "down" or not mark.waiting:
        pieces.append((2, glyphs.sign(mark.state)))
    if mark.waiting:
        many = mark.waiting.endswith("+")
        # Two digits and a plus must stand closer.
        pieces.append((2 if many else 4, glyphs.sign("hourglass")))
        pieces.append((1, font.rendered(mark.waiting.rstrip("+"))))
        if many:
            pieces.append((1, glyphs.sign("plus")))
    bitmap = Image.new("1", (sum(gap + each.width for gap, each in pieces), font.CAPITAL_PX))
    x = 0
    for gap, each in pieces:
        # A small sign stands in the middle of the line, letters on it.
        bitmap.paste(255, (x + gap, max(0, (font.CAPITAL_PX - each.height) // 2)), each)
        x += gap + each.width
    return bitmap


@lru_cache(maxsize=1)
def _warning() -> Image.Image:
    small = glyphs.sign("not_saving")
    return small.resize((2 * small.width, 2 * small.height), Image.Resampling.NEAREST)


def _side(image: Image.Image, seat: Seat, look: Look, *, slim: bool = False) -> None:
    _stamp(image, *table_top.side(seat, look, slim=slim))


def _sides(image: Image.Image, marks: tuple[Mark, ...]) -> None:
    """The sides of the table; a leaver's shows the seconds left in a lit box, a troubled one its note."""
    for mark in marks:
        _side(image, mark.seat, mark.look)
        if mark.leaving_s is not None:
            _boxed(image, str(mark.leaving_s), table_top.SIDES[mark.seat])
    _bots(image, marks, table_top.BOTS)
    _notes(image, marks, table_top.NOTES)


def _boxed(image: Image.Image, text: str, middle: Place) -> None:
    """Black on a lit box with a dark rim, whatever lies below."""
    letters = font.rendered(text)
    left = max(middle[0] - letters.width // 2, table_top.MARGIN_LEFT_PX + 3)
    left = min(left, WIDTH_PX - table_top.MARGIN_RIGHT_PX - 3 - letters.width)
    top = min(middle[1] - font.CAPITAL_PX // 2, HEIGHT_PX - table_top.MARGIN_BELOW_PX - 2 - font.CAPITAL_PX)
    right, bottom = left + letters.width, top + font.CAPITAL_PX
    image.paste(0, (left - 4, top - 3, right + 4, bottom + 3))
    image.paste(255, (left - 3, top - 2, right + 3, bottom + 2))
    image.paste(0, (left, top), letters)


def _note(mark: Mark) -> str:
    """`!`: one of the seat's buttons is ignored; `~`: one is worn; both fit on the place of one."""
    return "!" if mark.stuck else "~" if mark.worn else ""


def _notes(image: Image.Image, marks: tuple[Mark, ...], places: dict[Seat, Place]) -> None:
    for mark in marks:
        if note := _note(mark):
            _text(image, note, places[mark.seat])


def _bots(image: Image.Image, marks: tuple[Mark, ...], places: dict[Seat, Place]) -> None:
    """The cogwheel at each seat that the table plays itself, with a dark rim on whatever lies below."""
    cogwheel = glyphs.sign("bot" if places is table_top.BOTS else "bot_small")
    for mark in marks:
        if mark.bot:
            x, y = places[mark.seat]
            left, top = x - cogwheel.width // 2, y - cogwheel.height // 2
            rim = (left - 1, top - 1, left + cogwheel.width + 1, top + cogwheel.height + 1)
            image.paste(0, rim)
            _stamp(image, cogwheel, (left, top))


@lru_cache(maxsize=1)
def _cogwheel() -> Image.Image:
    small = glyphs.sign("bot_large")
    return small.resize((2 * small.width, 2 * small.height), Image.Resampling.NEAREST)


def _ask_for_bots(image: Image.Image, seconds: int | None, middle: Place) -> None:
    """The middle button leads to bots; or, when they come by themselves, the seconds until then."""
    x, y = middle
    if seconds is None:
        _text(image, "hold", (x - 24, y))
        _centred(image, glyphs.kind(Kind.PAGE, glyphs.MEDIUM_PX), (x + 1, y))
        _centred(image, _cogwheel(), (x + 26, y))
    else:
        _text(image, str(seconds), (x - 17, y), 2)
        _centred(image, _cogwheel(), (x + 17, y))


def _tallies(image: Image.Image, marks: tuple[Mark, ...], tallies: tuple[Tally, ...], target: int) -> None:
    """Each seat's collection beside its side of the table."""
    for mark in marks:
        _side(image, mark.seat, mark.look, slim=True)
    for tally in tallies:
        _stamp(image, _block(tally.counts, target), table_top.BLOCKS[tally.seat])
    for mark in marks:
        if mark.leaving_s is not None:
            _boxed(image, str(mark.leaving_s), table_top.BLOCK_SIDES[mark.seat])
    _bots(image, marks, table_top.BLOCK_BOTS)
    _notes(image, marks, table_top.BLOCK_NOTES)


@lru_cache(maxsize=512)
def _block(counts: tuple[int, int, int], target: int) -> Image.Image:
    """One seat's collection, 23 x 26: a row a kind, as pips up to a target of three, else as a number."""
    block = Image.new("1", (23, 26))
    for row, (kind, count) in enumerate(zip(KINDS, counts, strict=True)):
        y = 9 * row
        block.paste(glyphs.kind(kind, glyphs.SMALL_PX), (0, y))
        if target <= 3:
            for index in range(target):
                block.paste(glyphs.sign("pip" if index < count else "no_pip"), (9 + 5 * index, y + 1))
        else:
            block.paste(font.rendered(str(count)), (12, y))
    return block


def _repeated(image: Image.Image, kind: Kind, times: int, middle: Place, step: int) -> None:
    """A kind `times` over, side by side up to three, else once and a number."""
    if times <= 3:
        for index in range(times):
            x = middle[0] - (times - 1) * step // 2 + index * step
            _centred(image, glyphs.kind(kind, glyphs.MEDIUM_PX), (x, middle[1]))
    else:
        _centred(image, glyphs.kind(kind, glyphs.MEDIUM_PX), (middle[0] - 12, middle[1]))
        _text(image, f"×{times}", (middle[0] + 10, middle[1]))
