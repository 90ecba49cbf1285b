"""The runner: the same story gives the same bytes, leaves nothing behind, and comes to an end."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image

from heek.clock import MILLISECOND, SECOND
from heek.errors import StoryError
from heek.journal import read_journal
from heek.journal.lock import FolderLock
from heek.simulator.runner import Report, Simulation, simulate
from heek.simulator.story import parse, read
from tests.story_generator import random_story

ROOT = Path(__file__).parent.parent.parent
RULES = ROOT / "tests" / "stories" / "rules"

TWO_SIT = """\
{"at": 1.0, "press": {"seat": 1, "button": "pen"}}
{"at": 1.0, "press": {"seat": 2, "button": "pen"}}
{"at": 1.5, "press": {"seat": 1, "button": "pen"}}
{"at": 1.5, "press": {"seat": 2, "button": "pen"}}
"""


def play(text: str, seed: int = 0) -> tuple[list[dict[str, object]], Report]:
    """The events of a story, and how it went."""
    lines, report = simulate(parse(text, "story"), seed=seed)
    return [json.loads(line) for line in lines], report


def _open_files() -> list[str]:
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(entry.readlink()))
        except OSError:  # the handle of this very look
            continue
    return sorted(found)


# The same bytes


@pytest.mark.parametrize("seed", [0, 3, 11, 42])
def test_a_story_and_a_seed_give_the_same_bytes(seed: int) -> None:
    """Two runs in one process say the very same, with power cuts, stalls and bounce in the story."""
    story = parse(random_story(seed), "story")
    assert simulate(story, seed=seed) == simulate(story, seed=seed)


def test_two_processes_give_the_same_bytes(tmp_path: Path) -> None:
    """Whatever Python hashes by, another process says the very same."""
    story = tmp_path / "story.jsonl"
    story.write_text(random_story(7), encoding="utf-8")
    said = [
        subprocess.run(
            [sys.executable, "-m", "heek", "simulate", "--seed", "5", str(story)],
            env=os.environ | {"PYTHONPATH": str(ROOT / "controller"), "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert said[0].count(b"\n") > 10


def test_another_seed_draws_other_ids_and_changes_nothing_else() -> None:
    """The seed is what the table draws: the incarnation and the matches' ids."""
    story = read(RULES / "power_in_a_throw.jsonl")
    runs = [simulate(story, seed=seed)[0] for seed in (1, 2)]
    ids = re.compile(r'"(?:incarnation|match)":"([0-9a-f-]+)"')
    assert runs[0] != runs[1]
    assert [ids.sub("", line) for line in runs[0]] == [ids.sub("", line) for line in runs[1]]
    drawn = [set(ids.findall("\n".join(run))) for run in runs]
    assert drawn[0].isdisjoint(drawn[1])


def test_every_start_of_the_daemon_is_another_incarnation() -> None:
    """After a power cut the daemon draws a new incarnation, and the numbers of the events go on."""
    events, _ = play('{"at": 1, "power": "cut"}\n{"at": 2, "power": "on"}\n{"at": 3, "end": true}')
    started = [event for event in events if event["event"] == "table_started"]
    assert [event["seq"] for event in started] == [1, 2]
    assert started[0]["incarnation"] != started[1]["incarnation"]
    assert started[0]["boot"] == started[1]["boot"]


def test_the_wall_clock_changes_no_event() -> None:
    """The same story without its jumps of the wall clock says the very same."""
    text = (RULES / "clock_the_wall_clock_jumps.jsonl").read_text(encoding="utf-8")
    calm = "".join(line for line in text.splitlines(keepends=True) if '"wall_clock"' not in line)
    assert calm != text
    assert simulate(parse(text, "story"))[0] == simulate(parse(calm, "story"))[0]


