"""What everybody may read: pages for people, JSON for programs, the live stream, and the pages' own files.

What is not there, or not understood, is said as a page to people and as JSON to programs.
"""

from __future__ import annotations

import hashlib
import logging
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from sqlalchemy import Connection
from starlette.datastructures import Headers, QueryParams
from starlette.responses import Response

from heek.clock import SECOND, Instant
from heek.errors import RankingRefusal
from heek.ranking.board import MOST, PAGE, board, last_matches, match_page, player_page
from heek.ranking.board_pages import board_page
from heek.ranking.desk import Desk
from heek.ranking.enrol_page import EnrolPage
from heek.ranking.frame import words_page
from heek.ranking.gate import ASKS, ENROL_PATH, Asks, WrongName
from heek.ranking.health import LedgerDamaged
from heek.ranking.live import Live
from heek.ranking.match_pages import match_html
from heek.ranking.player_pages import player_html
from heek.ranking.programs import board_json, player_json
from heek.ranking.reports import HTTP_STATUS, PATHS
from heek.ranking.settings import ServiceSettings
from heek.ranking.table_list import table_list
from heek.ranking.tables_page import tables_html

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Scope

log: Final = logging.getLogger("heek")

_STATIC: Final = Path(__file__).parent / "static"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HTML: Final = "text/html; charset=utf-8"
_JSON: Final = "application/json"

TABLES_FOR: Final = 2 * SECOND
"""How long what tables say of themselves may be shown after it has changed."""


class NotThere(Exception):
    """There is no such page; the text says what there is instead."""


