"""A share of the campaign with fixed seeds, worlds for each kind of fault, a cut at each step of a life."""

from __future__ import annotations

import pytest

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
        plan = Plan(nth, 1, (serial,), (Act(0, Kind.CUT, who, nth), match, Act(2, Kind.PASS, 0, 1.0)))
        faults, world = faults_of(plan)
        assert faults == [], f"cut at step {nth}: {world.told}"
        if not any("loses its power" in line for line in world.told):
            break
        reached = nth
    assert reached > 40


def test_a_failing_plan_is_made_small_and_can_be_told() -> None:
    """The numbers of acts go into a command and out of it again; acts that do not matter are left out."""
    assert spans([7, 0, 1, 2, 3]) == "0-3,7"
    assert read_spans("0-3,7") == {0, 1, 2, 3, 7}
    plan = draw_plan(5)
    assert plan == draw_plan(5)
    assert plan.only([act.number for act in plan.acts]) == plan
    assert "--seed 5 --worlds 1" in replay_line(plan, FAULTS)
    assert shrink(plan.only([])).acts == ()
