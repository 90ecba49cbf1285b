"""A KI whose disk is full, read-only, broken or locked says so, and answers for nothing that it has not."""

from __future__ import annotations

import contextlib
import resource
import signal
import socket
import sqlite3
from pathlib import Path

import pytest

from heek.errors import RankingError, RankingRefusal
from heek.ranking.ledger import Ledger
from heek.ranking.store import Store, open_store
from tests.journal.scripts import in_child
from tests.ranking.records import ANN, BEN, FakeTable, body
from tests.ranking.service import RunningKi, until


def pragma(store: Store, text: str) -> None:
    with store.writer.connect() as connection:
        connection.connection.cursor().execute(f"PRAGMA {text}").fetchall()


def refusal(ledger: Ledger, sent: bytes, caplog: pytest.LogCaptureFixture) -> str:
    """What the log says of a batch that a table is to send again."""
    caplog.clear()
    with pytest.raises(RankingRefusal, match="cannot write its ledger just now"):
        ledger.ingest(sent)
    (line,) = [each.message for each in caplog.records if each.levelname == "ERROR"]
    assert "\n" not in line
    return line


@pytest.mark.fault("F049", "F050")
@pytest.mark.parametrize(
    ("breaks", "heals", "words"),
    [
        ("query_only = ON", "query_only = OFF", "cannot be written; give both to the user"),
        ("max_page_count = 1", "max_page_count = 1000000", "the disk is full; make room, nothing is lost"),
    ],
    ids=["read-only", "full"],
)
def test_nothing_is_answered_that_is_not_kept(
    ledger: Ledger,
    store: Store,
    table: FakeTable,
    caplog: pytest.LogCaptureFixture,
    breaks: str,
    heals: str,
    words: str,
) -> None:
    """F049, F050: tables hear that it is busy, the log says why; the same batch counts when it is over."""
    first = table.sealed({ANN: 1, BEN: 1}, BEN)
    assert ledger.ingest(body(first))[0].holds[0] == 1
    pragma(store, breaks)
    batch = [table.sealed({ANN: 1, BEN: 1}, BEN) for _ in range(100)]
    assert words in refusal(ledger, body(*batch), caplog)
    # What is there can still be read.
    with store.reader.begin() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM matches").scalar() == 1
    pragma(store, heals)
    answer = ledger.ingest(body(*batch))[0]
    assert {each.verdict.value for each in answer.answers} == {"accepted"}
    assert answer.holds[0] == 101


@pytest.mark.fault("F049")
def test_a_file_that_may_not_grow(
    ledger: Ledger, store: Store, table: FakeTable, caplog: pytest.LogCaptureFixture
) -> None:
    """F049: the kernel's own refusal; the words name the disk, and all that was answered for is there."""

    def run() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        ledger.ingest(body(table.sealed({ANN: 1, BEN: 1}, BEN)))
        size = max(each.stat().st_size for each in store.file.parent.iterdir())
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5000, hard))
        batch = body(*(table.sealed({ANN: 1, BEN: 1}, BEN) for _ in range(100)))
        assert "see to the disk" in refusal(ledger, batch, caplog)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        assert ledger.ingest(batch)[0].holds[0] == 101

    assert in_child(run) == 0


def test_another_program_holds_the_ledger(
    ledger: Ledger, store: Store, table: FakeTable, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody else's transaction: named as such, and the batch counts afterwards."""
    other = sqlite3.connect(store.file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    sent = body(table.sealed({ANN: 1, BEN: 1}, BEN))
    pragma(store, "busy_timeout = 10")
    assert "another program has it open" in refusal(ledger, sent, caplog)
    other.execute("ROLLBACK")
    other.close()
    assert ledger.ingest(sent)[0].holds[0] == 1


@pytest.mark.fault("F046")
def test_a_page_that_breaks_while_the_ki_runs(
    ledger: Ledger, store: Store, table: FakeTable, caplog: pytest.LogCaptureFixture
) -> None:
    """F046: a malformed ledger is called damaged, with what to do, and no record is answered for."""
    ledger.ingest(body(*(table.sealed({ANN: 1, BEN: 1}, BEN) for _ in range(100))))
    pragma(store, "wal_checkpoint(TRUNCATE)")
    query = "SELECT rootpage FROM sqlite_schema WHERE name = 'matches'"
    with store.reader.begin() as connection:
        root = connection.exec_driver_sql(query).scalar_one()
    data = bytearray(store.file.read_bytes())
    data[(root - 1) * 4096 : root * 4096] = b"\xa5" * 4096
    store.writer.dispose()
    store.reader.dispose()
    store.file.write_bytes(data)
    said = refusal(ledger, body(table.sealed({ANN: 1, BEN: 1}, BEN)), caplog)
    assert "it is damaged or no ledger; move it away and bring back a copy" in said


@pytest.mark.fault("F053")
def test_pages_that_nobody_takes_away_do_not_let_the_log_grow(tmp_path: Path) -> None:
    """F053: eight clients ask for pages and never read them, many results are written, the log is as ever."""
    table = FakeTable()
    with RunningKi(tmp_path) as ki, contextlib.ExitStack() as stalled:
        ki.introduce(table)
        ki.report(table.sealed({ANN: 1, BEN: 1}, BEN))
        for _ in range(8):
            client = stalled.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            client.connect(("127.0.0.1", ki.port))
            client.sendall(b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % ki.host.encode())
        until(lambda: ki.get("/").status == 200, "the pages are made")
        for _ in range(100):
            batch = [table.sealed({None: 0, ANN: 0}, ANN, rated=False) for _ in range(5)]
            assert {each[0] for each in ki.report(*batch)["answers"]} == {"accepted"}
        log = ki.database.with_name("ki.sqlite3-wal")
        assert log.stat().st_size < 6 << 20


@pytest.mark.fault("F046")
def test_an_emptied_ledger_whose_log_is_there_is_refused(tmp_path: Path) -> None:
    """F046: SQLite would delete the log of an empty file, and with it what may be saved by hand."""
    file = tmp_path / "ki.sqlite3"
    open_store(file).close()
    log = file.with_name("ki.sqlite3-wal")
    file.write_bytes(b"")
    log.write_bytes(b"what was written last")
    with pytest.raises(RankingError, match=r"is empty, though ki\.sqlite3-wal and ki\.kept beside it"):
        open_store(file)
    assert log.read_bytes() == b"what was written last"
    assert file.stat().st_size == 0
