"""What the KI tells, as the journal keeps it: the one place where the words of both are known."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from typing import Any, Final

from heek.journal import News, Ruling
from heek.ki import sync
from heek.ki.numbers import is_ki_number
from heek.telling import printable

MOST_TEXT: Final = 200
"""Characters of a name or a reason that are kept."""


def kept_news(news: sync.News) -> News:
    """One news as the journal keeps it; about nothing, if this version can make nothing of it."""
    fields = news.fields
    body = json.dumps(fields, ensure_ascii=False, sort_keys=True, default=_plain)
    about, text = None, ""
    match news.kind:
        case sync.VOIDED | sync.RESTORED:
            about, text = _match(fields), _text(fields, "reason")
        case sync.NAMED:
            text = _text(fields, "name")
            about = _player(fields) if text else None
        case sync.ERASED:
            about = _player(fields)
    return News(news.number, news.kind, body, about, text, news.mark)


def ruling_words(ruling: Ruling, now_s: float) -> str:
    """On a match that is void or counts again, without a full stop; `now_s` is the wall clock's time."""
    which = f"the match {ruling.match.partition('-')[0]}"
    if ruling.ended_s is not None:
        ended, now = time.localtime(ruling.ended_s), time.localtime(now_s)
        day = "" if ended[:3] == now[:3] else f"{time.strftime('%Y-%m-%d', ended)}, "
        which = f"the match of {day}{time.strftime('%H:%M', ended)}"
    said = f"The KI has declared {which} void" if ruling.void else f"The KI counts {which} again"
    return f"{said}: {printable(ruling.reason)}" if ruling.reason else said


def _match(fields: Mapping[str, Any]) -> str | None:
    match = fields.get("match")
    return str(uuid.UUID(bytes=match)) if isinstance(match, bytes) and len(match) == 16 else None


def _player(fields: Mapping[str, Any]) -> str | None:
    player = fields.get("player")
    return player if is_ki_number(player) else None


def _text(fields: Mapping[str, Any], key: str) -> str:
    text = fields.get(key)
    return text[:MOST_TEXT] if isinstance(text, str) and text.isprintable() else ""


def _plain(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
