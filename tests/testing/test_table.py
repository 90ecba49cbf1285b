"""The table in a test's hands: every word means what the story's line means."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from heek.clock import SECOND
from heek.errors import StoryError
from heek.kinds import Kind
from heek.simulator.runner import simulate
from heek.simulator.steps import (
    Claim,
    Display,
    End,
    Expect,
    Ki,
    Operator,
    Power,
    Press,
    RawEdge,
    Stall,
    Step,
    Story,
    WallClock,
)
from heek.simulator.story import parse, read
from heek.testing.rig import Setup
from heek.testing.simulated import SimulatedRig
from heek.testing.table import Table
from tests.story_generator import random_story

RULES = sorted((Path(__file__).parent.parent / "stories" / "rules").glob("*.jsonl"))


def _seconds(span: int) -> Any:
    return Decimal(span) / SECOND


def _bounce(edges: tuple[tuple[int, bool], ...]) -> list[list[Any]]:
    return [[_seconds(offset), int(closed)] for offset, closed in edges]


def say(table: Table, step: Step) -> None:
    """One step of a story in the fixture's words, at the table's present instant."""
    match step:
        case Press():
            table.seat(step.seat).press(
                step.button.value,
                for_s=_seconds(step.duration),
                bounce=_bounce(step.bounce),
                open_bounce=_bounce(step.open_bounce),
            )
        case RawEdge():
            delivered = None if step.delivered is None else _seconds(step.delivered)
            table.seat(step.seat).edge(step.button.value, closed=step.closed, delivered=delivered)
        case Claim():
            table._do({"claim": {"seat": step.seat, "player": step.player, "name": step.name}})
        case Stall():
            table.stall(_seconds(step.duration))
        case WallClock():
            table.wall_clock("2031-01-01T00:00:00Z")
        case Display():
            (table.display_works if step.ok else table.display_fails)()
        case Power():
            (table.power_on if step.on else table.power_cut)()
        case Operator():
            table.operator_reset()
        case Ki():
            (table.ki_up if step.up else table.ki_down)()
        case _:
            raise AssertionError(step)


@pytest.mark.parametrize("seed", range(12))
def test_the_words_say_the_same_as_the_lines(seed: int) -> None:
    """A random story in the fixture's words gives the same bytes, and so does what the table wrote down."""
    story = parse(random_story(seed), "story")
    setup = Setup(keys=story.table, source="test", line=1, seed=seed)
    rig = SimulatedRig(setup)
    table = Table(rig, setup, pytest.fail)
    try:
        for step in story.steps:
            table.at(_seconds(step.at))
            if not isinstance(step, End):
                say(table, step)
        table.finish()
        written = parse(table.story, "written")
    finally:
        rig.close()
    steps = [step for step in story.steps if not isinstance(step, End)]
    end = written.steps[-1]
    assert len(written.steps) == len(steps) + 1
    for played in (written, Story(story.table, (*steps, end))):
        lines, _ = simulate(played, seed=seed)
        assert lines[: len(rig.lines)] == list(rig.lines)
        assert len(lines) - len(rig.lines) <= 1


def _overlapping(file: Path) -> bool:
    """Does an expectation with `within` wait beyond a later line? A test in steps cannot say that."""
    steps = read(file).steps
    waits = [(number, step.at + step.within) for number, step in enumerate(steps) if isinstance(step, Expect)]
    return any(step.at < until for number, until in waits for step in steps[number + 1 :])


IN_STEPS = [file for file in RULES if file.stem != "ki_is_skipped" and not _overlapping(file)]


