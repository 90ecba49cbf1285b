"""Bytes that somebody may have changed, into everything of ours that reads bytes from outside.

Frames and exchange of the serial line, records, envelopes and batches, introductions, sign-ins, claims,
questions, every kind of answer, signed ones, files of records and receipts, an operator's requests,
certificates, the times in HTTP's headers. Whatever the bytes are: a message comes of them, the one error that
is documented, or nothing that is not counted; never another exception. And no input may take more memory or
more steps than a small multiple of its own length: a length that is only claimed is not believed.

Inputs are sound ones, changed: single bits, pieces cut, doubled, moved and spliced, heads that claim a great
length, deep nesting; and, so that they get past the outermost check, values within sound ones exchanged,
encoded anew and signed anew.

`python -m tests.decoders --inputs 200000` is the campaign; `make test` runs a share of it. A failing input
is printed with its decoder and its seed, and `--seed N --inputs 1` gives it again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import cbor2

from heek.clock import MILLISECOND, SECOND
from heek.errors import LinkError, RecordError
from heek.ki import answers, cbor, claim, export_file, http_dates, receipt_file, sync
from heek.ki.certificate_key import ed25519_key
from heek.ki.delivery import MOST_MESSAGE, MOST_WAITING
from heek.ki.envelope import Envelope, batch, open_envelope, public_key, sign, split_batch
from heek.ki.exchange import Exchange
from heek.ki.framing import LONGEST_CODED, Frame, FrameDecoder
from heek.ki.link import Request
from heek.ki.record import Record, decode_record, encode_record
from heek.ki.signed_answer import check_answer, sign_answer
from heek.ranking import operator_requests
from tests.ki.golden import vectors
from tests.ranking.records import ANN, BEN, CLEO, FakeTable

MEMORY_A_BYTE: Final = 200
MEMORY_SLACK: Final = 200_000
STEPS_A_BYTE: Final = 60
STEPS_SLACK: Final = 4_000
MEASURED: Final = 20
"""Of so many inputs one is measured; to count steps takes its time."""

SERVICE_SEED: Final = bytes(range(100, 132))
SERVICE: Final = public_key(SERVICE_SEED)
ASKED: Final = b"what was asked"


@dataclass(frozen=True)
class Decoder:
    """One thing that reads bytes: sound inputs, what it makes of any, and what it may raise."""

    name: str
    sound: tuple[bytes, ...]
    read: Callable[[bytes], object]
    """Raises AssertionError if what it has read is not what it should be."""
    refuses: type[Exception] | None
    """None: it never raises."""
    sealed: Callable[[Any, random.Random], bytes] | None = None
    """Encodes a value as this decoder expects it, signed anew; None: there is no value in the input."""


@cache
def decoders() -> tuple[Decoder, ...]:
    """All of them."""
    table = FakeTable()
    envelopes = [table.sealed({ANN: 1, BEN: 1, None: 0}), table.sealed({CLEO: 1, None: 0})]
    records = tuple(each.record for each in envelopes)
    claimed = claim.encode_claim(table.seed, "Table 1", bytes(16), bytes(32))
    golden = vectors("exchanges")
    questions = tuple(bytes.fromhex(each["question_cbor"]) for each in golden["syncs"])
    told = tuple(bytes.fromhex(each["answer_cbor"]) for each in golden["syncs"])
    enrolled = claim.encode_enrolled(SERVICE, "KI", bytes(32))
    verdicts = answers.encode_batch_answer(
        answers.BatchAnswer(
            (
                answers.RecordAnswer(answers.Verdict.ACCEPTED, None, bytes(16)),
                answers.RecordAnswer(answers.Verdict.REJECTED, "so", None),
            ),
            {ANN: 99},
        )
    )
    refusal = answers.encode_refusal("busy", "too much", 3)
    known = cbor.encode({"ki": 1, "table": bytes(8), "public": SERVICE, "name": "KI"})
    signed_in = answers.encode_signed_in(answers.SignedIn(ANN, "Shorah", 100))
    some_answers = (verdicts, refusal, known, signed_in, enrolled, claim.encode_waiting(), *told)
    export, receipt = io.BytesIO(), io.BytesIO()
    export_file.write_export(export.write, 2, envelopes, table.introduction())
    batches = [receipt_file.AnsweredBatch((bytes(16), bytes(16)), verdicts)] * 2
    receipt_file.write_receipt(receipt.write, table.key_id, 2, [each.encode() for each in batches])
    asked = {question.n: question for question, _, _ in map(sync.read_question, questions)}

    def plainly(value: Any, _: random.Random) -> bytes:
        return cbor2.dumps(value, canonical=True)

    def signed(context: bytes, seed: bytes) -> Callable[[Any, random.Random], bytes]:
        def seal(value: Any, rng: random.Random) -> bytes:
            if isinstance(value, dict) and rng.random() < 0.9:
                value = {key: each for key, each in value.items() if key != "sig"}
                value["sig"] = sign(context + cbor2.dumps(value, canonical=True), seed)
            return cbor2.dumps(value, canonical=True)

        return seal

    def answer_signed(value: Any, rng: random.Random) -> bytes:
        if isinstance(value, dict):
            value = {key: each for key, each in value.items() if key != "sig"}
        data = cbor2.dumps(value, canonical=True)
        try:
            return sign_answer(data, Request.SYNC, ASKED, SERVICE_SEED) if rng.random() < 0.5 else data
        except (RecordError, TypeError, ValueError):
            return data

    return (
        Decoder("frames", tuple(_frames()), _read_frames, None),
        Decoder("cbor", records + some_answers, _read_cbor, RecordError, plainly),
        Decoder("record", records, _read_record, RecordError, plainly),
        Decoder("envelope", tuple(each.encode() for each in envelopes), _read_envelope, RecordError, plainly),
        Decoder("batch", (batch(envelopes), batch([])), _read_batch, RecordError, plainly),
        Decoder("introduction", (table.introduction(),), answers.read_introduction, RecordError, plainly),
        Decoder(
            "sign-in",
            (answers.encode_sign_in(ANN), answers.encode_sign_in(None)),
            answers.read_sign_in,
            RecordError,
            plainly,
        ),
        Decoder("claim", (claimed,), _read_claim, RecordError, signed(claim.CONTEXT, table.seed)),
        Decoder(
            "claim answer",
            (enrolled, claim.encode_waiting(), refusal),
            _read_claim_answer,
            LinkError,
            plainly,
        ),
        Decoder("question", questions, _read_question, RecordError, signed(sync.CONTEXT, table.seed)),
        Decoder(
            "sync answer",
            told,
            lambda data: _read_sync_answer(data, asked),
            LinkError,
            plainly,
        ),
        Decoder("batch answer", (verdicts, refusal), _read_batch_answer, LinkError, plainly),
        Decoder("introduction's answer", (known, refusal), _read_introduced, LinkError, plainly),
        Decoder("sign-in's answer", (signed_in, refusal), _read_signed_in, LinkError, plainly),
        Decoder("the KI's", some_answers, answers.is_the_kis, None, plainly),
        Decoder(
            "signed answer",
            tuple(sign_answer(each, Request.SYNC, ASKED, SERVICE_SEED) for each in some_answers[:1] + told),
            lambda data: check_answer(data, Request.SYNC, ASKED, SERVICE),
            LinkError,
            answer_signed,
        ),
        Decoder("export", (export.getvalue(),), _read_export, RecordError, plainly),
        Decoder("receipt", (receipt.getvalue(),), _read_receipt, RecordError, plainly),
        Decoder(
            "operator's request",
            tuple(operator_requests.encode_request(each) for each in _wishes()),
            _read_wish,
            RecordError,
            plainly,
        ),
        Decoder("certificate", (_certificate(),), _read_certificate, None),
        Decoder(
            "HTTP's times",
            (b"Mon, 30 Nov 2026 14:00:00 GMT", b"Monday, 30-Nov-26 14:00:00 +0100", b"120"),
            _read_times,
            None,
        ),
    )


def _frames() -> Iterator[bytes]:
    yield Frame(16, 1, 2, 3, bytes(range(256)) * 4).encode()
    yield Frame(2).encode() + Frame(3, 9, 9, 9, b"\0\0").encode() + Frame(144, 1, 2, 3, b"x" * 700).encode()


def _read_frames(data: bytes) -> object:
    """In pieces and at once the same frames, all bytes counted, and never more held than a frame has."""
    whole = FrameDecoder()
    frames = whole.feed(data)
    pieces = FrameDecoder()
    again: list[Frame] = []
    for start in range(0, len(data), 7):
        again += pieces.feed(data[start : start + 7])
        assert pieces.held <= LONGEST_CODED
    assert again == frames
    assert pieces.counters == whole.counters
    assert whole.counters.frames == len(frames)
    assert whole.counters.invalid_bytes + whole.held <= len(data)
    return frames


def _read_cbor(data: bytes) -> object:
    value = cbor.decode(data)
    assert cbor.encode(value) == data
    return value


def _read_record(data: bytes) -> Record:
    record = decode_record(data)
    assert decode_record(encode_record(record)) == record
    return record


def _read_envelope(data: bytes) -> Envelope:
    envelope = open_envelope(cbor.decode(data))
    assert envelope.encode() == data
    return envelope


def _read_batch(data: bytes) -> object:
    read = split_batch(data)
    assert all(isinstance(each, Envelope | RecordError) for each in read)
    return read


def _read_claim(data: bytes) -> object:
    read = claim.read_claim(data)
    assert 0 < len(read.name) <= 24
    claim.is_code_of(read, bytes(32))
    return read


def _read_claim_answer(data: bytes) -> object:
    try:
        value = cbor.decode(data)
    except RecordError as error:
        raise LinkError(str(error)) from None
    if not isinstance(value, dict):
        raise LinkError("is no map")
    return claim.read_claim_answer(value, bytes(32), bytes(32))


def _read_question(data: bytes) -> object:
    read, signed, signature = sync.read_question(data)
    sync.is_from(signed, signature, SERVICE)
    assert sync.read_question(sync.encode_question(read, SERVICE_SEED))[0] == read
    return read


def _read_sync_answer(data: bytes, asked: Mapping[int, sync.SyncQuestion]) -> object:
    """As an answer to that of the questions which it names, or else to some other."""
    try:
        value = cbor.decode(data)
    except RecordError as error:
        raise LinkError(str(error)) from None
    if not isinstance(value, dict):
        raise LinkError("is no map")
    n = value.get("n")
    question = asked.get(n if type(n) is int else 0, next(iter(asked.values())))
    read = sync.read_sync_answer(value, question)
    _fits_into_a_data_base(read.now_s, read.newest, read.holds[0], *read.points.values())
    return read


def _read_batch_answer(data: bytes) -> object:
    read = answers.read_batch_answer(data, 2)
    assert len(read.answers) == 2
    _fits_into_a_data_base(read.holds[0], *read.points.values())
    for each in read.answers:
        assert each.match is None or len(each.match) == 16
        _can_be_shown(each.reason or "")
    return read


def _read_introduced(data: bytes) -> object:
    read = answers.read_table_answer(data)
    _can_be_shown(read.name)
    return read


def _read_signed_in(data: bytes) -> object:
    read = answers.read_signed_in(data)
    _fits_into_a_data_base(read.points)
    _can_be_shown(read.name)
    return read


def _can_be_shown(text: str) -> None:
    assert text.isprintable(), text
    assert len(text) <= answers.MOST_TEXT


def _fits_into_a_data_base(*numbers: int) -> None:
    """What a number is kept in has 64 bits."""
    for each in numbers:
        assert type(each) is int, each
        assert abs(each) < 1 << 63, each


def _read_export(data: bytes) -> object:
    """What was surveyed is what is read, however often."""
    found = export_file.survey(io.BytesIO(data))
    assert sum(1 for _ in export_file.envelopes(io.BytesIO(data))) == found.envelopes
    return found


def _wishes() -> Iterator[operator_requests.OperatorRequest]:
    for wish in (
        operator_requests.Enrol("BCDFGHJK", "Table 1"),
        operator_requests.Void(bytes(16), "wrong seat"),
        operator_requests.Rename(ANN, "Shorah", "she asked for it"),
        operator_requests.Erase(ANN, "she asked for it"),
        operator_requests.ListTables(),
    ):
        yield operator_requests.OperatorRequest("word", "operator", wish)


def _read_wish(data: bytes) -> object:
    read = operator_requests.read_request(data)
    assert operator_requests.read_request(operator_requests.encode_request(read)) == read
    return read


def _element(tag: int, content: bytes) -> bytes:
    """An element of DER."""
    size = len(content)
    return bytes([tag, size] if size < 128 else [tag, 0x82, size >> 8, size & 255]) + content


def _certificate() -> bytes:
    """As much of one as a table looks at, with the service's key and something behind it."""
    key = bytes.fromhex("300506032b6570032100") + SERVICE
    before = _element(0xA0, b"\x02\x01\x02") + _element(2, b"\x05") + _element(0x30, b"any") * 4
    inner = _element(0x30, before + _element(0x30, key) + _element(0xA3, bytes(100)))
    return _element(0x30, inner + _element(0x30, b"any") + _element(3, bytes(65)))


