"""Digests: a KI put back from a backup gets its matches again; a card put back does not offer for ever."""

from __future__ import annotations

import logging
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heek.cli import OK, main
from heek.config.values import KiConfig
from heek.doctor.findings import Finding, Mark
from heek.doctor.ki import KiAsked, ki_findings
from heek.doctor.machine import this_machine
from heek.errors import LinkError
from heek.ki.answers import RecordAnswer, Verdict, encode_refusal
from heek.ki.link import Request
from heek.ki.record import decode_record
from heek.ki.sync import NOTHING, difference, digest
from tests.reporting_rig import Rig, a_numbered_match
from tests.signing_ki import PLAYER, SigningKi

EXAMPLES = 25


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    yield rig
    rig.close()


def play(rig: Rig, numbers: range) -> list[bytes]:
    return [rig.won(a_numbered_match(number)) for number in numbers]


def test_a_ki_put_back_from_a_backup_gets_its_matches_again(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    """It holds fewer than it has answered for: everything is offered again, and it takes what it lacks."""
    rig.start()
    play(rig, range(3))
    rig.run(5)
    backup = rig.ki.backup()
    matches = play(rig, range(3, 8))
    rig.run(5)
    rig.ki.restore(backup)
    with caplog.at_level(logging.WARNING, "heek"):
        status = rig.run(40)
    assert "all 8 are offered again" in caplog.text
    assert (status.waiting, status.trouble) == (0, ())
    assert set(matches) < set(rig.ki.held())
    assert len(rig.ki.held()) == 8
    assert rig.notes().holds == digest(rig.ki.held())


def test_a_ki_put_back_twice_loses_nothing_in_the_middle_of_the_offer(tmp_path: Path) -> None:
    """Half of the offer is lost again: the KI does not hold what it should at the end, so it is repeated."""
    rig = Rig(tmp_path, most_bytes=2000)
    rig.start()
    play(rig, range(2))
    rig.run(5)
    backup = rig.ki.backup()
    matches = play(rig, range(2, 20))
    rig.run(10)
    assert len(rig.ki.held()) == 20
    rig.ki.restore(backup)
    batches = 0

    def again(_: list[bytes]) -> None:
        nonlocal batches
        batches += 1
        if batches == 4:
            rig.ki.disk["held"] = {key: dict(held) for key, held in backup["held"].items()}

    rig.ki.on_batch = again
    status = rig.run(300)
    assert batches > 4
    assert (status.waiting, status.trouble) == (0, ())
    assert set(matches) < set(rig.ki.held())
    rig.close()


@pytest.mark.parametrize("how", ["refused", "unanswered"])
def test_a_ki_put_back_is_noticed_though_one_record_does_harm(rig: Rig, how: str) -> None:
    """It waits for ever, and the rest is compared, offered and taken all the same, once."""
    rig.start()
    play(rig, range(3))
    rig.run(5)
    backup = rig.ki.backup()
    matches = play(rig, range(3, 8))
    rig.run(5)
    harmful: list[bytes] = []

    def answer(request: Request, body: bytes) -> bytes:
        if any(match in body for match in harmful):
            if how == "unanswered":
                raise LinkError("it fell over")
            return encode_refusal("malformed")
        return rig.ki.answer(request, body)

    rig.link.instead = answer
    harmful += play(rig, range(8, 9))
    assert rig.run(300).waiting == 1
    rig.ki.restore(backup)
    asked = len(rig.link.asked)
    status = rig.run(900)
    assert (status.waiting, set(matches) < set(rig.ki.held()), len(rig.ki.held())) == (1, True, 8)
    assert rig.notes().holds == digest(rig.ki.held())
    # The batches of the offer, and the one that does harm now and then: what is not answered more often.
    sent = rig.link.requests[asked:].count(Request.RECORDS)
    assert sent <= (20 if how == "refused" else 90)
    harmful.clear()
    assert rig.run(700).waiting == 0
    assert len(rig.ki.held()) == 9
    assert rig.notes().settled == NOTHING


def test_an_answer_that_was_lost_is_no_difference(rig: Rig) -> None:
    """The KI holds what waits, does not say so for a while, and nothing is offered for that."""
    rig.start()
    play(rig, range(3))
    rig.run(5)
    rig.link.lose_answers = 1
    (match,) = play(rig, range(3, 4))
    rig.run(0.5)
    assert match in rig.ki.held()
    rig.ki.refusals = {Request.RECORDS: ("busy", None)}
    asked = len(rig.ki.questions)
    status = rig.run(600)
    assert status.waiting == 1
    assert len(rig.ki.questions) - asked >= 4
    assert rig.notes().offered is None
    rig.ki.refusals = {}
    assert rig.run(200).waiting == 0
    assert len(rig.ki.held()) == 4


def test_a_ki_that_refuses_all_records_is_asked_how_things_stand(rig: Rig) -> None:
    """A backlog that it does not take hides no restore, nor is it sent more often for that."""
    rig.start()
    rig.run(1)
    rig.ki.refusals = {Request.RECORDS: ("busy", 20)}
    play(rig, range(40))
    asked, began = len(rig.ki.questions), len(rig.link.asked)
    assert rig.run(1200).waiting == 40
    assert len(rig.ki.questions) - asked >= 10
    assert rig.link.requests[began:].count(Request.RECORDS) <= 60


def test_what_was_answered_in_memory_alone_is_offered_again_once_it_is_in_the_file(rig: Rig) -> None:
    """A full card, an answer, a KI put back: nothing is settled before the file knows what was answered."""
    rig.start()
    play(rig, range(2))
    rig.run(5)
    backup = rig.ki.backup()
    rig.ask(lambda journal: journal._db.execute("PRAGMA query_only = ON").fetchall())
    (match,) = play(rig, range(2, 3))
    rig.run(5)
    assert match in rig.ki.held()
    rig.ki.restore(backup)
    rig.ask(lambda journal: journal._db.execute("PRAGMA query_only = OFF").fetchall())
    # The card takes something again, and whoever writes the events has not tried yet.
    rig.run(100)
    rig.journal.retry().result()
    assert rig.journal.status.saving
    status = rig.run(100)
    assert (status.waiting, status.trouble) == (0, ())
    assert match in rig.ki.held()


def test_a_ki_put_back_before_the_table_was_known_is_introduced_to_it_again(rig: Rig) -> None:
    """Its backup is older than the table: it knows the key again, and gets all."""
    backup = rig.ki.backup()
    rig.start()
    matches = play(rig, range(3))
    rig.run(5)
    rig.ki.restore(backup)
    assert rig.run(60).waiting == 0
    assert set(rig.ki.held()) == set(matches)


def test_a_card_put_back_from_a_backup_offers_once_and_says_what_is_missing(tmp_path: Path) -> None:
    """The KI holds three matches more than this journal: nothing can mend that, and nobody tries for ever."""
    card, copy = tmp_path / "card", tmp_path / "copy"
    first = Rig(card)
    first.start()
    play(first, range(2))
    first.run(5)
    first.close()
    shutil.copytree(card, copy)
    second = Rig(card, first.ki, incarnation=2)
    second.start()
    play(second, range(2, 5))
    second.run(5)
    second.close()
    assert len(first.ki.held()) == 5
    back = Rig(copy, first.ki, incarnation=3)
    back.start()
    status = back.run(3600)
    assert (status.state, status.waiting) == ("up", 0)
    assert status.trouble == (
        "the KI holds 3 matches of this table that this journal has not: "
        "was its card put back from a backup? If that is all: heek journal acknowledge",
    )
    assert back.link.requests.count(Request.RECORDS) == 1
    play(back, range(9, 11))
    assert back.run(3600).trouble == status.trouble
    assert back.link.requests.count(Request.RECORDS) <= 3
    back.close()
    again = Rig(copy, first.ki, incarnation=4)
    again.start()
    assert again.run(600).trouble == status.trouble
    assert Request.RECORDS not in again.link.requests
    again.close()


def test_what_an_operator_has_acknowledged_is_told_again_when_it_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a card was put back: silence from page and doctor, until the KI holds yet another match."""

    def played_on(card: Path, incarnation: int, *numbers: int) -> tuple[str, ...]:
        rig = Rig(card, ki, incarnation=incarnation)
        rig.start()
        for number in numbers:
            rig.won(a_numbered_match(number))
        trouble = rig.run(3600).trouble
        rig.close()
        return trouble

    def doctor() -> Finding:
        kept = this_machine().ki_kept(copy)
        findings = ki_findings(KiAsked(KiConfig("none", "", "", 0), kept, False, None, None, "", ""))
        return next(each for each in findings if each.what == "agreement")

    ki = SigningKi()
    card, copy = tmp_path / "card", tmp_path / "copy"
    played_on(card, 1, 0, 1)
    shutil.copytree(card, copy)
    played_on(card, 2, 2, 3, 4)
    assert len(played_on(copy, 3)) == 1
    assert (doctor().mark, "heek journal acknowledge" in doctor().remedy) == (Mark.WARNING, True)
    said = "the KI holds 3 matches of this table that this journal has not"
    assert main(["journal", "acknowledge", "--by", "Otto", "--state-dir", str(copy)]) == OK
    assert f"{said}; acknowledged by Otto" in capsys.readouterr().out
    assert played_on(copy, 4) == ()
    assert played_on(copy, 5, 20, 21) == ()
    assert doctor().mark is Mark.OK
    assert doctor().found.startswith(f"{said}; acknowledged by Otto")
    assert main(["journal", "acknowledge", "--by", "Bea", "--state-dir", str(copy)]) == OK
    assert "acknowledged already by Otto" in capsys.readouterr().out
    played_on(card, 6, 5)
    (told,) = played_on(copy, 7)
    assert told.startswith("the KI holds 4 matches of this table that this journal has not")
    assert doctor().mark is Mark.WARNING
    assert main(["journal", "acknowledge", "--state-dir", str(copy)]) == OK
    assert "acknowledged by the operator" in capsys.readouterr().out
    assert played_on(copy, 8) == ()


def test_two_tables_with_one_key_do_not_offer_all_day(tmp_path: Path) -> None:
    """A clone plays on: the difference changes with every match, and the offers grow rare, not endless."""
    card, copy = tmp_path / "card", tmp_path / "copy"
    first = Rig(card)
    first.start()
    play(first, range(5))
    first.run(5)
    first.close()
    shutil.copytree(card, copy)
    rig = Rig(card, first.ki, incarnation=2)
    rig.start()
    for number in range(10, 60):
        other = Rig(copy, first.ki, incarnation=number)
        other.won(a_numbered_match(number))
        other.start()
        other.run(1)
        other.close()
        rig.run(60)
    assert rig.link.requests.count(Request.RECORDS) <= 14
    assert len(first.ki.held()) == 55
    rig.close()


def test_what_was_rejected_is_offered_again_with_the_rest(rig: Rig) -> None:
    """What the KI could not take then it may take now, for instance since the matches before it are there."""
    rig.start()
    first, second = play(rig, range(2))
    rig.ki.verdicts[first] = RecordAnswer(Verdict.REJECTED, "not yet", first)
    status = rig.run(5)
    assert set(rig.ki.held()) == {second}
    assert status.trouble == ("the KI does not count 1 result of this table; its own log says why",)
    del rig.ki.verdicts[first]
    rig.ki.disk["held"] = {}
    assert rig.run(60).trouble == ()
    assert set(rig.ki.held()) == {first, second}


def test_points_are_counted_once_while_everything_is_offered_again(rig: Rig) -> None:
    """What the KI has answered for is in what it told; an offer makes it nobody's own deltas again."""
    rig.start()
    play(rig, range(4))
    rig.run(5)
    told = list(rig.told)
    rig.ki.disk["held"] = {}
    rig.run(60)
    assert rig.told == told
    assert rig.ask(lambda journal: journal.player_deltas()) == {}


def test_news_reach_the_journal_and_points_follow(rig: Rig) -> None:
    """Voids, their end, names and erasures come in pieces, each once; the highest number is asked from."""
    rig.start()
    (match,) = play(rig, range(1))
    rig.run(2)
    rig.ki.tell(rig.key.id, "voided", match=match, reason="wrong seat")
    for number in range(7):
        rig.ki.tell(rig.key.id, "named", player=PLAYER, name=f"Name {number}")
    rig.ki.tell(rig.key.id, "crowned", player=PLAYER, crown=b"\x01")
    status = rig.run(31)
    assert rig.ask(lambda journal: (journal.names(), list(journal.voids().values()))) == (
        {PLAYER: "Name 6"},
        ["wrong seat"],
    )
    assert status.trouble == ("the KI has told 1 news that this version cannot read; update heek",)
    asked = len(rig.ki.questions)
    rig.run(31)
    assert [question.news for question in rig.ki.questions[asked:]] == [9]
    rig.ki.tell(rig.key.id, "restored", match=match, reason="")
    rig.ki.tell(rig.key.id, "erased", player=PLAYER)
    rig.run(31)
    assert rig.ask(lambda journal: (journal.names(), journal.voids())) == ({}, {})


def test_a_ki_that_no_longer_has_its_news_is_asked_from_the_first_one(rig: Rig) -> None:
    """Put back from a backup it may tell others under the same numbers: what it told counts no more."""
    rig.start()
    first, second = play(rig, range(2))
    rig.run(2)
    backup = rig.ki.backup()
    rig.ki.tell(rig.key.id, "voided", match=first, reason="first")
    rig.ki.tell(rig.key.id, "voided", match=second, reason="second")
    rig.run(31)
    assert len(rig.ask(lambda journal: journal.voids())) == 2
    rig.ki.restore(backup)
    rig.ki.tell(rig.key.id, "voided", match=second, reason="anew")
    rig.run(62)
    assert list(rig.ask(lambda journal: journal.voids()).values()) == ["anew"]


def test_what_a_restored_ki_tells_under_a_number_that_was_heard_is_heard(rig: Rig) -> None:
    """An operator acts on the restored ledger before the table asks: only the mark tells them apart."""
    rig.start()
    first, second = play(rig, range(2))
    rig.run(2)
    backup = rig.ki.backup()
    rig.ki.tell(rig.key.id, "voided", match=first, reason="lost")
    rig.run(31)
    rig.ki.restore(backup)
    rig.ki.tell(rig.key.id, "voided", match=second, reason="instead")
    rig.run(31)
    assert rig.ask(lambda journal: list(journal.voids().values())) == ["instead"]
    asked = len(rig.ki.questions)
    rig.run(31)
    assert [question.news for question in rig.ki.questions[asked:]] == [1]


def test_an_answer_about_another_question_changes_nothing(rig: Rig) -> None:
    """What was recorded and is played again is signed, but for another question: it is not believed."""
    rig.start()
    rig.run(1)
    recorded: list[bytes] = []

    def record(request: Request, body: bytes) -> bytes:
        recorded.append(rig.ki.answer(request, body))
        return recorded[-1]

    rig.link.instead = record
    play(rig, range(1))
    rig.run(2)
    rig.link.instead = lambda request, _: recorded[0 if request is Request.RECORDS else -1]
    play(rig, range(1, 2))
    status = rig.run(20)
    assert (status.state, status.waiting) == ("down", 1)
    assert "signature of the KI's answer is wrong" in status.reason


STEP = st.one_of(
    st.tuples(st.just("play"), st.integers(1, 3)),
    st.tuples(st.just("lose"), st.integers(1, 3)),
    st.tuples(st.just("run"), st.integers(1, 100)),
    st.tuples(
        st.sampled_from(
            ["backup", "restore", "away", "back", "restart", "busy", "copy card", "put card back"]
        ),
        st.just(0),
    ),
)


@given(st.lists(STEP, max_size=14))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=EXAMPLES)
def test_whatever_is_lost_and_put_back_in_the_end_each_match_is_there_once(
    steps: list[tuple[str, int]],
) -> None:
    """Lost answers, outages, KI or card put back, in any order: what a disk holds is at the KI once."""
    ki, played, starts = SigningKi(), 0, 1
    with tempfile.TemporaryDirectory() as folder:
        card, copy = Path(folder) / "card", Path(folder) / "copy"
        rig = Rig(card, ki)
        rig.start()
        backup = ki.backup()
        ids = []
        for what, count in steps:
            if what == "play":
                ids += play(rig, range(played, played + count))
                played += count
            elif what == "lose":
                rig.link.lose_answers = count
            elif what == "run":
                rig.run(count)
            elif what == "backup":
                backup = ki.backup()
            elif what == "restore":
                ki.restore(backup)
            elif what in ("away", "back"):
                rig.link.up = what == "back"
            elif what == "busy":
                ki.refusals = {} if ki.refusals else {Request.RECORDS: ("busy", None)}
            else:
                rig.close()
                if what == "copy card":
                    shutil.rmtree(copy, ignore_errors=True)
                    shutil.copytree(card, copy)
                elif what == "put card back" and copy.exists():
                    shutil.rmtree(card)
                    shutil.copytree(copy, card)
                starts += 1
                rig = Rig(card, ki, incarnation=starts)
                rig.start()
        ki.refusals = {}
        rig.link.up, rig.link.lose_answers = True, 0
        status = rig.run(4000)
        kept = {uuid.UUID(each.match).bytes for each in rig.ask(lambda journal: list(journal.results()))}
        held = ki.held()
        assert kept <= set(held) <= set(ids)
        assert (status.state, status.waiting, len(status.trouble)) == ("up", 0, int(kept != set(held)))
        assert difference(digest(held), digest(kept)) == rig.notes().settled
        assert rig.notes().holds == digest(kept)
        quiet = len(rig.link.asked)
        rig.run(300)
        assert {each[1] for each in rig.link.asked[quiet:]} == {Request.SYNC}
        rig.close()


