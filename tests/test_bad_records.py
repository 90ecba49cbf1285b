"""One bad record never holds up the rest, and no refusal, storm or silence loses one (faults F076, F077)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from heek.errors import LinkError
from heek.ki.answers import RecordAnswer, Verdict, encode_refusal
from heek.ki.envelope import Envelope, split_batch
from heek.ki.link import Request
from heek.ki.record import decode_record
from tests.reporting_rig import Rig, a_numbered_match


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path, most_bytes=10**6)
    rig.start()
    rig.run(1)
    yield rig
    rig.close()


def play(rig: Rig, count: int) -> list[bytes]:
    rig.link.up = False
    matches = [rig.won(a_numbered_match(number)) for number in range(count)]
    rig.link.up = True
    return matches


def matches_of(body: bytes) -> list[bytes]:
    return [decode_record(each.record).match for each in split_batch(body) if isinstance(each, Envelope)]


def poisonous(rig: Rig, bad: bytes, how: bytes | LinkError) -> None:
    """The KI, or a proxy before it, fails on every request that has this match in it."""

    def instead(request: Request, body: bytes) -> bytes:
        if request is Request.RECORDS and bad in matches_of(body):
            if isinstance(how, LinkError):
                raise LinkError(str(how))
            return how
        return rig.ki.answer(request, body)

    rig.link.instead = instead


@pytest.mark.fault("F077")
def test_a_record_that_is_rejected_is_set_aside_and_the_others_flow(rig: Rig) -> None:
    """It is answered for: kept, told as trouble, and not sent again."""
    matches = play(rig, 5)
    rig.ki.verdicts[matches[1]] = RecordAnswer(Verdict.REJECTED, "seat 9", matches[1])
    status = rig.run(60)
    assert (status.waiting, len(rig.ki.held()), len(status.trouble)) == (0, 4, 1)
    assert len(rig.ask(lambda journal: list(journal.results()))) == 5


@pytest.mark.fault("F077")
@pytest.mark.parametrize("place", [0, 2, 4])
@pytest.mark.parametrize(
    "how",
    [
        encode_refusal("busy", "the KI failed on this; its log says why", 0),
        encode_refusal("malformed"),
        encode_refusal("too_large"),
        LinkError("what answers is not the KI (HTTP 500, text/html)"),
        LinkError("no answer within 20 s"),
    ],
)
def test_a_record_that_the_ki_fails_on_holds_up_nobody(rig: Rig, place: int, how: bytes | LinkError) -> None:
    """The batch is halved until it goes alone, then the others go first; later it is tried again."""
    matches = play(rig, 5)
    poisonous(rig, matches[place], how)
    status = rig.run(120)
    assert (status.waiting, len(rig.ki.held())) == (1, 4)
    more = rig.won(a_numbered_match(9))
    rig.run(150)
    assert more in rig.ki.held()
    rig.ki.tell(rig.key.id, "named", player="12345674", name="Hanna")
    rig.run(300)
    assert rig.ask(lambda journal: journal.names()) == {"12345674": "Hanna"}
    rig.link.instead = None
    assert rig.run(700).waiting == 0
    assert set(rig.ki.held()) == {*matches, more}


@pytest.mark.fault("F077")
@pytest.mark.parametrize("code", ["too_large", "busy", "malformed"])
def test_a_request_that_is_too_large_goes_in_halves(rig: Rig, code: str) -> None:
    """A KI that takes three at a time gets three at a time."""
    matches = play(rig, 20)

    def small(request: Request, body: bytes) -> bytes:
        if request is Request.RECORDS and len(matches_of(body)) > 3:
            return encode_refusal(code)
        return rig.ki.answer(request, body)

    rig.link.instead = small
    # Who says that it is too large gets less at once; who is busy or confused gets less after a pause.
    assert rig.run(3 if code == "too_large" else 600).waiting == 0
    assert set(rig.ki.held()) == set(matches)


@pytest.mark.fault("F073", "F077")
@pytest.mark.parametrize("words", ["(HTTP 401, text/html)", "(HTTP 404, text/html)", "(HTTP 413, text/html)"])
def test_a_wrong_place_stops_everything_and_loses_nothing(rig: Rig, words: str) -> None:
    """401, 404 or 413 for all: all waits, in its order, and goes when the place is right again."""
    matches = play(rig, 7)

    def wrong(_request: Request, _body: bytes) -> bytes:
        raise LinkError(f"what answers is not the KI {words}")

    rig.link.instead = wrong
    status = rig.run(12 * 3600)
    assert (status.waiting, status.state) == (7, "down")
    assert words in status.reason
    rig.link.instead = None
    assert rig.run(200).waiting == 0
    assert list(rig.ki.held()) == matches


@pytest.mark.fault("F076")
@pytest.mark.parametrize(("retry_s", "least"), [(30.0, 30), (0.0, 0), (-5.0, 0), (86400.0, 300), (None, 0)])
def test_what_the_other_end_asks_for_is_obeyed_within_reason(
    rig: Rig, retry_s: float | None, least: float
) -> None:
    """A stranger's `Retry-After`: 30 s are kept, a day is five minutes, zero and less are our own pauses."""
    play(rig, 1)
    rig.link.up, rig.link.retry_s = False, retry_s
    began = len(rig.link.asked)
    rig.run(4 * 3600)
    times = [at for at, _, _ in rig.link.asked[began:]]
    gaps = [after - before for before, after in pairwise(times)]
    assert min(gaps) >= least
    assert max(gaps) <= max(least, 120) + 1
    rig.link.up, rig.link.retry_s = True, None
    assert rig.run(3700).waiting == 0


