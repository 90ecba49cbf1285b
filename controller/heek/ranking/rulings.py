"""Whether a match counts: an operator may have declared it void, and may have taken that back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select

from heek.ranking.schema import rulings


@dataclass(frozen=True, slots=True)
class Ruling:
    """One thing that an operator declared about a match."""

    voids: bool
    """Else it restores."""
    actor: str
    reason: str


def is_void(match: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether the match of this column (inner id) is void: the last ruling on it voids it."""
    return match.in_(
        select(rulings.c.match).group_by(rulings.c.match).having(func.max(rulings.c.turn) % 2 == 1)
    )


def ruling(row: Any) -> Ruling:
    """Of a row of `rulings`."""
    return Ruling(row.turn % 2 == 1, row.actor, row.reason)


def rulings_on(connection: Connection, match: int) -> tuple[Ruling, ...]:
    """All that was declared about a match (inner id), the first one first."""
    rows = connection.execute(select(rulings).where(rulings.c.match == match).order_by(rulings.c.turn))
    return tuple(ruling(row) for row in rows)