def with_another_key(rig: Rig, folder: Path) -> Rig:
    """The next start of a table that has lost its key."""
    rig.close()
    (folder / "table.key").unlink()
    rig = Rig(folder, rig.ki, seed=2, incarnation=2)
    rig.start()
    return rig


@pytest.mark.parametrize("known", [True, False], ids=["the old key is known", "from before the table came"])
def test_a_ki_put_back_gets_what_was_signed_by_a_key_that_is_lost(tmp_path: Path, known: bool) -> None:
    """The table has another key since: it asks for the old one's digest too, and offers what is missing."""
    ki = SigningKi()
    backup = ki.backup()
    rig = Rig(tmp_path, ki)
    rig.start()
    matches = play(rig, range(1))
    rig.run(5)
    if known:
        backup = ki.backup()
    matches += play(rig, range(1, 12))
    rig.run(5)
    old = rig.key.id
    rig = with_another_key(rig, tmp_path)
    more = play(rig, range(12, 15))
    rig.run(40)
    assert rig.notes().formers[0].holds == digest(ki.held(old)) == digest(matches)
    ki.restore(backup)
    status = rig.run(200)
    assert (status.waiting, status.trouble) == (0, ())
    assert set(ki.held()) == {*matches, *more}
    if known:
        assert set(ki.held(old)) == set(matches)
        assert rig.notes().formers[0].holds == digest(matches)
    else:
        # Signed anew, as records of the start that did it, one after the other.
        assert set(ki.held(rig.key.id)) == {*matches, *more}
        assert rig.notes().formers == ()
        records = [decode_record(each) for each in ki.held(rig.key.id).values()]
        assert {each.inc for each in records} == {bytes([2] * 8)}
        assert sorted(each.seq for each in records) == list(range(1, 16))
        assert len({each.prev for each in records}) == 15
    assert rig.notes().holds == digest(ki.held(rig.key.id))
    asked = len(rig.link.asked)
    rig.run(300)
    # One question every half minute: nothing is offered for it any more.
    assert Request.RECORDS not in rig.link.requests[asked:]
    rig.close()


