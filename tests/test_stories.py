"""The stories under tests/stories: what they speak of between them, and those that must fail.

That each rule holds is no test here: pytest collects the stories themselves (`heek_stories` in
pyproject.toml), and each is an item of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from heek.cli import MISTAKE, NOT_AS_EXPECTED, main
from heek.simulator.runner import BOOT, simulate
from heek.simulator.steps import EVENT_FIELDS, PATTERNS, SCREENS, Expect
from heek.simulator.story import read
from heek.testing.plugin import listed_stories

STORIES = Path(__file__).parent / "stories"
RULES = sorted((STORIES / "rules").glob("*.jsonl"))
FAILING = sorted((STORIES / "failing").glob("*.jsonl"))
REFUSED = sorted((STORIES / "refused").glob("*.jsonl"))

REASONS = {
    "press_ignored": {
        "guard",
        "late",
        "locked",
        "not_seated",
        "not_in_round",
        "match_closed",
        "chord",
        "noise",
        "flood",
    },
    "seat_left": {"leave", "missed", "idle", "rematch", "operator", "power"},
    "round_void": {"throws", "gap", "power"},
    "match_void": {"idle", "empty", "operator", "power", "sudden_death_limit", "winnerless_limit"},
}
WAYS = {"three", "total", "sudden_death", "walkover"}


def _expectations(files: Sequence[Path] = RULES) -> list[Expect]:
    return [step for file in files for step in read(file).steps if isinstance(step, Expect)]


def _masked(line: str) -> str:
    """An event's line without what is drawn anew for each run."""
    line = re.sub(r'"incarnation":"[0-9a-f]{16}"', '"incarnation":"INCARNATION"', line)
    line = re.sub(r'"match":"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"', '"match":"MATCH"', line)
    return line.replace(BOOT.id, "BOOT")


def test_the_worked_example_gives_exactly_its_events() -> None:
    """The spec's example through bouncing mock pins says what was written by hand, to the last byte."""
    golden = (STORIES / "worked_example.events.jsonl").read_text(encoding="utf-8")
    lines, report = simulate(read(STORIES / "worked_example.jsonl"))
    assert report.failures == ()
    assert [_masked(line) for line in lines] == golden.splitlines()


def test_every_rule_is_played(pytestconfig: pytest.Config) -> None:
    """All stories about rules, and the worked example, are among those that pytest collects as tests."""
    assert {*RULES, STORIES / "worked_example.jsonl"} == listed_stories(pytestconfig)


@pytest.mark.parametrize("file", RULES, ids=lambda file: file.stem)
def test_a_story_says_what_it_is_about(file: Path) -> None:
    """Each story opens with a comment, expects something, and has an end."""
    text = file.read_text(encoding="utf-8")
    assert text.startswith("// ")
    assert _expectations([file])
    assert text.rstrip().endswith('"end": true}')


def test_the_stories_speak_of_every_event_lamp_and_screen() -> None:
    """Between them the stories expect every event there is, every pattern of the lamps and every screen."""
    wanted = [step for step in _expectations() if not step.negated]
    assert {str(step.event["event"]) for step in wanted if step.event} == set(EVENT_FIELDS)
    assert {step.lamp[1] for step in wanted if step.lamp} == set(PATTERNS)
    assert {step.screen for step in wanted if step.screen} == set(SCREENS)


@pytest.mark.parametrize("event", REASONS)
def test_the_stories_give_every_reason(event: str) -> None:
    """For each event with a reason there is a story for each reason the spec lists."""
    wanted = [step.event for step in _expectations() if step.event and not step.negated]
    assert {each.get("reason") for each in wanted if each["event"] == event} - {None} == REASONS[event]


def test_the_stories_win_in_every_way() -> None:
    """A match is won by three, by the total, in sudden death and by walkover."""
    wanted = [step.event for step in _expectations() if step.event and not step.negated]
    assert {each.get("by") for each in wanted if each["event"] == "match_won"} - {None} == WAYS


@pytest.mark.parametrize("file", FAILING, ids=lambda file: file.stem)
def test_a_false_expectation_fails(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A story that expects what does not happen ends with 3 and names each of its failures, in order."""
    monkeypatch.chdir(file.parent)
    assert main(["simulate", file.name]) == NOT_AS_EXPECTED
    said = capsys.readouterr()
    assert said.err == file.with_suffix(".txt").read_text(encoding="utf-8")
    assert '"event":"table_started"' in said.out


@pytest.mark.parametrize("file", REFUSED, ids=lambda file: file.stem)
def test_a_story_is_refused_while_it_plays(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What only the running table can refuse ends the story with 2 and one line with file and line number."""
    monkeypatch.chdir(file.parent)
    assert main(["simulate", file.name]) == MISTAKE
    error = capsys.readouterr().err
    assert error == file.with_suffix(".txt").read_text(encoding="utf-8")
    assert re.fullmatch(rf"{re.escape(file.name)}:\d+: [^\n]+\n", error)
