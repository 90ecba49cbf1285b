"""A record's bytes after an identity in it was erased: the same match, with the new number and no name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from heek.errors import RecordError
from heek.ki import cbor

NO_SIGNATURE: Final = bytes(64)
"""Of bytes that an erasure has replaced: no table has signed them."""


def scrubbed(record: bytes, numbers: Mapping[str, str]) -> bytes:
    """The bytes with these KI numbers replaced, and without the names that stood beside them.

    What is no record that can be read, and so can never count, is empty then.
    """
    try:
        value = cbor.decode(record)
        for seat in value["seats"]:
            if seat.get("player") in numbers:
                seat["player"] = numbers[seat["player"]]
                seat.pop("name", None)
        return cbor.encode(value)
    except (RecordError, KeyError, TypeError, AttributeError):
        return b""
