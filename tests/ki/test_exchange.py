"""Two ends converse over four wires, and every message arrives once, in order, or is reported lost."""

from __future__ import annotations

import random
import struct
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.clock import MILLISECOND, SECOND
from heek.errors import LinkError
from heek.ki.delivery import (
    ACK,
    MORE,
    MOST_MESSAGE,
    MOST_WAITING,
    PING,
    Delivery,
    ExchangeCounters,
    MessageArrived,
    MessageDelivered,
    MessageOversized,
)
from heek.ki.exchange import (
    CHANGES,
    HELLO,
    LONGEST_CALL,
    SILENCE,
    Exchange,
    Identity,
    Role,
    SessionEnded,
    SessionOpened,
    State,
    VersionsDiffer,
    WrongPeer,
)
from heek.ki.framing import LONGEST_CODED, Frame, FrameDecoder
from heek.ki.link import ANSWER_FRAME
from tests.ki.wires import (
    BAUD,
    SLOW_BAUD,
    Conversation,
    End,
    Late,
    Lossy,
    Noisy,
    Wire,
    byte_by_byte,
    cut,
    perfect,
    slow,
)


class Tap:
    """A wire that keeps the frames that went over it, and can lose those it is told to."""

    def __init__(self, wire: Wire = perfect) -> None:
        self._wire = wire
        self._decoder = FrameDecoder()
        self.frames: list[Frame] = []
        self.lose = lambda frame: False  # noqa: ARG005

    def __call__(self, data: bytes) -> list[tuple[int, bytes]]:
        frames = self._decoder.feed(data)
        self.frames += frames
        kept = b"".join(frame.encode() for frame in frames if not self.lose(frame))
        return self._wire(kept) if kept else []

    def types(self) -> list[int]:
        """The types of the frames that went."""
        return [frame.type for frame in self.frames]


def hello(nonce: int, heard: int = 0, versions: tuple[int, int] = (1, 1)) -> bytes:
    """A HELLO by hand."""
    return Frame(HELLO, payload=struct.pack("<BBII", *versions, nonce, heard)).encode()


def said(data: bytes) -> list[Frame]:
    """The frames in what an end wrote."""
    return FrameDecoder().feed(data)


def heard_in(data: bytes) -> tuple[int, int]:
    """The nonces of the one HELLO in what an end wrote: its own, and the one it repeats."""
    (frame,) = said(data)
    assert frame.type == HELLO
    return struct.unpack_from("<II", frame.payload, 2)


def one_end(versions: tuple[int, int] = (1, 1)) -> Exchange:
    """One end alone, its port open."""
    exchange = Exchange(baud=BAUD, random_bytes=random.Random(1).randbytes, versions=versions)
    exchange.connect(0)
    return exchange


# Finding each other


@pytest.mark.parametrize("wire", [perfect, byte_by_byte])
def test_both_call_at_once(wire: Wire) -> None:
    """Two ends that call at the same instant have one session after two frames' time, and stay in it."""
    conversation = Conversation(wire)
    conversation.start()
    assert conversation.run_until(lambda: conversation.open) < 20 * MILLISECOND
    conversation.run(30 * SECOND)
    assert (conversation.left.sessions, conversation.right.sessions) == (1, 1)
    assert conversation.open


def test_a_late_end_is_found() -> None:
    """Who calls alone goes on calling, and a peer that appears after an hour is found within two seconds."""
    conversation = Conversation()
    conversation.left.exchange.connect(0)
    conversation.turn()
    conversation.run(3600 * SECOND)
    # Two seconds apart, for ever: not more, or it would be a storm, nor less.
    assert 1800 <= conversation.left.exchange.counters.hellos <= 1805
    conversation.right.exchange.connect(conversation.now)
    conversation.turn()
    assert conversation.run_until(lambda: conversation.open) <= LONGEST_CALL


@pytest.mark.fault("F068")
def test_a_peer_that_boots_for_three_seconds() -> None:
    """What is lost while the peer starts costs nothing but time: HELLO is repeated until it is answered."""
    conversation = Conversation(perfect)
    conversation.left.wire = cut
    conversation.start()
    conversation.inject(conversation.left, b"\r\nets Jul 29 2019 rst:0x1 (POWERON)\r\n")
    conversation.run(3 * SECOND)
    assert conversation.left.exchange.state is not State.OPEN
    conversation.left.wire = perfect
    assert conversation.run_until(lambda: conversation.open) <= LONGEST_CALL


def test_the_ack_that_opens_is_lost() -> None:
    """If the last word of the greeting is lost, the end that misses it calls on and gets it again."""
    tap = Tap()
    conversation = Conversation(tap, perfect)
    tap.lose = lambda frame: frame.type != HELLO
    conversation.start()
    conversation.run(3 * SECOND)
    tap.lose = lambda frame: False  # noqa: ARG005
    assert conversation.run_until(lambda: conversation.open) <= LONGEST_CALL
    conversation.send(conversation.right, b"from the right")
    conversation.run(SECOND)
    assert conversation.left.arrived == [b"from the right"]


def test_one_way_lines_never_open() -> None:
    """A line that works in one direction alone gives no session at either end that could be believed in."""
    conversation = Conversation(perfect, cut)
    conversation.start()
    conversation.run(60 * SECOND)
    assert conversation.left.exchange.state is State.CALLING
    assert conversation.right.exchange.state is State.CALLING
    assert conversation.left.sessions == conversation.right.sessions == 0


def test_a_line_that_echoes_is_no_peer() -> None:
    """An end that hears only itself counts the echoes, and never believes in a session."""
    exchange = one_end()
    now = 0
    for _ in range(200):
        exchange.receive(exchange.to_write(now), now)
        due = exchange.due()
        assert due is not None
        now = max(now, due)
    assert exchange.state is State.CALLING
    assert exchange.counters.echoes == exchange.counters.hellos > 10
    assert exchange.counters.sessions == 0


