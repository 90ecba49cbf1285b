"""What an operator has the KI do: enrol tables by their code, and rule on matches and players.

It is done on the KI's own machine only, for whoever shows the operator's word: by the commands of `heek ki`,
which read it from its file, and, for enrolling alone, by a page into which it is typed. A page of somebody
else's cannot do it in an operator's name, because it does not know the word and no browser keeps it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from heek.clock import SECOND, Instant
from heek.errors import RankingRefusal
from heek.ki.claim import Claim, claim_key, is_code_of, read_claim, read_code
from heek.ranking.claims import Claims, Waiting
from heek.ranking.desk import Desk
from heek.ranking.enrolling import EnrolledTable
from heek.ranking.limits import Limit
from heek.ranking.operator_requests import Enrol, ListTables, encode_said, encode_tables, read_request
from heek.ranking.service_keys import is_operator_key
from heek.ranking.table_list import table_list

WRONG_KEYS_A_MINUTE: Final = 10


class AlreadyEnrolled(RankingRefusal):
    """The code has done already what is asked for: no refusal to a person, who is told so."""

    def __init__(self) -> None:
        super().__init__(
            "unknown_code",
            "this code was typed in already, and its table is enrolled; nothing is left to do",
        )


class Operating:
    """Claims of tables, and the wishes of whoever is the operator; lives on one event loop, closed once."""

    def __init__(self, desk: Desk, now: Callable[[], Instant], claims: Claims, key: str) -> None:
        """`key` is the operator's word."""
        self._desk = desk
        self._now = now
        self._claims = claims
        self._key = key
        self._wrong_keys = Limit(WRONG_KEYS_A_MINUTE, 60 * SECOND)
        self._codes = ThreadPoolExecutor(1, "heek-ki-codes")
        """A code takes its time and memory: one after the other."""

    def close(self) -> None:
        """Let go of the thread; what is being tried comes to its end."""
        self._codes.shutdown(cancel_futures=True)

    def waiting(self) -> tuple[Waiting, ...]:
        """The tables that show a code now."""
        return self._claims.waiting(self._now())

    def claim(self, body: bytes, source: str | None) -> bytes:
        """The body of the answer to a table's claim; raises RecordError or RankingRefusal."""
        return self._claims.answer(read_claim(body), source, self._now())

    async def done(self, body: bytes) -> bytes:
        """The body of the answer to an operator's request; raises RecordError or RankingRefusal."""
        request = read_request(body)
        self._check_key(request.key)
        wish = request.wish
        if isinstance(wish, Enrol):
            try:
                return encode_said(enrolled_words(await self.enrol(wish, request.actor)))
            except AlreadyEnrolled as done:
                return encode_said(str(done))
        if isinstance(wish, ListTables):
            now = self._now()
            names = tuple(each.name for each in self._claims.waiting(now))
            # Not kept like a page: whoever asks by a command wants to know how it is now.
            answer = await self._desk.read(
                ("/v1/operator", now), lambda connection: encode_tables(table_list(connection), names)
            )
            assert answer is not None
            return answer
        return encode_said(
            await self._desk.write(lambda ledger: ledger.act(wish, request.actor), lambda _: True)
        )

    async def enrol_by_page(self, key: str, wish: Enrol, actor: str) -> EnrolledTable:
        """The same for what was typed into the page; raises RankingRefusal."""
        self._check_key(key)
        return await self.enrol(wish, actor)

    async def enrol(self, wish: Enrol, actor: str) -> EnrolledTable:
        """Take the table that shows this code.

        Raises RankingRefusal if there is none, AlreadyEnrolled if nothing is left to do.
        """
        try:
            code = read_code(wish.code)
        except ValueError as error:
            raise RankingRefusal("unknown_code", str(error)) from None
        loop = asyncio.get_running_loop()
        for claim in self._claims.open_for_codes(self._now()):
            key = await loop.run_in_executor(self._codes, claim_key, code, claim.public, claim.nonce)
            if is_code_of(claim, key):
                return await self._take(claim, code, key, wish.replaces, actor)
        if self._claims.worked(code, self._now()):
            if wish.replaces is not None and wish.replaces != self._claims.took_place_of(code):
                raise RankingRefusal(
                    "unknown_code",
                    f"this code was typed in already, and its table is enrolled, but not in the place of "
                    f"{wish.replaces}; for that have it show another (heek enrol --again at the table)",
                )
            raise AlreadyEnrolled
        self._claims.wrong_code(self._now())
        raise RankingRefusal(
            "unknown_code",
            "no table shows this code; type it as the display shows it now (it changes every ten minutes)",
        )

    async def _take(
        self, claim: Claim, code: str, key: bytes, replaces: str | None, actor: str
    ) -> EnrolledTable:
        enrolled = await self._desk.write(
            lambda ledger: ledger.enrol(claim.public, claim.name, replaces, actor), lambda _: True
        )
        self._claims.confirm(claim, code, key, self._now(), replaces)
        return enrolled

    def _check_key(self, key: str) -> None:
        if is_operator_key(key, self._key):
            return
        wait_s = self._wrong_keys.take(self._now())
        if wait_s:
            raise RankingRefusal("busy", "the operator's key was wrong too often", wait_s)
        raise RankingRefusal(
            "not_operator",
            "this is not the operator's key: the word after secret in operator.key, beside the ledger",
        )


def enrolled_words(enrolled: EnrolledTable) -> str:
    """What was done, as a sentence."""
    place = "" if enrolled.replaces is None else f", in the place of {enrolled.replaces}"
    return f"{enrolled.name} is enrolled{place}; its key is {enrolled.key_id.hex()}"
