"""What an operator asks of a running KI, and what it says: CBOR by POST, on the KI's own machine.

Every request carries the operator's word, which stands in a file that only the KI's user can read. A request
is a map `v` 1, `key`, `actor`, `do` and the fields of what is to be done; an answer a map `ki` 1 and `said`,
one sentence, or `tables`.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from heek.errors import LinkError, RankingRefusal, RecordError
from heek.ki import cbor
from heek.ki.answers import STATUSES
from heek.ki.link import CONTENT_TYPE, MOST_ANSWER_BYTES
from heek.ki.numbers import is_ki_number
from heek.ranking.findings import Finding
from heek.ranking.table_list import TableLine
from heek.ranking.words import counted
from heek.serving.addresses import bracketed, is_loopback

PATH: Final = "/v1/operator"
MOST_REASON: Final = 200
MOST_NAME: Final = 200
"""Characters of a name as it is typed; what it may be is for `heek.ranking.look_alikes`."""
MOST_ACTOR: Final = 32
MOST_REPLACED: Final = 64
"""Characters of a table's name or key."""
OPERATOR: Final = "operator"
"""Who it was, where nobody says more."""


@dataclass(frozen=True, slots=True)
class Enrol:
    """Take the table that shows this code, perhaps in the place of another (its name or key id)."""

    code: str
    replaces: str | None = None


@dataclass(frozen=True, slots=True)
class Void:
    """Declare a match (16 bytes) void."""

    match: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Restore:
    """Take a void back."""

    match: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Rename:
    """Give the player with this KI number another name."""

    player: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Erase:
    """Replace the identity with this KI number, and keep its entries."""

    player: str
    reason: str


@dataclass(frozen=True, slots=True)
class ListTables:
    """Say which tables there are, and what was seen of them."""


Act: TypeAlias = Void | Restore | Rename | Erase
Wish: TypeAlias = Enrol | Act | ListTables

_NAMES: Final[Mapping[type[Wish], str]] = {
    Enrol: "enrol",
    Void: "void",
    Restore: "restore",
    Rename: "rename",
    Erase: "erase",
    ListTables: "tables",
}


@dataclass(frozen=True, slots=True)
class OperatorRequest:
    """What somebody wants done who has shown `key`; whether that is the operator's is not looked at yet."""

    key: str
    actor: str
    wish: Wish


def encode_request(request: OperatorRequest) -> bytes:
    """The body of an operator's request."""
    wish = request.wish
    fields = {name: getattr(wish, name) for name in type(wish).__dataclass_fields__}
    return cbor.encode(
        {"v": 1, "key": request.key, "actor": request.actor, "do": _NAMES[type(wish)]} | fields
    )


def read_request(body: bytes) -> OperatorRequest:
    """The request of a body; raises RecordError with what is wrong."""
    value = cbor.decode(body)
    if not isinstance(value, dict) or value.get("v") != 1:
        raise RecordError("is no operator's request")
    key, actor = _text(value, "key", 200), _text(value, "actor", MOST_ACTOR)
    wish: Wish
    match value.get("do"):
        case "enrol":
            replaces = None if value.get("replaces") is None else _text(value, "replaces", MOST_REPLACED)
            wish = Enrol(_text(value, "code", 64), replaces)
        case "void":
            wish = Void(_match(value), _text(value, "reason", MOST_REASON))
        case "restore":
            wish = Restore(_match(value), _text(value, "reason", MOST_REASON))
        case "rename":
            wish = Rename(_player(value), _name(value), _text(value, "reason", MOST_REASON))
        case "erase":
            wish = Erase(_player(value), _text(value, "reason", MOST_REASON))
        case "tables":
            wish = ListTables()
        case _:
            raise RecordError("asks for nothing that an operator can do here")
    return OperatorRequest(key, actor, wish)


def encode_said(said: str) -> bytes:
    """The body of an answer: what was done, as one sentence."""
    return cbor.encode({"ki": 1, "said": said})