def test_an_echo_beside_a_peer_does_no_harm() -> None:
    """Two ends that also hear themselves talk to each other all the same."""
    conversation = Conversation(perfect)

    def echoing(end: End) -> Wire:
        def wire(data: bytes) -> list[tuple[int, bytes]]:
            conversation.inject(end, data, after=MILLISECOND)
            return perfect(data)

        return wire

    conversation.left.wire = echoing(conversation.left)
    conversation.right.wire = echoing(conversation.right)
    conversation.opened()
    conversation.send(conversation.left, b"x" * 3000)
    conversation.run(10 * SECOND)
    assert conversation.right.arrived == [b"x" * 3000]
    assert conversation.left.arrived == []
    assert conversation.left.sessions == 1


def test_until_hello_is_answered_all_else_is_dropped() -> None:
    """A frame of some session means nothing to an end that has none, and gets no answer."""
    exchange = one_end()
    exchange.to_write(0)
    wire = Frame(16, 0x1234, 1, 0, b"to whom?").encode() + Frame(PING, 0x1234).encode()
    assert exchange.receive(wire, 1) == []
    assert exchange.to_write(1) == b""
    assert exchange.counters.strangers == 2


def test_a_session_needs_both_to_have_heard() -> None:
    """A HELLO that has not heard us is answered with its nonce; one that has opens, and gets an ACK."""
    exchange = one_end()
    mine, heard = heard_in(exchange.to_write(0))
    assert heard == 0
    assert exchange.receive(hello(0xAA), 1) == []
    assert heard_in(exchange.to_write(1)) == (mine, 0xAA)
    assert exchange.receive(hello(0xAA, mine), 2) == [SessionOpened(1)]
    (ack,) = said(exchange.to_write(2))
    assert (ack.type, ack.seq, ack.ack, ack.payload) == (ACK, 0, 0, b"")
    # The same HELLO once more changes nothing, and is answered by the same word.
    assert exchange.receive(hello(0xAA, mine), 3) == []
    assert said(exchange.to_write(3)) == [ack]
    # The peer calls on, because it has not opened the session yet: it is told the session's nonce.
    assert exchange.receive(hello(0xAA), 4) == []
    assert heard_in(exchange.to_write(4)) == (mine, 0xAA)


def test_in_a_session_each_caller_is_told_another_nonce() -> None:
    """Who called earlier, and speaks late, cannot take the place of who called last."""
    exchange = one_end()
    first, _ = heard_in(exchange.to_write(0))
    exchange.receive(hello(0xAA, first), 1)
    exchange.to_write(1)
    exchange.receive(hello(0xB1), 2)
    second, heard = heard_in(exchange.to_write(2))
    assert heard == 0xB1
    exchange.receive(hello(0xB2), 3)
    third, heard = heard_in(exchange.to_write(3))
    assert heard == 0xB2
    assert len({first, second, third}) == 3
    late = Frame(ACK, _number_in(0xB1, second))
    assert exchange.receive(late.encode(), 4) == []
    assert exchange.counters.strangers == 1
    now = Frame(PING, _number_in(0xB2, third))
    assert exchange.receive(now.encode(), 5) == [
        SessionEnded("the other end has started anew"),
        SessionOpened(1),
    ]


def test_a_frame_of_another_version_is_none_of_the_session() -> None:
    """A frame with the session's number but not its version is dropped."""
    exchange = one_end()
    mine, _ = heard_in(exchange.to_write(0))
    exchange.receive(hello(0xAA, mine), 1)
    strange = Frame(16, _number_in(0xAA, mine), 1, 0, b"?", version=2)
    assert exchange.receive(strange.encode(), 2) == []
    assert exchange.counters.strangers == 1


def test_hellos_end_in_silence() -> None:
    """No chain of answers is endless: between two ends in a session nothing but PING and ACK goes."""
    tap = Tap()
    conversation = Conversation(tap, tap).opened()
    conversation.run(SECOND)
    greeting = len(tap.frames)
    assert greeting <= 8
    conversation.run(60 * SECOND)
    assert set(tap.types()[greeting:]) == {PING, ACK}
    assert len(tap.frames) - greeting <= 2 * 60 + 2


@pytest.mark.parametrize("payload", [b"", b"\x01\x01", struct.pack("<BBII", 2, 1, 7, 0), bytes(10)])
def test_a_hello_that_is_none(payload: bytes) -> None:
    """A HELLO that is too short, has its range upside down or no nonce is counted and not answered."""
    exchange = one_end()
    exchange.to_write(0)
    assert exchange.receive(Frame(HELLO, payload=payload).encode(), 1) == []
    assert exchange.to_write(1) == b""
    assert exchange.counters.strangers == 1


# Versions


def test_versions_without_a_common_one_are_named_at_both_ends() -> None:
    """Both ends say which versions do not fit, once, and go on calling without a storm."""
    conversation = Conversation(left_versions=(1, 1), right_versions=(2, 3))
    conversation.start()
    conversation.run(120 * SECOND)
    assert conversation.left.of(VersionsDiffer) == [VersionsDiffer((1, 1), (2, 3))]
    assert conversation.right.of(VersionsDiffer) == [VersionsDiffer((2, 3), (1, 1))]
    assert conversation.left.exchange.state is conversation.right.exchange.state is State.MISMATCH
    assert conversation.left.exchange.mismatch == VersionsDiffer((1, 1), (2, 3))
    assert conversation.left.exchange.counters.hellos <= 130
    assert conversation.left.sessions == 0


