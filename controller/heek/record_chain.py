"""The chain of a table's records: each result as it is kept, numbered, and bound to the record before it.

The chain detects, it decides nothing: a gap, a card put back from a backup or a cloned card shows in `inc`,
`seq` and `prev`, and the results count all the same (the specification, "Exactly once" 4).
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from dataclasses import replace
from typing import Final

from heek.boot import Boot
from heek.clock import Clock
from heek.errors import RecordError
from heek.journal import NOBODYS, Answered, Journal, Result
from heek.ki.envelope import seal
from heek.ki.record import Record, decode_record, encode_record, record_hash
from heek.ki.result import record_from_json, record_of, result_json
from heek.ki.table_key import TableKey
from heek.session.state import MatchResult

log: Final = logging.getLogger("heek")

_PAGE: Final = 200
"""Results that are bound in one transaction."""


class RecordChain:
    """The records of one start of the daemon, one after the other."""

    def __init__(
        self, key: TableKey, name: str, incarnation: bytes, boot: Boot, newest: bytes | None
    ) -> None:
        """`name` is the table's, `newest` the last record that the journal holds."""
        self._key = key
        self._name = name
        self._incarnation = incarnation
        self._boot = boot
        self._seq = 0
        self._prev = None if newest is None else record_hash(newest)

    def add(self, result: MatchResult, clock: Clock, trust: str | None = None) -> Result:
        """The next link: the result of a match that has just been won.

        `trust` says how far the clock's wall time is to be believed now (None: as at the start).
        """
        record = record_of(
            result,
            table=self._key.id,
            name=self._name,
            incarnation=self._incarnation,
            seq=self._seq + 1,
            prev=self._prev,
            boot=self._boot if trust is None else replace(self._boot, trust=trust),
            clock=clock,
        )
        body = result_json(record)
        try:
            cbor = encode_record(record)
        except RecordError as error:
            # Kept for people; the KI will never hear of it, and no later record waits for it.
            log.error("the result of match %s %s; it stays in the journal alone", result.match, error)
            return Result(result.match, body, key=self._key.id)
        self._took(cbor)
        return Result(result.match, body, cbor, self._key.id)

    def bind(self, result: Result) -> Result:
        """The next link: a result that was recorded under a key which the table has lost.

        It is a record of this start then, since the number that it had was one of the other key's. Raises
        RecordError if it can be no record.
        """
        cbor = encode_record(
            replace(_record_of(result, self._key, self._prev), inc=self._incarnation, seq=self._seq + 1)
        )
        self._took(cbor)
        return replace(result, cbor=cbor, key=self._key.id, signature=None)

    def _took(self, cbor: bytes) -> None:
        self._seq += 1
        self._prev = record_hash(cbor)


def bind_results(journal: Journal, key: TableKey) -> bytes | None:
    """Give every result that waits its place in the chain of this key; the newest record of it then.

    Results may wait from before there was a key, or under another one: a card's journal that came back
    without its key. What can be no record is answered for here, as rejected, so that it does not wait for
    ever. What an older heek reported gets its signature, which cannot be made any more once the key is lost.
    Raises JournalError if that cannot be written.
    """
    lost = journal.meet_with_key(key.id)
    if lost is not None:
        log.warning(
            "table.key is not the key that this table was enrolled with (%s, now %s): bring that file back, "
            "or enrol the table anew with --replaces %s",
            lost.hex(),
            key.id.hex(),
            lost.hex(),
        )
    _name_keys(journal, key)
    while unsigned := journal.unsigned(key.id, _PAGE):
        journal.write_signatures(
            [replace(each, signature=seal(each.cbor or b"", key.seed).signature) for each in unsigned]
        )
    newest = journal.last_cbor(key.id)
    hopeless: list[Answered] = []
    numbers: Counter[bytes] = Counter()
    if newest is not None:
        # Of a start that was cut off in the middle of this. What the card has damaged has no number, and the
        # chain goes on from it all the same.
        with contextlib.suppress(RecordError):
            before = decode_record(newest)
            numbers[before.inc] = before.seq
    while results := journal.unbound(key.id, _PAGE) or journal.unwritten():
        linked: list[Result] = []
        for result in results:
            try:
                record = _record_of(result, key, None if newest is None else record_hash(newest))
                cbor = encode_record(replace(record, seq=numbers[record.inc] + 1))
            except RecordError as error:
                hopeless.append(Answered(result.match, "rejected", f"the table's own journal: {error}"))
                continue
            numbers[record.inc] += 1
            newest = cbor
            linked.append(replace(result, cbor=cbor, key=key.id))
        if linked:
            journal.bind(linked)
        if hopeless:
            journal.acknowledge(hopeless, {})
            hopeless.clear()
    return newest


def _record_of(result: Result, key: TableKey, prev: bytes | None) -> Record:
    """The record of a result as one of this key; raises RecordError."""
    if result.cbor is None:
        return record_from_json(result.record, table=key.id, seq=1, prev=prev)
    return replace(decode_record(result.cbor), table=key.id, prev=prev)


def _name_keys(journal: Journal, key: TableKey) -> None:
    """Write beside each record of an older schema whose it is."""
    while unnamed := [each for each in journal.unbound(key.id, _PAGE) if each.key is None]:
        named = []
        for each in unnamed:
            assert each.cbor is not None
            try:
                named.append(replace(each, key=decode_record(each.cbor).table))
            except RecordError:
                # Nobody's: it is of no digest, and is bound anew, or rejected, if it waits.
                named.append(replace(each, key=NOBODYS))
        journal.write_cbor(named)
