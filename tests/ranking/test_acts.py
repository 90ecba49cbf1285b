"""What an operator does: nothing is edited, every point is accounted for, and the tables hear of it."""

from __future__ import annotations

import contextlib
import random
import shutil
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from heek.cli import main
from heek.errors import RankingRefusal
from heek.games.ranking_points import GRANT
from heek.ki.answers import read_introduction
from heek.ki.envelope import Envelope
from heek.ki.numbers import ki_number
from heek.ki.record import Record, decode_record, record_hash
from heek.ki.sync import ERASED, NAMED, NO_MARK, RESTORED, VOIDED, SyncAnswer
from heek.ranking.accounts import mend_standings, points_of, standings_add_up
from heek.ranking.board import board, last_matches, match_page, player_page
from heek.ranking.ledger import Ledger
from heek.ranking.names import names_for
from heek.ranking.operator_requests import Act, Erase, Rename, Restore, Void
from heek.ranking.schema import matches, records, rulings, set_aside, tables, transfers
from heek.ranking.store import Store, open_store
from tests.ranking.records import ANN, BEN, CLEO, DAN, EVE, FakeTable, body
from tests.ranking.service import RunningKi

WHY = "wrong seat"


def points(store: Store, *numbers: str) -> dict[str, int]:
    """What these players hold by the standings, which must be what the ledger says."""
    with store.writer.begin() as connection:
        assert standings_add_up(connection)
        assert mend_standings(connection) == 0
        return points_of(connection, numbers)


def told(ledger: Ledger, table: FakeTable, after: int = 0) -> list[tuple[int, str, dict[str, object]]]:
    """The news of a table that follow this number."""
    mark = NO_MARK
    if after:
        every, _ = ledger.sync(table.question(1 << 20), 0)
        while every.news[-1].number < after:
            last = every.news[-1]
            every, _ = ledger.sync(table.question(1 << 20, news=last.number, mark=last.mark), 0)
        (mark,) = (each.mark for each in every.news if each.number == after)
    answer, _ = ledger.sync(table.question(1 << 20, news=after, mark=mark), 0)
    return [(each.number, each.kind, dict(each.fields)) for each in answer.news]


def take(ledger: Ledger, *envelopes: Envelope) -> None:
    answer, _ = ledger.ingest(body(*envelopes))
    assert all(each.verdict.success for each in answer.answers), answer


def known(ledger: Ledger, number: int) -> FakeTable:
    table = FakeTable(number, f"Table {number}")
    ledger.introduce(*read_introduction(table.introduction()))
    return table


