"""The player's verdicts: what is forgiven for real time's sake, and what is not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.clock import MILLISECOND, SECOND
from heek.config import from_keys, from_text
from heek.simulator.steps import Expect
from heek.simulator.story import parse
from heek.stations.lamps import Pattern
from tests.virtual_pi.figures import share_below, spread
from tests.virtual_pi.judging import (
    SAME,
    TOLERANCE,
    Told,
    changes,
    differences,
    is_level,
    judge_events,
    level_at,
    moments_to_look,
    unlike,
)
from tests.virtual_pi.reference import reference
from tests.virtual_pi.table_daemon import toml

CYCLIC = [each.value for each in Pattern if each is not Pattern.LEAVING]


def event(name: str, at: float, **fields: object) -> dict[str, Any]:
    return {"seq": 1, "at": at, "event": name, **fields}


def told(name: str, at: int, **fields: object) -> Told:
    return Told(event(name, at / SECOND, **fields), at, {"at": at})


def expect(at: int, name: str, **options: Any) -> Expect:
    fields = options.pop("fields", {})
    return Expect(at=at, line=7, event={"event": name, **fields}, **options)


# Two lists of events


def test_drawn_values_and_a_few_milliseconds_are_no_difference() -> None:
    """Numbers, names that are drawn and instants within the tolerance may differ, and nothing else."""
    ours = [event("match_started", 1.0, match="a", seats=[1, 2])]
    assert differences(ours, [event("match_started", 1.019, match="b", seats=[1, 2])]) == []
    assert differences(ours, [event("match_started", 1.0, match="b", seats=[1, 3])])
    late = event("match_started", 1.0 + 2 * SAME / SECOND, match="b", seats=[1, 2])
    assert "at is 1.0" in differences(ours, [late])[0]
    assert differences(ours, [late], timed=False) == []


def test_an_event_more_or_less_or_swapped_is_a_difference() -> None:
    """Length and order count; what came about when everything was ended may stand in one list alone."""
    one, other = event("seat_taken", 1.0, seat=1), event("seat_taken", 1.0, seat=2)
    assert "only here" in differences([one, other], [one])[0]
    assert "only simulated" in differences([one], [one, other])[0]
    assert differences([one, other], [other, one])
    last = event("round_opened", 5.0)
    assert differences([one, last], [one], until=5 * SECOND) == []
    assert differences([one, last], [one], until=6 * SECOND)


# Expectations of events


@pytest.mark.parametrize(
    ("came", "negated", "held"),
    [
        (SECOND, False, True),
        (SECOND + TOLERANCE, False, True),
        (SECOND + TOLERANCE + 1, False, False),
        (SECOND - TOLERANCE, True, False),
        (SECOND - TOLERANCE + 1, True, True),
        (SECOND, True, True),
    ],
)
def test_an_event_may_come_a_little_late_and_a_forbidden_one_a_little_early(
    came: int, negated: bool, held: bool
) -> None:
    """The tolerance is in favour of the table either way, and ends to the nanosecond."""
    failures = judge_events([expect(SECOND, "seat_taken", negated=negated)], [told("seat_taken", came)], "s")
    assert (failures == []) is held


def test_events_are_expected_in_their_order() -> None:
    """An expected event comes after the one before it; equal ones need as many events."""
    events = [told("seat_taken", 1, seat=1), told("seat_ready", 2, seat=1)]
    taken, ready = expect(SECOND, "seat_taken"), expect(SECOND, "seat_ready")
    assert judge_events([taken, ready], events, "s") == []
    assert len(judge_events([ready, taken], events, "s")) == 1
    assert len(judge_events([taken, taken], events, "s")) == 1


def test_fields_are_compared_as_json() -> None:
    """Maps whole, true is no 1, instants within the tolerance, and a field that is missing is no match."""
    came = Told(event("x", 1.0, throws={"1": "pen"}, flag=True), SECOND, {"at": SECOND, "closed": SECOND})

    def so(**fields: object) -> bool:
        return judge_events([expect(SECOND, "x", fields=fields)], [came], "s") == []

    assert so(throws={"1": "pen"}, flag=True, closed=1.05)
    assert not so(throws={"1": "pen", "2": None})
    assert not so(flag=1)
    assert not so(closed=1.2)
    assert not so(deadline=1)
    assert not so(winner=1)


def test_within_gives_time() -> None:
    """`within` moves the end of an expectation, for both kinds."""
    late = [told("x", 3 * SECOND)]
    assert judge_events([expect(SECOND, "x", within=2 * SECOND)], late, "s") == []
    assert judge_events([expect(SECOND, "x", within=SECOND)], late, "s")
    assert judge_events([expect(SECOND, "x", within=3 * SECOND, negated=True)], late, "s")


# Lamps


@pytest.mark.parametrize("pattern", CYCLIC)
@pytest.mark.parametrize("pwm", [True, False])
@given(start=st.integers(0, 10**12))
@settings(deadline=None)
def test_where_to_look_tells_a_pattern_by_all_its_levels(pattern: str, pwm: bool, start: int) -> None:
    """In 3.1 s each level that a pattern keeps is found, and there it is the pattern's own."""
    looks = moments_to_look(pattern, start, start + 3100 * MILLISECOND, pwm=pwm)
    assert looks
    assert looks == sorted(looks)
    levels = [level_at(pattern, at, pwm=pwm) for at in looks]
    assert all(levels.count(each) <= 3 for each in levels)
    for at, level in zip(looks, levels, strict=True):
        assert is_level(level, pattern, at, pwm=pwm)
        assert not changes(pattern, at, at + 40 * MILLISECOND, pwm=pwm)
    cyclic = {level_at(pattern, at, pwm=pwm) for at in range(0, 3 * SECOND, 20 * MILLISECOND)}
    assert {min(cyclic), max(cyclic)} <= set(levels)


