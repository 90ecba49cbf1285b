"""What table and KI tell each other beside records: who holds what, what players hold, what was corrected.

A table asks (`SYNC`) whenever nothing waits, and now and then. It says which of its results it takes for
acknowledged, as a **digest**: their count and the xor of their match ids. The KI answers with the digest of
what it holds from this table. When the two differ the table offers everything again: so a KI that was
restored from an older backup gets back what it has lost, and what it took late becomes known here.

`inc`, `n` (from 1 within the incarnation, rising) and `heard` (the `mark` of the last answer that came, empty
before the first) tell the KI's operator of a second table with the same key (`heek.ranking.sightings`).
`boot` and `mono_ms`, the table's monotonic clock as it asks, let the KI say when a match was that had no wall
clock to go by. They label; they decide nothing.

What comes down are **news**, numbered from 1 for each table without gaps, kept for ever and told from the
number that the table has on: told twice they change nothing. A kind that a table does not know yet is kept
and counted, and does nothing. Each has a **mark**, drawn when it was told first, and the table names that of
its newest. A ledger that was put back from a copy may tell other news under numbers that the table has heard;
it does not know the mark then, and tells everything from 1 again, in place of what the table has. One mark is
enough: news are only added, so whoever has the newest by its mark has all that came before it. It is drawn,
and no hash, because what an erased player was called must leave no trace. Everything in the answer is signed
by the service (`heek.ki.signed_answer`), and bound to the very question, so nothing old can be played again.

On the wire. Question: `v` 1, `table` (key id), `name`, `inc`, `n`, `heard`, `boot`, `mono_ms`, `holds`
(count, xor), `waiting`, `news` (the highest number that is kept), `mark` (of that; zeros if there is none),
`players` (KI numbers whose points are wanted), `formers` (key ids that the table had before), `sig`: the
table's signature over "heek-sync-1" and the map without it. Answer: `ki` 1, `n` (of the question), `mark` (8
random bytes, by which the next question names this answer in `heard`), `holds`, `points`, `now_s` (the KI's
wall clock), `news` (a list of [number, kind, fields, mark]), `newest` (the highest number there is), `after`
(the number that they go on from: the question's, or 0 if they take the place of what the table has),
`formers` (for each key id that was asked for what is held of it, or null if it is not known here).

A table that has lost its key has another one, and what it reported under the old one is in no digest of the
new. So it asks for those too: what a KI has lost of them is offered again as it was signed, or, where the old
key is not known any more, signed by the new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from heek.errors import LinkError, RecordError
from heek.ki import cbor
from heek.ki.answers import is_number
from heek.ki.envelope import KEY_ID_BYTES, sign, verify
from heek.ki.numbers import is_ki_number

CONTEXT: Final = b"heek-sync-1"
MARK_BYTES: Final = 8
_SIZES: Final = (MARK_BYTES, 16)
"""Of an answer's mark and xor."""
MOST_PLAYERS: Final = 50
"""Whose points are asked for at once."""
MOST_FORMERS: Final = 8
"""Keys that a table had before, and asks for at once."""
MOST_NEWS: Final = 100
"""In one answer; the table asks on at once."""
MOST_NEWS_BYTES: Final = 32 * 1024
NO_MARK: Final = bytes(MARK_BYTES)
"""Of no news at all."""

VOIDED: Final = "voided"
"""Fields `match` (16 bytes), `reason`: an operator has declared the match void."""
RESTORED: Final = "restored"
"""Fields `match` (16 bytes), `reason`: the void was taken back."""
NAMED: Final = "named"
"""Fields `player` (KI number), `name`: what the player is called from now on."""
ERASED: Final = "erased"
"""Field `player` (KI number): the identity is gone; whatever names it is to be forgotten here too."""

Holds = tuple[int, bytes]
"""Count, and xor of the ids (16 bytes)."""
NOTHING: Final[Holds] = (0, bytes(16))


