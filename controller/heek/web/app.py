"""What the page's server answers: its endpoints, and how they keep contacts, phones and streams in step."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from heek.clock import SECOND, Duration, Instant
from heek.errors import JournalError, PageRefusal, RecordingError, TableError
from heek.kinds import Kind, Seat
from heek.web import metrics
from heek.web import photo_pages as photo
from heek.web import requests as ask
from heek.web.about import about
from heek.web.doors import Doors, PageSettings
from heek.web.fairness_page import fairness_html
from heek.web.files import PageFile, PageFiles
from heek.web.gate import COOKIE, VISITOR, Role, Visitor, refusal_body, refusal_headers, refusal_page
from heek.web.glyphs_svg import kinds_svg
from heek.web.hands import LEASE, Change, Hands
from heek.web.live import Live
from heek.web.phones import LAPSES, Phones
from heek.web.state import faults_of

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

log: Final = logging.getLogger("heek")

_T = TypeVar("_T")
_UUID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

BODY_S: Final = 5.0
"""How long a body may take to come."""

SIGN_IN_S: Final = 10.0
MOST_SIGN_INS: Final = 5
"""Under way at once: one for each seat."""

MOST_PHOTOS: Final = 4
"""Asked for at once; they are made one after the other."""
PHOTO_S: Final = 60.0
"""How long one may take: a match of a busy day is replayed from that day's beginning."""

UNREAD: Final = "The journal cannot be read: past matches are not shown, and the table's log says why."

STALE: Final[Duration] = 2 * SECOND
"""A press that took longer to arrive was meant for a screen that is gone."""

