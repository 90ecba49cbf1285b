"""Messages within one session of a serial line: cut into frames, acknowledged, sent again, put together.

One frame is under way in each direction (stop and wait; a window gained nothing when it was measured). It is
sent again after twice its time on the wire and 150 ms, then after twice as long each time, up to 5 s. Each
frame carries the number of the last one that was taken, so an answer acknowledges without a word of its
own; if there is nothing to say, an ACK does. A frame whose number is the next one is taken. One that was
taken already is acknowledged once more, because that is what was lost. Nobody asks for anything again:
there is no NAK, so there is no storm of them, and an acknowledgement is answered by nothing.

After 2 s in which nothing of the session came the peer is pinged, every second until something comes; the
ACK that answers repeats the token of the PING, which measures the round trip. How long silence may last
is the exchange's business.

A message longer than a frame is cut, and all its pieces but the last carry `MORE`; on a slow line so is one
longer than a second. Where frames are damaged the pieces are cut shorter: half as long after each that had to
go again, twice as long after `CLEAN` running that had not. With one byte in a thousand changed, a frame of
1024 bytes comes whole one time in three, and one of 128 six times in seven. A frame that is under way
stays as it is: nobody knows whether it has arrived. A message that grows past `MOST_MESSAGE` is thrown away
up to its end and reported as oversized, so that the answer can say so.

What cannot be shown: `MessageDelivered` says that the peer has the message in its memory, not that
anybody acted on it. The ledger's answer is a message of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from heek.clock import MILLISECOND, SECOND, Duration, Instant
from heek.errors import LinkError
from heek.ki.framing import MOST_PAYLOAD, Frame, FrameCounters

ACK: Final = 2
PING: Final = 3
FIRST_MESSAGE_TYPE: Final = 16
"""Types below are the exchange's own; messages have 16 to 127."""
MORE: Final = 128
"""Added to the type of a piece that is not the last of its message."""

MOST_MESSAGE: Final = 70_000
"""Bytes of a message: a record of 64 KiB in its envelope, and slack."""
MOST_WAITING: Final = 4
"""Messages that may wait to be sent: a request one way and its answer the other are the rule."""

BITS_A_BYTE: Final = 10
"""On the wire: start, eight, stop."""
RESEND_SLACK: Final[Duration] = 150 * MILLISECOND
LONGEST_RESEND: Final[Duration] = 5 * SECOND
IDLE: Final[Duration] = 2 * SECOND
PING_AGAIN: Final[Duration] = SECOND

LEAST_PIECE: Final = 128
"""Bytes of payload below which cutting shorter gains nothing: a frame has 19 beside them."""
CLEAN: Final = 16
"""Frames that went once, one after the other, before the pieces are made longer again."""

_NUMBERS: Final = 1 << 16
_TOKEN_BYTES: Final = 2
_FRAME_ROOM: Final = 24
"""Bytes of a frame beside its payload, more or less."""


@dataclass(frozen=True, slots=True)
class MessageArrived:
    """A whole message has come."""

    type: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class MessageOversized:
    """A message was longer than `MOST_MESSAGE` and has been thrown away."""

    type: int


@dataclass(frozen=True, slots=True)
class MessageDelivered:
    """The peer has the whole message with this number."""

    number: int


MessageHappening: TypeAlias = MessageArrived | MessageOversized | MessageDelivered


@dataclass(slots=True)
class ExchangeCounters(FrameCounters):
    """What an exchange has seen since it was made, over all its sessions; `frames` are those that came."""

    bytes_in: int = 0
    frames_out: int = 0
    resends: int = 0
    duplicates: int = 0
    """Frames that came once more."""
    strangers: int = 0
    """Sound frames of no session of ours, or of a kind that we do not know."""
    echoes: int = 0
    """HELLOs of our own that came back: something on the line repeats what we say."""
    hellos: int = 0
    """HELLOs we sent."""
    sessions: int = 0
    round_trip: Duration | None = None
    """From a frame that was sent once to its acknowledgement, the last time."""
    round_trip_smoothed: Duration | None = None
    """The same, over some eight frames."""

    def measure(self, round_trip: Duration) -> None:
        """Take a round trip in."""
        before = self.round_trip_smoothed
        self.round_trip = round_trip
        self.round_trip_smoothed = round_trip if before is None else (7 * before + round_trip) // 8

    def by_name(self) -> dict[str, float]:
        """For people: whole numbers, and the round trips in milliseconds once there are any."""
        named: dict[str, float] = {
            "frames": self.frames,
            "invalid_bytes": self.invalid_bytes,
            "crc_errors": self.crc_errors,
            "resends": self.resends,
            "duplicates": self.duplicates,
            "hellos": self.hellos,
            "sessions": self.sessions,
        }
        if self.round_trip is not None and self.round_trip_smoothed is not None:
            named["round_trip_ms"] = round(self.round_trip / MILLISECOND, 1)
            named["round_trip_smoothed_ms"] = round(self.round_trip_smoothed / MILLISECOND, 1)
        return named


