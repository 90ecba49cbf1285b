"""Matches that the real daemon kept: replayed to the journal's bytes, here and elsewhere, or a clear no."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heek.recorded_table
from heek.errors import RecordingError
from heek.journal import read_journal
from heek.journal.packing import whole_line
from heek.journal.schema import FILE_NAME
from heek.journal.store import Journal
from heek.kept_matches import (
    KeptMatch,
    check_match,
    export_match,
    find_match,
    import_match,
    kept_matches,
    replay_match,
)
from heek.simulator.runner import simulate
from heek.simulator.story import parse
from tests.story_generator import random_story

STORY = Path(__file__).parent / "photo_finish" / "round.jsonl"
CONTROLLER = Path(__file__).parents[1] / "controller"


def play(story: str, folder: Path, seed: int = 1) -> list[str]:
    lines, _ = simulate(parse(story, "story"), seed=seed, state_dir=folder)
    return lines


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with one match in it."""
    folder = tmp_path_factory.mktemp("played")
    play(STORY.read_text(), folder)
    return folder


def find(folder: Path, words: str = "last") -> KeptMatch:
    with read_journal(folder) as journal:
        return find_match(journal, words)


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_random_stories_replay_to_the_journals_bytes(first: int, tmp_path: Path) -> None:
    """Every match of a hundred random stories, over stalls, late edges and power cuts, comes out the same.

    So it does from the file that it is exported into.
    """
    compared = 0
    for seed in range(first, first + 20):
        folder = tmp_path / str(seed)
        play(random_story(seed), folder, seed)
        with read_journal(folder) as journal:
            for match in kept_matches(journal):
                kept = find_match(journal, match.match)
                export_match(kept, folder / match.match)
                assert import_match(folder / match.match) == kept
                verdict = check_match(kept)
                assert verdict.difference is None, (seed, match, verdict.difference)
                compared += verdict.of_match
    assert compared > 300


def test_matches_after_a_pause_are_recordings_of_their_own(tmp_path: Path) -> None:
    """Half a minute after the last press a new recording begins: an old match is no burden to a new one."""
    lines = STORY.read_text().splitlines()
    steps = [json.loads(line) for line in lines[1:-1] if not line.startswith("//")]
    for step in list(steps):
        later = json.loads(json.dumps(step))
        later["at"] += 100
        if "delivered" in later:
            later["delivered"] += 100
        steps.append(later)
    steps.append({"at": 140, "end": True})
    play("\n".join([lines[0], *map(json.dumps, steps)]), tmp_path)
    with read_journal(tmp_path) as journal:
        newest, oldest = (find_match(journal, each.match) for each in kept_matches(journal))
    assert oldest.lines_from == 1
    assert newest.lines_from > oldest.last_seq
    assert [check_match(each).same for each in (newest, oldest)] == [True, True]
    assert len(newest.parts[0].beginning or b"") < 2500


def test_a_match_over_a_power_cut_uses_both_recordings(tmp_path: Path) -> None:
    """What the cut broke off is counted as not kept; everything before and after it is replayed."""
    presses = [(1, 1, "pen"), (1.1, 2, "pen"), (2, 1, "pen"), (2.1, 2, "pen")]  # sit down, ready
    presses += [(3, 1, "pen"), (3.2, 2, "pen"), (8, 1, "beetle")]  # nobody wins; broken off
    presses += [(9, 1, "pen"), (9.2, 2, "pen"), (11, 1, "pen"), (11.3, 2, "page")]  # here again; seat 1 wins
    steps: list[dict[str, Any]] = [
        {"at": at, "press": {"seat": seat, "button": button}} for at, seat, button in presses
    ]
    steps += [{"at": 8.5, "power": "cut"}, {"at": 8.6, "power": "on"}, {"at": 15, "end": True}]
    steps.sort(key=lambda step: float(step["at"]))
    header = {"story": 1, "table": {"ahyoheek.target": 1}}
    play("\n".join(map(json.dumps, [header, *steps])), tmp_path)
    kept = find(tmp_path)
    verdict = check_match(kept)
    assert len(verdict.replays) == 2
    assert verdict.same
    events = [json.loads(line)["event"] for line in kept.lines]
    assert events[-1] == "match_won"
    # The second round, which the cut broke off, up to the new start.
    assert verdict.not_kept == 3
    assert verdict.of_match + verdict.not_kept == kept.last_seq - kept.first_seq + 1


