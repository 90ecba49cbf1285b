"""A share of the campaign with fixed seeds, worlds for each kind of fault, a cut at each step of a life."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from heek.journal import Journal
from heek.ki.asking import Asking
from heek.ranking import chains
from tests.campaign.__main__ import read_spans, replay_line, shrink, spans
from tests.campaign.plan import FAULTS, KI, Act, Kind, Plan, draw_plan
from tests.campaign.world import faults_of

SHARE = range(1_000_000, 1_000_240)
"""Seeds of the share of every test run: some two minutes of CPU, in pieces that two workers can share."""
PIECES = 8

TOGETHER = {
    Kind.PUT_BACK: (Kind.BACKUP, Kind.PUT_BACK, Kind.CUT),
    Kind.LOSE_KEY: (Kind.LOSE_KEY, Kind.LINK),
}
"""What makes a kind of fault worse than it is alone."""


@pytest.mark.parametrize("piece", range(PIECES))
def test_a_share_of_the_campaign(piece: int) -> None:
    """Random worlds with random faults: nothing that a card holds is lost, nothing counts twice."""
    size = len(SHARE) // PIECES
    for seed in SHARE[piece * size : (piece + 1) * size]:
        plan = draw_plan(seed)
        faults, _ = faults_of(plan)
        assert faults == [], replay_line(plan, FAULTS)


@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.value)
def test_one_kind_of_fault_loses_nothing(kind: Kind) -> None:
    """Worlds in which only this goes wrong, often: every match counts once, every total is right."""
    kinds = TOGETHER.get(kind, (kind,))
    chosen = [
        plan
        for plan in (draw_plan(seed, kinds) for seed in range(60))
        if any(act.kind is kind for act in plan.acts)
    ]
    assert len(chosen) >= 3
    for plan in chosen[:3]:
        faults, world = faults_of(plan)
        assert faults == [], replay_line(plan, kinds)
        assert world.history.played


@pytest.mark.parametrize("serial", [False, True], ids=["http", "serial"])
@pytest.mark.parametrize("who", [0, KI], ids=["table", "KI"])
def test_a_cut_at_each_step_of_a_life(who: int, serial: bool) -> None:
    """The power goes at the n-th statement or await after a match is won, for every n up to its answer."""
    match = Act(1, Kind.MATCH, 0, 7)
    reached = 0
    for nth in range(1, 400):
        acts = (Act(0, Kind.CUT, who, nth), match, Act(2, Kind.PASS, 0, 1.0))
        plan = Plan(nth, 1, (serial,), (False,), acts)
        faults, world = faults_of(plan)
        assert faults == [], f"cut at step {nth}: {world.told}"
        if not any("loses its power" in line for line in world.told):
            break
        reached = nth
    assert reached > 40


def _unsigned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Asking, "_check", lambda *_: None)


def _no_rewind(monkeypatch: pytest.MonkeyPatch) -> None:
    real = chains.find

    def find(connection: Any, table: int, kind: str, *words: Any) -> None:
        if kind != chains.REWIND:
            real(connection, table, kind, *words)

    monkeypatch.setattr(chains, "find", find)


def _unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Journal._write
    monkeypatch.setattr(
        Journal, "_write", lambda self, batch, rows: real(self, replace(batch, sync=False), rows)
    )


@pytest.mark.parametrize(
    ("mistake", "kinds", "words"),
    [
        (_unsigned, [Kind.LINK], "the KI never said so"),
        (_no_rewind, [Kind.BACKUP, Kind.PUT_BACK], "and the KI says nothing of it"),
        (_unsynced, [Kind.CUT, Kind.LINK], "was on the card, and is not any more"),
    ],
    ids=["unsigned answers are believed", "a rewind is not told", "a result is not synced"],
)
def test_a_mistake_is_found_in_few_worlds(
    mistake: Callable[[pytest.MonkeyPatch], None],
    kinds: list[Kind],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With that mistake in the real code worlds with faults of its kind are judged wrong, and for that."""
    mistake(monkeypatch)
    for seed in range(100):
        faults, _ = faults_of(draw_plan(seed, kinds))
        if any(words in fault for fault in faults):
            return
    pytest.fail(f"nobody noticed in {seed + 1} worlds")


