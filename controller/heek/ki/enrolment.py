"""The table's side of enrolment by a code: draw one, have the KI hear of it, show it, until it is used or
old.

A code is drawn when one is wanted and shown once the KI waits for it: typed in before that, the operator
would be told that no table shows it. It is good for `heek.ki.claim.LIFETIME` from when it was drawn, by the
table's own clock, which begins with the program and is never set; what year it is does not matter. Then it is
thrown away and, if one is still wanted, the next one drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from heek.clock import SECOND, Duration, Instant
from heek.ki.claim import LIFETIME, NONCE_BYTES, draw_code

EVERY: Final[Duration] = 3 * SECOND
"""How often the claim is sent while nobody has typed the code in."""


@dataclass(slots=True)
class Attempt:
    """One code, and what belongs to it."""

    code: str
    nonce: bytes
    drawn_at: Instant
    key: bytes | None = None
    """What code and nonce give (`heek.ki.claim.claim_key`), once it is worked out."""
    heard: bool = False
    """The KI waits for the code."""


class Enrolment:
    """The codes of one table, one at a time. `draw(n)` gives a random number below n."""

    def __init__(self, draw: Callable[[int], int]) -> None:
        self._draw = draw
        self._attempt: Attempt | None = None

    def shown(self, now: Instant) -> str | None:
        """The code that is to be shown; None: none is."""
        attempt = self._attempt
        return attempt.code if attempt is not None and attempt.heard and not self.is_old(now) else None

    def is_old(self, now: Instant) -> bool:
        """Whether there is a code whose time is over."""
        return self._attempt is not None and now - self._attempt.drawn_at >= LIFETIME

    def attempt(self, now: Instant) -> Attempt:
        """The code to claim with; a new one if there is none, or the last one is old."""
        if self._attempt is None or self.is_old(now):
            nonce = bytes(self._draw(256) for _ in range(NONCE_BYTES))
            self._attempt = Attempt(draw_code(self._draw), nonce, now)
        return self._attempt

    def over(self) -> None:
        """No code is wanted any more: it was used, or the KI knows the table after all."""
        self._attempt = None
