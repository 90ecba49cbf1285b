"""The record and its envelope: one encoding, held against a second encoder and golden bytes."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.errors import RecordError
from heek.ki import cbor
from heek.ki.envelope import (
    Envelope,
    batch,
    key_id,
    open_envelope,
    public_key,
    seal,
    split_batch,
    verify_record,
)
from heek.ki.numbers import is_ki_number, ki_number
from heek.ki.record import (
    MOST_BYTES,
    Record,
    RecordSeat,
    RecordTime,
    decode_record,
    encode_record,
    record_hash,
)
from heek.kinds import Kind, Seat
from tests.ki import plain_cbor

VECTORS = json.loads((Path(__file__).parent / "vectors" / "records.json").read_text(encoding="utf-8"))

SEED = bytes(range(32))


def as_value(vector: dict[str, Any]) -> dict[str, Any]:
    """A vector's record as the CBOR value it stands for: byte strings are written in hex there."""
    value = dict(vector["record"])
    for key in ("match", "table", "inc", "prev"):
        value[key] = None if value[key] is None else bytes.fromhex(value[key])
    return value


def a_record(**changes: Any) -> Record:
    record = Record(
        rules="heek-1",
        game="ahyoheek",
        match=bytes.fromhex("0f1e2d3c4b5a4968b7061524334251a0"),
        table=key_id(public_key(SEED)),
        name="Table 1",
        inc=bytes(range(8)),
        seq=1,
        prev=None,
        seats=(
            RecordSeat(Seat(1), "player", ki_number(4022017), "Shorah", 1, -1),
            RecordSeat(Seat(2), "player", ki_number(1234567), None, 1, 1),
            RecordSeat(Seat(5), "guest", None, None, 0, 0),
        ),
        winner=Seat(2),
        by="three",
        rated=True,
        rounds=({Seat(1): Kind.PEN, Seat(2): Kind.BEETLE, Seat(5): None},),
        late_rounds=(),
        t=RecordTime("a3b1c5d7-0000-4000-8000-000000000001", 100_000, 160_000, 1_900_000_000, "none"),
    )
    return replace(record, **changes)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_golden_records(vector: dict[str, Any]) -> None:
    """The bytes of each golden record are those of an encoder written from the RFC alone, and read back."""
    expected = bytes.fromhex(vector["cbor"])
    assert plain_cbor.encode(as_value(vector)) == expected
    record = decode_record(expected)
    assert encode_record(record) == expected
    assert record_hash(expected).hex() == vector["sha256"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_golden_envelopes(vector: dict[str, Any]) -> None:
    """Sealing a golden record with the golden seed gives the golden envelope, and the signature holds."""
    seed, record = bytes.fromhex(vector["seed"]), bytes.fromhex(vector["cbor"])
    envelope = seal(record, seed)
    assert envelope.encode().hex() == vector["envelope"]
    assert envelope.key_id.hex() == vector["record"]["table"]
    assert plain_cbor.encode([1, envelope.key_id, record, envelope.signature]) == envelope.encode()
    assert verify_record(envelope, public_key(seed))


def test_a_changed_record_has_no_valid_signature() -> None:
    """One bit of the record, the signature or the key, and nobody takes it for the table's."""
    envelope = seal(encode_record(a_record()), SEED)
    public = public_key(SEED)
    for place in (0, len(envelope.record) - 1):
        changed = bytearray(envelope.record)
        changed[place] ^= 1
        assert not verify_record(Envelope(envelope.key_id, bytes(changed), envelope.signature), public)
    assert not verify_record(Envelope(envelope.key_id, envelope.record, bytes(64)), public)
    assert not verify_record(envelope, public_key(bytes(32)))
    assert not verify_record(envelope, b"short")


plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.binary(max_size=40)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=30), inner, max_size=5),
    max_leaves=20,
)


@given(plain_values)
def test_both_encoders_agree_on_any_value(value: object) -> None:
    """The library's canonical form is RFC 8949's deterministic one for all that a record can hold."""
    try:
        expected = plain_cbor.encode(value)
    except UnicodeEncodeError:
        return
    assert cbor.encode(value) == expected
    assert cbor.decode(expected) == value


@given(st.binary(max_size=300))
def test_any_bytes_are_a_record_or_one_clear_error(data: bytes) -> None:
    """Rubbish never raises anything but RecordError."""
    with contextlib.suppress(RecordError):
        decode_record(data)


@given(st.data())
def test_a_damaged_record_is_read_as_itself_or_refused(data: st.DataObject) -> None:
    """Whatever byte of a record is changed: what is taken encodes to the very bytes that were given."""
    whole = bytearray(encode_record(a_record()))
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        record = decode_record(bytes(whole))
    except RecordError:
        return
    assert holds(cbor.decode(bytes(whole)), cbor.decode(encode_record(record)))


def holds(whole: object, part: object) -> bool:
    """Is all of `part` in `whole`? Keys of a newer version are allowed in a map, and not kept."""
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(key in whole and holds(whole[key], part[key]) for key in part)
    if isinstance(whole, list) and isinstance(part, list):
        return len(whole) == len(part) and all(map(holds, whole, part))
    return whole == part


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no CBOR"),
        (bytes.fromhex("f93e00"), "floating-point"),
        (bytes.fromhex("1800"), "not deterministic"),
        (bytes.fromhex("a2616201616101"), "not deterministic"),
        (bytes.fromhex("a2616101616101"), "no CBOR"),
        (bytes.fromhex("9fff"), "no CBOR"),
        (bytes.fromhex("0000"), "no"),
        (bytes.fromhex("c11a514b67b0"), "value of the kind"),
        (b"\x81" * 60_000, "no CBOR"),
        (bytes.fromhex("a10101"), "key that is not text"),
        (b"\x80", "no map"),
    ],
)
def test_what_is_not_deterministic_cbor_is_named(data: bytes, words: str) -> None:
    """Floats, long forms, wrong order, doubled keys, endless and nested things, tags, tails: each refused."""
    with pytest.raises(RecordError, match=words):
        decode_record(data)


