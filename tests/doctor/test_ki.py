"""What the doctor says of the KI: facts of a sound table, of each trouble one line with what to do."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from heek.clock import ManualClock
from heek.config import from_text
from heek.config.values import KiConfig
from heek.doctor.examination import Case, examine
from heek.doctor.findings import Finding, Mark
from heek.doctor.ki import KiAsked, KiKept, ki_findings
from heek.doctor.machine import Machine, this_machine
from heek.journal import Batch, InlineExecutor, JournalWriter, Pin, Result, SnapshotLabel
from heek.ki.envelope import key_id
from heek.ki.table_key import table_key

HTTP = KiConfig("http", "http://ki.example:8625", "", 115200)
SERIAL = KiConfig("serial", "", "/dev/serial/by-id/ki", 115200)
ENROLLED = KiKept(3, 0, 0, "The Cavern", "0a1b2c3d4e5f6071", "code")
UP = {"state": "up", "last": "14:02", "why": "", "claim": None, "counters": {}}
DOWN = {"state": "down", "last": "13:40", "why": "nothing answers", "claim": None}
SOUND = KiAsked(HTTP, ENROLLED, True, UP, None, "1122334455667788", "")


def found(asked: KiAsked) -> dict[str, Finding]:
    findings = list(ki_findings(asked))
    assert len({each.what for each in findings}) == len(findings)
    assert all(each.remedy for each in findings if each.mark in (Mark.WARNING, Mark.WRONG))
    assert not any("\n" in each.found + each.remedy for each in findings)
    return {each.what: each for each in findings}


def test_a_sound_table() -> None:
    """Link, backlog, enrolment with the pinned key, and the table's own key are facts, a line each."""
    said = {what: each.found for what, each in found(SOUND).items()}
    assert said == {
        "key": "this table's key is 1122334455667788",
        "link": "http, http://ki.example:8625: the KI answers (last answer at 14:02)",
        "enrolment": "at “The Cavern”, whose key 0a1b2c3d4e5f6071 is pinned; found by a code",
        "backlog": "3 results wait for the KI",
    }
    assert {each.mark for each in found(SOUND).values()} == {Mark.OK}


def test_a_difference_that_somebody_knows_of_is_a_fact() -> None:
    """It says who and when, and asks for nothing."""
    kept = replace(ENROLLED, more=1, acknowledged="by Otto on 2026-11-30")
    finding = found(replace(SOUND, kept=kept))["agreement"]
    assert (finding.mark, finding.remedy) == (Mark.OK, "")
    assert finding.found == (
        "the KI holds 1 match of this table that this journal has not; acknowledged by Otto on 2026-11-30"
    )


@pytest.mark.parametrize(
    ("asked", "what", "mark", "said", "remedy"),
    [
        (
            replace(SOUND, told=DOWN),
            "link",
            Mark.WARNING,
            "nothing answers (last answer at 13:40)",
            "results wait",
        ),
        (replace(SOUND, told={"state": "stopped"}), "link", Mark.WARNING, "no answer since", "the KI runs"),
        (replace(SOUND, told=None), "link", Mark.SKIPPED, "page does not answer", ""),
        (
            replace(SOUND, running=False, told=None, unreached="nothing listens there (Connection refused)"),
            "link",
            Mark.WARNING,
            "nothing listens there (Connection refused)",
            "ki.url",
        ),
        (replace(SOUND, running=False, told=None), "link", Mark.SKIPPED, "a running table looks", ""),
        (
            replace(SOUND, kept=replace(ENROLLED, service=None), told=UP | {"claim": "BCDF GHJK"}),
            "enrolment",
            Mark.WARNING,
            "at no KI yet",
            "heek ki enrol BCDFGHJK",
        ),
        (
            replace(SOUND, kept=replace(ENROLLED, service=None)),
            "enrolment",
            Mark.WARNING,
            "at no KI yet",
            "see to the link first",
        ),
        (
            replace(SOUND, kept=replace(ENROLLED, service=None), running=False, told=None, unreached=""),
            "enrolment",
            Mark.WARNING,
            "at no KI yet",
            "start the table",
        ),
        (
            replace(SOUND, kept=replace(ENROLLED, known=False), told=UP | {"claim": "BCDF GHJK"}),
            "enrolment",
            Mark.WARNING,
            "not at “The Cavern” any more, the only KI that this table believes (key 0a1b2c3d4e5f6071): "
            "that does not know this table's key, so no result is taken",
            "heek ki enrol BCDFGHJK",
        ),
        (
            replace(SOUND, kept=replace(ENROLLED, refused=2)),
            "refused",
            Mark.WARNING,
            "does not count 2 results",
            "heek ki tables",
        ),
        (
            replace(SOUND, kept=replace(ENROLLED, more=1)),
            "agreement",
            Mark.WARNING,
            "holds 1 match of this table that this journal has not",
            "backup?",
        ),
        (
            replace(SOUND, kept=replace(ENROLLED, more=-2)),
            "agreement",
            Mark.WARNING,
            "lacks 2 of what it has answered for",
            "backup?",
        ),
        (
            replace(SOUND, key="", key_trouble="t.key: is damaged; bring it back from a copy"),
            "key",
            Mark.WRONG,
            "t.key: is damaged",
            "bring it back from a copy",
        ),
    ],
)
def test_each_trouble(asked: KiAsked, what: str, mark: Mark, said: str, remedy: str) -> None:
    """One thing that is not well: its line says so and what to do, and no other line complains."""
    findings = found(asked)
    assert {each.what: each.mark for each in findings.values() if each.mark is not Mark.OK} == {what: mark}
    assert said in findings[what].found
    assert remedy in findings[what].remedy


