"""Enrolment by a code: how table and KI come to know each other's keys, over any link and with any clock.

The table draws a code of eight letters and shows it on its OLED; an operator reads it there and types it in
at the KI. The code itself never travels. From it and a nonce both ends work out a key with Argon2id; with
that key the table marks its claim (its public key, its name), and the KI, once it has the code, its own
public key.
So the operator's eyes and fingers are what binds the two keys to each other:

* Somebody on the line who puts another table's key into the claim, or another service's key into the answer,
  cannot make the mark for it. To find the code from a mark takes up to 20^8 runs of Argon2id (`MEMORY` each),
  and a code lives ten minutes.
* No certificate is looked at and no time compared: it works when the Pi thinks that it is 1970.

One request does all of it. The table sends its claim every few seconds; the KI answers `waiting` until an
operator has typed the code, and then `enrolled`, with its public key and the mark. A code is good once: the
KI forgets a claim that was enrolled or is `LIFETIME` old, and the table draws a new code then.

On the wire. Claim: `v` 1, `public` (32 bytes), `name`, `nonce` (16), `mark` (32), `sig`: the table's
signature over "heek-claim-1" and the map without it. Answer: `ki` 1, `state`, and, once enrolled, `public`,
`name` and `mark` of the service. The KI signs it as every answer.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from heek.clock import SECOND, Duration
from heek.errors import LinkError, RecordError
from heek.ki import cbor
from heek.ki.envelope import public_key, sign, verify

CONTEXT: Final = b"heek-claim-1"
LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"
"""No vowels, and no Y that stands for one: no code is a word."""
CODE_LETTERS: Final = 8
LIFETIME: Final[Duration] = 600 * SECOND
"""Of a code, at both ends (the specification, "Who may do what")."""
NONCE_BYTES: Final = 16
PASSES: Final = 3
MEMORY: Final = 16 << 20
"""Bytes of Argon2id: a tenth of a second on a Pi 4, and room for it on a Zero 2 W."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a table claims: that it has this key and this name. The signature was verified."""

    public: bytes
    name: str
    nonce: bytes
    mark: bytes


@dataclass(frozen=True, slots=True)
class Enrolled:
    """What the KI answers to a claim whose code was typed in, its mark verified."""

    public: bytes
    """The service's key, 32 bytes: to be pinned."""
    name: str
    """The service's."""


def draw_code(draw: Callable[[int], int]) -> str:
    """A new code; `draw(n)` gives a random number below n, such as `secrets.randbelow`."""
    return "".join(LETTERS[draw(len(LETTERS))] for _ in range(CODE_LETTERS))


def read_code(typed: str) -> str:
    """The code that somebody typed, in any case, with blanks or hyphens; raises ValueError if it is none."""
    code = "".join(typed.split()).replace("-", "").upper()
    if len(code) != CODE_LETTERS or not set(code) <= set(LETTERS):
        raise ValueError(
            f"{typed!r} is no code: a table shows {CODE_LETTERS} letters, none of them a vowel or Y"
        )
    return code


def shown_code(code: str) -> str:
    """A code as people read it: two groups of four."""
    return f"{code[:4]} {code[4:]}"


def claim_key(code: str, public: bytes, nonce: bytes) -> bytes:
    """The key that code, table and nonce give, 32 bytes; takes its time (Argon2id), so not on a loop."""
    from nacl.pwhash import argon2id

    salt = hashlib.sha256(CONTEXT + public + nonce).digest()[: argon2id.SALTBYTES]
    key: bytes = argon2id.kdf(32, code.encode(), salt, opslimit=PASSES, memlimit=MEMORY)
    return key


def table_mark(key: bytes, public: bytes, nonce: bytes, name: str) -> bytes:
    """By which a claim shows that its sender knows the code, 32 bytes."""
    return hmac.digest(key, b"table" + public + nonce + name.encode(), "sha256")


def service_mark(key: bytes, table: bytes, service: bytes, name: str) -> bytes:
    """By which the KI shows that it was told the code, 32 bytes; `table` and `service` are public keys."""
    return hmac.digest(key, b"service" + table + service + name.encode(), "sha256")


def encode_claim(seed: bytes, name: str, nonce: bytes, key: bytes) -> bytes:
    """The body of a claim by the holder of a seed (32 bytes); `key` is `claim_key`'s."""
    public = public_key(seed)
    value: dict[str, object] = {
        "v": 1,
        "public": public,
        "name": name,
        "nonce": nonce,
        "mark": table_mark(key, public, nonce, name),
    }
    value["sig"] = sign(CONTEXT + cbor.encode(value), seed)
    return cbor.encode(value)


def read_claim(body: bytes) -> Claim:
    """The claim of a request's body, its signature verified; raises RecordError."""
    value = cbor.decode(body)
    match value:
        case {
            "v": 1, "public": bytes(public), "name": str(name), "nonce": bytes(nonce), "mark": bytes(mark),
            "sig": bytes(signature),
        }:  # fmt: skip
            fits = (len(public), len(nonce), len(mark), len(signature)) == (32, NONCE_BYTES, 32, 64)
            if fits and 0 < len(name) <= 24 and name.isprintable():
                unsigned = {name: each for name, each in value.items() if name != "sig"}
                if not verify(CONTEXT + cbor.encode(unsigned), signature, public):
                    raise RecordError("is a claim whose signature is not that of its key")
                return Claim(public, name, nonce, mark)
    raise RecordError("is no claim of a table")


def is_code_of(claim: Claim, key: bytes) -> bool:
    """Whether the code that gave this key (`claim_key`) is the one that the claim's table shows."""
    return hmac.compare_digest(claim.mark, table_mark(key, claim.public, claim.nonce, claim.name))


def encode_waiting() -> bytes:
    """The body of the answer to a claim whose code nobody has typed in yet."""
    return cbor.encode({"ki": 1, "state": "waiting"})


def encode_enrolled(public: bytes, name: str, mark: bytes) -> bytes:
    """The body of the answer to a claim whose code was typed in; `mark` is `service_mark`'s."""
    return cbor.encode({"ki": 1, "state": "enrolled", "public": public, "name": name, "mark": mark})


def read_claim_answer(value: dict[str, Any], key: bytes, table: bytes) -> Enrolled | None:
    """What the KI said to a claim; None: nobody has typed the code in yet.

    `value` is the answer as `heek.ki.answers` reads it, `key` `claim_key`'s, `table` our public key. Raises
    LinkError if it is no answer to a claim, or if who answers was not told the code.
    """
    match value:
        case {"state": "waiting"}:
            return None
        case {"state": "enrolled", "public": bytes(public), "name": str(name), "mark": bytes(mark)} if (
            len(public) == 32
        ):
            if not hmac.compare_digest(mark, service_mark(key, table, public, name)):
                raise LinkError("who answers says that this table is enrolled, but was never told its code")
            return Enrolled(public, name)
    raise LinkError("the KI's answer is not one to a claim; are both of the same version?")