def encode_tables(lines: Iterable[TableLine], waiting: Iterable[str]) -> bytes:
    """The body of an answer: all tables, and the names of those that show a code."""
    return cbor.encode(
        {
            "ki": 1,
            "tables": [
                {
                    "name": each.name,
                    "key": each.key_id,
                    "enrolled": each.enrolled,
                    "replaced_by": each.replaced_by,
                    "known_since_s": each.known_since_s,
                    "seen_s": each.seen_s,
                    "waiting": each.waiting,
                    "holds": list(each.holds),
                    "told": None if each.told is None else list(each.told),
                    "set_aside": each.set_aside,
                    "findings": [
                        [found.kind, found.words, found.first_s, found.last_s, found.count]
                        for found in each.findings
                    ],
                }
                for each in lines
            ],
            "claims": list(waiting),
        }
    )


def read_tables(answer: Mapping[str, Any]) -> tuple[tuple[TableLine, ...], tuple[str, ...]]:
    """The tables of an answer, and the names of those that show a code; raises LinkError."""
    try:
        lines = tuple(
            TableLine(
                name=each["name"],
                key_id=each["key"],
                known_since_s=each["known_since_s"],
                enrolled=each["enrolled"],
                replaced_by=each["replaced_by"],
                seen_s=each["seen_s"],
                waiting=each["waiting"],
                holds=tuple(each["holds"]),
                told=None if each["told"] is None else tuple(each["told"]),
                set_aside=each["set_aside"],
                findings=tuple(Finding(*found) for found in each["findings"]),
            )
            for each in answer["tables"]
        )
        return lines, tuple(answer["claims"])
    except (KeyError, TypeError):
        raise LinkError("the KI does not say which tables there are; is it of another version?") from None


def read_answer(body: bytes) -> Mapping[str, Any]:
    """The answer of a KI; raises RankingRefusal if it refused, LinkError if this is no KI's answer."""
    try:
        value = cbor.decode(body)
    except RecordError:
        value = None
    if not isinstance(value, dict) or value.get("ki") != 1:
        raise LinkError("what answers there is not a KI")
    if "error" in value:
        code, retry = str(value["error"]), value.get("retry_s")
        text = str(value.get("text") or STATUSES.get(code, code))
        raise RankingRefusal(code, text, retry if isinstance(retry, int) else None)
    return value


def refusal_words(refusal: RankingRefusal) -> str:
    """What was refused, for a person, with how long to wait if it is a matter of time."""
    if refusal.retry_s is None:
        return str(refusal)
    return f"{refusal}; try again in {counted(refusal.retry_s, 'second', 'seconds')}"


def _text(value: Mapping[str, Any], key: str, most: int) -> str:
    text = value.get(key)
    if not isinstance(text, str) or not 0 < len(text.strip()) <= most or not text.isprintable():
        raise RecordError(f"needs {key}: 1 to {most} characters that can be shown")
    return text.strip()


def _name(value: Mapping[str, Any]) -> str:
    name = value.get("name")
    if not isinstance(name, str) or len(name) > MOST_NAME:
        raise RecordError(f"needs name: a text of at most {MOST_NAME} characters")
    return name


def _match(value: Mapping[str, Any]) -> bytes:
    match = value.get("match")
    if not isinstance(match, bytes) or len(match) != 16:
        raise RecordError("needs match: the 16 bytes of its id")
    return match


def _player(value: Mapping[str, Any]) -> str:
    player = value.get("player")
    if not is_ki_number(player):
        raise RecordError("needs player: a KI number, eight digits of which the last one checks the others")
    return str(player)


def ask_operator(host: str, port: int, request: OperatorRequest, timeout_s: float) -> Mapping[str, Any]:
    """Have the KI that listens there, on this machine, do it; its answer.

    Raises RankingRefusal if it refuses, LinkError if no KI answers.
    """
    # Wherever else it listens, it does so on loopback, and does this for no other machine.
    address = host if is_loopback(host) else "127.0.0.1"
    where = f"{bracketed(address)}:{port}"
    connection = http.client.HTTPConnection(address, port, timeout=timeout_s)
    try:
        connection.request("POST", PATH, encode_request(request), {"Content-Type": CONTENT_TYPE})
        body = connection.getresponse().read(MOST_ANSWER_BYTES)
    except (OSError, http.client.HTTPException) as error:
        words = getattr(error, "strerror", None) or type(error).__name__
        raise LinkError(f"no KI answers at {where} ({words}); is it running? (heek ki serve)") from None
    finally:
        connection.close()
    return read_answer(body)
