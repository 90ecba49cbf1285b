"""kill -9 of the real processes at their n-th call that changes a file or says something to the other side.

`heek run` on mock pins plays a match for two and tells it over HTTP to a real `heek ki serve`; one of the two
dies at its n-th write, sync, truncation, rename, removal or send, is started once more, and then what the
journal holds must be at the KI exactly once. `python -m tests.killed_processes` does so for every n of both
sides and takes minutes; tests/test_killed_processes.py does a share.

A process of its own, under the shim that counts the calls, has imported everything; each process that is to
die is forked from it and goes through the command's own `main`. So a start costs little, and is the real one
from its configuration on.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import http.client
import json
import os
import shutil
import signal
import socket
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from heek.cli import main as heek
from heek.cli.table_process import TableProcess
from heek.clock import RealClock
from heek.config import load
from heek.errors import LinkError
from heek.journal import read_journal
from heek.ki import cbor
from heek.ki.link import CONTENT_TYPE, Request
from heek.kinds import Kind, Seat
from heek.ranking import server  # noqa: F401
from tests.journal.scripts import quick_folder
from tests.ranking.records import ANN, BEN, CLEO, FakeTable, body

PATIENCE_S: Final = 30.0
MOST_CALLS: Final = 2000
TABLE: Final = """
[table]
name = "Killed"
state_dir = "{folder}/table"
[seats]
lobby_s = 2
[ahyoheek]
target = 1
guard_s = 0
[stations]
backend = "mock"
[[display]]
driver = "dummy"
[web]
port = 0
[ki]
link = "http"
url = "http://127.0.0.1:{port}"
[log]
level = "error"
"""
PRESSES: Final = ((1, "page"), (2, "page"), (1, "page"), (2, "page"), (1, "pen"), (2, "page"))
"""Both sit down, are ready, and the one's pen beats the other's page."""


class Killer:
    """Starts the two processes on a folder of its own and kills them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = _free_port()
        self._arm: Callable[[int, int], None] = ctypes.CDLL(None).heek_die_at
        self._children: set[int] = set()
        self.config = folder / "table.toml"
        self.config.write_text(TABLE.format(folder=folder, port=self.port))

    @property
    def journal(self) -> Path:
        return self.folder / "table"

    @property
    def ledger(self) -> Path:
        return self.folder / "ki" / "ki.sqlite3"

    def clean(self) -> None:
        """Begin with nothing."""
        for each in (self.journal, self.ledger.parent):
            shutil.rmtree(each, ignore_errors=True)

    def start(self, what: Callable[[], object], nth: int = 0) -> int:
        """A process that does that, and dies at its n-th call; 0: at none. Its number."""
        child = os.fork()
        if child == 0:
            try:
                log = os.open(self.folder / "said.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                os.dup2(log, 1)
                os.dup2(log, 2)
                self._arm(nth, 0)
                what()
            finally:
                os._exit(0)
        self._children.add(child)
        return child

    def serve(self, nth: int = 0) -> int:
        """`heek ki serve`."""
        command = ["ki", "serve", "--port", str(self.port), "--database", str(self.ledger)]
        return self.start(lambda: heek(command), nth)

    def play(self, nth: int = 0) -> int:
        """`heek run`, at whose table two people play a match as soon as it is ready."""
        return self.start(self._table, nth)

    def _table(self) -> None:
        def ready(process: TableProcess) -> None:
            threading.Thread(target=press, args=(process,), daemon=True).start()

        def press(process: TableProcess) -> None:
            for seat, button in PRESSES:
                # As the page of a simulated table does it.
                process._move_contact(Seat(seat), Kind(button), closed=True)
                time.sleep(0.04)
                process._move_contact(Seat(seat), Kind(button), closed=False)
                time.sleep(0.04)

        TableProcess(load(self.config)).run(ready)

    def is_dead(self, child: int, *, wait_s: float = 0.0) -> bool | None:
        """Whether it was killed (True) or has ended (False); None: after `wait_s` it lives still."""
        until = time.monotonic() + wait_s
        while child in self._children:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                self._children.discard(child)
                return os.WIFSIGNALED(status)
            if time.monotonic() >= until:
                return None
            time.sleep(0.01)
        return True

    def end(self, child: int) -> None:
        """Tell it to stop, as systemd would."""
        if child in self._children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)
            if self.is_dead(child, wait_s=10) is None:
                os.kill(child, signal.SIGKILL)
                self.is_dead(child, wait_s=10)

    def close(self) -> None:
        """Leave nobody behind."""
        for child in list(self._children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            self.is_dead(child, wait_s=10)

    # What is there

    def results(self) -> dict[str, str]:
        """The results in the journal, each with what became of it."""
        if not (self.journal / "journal.kept").exists():
            return {}
        with contextlib.closing(_look_into(self.journal / "journal.sqlite3")) as db:
            return dict(db.execute("SELECT results.match, state FROM results LEFT JOIN outbox USING(match)"))

    def held(self) -> list[bytes]:
        """The matches that the ledger holds; it must be sound."""
        if not self.ledger.exists() or not self.ledger.stat().st_size:
            return []
        with _copy_of(self.ledger) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'matches'").fetchone():
                return []
            return [row[0] for row in db.execute("SELECT match FROM matches ORDER BY id")]

    def points(self) -> dict[str, int]:
        with contextlib.closing(_look_into(self.ledger)) as db:
            return dict(db.execute("SELECT number, points FROM standings"))

    def ask(self, request: Request, asked: bytes) -> dict[str, Any]:
        """What the KI answers; raises LinkError if it does not."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("POST", request.path, asked, {"Content-Type": CONTENT_TYPE})
            return dict(cbor.decode(connection.getresponse().read()))
        except (OSError, http.client.HTTPException) as error:
            raise LinkError(str(error)) from None
        finally:
            connection.close()


def kill_table(killer: Killer, nth: int) -> str | None:
    """The table dies at its n-th call; how far it had come, None if it never made so many calls."""
    table = killer.play(nth)
    _until(
        lambda: killer.is_dead(table) is not None or "accepted" in killer.results().values(),
        "the table has reported or died",
    )
    if killer.is_dead(table) is None:
        killer.end(table)
        assert len(killer.results()) == 1
        return None
    before = killer.results()
    again = killer.start(lambda: heek(["run", "--config", str(killer.config)]))
    try:
        _until(lambda: (killer.journal / "journal.kept").exists(), "the table starts again")
        _until(lambda: "waiting" not in killer.results().values(), "it reports what waits")
    finally:
        killer.end(again)
    with read_journal(killer.journal) as journal:
        assert journal.verify() == []
    after = killer.results()
    assert set(after) >= set(before)
    assert set(after.values()) <= {"accepted", "duplicate"}
    return "no result" if not before else f"{next(iter(before.values()))}, then {next(iter(after.values()))}"


def kill_ki(killer: Killer, nth: int, told: Counter[str]) -> bool:
    """The KI dies at its n-th call of a life in which five matches come in; False: it never made so many."""
    table = FakeTable()
    matches = [
        table.sealed({ANN: 1, BEN: 1}, ANN),
        table.sealed({ANN: 1, CLEO: 1}, CLEO),
        table.sealed({BEN: 1, CLEO: 1, ANN: 1}, BEN),
    ]
    batches = [body(matches[0]), body(*matches[1:]), body(*matches)]
    right = {ANN: 100 + 1 - 1 - 1, BEN: 100 - 1 + 2, CLEO: 100 + 1 - 1}
    ki = killer.serve(nth)
    accepted = 0
    dead: bool | None = None
    while dead is None:
        try:
            killer.ask(Request.TABLE, table.introduction())
            for place, each in enumerate(batches):
                said = [answer[0] for answer in killer.ask(Request.RECORDS, each)["answers"]]
                assert said == (["duplicate"] * 3 if place == 2 else ["accepted"] * len(said))
                accepted = max(accepted, (1, 3, 3)[place])
            break
        except LinkError:
            dead = killer.is_dead(ki, wait_s=0.05)
    if dead is None:
        killer.end(ki)
        assert len(killer.held()) == 3
        return False
    held = killer.held()
    assert len(set(held)) == len(held) >= accepted
    told[f"{accepted} answered, {len(held)} held"] += 1
    ki = killer.serve()
    try:
        _until(lambda: _answers(killer), "the KI starts again")
        killer.ask(Request.TABLE, table.introduction())
        said = [answer[0] for answer in killer.ask(Request.RECORDS, batches[2])["answers"]]
        assert said == ["duplicate"] * len(held) + ["accepted"] * (3 - len(held)), (held, said)
    finally:
        killer.end(ki)
    assert len(killer.held()) == 3
    assert killer.points() == right
    return True


def _answers(killer: Killer) -> bool:
    try:
        killer.ask(Request.RECORDS, body())
    except LinkError:
        return False
    return True


def _until(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)
    return found


@contextlib.contextmanager
def _copy_of(file: Path) -> Iterator[sqlite3.Connection]:
    """A data base as its next start finds it; of one whose program is dead.

    That may have to undo what its last write had begun, which only who may write can do.
    """
    with tempfile.TemporaryDirectory(dir=quick_folder()) as folder:
        for each in file.parent.glob(f"{file.name}*"):
            shutil.copy(each, folder)
        with contextlib.closing(sqlite3.connect(Path(folder, file.name))) as db:
            yield db


def _look_into(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


@contextlib.contextmanager
def _killer() -> Iterator[Killer]:
    with tempfile.TemporaryDirectory(prefix="heek-killed-", dir=quick_folder()) as name:
        killer = Killer(Path(name))
        try:
            yield killer
        except BaseException:
            with contextlib.suppress(OSError):
                sys.stderr.write((killer.folder / "said.log").read_text()[-2000:])
            raise
        finally:
            killer.close()


def every(side: str, first: int, stride: int) -> dict[str, Any]:
    """Kill one side at its calls `first`, `first + stride`, … until it makes no more; what was seen."""
    seen: Counter[str] = Counter()
    nth = first
    with _killer() as killer:
        while nth < MOST_CALLS:
            killer.clean()
            if side == "table":
                ki = killer.serve()
                _until(lambda: _answers(killer), "the KI starts")
                came_to = kill_table(killer, nth)
                killer.end(ki)
                assert sorted(uuid_bytes(match) for match in killer.results()) == sorted(killer.held())
                if came_to is None:
                    break
                seen[came_to] += 1
            elif not kill_ki(killer, nth, seen):
                break
            nth += stride
    return {"calls": nth, "seen": seen}


def uuid_bytes(match: str) -> bytes:
    """A match's id as the ledger has it."""
    return bytes.fromhex(match.replace("-", ""))


def main(argv: Sequence[str] | None = None) -> int:
    """Under the shim: kill and print what was seen."""
    parser = argparse.ArgumentParser(prog="python -m tests.killed_processes", description=__doc__)
    parser.add_argument("--side", choices=("table", "ki"), action="append")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--stride", type=int, default=1)
    arguments = parser.parse_args(argv)
    if not hasattr(ctypes.CDLL(None), "heek_die_at"):
        return _again_under_the_shim()
    RealClock()
    for side in arguments.side or ("table", "ki"):
        began = time.monotonic()
        report = every(side, arguments.first, arguments.stride)
        report |= {"side": side, "seconds": round(time.monotonic() - began, 1)}
        print(json.dumps(report), flush=True)
    return 0


def _again_under_the_shim() -> int:
    from tests.journal.test_kill import build_shim

    folder = Path(tempfile.mkdtemp(prefix="heek-shim-"))
    library = build_shim(folder)
    os.execve(
        sys.executable,
        [sys.executable, "-m", "tests.killed_processes", *sys.argv[1:]],
        {**os.environ, "LD_PRELOAD": str(library)},
    )


if __name__ == "__main__":
    sys.exit(main())
