"""Reporting: results reach a KI that comes and goes, once each, in virtual time, from a real journal."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from heek.clock import SECOND
from heek.errors import LinkError
from heek.journal import Batch
from heek.journal.lock import FolderLock
from heek.journal.schema import not_writable
from heek.ki import cbor
from heek.ki.answers import RecordAnswer, Refused, SignedIn, Verdict, encode_refusal
from heek.ki.link import LinkStatus, Request
from heek.ki.record import decode_record
from heek.ki.signed_answer import sign_answer
from heek.kinds import Kind
from tests.journal.scripts import entry, label
from tests.reporting_rig import Rig
from tests.signing_ki import PLAYER
from tests.test_record_chain import MATCHES, a_match


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    yield rig
    rig.close()


def test_a_new_table_introduces_itself_and_reports(rig: Rig) -> None:
    """At first sight, on its own machine, the table shows its key, pins the KI's, reports, and asks on."""
    rig.match(0)
    rig.start()
    status = rig.run(1)
    assert rig.link.requests == [Request.TABLE, Request.RECORDS, Request.SYNC]
    assert (status.state, status.waiting, status.last_wall_s) == ("up", 0, pytest.approx(1_900_000_000.15))
    assert (status.service, status.claim, status.trouble) == ("KI of the hall", None, ())
    assert status.counters == {"asked": 3}
    assert rig.link.pinned == rig.ki.public
    assert len(rig.ki.held()) == 1
    rig.match(1)
    assert rig.run(1).waiting == 0
    assert len(rig.ki.held()) == 2
    assert rig.changes >= 4


def test_what_is_reported_once_is_not_reported_again_after_a_restart(tmp_path: Path) -> None:
    """The answers and the pin are in the journal: the next start has nothing left to say."""
    first = Rig(tmp_path)
    first.start()
    first.match(0)
    first.run(1)
    first.close()
    second = Rig(tmp_path, first.ki, incarnation=2)
    second.start()
    assert second.run(1).waiting == 0
    assert second.link.requests == [Request.SYNC]
    second.close()


def test_a_ki_that_is_away_gets_everything_once_when_it_comes_back(rig: Rig) -> None:
    """Matches go on and wait; the table asks more and more rarely; then all arrive in their order."""
    rig.start()
    rig.run(1)
    rig.link.up = False
    for number in range(5):
        rig.match(number)
        rig.run(20)
    status = rig.reporting.status
    assert (status.state, status.waiting, status.reason) == ("down", 5, "nobody there")
    assert len(rig.link.asked) < 12
    rig.link.up = True
    rig.reporting.ask_now()
    assert rig.run(5).waiting == 0
    matches = [decode_record(record).match_id for record in rig.ki.held().values()]
    assert matches == MATCHES[:5]


def test_a_lost_answer_is_a_duplicate_later(rig: Rig) -> None:
    """The KI has it, the table does not know: it sends the same bytes again, and that is a success."""
    rig.start()
    rig.run(1)
    rig.link.lose_answers = 2
    rig.match(0)
    assert rig.run(0.5).waiting == 1
    assert rig.run(10).waiting == 0
    assert len(rig.ki.held()) == 1


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
    assert len(rig.ki.held()) == 1
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
@pytest.mark.parametrize("signed", [True, False])
def test_an_answer_that_is_none_acknowledges_nothing(rig: Rig, answer: bytes, signed: bool) -> None:
    """Rubbish, an answer to another question, one too few, another match: the result goes on waiting."""

    def instead(request: Request, body: bytes) -> bytes:
        try:
            return sign_answer(answer, request, body, rig.ki.seed) if signed else answer
        except (ValueError, TypeError):
            return answer

    rig.start()
    rig.run(1)
    rig.link.instead = instead
    rig.match(0)
    status = rig.run(5)
    assert (status.state, status.waiting) == ("down", 1)
    assert status.reason
    rig.link.instead = None
    assert rig.run(30).waiting == 0


