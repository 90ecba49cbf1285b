"""Records become a ledger: once, in any order, and the bad ones without hurting the rest."""

from __future__ import annotations

import random
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from heek.errors import RankingRefusal
from heek.games.ranking_points import GRANT
from heek.ki import cbor
from heek.ki.answers import BatchAnswer, read_introduction
from heek.ki.envelope import Envelope
from heek.ki.numbers import ki_number
from heek.ki.record import RecordTime, decode_record, encode_record
from heek.kinds import Seat
from heek.ranking import ingest
from heek.ranking.accounts import mend_standings, standings_add_up
from heek.ranking.board import board, last_matches, player_page
from heek.ranking.ledger import Ledger
from heek.ranking.schema import matches, records, set_aside, transfers
from heek.ranking.store import Store, open_store
from tests.ranking.records import ANN, BEN, CLEO, DAN, EVE, FakeTable, body


def verdicts(answer: BatchAnswer) -> list[str]:
    return [each.verdict.value for each in answer.answers]


def take(ledger: Ledger, *envelopes: Envelope | list[object]) -> BatchAnswer:
    return ledger.ingest(body(*envelopes))[0]


def totals(store: Store) -> dict[str, int]:
    """Everybody's points, summed up from the transfers alone."""
    with store.reader.begin() as connection:
        numbers = dict(connection.exec_driver_sql("SELECT id, number FROM players").all())
        held = dict.fromkeys(numbers.values(), GRANT)
        for payer, receiver, amount in connection.execute(
            select(transfers.c.from_player, transfers.c.to_player, transfers.c.amount)
        ):
            held[numbers[receiver]] += amount
            if payer is not None:
                held[numbers[payer]] -= amount
    return held


def xor(matches: Sequence[bytes]) -> bytes:
    return reduce(
        lambda one, other: bytes(a ^ b for a, b in zip(one, other, strict=True)), matches, bytes(16)
    )


