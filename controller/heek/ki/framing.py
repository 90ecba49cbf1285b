"""Bytes of a serial line to frames and back, whatever else is on the line.

A frame is `00 | COBS(header, payload, CRC-32) | 00` (the specification, Links). COBS leaves no zero byte
within, so a zero always ends a frame, and whoever has lost the thread finds it again at the next one.

| bytes | field | |
| --- | --- | --- |
| 1 | version | of the exchange; this layout is that of all versions |
| 1 | type | what it is, 0 to 255 |
| 2 | session | little-endian, as all numbers here, since the CRC is |
| 2 | seq | little-endian |
| 2 | ack | little-endian |
| 0 to 1024 | payload | |
| 4 | CRC-32 | of header and payload, as in Ethernet and zip, little-endian |

A frame is known by its length and its CRC, never by hope: a login prompt, half a frame or two that are
glued together are counted as invalid bytes and dropped. Of damaged frames one in four thousand million slips
through; no decoder can know that, and the signatures of the records are there for it.
"""

from __future__ import annotations

import struct
from binascii import crc32
from dataclasses import dataclass
from typing import Final

MOST_PAYLOAD: Final = 1024
"""Bytes of payload in one frame."""

_HEADER: Final = struct.Struct("<BBHHH")
_CRC: Final = struct.Struct("<I")
_LEAST_BODY: Final = _HEADER.size + _CRC.size
_MOST_BODY: Final = _LEAST_BODY + MOST_PAYLOAD
_RUN: Final = 254
"""Bytes that one code byte of COBS can stand for at most."""

REMEMBERED: Final = 80
"""Of the bytes that belong to no sound frame the last ones, for people: they show what else talks here."""

LONGEST_CODED: Final = _MOST_BODY + -(-_MOST_BODY // _RUN)
"""Bytes between the two zeros of the longest frame: no decoder holds more."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame. `type` and `version` are 0 to 255, the three numbers 0 to 65535."""

    type: int
    session: int = 0
    seq: int = 0
    ack: int = 0
    payload: bytes = b""
    version: int = 1

    def encode(self) -> bytes:
        """The frame with both its zeros; raises ValueError if a field does not fit."""
        if len(self.payload) > MOST_PAYLOAD:
            raise ValueError(f"a frame has at most {MOST_PAYLOAD} bytes of payload, not {len(self.payload)}")
        try:
            header = _HEADER.pack(self.version, self.type, self.session, self.seq, self.ack)
        except struct.error as error:
            raise ValueError(f"{self!r} does not fit into a frame: {error}") from None
        body = header + self.payload
        return b"\0" + _stuff(body + _CRC.pack(crc32(body))) + b"\0"


@dataclass(slots=True)
class FrameCounters:
    """What a decoder has seen since it was made."""

    frames: int = 0
    """Whole and sound ones."""
    invalid_bytes: int = 0
    """Bytes that belong to no sound frame; zeros are never counted."""
    crc_errors: int = 0
    """Frames of a possible length whose CRC was wrong; their bytes are invalid ones too."""


class FrameDecoder:
    """Takes the bytes of a line in pieces of any size; holds `LONGEST_CODED` bytes at most."""

    def __init__(self, counters: FrameCounters | None = None) -> None:
        """`counters` go on from where they are; None: new ones."""
        self.counters: Final = FrameCounters() if counters is None else counters
        self._held = bytearray()
        self._skipping = False
        self._refused = b""

    @property
    def unframed(self) -> bytes:
        """The last bytes, up to 80, of what belongs to no sound frame or to one that has not ended."""
        return (self._refused + self._held)[-REMEMBERED:]

    @property
    def held(self) -> int:
        """Bytes of a frame that has not ended yet."""
        return len(self._held)

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that these bytes bring to an end; never raises, whatever the bytes are."""
        frames: list[Frame] = []
        *ended, open_piece = data.split(b"\0")
        for piece in ended:
            self._hold(piece)
            if self._held:
                frame = self._decode(bytes(self._held))
                if frame is not None:
                    frames.append(frame)
            self._held.clear()
            self._skipping = False
        self._hold(open_piece)
        return frames

    def reset(self) -> None:
        """Forget what has not ended: the line was opened anew."""
        self._refuse(self._held)
        self._refused = b""
        self._held.clear()
        self._skipping = False

    def _hold(self, piece: bytes) -> None:
        if self._skipping:
            self._refuse(piece)
        elif len(self._held) + len(piece) > LONGEST_CODED:
            # No frame is that long: all of it is garbage up to the next zero.
            self._refuse(self._held + piece)
            self._held.clear()
            self._skipping = True
        else:
            self._held += piece

    def _refuse(self, data: bytes | bytearray) -> None:
        self.counters.invalid_bytes += len(data)
        self._refused = (self._refused + data[-REMEMBERED:])[-REMEMBERED:]

    def _decode(self, coded: bytes) -> Frame | None:
        body = _unstuff(coded)
        if body is None or not _LEAST_BODY <= len(body) <= _MOST_BODY:
            self._refuse(coded)
            return None
        (crc,) = _CRC.unpack_from(body, len(body) - _CRC.size)
        content = body[: -_CRC.size]
        if crc32(content) != crc:
            self._refuse(coded)
            self.counters.crc_errors += 1
            return None
        self.counters.frames += 1
        version, kind, session, seq, ack = _HEADER.unpack_from(content)
        return Frame(kind, session, seq, ack, content[_HEADER.size :], version)


def _stuff(data: bytes) -> bytes:
    """COBS: each run of bytes other than zero behind a code byte with its length plus one.

    A code of 255 stands for 254 bytes with no zero behind them.
    """
    out = bytearray()
    *ended, last = data.split(b"\0")
    for run in ended:
        _stuff_run(out, run)
    _stuff_run(out, last, final=True)
    return bytes(out)


def _stuff_run(out: bytearray, run: bytes, *, final: bool = False) -> None:
    while len(run) >= _RUN:
        out.append(_RUN + 1)
        out += run[:_RUN]
        run = run[_RUN:]
        if final and not run:
            # Nothing comes behind it, not even a zero, so it needs no code to say so.
            return
    out.append(len(run) + 1)
    out += run


def _unstuff(coded: bytes) -> bytes | None:
    """The bytes behind the COBS of them, which has no zeros; None if a code byte points past the end."""
    out = bytearray()
    at, end = 0, len(coded)
    while at < end:
        code = coded[at]
        after = at + code
        if after > end:
            return None
        out += coded[at + 1 : after]
        at = after
        if code <= _RUN and at < end:
            out.append(0)
    return bytes(out)
