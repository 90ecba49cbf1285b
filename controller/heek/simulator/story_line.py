"""One line of a story: its JSON, the plain values in it, and how a mistake in it is worded."""

from __future__ import annotations

import difflib
import json
import math
import re
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Final, NoReturn

from heek.clock import SECOND, Duration, Instant, nanoseconds
from heek.errors import StoryError
from heek.kinds import SEATS, Seat

MAX_LINE_BYTES: Final = 64 * 1024
MAX_SECONDS: Final = 366 * 24 * 3600
"""A year: beyond it a time is a slip of the keyboard, and multiplying it out may take all memory."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RFC_3339: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(\.\d{1,9})?(?:[Zz]|[+-]00:00)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in which file; makes the mistakes that are found there, and reads plain values."""

    source: str
    line: int

    def mistake(self, what: str, remedy: str) -> StoryError:
        return StoryError(f"{self.source}:{self.line}: {what}; {remedy}")

    def unknown(self, kind: str, word: object, known: Collection[str]) -> StoryError:
        """A word that is none of those known, with the nearest of them or all as the remedy."""
        near = difflib.get_close_matches(word, known, n=1) if isinstance(word, str) else []
        remedy = f"did you mean {shown(near[0])}?" if near else f"use {listed(known)}"
        name = f"unknown {kind}" if isinstance(word, str) else f"{kind} is"
        return self.mistake(f"{name} {shown(word)}", remedy)

    def fields(
        self, name: str, value: object, needed: tuple[str, ...], optional: Collection[str] = ()
    ) -> dict[str, object]:
        """An object with all of the needed keys and no unknown ones."""
        if not isinstance(value, dict):
            remedy = "write an object" + (f" with {listed(needed, 'and')}" if needed else "")
            raise self.mistake(f"{name} is {shown(value)}", remedy)
        for key in value:
            if key not in needed and key not in optional:
                raise self.unknown(f"key in {name}:", key, (*needed, *sorted(optional)))
        for key in needed:
            if key not in value:
                raise self.mistake(f"{name} has no {shown(key)}", f"it needs {listed(needed, 'and')}")
        return value

    def seconds(self, name: str, value: object, *, positive: bool = False) -> Duration:
        """A number of seconds as whole nanoseconds: 0 or more, or above 0."""
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            raise self.mistake(f"{name} is {shown(value)}", "write a number of seconds")
        if value < 0:
            raise self.mistake(f"{name} is {shown(value)}", "seconds are never negative")
        if value > MAX_SECONDS:
            raise self.mistake(f"{name} is {shown(value)} s", "a story lasts no longer than 366 days")
        result = value * SECOND if isinstance(value, int) else nanoseconds(value)
        if positive and result == 0:
            raise self.mistake(f"{name} is {shown(value)}", "give it a nanosecond at least")
        return result

    def boolean(self, name: str, value: object) -> bool:
        if not isinstance(value, bool):
            raise self.mistake(f"{name} is {shown(value)}", "write true or false")
        return value

    def word(self, name: str, value: object, known: Collection[str]) -> str:
        if not isinstance(value, str) or value not in known:
            raise self.unknown(name, value, known)
        return value

    def plain(self, value: object) -> object:
        """A JSON value for others to use: floats instead of Decimals, and only printable text."""
        if isinstance(value, Decimal):
            result = float(value)
            if math.isinf(result):
                raise self.mistake(f"the number {shown(value)} is too large", "use a smaller one")
            return result
        if isinstance(value, str):
            if any(unicodedata.category(char) == "Cs" for char in value):
                raise self.mistake(f"{shown(value)} holds half of a character", "write it as UTF-8")
            return value
        if isinstance(value, list):
            return [self.plain(item) for item in value]
        if isinstance(value, dict):
            return {str(self.plain(key)): self.plain(item) for key, item in value.items()}
        return value


