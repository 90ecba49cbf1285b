"""Enrolment at the table: a code is shown, typed in at the KI, and from then on no other KI is believed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from heek.cli import OK, main
from heek.clock import SECOND
from heek.config.values import KiConfig
from heek.doctor.findings import Mark
from heek.doctor.ki import KiAsked, ki_findings
from heek.doctor.machine import this_machine
from heek.ki import cbor
from heek.ki.answers import encode_refusal
from heek.ki.claim import LIFETIME, encode_enrolled, shown_code
from heek.ki.link import Request
from heek.ki.signed_answer import sign_answer
from heek.ki.sync import digest
from heek.ki_on_screen import ki_mark
from heek.web.state import KiLine
from tests.reporting_rig import Rig, a_numbered_match
from tests.signing_ki import SigningKi


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A table whose KI is somewhere on the network, and knows no table."""
    rig = Rig(tmp_path, SigningKi(first_sight=False), first_sight=False)
    yield rig
    rig.close()


def shown(rig: Rig) -> str:
    code = rig.reporting.status.claim
    assert code is not None
    return code


def test_a_code_is_shown_until_it_is_typed_in_and_then_all_is_reported(rig: Rig) -> None:
    """Nothing is said of results before; then the KI's key is pinned, in the journal and for the link."""
    rig.match(0)
    rig.start()
    status = rig.run(10)
    assert set(rig.link.requests) == {Request.CLAIM}
    assert 3 <= len(rig.link.asked) <= 5
    assert (status.state, status.waiting, status.service) == ("up", 1, None)
    code = shown(rig)
    rig.ki.codes.append(code)
    status = rig.run(5)
    assert (status.claim, status.service, status.waiting) == (None, "KI of the hall", 0)
    pin = rig.notes().pin
    assert pin is not None
    assert (pin.service, pin.found) == (rig.ki.public, "code")
    assert rig.link.pinned == rig.ki.public
    assert len(rig.ki.held()) == 1


def test_a_false_refusal_holds_an_enrolled_table_up_for_a_quarter_of_a_minute(rig: Rig) -> None:
    """Another KI was at the address: a code is shown, and gone again soon after the right one is back."""
    rig.start()
    rig.run(5)
    rig.ki.codes.append(shown(rig))
    rig.run(5)
    rig.ki.refusals = {Request.RECORDS: ("not_enrolled", None), Request.SYNC: ("not_enrolled", None)}
    rig.match(0)
    rig.run(60)
    shown(rig)
    assert rig.reporting.status.waiting == 1
    rig.ki.refusals = {}
    status = rig.run(20)
    assert (status.claim, status.waiting, rig.notes().known) == (None, 0, True)
    assert len(rig.ki.held()) == 1


@pytest.mark.parametrize("wall_s", [0.0, 4e9])
def test_enrolment_knows_no_year(tmp_path: Path, wall_s: float) -> None:
    """A clock in 1970, or in the next century, changes nothing."""
    rig = Rig(tmp_path, SigningKi(first_sight=False), first_sight=False, wall_s=wall_s)
    rig.start()
    rig.run(5)
    rig.ki.codes.append(shown(rig))
    assert rig.run(5).service == "KI of the hall"
    rig.close()


def test_a_code_is_good_for_ten_minutes_and_then_another_one_is_shown(rig: Rig) -> None:
    """The old one typed in late is of no use; it was never sent."""
    rig.start()
    rig.run(5)
    first = shown(rig)
    rig.run(LIFETIME / SECOND)
    second = shown(rig)
    assert first != second
    rig.ki.codes.append(first)
    assert rig.run(10).service is None
    rig.ki.codes.append(second)
    assert rig.run(10).service == "KI of the hall"


def test_no_code_is_shown_before_the_ki_waits_for_it(rig: Rig) -> None:
    """A KI that is away, or has no room for another claim, would not know it."""
    rig.link.up = False
    rig.start()
    assert (rig.run(20).claim, rig.reporting.status.state) == (None, "down")
    rig.link.up = True
    rig.ki.refusals = {Request.CLAIM: ("busy", None)}
    assert (rig.run(20).claim, rig.reporting.status.reason) == (None, "the KI has too much to do")
    rig.ki.refusals = {}
    assert rig.run(60).claim is not None


def test_who_was_not_told_the_code_cannot_enrol_the_table(rig: Rig) -> None:
    """Whatever key somebody in between puts into the answer, the mark for it needs the code."""
    evil = SigningKi(seed=bytes([66] * 32))

    def in_between(request: Request, body: bytes) -> bytes:
        return sign_answer(encode_enrolled(evil.public, "Evil", bytes(32)), request, body, evil.seed)

    rig.link.instead = in_between
    rig.start()
    status = rig.run(20)
    assert (status.service, status.state) == (None, "down")
    assert "was never told its code" in status.reason


