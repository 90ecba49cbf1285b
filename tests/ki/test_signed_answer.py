"""A signed answer is worth something for one question, from one KI, as it was said; and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.errors import LinkError
from heek.ki import cbor
from heek.ki.answers import STATUSES, BatchAnswer, RecordAnswer, Verdict, encode_batch_answer, encode_refusal
from heek.ki.envelope import key_id, public_key
from heek.ki.link import Request
from heek.ki.signed_answer import check_answer, sign_answer

SEED = bytes(range(32))
PUBLIC = public_key(SEED)
ANSWER = encode_batch_answer(
    BatchAnswer((RecordAnswer(Verdict.ACCEPTED, None, bytes(16)), RecordAnswer(Verdict.REJECTED, "so")))
)

maps = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8).filter(lambda key: key != "error"),
    st.none() | st.integers(-(2**63), 2**63) | st.binary(max_size=20),
    max_size=5,
)


@settings(deadline=None)
@given(maps, st.sampled_from(Request), st.binary(max_size=100), st.binary(min_size=32, max_size=32))
def test_what_is_signed_is_believed(
    value: dict[str, object], request: Request, asked: bytes, seed: bytes
) -> None:
    """Any answer to any question, and all of it is still there beside the two new fields."""
    signed = sign_answer(cbor.encode(value), request, asked, seed)
    check_answer(signed, request, asked, public_key(seed))
    read = cbor.decode(signed)
    assert read["service"] == key_id(public_key(seed))
    assert read == value | {"service": read["service"], "sig": read["sig"]}


@settings(deadline=None)
@given(st.data())
def test_another_question_makes_it_worthless(data: st.DataObject) -> None:
    """What was asked differs in a bit, or is asked by another request: not believed."""
    asked = bytearray(data.draw(st.binary(min_size=1, max_size=100)))
    signed = sign_answer(ANSWER, Request.RECORDS, bytes(asked), SEED)
    for other in Request:
        if other is not Request.RECORDS:
            with pytest.raises(LinkError, match="signature of the KI's answer is wrong"):
                check_answer(signed, other, bytes(asked), PUBLIC)
    asked[data.draw(st.integers(0, len(asked) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(LinkError, match="signature of the KI's answer is wrong"):
        check_answer(signed, Request.RECORDS, bytes(asked), PUBLIC)


def test_any_byte_that_changes_in_an_answer_is_noticed() -> None:
    """Each byte, in each of its bits: not believed, whatever else it may be now."""
    data = bytearray(sign_answer(ANSWER, Request.RECORDS, b"asked", SEED))
    check_answer(bytes(data), Request.RECORDS, b"asked", PUBLIC)
    for place in range(len(data)):
        for bit in range(8):
            data[place] ^= 1 << bit
            with pytest.raises(LinkError):
                check_answer(bytes(data), Request.RECORDS, b"asked", PUBLIC)
            data[place] ^= 1 << bit


def test_another_ki_is_named_with_what_to_do() -> None:
    """Both key ids, and how the table is enrolled anew if the KI was replaced."""
    other = bytes(32)
    signed = sign_answer(ANSWER, Request.RECORDS, b"asked", other)
    with pytest.raises(LinkError, match=r"heek enrol --again$") as raised:
        check_answer(signed, Request.RECORDS, b"asked", PUBLIC)
    for public in (PUBLIC, public_key(other)):
        assert key_id(public).hex() in str(raised.value)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ANSWER, "has not signed its answer"),
        (cbor.encode({"ki": 1, "sig": bytes(64)}), "has not signed its answer"),
        (cbor.encode({"ki": 1, "sig": "x", "service": key_id(PUBLIC)}), "has not signed its answer"),
        (cbor.encode({"ki": 1, "sig": bytes(64), "service": key_id(PUBLIC)}), "is wrong"),
        (cbor.encode({"ki": 1, "sig": b"", "service": key_id(PUBLIC)}), "is wrong"),
        (cbor.encode([1]), "is no map"),
        (b"<html>", "what answered is not the KI"),
    ],
)
def test_what_is_not_signed_is_said(answer: bytes, words: str) -> None:
    """Unsigned, half signed, signed with nothing, no answer at all: each has its words."""
    with pytest.raises(LinkError, match=words):
        check_answer(answer, Request.RECORDS, b"asked", PUBLIC)


@pytest.mark.parametrize("code", STATUSES)
def test_a_refusal_needs_no_signature(code: str) -> None:
    """Nothing is lost by one that is false: the table keeps what it has and asks again."""
    check_answer(encode_refusal(code), Request.RECORDS, b"asked", PUBLIC)