def json_object(place: Place, text: str) -> dict[str, object]:
    """The one JSON object of a line, its numbers with a point as exact Decimals."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_LINE_BYTES:
        raise place.mistake("the line is longer than 64 KiB", "split it into several steps")

    def exact(number: str) -> Decimal:
        try:
            return Decimal(number)
        except InvalidOperation:
            raise place.mistake(f"the number {shown(number)} is out of range", "use a smaller one") from None

    def refuse(constant: str) -> NoReturn:
        raise place.mistake(f"{constant} is not a number", "write digits")

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        result: dict[str, object] = {}
        for key, value in pairs:
            if key in result:
                raise place.mistake(f"key {shown(key)} stands there twice", "keep one of the two")
            result[key] = value
        return result

    try:
        value = json.loads(text, parse_float=exact, parse_constant=refuse, object_pairs_hook=once)
    except StoryError:
        raise
    except json.JSONDecodeError as error:
        raise place.mistake(
            f"not JSON: {error.msg} at column {error.colno}", "write one object a line"
        ) from None
    except ValueError as error:
        raise place.mistake(f"not JSON: {error}", "write one object a line") from None
    if not isinstance(value, dict):
        raise place.mistake(f"{shown(value)} is not an object", 'write {"at": ..., ...}')
    return value


def bounce_edges(place: Place, name: str, value: object, closed: bool) -> tuple[tuple[Duration, bool], ...]:
    """Edges after a change to the level `closed`, ending there again; offsets in nanoseconds."""
    if not isinstance(value, list):
        raise place.mistake(f"{name} is {shown(value)}", "write a list like [[0.002, 0], [0.004, 1]]")
    edges: list[tuple[Duration, bool]] = []
    level, last = closed, 0
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2:
            raise place.mistake(f"{name} holds {shown(pair)}", "write pairs of offset and level: [0.002, 0]")
        offset = place.seconds(f"an offset in {name}", pair[0], positive=True)
        if type(pair[1]) is not int or pair[1] not in (0, 1):
            raise place.mistake(f"{name} holds the level {shown(pair[1])}", "write 1 for closed, 0 for open")
        if offset <= last:
            raise place.mistake(f"{name} is out of order at {shown(pair[0])} s", "let its offsets increase")
        if bool(pair[1]) == level:
            raise place.mistake(f"{name} at {shown(pair[0])} s changes nothing", "let its levels alternate")
        level, last = not level, offset
        edges.append((offset, level))
    if level != closed:
        state = "closed" if closed else "open"
        raise place.mistake(f"{name} ends in the wrong state", f"let it end {state}, as it began")
    return tuple(edges)


def seat_number(place: Place, value: object) -> Seat:
    if type(value) is not int or value not in SEATS:
        raise place.mistake(f"seat {shown(value)} does not exist", "take 1 to 5")
    return value


def wall_seconds(place: Place, value: object) -> float:
    """Seconds since 1970 of an RFC 3339 time in UTC."""
    remedy = "write RFC 3339 in UTC: 2031-01-01T00:00:00Z"
    match = _RFC_3339.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise place.mistake(f"wall_clock is {shown(value)}", remedy)
    try:
        moment = datetime.fromisoformat(f"{match[1]}T{match[2]}+00:00")
    except ValueError as error:
        raise place.mistake(f"wall_clock {shown(value)}: {error}", remedy) from None
    # Exact until the last step, so that writing a story and reading it gives the same float.
    return float((moment - _EPOCH) // timedelta(seconds=1) + Decimal(match[3] or 0))


def shown(value: object) -> str:
    """A value as the story has it, in ASCII and never long, for use in a message."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = str(value) if isinstance(value, Decimal) else json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def listed(words: Iterable[object], joint: str = "or") -> str:
    """Words as a list for people: `pen, page or beetle`."""
    *head, last = [str(word) for word in words]
    return f"{', '.join(head)} {joint} {last}" if head else last


def seconds_shown(instant: Instant) -> str:
    """Exact seconds without needless zeros."""
    whole, rest = divmod(instant, SECOND)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".")
