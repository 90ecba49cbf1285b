"""The table of phases: nowhere to get lost, nothing that is not in it, and every step really taken."""

from __future__ import annotations

from itertools import product

import pytest

from heek.errors import IllegalTransition
from heek.session import floor
from heek.session.phases import START_PHASES, TRANSITIONS, Phase, Step, diagram, next_phase
from tests.session.at_table import FAST, AtTable, in_match

Taken = set[tuple[Phase, Step]]


def reached_from(starts: set[Phase]) -> set[Phase]:
    reached = set(starts)
    while True:
        more = {target for (phase, _), target in TRANSITIONS.items() if phase in reached} - reached
        if not more:
            return reached
        reached |= more


def test_every_phase_is_reachable() -> None:
    """From the phases a daemon can begin in, every phase can be reached."""
    assert reached_from(set(START_PHASES)) == set(Phase)


@pytest.mark.parametrize("phase", list(Phase))
def test_every_phase_has_a_way_out(phase: Phase) -> None:
    """From every phase the empty table can be reached, so nothing is a dead end."""
    assert Phase.ATTRACT in reached_from({phase} if phase is not Phase.ATTRACT else {Phase.LOBBY})
    assert any(begin is phase and end is not phase for (begin, _), end in TRANSITIONS.items())


@pytest.mark.parametrize(
    ("phase", "step"), [pair for pair in product(Phase, Step) if pair not in TRANSITIONS]
)
def test_a_pair_that_is_not_in_the_table_raises(phase: Phase, step: Step) -> None:
    """It names the phase and the step, and the table is what it was."""
    before = dict(TRANSITIONS)
    with pytest.raises(IllegalTransition, match=phase.value):
        next_phase(phase, step)
    assert before == TRANSITIONS


def test_an_illegal_step_changes_nothing() -> None:
    """Asked for a step that its phase does not have, the floor raises and stays where it was."""
    ground = floor.Floor(Phase.THROW)
    with pytest.raises(IllegalTransition):
        ground.go(Step.REVEALED, 5)
    assert (ground.phase, ground.since) == (Phase.THROW, 0)
    assert ground.effects().events == ()


def test_the_diagram_is_the_table() -> None:
    """Every transition is a line of the diagram, and every line but the starts is a transition."""
    lines = [line.strip() for line in diagram().splitlines()]
    for (phase, step), target in TRANSITIONS.items():
        assert f"{phase.value} --> {target.value}: {step.value}" in lines
    for phase in START_PHASES:
        assert f"[*] --> {phase.value}" in lines
    assert len(lines) == 1 + len(START_PHASES) + len(TRANSITIONS)


# Every step, taken


def reset_in_attract() -> None:
    table = AtTable()
    table.press(1, 1.0)
    table.reset(2.0)
    table.run(3)


def whole_match() -> None:
    table = in_match(1, 2, **FAST)
    table.play(["pen page", "pen -", "pen page", "pen page"])
    table.run(40)


def left_in_match_over() -> None:
    table = in_match(1, 2, target=1)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.reset(4.0)
    table.run(5)


def left_in_throw() -> None:
    table = in_match(1, 2)
    table.hold(1, 3.0, 3.5)
    table.run(7)


def left_in_countdown() -> None:
    table = in_match(1, 2)
    table.press(2, 4.0)
    table.hold(1, 3.0, 3.5)
    table.run(7)


def left_in_reveal() -> None:
    table = in_match(1, 2)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.hold(1, 3.2, 3.5)
    table.run(7)


def standstill_in_throw() -> None:
    table = in_match(1, 2)
    table.stall(3.0, 2.0)
    table.run(6)


def standstill_in_countdown() -> None:
    table = in_match(1, 2)
    table.press(1, 2.9)
    table.stall(3.0, 2.0)
    table.run(6)


def reset_in_the_round() -> None:
    for at in (2.5, 3.5, 8.01, 9.0):
        table = in_match(1, 2, 3)
        table.throw(3.0, {1: "pen", 2: "page"})
        table.reset(at)
        table.run(10)


def resumed() -> None:
    for at in (5.0, 30.0):
        table = in_match(1, 2).run(3).cut()
        table.press(1, 1.0)
        table.press(2, 1.0 if at < 20 else 20.0)
        table.run(at)
    in_match(1, 2).run(3).cut().run(30)
    table = in_match(1, 2).run(3).cut()
    table.reset(3.0)
    table.run(4)


def throw_revoked_in_settle() -> None:
    table = in_match(1, 2)
    table.press(1, 3.0, "pen")
    table.press(2, 4.0, "pen")
    table.press(2, 4.001, "page", delivered=4.01)
    table.run(6)


SCENES = [
    reset_in_attract,
    whole_match,
    left_in_match_over,
    left_in_throw,
    left_in_countdown,
    left_in_reveal,
    standstill_in_throw,
    standstill_in_countdown,
    reset_in_the_round,
    resumed,
    throw_revoked_in_settle,
]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Taken:
    """The steps that the session takes during a test."""
    steps: Taken = set()

    def note(phase: Phase, step: Step) -> Phase:
        steps.add((phase, step))
        return next_phase(phase, step)

    monkeypatch.setattr(floor, "next_phase", note)
    return steps


def test_every_transition_is_taken(taken: Taken) -> None:
    """What stands in the table happens at a table: no transition is there for nothing."""
    for scene in SCENES:
        scene()
    assert taken == set(TRANSITIONS)
