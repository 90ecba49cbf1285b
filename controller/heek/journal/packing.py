"""Makes what is written often small: every byte goes to the card more than once, and cards wear.

An event's line begins with its number, instant and name, which have columns of their own: it is kept without
them. The table's state is compressed. What an older heek wrote has neither, and is read all the same.
"""

from __future__ import annotations

import zlib
from typing import Final

from heek.clock import Instant, seconds_text

_PACKED: Final = b"\x01"
"""Stands before a state that is packed; one that is not is JSON, and never begins so."""

_MOST_BYTES: Final = 1 << 20
"""Of a state: a hundred times the longest match's."""


def _beginning(seq: int, at_ns: Instant, event: str) -> str:
    return f'{{"seq":{seq},"at":{seconds_text(at_ns)},"event":"{event}"'


def rest_of_line(seq: int, at_ns: Instant, event: str, line: str) -> str:
    """An event's line without what its columns say; all of it, if it does not begin with that."""
    beginning = _beginning(seq, at_ns, event)
    rest = line.removeprefix(beginning)
    return rest if rest.startswith((",", "}")) else line


def whole_line(seq: object, at_ns: object, event: object, written: object) -> str:
    """The line again, also one that was written whole. A damaged page's columns can be of any type."""
    rest = str(written)
    if not (isinstance(seq, int) and isinstance(at_ns, int) and rest.startswith((",", "}"))):
        return rest
    return _beginning(seq, at_ns, str(event)) + rest


def packed(state: bytes) -> bytes:
    """The state as it is written: a third of its bytes or so."""
    return _PACKED + zlib.compress(state)


def unpacked(written: bytes) -> bytes:
    """The state again, also one that an older heek wrote.

    What is damaged comes back as it is: no state, and told so by whoever reads it.
    """
    if not written.startswith(_PACKED):
        return written
    packing = zlib.decompressobj()
    try:
        state = packing.decompress(written[len(_PACKED) :], _MOST_BYTES)
    except zlib.error:
        return written
    return state if packing.eof else written
