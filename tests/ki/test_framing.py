"""Frames are what the specification says, byte for byte, and nothing else on a line is taken for one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.ki.framing import LONGEST_CODED, MOST_PAYLOAD, Frame, FrameDecoder

VECTORS = json.loads((Path(__file__).parent / "vectors" / "frames.json").read_text())

numbers = st.integers(0, 65535)
payloads = st.one_of(
    st.binary(max_size=MOST_PAYLOAD),
    st.integers(0, MOST_PAYLOAD).map(bytes),
    st.integers(0, MOST_PAYLOAD).map(lambda size: b"\xff" * size),
    # Around the 254 bytes that one code byte of COBS can stand for, header and CRC included.
    st.integers(235, 265).map(lambda size: bytes(1 + at % 255 for at in range(size))),
)
frames = st.builds(
    Frame,
    type=st.integers(0, 255),
    session=numbers,
    seq=numbers,
    ack=numbers,
    payload=payloads,
    version=st.integers(0, 255),
)


def slow_crc32(data: bytes) -> int:
    """CRC-32 bit by bit, from its polynomial."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def slow_cobs(data: bytes) -> bytes:
    """COBS byte by byte, as its authors draw it: a code byte is filled in when its run ends."""
    out = bytearray([0])
    code_at = 0
    for at, byte in enumerate(data):
        if byte:
            out.append(byte)
        if not byte or len(out) - code_at == 255:
            out[code_at] = len(out) - code_at
            if byte and at == len(data) - 1:
                return bytes(out)
            code_at = len(out)
            out.append(0)
    out[code_at] = len(out) - code_at
    return bytes(out)