def test_what_the_ki_tells_of_points_reaches_the_table_once(rig: Rig) -> None:
    """With each answer comes what the players hold; the table is told what is news to it alone."""
    rig.ki.points = {PLAYER: 140}
    rig.players = [PLAYER]
    rig.match(0)
    rig.start()
    rig.run(100)
    assert rig.told == [({PLAYER: 140}, {})]
    assert rig.ask(lambda journal: journal.told_points()) == {PLAYER: 140}
    rig.ki.points = {PLAYER: 135}
    rig.run(31)
    assert rig.told[1:] == [({PLAYER: 135}, {})]


def test_a_number_that_is_none_spoils_no_question(rig: Rig) -> None:
    """A wrong check digit, at a seat or in a result: the KI is asked for the points of the others."""
    rig.players = ["40220173", PLAYER]
    rig.start()
    rig.run(5)
    assert rig.ki.questions[-1].players == (PLAYER,)


def test_who_signs_in_is_known_with_their_points(rig: Rig) -> None:
    """A demonstration's sign-in answers number, name and points, keeps the points, and tells them."""
    rig.start()
    who = rig.loop.run_until_complete(rig.reporting.sign_in(None))
    assert who == SignedIn(PLAYER, "Patient Scribe 41", 123)
    assert rig.told == [({PLAYER: 123}, {})]
    rig.link.up = False
    with pytest.raises(LinkError):
        rig.loop.run_until_complete(rig.reporting.sign_in(PLAYER))


def test_a_refusal_says_what_the_ki_says() -> None:
    """The words of a refusal, its code and when to come again reach the caller."""
    from heek.ki.answers import read_signed_in

    with pytest.raises(Refused, match="come later") as caught:
        read_signed_in(encode_refusal("busy", "come later", 7))
    assert (caught.value.code, caught.value.retry_s) == ("busy", 7.0)