def test_a_peer_that_was_updated_is_welcome() -> None:
    """After a mismatch a peer that speaks our version opens a session as any other."""
    conversation = Conversation(left_versions=(1, 1), right_versions=(2, 3))
    conversation.start()
    conversation.run(30 * SECOND)
    conversation.replace(conversation.right, (1, 3))
    assert conversation.run_until(lambda: conversation.open) <= LONGEST_CALL
    assert conversation.left.exchange.mismatch is None


def test_the_highest_common_version_is_spoken() -> None:
    """Of ranges that overlap both ends take the highest, and mark their frames with it."""
    tap = Tap()
    conversation = Conversation(tap, perfect, left_versions=(1, 3), right_versions=(2, 5)).opened()
    assert conversation.left.of(SessionOpened) == [SessionOpened(3)]
    assert conversation.right.of(SessionOpened) == [SessionOpened(3)]
    conversation.send(conversation.left, b"three")
    conversation.run(SECOND)
    assert conversation.right.arrived == [b"three"]
    assert {frame.version for frame in tap.frames if frame.type != HELLO} == {3}
    assert {frame.version for frame in tap.frames if frame.type == HELLO} == {1}


def test_a_mismatch_is_forgotten_when_the_peer_is_gone() -> None:
    """Six seconds after the last HELLO that did not fit, nobody is there."""
    conversation = Conversation(left_versions=(1, 1), right_versions=(2, 2))
    conversation.start()
    conversation.run(10 * SECOND)
    conversation.right.exchange.disconnect()
    conversation.run(SILENCE + SECOND)
    assert conversation.left.exchange.state is State.CALLING


def test_a_session_is_not_ended_by_a_stranger_of_another_version() -> None:
    """A HELLO that does not fit, in the midst of a session, is answered and changes nothing."""
    conversation = Conversation().opened()
    conversation.inject(conversation.left, hello(0xDEAD, versions=(7, 9)))
    conversation.run(SECOND)
    assert conversation.open
    assert conversation.left.of(SessionEnded) == []


def test_an_unfit_caller_is_told_our_versions() -> None:
    """The answer to a HELLO that does not fit carries our range, so that the other end can name it too."""
    exchange = one_end(versions=(1, 2))
    exchange.to_write(0)
    assert exchange.receive(hello(0xAA, versions=(3, 4)), 1) == [VersionsDiffer((1, 2), (3, 4))]
    (answer,) = said(exchange.to_write(1))
    assert struct.unpack("<BBII", answer.payload)[:2] == (1, 2)
    assert struct.unpack("<BBII", answer.payload)[3] == 0xAA


# Who it is

TABLE_1, TABLE_2 = Identity(Role.TABLE, "Table 1"), Identity(Role.TABLE, "Tisch 2 ✒")
KI = Identity(Role.KI, "server")


def test_both_ends_hear_who_the_other_is() -> None:
    """The session tells each end what the other says it is, and its name."""
    conversation = Conversation(left_is=TABLE_2, right_is=KI).opened()
    assert conversation.left.of(SessionOpened) == [SessionOpened(1, KI)]
    assert conversation.right.of(SessionOpened) == [SessionOpened(1, TABLE_2)]


def test_who_opens_a_session_by_a_word_in_it_is_known_too() -> None:
    """A peer that is heard of in a session before its last HELLO comes has the identity of the one before."""
    exchange = one_end()
    mine, _ = heard_in(exchange.to_write(0))
    greeting = Frame(HELLO, payload=struct.pack("<BBII", 1, 1, 0xAA, 0) + TABLE_2.encode())
    exchange.receive(greeting.encode(), 1)
    ack = Frame(ACK, _number_in(0xAA, mine))
    assert exchange.receive(ack.encode(), 2) == [SessionOpened(1, TABLE_2)]


@pytest.mark.parametrize(("left", "right"), [(TABLE_1, TABLE_2), (KI, KI)])
def test_two_of_one_kind_have_no_session(left: Identity, right: Identity) -> None:
    """Two tables, or two KI's ends, on one cable name each other once, and go on calling without a storm."""
    conversation = Conversation(left_is=left, right_is=right)
    conversation.start()
    conversation.run(120 * SECOND)
    assert conversation.left.of(WrongPeer) == [WrongPeer(right)]
    assert conversation.right.of(WrongPeer) == [WrongPeer(left)]
    assert conversation.left.exchange.mismatch == WrongPeer(right)
    assert (conversation.left.sessions, conversation.right.sessions) == (0, 0)
    assert conversation.left.exchange.counters.hellos <= 130
    # The right one takes its place.
    conversation.replace(conversation.right, me=KI if left is TABLE_1 else TABLE_1)
    assert conversation.run_until(lambda: conversation.open) <= LONGEST_CALL
    assert conversation.left.exchange.mismatch is None


@pytest.mark.parametrize(
    ("left", "right"), [(Identity(), TABLE_1), (Identity(), Identity()), (KI, Identity())]
)
def test_who_does_not_say_what_it_is_may_be_anything(left: Identity, right: Identity) -> None:
    """An end that says nothing of itself has a session with any other."""
    assert Conversation(left_is=left, right_is=right).opened().left.sessions == 1


@given(st.binary(max_size=300))
def test_what_stands_behind_a_hello_is_read_or_ignored(tail: bytes) -> None:
    """Whatever bytes stand there, the session opens, and a name is short and printable."""
    exchange = one_end()
    mine, _ = heard_in(exchange.to_write(0))
    (payload,) = (frame.payload for frame in FrameDecoder().feed(hello(0xAA, mine)))
    (opened,) = exchange.receive(Frame(HELLO, payload=payload + tail).encode(), 1)
    assert isinstance(opened, SessionOpened)
    assert len(opened.peer.name) <= 64
    assert opened.peer.name.isprintable()


