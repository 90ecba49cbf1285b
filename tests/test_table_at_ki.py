"""A table's reporting and a KI that really listens: enrolment, news, a backup put back, another KI."""

from __future__ import annotations

import asyncio
import shutil
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from heek.boot import Boot
from heek.cli import main
from heek.clock import RealClock
from heek.journal import Batch, Journal, JournalWriter
from heek.ki.http_link import HttpLink
from heek.ki.table_key import table_key
from heek.record_chain import RecordChain, bind_results
from heek.reporter import Reporter
from heek.reporting import KiStatus, Reporting
from heek.session.state import MatchResult
from tests.journal.scripts import entry, label
from tests.ki.test_result import a_result
from tests.ranking.records import ANN, BEN
from tests.ranking.service import RunningKi

_T = TypeVar("_T")

PATIENCE_S = 20.0


def a_match_of_two() -> MatchResult:
    """Ann wins a point from Ben."""
    result = a_result()
    entries = tuple(
        replace(each, player=player, name="x", stake=1)
        for each, player in zip(result.entries, (ANN, BEN), strict=True)
    )
    return replace(result, match=str(uuid.uuid4()), entries=entries, deltas=(1, -1), rated=True)


class Table:
    """A table's journal with a reporting over HTTP, on a loop that runs when asked."""

    def __init__(self, folder: Path, port: int, *, first_sight: bool, incarnation: int = 1) -> None:
        folder.mkdir(exist_ok=True)
        self.loop = asyncio.new_event_loop()
        self.executor = ThreadPoolExecutor(1)
        clock = self.clock = RealClock()
        self.journal = JournalWriter(folder, self.executor, clock)
        key = table_key(folder, lambda: bytes(range(32)))
        newest = self.ask(lambda journal: bind_results(journal, key))
        inc, boot = bytes([incarnation] * 8), Boot("boot", "none")
        self.chain = RecordChain(key, "Table 1", inc, boot, newest)
        self.told: list[tuple[dict[str, int], dict[str, int]]] = []
        who = Reporter(
            journal=self.journal,
            key=key,
            name="Table 1",
            clock=clock,
            tell_points=lambda points, deltas: self.told.append((dict(points), dict(deltas))),
            bind=self.chain.bind,
            incarnation=inc,
            boot=boot,
        )

        async def begin() -> Reporting:
            link = HttpLink(f"http://127.0.0.1:{port}")
            made = Reporting(
                who, link, "http", most_bytes=10**5, on_change=lambda: None, first_sight=first_sight
            )
            made.start()
            return made

        self.reporting = self.loop.run_until_complete(begin())

    def ask(self, question: Callable[[Journal], _T]) -> _T:
        return self.journal.ask(question).result()

    def match(self) -> str:
        seq = self.ask(lambda journal: journal.last_seq()) + 1
        result = self.chain.add(a_match_of_two(), self.clock)
        won = entry(seq, "match_won", match=result.match)
        self.journal.submit(Batch((won,), True, b"{}", label(seq), (result,))).result()
        self.reporting.result_waits()
        return result.match

    def until(self, wanted: Callable[[KiStatus], Any]) -> KiStatus:
        """Let the loop run until the status is as wanted, asking whenever nothing happens by itself."""

        async def look() -> KiStatus:
            async with asyncio.timeout(PATIENCE_S):
                while not wanted(self.reporting.status):
                    self.reporting.ask_now()
                    await asyncio.sleep(0.02)
            return self.reporting.status

        return self.loop.run_until_complete(look())

    def close(self) -> None:
        self.loop.run_until_complete(self.reporting.close())
        self.journal.close()
        self.executor.shutdown()
        self.loop.close()


@pytest.fixture
def ki(tmp_path: Path) -> Iterator[RunningKi]:
    with RunningKi(tmp_path) as running:
        yield running


def operator(ki: RunningKi, *arguments: str) -> None:
    assert main(["ki", *arguments, "--database", str(ki.database), "--port", str(ki.port)]) == 0


