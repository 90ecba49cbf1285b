"""The session's phases, and the table of every step from one to the next.

The table is the whole truth: the machine asks it for each change of phase, the diagram beside
this module is drawn from it, and a pair that is not in it raises and changes nothing.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from heek.errors import IllegalTransition


class Phase(Enum):
    """Where the table stands (spec/ahyoheek.md, "The clock")."""

    ATTRACT = "attract"
    LOBBY = "lobby"
    THROW = "throw"
    COUNTDOWN = "countdown"
    SETTLE = "settle"
    REVEAL = "reveal"
    MATCH_OVER = "match_over"
    RESUME = "resume"


class Step(Enum):
    """What moves the table from one phase to another."""

    SEAT_TAKEN = "a press at an empty seat"
    ALL_STOOD_UP = "the last seat stands up"
    MATCH_STARTED = "all confirmed and waited long enough, or all ready"
    COUNTDOWN_STARTED = "the first throw, or a fixed timer"
    CLOSED = "the deadline, or all have thrown"
    CLOSE_REVOKED = "a throw that closed it was none, and not all have thrown"
    REVEALED = "settled with two throws or more"
    REOPENED = "the next round opens"
    MATCH_DECIDED = "the match is won or void"
    MATCH_ABANDONED = "void by idle or operator"
    LOBBY_OPENED = "match over has been shown"


TRANSITIONS: Final[dict[tuple[Phase, Step], Phase]] = {
    (Phase.ATTRACT, Step.SEAT_TAKEN): Phase.LOBBY,
    (Phase.LOBBY, Step.ALL_STOOD_UP): Phase.ATTRACT,
    (Phase.LOBBY, Step.MATCH_STARTED): Phase.THROW,
    (Phase.THROW, Step.COUNTDOWN_STARTED): Phase.COUNTDOWN,
    (Phase.THROW, Step.REOPENED): Phase.THROW,
    (Phase.THROW, Step.MATCH_DECIDED): Phase.MATCH_OVER,
    (Phase.THROW, Step.MATCH_ABANDONED): Phase.ATTRACT,
    (Phase.COUNTDOWN, Step.CLOSED): Phase.SETTLE,
    (Phase.COUNTDOWN, Step.REOPENED): Phase.THROW,
    (Phase.COUNTDOWN, Step.MATCH_DECIDED): Phase.MATCH_OVER,
    (Phase.COUNTDOWN, Step.MATCH_ABANDONED): Phase.ATTRACT,
    (Phase.SETTLE, Step.CLOSE_REVOKED): Phase.COUNTDOWN,
    (Phase.SETTLE, Step.REVEALED): Phase.REVEAL,
    (Phase.SETTLE, Step.REOPENED): Phase.THROW,
    (Phase.SETTLE, Step.MATCH_DECIDED): Phase.MATCH_OVER,
    (Phase.SETTLE, Step.MATCH_ABANDONED): Phase.ATTRACT,
    (Phase.REVEAL, Step.REOPENED): Phase.THROW,
    (Phase.REVEAL, Step.MATCH_DECIDED): Phase.MATCH_OVER,
    (Phase.REVEAL, Step.MATCH_ABANDONED): Phase.ATTRACT,
    (Phase.MATCH_OVER, Step.LOBBY_OPENED): Phase.LOBBY,
    (Phase.MATCH_OVER, Step.ALL_STOOD_UP): Phase.ATTRACT,
    (Phase.RESUME, Step.REOPENED): Phase.THROW,
    (Phase.RESUME, Step.MATCH_DECIDED): Phase.MATCH_OVER,
    (Phase.RESUME, Step.MATCH_ABANDONED): Phase.ATTRACT,
}

START_PHASES: Final[tuple[Phase, ...]] = (Phase.ATTRACT, Phase.MATCH_OVER, Phase.RESUME)
"""Where a daemon can begin: an empty table, a match voided by a power cut, a match to resume."""


def next_phase(phase: Phase, step: Step) -> Phase:
    """The phase that `step` leads to; raises IllegalTransition if the table has no such pair."""
    try:
        return TRANSITIONS[phase, step]
    except KeyError:
        raise IllegalTransition(
            f"phase {phase.value}: no way on by “{step.value}”; the session's table needs one"
        ) from None


def diagram() -> str:
    """The table as a Mermaid state diagram, one line a transition, in the table's order."""
    lines = ["stateDiagram-v2"]
    for phase in START_PHASES:
        lines.append(f"    [*] --> {phase.value}")
    for (phase, step), target in TRANSITIONS.items():
        lines.append(f"    {phase.value} --> {target.value}: {step.value}")
    return "\n".join(lines) + "\n"