def test_a_void_takes_back_what_a_match_moved(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """Points, wins and matches played are as without it; the entries stay, and a restore undoes it."""
    first, second = table.record({ANN: 1, BEN: 1, None: 0}, ANN), table.record({ANN: 1, BEN: 1}, BEN)
    take(ledger, table.seal(first), table.seal(second))
    assert points(store, ANN, BEN) == {ANN: 100, BEN: 100}
    assert ledger.act(Void(first.match, WHY), "operator") == f"match {first.match_id} is void"
    assert points(store, ANN, BEN) == {ANN: 99, BEN: 101}
    with store.reader.begin() as connection:
        lines = {each.person.number: (each.won, each.played) for each in board(connection).lines}
        assert lines == {ANN: (0, 1), BEN: (1, 1)}
        assert len(connection.execute(select(transfers)).all()) == 2
    assert ledger.act(Restore(first.match, "it was right"), "operator") == (
        f"match {first.match_id} counts again"
    )
    assert points(store, ANN, BEN) == {ANN: 100, BEN: 100}


@pytest.mark.fault("F055")
def test_a_clock_that_is_set_back_makes_no_ruling_an_earlier_one(store: Store) -> None:
    """F055: void at 12:01, the clock back to 11:50, restore, another match: the last word counts."""
    wall = [1_764_504_000.0]
    ledger = Ledger(store, lambda: wall[0])
    table = known(ledger, 1)
    first = table.record({ANN: 1, BEN: 1}, ANN)
    take(ledger, table.seal(first))
    wall[0] += 60
    ledger.act(Void(first.match, WHY), "operator")
    wall[0] -= 660
    ledger.act(Restore(first.match, "it was right"), "operator")
    second = table.record({ANN: 1, BEN: 1}, ANN)
    take(ledger, table.seal(second))
    # By the standings, and by the ledger that they are built from anew.
    assert points(store, ANN, BEN) == {ANN: 102, BEN: 98}
    assert [(number, kind) for number, kind, _ in told(ledger, table)] == [(1, VOIDED), (2, RESTORED)]
    with store.reader.begin() as connection:
        shown = player_page(connection, ANN)
        listed = [each.match for each in last_matches(connection)]
    assert listed == [second.match_id, first.match_id]
    assert shown is not None
    changes = [(each.played.match, each.ruling and each.ruling.voids) for each in shown.changes]
    assert changes == [
        (second.match_id, None), (first.match_id, False), (first.match_id, True), (first.match_id, None)
    ]  # fmt: skip
    assert [each.total for each in shown.changes] == [102, 101, 100, 101]


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (Void(bytes(16), WHY), "unknown_match"),
        (Restore(bytes(16), WHY), "unknown_match"),
        (Rename(EVE, "Somebody", WHY), "unknown_player"),
        (Erase(EVE, WHY), "unknown_player"),
    ],
    ids=str,
)
def test_what_is_not_there_cannot_be_ruled_on(ledger: Ledger, table: FakeTable, act: Act, code: str) -> None:
    """A match or player that the KI does not know is refused, and nothing is told to anybody."""
    take(ledger, table.sealed({ANN: 1, BEN: 1}))
    with pytest.raises(RankingRefusal) as refused:
        ledger.act(act, "operator")
    assert refused.value.code == code
    assert told(ledger, table) == []


