"""The chain of records: each names the one before, over restarts and over files of an older version."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from heek.boot import Boot
from heek.clock import ManualClock
from heek.journal import Batch, Result, open_journal
from heek.ki.record import Record, decode_record, record_hash
from heek.ki.table_key import TableKey, table_key
from heek.kinds import Kind
from heek.record_chain import RecordChain, link_old_results
from heek.session.state import MatchResult
from tests.journal.scripts import entry, label
from tests.ki.test_result import a_result

MATCHES = [f"0f1e2d3c-4b5a-4968-b706-15243342{number:04x}" for number in range(6)]


def a_key(folder: Path) -> TableKey:
    return table_key(folder, lambda: bytes(32))


def chain(key: TableKey, inc: int, newest: bytes | None = None) -> RecordChain:
    return RecordChain(key, "Table 1", bytes([inc] * 8), Boot("boot", "none"), newest)


def a_match(number: int) -> MatchResult:
    return replace(a_result_of_guests(), match=MATCHES[number])


def a_result_of_guests() -> MatchResult:
    result = a_result()
    guests = tuple(replace(each, player=None, name=None, stake=0) for each in result.entries)
    return replace(result, entries=guests, deltas=(0, 0))


def read(results: list[Result]) -> list[Record]:
    return [decode_record(each.cbor) for each in results if each.cbor is not None]


def test_each_record_names_the_one_before_over_restarts(tmp_path: Path) -> None:
    """`seq` counts from 1 in each incarnation; `prev` goes on over all of them, from null."""
    key, clock = a_key(tmp_path), ManualClock()
    first = chain(key, 1)
    results = [first.add(a_match(0), clock), first.add(a_match(1), clock)]
    second = chain(key, 2, results[-1].cbor)
    results.append(second.add(a_match(2), clock))
    records = read(results)
    assert [(each.inc[0], each.seq) for each in records] == [(1, 1), (1, 2), (2, 1)]
    assert records[0].prev is None
    for before, after in zip(results, records[1:], strict=False):
        assert before.cbor is not None
        assert after.prev == record_hash(before.cbor)
    assert {each.table for each in records} == {key.id}


def test_a_result_too_large_for_a_record_breaks_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It stays in the journal for people, is told, and the next record is as if it had not been."""
    made = chain(a_key(tmp_path), 1)
    before = made.add(a_match(0), ManualClock())
    endless = replace(a_match(1), rounds=({1: Kind.BEETLE, 2: Kind.BEETLE},) * 10_000)
    with caplog.at_level(logging.ERROR, "heek"):
        large = made.add(endless, ManualClock())
    assert large.cbor is None
    assert json.loads(large.record)["match"] == MATCHES[1]
    assert "stays in the journal" in caplog.text
    (record,) = read([made.add(a_match(2), ManualClock())])
    assert before.cbor is not None
    assert (record.seq, record.prev) == (2, record_hash(before.cbor))


def test_results_from_before_there_was_a_key_are_linked_in_their_order(tmp_path: Path) -> None:
    """Old results get their bytes; what can be no record is answered for; new ones go on from them."""
    key, clock = a_key(tmp_path), ManualClock()
    old = [chain(key, 9).add(a_match(number), clock) for number in range(3)]
    bodies = [old[0].record, b'{"seats": []}', old[2].record]
    with open_journal(tmp_path) as journal:
        for number, body in enumerate(bodies):
            batch = Batch(
                (entry(number + 1, "match_won", match=MATCHES[number]),),
                True,
                b"{}",
                label(number),
                (Result(MATCHES[number], body),),
            )
            journal.append(batch)
        newest = link_old_results(journal, key)
        waiting = journal.unsent(10, 100_000)
        assert [each.match for each in waiting] == [MATCHES[0], MATCHES[2]]
        assert (newest, journal.waiting()) == (waiting[-1].cbor, 2)
        first, second = read(waiting)
        assert (first.seq, first.prev, second.seq) == (1, None, 2)
        assert waiting[0].cbor is not None
        assert second.prev == record_hash(waiting[0].cbor)
        assert link_old_results(journal, key) == newest
        assert journal.verify() == []
