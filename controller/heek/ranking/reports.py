"""What tables ask of the KI, as CBOR over HTTP: take records, say how things stand, know a table or a player.

Whatever comes gets an answer that says it is the KI's; one that is no refusal is signed for the very question
(`heek.ki.signed_answer`). What goes wrong inside is logged with all there is to know, and told without any of
it.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers
from starlette.responses import Response

from heek.clock import SECOND, Instant
from heek.errors import RankingRefusal, RecordError
from heek.ki import answers
from heek.ki.link import CONTENT_TYPE, Request
from heek.ki.signed_answer import sign_answer
from heek.ki.sync import encode_sync_answer
from heek.ranking.bodies import Bodies, BodyLost
from heek.ranking.desk import Desk
from heek.ranking.gate import ASKS, Asks
from heek.ranking.limits import Limit
from heek.ranking.operating import Operating
from heek.ranking.operator_requests import PATH as OPERATOR_PATH
from heek.ranking.service_keys import ServiceKey
from heek.serving.addresses import is_loopback

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

log: Final = logging.getLogger("heek")

HTTP_STATUS: Final = {
    "unknown_table": 403,
    "not_enrolled": 403,
    "malformed": 400,
    "too_large": 413,
    "not_demo": 403,
    "unknown_player": 404,
    "not_operator": 403,
    "unknown_code": 404,
    "unknown_match": 404,
    "busy": 503,
    "unavailable": 502,
}
"""By the code of a refusal."""

NEW_PLAYERS_AN_HOUR: Final = 200
INTRODUCTIONS_A_MINUTE: Final = 30

PATHS: Final = {each.path: each for each in Request}


class Reports:
    """Answers every POST."""

    def __init__(
        self,
        desk: Desk,
        operating: Operating,
        now: Callable[[], Instant],
        key: ServiceKey,
        name: str,
        *,
        demo: bool,
    ) -> None:
        """`key` is what answers are signed by, `name` the KI's."""
        self._desk = desk
        self._operating = operating
        self._key = key
        self._name = name
        self._now = now
        self._demo = demo
        self._bodies = Bodies()
        self._new_players = Limit(NEW_PLAYERS_AN_HOUR, 3600 * SECOND)
        self._introductions = Limit(INTRODUCTIONS_A_MINUTE, 60 * SECOND)

    def end(self) -> None:
        """Wait no longer for what is still to come."""
        self._bodies.end()

    async def answer(self, scope: Scope, receive: Receive) -> Response:
        """The answer to a request; never raises."""
        asks: Asks = scope[ASKS]
        request = PATHS.get(scope["path"])
        try:
            if request is None and scope["path"] != OPERATOR_PATH:
                words = f"nothing is taken here; records go to {Request.RECORDS.path}"
                return _refused(RankingRefusal("malformed", words), 404)
            if asks.refused is not None:
                raise asks.refused
            with self._desk.place():
                body = await self._bodies.read(receive, Headers(scope=scope).get("content-length"))
                if request is None:
                    return _answered(200, await self._operator(asks, body))
                answer = await self._done(request, asks, body)
                return _answered(200, sign_answer(answer, request, body, self._key.seed))
        except RankingRefusal as refusal:
            return _refused(refusal, HTTP_STATUS[refusal.code])
        except BodyLost:
            return _refused(RankingRefusal("malformed", "the request was not sent to its end"), 400)
        except Exception:
            log.exception("the KI failed on a request for %s", scope["path"])
            return _refused(RankingRefusal("busy", "the KI failed on this; its log says why", 30), 500)

    async def _done(self, request: Request, asks: Asks, body: bytes) -> bytes:
        try:
            match request:
                case Request.RECORDS:
                    return await self._records(asks, body)
                case Request.TABLE:
                    return await self._table(asks, body)
                case Request.PLAYER:
                    return await self._player(asks, body)
                case Request.SYNC:
                    return await self._sync(asks, body)
                case Request.CLAIM:
                    # Many tables may claim through gateways and proxies on this machine.
                    source = None if is_loopback(asks.source) else asks.source
                    return self._operating.claim(body, source)
        except RecordError as error:
            raise RankingRefusal("malformed", f"the request {error}") from None

    async def _operator(self, asks: Asks, body: bytes) -> bytes:
        if not asks.here:
            raise RankingRefusal("not_operator", "an operator asks on the KI's own machine only")
        try:
            return await self._operating.done(body)
        except RecordError as error:
            raise RankingRefusal("malformed", f"the request {error}") from None

    async def _records(self, asks: Asks, body: bytes) -> bytes:
        with _known_table(asks):
            answer, _ = await self._desk.write(lambda ledger: ledger.ingest(body), lambda done: done[1])
        return answers.encode_batch_answer(answer)

    async def _sync(self, asks: Asks, body: bytes) -> bytes:
        now = self._now()
        with _known_table(asks):
            answer, _ = await self._desk.write(lambda ledger: ledger.sync(body, now), lambda done: done[1])
        return encode_sync_answer(answer)

    async def _table(self, asks: Asks, body: bytes) -> bytes:
        if not asks.here:
            raise RankingRefusal("not_enrolled", "a table introduces itself on the KI's own machine only")
        public, name, signature = answers.read_introduction(body)
        self._limit(self._introductions, "tables introduce themselves too often")
        key = await self._desk.write(lambda ledger: ledger.introduce(public, name, signature), lambda _: True)
        return answers.encode_table_answer(key, self._key.public, self._name)

    async def _player(self, asks: Asks, body: bytes) -> bytes:
        if not self._demo:
            raise RankingRefusal("not_demo", "signing in by a click is for demonstrations; this KI is none")
        if not asks.here:
            raise RankingRefusal("not_demo", "signing in by a click works on the KI's own machine only")
        number = answers.read_sign_in(body)
        if number is None:
            self._limit(self._new_players, f"more than {NEW_PLAYERS_AN_HOUR} new players in an hour")
        who = await self._desk.write(lambda ledger: ledger.sign_in(number), lambda _: number is None)
        return answers.encode_signed_in(who)

    def _limit(self, limit: Limit, words: str) -> None:
        wait_s = limit.take(self._now())
        if wait_s:
            raise RankingRefusal("busy", words, wait_s)


@contextlib.contextmanager
def _known_table(asks: Asks) -> Iterator[None]:
    """A table that is not known may introduce itself on this machine; from elsewhere it must be enrolled."""
    try:
        yield
    except RankingRefusal as refusal:
        if refusal.code == "unknown_table" and not asks.here:
            words = f"{refusal}, and takes new ones from elsewhere only by their code: heek ki enrol CODE"
            raise RankingRefusal("not_enrolled", words) from None
        raise


def _answered(status: int, body: bytes, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status, headers, CONTENT_TYPE)


def _refused(refusal: RankingRefusal, status: int) -> Response:
    headers = {} if refusal.retry_s is None else {"Retry-After": str(refusal.retry_s)}
    # What was sent along may not have been read: the connection is of no more use.
    headers["Connection"] = "close"
    return _answered(status, answers.encode_refusal(refusal.code, str(refusal), refusal.retry_s), headers)
