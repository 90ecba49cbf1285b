"""What is wrong with the ledger, as far as anybody has met it, in words for pages and monitors.

Damage stays until the KI is started on a sound file: that one part of it can still be read is no comfort.
What may pass (a full disk, another program that holds the file) is over with the next write that goes
through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlalchemy.exc import DBAPIError

from heek.errors import RankingRefusal
from heek.ranking.store import is_damage

DAMAGED: Final = (
    "the KI's ledger is damaged; its operator is to bring back a copy (the KI's log says more), "
    "and tables play on and keep their results until then"
)
NOT_WRITTEN: Final = (
    "the KI cannot write its ledger just now (its log says why); "
    "tables play on and keep their results until then"
)


class LedgerDamaged(RankingRefusal):
    """What was asked for stands in a part of the ledger that cannot be read any more."""

    def __init__(self) -> None:
        super().__init__("busy", DAMAGED, 60)


class Health:
    """How the ledger is, as the loop knows; `changed` is called whenever that is something else."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._damaged = False
        self._not_written = False

    @property
    def damaged(self) -> bool:
        """Was damage met?"""
        return self._damaged

    @property
    def fault(self) -> str | None:
        """One sentence without names of files; None: nothing that anybody has met."""
        if self._damaged:
            return DAMAGED
        return NOT_WRITTEN if self._not_written else None

    def met(self, error: DBAPIError, *, writing: bool) -> bool:
        """The data base has refused something; is that damage? A reader that is refused else tries again."""
        damage = is_damage(error)
        if damage:
            self.found_damage()
        elif writing:
            self._tell(self._damaged, not_written=True)
        return damage

    def found_damage(self) -> bool:
        """The file does not hold together; is that news?"""
        news = not self._damaged
        self._tell(True, not_written=self._not_written)
        return news

    def written(self) -> None:
        """Something was written."""
        self._tell(self._damaged, not_written=False)

    def _tell(self, damaged: bool, *, not_written: bool) -> None:
        before = self.fault
        self._damaged, self._not_written = damaged, not_written
        if self.fault != before:
            self._changed()