@pytest.mark.parametrize("file", IN_STEPS, ids=lambda file: file.stem)
def test_the_projects_rules_hold_in_words(file: Path) -> None:
    """Each of the project's stories holds when its expectations are judged one by one by the fixture."""
    story = read(file)
    setup = Setup(keys=story.table, source="test", line=1)
    rig = SimulatedRig(setup)
    table = Table(rig, setup, pytest.fail)
    judged = 0
    try:
        for number, step in enumerate(story.steps):
            # The first word may go back to 0; later an expectation may have gone on to where it came true.
            at = _seconds(step.at)
            table.at(max(at, Decimal(repr(table.now))) if number else at)
            if isinstance(step, Expect):
                wanted: dict[str, Any] = dict(step.event or {})
                if step.lamp is not None:
                    wanted = {"lamp": step.lamp[0], "pattern": step.lamp[1]}
                elif step.screen is not None:
                    wanted = {"screen": step.screen}
                (table.expect_no if step.negated else table.expect)(within=_seconds(step.within), **wanted)
                judged += 1
            elif not isinstance(step, End):
                say(table, step)
    finally:
        rig.close()
    assert judged == sum(isinstance(step, Expect) for step in story.steps)


def test_most_rules_can_be_told_in_steps() -> None:
    """The test above is no empty exercise."""
    assert len(IN_STEPS) > len(RULES) * 2 // 3


@pytest.mark.table({"ahyoheek.countdown_s": 3})
def test_a_round_in_words(table: Table) -> None:
    """Two sit down, play and win; events, lamp, screen and picture are what a player sees."""
    assert (table.now, table.screen, table.lamp(1)) == (1.0, "attract", "free")
    empty = table.image
    table.wait(1)
    for seat in (1, 2):
        table.seat(seat).press("pen")
    table.wait(0.5)
    for seat in (1, 2):
        table.seat(seat).press("page")
    started = table.expect(event="match_started", seats=[1, 2])
    opened = table.expect(event="round_opened", round=1)
    assert started["match"] == opened["match"]
    assert table.events[-1] == opened
    table.wait(0.5)
    table.seat(1).press("pen")
    table.expect(lamp=1, pattern="thrown")
    assert table.seat(2).lamp == "time_running_out"
    table.expect_no(event="round_revealed", within=2.9)
    assert table.now == 5.9
    table.seat(2).press("page")
    revealed = table.expect(event="round_revealed", within=1, throws={1: "pen", 2: Kind.PAGE})
    assert revealed["points"] == {"1": 1, "2": -1}
    table.expect(screen="reveal")
    assert table.image.size == (128, 64)
    assert table.image.tobytes() != empty.tobytes()


def test_an_hour_passes(table: Table) -> None:
    """Who sits alone for an hour has long been sent away; the events say when, to the microsecond."""
    table.seat(3).press("beetle")
    table.wait(3600)
    left = table.expect(event="seat_left", seat=3)
    assert left["at"] == 61.0
    assert table.now == 3601.0


def test_a_contact_held_at_start_up(table: Table) -> None:
    """At 0, before anything else, an edge is the state at start-up: stuck, told, healed when it opens."""
    table.at(0)
    table.seat(2).edge("pen", closed=True)
    table.wait(1)
    table.expect(event="contact_stuck", seat=2, button="pen")
    table.seat(2).edge("pen", closed=False)
    table.expect(event="contact_healed", within=0.1)


def test_both_outer_buttons_stand_up(table: Table) -> None:
    """`hold` closes all its contacts at once and keeps them."""
    table.seat(5).press("page")
    table.wait(1)
    table.seat(5).hold("pen", "beetle", for_s=3.1)
    table.expect(event="seat_left", seat=5, reason="leave", within=3)


def test_trouble_in_words(table: Table) -> None:
    """A power cut in the dark, a panel that fails, a late edge, the operator: all on one table."""
    table.seat(1).press("pen")
    table.wait(1)
    table.claim(1, "40220173", "Shorah")
    table.expect(event="seat_claimed", player="40220173")
    table.display_fails()
    table.stall(0.5)
    table.wait(0.1)
    table.seat(2).edge("page", closed=True, delivered=2.4)
    table.wait(1)
    taken = table.expect(event="seat_taken", seat=2)
    assert taken["at"] == pytest.approx(2.103, abs=0.0011)
    table.display_works()
    table.operator_reset()
    table.expect(event="seat_left", seat=1, reason="operator")
    table.power_cut()
    table.wait(1)
    assert (table.screen, table.image.getbbox()) == ("off", None)
    table.wall_clock("2031-01-01T00:00:00Z")
    table.power_on()
    table.wait(1)
    assert [event["event"] for event in table.events].count("table_started") == 2


