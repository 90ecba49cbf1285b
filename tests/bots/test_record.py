"""The record of a match with a bot says so, and that it is not rated."""

from __future__ import annotations

import uuid
from dataclasses import replace

from heek.boot import Boot
from heek.clock import ManualClock, StartedClock
from heek.ki.result import record_of
from tests.session.at_table import FAST, AtTable


def test_a_bot_stands_in_the_record_as_one() -> None:
    """Its seat has the kind `bot`, nobody staked anything, and `rated` is false."""
    table = AtTable(bots="ask", seats=(1, 2, 3), target=1, **FAST)
    table.press(1, 1.0)
    table.press(2, 1.0)
    table.claim(1.5, 1, "40220173", "Shorah")
    table.fill_seats(2.0)
    for second in range(3, 60):
        table.press(1, second, "pen", lasts=0.05)
        table.press(2, second, ("pen", "page", "beetle")[second % 3], lasts=0.05)
    table.run(60)
    record = record_of(
        replace(table.results[0], match=str(uuid.UUID(int=0, version=4))),
        table=bytes(8),
        name="Table 1",
        incarnation=bytes(8),
        seq=1,
        prev=None,
        boot=Boot("boot", "none"),
        clock=StartedClock(ManualClock()),
    )
    assert [(seat.kind, seat.player, seat.stake, seat.delta) for seat in record.seats] == [
        ("player", "40220173", 0, 0),
        ("guest", None, 0, 0),
        ("bot", None, 0, 0),
    ]
    assert not record.rated