def test_the_smallest_next_encoding_of_a_record_is_refused() -> None:
    """The same values in another order are not the same record."""
    value = cbor.decode(encode_record(a_record()))
    import cbor2

    shuffled = cbor2.dumps(dict(reversed(list(value.items()))))
    with pytest.raises(RecordError, match="not deterministic"):
        decode_record(shuffled)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"v": 2}, "version 2"),
        ({"rules": ""}, "rules: has 0"),
        ({"game": "chess"}, "game: is not one of"),
        ({"match": bytes(16)}, "match: is no UUID"),
        ({"match": b"short"}, "match: has 5 bytes"),
        ({"winner": 3}, "winner: seat 3 did not play"),
        ({"winner": True}, "winner: is no whole number"),
        ({"seats": []}, "fewer than two"),
        ({"rated": 1}, "rated: is no true or false"),
        ({"rounds": [{"6": "pen"}]}, "seat that is not 1 to 5"),
        ({"rounds": [{"1": "stone"}]}, "no pen, page or beetle"),
        ({"rounds": [{"1": 3}]}, "no pen, page or beetle"),
        ({"late_rounds": ["1"]}, "late_rounds"),
        ({"name": "a\nb"}, "cannot be shown"),
        ({"seq": 0}, "seq: is out of range"),
        ({"t": {}}, "t.boot: is missing"),
        ({"prev": b""}, "prev: has 0 bytes"),
    ],
)
def test_each_wrong_field_is_named(changes: dict[str, object], words: str) -> None:
    """A field that is missing, of a wrong kind or out of range is named with what is wrong."""
    value = cbor.decode(encode_record(a_record()))
    with pytest.raises(RecordError, match=words):
        decode_record(cbor.encode(value | changes))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "guest"}, r"seats\[0\].player: a KI number is given for players"),
        ({"player": "40220173"}, r"seats\[0\].player: is no KI number"),
        ({"player": None}, r"seats\[0\].player"),
        ({"seat": 6}, r"seats\[0\].seat: is out of range"),
        ({"stake": -1}, r"seats\[0\].stake: is out of range"),
    ],
)
def test_each_wrong_seat_is_named(change: dict[str, object], words: str) -> None:
    """A seat's mistake names the seat's place in the list."""
    value = cbor.decode(encode_record(a_record()))
    value["seats"][0] |= change
    with pytest.raises(RecordError, match=words):
        decode_record(cbor.encode(value))


def test_one_number_cannot_sit_twice() -> None:
    """A record in which a KI number plays at two seats is refused."""
    twice = tuple(replace(each, player=ki_number(7), kind="player") for each in a_record().seats[:2])
    with pytest.raises(RecordError, match="one KI number sits at two seats"):
        decode_record(encode_record(a_record(seats=twice)))


def test_a_newer_tables_key_is_allowed() -> None:
    """A key that this version does not know is passed over, so that tables can be newer."""
    value = cbor.decode(encode_record(a_record()))
    assert decode_record(cbor.encode(value | {"mood": "calm"})) == a_record()


def test_a_record_has_a_size_that_is_kept() -> None:
    """More than 64 KiB is refused on both sides, before anything is read."""
    one = {Seat(seat): Kind.BEETLE for seat in range(1, 6)}
    with pytest.raises(RecordError, match="at most"):
        encode_record(a_record(rounds=(one,) * 2000))
    with pytest.raises(RecordError, match="at most"):
        decode_record(bytes(MOST_BYTES + 1))


def test_a_batch_gives_back_its_envelopes_and_names_the_broken_one() -> None:
    """One envelope that is none does not hide the others."""
    good = seal(encode_record(a_record()), SEED)
    assert split_batch(batch([good, good])) == [good, good]
    mixed = split_batch(cbor.encode([good.packed(), [1, 2], good.packed()]))
    assert mixed[0] == mixed[2] == good
    assert isinstance(mixed[1], RecordError)
    for body in (b"\x01", cbor.encode({}), cbor.encode([0] * 201)):
        with pytest.raises(RecordError):
            split_batch(body)
    with pytest.raises(RecordError, match="version 2"):
        open_envelope([2, bytes(8), b"", bytes(64)])


@given(st.integers(0, 10**7 - 1))
def test_ki_numbers_check_themselves(seven: int) -> None:
    """A number is right as made, wrong with one digit changed or two neighbours (but 0 and 9) swapped."""
    number = ki_number(seven)
    assert is_ki_number(number)
    for place, digit in enumerate(number):
        other = number[:place] + str((int(digit) + 1) % 10) + number[place + 1 :]
        assert not is_ki_number(other)
    for place in range(7):
        a, b = number[place], number[place + 1]
        if a != b and {a, b} != {"0", "9"}:
            assert not is_ki_number(number[:place] + b + a + number[place + 2 :])


@pytest.mark.parametrize("text", ["", "1234567", "123456789", "abcdefgh", "4022017٣", 40220172, None])
def test_what_is_no_ki_number(text: object) -> None:
    """Length, letters and digits of other scripts do not pass."""
    assert not is_ki_number(text)
