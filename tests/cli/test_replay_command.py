"""`heek replay` and `heek photofinish` as people type them: what they say, and the code they end with."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from heek.cli import FAILED, MISTAKE, OK, main
from heek.simulator.runner import simulate
from heek.simulator.story import read
from tests.cli.commands import ROOT, heek, shell

STORY = ROOT / "tests" / "photo_finish" / "round.jsonl"
GOLDEN = ROOT / "tests" / "photo_finish" / "golden"
MATCH = "df6af1d8-303e-41cd-84bb-86c3d1c42710"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state folder that a match left."""
    folder = tmp_path_factory.mktemp("state")
    simulate(read(STORY), seed=1, state_dir=folder)
    return folder


def test_replay_says_that_the_events_are_the_same(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By folder, by file, for people and for programs: 0, and how many events were held together."""
    assert main(["replay", "last", "--state-dir", str(played)]) == OK
    assert capsys.readouterr().out.startswith(f"match {MATCH}: 35 edges give the identical events: 16 of")
    assert main(["replay", MATCH[:8], "--journal", str(played / "journal.sqlite3"), "--json"]) == OK
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "match": MATCH,
        "same": True,
        "edges": 35,
        "events": 16,
        "compared": 25,
        "not_kept": 0,
        "difference": None,
    }


def change_winner(played: Path, folder: Path) -> None:
    """A copy of the journal in which seat 2 has won what seat 1 won."""
    shutil.copy(played / "journal.sqlite3", folder)
    db = sqlite3.connect(folder / "journal.sqlite3", isolation_level=None)
    db.execute("""UPDATE events SET body = replace(body, '"winners":[1]', '"winners":[2]')""")
    db.close()


def test_replay_shows_the_first_event_that_differs(
    played: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A journal that was changed: both lines, and 1; with --events these still come out."""
    change_winner(played, tmp_path)
    assert main(["replay", "last", "--state-dir", str(tmp_path)]) == FAILED
    first, journal, replayed = capsys.readouterr().out.splitlines()
    assert first.endswith("is not what comes of its edges")
    assert '"winners":[2]' in journal
    assert '"winners":[1]' in replayed
    assert main(["replay", "last", "--state-dir", str(tmp_path), "--json"]) == FAILED
    assert json.loads(capsys.readouterr().out)["difference"]["seq"] > 0
    assert main(["replay", "last", "--state-dir", str(tmp_path), "--events"]) == FAILED
    said = capsys.readouterr()
    assert '"winners":[1]' in said.out
    assert "is not what comes of its edges" in said.err


def test_a_drawing_that_contradicts_the_journal_says_so_above(
    played: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rounds, a round and the output for programs: the event that differs first, and 1."""
    change_winner(played, tmp_path)
    where = ["--state-dir", str(tmp_path)]
    warned = "not what the journal tells: its event "
    for arguments in (["last", *where], ["last", "2", *where]):
        assert main(["photofinish", *arguments]) == FAILED
        assert capsys.readouterr().out.startswith(warned)
    assert main(["photofinish", "last", "--json", *where]) == FAILED
    said = capsys.readouterr()
    assert f"{warned}{json.loads(said.out)['differs']} " in said.err


def test_an_exported_match_is_replayed_and_drawn_from_its_file(
    played: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Export says what is in the file; replay and photofinish take it without any journal."""
    file = tmp_path / "match.json"
    assert main(["replay", "last", "--state-dir", str(played), "--export", str(file)]) == OK
    assert "it holds what everybody pressed" in capsys.readouterr().err
    assert main(["replay", str(file)]) == OK
    assert "35 edges give the identical events" in capsys.readouterr().out
    done = heek("photofinish", str(file), "2", PYTHONIOENCODING="utf-8", COLUMNS="80")
    assert done.stdout.decode() == (GOLDEN / "round-2.txt").read_text(encoding="utf-8")
    done = heek("photofinish", str(file), "2", PYTHONIOENCODING="ascii", COLUMNS="80")
    assert done.stdout.decode() == (GOLDEN / "round-2.ascii.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(("columns", "widest"), [("20", 40), ("40", 40), ("60", 60), ("300", 120)])
def test_a_drawing_is_as_wide_as_the_terminal(
    played: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    columns: str,
    widest: int,
) -> None:
    """The time line takes what there is, from 40 columns to 120, and no line is longer."""
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["photofinish", "last", "2", "--state-dir", str(played)]) == OK
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines) == widest
    assert len(next(line for line in lines if line.startswith("seat 1"))) == widest


@pytest.mark.parametrize("kind", ["file", "pipe", "link", "link to nothing", "folder"])
def test_an_export_takes_the_place_of_nothing(
    kind: str, played: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever is there already stays what it is, and one line names it."""
    there, target = tmp_path / "there", tmp_path / "target"
    if kind == "file":
        there.write_text("mine")
    elif kind == "pipe":
        os.mkfifo(there)
    elif kind == "folder":
        there.mkdir()
    else:
        there.symlink_to(target)
        if kind == "link":
            target.write_text("mine")
    before = {each.name: each.lstat() for each in tmp_path.iterdir()}
    assert main(["replay", "last", "--state-dir", str(played), "--export", str(there)]) == FAILED
    assert capsys.readouterr().err == (
        f"heek: {there}: is there already, and is left as it is; name a file that is not\n"
    )
    after = {each.name: each.lstat() for each in tmp_path.iterdir()}
    assert {name: (each.st_ino, each.st_mode, each.st_mtime_ns) for name, each in after.items()} == {
        name: (each.st_ino, each.st_mode, each.st_mtime_ns) for name, each in before.items()
    }


def test_an_export_is_its_owners_alone(played: Path, tmp_path: Path) -> None:
    """It holds what everybody pressed, so nobody else may read it."""
    file = tmp_path / "match.json"
    assert main(["replay", "last", "--state-dir", str(played), "--export", str(file)]) == OK
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_export_that_cannot_be_finished_leaves_no_file(played: Path, tmp_path: Path) -> None:
    """Where a file may not grow as large, one line says so and nothing stands there."""
    file = tmp_path / "match.json"
    done = shell(f"ulimit -f 1; $HEEK replay last --state-dir {played} --export {file}")
    assert done.returncode == FAILED
    assert done.stderr.decode().splitlines() == [
        f"heek: {file}: cannot be written (File too large); name another file"
    ]
    assert not file.exists()


def test_an_export_without_a_name(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Empty, as from a variable that is not set: a mistake of whoever typed it."""
    with pytest.raises(SystemExit) as ended:
        main(["replay", "last", "--state-dir", str(played), "--export", ""])
    assert ended.value.code == MISTAKE
    assert "argument --export: '' names no file" in capsys.readouterr().err


def test_photofinish_lists_what_there_is(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a match the matches, without a round the rounds with their throws; for programs drawings."""
    where = ["--state-dir", str(played)]
    assert main(["photofinish", *where]) == OK
    assert capsys.readouterr().out == f"{MATCH}     1 round  won by seat 1 with pen\n"
    assert main(["photofinish", "last", *where]) == OK
    assert capsys.readouterr().out == (
        f"match {MATCH}:\n  round 1: void: fewer than two had thrown\n"
        "  round 2: won by seat 1 with pen; seat 2 Shorah <b> page, seat 3 nothing\n"
    )
    assert main(["photofinish", "last", *where, "--json"]) == OK
    told = json.loads(capsys.readouterr().out)
    assert [each["round"] for each in told["finishes"]] == [1, 2]
    assert main(["photofinish", *where, "--json"]) == OK
    assert json.loads(capsys.readouterr().out)[0]["match"] == MATCH


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["replay", "feed"], "there is no match 'feed'; heek photofinish lists those that are kept"),
        (["photofinish", "last", "3"], "there is no round 3; it has rounds 1 to 2"),
    ],
)
def test_what_is_not_there_is_one_line(played: Path, arguments: list[str], words: str) -> None:
    """One line on standard error, 1, no traceback."""
    done = heek(*arguments, "--state-dir", str(played))
    assert done.returncode == FAILED
    assert done.stdout == b""
    assert done.stderr.decode().count("\n") == 1
    assert words in done.stderr.decode()


def test_files_that_are_not_there_or_cannot_be_written(played: Path, tmp_path: Path) -> None:
    """A missing file, a missing journal, an export into nowhere: each named, with what to do."""
    for arguments, words in (
        (["replay", str(tmp_path / "no.json")], "no.json: cannot be read"),
        (["replay", "last", "--state-dir", str(tmp_path)], "there is no journal"),
        (
            ["replay", "last", "--state-dir", str(played), "--export", str(tmp_path / "no" / "x")],
            "name another file",
        ),
    ):
        done = heek(*arguments)
        assert done.returncode == FAILED
        assert words in done.stderr.decode()
        assert b"Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_round_is_a_number(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Anything else is a mistake of whoever typed it."""
    with pytest.raises(SystemExit) as ended:
        main(["photofinish", "last", "0", "--state-dir", str(played)])
    assert ended.value.code == MISTAKE
    assert "rounds count from 1" in capsys.readouterr().err


def test_an_empty_table_has_nothing_to_draw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A journal without a match says what to do."""
    story = tmp_path / "empty.jsonl"
    story.write_text('{"at": 1, "end": true}\n')
    simulate(read(story), state_dir=tmp_path / "state")
    assert main(["photofinish", "--state-dir", str(tmp_path / "state")]) == OK
    assert "no match is kept" in capsys.readouterr().out
    assert main(["replay", "last", "--state-dir", str(tmp_path / "state")]) == FAILED
    assert "play one to its end first" in capsys.readouterr().err
