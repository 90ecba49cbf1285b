"""Sessions over a serial line that loses, damages and delays: two ends find each other, and notice the loss.

Both ends run this same class. It has no port and no clock: bytes and `now` go in, bytes and happenings
come out, and `due` says when to look again. What goes on within a session is `delivery`'s.

**A session** is what two ends have in common, and it begins with HELLO. An end without a session calls: it
sends a HELLO with a nonce of its own, again and again, backing off to once in two seconds, for ever. There
are three answers, and no chain of them is endless:

* a HELLO that has not heard us is answered by a HELLO that repeats its nonce: "I have heard you";
* a HELLO that has heard us opens the session, and is answered by ACK, a frame of that session;
* any frame of the session opens it at the end that had not opened it yet. ACK is answered by nothing.

**Ties** have no winner, and need none. If both call at once, both answer, both find themselves heard, and
both open the same session, because its number is made of both nonces (one number for each direction, so
that a line which only echoes makes nobody believe in a peer). Frames are numbered anew in each session, and
frames of another one are dropped.

**A peer that has started again** calls with a new nonce while we think all is well. It is answered at once,
but our session goes on until it repeats the nonce that we answered with, or speaks in the new session. A
HELLO that comes out of some buffer late can do neither, so it disturbs nobody. Then the old session ends,
and what was not acknowledged in it is reported lost. The same happens after 6 s without a frame of the
session. Whoever calls again does so with a new nonce, so that nothing old can be taken for something new.

**On the wire.** A HELLO's payload is the least and the most version (a byte each), its sender's nonce and the
one it has heard, or 0 (four bytes each, little-endian). Behind that may stand who its sender is: a byte for
what it is (`Role`) and its name in UTF-8, for people. It decides nothing but this: two ends of one kind, two
tables on one cable say, have no session, and each can say whom it has found. An end that does not say what
it is may be anything. The number of a session is the low half of the CRC-32 over two nonces, the sender's
first. In a HELLO it is 0, as are seq and ack.

**Versions.** A HELLO carries the range that its sender speaks; the session takes the highest that both do. If
there is none, that is a state with a name, both ends know it, and both go on calling quietly, since
either may be replaced by a newer one. HELLO itself is the same in all versions.

| state | what it means |
| --- | --- |
| SHUT | there is no port |
| CALLING | we say HELLO, and nobody has heard us |
| MISMATCH | somebody has, of our own kind or with no version of ours; 6 s after its last HELLO we forget it |
| OPEN | there is a session |

**What cannot be shown.** A message that is reported lost may have arrived all the same, if only its
acknowledgement was lost: whoever sends it again must be ready to hear "duplicate". And no end can tell a
cut cable from a peer that is switched off.
"""

from __future__ import annotations

import struct
from binascii import crc32
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from heek.clock import MILLISECOND, SECOND, Duration, Instant
from heek.errors import LinkError
from heek.ki.delivery import Delivery, ExchangeCounters, MessageHappening
from heek.ki.framing import Frame, FrameDecoder

VERSION: Final = 1
"""Of the exchange; the only one so far."""

HELLO: Final = 1
"""The frame type; ACK, PING and messages are in `delivery`."""

SILENCE: Final[Duration] = 6 * SECOND
FIRST_CALL: Final[Duration] = 250 * MILLISECOND
LONGEST_CALL: Final[Duration] = 2 * SECOND

LONGEST_NAME: Final = 64
"""Characters of a name that are kept."""

_HELLO_BODY: Final = struct.Struct("<BBII")
"""Least and most version, our nonce, the peer's nonce or 0."""


class State(Enum):
    """Where an exchange stands; see the module's table."""

    SHUT = "shut"
    CALLING = "calling"
    MISMATCH = "mismatch"
    OPEN = "open"


CHANGES: Final[Mapping[State, frozenset[State]]] = {
    State.SHUT: frozenset({State.CALLING}),
    State.CALLING: frozenset({State.SHUT, State.MISMATCH, State.OPEN}),
    State.MISMATCH: frozenset({State.SHUT, State.CALLING, State.OPEN}),
    State.OPEN: frozenset({State.SHUT, State.CALLING, State.OPEN}),
}
"""Which state may follow which. OPEN follows OPEN when the peer has started again."""


