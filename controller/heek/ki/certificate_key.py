"""The Ed25519 key in a certificate: the one thing of it that a table looks at.

A table trusts no authority, no name and no time of a certificate, since it may think that it is 1970. It
compares the key with the one that it pinned when it enrolled, and that the other end holds this key is
what the handshake of TLS 1.3 itself proves.

The key is found by its place in the certificate, not by searching for its bytes: anybody can write another's
key into an extension of their own certificate. What is read (RFC 5280, 4.1): `SEQUENCE { tbs SEQUENCE { [0]
version, serial, signature, issuer, validity, subject, SEQUENCE { SEQUENCE { algorithm }, BIT STRING key },
...`.
"""

from __future__ import annotations

from typing import Final

_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_BEFORE_KEY: Final = (0x02, _SEQUENCE, _SEQUENCE, _SEQUENCE, _SEQUENCE)
"""Serial, signature algorithm, issuer, validity, subject."""
_ED25519: Final = bytes.fromhex("300506032b6570032100")
"""The algorithm, and the head of a bit string of 32 bytes; the key follows and nothing else."""


def ed25519_key(certificate: bytes) -> bytes | None:
    """The public key (32 bytes) of a certificate in DER; None if it has another kind, or is none."""
    try:
        outer, end = _inside(certificate, 0, _SEQUENCE)
        if end != len(certificate):
            return None
        at, _ = _inside(certificate, outer, _SEQUENCE)
        _, at = _inside(certificate, at, _VERSION)
        for tag in _BEFORE_KEY:
            _, at = _inside(certificate, at, tag)
        begin, end = _inside(certificate, at, _SEQUENCE)
    except (IndexError, ValueError):
        return None
    found = certificate[begin:end]
    return found[-32:] if len(found) == len(_ED25519) + 32 and found.startswith(_ED25519) else None


def _inside(data: bytes, at: int, tag: int) -> tuple[int, int]:
    """Where the content of the element at `at` begins and ends; raises ValueError or IndexError."""
    if data[at] != tag:
        raise ValueError(f"0x{data[at]:02x} instead of 0x{tag:02x}")
    length, begin = data[at + 1], at + 2
    if length & 0x80:
        size = length & 0x7F
        if not 1 <= size <= 3:
            raise ValueError("a length that no certificate of ours has")
        begin += size
        length = int.from_bytes(data[at + 2 : begin], "big")
    end = begin + length
    if end > len(data):
        raise ValueError("cut off")
    return begin, end