def test_an_enrolment_that_the_card_did_not_take_is_written_later(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    """The KI has used the code up: the table keeps in mind who that was, and writes it when it can."""
    import sqlite3

    rig.start()
    rig.run(5)
    rig.ki.codes.append(shown(rig))
    other = sqlite3.connect(rig.ask(lambda journal: journal.file), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    status = rig.run(10)
    assert (status.service, status.state, status.reason) == ("KI of the hall", "up", "")
    assert "the table cannot save what the KI says" in status.trouble[0]
    assert "close that program" in status.trouble[0]
    rig.ki.codes.clear()
    other.execute("ROLLBACK")
    other.close()
    with caplog.at_level(logging.INFO, "heek"):
        status = rig.run(60)
    assert (status.service, status.claim, status.state) == ("KI of the hall", None, "up")
    assert status.trouble == ()
    assert "is enrolled at KI of the hall" in caplog.text
    assert rig.notes().pin is not None


def enrolled(folder: Path, ki: SigningKi, matches: int = 2) -> Rig:
    """A table that is enrolled there by a code, with some matches reported."""
    rig = Rig(folder, ki, first_sight=False)
    rig.start()
    rig.run(5)
    ki.codes.append(shown(rig))
    for number in range(matches):
        rig.won(a_numbered_match(number))
    assert rig.run(10).waiting == 0
    return rig


def where_enrolled(rig: Rig, capsys: pytest.CaptureFixture[str]) -> str | None:
    """The KI that the table is enrolled at; its page, its display, its doctor and its command must agree."""
    status = rig.reporting.status
    claim = None if status.claim is None else shown_code(status.claim)
    page = KiLine("http", status.state, status.waiting, status.last, "", status.service, claim)
    capsys.readouterr()
    folder = rig.ask(lambda journal: journal.file).parent
    assert main(["enrol", "--state-dir", str(folder)]) == OK
    said = capsys.readouterr().out
    machine = this_machine()
    key, _ = machine.table_key(folder)
    kept = machine.ki_kept(folder)
    config = KiConfig("http", "http://ki.example:8625", "", 115200)
    told = {"state": status.state, "claim": claim}
    findings = ki_findings(KiAsked(config, kept, True, told, None, key, ""))
    (finding,) = [each for each in findings if each.what == "enrolment"]
    here = status.service
    assert (here is not None) == (f"the table is enrolled at {here} (key" in said), said
    assert (here is not None) == finding.found.startswith(f"at “{here}”, whose key"), finding
    assert (finding.mark is Mark.OK) == (here is not None)
    if status.claim is not None:
        mark = ki_mark(status)
        assert mark is not None
        assert mark.words[0] == "KI: not enrolled"
        assert "not enrolled" in page.text
        assert here is None
        assert finding.remedy == f"at the KI: heek ki enrol {status.claim}"
    return here


def test_every_place_says_the_same_of_the_enrolment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before, with a code, enrolled; with a new key, and at a KI that was put back; at a start and later."""
    ki = SigningKi(first_sight=False)
    empty = ki.backup()
    rig = Rig(tmp_path, ki, first_sight=False)
    assert where_enrolled(rig, capsys) is None
    rig.start()
    rig.run(5)
    ki.codes.append(shown(rig))
    assert where_enrolled(rig, capsys) is None
    rig.run(10)
    assert where_enrolled(rig, capsys) == "KI of the hall"
    rig.close()

    (tmp_path / "table.key").unlink()
    rig = Rig(tmp_path, ki, seed=2, incarnation=2, first_sight=False)
    assert where_enrolled(rig, capsys) is None
    rig.link.up = False
    rig.start()
    rig.run(10)
    assert where_enrolled(rig, capsys) is None
    rig.link.up = True
    rig.run(60)
    assert rig.reporting.status.claim is not None
    assert where_enrolled(rig, capsys) is None
    ki.codes.append(shown(rig))
    rig.run(10)
    assert where_enrolled(rig, capsys) == "KI of the hall"

    ki.restore(empty)
    ki.codes.clear()
    rig.run(60)
    assert rig.reporting.status.claim is not None
    assert where_enrolled(rig, capsys) is None
    rig.close()
    rig = Rig(tmp_path, ki, seed=2, incarnation=3, first_sight=False)
    assert where_enrolled(rig, capsys) is None
    rig.start()
    rig.run(10)
    ki.codes.append(shown(rig))
    rig.run(10)
    assert where_enrolled(rig, capsys) == "KI of the hall"
    rig.link.up = False
    rig.run(60)
    assert where_enrolled(rig, capsys) == "KI of the hall"
    rig.close()


def test_a_table_that_the_ki_knows_after_all_is_enrolled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refusal that nobody signs leads to a code; the KI's next answer to a question, to the enrolment."""
    rig = enrolled(tmp_path, SigningKi(first_sight=False))
    held = rig.ki.backup()
    rig.ki.disk["tables"].clear()
    rig.run(60)
    assert rig.reporting.status.claim is not None
    assert where_enrolled(rig, capsys) is None
    rig.ki.restore(held)
    rig.run(LIFETIME / SECOND)
    assert rig.reporting.status.claim is None
    assert where_enrolled(rig, capsys) == "KI of the hall"
    rig.close()


@pytest.mark.parametrize("first_sight", [True, False])
def test_another_ki_is_told_from_the_one_it_is_enrolled_at(tmp_path: Path, first_sight: bool) -> None:
    """It takes all it is sent, signs as itself, and is not believed: the result waits for the right one."""
    rig = enrolled(tmp_path, SigningKi(first_sight=False))
    right, other = rig.ki, SigningKi(seed=bytes([77] * 32), name="Other", first_sight=first_sight)
    rig.link.ki = other
    rig.won(a_numbered_match(7))
    status = rig.run(400)
    assert (status.state, status.waiting, status.service, status.claim) == ("down", 1, "KI of the hall", None)
    assert "another KI answers than the one this table is enrolled at" in status.reason
    assert "heek enrol --again" in status.reason
    other.disk["tables"][rig.key.id] = rig.key.public
    other.points = {"12345674": 9999}
    assert rig.run(400).waiting == 1
    assert rig.told == []
    rig.link.ki = right
    assert rig.run(400).waiting == 0
    assert len(right.held()) == 3
    rig.close()


def test_a_portal_that_says_ki_is_not_one(tmp_path: Path) -> None:
    """Unsigned answers that look right acknowledge nothing, and tell no points."""
    rig = enrolled(tmp_path, SigningKi(first_sight=False))
    (match,) = [rig.won(a_numbered_match(7))]
    accepted = {"ki": 1, "answers": [["accepted", None, match]], "points": {}, "holds": [9, bytes(16)]}
    rig.link.instead = lambda _request, _body: cbor.encode(accepted)
    status = rig.run(60)
    assert (status.waiting, status.state) == (1, "down")
    assert "has not signed its answer" in status.reason
    rig.close()


def test_a_false_refusal_loses_nothing_and_is_over_in_ten_minutes(tmp_path: Path) -> None:
    """Nobody signs a refusal. `not_enrolled` by a stranger stops the reports, shows no code, and passes."""
    rig = enrolled(tmp_path, SigningKi(first_sight=False))
    rig.won(a_numbered_match(7))
    rig.link.instead = lambda _request, _body: encode_refusal("not_enrolled")
    assert (rig.run(60).claim, rig.reporting.status.waiting) == (None, 1)
    rig.link.instead = None
    assert rig.run(LIFETIME / SECOND + 300).waiting == 0
    assert rig.reporting.status.claim is None
    rig.close()


def test_a_ki_put_back_from_before_the_enrolment_wants_the_code_again_and_gets_everything(
    tmp_path: Path,
) -> None:
    """The same key, so the pin holds; the table shows a code, and offers all again once it is known."""
    ki = SigningKi(first_sight=False)
    backup = ki.backup()
    rig = enrolled(tmp_path, ki, 3)
    ki.restore(backup)
    ki.codes.clear()
    rig.run(60)
    ki.codes.append(shown(rig))
    status = rig.run(60)
    assert (status.claim, status.waiting, status.trouble) == (None, 0, ())
    assert len(ki.held()) == 3
    rig.close()


def test_a_new_board_with_the_old_card_goes_on(tmp_path: Path) -> None:
    """Key and journal are on the card: nothing is to be done."""
    rig = enrolled(tmp_path, SigningKi(first_sight=False))
    rig.close()
    again = Rig(tmp_path, rig.ki, incarnation=2, first_sight=False)
    again.won(a_numbered_match(5))
    again.start()
    assert (again.run(5).waiting, again.reporting.status.claim) == (0, None)
    again.close()


def test_a_journal_that_came_back_without_its_key_is_enrolled_anew_and_reports_what_waits(
    tmp_path: Path,
) -> None:
    """Another key is another table to the KI: a code, the same KI, and what waits goes under the new key."""
    ki = SigningKi(first_sight=False)
    rig = enrolled(tmp_path, ki)
    rig.link.up = False
    waiting = [rig.won(a_numbered_match(number)) for number in (5, 6)]
    rig.close()
    (tmp_path / "table.key").unlink()
    again = Rig(tmp_path, ki, seed=2, incarnation=2, first_sight=False)
    again.start()
    again.run(10)
    ki.codes.append(shown(again))
    status = again.run(60)
    assert (status.waiting, status.trouble, status.service) == (0, (), "KI of the hall")
    assert set(ki.held(again.key.id)) == set(waiting)
    assert len(ki.held()) == 4
    assert again.notes().holds == digest(waiting)
    again.close()


def test_an_empty_card_with_a_new_key_begins_anew(tmp_path: Path) -> None:
    """Nothing is left of the old table: a code, and an empty backlog."""
    ki = SigningKi(first_sight=False)
    enrolled(tmp_path / "old", ki).close()
    rig = Rig(tmp_path / "new", ki, seed=3, incarnation=2, first_sight=False)
    rig.start()
    rig.run(5)
    ki.codes.append(shown(rig))
    rig.won(a_numbered_match(9))
    assert (rig.run(10).waiting, len(ki.held())) == (0, 3)
    rig.close()


def test_a_table_that_forgets_its_ki_gives_the_next_one_everything(tmp_path: Path) -> None:
    """`heek enrol --again`: a code for the new KI, which holds nothing yet and is offered all there is."""
    rig = enrolled(tmp_path, SigningKi(first_sight=False), 3)
    rig.ki.tell(rig.key.id, "voided", match=bytes(16), reason="x")
    rig.run(31)
    rig.ask(lambda journal: journal.forget_service())
    rig.close()
    new = SigningKi(seed=bytes([5] * 32), name="New KI", first_sight=False)
    again = Rig(tmp_path, new, incarnation=2, first_sight=False)
    again.start()
    again.run(5)
    new.codes.append(shown(again))
    status = again.run(60)
    assert (status.service, status.waiting, status.trouble) == ("New KI", 0, ())
    assert len(new.held()) == 3
    assert again.ask(lambda journal: journal.voids()) == {}
    again.close()


def test_on_the_same_machine_a_ki_that_wants_codes_gets_one(tmp_path: Path) -> None:
    """The introduction is refused, and the claim follows at once."""
    rig = Rig(tmp_path, SigningKi(first_sight=False), first_sight=True)
    rig.start()
    rig.run(1)
    assert rig.link.requests == [Request.TABLE, Request.CLAIM]
    rig.ki.codes.append(shown(rig))
    assert rig.run(10).service == "KI of the hall"
    rig.close()


def test_an_introduction_is_believed_only_as_the_key_that_signed_it(tmp_path: Path) -> None:
    """Who shows a key that it cannot sign with is not pinned."""
    rig = Rig(tmp_path)
    stranger = SigningKi(seed=bytes([8] * 32))

    def other_key(request: Request, body: bytes) -> bytes:
        shown_key = {"ki": 1, "table": rig.key.id, "public": stranger.public, "name": "X"}
        return sign_answer(cbor.encode(shown_key), request, body, rig.ki.seed)

    rig.link.instead = other_key
    rig.start()
    status = rig.run(5)
    assert (status.state, status.service) == ("down", None)
    assert rig.notes().pin is None
    rig.close()


def test_how_things_stand_is_asked_with_labels_that_let_the_ki_detect(tmp_path: Path) -> None:
    """Incarnation, number in it, what was heard, boot, monotonic clock; and the KI's clock is told on."""
    rig = Rig(tmp_path)
    rig.players = ["12345674"]
    rig.start()
    rig.run(65)
    first, second, third = rig.ki.questions
    assert [each.n for each in (first, second, third)] == [1, 2, 3]
    assert [each.heard for each in (first, second, third)] == [
        b"",
        bytes([0] * 7 + [1]),
        bytes([0] * 7 + [2]),
    ]
    assert {each.inc for each in rig.ki.questions} == {bytes([1] * 8)}
    assert {each.boot for each in rig.ki.questions} == {"b"}
    assert second.mono_ms - first.mono_ms == pytest.approx(30_050, abs=60)
    assert first.players == ("12345674",)
    assert [now_s for now_s, _ in rig.times] == [rig.ki.now_s] * 3
    assert rig.times[0][1] // 10**6 == first.mono_ms - rig.clock.origin_ns // 10**6
    rig.close()


def test_a_ki_that_signs_with_its_pinned_key_and_shows_another_is_not_followed(tmp_path: Path) -> None:
    """The pin is one key: what would lead to another one is refused, and the pin stays."""
    rig = enrolled(tmp_path, SigningKi(first_sight=False))
    other = SigningKi(seed=bytes([8] * 32)).public

    def shows_another(request: Request, body: bytes) -> bytes:
        if request is not Request.TABLE:
            return encode_refusal("unknown_table")
        shown_key = {"ki": 1, "table": rig.key.id, "public": other, "name": "X"}
        return sign_answer(cbor.encode(shown_key), request, body, rig.ki.seed)

    rig.link.instead = shows_another
    status = rig.run(60)
    assert (status.state, status.service) == ("down", "KI of the hall")
    pin = rig.notes().pin
    assert pin is not None
    assert (pin.service, rig.link.pinned) == (rig.ki.public, rig.ki.public)
    rig.close()
