"""The bench works, and what it compares is what it says; no time is judged here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heek.games.ahyoheek import score_round
from tests.bench import __main__ as bench
from tests.bench import card, rules, virtual
from tests.bench.evening import Evening, hour, matches
from tests.bench.figures import Figure, Spread, number, table


def test_a_quick_run_writes_every_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All parts run, the table and the JSON file name the same figures, and the machine is written down."""
    out = tmp_path / "new" / "bench.json"
    assert bench.main(["--quick", "--out", str(out)]) == 0
    body = json.loads(out.read_text(encoding="utf-8"))
    assert {"commit", "cores", "python", "gpiozero", "load"} <= set(body["machine"])
    assert {
        "edge_to_event",
        "rules_rounds",
        "recorded_presses",
        "replayed_presses",
        "recording_bytes",
        "records_encoded",
        "records_sealed",
        "records_verified",
        "records_exported",
        "hour",
        "thousand_matches",
        "start_to_ready",
        "memory",
        "panel_cpu_ssd1306",
        "panel_bytes_sh1106",
        "panel_hand_over",
        "card_bytes_hour",
        "card_bytes_match",
        "idle",
        "http_records",
        "https_question",
        "serial_backlog",
        "serial_backlog_two",
        "serial_backlog_real",
        "serial_backlog_real_two",
        "serial_backlog_noisy",
        "serial_records",
        "serial_frame_cpu",
    } <= (set(body["figures"]))
    shown = capsys.readouterr().out
    for figure in body["figures"].values():
        assert figure["words"] in shown
        assert 0 < figure["min"] <= figure["median"] <= figure["max"]


def test_the_table_plays_what_the_author_of_a_long_story_counted() -> None:
    """Rounds and results of a story of some minutes, and of whole matches, come out as counted."""
    assert virtual.play(hour(seed=4, seconds=300)) > 0
    assert virtual.play(matches(3, seed=5)) > 0


def test_a_table_that_plays_otherwise_is_noticed() -> None:
    """A story with a round more than its author counted is no figure but an error."""
    told = matches(1, seed=5)
    with pytest.raises(virtual.WrongGameError, match="rounds"):
        virtual.play(Evening(told.text, told.presses, told.rounds - 1, told.won, told.seconds))


def test_the_presses_that_are_timed_play_matches_to_their_end() -> None:
    """The table behind `session_presses` comes to every result that its story has."""
    script = rules._Script(3)
    assert script.play() == script.won > 0
    assert script.record() == script.won
    assert script.replay() == script.won


def test_the_score_by_hand_is_the_score() -> None:
    """What the rules are compared with, every pair by hand, gives the same points and winners."""
    for throws in rules._rounds(300):
        score = score_round(throws)
        assert rules._pair_by_pair(throws) == (score.points, list(score.winners))


@pytest.mark.parametrize(
    ("figure", "ratio", "met"),
    [
        (Figure("a", "a", "s", Spread.of([1, 3, 2]), aim=2), None, True),
        (Figure("a", "a", "s", Spread.of([1, 3, 2]), aim=1.9), None, False),
        (Figure("a", "a", "s", Spread.of([3]), "b", Spread.of([2]), aim=1.5, aim_is_ratio=True), 1.5, True),
        (Figure("a", "a", "s", Spread.of([4]), "b", Spread.of([2]), aim=1.5, aim_is_ratio=True), 2, False),
        (Figure("a", "a", "s", Spread.of([4]), "b", Spread.of([3600]), inverse=True), 900, None),
        (Figure("a", "a", "s", Spread.of([4]), "b", Spread.of([0]), aim=1, aim_is_ratio=True), None, None),
    ],
)
def test_an_aim_is_judged_by_the_median_or_by_the_ratio(
    figure: Figure, ratio: float | None, met: bool | None
) -> None:
    """A ratio is that of the medians, turned round where the figure says so; an aim holds at its bound."""
    assert figure.ratio == ratio
    assert figure.met is met


def test_the_table_marks_what_missed_its_aim() -> None:
    """A missed aim stands out, a met one says yes, and the columns are lined up."""
    lines = table(
        [
            Figure("a", "quick", "s", Spread.of([1.0]), aim=2.0),
            Figure("b", "much too slow", "s", Spread.of([1234.5, 5000, 9999]), aim=2.0, note="as ever"),
        ]
    ).splitlines()
    assert lines[2].endswith("yes")
    assert lines[3].endswith("NO")
    assert lines[2].index("<= 2") == lines[3].index("<= 2")
    assert "5,000 (1,234..9,999) s" in lines[3]
    assert lines[-1] == "much too slow: as ever"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (12345.6, "12,346"), (123.4, "123"), (12.345, "12.35"), (1.5, "1.5"), (0.01234, "0.0123")],
)
def test_numbers_have_the_digits_that_matter(value: float, text: str) -> None:
    """Large numbers lose their fraction, small ones keep three digits."""
    assert number(value) == text


@pytest.mark.fault("F056")
def test_what_goes_to_the_card_is_counted(tmp_path: Path) -> None:
    """Bytes and syncs of the folder's files alone, from strace's lines; failed calls count for nothing."""
    lines = [
        f'7 pwrite64(5<{tmp_path}/journal.sqlite3-wal>, "x"..., 4096, 32) = 4096\n',
        f'7 write(1<{tmp_path}/journal.kept>, "A journal", 9) = 9\n',
        f"7 fdatasync(5<{tmp_path}/journal.sqlite3-wal>) = 0\n",
        '7 write(2</dev/pts/0>, "said", 4) = 4\n',
        f'7 pwrite64(5<{tmp_path}/journal.sqlite3-wal>, "x"..., 4096, 32) = -1 ENOSPC (No space left)\n',
        "7 +++ exited with 0 +++\n",
    ]
    assert card.counted(lines, tmp_path) == {"bytes": 4105, "syncs": 1}
