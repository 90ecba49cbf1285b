"""What a table asks the KI next.

Without a pin it asks for nothing but one. Where the KI is on the same machine or at the other end of a wire,
that is an introduction: whoever answers there at first sight is the KI. Everywhere else it is a claim by a
code (`heek.ki.claim`), and nothing is said of results to anybody whom no operator has vouched for.

With a pin it reports what waits, and asks how things stand when nothing does. A KI that no longer knows the
table says so: `unknown_table` is met by an introduction, `not_enrolled` by a claim. Nobody signs a refusal;
all that a false one leads to is a code on the OLED, and whoever answers to that is not believed either,
because with a pin the answers to introduction and claim must be signed by it too. So with a pin the ordinary
question is asked now and then beside the claim: once the KI answers it, no code is wanted any more.

Only a claim takes time: it waits for a person. Everything else that leads to nothing twice is a failure, so
that no KI, whatever it says, is asked without a pause (`heek.ki.outbox`).
"""

from __future__ import annotations

from enum import Enum
from typing import Final

CLAIMS_RUNNING: Final = 5
"""After so many claims a table with a pin asks how things stand: by then a quarter of a minute has passed."""


class Ask(Enum):
    """What is asked."""

    INTRODUCTION = "introduction"
    CLAIM = "claim"
    RECORDS = "records"
    SYNC = "sync"


class Agenda:
    """What one table asks next, over a link on which first sight counts (`first_sight`) or not."""

    def __init__(self, *, first_sight: bool, pinned: bool = False) -> None:
        self._first_sight = first_sight
        self.pinned = pinned
        """Whether the table is enrolled at a KI."""
        self._claiming = False
        self._claims = 0
        """Running, since the ordinary question."""
        self._introducing = False
        self._introduced = False
        """It was in vain if the KI does not know the table now: the next one comes after a pause."""

    @property
    def claiming(self) -> bool:
        """Whether a code is wanted."""
        return self._claiming

    def next(self, *, waiting: bool) -> Ask:
        """What to ask now; `waiting`: there are results that can be sent."""
        if not self.pinned and not self._claiming and not self._first_sight:
            self._claiming = True
        if self._claiming:
            self._claims = (self._claims + 1) % (CLAIMS_RUNNING + 1)
            return Ask.CLAIM if self._claims or not self.pinned else Ask.SYNC
        if not self.pinned or self._introducing:
            return Ask.INTRODUCTION
        return Ask.RECORDS if waiting else Ask.SYNC

    def refused(self, asked: Ask, code: str) -> bool:
        """The KI refused this; whether there is something else to ask at once."""
        if code == "unknown_table" and asked in (Ask.RECORDS, Ask.SYNC):
            self._introducing = not self._introduced
            self._introduced = False
            return self._introducing
        if code == "not_enrolled" and asked is not Ask.CLAIM:
            self._introducing, self._claiming, self._claims = False, True, 0
            return True
        return False

    def failed(self, asked: Ask) -> None:
        """It came to nothing, for whatever reason: begin with the ordinary question again."""
        if asked is Ask.INTRODUCTION:
            self._introducing = False

    def introduced(self) -> None:
        """The KI knows the table; its key is pinned."""
        self.pinned, self._introducing, self._introduced = True, False, True

    def enrolled(self) -> None:
        """The code was typed in; the KI's key is pinned."""
        self.pinned, self._claiming = True, False

    def code_is_old(self) -> None:
        """Nobody typed it in in time: see whether one is still wanted."""
        self._claiming = False

    def reported(self) -> None:
        """The KI answered to records, or how things stand: it knows the table."""
        self._introduced = self._claiming = False
