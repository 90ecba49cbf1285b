"""Gaps, rewinds, forks and clones are told of the table that made them and no other, and decide nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.clock import MILLISECOND, SECOND
from heek.ki.answers import read_introduction
from heek.ki.envelope import Envelope
from heek.ranking.findings import Finding
from heek.ranking.ledger import Ledger
from heek.ranking.sightings import MOST_INCARNATIONS, OVERLAP, Sightings
from heek.ranking.store import Store
from heek.ranking.table_list import table_list
from tests.ranking.records import ANN, BEN, FakeTable, body


def found(store: Store, table: FakeTable) -> dict[str, int]:
    """The kinds of what was seen of a table, and how often."""
    return {each.kind: each.count for each in findings(store, table)}


def findings(store: Store, table: FakeTable) -> tuple[Finding, ...]:
    with store.reader.begin() as connection:
        return next(each.findings for each in table_list(connection) if each.key_id == table.key_id)


def play(ledger: Ledger, table: FakeTable, count: int = 1) -> list[Envelope]:
    """So many matches, each reported at once."""
    played = [table.sealed({ANN: 1, BEN: 1}) for _ in range(count)]
    for each in played:
        report(ledger, each)
    return played


def report(ledger: Ledger, *envelopes: Envelope) -> None:
    answer, _ = ledger.ingest(body(*envelopes))
    assert all(each.verdict.success for each in answer.answers), answer


def says_that_nothing_waits(ledger: Ledger, table: FakeTable, n: int = 1) -> None:
    ledger.sync(table.question(n), 0)


def held(store: Store, table: FakeTable) -> int:
    with store.reader.begin() as connection:
        return next(each.holds[0] for each in table_list(connection) if each.key_id == table.key_id)


def test_an_ordinary_table_shows_nothing(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """Restarts, repeats, and results that come in any order are no findings."""
    first = play(ledger, table, 3)
    again = table.restarted(2)
    late = [again.sealed({ANN: 1, BEN: 1}) for _ in range(4)]
    for each in (late[3], late[1], late[0], first[0], late[2], *first):
        report(ledger, each)
    says_that_nothing_waits(ledger, again)
    play(ledger, again.restarted(3), 2)
    says_that_nothing_waits(ledger, again, 2)
    assert found(store, table) == {}
    assert held(store, table) == 9


def test_a_gap_is_told_when_nothing_waits_and_closes(
    ledger: Ledger, store: Store, table: FakeTable, caplog: pytest.LogCaptureFixture
) -> None:
    """What others follow and what never came is missing; once it comes nothing is."""
    sent = [table.sealed({ANN: 1, BEN: 1}) for _ in range(5)]
    report(ledger, sent[0], sent[2], sent[4])
    ledger.sync(table.question(1, waiting=2), 0)
    assert found(store, table) == {}
    for n in (2, 3):
        says_that_nothing_waits(ledger, table, n)
    assert found(store, table) == {"gap": 2}
    assert caplog.text.count("gap: 2 records that others follow") == 1
    report(ledger, sent[1])
    says_that_nothing_waits(ledger, table, 4)
    assert found(store, table) == {"gap": 1}
    report(ledger, sent[3])
    says_that_nothing_waits(ledger, table, 5)
    assert found(store, table) == {}
    assert held(store, table) == 5


def test_what_is_set_aside_is_no_gap(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """A record that does not count has its place in the chain all the same."""
    bad = table.seal(table.record({ANN: 1, BEN: 1}, rounds=()))
    ledger.ingest(body(bad))
    play(ledger, table, 2)
    says_that_nothing_waits(ledger, table)
    assert found(store, table) == {}


def test_a_card_that_is_put_back_is_a_rewind(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """Another record follows one that has a successor already: told once, and all of it counts."""
    play(ledger, table, 2)
    backup = table.restarted(9)
    lost = play(ledger, table, 3)
    play(ledger, backup, 4)
    play(ledger, backup.restarted(10), 2)
    says_that_nothing_waits(ledger, backup)
    assert found(store, table) == {"rewind": 1}
    assert held(store, table) == 11
    # What was lost there is nothing new here.
    report(ledger, *lost)
    assert found(store, table) == {"rewind": 1}


def test_a_journal_that_begins_anew_is_a_rewind(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """A second record with none before it: back to the very beginning."""
    play(ledger, table, 2)
    anew = FakeTable()
    anew._inc = bytes(8)
    report(ledger, anew.seal(anew.record({ANN: 1, BEN: 1}, match=_uuid(1))))
    assert found(store, table) == {"rewind": 1}


def test_a_cloned_card_is_a_fork(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """Both go on from the same past: what seemed a rewind is told as what it is, and both count."""
    play(ledger, table, 2)
    clone = table.restarted(9)
    original = table.restarted(8)
    play(ledger, original, 1)
    play(ledger, clone, 1)
    assert found(store, table) == {"rewind": 1}
    play(ledger, original, 1)
    assert found(store, table) == {"fork": 1}
    for _ in range(3):
        play(ledger, clone, 1)
        play(ledger, original, 1)
    assert found(store, table) == {"fork": 1}
    assert held(store, table) == 11


def test_two_records_of_one_number_are_a_fork(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """A daemon counts on: the same number twice within one start are two of it."""
    play(ledger, table, 2)
    twin = replace(table.record({ANN: 1, BEN: 1}), seq=2)
    report(ledger, table.seal(twin))
    assert found(store, table) == {"fork": 1}


def test_tables_have_their_own_chains(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """Two tables that play at once are no fork, and what one does is not told of the other."""
    other = FakeTable(2, "Table 2")
    ledger.introduce(*read_introduction(other.introduction()))
    for _ in range(3):
        play(ledger, table)
        play(ledger, other)
    play(ledger, table.restarted(5))
    backup = other.restarted(5)
    play(ledger, other)
    play(ledger, backup)
    assert (found(store, table), found(store, other)) == ({}, {"rewind": 1})


def _uuid(number: int) -> bytes:
    return bytes([number]) * 6 + b"\x40\x00\x80" + bytes(7)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_the_order_of_arrival_makes_no_finding(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """One table's records in any order, with any repeats, over several starts: no finding but open gaps."""
    from heek.ranking.store import open_store

    drawn = random.Random(seed)
    table = FakeTable()
    sent: list[Envelope] = []
    at = table
    for start in range(drawn.randint(1, 4)):
        at = at.restarted(start)
        sent += [at.sealed({ANN: 1, BEN: 1}) for _ in range(drawn.randint(0, 4))]
    order = [*sent, *drawn.choices(sent, k=3)] if sent else []
    drawn.shuffle(order)
    store = open_store(tmp_path_factory.mktemp("ki") / "ki.sqlite3")
    ledger = Ledger(store, lambda: 0.0)
    ledger.introduce(*read_introduction(table.introduction()))
    for n, each in enumerate(order, start=1):
        report(ledger, each)
        says_that_nothing_waits(ledger, table, n)
        assert set(found(store, table)) <= {"gap"}
    says_that_nothing_waits(ledger, table, 1000)
    assert found(store, table) == {}
    store.close()