def test_expectations_in_the_dark_and_in_a_stall(table: Table) -> None:
    """In the dark nothing comes and time passes; a look in a stall lasts to its end, and sees what stood."""
    table.power_cut()
    table.expect_no(event="seat_taken", within=2)
    with pytest.raises(AssertionError, match=r"the screen is off, expected attract$"):
        table.expect(screen="attract", within=3)
    assert table.now == 6.0
    table.power_on()
    table.wait(1)
    table.stall(5)
    table.seat(1).press("pen")
    pressed = table.now
    table.wait(1)
    assert table.lamp(1) == "free"
    assert table.now == pytest.approx(pressed + 5, abs=0.0031)
    taken = table.expect(event="seat_taken", within=0.1)
    assert taken["at"] == pytest.approx(1.0, abs=0.0031)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda t: t.seat(6), "seat 6 does not exist; take 1 to 5"),
        (lambda t: t.lamp(0), "seat 0 does not exist; take 1 to 5"),
        (lambda t: t.seat(1).press("penn"), 'unknown button "penn"; did you mean "pen"?'),
        (lambda t: t.seat(1).press("pen", for_s=0), "for is 0; give it a nanosecond at least"),
        (lambda t: t.seat(1).hold(for_s=2), 'hold names no button; write hold("pen", for_s=1.2)'),
        (lambda t: t.expect(event="match_one"), 'unknown event "match_one"; did you mean "match_won"?'),
        (
            lambda t: t.expect(event="match_won", saet=2),
            'match_won has no field "saet"; did you mean "seat"?',
        ),
        (lambda t: t.expect(lamp=1, pattern="thron"), 'unknown lamp pattern "thron"; did you mean "thrown"?'),
        (
            lambda t: t.expect(lamp=1, patern="won"),
            'unknown word to expect "patern"; did you mean "pattern"?',
        ),
        (lambda t: t.expect(lamp=1), 'lamp has no "pattern"; it needs seat and pattern'),
        (lambda t: t.expect(screen="revael"), 'unknown screen "revael"; did you mean "reveal"?'),
        (lambda t: t.expect(), 'expect names nothing to look at; give it "event", "lamp" or "screen"'),
        (lambda t: t.wait(-1), "wait is -1; seconds are never negative"),
        (lambda t: t.wait(float("nan")), 'wait is "nan"; write a number of seconds'),
        (lambda t: t.wait(Path("x")), "wait is \"PosixPath('x')\"; write a number of seconds"),
        (lambda t: (t.wait(1), t.at(1.5)), "at 1.5 is before now (2); time only goes on"),
        (lambda t: (t.screen, t.at(0)), "at 0 is before now (1); time only goes on"),
        (lambda t: t.power_on(), 'power on, but it was not cut; cut it first: {"power": "cut"}'),
        (
            lambda t: t.claim(1, "40220173", "Shorah"),
            "seat 1 is empty and cannot be claimed; press a button there first",
        ),
    ],
)
def test_a_mistake_names_its_line_and_a_remedy(
    table: Table, act: Callable[[Table], object], message: str
) -> None:
    """A call that cannot be meant is one line: this file, the line of the call, what is wrong, what to do."""
    with pytest.raises(StoryError) as caught:
        act(table)
    line = act.__code__.co_firstlineno
    assert str(caught.value) == f"tests/testing/test_table.py:{line}: {message}"


def test_a_failed_expectation_tells_what_came(table: Table) -> None:
    """What did not come is told with what came instead; the table plays on after it."""
    table.seat(1).press("pen")
    with pytest.raises(AssertionError, match=r"at 1 to 3 s: .*match_won.* did not come; .* seat_taken$"):
        table.expect(event="match_won", within=2)
    assert table.now == 3.0
    with pytest.raises(AssertionError, match=r"came, and must not have$"):
        table.expect_no(event="seat_taken")
    table.expect(event="seat_taken")
    assert json.loads(table.story.splitlines()[-1]) == {"at": 3, "end": True}