def test_a_changed_event_is_found(played: Path, tmp_path: Path) -> None:
    """A journal in which somebody turned the winner round does not pass."""
    copy = tmp_path / FILE_NAME
    copy.write_bytes((played / FILE_NAME).read_bytes())
    db = sqlite3.connect(copy, isolation_level=None)
    row = db.execute("SELECT seq, at_ns, event, body FROM events WHERE event = 'match_won'").fetchone()
    seq, body = row[0], whole_line(*row)
    db.execute("UPDATE events SET body = ? WHERE seq = ?", (body.replace('"seat":1', '"seat":2'), seq))
    db.close()
    difference = check_match(find(copy)).difference
    assert difference is not None
    assert (difference.seq, difference.journal == body, difference.replayed == body) == (seq, False, True)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("DELETE FROM recording_parts WHERE after_seq = recording - 1", "not kept any more"),
        ("DELETE FROM recordings", "not kept any more|no match is kept"),
        ("UPDATE recording_parts SET inputs = substr(inputs, 1, 20)", "is damaged"),
        ("UPDATE recordings SET beginning = 'x'", "is damaged"),
        ("DELETE FROM recording_parts", "not kept any more|no match is kept"),
    ],
)
def test_what_is_missing_or_damaged_is_said(played: Path, tmp_path: Path, damage: str, words: str) -> None:
    """One clear line for a lost part, a lost beginning, cut bytes and a recording that was given up."""
    copy = tmp_path / FILE_NAME
    copy.write_bytes((played / FILE_NAME).read_bytes())
    match = find(played).match
    db = sqlite3.connect(copy, isolation_level=None)
    db.execute(damage)
    db.close()
    for named in ("last", match):
        with pytest.raises(RecordingError, match=words) as refused:
            check_match(find(copy, named))
        assert "\n" not in str(refused.value)


def test_a_part_of_another_type_is_damaged(played: Path, tmp_path: Path) -> None:
    """SQLite keeps text where bytes belong: that is told as any other damage is."""
    copy = tmp_path / FILE_NAME
    copy.write_bytes((played / FILE_NAME).read_bytes())
    db = sqlite3.connect(copy, isolation_level=None)
    db.execute("UPDATE recording_parts SET inputs = 'text'")
    db.close()
    with pytest.raises(RecordingError, match="its part 1 is cut, changed or missing"):
        check_match(find(tmp_path))


def test_a_match_is_named_by_a_unique_beginning(played: Path) -> None:
    """By its whole number, the beginning of it in either case, or `last`; anything else is a clear no."""
    match = find(played).match
    assert find(played, match[:6].upper()).match == match
    with pytest.raises(RecordingError, match="there is no match 'nobody'"):
        find(played, "nobody")


def test_a_beginning_of_several_is_refused(tmp_path: Path) -> None:
    """Two matches begin alike: both are named, none is chosen."""
    play(random_story(0), tmp_path, 0)
    with read_journal(tmp_path) as journal:
        assert len(kept_matches(journal)) > 1
        with pytest.raises(RecordingError, match=r"matches begin with ''.*write more of it"):
            find_match(journal, "")


def test_a_running_match_says_so(tmp_path: Path) -> None:
    """A match that is not over is not told, not even to who asks by its number."""
    story = "\n".join([*STORY.read_text().splitlines()[:12], '{"at": 9.9, "end": true}'])
    lines = play(story, tmp_path)
    match = next(json.loads(line)["match"] for line in lines if '"match_started"' in line)
    with pytest.raises(RecordingError, match="is not over"):
        find(tmp_path, match)


