"""Tables that show a code and wait for an operator to type it in, and those whose code was (`heek.ki.claim`).

Kept in memory only: a code lives ten minutes, and a table claims again every few seconds. Anybody may claim,
so there is room for few: `MOST_OF_A_SOURCE` of each source, because tables behind one router or gateway share
an address, and `MOST` of all together. A claim whose code was typed in stands apart and gives way to none: it
is answered for as long as its code would have lived, since the first answer may be lost; its code is good for
nothing more.

Pure but for the codes' own key, which takes its time: `claim_key` is for a thread, not for a loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from heek.clock import SECOND, Instant
from heek.errors import RankingRefusal
from heek.ki.claim import LIFETIME, Claim, encode_enrolled, encode_waiting, service_mark
from heek.ranking.limits import Limit

MOST: Final = 40
MOST_OF_A_SOURCE: Final = 8
RETRY_S: Final = 60
WRONG_CODES: Final = 10
"""At once, and as many again over the life of a code."""


@dataclass(frozen=True, slots=True)
class _Pending:
    claim: Claim
    source: str | None
    since: Instant


@dataclass(frozen=True, slots=True)
class _Confirmed:
    key: bytes
    """What its code gives."""
    since: Instant
    """When it was first claimed."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A table that shows a code."""

    name: str
    since: Instant


class Claims:
    """All claims that are under way at a KI with this public key and name."""

    def __init__(self, public: bytes, name: str) -> None:
        self._public = public
        self._name = name
        self._pending: dict[bytes, _Pending] = {}
        """By the table's public key, the one that came first first."""
        self._confirmed: dict[Claim, _Confirmed] = {}
        """Those whose code was typed in."""
        self._worked: dict[str, tuple[Instant, str | None]] = {}
        """Codes that were typed in, when, and in the place of which table.

        They are good for nothing more, but people type them again.
        """
        self._wrong = Limit(WRONG_CODES, LIFETIME)
        self._none_before: Instant | None = None

    def answer(self, claim: Claim, source: str | None, now: Instant) -> bytes:
        """The body of the answer to a claim that came from `source`; None: from this machine.

        Raises RankingRefusal if too many tables wait already.
        """
        self._forget_old(now)
        confirmed = self._confirmed.get(claim)
        if confirmed is not None:
            mark = service_mark(confirmed.key, claim.public, self._public, self._name)
            return encode_enrolled(self._public, self._name, mark)
        there = self._pending.get(claim.public)
        if there is None or there.claim != claim:
            self._take(claim, source, now)
        return encode_waiting()

    def waiting(self, now: Instant) -> tuple[Waiting, ...]:
        """The tables whose codes nobody has typed in yet, the first one first."""
        self._forget_old(now)
        return tuple(Waiting(each.claim.name, each.since) for each in self._pending.values())

    def open_for_codes(self, now: Instant) -> tuple[Claim, ...]:
        """The claims that a code may belong to; raises RankingRefusal after too many wrong ones."""
        if self._none_before is not None and now < self._none_before:
            wait_s = max(1, -(-(self._none_before - now) // SECOND))
            raise RankingRefusal("busy", "too many wrong codes were typed in", wait_s)
        self._forget_old(now)
        return tuple(each.claim for each in self._pending.values())

    def wrong_code(self, now: Instant) -> None:
        """Somebody has typed a code that no table shows."""
        wait_s = self._wrong.take(now)
        if wait_s:
            self._none_before = now + wait_s * SECOND

    def worked(self, code: str, now: Instant) -> bool:
        """Whether this code was typed in a while ago, and was right."""
        self._forget_old(now)
        return code in self._worked

    def took_place_of(self, code: str) -> str | None:
        """Of a code that worked: whose place was asked for; None: nobody's."""
        return self._worked[code][1]

    def confirm(self, claim: Claim, code: str, key: bytes, now: Instant, replaces: str | None = None) -> None:
        """Its code was typed in, and the table is known from now on; `key` is what the code gives.

        `replaces` is the table in whose place it was asked for.
        """
        self._worked[code] = now, replaces
        since = now
        there = self._pending.get(claim.public)
        if there is not None and there.claim == claim:
            since = there.since
            del self._pending[claim.public]
        # Others may have displaced it while its code was tried: its table is to hear of it all the same.
        self._confirmed[claim] = _Confirmed(key, since)

    def _take(self, claim: Claim, source: str | None, now: Instant) -> None:
        self._pending.pop(claim.public, None)
        if source is not None:
            there = [public for public, each in self._pending.items() if each.source == source]
            for public in there[: max(0, len(there) + 1 - MOST_OF_A_SOURCE)]:
                del self._pending[public]
        if len(self._pending) >= MOST:
            raise RankingRefusal("busy", f"{MOST} tables wait to be enrolled already", RETRY_S)
        self._pending[claim.public] = _Pending(claim, source, now)

    def _forget_old(self, now: Instant) -> None:
        self._pending = {key: each for key, each in self._pending.items() if now - each.since < LIFETIME}
        self._confirmed = {
            claim: each for claim, each in self._confirmed.items() if now - each.since < LIFETIME
        }
        self._worked = {code: each for code, each in self._worked.items() if now - each[0] < LIFETIME}