_JOINED: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="0;url=/"><title>The heek table</title>
<link rel="stylesheet" href="/static/page.css"></head>
<body class="outside"><main><p><a href="/">To the table</a></p></main></body></html>
"""
"""A page and no redirect: after one, a browser that came from another site would not send the cookie, which
is for requests from our own pages alone."""


class PageApp:
    """The endpoints and what stands behind them; lives on the page's event loop."""

    def __init__(
        self,
        settings: PageSettings,
        doors: Doors,
        live: Live,
        phones: Phones | None,
        clock: Callable[[], Instant],
        lease: Duration = LEASE,
    ) -> None:
        self._settings = settings
        self._doors = doors
        self._live = live
        self._phones = phones
        self._clock = clock
        self._files = PageFiles()
        self._hands = Hands(lease)
        self._lapse: asyncio.TimerHandle | None = None
        self._sign_ins = 0
        self._photos = 0
        self._unread: str | None = None
        """What the journal had against being read the last time that somebody wanted a photo finish."""
        self.asgi: Final = Starlette(
            routes=self._routes(),
            exception_handlers={
                PageRefusal: _refused,
                TableError: _failed,
                HTTPException: _no_such,
                ClientDisconnect: _left,
                Exception: _broken,
            },
        )
        self.asgi.router.redirect_slashes = False

    def _routes(self) -> list[Route]:
        doors = self._doors
        routes = [
            Route("/", self._page),
            Route("/static/{name:path}", self._static),
            Route("/kinds.svg", self._kinds),
            Route("/about", self._about),
            Route("/state", self._state),
            Route("/live", _Raw(self._stream), methods=["GET"]),
            Route("/healthz", self._health),
        ]
        # What is not there is not refused: it does not exist, and no mistake elsewhere can open it.
        if doors.contact is not None:
            routes.append(Route("/contacts", self._contact, methods=["POST"]))
        if self._phones is not None:
            routes.append(Route("/join/{token}", self._join))
            if doors.contact is not None:
                routes.append(Route("/seat", self._seat, methods=["POST"]))
        if doors.fill_seats is not None:
            routes.append(Route("/bots", self._bots, methods=["POST"]))
        if doors.sign_in is not None:
            routes.append(Route("/seats/{seat}/sign-in", self._sign_in, methods=["POST"]))
        if doors.switch_ki is not None:
            routes.append(Route("/ki", self._ki, methods=["POST"]))
        if doors.fairness is not None:
            routes.append(Route("/fairness", self._fairness_page))
            routes.append(Route("/fairness.json", self._fairness))
        if doors.ki_figures is not None:
            routes.append(Route("/metrics", self._metrics))
        if doors.photo_finishes is not None:
            routes.append(Route("/photofinish", self._photo_matches))
            routes.append(Route("/photofinish/{match}", self._photo_match))
            routes.append(Route("/photofinish/{match}/{round}", self._photo_round))
        return routes

    def close(self) -> None:
        """Open every contact that a browser holds, and end all streams."""
        if self._lapse is not None:
            self._lapse.cancel()
        try:
            self._apply(self._hands.drop_all())
        finally:
            self._live.end()

    # What is read

    async def _page(self, request: Request) -> Response:
        page = self._files.get("index.html")
        if page is None:
            raise PageRefusal(500, "the page's files are missing: install heek again")
        return _file(request, page)

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        found = self._files.get(name)
        if found is None:
            raise PageRefusal(404, "there is no such file here")
        return _file(request, found)

    async def _kinds(self, request: Request) -> Response:
        return _file(request, _kinds_file())

    async def _about(self, request: Request) -> Response:
        return _json(self._about_bytes(_visitor(request)))

    def _about_bytes(self, visitor: Visitor) -> bytes:
        phone = visitor.phone
        return msgspec.json.encode(
            about(
                self._settings,
                self._doors,
                operator=visitor.role is Role.OPERATOR,
                phone=phone is not None,
                seat=None if phone is None else phone.seat,
                held=() if self._phones is None else self._phones.held(self._clock()),
            )
        )

    async def _state(self, request: Request) -> Response:  # noqa: ARG002 (Starlette's shape)
        state = self._live.state
        if state is None:
            raise PageRefusal(503, "the table is starting: ask again in a moment", 1)
        return _json(state)

    async def _health(self, request: Request) -> Response:  # noqa: ARG002 (Starlette's shape)
        faults = self._faults()
        return Response(
            msgspec.json.encode({"ok": not faults, "faults": faults}),
            503 if faults else 200,
            {"Cache-Control": "no-store"},
            "application/json",
        )

    def _faults(self) -> list[str]:
        state = self._live.state
        faults = [] if state is None else faults_of(state)
        return faults if self._unread is None else [*faults, UNREAD]

    async def _stream(self, request: Request, receive: Receive, send: Send) -> None:
        if request.method != "GET":
            raise PageRefusal(405, "a live stream can only be read")
        visitor = _visitor(request)
        phone = visitor.phone
        owner = None if phone is None else phone.cookie
        stream = self._live.open(owner, lambda: self._about_bytes(visitor))
        if phone is not None:
            phone.streams += 1
        try:
            await stream.serve(request.scope, receive, send)
        finally:
            if phone is not None:
                phone.streams -= 1
                phone.seen = self._clock()

    # What was played

    async def _fairness_page(self, request: Request) -> Response:  # noqa: ARG002 (Starlette's shape)
        assert self._doors.fairness is not None
        report, shortcomings = self._doors.fairness()
        return _html(fairness_html(self._settings.name, report, shortcomings))

    async def _fairness(self, request: Request) -> Response:  # noqa: ARG002 (Starlette's shape)
        assert self._doors.fairness is not None
        report, shortcomings = self._doors.fairness()
        return _json(msgspec.json.encode({"report": report, "shortcomings": shortcomings}))

    async def _metrics(self, request: Request) -> Response:  # noqa: ARG002 (Starlette's shape)
        assert self._doors.ki_figures is not None
        return Response(
            metrics.exposition(self._doors.ki_figures(), len(self._faults())),
            headers={"Cache-Control": "no-cache", "Content-Type": metrics.CONTENT_TYPE},
        )

    async def _photo_matches(self, request: Request) -> Response:  # noqa: ARG002 (Starlette's shape)
        name = self._settings.name
        assert self._doors.photo_finishes is not None
        try:
            matches = await self._photo(self._doors.photo_finishes.matches)
        except PageRefusal as refusal:
            return _photo_refusal(name, refusal)
        return _html(photo.matches_html(name, matches))

    async def _photo_match(self, request: Request) -> Response:
        name = self._settings.name
        try:
            drawn = await self._drawn(request)
        except PageRefusal as refusal:
            return _photo_refusal(name, refusal)
        return _html(photo.match_html(name, drawn))

    async def _photo_round(self, request: Request) -> Response:
        name, number = self._settings.name, request.path_params["round"]
        try:
            drawn = await self._drawn(request)
            finish = next((each for each in drawn.finishes if str(each.round) == number), None)
            if finish is None:
                raise PageRefusal(404, "there is no such round of this match that could be drawn")
        except PageRefusal as refusal:
            return _photo_refusal(name, refusal)
        return _html(photo.round_html(name, drawn, finish))

    async def _drawn(self, request: Request) -> photo.DrawnMatch:
        match = request.path_params["match"]
        if not _UUID.fullmatch(match):
            raise PageRefusal(404, "that is no match's number")
        assert self._doors.photo_finishes is not None
        finishes = self._doors.photo_finishes
        return await self._photo(lambda: finishes.match(match))

    async def _photo(self, ask_for: Callable[[], Future[_T]]) -> _T:
        """What a picture needs, in its own time; raises PageRefusal."""
        if self._photos >= MOST_PHOTOS:
            raise PageRefusal(503, "others look at a photo finish already: try again in a moment", 2)
        self._photos += 1
        try:
            found = await asyncio.wait_for(asyncio.wrap_future(ask_for()), PHOTO_S)
            self._unread = None
            return found
        except TimeoutError:
            raise PageRefusal(504, "the match takes too long to replay: use heek photofinish", 60) from None
        except RecordingError as error:
            raise PageRefusal(404, str(error)) from None
        except JournalError as error:
            if self._unread != str(error):
                # Once: whoever finds nothing asks again.
                self._unread = str(error)
                log.error("past matches cannot be shown: %s", error)
            raise PageRefusal(404, str(error)) from None
        finally:
            self._photos -= 1

    # What is done

    async def _contact(self, request: Request) -> Response:
        visitor = _visitor(request)
        said = await _read(request, ask.Contact)
        button = next((kind for kind in Kind if kind.value == said.button), None)
        if button is None:
            raise PageRefusal(400, "there is no such button: it is pen, page or beetle")
        self._see_to_seat(visitor, said.seat)
        now = self._clock()
        owner, contact = visitor.owner, (said.seat, button)
        held = self._hands.holds(owner, said.hand, contact)
        if said.closed and not held and said.at is not None:
            late = self._doors.now() / SECOND - said.at
            if late > STALE / SECOND:
                # Its number is remembered, so that asking again does not close the contact either.
                self._apply(self._hands.tell(owner, said.hand, contact, said.n, closed=False, now=now))
                return _json(b'{"held":false,"late":true}')
        self._apply(self._hands.tell(owner, said.hand, contact, said.n, closed=said.closed, now=now))
        self._arm()
        held = self._hands.holds(owner, said.hand, contact)
        return _json(b'{"held":true}' if held else b'{"held":false}')

    def _see_to_seat(self, visitor: Visitor, seat: Seat) -> None:
        """May this visitor press at this seat, and is there one?"""
        if visitor.role is Role.READER:
            raise PageRefusal(
                403, "buttons are pressed on the table's own machine; from here one can only look"
            )
        phone = visitor.phone
        if phone is not None:
            if phone.seat is None:
                raise PageRefusal(403, "this phone plays no seat yet: take one first")
            if phone.seat != seat:
                raise PageRefusal(403, f"this phone plays seat {phone.seat}")
        if seat not in self._settings.seats:
            raise PageRefusal(404, f"there is no seat {seat} at this table")

    def _apply(self, changes: Iterable[Change]) -> None:
        close = self._doors.contact
        if close is not None:
            for seat, button, closed in changes:
                close(seat, button, closed)

    def _arm(self) -> None:
        """See to it that the next lease ends in time."""
        if self._lapse is not None:
            self._lapse.cancel()
            self._lapse = None
        due = self._hands.due()
        if due is not None:
            delay_s = max(0, due - self._clock()) / SECOND
            self._lapse = asyncio.get_running_loop().call_later(delay_s, self._on_lapse)

    def _on_lapse(self) -> None:
        self._lapse = None
        try:
            self._apply(self._hands.lapse(self._clock()))
        finally:
            self._arm()

    async def _join(self, request: Request) -> Response:
        visitor = _visitor(request)
        response = Response(_JOINED, media_type="text/html; charset=utf-8")
        if self._phones is None or visitor.role is not Role.OUTSIDER:
            # At the table's own machine, or on a phone that has joined already.
            return response
        try:
            phone = self._phones.join(request.path_params["token"], visitor.peer, self._clock())
        except PageRefusal as refusal:
            # Somebody holds a phone and has scanned a code: they are told on a page.
            return Response(
                refusal_page(refusal),
                refusal.status,
                refusal_headers(refusal),
                media_type="text/html; charset=utf-8",
            )
        response.set_cookie(
            COOKIE, phone.cookie, max_age=LAPSES // SECOND, path="/", httponly=True, samesite="strict"
        )
        return response

    async def _seat(self, request: Request) -> Response:
        visitor = _visitor(request)
        said = await _read(request, ask.TakeSeat)
        if self._phones is None or visitor.phone is None:
            raise PageRefusal(403, "only a phone takes a seat; this machine may press at all of them")
        for moved in self._phones.sit(visitor.phone, said.seat, self._clock()):
            self._apply(self._hands.let_go(moved.cookie))
        self._arm()
        self._live.renew_about()
        return _json(self._about_bytes(visitor))

    async def _bots(self, request: Request) -> Response:
        visitor = _visitor(request)
        await _read(request, ask.Nothing)
        if visitor.role is Role.READER:
            raise PageRefusal(403, "bots are asked for on the table's own machine")
        if visitor.phone is not None and visitor.phone.seat is None:
            raise PageRefusal(403, "take a seat first; then this phone may ask for bots")
        if self._doors.fill_seats is not None:
            self._doors.fill_seats()
        return _json(b"{}")

    async def _sign_in(self, request: Request) -> Response:
        self._only_here(request, "signing in by a click")
        number = request.path_params["seat"]
        said = await _read(request, ask.SignIn)
        if not re.fullmatch("[1-5]", number) or int(number) not in self._settings.seats:
            raise PageRefusal(404, "there is no such seat at this table")
        if self._sign_ins >= MOST_SIGN_INS:
            raise PageRefusal(503, "others are signing in: try again in a moment", 2)
        assert self._doors.sign_in is not None
        self._sign_ins += 1
        try:
            future = self._doors.sign_in(int(number), said.player)
            signed = await asyncio.wait_for(asyncio.wrap_future(future), SIGN_IN_S)
        except TimeoutError:
            raise PageRefusal(504, "the KI does not answer: try again, or play as a guest", 5) from None
        finally:
            self._sign_ins -= 1
        return _json(
            msgspec.json.encode(
                {"player": signed.player, "name": signed.name, "points": signed.points, "unverified": True}
            )
        )

    async def _ki(self, request: Request) -> Response:
        self._only_here(request, "stopping and starting the KI")
        said = await _read(request, ask.SwitchKi)
        if self._doors.switch_ki is not None:
            self._doors.switch_ki(said.running)
        return _json(b"{}")

    def _only_here(self, request: Request, what: str) -> None:
        if _visitor(request).role is not Role.OPERATOR:
            raise PageRefusal(403, f"{what} is for the table's own machine")


