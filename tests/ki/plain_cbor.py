"""A second encoder of deterministic CBOR, written from RFC 8949 alone, to hold the first one against."""

from __future__ import annotations


def head(major: int, number: int) -> bytes:
    """Major type and argument in the shortest form (RFC 8949, 4.2.1)."""
    for tag, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if number < 24:
            return bytes([major << 5 | number])
        if number < 1 << 8 * size:
            return bytes([major << 5 | tag]) + number.to_bytes(size, "big")
    raise ValueError(number)


def encode(value: object) -> bytes:
    """Whole numbers, byte strings, text, lists, maps with text keys, true, false, null."""
    if value is None or isinstance(value, bool):
        return {None: b"\xf6", True: b"\xf5", False: b"\xf4"}[value]
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(encode, value))
    if isinstance(value, dict):
        pairs = sorted((encode(key), encode(inner)) for key, inner in value.items())
        return head(5, len(pairs)) + b"".join(key + inner for key, inner in pairs)
    raise TypeError(type(value))
