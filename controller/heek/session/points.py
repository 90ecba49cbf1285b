"""Whose points a match moves: the stakes at its start, and the result at its end."""

from __future__ import annotations

from collections.abc import Mapping

from heek.clock import Instant
from heek.games.ahyoheek import Won
from heek.games.ranking_points import GRANT, RULES_VERSIONS, deltas, stake
from heek.kinds import Seat
from heek.session.state import Match, MatchResult


class KnownPoints:
    """The points of every player this table knows of.

    They are what the KI told last, or the grant for a player never seen, and on top `own_deltas`: what
    this table has reported, or will report, and the KI has not answered for.
    """

    def __init__(self, own_deltas: Mapping[str, int], told: Mapping[str, int] | None = None) -> None:
        self._own = dict(own_deltas)
        self._told = dict(told or {})

    def points(self, player: str) -> int:
        """What a KI number holds, as far as this table knows; may be below zero."""
        return self._told.get(player, GRANT) + self._own.get(player, 0)

    def tell(self, points: Mapping[str, int], acknowledged: Mapping[str, int]) -> None:
        """The KI told what players hold, and that these sums of our deltas are in that."""
        self._told.update(points)
        for player, delta in acknowledged.items():
            self._own[player] = self._own.get(player, 0) - delta

    def known(self, player: str) -> tuple[int | None, int]:
        """What the KI told last of a player, None if nothing, and our own deltas on top."""
        return self._told.get(player), self._own.get(player, 0)

    def know(self, player: str, told: int | None, own: int) -> None:
        """Take over what `known` gave at another time or table."""
        if told is None:
            self._told.pop(player, None)
        else:
            self._told[player] = told
        self._own[player] = own

    def stake(self, player: str | None) -> int:
        """What a seat puts into a match that starts now; guests nothing."""
        return 0 if player is None else stake(self.points(player))

    def settle(self, match: Match, won: Won, economy: str, at: Instant) -> MatchResult:
        """Move the points of a match that was won, and say what moved."""
        moved = deltas(
            [entry.stake for entry in match.entries],
            [match.rated and entry.player is not None for entry in match.entries],
            match.entries.index(match.entry(won.seat)),
            economy,
        )
        for entry, delta in zip(match.entries, moved, strict=True):
            if entry.player is not None:
                self._own[entry.player] = self._own.get(entry.player, 0) + delta
        return MatchResult(
            match=match.id,
            rules=RULES_VERSIONS[economy],
            winner=won.seat,
            by=won.by,
            entries=tuple(match.entries),
            deltas=moved,
            rounds=tuple(match.rounds),
            late_rounds=tuple(match.late_rounds),
            rated=match.rated,
            started_at=match.started_at,
            ended_at=at,
        )


def deltas_by_seat(result: MatchResult) -> dict[Seat, int]:
    """What each seat gained or lost; one that was left and joined again had two players, and carries both."""
    by_seat: dict[Seat, int] = {}
    for entry, delta in zip(result.entries, result.deltas, strict=True):
        by_seat[entry.seat] = by_seat.get(entry.seat, 0) + delta
    return dict(sorted(by_seat.items()))