def _read_certificate(data: bytes) -> object:
    """The whole key or none; the sound one gives the service's."""
    key = ed25519_key(data)
    assert key is None or (len(key) == 32 and key in data)
    assert data != _certificate() or key == SERVICE
    return key


def _read_times(data: bytes) -> object:
    """What a header says is a time that can be waited for, or none."""
    text = data.decode("latin-1")
    wait = http_dates.retry_s(text, "Mon, 30 Nov 2026 13:59:00 GMT")
    assert wait is None or 0 <= wait <= http_dates.MOST_RETRY_S
    when = http_dates.date_s(text)
    assert when is None or abs(when) < 1e12
    return wait


def _read_receipt(data: bytes) -> object:
    table = receipt_file.survey(io.BytesIO(data))
    assert len(table) == 8
    return [batch.matches for batch in receipt_file.batches(io.BytesIO(data))]


# Changing inputs


def changed(decoder: Decoder, rng: random.Random) -> bytes:
    """One input for it: a sound one with some changes, seldom none, and seldom nothing but rubbish."""
    if rng.random() < 0.03:
        return rng.randbytes(rng.randrange(300))
    data = rng.choice(decoder.sound)
    if decoder.sealed is not None and rng.random() < 0.5:
        value = cbor2.loads(data)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            value = _exchanged(value, rng)
        try:
            data = decoder.sealed(value, rng)
        except (cbor2.CBOREncodeError, UnicodeEncodeError, RecursionError, TypeError, ValueError):
            return data
        if rng.random() < 0.8:
            return data
    piece = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 10))):
        _CHANGES[rng.randrange(len(_CHANGES))](piece, decoder, rng)
    return bytes(piece)