def test_nothing_of_a_running_round_is_on_the_disk(tmp_path: Path) -> None:
    """The journal's files in mid-round are the same whichever buttons are pressed in it."""
    opening = STORY.read_text().splitlines()[:9]

    def files(buttons: tuple[str, str], folder: Path) -> dict[str, list[Any]]:
        presses = [
            json.dumps({"at": 4.0 + seat, "press": {"seat": seat, "button": button}})
            for seat, button in enumerate(buttons, 1)
        ]
        play("\n".join([*opening, *presses, '{"at": 6.5, "end": true}']), folder)
        db = sqlite3.connect(folder / FILE_NAME)
        return {
            table: db.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
            for table in ("events", "recordings", "recording_parts")
        }

    one, other = files(("pen", "page"), tmp_path / "one"), files(("beetle", "pen"), tmp_path / "other")
    assert "throw_locked" in str(one["events"])
    assert one == other
    assert one["recording_parts"] == []


# Elsewhere


def test_another_computer_replays_an_exported_match(played: Path, tmp_path: Path) -> None:
    """One file, another process, another folder, no journal: the same verdict, the same events."""
    file = tmp_path / "match.heek"
    kept = find(played)
    assert export_match(kept, file) == file.stat().st_size
    assert import_match(file) == kept
    done = subprocess.run(
        [sys.executable, "-m", "heek", "replay", "--events", str(file)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(CONTROLLER), "HOME": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in kept.lines if kept.first_seq <= json.loads(line)["seq"] <= kept.last_seq]
    assert done.stdout.decode().splitlines() == lines
    assert [each.name for each in tmp_path.iterdir()] == ["match.heek"]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_file_that_was_cut_or_changed_is_refused(
    played: Path, data: st.DataObject, tmp_path_factory: Any
) -> None:
    """Whatever happened to a file on the way: one clear error, or the very match."""
    kept = find(played)
    folder = tmp_path_factory.mktemp("file")
    file = folder / "match"
    export_match(kept, file)
    text = bytearray(file.read_bytes())
    place = data.draw(st.integers(0, len(text) - 1))
    if data.draw(st.booleans()):
        text[place] = data.draw(st.integers(0, 255))
    else:
        del text[place:]
    file.write_bytes(text)
    try:
        again = import_match(file)
    except RecordingError as error:
        assert str(file) in str(error)  # noqa: PT017 (it need not be refused)
    else:
        assert again == kept


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "no match that heek replay --export wrote"),
        (b"[1,2]", "no match that heek replay --export wrote"),
        (b'{"kind":"heek match","version":9,"crc":0,"match":{}}', r"another version of heek \(layout 9"),
    ],
)
def test_a_file_that_is_something_else_is_refused(tmp_path: Path, text: bytes, words: str) -> None:
    """An empty file, other JSON, a later layout."""
    file = tmp_path / "x.json"
    file.write_bytes(text)
    with pytest.raises(RecordingError, match=words):
        import_match(file)


@pytest.mark.parametrize(
    "change",
    [
        lambda _kept: {"lines": []},
        lambda kept: {"lines": kept.lines[: kept.last_seq - kept.lines_from]},
        lambda kept: {"lines": kept.lines[1:]},
        lambda kept: {"lines": kept.lines[1:], "lines_from": kept.lines_from + 1},
        lambda _kept: {"lines_from": -1},
        lambda _kept: {"first_seq": 10**30},
        lambda kept: {"first_seq": kept.first_seq + 1},
        lambda kept: {"first_seq": kept.last_seq},
        lambda kept: {"last_seq": kept.last_seq - 1},
        lambda _kept: {"last_seq": 10**30},
        lambda _kept: {"match": "another"},
        lambda _kept: {"parts": []},
        lambda kept: {"parts": [replace(part, recording=10**30) for part in kept.parts]},
    ],
)
def test_a_file_whose_bounds_do_not_fit_is_refused(
    played: Path, tmp_path: Path, change: Callable[[KeptMatch], dict[str, Any]]
) -> None:
    """With a right checksum, but of less than the match, or of numbers beyond it: no verdict comes of it."""
    kept = find(played)
    file = tmp_path / "x.json"
    export_match(msgspec.structs.replace(kept, **change(kept)), file)
    with pytest.raises(RecordingError, match=r"x\.json: is no match that heek exports"):
        import_match(file)