def test_a_clone_of_a_clone_has_a_name_that_a_table_may_have() -> None:
    """Three tables live with one key, whatever their numbers: each is heard, and knows what the KI holds."""
    acts = (
        Act(0, Kind.CLONE, 0),
        Act(1, Kind.CLONE, 1),
        Act(2, Kind.MATCH, 0, 1),
        Act(3, Kind.MATCH, 1, 2),
        Act(4, Kind.MATCH, 2, 3),
    )
    plan = Plan(1, 1, (False,) * 3, (False,) * 3, acts)
    faults, world = faults_of(plan)
    assert faults == []
    assert len({table.key.id for table in world.tables}) == 1
    assert max(len(table.name) for table in world.tables) <= len("table-1-clone-3")


def test_two_that_have_not_been_heard_yet_need_not_be_told_of() -> None:
    """A KI that was away forgot who lives, and is asked when a pause is over: at rest is later."""
    acts = (Act(0, Kind.OFF, KI, 100.0), Act(1, Kind.CLONE, 0), Act(2, Kind.PASS, 0, 50.0))
    for seed in range(6):
        assert faults_of(Plan(seed, 1, (False,) * 2, (False,) * 2, acts))[0] == []


def test_a_late_copy_of_what_a_card_has_no_more_comes_before_all_is_at_rest() -> None:
    """Minutes after a card was put back the KI gets a match of before: one more offer is right."""
    acts = (
        Act(0, Kind.BACKUP, 0),
        Act(1, Kind.LINK, 0, 0, "double"),
        Act(2, Kind.MATCH, 0, 1),
        Act(3, Kind.PASS, 0, 0.5),
        Act(4, Kind.PUT_BACK, 0),
    )
    for seed in range(12):
        assert faults_of(Plan(seed, 1, (False,), (False,), acts))[0] == []


def test_no_gap_is_asked_for_of_a_key_that_nobody_has_any_more() -> None:
    """What the KI lacks under a key is told when its table says that nothing waits; a lost key never does."""
    for after in range(16):
        acts = (
            Act(0, Kind.MATCH, 0, 1),
            Act(1, Kind.POISON, 0, 2, "rubbish"),
            Act(2, Kind.MATCH, 0, 3),
            Act(3, Kind.PASS, 0, after / 100),
            Act(4, Kind.LOSE_KEY, 0),
        )
        assert faults_of(Plan(after, 1, (False,), (False,), acts))[0] == []


def test_a_match_that_a_clone_ended_and_bound_to_another_key_is_known_again() -> None:
    """The KI holds the clone's end of a match under its new key: the totals are those of that end."""
    acts = (Act(0, Kind.LINK, 0, 0, "down"), Act(1, Kind.CLONE, 0), Act(2, Kind.LOSE_KEY, 1))
    worlds = [faults_of(Plan(seed, 1, (False,) * 2, (False,) * 2, acts)) for seed in range(13, 22)]
    assert [faults for faults, _ in worlds if faults] == []
    assert any(world.history.twice for _, world in worlds)


def test_a_failing_plan_is_made_small_and_can_be_told() -> None:
    """The numbers of acts go into a command and out of it again; acts that do not matter are left out."""
    assert spans([7, 0, 1, 2, 3]) == "0-3,7"
    assert read_spans("0-3,7") == {0, 1, 2, 3, 7}
    plan = draw_plan(5)
    assert plan == draw_plan(5)
    assert plan.only([act.number for act in plan.acts]) == plan
    assert "--seed 5 --worlds 1" in replay_line(plan, FAULTS)
    assert shrink(plan.only([])).acts == ()