def test_what_a_story_expects_changes_no_event() -> None:
    """Looking at the table leaves it as it is: without its expectations a story says the very same."""
    for name in ("clock_short_stall", "match_6_leaving_while_it_settles", "clock_delivered_out_of_order"):
        text = (RULES / f"{name}.jsonl").read_text(encoding="utf-8")
        blind = "".join(line for line in text.splitlines(keepends=True) if '"expect"' not in line)
        assert simulate(parse(text, "story"))[0] == simulate(parse(blind, "story"))[0]


def test_the_journal_holds_what_was_said(tmp_path: Path) -> None:
    """Over a power cut the journal keeps every line, in order, and is sound."""
    lines, _ = simulate(read(RULES / "power_in_the_reveal.jsonl"), state_dir=tmp_path)
    with read_journal(tmp_path) as journal:
        assert [entry.body for entry in journal.events()] == lines
        assert journal.verify() == []


# Expectations and time


def test_an_expectation_sees_what_is_due_at_its_instant() -> None:
    """An event, a lamp and a screen at the very instant of a press are there: the rules have caught up."""
    text = """\
{"at": 1.0, "expect": {"event": "seat_taken"}, "not": true}
{"at": 1.0, "press": {"seat": 1, "button": "pen"}}
{"at": 1.0, "expect": {"event": "seat_taken", "at": 1.0}}
{"at": 1.0, "expect": {"lamp": {"seat": 1, "pattern": "taken"}}}
{"at": 1.0, "expect": {"screen": "lobby"}}
{"at": 2.0, "end": true}
"""
    _, report = play(text)
    assert [verdict.step.line for verdict in report.verdicts if verdict.failure] == [1]


def test_an_expectation_sees_no_further_than_its_instant() -> None:
    """What a press a millisecond later causes is not there yet, although the rules run behind the clock."""
    text = """\
{"at": 1.0, "expect": {"event": "seat_taken"}, "not": true}
{"at": 1.0, "expect": {"screen": "attract"}}
{"at": 1.001, "press": {"seat": 1, "button": "pen"}}
{"at": 1.001, "expect": {"event": "seat_taken", "at": 1.001}}
{"at": 2.0, "end": true}
"""
    _, report = play(text)
    assert report.failures == ()


def test_edges_in_a_stall_keep_their_stamps() -> None:
    """The program gets to them when the stall is over; their events say when the contacts closed."""
    text = """\
{"at": 0.5, "stall": 3}
{"at": 1.0, "press": {"seat": 1, "button": "pen"}}
{"at": 2.25, "press": {"seat": 2, "button": "pen"}}
{"at": 4.0, "end": true}
"""
    events, _ = play(text)
    assert [(event["event"], event["at"]) for event in events[1:]] == [
        ("seat_taken", 1.0),
        ("seat_taken", 2.25),
    ]


def test_nothing_is_said_in_a_stall() -> None:
    """While the program stands still it says nothing and its clock is not looked at."""
    story = parse(
        '{"at": 0.5, "stall": 3}\n'
        '{"at": 1.0, "press": {"seat": 1, "button": "pen"}}\n{"at": 4.0, "end": true}',
        "story",
    )
    heard: list[int] = []
    simulation = Simulation(story, say=lambda _: heard.append(simulation.now))
    simulation.run()
    assert heard == [0, 3500 * MILLISECOND]


def test_stalls_that_overlap_are_one() -> None:
    """Two stalls that overlap, or touch, make one from the first's start to the last's end."""
    for second in (0.9, 1.1, 1.3):
        text = (
            TWO_SIT + f'{{"at": 2.0, "stall": 0.8}}\n{{"at": {1.9 + second - 0.4}, "stall": 0.8}}\n'
            '{"at": 4.0, "end": true}'
        )
        events, _ = play(text)
        gaps = [event["at"] for event in events if event["event"] == "round_void"]
        assert gaps == [pytest.approx(1.9 + second - 0.4 + 0.8)]


def test_a_stall_inside_another_adds_nothing() -> None:
    """A stall that ends before the one it lies in leaves that one's end where it is."""
    text = TWO_SIT + '{"at": 2, "stall": 2}\n{"at": 2.5, "stall": 0.5}\n{"at": 5, "end": true}'
    events, _ = play(text)
    assert [event["at"] for event in events if event["event"] == "round_void"] == [4.0]


