"""From what a panel's memory holds to what it shall hold: the cheapest list of writes that we know.

A write is one command, which says where, and one run of data. On I2C each of the two is a message of its own:
start, the address byte, the control byte, the payload, stop, and each byte takes nine bits with its
acknowledge. So a message of n bytes takes 9 (n + 2) + 2 bit times, and a write has a price before it has
moved a dot: on an SH1106 as much as 7 bytes of data, on an SSD1306 as much as 10. Two changes that lie
nearer to each other than that are cheaper in one write, with the unchanged bytes between them sent again.
Near the point where both cost the same it is of no moment to the wire which is taken, but the budgets are in
bytes of data. So a byte is weighed at 14 bits instead of 9, which makes it 5 and 7: through a countdown that
is 2 % more of the wire's time for a fifth less of data.

**SH1106** knows page addressing alone: the command names a page and a column, the data runs to the right and
stays in its page. Its memory is 132 columns wide and the glass of nearly all modules stands on columns 2 to
129. Pages have nothing to do with each other, and within one the rule above is the best there is.

**SSD1306 and SSD1309** are kept by luma in horizontal addressing mode: the command sets a window of columns
and pages, the data fills it line by line, and at the window's last byte the pointer goes back to its first.
A window that is always filled to the brim therefore leaves no pointer half way. A command that sets only what
differs from the window before (or none for the same window) would save up to 5 bytes a write, but then one
byte lost on a long cable would shift all that comes after it for good; with the full address in each write
the next one heals it.

The best set of windows is a covering problem for which no quick answer is known, so we look among those that
come by cutting twice: where nothing changes over 7 columns or more they fall out (a window across them would
weigh more than two), each part is cut into bands of pages, and each band into columns. The bands are the best
ones (all ways to cut 8 pages are weighed). A page by itself is a band and the whole part is one, so this is
never dearer than runs by pages, nor than the whole frame.

The bands save up to a quarter of the wire's time where little changes, a pip or a word, but 2 % through a
whole match, and looking for them takes as much of the processor's time as all the rest. So where more than a
thirty-second of the frame changes it is runs by pages, or the whole frame, whichever is cheaper.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from heek.display.panel_memory import BYTES, COLUMNS, PAGES

_COLUMN_ADDRESS: Final = 0x21
_PAGE_ADDRESS: Final = 0x22
_PAGE_START: Final = 0xB0
_LOW_COLUMN: Final = 0x00
_HIGH_COLUMN: Final = 0x10

SH1106_OFFSET: Final = 2
"""Columns of an SH1106's memory that lie left of the glass."""


class Write(NamedTuple):
    """One command and the data that belongs to it; a tuple, as a frame makes dozens."""

    command: tuple[int, ...]
    data: bytes


Writes: TypeAlias = tuple[Write, ...]
Plan: TypeAlias = Callable[[bytes | None, bytes], Writes]
"""From the old memory (None: not known, or it must be sent whatever it is) and the new one to the writes."""

_Window: TypeAlias = tuple[int, int, int, int]
"""First page, last page, first column, last column."""


_BYTE_WEIGHT: Final = 14
"""What a byte of data counts beside the bits that a write costs."""


def message_bit_times(payload: int) -> int:
    """Bits on the wire for one message of `payload` bytes behind its address and control byte."""
    return 9 * (payload + 2) + 2


def bit_times(writes: Iterable[Write]) -> int:
    """Bits on the wire for all of `writes`, two messages each: 2.5 us a bit at 400 kHz."""
    return sum([_EMPTY_BITS + 9 * (len(command) + len(data)) for command, data in writes])


_EMPTY_BITS: Final = 2 * message_bit_times(0)
_WINDOW_BITS: Final = message_bit_times(6) + message_bit_times(0)
"""What a window costs beside its data, in bits."""
_RUN_BITS: Final = message_bit_times(3) + message_bit_times(0)
"""What a run of an SH1106 costs beside its data, in bits."""


def _runs(bits: int, height: int) -> re.Pattern[bytes]:
    """Finds runs of changes, joined across gaps that cost less than a new write of `bits` would.

    `height` pages share the columns, so that many bytes are sent for a column of the gap.
    """
    gap = (bits - 1) // (_BYTE_WEIGHT * height)
    return re.compile(rb"[^\0](?:\0{0,%d}[^\0])*" % gap, re.DOTALL)


_SH1106_RUNS: Final = _runs(_RUN_BITS, 1)
_BANDS: Final = tuple(_runs(_WINDOW_BITS, height) for height in range(1, PAGES + 1))
_WHOLE_BITS: Final = _WINDOW_BITS + 9 * BYTES
_WHOLE_BY_RUNS_BITS: Final = PAGES * (_RUN_BITS + 9 * COLUMNS)
_WHOLE: Final = (0, PAGES - 1, 0, COLUMNS - 1)
_NOTHING: Final = bytes(COLUMNS)
_MANY: Final = BYTES // 32
"""Changed bytes beyond which the search for the best bands saves too little on the wire for what it takes."""
_PARTS: Final = _BANDS[0]
"""Changes further apart than a single page would bridge have nothing to do with each other in any page."""