def test_the_kis_own_wish_for_peace_is_obeyed_for_an_hour(rig: Rig) -> None:
    """A KI that refuses for a day is asked again after an hour: it says so itself, no portal in its place."""
    play(rig, 1)
    rig.ki.refusals = dict.fromkeys(Request, ("busy", 86400))
    began = len(rig.link.asked)
    rig.run(4 * 3600)
    times = [at for at, _, _ in rig.link.asked[began:]]
    gaps = [after - before for before, after in pairwise(times)]
    assert min(gaps) >= 3600


@pytest.mark.fault("F076")
def test_a_waiting_table_asks_less_than_once_a_minute_and_not_with_the_others(tmp_path: Path) -> None:
    """Ten minutes of an outage in which ten tables come to rest: few requests, spread over time."""
    times = []
    for number in range(10):
        chance = random.Random(number).random
        rig = Rig(tmp_path / str(number), incarnation=number + 1, chance=chance)
        rig.start()
        rig.run(1)
        rig.link.up = False
        rig.won(a_numbered_match(number))
        rig.run(600)
        began = len(rig.link.asked)
        rig.run(3600)
        times.append([at for at, _, _ in rig.link.asked[began:]])
        rig.close()
    assert all(len(each) < 60 for each in times)
    assert len({round(each[0]) for each in times}) >= 5


@pytest.mark.fault("F079")
def test_forty_matches_of_a_night_without_a_network_arrive_once_in_their_order(rig: Rig) -> None:
    """Twelve hours down, forty matches: then all of them, in order, without a restart (F079)."""
    rig.link.up = False
    matches = []
    for number in range(40):
        matches.append(rig.won(a_numbered_match(number)))
        rig.run(1080)
    assert (rig.reporting.status.waiting, rig.reporting.status.state) == (40, "down")
    rig.link.up = True
    assert rig.run(125).waiting == 0
    assert list(rig.ki.held()) == matches


def test_while_a_record_waits_no_digest_is_compared(rig: Rig) -> None:
    """The KI holds it and cannot say so: that is no reason to offer everything again."""
    matches = play(rig, 5)

    def mute(request: Request, body: bytes) -> bytes:
        answer = rig.ki.answer(request, body)
        bad = request is Request.RECORDS and matches[1] in matches_of(body)
        return encode_refusal("busy") if bad else answer

    rig.link.instead = mute
    rig.run(600)
    assert rig.reporting.status.waiting == 1
    assert (rig.notes().offered, rig.notes().settled) == (None, (0, bytes(16)))
    assert len(rig.ki.held()) == 5
    rig.link.instead = None
    assert rig.run(700).waiting == 0
    assert rig.notes().settled == (0, bytes(16))
