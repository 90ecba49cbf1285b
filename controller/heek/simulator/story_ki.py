"""The KI of a story: a link that a story takes down and up, and at its end a KI that takes every result.

It is honest in what it does and small in what it knows. It signs each answer for the very question, takes a
record once, counts points as their deltas say, and holds what it took for as long as the story lasts. It
knows a table at first sight, judges no record and has nothing to tell; for all of that there is the real
service (`heek ki serve`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from heek.errors import LinkError, RecordError
from heek.games.ranking_points import GRANT
from heek.ki import cbor
from heek.ki.answers import (
    BatchAnswer,
    RecordAnswer,
    Verdict,
    encode_batch_answer,
    encode_refusal,
    read_introduction,
)
from heek.ki.envelope import (
    Envelope,
    key_id,
    public_key,
    split_batch,
    verify_introduction,
    verify_record,
)
from heek.ki.link import LinkStatus, Request
from heek.ki.record import Record, decode_record
from heek.ki.signed_answer import sign_answer
from heek.ki.sync import MARK_BYTES, SyncAnswer, digest, encode_sync_answer, is_from, read_question

NAME: Final = "The story's KI"
ROUND_TRIP_S: Final = 0.05


class StoryKi:
    """The KI at the other end, with `seed` (32 bytes) for its key; `wall_s` tells its time."""

    def __init__(self, seed: bytes, wall_s: Callable[[], float]) -> None:
        self._seed = seed
        self._wall_s = wall_s
        self._tables: dict[bytes, bytes] = {}
        """Public keys by key id."""
        self._records: dict[bytes, tuple[bytes, Record]] = {}
        """By match: the bytes, and what they say."""

    def answer(self, request: Request, body: bytes) -> bytes:
        """What it says to that, whatever it is."""
        try:
            answer = self._answer(request, body)
        except RecordError as error:
            return encode_refusal("malformed", f"the request {error}")
        return encode_refusal("unknown_table") if answer is None else answer

    def _answer(self, request: Request, body: bytes) -> bytes | None:
        """The signed answer; None: it does not know the table. Raises RecordError for what is no request."""
        answer: bytes | None
        match request:
            case Request.TABLE:
                answer = self._introduced(body)
            case Request.RECORDS:
                answer = self._taken(body)
            case Request.SYNC:
                answer = self._compared(body)
            case _:
                return encode_refusal("not_demo", "a story's players are signed in by its claim lines")
        return None if answer is None else sign_answer(answer, request, body, self._seed)

    def points(self, player: str) -> int:
        """What a player holds."""
        seats = (seat for _, record in self._records.values() for seat in record.seats)
        return GRANT + sum(seat.delta for seat in seats if seat.player == player)

    @property
    def matches(self) -> int:
        """How many it has taken."""
        return len(self._records)

    def _introduced(self, body: bytes) -> bytes:
        public, name, signature = read_introduction(body)
        if not verify_introduction(public, name, signature):
            raise RecordError("is an introduction that its key has not signed")
        self._tables[key_id(public)] = public
        ours = public_key(self._seed)
        return cbor.encode({"ki": 1, "table": key_id(public), "public": ours, "name": NAME})

    def _taken(self, body: bytes) -> bytes | None:
        answers, players = [], set()
        for envelope in split_batch(body):
            if not isinstance(envelope, Envelope):
                answers.append(RecordAnswer(Verdict.REJECTED, "it is no envelope", None))
                continue
            public = self._tables.get(envelope.key_id)
            if public is None:
                return None
            if not verify_record(envelope, public):
                answers.append(RecordAnswer(Verdict.REJECTED, "its signature is wrong", None))
                continue
            try:
                record = decode_record(envelope.record)
            except RecordError as error:
                answers.append(RecordAnswer(Verdict.REJECTED, str(error), None))
                continue
            known = self._records.setdefault(record.match, (envelope.record, record))
            if known[1] is record:
                verdict = Verdict.ACCEPTED
            else:
                verdict = Verdict.DUPLICATE if known[0] == envelope.record else Verdict.CONFLICT
            answers.append(RecordAnswer(verdict, None, record.match))
            players |= {seat.player for seat in record.seats if seat.player is not None}
        told = {player: self.points(player) for player in sorted(players)}
        return encode_batch_answer(BatchAnswer(tuple(answers), told))

    def _compared(self, body: bytes) -> bytes | None:
        question, signed, signature = read_question(body)
        public = self._tables.get(question.table)
        if public is None:
            return None
        if not is_from(signed, signature, public):
            raise RecordError("is a question that its table has not signed")
        held = [match for match, (_, record) in self._records.items() if record.table == question.table]
        return encode_sync_answer(
            SyncAnswer(
                question.n,
                question.n.to_bytes(MARK_BYTES, "big"),
                digest(held),
                {player: self.points(player) for player in question.players},
                round(self._wall_s()),
                (),
                newest=0,
                after=question.news,
            )
        )


class StoryLink:
    """The link to it, as long as `is_up` says so."""

    def __init__(self, ki: StoryKi, is_up: Callable[[], bool]) -> None:
        self.pinned: bytes | None = None
        self._ki = ki
        self._is_up = is_up
        self._asked = 0

    async def ask(self, request: Request, body: bytes) -> bytes:
        """The answer, after a moment on the way; raises LinkError while the link is down."""
        self._asked += 1
        await asyncio.sleep(ROUND_TRIP_S)
        if not self._is_up():
            raise LinkError("the story has taken the link down")
        return self._ki.answer(request, body)

    def status(self) -> LinkStatus:
        """How it stands."""
        up = self._is_up()
        return LinkStatus(up, "up" if up else "down", {"asked": self._asked})

    async def close(self) -> None:
        """Nothing to let go of."""
