"""What the head of an HTTP answer says of time: when to ask again, and how wrong one of the two clocks is.

A table may think that it is 1970, so a date is only ever taken relative to another one: `Retry-After` as a
date relative to the answer's own `Date`. The clocks' difference is a label for people. It decides nothing:
no answer counts more or less for it.
"""

from __future__ import annotations

import calendar
from email.utils import parsedate_tz
from typing import Final

from heek.clock import SECOND
from heek.ki.outbox import LONGEST_ASKED_FOR

MOST_RETRY_S: Final = LONGEST_ASKED_FOR / SECOND
"""Who asks for more patience than this is asked again all the same."""
WORTH_TELLING_S: Final = 60.0
"""Clocks that are closer than this are not spoken of."""

_LONGEST: Final = 64
_UNITS: Final = ((365.25 * 86_400, "year"), (86_400.0, "day"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def date_s(text: str | None) -> float | None:
    """An HTTP date as seconds since 1970; None if it is none."""
    if text is None or len(text) > _LONGEST or not text.isascii():
        return None
    try:
        fields = parsedate_tz(text)
        # A two-digit or signed year is a guess, and no server of today sends one.
        if fields is None or not 1970 <= fields[0] <= 9999:
            return None
        return float(calendar.timegm((*fields[:6], 0, 1, 0)) - (fields[9] or 0))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def retry_s(text: str | None, date: str | None) -> float | None:
    """`Retry-After`, from 0 to `MOST_RETRY_S`; None if there is none, or if it is nonsense.

    `date` is the answer's own `Date`: without it a `Retry-After` that is a date says nothing.
    """
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return MOST_RETRY_S if len(text) > 9 else min(float(text), MOST_RETRY_S)
    then, now = date_s(text), date_s(date)
    if then is None or now is None:
        return None
    return min(max(then - now, 0.0), MOST_RETRY_S)


def clock_words(ahead_s: float | None) -> str:
    """How far the other end's clock is ahead of ours, in words; empty if that is not worth telling.

    `ahead_s` is negative where ours is ahead, None if it is not known.
    """
    if ahead_s is None or abs(ahead_s) < WORTH_TELLING_S:
        return ""
    size, unit = next(each for each in _UNITS if abs(ahead_s) >= each[0])
    count = round(abs(ahead_s) / size)
    shown = f"{count} {unit}{'s' if count > 1 and unit in ('year', 'day') else ''}"
    return f"this clock is {shown} {'behind' if ahead_s > 0 else 'ahead of'} the KI's"
