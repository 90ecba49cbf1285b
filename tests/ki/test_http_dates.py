"""What an HTTP head says of time, as a pure function of texts."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.ki.http_dates import MOST_RETRY_S, clock_words, date_s, retry_s

INSTANTS = st.integers(0, 4_102_444_800)
TEXTS = st.text(max_size=80) | st.text("0123456789 ,:+-GMTJanWedOct", max_size=40)


@given(INSTANTS)
def test_every_date_that_a_server_writes_is_read(seconds: int) -> None:
    """The form that every server of today sends gives back its seconds."""
    assert date_s(formatdate(seconds, usegmt=True)) == seconds


@pytest.mark.parametrize(
    "text", ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
)
def test_the_two_old_forms_are_read_too(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As RFC 9110 asks of whoever reads dates; where this machine stands has no part in it."""
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    try:
        assert date_s(text) == 784_111_777
    finally:
        monkeypatch.undo()
        time.tzset()


@given(TEXTS, TEXTS | st.none())
def test_any_text_is_a_patience_within_bounds_or_none(text: str, date: str | None) -> None:
    """Whatever stands in the header: nothing, or 0 to an hour; never an exception."""
    wait = retry_s(text, date)
    assert wait is None or 0 <= wait <= MOST_RETRY_S


@given(INSTANTS, st.integers(-10_000, 10_000))
def test_a_patience_as_a_date_counts_from_the_answers_own_date(now: int, ahead: int) -> None:
    """Whatever this machine thinks that it is: only the difference of the two dates matters."""
    text, date = formatdate(max(now + ahead, 0), usegmt=True), formatdate(now, usegmt=True)
    expected = min(max(max(now + ahead, 0) - now, 0), MOST_RETRY_S)
    assert retry_s(text, date) == expected
    assert retry_s(text, None) is None


@given(st.floats(allow_nan=False, allow_infinity=False) | st.none())
def test_clock_words_name_what_is_worth_telling(ahead_s: float | None) -> None:
    """Less than a minute is not spoken of; else the words say which of the two is behind."""
    words = clock_words(ahead_s)
    if ahead_s is None or abs(ahead_s) < 60:
        assert words == ""
    else:
        assert ("behind" in words) is (ahead_s > 0)
        assert ("ahead of" in words) is (ahead_s < 0)
