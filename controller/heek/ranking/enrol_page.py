"""The page on which an operator types in the code that a table shows; on the KI's own machine only.

It asks for the operator's key each time, and no browser is to keep it. It has no script and no live stream.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import Response

from heek.clock import SECOND, Duration, Instant
from heek.errors import RankingRefusal
from heek.ranking.bodies import Bodies, BodyLost
from heek.ranking.claims import Waiting
from heek.ranking.frame import page, words_page
from heek.ranking.gate import ASKS, ENROL_PATH, Asks
from heek.ranking.operating import AlreadyEnrolled, Operating, enrolled_words
from heek.ranking.operator_requests import OPERATOR, Enrol, refusal_words
from heek.ranking.words import counted
from heek.serving.markup import Markup, element

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

log: Final = logging.getLogger("heek")

_HTML: Final = "text/html; charset=utf-8"
_STATUS: Final = {"busy": 503, "not_operator": 403}


class EnrolPage:
    """Shows the page, and takes what was typed into it."""

    def __init__(self, operating: Operating, service: str, now: Callable[[], Instant]) -> None:
        self._operating = operating
        self._service = service
        self._now = now
        self._bodies = Bodies()

    def end(self) -> None:
        """Wait no longer for what is still to come."""
        self._bodies.end()

    def shown(self, asks: Asks) -> Response:
        """The answer to a GET."""
        if not asks.here:
            return self._elsewhere()
        return self._page(200, None)

    async def answer(self, scope: Scope, receive: Receive) -> Response:
        """The answer to a POST; never raises."""
        asks: Asks = scope[ASKS]
        if not asks.here:
            return self._elsewhere()
        try:
            if asks.refused is not None:
                raise asks.refused
            typed = _fields(await self._bodies.read(receive, Headers(scope=scope).get("content-length")))
            wish = Enrol(typed.get("code", ""), typed.get("replaces") or None)
            enrolled = await self._operating.enrol_by_page(typed.get("key", ""), wish, OPERATOR)
        except AlreadyEnrolled as done:
            return self._page(200, _sentence(str(done)), done=True)
        except RankingRefusal as refusal:
            return self._page(_STATUS.get(refusal.code, 400), _sentence(refusal_words(refusal)))
        except BodyLost:
            return self._page(400, "What was typed did not come to its end.")
        except Exception:
            log.exception("the KI failed on its page for enrolling")
            return self._page(500, "The KI failed on this; its log says why.")
        return self._page(200, _sentence(enrolled_words(enrolled)), done=True)

    def _page(self, status: int, said: str | None, *, done: bool = False) -> Response:
        body = page(
            self._service,
            "",
            f"Enrol a table · {self._service}",
            element(
                "section",
                element("p", element("a", "The tables", href="/tables"), class_="back"),
                element("h2", "Enrol a table"),
                element("p", said, class_="said done" if done else "said", role="status") if said else None,
                _form(),
                class_="enrol",
                aria_label="Enrol a table",
            ),
            element(
                "section",
                element("h2", "Tables that show a code"),
                *_waiting(self._operating.waiting(), self._now()),
                class_="claims",
                aria_label="Tables that show a code",
            ),
            kind="enrol-page",
        )
        return Response(body, status, media_type=_HTML)

    def _elsewhere(self) -> Response:
        words = (
            "Tables are enrolled on the KI's own machine only: open this page there, or type "
            "heek ki enrol CODE."
        )
        return Response(words_page(self._service, "Not here", words), 403, media_type=_HTML)


def _form() -> Markup:
    return element(
        "form",
        _field(
            "code",
            "The code on the table's display",
            "Eight letters, in any case, with or without the gap.",
            required=True,
            maxlength=24,
            autocapitalize="characters",
            class_="code",
        ),
        _field(
            "key",
            "The operator's key",
            "The word after “secret” in operator.key, beside the ledger; its whole line will do.",
            type="password",
            required=True,
            maxlength=100,
        ),
        _field(
            "replaces",
            "The table whose place it takes",
            "Only after a board or card was swapped: the old table's name, or its key. Else leave it empty.",
            maxlength=64,
        ),
        element("button", "Enrol", type="submit"),
        method="post",
        action=ENROL_PATH,
        autocomplete="off",
    )


def _field(name: str, label: str, hint: str, **attributes: str | int | bool) -> Markup:
    given: dict[str, str | int | bool] = {"type": "text", "autocomplete": "off", "spellcheck": "false"}
    return element(
        "p",
        element("label", label, for_=name),
        element("input", id=name, name=name, aria_describedby=f"{name}-hint", **(given | attributes)),
        element("span", hint, id=f"{name}-hint", class_="quiet"),
    )


def _waiting(waiting: tuple[Waiting, ...], now: Instant) -> tuple[Markup, ...]:
    if not waiting:
        return (
            element("p", "None just now.", class_="lead"),
            element(
                "p",
                "A table that this KI does not know yet shows a code by itself, as soon as it has found the "
                "KI. Load this page again then.",
                class_="quiet",
            ),
        )
    lines = [
        element(
            "li",
            element("strong", each.name),
            f", {_since(now - each.since)}",
        )
        for each in waiting
    ]
    return (element("ul", *lines),)


def _since(age: Duration) -> str:
    minutes = age // (60 * SECOND)
    return f"for {counted(minutes, 'minute', 'minutes')}" if minutes > 0 else "since just now"


def _fields(body: bytes) -> dict[str, str]:
    """What was typed, by the field's name."""
    try:
        typed = parse_qs(body.decode("ascii"), max_num_fields=10, errors="strict")
    except (ValueError, UnicodeError):
        raise RankingRefusal("malformed", "this is not what the page sends") from None
    return {name: values[0].strip() for name, values in typed.items()}


def _sentence(said: str) -> str:
    return f"{said[:1].upper()}{said[1:]}."