# Messages


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 1025, 2048, 20_000, MOST_MESSAGE])
@pytest.mark.parametrize("wire", [perfect, byte_by_byte])
def test_messages_of_every_size_arrive(size: int, wire: Wire) -> None:
    """A message from nothing to the largest arrives whole, and is known to have arrived."""
    conversation = Conversation(wire).opened()
    payload = bytes(at * 7 % 256 for at in range(size))
    number = conversation.send(conversation.left, payload, 17)
    conversation.run_until(lambda: conversation.left.delivered == [number])
    assert conversation.right.of(MessageArrived) == [MessageArrived(17, payload)]
    assert conversation.left.exchange.held == conversation.right.exchange.held == 0
    assert conversation.left.exchange.counters.resends == 0


def test_a_long_message_is_cut_with_more() -> None:
    """All frames of a message but the last carry MORE and a full payload, and are numbered from 1."""
    tap = Tap()
    conversation = Conversation(tap, perfect).opened()
    conversation.send(conversation.left, bytes(2500), 16)
    conversation.run(SECOND)
    pieces = [frame for frame in tap.frames if frame.type & ~MORE == 16]
    assert [(each.type, each.seq, len(each.payload)) for each in pieces] == [
        (16 + MORE, 1, 1024),
        (16 + MORE, 2, 1024),
        (16, 3, 452),
    ]


def test_both_directions_at_once() -> None:
    """A request and an answer that cross each other both arrive, and acknowledge each other on the way."""
    conversation = Conversation(byte_by_byte).opened()
    conversation.send(conversation.left, b"l" * 10_000)
    conversation.send(conversation.right, b"r" * 10_000, 32)
    conversation.run_until(lambda: bool(conversation.left.delivered and conversation.right.delivered))
    assert conversation.right.arrived == [b"l" * 10_000]
    assert conversation.left.arrived == [b"r" * 10_000]
    assert conversation.left.exchange.counters.resends == 0


def test_an_answer_carries_the_acknowledgement() -> None:
    """Who has something to say at once needs no ACK of its own."""
    exchange = one_end()
    mine, _ = heard_in(exchange.to_write(0))
    exchange.receive(hello(0xAA, mine), 1)
    (opening,) = said(exchange.to_write(1))
    request = Frame(16, _number_in(0xAA, mine), 1, 0, b"?")
    assert exchange.receive(request.encode(), 2) == [MessageArrived(16, b"?")]
    exchange.send(32, b"!")
    (answer,) = said(exchange.to_write(2))
    assert (answer.type, answer.seq, answer.ack, answer.payload) == (32, 1, 1, b"!")
    assert answer.session == opening.session


def _number_in(theirs: int, mine: int) -> int:
    """The session's number in the direction towards us, as the module's table has it."""
    from binascii import crc32

    return crc32(struct.pack("<II", theirs, mine)) & 0xFFFF


def test_a_lost_ack_makes_no_second_message() -> None:
    """When an acknowledgement is lost, the frame comes again, is counted and acknowledged, and not taken."""
    tap = Tap()
    conversation = Conversation(perfect, tap).opened()
    lost: list[Frame] = []

    def lose_once(frame: Frame) -> bool:
        if frame.type == ACK and not lost:
            lost.append(frame)
            return True
        return False

    tap.lose = lose_once
    number = conversation.send(conversation.left, b"once")
    conversation.run(3 * SECOND)
    assert lost
    assert conversation.right.arrived == [b"once"]
    assert conversation.left.delivered == [number]
    assert conversation.right.exchange.counters.duplicates == 1
    assert conversation.left.exchange.counters.resends == 1