def test_a_match_is_voided_once(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """Void again, and restored without a void, are refused, and move nothing twice."""
    record = table.record({ANN: 1, BEN: 1}, ANN)
    take(ledger, table.seal(record))
    for act, again in ((Void, Void), (Restore, Restore)):
        ledger.act(act(record.match, WHY), "operator")
        with pytest.raises(RankingRefusal, match=r"void already|not void"):
            ledger.act(again(record.match, WHY), "operator")
    assert points(store, ANN, BEN) == {ANN: 101, BEN: 99}
    assert [each[0] for each in told(ledger, table)] == [1, 2]


def test_a_void_of_an_award_or_an_unrated_match(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """Under the award nobody had paid, so nobody gets anything back; an unrated match moves nothing."""
    award = table.record({ANN: 1, BEN: 2}, ANN, economy="award")
    unrated = table.record({ANN: 1, BEN: 1}, BEN, economy="award", rated=False)
    take(ledger, table.seal(award), table.seal(unrated))
    assert points(store, ANN, BEN) == {ANN: 102, BEN: 100}
    for each in (award, unrated):
        ledger.act(Void(each.match, WHY), "operator")
        assert points(store, ANN, BEN) == {ANN: 100, BEN: 100}


def test_a_void_does_not_make_stakes_too_high(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """Records that came before a void and those that come after it are judged alike."""
    wins = [table.record({ANN: 1, BEN: 1, CLEO: 1, DAN: 1, EVE: 1}, ANN) for _ in range(26)]
    take(ledger, *(table.seal(each) for each in wins))
    for each in wins:
        ledger.act(Void(each.match, WHY), "operator")
    assert points(store, ANN) == {ANN: 100}
    take(ledger, table.sealed({ANN: 3, BEN: 1}, BEN))


def test_tables_hear_what_concerns_them(ledger: Ledger, table: FakeTable) -> None:
    """The match's own table hears of a void; every table where a player sat hears of the player."""
    other, third = known(ledger, 2), known(ledger, 3)
    record = table.record({ANN: 1, BEN: 1}, ANN)
    take(ledger, table.seal(record), other.sealed({ANN: 1, CLEO: 1}), third.sealed({BEN: 1, CLEO: 1}))
    ledger.act(Void(record.match, WHY), "operator")
    ledger.act(Restore(record.match, "no"), "operator")
    ledger.act(Rename(ANN, "Ann of the bridge", "asked for it"), "operator")
    ledger.act(Erase(ANN, "asked for it"), "operator")
    assert told(ledger, table) == [
        (1, VOIDED, {"match": record.match, "reason": WHY}),
        (2, RESTORED, {"match": record.match, "reason": "no"}),
        (3, NAMED, {"player": ANN, "name": "erased"}),
        (4, ERASED, {"player": ANN}),
    ]
    assert [each[1] for each in told(ledger, other)] == [NAMED, ERASED]
    assert told(ledger, third) == []
    assert [each[0] for each in told(ledger, table, 2)] == [3, 4]


def test_who_took_a_tables_place_hears_of_its_matches(ledger: Ledger, table: FakeTable) -> None:
    """After a swap the new card may hold the old one's results."""
    record = table.record({ANN: 1, BEN: 1}, ANN)
    take(ledger, table.seal(record))
    new = FakeTable(2, "Table 2")
    ledger.enrol(new.public, new.name, "Table 1", "operator")
    ledger.act(Void(record.match, WHY), "operator")
    assert [each[1] for each in told(ledger, new)] == [VOIDED]
    assert [each[1] for each in told(ledger, table)] == [VOIDED]


def test_many_news_come_in_pieces(ledger: Ledger, table: FakeTable) -> None:
    """More than one answer takes are told one answer after the other, without a gap."""
    record = table.record({ANN: 1, BEN: 1}, ANN)
    take(ledger, table.seal(record))
    for _ in range(60):
        ledger.act(Void(record.match, "x" * 200), "operator")
        ledger.act(Restore(record.match, "y" * 200), "operator")
    heard: list[int] = []
    while more := told(ledger, table, len(heard)):
        heard += [each[0] for each in more]
    assert heard == list(range(1, 121))


def test_a_table_that_heard_what_a_restored_ledger_has_not_is_told_all(tmp_path: Path) -> None:
    """Put back from a copy, and ruled on before the table asks: another void stands under the same number."""
    table = FakeTable()
    first, second = (table.record({ANN: 1, BEN: 1}, ANN) for _ in range(2))
    file, copy = tmp_path / "ki.sqlite3", tmp_path / "copy"

    def asked(ledger: Ledger, number: int, mark: bytes) -> SyncAnswer:
        return ledger.sync(table.question(1 << 20, news=number, mark=mark), 0)[0]

    with contextlib.closing(open_store(file)) as store:
        ledger = Ledger(store, lambda: 0.0)
        ledger.introduce(*read_introduction(table.introduction()))
        take(ledger, table.seal(first), table.seal(second))
        ledger.act(Void(first.match, "kept"), "operator")
        (kept,) = asked(ledger, 0, NO_MARK).news
    shutil.copy(file, copy)
    with contextlib.closing(open_store(file)) as store:
        ledger = Ledger(store, lambda: 0.0)
        ledger.act(Restore(first.match, "lost"), "operator")
        (lost,) = asked(ledger, 1, kept.mark).news
    shutil.copy(copy, file)
    with contextlib.closing(open_store(file)) as store:
        ledger = Ledger(store, lambda: 0.0)
        less = asked(ledger, 2, lost.mark)
        assert (less.after, less.news, less.newest) == (0, (kept,), 1)
        ledger.act(Void(second.match, "another"), "operator")
        answer = asked(ledger, 2, lost.mark)
        assert (answer.after, answer.newest, answer.news[0]) == (0, 2, kept)
        assert answer.news[1].fields == {"match": second.match, "reason": "another"}
        # Who has heard what is in the copy goes on from there.
        assert asked(ledger, 1, kept.mark).news == answer.news[1:]


def test_a_player_has_another_name(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """It shows everywhere, nobody else can have it, and a reason is kept."""
    take(ledger, table.sealed({ANN: 1, BEN: 1}, ANN))
    ledger.act(Rename(ANN, "Ann of the bridge", "asked for it"), "Otto")
    with store.reader.begin() as connection:
        page = player_page(connection, ANN)
        assert page is not None
        assert page.person.name == "Ann of the bridge"
        acts = connection.exec_driver_sql("SELECT kind, actor, reason FROM identity_acts").all()
        assert [tuple(each) for each in acts] == [("rename", "Otto", "asked for it")]
    for number in (ANN, BEN):
        with pytest.raises(RankingRefusal, match=r"name already|another player's name"):
            ledger.act(Rename(number, "Ann of the bridge", "too"), "operator")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ANN OF THE BRIDGE", "looks like another player's name ('Ann of the bridge', "),
        ("Ann  of the Bridge", "looks like another player's name"),
        ("Ann of the bridge.", "looks like another player's name"),
        ("An nof the-bridge", "looks like another player's name"),
        ("KI operator", "is what pages and displays call somebody who is no player"),
        ("Ann of the br1dge", None),
        ("Ann of the br\u0131dge", "looks like another player's name"),
        ("\u0410nn of the bridge", "mixes Cyrillic and Latin"),
        ("Ann\u200b of the bridge", "U+200B ZERO WIDTH SPACE"),
        ("\u202eAnn", "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("\u3164", "U+3164 HANGUL FILLER"),
        ("   ", "has no letter"),
        ("Calm Keeper 7", "is like the names that the KI gives"),
        ("Ca1m Keeper l0", "is like the names that the KI gives"),
    ],
)
def test_nobody_is_called_what_another_may_be_taken_for(
    ledger: Ledger, table: FakeTable, name: str, why: str | None
) -> None:
    """A name that is like another player's, or like one that the KI gives, is refused; nothing is told."""
    take(ledger, table.sealed({ANN: 1, BEN: 1}, ANN))
    ledger.act(Rename(ANN, "Ann of the bridge", "asked for it"), "operator")
    if why is None:
        ledger.act(Rename(BEN, name, "asked for it"), "operator")
        return
    with pytest.raises(RankingRefusal) as refused:
        ledger.act(Rename(BEN, name, "asked for it"), "operator")
    assert (refused.value.code, why in str(refused.value)) == ("malformed", True), refused.value
    assert len(told(ledger, table)) == 1


def test_a_player_may_be_called_as_before_and_with_other_capitals(
    ledger: Ledger, store: Store, table: FakeTable
) -> None:
    """A renaming is undone with the name that was drawn, and nobody is in their own way."""
    take(ledger, table.sealed({ANN: 1, BEN: 1}, ANN))
    with store.reader.begin() as connection:
        page = player_page(connection, ANN)
    assert page is not None
    for name, called in (("Ann", "Ann"), (" ANN ", "ANN"), (page.person.name, page.person.name)):
        said = ledger.act(Rename(ANN, name, "asked for it"), "operator")
        assert said.startswith(f"{ANN} is called {called} now")
    with pytest.raises(RankingRefusal, match="the names that the KI gives"):
        ledger.act(Rename(BEN, next(names_for(CLEO)), "asked for it"), "operator")


def test_an_erasure_replaces_the_identity_and_keeps_the_entries(
    ledger: Ledger, store: Store, table: FakeTable
) -> None:
    """Number and name are nowhere but where the number is still needed; the others keep their points."""
    named = table.record({ANN: 1, BEN: 1}, ANN)
    seats = tuple(
        type(each)(each.seat, each.kind, each.player, "Old name", each.stake, each.delta)
        for each in named.seats
    )
    first = table.seal(table.record({ANN: 1, BEN: 1}, ANN, match=named.match, seats=seats))
    take(ledger, first)
    conflict = table.sealed({ANN: 1, BEN: 1}, BEN, match=named.match)
    assert ledger.ingest(body(conflict))[0].answers[0].verdict.value == "conflict"
    with store.reader.begin() as connection:
        page = player_page(connection, ANN)
    assert page is not None
    said = ledger.act(Erase(ANN, "asked for it"), "operator")
    assert said.startswith(f"{ANN} is erased; its matches are ")
    with store.reader.begin() as connection:
        assert player_page(connection, ANN) is None
        shown = match_page(connection, uuid.UUID(bytes=named.match))
        assert shown is not None
        new = shown.seats[0].person
        assert new is not None
        assert new.number not in (ANN, BEN)
        assert new.name != page.person.name
        assert [each.delta for each in shown.seats] == [1, -1]
        record = decode_record(connection.execute(select(records.c.record)).scalar_one())
        assert [(each.player, each.name) for each in record.seats] == [(new.number, None), (BEN, "Old name")]
        where = set()
        for name in sorted(each.name for each in tables.metadata.sorted_tables):
            rows = connection.exec_driver_sql(f"SELECT * FROM {name}").all()
            for row in rows:
                for value in row:
                    data = value if isinstance(value, bytes) else str(value).encode()
                    if ANN.encode() in data or page.person.name.encode() in data:
                        where.add(name)
        assert where == {"former_numbers", "news"}
    assert points(store, new.number, BEN) == {new.number: 101, BEN: 99}


def test_an_erased_name_is_in_no_file(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """Neither in the data base nor in its log or free space: who copies the files finds it no more."""
    take(ledger, *(table.sealed({ANN: 1, BEN: 1}, ANN) for _ in range(30)))
    ledger.act(Rename(ANN, "Wilhelmina Ofterdingen", "asked for it"), "operator")

    def kept() -> bytes:
        return b"".join(each.read_bytes() for each in store.file.parent.glob("ki.sqlite3*"))

    assert b"Ofterdingen" in kept()
    ledger.act(Erase(ANN, "asked for it"), "operator")
    assert b"Ofterdingen" not in kept()


def test_what_comes_late_under_an_erased_number_still_counts(
    ledger: Ledger, store: Store, table: FakeTable
) -> None:
    """It moves the same account's points, brings the number back nowhere, and tells nobody who it is now."""
    sent = table.sealed({ANN: 1, BEN: 1}, ANN)
    take(ledger, sent)
    ledger.act(Erase(ANN, "asked for it"), "operator")
    late = table.sealed({ANN: 1, BEN: 1}, ANN)
    answer, _ = ledger.ingest(body(late, sent))
    assert [each.verdict.value for each in answer.answers] == ["accepted", "duplicate"]
    assert answer.points == {BEN: 98}
    with store.reader.begin() as connection:
        lines = [each.total for each in board(connection).lines]
        assert lines == [102, 98]
        kept = connection.execute(select(records.c.record)).scalars().all()
        assert len(kept) == 2
        assert not any(ANN.encode() in each for each in kept)
    with pytest.raises(RankingRefusal, match="nobody here"):
        ledger.sign_in(ANN)
    conflict = table.sealed({ANN: 1, BEN: 1}, BEN, match=decode_record(sent.record).match)
    ledger.ingest(body(conflict))
    with store.reader.begin() as connection:
        aside = connection.execute(select(set_aside.c.record, set_aside.c.record_hash)).one()
    assert ANN.encode() not in aside.record
    assert aside.record_hash == record_hash(conflict.record)


def test_an_act_that_fails_leaves_nothing(ledger: Ledger, store: Store, table: FakeTable) -> None:
    """Ruling, standings and news are written together or not at all."""
    record = table.record({ANN: 1, BEN: 1}, ANN)
    take(ledger, table.seal(record))
    with store.writer.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER no_news BEFORE INSERT ON news BEGIN SELECT RAISE(ABORT, 'disk full'); END"
        )
    with pytest.raises(RankingRefusal, match="cannot write"):
        ledger.act(Void(record.match, WHY), "operator")
    with store.reader.begin() as connection:
        assert connection.execute(select(rulings)).all() == []
    assert points(store, ANN) == {ANN: 101}


EMPTY = '--reason is empty: say why in a few words, --reason "wrong seat" say'
NO_NUMBER = "is no KI number: eight digits, of which the last one checks the others"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["void", str(uuid.UUID(int=1)), "--reason", ""], EMPTY),
        (["restore", str(uuid.UUID(int=1)), "--reason", "  "], EMPTY),
        (["rename", ANN, "Ann", "--reason", ""], EMPTY),
        (["erase", ANN, "--reason", "\t"], EMPTY),
        (["erase", ANN, "--reason", "x" * 201], "--reason has 201 characters, and 200 are the most: say why"),
        (["erase", ANN, "--reason", "one\nother"], "--reason has a character that cannot be shown"),
        (["erase", ANN, "--reason", WHY, "--by", ""], "--by is empty: say who does it"),
        (["erase", "123", "--reason", WHY], f"'123' {NO_NUMBER}"),
        (["rename", "", "Ann", "--reason", WHY], f"'' {NO_NUMBER}"),
        (["rename", EVE, "Ann", "--reason", WHY], f"nobody here has the KI number {EVE}; look it up"),
    ],
)
def test_what_is_typed_wrong_is_told_with_what_to_type(
    ki: RunningKi, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    """In the words of the command line, on one line, and with 1: nothing was done."""
    assert main(["ki", *arguments, "--database", str(ki.database), "--port", str(ki.port)]) == 1
    answer = capsys.readouterr()
    assert (answer.out, answer.err.count("\n")) == ("", 1)
    assert said in answer.err
    assert "the request needs" not in answer.err


def test_the_commands_of_heek_ki(ki: RunningKi, capsys: pytest.CaptureFixture[str]) -> None:
    """Each act by its command, with a match's id or its page's address, and what is wrong in one line."""
    table = FakeTable()
    ki.introduce(table)
    record = table.record({ANN: 1, BEN: 1}, ANN)
    ki.report(table.seal(record))
    place = ["--database", str(ki.database), "--port", str(ki.port)]

    def heek(*arguments: str) -> tuple[int, str]:
        code = main(["ki", *arguments, *place])
        said = capsys.readouterr()
        return code, said.out + said.err

    page = f"{ki.url}matches/{record.match_id}"
    assert heek("void", page, "--reason", WHY) == (0, f"match {record.match_id} is void\n")
    code, said = heek("void", record.match_id, "--reason", WHY)
    assert (code != 0, "is void already" in said) == (True, True)
    assert heek("restore", record.match_id, "--reason", "no")[0] == 0
    assert heek("rename", ANN, "Ann", "--reason", "asked", "--by", "Otto")[0] == 0
    assert heek("rename", "123", "Ann", "--reason", "asked")[0] != 0
    for name in ("A\u200bnn", "\udcff", "\u202eevil"):
        code, said = heek("rename", BEN, name, "--reason", "asked")
        assert (code != 0, "that nobody can see" in said, said.count("\n")) == (True, True, 1)
    code, said = heek("rename", BEN, "ANN", "--reason", "asked")
    assert (code != 0, f"looks like another player's name ('Ann', {ANN})" in said) == (True, True)
    code, said = heek("erase", ANN, "--reason", "asked for it")
    assert (code, f"{ANN} is erased" in said) == (0, True)
    assert heek("erase", ANN, "--reason", "again")[0] != 0
    assert ki.rows("SELECT actor FROM identity_acts") == [("Otto",), ("operator",)]
    code, said = heek("tables")
    assert (code, "Table 1 (key " in said, "1 match counts" in said) == (0, True, True)
    with pytest.raises(SystemExit):
        heek("void", "that-one", "--reason", WHY)
    assert "is no match; give its id" in capsys.readouterr().err


MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
PLAYERS = [ki_number(each) for each in range(5)]


def evening(seed: int, count: int) -> list[tuple[FakeTable, Record, Envelope]]:
    """Matches of two tables, all with stakes that any ledger takes."""
    drawn = random.Random(seed)
    made = []
    both = [FakeTable(number, f"Table {number}") for number in (1, 2)]
    for _ in range(count):
        table = drawn.choice(both)
        here = drawn.sample(PLAYERS, drawn.randint(2, 4))
        record = table.record(dict.fromkeys(here, 1), drawn.choice(here), rated=drawn.random() < 0.9)
        made.append((table, record, table.seal(record)))
    return made


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), seed=st.integers(0, 1 << 32), count=st.integers(1, 12))
def test_records_and_rulings_commute(data: st.DataObject, seed: int, count: int) -> None:
    """In any order of records, repeats, voids and restores, the totals are those of what is not void."""
    played = evening(seed, count)
    ruled = data.draw(st.lists(st.integers(0, count - 1), max_size=20))
    turns = [sum(each == number for each in ruled) for number in range(count)]
    expected = dict.fromkeys(PLAYERS, GRANT)
    for (_, record, _), times in zip(played, turns, strict=True):
        for seat in record.seats:
            if times % 2 == 0 and seat.player is not None:
                expected[seat.player] += seat.delta
    steps: Sequence[tuple[str, int]] = data.draw(
        st.permutations(
            [("record", number) for number in range(count)]
            + [("again", number) for number in data.draw(st.lists(st.integers(0, count - 1), max_size=5))]
            + [("rule", number) for number in ruled]
        )
    )
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        store = open_store(Path(folder) / "ki.sqlite3")
        ledger = Ledger(store, lambda: 0.0)
        both = [known(ledger, number) for number in (1, 2)]
        here: set[int] = set()
        void: set[bytes] = set()
        owed: list[int] = []
        for what, number in steps:
            if what == "rule" and number not in here:
                # An operator rules on what is there; this one waits until it is.
                owed.append(number)
            elif what == "rule":
                rule(ledger, played[number][1], void)
            else:
                take(ledger, played[number][2])
                here.add(number)
            with store.reader.begin() as connection:
                held = [each.total for each in board(connection).lines]
                assert sum(held) == GRANT * len(held)
        for number in owed:
            rule(ledger, played[number][1], void)
        assert points(store, *PLAYERS) == expected
        assert void == {
            record.match for (_, record, _), times in zip(played, turns, strict=True) if times % 2
        }
        for table in both:
            check_news(ledger, store, table, data.draw(st.integers(0, 12)))
        store.close()


def rule(ledger: Ledger, record: Record, void: set[bytes]) -> None:
    if record.match in void:
        ledger.act(Restore(record.match, "no"), "operator")
    else:
        ledger.act(Void(record.match, WHY), "operator")
    void ^= {record.match}


def check_news(ledger: Ledger, store: Store, table: FakeTable, after: int) -> None:
    """All of it has numbers from 1 on without gaps, and asked from anywhere it is the same."""
    every = told(ledger, table)
    assert [each[0] for each in every] == list(range(1, len(every) + 1))
    assert told(ledger, table, min(after, len(every))) == every[min(after, len(every)) :]
    with store.reader.begin() as connection:
        mine = connection.execute(
            select(rulings.c.turn)
            .join(matches, matches.c.id == rulings.c.match)
            .join(tables, tables.c.id == matches.c.table_id)
            .where(tables.c.key_id == table.key_id)
        ).all()
    assert len(mine) == len(every)
