"""Gaps, rewinds, forks and clones are told of the table that made them and no other, and decide nothing."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count as count_up
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.clock import SECOND
from heek.ki.answers import read_introduction
from heek.ki.envelope import Envelope
from heek.ranking.findings import Finding
from heek.ranking.ledger import Ledger
from heek.ranking.sightings import MOST_ANSWERS, MOST_INCARNATIONS, Sightings
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


class Daemon:
    """One start of a table's daemon, as its questions show it."""

    def __init__(self, inc: int) -> None:
        self.inc = bytes([inc]) * 8
        self.heard = b""
        self._marks = 0

    def asks(self, seen: Sightings, at_s: float, *, heard: bool = True) -> bytes | None:
        """A question comes at the KI; whether the answer is heard."""
        self._marks += 1
        mark = self.inc[:4] + self._marks.to_bytes(4, "big")
        told = seen.saw(self.inc, self.heard, mark, round(at_s * SECOND))
        if heard:
            self.heard = mark
        return told


def test_two_that_live_at_once_are_told_once() -> None:
    """Their questions alternate: told as soon as both have heard of one another's time, and not again."""
    seen, one, other = Sightings(), Daemon(1), Daemon(2)
    told = []
    for at in range(0, 600, 30):
        told.append(one.asks(seen, at))
        told.append(other.asks(seen, at + 7))
    assert [(place, each) for place, each in enumerate(told) if each] == [(4, other.inc)]


def test_one_after_the_other_is_no_clone() -> None:
    """A daemon that is started again, in no time, is one table."""
    seen, at = Sightings(), 0
    for inc in range(1, 40):
        daemon = Daemon(inc)
        for _ in range(4):
            assert daemon.asks(seen, at) is None
            at += 1


def test_who_hears_nothing_is_no_clone() -> None:
    """Questions that come in the midst of another's show nothing as long as none names an answer to them."""
    seen, one, other = Sightings(), Daemon(1), Daemon(2)
    for at in range(0, 600, 30):
        assert one.asks(seen, at) is None
        assert other.asks(seen, at + 7, heard=False) is None


def test_what_another_ki_answered_shows_nothing() -> None:
    """A mark that this process of the KI did not give, or gave to another, is no sign of life."""
    seen, one = Sightings(), Daemon(1)
    for at in range(0, 120, 30):
        one.asks(seen, at)
    for heard in (b"", bytes(8), one.heard):
        assert seen.saw(bytes([2]) * 8, heard, b"mark %d.." % len(heard), 60 * SECOND) is None


def test_memory_of_incarnations_is_bounded() -> None:
    """A table that is started for ever, or asks for ever, takes no more room."""
    seen = Sightings()
    for inc in range(200):
        Daemon(inc).asks(seen, inc)
    assert len(seen._incarnations) == MOST_INCARNATIONS
    daemon = Daemon(250)
    for at in range(200, 400):
        daemon.asks(seen, at)
    assert len(seen._incarnations[daemon.inc].answers) == MOST_ANSWERS


@dataclass
class Roads:
    """Between daemons that live one after the other and a KI: copies, late ones, lost answers, restarts."""

    drawn: random.Random
    restarts: list[int]
    seen: Sightings = field(default_factory=Sightings)
    marks: int = 0

    def told(self, lives: list[tuple[int, int]]) -> list[bytes]:
        """What is told of them; each begins so long after the one before has ended, and asks so often."""
        asked, at = [], 0
        for inc, (gap, count) in enumerate(lives):
            at += gap
            daemon, times = Daemon(inc), []
            for _ in range(count):
                times.append(at)
                at += self.drawn.randint(1, 40)
            asked += [(begin, end, daemon) for begin, end in pairwise([*times, at])]
        # By time; the lambda of each happens then.
        happens: list[tuple[int, int, Callable[[], bytes | None]]] = []
        order = count_up()

        def later(when: int, what: Callable[[], bytes | None]) -> None:
            heapq.heappush(happens, (when, next(order), what))

        def ask(begin: int, end: int, daemon: Daemon) -> None:
            heard = daemon.heard
            for _ in range(self.drawn.choice((1, 1, 2, 3))):
                when = begin + self.drawn.choice((0, 1, 5, 20, 100, 200))
                later(when, partial(self._comes, daemon, heard, when, end, later))

        for begin, end, daemon in asked:
            later(begin, partial(ask, begin, end, daemon))
        for restart in self.restarts:
            later(restart, lambda: setattr(self, "seen", Sightings()))
        told = []
        while happens:
            each = heapq.heappop(happens)[2]()
            if each is not None:
                told.append(each)
        return told

    def _comes(
        self, daemon: Daemon, heard: bytes, when: int, end: int, later: Callable[[int, Any], None]
    ) -> bytes | None:
        self.marks += 1
        mark = self.marks.to_bytes(8, "big")
        back = when + self.drawn.choice((1, 2, 30, 200))
        if back < end:
            later(back, lambda: setattr(daemon, "heard", mark))
        return self.seen.saw(daemon.inc, heard, mark, when * SECOND)


@given(
    lives=st.lists(st.tuples(st.integers(1, 300), st.integers(1, 12)), min_size=1, max_size=8),
    restarts=st.lists(st.integers(0, 2000), max_size=3),
    seed=st.integers(0, 1 << 32),
)
def test_no_order_of_arrival_makes_one_table_two(
    lives: list[tuple[int, int]], restarts: list[int], seed: int
) -> None:
    """Daemons one after the other, their questions doubled and minutes late in any order: no clone."""
    assert Roads(random.Random(seed), restarts).told(lives) == []


def test_a_clone_is_told_at_the_ledger(
    ledger: Ledger, store: Store, table: FakeTable, caplog: pytest.LogCaptureFixture
) -> None:
    """Both live tables are answered, both tables' results count, and the finding names what to do."""
    clone = table.restarted(7)
    heard = {table: b"", clone: b""}
    for n in range(1, 5):
        for each, later in ((table, 0), (clone, 5 * SECOND)):
            answer, _ = ledger.sync(each.question(n, heard=heard[each], waiting=1), 30 * n * SECOND + later)
            assert answer.n == n
            assert answer.mark not in heard.values()
            heard[each] = answer.mark
    assert found(store, table) == {"clone": 1}
    assert caplog.text.count("was its card cloned?") == 1
    play(ledger, table)
    play(ledger, clone)
    assert held(store, table) == 2
