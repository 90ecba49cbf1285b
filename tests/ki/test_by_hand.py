"""An export on its way to the KI, against a KI that answers what a test wants it to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from heek.errors import LinkError, LinkTooSlow
from heek.ki import by_hand
from heek.ki.answers import (
    BatchAnswer,
    RecordAnswer,
    Refused,
    Verdict,
    encode_batch_answer,
    encode_refusal,
    encode_table_answer,
    read_introduction,
)
from heek.ki.by_hand import MOST_TOLD, TRIES, Delivered, Delivery
from heek.ki.envelope import MOST_IN_BATCH, Envelope, public_key, split_batch
from heek.ki.export_file import Export
from heek.ki.link import LinkStatus, Request
from heek.ki.receipt_file import AnsweredBatch
from heek.ki.record import decode_record
from heek.ki.signed_answer import sign_answer
from tests.ranking.records import ANN, BEN, FakeTable


class ScriptedKi:
    """A link whose far end answers by a function; keeps what it was asked."""

    def __init__(self, answer: Callable[[Request, bytes], bytes]) -> None:
        self._answer = answer
        self.asked: list[tuple[Request, bytes]] = []

    async def ask(self, request: Request, body: bytes) -> bytes:
        self.asked.append((request, body))
        return self._answer(request, body)

    def status(self) -> LinkStatus:
        return LinkStatus(True, "up")

    async def close(self) -> None:
        pass

    @property
    def sizes(self) -> list[int]:
        """How many records each request had."""
        return [len(split_batch(body)) for request, body in self.asked if request is Request.RECORDS]


def accepts(request: Request, body: bytes, verdict: Verdict = Verdict.ACCEPTED) -> bytes:
    assert request is Request.RECORDS
    envelopes = [each for each in split_batch(body) if isinstance(each, Envelope)]
    said = [RecordAnswer(verdict, None, decode_record(each.record).match) for each in envelopes]
    return encode_batch_answer(BatchAnswer(tuple(said)))


class Bringing:
    """One delivery of these envelopes to a KI, with what it kept and how long it waited."""

    def __init__(
        self, answer: Callable[[Request, bytes], bytes], table: FakeTable, envelopes: Sequence[Envelope]
    ) -> None:
        self.ki = ScriptedKi(answer)
        self.kept: list[AnsweredBatch] = []
        self.waited: list[float] = []
        self._envelopes = envelopes
        export = Export(len(envelopes), table.introduction(), table.public, table.name)
        self.delivery = Delivery(self.ki, export, self.kept.append, self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.waited.append(seconds)

    def run(self) -> Delivered:
        return asyncio.run(self.delivery.deliver(self._envelopes))


def some(table: FakeTable, count: int) -> list[Envelope]:
    return [table.sealed({ANN: 1, BEN: 1}) for _ in range(count)]


def matches(envelopes: Sequence[Envelope]) -> list[bytes]:
    return [decode_record(each.record).match for each in envelopes]


def test_a_ki_that_is_named_by_its_key_must_sign() -> None:
    """With a key no other KI's answer counts, nor one to another question; a refusal needs no signature."""
    table, seed = FakeTable(), bytes(range(32))

    def answer(request: Request, body: bytes) -> bytes:
        return sign_answer(accepts(request, body), request, body, seed)

    bringing = Bringing(answer, table, some(table, 2))
    bringing.delivery.pinned = public_key(seed)
    assert bringing.run().accepted == 2
    for wrong in (
        accepts,
        lambda request, body: sign_answer(accepts(request, body), request, body, bytes(32)),
        lambda request, body: sign_answer(accepts(request, body), request, body + b"x", seed),
    ):
        bringing = Bringing(wrong, table, some(table, 2))
        bringing.delivery.pinned = public_key(seed)
        with pytest.raises(LinkError):
            bringing.run()
        assert (bringing.kept, bringing.delivery.done.answered) == ([], 0)
    bringing = Bringing(lambda *_: encode_refusal("busy"), table, some(table, 2))
    bringing.delivery.pinned = public_key(seed)
    with pytest.raises(Refused):
        bringing.run()


