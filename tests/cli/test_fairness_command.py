"""`heek doctor --fairness`: out of a journal, for people and for programs, and the code it ends with."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from heek.cli import FAILED, MISTAKE, OK, journal_place, main
from heek.simulator.runner import simulate
from heek.simulator.story import read
from tests.cli.commands import ROOT

STORY = ROOT / "tests" / "photo_finish" / "round.jsonl"
FAIR = """
{"story": 1, "table": {"ahyoheek.target": 1}}
{"at": 1.0, "press": {"seat": 1, "button": "pen"}}
{"at": 1.0, "press": {"seat": 2, "button": "pen"}}
{"at": 2.0, "press": {"seat": 1, "button": "pen"}}
{"at": 2.0, "press": {"seat": 2, "button": "pen"}}
{"at": 3.0, "press": {"seat": 1, "button": "pen"}}
{"at": 3.1, "press": {"seat": 2, "button": "page"}}
{"at": 4.0, "expect": {"event": "match_won", "seat": 1}}
{"at": 60, "end": true}
"""


def play(folder: Path, seed: int = 1) -> None:
    file = folder.with_suffix(".jsonl")
    file.write_text(FAIR)
    _, report = simulate(read(file), seed=seed, state_dir=folder)
    assert report.failures == ()


def doctor(folder: Path, *more: str) -> int:
    return main(["doctor", "--fairness", "--state-dir", str(folder), *more])


def test_a_fair_match(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Presses on a quiet table wait for the chord time and nothing is missing: 0."""
    play(tmp_path, 1)
    assert doctor(tmp_path) == OK
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith(" presses, on simulated pins")
    assert said[1] == "no late deliveries, no dropped edges"
    assert said[-1] == "nothing is unfair"
    assert any(line.startswith("seat 1 pen, verdict") and line.endswith("3.00 ms") for line in said)


def test_a_late_delivery_is_unfair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An edge that came after its round was compared is named, for programs too, and the code is 1."""
    simulate(read(STORY), seed=1, state_dir=tmp_path)
    assert doctor(tmp_path) == FAILED
    assert "wrong: 1 press came after the round had been compared" in capsys.readouterr().out
    assert doctor(tmp_path, "--json") == FAILED
    told = json.loads(capsys.readouterr().out)
    assert told["report"]["fairness"] == 1
    assert told["report"]["late_deliveries"] == 1
    assert len(told["report"]["buttons"]) == 12
    assert told["report"]["rejected"]["bounce"] > 0
    assert len(told["shortcomings"]) == 1


def test_where_there_is_nothing_to_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No journal, and a journal of a table that nobody has played at: one line each."""
    assert doctor(tmp_path / "none") == FAILED
    assert capsys.readouterr().err.startswith("heek: ")
    story = '{"at": 1, "press": {"seat": 1, "button": "pen"}}\n{"at": 2, "end": true}\n'
    (tmp_path / "s.jsonl").write_text(story)
    simulate(read(tmp_path / "s.jsonl"), seed=1, state_dir=tmp_path / "state")
    assert doctor(tmp_path / "state") == FAILED
    (line,) = capsys.readouterr().err.splitlines()
    assert "no match has ended yet" in line


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("'{'", "the figures of fairness are damaged; play a match to its end"),
        ("'[]'", "the figures of fairness are damaged; play a match to its end"),
        ("""'{"fairness":1}'""", "the figures of fairness are damaged; play a match to its end"),
        ("CAST(x'7bff' || body AS TEXT)", "is damaged (it has a text that is no UTF-8)"),
    ],
)
def test_figures_that_are_damaged(
    body: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is no report is one line that does not repeat it."""
    play(tmp_path)
    with sqlite3.connect(tmp_path / "journal.sqlite3") as db:
        db.execute(f"UPDATE fairness SET body = {body}")
    db.close()
    assert doctor(tmp_path) == FAILED
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert "late_deliveries" not in line


def test_the_last_figures_of_fifty_runs_are_kept(tmp_path: Path) -> None:
    """Each start of the table has a row of its own, replaced at every match's end; old rows go."""
    for run in range(3):
        play(tmp_path, run)
    with sqlite3.connect(tmp_path / "journal.sqlite3") as db:
        assert len({row[0] for row in db.execute("SELECT incarnation FROM fairness")}) == 3
        db.executemany(
            "INSERT INTO fairness VALUES(?, ?, '{}')", [(f"old{number}", -number) for number in range(60)]
        )
    db.close()
    play(tmp_path, 9)
    with sqlite3.connect(tmp_path / "journal.sqlite3") as db:
        rows = list(db.execute("SELECT seq FROM fairness ORDER BY seq DESC"))
    db.close()
    assert len(rows) == 50
    assert rows[3][0] > 0


def test_the_installed_tables_journal_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nothing is typed, the configuration that the unit runs says where the journal is."""
    play(tmp_path / "state")
    file = tmp_path / "table.toml"
    file.write_text(f'[stations]\nbackend = "mock"\n[table]\nstate_dir = "{tmp_path / "state"}"\n')
    monkeypatch.setattr(journal_place, "INSTALLED", file)
    assert main(["journal", "verify"]) == OK
    assert str(tmp_path / "state") in capsys.readouterr().out
    assert main(["replay", "last"]) == OK
    assert "identical" in capsys.readouterr().out
    assert main(["doctor", "--fairness", "--state-dir", str(tmp_path / "state")]) == OK


def test_a_folder_that_is_closed_to_us_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Where /etc/heek may not be looked into, the platform's folder is meant, and said to have no journal."""

    class Closed(type(Path())):  # type: ignore[misc]
        def exists(self, **_: object) -> bool:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(journal_place, "INSTALLED", Closed("/etc/heek/table.toml"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["journal", "verify"]) == FAILED
    assert str(tmp_path) in capsys.readouterr().err


def test_a_configuration_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file with a mistake is one message and code 2, as everywhere."""
    (tmp_path / "t.toml").write_text("[stations]\nbackend = 3\n")
    assert main(["doctor", "--fairness", "--config", str(tmp_path / "t.toml")]) == MISTAKE
    assert "stations.backend" in capsys.readouterr().err
