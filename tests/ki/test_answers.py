"""What comes back from a KI, or from what says that it is one: taken as it should be, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from heek.errors import LinkError
from heek.ki import cbor
from heek.ki.answers import (
    MOST_NUMBER,
    MOST_TEXT,
    STATUSES,
    BatchAnswer,
    RecordAnswer,
    Refused,
    SignedIn,
    Verdict,
    encode_batch_answer,
    encode_refusal,
    encode_signed_in,
    encode_table_answer,
    read_answer,
    read_batch_answer,
    read_signed_in,
    read_table_answer,
)
from tests.ranking.records import ANN

ANSWER = BatchAnswer(
    (
        RecordAnswer(Verdict.ACCEPTED, None, bytes(16)),
        RecordAnswer(Verdict.REJECTED, "for a reason", None),
    ),
    {ANN: -3},
    (7, bytes(range(16))),
)


def answer_with(**changes: Any) -> bytes:
    return cbor.encode(cbor.decode(encode_batch_answer(ANSWER)) | changes)


def test_an_answer_to_records_comes_back_as_it_was_given() -> None:
    """Verdicts, reasons, matches, points and holdings."""
    assert read_batch_answer(encode_batch_answer(ANSWER), 2) == ANSWER
    with pytest.raises(LinkError, match="answered for 2 records instead of 3"):
        read_batch_answer(encode_batch_answer(ANSWER), 3)


@pytest.mark.parametrize(
    "changes",
    [
        {"holds": [1, 1 << 40]},
        {"holds": [1, bytes(15)]},
        {"holds": [MOST_NUMBER, bytes(16)]},
        {"holds": [True, bytes(16)]},
        {"holds": []},
        {"points": {ANN: 1 << 70}},
        {"points": {ANN: "many"}},
        {"points": []},
        {"answers": [["accepted", None, 1 << 40]] * 2},
        {"answers": [["accepted", None, b"short"]] * 2},
        {"answers": [["accepted", 5, None]] * 2},
        {"answers": [["praised", None, None]] * 2},
        {"answers": [["accepted", None]] * 2},
        {"answers": {}},
    ],
)
def test_what_is_no_answer_to_records(changes: dict[str, Any]) -> None:
    """No number is made into that many bytes, and none is taken that is too large to be kept."""
    with pytest.raises(LinkError, match="is not one to records"):
        read_batch_answer(answer_with(**changes), 2)


def test_what_is_told_to_people_is_one_line() -> None:
    """Reasons, refusals and names come from outside: line breaks are gone, and what is too long is cut."""
    long = "x" * (MOST_TEXT + 1)
    said = answer_with(answers=[["rejected", "a\nb\x1b[2J", None], ["rejected", long, None]])
    first, second = read_batch_answer(said, 2).answers
    assert first.reason == "a b [2J"
    assert second.reason == "x" * (MOST_TEXT - 1) + "…"
    assert read_table_answer(encode_table_answer(bytes(8), bytes(32), "a\nb")).name == "a b"
    assert read_signed_in(encode_signed_in(SignedIn(ANN, "a\u2028b", 1))).name == "a b"


@pytest.mark.parametrize(
    ("value", "words", "retry_s"),
    [
        ({"error": "busy", "text": "come\nback", "retry_s": 3}, "come back", 3.0),
        ({"error": "busy", "text": "\n", "retry_s": 1 << 70}, STATUSES["busy"], None),
        ({"error": "busy", "text": 5, "retry_s": True}, STATUSES["busy"], None),
        ({"error": "of a later version"}, "the KI refuses: of a later version", None),
        ({"error": ""}, "the KI refuses:", None),
    ],
)
def test_a_refusal_says_something(value: dict[str, Any], words: str, retry_s: float | None) -> None:
    """Whatever it brings along: there are words, on one line, and a time to wait that is one or none."""
    with pytest.raises(Refused) as raised:
        read_answer(cbor.encode({"ki": 1} | value))
    assert (str(raised.value), raised.value.code) == (words, value["error"])
    assert raised.value.retry_s == retry_s


@pytest.mark.parametrize("error", [5, None, ["busy"], {}])
def test_a_refusal_without_a_code_is_none(error: object) -> None:
    """What is no text is no code."""
    with pytest.raises(LinkError, match="refuses without a reason") as raised:
        read_answer(cbor.encode({"ki": 1, "error": error}))
    assert not isinstance(raised.value, Refused)


@pytest.mark.parametrize("code", STATUSES)
def test_every_refusal_comes_back(code: str) -> None:
    """With its own words if it brings none."""
    with pytest.raises(Refused) as raised:
        read_answer(encode_refusal(code))
    assert (raised.value.code, str(raised.value)) == (code, STATUSES[code])