class _Raw:
    """An endpoint that speaks ASGI by itself: Starlette's responses cannot be cut off in the middle."""

    def __init__(self, serve: Callable[[Request, Receive, Send], Awaitable[None]]) -> None:
        self._serve = serve

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._serve(Request(scope, receive, send), receive, send)


@cache
def _kinds_file() -> PageFile:
    return PageFile.of(kinds_svg().encode(), "image/svg+xml")


def _visitor(request: Request) -> Visitor:
    visitor: Visitor = request.scope[VISITOR]
    return visitor


async def _read(request: Request, shape: type[ask._Shape]) -> ask._Shape:
    """The request's body; raises PageRefusal if it is too large, too slow or not of that shape."""
    too_large = PageRefusal(413, f"a request here has at most {ask.MOST_BYTES} bytes")
    length = request.headers.get("content-length", "0")
    if not re.fullmatch("[0-9]{1,9}", length) or int(length) > ask.MOST_BYTES:
        raise too_large
    body = b""
    try:
        async with asyncio.timeout(BODY_S):
            async for part in request.stream():
                body += part
                if len(body) > ask.MOST_BYTES:
                    raise too_large
    except TimeoutError:
        raise PageRefusal(408, "the rest of this request did not come in time") from None
    return ask.read(body, shape)


