"""Deterministic CBOR piece by piece, for files that are larger than memory should be.

`heek.ki.cbor` takes one value whole. Here a writer puts down the heads of maps and lists by itself, and a
reader takes them one after the other, as strictly: whatever is not the one encoding is refused, and no length
that a file claims is believed before the bytes are there.
"""

from __future__ import annotations

from typing import Final, Protocol

from heek.errors import RecordError

WHOLE: Final = 0
BYTES: Final = 2
TEXT: Final = 3
LIST: Final = 4
MAP: Final = 5
"""Major types (RFC 8949, 3.1)."""

_SIZES: Final = {24: 1, 25: 2, 26: 4, 27: 8}


class Source(Protocol):
    """What is read from: a file that is open for reading bytes."""

    def read(self, size: int, /) -> bytes:
        """As many bytes as are asked for, fewer at the end alone."""


def head(major: int, number: int) -> bytes:
    """The head of an item: its major type and its number (a length, a count, a value from 0) shortest."""
    if number < 24:
        return bytes([major << 5 | number])
    for short, size in _SIZES.items():
        if number < 1 << 8 * size:
            return bytes([major << 5 | short]) + number.to_bytes(size, "big")
    raise ValueError(f"{number} is no number of a head")


def packed_bytes(data: bytes) -> bytes:
    """A byte string as an item."""
    return head(BYTES, len(data)) + data


def packed_text(text: str) -> bytes:
    """A text as an item."""
    data = text.encode()
    return head(TEXT, len(data)) + data


class CborStream:
    """Takes item after item from a source; all methods raise RecordError for what is not as it should be."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def take(self, size: int) -> bytes:
        """So many bytes as they stand."""
        data = self._source.read(size)
        if len(data) != size:
            raise RecordError("ends in the middle")
        return data

    def head(self, major: int, most: int) -> int:
        """The number in the next head, which must be of that type and at most `most`."""
        first = self.take(1)[0]
        number = first & 31
        if first >> 5 != major:
            raise RecordError("is damaged: another thing stands where it should go on")
        if number >= 24:
            size = _SIZES.get(number)
            if size is None:
                raise RecordError("is damaged: a length is none")
            number = int.from_bytes(self.take(size), "big")
            if head(major, number) != bytes([first]) + number.to_bytes(size, "big"):
                raise RecordError("is damaged: a length is not written as short as it can be")
        if number > most:
            raise RecordError(f"is damaged: a length of {number}, where {most} is the most")
        return number

    def bytes(self, most: int) -> bytes:
        """The next item, a byte string of at most `most` bytes."""
        return self.take(self.head(BYTES, most))

    def text(self, expected: str) -> None:
        """The next item, which must be this text."""
        wanted = packed_text(expected)
        if self.take(len(wanted)) != wanted:
            raise RecordError(f"is damaged: there is no {expected!r} where it should be")

    def end(self) -> None:
        """Nothing may come any more."""
        if self._source.read(1):
            raise RecordError("is damaged: it goes on after its end")
