"""What the second opinion says of recordings: nothing of a fair table, and what is wrong of others."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from heek.recording import Recording
from heek.session.play import Play
from heek.simulator.runner import simulate
from heek.simulator.story import parse
from tests.close_calls import CloseCalls
from tests.second_opinion.recordings import judge, kept

SEEDS = range(12)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def recorded(seed: int, folder: Path) -> tuple[Recording, list[str], Mapping[str, object]]:
    """A story around the close, edges late and in every order, as the mock table recorded it."""
    story = CloseCalls(seed)
    simulate(parse(story.text(), f"seed {seed}"), state_dir=folder)
    recordings = kept(folder)
    assert len(recordings) == 1
    return *recordings[0], story.table


def test_a_fair_table_has_no_faults(tmp_path: Path) -> None:
    """Every round, every ignored press that the order of delivery leaves no doubt of, every late delivery."""
    proved: Counter[str] = Counter()
    for seed in SEEDS:
        found = judge(*recorded(seed, tmp_path / str(seed)))
        assert found.faults == (), f"seed {seed}"
        proved += found.proved
    for what in ("rounds", "chord", "late", "late_delivery", "edges that overtook another"):
        assert proved[what] > 0, f"an empty exercise: no {what}"


@pytest.mark.parametrize(
    "other", [{"ahyoheek.cycle": "pen-beetle-page"}, {"stations.chord_s": 0.006}, {"ahyoheek.guard_s": 0.5}]
)
def test_a_table_with_other_rules_is_found_out(other: dict[str, object], tmp_path: Path) -> None:
    """Winners, chords and guard are really compared."""
    recording, lines, table = recorded(0, tmp_path)
    assert any("second opinion" in fault for fault in judge(recording, lines, {**table, **other}).faults)


def test_a_journal_that_says_something_else_is_found_out(tmp_path: Path) -> None:
    """A recording that does not give the journal's events again proves nothing of it."""
    recording, lines, table = recorded(0, tmp_path)
    lines[3] = lines[3].replace('"seat":', '"seat":1')
    assert "the replay does not give the journal's events again" in judge(recording, lines, table).faults


def test_late_presses_that_are_not_told_are_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that takes a press which came too late for one of the next round, or drops it, is wrong."""
    monkeypatch.setattr(Play, "late_delivery", lambda *_: False)
    assert any(judge(*recorded(seed, tmp_path / str(seed))).faults for seed in SEEDS)
