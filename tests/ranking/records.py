"""A table that is not there: it has a real key, and makes signed records of matches that nobody played."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from heek.games.ranking_points import RULES_VERSIONS, deltas
from heek.ki.answers import encode_introduction
from heek.ki.envelope import Envelope, batch, key_id, public_key, seal
from heek.ki.numbers import ki_number
from heek.ki.record import Record, RecordSeat, RecordTime, encode_record, record_hash
from heek.ki.sync import NOTHING, SyncQuestion, encode_question
from heek.kinds import KINDS, Kind, Seat

PEN, PAGE, BEETLE = KINDS
BEATEN = {PEN: PAGE, PAGE: BEETLE, BEETLE: PEN}

ANN, BEN, CLEO, DAN, EVE = (ki_number(each) for each in (4022017, 1234567, 7654321, 31415, 9999998))


class FakeTable:
    """A table with a key of its own, drawn from `seed`."""

    def __init__(self, seed: int = 1, name: str = "Table 1") -> None:
        self.seed = hashlib.sha256(b"a table of the tests %d" % seed).digest()
        self.name = name
        self.public = public_key(self.seed)
        self.key_id = key_id(self.public)
        self._inc = hashlib.sha256(b"incarnation" + self.seed).digest()[:8]
        self._prev: bytes | None = None
        self._seq = 0

    @property
    def inc(self) -> bytes:
        """Of this start of its daemon."""
        return self._inc

    def question(self, n: int = 1, **changes: Any) -> bytes:
        """The body by which this table asks how things stand; it holds nothing, and nothing waits."""
        asked = SyncQuestion(
            self.key_id, self.name, self._inc, n, b"", "boot-of-the-tests", 61_000, NOTHING, 0, 0
        )
        return encode_question(replace(asked, **changes), self.seed)

    def restarted(self, start: int) -> FakeTable:
        """The same table with the same card after another start of its daemon, or a clone of it."""
        other = FakeTable.__new__(FakeTable)
        other.__dict__ = dict(self.__dict__)
        other._inc = hashlib.sha256(b"incarnation %d" % start + self.seed).digest()[:8]
        other._seq = 0
        return other

    def introduction(self, name: str | None = None) -> bytes:
        """The body by which this table introduces itself."""
        return encode_introduction(self.seed, name or self.name)

    def record(
        self,
        stakes: Mapping[str | None, int] | Sequence[tuple[str | None, int]],
        winner: str | int | None = None,
        *,
        economy: str = "stake",
        kind: Kind = PEN,
        match: bytes | None = None,
        rated: bool = True,
        **changes: Any,
    ) -> Record:
        """A match of these players with these stakes at seats 1, 2, …; a player of None is a guest.

        `winner` is a player, or a seat, or None for seat 1; three of `kind` won it.
        """
        pairs = list(stakes.items()) if isinstance(stakes, Mapping) else list(stakes)
        seat = (
            winner
            if isinstance(winner, int)
            else 1
            if winner is None
            else [who for who, _ in pairs].index(winner) + 1
        )
        known = [rated and who is not None for who, _ in pairs]
        moved = deltas([put for _, put in pairs], known, seat - 1, economy) if rated else (0,) * len(pairs)
        self._seq += 1
        record = Record(
            rules=RULES_VERSIONS[economy],
            game="ahyoheek",
            match=match or self._match(self._seq),
            table=self.key_id,
            name=self.name,
            inc=self._inc,
            seq=self._seq,
            prev=self._prev,
            seats=tuple(
                RecordSeat(Seat(place), "guest" if who is None else "player", who, None, put, delta)
                for place, ((who, put), delta) in enumerate(zip(pairs, moved, strict=True), 1)
            ),
            winner=Seat(seat),
            by="three",
            rated=rated,
            rounds=tuple(
                {Seat(place): kind if place == seat else BEATEN[kind] for place in range(1, len(pairs) + 1)}
                for _ in range(3)
            ),
            late_rounds=(),
            t=RecordTime("boot-of-the-tests", 1000, 61_000, 1_900_000_000, "ntp"),
        )
        return replace(record, **changes)

    def seal(self, record: Record | bytes) -> Envelope:
        """Signed by this table; the next record names it as the one before."""
        data = record if isinstance(record, bytes) else encode_record(record)
        self._prev = record_hash(data)
        return seal(data, self.seed)

    def sealed(self, *arguments: Any, **named: Any) -> Envelope:
        """`record`, signed."""
        return self.seal(self.record(*arguments, **named))

    def _match(self, number: int) -> bytes:
        drawn = hashlib.sha256(b"%d" % number + self.seed + self._inc).digest()[:16]
        return uuid.UUID(bytes=drawn, version=4).bytes


def body(*envelopes: Envelope | list[object]) -> bytes:
    """The body of a request with these envelopes."""
    from heek.ki import cbor

    if all(isinstance(each, Envelope) for each in envelopes):
        return batch([each for each in envelopes if isinstance(each, Envelope)])
    return cbor.encode([each.packed() if isinstance(each, Envelope) else each for each in envelopes])
