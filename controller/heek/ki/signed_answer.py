"""The KI's signature on what it answers: by it a table tells the KI it is enrolled at from all else.

An answer is a map that says `"ki": 1` (`heek.ki.answers`). Signed, it has besides `service`, the key id of
the service's Ed25519 key, and `sig`, the signature over "heek-answer-1", the SHA-256 of what was asked (the
request's frame type as one byte, then its body) and the answer's deterministic CBOR without `sig`. So an
answer to one question is worth nothing as the answer to another: neither a portal nor somebody who listens
can acknowledge a result, and nothing that was recorded can be played again.

Refusals are not signed. Nothing is lost by one that is false: the table keeps what it has and asks again.
"""

from __future__ import annotations

import hashlib
from typing import Final

from heek.errors import LinkError, RecordError
from heek.ki import cbor
from heek.ki.envelope import key_id, public_key, sign, verify
from heek.ki.link import Request

CONTEXT: Final = b"heek-answer-1"


def sign_answer(answer: bytes, request: Request, asked: bytes, seed: bytes) -> bytes:
    """The answer, a map as CBOR, signed by the service's secret seed (32 bytes) for what was `asked`."""
    value = dict(cbor.decode(answer))
    value["service"] = key_id(public_key(seed))
    value["sig"] = sign(_message(value, request, asked), seed)
    return cbor.encode(value)


def check_answer(answer: bytes, request: Request, asked: bytes, public: bytes) -> None:
    """Raise LinkError unless the holder of that public key (32 bytes) answered so to what was `asked`."""
    value = _map(answer)
    if "error" in value:
        return
    signature = value.pop("sig", None)
    service = value.get("service")
    if not isinstance(signature, bytes) or not isinstance(service, bytes):
        raise LinkError(
            "what answered has not signed its answer, so it is not the KI this table is enrolled at"
        )
    if service != key_id(public):
        raise LinkError(
            f"another KI answers than the one this table is enrolled at (key {service.hex()} instead of "
            f"{key_id(public).hex()}); if the KI was replaced, enrol this table anew: heek enrol --again"
        )
    if not verify(_message(value, request, asked), signature, public):
        raise LinkError("the signature of the KI's answer is wrong: somebody changes what the link carries")


def _message(unsigned: dict[str, object], request: Request, asked: bytes) -> bytes:
    return CONTEXT + hashlib.sha256(bytes([request.frame_type]) + asked).digest() + cbor.encode(unsigned)


def _map(answer: bytes) -> dict[str, object]:
    try:
        value = cbor.decode(answer)
    except RecordError as error:
        raise LinkError(f"what answered is not the KI: its answer {error}") from None
    if not isinstance(value, dict):
        raise LinkError("what answered is not the KI: its answer is no map")
    return value