@dataclass(frozen=True, slots=True)
class SyncQuestion:
    """What a table says of itself when it asks how things stand."""

    table: bytes
    """Its key id."""
    name: str
    inc: bytes
    n: int
    heard: bytes
    """The mark of the last answer within the incarnation; empty: none came yet."""
    boot: str
    mono_ms: int
    holds: Holds
    waiting: int
    news: int
    players: tuple[str, ...] = ()
    mark: bytes = NO_MARK
    """Of the news with that number."""
    formers: tuple[bytes, ...] = ()
    """The key ids that the table had before, and of which it wants to know what the KI holds."""


@dataclass(frozen=True, slots=True)
class News:
    """One thing that the KI tells a table; `number` is from 1."""

    number: int
    kind: str
    fields: Mapping[str, Any]
    mark: bytes


@dataclass(frozen=True, slots=True)
class SyncAnswer:
    """How things stand at the KI for one table."""

    n: int
    mark: bytes
    """8 bytes, of this answer alone."""
    holds: Holds
    points: Mapping[str, int]
    now_s: int
    news: tuple[News, ...]
    newest: int
    after: int
    """The number that the news go on from; 0 though the table has some: what it has counts no more."""
    formers: Mapping[bytes, Holds | None] = field(default_factory=dict)
    """What the KI holds of the key ids that were asked for; None: it does not know that one."""


def digest(matches: Iterable[bytes]) -> Holds:
    """Count and xor of match ids (16 bytes each)."""
    count, total = 0, 0
    for each in matches:
        count += 1
        total ^= int.from_bytes(each, "big")
    return count, total.to_bytes(16, "big")


def with_match(holds: Holds, match: bytes, *, gone: bool = False) -> Holds:
    """The digest with one match (16 bytes) more, or with `gone` one less."""
    count, xor = holds
    return count + (-1 if gone else 1), bytes(one ^ other for one, other in zip(xor, match, strict=True))


def difference(theirs: Holds, ours: Holds) -> Holds:
    """What ours lacks to be theirs; `NOTHING` if they are the same. The count may be negative."""
    return theirs[0] - ours[0], bytes(one ^ other for one, other in zip(theirs[1], ours[1], strict=True))


def encode_question(question: SyncQuestion, seed: bytes) -> bytes:
    """The body of a SYNC, signed by the table's seed (32 bytes)."""
    value: dict[str, object] = {
        "v": 1,
        "table": question.table,
        "name": question.name,
        "inc": question.inc,
        "n": question.n,
        "heard": question.heard,
        "boot": question.boot,
        "mono_ms": question.mono_ms,
        "holds": list(question.holds),
        "waiting": question.waiting,
        "news": question.news,
        "mark": question.mark,
        "players": list(question.players),
        "formers": list(question.formers),
    }
    value["sig"] = sign(CONTEXT + cbor.encode(value), seed)
    return cbor.encode(value)


def read_question(body: bytes) -> tuple[SyncQuestion, bytes, bytes]:
    """A question, what was signed of it, and the signature, not verified yet; raises RecordError."""
    value = cbor.decode(body)
    match value:
        case {
            "v": 1, "table": bytes(table), "name": str(name), "inc": bytes(inc), "n": int(n),
            "heard": bytes(heard), "boot": str(boot), "mono_ms": int(mono_ms),
            "holds": [int(count), bytes(xor)], "waiting": int(waiting), "news": int(news),
            "mark": bytes(mark), "players": list(players), "formers": list(formers),
            "sig": bytes(signature),
        }:  # fmt: skip
            sizes = (len(table), len(inc), len(xor), len(mark), len(signature))
            fits = sizes == (KEY_ID_BYTES, 8, 16, MARK_BYTES, 64) and len(heard) in (0, MARK_BYTES)
            sane = min(count, waiting, news) >= 0 and max(n, count, waiting, news) < 1 << 53 and n >= 1
            named = 0 < len(name) <= 24 and name.isprintable() and 0 < len(boot) <= 64 and boot.isprintable()
            known = len(players) <= MOST_PLAYERS and all(map(is_ki_number, players))
            keys = len(formers) <= MOST_FORMERS and all(map(_is_key_id, formers))
            if fits and sane and named and known and keys and abs(mono_ms) < 1 << 53:
                unsigned = {key: each for key, each in value.items() if key != "sig"}
                question = SyncQuestion(
                    table,
                    name,
                    inc,
                    n,
                    heard,
                    boot,
                    mono_ms,
                    (count, xor),
                    waiting,
                    news,
                    tuple(players),
                    mark,
                    tuple(formers),
                )
                return question, CONTEXT + cbor.encode(unsigned), signature
    raise RecordError("is no question of a table how things stand")


