"""Brings the records of an export to the KI over a link, in batches, and keeps its answers for the receipt.

A KI that is too slow for a batch is asked with smaller ones: a small computer that keeps its ledger on a card
may take longer for two hundred records than a question has. It says of a record what the KI says of it. One
that is damaged in the file is not sent: in a batch with others it would change what was asked, and so the
worth of the answer to those as a receipt.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from heek.errors import LinkError, LinkTooSlow, RecordError
from heek.ki import cbor
from heek.ki.answers import BatchAnswer, Refused, Verdict, read_batch_answer, read_table_answer
from heek.ki.envelope import MOST_IN_BATCH, Envelope, batch, verify_record
from heek.ki.export_file import Export
from heek.ki.link import Link, Request
from heek.ki.receipt_file import MATCH_BYTES, AnsweredBatch
from heek.ki.signed_answer import check_answer

_T = TypeVar("_T")

MOST_BATCH_BYTES: Final = 512 * 1024
"""Of records in one request; half of what the KI takes at once."""
MOST_TOLD: Final = 20
"""Records that do not count are told one by one up to so many."""
SMALLER: Final = 4
"""So much smaller is each batch after one that took too long. A KI that answers to nothing is found out in
a few questions."""
TRIES: Final = 5
"""So often a KI that has too much to do is asked the same thing."""
LONGEST_WAIT_S: Final = 30.0
DAMAGED: Final = "it is damaged in this file (its signature is wrong); export it again"


@dataclass(slots=True)
class Delivered:
    """What became of the records of an export, as far as they were answered for."""

    accepted: int = 0
    already: int = 0
    """There already: these very bytes."""
    conflict: int = 0
    rejected: int = 0
    told: list[tuple[str, str]] = field(default_factory=list)
    """Of those that do not count, the first `MOST_TOLD`: match, and why."""

    @property
    def answered(self) -> int:
        """How many there are an answer for."""
        return self.accepted + self.already + self.conflict + self.rejected

    @property
    def all_count(self) -> bool:
        """Whether each of them counts, now or since an earlier time."""
        return not self.conflict and not self.rejected

    def reject(self, match: str, reason: str) -> None:
        """One more that does not count."""
        self.rejected += 1
        self._tell(match, f"rejected: {reason}")

    def take(self, match: str, verdict: Verdict, reason: str | None) -> None:
        """The KI's answer to one record."""
        match verdict:
            case Verdict.ACCEPTED:
                self.accepted += 1
            case Verdict.DUPLICATE:
                self.already += 1
            case Verdict.CONFLICT:
                self.conflict += 1
                self._tell(match, f"in conflict: {reason or 'it gives no reason'}")
            case Verdict.REJECTED:
                self.reject(match, reason or "it gives no reason")

    def _tell(self, match: str, words: str) -> None:
        if len(self.told) < MOST_TOLD:
            self.told.append((match, words))