def _flip(data: bytearray, _: Decoder, rng: random.Random) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _put(data: bytearray, _: Decoder, rng: random.Random) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.choice((0, 1, 0x17, 0x18, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _cut(data: bytearray, _: Decoder, rng: random.Random) -> None:
    start = rng.randrange(len(data) + 1)
    del data[start : start + rng.choice((1, 2, 8, len(data)))]


def _double(data: bytearray, _: Decoder, rng: random.Random) -> None:
    start = rng.randrange(len(data) + 1)
    data[start:start] = data[start : start + rng.choice((1, 2, 8, 64, 300))]


def _splice(data: bytearray, decoder: Decoder, rng: random.Random) -> None:
    other = rng.choice(decoder.sound)
    data[rng.randrange(len(data) + 1) :] = other[rng.randrange(len(other) + 1) :]


def _claim_a_length(data: bytearray, _: Decoder, rng: random.Random) -> None:
    """Say that a great many bytes, letters, items or pairs follow."""
    major, size = rng.choice((2, 3, 4, 5)), rng.choice((2, 4, 8))
    head = bytes([major << 5 | {2: 25, 4: 26, 8: 27}[size]])
    start = rng.randrange(len(data) + 1)
    end = start + rng.choice((0, 1, 3))
    data[start:end] = head + rng.choice((b"\xff" * size, b"\x00" * (size - 1) + b"\x05", rng.randbytes(size)))


def _nest(data: bytearray, _: Decoder, rng: random.Random) -> None:
    start = rng.randrange(len(data) + 1)
    data[start:start] = rng.choice((b"\x81", b"\xa1\x60", b"\x9f", b"\xd8\x1c", b"\xc2")) * rng.choice(
        (1, 17, 500)
    )


def _put_rubbish(data: bytearray, _: Decoder, rng: random.Random) -> None:
    start = rng.randrange(len(data) + 1)
    data[start:start] = rng.randbytes(rng.choice((1, 4, 40)))


_CHANGES: Final = (_flip, _flip, _put, _cut, _double, _splice, _claim_a_length, _nest, _put_rubbish)

_ODD: Final[tuple[Any, ...]] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        23,
        24,
        255,
        256,
        1 << 31,
        1 << 53,
        1 << 63,
        1 << 64,
        -(1 << 63),
        -(1 << 64),
    ),
    *(
        1 << 70,
        1.5,
        float("nan"),
        float("inf"),
        "",
        "x",
        "error",
        "ki",
        "sig",
        "\0",
        "a\nb",
        "\u2028",
        "x" * 100,
    ),
    *(b"", b"x", bytes(8), bytes(16), bytes(32), bytes(64), [], [[]], {}, {"v": 1}, {"error": "busy"}),
    *(
        ANN,
        "1",
        "pen",
        "accepted",
        "enrolled",
        "voided",
        {1: 2},
        {b"": None},
        [None] * 300,
        cbor2.CBORTag(1, 0),
    ),
)