def is_from(signed: bytes, signature: bytes, public: bytes) -> bool:
    """Whether the holder of this public key (32 bytes) asked; the first two are `read_question`'s."""
    return verify(signed, signature, public)


def encode_sync_answer(answer: SyncAnswer) -> bytes:
    """The body of an answer to SYNC, to be signed."""
    return cbor.encode(
        {
            "ki": 1,
            "n": answer.n,
            "mark": answer.mark,
            "holds": list(answer.holds),
            "points": dict(answer.points),
            "now_s": answer.now_s,
            "news": [[each.number, each.kind, dict(each.fields), each.mark] for each in answer.news],
            "newest": answer.newest,
            "after": answer.after,
            "formers": [None if holds is None else list(holds) for holds in answer.formers.values()],
        }
    )


def read_sync_answer(value: Mapping[str, Any], asked: SyncQuestion) -> SyncAnswer:
    """The answer to what was asked; `value` is the map as `heek.ki.answers` reads it. Raises LinkError.

    News must go on from the number that we have, or from 0, one by one: nothing else here has an order that
    matters.
    """
    match value:
        case {
            "n": n, "mark": bytes(mark), "holds": [count, bytes(xor)], "points": dict(points),
            "now_s": now_s, "news": list(told), "newest": newest, "after": after, "formers": list(formers),
        } if all(map(is_number, (n, count, now_s, newest, after))) and (
            (len(mark), len(xor)) == _SIZES
        ):  # fmt: skip
            if n != asked.n:
                raise LinkError("the KI answered another question than was asked")
            if after not in (0, asked.news):
                raise LinkError(f"the KI's news go on from number {after}, which was not asked for")
            news = tuple(_news(each, after + place) for place, each in enumerate(told, start=1))
            if len(formers) != len(asked.formers):
                raise LinkError("the KI's answer does not say what it holds of the keys it was asked for")
            holds = {key: _holds(each) for key, each in zip(asked.formers, formers, strict=True)}
            return SyncAnswer(n, mark, (count, xor), _points(points), now_s, news, newest, after, holds)
    raise LinkError("the KI's answer does not say how things stand; are both of the same version?")


def _news(value: Any, number: int) -> News:
    match value:
        case [int(found), str(kind), dict(fields), bytes(mark)] if (found, len(mark)) == (number, MARK_BYTES):
            return News(number, kind, fields, mark)
    raise LinkError(f"the KI's news do not go on with number {number}")


def _is_key_id(value: object) -> bool:
    return isinstance(value, bytes) and len(value) == KEY_ID_BYTES


def _holds(value: Any) -> Holds | None:
    match value:
        case None:
            return None
        case [count, bytes(xor)] if is_number(count) and len(xor) == len(NOTHING[1]):
            return count, xor
    raise LinkError("the KI's answer does not say what it holds of a key that it was asked for")


def _points(points: Mapping[Any, Any]) -> dict[str, int]:
    if not all(isinstance(player, str) and is_number(held) for player, held in points.items()):
        raise LinkError("the KI's answer tells points that are no numbers")
    return dict(points)
