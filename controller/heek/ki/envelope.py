"""The envelope that travels: a record with the key id and the signature of the table that wrote it.

`[1, key id, record, signature]` as deterministic CBOR; the signature is Ed25519 over "heek-record-1" and
the record's bytes (the specification, "The record"). Ed25519 is deterministic: sealed again, a record
gives the same envelope, and a table need keep only the record.

PyNaCl is imported when somebody signs or verifies: a table that reports to nobody is spared it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from heek.errors import RecordError
from heek.ki import cbor

VERSION: Final = 1
RECORD_CONTEXT: Final = b"heek-record-1"
TABLE_CONTEXT: Final = b"heek-table-1"
KEY_ID_BYTES: Final = 8
MOST_IN_BATCH: Final = 200
"""Envelopes in one request."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A signed record on its way; the signature is not verified yet."""

    key_id: bytes
    record: bytes
    signature: bytes

    def packed(self) -> list[object]:
        """As it stands in a batch."""
        return [VERSION, self.key_id, self.record, self.signature]

    def encode(self) -> bytes:
        """The envelope alone, as deterministic CBOR."""
        return cbor.encode(self.packed())


def key_id(public: bytes) -> bytes:
    """The first 8 bytes of the SHA-256 of a public key (32 bytes)."""
    return hashlib.sha256(public).digest()[:KEY_ID_BYTES]


def seal(record: bytes, seed: bytes) -> Envelope:
    """Sign a record with the table's secret seed (32 bytes)."""
    from nacl.signing import SigningKey

    key = SigningKey(seed)
    return Envelope(key_id(bytes(key.verify_key)), record, key.sign(RECORD_CONTEXT + record).signature)


def public_key(seed: bytes) -> bytes:
    """The public key (32 bytes) that belongs to a seed (32 bytes)."""
    from nacl.signing import SigningKey

    return bytes(SigningKey(seed).verify_key)


def sign_introduction(seed: bytes, name: str) -> bytes:
    """The signature under which a table shows a KI its public key and its name."""
    from nacl.signing import SigningKey

    key = SigningKey(seed)
    signed: bytes = key.sign(TABLE_CONTEXT + bytes(key.verify_key) + name.encode()).signature
    return signed


def sign(message: bytes, seed: bytes) -> bytes:
    """The Ed25519 signature (64 bytes) of a message that begins with a context of its own."""
    from nacl.signing import SigningKey

    signed: bytes = SigningKey(seed).sign(message).signature
    return signed


def verify_record(envelope: Envelope, public: bytes) -> bool:
    """Did the holder of this public key (32 bytes) sign the record?"""
    return verify(RECORD_CONTEXT + envelope.record, envelope.signature, public)


def verify_introduction(public: bytes, name: str, signature: bytes) -> bool:
    """Did the holder of this public key (32 bytes) sign its introduction under this name?"""
    return verify(TABLE_CONTEXT + public + name.encode(), signature, public)


def verify(message: bytes, signature: bytes, public: bytes) -> bool:
    """Did the holder of this public key (32 bytes) sign that message?"""
    from nacl.exceptions import CryptoError
    from nacl.signing import VerifyKey

    try:
        VerifyKey(public).verify(message, signature)
    except (CryptoError, ValueError, TypeError):
        return False
    return True


def open_envelope(value: object) -> Envelope:
    """The envelope of a decoded CBOR value; raises RecordError if it is none."""
    match value:
        case [int(version), bytes(key), bytes(record), bytes(signature)]:
            if version != VERSION or isinstance(version, bool):
                raise RecordError(f"is an envelope of version {version}; this service knows {VERSION}")
            if len(key) != KEY_ID_BYTES or len(signature) != 64:
                raise RecordError("is no envelope: key id has 8 bytes, signature 64")
            return Envelope(key, record, signature)
    raise RecordError("is no envelope [1, key id, record, signature]")


def batch(envelopes: Iterable[Envelope]) -> bytes:
    """The body of a request that delivers these envelopes."""
    return cbor.encode([each.packed() for each in envelopes])


def split_batch(body: bytes) -> Sequence[Envelope | RecordError]:
    """The envelopes of a request's body, each or what is wrong with it.

    Raises RecordError if the body as a whole is no batch.
    """
    value: Any = cbor.decode(body)
    if not isinstance(value, list):
        raise RecordError("is no list of envelopes")
    if len(value) > MOST_IN_BATCH:
        raise RecordError(f"has {len(value)} envelopes; {MOST_IN_BATCH} at most in one request")
    opened: list[Envelope | RecordError] = []
    for each in value:
        try:
            opened.append(open_envelope(each))
        except RecordError as error:
            opened.append(error)
    return opened
