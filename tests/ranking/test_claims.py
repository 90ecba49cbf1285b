"""Tables that wait for their code: few at once, each for ten minutes, and good once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.clock import SECOND
from heek.errors import LinkError, RankingRefusal
from heek.ki import cbor
from heek.ki.claim import LIFETIME, Claim, read_claim_answer, table_mark
from heek.ranking.claims import MOST, MOST_OF_A_SOURCE, WRONG_CODES, Claims
from tests.ranking.records import FakeTable

KI = FakeTable(100)


def key(number: int) -> bytes:
    """What a code would give: here the codes are numbers, and the key is made without Argon2id."""
    return bytes([number]) * 32


def claim(number: int, code: int = 1, nonce: int = 1) -> Claim:
    table = FakeTable(number)
    drawn = bytes([nonce]) * 16
    return Claim(table.public, table.name, drawn, table_mark(key(code), table.public, drawn, table.name))


def claims() -> Claims:
    return Claims(KI.public, "KI")


def state(answer: bytes) -> str:
    said: str = cbor.decode(answer)["state"]
    return said


def refused(what: Callable[[], object], code: str) -> int | None:
    with pytest.raises(RankingRefusal) as error:
        what()
    assert error.value.code == code
    return error.value.retry_s


def test_a_claim_waits_and_is_enrolled() -> None:
    """It waits until its code was typed in, and then hears the KI's key under a mark that the code gives."""
    asked, pending = claim(1), claims()
    assert state(pending.answer(asked, "a", 0)) == "waiting"
    assert pending.open_for_codes(SECOND) == (asked,)
    pending.confirm(asked, "BCDFGHJK", key(1), 0)
    for _ in range(2):
        value = cbor.decode(pending.answer(asked, "a", 2 * SECOND))
        enrolled = read_claim_answer(value, key(1), asked.public)
        assert enrolled is not None
        assert (enrolled.public, enrolled.name) == (KI.public, "KI")
        with pytest.raises(LinkError, match="never told its code"):
            read_claim_answer(value, key(2), asked.public)


def test_a_code_is_good_once() -> None:
    """A claim whose code was typed in stands open for no code any more, and no longer waits."""
    asked, pending = claim(1), claims()
    pending.answer(asked, "a", 0)
    pending.confirm(asked, "BCDFGHJK", key(1), 0)
    assert pending.open_for_codes(0) == ()
    assert pending.waiting(0) == ()


def test_a_code_lives_ten_minutes() -> None:
    """After that the claim is forgotten, whether it was enrolled or not."""
    waits, enrolled, pending = claim(1), claim(2), claims()
    for each in (waits, enrolled):
        pending.answer(each, None, 0)
    pending.confirm(enrolled, "BCDFGHJK", key(1), 0)
    assert pending.open_for_codes(LIFETIME - 1) == (waits,)
    assert state(pending.answer(enrolled, None, LIFETIME - 1)) == "enrolled"
    assert pending.open_for_codes(LIFETIME) == ()
    assert state(pending.answer(enrolled, None, LIFETIME)) == "waiting"


def test_a_code_that_worked_is_known_for_ten_minutes() -> None:
    """So that whoever types it again hears that it is done, and nobody for longer."""
    pending = claims()
    assert not pending.worked("BCDFGHJK", 0)
    pending.confirm(claim(1), "BCDFGHJK", key(1), SECOND)
    assert pending.worked("BCDFGHJK", LIFETIME)
    assert not pending.worked("XXXXXXXX", LIFETIME)
    assert not pending.worked("BCDFGHJK", LIFETIME + SECOND)


def test_a_new_code_takes_the_old_ones_place() -> None:
    """A table that was started again has drawn another code: the first one is worth nothing then."""
    first, second, pending = claim(1, code=1, nonce=1), claim(1, code=2, nonce=2), claims()
    pending.answer(first, None, 0)
    pending.answer(second, None, 1)
    assert pending.open_for_codes(1) == (second,)
    pending.confirm(first, "BCDFGHJK", key(1), 0)
    assert state(pending.answer(second, None, 2)) == "waiting"