def test_a_table_without_a_link() -> None:
    """It has a key and a sentence, and no backlog or enrolment that anybody should see to."""
    none = replace(SOUND, config=KiConfig("none", "", "", 115200), kept=KiKept(0, 0, 0, None), told=None)
    assert set(found(none)) == {"key", "link"}
    assert "backlog" in found(replace(none, kept=KiKept(4, 0, 0, None)))


def test_a_wire_is_the_running_tables() -> None:
    """With the table stopped its port is spoken of, and no link; its counters are judged elsewhere."""
    assert "link" not in found(replace(SOUND, config=SERIAL, running=False, told=None))
    told = UP | {"counters": {"asked": 12345.0, "clock_behind_s": 1.5}}
    findings = found(replace(SOUND, config=SERIAL, told=told))
    assert findings["link"].found.startswith("serial, /dev/serial/by-id/ki: the KI answers")
    assert "counters" not in findings
    assert found(replace(SOUND, told=told))["counters"].found == "asked 12345, clock behind s 1.5"


# The machine's half


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[JournalWriter]:
    writer = JournalWriter(tmp_path, InlineExecutor(), ManualClock())
    yield writer
    writer.close()


def test_the_journal_is_read_beside_its_daemon(tmp_path: Path, journal: JournalWriter) -> None:
    """What waits and the pin come out of the real file while the daemon has it open; nothing is written."""
    machine = this_machine()
    assert machine.ki_kept(tmp_path) == KiKept(0, 0, 0, None)
    key = table_key(tmp_path, lambda: bytes(range(32)))
    matches = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(3)]
    results = tuple(Result(match, b'{"seats":[]}') for match in matches)
    journal.submit(Batch((), True, None, SnapshotLabel("boot", 0, 0.0, "ntp"), results)).result()
    journal.ask(lambda each: each.pin_service(Pin(b"s" * 32, "The Cavern", "sight"), key.id)).result()
    files = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    kept = machine.ki_kept(tmp_path)
    assert kept == KiKept(3, 0, 0, "The Cavern", key_id(b"s" * 32).hex(), "sight")
    assert machine.table_key(tmp_path) == (key.id.hex(), "")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == files


def test_what_is_not_there_is_not_made(tmp_path: Path) -> None:
    """Without journal and key there is nothing to tell, and the doctor leaves the folder empty."""
    machine = this_machine()
    assert machine.ki_kept(tmp_path) is None
    assert machine.table_key(tmp_path) == ("", "")
    assert machine.set_aside(tmp_path / "nowhere") == ()
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_is_open_to_others(tmp_path: Path) -> None:
    """A key that others may read is wrong, with the command that closes it."""
    table_key(tmp_path, lambda: bytes(32))
    (tmp_path / "table.key").chmod(0o644)
    asked = KiAsked(HTTP, ENROLLED, True, UP, None, *this_machine().table_key(tmp_path))
    finding = found(asked)["key"]
    assert finding.mark is Mark.WRONG
    assert "chmod 600" in finding.remedy


def test_damaged_journals_are_named(tmp_path: Path) -> None:
    """Each folder that holds a damaged journal is named, the tenth after the ninth, and nothing else is."""
    for name in ("damaged-10", "damaged-9", "damaged-0", "damaged-x", "undamaged-1"):
        (tmp_path / name).mkdir()
    machine = replace(Machine(tmp_path), set_aside=this_machine().set_aside)
    config = from_text(f'[table]\nstate_dir = "{tmp_path}"\n[stations]\nbackend = "mock"\n', "table.toml")
    findings = {each.what: each for each in examine(Case(machine, config, "table.toml"))}
    finding = findings["set aside"]
    assert finding.mark is Mark.WARNING
    assert finding.found == "damaged journals were set aside in damaged-9, damaged-10"
    assert f"{tmp_path}/damaged-10/report.txt" in finding.remedy
    (tmp_path / "damaged-9").rmdir()
    (tmp_path / "damaged-10").rmdir()
    assert all(each.what != "set aside" for each in examine(Case(machine, config, "table.toml")))


class Page(BaseHTTPRequestHandler):
    """Answers as a page does, under its own name alone, or as `said` has it."""

    said = b""

    def do_GET(self) -> None:
        ours = self.headers["Host"].startswith("127.0.0.1:")
        self.send_response(200 if self.path == "/state" and ours else 403)
        self.end_headers()
        self.wfile.write(self.said)

    def log_message(self, *_: object) -> None:
        """Nobody listens."""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (json.dumps({"now": 1, "ki": UP}).encode(), {"now": 1, "ki": UP}),
        (b"[1]", None),
        (b"<html>", None),
        (b"", None),
        (b"\xff" * 100, None),
    ],
)
def test_a_running_tables_page_is_asked(said: bytes, told: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its page says is taken; whatever else answers there is as good as nothing, and no error."""
    monkeypatch.setattr(Page, "said", said)
    server = HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_port
    try:
        machine = this_machine()
        assert machine.page_state("127.0.0.1", port) == told
        assert machine.page_state("0.0.0.0", port) == told
        assert machine.unreached(f"http://127.0.0.1:{port}") == ""
    finally:
        server.shutdown()
        server.server_close()
    assert machine.page_state("127.0.0.1", port) is None
    assert machine.unreached(f"http://127.0.0.1:{port}").startswith("nothing listens there (")


def test_nonsense_for_an_address() -> None:
    """An address that is none is told as such and ends in no traceback."""
    machine = this_machine()
    assert machine.unreached("http://127.0.0.1:99999").startswith("nothing listens there (")
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        assert machine.unreached(f"http://127.0.0.1:{deaf.getsockname()[1]}") == ""
