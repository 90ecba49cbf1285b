"""What the KI tells, as the journal keeps it: known kinds about something, everything else kept alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.ki.sync import News
from heek.told_news import MOST_TEXT, kept_news

UUID = "0f1e2d3c-4b5a-4968-b706-15243342cafe"
MATCH = bytes.fromhex(UUID.replace("-", ""))
PLAYER = "12345674"


@pytest.mark.parametrize(
    ("kind", "fields", "about", "text"),
    [
        ("voided", {"match": MATCH, "reason": "wrong seat"}, UUID, "wrong seat"),
        ("restored", {"match": MATCH, "reason": ""}, UUID, ""),
        ("named", {"player": PLAYER, "name": "Hanna"}, PLAYER, "Hanna"),
        ("erased", {"player": PLAYER}, PLAYER, ""),
        ("voided", {"reason": "x"}, None, "x"),
        ("voided", {"match": MATCH[:15], "reason": "x"}, None, "x"),
        ("voided", {"match": MATCH.hex(), "reason": "x"}, None, "x"),
        ("named", {"player": PLAYER}, None, ""),
        ("named", {"player": PLAYER, "name": "a\nb"}, None, ""),
        ("named", {"player": "12345678", "name": "Hanna"}, None, "Hanna"),
        ("erased", {"player": 12345674}, None, ""),
        ("crowned", {"player": PLAYER, "crown": b"\x01"}, None, ""),
    ],
)
def test_what_news_are_about(kind: str, fields: dict[str, Any], about: str | None, text: str) -> None:
    """Match or player and words; about nothing where a field is missing or is not what it should be."""
    kept = kept_news(News(7, kind, fields, b"12345678"))
    assert (kept.number, kept.kind, kept.about, kept.text) == (7, kind, about, text)
    assert kept.mark == b"12345678"


_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.sampled_from(["voided", "restored", "named", "erased", "crowned"]),
    st.dictionaries(st.sampled_from(["match", "player", "name", "reason", "x"]), _VALUE, max_size=4),
)
def test_whatever_is_told_can_be_kept(kind: str, fields: dict[str, Any]) -> None:
    """Any fields become JSON and bounded words; nothing that is signed by the KI stops the table."""
    kept = kept_news(News(1, kind, fields, bytes(8)))
    assert isinstance(json.loads(kept.body), dict)
    assert len(kept.text) <= MOST_TEXT
    assert kept.text.isprintable()
