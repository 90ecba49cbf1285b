"""Asks a KI over a link, and believes the one alone that the table is enrolled at.

With a pin, every answer that is no refusal must be signed by it, for the very question; so whatever a portal,
a KI of another house or somebody in between says, no result is taken for reported by it, and no points, name
or news are taken over. Without a pin only the two questions that lead to one are asked, and the answer must
be signed by the key that it brings."""

from __future__ import annotations

from collections.abc import Sequence

from heek.errors import LinkError
from heek.ki.answers import (
    BatchAnswer,
    SignedIn,
    encode_introduction,
    encode_sign_in,
    read_answer,
    read_batch_answer,
    read_signed_in,
    read_table_answer,
)
from heek.ki.claim import Enrolled, encode_claim, read_claim_answer
from heek.ki.envelope import Envelope, batch, seal
from heek.ki.link import Link, Request
from heek.ki.signed_answer import check_answer
from heek.ki.sync import SyncAnswer, SyncQuestion, encode_question, read_sync_answer
from heek.ki.table_key import TableKey


class Asking:
    """The questions of one table; each raises LinkError if it comes to nothing, Refused if the KI refused."""

    def __init__(self, link: Link, key: TableKey, name: str) -> None:
        self._link = link
        self._key = key
        self._name = name
        self._pinned: bytes | None = None

    @property
    def pinned(self) -> bytes | None:
        """The public key of the KI that the table is enrolled at; None: at none."""
        return self._pinned

    @pinned.setter
    def pinned(self, public: bytes | None) -> None:
        self._pinned = public
        self._link.pinned = public

    async def introduce(self) -> Enrolled:
        """Show the KI our key and name; the key that it has and the name that it goes by."""
        body = encode_introduction(self._key.seed, self._name)
        answer = await self._link.ask(Request.TABLE, body)
        found = read_table_answer(answer)
        self._check(Request.TABLE, body, answer, found.public)
        if found.table != self._key.id:
            raise LinkError("the KI knows another table than the one that introduced itself")
        return Enrolled(found.public, found.name)

    async def claim(self, nonce: bytes, key: bytes) -> Enrolled | None:
        """Claim to be the table whose code gives this key; None: nobody has typed it in yet."""
        body = encode_claim(self._key.seed, self._name, nonce, key)
        answer = await self._link.ask(Request.CLAIM, body)
        found = read_claim_answer(read_answer(answer), key, self._key.public)
        self._check(Request.CLAIM, body, answer, None if found is None else found.public)
        return found

    def seal(self, record: bytes) -> Envelope:
        """A record of this key, signed; a millisecond or less each, so not on a loop."""
        return seal(record, self._key.seed)

    async def records(self, envelopes: Sequence[Envelope]) -> BatchAnswer:
        """Deliver these."""
        return read_batch_answer(await self._ask(Request.RECORDS, batch(envelopes)), len(envelopes))

    async def sync(self, question: SyncQuestion) -> SyncAnswer:
        """How things stand."""
        body = encode_question(question, self._key.seed)
        return read_sync_answer(read_answer(await self._ask(Request.SYNC, body)), question)

    async def sign_in(self, player: str | None) -> SignedIn:
        """Sign in as a demonstration does, with a number or for a new one."""
        return read_signed_in(await self._ask(Request.PLAYER, encode_sign_in(player)))

    async def _ask(self, request: Request, body: bytes) -> bytes:
        answer = await self._link.ask(request, body)
        self._check(request, body, answer, None)
        return answer

    def _check(self, request: Request, body: bytes, answer: bytes, brought: bytes | None) -> None:
        public = self._pinned if self._pinned is not None else brought
        if public is not None:
            check_answer(answer, request, body, public)
        if brought is not None and brought != public:
            raise LinkError("the KI has signed with one key and shows another; enrol this table anew")
