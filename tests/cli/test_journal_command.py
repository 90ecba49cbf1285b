"""`heek journal` on what a simulated table has kept: sound, in use, damaged, and not there."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from heek.cli import FAILED, MISTAKE, OK, main
from heek.simulator.runner import simulate
from heek.simulator.story import read
from tests.cli.commands import ROOT, STORIES, environment, heek, shell

FILE = "journal.sqlite3"

HOLDER = """\
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from heek.clock import RealClock
from heek.journal import JournalWriter
writer = JournalWriter(Path(sys.argv[1]), ThreadPoolExecutor(1), RealClock())
writer.ask(lambda journal: journal.last_seq()).result()
print("holds", flush=True)
sys.stdin.read()
writer.close()
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The state folder that two matches left, and the lines of their events."""
    folder = tmp_path_factory.mktemp("state")
    lines, _ = simulate(read(STORIES / "rules" / "claims_over_two_matches.jsonl"), state_dir=folder)
    return folder, lines


def test_show_tells_every_event(played: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """Each event is one line for people, with its number and instant."""
    folder, lines = played
    assert main(["journal", "show", "--state-dir", str(folder)]) == OK
    said = capsys.readouterr().out.splitlines()
    assert [int(line.split()[0]) for line in said] == list(range(1, len(lines) + 1))
    assert said[0].endswith("The table starts: Table 1")
    assert "Seat 1 wins the match" in "\n".join(said)


def test_show_json_is_what_was_said(
    played: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """With --json the lines are those of the table, byte for byte."""
    folder, lines = played
    assert main(["journal", "show", "--json", "--state-dir", str(folder)]) == OK
    assert capsys.readouterr().out.splitlines() == lines


def test_show_a_part(played: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """--after and --limit take a part out; a limit of 0 is nothing."""
    folder, lines = played
    where = ["--json", "--state-dir", str(folder)]
    assert main(["journal", "show", "--after", "3", "--limit", "2", *where]) == OK
    assert capsys.readouterr().out.splitlines() == lines[3:5]
    assert main(["journal", "show", "--after", str(2**63 - 1), *where]) == OK
    assert main(["journal", "show", "--limit", "0", *where]) == OK
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("option", ["--after", "--limit"])
@pytest.mark.parametrize("number", ["x", "-1", "1.5", "99999999999999999999", "٣"])
def test_a_number_that_is_none(
    option: str, number: str, played: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """What is no count is refused by the option's name, however large."""
    with pytest.raises(SystemExit) as stopped:
        main(["journal", "show", f"{option}={number}", "--state-dir", str(played[0])])
    assert stopped.value.code == MISTAKE
    assert f"argument {option}:" in capsys.readouterr().err