def test_many_records_go_in_batches_and_each_answer_is_kept() -> None:
    """No request has more than the KI takes, and the receipt names every match in order."""
    table = FakeTable()
    envelopes = some(table, MOST_IN_BATCH + 3)
    bringing = Bringing(accepts, table, envelopes)
    done = bringing.run()
    assert (done.accepted, done.answered, done.all_count) == (203, 203, True)
    assert bringing.ki.sizes == [200, 3]
    assert [match for each in bringing.kept for match in each.matches] == matches(envelopes)
    assert [each.answer for each in bringing.kept] == [
        accepts(request, body) for request, body in bringing.ki.asked
    ]


def test_large_records_go_in_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """By size, too, a request stays within what the KI takes; one that is larger by itself goes alone."""
    table = FakeTable()
    envelopes = some(table, 7)
    monkeypatch.setattr(by_hand, "MOST_BATCH_BYTES", 3 * len(envelopes[0].record) + 120)
    bringing = Bringing(accepts, table, envelopes)
    bringing.run()
    assert bringing.ki.sizes == [3, 3, 1]
    monkeypatch.setattr(by_hand, "MOST_BATCH_BYTES", 1)
    bringing = Bringing(accepts, table, envelopes)
    assert bringing.run().accepted == 7
    assert bringing.ki.sizes == [1] * 7


def test_a_request_that_is_too_large_is_halved() -> None:
    """Down to the one record that cannot be taken: the others count, and it alone is told."""
    table = FakeTable()
    envelopes = some(table, 8)

    def answer(request: Request, body: bytes) -> bytes:
        held = split_batch(body)
        if len(held) > 4 or envelopes[5] in held:
            return encode_refusal("too_large")
        return accepts(request, body)

    bringing = Bringing(answer, table, envelopes)
    done = bringing.run()
    assert (done.accepted, done.rejected) == (7, 1)
    assert bringing.ki.sizes == [8, 4, 4, 2, 1, 1, 2]
    assert done.told == [(decode_record(envelopes[5].record).match_id, f"rejected: {_text('too_large')}")]


def test_a_slow_ki_gets_smaller_batches() -> None:
    """It has time for five records in a question: it is asked with fewer until it answers, and goes on so."""
    table = FakeTable()
    envelopes = some(table, MOST_IN_BATCH + 10)

    def answer(request: Request, body: bytes) -> bytes:
        if len(split_batch(body)) > 5:
            raise LinkTooSlow("did not answer within 20 s")
        return accepts(request, body)

    bringing = Bringing(answer, table, envelopes)
    assert bringing.run().accepted == 210
    assert bringing.ki.sizes[:5] == [200, 50, 12, 3, 3]
    assert bringing.ki.sizes.count(3) == 69
    assert [match for each in bringing.kept for match in each.matches] == matches(envelopes)


def test_a_ki_that_answers_to_nothing_is_found_out() -> None:
    """Not even one record in time: five questions, and it is said. Another error ends it at once."""
    table = FakeTable()

    def answer(_request: Request, _body: bytes) -> bytes:
        raise LinkTooSlow("did not answer within 20 s")

    bringing = Bringing(answer, table, some(table, MOST_IN_BATCH))
    with pytest.raises(LinkError, match="within 20 s"):
        bringing.run()
    assert bringing.ki.sizes == [200, 50, 12, 3, 1]

    def gone(_request: Request, _body: bytes) -> bytes:
        raise LinkError("nothing listens there")

    bringing = Bringing(gone, table, some(table, 8))
    with pytest.raises(LinkError, match="nothing listens"):
        bringing.run()
    assert bringing.ki.sizes == [8]


def _text(code: str) -> str:
    from heek.ki.answers import STATUSES

    return STATUSES[code]


def test_a_busy_ki_is_asked_again_for_a_while() -> None:
    """As long as it asks for, within bounds; then it is said."""
    table = FakeTable()
    told = iter([3, 3600, None])

    def answer(request: Request, body: bytes) -> bytes:
        for retry_s in told:
            return encode_refusal("busy", retry_s=retry_s)
        return accepts(request, body)

    bringing = Bringing(answer, table, some(table, 2))
    assert bringing.run().accepted == 2
    assert bringing.waited == [3, 30, 1]
    bringing = Bringing(lambda *_: encode_refusal("busy", "the KI sleeps", 1), table, some(table, 2))
    with pytest.raises(Refused, match="the KI sleeps"):
        bringing.run()
    assert len(bringing.ki.asked) == TRIES
    assert bringing.kept == []