class Role(Enum):
    """What an end is, as its HELLO says it; the value is the byte on the wire."""

    UNSAID = 0
    TABLE = 1
    KI = 2


@dataclass(frozen=True, slots=True)
class Identity:
    """Who an end says it is. Nothing is proved by it: it is told to people, and keeps two tables apart."""

    role: Role = Role.UNSAID
    name: str = ""

    def encode(self) -> bytes:
        """What stands behind the nonces of a HELLO: nothing, for one who does not say."""
        if self.role is Role.UNSAID:
            return b""
        return bytes([self.role.value]) + self.name[:LONGEST_NAME].encode()

    @classmethod
    def decode(cls, data: bytes) -> Identity:
        """The same read back; whatever else stands there is nobody's word."""
        if not data or data[0] not in (Role.TABLE.value, Role.KI.value):
            return cls()
        said = data[1:].decode("utf-8", "replace")
        return cls(Role(data[0]), "".join(each for each in said if each.isprintable())[:LONGEST_NAME])


NOBODY: Final = Identity()
"""An end that does not say who it is."""


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """Both ends have a session; messages may be sent."""

    version: int
    peer: Identity = NOBODY


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """The session is over, and `lost` are the numbers of the messages that were not acknowledged."""

    reason: str
    lost: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class VersionsDiffer:
    """The peer speaks versions of which we speak none; each pair is the least and the most."""

    ours: tuple[int, int]
    theirs: tuple[int, int]


@dataclass(frozen=True, slots=True)
class WrongPeer:
    """The other end is what we are ourselves: it is not the one that belongs there."""

    peer: Identity


Mismatch: TypeAlias = VersionsDiffer | WrongPeer
Happening: TypeAlias = SessionOpened | SessionEnded | Mismatch | MessageHappening


@dataclass(frozen=True, slots=True)
class _Session:
    mine: int
    theirs: int
    delivery: Delivery


@dataclass(slots=True)
class _Candidate:
    """A session that may come: our nonce, and what the peer said in the last HELLO that had not heard us."""

    mine: int
    theirs: int | None = None
    version: int = 0
    peer: Identity = NOBODY


