"""A match result as the journal keeps it: the fields of the KI's match record (spec/ki.md), as JSON.

The signed CBOR record is made from this; what a record says is fixed here, when the match ends.
"""

from __future__ import annotations

from typing import Final

import msgspec

from heek.boot import Boot
from heek.clock import MILLISECOND, Clock
from heek.session.state import MatchResult

VERSION: Final = 1


def result_json(result: MatchResult, *, table: str, incarnation: str, boot: Boot, clock: Clock) -> bytes:
    """The result of a match that was won, with every seat's stake and delta.

    `t.start_ms` and `t.end_ms` are milliseconds on the boot's monotonic clock; the start is null if a
    power cut lies between. `late_rounds` are rounds that a press was delivered too late for.
    """
    origin = clock.origin_ns
    seats = [
        {
            "seat": entry.seat,
            "kind": "guest" if entry.player is None else "player",
            "player": entry.player,
            "name": entry.name,
            "stake": entry.stake,
            "delta": delta,
        }
        for entry, delta in zip(result.entries, result.deltas, strict=True)
    ]
    started = result.started_at
    return msgspec.json.encode(
        {
            "v": VERSION,
            "rules": result.rules,
            "game": "ahyoheek",
            "match": result.match,
            "name": table,
            "inc": incarnation,
            "seats": seats,
            "winner": result.winner,
            "by": result.by,
            "rated": result.rated,
            "rounds": result.rounds,
            "late_rounds": result.late_rounds,
            "t": {
                "boot": boot.id,
                "start_ms": None if started is None else (origin + started) // MILLISECOND,
                "end_ms": (origin + result.ended_at) // MILLISECOND,
                "wall_s": int(clock.wall_s()),
                "trust": boot.trust,
            },
        }
    )