def test_an_old_key_that_is_forgotten_in_mid_offer_holds_up_nothing(tmp_path: Path) -> None:
    """Put back once more, to before the old key: how things stand is asked again, and all are signed anew."""
    ki = SigningKi()
    never = ki.backup()
    rig = Rig(tmp_path, ki)
    rig.start()
    matches = play(rig, range(1))
    rig.run(5)
    backup = ki.backup()
    matches += play(rig, range(1, 12))
    rig.run(5)
    rig = with_another_key(rig, tmp_path)
    rig.run(40)
    ki.restore(backup)
    batches = 0

    def again(_: list[bytes]) -> None:
        nonlocal batches
        batches += 1
        if batches == 2:
            ki.restore(never)
            raise LinkError("it was put back")

    ki.on_batch = again
    while batches < 2:
        rig.run(1)
    asked = len(rig.link.asked)
    # Sooner than the table would ask how things stand by itself, and not without a pause.
    status = rig.run(20)
    assert (status.waiting, status.trouble) == (0, ())
    assert set(ki.held(rig.key.id)) == set(matches)
    assert len(rig.link.asked) - asked < 15
    rig.close()


def test_bytes_that_are_no_record_of_a_lost_key_hold_up_nothing(tmp_path: Path) -> None:
    """The card has damaged one that was answered for: the rest is signed anew, and it is let be."""
    ki = SigningKi()
    never = ki.backup()
    rig = Rig(tmp_path, ki)
    rig.start()
    matches = play(rig, range(4))
    rig.run(5)
    damage = "UPDATE results SET cbor = x'a1' WHERE match = ?"
    rig.ask(lambda journal: journal._db.execute(damage, (str(uuid.UUID(bytes=matches[1])),)))
    rig = with_another_key(rig, tmp_path)
    rig.run(5)
    ki.restore(never)
    status = rig.run(100)
    assert (status.waiting, status.trouble) == (0, ())
    assert set(ki.held()) == {*matches} - {matches[1]}
    assert rig.notes().formers == ()
    rig.close()