class Reading:
    """Answers every GET."""

    def __init__(
        self,
        settings: ServiceSettings,
        desk: Desk,
        live: Live,
        enrolling: EnrolPage,
        now: Callable[[], Instant],
    ) -> None:
        self._settings = settings
        self._desk = desk
        self._live = live
        self._enrolling = enrolling
        self._now = now
        self._files = {
            path.name: (path.read_bytes(), _TYPES[path.suffix])
            for path in sorted(_STATIC.iterdir())
            if path.suffix in _TYPES
        }

    async def answer(self, scope: Scope) -> ASGIApp:
        """What answers a request; never raises."""
        asks: Asks = scope[ASKS]
        program = scope["path"].startswith("/v1/")
        try:
            if asks.refused is not None:
                raise asks.refused
            return await self._found(scope)
        except LedgerDamaged as damaged:
            return self._words(503, "Out of order", damaged, program, fault="the KI’s ledger is damaged")
        except RankingRefusal as refusal:
            status = 421 if isinstance(refusal, WrongName) else HTTP_STATUS[refusal.code]
            return self._words(status, "Not now" if status == 503 else "Not here", refusal, program)
        except NotThere as error:
            return self._words(404, "Not there", error, program)
        except ValueError as error:
            return self._words(400, "Not understood", error, program)
        except Exception:
            log.exception("the KI failed on a page")
            return self._words(500, "Out of order", "the KI failed on this; its log says why", program)

    async def _found(self, scope: Scope) -> ASGIApp:
        path: str = scope["path"]
        query = QueryParams(scope["query_string"])
        if path == "/":
            return await self._board(_text(query, "after"))
        if path == "/tables":
            return await self._tables()
        if path == "/live":
            if scope["method"] == "HEAD":
                return Response(media_type="text/event-stream")
            return self._live.open()
        if path == "/healthz":
            fault = await self._desk.fault(self._now())
            text = "ok" if fault is None else fault
            return Response(f"{text}\n", 200 if fault is None else 503, media_type="text/plain")
        if path == ENROL_PATH:
            return self._enrolling.shown(scope[ASKS])
        if path == "/v1/board":
            return await self._board_json(_text(query, "after"), _whole(query, "limit", MOST) or MOST)
        if found := re.fullmatch(r"/static/([a-z_]+\.[a-z]+)", path):
            return self._file(found[1], Headers(scope=scope).get("if-none-match"))
        if found := re.fullmatch(r"(/v1)?/players/([0-9]{8})", path, re.ASCII):
            before = _whole(query, "before", 1 << 53)
            if found[1]:
                return await self._player_json(found[2], before, _whole(query, "limit", MOST) or MOST)
            return await self._player(found[2], before)
        if found := re.fullmatch(r"/matches/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", path):
            return await self._match(uuid.UUID(found[1]))
        if path in PATHS:
            raise NotThere("tables report here; there is nothing to read")
        raise NotThere(
            "this KI has a board, pages of players and matches and one of the tables, and this is none"
        )

    async def _board(self, after: str | None) -> Response:
        state, notice = self._live.state, self._desk.damage

        def made(connection: Connection) -> bytes:
            shown = board(connection, after)
            return board_page(
                self._settings.name, state, self._settings.demo, shown, last_matches(connection), notice
            )

        return _page(await self._desk.read(("/", after), made), "there is no board")

    async def _player(self, number: str, before: int | None) -> Response:
        state, notice = self._live.state, self._desk.damage

        def made(connection: Connection) -> bytes | None:
            shown = player_page(connection, number, before, PAGE)
            return player_html(self._settings.name, state, shown, notice) if shown else None

        return _page(await self._desk.read(("/players", number, before), made), _nobody(number))

    async def _match(self, match: uuid.UUID) -> Response:
        state, notice = self._live.state, self._desk.damage

        def made(connection: Connection) -> bytes | None:
            shown = match_page(connection, match)
            return match_html(self._settings.name, state, shown, notice) if shown else None

        return _page(await self._desk.read(("/matches", match), made), f"no match {match} counts here")

    async def _tables(self) -> Response:
        state, notice = self._live.state, self._desk.damage

        def made(connection: Connection) -> bytes:
            return tables_html(self._settings.name, state, table_list(connection), notice)

        # That a table was seen again changes no page but this, so it is kept for a while only.
        key = ("/tables", self._now() // TABLES_FOR)
        return _page(await self._desk.read(key, made), "there is no table")

    async def _board_json(self, after: str | None, limit: int) -> Response:
        def made(connection: Connection) -> bytes:
            return board_json(board(connection, after, limit))

        return _json(await self._desk.read(("/v1/board", after, limit), made), "there is no board")

    async def _player_json(self, number: str, before: int | None, limit: int) -> Response:
        def made(connection: Connection) -> bytes | None:
            shown = player_page(connection, number, before, limit)
            return player_json(shown) if shown else None

        return _json(await self._desk.read(("/v1/players", number, before, limit), made), _nobody(number))

    def _file(self, name: str, known: str | None) -> Response:
        if name not in self._files:
            raise NotThere(f"there is no file {name}")
        body, kind = self._files[name]
        headers = {"Cache-Control": "no-cache", "ETag": f'"{hashlib.sha256(body).hexdigest()[:24]}"'}
        if known == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type=kind)

    def _words(
        self, status: int, title: str, error: Exception | str, program: bool, fault: str | None = None
    ) -> Response:
        said = str(error)
        headers = {}
        if isinstance(error, RankingRefusal) and error.retry_s is not None:
            headers["Retry-After"] = str(error.retry_s)
        if program:
            return Response(msgspec.json.encode({"ki": 1, "error": said}), status, headers, _JSON)
        words = f"{said[:1].upper()}{said[1:]}."
        return Response(words_page(self._settings.name, title, words, fault), status, headers, _HTML)


def _nobody(number: str) -> str:
    return f"nobody here has the KI number {number}"


def _page(body: bytes | None, missing: str) -> Response:
    if body is None:
        raise NotThere(missing)
    return Response(body, media_type=_HTML)


def _json(body: bytes | None, missing: str) -> Response:
    if body is None:
        raise NotThere(missing)
    return Response(body, media_type=_JSON)


def _text(query: QueryParams, key: str) -> str | None:
    return query.get(key)


def _whole(query: QueryParams, key: str, most: int) -> int | None:
    """A number in a query, 1 to `most`; raises ValueError for anything else."""
    given = query.get(key)
    if given is None:
        return None
    if not re.fullmatch(r"[0-9]{1,16}", given, re.ASCII) or not 1 <= int(given) <= most:
        raise ValueError(f"“{key}” is a whole number from 1 to {most}")
    return int(given)
