"""How things stand between table and KI: digests, questions, answers, and what is no such thing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.errors import LinkError, RecordError
from heek.ki import cbor
from heek.ki.envelope import key_id, public_key, sign
from heek.ki.numbers import ki_number
from heek.ki.sync import (
    CONTEXT,
    MARK_BYTES,
    MOST_PLAYERS,
    NOTHING,
    News,
    SyncAnswer,
    SyncQuestion,
    difference,
    digest,
    encode_question,
    encode_sync_answer,
    is_from,
    read_question,
    read_sync_answer,
    with_match,
)

SEED = bytes(range(32))
PUBLIC = public_key(SEED)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=24)
shown = st.text(st.characters(exclude_categories=["C", "Z"], include_characters=" "), min_size=1, max_size=24)
ids = st.binary(min_size=16, max_size=16)
numbers = st.integers(0, (1 << 53) - 1)
players = st.integers(0, 10**7 - 1).map(ki_number)
values = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.binary(max_size=20) | text

questions = st.builds(
    SyncQuestion,
    table=st.binary(min_size=8, max_size=8),
    name=shown,
    inc=st.binary(min_size=8, max_size=8),
    n=st.integers(1, (1 << 53) - 1),
    heard=st.just(b"") | st.binary(min_size=8, max_size=8),
    boot=shown,
    mono_ms=st.integers(-(1 << 53) + 1, (1 << 53) - 1),
    holds=st.tuples(numbers, ids),
    waiting=numbers,
    news=numbers,
    players=st.lists(players, max_size=MOST_PLAYERS).map(tuple),
    mark=st.binary(min_size=MARK_BYTES, max_size=MARK_BYTES),
)


def a_question(**changes: Any) -> SyncQuestion:
    asked = SyncQuestion(
        key_id(PUBLIC), "Table 1", bytes(8), 7, b"", "boot", 1000, NOTHING, 0, 3, (ki_number(1), ki_number(2))
    )
    return replace(asked, **changes)


@given(st.lists(ids, max_size=20, unique=True), st.randoms(use_true_random=False))
def test_a_digest_knows_no_order(matches: list[bytes], rng: Any) -> None:
    """Whatever the order; one by one it comes to the same, and a match taken out again leaves no trace."""
    whole = digest(matches)
    rng.shuffle(matches)
    assert digest(matches) == whole
    one_by_one = NOTHING
    for each in matches:
        one_by_one = with_match(one_by_one, each)
    assert one_by_one == whole
    for each in matches:
        one_by_one = with_match(one_by_one, each, gone=True)
    assert one_by_one == NOTHING


@given(st.sets(ids, max_size=10), st.sets(ids, max_size=10))
def test_a_difference_is_that_of_what_only_one_holds(theirs: set[bytes], ours: set[bytes]) -> None:
    """Equal holdings differ by nothing; else count and xor are those of what one has alone."""
    found = difference(digest(theirs), digest(ours))
    assert found == (len(theirs) - len(ours), digest(theirs ^ ours)[1])
    assert (theirs != ours) or found == NOTHING


@settings(deadline=None)
@given(questions)
def test_a_question_comes_back_as_it_was_asked(question: SyncQuestion) -> None:
    """Every question that a table can ask is read as itself, and is from who signed it."""
    read, signed, signature = read_question(encode_question(question, SEED))
    assert read == question
    assert is_from(signed, signature, PUBLIC)
    assert not is_from(signed, signature, public_key(bytes(32)))


def test_any_byte_that_changes_in_a_question_is_noticed() -> None:
    """Each byte, in each of its bits: it is no question any more, or not from this table."""
    data = bytearray(encode_question(a_question(), SEED))
    for place in range(len(data)):
        for bit in range(8):
            data[place] ^= 1 << bit
            try:
                _, signed, signature = read_question(bytes(data))
            except RecordError:
                pass
            else:
                assert not is_from(signed, signature, PUBLIC)
            data[place] ^= 1 << bit


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2},
        {"table": b"short"},
        {"name": ""},
        {"name": "x" * 25},
        {"name": "a\tb"},
        {"inc": bytes(9)},
        {"n": 0},
        {"n": 1 << 53},
        {"heard": bytes(7)},
        {"heard": None},
        {"boot": ""},
        {"boot": "x" * 65},
        {"mono_ms": 1 << 53},
        {"holds": [0]},
        {"holds": [-1, bytes(16)]},
        {"holds": [0, bytes(15)]},
        {"waiting": -1},
        {"news": -1},
        {"news": None},
        {"mark": bytes(7)},
        {"mark": None},
        {"players": ["12345678"]},
        {"players": [ki_number(each) for each in range(MOST_PLAYERS + 1)]},
        {"sig": bytes(63)},
    ],
)
def test_what_is_no_question(change: dict[str, Any]) -> None:
    """Another version, a field of another kind or size, too much of a thing: refused, though signed."""
    value = cbor.decode(encode_question(a_question(), SEED)) | change
    if "sig" not in change:
        del value["sig"]
        value["sig"] = sign(CONTEXT + cbor.encode(value), SEED)
    with pytest.raises(RecordError, match="is no question"):
        read_question(cbor.encode(value))


@given(st.data())
def test_an_answer_comes_back_as_it_was_given(data: st.DataObject) -> None:
    """Every answer is read as itself by who asked."""
    asked = a_question()
    fields = st.dictionaries(text, values, max_size=4)
    marks = st.binary(min_size=MARK_BYTES, max_size=MARK_BYTES)
    told = data.draw(st.lists(st.tuples(text, fields, marks), max_size=5))
    after = data.draw(st.sampled_from([0, asked.news]))
    answer = SyncAnswer(
        asked.n,
        data.draw(st.binary(min_size=8, max_size=8)),
        (data.draw(numbers), data.draw(ids)),
        data.draw(st.dictionaries(players, st.integers(-1000, 10**6), max_size=5)),
        data.draw(numbers),
        tuple(News(after + place, *each) for place, each in enumerate(told, start=1)),
        data.draw(numbers),
        after,
    )
    assert read_sync_answer(cbor.decode(encode_sync_answer(answer)), asked) == answer


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n": 8}, "another question"),
        ({"n": None}, "does not say how things stand"),
        ({"mark": bytes(7)}, "does not say how things stand"),
        ({"mark": None}, "does not say how things stand"),
        ({"holds": [0, b""]}, "does not say how things stand"),
        ({"holds": 0}, "does not say how things stand"),
        ({"news": [[5, "voided", {}, bytes(8)]]}, "do not go on with number 4"),
        ({"news": [[4, "voided", {}, bytes(8)]] * 2}, "do not go on with number 5"),
        ({"news": [[4, "voided", {}]]}, "do not go on with number 4"),
        ({"news": [[4, "voided", {}, bytes(7)]]}, "do not go on with number 4"),
        ({"news": [4]}, "do not go on with number 4"),
        ({"after": 0, "news": [[4, "voided", {}, bytes(8)]]}, "do not go on with number 1"),
        ({"after": 2}, "go on from number 2, which was not asked for"),
        ({"after": None}, "does not say how things stand"),
        ({"points": {"40220170": True}}, "points that are no numbers"),
        ({"points": {"40220170": "many"}}, "points that are no numbers"),
        ({"newest": None}, "does not say how things stand"),
    ],
)
def test_what_is_no_answer(change: dict[str, Any], words: str) -> None:
    """To another question, news that leave a gap or come twice, a field of another kind: each is named."""
    asked = a_question()
    answer = SyncAnswer(asked.n, bytes(8), NOTHING, {}, 0, (), 0, asked.news)
    value = cbor.decode(encode_sync_answer(answer))
    with pytest.raises(LinkError, match=words):
        read_sync_answer(value | change, asked)
