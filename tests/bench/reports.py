"""How fast a backlog reaches the KI over HTTP, and what one question costs: from journal to ledger.

The KI is `heek ki serve` in a process of its own, with its ledger on the disk; the table has the daemon's
journal and reporting. Each record is read, sealed, sent, verified, judged, written with a commit, answered,
and acknowledged in the journal. That all of them have arrived is looked up in the ledger.
"""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import tempfile
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from heek.boot import this_boot
from heek.clock import RealClock
from heek.journal import Batch, JournalWriter
from heek.ki.http_link import HttpLink
from heek.ki.link import Request
from heek.ki.table_key import table_key
from heek.record_chain import RecordChain, bind_results
from heek.reporter import Reporter
from heek.reporting import Reporting
from tests.bench.figures import Figure, Spread
from tests.journal.scripts import entry, label
from tests.ranking.test_service import serving
from tests.test_record_chain import a_result_of_guests

PATIENCE_S: Final = 120.0


class LostRecordsError(RuntimeError):
    """The ledger has not what the table has reported."""


def measure(*, quick: bool = False) -> list[Figure]:
    """A backlog, several times, without TLS and with it, and a question that carries nothing.

    Raises LostRecordsError if a match is not in the ledger.
    """
    runs, records, questions = (1, 20, 5) if quick else (3, 500, 50)
    plain: list[float] = []
    over_tls: list[float] = []
    plain_trips: list[float] = []
    tls_trips: list[float] = []
    for _ in range(runs):
        for tls, speeds, trips in ((False, plain, plain_trips), (True, over_tls, tls_trips)):
            with tempfile.TemporaryDirectory(prefix="heek-bench-") as folder, _ki(Path(folder), tls) as url:
                speed, trip = asyncio.run(_reported(Path(folder), url, records, questions))
                speeds.append(speed)
                trips.append(trip)
                _check(Path(folder), records)
    each = f"{records} records of guests, from the journal's outbox to the ledger and back"
    return [
        Figure("http_records", "a backlog over HTTP", "records/s", Spread.of(plain), note=each),
        Figure(
            "https_records",
            "the same over TLS",
            "records/s",
            Spread.of(over_tls),
            "records/s without TLS",
            Spread.of(plain),
        ),
        Figure(
            "http_question",
            "a question over HTTP",
            "ms",
            Spread.of(plain_trips),
            note="a thread and a connection of its own, to a KI on this machine",
        ),
        Figure(
            "https_question",
            "the same over TLS",
            "ms",
            Spread.of(tls_trips),
            "ms without TLS",
            Spread.of(plain_trips),
            note="with a whole handshake each time",
        ),
    ]


@contextmanager
def _ki(folder: Path, tls: bool) -> Iterator[str]:
    (folder / "ki").mkdir()
    with serving(folder / "ki", "--tls-port", "0") as (process, port):
        found = re.search(r"with TLS at port (\d+)", process.said.decode())
        assert found is not None
        yield f"https://127.0.0.1:{found[1]}" if tls else f"http://127.0.0.1:{port}"


async def _reported(folder: Path, url: str, records: int, questions: int) -> tuple[float, float]:
    """Records a second of a backlog, and milliseconds of a question."""
    state = folder / "table"
    state.mkdir()
    clock, boot = RealClock(), this_boot()
    key = table_key(state, lambda: os.urandom(32))
    journal = JournalWriter(state, ThreadPoolExecutor(1), clock)
    newest = journal.ask(lambda kept: bind_results(kept, key)).result()
    incarnation = os.urandom(8)
    chain = RecordChain(key, "Table 1", incarnation, boot, newest)
    _fill(journal, chain, clock, records)
    link = HttpLink(url)
    done = asyncio.Event()

    def changed() -> None:
        status = reporting.status
        if status.state == "up" and status.waiting == 0:
            done.set()

    who = Reporter(journal, key, "Table 1", clock, lambda *_: None, chain.bind, incarnation, boot)
    reporting = Reporting(who, link, "http", most_bytes=512 * 1024, on_change=changed, first_sight=True)
    began = time.perf_counter()
    reporting.start()
    try:
        await asyncio.wait_for(done.wait(), PATIENCE_S)
        took = time.perf_counter() - began
        began = time.perf_counter()
        for _ in range(questions):
            await link.ask(Request.RECORDS, b"\x80")
        trip = (time.perf_counter() - began) / questions
    finally:
        await reporting.close()
        journal.close()
    return records / took, 1000 * trip


def _fill(journal: JournalWriter, chain: RecordChain, clock: RealClock, records: int) -> None:
    for seq in range(1, records + 1):
        result = chain.add(replace(a_result_of_guests(), match=str(uuid.uuid4())), clock)
        won = entry(seq, "match_won", match=result.match)
        journal.submit(Batch((won,), seq == records, b"{}", label(seq), (result,))).result()


def _check(folder: Path, records: int) -> None:
    with sqlite3.connect(folder / "ki" / "ki.sqlite3") as ledger:
        (found,) = ledger.execute("SELECT count(*) FROM matches").fetchone()
    if found != records:
        raise LostRecordsError(f"{found} of {records} matches are in the ledger")
