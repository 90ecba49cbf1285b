"""Reporting: results reach a KI that comes and goes, once each, in virtual time, from a real journal."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from heek.boot import Boot
from heek.clock import SECOND, ManualClock
from heek.errors import LinkError
from heek.journal import Batch, InlineExecutor, JournalWriter
from heek.ki import cbor
from heek.ki.answers import (
    BatchAnswer,
    RecordAnswer,
    Refused,
    SignedIn,
    Verdict,
    encode_batch_answer,
    encode_refusal,
    encode_signed_in,
    encode_table_answer,
    read_introduction,
)
from heek.ki.envelope import Envelope, split_batch, verify_introduction, verify_record
from heek.ki.link import LinkStatus, Request
from heek.ki.record import decode_record
from heek.ki.table_key import TableKey, table_key
from heek.record_chain import RecordChain
from heek.reporting import KiStatus, Reporter, Reporting
from heek.simulator.virtual_loop import VirtualLoop
from tests.journal.scripts import entry, label
from tests.test_record_chain import MATCHES, a_match

PLAYER = "12345674"


@dataclass
class Ki:
    """A KI as a table sees it: takes records once, can be away, and knows no table at first."""

    up: bool = True
    known: bytes | None = None
    held: dict[bytes, bytes] = field(default_factory=dict)
    asked: list[tuple[float, Request, int]] = field(default_factory=list)
    verdicts: dict[bytes, RecordAnswer] = field(default_factory=dict)
    lose_answers: int = 0
    points: Mapping[str, int] = field(default_factory=dict)
    answer: Callable[[bytes], bytes] | None = None

    def take(self, body: bytes) -> bytes:
        if self.known is None:
            return encode_refusal("unknown_table")
        answers = []
        for envelope in split_batch(body):
            assert isinstance(envelope, Envelope)
            assert verify_record(envelope, self.known)
            match = decode_record(envelope.record).match
            if match in self.verdicts:
                answers.append(self.verdicts[match])
                continue
            verdict = Verdict.DUPLICATE if match in self.held else Verdict.ACCEPTED
            assert self.held.setdefault(match, envelope.record) == envelope.record
            answers.append(RecordAnswer(verdict, None, match))
        return encode_batch_answer(BatchAnswer(tuple(answers), self.points))


class ToKi:
    """A link to it."""

    def __init__(self, ki: Ki, clock: ManualClock) -> None:
        self.ki, self._clock = ki, clock

    async def ask(self, request: Request, body: bytes) -> bytes:
        ki = self.ki
        ki.asked.append((self._clock.now() / SECOND, request, len(body)))
        await asyncio.sleep(0.05)
        if not ki.up:
            raise LinkError("nobody there")
        if request is Request.TABLE:
            public, name, signature = read_introduction(body)
            assert verify_introduction(public, name, signature)
            ki.known = public
            return encode_table_answer(bytes(8), bytes(32), "KI")
        if request is Request.PLAYER:
            return encode_signed_in(SignedIn(PLAYER, "Patient Scribe 41", 123))
        answer = ki.take(body) if ki.answer is None else ki.answer(body)
        if ki.lose_answers:
            ki.lose_answers -= 1
            raise LinkError("the answer was lost")
        return answer

    def status(self) -> LinkStatus:
        return LinkStatus(self.ki.up, "")

    async def close(self) -> None:
        """Nothing to let go of."""


class Rig:
    """A table's journal with a reporting on it; seconds pass when told."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock(wall_s=1_900_000_000.0)
        self.loop = VirtualLoop(self.clock)
        self.ki = Ki()
        self.key: TableKey = table_key_in(folder)
        self.journal = JournalWriter(folder, InlineExecutor(), self.clock)
        self.told: list[tuple[dict[str, int], dict[str, int]]] = []
        self.changes = 0
        self._numbers = iter(range(1, 100))
        newest = self.journal.ask(lambda journal: journal.last_cbor()).result()
        self.chain = RecordChain(self.key, "Table 1", bytes(8), Boot("b", "none"), newest)
        self.loop.run_until_complete(self._begin())

    async def _begin(self) -> None:
        who = Reporter(
            self.journal,
            self.key,
            "Table 1",
            self.clock,
            lambda points, acknowledged: self.told.append((dict(points), dict(acknowledged))),
        )
        link = ToKi(self.ki, self.clock)
        self.reporting = Reporting(
            who, link, "http", most_bytes=1000, on_change=self._changed, chance=lambda: 1.0
        )

    def _changed(self) -> None:
        self.changes += 1

    def start(self) -> None:
        self.reporting.start()

    def match(self, number: int) -> None:
        """A match is won, and its result is in the journal."""
        seq = self.journal.ask(lambda journal: journal.last_seq()).result() + 1
        result = self.chain.add(a_match(number), self.clock)
        self.journal.submit(
            Batch((entry(seq, "match_won", match=result.match),), True, b"{}", label(seq), (result,))
        ).result()
        self.reporting.result_waits()

    def run(self, seconds: float) -> KiStatus:
        self.loop.run_until_complete(asyncio.sleep(seconds))
        return self.reporting.status

    def close(self) -> None:
        self.loop.run_until_complete(self.reporting.close())
        self.journal.close()
        self.loop.close()


def table_key_in(folder: Path) -> TableKey:
    return table_key(folder, lambda: bytes(range(32)))


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    yield rig
    rig.close()


def test_a_new_table_introduces_itself_and_reports(rig: Rig) -> None:
    """The first question finds that the KI does not know the table; it introduces itself and asks again."""
    rig.match(0)
    rig.start()
    status = rig.run(1)
    assert [request for _, request, _ in rig.ki.asked] == [Request.RECORDS, Request.TABLE, Request.RECORDS]
    assert (status.state, status.waiting, status.last_wall_s) == ("up", 0, pytest.approx(1_900_000_000.15))
    assert len(rig.ki.held) == 1
    rig.match(1)
    assert rig.run(1).waiting == 0
    assert len(rig.ki.held) == 2
    assert rig.changes >= 4