def test_an_unknown_table_is_introduced_first() -> None:
    """The introduction of the file goes before the records, which are asked again just as they were."""
    table = FakeTable()
    known = False

    def answer(request: Request, body: bytes) -> bytes:
        nonlocal known
        if request is Request.TABLE:
            assert read_introduction(body)[0] == table.public
            known = True
            return encode_table_answer(table.key_id, table.public, "KI")
        return accepts(request, body) if known else encode_refusal("unknown_table")

    bringing = Bringing(answer, table, some(table, 2))
    assert bringing.run().accepted == 2
    assert [request for request, _ in bringing.ki.asked] == [Request.RECORDS, Request.TABLE, Request.RECORDS]
    assert bringing.ki.asked[0] == bringing.ki.asked[2]


@pytest.mark.parametrize("when", [Request.RECORDS, Request.TABLE])
def test_a_ki_that_wants_enrolment_says_what_to_do(when: Request) -> None:
    """Whether records or the introduction are refused: the words name the table, its key and the way."""
    table = FakeTable()

    def answer(request: Request, _: bytes) -> bytes:
        return encode_refusal("not_enrolled" if request is when else "unknown_table")

    with pytest.raises(LinkError, match="heek ki enrol CODE") as raised:
        Bringing(answer, table, some(table, 1)).run()
    assert f"Table 1, key {table.key_id.hex()}" in str(raised.value)


def test_what_the_ki_has_against_records_is_counted_and_told() -> None:
    """By verdict, with reason and match; of very many that do not count only the first are told."""
    table = FakeTable()
    envelopes = some(table, 40)

    def answer(_: Request, body: bytes) -> bytes:
        verdicts = [Verdict.DUPLICATE, Verdict.CONFLICT, Verdict.REJECTED, Verdict.ACCEPTED] * 10
        ids = matches([each for each in split_batch(body) if isinstance(each, Envelope)])
        said = [RecordAnswer(each, "so", match) for each, match in zip(verdicts, ids, strict=True)]
        return encode_batch_answer(BatchAnswer(tuple(said)))

    done = Bringing(answer, table, envelopes).run()
    assert (done.accepted, done.already, done.conflict, done.rejected) == (10, 10, 10, 10)
    assert not done.all_count
    assert len(done.told) == MOST_TOLD
    assert done.told[:2] == [
        (decode_record(envelopes[1].record).match_id, "in conflict: so"),
        (decode_record(envelopes[2].record).match_id, "rejected: so"),
    ]


def test_a_record_that_is_damaged_in_the_file_hurts_no_other() -> None:
    """It is not sent, so that the answer to the others is one to what the table has signed."""
    table, other = FakeTable(), FakeTable(2)
    good = some(table, 2)
    changed = Envelope(good[0].key_id, good[0].record.replace(b"Table 1", b"Table 2"), good[0].signature)
    misled = Envelope(other.key_id, good[1].record, good[1].signature)
    nameless = table.seal(b"\xa0")
    bringing = Bringing(
        accepts, table, [good[0], changed, misled, other.sealed({ANN: 1, BEN: 1}), nameless, good[1]]
    )
    done = bringing.run()
    assert (done.accepted, done.rejected) == (2, 4)
    assert [words for _, words in done.told] == [
        f"rejected: {by_hand.DAMAGED}",
        f"rejected: {by_hand.DAMAGED}",
        f"rejected: {by_hand.DAMAGED}",
        "rejected: it names no match",
    ]
    assert [each.matches for each in bringing.kept] == [tuple(matches(good))]
    assert bringing.ki.sizes == [2]


@pytest.mark.parametrize(
    "answer",
    [
        encode_batch_answer(BatchAnswer((RecordAnswer(Verdict.ACCEPTED, None, bytes(16)),))),
        encode_batch_answer(BatchAnswer(())),
        encode_table_answer(b"key", bytes(32), "KI"),
        b"<html>log in</html>",
    ],
)
def test_an_answer_that_is_none_is_not_kept(answer: bytes) -> None:
    """To another match, to fewer, to another question, of another program: nothing of it counts."""
    table = FakeTable()
    bringing = Bringing(lambda *_: answer, table, some(table, 1))
    with pytest.raises(LinkError):
        bringing.run()
    assert (bringing.kept, bringing.delivery.done.answered) == ([], 0)
