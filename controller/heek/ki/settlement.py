"""What it means when the KI holds other matches of a table than it has answered for.

Both ends have a digest: count and xor of match ids (`heek.ki.sync`). It cannot say which match is missing
where, only that the two differ, and by what. So there is one remedy, an **offer**: the table sends every
result again, and the KI takes what it lacks and calls the rest duplicates. That is how a KI that was put back
from a backup gets its matches again. What no offer can mend is a match that this journal has not: its card
was put back from a backup itself, or another table goes about with the same key. Such a difference is
**settled**: it is known, told to people, and no reason to offer again.

When is a difference settled? When at the end of an offer the KI holds exactly what it held at its beginning
and all that it has said to have accepted since (`offered` is kept up with every answer). If it holds anything
else, more has gone on: most likely it was put back once more, and has lost again what the first half of the
offer brought, or an answer was lost. Then the only safe thing is to offer again. So each offer ends in
agreement, in a difference that is understood, or in the next offer.

Results that wait need not keep two digests from being compared: one that the KI refuses may wait for months.
Of each the KI may hold it already, if its answer was lost. So a difference that is the digest of some of them
says nothing. Which ones need not be guessed: ids are random, so of up to `MOST_WAITING` no others make that
xor but by chance, and whether any do is a matter of solving equations over bits. Of more than that nothing is
said, but that a KI which holds fewer than it did has lost some.

A clone that plays on changes the difference with every match. So that two such tables do not send all they
have all day, offers are paced (`OfferPace`); less so when the KI holds less than it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from heek.clock import SECOND, Duration, Instant
from heek.ki.sync import NOTHING, Holds, difference

FIRST_PAUSE: Final[Duration] = 60 * SECOND
LONGEST_PAUSE: Final[Duration] = 3600 * SECOND
LOSS_SHARE: Final = 6
"""How much sooner after the last offer a loss is made good than any other difference."""
LONGEST_LOSS: Final[Duration] = 300 * SECOND
MOST_WAITING: Final = 64
"""Of so many ids (122 random bits each) a difference is the xor of some by chance once in 2 to the 58th."""
CALM: Final = 4
"""After so many pauses without an offer the next one is the first again."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """What a table remembers of the difference between the KI's digest and its own."""

    settled: Holds = NOTHING
    """The difference that no offer can mend."""
    offered: Holds | None = None
    """What the KI should hold by now, since an offer is under way; None: none is."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What follows from two digests."""

    after: Settlement
    offer: bool = False
    """Offer every result again."""
    lost: bool = False
    """The KI holds fewer matches than it did: it was put back, and that is hardly put off."""


def compare(before: Settlement, theirs: Holds, ours: Holds, waiting: Sequence[bytes] = ()) -> Comparison:
    """Compare the KI's digest with ours of what it has answered for; `waiting` are the matches that wait."""
    apart = difference(theirs, ours)
    lost = apart[0] < before.settled[0] if before.offered is None else theirs[0] < before.offered[0]
    if len(waiting) > MOST_WAITING and not lost:
        return Comparison(before)
    for settled in (NOTHING, before.settled):
        if _is_of(difference(apart, settled), waiting):
            # What is left of an offer goes on.
            return Comparison(Settlement(settled, before.offered if waiting else None))
    if before.offered is not None and _is_of(difference(theirs, before.offered), waiting):
        return Comparison(before if waiting else Settlement(settled=apart))
    return Comparison(Settlement(before.settled, theirs), offer=True, lost=lost)


def _is_of(holds: Holds, matches: Sequence[bytes]) -> bool:
    """Whether it can be the digest of some of these matches, or of none."""
    count, xor = holds[0], int.from_bytes(holds[1], "big")
    basis: list[int] = []
    for each in matches:
        left = int.from_bytes(each, "big")
        for one in basis:
            left = min(left, left ^ one)
        if left:
            basis.append(left)
    for one in basis:
        xor = min(xor, xor ^ one)
    return xor == 0 and 0 <= count <= len(matches)


class OfferPace:
    """How often everything may be offered again."""

    def __init__(self) -> None:
        self._pause = FIRST_PAUSE
        self._last: Instant | None = None

    def may(self, comparison: Comparison, now: Instant) -> bool:
        """Whether an offer that is wanted may begin now."""
        pause = min(self._pause // LOSS_SHARE, LONGEST_LOSS) if comparison.lost else self._pause
        return self._last is None or now - self._last >= pause

    def begun(self, now: Instant) -> None:
        """An offer has begun: the next one, for another reason than a loss, comes later."""
        if self._last is None or now - self._last > CALM * self._pause:
            self._pause = FIRST_PAUSE
        else:
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._last = now


def words(settled: Holds) -> str | None:
    """What people should know of a settled difference; None: there is none."""
    if settled == NOTHING:
        return None
    count = settled[0]
    if count > 0:
        return (
            f"the KI holds {count} {'match' if count == 1 else 'matches'} of this table that this journal "
            "has not: was its card put back from a backup? If that is all: heek journal acknowledge"
        )
    return (
        "the KI holds other matches of this table than it has answered for, and offering all of them again "
        "did not change that; see the KI's list of tables"
    )


def acknowledged_words(by: str, at_s: int, trust: str) -> str:
    """By whom and when a settled difference was acknowledged: "by Otto on 2026-11-30".

    `at_s` is in seconds since 1970, `trust` how far the clock that said so was to be believed.
    """
    if trust == "none":
        return f"by {by}, on a day that the clock did not know"
    return f"by {by} on {datetime.fromtimestamp(at_s, UTC):%Y-%m-%d}"
