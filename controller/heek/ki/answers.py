"""What a table asks the KI besides records, and what the KI answers; the same bodies over every link.

An answer is a CBOR map with `"ki": 1`, by which a table tells the KI from a login page that also says "OK".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, TypeGuard

from heek.errors import LinkError, RecordError
from heek.ki import cbor
from heek.ki.envelope import public_key, sign_introduction
from heek.ki.numbers import is_ki_number
from heek.unseen import is_unseen

MARK: Final = 1
"""The version of the answers, under the key `ki`."""

MOST_NUMBER: Final = 1 << 53
"""A number beyond it counts nothing that we know, and fits into no column of a journal."""
MOST_TEXT: Final = 300
"""Characters of what a KI says to people; the rest is cut."""

STATUSES: Final[Mapping[str, str]] = {
    "unknown_table": "the KI does not know this table's key",
    "not_enrolled": "the KI takes only tables that are enrolled",
    "not_operator": "the KI does this for its operator alone",
    "unknown_code": "no table shows this code",
    "unknown_match": "the KI holds no such match",
    "malformed": "the KI could not read the request",
    "too_large": "the request is too large for the KI",
    "not_demo": "signing in by a click is for demonstrations alone",
    "unknown_player": "the KI knows no such number",
    "busy": "the KI has too much to do",
    "unavailable": "the KI cannot be reached",
}
"""Why a whole request was refused."""


class Verdict(Enum):
    """What became of one record (the specification, "Exactly once" 2)."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    REJECTED = "rejected"

    @property
    def success(self) -> bool:
        """The record counts, now or since an earlier time."""
        return self in (Verdict.ACCEPTED, Verdict.DUPLICATE)


_VERDICTS: Final = frozenset(each.value for each in Verdict)


@dataclass(frozen=True, slots=True)
class RecordAnswer:
    """The verdict on one record of a request."""

    verdict: Verdict
    reason: str | None = None
    match: bytes | None = None
    """16 bytes; None if the record could not be read."""


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """The answer to a request with records, one verdict for each, in their order."""

    answers: tuple[RecordAnswer, ...]
    points: Mapping[str, int] = field(default_factory=dict)
    """What the players concerned hold now, by KI number."""
    holds: tuple[int, bytes] = (0, bytes(16))
    """Count and xor of the match ids of all that the KI holds from this table."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A player whom the demonstration's click signed in."""

    player: str
    name: str
    points: int


@dataclass(frozen=True, slots=True)
class Introduced:
    """What the KI answers to a table that introduced itself."""

    table: bytes
    """The key id under which it knows the table."""
    public: bytes
    """Its own public key, 32 bytes."""
    name: str
    """Its own."""


class Refused(LinkError):
    """The KI answered, and refused the request as a whole; `code` is one of `STATUSES`."""

    code: str = ""


def encode_batch_answer(answer: BatchAnswer) -> bytes:
    """The body of an answer to records."""
    return cbor.encode(
        {
            "ki": MARK,
            "answers": [[each.verdict.value, each.reason, each.match] for each in answer.answers],
            "points": dict(answer.points),
            "holds": list(answer.holds),
        }
    )


def encode_refusal(code: str, text: str = "", retry_s: int | None = None) -> bytes:
    """The body of a refusal; raises KeyError for a code that is not in `STATUSES`."""
    body: dict[str, object] = {"ki": MARK, "error": code, "text": text or STATUSES[code]}
    if retry_s is not None:
        body["retry_s"] = retry_s
    return cbor.encode(body)


def encode_table_answer(key: bytes, public: bytes, name: str) -> bytes:
    """The body of an answer to a table that introduced itself: its key id, the KI's public key and name."""
    return cbor.encode({"ki": MARK, "table": key, "public": public, "name": name})


def encode_signed_in(who: SignedIn) -> bytes:
    """The body of an answer to a demonstration's sign-in."""
    return cbor.encode(
        {"ki": MARK, "player": who.player, "name": who.name, "points": who.points, "unverified": True}
    )


def encode_introduction(seed: bytes, name: str) -> bytes:
    """The body of a request by which the holder of a seed (32 bytes) shows its public key."""
    return cbor.encode(
        {"v": 1, "public": public_key(seed), "name": name, "sig": sign_introduction(seed, name)}
    )


