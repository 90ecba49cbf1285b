"""Whatever people do at a table with bots: nothing gets stuck, and no table of bots alone plays on."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from heek.session.phases import Phase
from heek.session.view import SeatState
from tests.session.at_table import AtTable, s

KINDS = ("pen", "page", "beetle")

presses = st.tuples(st.just("press"), st.integers(1, 5), st.sampled_from(KINDS))
deeds = st.one_of(
    presses,
    presses,
    presses,
    st.tuples(st.sampled_from(("hold", "middle")), st.integers(1, 5)),
    st.tuples(st.sampled_from(("fill", "dismiss", "reset", "stall", "late"))),
)
spans = st.sampled_from((0.01, 0.2, 0.5, 1.0, 2.0, 5.0))
days = st.lists(st.tuples(spans, deeds), max_size=40)
tables = st.fixed_dictionaries(
    {
        "bots": st.sampled_from(("ask", "fill")),
        "seats": st.sampled_from(((1, 2, 3, 4, 5), (1, 2, 3), (2, 5))),
        "timer": st.sampled_from(("first_throw", "fixed")),
        "target": st.sampled_from((1, 2, 3)),
        "missed_limit": st.sampled_from((0, 1, 3)),
        "winnerless_limit": st.sampled_from((0, 2, 50)),
        "sudden_death_limit": st.sampled_from((0, 1, 20)),
        "late_join": st.booleans(),
        "allow_change": st.booleans(),
        "guard": st.sampled_from((0, 0.3, 1)),
        "countdown": st.sampled_from((1, 3)),
        "idle": st.sampled_from((10, 15)),
        "lobby": st.sampled_from((2, 5)),
        "lobby_idle": st.just(20),
        "rematch": st.just(5),
        "reveal": st.just(0.5),
        "match_over": st.just(1),
        "resume": st.booleans(),
    }
)


def never_alone(table: AtTable) -> None:
    """Where a bot sits, a person does."""
    sitting = [seat for seat in table.view.seats if seat.state not in (SeatState.FREE, SeatState.ABSENT)]
    assert not sitting or any(not seat.bot for seat in sitting)
    if table.view.phase is Phase.ATTRACT:
        assert not sitting


def do(table: AtTable, at: float, deed: tuple[Any, ...]) -> None:
    match deed:
        case ("press", seat, button) if seat in table.settings.seats:
            table.press(seat, at, button, lasts=0.05)
        case ("late",):
            seat = table.settings.seats[0]
            table.press(seat, at, "page", lasts=0.05, delivered=s(at + 0.7))
        case ("hold", seat) if seat in table.settings.seats:
            table.hold(seat, at, 3.1)
        case ("middle", seat) if seat in table.settings.seats:
            table.press(seat, at, "page", lasts=1.2)
        case ("fill",):
            table.fill_seats(at)
        case ("dismiss",):
            table.dismiss_bots(at)
        case ("reset",):
            table.reset(at)
        case ("stall",):
            table.stall(at, 1.5)
        case _:
            pass


def of_one_life(events: list[dict[str, Any]], before: set[int]) -> tuple[set[int], set[int]]:
    """Who sits at the end, people and bots, if these sat at the beginning; checks every step between."""
    people, bots = set(before), set[int]()
    for event in events:
        seat = event.get("seat")
        match event["event"]:
            case "seat_taken":
                assert seat not in people | bots
                (bots if event["kind"] == "bot" else people).add(seat)
            case "seat_left":
                assert seat in people | bots
                people.discard(seat)
                bots.discard(seat)
            case "match_started":
                assert people
                assert set(event["seats"]) == people | bots
                assert not bots or not any(event["stakes"].values())
            case "press_ignored":
                assert (
                    event["reason"] in ("chord", "noise")
                    or seat not in bots
                    or event["reason"]
                    in (
                        "not_seated",
                        "not_in_round",
                    )
                )
    return people, bots


@settings(max_examples=150, deadline=None)
@given(table=tables, day=days, seed=st.integers(0, 10**6))
def test_nothing_gets_stuck(table: dict[str, Any], day: list[tuple[float, Any]], seed: int) -> None:
    """After any day the table is empty a few minutes later, and bots were never there without people."""
    at_table = AtTable(**table, watch=never_alone, random_bytes=random.Random(seed).randbytes)
    at, busy = 1.0, 0.0
    for span, deed in day:
        # One contact is closed at a time, so that no press runs into another of its own.
        at = s(max(at + span, busy))
        do(at_table, at, deed)
        busy = s(at + {"hold": 3.2, "middle": 1.3}.get(deed[0], 0.1))
    at_table.run(busy + 400)
    assert at_table.view.phase is Phase.ATTRACT
    assert of_one_life(at_table.events, set()) == (set(), set())
    assert all(one["at"] <= other["at"] for one, other in pairwise(at_table.events))
    starts = {each["match"] for each in at_table.told("match_started")}
    ends = [each["match"] for each in at_table.told("match_won", "match_void")]
    assert starts == set(ends)
    assert len(ends) == len(starts)


@settings(max_examples=60, deadline=None)
@given(table=tables, day=days, seed=st.integers(0, 10**6), short=st.booleans(), other=st.booleans())
def test_nothing_gets_stuck_over_a_power_cut(
    table: dict[str, Any], day: list[tuple[float, Any]], seed: int, short: bool, other: bool
) -> None:
    """The same when the power fails at any moment, also if the table has bots no longer after it."""
    luck = random.Random(seed)
    before = AtTable(**table, watch=never_alone, random_bytes=luck.randbytes)
    at, busy = 1.0, 0.0
    for span, deed in day:
        at = s(max(at + span, busy))
        do(before, at, deed)
        busy = s(at + {"hold": 3.2, "middle": 1.3}.get(deed[0], 0.1))
    before.run(at)
    sat = {seat.seat for seat in before.view.seats if seat.state not in (SeatState.FREE, SeatState.ABSENT)}
    changed = {**table, "bots": "never"} if other else table
    after = before.cut(short_cut=short, **changed, watch=never_alone, random_bytes=luck.randbytes)
    never_alone(after)
    for second in range(1, 8):
        after.press(table["seats"][0], second, "pen", lasts=0.05)
    after.run(400)
    assert after.view.phase is Phase.ATTRACT
    assert of_one_life(after.events, sat) == (set(), set())


def test_such_days_have_matches_in_them() -> None:
    """The properties above are not empty: random days with bots reach reveals, wins and leaves."""
    seen: dict[str, int] = {}
    rng = random.Random(11)
    for seed in range(30):
        table = AtTable(
            bots="ask",
            countdown=1,
            reveal=0.5,
            match_over=1,
            rematch=5,
            random_bytes=random.Random(seed).randbytes,
        )
        table.press(1, 1.0)
        table.fill_seats(2.0)
        for second in range(3, 40):
            do(table, second, ("press", rng.choice((1, 1, 2)), rng.choice(KINDS)))
        table.run(300)
        for event in table.events:
            seen[event["event"]] = seen.get(event["event"], 0) + 1
    assert min(seen[name] for name in ("round_revealed", "match_won", "seat_left", "press_ignored")) > 20
