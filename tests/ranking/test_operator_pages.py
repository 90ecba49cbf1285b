"""What pages show of voids, erasures, corrected times and tables."""

from __future__ import annotations

import datetime
import re
from typing import Any

import pytest

from heek.cli import main
from heek.ki.record import RecordTime
from heek.ranking.findings import Finding
from heek.ranking.table_list import TableLine
from heek.ranking.tables_page import tables_html
from tests.ranking.records import ANN, BEN, CLEO, FakeTable, body
from tests.ranking.service import RunningKi


def act(ki: RunningKi, *arguments: str) -> None:
    assert main(["ki", *arguments, "--database", str(ki.database), "--port", str(ki.port)]) == 0


def plain(ki: RunningKi, path: str) -> str:
    """The words of a page, one blank between any two."""
    answer = ki.get(path)
    assert answer.status == 200, answer.text
    text = re.sub(r"<[^>]+>", " ", answer.text).replace("&#x27;", "'")
    return re.sub(r"\s+", " ", text)


def changes(ki: RunningKi, number: str, query: str = "") -> list[Any]:
    shown = ki.get(f"/v1/players/{number}{query}").json
    return [(each["delta"], each["total"], each["reason"]) for each in shown["changes"]]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Finding("replaced", "so", 0, 0, 1), "Replaced on 1 January 1970, 00:00 UTC So."),
        (Finding("replaced", "so", 0, 59, 4), "Replaced 4 times, on 1 January 1970, 00:00 UTC So."),
        (
            Finding("rewind", "so", 0, 60, 2),
            "Rewind 2 times, from 1 January 1970, 00:00 UTC to 1 January 1970, 00:01 UTC So.",
        ),
        (Finding("gap", "so", 1 << 60, 1 << 60, 1), "Gap at an unknown time So."),
    ],
)
def test_a_number_does_not_run_into_the_day(found: Finding, words: str) -> None:
    """How often and when something was found are told apart by a word."""
    line = TableLine("Table 1", bytes(8), 0, True, None, None, 0, (0, b""), None, 0, (found,))
    page = re.sub(r"<[^>]+>", " ", tables_html("KI", "", [line]).decode())
    assert f" {words} " in re.sub(r"\s+", " ", page)


@pytest.fixture
def table(ki: RunningKi) -> FakeTable:
    made = FakeTable()
    ki.introduce(made)
    return made


def test_a_void_match_is_shown_as_such(ki: RunningKi, table: FakeTable) -> None:
    """Its page says so with the reason; the lists say that it is void, and the winner gets nothing there."""
    record = table.record({ANN: 1, BEN: 1}, ANN)
    ki.report(table.seal(record))
    assert " +1, three pens" in plain(ki, "/")
    page = f"/matches/{record.match_id}"
    assert "void" not in plain(ki, page)
    act(ki, "void", record.match_id, "--reason", "wrong <seat>", "--by", "Otto")
    assert "Match voided (Otto: wrong &lt;seat&gt;). Nothing of it counts." in plain(ki, page)
    assert "<s>+1</s>" in ki.get(page).text
    board = plain(ki, "/")
    assert "won, three pens, 3 rounds , void" in board
    assert "Nobody is on the board yet." in board
    act(ki, "restore", record.match_id, "--reason", "it was right")
    said = plain(ki, page)
    assert "Match voided (Otto: wrong &lt;seat&gt;). Match restored (operator: it was right)." in said
    assert "Nothing of it counts" not in said
    assert "<s>" not in ki.get(page).text
    assert " +1, three pens" in plain(ki, "/")


def test_a_players_page_gives_the_reason(ki: RunningKi, table: FakeTable) -> None:
    """A void is a change of its own, in its place among the others, and the totals run on through it."""
    first, second = table.record({ANN: 1, BEN: 1}, ANN), table.record({ANN: 1, BEN: 1}, ANN)
    ki.report(table.seal(first), table.seal(second))
    act(ki, "void", first.match_id, "--reason", "wrong seat")
    ki.report(table.sealed({BEN: 1, CLEO: 1}, BEN))
    assert [each[:2] for each in changes(ki, BEN)] == [(1, 100), (1, 99), (-1, 98), (-1, 99)]
    assert changes(ki, BEN)[1][2] == "+1 match voided (operator: wrong seat)"
    act(ki, "restore", first.match_id, "--reason", "no")
    assert changes(ki, BEN)[0] == (-1, 99, "-1 match restored (operator: no)")
    assert changes(ki, ANN)[0] == (1, 102, "+1 match restored (operator: no)")
    page = plain(ki, f"/players/{BEN}")
    assert "match voided (operator: wrong seat)" in page
    assert "It was declared void since" not in page
    act(ki, "void", first.match_id, "--reason", "yes")
    assert "It was declared void since" in plain(ki, f"/players/{BEN}")


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_of_changes_join(ki: RunningKi, table: FakeTable, limit: int) -> None:
    """Page after page shows every change once, rulings among them, and each total follows from the next."""
    played = [table.record({ANN: 1, BEN: 1}, ANN) for _ in range(3)]
    for each in played:
        ki.report(table.seal(each))
        act(ki, "void", played[0].match_id, "--reason", "v")
        act(ki, "restore", played[0].match_id, "--reason", "r")
    act(ki, "void", played[1].match_id, "--reason", "v")
    whole = changes(ki, ANN)
    assert len(whole) == 10
    joined: list[Any] = []
    query = f"?limit={limit}"
    while True:
        shown = ki.get(f"/v1/players/{ANN}{query}").json
        joined += [(each["delta"], each["total"], each["reason"]) for each in shown["changes"]]
        if shown["next"] is None:
            break
        query = f"?limit={limit}&before={shown['next']}"
    assert joined == whole
    below = 100
    for delta, total, _ in reversed(whole):
        assert total == below + delta
        below = total
    assert below == 102


