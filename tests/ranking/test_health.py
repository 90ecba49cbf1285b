"""A KI whose history cannot be read any more says so wherever somebody looks (F047)."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

from heek.kinds import KINDS, Seat
from heek.ranking import desk
from heek.ranking.health import DAMAGED, NOT_WRITTEN
from heek.ranking.ledger import Ledger
from heek.ranking.live import Live
from heek.ranking.store import Store, open_store
from tests.ranking.broken_pages import break_page, break_page_with
from tests.ranking.ki_for_pages import Evening
from tests.ranking.records import ANN, BEN, FakeTable, body
from tests.ranking.service import RunningKi

FULL = "max_page_count = 1"
ROOM = "max_page_count = 1000000"


@pytest.fixture
def evening() -> Evening:
    return Evening()


@pytest.fixture
def played(tmp_path: Path, evening: Evening) -> Iterator[RunningKi]:
    """Forty matches, and a monitor that has found nothing wrong."""
    with RunningKi(tmp_path) as ki:
        for table in evening.tables:
            ki.introduce(table)
        for _ in range(40):
            ki.report(evening.match())
        healthy = ki.get("/healthz")
        assert (healthy.status, healthy.text) == (200, "ok\n")
        yield ki


def where(ki: RunningKi) -> dict[str, str]:
    """A page of each kind."""
    number = ki.get("/v1/board").json["players"][0]["player"]
    match = ki.get(f"/v1/players/{number}").json["changes"][0]["match"]
    return {"board": "/", "player": f"/players/{number}", "match": f"/matches/{match}"}


def pragma(ki: RunningKi, text: str) -> None:
    with ki.service._store.writer.connect() as connection:
        connection.connection.cursor().execute(f"PRAGMA {text}").fetchall()


@pytest.mark.fault("F047")
@pytest.mark.parametrize(
    ("table", "hidden"),
    [
        ("matches", ["board", "player", "match"]),
        ("records", ["match"]),
        ("entries", ["player", "match"]),
        ("standings", ["board", "player"]),
    ],
)
def test_a_page_that_cannot_be_made_says_why_in_plain_words(
    played: RunningKi, evening: Evening, caplog: pytest.LogCaptureFixture, table: str, hidden: list[str]
) -> None:
    """F047: damaged pages say so and others are shown; monitor and log name it, tables keep all."""
    pages = where(played)
    break_page(played.service._store, table)
    caplog.clear()
    for _ in range(3):
        for name, path in pages.items():
            answer = played.get(path)
            assert answer.status == (503 if name in hidden else 200), name
            if name in hidden:
                assert "Out of order" in answer.text
                assert "ledger is damaged; its operator is to bring back a copy" in answer.text
                assert answer.headers["retry-after"] == "60"
    assert played.get("/tables").status == 200
    assert "ledger is damaged; its operator is to bring back a copy" in played.get("/tables").text
    assert (played.get("/healthz").status, played.get("/healthz").text) == (503, f"{DAMAGED}\n")
    (said,) = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert str(played.database) in said
    assert "it is damaged or no ledger; move it away and bring back a copy" in said
    refused = played.post("/v1/records", body(evening.match()))
    assert (refused.status, refused.cbor["error"]) == (503, "busy")
    # A program is told the same, and no page names a file of this machine.
    assert played.get("/v1/board").json.get("error", DAMAGED) == DAMAGED
    assert str(played.database.parent) not in played.get(pages[hidden[0]]).text


@pytest.mark.fault("F047")
def test_pages_that_are_open_hear_of_damage(played: RunningKi) -> None:
    """F047: whoever meets it first, every page that follows live is told to look again."""
    pages, revision = where(played), played.service.streams.revision
    break_page(played.service._store, "matches")
    played.get(pages["match"])
    assert played.service.streams.revision == revision + 1
    played.get(pages["match"])
    assert played.service.streams.revision == revision + 1
    # A page that was kept from before is made anew, too.
    assert played.get("/").status == 503


@pytest.mark.fault("F046", "F047")
def test_a_monitor_finds_damage_that_nobody_has_met(
    played: RunningKi, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F046, F047: a page of old records that nobody opens: found by the look at the whole file."""
    break_page(played.service._store, "records", leaf=True)
    assert played.get("/healthz").status == 200
    monkeypatch.setattr(desk, "LOOK_EVERY", 0)
    caplog.clear()
    for _ in range(3):
        answer = played.get("/healthz")
        assert (answer.status, answer.text) == (503, f"{DAMAGED}\n")
    (said,) = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert "it is damaged or no ledger" in said


