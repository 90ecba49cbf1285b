"""What table and KI say beside records: golden bytes, held against a second CBOR and a second Ed25519."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.ki import claim, sync
from heek.ki.answers import read_batch_answer
from heek.ki.envelope import key_id, public_key, sign, verify
from heek.ki.link import Request
from heek.ki.signed_answer import check_answer, sign_answer
from tests.ki import plain_cbor, plain_ed25519
from tests.ki.golden import value_of, vectors

EXCHANGES = vectors("exchanges")
TABLE_SEED, SERVICE_SEED = (bytes.fromhex(EXCHANGES[name]) for name in ("table_seed", "service_seed"))
TABLE, SERVICE = public_key(TABLE_SEED), public_key(SERVICE_SEED)

SYNCS = pytest.mark.parametrize("vector", EXCHANGES["syncs"], ids=lambda vector: vector["name"])
SIGNED = pytest.mark.parametrize("vector", EXCHANGES["signed"], ids=lambda vector: vector["name"])


def signed_plainly(context: bytes, value: dict[str, Any], seed: bytes) -> bytes:
    """A map as it goes over the wire, by the second encoder and the second Ed25519."""
    unsigned = {key: each for key, each in value.items() if key != "sig"}
    signature = plain_ed25519.sign(context + plain_cbor.encode(unsigned), seed)
    return plain_cbor.encode(unsigned | {"sig": signature})


@settings(max_examples=20, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(max_size=100))
def test_both_ed25519_agree(seed: bytes, message: bytes) -> None:
    """Keys and signatures of the library are those of an Ed25519 written from RFC 8032 alone."""
    public, signature = public_key(seed), sign(message, seed)
    assert plain_ed25519.public_key(seed) == public
    assert plain_ed25519.sign(message, seed) == signature
    assert plain_ed25519.verify(message, signature, public)
    assert verify(message, signature, public)
    changed = message + b"\0"
    assert not plain_ed25519.verify(changed, signature, public)
    assert not verify(changed, signature, public)


@pytest.mark.parametrize("vector", vectors("records"), ids=lambda vector: vector["name"])
def test_golden_envelopes_by_the_second_ed25519(vector: dict[str, Any]) -> None:
    """Each golden envelope has the second Ed25519's signature, under the key id that its record names."""
    seed, record = bytes.fromhex(vector["seed"]), bytes.fromhex(vector["cbor"])
    public = plain_ed25519.public_key(seed)
    key = hashlib.sha256(public).digest()[:8]
    assert key.hex() == vector["record"]["table"]
    signature = plain_ed25519.sign(b"heek-record-1" + record, seed)
    assert plain_cbor.encode([1, key, record, signature]).hex() == vector["envelope"]


def test_golden_claim() -> None:
    """With a fixed code and nonce the claim is the golden one, mark and signature made again by hand.

    The key in it was worked out once by argon2-cffi, another implementation of Argon2id than ours.
    """
    vector = EXCHANGES["claim"]
    question = value_of(vector["question"])
    code = claim.read_code(vector["typed"])
    assert code == vector["code"]
    key = claim.claim_key(code, TABLE, question["nonce"])
    assert key.hex() == vector["key"]
    said = question["nonce"] + question["name"].encode()
    assert hmac.new(key, b"table" + TABLE + said, hashlib.sha256).digest() == question["mark"]
    data = bytes.fromhex(vector["cbor"])
    assert signed_plainly(b"heek-claim-1", question, TABLE_SEED) == data
    assert claim.encode_claim(TABLE_SEED, question["name"], question["nonce"], key) == data
    read = claim.read_claim(data)
    assert read == claim.Claim(TABLE, question["name"], question["nonce"], question["mark"])
    assert claim.is_code_of(read, key)
    assert not claim.is_code_of(read, bytes(32))


