"""What the rules need of a story's configuration, with the specification's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from heek.simulator.story import Story

DEFAULTS: Final[Mapping[str, Any]] = {
    "table.name": "Table 1",
    "table.gap_s": 1,
    "seats.lobby_s": 10,
    "seats.lobby_idle_s": 60,
    "seats.rematch_s": 15,
    "seats.leave_s": 3,
    "seats.late_join": False,
    "ahyoheek.target": 3,
    "ahyoheek.cycle": "pen-page-beetle",
    "ahyoheek.timer": "first_throw",
    "ahyoheek.countdown_s": 5,
    "ahyoheek.reveal_s": 4,
    "ahyoheek.match_over_s": 8,
    "ahyoheek.idle_s": 60,
    "ahyoheek.guard_s": 0.3,
    "ahyoheek.settle_s": 0.03,
    "ahyoheek.allow_change": True,
    "ahyoheek.missed_limit": 3,
    "ahyoheek.sudden_death_limit": 20,
    "ahyoheek.winnerless_limit": 50,
    "ahyoheek.economy": "stake",
    "stations.debounce_s": 0.015,
    "stations.chord_s": 0.003,
    "stations.stuck_s": 20,
}


class Keys:
    """A story's configuration by dotted names."""

    def __init__(self, story: Story) -> None:
        self.table = story.table

    def value(self, key: str) -> Any:
        return self.table.get(key, DEFAULTS[key])

    def span(self, key: str) -> int:
        """A key in seconds, as nanoseconds."""
        return int(Decimal(repr(self.value(key))) * 1_000_000_000)