def test_what_is_reported_once_is_not_reported_again_after_a_restart(tmp_path: Path) -> None:
    """The answers are in the journal: the next start of the daemon has nothing left to say."""
    first = Rig(tmp_path)
    first.start()
    first.match(0)
    first.run(1)
    first.close()
    second = Rig(tmp_path)
    second.ki.known = first.ki.known
    second.start()
    assert second.run(1).waiting == 0
    assert second.ki.held == {}
    second.close()


def test_a_ki_that_is_away_gets_everything_once_when_it_comes_back(rig: Rig) -> None:
    """Matches go on and wait; the table asks more and more rarely; then all arrive in their order."""
    rig.start()
    rig.run(1)
    rig.ki.up = False
    for number in range(5):
        rig.match(number)
        rig.run(20)
    status = rig.reporting.status
    assert (status.state, status.waiting, status.reason) == ("down", 5, "nobody there")
    assert len(rig.ki.asked) < 12
    rig.ki.up = True
    rig.reporting.ask_now()
    assert rig.run(5).waiting == 0
    matches = [decode_record(record).match_id for record in rig.ki.held.values()]
    assert matches == MATCHES[:5]


def test_a_lost_answer_is_a_duplicate_later(rig: Rig) -> None:
    """The KI has it, the table does not know: it sends the same bytes again, and that is a success."""
    rig.start()
    rig.run(1)
    rig.ki.lose_answers = 2
    rig.match(0)
    assert rig.run(0.5).waiting == 1
    assert rig.run(10).waiting == 0
    assert len(rig.ki.held) == 1


def test_a_result_that_the_ki_refuses_does_not_hold_up_the_others(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    """Rejected and conflict are answers: told in the log, kept in the journal, and the next goes on."""
    import uuid

    for number, verdict in ((0, Verdict.REJECTED), (1, Verdict.CONFLICT)):
        match = uuid.UUID(MATCHES[number]).bytes
        rig.ki.verdicts[match] = RecordAnswer(verdict, "seat 9", match)
    for number in range(3):
        rig.match(number)
    with caplog.at_level(logging.WARNING, "heek"):
        rig.start()
        assert rig.run(5).waiting == 0
    assert len(rig.ki.held) == 1
    assert "the KI says rejected" in caplog.text
    assert "the KI says conflict" in caplog.text


@pytest.mark.parametrize(
    "answer",
    [
        b"rubbish",
        cbor.encode({"ki": 1}),
        cbor.encode({"ki": 1, "answers": [], "points": {}, "holds": [0, bytes(16)]}),
        cbor.encode({"ki": 1, "answers": [["lost", None, None]], "points": {}, "holds": [0, b""]}),
        cbor.encode({"ki": 1, "answers": [["accepted", None, bytes(16)]], "points": {}, "holds": [0, b""]}),
        cbor.encode({"ki": 1, "answers": [7], "points": [], "holds": None}),
        encode_refusal("malformed"),
    ],
)
def test_an_answer_that_is_none_acknowledges_nothing(rig: Rig, answer: bytes) -> None:
    """Rubbish, an answer to another question, one too few, another match: the result goes on waiting."""
    rig.ki.known = rig.key.public
    rig.ki.answer = lambda _: answer
    rig.match(0)
    rig.start()
    status = rig.run(5)
    assert (status.state, status.waiting) == ("down", 1)
    assert status.reason
    rig.ki.answer = None
    assert rig.run(30).waiting == 0


def test_what_the_ki_tells_of_points_reaches_the_table(rig: Rig) -> None:
    """With each answer the table hears what the players hold, and which of its own deltas are in that."""
    rig.ki.known = rig.key.public
    rig.ki.points = {PLAYER: 140}
    rig.match(0)
    rig.start()
    rig.run(1)
    assert rig.told[0] == ({PLAYER: 140}, {})
    assert rig.journal.ask(lambda journal: journal.told_points()).result() == {PLAYER: 140}


def test_who_signs_in_is_known_with_their_points(rig: Rig) -> None:
    """A demonstration's sign-in answers number, name and points, keeps the points, and tells them."""
    rig.start()
    who = rig.loop.run_until_complete(rig.reporting.sign_in(None))
    assert who == SignedIn(PLAYER, "Patient Scribe 41", 123)
    assert rig.told == [({PLAYER: 123}, {})]
    rig.ki.up = False
    with pytest.raises(LinkError):
        rig.loop.run_until_complete(rig.reporting.sign_in(PLAYER))


def test_a_refusal_says_what_the_ki_says() -> None:
    """The words of a refusal, its code and when to come again reach the caller."""
    from heek.ki.answers import read_signed_in

    with pytest.raises(Refused, match="come later") as caught:
        read_signed_in(encode_refusal("busy", "come later", 7))
    assert (caught.value.code, caught.value.retry_s) == ("busy", 7.0)


def test_a_mistake_of_ours_ends_no_match(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """An exception that nobody foresaw is logged, counts as no answer, and reporting goes on."""

    def broken(_: bytes) -> bytes:
        raise ZeroDivisionError

    rig.ki.known = rig.key.public
    rig.ki.answer = broken
    rig.match(0)
    with caplog.at_level(logging.ERROR, "heek"):
        rig.start()
        assert rig.run(1).state == "down"
    assert "ZeroDivisionError" in caplog.text
    rig.ki.answer = None
    assert rig.run(30).waiting == 0