def test_resend_backs_off_from_twice_the_wire_time() -> None:
    """A frame is sent again after twice its wire time and 150 ms, then after twice as long, up to 5 s."""
    counters = ExchangeCounters()
    delivery = Delivery(
        out_id=1,
        in_id=2,
        version=1,
        baud=9600,
        random_bytes=random.Random(1).randbytes,
        counters=counters,
        now=0,
    )
    delivery.send(1, 16, b"\xff" * 100)
    (frame,) = delivery.to_write(0)
    sent = [0]
    now = 0
    while len(sent) < 9:
        now = delivery.due()
        sent += [now for frame in delivery.to_write(now) if frame.type == 16]
    waits = [later - earlier for earlier, later in pairwise(sent)]
    first = 150 * MILLISECOND + 2 * (len(frame.encode()) * 10 * SECOND // 9600)
    assert waits == [first, 2 * first, 4 * first, 8 * first, *[5 * SECOND] * 4]
    assert counters.resends == 8


def test_a_resend_acknowledges_what_came_since() -> None:
    """A frame that goes again carries the acknowledgement of now, not that of when it went first."""
    exchange = one_end()
    mine, _ = heard_in(exchange.to_write(0))
    exchange.receive(hello(0xAA, mine), 1)
    exchange.send(16, b"first")
    assert [frame.ack for frame in said(exchange.to_write(1))] == [0]
    exchange.receive(Frame(32, _number_in(0xAA, mine), 1, 0, b"between").encode(), SECOND)
    (again,) = said(exchange.to_write(SECOND))
    assert (again.seq, again.ack, again.payload) == (1, 1, b"first")


def test_a_slow_line_has_short_frames() -> None:
    """At 1,200 baud no frame takes longer than a second, and a message arrives in one session."""
    tap = Tap(slow)
    conversation = Conversation(tap, slow, baud=SLOW_BAUD).opened()
    number = conversation.send(conversation.left, bytes(range(256)) * 8)
    conversation.run_until(lambda: conversation.left.delivered == [number])
    assert conversation.right.arrived == [bytes(range(256)) * 8]
    assert max(len(frame.encode()) for frame in tap.frames) <= 120
    assert (conversation.left.sessions, conversation.right.sessions) == (1, 1)
    assert conversation.left.exchange.counters.resends == 0


def test_numbers_wrap() -> None:
    """After 65,535 comes 0, and neither end minds."""
    conversation = Conversation().opened()
    for end in (conversation.left, conversation.right):
        delivery = end.exchange._session.delivery
        delivery._seq = delivery._received = 65_530
    sent = [b"%d" % at for at in range(12)]
    for payload in sent:
        conversation.send(conversation.left, payload)
        conversation.send(conversation.right, payload)
        conversation.run(100 * MILLISECOND)
    assert conversation.right.arrived == conversation.left.arrived == sent
    assert conversation.left.exchange.counters.duplicates == 0
    assert conversation.left.exchange._session.delivery._seq == 6


def test_a_frame_from_long_before_is_acknowledged_not_taken() -> None:
    """A frame that was held up and comes after its successors is a duplicate, however old it is."""
    tap = Tap()
    conversation = Conversation(tap, perfect).opened()
    for at in range(5):
        conversation.send(conversation.left, b"%d" % at)
        conversation.run(100 * MILLISECOND)
    old = [frame for frame in tap.frames if frame.type == 16]
    for frame in old:
        conversation.inject(conversation.right, frame.encode())
    ahead = Frame(16, old[0].session, 9, 0, b"nobody sent this")
    conversation.inject(conversation.right, ahead.encode())
    conversation.run(SECOND)
    assert conversation.right.arrived == [b"0", b"1", b"2", b"3", b"4"]
    assert conversation.right.exchange.counters.duplicates == 5
    assert conversation.right.exchange.counters.strangers == 1


def test_no_storms() -> None:
    """A thousand duplicates that come at once are answered by one ACK, and rubbish by nothing."""
    tap = Tap()
    conversation = Conversation(tap, perfect).opened()
    conversation.send(conversation.left, b"x")
    conversation.run(SECOND)
    frame = next(frame for frame in tap.frames if frame.type == 16)
    right = conversation.right.exchange
    right.receive(frame.encode() * 1000, conversation.now)
    assert [each.type for each in said(right.to_write(conversation.now))] == [ACK]
    right.receive(random.Random(1).randbytes(20_000), conversation.now)
    assert right.to_write(conversation.now) == b""


def test_too_large_a_message_is_told() -> None:
    """Pieces that come to more than a message may have are thrown away to its end; what follows is taken."""
    exchange = one_end()
    mine, _ = heard_in(exchange.to_write(0))
    exchange.receive(hello(0xAA, mine), 1)
    number = _number_in(0xAA, mine)
    happened = []
    for seq in range(1, 101):
        happened += exchange.receive(Frame(16 + MORE, number, seq, 0, bytes(1024)).encode(), seq)
        assert exchange.held <= MOST_MESSAGE
    happened += exchange.receive(Frame(16, number, 101, 0, b"end").encode(), 101)
    happened += exchange.receive(Frame(16, number, 102, 0, b"next").encode(), 102)
    assert happened == [MessageOversized(16), MessageArrived(16, b"next")]


def test_a_message_cut_short_by_another() -> None:
    """Pieces of one type that are followed by another type belong to no message."""
    exchange = one_end()
    mine, _ = heard_in(exchange.to_write(0))
    exchange.receive(hello(0xAA, mine), 1)
    number = _number_in(0xAA, mine)
    exchange.receive(Frame(16 + MORE, number, 1, 0, b"half of").encode(), 2)
    assert exchange.receive(Frame(17, number, 2, 0, b"whole").encode(), 3) == [MessageArrived(17, b"whole")]


def test_what_cannot_be_sent() -> None:
    """No session, a wrong type, too large, too many: each is an error, and nothing is half sent."""
    lonely = one_end()
    with pytest.raises(LinkError, match="no session"):
        lonely.send(16, b"")
    conversation = Conversation().opened()
    left = conversation.left.exchange
    for kind in (0, 15, 128, 300):
        with pytest.raises(ValueError, match="type from 16 to 127"):
            left.send(kind, b"")
    with pytest.raises(ValueError, match="at most 70000 bytes"):
        left.send(16, bytes(MOST_MESSAGE + 1))
    numbers = [left.send(16, b"%d" % at) for at in range(MOST_WAITING)]
    with pytest.raises(LinkError, match="wait to be sent already"):
        left.send(16, b"one more")
    conversation.turn()
    conversation.run(SECOND)
    assert conversation.left.delivered == numbers
    assert conversation.right.arrived == [b"0", b"1", b"2", b"3"]


# Silence


def test_a_silent_peer_is_pinged_then_lost() -> None:
    """PING after 2 s, then each second; after 6 s the session is lost, and what was under way with it."""
    tap = Tap()
    conversation = Conversation(tap, perfect).opened()
    conversation.run(SECOND)
    conversation.left.wire = tap
    conversation.right.wire = cut
    heard_at = conversation.left.exchange._session.delivery.heard_at
    number = conversation.send(conversation.left, b"anybody?")
    before = len(tap.frames)
    conversation.run_until(lambda: conversation.left.of(SessionEnded) != [])
    assert conversation.now - heard_at == SILENCE
    assert tap.types()[before:].count(PING) == 4
    assert conversation.left.of(SessionEnded) == [SessionEnded("nothing came for 6 s", (number,))]
    assert conversation.left.exchange.state is State.CALLING


def test_an_idle_session_lives_for_ever() -> None:
    """Nobody says anything for an hour: one session, and a PING in two seconds."""
    conversation = Conversation().opened()
    conversation.run(3600 * SECOND)
    assert (conversation.left.sessions, conversation.right.sessions) == (1, 1)
    assert conversation.left.written + conversation.right.written < 3600 * 50


def test_the_round_trip_is_measured() -> None:
    """A frame's way there and back is counted, of frames that went once alone."""
    conversation = Conversation().opened()
    conversation.send(conversation.left, bytes(1000))
    conversation.run(SECOND)
    counters = conversation.left.exchange.counters
    there_and_back = (1026 + 16) * 10 * 1000 / BAUD
    assert counters.round_trip is not None
    assert counters.round_trip / MILLISECOND == pytest.approx(there_and_back, rel=0.05)
    named = counters.by_name()
    assert named["round_trip_ms"] == pytest.approx(there_and_back, rel=0.05)
    assert named["frames"] >= 2
    # On an idle line the PING measures it: two short frames with a token.
    conversation.run(5 * SECOND)
    assert counters.round_trip / MILLISECOND == pytest.approx(2 * 17 * 10 * 1000 / BAUD, rel=0.1)
    # A frame that had to be sent again says nothing about the way.
    before = counters.round_trip
    conversation.right.wire = cut
    conversation.send(conversation.left, bytes(1000))
    conversation.run(SECOND)
    conversation.right.wire = perfect
    conversation.run_until(lambda: len(conversation.left.delivered) == 2)
    assert counters.round_trip == before


def test_a_program_that_slept_takes_what_waited_first() -> None:
    """After a standstill the bytes that lie in the port count before the silence does."""
    conversation = Conversation().opened()
    left, right = conversation.left.exchange, conversation.right.exchange
    right.send(16, b"while you slept")
    waiting = right.to_write(conversation.now)
    happened = left.receive(waiting, conversation.now + 3600 * SECOND)
    assert happened == [MessageArrived(16, b"while you slept")]
    assert left.state is State.OPEN


# Starting anew


def test_a_peer_restarts_in_the_middle_of_a_message() -> None:
    """The new peer gets a session at once, the old one's message is reported lost, and half of it is gone."""
    conversation = Conversation().opened()
    conversation.send(conversation.right, b"r" * 5000)
    number = conversation.send(conversation.left, b"l" * 5000)
    conversation.run(150 * MILLISECOND)
    conversation.replace(conversation.right)
    took = conversation.run_until(lambda: conversation.open and conversation.left.sessions == 2)
    assert took < SECOND
    assert conversation.left.of(SessionEnded) == [SessionEnded("the other end has started anew", (number,))]
    conversation.send(conversation.left, b"again")
    conversation.run(SECOND)
    assert conversation.right.arrived == [b"again"]
    assert conversation.left.arrived == []


@pytest.mark.parametrize("both", [False, True], ids=["one", "both"])
def test_a_restart_at_every_step(both: bool) -> None:
    """Whenever in greeting, question and answer an end starts again, a session takes what follows."""
    step = 0
    while True:
        conversation = Conversation(seed=step)
        conversation.start()
        asked = answered = False
        for _ in range(step):
            if conversation.open and not asked:
                conversation.send(conversation.left, b"q" * 2500)
                asked = True
            if conversation.right.arrived and not answered:
                conversation.send(conversation.right, b"a" * 2500, ANSWER_FRAME)
                answered = True
            conversation.step(conversation.now + SECOND)
        over = bool(conversation.left.arrived and conversation.right.delivered)
        conversation.replace(conversation.right)
        if both:
            conversation.replace(conversation.left)
        conversation.run(10 * SECOND)
        assert conversation.open, f"after {step} steps"
        for end, other in ((conversation.left, conversation.right), (conversation.right, conversation.left)):
            conversation.send(end, b"what follows")
            conversation.run(SECOND)
            assert other.arrived.count(b"what follows") == 1
            assert end.delivered[-1:] != []
        assert conversation.right.arrived.count(b"q" * 2500) <= 1
        if over:
            break
        step += 1
    assert step >= 12, "it was tried at many of them"


@pytest.mark.fault("F067")
def test_half_a_frame_a_pause_and_the_rest() -> None:
    """A frame that comes in two halves half a second apart is one message, once, and never half of one."""
    exchange = one_end()
    mine, _ = heard_in(exchange.to_write(0))
    exchange.receive(hello(0xAA, mine), 1)
    coded = Frame(16, _number_in(0xAA, mine), 1, 0, "Ärger: 42".encode()).encode()
    for at in range(1, len(coded)):
        # Within a character of two bytes too.
        assert exchange.receive(coded[:at], 2) == []
        happened = exchange.receive(coded[at:], SECOND // 2)
        assert happened == ([MessageArrived(16, "Ärger: 42".encode())] if at == 1 else []), at
    assert exchange.counters.duplicates == len(coded) - 2


@pytest.mark.fault("F067")
def test_glued_frames_and_boot_text_between_them() -> None:
    """Three frames in one write are three messages; half a frame and boot text cost the half alone."""
    exchange = one_end()
    mine, _ = heard_in(exchange.to_write(0))
    exchange.receive(hello(0xAA, mine), 1)
    frames = [Frame(16, _number_in(0xAA, mine), seq, 0, b"%d" % seq).encode() for seq in range(1, 6)]
    assert exchange.receive(b"".join(frames[:3]), 2) == [MessageArrived(16, b"%d" % seq) for seq in (1, 2, 3)]
    torn = frames[3][:9] + b"ESP-ROM:esp32c3-api1-20210207\r\nBuild:Feb  7 2021\r\n" + frames[3]
    assert exchange.receive(torn, 3) == [MessageArrived(16, b"4")]
    assert exchange.receive(b"x" * 1_000_000, 4) == []
    assert exchange.held <= LONGEST_CODED
    assert exchange.receive(b"\r\n" + frames[4], 5) == [MessageArrived(16, b"5")]


def test_a_restart_by_choice() -> None:
    """Who gives a session up gets a new one at once, and nothing of the old one comes any more."""
    conversation = Conversation().opened()
    number = conversation.send(conversation.left, b"a question")
    ended = conversation.left.exchange.restart(conversation.now, "no answer in time")
    assert ended == [SessionEnded("no answer in time", (number,))]
    conversation.send(conversation.right, b"an answer, too late", 32)
    conversation.turn()
    assert conversation.run_until(lambda: conversation.open and conversation.right.sessions == 2) < SECOND
    assert conversation.left.arrived == []
    assert conversation.right.lost == [1]
    assert one_end().restart(0, "there is none") == []


def test_a_late_hello_disturbs_nobody() -> None:
    """HELLOs of an earlier life, heard again in the midst of a session, do not end it."""
    tap = Tap()
    conversation = Conversation(tap, perfect)
    conversation.start()
    conversation.run(SECOND)
    conversation.replace(conversation.left)
    conversation.run(SECOND)
    old = [frame for frame in tap.frames if frame.type == HELLO]
    sessions = conversation.right.sessions
    for frame in old:
        conversation.inject(conversation.right, frame.encode(), after=conversation.now % 7)
        conversation.run(50 * MILLISECOND)
    conversation.run(10 * SECOND)
    assert conversation.open
    assert conversation.right.sessions == sessions
    assert conversation.right.exchange.counters.strangers > 0


def test_the_port_goes_and_comes() -> None:
    """A port that is gone ends the session at once; one that comes back begins anew."""
    conversation = Conversation().opened()
    number = conversation.send(conversation.left, b"x" * 3000)
    left = conversation.left.exchange
    assert left.disconnect() == [SessionEnded("the port is gone", (number,))]
    assert (left.state, left.due(), left.to_write(conversation.now)) == (State.SHUT, None, b"")
    assert left.receive(b"noise", conversation.now) == []
    conversation.run(SECOND)
    left.connect(conversation.now)
    with pytest.raises(ValueError, match="has a port already"):
        left.connect(conversation.now)
    conversation.turn()
    conversation.run_until(lambda: conversation.open and conversation.right.sessions == 2)


def test_every_state_has_a_way_in_and_out() -> None:
    """The table of states names them all, each is reached from SHUT, and SHUT is reached from each."""
    assert set(CHANGES) == set(State)
    reached = {State.SHUT}
    for _ in State:
        reached |= {after for before in reached for after in CHANGES[before]}
    assert reached == set(State)
    assert all(State.SHUT in after for before, after in CHANGES.items() if before is not State.SHUT)


# Bad wires


def _check_order(sender: End, receiver: End, sent: dict[int, bytes]) -> None:
    """Every message arrived at most once and in order; what was not lost arrived; what is delivered did."""
    order = [next(number for number, payload in sent.items() if payload == got) for got in receiver.arrived]
    assert order == sorted(set(order)), "a message arrived twice, or out of order"
    assert set(sender.delivered) <= set(order), "a message is believed delivered that never arrived"
    assert not set(sender.delivered) & set(sender.lost), "a message was both delivered and lost"
    for number in sent:
        assert number in sender.delivered or number in sender.lost or number in sender_open(sender)


def sender_open(sender: End) -> tuple[int, ...]:
    """The messages that are still under way."""
    session = sender.exchange._session
    return () if session is None else session.delivery.unfinished()


def converse(conversation: Conversation, seed: int, restarts: bool) -> None:
    """Send messages of both kinds for a few minutes, then mend the wire and see that all is well."""
    dice = random.Random(seed)
    sent: dict[bool, dict[int, bytes]] = {True: {}, False: {}}
    conversation.start()
    for at in range(25):
        for is_left, end in ((True, conversation.left), (False, conversation.right)):
            if end.exchange.state is State.OPEN and dice.random() < 0.7:
                payload = b"%d/%d/" % (is_left, at) + dice.randbytes(dice.choice((0, 5, 900, 1100, 4000)))
                try:
                    sent[is_left][conversation.send(end, payload)] = payload
                except LinkError:
                    assert len(sender_open(end)) == MOST_WAITING
        conversation.run(dice.randint(1, 3000) * MILLISECOND)
        if restarts and dice.random() < 0.15:
            end = dice.choice((conversation.left, conversation.right))
            conversation._note(end, end.exchange.disconnect())
            conversation.run(dice.randint(0, 500) * MILLISECOND)
            end.exchange.connect(conversation.now)
            conversation.turn()
    conversation.left.wire = conversation.right.wire = perfect
    conversation.run(60 * SECOND)
    assert conversation.open, "a sound wire brings the ends together again"
    for end in (conversation.left, conversation.right):
        assert sender_open(end) == ()
    _check_order(conversation.left, conversation.right, sent[True])
    _check_order(conversation.right, conversation.left, sent[False])
    # And the session that there is now is one and the same.
    before = conversation.left.sessions, conversation.right.sessions
    for end, other in (
        (conversation.left, conversation.right),
        (conversation.right, conversation.left),
    ):
        conversation.send(end, b"in the end")
        conversation.run(SECOND)
        assert other.arrived[-1] == b"in the end"
    assert (conversation.left.sessions, conversation.right.sessions) == before


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), chance=st.sampled_from([0.02, 0.1, 0.25]), restarts=st.booleans())
def test_a_lossy_wire(seed: int, chance: float, restarts: bool) -> None:
    """Over a wire that drops, doubles, flips, cuts and adds, messages arrive once, in order, or are lost."""
    conversation = Conversation(Lossy(seed, chance), Lossy(seed + 1, chance), seed=seed)
    converse(conversation, seed, restarts)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), restarts=st.booleans())