def test_golden_answers_to_a_claim() -> None:
    """`waiting`, and `enrolled` with the service's mark: as the second encoder has them, and read back."""
    vector = EXCHANGES["claim"]
    enrolled, key = value_of(vector["enrolled"]), bytes.fromhex(vector["key"])
    said = b"service" + TABLE + SERVICE + enrolled["name"].encode()
    assert hmac.new(key, said, hashlib.sha256).digest() == enrolled["mark"]
    data = bytes.fromhex(vector["enrolled_cbor"])
    assert plain_cbor.encode(enrolled) == data
    mark = claim.service_mark(key, TABLE, SERVICE, enrolled["name"])
    assert claim.encode_enrolled(SERVICE, enrolled["name"], mark) == data
    assert claim.read_claim_answer(enrolled, key, TABLE) == claim.Enrolled(SERVICE, enrolled["name"])
    waiting = {"ki": 1, "state": "waiting"}
    assert plain_cbor.encode(waiting) == claim.encode_waiting() == bytes.fromhex(vector["waiting"])
    assert claim.read_claim_answer(waiting, key, TABLE) is None


@SYNCS
def test_golden_questions_how_things_stand(vector: dict[str, Any]) -> None:
    """Each golden question is byte for byte the second encoder's, signed by the second Ed25519."""
    value, data = value_of(vector["question"]), bytes.fromhex(vector["question_cbor"])
    assert signed_plainly(b"heek-sync-1", value, TABLE_SEED) == data
    question, signed, signature = sync.read_question(data)
    assert sync.encode_question(question, TABLE_SEED) == data
    assert sync.is_from(signed, signature, TABLE)
    assert question == sync.SyncQuestion(
        **{
            key: each for key, each in value.items() if key not in ("v", "sig", "holds", "players", "formers")
        },
        holds=tuple(value["holds"]),
        players=tuple(value["players"]),
        formers=tuple(value["formers"]),
    )


@SYNCS
def test_golden_answers_how_things_stand(vector: dict[str, Any]) -> None:
    """Each golden answer is byte for byte the second encoder's, and says what stands in it."""
    value, data = value_of(vector["answer"]), bytes.fromhex(vector["answer_cbor"])
    assert plain_cbor.encode(value) == data
    question, _, _ = sync.read_question(bytes.fromhex(vector["question_cbor"]))
    answer = sync.read_sync_answer(value, question)
    assert sync.encode_sync_answer(answer) == data
    assert (answer.n, answer.holds, answer.points) == (value["n"], tuple(value["holds"]), value["points"])
    assert (answer.mark, answer.now_s, answer.newest) == (value["mark"], value["now_s"], value["newest"])
    assert [[each.number, each.kind, each.fields, each.mark] for each in answer.news] == value["news"]
    assert answer.after == value["after"]
    held = [None if each is None else list(each) for each in answer.formers.values()]
    assert (list(answer.formers), held) == (list(question.formers), value["formers"])


@SIGNED
def test_golden_signed_answers(vector: dict[str, Any]) -> None:
    """Each golden answer is signed as the second Ed25519 does it, for the question and no other."""
    request, asked = Request[vector["request"]], bytes.fromhex(vector["asked"])
    value, data = value_of(vector["signed"]), bytes.fromhex(vector["signed_cbor"])
    assert value["service"] == key_id(SERVICE) == hashlib.sha256(SERVICE).digest()[:8]
    question = hashlib.sha256(bytes([request.frame_type]) + asked).digest()
    assert signed_plainly(b"heek-answer-1" + question, value, SERVICE_SEED) == data
    assert sign_answer(bytes.fromhex(vector["answer"]), request, asked, SERVICE_SEED) == data
    check_answer(data, request, asked, SERVICE)


def test_a_golden_answer_to_records_says_what_became_of_each() -> None:
    """The verdicts are read out of the signed answer as out of an unsigned one."""
    (vector,) = (each for each in EXCHANGES["signed"] if each["request"] == "RECORDS")
    read = read_batch_answer(bytes.fromhex(vector["signed_cbor"]), 2)
    assert [each.verdict.value for each in read.answers] == ["accepted", "rejected"]
    assert read.points == {"40220170": 99}
    assert read.holds == tuple(value_of(vector["signed"])["holds"])
