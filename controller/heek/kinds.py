"""The five seats and the three kinds by which everything else is named."""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

Seat: TypeAlias = int
"""One side of the table, 1 to 5, clockwise."""

SEATS: Final[tuple[Seat, ...]] = (1, 2, 3, 4, 5)


class Kind(Enum):
    """What a button is for, what a throw is, and what a collection counts.

    The order is that of the buttons from the player's left (spec/ahyoheek.md, "Words").
    """

    PEN = "pen"
    PAGE = "page"
    BEETLE = "beetle"


KINDS: Final[tuple[Kind, ...]] = (Kind.PEN, Kind.PAGE, Kind.BEETLE)
OUTER: Final[frozenset[Kind]] = frozenset({Kind.PEN, Kind.BEETLE})
"""The two buttons that, held together, make a seat stand up."""
