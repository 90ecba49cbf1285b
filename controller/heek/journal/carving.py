"""Finds rows in the pages of a database file that SQLite itself cannot read any more.

A file whose beginning is gone still has its other pages, and a write-ahead log beside an emptied file has
every page that was changed since it was carried over last. Each leaf of a table tells its rows by itself
(https://www.sqlite.org/fileformat2.html, 1.6 and 2.1; the log: 4.1), without the tree above it. Which table
a row is of cannot be told, nor whether the page was still in use: that is for the caller to judge by what
stands in the row. Nothing is written.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

Value: TypeAlias = int | float | str | bytes | None
Row: TypeAlias = tuple[int, tuple[Value, ...]]
"""The row's number, and its columns; the column that is the number itself reads as None."""

_LEAF: Final = 13
_OURS: Final = (512, 4096)
"""The sizes of pages that our files have: now, and of those that an older heek made."""
_SIZES: Final = frozenset(1 << power for power in range(9, 17))
_MOST_BYTES: Final = 1 << 20
"""Of one row: a record has 64 KiB at most."""
_MOST_COLUMNS: Final = 64
_LOG_HEADER: Final = 32
_FRAME_HEADER: Final = 24


class _NoRow(ValueError):
    """What stands there is no row."""


def carve(file: Path, log: Path) -> Iterator[Row]:
    """Every row that is found in the file's pages as its log has left them; either file may be missing.

    A row may come more than once, from pages that are no longer in use too. Raises OSError if a file that
    is there cannot be read.
    """
    with _Pages(file, log) as pages:
        for number in range(1, pages.count + 1):
            yield from _rows(pages, number)


class _Pages:
    """The pages of a file, each as the last commit in its log has it."""

    def __init__(self, file: Path, log: Path) -> None:
        self._file: BinaryIO | None = file.open("rb") if file.exists() else None
        self._log: BinaryIO | None = log.open("rb") if log.exists() else None
        self._frames: dict[int, int] = {}
        """Where in the log a page begins."""
        head = self._file.read(100) if self._file is not None else b""
        said = int.from_bytes(head[16:18], "big") if head.startswith(b"SQLite format 3\0") else 0
        self.size = 65536 if said == 1 else said if said in _SIZES else 0
        self._read_log()
        self.size = self.size or self._likely_size()
        length = self._file.seek(0, 2) if self._file is not None else 0
        self.count = max([length // self.size, *self._frames])

    def _likely_size(self) -> int:
        """Where the file itself does not say: the size by which more of its pages are leaves."""
        if self._file is None:
            return _OURS[0]
        leaves = dict.fromkeys(_OURS, 0)
        for size in _OURS:
            self._file.seek(0)
            while len(page := self._file.read(size)) == size:
                leaves[size] += _is_whole_leaf(page)
        return max(_OURS, key=lambda size: leaves[size])

    def _read_log(self) -> None:
        if self._log is None:
            return
        head = self._log.read(_LOG_HEADER)
        if len(head) < _LOG_HEADER or int.from_bytes(head[:4], "big") & ~1 != 0x377F0682:
            return
        size = int.from_bytes(head[8:12], "big")
        if size not in _SIZES or self.size not in (0, size):
            return
        self.size = size
        salts, at = head[16:24], _LOG_HEADER
        open_frames: dict[int, int] = {}
        while len(frame := self._log.read(_FRAME_HEADER)) == _FRAME_HEADER and frame[8:16] == salts:
            page, committed = struct.unpack(">II", frame[:8])
            open_frames[page] = at + _FRAME_HEADER
            if committed:
                self._frames |= open_frames
                open_frames = {}
            at = self._log.seek(at + _FRAME_HEADER + size)

    def __getitem__(self, number: int) -> bytes:
        if number in self._frames and self._log is not None:
            self._log.seek(self._frames[number])
            return self._log.read(self.size)
        if self._file is None:
            return b""
        self._file.seek((number - 1) * self.size)
        return self._file.read(self.size)

    def __enter__(self) -> _Pages:
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._file, self._log):
            if each is not None:
                each.close()


def _is_whole_leaf(page: bytes) -> bool:
    """Is it a leaf with all its rows in it? They stand at its end, so the half of a larger one is none."""
    count = int.from_bytes(page[3:5], "big")
    places = [int.from_bytes(page[at : at + 2], "big") for at in range(8, min(8 + 2 * count, len(page)), 2)]
    return page[0] == _LEAF and bool(places) and max(places) < len(page)


def _rows(pages: _Pages, number: int) -> Iterator[Row]:
    page = pages[number]
    start = 100 if number == 1 else 0
    if len(page) < pages.size or page[start] != _LEAF:
        return
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    array = start + 8
    if array + 2 * count > len(page):
        return
    for place in range(count):
        at = int.from_bytes(page[array + 2 * place : array + 2 * place + 2], "big")
        try:
            yield _row(pages, page, at)
        except (_NoRow, IndexError, struct.error, UnicodeDecodeError):
            continue


def _row(pages: _Pages, page: bytes, at: int) -> Row:
    length, at = _varint(page, at)
    rowid, at = _varint(page, at)
    if length > _MOST_BYTES:
        raise _NoRow
    payload = _payload(pages, page, at, length)
    header, place = _varint(payload, 0)
    if not 1 < header <= len(payload):
        raise _NoRow
    types = []
    while place < header:
        kind, place = _varint(payload, place)
        types.append(kind)
        if len(types) > _MOST_COLUMNS:
            raise _NoRow
    values = []
    place = header
    for kind in types:
        value, place = _value(payload, place, kind)
        values.append(value)
    if place != len(payload):
        raise _NoRow
    return rowid - (1 << 64) if rowid >= 1 << 63 else rowid, tuple(values)


def _payload(pages: _Pages, page: bytes, at: int, length: int) -> bytes:
    """What a cell holds, gathered from the pages over which it flows."""
    usable = pages.size
    most, least = usable - 35, (usable - 12) * 32 // 255 - 23
    if length <= most:
        found = page[at : at + length]
    else:
        local = least + (length - least) % (usable - 4)
        local = local if local <= most else least
        found = page[at : at + local]
        follow = int.from_bytes(page[at + local : at + local + 4], "big")
        while len(found) < length and 0 < follow <= pages.count:
            flow = pages[follow]
            found += flow[4 : 4 + min(length - len(found), usable - 4)]
            follow = int.from_bytes(flow[:4], "big")
            if len(flow) < usable:
                break
    if len(found) != length:
        raise _NoRow
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """SQLite's own: big-endian, seven bits a byte, all eight of the ninth."""
    value = 0
    for place in range(8):
        byte = data[at + place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + place + 1
    return value << 8 | data[at + 8], at + 9


def _value(data: bytes, at: int, kind: int) -> tuple[Value, int]:
    if kind == 0:
        return None, at
    if kind in (8, 9):
        return kind - 8, at
    if kind == 7:
        return float(struct.unpack(">d", data[at : at + 8])[0]), at + 8
    if kind <= 6:
        end = at + (0, 1, 2, 3, 4, 6, 8)[kind]
        return int.from_bytes(data[at:end], "big", signed=True), end
    if kind < 12:
        raise _NoRow
    end = at + (kind - 12) // 2
    if end > len(data):
        raise _NoRow
    return (data[at:end].decode() if kind % 2 else data[at:end]), end
