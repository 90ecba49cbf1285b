"""The chain of records: each names the one before, over restarts and over files of an older version."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from heek.boot import Boot
from heek.clock import ManualClock
from heek.journal import Answered, Batch, Journal, Result, open_journal
from heek.ki.envelope import public_key
from heek.ki.record import Record, decode_record, record_hash
from heek.ki.table_key import TableKey, table_key
from heek.kinds import Kind
from heek.record_chain import RecordChain, bind_results
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
        newest = bind_results(journal, key)
        waiting = journal.unsent(10, 100_000)
        assert [each.match for each in waiting] == [MATCHES[0], MATCHES[2]]
        assert (newest, journal.waiting()) == (waiting[-1].cbor, 2)
        first, second = read(waiting)
        assert (first.seq, first.prev, second.seq) == (1, None, 2)
        assert waiting[0].cbor is not None
        assert second.prev == record_hash(waiting[0].cbor)
        assert bind_results(journal, key) == newest
        assert journal.verify() == []


def keep(journal: Journal, results: list[Result]) -> None:
    for result in results:
        seq = journal.last_seq() + 1
        won = entry(seq, "match_won", match=result.match)
        journal.append(Batch((won,), True, b"{}", label(seq), (result,)))


def test_what_waits_under_another_key_is_bound_to_the_new_one(tmp_path: Path) -> None:
    """A card's journal came back without its key: what waits goes out under the new one, in a chain anew."""
    old, new = a_key(tmp_path), TableKey(bytes([7] * 32), public_key(bytes([7] * 32)))
    made, clock = chain(old, 9), ManualClock()
    with open_journal(tmp_path) as journal:
        keep(journal, [made.add(a_match(number), clock) for number in range(3)])
        journal.acknowledge([Answered(MATCHES[0], "accepted")], {})
        newest = bind_results(journal, new)
        waiting = journal.unsent(10, 100_000)
        assert [(each.match, each.key) for each in waiting] == [(match, new.id) for match in MATCHES[1:3]]
        first, second = read(waiting)
        assert (first.table, first.seq, first.prev) == (new.id, 1, None)
        assert waiting[0].cbor is not None
        assert (second.seq, second.prev) == (2, record_hash(waiting[0].cbor))
        assert newest == waiting[1].cbor
        # What the KI has under the old key stays there, and is of no digest of the new one.
        assert (journal.ki_notes(old.id).holds[0], journal.ki_notes(new.id).holds[0]) == (1, 0)
        keep(journal, [chain(new, 10, newest).add(a_match(3), clock)])
        assert bind_results(journal, new) == journal.unsent(10, 100_000)[-1].cbor
        assert len(journal.unsent(10, 100_000)) == 3


def test_records_of_an_older_schema_learn_whose_they_are(tmp_path: Path) -> None:
    """The key stands in each record's bytes; what is no record is nobody's, and answered for if it waits."""
    key = a_key(tmp_path)
    made, clock = chain(key, 9), ManualClock()
    old = [replace(made.add(a_match(number), clock), key=None) for number in range(3)]
    with open_journal(tmp_path) as journal:
        keep(journal, [old[0], replace(old[1], cbor=b"rubbish"), old[2]])
        journal.acknowledge([Answered(MATCHES[0], "accepted")], {})
        assert bind_results(journal, key) == old[2].cbor
        assert [each.match for each in journal.unsent(10, 100_000)] == [MATCHES[2]]
        notes = journal.ki_notes(key.id)
        assert (notes.holds[0], notes.refused, notes.waiting) == (1, 1, 1)


def test_a_newest_record_that_the_card_has_damaged_stops_no_start(tmp_path: Path) -> None:
    """Bytes of this key that are no record any more: the table starts, and its chain goes on from them."""
    key, clock = a_key(tmp_path), ManualClock()
    damaged = replace(chain(key, 9).add(a_match(0), clock), cbor=b"\xa1rubbish")
    with open_journal(tmp_path) as journal:
        keep(journal, [damaged])
        newest = bind_results(journal, key)
        assert newest == damaged.cbor
        (after,) = read([chain(key, 10, newest).add(a_match(1), clock)])
        assert after.prev == record_hash(b"\xa1rubbish")
