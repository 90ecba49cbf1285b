"""A claim by a code of eight letters: who has not seen the code can make neither of its marks."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.errors import LinkError, RecordError
from heek.ki import cbor
from heek.ki.claim import (
    CODE_LETTERS,
    LETTERS,
    Claim,
    Enrolled,
    claim_key,
    draw_code,
    encode_claim,
    encode_enrolled,
    encode_waiting,
    is_code_of,
    read_claim,
    read_claim_answer,
    read_code,
    service_mark,
    shown_code,
    table_mark,
)
from heek.ki.envelope import public_key, sign

SEED, SERVICE_SEED = bytes(range(32)), bytes(range(32, 64))
TABLE, SERVICE = public_key(SEED), public_key(SERVICE_SEED)
KEY, NONCE = bytes([1] * 32), bytes(range(16))

names = st.text(st.characters(exclude_categories=["C", "Z"], include_characters=" "), min_size=1, max_size=24)


@given(st.randoms(use_true_random=False))
def test_a_code_is_drawn_of_its_letters(rng: random.Random) -> None:
    """Eight of the twenty letters, as people read it and as they type it."""
    code = draw_code(rng.randrange)
    assert len(code) == CODE_LETTERS
    assert set(code) <= set(LETTERS)
    shown = shown_code(code)
    assert shown == f"{code[:4]} {code[4:]}"
    for typed in (code, shown, shown.lower(), f"  {code[:2]}-{code[2:]}\n", shown.replace(" ", "-")):
        assert read_code(typed) == code


def test_every_letter_can_be_drawn() -> None:
    """Each of the twenty letters comes at each place: 20^8 codes, not fewer."""
    assert len(set(LETTERS)) == len(LETTERS) == 20
    for number, letter in enumerate(LETTERS):
        assert draw_code(lambda below, number=number: number % below) == letter * CODE_LETTERS


@pytest.mark.parametrize(
    "typed", ["", "BCDFGHJ", "BCDFGHJKL", "BCDFGHJA", "BCDFGHJY", "BCDFGHJ1", "ßßßßßßßß"]
)
def test_what_is_no_code(typed: str) -> None:
    """Too short, too long, a vowel, a Y, a digit, letters of others: refused, and quoted."""
    with pytest.raises(ValueError, match="is no code: a table shows 8 letters"):
        read_code(typed)


def test_the_key_depends_on_code_table_and_nonce() -> None:
    """Each of the three gives another key, and the same three the same one."""
    key = claim_key("BCDFGHJK", TABLE, NONCE)
    others = [
        claim_key("BCDFGHJL", TABLE, NONCE),
        claim_key("BCDFGHJK", SERVICE, NONCE),
        claim_key("BCDFGHJK", TABLE, bytes(16)),
    ]
    assert len(key) == 32
    assert key not in others
    assert key == claim_key("BCDFGHJK", TABLE, NONCE)


@settings(deadline=None)
@given(st.binary(min_size=32, max_size=32), names, st.binary(min_size=16, max_size=16))
def test_a_claim_comes_back_as_it_was_made(seed: bytes, name: str, nonce: bytes) -> None:
    """Any name, key and nonce; the mark is known by who has the key of the code, and by nobody else."""
    read = read_claim(encode_claim(seed, name, nonce, KEY))
    assert read == Claim(public_key(seed), name, nonce, table_mark(KEY, public_key(seed), nonce, name))
    assert is_code_of(read, KEY)
    assert not is_code_of(read, bytes([2] * 32))


def test_any_byte_that_changes_in_a_claim_is_noticed() -> None:
    """Each byte, in each of its bits: what is read is the very claim, or it is refused."""
    data = bytearray(encode_claim(SEED, "Table 1", NONCE, KEY))
    for place in range(len(data)):
        for bit in range(8):
            data[place] ^= 1 << bit
            with pytest.raises(RecordError):
                read_claim(bytes(data))
            data[place] ^= 1 << bit


def test_anothers_key_cannot_be_put_into_a_claim() -> None:
    """Signed anew with another key, the mark is not that of the code any more."""
    read = read_claim(encode_claim(SEED, "Table 1", NONCE, KEY))
    value: dict[str, object] = {
        "v": 1, "public": SERVICE, "name": read.name, "nonce": read.nonce, "mark": read.mark,
    }  # fmt: skip
    value["sig"] = sign(b"heek-claim-1" + cbor.encode(value), SERVICE_SEED)
    stolen = read_claim(cbor.encode(value))
    assert stolen.public == SERVICE
    assert not is_code_of(stolen, KEY)


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2},
        {"name": ""},
        {"name": "x" * 25},
        {"name": "a\nb"},
        {"nonce": b""},
        {"mark": b"x"},
        {"public": b""},
    ],
)
def test_what_is_no_claim(change: dict[str, Any]) -> None:
    """Another version, a field of another size, a name that cannot be shown: refused, though signed."""
    value = cbor.decode(encode_claim(SEED, "Table 1", NONCE, KEY)) | change
    del value["sig"]
    value["sig"] = sign(b"heek-claim-1" + cbor.encode(value), SEED)
    with pytest.raises(RecordError, match="is no claim"):
        read_claim(cbor.encode(value))


@given(names)
def test_the_answer_pins_who_was_told_the_code(name: str) -> None:
    """With the service's mark its key and name are believed, for this table and this code alone."""
    said = cbor.decode(encode_enrolled(SERVICE, name, service_mark(KEY, TABLE, SERVICE, name)))
    assert read_claim_answer(said, KEY, TABLE) == Enrolled(SERVICE, name)
    for key, table, change in (
        (bytes(32), TABLE, {}),
        (KEY, SERVICE, {}),
        (KEY, TABLE, {"public": TABLE}),
        (KEY, TABLE, {"name": name + "x"}),
        (KEY, TABLE, {"mark": table_mark(KEY, TABLE, NONCE, name)}),
    ):
        with pytest.raises(LinkError, match="was never told its code"):
            read_claim_answer(said | change, key, table)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"state": "unknown"},
        {"state": "enrolled"},
        {"state": "enrolled", "public": b"x", "name": "x", "mark": b""},
    ],
)
def test_what_is_no_answer_to_a_claim(value: dict[str, Any]) -> None:
    """Another state, a field that is missing or of another kind."""
    with pytest.raises(LinkError, match="is not one to a claim"):
        read_claim_answer({"ki": 1} | value, KEY, TABLE)
    assert read_claim_answer(cbor.decode(encode_waiting()), KEY, TABLE) is None