def read_introduction(body: bytes) -> tuple[bytes, str, bytes]:
    """Public key, name and signature of an introduction, not verified yet; raises RecordError."""
    match cbor.decode(body):
        case {"v": 1, "public": bytes(public), "name": str(name), "sig": bytes(signature)}:
            if len(public) == 32 and len(signature) == 64 and 0 < len(name) <= 24 and name.isprintable():
                return public, name, signature
    raise RecordError("is no introduction of a table")


def encode_sign_in(player: str | None) -> bytes:
    """The body of a demonstration's sign-in; None asks for a new number."""
    return cbor.encode({"player": player})


def read_sign_in(body: bytes) -> str | None:
    """The number that a demonstration's sign-in asks for; raises RecordError."""
    match cbor.decode(body):
        case {"player": None}:
            return None
        case {"player": str(player)} if is_ki_number(player):
            return player
    raise RecordError("is no sign-in: `player` is a KI number, or null for a new one")


def is_the_kis(body: bytes) -> bool:
    """Does this come from a KI at all?"""
    try:
        value = cbor.decode(body)
    except RecordError:
        return False
    return isinstance(value, dict) and value.get("ki") == MARK


def read_batch_answer(body: bytes, asked: int) -> BatchAnswer:
    """The verdicts on `asked` records.

    Raises Refused if the KI refused them all, LinkError if this is no such answer.
    """
    match read_answer(body):
        case {"answers": list(said), "points": dict(points), "holds": [count, bytes(xor)]} if (
            len(xor) == 16 and is_number(count) and all(map(is_number, points.values()))
        ):
            if len(said) != asked:
                raise LinkError(f"the KI answered for {len(said)} records instead of {asked}")
            return BatchAnswer(tuple(map(_verdict, said)), points, (count, xor))
    raise _not_to_records()


def read_table_answer(body: bytes) -> Introduced:
    """Who knows the table now, and as whom; raises Refused or LinkError."""
    match read_answer(body):
        case {"table": bytes(table), "public": bytes(public), "name": str(name)} if len(public) == 32:
            return Introduced(table, public, _one_line(name))
    raise LinkError("the KI's answer is not one to an introduction; are both of the same version?")


def read_signed_in(body: bytes) -> SignedIn:
    """Who has signed in; raises Refused or LinkError."""
    match read_answer(body):
        case {"player": str(player), "name": str(name), "points": points} if is_ki_number(
            player
        ) and is_number(points):
            return SignedIn(player, _one_line(name) or player, points)
    raise LinkError("the KI's answer is not one to a sign-in; are both of the same version?")


def _verdict(value: Any) -> RecordAnswer:
    match value:
        case [str(status), str() | None as reason, bytes() | None as match] if status in _VERDICTS and (
            match is None or len(match) == 16
        ):
            return RecordAnswer(Verdict(status), None if reason is None else _one_line(reason), match)
    raise _not_to_records()


def _not_to_records() -> LinkError:
    return LinkError("the KI's answer is not one to records; are both of the same version?")


def is_number(value: object) -> TypeGuard[int]:
    """Whether this is a whole number that fits wherever we keep one."""
    return type(value) is int and abs(value) < MOST_NUMBER


def read_answer(body: bytes) -> dict[str, Any]:
    """The map of any answer; raises Refused if it is a refusal, LinkError if it is not the KI's."""
    try:
        value = cbor.decode(body)
    except RecordError as error:
        raise LinkError(f"what answered is not the KI: its answer {error}") from None
    if not isinstance(value, dict) or value.get("ki") != MARK:
        raise LinkError("what answered is not the KI: its answer does not say so")
    if "error" in value:
        code, text, retry = value["error"], value.get("text"), value.get("retry_s")
        if not isinstance(code, str):
            raise LinkError("the KI refuses without a reason; are both of the same version?")
        words = _one_line(text) if isinstance(text, str) else ""
        refused = Refused(words or STATUSES.get(code) or _one_line(f"the KI refuses: {code}"))
        refused.code = code
        refused.retry_s = float(retry) if is_number(retry) else None
        raise refused
    return value


def _one_line(text: str) -> str:
    """What comes from outside and is shown: on one line, and no longer than people read."""
    seen = (" " if is_unseen(each) else each for each in text[: MOST_TEXT + 1])
    line = " ".join("".join(seen).split())
    return line if len(line) <= MOST_TEXT else line[: MOST_TEXT - 1] + "…"