def by_windows(old: bytes | None, new: bytes) -> Writes:
    """The writes for an SSD1306 or SSD1309."""
    if old is None:
        return (_window(_WHOLE, new),)
    if old == new:
        return ()
    pages = _changed(old, new)
    if sum([COLUMNS - page.count(0) for page in pages if page]) > _MANY:
        writes = []
        for page, changed in enumerate(pages):
            if changed:
                start = COLUMNS * page
                for found in _BANDS[0].finditer(changed):
                    left, end = found.span()
                    command = (_COLUMN_ADDRESS, left, end - 1, _PAGE_ADDRESS, page, page)
                    writes.append(Write(command, new[start + left : start + end]))
    else:
        numbers = [int.from_bytes(page) for page in pages]
        everywhere = 0
        for number in numbers:
            everywhere |= number
        parts = _PARTS.finditer(everywhere.to_bytes(COLUMNS))
        windows = [window for part in parts for window in _banded(numbers, *part.span())]
        writes = [_window(window, new) for window in windows]
    return tuple(writes) if bit_times(writes) <= _WHOLE_BITS else by_windows(None, new)


def by_page_runs(old: bytes | None, new: bytes) -> Writes:
    """The writes for an SH1106."""
    if old is None:
        return tuple([_run(page, 0, COLUMNS, new) for page in range(PAGES)])
    if old == new:
        return ()
    writes = [
        _run(page, *found.span(), new)
        for page, changed in enumerate(_changed(old, new))
        if changed
        for found in _SH1106_RUNS.finditer(changed)
    ]
    return tuple(writes) if bit_times(writes) <= _WHOLE_BY_RUNS_BITS else by_page_runs(None, new)


PLANS: Final[dict[str, Plan]] = {"ssd1306": by_windows, "ssd1309": by_windows, "sh1106": by_page_runs}
"""How each driver of `[[display]]` is written to."""


def _changed(old: bytes, new: bytes) -> list[bytes]:
    """For each page 128 bytes, those that differ not 0; empty where nothing changed."""
    both = (int.from_bytes(old) ^ int.from_bytes(new)).to_bytes(BYTES)
    pages = [both[start : start + COLUMNS] for start in range(0, BYTES, COLUMNS)]
    return [page if page != _NOTHING else b"" for page in pages]


def _banded(pages: Sequence[int], left: int, right: int) -> Iterator[_Window]:
    """The cheapest windows for the changes in columns `left` to `right` - 1, cut into bands of pages.

    A page is given as the number of its 128 bytes, the first column in the highest, so that the changes in
    one of several pages come by an "or".
    """
    width, away = right - left, 8 * (COLUMNS - right)
    within = (1 << 8 * width) - 1
    part = [page >> away & within for page in pages]
    first = next(page for page, changed in enumerate(part) if changed)
    last = next(page for page in range(PAGES - 1, -1, -1) if part[page])
    # For each page the weight of all from `first` up to it, and the first page of the band that ends there.
    cheapest = [0] * (PAGES + 1)
    begins = [0] * PAGES
    for end in range(first, last + 1):
        best, begin, together = 1 << 30, end, 0
        for start in range(end, first - 1, -1):
            together |= part[start]
            band = 0
            if together:
                runs = _BANDS[end - start].findall(together.to_bytes(width))
                band = _WINDOW_BITS * len(runs) + _BYTE_WEIGHT * (end - start + 1) * sum(map(len, runs))
                if band >= best:
                    # A taller band that ends here costs no less: its windows would do for this one.
                    break
            if band + cheapest[start] < best:
                best, begin = band + cheapest[start], start
        cheapest[end + 1], begins[end] = best, begin
    end = last
    while end >= first:
        start, together = begins[end], 0
        for changed in part[start : end + 1]:
            together |= changed
        if together:
            for found in _BANDS[end - start].finditer(together.to_bytes(width)):
                yield start, end, left + found.start(), left + found.end() - 1
        end = start - 1


def _window(window: _Window, new: bytes) -> Write:
    top, bottom, left, right = window
    if top == bottom:
        data = new[COLUMNS * top + left : COLUMNS * top + right + 1]
    else:
        data = b"".join(
            [new[COLUMNS * page + left : COLUMNS * page + right + 1] for page in range(top, bottom + 1)]
        )
    return Write((_COLUMN_ADDRESS, left, right, _PAGE_ADDRESS, top, bottom), data)


def _run(page: int, start: int, end: int, new: bytes) -> Write:
    column = start + SH1106_OFFSET
    return Write(
        (_PAGE_START + page, _LOW_COLUMN | column & 0x0F, _HIGH_COLUMN | column >> 4),
        new[COLUMNS * page + start : COLUMNS * page + end],
    )