# How a story ends


def test_a_story_ends_where_it_says() -> None:
    """With an end the story stops there, whatever still runs."""
    events, report = play(TWO_SIT + '{"at": 5.0, "end": true}')
    assert report.ended_at == 5 * SECOND + 3 * MILLISECOND
    assert events[-1]["event"] == "round_opened"


def test_a_story_without_an_end_plays_until_nothing_is_left() -> None:
    """Two who sit down and go away: the match is void after a minute, and then nothing is left to happen."""
    events, report = play(TWO_SIT)
    assert [event["event"] for event in events[-3:]] == ["match_void", "seat_left", "seat_left"]
    assert events[-1]["at"] == 61.5
    assert report.ended_at < 62 * SECOND


def test_an_empty_story_ends_at_once() -> None:
    """A table that nobody touches starts, and that is all."""
    events, report = play("")
    assert [event["event"] for event in events] == ["table_started"]
    assert report.ended_at == 0


@pytest.mark.parametrize(
    "closes",
    [
        '{"at": 0, "edge": {"seat": 1, "button": "pen", "closed": true}}',
        '{"at": 1, "edge": {"seat": 1, "button": "pen", "closed": true}}',
    ],
)
def test_a_contact_closed_for_good_does_not_keep_a_story_going(closes: str) -> None:
    """A contact that never opens is stuck at last, and then the story is over."""
    events, report = play(closes)
    assert "contact_stuck" in [event["event"] for event in events]
    assert report.ended_at < 90 * SECOND


def test_a_dead_panel_does_not_keep_a_story_going() -> None:
    """A panel that is tried again and again is nothing that a story waits for."""
    _, report = play('{"at": 1, "display": "fail"}\n{"at": 2, "press": {"seat": 1, "button": "pen"}}')
    assert report.ended_at < 70 * SECOND


def test_a_power_cut_without_an_end_ends_the_story() -> None:
    """The power stays off: nobody is left to do anything."""
    events, report = play(TWO_SIT + '{"at": 2.0, "power": "cut"}')
    assert events[-1]["event"] == "round_opened"
    assert report.ended_at == 2 * SECOND


def test_an_expectation_that_waits_keeps_a_story_going() -> None:
    """A story is not over before its last expectation is judged."""
    _, report = play('{"at": 1, "expect": {"screen": "lobby"}, "within": 30}')
    assert report.failures == ("story:1: at 1 to 31 s: the screen is attract, expected lobby",)
    assert report.ended_at >= 31 * SECOND


def test_lamps_and_screen_are_dark_while_the_power_is_cut() -> None:
    """A dead table lights nothing, and a story may look at it."""
    text = """\
{"at": 1.0, "press": {"seat": 1, "button": "pen"}}
{"at": 2.0, "power": "cut"}
{"at": 2.5, "expect": {"lamp": {"seat": 1, "pattern": "free"}}}
{"at": 2.5, "expect": {"screen": "lobby"}, "not": true}
{"at": 3.0, "end": true}
"""
    assert play(text)[1].failures == ()


def test_what_this_level_cannot_do_is_skipped_and_said() -> None:
    """A step about the KI's link is skipped with a line that names it; the story goes on."""
    _, report = play('{"at": 1, "ki": "down"}\n{"at": 2, "ki": "up"}\n{"at": 3, "end": true}')
    assert report.skipped == (
        "story:1: skipped: ki: this table has no link to a KI",
        "story:2: skipped: ki: this table has no link to a KI",
    )


# What a run leaves behind


def test_a_power_cut_leaves_nothing_open(tmp_path: Path) -> None:
    """After any number of cuts no file is open any more, and the state folder's lock is free."""
    cuts = "".join(
        f'{{"at": {at}, "power": "cut"}}\n{{"at": {at}.5, "power": "on"}}\n' for at in range(2, 12)
    )
    simulate(parse("", "story"))  # what is imported and opened once for all
    before = _open_files()
    simulate(parse(TWO_SIT + cuts + '{"at": 20, "power": "cut"}', "story"), state_dir=tmp_path)
    assert _open_files() == before
    FolderLock(tmp_path).release()