def _exchanged(value: Any, rng: random.Random) -> Any:
    """The value with something in it exchanged, taken out, put in or moved."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        made = dict(value)
        match rng.randrange(10):
            case 0:
                del made[key]
            case 1:
                made[rng.choice(("error", "ki", "v", "sig", "x", "", "retry_s", 1, b"x"))] = rng.choice(_ODD)
            case 2:
                made[key] = rng.choice(_ODD)
            case _:
                made[key] = _exchanged(value[key], rng)
        return made
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        listed = list(value)
        match rng.randrange(8):
            case 0:
                del listed[at]
            case 1:
                listed.insert(at, rng.choice((*_ODD, value[at])))
            case _:
                listed[at] = _exchanged(value[at], rng)
        return listed
    if isinstance(value, bytes) and rng.random() < 0.3:
        return value + b"\0" if rng.random() < 0.5 else value[:-1]
    if type(value) is int and rng.random() < 0.5:
        return value + rng.choice((-1, 1, 1 << 32, -(1 << 53)))
    return rng.choice(_ODD)


# Judging


def judge(seed: int) -> tuple[int, str, str, str]:
    """Give one input to one decoder: the seed, the decoder, what came of it, and what is wrong with that."""
    rng = random.Random(seed)
    known = decoders()
    place = seed % (len(known) + 1)
    if place == len(known):
        return seed, "exchange", *_exchange(rng)
    decoder = known[place]
    data = changed(decoder, rng)
    came, fault = _given(decoder, data)
    if not fault and rng.randrange(MEASURED) == 0:
        fault = _measured(decoder, data)
    return seed, decoder.name, came, f"{fault}: {data.hex()}" if fault else ""


def _given(decoder: Decoder, data: bytes) -> tuple[str, str]:
    try:
        decoder.read(data)
    except Exception as error:
        if decoder.refuses is not None and isinstance(error, decoder.refuses):
            line = str(error)
            if not line or "\n" in line or len(line) > 400:
                return "refused", f"its error is not one clear line: {line!r}"
            return "refused", ""
        return "fault", f"{type(error).__name__}: {error}"
    return "read", ""


def _measured(decoder: Decoder, data: bytes) -> str:
    """Whether that input takes too much memory or too many steps; it has been read once already."""
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)
    try:
        _given(decoder, data)
    finally:
        sys.setprofile(None)
    if steps > STEPS_SLACK + STEPS_A_BYTE * len(data):
        return f"takes {steps} steps for {len(data)} bytes"
    tracemalloc.start()
    try:
        _given(decoder, data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    if peak > MEMORY_SLACK + MEMORY_A_BYTE * len(data):
        return f"takes {peak} bytes of memory for {len(data)} bytes"
    return ""


def _exchange(rng: random.Random) -> tuple[str, str]:
    """Two ends of a serial line that talk, and somebody who changes and invents what is on it."""
    ends = [Exchange(baud=115200, random_bytes=rng.randbytes) for _ in range(2)]
    now, heard = SECOND, FrameDecoder()
    sessions: list[int] = [0]
    came: Counter[str] = Counter()
    try:
        for end in ends:
            end.connect(now)
        for _ in range(rng.choice((5, 40))):
            for end, other in (ends, ends[::-1]):
                if rng.random() < 0.2:
                    with contextlib.suppress(LinkError):
                        end.send(rng.choice((16, 17, 32)), rng.randbytes(rng.choice((0, 10, 1100, 9000))))
                line = end.to_write(now)
                sessions += [frame.session for frame in heard.feed(line)]
                came.update(type(each).__name__ for each in other.receive(_spoilt(line, sessions, rng), now))
                assert end.held <= LONGEST_CODED + (1 + MOST_WAITING) * MOST_MESSAGE
                due = end.due()
                assert due is not None
            now += rng.choice((MILLISECOND, 100 * MILLISECOND, SECOND, 7 * SECOND))
    except Exception as error:
        return "fault", f"{type(error).__name__}: {error}"
    return "talked" if came["MessageArrived"] else "opened" if came["SessionOpened"] else "refused", ""


def _spoilt(line: bytes, sessions: list[int], rng: random.Random) -> bytes:
    """What arrives of it: mostly all, else changed; and now and then a frame that nobody sent."""
    if rng.random() < 0.3:
        piece = bytearray(line)
        _CHANGES[rng.randrange(5)](piece, decoders()[0], rng)
        line = bytes(piece)
    if rng.random() < 0.3:
        line += Frame(
            rng.choice((1, 2, 3, 16, 32, 144, 160, rng.randrange(256))),
            rng.choice(sessions),
            rng.choice((0, 1, 2, rng.randrange(1 << 16))),
            rng.choice((0, 1, 2, rng.randrange(1 << 16))),
            rng.randbytes(rng.choice((0, 1, 2, 4, 8, 12, 1024))),
            rng.choice((1, 1, 1, 0, 2, 255)),
        ).encode()
    return line


def main(argv: Sequence[str] | None = None) -> int:
    """Give many inputs on all cores; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.decoders", description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    arguments = parser.parse_args(argv)
    began = time.monotonic()
    failed = 0
    seen: Counter[tuple[str, str]] = Counter()
    seeds = range(arguments.seed, arguments.seed + arguments.inputs)
    with ProcessPoolExecutor() as pool:
        for seed, name, came, fault in pool.map(judge, seeds, chunksize=200):
            seen[name, came] += 1
            if fault:
                failed += 1
                print(f"seed {seed}, {name}: {fault}", flush=True)
    for (name, came), count in sorted(seen.items()):
        print(f"{name}: {came} {count}")
    print(f"{len(seeds)} inputs in {time.monotonic() - began:.0f} s, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