def test_a_late_wire(seed: int, restarts: bool) -> None:
    """Over a wire whose frames come late, twice and in any order, messages arrive once, or are lost."""
    conversation = Conversation(Late(seed), Late(seed + 1), seed=seed)
    converse(conversation, seed, restarts)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_very_late_frames(seed: int) -> None:
    """So it is when frames stay away for longer than a session lives, and come back into a later one."""
    late = 20 * SECOND
    conversation = Conversation(Late(seed, late), Late(seed + 1, late), seed=seed)
    converse(conversation, seed, restarts=True)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), restarts=st.booleans())
def test_a_noisy_wire(seed: int, restarts: bool) -> None:
    """Where one byte in a thousand is changed, messages arrive once, in order and whole, or are lost."""
    conversation = Conversation(Noisy(seed, 0.001), Noisy(seed + 1, 0.001), seed=seed)
    converse(conversation, seed, restarts)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_noise_slows_and_never_stops(seed: int) -> None:
    """At one byte in a thousand 64 KiB still arrive, whole and in one session, within a minute and a half."""
    conversation = Conversation(Noisy(seed, 0.001), Noisy(seed + 1, 0.001), seed=seed).opened()
    payload = random.Random(seed).randbytes(65_536)
    number = conversation.send(conversation.left, payload)
    conversation.run_until(lambda: conversation.left.delivered == [number], within=90 * SECOND)
    assert conversation.right.arrived == [payload]
    assert conversation.left.sessions == 1


