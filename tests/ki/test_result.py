"""The record of a match says who played, what was thrown, what it came to, and when, to the millisecond."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from heek.boot import Boot
from heek.clock import SECOND, ManualClock, StartedClock
from heek.errors import RecordError
from heek.ki.result import record_from_json, record_of, result_json
from heek.kinds import Kind
from heek.session.state import Entry, MatchResult
from tests.session.at_table import AtTable, in_match

MATCH = "0f1e2d3c-4b5a-4968-b706-1524334251a0"
KEY_ID = bytes(range(8))
INCARNATION = bytes.fromhex("00ff00ff00ff00ff")
BOOT = Boot("a3b1c5d7-0000-4000-8000-000000000001", "none")


def clock() -> StartedClock:
    """A daemon that started 100 s after the boot, 60 s ago."""
    world = ManualClock(now=100 * SECOND, wall_s=1_900_000_000.5)
    started = StartedClock(world)
    world.advance_to(160 * SECOND)
    return started


def record(result: MatchResult) -> dict[str, Any]:
    made = record_of(
        result,
        table=KEY_ID,
        name="Tischl ♥",
        incarnation=INCARNATION,
        seq=7,
        prev=bytes(32),
        boot=BOOT,
        clock=clock(),
    )
    body = result_json(made)
    loaded: dict[str, Any] = json.loads(body)
    # The very record comes back from what the journal shows.
    assert record_from_json(body, table=KEY_ID, seq=7, prev=bytes(32)) == made
    return loaded


def a_result() -> MatchResult:
    """A real match: a signed-in player, a guest, and one round that decides it."""
    table = AtTable(target=1)
    table.press(1, 1.0)
    table.press(2, 1.0)
    table.claim(1.5, 1, "40220173", "Shorah")
    table.press(1, 2.0)
    table.press(2, 2.0)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.run(3.5)
    (result,) = table.results
    return replace(result, match=MATCH)


def test_the_whole_record() -> None:
    """Every field, from a match that was really played."""
    result = a_result()
    assert record(result) == {
        "v": 1,
        "rules": result.rules,
        "game": "ahyoheek",
        "match": MATCH,
        "table": "0001020304050607",
        "name": "Tischl ♥",
        "inc": "00ff00ff00ff00ff",
        "seq": 7,
        "prev": "00" * 32,
        "seats": [
            {
                "seat": 1,
                "kind": "player",
                "player": "40220173",
                "name": "Shorah",
                "stake": result.entries[0].stake,
                "delta": result.deltas[0],
            },
            {
                "seat": 2,
                "kind": "guest",
                "player": None,
                "name": None,
                "stake": result.entries[1].stake,
                "delta": result.deltas[1],
            },
        ],
        "winner": 1,
        "by": "three",
        "rated": True,
        "rounds": [{"1": "pen", "2": "page"}],
        "late_rounds": [],
        "t": {
            "boot": BOOT.id,
            "start_ms": 102_000,
            "end_ms": 103_030,
            "wall_s": 1_900_000_060,
            "trust": "none",
        },
    }


def test_a_match_over_a_power_cut_has_no_start() -> None:
    """What a process that is no more began has no start on this one's clock."""
    assert record(replace(a_result(), started_at=None))["t"]["start_ms"] is None


def test_a_seat_without_a_throw_is_null() -> None:
    """Who sat a round out stands in it with null, so that the rounds can be judged again."""
    rounds: tuple[dict[int, Kind | None], ...] = ({1: Kind.PEN, 2: None, 3: Kind.PAGE},)
    assert record(replace(a_result(), rounds=rounds))["rounds"] == [{"1": "pen", "2": None, "3": "page"}]


def test_entries_and_deltas_must_be_of_one_length() -> None:
    """A delta too few is a mistake of ours that must not become a record."""
    with pytest.raises(ValueError, match="zip"):
        record(replace(a_result(), deltas=(0,)))


def test_who_left_stays_in_the_record() -> None:
    """A seat that was left and taken again stands there twice, each with its own stake."""
    entries = (
        Entry(1, "40220173", "Shorah", 1, playing=False),
        Entry(2, None, None, 0),
        Entry(1, None, None, 0),
    )
    seats = record(replace(a_result(), entries=entries, deltas=(-1, 0, 0)))["seats"]
    assert [(seat["seat"], seat["kind"], seat["delta"]) for seat in seats] == [
        (1, "player", -1),
        (2, "guest", 0),
        (1, "guest", 0),
    ]


def test_two_guests_are_a_record_too() -> None:
    """A match of guests alone is kept like any other."""
    table = in_match(1, 2, target=1)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.run(3.5)
    seats = record(replace(table.results[0], match=MATCH))["seats"]
    assert {seat["kind"] for seat in seats} == {"guest"}


@pytest.mark.parametrize("body", [b"{}", b"[]", b"no JSON", b'{"v": 1, "match": 3}'])
def test_what_is_no_result_cannot_become_a_record(body: bytes) -> None:
    """A kept result that lacks what a record needs is named, whatever it is."""
    with pytest.raises(RecordError, match="lacks what a record needs"):
        record_from_json(body, table=KEY_ID, seq=1, prev=None)