def test_a_code_shown_here_and_typed_in_there_enrols_the_table(ki: RunningKi, tmp_path: Path) -> None:
    """No result goes before; then the service's own key is pinned, and all that waits is in its ledger."""
    table = Table(tmp_path / "table", ki.port, first_sight=False)
    matches = [table.match() for _ in range(3)]
    code = table.until(lambda status: status.claim).claim
    assert code is not None
    assert ki.rows("SELECT count(*) FROM matches") == [(0,)]
    operator(ki, "enrol", code)
    status = table.until(lambda status: status.service and not status.waiting)
    assert (status.service, status.claim, status.trouble) == ("KI", None, ())
    pin = table.ask(lambda journal: journal.pin())
    assert pin is not None
    assert (pin.service, pin.found) == (ki.service.key.public, "code")
    assert {str(uuid.UUID(bytes=match)) for (match,) in ki.rows("SELECT match FROM matches")} == set(matches)
    table.close()


def test_what_the_operator_does_reaches_the_table(ki: RunningKi, tmp_path: Path) -> None:
    """A void and its end, a name and an erasure: kept by the journal, and points follow."""
    table = Table(tmp_path / "table", ki.port, first_sight=True)
    match = table.match()
    table.until(lambda status: status.service and not status.waiting)

    def journal_until(wanted: Callable[[Journal], bool]) -> None:
        table.until(lambda _: table.ask(wanted))

    before = table.ask(lambda journal: journal.told_points())
    assert before == {ANN: 101, BEN: 99}
    operator(ki, "void", match, "--reason", "wrong seat")
    journal_until(lambda journal: journal.voids() == {match: "wrong seat"})
    assert table.ask(lambda journal: journal.told_points()) == {ANN: 100, BEN: 100}
    operator(ki, "restore", match, "--reason", "it was right")
    journal_until(lambda journal: journal.voids() == {})
    assert table.ask(lambda journal: journal.told_points()) == before
    operator(ki, "rename", ANN, "Quiet Hand", "--reason", "asked for")
    journal_until(lambda journal: journal.names() == {ANN: "Quiet Hand"})
    operator(ki, "erase", ANN, "--reason", "asked for")
    journal_until(lambda journal: journal.names() == {} and ANN not in journal.told_points())
    (result,) = table.ask(lambda journal: list(journal.results()))
    assert ANN.encode() not in result.record
    table.close()


def test_a_service_put_back_from_a_backup_gets_its_matches_again(tmp_path: Path) -> None:
    """The ledger's file of before the last matches: the table offers all, and it has them again."""
    with RunningKi(tmp_path) as ki:
        port = ki.port
        table = Table(tmp_path / "table", port, first_sight=True)
        table.match()
        table.until(lambda status: status.service and not status.waiting)
    backup = tmp_path / "backup"
    shutil.copytree(ki.database.parent, backup)
    with RunningKi(tmp_path, port=port) as ki:
        for _ in range(3):
            table.match()
        table.until(lambda status: not status.waiting)
        assert ki.rows("SELECT count(*) FROM matches") == [(4,)]
    shutil.rmtree(ki.database.parent)
    shutil.copytree(backup, ki.database.parent)
    with RunningKi(tmp_path, port=port) as ki:
        assert ki.rows("SELECT count(*) FROM matches") == [(1,)]
        table.until(lambda _: ki.rows("SELECT count(*) FROM matches") == [(4,)])
        status = table.until(lambda status: not status.waiting)
        assert status.trouble == ()
    table.close()


def test_another_service_at_the_same_place_is_not_believed(tmp_path: Path) -> None:
    """A new service has a new key: said in words, and the result waits until the table is enrolled anew."""
    with RunningKi(tmp_path) as ki:
        port = ki.port
        table = Table(tmp_path / "table", port, first_sight=True)
        table.match()
        table.until(lambda status: status.service and not status.waiting)
    with RunningKi(tmp_path / "other", port=port) as other:
        table.match()
        status = table.until(lambda status: "another KI answers" in status.reason)
        assert (status.waiting, status.service) == (1, "KI")
        assert other.rows("SELECT count(*) FROM matches") == [(0,)]
        table.close()
        assert main(["enrol", "--again", "--state-dir", str(tmp_path / "table")]) == 0
        table = Table(tmp_path / "table", port, first_sight=True, incarnation=2)
        table.until(lambda _: other.rows("SELECT count(*) FROM matches") == [(2,)])
        assert table.until(lambda status: not status.waiting).trouble == ()
        table.close()