@dataclass(slots=True)
class Delivery:
    """One bringing of an export to the KI; `deliver` is called once, and `done` may be read at any time."""

    link: Link
    export: Export
    keep: Callable[[AnsweredBatch], None]
    """Gets each answer of the KI, for the receipt."""
    sleep: Callable[[float], Awaitable[None]]
    """Waits so many seconds."""
    pinned: bytes | None = None
    """The public key (32 bytes) of the KI: then it must have signed each answer that is no refusal."""
    done: Delivered = field(default_factory=Delivered)
    _most: int = MOST_IN_BATCH
    """Records in the next request."""

    async def deliver(self, envelopes: Iterable[Envelope]) -> Delivered:
        """Ask for all records; raises LinkError if the KI does not answer, or takes none of this table."""
        for each in _batches(self._sound(envelopes)):
            await self._ask_in_parts(each)
        return self.done

    async def _ask_in_parts(self, pairs: list[tuple[bytes, Envelope]]) -> None:
        """Ask for these, in parts as small as the KI has time for."""
        asked = 0
        while asked < len(pairs):
            part = pairs[asked : asked + self._most]
            await self._ask(part)
            asked += len(part)

    def _sound(self, envelopes: Iterable[Envelope]) -> Iterator[tuple[bytes, Envelope]]:
        """The match and the envelope of each record that this table has signed as it stands."""
        for each in envelopes:
            match = _match_of(each.record)
            if each.key_id != self.export.table or not verify_record(each, self.export.public):
                self.done.reject(_shown(match), DAMAGED)
            elif match is None:
                self.done.reject(_shown(match), "it names no match")
            else:
                yield match, each

    async def _ask(self, pairs: list[tuple[bytes, Envelope]]) -> None:
        try:
            body, answer = await self._answer([envelope for _, envelope in pairs])
        except LinkTooSlow:
            if len(pairs) == 1:
                raise
            # What it has taken of these all the same it calls duplicates.
            self._most = max(len(pairs) // SMALLER, 1)
            await self._ask_in_parts(pairs)
            return
        except Refused as refused:
            if refused.code != "too_large":
                raise
            if len(pairs) == 1:
                self.done.reject(_shown(pairs[0][0]), str(refused))
                return
            half = len(pairs) // 2
            await self._ask(pairs[:half])
            await self._ask(pairs[half:])
            return
        for (match, _), said in zip(pairs, answer.answers, strict=True):
            if said.match not in (None, match):
                raise LinkError("the KI answered for other matches than it was asked; is it the right one?")
        for (match, _), said in zip(pairs, answer.answers, strict=True):
            self.done.take(_shown(match), said.verdict, said.reason)
        self.keep(AnsweredBatch(tuple(match for match, _ in pairs), body))

    async def _answer(self, envelopes: list[Envelope]) -> tuple[bytes, BatchAnswer]:
        """The KI's answer, as it came and as it reads; the table is introduced if the KI does not know it."""
        body = batch(envelopes)

        def read(answer: bytes) -> BatchAnswer:
            return read_batch_answer(answer, len(envelopes))

        try:
            try:
                return await self._patiently(Request.RECORDS, body, read)
            except Refused as refused:
                if refused.code != "unknown_table":
                    raise
            await self._patiently(Request.TABLE, self.export.introduction, read_table_answer)
            return await self._patiently(Request.RECORDS, body, read)
        except Refused as refused:
            if refused.code == "not_enrolled":
                raise self._not_enrolled() from None
            raise

    async def _patiently(
        self, request: Request, body: bytes, read: Callable[[bytes], _T]
    ) -> tuple[bytes, _T]:
        """Ask, and again while the KI has too much to do: its answer as it came, and as it reads."""
        tries = 1
        while True:
            answer = await self.link.ask(request, body)
            if self.pinned is not None:
                check_answer(answer, request, body, self.pinned)
            try:
                return answer, read(answer)
            except Refused as refused:
                if refused.code != "busy" or tries == TRIES:
                    raise
                await self.sleep(min(max(refused.retry_s or 1.0, 1.0), LONGEST_WAIT_S))
            tries += 1

    def _not_enrolled(self) -> LinkError:
        return LinkError(
            f"the KI does not know the table of this file ({self.export.name}, key "
            f"{self.export.table.hex()}), and takes new ones on its own machine or enrolled; import it "
            "there, or enrol the table with the code that it shows: heek ki enrol CODE"
        )


def _batches(pairs: Iterable[tuple[bytes, Envelope]]) -> Iterator[list[tuple[bytes, Envelope]]]:
    """Up to `MOST_IN_BATCH` at once, and `MOST_BATCH_BYTES` but for one."""
    chosen: list[tuple[bytes, Envelope]] = []
    size = 0
    for pair in pairs:
        more = len(pair[1].record)
        if chosen and (len(chosen) == MOST_IN_BATCH or size + more > MOST_BATCH_BYTES):
            yield chosen
            chosen, size = [], 0
        chosen.append(pair)
        size += more
    if chosen:
        yield chosen


def _match_of(record: bytes) -> bytes | None:
    try:
        value = cbor.decode(record)
    except RecordError:
        return None
    match = value.get("match") if isinstance(value, dict) else None
    return match if isinstance(match, bytes) and len(match) == MATCH_BYTES else None


def _shown(match: bytes | None) -> str:
    return "that cannot be read" if match is None else str(uuid.UUID(bytes=match))