def test_show_results(played: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """--results gives the two matches' results, each once; a limit holds for them, too."""
    folder, _ = played
    assert main(["journal", "show", "--results", "--state-dir", str(folder)]) == OK
    results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [result["winner"] for result in results] == [1, 2]
    assert main(["journal", "show", "--results", "--limit", "1", "--state-dir", str(folder)]) == OK
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_verify_a_sound_journal(played: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """A sound journal is called so, with its counts."""
    folder, lines = played
    assert main(["journal", "verify", "--state-dir", str(folder)]) == OK
    assert (
        capsys.readouterr().out == f"{folder / FILE}: sound; {len(lines)} events, 2 results wait for the KI\n"
    )


def test_the_configuration_names_the_folder(
    played: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--config looks where that table keeps its journal; both ways at once are a mistake."""
    table = tmp_path / "table.toml"
    table.write_text(f'[table]\nstate_dir = "{played[0]}"\n[stations]\nbackend = "mock"\n', encoding="utf-8")
    assert main(["journal", "verify", "--config", str(table)]) == OK
    assert "sound" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        main(["journal", "verify", "--config", str(table), "--state-dir", str(tmp_path)])
    assert stopped.value.code == MISTAKE


def test_while_another_process_holds_the_lock(
    played: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Looking at a journal needs no lock: beside a running table it is shown and verified."""
    folder = tmp_path / "state"
    shutil.copytree(played[0], folder)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"holds\n"
            assert main(["journal", "show", "--json", "--state-dir", str(folder)]) == OK
            assert capsys.readouterr().out.splitlines() == played[1]
            assert main(["journal", "verify", "--state-dir", str(folder)]) == OK
            assert "sound" in capsys.readouterr().out
        finally:
            holder.communicate()
    assert holder.returncode == 0


def test_verify_finds_a_missing_event(
    played: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A journal from which an event was taken has a fault that names its number, and the code is 1."""
    shutil.copy(played[0] / FILE, tmp_path)
    with sqlite3.connect(tmp_path / FILE) as db:
        db.execute("DELETE FROM events WHERE seq = 5")
    db.close()
    assert main(["journal", "verify", "--state-dir", str(tmp_path)]) == FAILED
    assert capsys.readouterr().out == "event 6: comes where 5 should; numbers go up by one from 1\n"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            "UPDATE recording_parts SET inputs = substr(inputs, 1, 40)",
            "its part 1 is cut, changed or missing",
        ),
        ("UPDATE recording_parts SET inputs = 'text'", "its part 1 is cut, changed or missing"),
        ("UPDATE recordings SET beginning = x'00'", "its beginning is cut, changed or missing"),
    ],
)
def test_verify_finds_a_damaged_recording(
    damage: str,
    words: str,
    played: tuple[Path, list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What could not be replayed any more is a fault, though every event is there."""
    shutil.copy(played[0] / FILE, tmp_path)
    with sqlite3.connect(tmp_path / FILE) as db:
        db.execute(damage)
    db.close()
    assert main(["journal", "verify", "--state-dir", str(tmp_path)]) == FAILED
    assert capsys.readouterr().out == f"recording from event 1 on: is damaged: {words}\n"


@pytest.mark.parametrize("lost", [0, 1])
def test_a_part_that_was_not_saved_is_no_fault(
    lost: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A disk that was full for a while leaves a hole, which the journal is no less sound for."""
    demo = ROOT / "controller" / "heek" / "simulator" / "demo" / "five_seats.jsonl"
    simulate(read(demo), state_dir=tmp_path)
    with sqlite3.connect(tmp_path / FILE) as db:
        parts = [seq for (seq,) in db.execute("SELECT last_seq FROM recording_parts ORDER BY 1")]
        assert len(parts) > 2
        db.execute("DELETE FROM recording_parts WHERE last_seq = ?", (parts[lost],))
    db.close()
    assert main(["journal", "verify", "--state-dir", str(tmp_path)]) == OK
    assert "sound" in capsys.readouterr().out


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9])
def test_a_damaged_copy_is_said_and_no_traceback(
    share: float, played: tuple[Path, list[str]], tmp_path: Path
) -> None:
    """Wherever rubbish stands in the file: 1, a line that says so, and never a traceback."""
    data = bytearray((played[0] / FILE).read_bytes())
    start = int(len(data) * share) // 4096 * 4096
    data[start : start + 4096] = b"\xa5" * min(4096, len(data) - start)
    (tmp_path / FILE).write_bytes(data)
    run = heek("journal", "verify", "--state-dir", str(tmp_path))
    assert run.returncode == FAILED
    assert run.stdout + run.stderr
    assert b"Traceback" not in run.stderr
    assert b"Traceback" not in heek("journal", "show", "--state-dir", str(tmp_path)).stderr


def test_a_cut_off_copy(
    played: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half a file, an empty one, and one that is something else are each said, with 1."""
    whole = (played[0] / FILE).read_bytes()
    for data in (whole[: len(whole) // 2], b"", b"not a journal\n" * 500):
        (tmp_path / FILE).write_bytes(data)
        assert main(["journal", "verify", "--state-dir", str(tmp_path)]) == FAILED
        said = capsys.readouterr()
        assert said.out + said.err


@pytest.mark.parametrize("action", ["show", "verify"])
def test_no_journal(action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder without a journal stays as it is, and one line says what is missing."""
    assert main(["journal", action, "--state-dir", str(tmp_path)]) == FAILED
    assert capsys.readouterr().err.startswith(f"heek: {tmp_path / FILE}: there is no journal")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_the_journals_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is called what it is: the disk is not at fault."""
    (tmp_path / FILE).mkdir()
    assert main(["journal", "verify", "--state-dir", str(tmp_path)]) == FAILED
    assert capsys.readouterr().err == (
        f"heek: {tmp_path / FILE}: is a folder, so it is no journal; move it aside\n"
    )


def test_looking_changes_nothing(played: tuple[Path, list[str]]) -> None:
    """After show and verify the folder holds the same files with the same bytes."""
    folder, _ = played
    before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()}
    main(["journal", "show", "--state-dir", str(folder)])
    main(["journal", "verify", "--state-dir", str(folder)])
    assert {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()} == before


def test_a_reader_that_has_read_enough(played: tuple[Path, list[str]]) -> None:
    """`heek journal show | head -1` is no failure."""
    run = shell(f'{{ $HEEK journal show --state-dir {played[0]}; echo "code $?" >&2; }} | head -1')
    assert run.stdout.count(b"\n") == 1
    assert run.stderr == b"code 0\n"