@dataclass(slots=True)
class _Message:
    number: int
    type: int
    payload: bytes
    arrived: int = 0
    """Bytes that the peer has acknowledged."""


@dataclass(slots=True)
class _UnderWay:
    """The one frame that waits for its acknowledgement."""

    frame: Frame
    sent_at: Instant
    wait: Duration
    resend_at: Instant
    again: bool = False


class Delivery:
    """One end of one session. `out_id` and `in_id` are the session's numbers in the two directions."""

    def __init__(
        self,
        *,
        out_id: int,
        in_id: int,
        version: int,
        baud: int,
        random_bytes: Callable[[int], bytes],
        counters: ExchangeCounters,
        now: Instant,
    ) -> None:
        self._out_id = out_id
        self._in_id = in_id
        self._version = version
        self._baud = baud
        # A second on the wire: on a slow line a longer frame would be taken for silence, and hold up a PING.
        self._most_piece = min(MOST_PAYLOAD, max(baud // BITS_A_BYTE - _FRAME_ROOM, 1))
        self._piece = self._most_piece
        """How long a piece is cut now."""
        self._clean = 0
        """Frames running that went once."""
        self._random_bytes = random_bytes
        self._counters = counters
        self._heard_at = now
        self._pinged_at = now
        self._token = b""
        self._seq = 0
        self._received = 0
        self._ack_owed = False
        self._ack_token = b""
        self._under_way: _UnderWay | None = None
        self._waiting: deque[_Message] = deque()
        self._piece_type: int | None = None
        self._pieces = bytearray()
        self._oversized = False

    @property
    def heard_at(self) -> Instant:
        """When the last frame of this session came."""
        return self._heard_at

    @property
    def held(self) -> int:
        """Bytes of messages that it keeps, both ways."""
        return len(self._pieces) + sum(len(message.payload) for message in self._waiting)

    def unfinished(self) -> tuple[int, ...]:
        """The numbers of the messages that are not delivered."""
        return tuple(message.number for message in self._waiting)

    def owe_ack(self) -> None:
        """Say something in this session soon, so that the peer knows of it."""
        self._ack_owed = True

    def send(self, number: int, kind: int, payload: bytes) -> None:
        """Have a message sent.

        Raises LinkError if too much waits, ValueError if the message itself cannot be.
        """
        if not FIRST_MESSAGE_TYPE <= kind < MORE:
            raise ValueError(f"a message has a type from {FIRST_MESSAGE_TYPE} to {MORE - 1}, not {kind}")
        if len(payload) > MOST_MESSAGE:
            raise ValueError(f"a message has at most {MOST_MESSAGE} bytes, not {len(payload)}")
        if len(self._waiting) >= MOST_WAITING:
            raise LinkError(f"{MOST_WAITING} messages wait to be sent already; wait for what becomes of them")
        self._waiting.append(_Message(number, kind, payload))

    def belongs(self, frame: Frame) -> bool:
        """Is this a frame of this session?"""
        return frame.session == self._in_id and frame.version == self._version

    def take(self, frame: Frame, now: Instant) -> list[MessageHappening]:
        """Take a frame that belongs to this session."""
        self._heard_at = now
        out: list[MessageHappening] = []
        delivered = self._take_ack(frame, now)
        if delivered is not None:
            out.append(delivered)
        if frame.type == ACK:
            if frame.payload and frame.payload == self._token:
                self._token = b""
                self._counters.measure(now - self._pinged_at)
        elif frame.type == PING:
            self._ack_owed, self._ack_token = True, frame.payload[:_TOKEN_BYTES]
        elif frame.type & ~MORE < FIRST_MESSAGE_TYPE:
            self._counters.strangers += 1
        else:
            came = self._take_piece(frame)
            if came is not None:
                out.append(came)
        return out

    def due(self) -> Instant:
        """When there is something to write next if nothing comes; may lie in the past."""
        if self._ack_owed or (self._under_way is None and self._waiting):
            return self._heard_at
        if self._under_way is None:
            return self._ping_at()
        return min(self._ping_at(), self._under_way.resend_at)

    def to_write(self, now: Instant) -> list[Frame]:
        """What is to be sent now: at most one frame of a message, one ACK and one PING."""
        frames = self._of_messages(now)
        if self._ack_token or (self._ack_owed and not frames):
            frames.append(self._frame(ACK, self._seq, self._ack_token))
        self._ack_owed, self._ack_token = False, b""
        if now >= self._ping_at():
            self._pinged_at, self._token = now, self._random_bytes(_TOKEN_BYTES)
            frames.append(self._frame(PING, self._seq, self._token))
        return frames

    # Out

    def _of_messages(self, now: Instant) -> list[Frame]:
        under_way = self._under_way
        if under_way is not None:
            if now < under_way.resend_at:
                return []
            self._cut_shorter(under_way)
            under_way.again = True
            under_way.wait = min(2 * under_way.wait, LONGEST_RESEND)
            under_way.resend_at = now + under_way.wait
            # With the acknowledgement of now, not of when it was sent first.
            under_way.frame = replace(under_way.frame, ack=self._received)
            self._counters.resends += 1
            return [under_way.frame]
        if not self._waiting:
            return []
        message = self._waiting[0]
        piece = message.payload[message.arrived : message.arrived + self._piece]
        more = MORE if message.arrived + len(piece) < len(message.payload) else 0
        self._seq = (self._seq + 1) % _NUMBERS
        frame = self._frame(message.type | more, self._seq, piece)
        wait = 2 * wire_time(len(frame.encode()), self._baud) + RESEND_SLACK
        self._under_way = _UnderWay(frame, now, wait, now + wait)
        return [frame]

    def _cut_shorter(self, damaged: _UnderWay) -> None:
        """A frame has to go again: perhaps it was damaged, and shorter ones would come through."""
        self._clean = 0
        if not damaged.again and len(damaged.frame.payload) > LEAST_PIECE:
            self._piece = max(self._piece // 2, min(LEAST_PIECE, self._most_piece))

    def _cut_longer(self) -> None:
        """A frame went once; so would a longer one, if that is the rule."""
        self._clean += 1
        if self._clean >= CLEAN:
            self._clean, self._piece = 0, min(2 * self._piece, self._most_piece)

    def _frame(self, kind: int, seq: int, payload: bytes) -> Frame:
        return Frame(kind, self._out_id, seq, self._received, payload, self._version)

    def _ping_at(self) -> Instant:
        return max(self._heard_at + IDLE, self._pinged_at + PING_AGAIN)

    # In

    def _take_ack(self, frame: Frame, now: Instant) -> MessageDelivered | None:
        under_way = self._under_way
        if under_way is None or frame.ack != under_way.frame.seq:
            return None
        if not under_way.again:
            # Of a frame that went twice nobody knows which one is acknowledged.
            self._counters.measure(now - under_way.sent_at)
            self._cut_longer()
        self._under_way = None
        message = self._waiting[0]
        message.arrived += len(under_way.frame.payload)
        if under_way.frame.type & MORE:
            return None
        self._waiting.popleft()
        return MessageDelivered(message.number)

    def _take_piece(self, frame: Frame) -> MessageArrived | MessageOversized | None:
        ahead = (frame.seq - self._received) % _NUMBERS
        if ahead != 1:
            if ahead <= _NUMBERS // 2 and ahead:
                # A number that cannot have been given yet.
                self._counters.strangers += 1
            else:
                self._counters.duplicates += 1
                self._ack_owed = True
            return None
        self._received = frame.seq
        self._ack_owed = True
        kind = frame.type & ~MORE
        if kind != self._piece_type:
            # The first piece of a message. (Nobody of ours cuts one short; what came of it is worth nothing.)
            self._piece_type, self._oversized = kind, False
            self._pieces.clear()
        if self._oversized or len(self._pieces) + len(frame.payload) > MOST_MESSAGE:
            self._oversized = True
            self._pieces.clear()
        else:
            self._pieces += frame.payload
        if frame.type & MORE:
            return None
        came = MessageOversized(kind) if self._oversized else MessageArrived(kind, bytes(self._pieces))
        self._piece_type, self._oversized = None, False
        self._pieces.clear()
        return came


def wire_time(size: int, baud: int) -> Duration:
    """How long so many bytes take on a line."""
    return size * BITS_A_BYTE * SECOND // baud
