"""A KI as a table sees it, in memory: it signs what it answers, takes records once, and forgets when told.
told.

It is honest in what it does and small in what it knows: no points are counted, no record is judged.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from heek.ki import cbor
from heek.ki.answers import (
    BatchAnswer,
    RecordAnswer,
    SignedIn,
    Verdict,
    encode_batch_answer,
    encode_refusal,
    encode_signed_in,
    read_introduction,
)
from heek.ki.claim import claim_key, encode_enrolled, encode_waiting, is_code_of, read_claim, service_mark
from heek.ki.envelope import Envelope, key_id, public_key, split_batch, verify_introduction, verify_record
from heek.ki.link import Request
from heek.ki.record import decode_record
from heek.ki.signed_answer import sign_answer
from heek.ki.sync import (
    MARK_BYTES,
    News,
    SyncAnswer,
    SyncQuestion,
    digest,
    encode_sync_answer,
    is_from,
    read_question,
)

PLAYER = "12345674"
NEWS_AT_ONCE = 3


@dataclass
class SigningKi:
    """One KI. What it keeps on its disk is `disk`; that alone is put back from a backup."""

    seed: bytes = bytes([9] * 32)
    name: str = "KI of the hall"
    first_sight: bool = True
    disk: dict[str, Any] = field(default_factory=lambda: {"tables": {}, "held": {}, "news": {}})
    points: dict[str, int] = field(default_factory=dict)
    verdicts: dict[bytes, RecordAnswer] = field(default_factory=dict)
    """What it says to these matches, whatever it holds."""
    codes: list[str] = field(default_factory=list)
    """What the operator has typed in."""
    questions: list[SyncQuestion] = field(default_factory=list)
    refusals: dict[Request, tuple[str, int | None]] = field(default_factory=dict)
    """What it refuses, with what code."""
    now_s: int = 1_900_000_000
    marks: int = 0
    """So many news were marked; not on its disk, since a mark that was drawn never comes again."""
    on_batch: Callable[[list[bytes]], None] | None = None
    """Looks at the matches of each batch before they are taken; may raise."""

    @property
    def public(self) -> bytes:
        return public_key(self.seed)

    def held(self, table: bytes | None = None) -> dict[bytes, bytes]:
        """The records that it holds by match, of one key id or of all."""
        every: Mapping[bytes, dict[bytes, bytes]] = self.disk["held"]
        return {
            match: record
            for key, records in every.items()
            if table in (None, key)
            for match, record in records.items()
        }

    def backup(self) -> dict[str, Any]:
        return copy.deepcopy(self.disk)

    def restore(self, backup: dict[str, Any]) -> None:
        self.disk = copy.deepcopy(backup)

    def tell(self, table: bytes, kind: str, **fields: Any) -> None:
        """Have something to tell that table."""
        told = self.disk["news"].setdefault(table, [])
        self.marks += 1
        told.append(News(len(told) + 1, kind, fields, self.marks.to_bytes(MARK_BYTES, "big")))

    def answer(self, request: Request, body: bytes) -> bytes:
        if request in self.refusals:
            code, retry_s = self.refusals[request]
            return encode_refusal(code, "", retry_s)
        match request:
            case Request.TABLE:
                answer = self._table(body)
            case Request.RECORDS:
                answer = self._records(body)
            case Request.SYNC:
                answer = self._sync(body)
            case Request.CLAIM:
                answer = self._claim(body)
            case Request.PLAYER:
                answer = encode_signed_in(SignedIn(PLAYER, "Patient Scribe 41", 123))
        return answer if answer in REFUSED else sign_answer(answer, request, body, self.seed)

    @property
    def id(self) -> bytes:
        return key_id(self.public)

    def _unknown(self) -> bytes:
        return UNKNOWN if self.first_sight else NOT_ENROLLED

    def _table(self, body: bytes) -> bytes:
        if not self.first_sight:
            return NOT_ENROLLED
        public, name, signature = read_introduction(body)
        assert verify_introduction(public, name, signature)
        self.disk["tables"][key_id(public)] = public
        return cbor.encode({"ki": 1, "table": key_id(public), "public": self.public, "name": self.name})

    def _records(self, body: bytes) -> bytes:
        answers = []
        envelopes = [each for each in split_batch(body) if isinstance(each, Envelope)]
        tables = self.disk["tables"]
        if any(each.key_id not in tables for each in envelopes):
            return self._unknown()
        if self.on_batch is not None:
            self.on_batch([decode_record(each.record).match for each in envelopes])
        for envelope in envelopes:
            assert verify_record(envelope, tables[envelope.key_id])
            answers.append(self._one(envelope))
        return encode_batch_answer(BatchAnswer(tuple(answers), self.points))

    def _one(self, envelope: Envelope) -> RecordAnswer:
        record = decode_record(envelope.record)
        assert record.table == envelope.key_id
        if record.match in self.verdicts:
            return self.verdicts[record.match]
        known = self.held().get(record.match)
        if known is None:
            self.disk["held"].setdefault(envelope.key_id, {})[record.match] = envelope.record
            return RecordAnswer(Verdict.ACCEPTED, None, record.match)
        verdict = Verdict.DUPLICATE if known == envelope.record else Verdict.CONFLICT
        return RecordAnswer(verdict, None, record.match)

    def _sync(self, body: bytes) -> bytes:
        question, signed, signature = read_question(body)
        public = self.disk["tables"].get(question.table)
        if public is None:
            return self._unknown()
        assert is_from(signed, signature, public)
        self.questions.append(question)
        news = self.disk["news"].get(question.table, [])
        known = question.news == 0 or question.mark in [
            each.mark for each in news if each.number == question.news
        ]
        after = question.news if known else 0
        return encode_sync_answer(
            SyncAnswer(
                question.n,
                len(self.questions).to_bytes(MARK_BYTES, "big"),
                digest(self.held(question.table)),
                {player: self.points[player] for player in question.players if player in self.points},
                self.now_s,
                tuple(news[after : after + NEWS_AT_ONCE]),
                len(news),
                after,
                {
                    key: digest(self.held(key)) if key in self.disk["tables"] else None
                    for key in question.formers
                },
            )
        )

    def _claim(self, body: bytes) -> bytes:
        claim = read_claim(body)
        for code in self.codes:
            key = claim_key(code, claim.public, claim.nonce)
            if is_code_of(claim, key):
                self.disk["tables"][key_id(claim.public)] = claim.public
                mark = service_mark(key, claim.public, self.public, self.name)
                return encode_enrolled(self.public, self.name, mark)
        return encode_waiting()


UNKNOWN = encode_refusal("unknown_table")
NOT_ENROLLED = encode_refusal("not_enrolled")
REFUSED = (UNKNOWN, NOT_ENROLLED)
