"""`heek doctor`: a line each, a verdict in the exit code, and JSON in a stable form."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from heek.cli import FAILED, OK, journal_place, main
from heek.doctor.findings import Finding, Mark, document, text_lines, verdict
from heek.doctor.machine import callback_lateness
from heek.journal.lock import FolderLock
from tests.cli.commands import shell

FINDINGS = [
    Finding("pins", "chip", Mark.OK, "gpiochip0"),
    Finding("system", "clock", Mark.WARNING, "told by nobody", "wait"),
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "table.toml"
    file.write_text(
        f'[table]\nstate_dir = "{tmp_path}"\n[stations]\nbackend = "mock"\n[web]\nport = 0\n',
        encoding="utf-8",
    )
    return file


def test_a_simulated_table_is_no_failure(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Here, with mock pins: each line begins with its mark, warnings alone are 0, the last line counts."""
    assert main(["doctor", "--config", str(table)]) == OK
    *lines, last = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} <= {"ok", "warning", "skipped"}
    assert any(f"{table}: no mistake; seats 1, 2, 3, 4, 5" in line for line in lines)
    assert last.startswith(f"{len(lines)} looked at: ")


def test_a_wrong_configuration_is_found(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Mistakes are findings with file and line, and the code is 1, not a mistake of the call."""
    table.write_text(table.read_text() + "nonsense = 1\n")
    assert main(["doctor", "--config", str(table), "--json"]) == FAILED
    said = json.loads(capsys.readouterr().out)
    (mistake,) = [each for each in said["findings"] if each["what"].startswith("configuration")]
    assert mistake["mark"] == "wrong"
    assert mistake["found"].startswith(f"{table}:7: ")


@pytest.mark.parametrize("mistakes", [1, 90])
def test_a_reader_that_has_read_enough_changes_no_verdict(table: Path, mistakes: int) -> None:
    """Output that nobody reads, in one piece or in several: what is wrong is wrong all the same."""
    table.write_text(table.read_text() + "".join(f"nonsense_{number} = 1\n" for number in range(mistakes)))
    run = shell(f'{{ $HEEK doctor --config {table}; echo "code $?" >&2; }} | true')
    assert run.stderr == b"code 1\n"


def test_without_a_configuration_the_standard_table_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No file named and none in the unit's place: a warning says so; with one there, that is taken."""
    monkeypatch.setattr(journal_place, "INSTALLED", tmp_path / "table.toml")
    main(["doctor"])
    assert "warning  table: configuration" in capsys.readouterr().out
    (tmp_path / "table.toml").write_text('[stations]\nbackend = "mock"\n')
    main(["doctor"])
    first = capsys.readouterr().out.splitlines()[0]
    assert first.split()[:4] == ["ok", "table:", "configuration", f"{tmp_path}/table.toml:"]


def test_the_running_table_is_seen(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A process that holds the state folder is named."""
    lock = FolderLock(table.parent)
    main(["doctor", "--config", str(table), "--json"])
    lock.release()
    said = json.loads(capsys.readouterr().out)
    assert [each["what"] for each in said["findings"]].count("running") == 1


def test_a_folder_that_this_user_may_not_look_into(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Folder and journal are each told as a finding, with whom to be."""
    closed = table.parent / "closed"
    table.write_text(table.read_text().replace(f'"{table.parent}"', f'"{closed}/state"'))
    look = Path.stat

    def refused(self: Path, **more: bool) -> os.stat_result:
        # As root, as whom tests may run, every folder can be looked into.
        if closed in self.parents:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))
        return look(self, **more)

    monkeypatch.setattr(Path, "stat", refused)
    assert main(["doctor", "--config", str(table)]) == FAILED
    said = capsys.readouterr().out
    assert f"{closed}/state may not be written by this user; run this as the table's user" in said
    assert f"{closed}/state: cannot be read (Permission denied); run as the user who" in said


def test_the_form_for_programs() -> None:
    """The documented form, key by key."""
    assert document(FINDINGS) == {
        "form": 1,
        "verdict": "warning",
        "findings": [
            {"area": "pins", "what": "chip", "mark": "ok", "found": "gpiochip0", "remedy": ""},
            {
                "area": "system",
                "what": "clock",
                "mark": "warning",
                "found": "told by nobody",
                "remedy": "wait",
            },
        ],
    }


def test_the_form_for_people() -> None:
    """Marks stand in one column, the remedy behind a semicolon."""
    assert text_lines(FINDINGS) == [
        "ok       pins: chip     gpiochip0",
        "warning  system: clock  told by nobody; wait",
        "2 looked at: 1 ok, 1 warning, 0 wrong, 0 skipped",
    ]


@pytest.mark.parametrize(
    ("marks", "worst"),
    [
        ([], Mark.OK),
        ([Mark.SKIPPED], Mark.OK),
        ([Mark.WARNING, Mark.OK], Mark.WARNING),
        ([Mark.WARNING, Mark.WRONG], Mark.WRONG),
    ],
)
def test_the_verdict_is_the_worst(marks: list[Mark], worst: Mark) -> None:
    """What was skipped counts as fine; one that is wrong makes the whole wrong."""
    assert verdict([Finding("a", str(n), mark, "") for n, mark in enumerate(marks)]) is worst


def test_lateness_is_measured_on_this_machine() -> None:
    """Each wake-up gives a span that is never negative, and all come back."""
    late = callback_lateness(20)
    assert len(late) == 20
    assert min(late) >= 0