def test_a_record_is_counted_once(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """The first time it is accepted, every other time a duplicate, and nothing moves twice."""
    sent = table.sealed({ANN: 1, BEN: 1, None: 0}, BEN)
    first = take(ledger, sent)
    assert verdicts(first) == ["accepted"]
    assert first.points == {ANN: 99, BEN: 101}
    again = take(ledger, sent, sent)
    assert verdicts(again) == ["duplicate", "duplicate"]
    assert (again.points, again.holds) == (first.points, first.holds)
    assert totals(store) == {ANN: 99, BEN: 101}


def test_the_answer_names_the_match(ledger: Ledger, table: FakeTable) -> None:
    """Each answer carries the id of its match, and holds are count and xor of those that count."""
    ids = [bytes([at]) * 6 + b"\x40\x00\x80" + bytes(7) for at in (1, 2)]
    answer = take(ledger, *(table.sealed({ANN: 1, BEN: 1}, match=match) for match in ids))
    assert [each.match for each in answer.answers] == ids
    assert answer.holds == (2, xor(ids))


def test_a_conflict_keeps_both(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """Other bytes for the same match: the first one goes on counting, the other is kept beside it."""
    first = table.record({ANN: 1, BEN: 1}, ANN)
    other = table.record({ANN: 1, BEN: 1}, BEN, match=first.match)
    take(ledger, table.seal(first))
    for _ in range(2):
        answer = take(ledger, table.seal(other))
        assert verdicts(answer) == ["conflict"]
        assert answer.answers[0].match == first.match
        assert answer.holds[0] == 1
    assert totals(store) == {ANN: 101, BEN: 99}
    with store.reader.begin() as connection:
        kept = connection.execute(select(records.c.record)).scalars().all()
        aside = connection.execute(select(set_aside.c.record, set_aside.c.status)).all()
    assert kept == [encode_record(first)]
    assert [tuple(each) for each in aside] == [(encode_record(other), "conflict")]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_poison_does_not_stop_the_rest(ledger: Ledger, store: Store, table: FakeTable, place: int) -> None:
    """A record that cannot be right, wherever it stands, leaves all others accepted."""
    stranger = FakeTable(99)
    poison: list[Envelope | list[object]] = [
        replace(table.sealed({ANN: 1, BEN: 1}), signature=bytes(64)),
        stranger.sealed({ANN: 1, BEN: 1}),
        table.seal(b"\xff" * 40),
        table.seal(stranger.record({ANN: 1, BEN: 1})),
        table.seal(table.record({ANN: 1, BEN: 1}, winner=Seat(1), rounds=())),
        ["no", "envelope"],
    ]
    good: list[Envelope | list[object]] = [table.sealed({ANN: 1, BEN: 1}, ANN) for _ in range(2)]
    answer = take(ledger, *good[:place], *poison, *good[place:])
    expected = ["accepted"] * place + ["rejected"] * len(poison) + ["accepted"] * (2 - place)
    assert verdicts(answer) == expected
    assert totals(store) == {ANN: 102, BEN: 98}
    reasons = [each.reason or "" for each in answer.answers[place : place + len(poison)]]
    for reason, said in zip(
        reasons,
        ["signature", "is not known", "CBOR", "table: is not the one", "rounds: there is none", "envelope"],
        strict=True,
    ):
        assert said in reason


def test_a_rejected_record_makes_no_account(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """What does not count leaves nobody behind."""
    record = table.record({CLEO: 1, DAN: 1})
    seats = (replace(record.seats[0], delta=5), record.seats[1])
    answer = take(ledger, table.seal(replace(record, seats=seats)), table.sealed({EVE: 3, DAN: 1}))
    assert verdicts(answer) == ["rejected", "rejected"]
    assert totals(store) == {}
    # What is told of them is what everybody stands at.
    assert set(answer.points.items()) <= {(EVE, GRANT), (DAN, GRANT)}


def test_unknown_tables_are_refused_as_a_whole(ledger: Ledger) -> None:
    """A batch of which no key is known is refused, so that the table introduces itself."""
    with pytest.raises(RankingRefusal, match="not known") as refused:
        take(ledger, FakeTable(5).sealed({ANN: 1, BEN: 1}))
    assert refused.value.code == "unknown_table"


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xa0", cbor.encode([[1]] * 201), b"\x9f\xff"])
def test_what_is_no_batch_is_malformed(ledger: Ledger, data: bytes) -> None:
    """A body that is no list of envelopes is refused with a word about it."""
    with pytest.raises(RankingRefusal) as refused:
        ledger.ingest(data)
    assert refused.value.code == "malformed"


def test_an_empty_batch_is_answered(ledger: Ledger) -> None:
    """Nothing asked is nothing answered."""
    assert ledger.ingest(body())[0] == BatchAnswer(())


def test_holds_are_each_tables_own(ledger: Ledger, table: FakeTable) -> None:
    """What another table has reported is in no digest but its own."""
    other = FakeTable(2, "Table 2")
    ledger.introduce(*read_introduction(other.introduction()))
    mine = [table.record({ANN: 1, BEN: 1}) for _ in range(3)]
    theirs = other.record({ANN: 1, BEN: 1})
    for each in mine:
        take(ledger, table.seal(each))
    assert take(ledger, other.seal(theirs)).holds == (1, theirs.match)
    answer = take(ledger, table.seal(mine[0]))
    assert answer.holds == (3, xor([each.match for each in mine]))


def test_holds_survive_a_restart(tmp_path: Path) -> None:
    """The digest is the same for a service that was started again."""
    table = FakeTable()
    sent = [table.sealed({ANN: 1, BEN: 1}) for _ in range(4)]
    store = open_store(tmp_path / "ki.sqlite3")
    ledger = Ledger(store, lambda: 0.0)
    ledger.introduce(*read_introduction(table.introduction()))
    before = take(ledger, *sent)
    store.close()
    store = open_store(tmp_path / "ki.sqlite3")
    again = take(Ledger(store, lambda: 0.0), sent[0])
    store.close()
    assert verdicts(again) == ["duplicate"]
    assert again.holds == before.holds == (4, xor([decode_record(each.record).match for each in sent]))


def test_a_stake_two_ranks_too_high_is_set_aside(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """One rank above what is known passes, flagged; two do not, and the reason names the player."""
    answer = take(ledger, table.sealed({ANN: 2, BEN: 1}, BEN), table.sealed({CLEO: 3, DAN: 1}, DAN))
    assert verdicts(answer) == ["accepted", "rejected"]
    assert f"the stake of {CLEO} is 3" in (answer.answers[1].reason or "")
    with store.reader.begin() as connection:
        page = player_page(connection, ANN)
        assert page is not None
        assert [each.stale for each in page.changes] == [True]
        assert connection.execute(select(set_aside.c.waits_for)).scalars().all() == [CLEO]


def test_what_was_set_aside_counts_once_its_points_are_known(
    ledger: Ledger, store: Store, table: FakeTable
) -> None:
    """A record that came before the wins it rests on counts as soon as they are there."""
    rich = table.seal(table.record({ANN: 3, BEN: 1}, BEN))
    assert verdicts(take(ledger, rich)) == ["rejected"]
    wins = [table.sealed({ANN: 1, BEN: 1, CLEO: 1, DAN: 1, EVE: 1}, ANN) for _ in range(25)]
    answer = take(ledger, *wins)
    assert answer.holds[0] == 25
    answer = take(ledger, table.sealed({ANN: 1, BEN: 1}, ANN))
    assert answer.holds[0] == 27
    assert answer.points == {ANN: 198, BEN: 77}
    assert verdicts(take(ledger, rich)) == ["duplicate"]
    with store.reader.begin() as connection:
        assert connection.execute(select(func.count()).select_from(set_aside)).scalar() == 0


def test_one_that_waited_lets_the_next_one_count(ledger: Ledger, table: FakeTable) -> None:
    """A record that counts late may be what another one waits for: that counts in the same commit."""
    others = {CLEO: 1, DAN: 1, EVE: 1}
    take(ledger, *(table.sealed({BEN: 1, ANN: 1} | others, BEN) for _ in range(25)))
    take(ledger, *(table.sealed({ANN: 1, BEN: 1} | others, ANN) for _ in range(25)))
    waiting = [table.sealed({BEN: 3, CLEO: 1}, CLEO), table.sealed({ANN: 3, BEN: 1}, BEN)]
    assert verdicts(take(ledger, *waiting)) == ["rejected", "rejected"]
    assert take(ledger, table.sealed({ANN: 1, CLEO: 1}, ANN)).holds[0] == 53
    assert verdicts(take(ledger, *waiting)) == ["duplicate", "duplicate"]


def test_a_batch_in_reverse_is_accepted_at_once(ledger: Ledger, table: FakeTable) -> None:
    """What waits for a record of its own batch is answered as what became of it there."""
    wins = [table.sealed({ANN: 1, BEN: 1, CLEO: 1, DAN: 1, EVE: 1}, ANN) for _ in range(26)]
    rich = table.sealed({ANN: 3, BEN: 1}, BEN)
    answer = take(ledger, rich, *wins)
    assert verdicts(answer) == ["accepted"] * 27
    assert answer.holds[0] == 27


def test_a_late_record_from_better_days_counts(ledger: Ledger, table: FakeTable) -> None:
    """A stake that was right before many losses is right when its record comes after them."""
    others = {BEN: 2, CLEO: 2, DAN: 2, EVE: 2}
    late = table.seal(table.record({ANN: 3, BEN: 0}, BEN))
    take(ledger, *(table.sealed({ANN: 1} | others, ANN) for _ in range(40)))
    answer = take(ledger, *(table.sealed({ANN: 4, BEN: 0}, BEN) for _ in range(60)))
    assert answer.points[ANN] == 180
    assert verdicts(take(ledger, late)) == ["accepted"]


def test_a_board_takes_one_rules_version(ledger: Ledger, table: FakeTable) -> None:
    """The first record that counts settles the version; one of another is rejected with the reason."""
    too_high = table.sealed({ANN: 9, BEN: 1}, economy="award")
    first = table.sealed({ANN: 1, BEN: 1})
    answer = take(ledger, too_high, first, table.sealed({ANN: 1, BEN: 1}, economy="award"))
    assert verdicts(answer) == ["rejected", "accepted", "rejected"]
    assert answer.answers[2].reason == "rules: this board counts by heek-1, and by nothing else"


def test_under_award_points_are_made(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """On an award board the winner gains and nobody pays."""
    take(ledger, table.sealed({ANN: 1, BEN: 1, CLEO: 2}, ANN, economy="award"))
    assert totals(store) == {ANN: 103, BEN: 100, CLEO: 100}


def at_ten(table: FakeTable, winner: str) -> Envelope:
    """A match of Ann's and Ben's that ended at 2025-11-30T10:00:00Z, on any table."""
    ended = RecordTime("boot-of-the-tests", 1000, 61_000, 1_764_496_800, "ntp")
    return table.sealed({ANN: 1, BEN: 1}, winner, t=ended)


@pytest.mark.fault("F044")
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_matches_at_the_very_same_time_are_matches_of_their_own(tmp_path: Path, order: Sequence[int]) -> None:
    """F044: two tables, and one twice, end in one second: each counts once, and their order is defined."""
    one, other = FakeTable(1), FakeTable(2, "Table 2")
    sent = [at_ten(one, ANN), at_ten(one, BEN), at_ten(other, ANN)]
    came = [decode_record(sent[each].record).match for each in order]
    store = open_store(tmp_path / "ki.sqlite3")
    ledger = Ledger(store, lambda: 1_900_000_000.0)
    for each in (one, other):
        ledger.introduce(*read_introduction(each.introduction()))
    for each in order:
        assert verdicts(take(ledger, sent[each])) == ["accepted"]
    again = take(ledger, *sent)
    assert verdicts(again) == ["duplicate"] * 3
    assert (again.holds, again.points) == ((2, xor([decode_record(each.record).match for each in sent[:2]])),
        {ANN: 101, BEN: 99})  # fmt: skip
    for _ in range(2):
        # The order is that of the ledger, the newest first, also after a restart.
        with store.reader.begin() as connection:
            shown = player_page(connection, ANN)
            listed = [uuid.UUID(each.match).bytes for each in last_matches(connection)]
        assert shown is not None
        assert listed == came[::-1]
        assert [uuid.UUID(each.played.match).bytes for each in shown.changes] == came[::-1]
        assert shown.total == shown.changes[0].total == 101
        store.close()
        store = open_store(tmp_path / "ki.sqlite3")
    store.close()


def test_set_aside_is_bounded(
    ledger: Ledger, store: Store, table: FakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only so many records are kept that do not count, and unsigned ones not at all."""
    monkeypatch.setattr(ingest, "MOST_SET_ASIDE", 3)
    for at in range(6):
        answer = take(ledger, table.seal(b"no record %d" % at))
        assert verdicts(answer) == ["rejected"]
    take(ledger, replace(table.sealed({ANN: 1, BEN: 1}), signature=bytes(64)))
    with store.reader.begin() as connection:
        assert connection.execute(select(func.count()).select_from(set_aside)).scalar() == 3


def test_reasons_fit_into_a_serial_answer(ledger: Ledger, table: FakeTable) -> None:
    """Two hundred rejections are answered in less than a serial message may have."""
    from heek.ki.answers import encode_batch_answer

    long = [table.record({ANN: 1, BEN: 1}, rules="x" * 32, name="y" * 24) for _ in range(200)]
    assert len(encode_batch_answer(take(ledger, *map(table.seal, long)))) < 65_000


MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where a commit need not wait for a disk."""

PLAYERS = [ki_number(each) for each in range(6)]


@st.composite
def evenings(draw: st.DrawFn) -> list[Envelope]:
    """Matches at two tables, where a favourite climbs and stakes what only some of the wins make right."""
    drawn = random.Random(draw(st.integers(0, 2**32)))
    envelopes = []
    for seed in (1, 2):
        table = FakeTable(seed)
        for _ in range(draw(st.integers(8, 25))):
            here = drawn.sample(PLAYERS[1:], 4)
            stakes = {PLAYERS[0]: drawn.randint(1, 4)} | dict.fromkeys(here, 2)
            winner = PLAYERS[0] if drawn.random() < 0.9 else here[0]
            envelopes.append(table.sealed(stakes, winner))
    return envelopes


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(evening=evenings(), data=st.data())
def test_records_commute(evening: list[Envelope], data: st.DataObject) -> None:
    """In any order, in any batches, with any repeats: the same records count, and the totals are the same."""
    order = data.draw(st.permutations(evening))
    repeated = data.draw(st.lists(st.sampled_from(evening), max_size=10))
    cuts = data.draw(st.integers(3, 20))
    results = []
    for sent in (evening, [*order, *repeated]):
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            store = open_store(Path(folder) / "ki.sqlite3")
            ledger = Ledger(store, lambda: 0.0)
            for seed in (1, 2):
                ledger.introduce(*read_introduction(FakeTable(seed).introduction()))
            for at in range(0, len(sent), cuts):
                take(ledger, *sent[at : at + cuts])
            with store.reader.begin() as connection:
                counted = set(connection.execute(select(matches.c.match)).scalars())
                shown = [(each.person, each.total, each.won) for each in board(connection).lines]
            held = totals(store)
            assert sum(held.values()) == GRANT * len(held)
            assert {each.number: total for each, total, _ in shown} == held
            with store.writer.begin() as connection:
                assert standings_add_up(connection)
                assert mend_standings(connection) == 0
            results.append((counted, held, shown))
            store.close()
    assert results[0] == results[1]


def test_standings_are_built_again(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """A standing that is not what the ledger says is found at the start and mended."""
    take(ledger, table.sealed({ANN: 1, BEN: 1}, ANN), table.sealed({ANN: 1, BEN: 1}, ANN, rated=False))
    with store.writer.begin() as connection:
        connection.exec_driver_sql("UPDATE standings SET points = 999, won = 7 WHERE number = ?", (BEN,))
        connection.exec_driver_sql("DELETE FROM standings WHERE number = ?", (ANN,))
    assert ledger.mend() == 2
    assert ledger.mend() == 0
    with store.reader.begin() as connection:
        assert [
            (each.person.number, each.total, each.won, each.played) for each in board(connection).lines
        ] == [(ANN, 101, 1, 1), (BEN, 99, 0, 1)]