def test_dark_dim_and_full_are_told_apart() -> None:
    """A free LED must be dark, a thrown one full, and one that is dim neither, however its PWM stutters."""
    measured = {"dark": 0.0, "dim": 0.2, "full": 1.0}
    fits = {
        pattern: {name for name, level in measured.items() if is_level(level, pattern, 0)}
        for pattern in ("free", "taken", "thrown")
    }
    assert fits == {"free": {"dark"}, "taken": {"dim"}, "thrown": {"full"}}
    assert not is_level(0.7, "taken", 0)


def test_an_led_that_is_held_up_once_is_no_other_pattern() -> None:
    """Of several looks at a level most must fit: one may come late, but no LED may stay dark."""
    looks = moments_to_look("won", 0, 3 * SECOND)
    levels = [level_at("won", at) for at in looks]
    assert min(levels.count(0.0), levels.count(1.0)) >= 2
    right = list(zip(levels, looks, strict=True))
    assert unlike(right, "won") == []
    late = [(0.0, at) if at == looks[levels.index(1.0)] else (level, at) for level, at in right]
    assert unlike(late, "won") == []
    assert unlike([(0.0, at) for at in looks], "won") == [0.0]


def test_a_pattern_that_ends_too_soon_is_not_looked_at() -> None:
    """In no time at all a blinking LED at the edge of a blink tells nothing."""
    assert moments_to_look("time_running_out", 250 * MILLISECOND, 250 * MILLISECOND) == []


# What it stands on


def test_the_reference_knows_what_is_shown_when() -> None:
    """Of a simulated story: events, patterns and screens with their ends, and each picture's screen."""
    text = "\n".join(
        json.dumps(line)
        for line in (
            {"at": 1.0, "press": {"seat": 1, "button": "pen"}},
            {"at": 2.0, "press": {"seat": 1, "button": "pen"}},
            {"at": 3.0, "end": True},
        )
    )
    found = reference(parse(text, "story"))
    assert [each["event"] for each in found.events] == ["table_started", "seat_taken", "seat_ready"]
    pattern, until = found.pattern_until(1, 500 * MILLISECOND)
    assert pattern == "free"
    assert until is not None
    assert abs(until - SECOND) < 10 * MILLISECOND
    assert found.pattern_until(1, 2500 * MILLISECOND) == ("taken", None)
    assert found.screen_until(0)[0] == "attract"
    moment = found.at(2500 * MILLISECOND)
    assert moment is not None
    assert found.screens[moment.image] == {"lobby"}
    with pytest.raises(ValueError, match="did not come"):
        reference(parse('{"at": 1, "expect": {"event": "match_won"}}', "story"))


def test_keys_become_the_configuration_that_they_were() -> None:
    """Dotted keys written as a file are read as the same configuration."""
    keys: dict[str, object] = {
        "table.name": 'A "table"',
        "table.state_dir": "/run/table",
        "stations.backend": "gpio",
        "stations.led_pwm": False,
        "ahyoheek.countdown_s": 2.5,
        "display": [{"driver": "sh1106", "bus": 1, "address": 0x3D}],
        "station": [{"seat": 1}, {"seat": 4}],
    }
    assert from_text(toml(keys), "table.toml") == from_keys(keys, "story")


def test_figures_of_many_measurements() -> None:
    """Median, p99 and worst are values that were measured; of none there is nothing to tell."""
    values = [float(each) for each in range(1, 101)]
    assert (share_below(values, 0.5), share_below(values, 0.99), share_below([3.0], 0.99)) == (
        51.0,
        100.0,
        3.0,
    )
    assert spread(values) == "median 51.0, p99 100.0, worst 100.0 ms of 100"
    with pytest.raises(ValueError, match="nothing"):
        share_below([], 0.5)
