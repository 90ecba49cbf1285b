"""Deterministic CBOR (RFC 8949, 4.2): what is signed, hashed or compared has one encoding only.

The library is cbor2. Its canonical form sorts keys by length first, which for text keys alone is the
bytewise order that the RFC asks for.
"""

from __future__ import annotations

from typing import Any, Final

import cbor2

from heek.errors import RecordError

MOST_NESTED: Final = 16
"""Levels of arrays and maps; a record has four."""


def encode(value: object) -> bytes:
    """The one encoding of a value made of maps with text keys, lists, text, bytes, integers, booleans, None.

    Raises RecordError for a float, which has no place in what is signed, and for anything else.
    """
    _check(value)
    return cbor2.dumps(value, canonical=True)


def decode(data: bytes) -> Any:
    """The value of one deterministic encoding; raises RecordError for any other bytes."""
    try:
        value = cbor2.loads(data, max_depth=MOST_NESTED, allow_indefinite=False, allow_duplicate_keys=False)
        again = encode(value)
    except RecordError:
        raise
    except Exception as error:
        # Whatever a decoder stumbles over in bytes from outside is the bytes' fault, and said in one line.
        raise RecordError(f"is no CBOR that we read ({_first_line(error)})") from None
    if again != data:
        raise RecordError(
            "is not deterministic CBOR (RFC 8949, 4.2): keys in order, shortest lengths, no tail"
        )
    return value


def _check(value: object, depth: int = 0) -> None:
    if depth > MOST_NESTED:
        raise RecordError(f"is nested deeper than {MOST_NESTED} levels")
    match value:
        case None | bool() | int() | bytes():
            return
        case str():
            try:
                value.encode()
            except UnicodeError:
                raise RecordError("has text that is not Unicode") from None
        case list() | tuple():
            for each in value:
                _check(each, depth + 1)
        case dict():
            for key, each in value.items():
                if not isinstance(key, str):
                    raise RecordError("has a key that is not text")
                _check(each, depth + 1)
        case float():
            raise RecordError("has a floating-point number; numbers are whole")
        case _:
            raise RecordError(f"has a value of the kind {type(value).__name__}, which no record has")


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:120]