def test_a_made_up_match_is_no_proof(played: Path) -> None:
    """Events that were changed together with the file's own checksum still do not come of the edges."""
    kept = find(played)
    lines = [line.replace('"winners":[1]', '"winners":[2]') for line in kept.lines]
    assert lines != kept.lines
    changed = msgspec.structs.replace(kept, lines=lines)
    assert check_match(changed).difference is not None
    assert check_match(kept).same
    assert len(replay_match(kept)) == 1


def test_too_much_for_one_recording_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A match that outgrew its recording names the bound; the table played on as ever."""
    monkeypatch.setattr(heek.recorded_table, "MOST_ITEMS", 20)
    lines = play(STORY.read_text(), tmp_path)
    assert '"match_won"' in "".join(lines)
    with pytest.raises(RecordingError, match=r"is kept up to event \d+ alone: more was pressed"):
        check_match(find(tmp_path))


def test_a_disk_that_is_full_for_a_while_costs_no_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table plays on; what it could not write comes later with its parts, and the match replays."""
    calls = 0
    write = Journal._write

    def filling(journal: Journal, made: Any, records: Any) -> None:
        nonlocal calls
        calls += 1
        if 12 <= calls <= 20:
            raise sqlite3.OperationalError("database or disk is full")
        write(journal, made, records)

    monkeypatch.setattr(Journal, "_write", filling)
    lines = play(STORY.read_text(), tmp_path)
    assert calls > 20
    kept = find(tmp_path)
    assert kept.lines == lines[: len(kept.lines)]
    assert check_match(kept).same


def test_a_part_that_was_lost_in_the_middle_is_named(tmp_path: Path) -> None:
    """What the disk did not take is a hole from a known event on, not rubbish."""
    demo = CONTROLLER / "heek" / "simulator" / "demo" / "five_seats.jsonl"
    play(demo.read_text(), tmp_path)
    kept = find(tmp_path)
    first, lost, *rest = kept.parts
    with pytest.raises(RecordingError, match=f"from event {first.last_seq + 1} on was not saved"):
        check_match(msgspec.structs.replace(kept, parts=[first, *rest]))
    assert lost.after_seq == first.last_seq


@pytest.mark.parametrize("edges", range(395, 399))
def test_a_contact_that_has_healed_counts_again_in_the_replay(tmp_path: Path, edges: int) -> None:
    """A line swings 30 times a second across a reveal and heals in the next round; then it throws."""
    steps: list[dict[str, Any]] = []
    for at, seat in ((1.0, 1), (1.1, 2), (1.2, 3), (2.0, 1), (2.1, 2), (2.2, 3)):
        steps.append({"at": at, "press": {"seat": seat, "button": "pen"}})
    for number in range(edges):
        contact = {"seat": 1, "button": "pen", "closed": number % 2 == 0}
        steps.append({"at": round(3.0 + 0.0165 * number, 4), "edge": contact})
    if edges % 2:
        steps.append({"at": 9.6, "edge": {"seat": 1, "button": "pen", "closed": False}})
    for at, seat, button in (
        *((4.6, 2, "page"), (4.7, 3, "page"), (11.0, 1, "page")),
        *((15.5, 1, "pen"), (16.5, 2, "page"), (16.6, 3, "page")),
    ):
        steps.append({"at": at, "press": {"seat": seat, "button": button}})
    steps.append({"at": 60, "end": True})
    steps.sort(key=lambda step: step["at"])
    header = {"story": 1, "table": {"ahyoheek.target": 1}}
    play("\n".join(map(json.dumps, [header, *steps])), tmp_path)
    with read_journal(tmp_path) as journal:
        (kept,) = (find_match(journal, each.match) for each in kept_matches(journal))
        assert any("contact_healed" in entry.event for entry in journal.events())
    assert check_match(kept).same
