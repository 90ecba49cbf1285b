"""`heek simulate`: its exit codes, its three outputs, and what it says of a mistake."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from heek.cli import FAILED, MISTAKE, NOT_AS_EXPECTED, OK, main
from tests.cli.commands import STORIES, heek, shell

INVALID = sorted((STORIES / "invalid").glob("*.jsonl"))
GOOD = STORIES / "rules" / "claims_over_two_matches.jsonl"


def test_a_good_story_says_its_events_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output is JSON Lines, numbered from 1; standard error is empty; the code is 0."""
    assert main(["simulate", str(GOOD)]) == OK
    said = capsys.readouterr()
    events = [json.loads(line) for line in said.out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert said.err == ""


@pytest.mark.parametrize("file", INVALID, ids=lambda file: file.stem)
def test_an_invalid_story_is_one_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A story that is not valid ends with 2, and nothing is said but one line that names the place."""
    assert main(["simulate", str(file)]) == MISTAKE
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(rf"{re.escape(str(file))}:\d+: [^\n]+\n", said.err)


def test_a_story_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`-` reads the story from standard input and says the very same as from the file."""
    main(["simulate", str(GOOD)])
    from_file = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GOOD.read_bytes())))
    assert main(["simulate", "-"]) == OK
    assert capsys.readouterr().out == from_file


def test_a_mistake_on_standard_input_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistake in a story from standard input is told with its line."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'\n{"at": 1, "pres": {}}\n')))
    assert main(["simulate", "-"]) == MISTAKE
    assert capsys.readouterr().err.startswith("<stdin>:2: ")


def test_a_skipped_step_is_said_and_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    """What the simulator cannot do is said on standard error, and the code is still 0."""
    assert main(["simulate", str(STORIES / "rules" / "ki_is_skipped.jsonl")]) == OK
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert all(re.search(r"\.jsonl:\d+: skipped: ki: ", line) for line in said)


def test_a_failing_panel_is_said_on_standard_error() -> None:
    """A panel that does not answer is reported beside the events, never among them."""
    run = heek("simulate", str(STORIES / "rules" / "display_fails_and_comes_back.jsonl"))
    assert run.returncode == OK
    assert b"does not answer" in run.stderr
    assert all(line.startswith(b'{"seq":') for line in run.stdout.splitlines())


def test_junit_tells_each_expectation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report is XML: a case for each expectation, a failure for each that failed, with its line."""
    report = tmp_path / "report.xml"
    story = STORIES / "failing" / "an_event_that_must_not_come.jsonl"
    assert main(["simulate", "--junit", str(report), str(story)]) == NOT_AS_EXPECTED
    failures = capsys.readouterr().err.splitlines()
    suite = ElementTree.parse(report).getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "2", "0")
    assert [case.get("name") for case in suite.iter("testcase")] == ["line 3", "line 4", "line 5"]
    assert [failure.get("message") for failure in suite.iter("failure")] == failures


def test_junit_of_a_good_story(tmp_path: Path) -> None:
    """A story whose expectations hold has a report without a failure."""
    report = tmp_path / "report.xml"
    assert main(["simulate", "--junit", str(report), str(GOOD)]) == OK
    assert list(ElementTree.parse(report).getroot().iter("failure")) == []


def test_junit_is_xml_whatever_a_file_is_called(tmp_path: Path) -> None:
    """Control characters and bytes that are no text, which XML cannot hold, do not spoil the report."""
    story = tmp_path / "a\x01<&>\udcff.jsonl"
    story.write_text('{"at": 1, "expect": {"screen": "void"}}\n{"at": 2, "end": true}\n', encoding="utf-8")
    report = tmp_path / "report.xml"
    run = heek("simulate", "--junit", str(report), str(story))
    assert run.returncode == NOT_AS_EXPECTED
    assert run.stderr.count(b"\n") == 1
    suite = ElementTree.parse(report).getroot().find("testsuite")
    assert suite is not None
    assert str(suite.get("name")).endswith("a?<&>?.jsonl")


def test_frames_stand_in_a_new_folder(tmp_path: Path) -> None:
    """`--frames` makes its folder and fills it with pictures."""
    folder = tmp_path / "new" / "frames"
    assert main(["simulate", "--frames", str(folder), str(GOOD)]) == OK
    assert {file.suffix for file in folder.iterdir()} == {".png"}


@pytest.mark.parametrize("option", ["--junit", "--frames"])
def test_a_place_that_cannot_be_written(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A report or a folder that cannot be made is one line that names the option, and 2."""
    blocked = tmp_path / "file"
    blocked.touch()
    assert main(["simulate", option, str(blocked / "there"), str(GOOD)]) == MISTAKE
    assert re.fullmatch(rf"{option} [^\n]+ cannot be [^\n]+\n", capsys.readouterr().err)


def test_a_story_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is not there, a folder, and what is no text are one line each, and 2."""
    binary = tmp_path / "binary.jsonl"
    binary.write_bytes(b'{"at": 1}\n\xff\n')
    for place in (tmp_path / "none.jsonl", tmp_path, binary):
        assert main(["simulate", str(place)]) == MISTAKE
        said = capsys.readouterr()
        assert said.out == ""
        assert re.fullmatch(rf"{re.escape(str(place))}:[^\n]+\n", said.err)


def test_the_seed_is_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    """A seed that is no whole number is refused by name."""
    with pytest.raises(SystemExit) as stopped:
        main(["simulate", "--seed", "x", str(GOOD)])
    assert stopped.value.code == MISTAKE
    assert "--seed" in capsys.readouterr().err


# Outputs that go wrong


def test_a_reader_that_has_read_enough_is_no_failure() -> None:
    """`heek simulate ... | head -1` says its one line and ends without a word."""
    run = shell(
        'python3 -c "print(\'{\\"at\\": 1, \\"press\\": {\\"seat\\": 1, \\"button\\": \\"pen\\"}}\')" | '
        '{ $HEEK simulate -; echo "code $?" >&2; } | head -c 1'
    )
    assert run.stdout == b"{"
    assert run.stderr == b"code 0\n"


def test_a_full_disk_is_one_line() -> None:
    """An output that takes nothing more is one line and 1, no traceback."""
    run = shell("$HEEK simulate rules/claims_award.jsonl > /dev/full")
    assert run.returncode == FAILED
    assert run.stderr == (b"heek: the output cannot be written (No space left on device); make room for it\n")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_outputs_are_borne(closed: str) -> None:
    """A caller that closed our outputs gets the exit code and nothing else."""
    run = shell(f"$HEEK simulate rules/claims_award.jsonl {closed}")
    assert run.returncode == OK
    assert run.stderr == b""


def test_a_closed_standard_input_is_a_mistake() -> None:
    """`-` with nothing to read from is one line."""
    run = shell("$HEEK simulate - <&-")
    assert run.returncode == MISTAKE
    assert run.stderr == b"<stdin>: is closed; name a story file, or send one there\n"


def test_events_are_utf_8_whatever_the_terminal_speaks(tmp_path: Path) -> None:
    """The name of a table comes out as it stands in the story, also where Python would write ASCII."""
    story = tmp_path / "story.jsonl"
    story.write_text(
        '{"story": 1, "table": {"table.name": "Tomahna é 書"}}\n{"at": 1, "end": true}\n', encoding="utf-8"
    )
    run = heek("simulate", str(story), PYTHONIOENCODING="ascii")
    assert run.returncode == OK
    assert json.loads(run.stdout)["name"] == "Tomahna é 書"