def test_an_erased_player_has_no_page(ki: RunningKi, table: FakeTable) -> None:
    """Under the old number there is nothing; the board goes on with the entries under another name."""
    ki.report(table.sealed({ANN: 1, BEN: 1}, ANN))
    name = ki.get(f"/v1/players/{ANN}").json["name"]
    act(ki, "erase", ANN, "--reason", "asked for it")
    assert ki.get(f"/players/{ANN}").status == 404
    board = ki.get("/v1/board").json["players"]
    assert [each["total"] for each in board] == [101, 99]
    assert board[0]["player"] != ANN
    for path in ("/", "/v1/board", f"/players/{BEN}", f"/players/{board[0]['player']}"):
        text = ki.get(path).text
        assert ANN not in text
        assert name not in text


@pytest.mark.fault("F037")
@pytest.mark.parametrize("trust", ["none", "saved"])
def test_a_time_that_the_table_did_not_know_is_corrected(ki: RunningKi, table: FakeTable, trust: str) -> None:
    """The KI's clock and the boot's tell when the match was, marked as such; the record stays as it came."""
    now = int(datetime.datetime.now(datetime.UTC).timestamp())
    time = RecordTime("boot-of-the-tests", 1000, 61_000, 12_345, trust)
    record = table.record({ANN: 1, BEN: 1}, ANN, t=time)
    ki.report(table.seal(record))
    page = f"/matches/{record.match_id}"
    assert "by the KI's clock" not in plain(ki, page)
    ki.post("/v1/sync", table.question(1, mono_ms=61_000 + 86_400_000))
    said = plain(ki, page)
    assert "by the KI's clock" in said
    days = [datetime.datetime.fromtimestamp(now - 86_400 + off, datetime.UTC) for off in (0, 60)]
    assert any(f"{day.day} {day:%B %Y, %H:%M} UTC" in said for day in days)
    assert "1970" not in said
    assert ki.rows("SELECT wall_s, trust FROM matches") == [(12_345, trust)]


def test_a_time_that_the_table_knew_stays(ki: RunningKi, table: FakeTable) -> None:
    """A clock that was set is believed, whatever the KI would work out."""
    record = table.record({ANN: 1, BEN: 1}, ANN)
    ki.report(table.seal(record))
    ki.post("/v1/sync", table.question(1, mono_ms=86_400_000))
    said = plain(ki, f"/matches/{record.match_id}")
    assert "17 March 2030, 17:46 UTC" in said
    assert "by the KI's clock" not in said


def test_the_tables_are_listed(ki: RunningKi) -> None:
    """Empty, then each with name, key, when it was seen, what waits, what counts, and what was found."""
    assert "No table has reported here yet." in plain(ki, "/tables")
    table = FakeTable(1, "By the <window>")
    ki.introduce(table)
    assert "Has never asked how things stand" in plain(ki, "/tables")
    backup = table.restarted(3)
    ki.report(table.sealed({ANN: 1, BEN: 1}))
    ki.report(backup.sealed({ANN: 1, BEN: 1}))
    ki.post("/v1/records", body(backup.seal(b"no record")))
    ki.post("/v1/sync", table.question(1, waiting=3, holds=(2, bytes(16))))
    said = plain(ki, "/tables")
    assert f"By the &lt;window&gt; key {table.key_id.hex()}" in said
    for words in ("Last seen ", "3 results wait there", "2 matches count", "1 record set aside", "Rewind "):
        assert words in said
    assert "was its card put back from a backup?" in said


def test_a_digest_that_differs_is_said(ki: RunningKi, table: FakeTable) -> None:
    """When nothing waits and the table takes another number for acknowledged, both numbers are shown."""
    ki.report(table.sealed({ANN: 1, BEN: 1}))
    ki.post("/v1/sync", table.question(1, waiting=0, holds=(5, bytes(16))))
    assert "1 match counts (the table says 5)" in plain(ki, "/tables")
