"""Which contacts are closed by hands in browsers, and until when.

A hand is a finger on a glass somewhere: the page draws a name for it and says again every second that it is
still down. A contact is closed while any hand holds it. What can go wrong is on the way: a release that is
lost, or a laptop that is closed on a pressed button, must not leave a contact stuck, so a hold is a lease
that ends by itself. Two requests may overtake each other, so each carries a number that rises, and an older
one than the last for the same hand and contact is dropped. A lease that has run out is not taken up again
by the same number: a laptop that wakes after an hour must not throw for a player who has long sat down
elsewhere.

Pure: the time is an argument, and what shall happen to contacts comes back as a list.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Final, TypeAlias

from heek.clock import SECOND, Duration, Instant
from heek.errors import PageRefusal
from heek.kinds import Kind, Seat

LEASE: Final[Duration] = 3 * SECOND
"""How long a contact stays closed without a word from its hand; the page says one each second."""

MOST_OF_OWNER: Final = 60
"""Holds (a hand on a contact) that are remembered of one browser session: four for each button there is."""

MOST_OWNERS: Final = 64
"""Browser sessions that are remembered; the one that was quiet for longest is forgotten first."""

Contact: TypeAlias = tuple[Seat, Kind]
Change: TypeAlias = tuple[Seat, Kind, bool]
"""A contact closes (True) or opens."""

_Hold: TypeAlias = tuple[str, Contact]


@dataclass(slots=True)
class _Last:
    """The last that was heard of one hand on one contact."""

    n: int
    until: Instant | None
    """When the lease ends; None: it does not hold the contact."""


class Hands:
    """All hands, by the owner (a browser session) that they belong to."""

    def __init__(self, lease: Duration = LEASE) -> None:
        self._lease = lease
        self._owners: OrderedDict[str, OrderedDict[_Hold, _Last]] = OrderedDict()
        self._closed: Counter[Contact] = Counter()

    def holds(self, owner: str, hand: str, contact: Contact) -> bool:
        """Does this hand hold this contact closed?"""
        holds = self._owners.get(owner)
        last = None if holds is None else holds.get((hand, contact))
        return last is not None and last.until is not None

    def tell(
        self, owner: str, hand: str, contact: Contact, n: int, *, closed: bool, now: Instant
    ) -> list[Change]:
        """What a hand says of a contact at `now`; gives what changes.

        Raises PageRefusal when an owner has more hands on buttons than there are fingers.
        """
        changes = self.lapse(now)
        holds = self._owners.setdefault(owner, OrderedDict())
        self._owners.move_to_end(owner)
        while len(self._owners) > MOST_OWNERS:
            changes += self.drop(next(iter(self._owners)))
        last = holds.get((hand, contact))
        if last is not None and (n < last.n or (n == last.n and (closed and last.until is None))):
            return changes
        if last is None:
            self._make_room(holds)
            last = holds[hand, contact] = _Last(n, None)
        holds.move_to_end((hand, contact))
        was = last.until is not None
        last.n, last.until = n, now + self._lease if closed else None
        if was is not closed:
            changes += self._count(contact, 1 if closed else -1)
        return changes

    def due(self) -> Instant | None:
        """When the next lease ends; None: nobody holds anything."""
        return min(
            (
                last.until
                for holds in self._owners.values()
                for last in holds.values()
                if last.until is not None
            ),
            default=None,
        )

    def lapse(self, now: Instant) -> list[Change]:
        """End every lease that is over at `now`."""
        changes: list[Change] = []
        for holds in self._owners.values():
            for (_, contact), last in holds.items():
                if last.until is not None and last.until <= now:
                    last.until = None
                    changes += self._count(contact, -1)
        return changes

    def drop(self, owner: str) -> list[Change]:
        """Forget an owner, and open what only that one held."""
        changes: list[Change] = []
        for (_, contact), last in self._owners.pop(owner, OrderedDict()).items():
            if last.until is not None:
                changes += self._count(contact, -1)
        return changes

    def let_go(self, owner: str) -> list[Change]:
        """Open what only `owner` held; its numbers are remembered, so that nothing late closes it again."""
        changes: list[Change] = []
        for (_, contact), last in self._owners.get(owner, OrderedDict()).items():
            if last.until is not None:
                last.until = None
                changes += self._count(contact, -1)
        return changes

    def drop_all(self) -> list[Change]:
        """Open everything and forget everybody."""
        return [change for owner in list(self._owners) for change in self.drop(owner)]

    def _make_room(self, holds: OrderedDict[_Hold, _Last]) -> None:
        if len(holds) < MOST_OF_OWNER:
            return
        oldest = next((hold for hold, last in holds.items() if last.until is None), None)
        if oldest is None:
            raise PageRefusal(429, "too many fingers are down in this browser: lift some", 1)
        del holds[oldest]

    def _count(self, contact: Contact, by: int) -> list[Change]:
        before = self._closed[contact]
        after = before + by
        if after:
            self._closed[contact] = after
        else:
            del self._closed[contact]
        return [(*contact, after > 0)] if (before > 0) is not (after > 0) else []