def test_the_whole_file_is_looked_at_now_and_then(
    store: Store, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often a monitor asks, every page is read once in ten minutes."""
    looks: list[int] = []
    monkeypatch.setattr(desk, "look_through", lambda *_: looks.append(1))
    counted: list[tuple[int, int]] = []

    async def ask() -> None:
        asked = desk.Desk(store, ledger, Live("test"))
        for now, looked in ((5, 1), (6, 1), (4 + desk.LOOK_EVERY, 1), (5 + desk.LOOK_EVERY, 2), (9**19, 3)):
            assert await asked.fault(now) is None
            counted.append((len(looks), looked))
        asked.close()

    asyncio.run(ask())
    assert [one for one, _ in counted] == [other for _, other in counted]


@pytest.mark.fault("F049")
def test_what_passes_is_over_when_something_is_written(played: RunningKi, evening: Evening) -> None:
    """F049: a full disk shows at `/healthz` as long as it is full, and on no page: what is there is right."""
    pages = where(played)
    pragma(played, FULL)
    batch = body(*(evening.match() for _ in range(100)))
    assert played.post("/v1/records", batch).status == 503
    assert (played.get("/healthz").status, played.get("/healthz").text) == (503, f"{NOT_WRITTEN}\n")
    assert {played.get(path).status for path in pages.values()} == {200}
    pragma(played, ROOM)
    assert played.post("/v1/records", batch).status == 200
    assert played.get("/healthz").text == "ok\n"


@pytest.mark.fault("F046")
def test_a_start_reads_every_page(tmp_path: Path) -> None:
    """F046: one bad page within a long record, which no key leads to: the KI reads alone, and says why."""
    table, drawn = FakeTable(), random.Random(1)
    long = table.record({ANN: 1, BEN: 1}, BEN)
    rounds = tuple({Seat(1): drawn.choice(KINDS), Seat(2): drawn.choice(KINDS)} for _ in range(800))
    sealed = table.seal(replace(long, rounds=(*rounds, *long.rounds)))
    with RunningKi(tmp_path) as ki:
        ki.introduce(table)
        assert ki.report(sealed)["answers"][0][0] == "accepted"
        assert len(sealed.record) > 3 * 4096
        break_page_with(ki.service._store, sealed.record[len(sealed.record) // 2 :][:200])
    before = ki.database.read_bytes()
    store = open_store(ki.database)
    assert "it is damaged or no ledger; move it away and bring back a copy" in (store.damage or "")
    with store.writer.begin() as connection, pytest.raises(DBAPIError, match="readonly"):
        connection.exec_driver_sql("DELETE FROM players")
    store.close()
    assert ki.database.read_bytes() == before


def _break_a_leaf(store: Store) -> None:
    break_page(store, "records", leaf=True)


def _break_the_first_page(store: Store) -> None:
    break_page_with(store, b"SQLite format 3\x00")


def _orphan(store: Store) -> None:
    store.close()
    with sqlite3.connect(store.file) as db:
        db.execute("DELETE FROM players WHERE number = ?", (BEN,))
    db.close()


@pytest.mark.fault("F046", "F047")
@pytest.mark.parametrize(
    ("harm", "readable"),
    [(_break_a_leaf, True), (_break_the_first_page, False), (_orphan, True)],
    ids=["leaf", "first page", "orphan"],
)
def test_a_ki_on_a_damaged_ledger_reads_alone_and_says_so(
    tmp_path: Path,
    evening: Evening,
    caplog: pytest.LogCaptureFixture,
    harm: Callable[[Store], None],
    readable: bool,
) -> None:
    """F046, F047: it starts, every page names the damage, no write is taken; a sound copy ends it."""
    one = FakeTable()
    with RunningKi(tmp_path) as ki:
        for table in (one, *evening.tables):
            ki.introduce(table)
        for _ in range(40):
            ki.report(evening.match())
        ki.report(one.sealed({ANN: 1, BEN: 1}))
        copy_of(ki.database)
        harm(ki.service._store)
    before = ki.database.read_bytes()
    caplog.clear()
    with RunningKi(tmp_path) as ki:
        (said,) = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
        assert str(ki.database) in said
        assert "bring back a copy" in said
        assert "every write is refused" in said
        for path in ("/", "/tables"):
            answer = ki.get(path)
            assert answer.status == (200 if readable else 503), path
            assert "ledger is damaged; its operator is to bring back a copy" in answer.text
        assert (ki.get("/healthz").status, ki.get("/healthz").text) == (503, f"{DAMAGED}\n")
        caplog.clear()
        sent = body(one.sealed({ANN: 1, BEN: 1}))
        for path, data in (("/v1/records", sent), ("/v1/tables", FakeTable(7, "Late").introduction())):
            refused = ki.post(path, data)
            assert (refused.status, refused.cbor["error"], refused.cbor["retry_s"]) == (503, "busy", 60)
        warned = [each.getMessage() for each in caplog.records if "a write is refused" in each.getMessage()]
        assert len(warned) == 2
    assert ki.database.read_bytes() == before
    copy_of(ki.database).replace(ki.database)
    with RunningKi(tmp_path) as ki:
        assert ki.get("/healthz").text == "ok\n"
        assert "ledger is damaged" not in ki.get("/").text
        assert ki.post("/v1/records", sent).status == 200


def copy_of(file: Path) -> Path:
    """A whole copy of a ledger in use, made when there is none yet."""
    copy = file.with_name("copy")
    if not copy.exists():
        with sqlite3.connect(file) as db, sqlite3.connect(copy) as other:
            db.backup(other)
        db.close()
        other.close()
    return copy
