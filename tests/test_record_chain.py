"""The chain of records: each names the one before, over restarts and over files of an older version."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from heek.boot import Boot
from heek.clock import ManualClock
from heek.errors import JournalError
from heek.journal import Answered, Batch, Journal, News, Pin, Result, SettledKey, Synced, open_journal
from heek.ki.envelope import public_key, seal
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


def test_binding_that_was_cut_off_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The card fails in the middle: the next start numbers on, and no number is given twice."""
    monkeypatch.setattr("heek.record_chain._PAGE", 1)
    old, new = a_key(tmp_path), TableKey(bytes([7] * 32), public_key(bytes([7] * 32)))
    made, clock = chain(old, 9), ManualClock()
    with open_journal(tmp_path) as journal:
        keep(journal, [made.add(a_match(number), clock) for number in range(4)])
        write, left = journal.bind, [2]

        def fail(results: Sequence[Result]) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise JournalError("the card is full")
            write(results)

        monkeypatch.setattr(journal, "bind", fail)
        with pytest.raises(JournalError):
            bind_results(journal, new)
        monkeypatch.setattr(journal, "bind", write)
        bind_results(journal, new)
        waiting = journal.unsent(10, 100_000)
        assert [(each.inc[0], each.seq) for each in read(waiting)] == [(9, 1), (9, 2), (9, 3), (9, 4)]
        for before, after in zip(waiting, read(waiting)[1:], strict=False):
            assert before.cbor is not None
            assert after.prev == record_hash(before.cbor)


def test_a_key_that_is_lost_is_told_at_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Once, with both keys and what to do; a table that was never enrolled has nothing to tell."""
    old, new = a_key(tmp_path), TableKey(bytes([7] * 32), public_key(bytes([7] * 32)))
    with open_journal(tmp_path) as journal:
        bind_results(journal, old)
        bind_results(journal, new)
        journal.pin_service(Pin(bytes(32), "KI", "code"), old.id)
        bind_results(journal, old)
        assert caplog.text == ""
        bind_results(journal, new)
        assert f"({old.id.hex()}, now {new.id.hex()})" in caplog.text
        assert f"--replaces {old.id.hex()}" in caplog.text
        caplog.clear()
        bind_results(journal, new)
        assert caplog.text == ""


def test_with_a_new_key_news_are_numbered_anew(tmp_path: Path) -> None:
    """They are of a table, and to the KI this is another one: its first news are not taken for old ones."""
    old, new = a_key(tmp_path), TableKey(bytes([7] * 32), public_key(bytes([7] * 32)))
    with open_journal(tmp_path) as journal:
        journal.pin_service(Pin(bytes(32), "KI", "code"), old.id)
        told = tuple(News(number, "voided", "{}", MATCHES[number], "x") for number in (1, 2, 3))
        journal.sync(Synced({}, told), old.id)
        bind_results(journal, new)
        assert journal.ki_notes(new.id).news == 0
        journal.sync(Synced({}, (News(1, "voided", "{}", MATCHES[5], "y"),)), new.id)
        assert journal.voids()[MATCHES[5]] == "y"


def test_what_is_bound_anew_while_the_table_runs_goes_on_from_the_newest_record(tmp_path: Path) -> None:
    """A record of a lost key gets the next place of this start, waits, and the next start goes on from it."""
    old, new = a_key(tmp_path), TableKey(bytes([7] * 32), public_key(bytes([7] * 32)))
    made, clock = chain(old, 9), ManualClock()
    with open_journal(tmp_path) as journal:
        keep(journal, [made.add(a_match(number), clock) for number in range(2)])
        journal.acknowledge([Answered(match, "accepted", None, bytes([5] * 64)) for match in MATCHES[:2]], {})
        now = chain(new, 10, bind_results(journal, new))
        keep(journal, [now.add(a_match(2), clock)])
        assert [each.match for each in journal.signed_by(old.id, 9)] == MATCHES[:2]
        journal.bind([now.bind(each) for each in journal.signed_by(old.id, 9)])
        keep(journal, [now.add(a_match(3), clock)])
        waiting = journal.unsent(10, 100_000)
        assert [each.match for each in waiting] == [MATCHES[2], MATCHES[0], MATCHES[1], MATCHES[3]]
        assert {each.key for each in waiting} == {new.id}
        assert [(each.inc[0], each.seq) for each in read(waiting)] == [(10, 1), (10, 2), (10, 3), (10, 4)]
        for before, after in zip(waiting, read(waiting)[1:], strict=False):
            assert before.cbor is not None
            assert after.prev == record_hash(before.cbor)
        journal.bind([now.bind(waiting[0])])
        assert bind_results(journal, new) == journal.unsent(10, 100_000)[-1].cbor
        assert journal.unsent(10, 100_000)[-1].match == MATCHES[2]
        assert journal.player_deltas() == {}
        assert journal.verify() == []


def test_what_the_ki_has_answered_for_under_a_lost_key_stays_as_it_was_signed(tmp_path: Path) -> None:
    """Offered again, it waits under the old key and signature, and no start binds it to the new one."""
    old, new = a_key(tmp_path), TableKey(bytes([7] * 32), public_key(bytes([7] * 32)))
    made, clock = chain(old, 9), ManualClock()
    with open_journal(tmp_path) as journal:
        keep(journal, [made.add(a_match(number), clock) for number in range(2)])
        journal.acknowledge([Answered(MATCHES[0], "accepted", None, bytes([5] * 64))], {})
        journal.sync(Synced({}, formers=(SettledKey(old.id, (0, bytes(16)), (0, bytes(16)), True),)), new.id)
        bind_results(journal, new)
        waiting = journal.unsent(10, 100_000) + journal.unsent(10, 100_000, [MATCHES[0]])
        assert [(each.match, each.key, each.signature) for each in waiting] == [
            (MATCHES[0], old.id, bytes([5] * 64)),
            (MATCHES[1], new.id, None),
        ]


def test_an_older_heeks_results_get_their_signatures_while_the_key_is_there(tmp_path: Path) -> None:
    """What was answered for has no signature in an older file: the start gives it the one it had."""
    key = a_key(tmp_path)
    results = [chain(key, 9).add(a_match(number), ManualClock()) for number in range(2)]
    with open_journal(tmp_path) as journal:
        keep(journal, results)
        journal.acknowledge([Answered(MATCHES[0], "duplicate")], {})
        bind_results(journal, key)
        offer = SettledKey(key.id, (0, bytes(16)), None, True)
        journal.sync(Synced({}, formers=(offer,)), bytes(8))
        first, second = journal.unsent(10, 100_000)
        assert first.cbor is not None
        assert first.signature == seal(first.cbor, key.seed).signature
        assert second.signature is None