def test_pieces_are_cut_shorter_where_frames_are_damaged_and_longer_where_not() -> None:
    """Each frame that goes again halves the next one, down to 128 bytes; sixteen that did not double it."""
    tap = Tap()
    conversation = Conversation(tap, perfect).opened()
    went: Counter[int] = Counter()

    def lose_ten_twice(frame: Frame) -> bool:
        went[frame.seq] += frame.type & ~MORE == 16
        return frame.seq <= 10 and went[frame.seq] in (1, 2)

    tap.lose = lose_ten_twice
    conversation.send(conversation.left, bytes(MOST_MESSAGE))
    conversation.run_until(lambda: conversation.right.arrived != [])
    sizes = {frame.seq: len(frame.payload) for frame in tap.frames if frame.type == 16 + MORE}
    expected = [1024, 512, 256, *[128] * (7 + 16), *[256] * 16, *[512] * 16, *[1024] * 20]
    assert list(sizes.values())[: len(expected)] == expected


@pytest.mark.parametrize("wire", [perfect, byte_by_byte])
def test_good_wires_lose_nothing(wire: Wire) -> None:
    """Over a sound wire nothing is lost, sent twice or counted as bad, in one session."""
    conversation = Conversation(wire, seed=3)
    converse(conversation, 3, restarts=False)
    for end in (conversation.left, conversation.right):
        counters = end.exchange.counters
        assert end.lost == []
        assert (counters.resends, counters.duplicates, counters.strangers) == (0, 0, 0)
        assert (counters.invalid_bytes, counters.crc_errors, counters.sessions) == (0, 0, 1)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=200),
            st.builds(
                Frame,
                type=st.one_of(st.sampled_from([HELLO, ACK, PING, 16, 16 + MORE, 32]), st.integers(0, 255)),
                session=st.one_of(st.just(-1), st.integers(0, 65535)),
                seq=st.integers(0, 5),
                ack=st.integers(0, 5),
                payload=st.one_of(
                    st.binary(max_size=40),
                    st.builds(
                        lambda least, most, nonce, heard: struct.pack("<BBII", least, most, nonce, heard),
                        st.integers(0, 3),
                        st.integers(0, 3),
                        st.integers(0, 3),
                        st.integers(0, 3),
                    ),
                ),
                version=st.integers(0, 2),
            ),
        ),
        max_size=40,
    ),
    st.booleans(),
)
def test_rubbish(pieces: list[bytes | Frame], in_session: bool) -> None:
    """Whatever comes, sound frames with any fields included, nothing is raised and all bounds are held."""
    conversation = Conversation(seed=9)
    if in_session:
        conversation.opened()
    else:
        conversation.start()
    for piece in pieces:
        if isinstance(piece, Frame):
            session = conversation.left.exchange._session
            if piece.session == -1:
                number = 0 if session is None else session.delivery._in_id
                piece = Frame(piece.type, number, piece.seq, piece.ack, piece.payload, piece.version)
            piece = piece.encode()
        conversation.inject(conversation.left, piece)
        conversation.run(100 * MILLISECOND)
    conversation.run(30 * SECOND)
    assert conversation.open
    # A forged frame of the session is taken for the peer's: only records are signed. A new session heals it.
    conversation.left.exchange.restart(conversation.now, "enough")
    conversation.turn()
    conversation.run_until(lambda: conversation.open)
    conversation.run(SECOND)
    conversation.send(conversation.right, b"all is well", 33)
    conversation.run_until(lambda: conversation.left.arrived[-1:] == [b"all is well"])


def test_delivered_means_arrived_at_the_first_ack() -> None:
    """The acknowledgement of a message's last frame, and no earlier one, says that it is delivered."""
    conversation = Conversation().opened()
    number = conversation.send(conversation.left, bytes(3000))
    seen: list[int] = []
    while not conversation.left.delivered:
        assert conversation.step(conversation.now + SECOND)
        seen.append(len(conversation.right.arrived))
    assert conversation.left.of(MessageDelivered) == [MessageDelivered(number)]
    assert seen[-1] == 1