def test_the_lock_is_free_while_the_power_is_cut(tmp_path: Path) -> None:
    """In the middle of a story, too, a dead process holds no lock: another could start there."""
    story = parse('{"at": 1, "power": "cut"}\n{"at": 3, "power": "on"}\n{"at": 4, "end": true}', "story")
    seen: list[int] = []

    def pace(_: float) -> None:
        if simulation.now >= SECOND and simulation.daemon is None:
            FolderLock(tmp_path).release()
            seen.append(simulation.now)

    simulation = Simulation(story, state_dir=tmp_path, pace=pace)
    simulation.run()
    assert seen


def test_a_story_that_fails_leaves_nothing_open(tmp_path: Path) -> None:
    """A refused claim ends the run in the middle, and the journal is closed all the same."""
    before = _open_files()
    with pytest.raises(StoryError):
        simulate(read(RULES.parent / "refused" / "claim_in_a_match.jsonl"), state_dir=tmp_path)
    assert _open_files() == before
    with read_journal(tmp_path) as journal:
        assert journal.verify() == []


def test_without_a_state_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal of a run stands in a folder of its own, which is gone afterwards."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    play(TWO_SIT + '{"at": 3, "end": true}')
    assert list(tmp_path.iterdir()) == []


def test_a_second_run_goes_on_where_the_first_one_ended(tmp_path: Path) -> None:
    """Two stories on one state folder are two starts of one table: the numbers go on."""
    story = parse('{"at": 1, "press": {"seat": 1, "button": "pen"}}\n{"at": 2, "end": true}', "story")
    first, _ = simulate(story, state_dir=tmp_path)
    second, _ = simulate(story, seed=1, state_dir=tmp_path)
    numbers = [json.loads(line)["seq"] for line in (*first, *second)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_frames_are_the_panels_pictures(tmp_path: Path) -> None:
    """Each picture is 128 x 64 in one bit, named in order with its instant and screen, none twice running."""
    story = read(RULES / "clock_all_have_thrown.jsonl")
    simulate(story, frames=tmp_path)
    files = sorted(tmp_path.iterdir())
    names = [re.fullmatch(r"(\d{5})-(\d+\.\d{6})-([a-z_]+)\.png", file.name) for file in files]
    assert all(names)
    assert [int(name[1]) for name in names if name] == list(range(1, len(files) + 1))
    instants = [float(name[2]) for name in names if name]
    assert instants == sorted(instants)
    assert {name[3] for name in names if name} == {"attract", "lobby", "throw", "countdown", "reveal"}
    pictures = []
    for file in files:
        with Image.open(file) as picture:
            assert (picture.size, picture.mode, picture.format) == ((128, 64), "1", "PNG")
            pictures.append(picture.tobytes())
    assert all(before != after for before, after in itertools.pairwise(pictures))


def test_frames_change_no_event(tmp_path: Path) -> None:
    """With pictures kept or not, the table says the very same."""
    story = read(RULES / "clock_all_have_thrown.jsonl")
    assert simulate(story, frames=tmp_path)[0] == simulate(story)[0]


def test_frames_that_cannot_be_written_are_a_mistake(tmp_path: Path) -> None:
    """A folder that goes away gives one line that names the picture, not a traceback."""
    with pytest.raises(StoryError, match=r"^--frames .*/00001-0\.000000-attract\.png: cannot be written"):
        simulate(parse("", "story"), frames=tmp_path / "gone")


def test_an_hour_of_an_empty_table_is_short() -> None:
    """An hour in which nobody comes, the attract screen moving, passes in a few seconds of this machine."""
    began = time.process_time()
    _, report = play('{"at": 3600, "end": true}')
    assert report.ended_at == 3600 * SECOND + 3 * MILLISECOND
    assert time.process_time() - began < 4