def slow_frame(frame: Frame) -> bytes:
    """A frame by an encoder that shares nothing with ours."""
    body = bytes([frame.version, frame.type])
    for number in (frame.session, frame.seq, frame.ack):
        body += bytes([number % 256, number // 256])
    body += frame.payload
    crc = slow_crc32(body)
    body += bytes(crc >> shift & 255 for shift in (0, 8, 16, 24))
    return b"\0" + slow_cobs(body) + b"\0"


def _frame(vector: dict) -> Frame:
    return Frame(
        vector["type"],
        vector["session"],
        vector["seq"],
        vector["ack"],
        bytes.fromhex(vector["payload"]),
        vector["version"],
    )


@pytest.mark.parametrize("vector", VECTORS["frames"], ids=lambda vector: vector["name"])
def test_golden_frames(vector: dict) -> None:
    """Each golden frame is encoded to its bytes, and its bytes are decoded to it."""
    frame, wire = _frame(vector), bytes.fromhex(vector["wire"])
    assert frame.encode() == wire == slow_frame(frame)
    assert FrameDecoder().feed(wire) == [frame]


@pytest.mark.parametrize("vector", VECTORS["rubbish"], ids=lambda vector: vector["name"])
def test_golden_rubbish(vector: dict) -> None:
    """What only looks like a frame is none, and is counted by what is wrong with it."""
    decoder = FrameDecoder()
    assert decoder.feed(bytes.fromhex(vector["wire"])) == [_frame(each) for each in vector["frames"]]
    assert decoder.counters.invalid_bytes == vector["invalid_bytes"]
    assert decoder.counters.crc_errors == vector["crc_errors"]


@pytest.mark.parametrize(
    ("data", "coded"),
    [
        ("", "01"),
        ("00", "01 01"),
        ("00 00", "01 01 01"),
        ("11 22 00 33", "03 11 22 02 33"),
        ("11 00 00 00", "02 11 01 01 01"),
    ],
)
def test_the_second_cobs_is_right(data: str, coded: str) -> None:
    """The encoder that ours is measured by gives the examples that COBS is taught with."""
    assert slow_cobs(bytes.fromhex(data)) == bytes.fromhex(coded)
    full = bytes(range(1, 255))
    assert slow_cobs(full) == b"\xff" + full
    assert slow_cobs(full + b"\xff") == b"\xff" + full + b"\x02\xff"
    assert slow_cobs(full + b"\0") == b"\xff" + full + b"\x01\x01"
    assert slow_crc32(b"123456789") == 0xCBF43926


@given(frames)
def test_a_frame_comes_back(frame: Frame) -> None:
    """Whatever a frame holds, its bytes are the second encoder's, hold no zero within, and give it back."""
    wire = frame.encode()
    assert wire == slow_frame(frame)
    assert wire[0] == wire[-1] == 0
    assert 0 not in wire[1:-1]
    assert len(wire) <= LONGEST_CODED + 2
    decoder = FrameDecoder()
    assert decoder.feed(wire) == [frame]
    assert (decoder.counters.invalid_bytes, decoder.counters.crc_errors) == (0, 0)


def test_the_longest_frame_is_as_long_as_we_say() -> None:
    """The bound of the decoder's memory is exactly the longest frame, so it refuses no frame."""
    wire = Frame(255, 65535, 65535, 65535, b"\xff" * MOST_PAYLOAD, 255).encode()
    assert len(wire) == LONGEST_CODED + 2


@pytest.mark.fault("F067")
@given(st.lists(frames, max_size=5), st.data())
def test_pieces_make_no_difference(sent: list[Frame], data: st.DataObject) -> None:
    """Frames come out the same however the line cuts and glues their bytes."""
    wire = b"".join(frame.encode() for frame in sent)
    decoder, came, at = FrameDecoder(), [], 0
    while at < len(wire):
        size = data.draw(st.integers(1, 400))
        came += decoder.feed(wire[at : at + size])
        at += size
    assert came == sent
    assert decoder.held == 0


@given(st.lists(st.one_of(st.binary(max_size=300), frames.map(Frame.encode)), max_size=20))
def test_any_bytes_give_frames_or_counts(pieces: list[bytes]) -> None:
    """Whatever comes, nothing is raised, memory is bounded, and every byte is accounted for."""
    decoder, taken = FrameDecoder(), 0
    for piece in pieces:
        for frame in decoder.feed(piece):
            taken += len(frame.encode()) - 2
        assert decoder.held <= LONGEST_CODED
    written = sum(len(piece) - piece.count(0) for piece in pieces)
    assert decoder.counters.invalid_bytes + decoder.held + taken == written


@pytest.mark.fault("F064")
@given(frames, st.data())
def test_damage_is_noticed(frame: Frame, data: st.DataObject) -> None:
    """A frame with up to three flipped bits gives no frame, and the next one is found all the same."""
    coded = bytearray(frame.encode()[1:-1])
    places = data.draw(st.sets(st.integers(0, 8 * len(coded) - 1), min_size=1, max_size=3))
    for place in places:
        coded[place // 8] ^= 1 << place % 8
    sound = Frame(2, 7, 8, 9)
    decoder = FrameDecoder()
    assert decoder.feed(bytes(coded) + sound.encode()) == [sound]
    assert decoder.counters.invalid_bytes > 0


@pytest.mark.fault("F067")
def test_a_line_without_end_is_not_kept() -> None:
    """A megabyte without a zero is counted and thrown away; after the next zero all is well."""
    decoder = FrameDecoder()
    for _ in range(1000):
        assert decoder.feed(b"login: " * 150) == []
        assert decoder.held <= LONGEST_CODED
    assert decoder.counters.invalid_bytes >= 1000 * 1050 - LONGEST_CODED
    sound = Frame(16, payload=b"here")
    assert decoder.feed(sound.encode()) == [sound]
    assert decoder.counters.invalid_bytes == 1000 * 1050


@pytest.mark.fault("F064")
def test_a_banner_inside_a_frame_costs_that_frame_alone() -> None:
    """A login prompt that breaks into a frame spoils it, and not the ones before and behind."""
    first, second, third = (Frame(16, seq=seq, payload=b"x" * 50) for seq in (1, 2, 3))
    broken = second.encode()
    wire = first.encode() + broken[:20] + b"\r\nraspberrypi login: " + broken[20:] + third.encode()
    decoder = FrameDecoder()
    assert decoder.feed(wire) == [first, third]
    assert decoder.counters.crc_errors + decoder.counters.invalid_bytes > 0


def test_two_frames_may_share_a_zero() -> None:
    """The zero that ends a frame may begin the next one, and zeros between them are no rubbish."""
    one, other = Frame(16, seq=1), Frame(16, seq=2)
    decoder = FrameDecoder()
    assert decoder.feed(one.encode()[:-1] + other.encode() + bytes(5)) == [one, other]
    assert decoder.counters.invalid_bytes == 0


def test_a_line_opened_anew_forgets_the_half_frame() -> None:
    """What had not ended when the port was closed is counted and does not spoil what comes after."""
    decoder = FrameDecoder()
    whole = Frame(16, payload=b"one").encode()
    decoder.feed(whole[:10])
    decoder.reset()
    assert (decoder.held, decoder.counters.invalid_bytes) == (0, 9)
    assert decoder.feed(whole[1:]) == [Frame(16, payload=b"one")]


@pytest.mark.parametrize(
    "frame",
    [
        Frame(256),
        Frame(-1),
        Frame(16, session=65536),
        Frame(16, seq=65536),
        Frame(16, ack=-1),
        Frame(16, version=256),
        Frame(16, payload=bytes(MOST_PAYLOAD + 1)),
    ],
    ids=repr,
)
def test_what_does_not_fit_is_refused(frame: Frame) -> None:
    """A field out of its range is an error of the caller, not a frame with another meaning."""
    with pytest.raises(ValueError, match=r"fit|payload"):
        frame.encode()


def test_what_belongs_to_no_frame_is_remembered_for_people() -> None:
    """The last 80 bytes that are in no sound frame, ended or not, can be looked at until the line is new."""
    decoder = FrameDecoder()
    decoder.feed(b"boot " * 500 + b"\0" + Frame(16, payload=b"sound").encode() + b"raspberrypi login: ")
    assert decoder.unframed.endswith(b"boot boot raspberrypi login: ")
    assert len(decoder.unframed) == 80
    assert b"sound" not in decoder.unframed
    decoder.feed(b"x" * 5000)
    assert decoder.unframed == b"x" * 80
    decoder.reset()
    assert decoder.unframed == b""