def test_two_tables_behind_one_address_are_enrolled_both() -> None:
    """They share a router or a gateway: neither's claim displaces the other's, waiting or confirmed."""
    one, other, pending = claim(1), claim(2), claims()
    for now in range(3):
        assert state(pending.answer(one, "router", now)) == "waiting"
        assert state(pending.answer(other, "router", now)) == "waiting"
    assert pending.open_for_codes(3) == (one, other)
    pending.confirm(one, "BCDFGHJK", key(1), 3)
    assert state(pending.answer(other, "router", 4)) == "waiting"
    assert state(pending.answer(one, "router", 4)) == "enrolled"


def test_each_source_has_few_claims() -> None:
    """Who claims for many tables from one place has but the last few; on this machine there may be more."""
    pending, many = claims(), MOST_OF_A_SOURCE + 2
    for number in range(many):
        pending.answer(claim(number), "elsewhere", 0)
        pending.answer(claim(20 + number), None, 0)
    assert {each.public for each in pending.open_for_codes(0)} == {
        FakeTable(number).public for number in (*range(2, many), *range(20, 20 + many))
    }


def test_what_was_confirmed_is_displaced_by_nobody() -> None:
    """Neither others of its source, nor an older claim of its own sent again, nor those before its code."""
    older, asked, pending = claim(1, nonce=1), claim(1, nonce=2), claims()
    pending.answer(older, "a", 0)
    pending.answer(asked, "a", 0)
    for number in range(2, 3 * MOST_OF_A_SOURCE):
        pending.answer(claim(number), "a", 1)
    assert asked not in pending.open_for_codes(1)
    pending.confirm(asked, "BCDFGHJK", key(1), 2)
    for each in (older, *(claim(number) for number in range(2, 3 * MOST_OF_A_SOURCE))):
        pending.answer(each, "a", 3)
    assert state(pending.answer(asked, "a", LIFETIME)) == "enrolled"


def test_there_is_room_for_few() -> None:
    """Beyond that a claim is told to come again, those that wait already stay, and there is room later."""
    pending = claims()
    for number in range(MOST):
        pending.answer(claim(number), str(number), 0)
    assert refused(lambda: pending.answer(claim(90), "x", 1), "busy") == 60
    assert state(pending.answer(claim(3), "3", 1)) == "waiting"
    assert len(pending.waiting(1)) == MOST
    assert state(pending.answer(claim(90), "x", LIFETIME)) == "waiting"


def test_wrong_codes_are_limited() -> None:
    """Ten at once, then none is looked at for a while, right or wrong; right ones are not counted."""
    asked, pending = claim(1), claims()
    pending.answer(asked, None, 0)
    for _ in range(WRONG_CODES):
        assert pending.open_for_codes(0) == (asked,)
        pending.wrong_code(0)
    pending.wrong_code(0)
    wait_s = refused(lambda: pending.open_for_codes(0), "busy")
    assert wait_s == 60
    refused(lambda: pending.open_for_codes(wait_s * SECOND - 1), "busy")
    assert pending.open_for_codes(wait_s * SECOND) == (asked,)


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.sampled_from([None, "a", "b"]), st.integers(0, 400)), max_size=80
    )
)
def test_memory_is_bounded_whoever_claims(asked: list[tuple[int, str | None, int]]) -> None:
    """Whatever claims come, never more than that many wait, and few of one source elsewhere."""
    pending, now = claims(), 0
    sources: dict[bytes, str | None] = {}
    for number, source, seconds in asked:
        now += seconds * SECOND
        one = claim(number)
        before = {each.public for each in pending.open_for_codes(now)}
        try:
            pending.answer(one, source, now)
        except RankingRefusal:
            continue
        if one.public not in before:
            sources[one.public] = source
        here = [sources[each.public] for each in pending.open_for_codes(now)]
        assert len(here) <= MOST
        assert all(here.count(name) <= MOST_OF_A_SOURCE for name in ("a", "b"))
