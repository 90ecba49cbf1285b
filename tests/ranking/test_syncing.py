"""A table asks how things stand, and the KI says so under its signature."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from heek.errors import LinkError
from heek.ki import answers, cbor
from heek.ki.link import Request
from heek.ki.signed_answer import check_answer
from heek.ki.sync import NOTHING, SyncAnswer, digest, read_question, read_sync_answer
from tests.ranking.records import ANN, BEN, CLEO, DAN, FakeTable, body
from tests.ranking.service import RunningKi


def sync(ki: RunningKi, asked: bytes) -> SyncAnswer:
    """What the KI answers to a question, its signature verified."""
    answer = ki.post(Request.SYNC.path, asked)
    assert answer.status == 200, answer.data
    check_answer(answer.data, Request.SYNC, asked, ki.service.key.public)
    return read_sync_answer(answer.cbor, read_question(asked)[0])


def test_every_answer_that_is_no_refusal_is_signed(ki: RunningKi) -> None:
    """Introduction, records, sync and sign-in: each by the service's key, for this very question alone."""
    table = FakeTable()
    asked = [
        (Request.TABLE, table.introduction()),
        (Request.RECORDS, body(table.sealed({ANN: 1, BEN: 1}, ANN))),
        (Request.SYNC, table.question()),
        (Request.PLAYER, answers.encode_sign_in(ANN)),
    ]
    for request, data in asked:
        answer = ki.post(request.path, data)
        assert answer.status == 200, answer.data
        check_answer(answer.data, request, data, ki.service.key.public)
        with pytest.raises(LinkError, match="signature"):
            check_answer(answer.data, request, data + b"\0", ki.service.key.public)
        with pytest.raises(LinkError, match="another KI"):
            check_answer(answer.data, request, data, FakeTable(9).public)


def test_an_introduction_is_told_the_ki(tmp_path: Path) -> None:
    """A table that is taken at first sight hears the key to pin, and what the KI is called."""
    with RunningKi(tmp_path, name="The museum") as ki:
        answer = ki.post(Request.TABLE.path, FakeTable().introduction()).cbor
        assert (answer["public"], answer["name"]) == (ki.service.key.public, "The museum")


def test_how_things_stand(ki: RunningKi) -> None:
    """The digest of what the KI holds from this table, the points that were asked for, and the time."""
    table, other = FakeTable(1), FakeTable(2)
    for each in (table, other):
        ki.introduce(each)
    records = [table.record({ANN: 1, BEN: 1}, ANN) for _ in range(3)]
    assert sync(ki, table.question()).holds == NOTHING
    ki.report(*(table.seal(each) for each in records), other.sealed({ANN: 1, CLEO: 1}, ANN))
    answer = sync(ki, table.question(2, players=(ANN, CLEO, DAN)))
    assert answer.holds == digest(each.match for each in records)
    assert answer.points == {ANN: 104, CLEO: 99, DAN: 100}
    assert answer.now_s > 1_700_000_000
    assert (answer.news, answer.newest) == ((), 0)


def test_who_is_not_known_or_not_who_it_says_is_refused(ki: RunningKi) -> None:
    """An unknown key introduces itself or is enrolled; another's signature and rubbish are refused."""
    table = FakeTable()
    refused = ki.post(Request.SYNC.path, table.question())
    assert (refused.status, refused.cbor["error"]) == (403, "unknown_table")
    refused = ki.post(Request.SYNC.path, table.question(), {"Via": "1.1 gateway"})
    assert (refused.status, refused.cbor["error"]) == (403, "not_enrolled")
    ki.introduce(table)
    forged = cbor.decode(table.question()) | {"n": 7}
    for data in (cbor.encode(forged), b"", b"\xa0", table.question()[:-1]):
        refused = ki.post(Request.SYNC.path, data)
        assert (refused.status, refused.cbor["error"]) == (400, "malformed")


def test_a_table_is_called_what_it_last_said(ki: RunningKi) -> None:
    """The name in a question is the table's from then on."""
    table = FakeTable()
    ki.introduce(table)
    sync(ki, table.question(name="By the window"))
    assert ki.rows("SELECT name FROM tables") == [("By the window",)]


def test_a_ledger_that_was_put_back_shows_in_the_digest(tmp_path: Path) -> None:
    """After a restore from a copy the digest is the copy's, and what is offered again makes it whole."""
    table = FakeTable()
    early, late = ([table.sealed({ANN: 1, BEN: 1}, ANN) for _ in range(3)] for _ in range(2))
    with RunningKi(tmp_path) as ki:
        ki.introduce(table)
        ki.report(*early)
        before = sync(ki, table.question(1)).holds
    shutil.copy(ki.database, tmp_path / "copy")
    with RunningKi(tmp_path) as ki:
        ki.report(*late)
        after = sync(ki, table.question(2)).holds
        public = ki.service.key.public
    assert after != before
    for file in ki.database.parent.glob("ki.sqlite3-*"):
        file.unlink()
    shutil.copy(tmp_path / "copy", ki.database)
    with RunningKi(tmp_path) as ki:
        assert ki.service.key.public == public
        assert sync(ki, table.question(3)).holds == before
        told = [each[0] for each in ki.report(*early, *late)["answers"]]
        assert told == ["duplicate"] * 3 + ["accepted"] * 3
        assert sync(ki, table.question(4)).holds == after


def test_what_a_table_has_heard_and_the_ledger_has_not_is_found(ki: RunningKi) -> None:
    """What stands under that number is another's, or nothing: the table is told all from the first."""
    table = FakeTable()
    ki.introduce(table)
    assert sync(ki, table.question(1)).after == 0
    assert ki.rows("SELECT count(*) FROM findings") == [(0,)]
    answer = sync(ki, table.question(2, news=1_000_000, mark=b"a mark.."))
    assert (answer.after, answer.news, answer.newest) == (0, (), 0)
    assert ki.rows("SELECT kind, count FROM findings") == [("lost news", 1)]


def test_a_sync_reaches_the_disk_before_its_answer(ki: RunningKi) -> None:
    """What a table said of itself is there when it has its answer."""
    table = FakeTable()
    ki.introduce(table)
    sync(ki, table.question(1, waiting=5, holds=(2, bytes(16)), news=0))
    assert ki.rows("SELECT waiting, told_held, told_news FROM presence") == [(5, 2, 0)]