# Clones


def asks(start_s: float, every_s: float, count: int) -> Iterator[tuple[int, float]]:
    """Number and time of the questions of one start of a daemon."""
    return ((number, start_s + every_s * (number - 1)) for number in range(1, count + 1))


def saw(seen: Sightings, inc: int, n: int, boot: int, asked_s: float, late_s: float = 0.0) -> bytes | None:
    """A question that was asked then and came so much later; each boot's clock began somewhere else."""
    mono = round((asked_s - 1000 * boot) * SECOND)
    return seen.saw(bytes([inc]) * 8, n, f"boot {boot}", mono, round((asked_s + late_s) * SECOND))


def test_two_that_live_at_once_are_told_once() -> None:
    """Their questions alternate: told when both have gone on for a while, and not again."""
    seen, told = Sightings(), []
    for number, at in asks(0, 30, 20):
        told.append(saw(seen, 1, number, 1, at))
        told.append(saw(seen, 2, number, 2, at + 7))
    assert [each for each in told if each] == [bytes([1]) * 8]


def test_one_after_the_other_is_no_clone() -> None:
    """A daemon that is started again, in the same boot or another, is one table."""
    seen = Sightings()
    at = 0.0
    for inc in range(1, 40):
        for number, asked in asks(at, 30, 4):
            assert saw(seen, inc, number, inc // 3, asked) is None
            at = asked
        at += 2


@pytest.mark.parametrize("boots", [(1, 1), (1, 2)])
def test_a_question_that_comes_late_is_no_clone(boots: tuple[int, int]) -> None:
    """What the first daemon asked comes when the second has begun, even much later and several of them."""
    seen = Sightings()
    for number, at in asks(0, 30, 5):
        assert saw(seen, 1, number, boots[0], at, 0.2) is None
    for number, at in asks(160, 30, 3):
        assert saw(seen, 2, number, boots[1], at, 0.2) is None
    for n, asked in ((6, 150.0), (7, 151.0)):
        assert saw(seen, 1, n, boots[0], asked, 100.0 + n) is None
    for number, at in list(asks(160, 30, 9))[3:]:
        assert saw(seen, 2, number, boots[1], at, 0.2) is None


def test_a_lone_question_is_no_clone() -> None:
    """One alone, of a start that was never heard of before and is over, shows nothing."""
    seen = Sightings()
    for number, at in asks(0, 30, 3):
        assert saw(seen, 2, number, 2, at) is None
    assert saw(seen, 1, 1, 1, -5.0, 70.0) is None
    for number, at in list(asks(0, 30, 9))[3:]:
        assert saw(seen, 2, number, 2, at) is None


def test_what_is_asked_again_is_no_clone() -> None:
    """The same question twice, as a link may bring it, goes on with nothing."""
    seen = Sightings()
    for number, at in asks(0, 30, 3):
        saw(seen, 1, number, 1, at)
    for number, at in asks(100, 30, 3):
        saw(seen, 2, number, 2, at)
        assert saw(seen, 1, 3, 1, 60, 60) is None


def test_a_number_that_does_not_rise_goes_on_with_nothing() -> None:
    """Only a new question shows that an incarnation still lives, whatever clock an old one names."""
    seen = Sightings()
    for number, at in asks(0, 30, 3):
        saw(seen, 1, number, 1, at)
    for number, at in asks(100, 30, 3):
        saw(seen, 2, number, 2, at)
        assert saw(seen, 1, 3, 1, at + 20) is None
    assert saw(seen, 1, 4, 1, 200) == bytes([2]) * 8


def test_memory_of_incarnations_is_bounded() -> None:
    """A table that is started for ever takes no more room."""
    seen = Sightings()
    for inc in range(200):
        saw(seen, inc, 1, inc, inc)
    assert len(seen._incarnations) == MOST_INCARNATIONS


@given(
    lives=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 12), st.booleans()), min_size=1, max_size=8),
    delays=st.lists(st.integers(0, 9), min_size=100, max_size=100),
    seed=st.integers(0, 1 << 32),
)
def test_no_order_of_arrival_makes_one_table_two(
    lives: list[tuple[int, int, bool]], delays: list[int], seed: int
) -> None:
    """Daemons one after the other, each question up to nine seconds under way, in any order: no clone."""
    drawn, at, boot = random.Random(seed), 0.0, 0
    sent = []
    for inc, (gap, count, rebooted) in enumerate(lives):
        at += gap
        boot += rebooted
        for n in range(1, count + 1):
            sent.append((inc, n, boot, at, drawn.choice(delays)))
            at += drawn.randint(1, 40)
    seen = Sightings()
    for inc, n, booted, asked, late in sorted(sent, key=lambda each: each[3] + each[4]):
        assert saw(seen, inc, n, booted, asked, late) is None


def test_a_clone_is_told_at_the_ledger(
    ledger: Ledger, store: Store, table: FakeTable, caplog: pytest.LogCaptureFixture
) -> None:
    """Both live tables are answered, both tables' results count, and the finding names what to do."""
    clone = table.restarted(7)
    for n in range(1, 5):
        now = 30 * n * SECOND
        for each, boot, later in ((table, "one", 0), (clone, "two", 5 * SECOND)):
            mono_ms = (now + later) // MILLISECOND
            asked = each.question(n, boot=boot, mono_ms=mono_ms, waiting=1)
            answer, _ = ledger.sync(asked, now + later)
            assert answer.n == n
    assert found(store, table) == {"clone": 1}
    assert caplog.text.count("was its card cloned?") == 1
    assert OVERLAP < 90 * SECOND
    play(ledger, table)
    play(ledger, clone)
    assert held(store, table) == 2