class Exchange:
    """One end of a serial line; see the module for what it does and why.

    `baud` is the line's, for the time that a frame takes. `random_bytes` makes the nonces: the two ends must
    never draw the same. `versions` are the least and the most that this end speaks, `me` is who it says it
    is.
    """

    def __init__(
        self,
        *,
        baud: int,
        random_bytes: Callable[[int], bytes],
        versions: tuple[int, int] = (VERSION, VERSION),
        me: Identity = NOBODY,
    ) -> None:
        self._me = me
        self.counters: Final = ExchangeCounters()
        self._baud = baud
        self._random_bytes = random_bytes
        self.versions: Final = versions
        self._decoder = FrameDecoder(self.counters)
        self._state = State.SHUT
        self._session: _Session | None = None
        self._candidate: _Candidate | None = None
        self._call_at: Instant = 0
        self._call_wait: Duration = FIRST_CALL
        self._hello_owed: int | None = None
        """The nonce to repeat in a HELLO that answers one."""
        self._unfit: Mismatch | None = None
        self._unfit_at: Instant = 0
        self._number = 0
        self._out: list[Happening] = []

    @property
    def state(self) -> State:
        """Where it stands."""
        return self._state

    @property
    def mismatch(self) -> Mismatch | None:
        """In MISMATCH what is wrong with the peer."""
        return self._unfit if self._state is State.MISMATCH else None

    @property
    def unframed(self) -> bytes:
        """The last bytes, up to 80, that came and belong to no frame."""
        return self._decoder.unframed

    @property
    def held(self) -> int:
        """Bytes that it keeps of what came and of what is to go; bounded whatever comes."""
        return self._decoder.held + (0 if self._session is None else self._session.delivery.held)

    def connect(self, now: Instant) -> None:
        """There is a port now: call. Raises ValueError if there was one already."""
        if self._state is not State.SHUT:
            raise ValueError("the exchange has a port already; disconnect it first")
        self._decoder.reset()
        self._call(now)

    def disconnect(self, reason: str = "the port is gone") -> list[Happening]:
        """There is no port any more: what was under way is lost."""
        self._end(reason)
        if self._state is not State.SHUT:
            self._enter(State.SHUT)
        self._candidate = self._hello_owed = self._unfit = None
        return self._happened()

    def restart(self, now: Instant, reason: str) -> list[Happening]:
        """Give the session up, if there is one, and call anew, so that nothing of it can arrive any more."""
        if self._session is not None:
            self._end(reason)
            self._call(now)
        return self._happened()

    def send(self, kind: int, payload: bytes) -> int:
        """Have a message sent; returns the number under which its delivery or loss will be reported.

        Raises LinkError if there is no session or too much waits, ValueError if the message itself cannot be.
        """
        if self._session is None:
            raise LinkError("the serial line has no session; wait until the other end has answered")
        self._session.delivery.send(self._number + 1, kind, payload)
        self._number += 1
        return self._number

    def receive(self, data: bytes, now: Instant) -> list[Happening]:
        """Take what came from the line, in pieces of any size, and do what `now` brings; never raises."""
        if self._state is not State.SHUT:
            self.counters.bytes_in += len(data)
            for frame in self._decoder.feed(data):
                self._take(frame, now)
        return [*self._happened(), *self.advance(now)]

    def advance(self, now: Instant) -> list[Happening]:
        """Notice what has not come."""
        if self._session is not None and now - self._session.delivery.heard_at >= SILENCE:
            self._end(f"nothing came for {SILENCE // SECOND} s")
            self._call(now)
        if self._state is State.MISMATCH and now - self._unfit_at >= SILENCE:
            self._enter(State.CALLING)
            self._unfit = None
        return self._happened()

    def to_write(self, now: Instant) -> bytes:
        """What is to be put on the line now; to be asked for whenever the port can take bytes.

        However much came: at most two HELLOs, one frame of a message, one ACK and one PING.
        """
        frames: list[Frame] = []
        if self._session is None and self._candidate is not None and now >= self._call_at:
            frames.append(self._hello(self._candidate.mine, 0))
            self._call_at = now + self._call_wait
            self._call_wait = min(2 * self._call_wait, LONGEST_CALL)
        if self._hello_owed is not None:
            mine = self._known_to(self._hello_owed)
            if mine is not None:
                frames.append(self._hello(mine, self._hello_owed))
            self._hello_owed = None
        if self._session is not None:
            frames.extend(self._session.delivery.to_write(now))
        self.counters.frames_out += len(frames)
        return b"".join(frame.encode() for frame in frames)

    def due(self) -> Instant | None:
        """When something is to be done next if nothing comes; None: nothing will. May lie in the past."""
        if self._state is State.SHUT:
            return None
        if self._session is None:
            at = self._call_at
            if self._state is State.MISMATCH:
                at = min(at, self._unfit_at + SILENCE)
        else:
            delivery = self._session.delivery
            at = min(delivery.due(), delivery.heard_at + SILENCE)
        return at if self._hello_owed is None else min(at, 0)

    # States

    def _enter(self, state: State) -> None:
        if state not in CHANGES[self._state]:
            raise ValueError(f"the exchange cannot go from {self._state.value} to {state.value}")
        self._state = state

    def _call(self, now: Instant) -> None:
        """Begin to call, by a nonce under which nobody knows us yet."""
        self._enter(State.CALLING)
        self._candidate = _Candidate(self._nonce())
        self._call_at, self._call_wait = now, FIRST_CALL
        self._hello_owed = self._unfit = None

    def _open(self, now: Instant, mine: int, theirs: int, version: int, peer: Identity) -> Delivery:
        self._end("the other end has started anew")
        self._enter(State.OPEN)
        self._candidate = self._unfit = None
        delivery = Delivery(
            out_id=_session_id(mine, theirs),
            in_id=_session_id(theirs, mine),
            version=version,
            baud=self._baud,
            random_bytes=self._random_bytes,
            counters=self.counters,
            now=now,
        )
        self._session = _Session(mine, theirs, delivery)
        self.counters.sessions += 1
        self._out.append(SessionOpened(version, peer))
        return delivery

    def _end(self, reason: str) -> None:
        """End the session if there is one; the caller says what comes after it."""
        if self._session is not None:
            self._out.append(SessionEnded(reason, self._session.delivery.unfinished()))
            self._session = None

    def _nonce(self) -> int:
        while True:
            nonce = int.from_bytes(self._random_bytes(4), "little")
            if nonce:
                return nonce

    def _happened(self) -> list[Happening]:
        out, self._out = self._out, []
        return out

    # Frames

    def _take(self, frame: Frame, now: Instant) -> None:
        if frame.type == HELLO:
            self._take_hello(frame, now)
            return
        session, candidate = self._session, self._candidate
        if session is not None and session.delivery.belongs(frame):
            self._out.extend(session.delivery.take(frame, now))
        elif (
            candidate is not None
            and candidate.theirs is not None
            and frame.session == _session_id(candidate.theirs, candidate.mine)
            and frame.version == candidate.version
        ):
            # Only who has heard our newest nonce knows this number.
            delivery = self._open(now, candidate.mine, candidate.theirs, candidate.version, candidate.peer)
            self._out.extend(delivery.take(frame, now))
        else:
            self.counters.strangers += 1

    def _take_hello(self, frame: Frame, now: Instant) -> None:
        if len(frame.payload) < _HELLO_BODY.size:
            self.counters.strangers += 1
            return
        least, most, nonce, heard = _HELLO_BODY.unpack_from(frame.payload)
        peer = Identity.decode(frame.payload[_HELLO_BODY.size :])
        session, candidate = self._session, self._candidate
        version = min(most, self.versions[1])
        if nonce in (each.mine for each in (session, candidate) if each is not None):
            self.counters.echoes += 1
        elif nonce == 0 or least > most:
            self.counters.strangers += 1
        elif version < max(least, self.versions[0]):
            self._take_unfit_hello(nonce, heard, VersionsDiffer(self.versions, (least, most)), now)
        elif peer.role is not Role.UNSAID and peer.role is self._me.role:
            self._take_unfit_hello(nonce, heard, WrongPeer(peer), now)
        elif session is not None and nonce == session.theirs:
            # The peer has not opened this very session yet, or its HELLO comes late.
            if heard == 0:
                self._hello_owed = nonce
            elif heard == session.mine:
                session.delivery.owe_ack()
        elif candidate is not None and heard == candidate.mine:
            self._open(now, candidate.mine, nonce, version, peer).owe_ack()
        elif heard == 0:
            candidate = self._candidate_for(nonce)
            candidate.theirs, candidate.version, candidate.peer = nonce, version, peer
            self._hello_owed = nonce
        else:
            # Meant for whom we were before.
            self.counters.strangers += 1

    def _take_unfit_hello(self, nonce: int, heard: int, unfit: Mismatch, now: Instant) -> None:
        """A peer with whom there can be no session: it is told who we are, so that it can say so too."""
        if heard == 0:
            self._candidate_for(nonce)
            self._hello_owed = nonce
        if self._session is None:
            if self._unfit != unfit:
                self._out.append(unfit)
            self._unfit, self._unfit_at = unfit, now
            if self._state is State.CALLING:
                self._enter(State.MISMATCH)

    def _candidate_for(self, nonce: int) -> _Candidate:
        """What we would be to the owner of this nonce.

        While we call that is one and the same for everybody. In a session a new caller gets a new nonce, lest
        somebody who has heard us earlier, and whose frames come late, could speak in its name.
        """
        if self._candidate is None or (self._session is not None and self._candidate.theirs != nonce):
            self._candidate = _Candidate(self._nonce())
        return self._candidate

    def _known_to(self, nonce: int) -> int | None:
        """The nonce of ours that the owner of this one is to hear."""
        if self._session is not None and nonce == self._session.theirs:
            return self._session.mine
        return None if self._candidate is None else self._candidate.mine

    def _hello(self, mine: int, heard: int) -> Frame:
        self.counters.hellos += 1
        body = _HELLO_BODY.pack(*self.versions, mine, heard)
        return Frame(HELLO, payload=body + self._me.encode())


def _session_id(sender: int, receiver: int) -> int:
    """The number that frames from `sender` carry; the other direction has another one."""
    return crc32(struct.pack("<II", sender, receiver)) & 0xFFFF
