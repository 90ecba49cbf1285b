"""From the result of a match to the record that reports it, and to JSON that people can read.

What a record says is fixed here, when the match ends; it is signed when it is sent.
"""

from __future__ import annotations

import json
import uuid
from typing import Any, Final

import msgspec

from heek.boot import Boot
from heek.clock import MILLISECOND, Clock
from heek.errors import RecordError
from heek.ki.record import VERSION, Record, RecordSeat, RecordTime
from heek.kinds import Kind
from heek.session.state import MatchResult

GAME: Final = "ahyoheek"


def record_of(
    result: MatchResult,
    *,
    table: bytes,
    name: str,
    incarnation: bytes,
    seq: int,
    prev: bytes | None,
    boot: Boot,
    clock: Clock,
) -> Record:
    """The record of a match that was won, with every seat's stake and delta.

    `table` is the key id, `name` the table's name, `seq` the number of the record in this incarnation,
    `prev` the hash of the record before. Times are milliseconds on the boot's monotonic clock; the start
    is None if a power cut lies between.
    """
    origin, started = clock.origin_ns, result.started_at
    return Record(
        rules=result.rules,
        game=GAME,
        match=uuid.UUID(result.match).bytes,
        table=table,
        name=name,
        inc=incarnation,
        seq=seq,
        prev=prev,
        seats=tuple(
            RecordSeat(
                seat=entry.seat,
                kind="bot" if entry.bot else "guest" if entry.player is None else "player",
                player=entry.player,
                name=entry.name,
                stake=entry.stake,
                delta=delta,
            )
            for entry, delta in zip(result.entries, result.deltas, strict=True)
        ),
        winner=result.winner,
        by=result.by,
        rated=result.rated,
        rounds=result.rounds,
        late_rounds=result.late_rounds,
        t=RecordTime(
            boot=boot.id,
            start_ms=None if started is None else (origin + started) // MILLISECOND,
            end_ms=(origin + result.ended_at) // MILLISECOND,
            wall_s=int(clock.wall_s()),
            trust=boot.trust,
        ),
    )


def result_json(record: Record) -> bytes:
    """A record as the journal shows it: the same fields, bytes as hexadecimal text, the match as a UUID."""
    return msgspec.json.encode(
        {
            "v": VERSION,
            "rules": record.rules,
            "game": record.game,
            "match": record.match_id,
            "table": record.table.hex(),
            "name": record.name,
            "inc": record.inc.hex(),
            "seq": record.seq,
            "prev": None if record.prev is None else record.prev.hex(),
            "seats": record.seats,
            "winner": record.winner,
            "by": record.by,
            "rated": record.rated,
            "rounds": record.rounds,
            "late_rounds": record.late_rounds,
            "t": record.t,
        }
    )


def record_from_json(body: bytes, *, table: bytes, seq: int, prev: bytes | None) -> Record:
    """The record of a result that was kept before there was a key to sign with.

    Raises RecordError if it lacks what a record needs.
    """
    try:
        value: dict[str, Any] = json.loads(body)
        return Record(
            rules=value["rules"],
            game=value["game"],
            match=uuid.UUID(value["match"]).bytes,
            table=table,
            name=value["name"],
            inc=bytes.fromhex(value["inc"]),
            seq=seq,
            prev=prev,
            seats=tuple(RecordSeat(**seat) for seat in value["seats"]),
            winner=value["winner"],
            by=value["by"],
            rated=value["rated"],
            rounds=tuple(
                {int(seat): None if kind is None else Kind(kind) for seat, kind in each.items()}
                for each in value["rounds"]
            ),
            late_rounds=tuple(value["late_rounds"]),
            t=RecordTime(**value["t"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RecordError(f"lacks what a record needs ({error})") from None
