"""A match that the KI has declared void: void wherever the table shows it, until it is restored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from heek.cli import OK, main
from heek.cli.photo_finishes import ReplayedMatches
from heek.journal import News, Pin, Ruling, Synced, open_journal
from heek.journal.records import Acknowledged
from heek.ki.sync import RESTORED, VOIDED
from heek.simulator.runner import simulate
from heek.simulator.story import parse, read
from heek.told_news import ruling_words
from tests.journal.test_ki_notes import KEY
from tests.reporting_rig import Rig
from tests.test_demo import PACKAGES, free_port, until
from tests.test_ki_on_the_table import TABLE, Process, state
from tests.web.serving import serving

STORY = Path(__file__).parent / "photo_finish" / "round.jsonl"
CONTROLLER = Path(__file__).parents[1] / "controller"
MATCH = "df6af1d8-303e-41cd-84bb-86c3d1c42710"
VOID = "void: wrong seat (by the KI)"


@pytest.fixture
def played(tmp_path: Path) -> Path:
    """A state folder with a match in it that seat 1 won."""
    simulate(read(STORY), seed=1, state_dir=tmp_path)
    with open_journal(tmp_path) as journal:
        journal.pin_service(Pin(b"S" * 32, "KI", "code"), KEY)
    return tmp_path


def told(folder: Path, *news: tuple[int, str, str]) -> Acknowledged:
    with open_journal(folder) as journal:
        return journal.sync(
            Synced({}, tuple(News(number, kind, "{}", MATCH, text) for number, kind, text in news)), KEY
        )


def shown(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["photofinish", *words, "--state-dir", str(folder)]) == OK
    said = capsys.readouterr().out
    return json.loads(said) if "--json" in words else said


def test_the_command_says_void_until_the_match_is_restored(
    played: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the list, over the rounds and over a round, for people and for programs."""
    told(played, (1, "voided", "wrong seat"))
    listed = shown(played, capsys)
    assert (VOID in listed, "won by" in listed) == (True, False)
    assert shown(played, capsys, "last").splitlines()[0] == f"match {MATCH}: {VOID}"
    assert shown(played, capsys, "last", "2").splitlines()[0] == f"the match is {VOID}"
    assert shown(played, capsys, "--json")[0]["void"] == "wrong seat"
    assert shown(played, capsys, "last", "--json")["void"] == "wrong seat"
    assert main(["replay", "last", "--state-dir", str(played), "--export", str(played / "x.json")]) == OK
    capsys.readouterr()
    assert main(["photofinish", str(played / "x.json")]) == OK
    assert VOID in capsys.readouterr().out
    told(played, (2, "restored", ""))
    assert "won by seat 1 with pen" in shown(played, capsys)
    assert shown(played, capsys, "last").splitlines()[0] == f"match {MATCH}:"
    assert shown(played, capsys, "last", "--json")["void"] is None
    told(played, (3, "voided", ""))
    assert "void (by the KI)" in shown(played, capsys)


def test_the_page_says_void_until_the_match_is_restored(
    played: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """List, match and round, though the drawing is remembered from before."""
    monkeypatch.setenv("PYTHONPATH", str(CONTROLLER))
    photos = ReplayedMatches(played)
    paths = ("/photofinish", f"/photofinish/{MATCH}", f"/photofinish/{MATCH}/2")
    with serving(photo_finishes=photos) as served:
        browser = served.browser()

        def said() -> list[bool]:
            return [VOID in browser.get(path).body.decode() for path in paths]

        assert said() == [False] * 3
        told(played, (1, "voided", "wrong seat"))
        assert said() == [True] * 3
        assert "won by seat 1" not in browser.get("/photofinish").body.decode()
        told(played, (2, "restored", ""))
        assert said() == [False] * 3
    photos.close()


def test_a_ruling_is_told_once_and_with_the_matchs_time(played: Path) -> None:
    """Told again, or voided and restored in one answer, it is no news; one of another table is none here."""
    (ruling,) = told(played, (1, "voided", "wrong seat")).rulings
    assert (ruling.match, ruling.void, ruling.reason) == (MATCH, True, "wrong seat")
    assert told(played, (1, "voided", "wrong seat")).rulings == ()
    assert told(played, (2, "restored", ""), (3, "voided", "wrong seat")).rulings == ()
    (ruling,) = told(played, (4, "restored", "it was right")).rulings
    assert (ruling.void, ruling.reason) == (False, "it was right")
    with open_journal(played) as journal:
        other = News(5, "voided", "{}", MATCH[:-1] + "1", "not ours")
        assert journal.sync(Synced({}, (other,)), KEY).rulings == ()


def test_the_words_for_a_ruling(monkeypatch: pytest.MonkeyPatch) -> None:
    """The match is named by the time at which it ended, another day's by that too, and else by its number."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    try:
        ended = 1_900_000_000.0  # 2030-03-17, 17:46 UTC
        void = Ruling(MATCH, True, "wrong seat", ended)
        assert ruling_words(void, ended + 3600) == "The KI has declared the match of 17:46 void: wrong seat"
        assert "the match of 2030-03-17, 17:46 void" in ruling_words(void, ended + 86_400)
        unknown = Ruling(MATCH, False, "", None)
        assert ruling_words(unknown, ended) == "The KI counts the match df6af1d8 again"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_table_hears_of_what_the_ki_has_ruled(tmp_path: Path) -> None:
    """A result that the KI has declared void and restored since: one ruling each, with its time."""
    rig = Rig(tmp_path / "table")
    rig.start()
    match = rig.match(1)
    rig.run(60)
    rig.ki.tell(rig.key.id, VOIDED, match=match, reason="wrong seat")
    rig.run(3600)
    rig.ki.tell(rig.key.id, RESTORED, match=match)
    rig.run(3600)
    assert [(each.void, each.reason) for each in rig.rulings] == [(True, "wrong seat"), (False, "")]
    rig.close()


def test_what_just_happened_tells_of_a_void_match(tmp_path: Path) -> None:
    """A real table and a real KI: the operator's word stands on the table's page with its reason."""
    port, ki_port = free_port(), free_port()
    guests = "\n".join(line for line in STORY.read_text().splitlines() if '"claim"' not in line)
    simulate(parse(guests, "story"), seed=1, state_dir=tmp_path / "state")
    file = tmp_path / "table.toml"
    file.write_text(TABLE.format(folder=tmp_path, port=port, ki_port=ki_port))
    database = tmp_path / "ki.sqlite3"
    at_ki = ("--port", str(ki_port), "--database", str(database))
    service = Process("ki", "serve", *at_ki)
    table = Process("run", "--config", str(file))
    try:
        until(lambda: state(port)["ki"]["text"].startswith("KI: nothing waiting, last"), "it is delivered")
        assert "Traceback" not in table.end()
        subprocess.run(
            [sys.executable, "-m", "heek", "ki", "void", MATCH, "--reason", "wrong seat", *at_ki],
            env={**os.environ, "PYTHONPATH": PACKAGES},
            check=True,
            timeout=30,
        )
        table = Process("run", "--config", str(file))

        def said() -> bool:
            lines = [line["text"] for line in state(port)["told"]]
            return any(
                line.startswith("The KI has declared the match") and line.endswith("void: wrong seat")
                for line in lines
            )

        until(said, "the page tells of it")
    finally:
        for process in (table, service):
            assert "Traceback" not in process.end()
