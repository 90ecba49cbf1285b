"""A share of the campaign with fixed seeds, and a world or two for each kind of fault."""

from __future__ import annotations

import pytest

from tests.campaign.plan import Kind, draw_plan
from tests.campaign.world import faults_of

WORLDS_OF_A_KIND = 4


@pytest.mark.parametrize(
    "kind", [Kind.CUT, Kind.OFF, Kind.NIGHT, Kind.FULL, Kind.WALL], ids=lambda kind: kind.value
)
def test_one_kind_of_fault_loses_nothing(kind: Kind) -> None:
    """Worlds in which only this goes wrong, again and again: every match counts once, every total is right."""
    chosen = []
    seed = 0
    while len(chosen) < WORLDS_OF_A_KIND:
        plan = draw_plan(seed, [kind])
        seed += 1
        if any(act.kind is kind for act in plan.acts):
            chosen.append(plan)
    for plan in chosen:
        faults, world = faults_of(plan)
        assert faults == [], f"seed {plan.seed}"
        assert world.history.played