def _html(body: bytes, status: int = 200) -> Response:
    return Response(body, status, {"Cache-Control": "no-cache"}, media_type="text/html; charset=utf-8")


def _photo_refusal(name: str, refusal: PageRefusal) -> Response:
    """Told to a person: these are pages."""
    response = _html(photo.refusal_html(name, str(refusal)), refusal.status)
    response.headers.update(refusal_headers(refusal))
    return response


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


def _file(request: Request, file: PageFile) -> Response:
    headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
    known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    if file.tag in known:
        return Response(status_code=304, headers=headers)
    return Response(file.body, headers=headers | {"Content-Type": file.kind})


# What went wrong, in words

_WORDS: Final = {404: "there is nothing here by that name", 405: "that cannot be done here"}


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, PageRefusal)
    return Response(refusal_body(error), error.status, refusal_headers(error), media_type="application/json")


async def _failed(request: Request, error: Exception) -> Response:
    """The table cannot do it; it says why."""
    return await _refused(request, PageRefusal(409, str(error)))


async def _no_such(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    response = await _refused(request, PageRefusal(status, _WORDS.get(status, "that cannot be done here")))
    response.headers.update(error.headers or {})
    return response


async def _left(_request: Request, _error: Exception) -> Response:
    """The browser has gone in the middle of what it said: nobody reads this."""
    return Response(status_code=400)


async def _broken(request: Request, _error: Exception) -> Response:
    return await _refused(request, PageRefusal(500, "the page's server made a mistake; see the table's log"))