def test_each_reason_of_an_outage_is_logged_once(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """Another one in the same outage too, but no more than ten; the next outage begins anew."""

    def logged() -> list[str]:
        return [each.getMessage() for each in caplog.records if each.getMessage().startswith("the KI")]

    def away(reason: str) -> None:
        def answer(_request: Request, _body: bytes) -> bytes:
            raise LinkError(reason)

        rig.link.instead = answer
        rig.run(400)

    waits = "; results wait in the journal"
    with caplog.at_level(logging.INFO, "heek"):
        rig.start()
        rig.run(1)
        for reason in ("no route", "a login page", "no route", "a login page"):
            away(reason)
        assert logged() == [f"the KI: no route{waits}", f"the KI: a login page{waits}"]
        rig.link.instead = None
        rig.run(400)
        away("no route")
        assert logged()[2:] == ["the KI answers again", f"the KI: no route{waits}"]
        for number in range(30):
            away(f"{number} s are too long")
    assert len(logged()) == 4 + 9
    assert rig.reporting.status.reason == "29 s are too long"


def test_a_mistake_of_ours_ends_no_match(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """An exception that nobody foresaw is logged, counts as no answer, and reporting goes on."""

    def broken(_request: Request, _body: bytes) -> bytes:
        raise ZeroDivisionError

    rig.link.instead = broken
    rig.match(0)
    with caplog.at_level(logging.ERROR, "heek"):
        rig.start()
        assert rig.run(1).state == "down"
    assert "ZeroDivisionError" in caplog.text
    rig.link.instead = None
    assert rig.run(30).waiting == 0


@pytest.mark.fault("F073")
def test_what_the_link_remarks_is_told_as_trouble(rig: Rig) -> None:
    """A clock that is wrong hinders nothing, but whoever looks at the table's KI line reads of it (F073)."""
    remark = "This clock is 10 min behind the KI's"
    rig.link.status = lambda: LinkStatus(True, "up", {}, (remark,))  # type: ignore[method-assign]
    rig.start()
    status = rig.run(1)
    assert (status.state, status.trouble) == ("up", (remark,))


def test_a_result_at_the_last_moment_does_not_keep_it_from_closing(rig: Rig) -> None:
    """Woken and closed in the same turn of the loop, it ends; the result goes on waiting."""
    rig.start()
    rig.run(1)
    rig.match(0)
    rig.loop.run_until_complete(asyncio.wait_for(rig.reporting.close(), 60))
    assert rig.ask(lambda journal: journal.waiting()) == 1


def test_a_result_that_can_be_no_record_waits_for_nobody(rig: Rig) -> None:
    """It is kept and told as trouble; the table asks no faster for it, and the next match goes out."""
    rig.start()
    rig.run(1)
    rig.won(replace(a_match(0), rounds=({1: Kind.BEETLE, 2: Kind.BEETLE},) * 10_000))
    asked = len(rig.link.asked)
    status = rig.run(61)
    assert (status.waiting, len(status.trouble)) == (0, 1)
    assert len(rig.link.asked) - asked <= 3
    rig.match(1)
    assert rig.run(1).waiting == 0
    assert len(rig.ki.held()) == 1


@pytest.mark.fault("F049", "F050")
def test_a_card_that_takes_nothing_keeps_no_result_from_the_ki(rig: Rig) -> None:
    """F049, F050: matches won while nothing is saved reach the KI, once; later the journal has it all."""
    rig.start()
    rig.run(1)
    rig.match(0)
    rig.run(1)
    rig.ask(lambda journal: journal._db.execute("PRAGMA query_only = ON").fetchall())
    for seq, number in ((2, 1), (3, 2)):
        result = rig.chain.add(a_match(number), rig.clock)
        won = entry(seq, "match_won", match=result.match)
        rig.journal.submit(Batch((won,), True, b"{}", label(seq), (result,))).result()
        rig.reporting.result_waits()
    assert not rig.journal.status.saving
    status = rig.run(20)
    assert (status.state, status.waiting) == ("up", 0)
    assert len(rig.ki.held()) == 3
    asked = rig.link.requests.count(Request.RECORDS)
    rig.ask(lambda journal: journal._db.execute("PRAGMA query_only = OFF").fetchall())
    rig.clock.advance_to(rig.clock.now() + 2 * SECOND)
    rig.journal.retry().result()
    assert rig.journal.status.saving
    assert rig.run(200).waiting == 0
    assert rig.link.requests.count(Request.RECORDS) == asked
    assert rig.ask(lambda journal: len(list(journal.results()))) == 3
    assert rig.ask(lambda journal: journal.verify()) == []


def test_a_folder_that_is_read_only_at_the_start_keeps_no_result_from_the_ki(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F050: with the key that is there, what is won in memory is reported, once; later the journal has it."""
    first = Rig(tmp_path)
    first.start()
    first.match(0)
    first.run(1)
    first.close()
    read_only = True

    def lock(folder: Path, *, reading: bool = False) -> FolderLock:
        if read_only and not reading:
            raise not_writable(folder, OSError(errno.EROFS, os.strerror(errno.EROFS)))
        return FolderLock(folder, reading=reading)

    with monkeypatch.context() as patch:
        patch.setattr("heek.journal.store.FolderLock", lock)
        patch.setattr("tests.reporting_rig.bind_results", lambda journal, key: journal.last_cbor(key.id))
        rig = Rig(tmp_path, first.ki, incarnation=2)
        rig.start()
        for seq, number in ((2, 1), (3, 2)):
            result = rig.chain.add(a_match(number), rig.clock)
            won = entry(seq, "match_won", match=result.match)
            rig.journal.submit(Batch((won,), True, b"{}", label(seq), (result,))).result()
            rig.reporting.result_waits()
        status = rig.run(20)
        assert (status.state, status.waiting) == ("up", 0)
        assert len(rig.ki.held()) == 3
        asked = rig.link.requests.count(Request.RECORDS)
        read_only = False
        rig.journal.retry().result()
        assert rig.journal.status.saving
        assert rig.run(200).waiting == 0
        assert rig.link.requests.count(Request.RECORDS) == asked
        assert rig.ask(lambda journal: len(list(journal.results()))) == 3
        assert rig.ask(lambda journal: journal.verify()) == []
        rig.close()


def test_a_card_that_takes_no_answer_is_not_told_as_the_kis_fault(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    """The link stays what it is, the table says that it cannot save and asks again; later all is well."""
    rig.start()
    rig.run(1)
    rig.match(0)
    rig.run(1)
    rig.match(1)
    rig.ask(lambda journal: journal._db.execute("PRAGMA query_only = ON").fetchall())
    status = rig.run(20)
    assert (status.state, status.reason, status.waiting) == ("up", "", 1)
    assert "the table cannot save what the KI says: " in status.trouble[0]
    assert "the KI: " not in caplog.text
    assert len([each for each in caplog.records if "cannot save" in each.message]) == 1
    assert 2 < rig.link.requests.count(Request.RECORDS) < 10
    rig.ask(lambda journal: journal._db.execute("PRAGMA query_only = OFF").fetchall())
    status = rig.run(60)
    assert (status.state, status.waiting, status.trouble) == ("up", 0, ())
    assert len(rig.ki.held()) == 2


def test_the_ki_itself_may_ask_for_an_hour_and_a_portal_for_five_minutes(rig: Rig) -> None:
    """Its own refusal is obeyed for longer than what stands between it and the table."""
    rig.start()
    rig.run(1)
    rig.link.up, rig.link.retry_s = False, 3000.0
    rig.run(60)
    asked = len(rig.link.asked)
    rig.run(300)
    assert len(rig.link.asked) == asked + 1
    rig.link.up = True
    rig.link.instead = lambda *_: encode_refusal("busy", "later", 3000)
    rig.run(300)
    asked = len(rig.link.asked)
    rig.run(2600)
    assert len(rig.link.asked) == asked


def test_over_a_serial_line_the_next_results_go_while_the_ki_thinks(tmp_path: Path) -> None:
    """A backlog has two requests under way on a serial line and one over HTTP; they are the same requests."""
    sent = {}
    for kind, at_once in (("serial", 2), ("http", 1)):
        rig = Rig(tmp_path / kind, kind=kind, most_bytes=500)
        for number in range(len(MATCHES)):
            rig.match(number)
        rig.start()
        assert rig.run(120).waiting == 0
        assert len(rig.ki.held()) == len(MATCHES)
        assert rig.link.most_under_way == at_once
        sent[kind] = [size for _, request, size in rig.link.asked if request is Request.RECORDS]
        rig.close()
    assert sent["serial"] == sent["http"]
    assert len(sent["http"]) >= 3


def test_two_requests_that_fail_together_are_one_failure(tmp_path: Path) -> None:
    """When the link breaks with two under way the table waits once, and asks again after the first pause."""
    rig = Rig(tmp_path, kind="serial", most_bytes=500)
    for number in range(len(MATCHES)):
        rig.match(number)
    rig.start()
    while rig.link.under_way < 2:
        rig.run(0.01)
    rig.link.up = False
    assert rig.run(0.1).state == "down"
    rig.link.up = True
    assert rig.run(2).waiting == 0
    assert len(rig.ki.held()) == len(MATCHES)
    rig.close()


@pytest.mark.parametrize("lost", [1, 2, 3, 4])
def test_an_answer_that_is_lost_takes_the_one_asked_ahead_with_it(tmp_path: Path, lost: int) -> None:
    """When answers are lost with two requests under way, all is asked again, and the KI holds each once."""
    rig = Rig(tmp_path, kind="serial", most_bytes=500)
    for number in range(len(MATCHES)):
        rig.match(number)
    rig.start()
    rig.run(0.2)
    rig.link.lose_answers = lost
    status = rig.run(300)
    assert (status.state, status.waiting) == ("up", 0)
    assert len(rig.ki.held()) == len(MATCHES)
    rig.close()


def test_what_was_asked_ahead_ends_with_the_table(tmp_path: Path) -> None:
    """A table that stops with two requests under way leaves no task behind; its next start finishes."""
    first = Rig(tmp_path, kind="serial", most_bytes=500)
    for number in range(len(MATCHES)):
        first.match(number)
    first.start()
    while first.link.under_way < 2:
        first.run(0.01)
    first.close()
    assert first.link.under_way == 0
    second = Rig(tmp_path, first.ki, incarnation=2, kind="serial", most_bytes=500)
    second.start()
    assert second.run(30).waiting == 0
    assert len(second.ki.held()) == len(MATCHES)
    second.close()
