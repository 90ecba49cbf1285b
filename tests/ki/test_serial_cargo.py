"""What goes over a serial line: small records share frames, large ones take many, and none is changed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.cli.table_process import serial_bytes
from heek.clock import MILLISECOND, SECOND
from heek.ki import cbor
from heek.ki.answers import BatchAnswer, RecordAnswer, Verdict, encode_batch_answer, read_batch_answer
from heek.ki.delivery import MORE, MOST_MESSAGE
from heek.ki.envelope import Envelope, batch, public_key, seal, split_batch, verify_record
from heek.ki.framing import MOST_PAYLOAD, Frame, FrameDecoder
from heek.ki.link import ANSWER_FRAME, Request
from heek.ki.record import MOST_BYTES
from tests.ki.wires import Conversation, Noisy, Wire, byte_by_byte, perfect
from tests.ranking.records import ANN, BEN, CLEO, DAN, EVE, FakeTable

SEED = bytes(range(32))


def acadmu_record(rounds: int = 25, turns: int = 20) -> bytes:
    """A match of Äcädmü as its record would hold it: each round's poured faces and every turn, by names.

    The faces are those of the specification: a colour and a shape, 27 up in each of the two sets.
    """
    dice = random.Random(rounds)
    faces = [colour + shape for colour in "RBY" for shape in "TSC"]
    played = [
        {
            "first": 1 + at % 2,
            "faces": {"1": sorted(dice.choices(faces, k=27)), "2": sorted(dice.choices(faces, k=27))},
            "turns": [
                [1 + turn % 2, dice.choice(faces), *dice.choices(faces, k=dice.choice((1, 2)))]
                for turn in range(turns)
            ],
            "points": {"1": dice.randrange(4), "2": 0},
        }
        for at in range(rounds)
    ]
    return cbor.encode(
        {
            "v": 1,
            "rules": "heek-acadmu-1",
            "game": "acadmu",
            "match": dice.randbytes(16),
            "table": bytes(8),
            "name": "Äcädmü in the Tokotah",
            "inc": dice.randbytes(8),
            "seq": 7,
            "prev": dice.randbytes(32),
            "seats": [[1, "player", ANN, 2, 3], [4, "player", BEN, 3, -3]],
            "winner": 1,
            "by": "target",
            "rounds": played,
            "t": [dice.randbytes(16), 1, 2, 3, "ntp"],
        }
    )


class Watched:
    """A wire that keeps the frames of messages that went over it."""

    def __init__(self, wire: Wire = perfect) -> None:
        self._wire = wire
        self._decoder = FrameDecoder()
        self.frames: list[Frame] = []

    def __call__(self, data: bytes) -> list[tuple[int, bytes]]:
        self.frames += [each for each in self._decoder.feed(data) if each.type & ~MORE >= 16]
        return self._wire(data)


def carry(conversation: Conversation, body: bytes, *, back: bool = False, within_s: int = 60) -> bytes:
    """What arrives of a body, as a question or, `back`, as an answer."""
    sender, receiver = conversation.left, conversation.right
    if back:
        sender, receiver = receiver, sender
    before = len(receiver.arrived)
    conversation.send(sender, body, ANSWER_FRAME if back else Request.RECORDS.frame_type)
    conversation.run_until(lambda: len(receiver.arrived) > before, within_s * SECOND)
    return receiver.arrived[-1]


@pytest.mark.parametrize("wire", [perfect, byte_by_byte], ids=["whole", "bytes"])
def test_a_match_of_acadmu_goes_over_many_frames(wire: Wire) -> None:
    """A record of 25 rounds comes whole, in full frames that carry MORE but for the last, seal unbroken."""
    record = acadmu_record()
    assert 8_000 < len(record) < MOST_BYTES
    watched = Watched(wire)
    conversation = Conversation(watched, wire).opened()
    (envelope,) = split_batch(carry(conversation, batch([seal(record, SEED)])))
    assert isinstance(envelope, Envelope)
    assert envelope.record == record
    assert verify_record(envelope, public_key(SEED))
    assert [frame.type for frame in watched.frames] == [16 + MORE] * (len(watched.frames) - 1) + [16]
    assert {len(frame.payload) for frame in watched.frames[:-1]} == {MOST_PAYLOAD}


@pytest.mark.parametrize("size", [MOST_BYTES - 1, MOST_BYTES, MOST_MESSAGE - 200])
@pytest.mark.parametrize("back", [False, True], ids=["question", "answer"])
def test_the_largest_goes_both_ways(size: int, back: bool) -> None:
    """A record of 64 KiB, and what comes near the largest message, goes whole in either direction."""
    body = batch([seal(random.Random(size).randbytes(size), SEED)])
    assert carry(Conversation().opened(), body, back=back) == body


def test_the_two_directions_do_not_wait_for_each_other() -> None:
    """A large question and a large answer that cross take hardly longer than one of them alone."""
    body = bytes(30_000)
    alone = Conversation().opened()
    began = alone.now
    carry(alone, body)
    took = alone.now - began
    both = Conversation().opened()
    began = both.now
    both.send(both.left, body)
    both.send(both.right, body, ANSWER_FRAME)
    both.run_until(lambda: both.left.arrived == both.right.arrived == [body])
    assert both.now - began < 1.3 * took


def test_small_records_share_frames() -> None:
    """A backlog of thirty small records takes as many frames as its bytes fill, not one for each record."""
    table = FakeTable()
    body = batch(table.sealed({ANN: 0, BEN: 0}) for _ in range(30))
    assert len(body) / 30 < MOST_PAYLOAD / 2, "they are small ones"
    watched = Watched()
    arrived = split_batch(carry(Conversation(watched, perfect).opened(), body))
    assert len(arrived) == 30
    assert len(watched.frames) == -(-len(body) // MOST_PAYLOAD) < 30


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), turnaround=st.sampled_from([0, MILLISECOND, 2 * MILLISECOND]))
def test_a_backlog_over_a_bad_line_is_exact(seed: int, turnaround: int) -> None:
    """With one byte in a thousand changed and the cable cut now and then, the ledger has each record once."""
    dice = random.Random(seed)
    table = FakeTable()
    waiting = [table.sealed({ANN: 2, BEN: 1, CLEO: 1, DAN: 1, EVE: 1}) for _ in range(25)]
    noisy = [Noisy(seed + at, 0.001, turnaround) for at in range(2)]
    conversation = Conversation(*noisy, seed=seed)
    ledger: dict[bytes, int] = {}
    conversation.start()
    asked: list[Envelope] = []
    questions = answers = 0
    cut_until = 0
    while waiting:
        assert conversation.now < 600 * SECOND, "the backlog does not go"
        for end, wire in ((conversation.left, noisy[0]), (conversation.right, noisy[1])):
            end.wire = (lambda _: []) if conversation.now < cut_until else wire
        if conversation.now > cut_until + 20 * SECOND and dice.random() < 0.02:
            cut_until = conversation.now + dice.randint(1, 12) * SECOND
        table_end, ki_end = conversation.left, conversation.right
        if not asked and conversation.open and not table_end.exchange.held:
            asked = waiting[:8]
            questions, answers = len(ki_end.arrived), len(table_end.arrived)
            conversation.send(table_end, batch(asked))
        session = table_end.sessions
        conversation.step(conversation.now + SECOND)
        if len(ki_end.arrived) > questions:
            questions += 1
            came = [each for each in split_batch(ki_end.arrived[-1]) if isinstance(each, Envelope)]
            verdicts = []
            for each in came:
                assert verify_record(each, table.public)
                known = each.record in ledger
                ledger[each.record] = ledger.get(each.record, 0) + (not known)
                verdicts.append(RecordAnswer(Verdict.DUPLICATE if known else Verdict.ACCEPTED))
            if conversation.right.exchange.state.value == "open":
                conversation.send(ki_end, encode_batch_answer(BatchAnswer(tuple(verdicts))), ANSWER_FRAME)
        if len(table_end.arrived) > answers and asked:
            answers += 1
            said = read_batch_answer(table_end.arrived[-1], len(asked))
            assert all(each.verdict.success for each in said.answers)
            waiting, asked = waiting[len(asked) :], []
        elif table_end.sessions != session:
            # As the link does: what was asked in another session is asked again.
            asked = []
    assert sorted(ledger.values()) == [1] * 25


@pytest.mark.parametrize("baud", [1200, 9600, 57_600, 115_200, 1_000_000])
def test_a_request_is_on_the_wire_for_three_seconds_at_most(baud: int) -> None:
    """However slow the line, a sign-in need not wait long behind a backlog; no request is beyond 32 KiB."""
    size = serial_bytes(baud)
    assert 0 < size <= 32 * 1024
    assert size * 10 / baud <= 3.0
    assert size == 32 * 1024 or size * 10 / baud > 2.9
