"""The file of records and its receipt: one encoding, read piece by piece, and refused whole when damaged."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.errors import RecordError
from heek.ki import export_file, receipt_file
from heek.ki.answers import encode_introduction
from heek.ki.cbor_stream import CborStream, head
from heek.ki.envelope import Envelope, key_id, public_key, seal
from heek.ki.export_file import Export, write_export
from heek.ki.receipt_file import AnsweredBatch, write_receipt
from tests.ki import plain_cbor

SEED = bytes(range(32))
TABLE = key_id(public_key(SEED))
INTRODUCTION = encode_introduction(SEED, "Table 1")

MATCHES = st.lists(st.binary(min_size=16, max_size=16), max_size=5).map(tuple)


def packed(count: int, envelopes: list[Envelope], introduction: bytes = INTRODUCTION) -> bytes:
    file = io.BytesIO()
    write_export(file.write, count, envelopes, introduction)
    return file.getvalue()


def an_export(count: int = 3) -> bytes:
    return packed(count, [seal(b"record %d" % each, SEED) for each in range(count)])


def a_receipt(*batches: AnsweredBatch) -> bytes:
    file = io.BytesIO()
    write_receipt(file.write, TABLE, len(batches), [each.encode() for each in batches])
    return file.getvalue()


def survey_export(data: bytes) -> Export:
    return export_file.survey(io.BytesIO(data))


def survey_receipt(data: bytes) -> bytes:
    return receipt_file.survey(io.BytesIO(data))


@given(st.lists(st.binary(max_size=300), max_size=30))
def test_an_export_is_what_the_second_encoder_makes(records: list[bytes]) -> None:
    """Written piece by piece it is byte for byte the one encoding of its map, and gives all of it back."""
    envelopes = [seal(each, SEED) for each in records]
    data = packed(len(envelopes), envelopes)
    assert data == plain_cbor.encode(
        {"heek-export": 1, "introduction": INTRODUCTION, "envelopes": [each.packed() for each in envelopes]}
    )
    assert survey_export(data) == Export(len(records), INTRODUCTION, public_key(SEED), "Table 1")
    assert list(export_file.envelopes(io.BytesIO(data))) == envelopes


@given(st.lists(st.builds(AnsweredBatch, MATCHES, st.binary(max_size=300)), max_size=30))
def test_a_receipt_is_what_the_second_encoder_makes(batches: list[AnsweredBatch]) -> None:
    """Written piece by piece it is byte for byte the one encoding of its map, and gives all of it back."""
    data = a_receipt(*batches)
    assert data == plain_cbor.encode(
        {
            "heek-receipt": 1,
            "table": TABLE,
            "batches": [[b"".join(each.matches), each.answer] for each in batches],
        }
    )
    assert survey_receipt(data) == TABLE
    assert list(receipt_file.batches(io.BytesIO(data))) == batches


@given(st.integers(0, 5), st.integers(0, (1 << 64) - 1))
def test_a_head_is_what_the_second_encoder_makes(major: int, number: int) -> None:
    """Every head is the shortest there is, and read back as itself."""
    data = head(major, number)
    assert data == plain_cbor.head(major, number)
    assert CborStream(io.BytesIO(data)).head(major, (1 << 64) - 1) == number


@pytest.mark.parametrize("text", ["1805", "190018", "1a00000100", "1b0000000000000005", "1c", "1f", "18"])
def test_a_head_that_is_not_the_shortest_is_refused(text: str) -> None:
    """Long forms, reserved ones, endless ones and a cut are no heads."""
    with pytest.raises(RecordError):
        CborStream(io.BytesIO(bytes.fromhex(text))).head(0, (1 << 64) - 1)


def test_a_number_too_large_for_a_head_is_a_mistake() -> None:
    """Nobody has so many records."""
    with pytest.raises(ValueError, match="no number of a head"):
        head(0, 1 << 64)


def test_another_number_of_records_than_announced_is_a_mistake() -> None:
    """The count stands before the records, so it must be right."""
    with pytest.raises(ValueError, match="1 envelopes came where 2"):
        packed(2, [seal(b"record", SEED)])


@pytest.mark.parametrize(
    ("survey", "data"),
    [(survey_export, an_export()), (survey_receipt, a_receipt(AnsweredBatch((bytes(16),), b"answer")))],
)
def test_a_file_that_is_cut_anywhere_is_refused(survey: Callable[[bytes], object], data: bytes) -> None:
    """However much of it came onto the stick: it is whole or it is no file of ours."""
    survey(data)
    for size in range(len(data)):
        with pytest.raises(RecordError, match=r"ends in the middle|is no (file|receipt)"):
            survey(data[:size])
    with pytest.raises(RecordError, match="goes on after its end"):
        survey(data + b"\0")


def test_what_is_damaged_is_told_with_what_was_sound() -> None:
    """The line says how far the file was good, so that people know that it is the copy."""
    data = an_export()
    with pytest.raises(RecordError, match=r"^ends in the middle \(after 2 sound records\)$"):
        survey_export(data[: data.index(b"record 2")])


def test_a_byte_that_changes_in_an_export_is_noticed() -> None:
    """A changed byte is refused, or stands in one envelope alone, which then is not as it was signed."""
    data = bytearray(an_export())
    sound = list(export_file.envelopes(io.BytesIO(bytes(data))))
    for place in range(len(data)):
        data[place] ^= 1
        try:
            survey_export(bytes(data))
        except RecordError:
            pass
        else:
            read = list(export_file.envelopes(io.BytesIO(bytes(data))))
            changed = [at for at, each in enumerate(read) if each != sound[at]]
            assert len(changed) == 1
        data[place] ^= 1


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"heek-export": 2, "introduction": INTRODUCTION, "envelopes": []}, "layout 2, this one reads 1"),
        ({"heek-export": 1, "introduction": b"", "envelopes": []}, "its introduction is none"),
        ({"heek-export": 1, "introduction": b"\0" * 1025, "envelopes": []}, "where 1024 is the most"),
        (
            {"heek-export": 1, "introduction": INTRODUCTION[:-1] + b"?", "envelopes": []},
            "the signature of its introduction",
        ),
        ({"heek-export": 1, "introduction": INTRODUCTION, "envelopes": [1]}, "another thing"),
        (
            {"heek-export": 1, "introduction": INTRODUCTION, "envelopes": [[2, b"", b"", b""]]},
            "a length of 2, where 1 is the most",
        ),
        (
            {"heek-export": 1, "introduction": INTRODUCTION, "envelopes": [[0, b"", b"", b""]]},
            "an envelope is none",
        ),
        (
            {"heek-export": 1, "introduction": INTRODUCTION, "envelopes": [[1, b"short", b"", bytes(64)]]},
            "an envelope is none",
        ),
        ({"heek-export": 1, "introductioN": INTRODUCTION, "envelopes": []}, "no 'introduction'"),
        ({"heek-receipt": 1, "table": TABLE, "batches": []}, "no file that heek journal export wrote"),
        ([], "no file that heek journal export wrote"),
    ],
)
def test_what_is_no_export_is_named(value: Any, words: str) -> None:
    """Another layout, another file, and each thing that is not where it should be."""
    with pytest.raises(RecordError, match=words):
        survey_export(plain_cbor.encode(value))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"heek-receipt": 2, "table": TABLE, "batches": []}, "layout 2, this one reads 1"),
        ({"heek-receipt": 1, "table": b"short", "batches": []}, "key id is none"),
        ({"heek-receipt": 1, "table": TABLE, "batches": [[b"", b"", b""]]}, "a length of 3"),
        ({"heek-receipt": 1, "table": TABLE, "batches": [[b""]]}, "a batch is none"),
        ({"heek-receipt": 1, "table": TABLE, "batches": [[b"short", b""]]}, "a match id is cut"),
        ({"heek-receipt": 1, "table": TABLE, "batches": [[bytes(3216), b""]]}, "where 3200 is the most"),
        ({"heek-export": 1, "introduction": b"", "envelopes": []}, "no receipt"),
    ],
)
def test_what_is_no_receipt_is_named(value: Any, words: str) -> None:
    """Another layout, another file, and each thing that is not where it should be."""
    with pytest.raises(RecordError, match=words):
        survey_receipt(plain_cbor.encode(value))


@given(st.binary(max_size=300))
def test_any_bytes_are_a_file_or_one_clear_error(data: bytes) -> None:
    """Rubbish, alone or after a good beginning, never raises anything but RecordError."""
    for good, survey in ((an_export(), survey_export), (a_receipt(), survey_receipt)):
        for size in (0, 11, 12, 30):
            with contextlib.suppress(RecordError):
                survey(good[:size] + data)
