"""What the journal keeps of the KI: the pin, news told twice, digests, and what is offered again."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.errors import JournalError
from heek.journal import Answered, Batch, Journal, News, Pin, Result, Synced, open_journal, read_journal
from heek.journal.schema import FILE_NAME
from heek.ki.sync import digest, with_match
from tests.journal.scripts import WITHOUT_DIGESTS, WITHOUT_KI, entry, label

KEY, OTHER_KEY = b"k" * 8, b"o" * 8
PIN = Pin(b"S" * 32, "KI", "code")
MATCHES = [str(uuid.UUID(int=(number << 64) + (4 << 76) + (2 << 62))) for number in range(1, 6)]
ANNA, BERT = "12345674", "23456784"
NOTHING = (0, bytes(16))


def result(match: str, delta: int = 4, key: bytes = KEY) -> Result:
    seats = [
        {"seat": 1, "kind": "player", "player": ANNA, "name": "Anna", "stake": 1, "delta": delta},
        {"seat": 2, "kind": "player", "player": BERT, "name": "Bert", "stake": 1, "delta": -delta},
    ]
    record = json.dumps({"rules": "heek-1", "match": match, "seats": seats}).encode()
    return Result(match, record, b"cbor of " + match.encode(), key)


def play(journal: Journal, number: int, key: bytes = KEY) -> str:
    seq = journal.last_seq() + 1
    match = MATCHES[number]
    journal.append(
        Batch((entry(seq, "match_won", match=match),), True, b"{}", label(seq), (result(match, key=key),))
    )
    return match


def voided(number: int, match: str, reason: str = "wrong seat") -> News:
    return News(number, "voided", "{}", match, reason)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with open_journal(tmp_path) as opened:
        yield opened


def test_a_pin_is_kept_and_another_one_forgets_what_the_first_ki_told(tmp_path: Path) -> None:
    """Pinned again the news stay; another KI's pin begins anew, and a forgotten one leaves none."""
    with open_journal(tmp_path) as journal:
        assert journal.ki_notes(KEY).pin is None
        journal.pin_service(PIN, KEY)
        journal.sync(Synced({}, (voided(1, MATCHES[0]),), (2, b"x" * 16)), KEY)
        journal.pin_service(Pin(PIN.service, "The KI", "sight"), KEY)
        notes = journal.ki_notes(KEY)
        assert (notes.news, notes.settled, journal.voids()) == (1, (2, b"x" * 16), {MATCHES[0]: "wrong seat"})
        assert notes.pin == Pin(PIN.service, "The KI", "sight")
    with read_journal(tmp_path) as reader:
        assert (reader.pin(), reader.settled()) == (Pin(PIN.service, "The KI", "sight"), 2)
    with open_journal(tmp_path) as journal:
        journal.pin_service(Pin(b"T" * 32, "Another", "code"), KEY)
        notes = journal.ki_notes(KEY)
        assert (notes.news, notes.settled, journal.voids()) == (0, NOTHING, {})
        assert journal.forget_service()
        assert not journal.forget_service()
        assert journal.ki_notes(KEY).pin is None


def test_news_told_twice_or_late_change_nothing(journal: Journal) -> None:
    """A void, its end and its repetition: each number counts once, whatever comes again."""
    journal.pin_service(PIN, KEY)
    restored = News(2, "restored", "{}", MATCHES[0], "after all")
    journal.sync(Synced({}, (voided(1, MATCHES[0]), restored)), KEY)
    assert journal.voids() == {}
    journal.sync(Synced({}, (voided(1, MATCHES[0]), restored)), KEY)
    assert (journal.voids(), journal.ki_notes(KEY).news) == ({}, 2)


def test_a_void_match_that_waits_is_no_longer_in_our_own_deltas(journal: Journal) -> None:
    """What the KI counts as void moves nothing here either; restored, it does again; answered, it is told."""
    play(journal, 0)
    play(journal, 1)
    journal.pin_service(PIN, KEY)
    told = journal.sync(Synced({}, (voided(1, MATCHES[0]),)), KEY)
    assert told.deltas == {ANNA: 4, BERT: -4}
    assert journal.player_deltas() == {ANNA: 4, BERT: -4}
    told = journal.sync(Synced({}, (News(2, "restored", "{}", MATCHES[0]),)), KEY)
    assert told.deltas == {ANNA: -4, BERT: 4}
    assert journal.player_deltas() == {ANNA: 8, BERT: -8}
    journal.sync(Synced({}, (voided(3, MATCHES[0]),)), KEY)
    told = journal.acknowledge([Answered(match, "accepted") for match in MATCHES[:2]], {ANNA: 104})
    assert told.deltas == {ANNA: 4, BERT: -4}
    assert journal.player_deltas() == {}


def test_what_the_ki_has_taken_is_its_digest_by_key(journal: Journal) -> None:
    """Accepted and duplicate count, under the key that signed them; waiting, rejected and conflict do not."""
    for number in range(4):
        play(journal, number)
    play(journal, 4, OTHER_KEY)
    states = ("accepted", "duplicate", "rejected", "conflict", "accepted")
    journal.acknowledge([Answered(*each) for each in zip(MATCHES, states, strict=True)], {})
    ids = [uuid.UUID(match).bytes for match in MATCHES]
    notes = journal.ki_notes(KEY)
    assert (notes.holds, notes.refused, notes.waiting) == (digest(ids[:2]), 2, 0)
    assert journal.ki_notes(OTHER_KEY).holds == digest(ids[4:])


def test_an_offer_has_everything_of_the_key_wait_again_and_moves_no_points(journal: Journal) -> None:
    """Also what was rejected; what the KI told of points has them in it, so they are nobody's own deltas."""
    for number in range(3):
        play(journal, number)
    play(journal, 3, OTHER_KEY)
    journal.pin_service(PIN, KEY)
    journal.acknowledge(
        [
            Answered(MATCHES[0], "accepted"),
            Answered(MATCHES[1], "rejected"),
            Answered(MATCHES[3], "accepted"),
        ],
        {ANNA: 104},
    )
    before = journal.player_deltas()
    told = journal.sync(Synced({}, offered=(-1, b"y" * 16), offer=True), KEY)
    assert (told.waiting, told.deltas, journal.player_deltas()) == (3, {}, before)
    assert [each.match for each in journal.unsent(9, 10**6)] == MATCHES[:3]
    assert [each.match for each in journal.unsent(1, 10**6, MATCHES[:1])] == MATCHES[1:2]
    assert [each.match for each in journal.unsent(9, 10**6, among=MATCHES[2:])] == MATCHES[2:3]
    notes = journal.ki_notes(KEY)
    assert (notes.offered, notes.holds) == ((-1, b"y" * 16), NOTHING)
    told = journal.acknowledge([Answered(match, "duplicate") for match in MATCHES[:3]], {})
    assert told.deltas == before


def test_what_the_ki_accepts_in_an_offer_is_expected_of_it_at_the_end(journal: Journal) -> None:
    """What it takes anew from this key it should hold besides; duplicates it held, others are not ours."""
    for number in range(3):
        play(journal, number)
    play(journal, 3, OTHER_KEY)
    journal.pin_service(PIN, KEY)
    journal.sync(Synced({}, offered=(7, b"y" * 16), offer=True), KEY)
    states = ("accepted", "duplicate", "rejected", "accepted")
    answers = [Answered(*each) for each in zip(MATCHES, states, strict=False)]
    journal.acknowledge(answers, {})
    journal.acknowledge(answers, {})
    assert journal.ki_notes(KEY).offered == with_match((7, b"y" * 16), uuid.UUID(MATCHES[0]).bytes)


@pytest.mark.fault("F056")
def test_what_says_nothing_new_writes_nothing(journal: Journal) -> None:
    """A table asks all day; the card hears of it when something has changed."""
    journal.pin_service(PIN, KEY)
    journal.sync(Synced({ANNA: 104}, (voided(1, MATCHES[0]),)), KEY)
    before = journal._db.total_changes
    journal.sync(Synced({ANNA: 104}, (voided(1, MATCHES[0]),)), KEY)
    assert journal._db.total_changes == before
    journal.sync(Synced({ANNA: 105}), KEY)
    assert journal._db.total_changes > before


def test_an_erased_player_is_named_by_nothing_that_people_read(tmp_path: Path) -> None:
    """Number, name, points and news of the name are gone; the entry stays, for the others own it too."""
    with open_journal(tmp_path) as journal:
        play(journal, 0)
        journal.pin_service(PIN, KEY)
        named = News(1, "named", json.dumps({"player": ANNA, "name": "Hanna"}), ANNA, "Hanna")
        journal.sync(Synced({ANNA: 104}, (named,)), KEY)
        assert journal.names() == {ANNA: "Hanna"}
        journal.sync(Synced({}, (News(2, "erased", "{}", ANNA),)), KEY)
        assert (journal.names(), journal.told_points()) == ({}, {})
        (kept,) = journal.results()
        assert b"Anna" not in kept.record
        assert ANNA.encode() not in kept.record
        assert [seat["delta"] for seat in json.loads(kept.record)["seats"]] == [4, -4]
        assert b"Bert" in kept.record
        assert journal.verify() == []
    rows = sqlite3.connect(tmp_path / FILE_NAME).execute("SELECT number, body FROM news").fetchall()
    assert rows == [(2, "{}")]


def test_news_of_an_unknown_kind_are_kept_and_counted(journal: Journal) -> None:
    """They do nothing, and neither do those that lack what they are about."""
    journal.pin_service(PIN, KEY)
    journal.sync(Synced({}, (News(1, "crowned", "{}", ANNA), News(2, "voided", "{}"))), KEY)
    notes = journal.ki_notes(KEY)
    assert (notes.news, notes.strange_news, journal.voids()) == (2, 2, {})


def test_news_anew_forget_what_was_told_before(journal: Journal) -> None:
    """The KI no longer has what it told: its voids are gone with it, and it is asked from the first on."""
    journal.pin_service(PIN, KEY)
    journal.sync(Synced({}, (voided(1, MATCHES[0]), voided(2, MATCHES[1]))), KEY)
    journal.sync(Synced({}, news_anew=True), KEY)
    assert (journal.voids(), journal.ki_notes(KEY).news) == ({}, 0)


def test_with_another_key_news_and_digests_begin_anew(journal: Journal) -> None:
    """The pin stays: the KI is the same. What was settled with the old key is not."""
    journal.pin_service(PIN, KEY)
    journal.sync(Synced({}, (voided(1, MATCHES[0]),), (1, b"z" * 16), (2, b"y" * 16)), KEY)
    journal.meet_with_key(OTHER_KEY)
    notes = journal.ki_notes(OTHER_KEY)
    assert (notes.pin, notes.news, notes.settled, notes.offered) == (PIN, 0, NOTHING, None)


def test_a_table_is_enrolled_with_the_keys_that_its_ki_knows(journal: Journal) -> None:
    """Pinned with a key, or told how things stand by it; until the KI says no, or another KI is pinned."""
    assert not journal.is_known_as(KEY)
    journal.sync(Synced({ANNA: 1}), KEY)
    assert not journal.is_known_as(KEY)
    journal.pin_service(PIN, KEY)
    assert (journal.is_known_as(KEY), journal.ki_notes(KEY).known) == (True, True)
    journal.meet_with_key(OTHER_KEY)
    assert (journal.is_known_as(OTHER_KEY), journal.ki_notes(OTHER_KEY).known) == (False, False)
    journal.sync(Synced({}), OTHER_KEY)
    assert journal.is_known_as(OTHER_KEY)
    journal.no_longer_known(OTHER_KEY)
    assert (journal.is_known_as(OTHER_KEY), journal.pin()) == (False, PIN)
    journal.pin_service(PIN, OTHER_KEY)
    assert journal.is_known_as(OTHER_KEY)
    journal.pin_service(Pin(b"T" * 32, "Another", "code"), OTHER_KEY)
    assert (journal.is_known_as(OTHER_KEY), journal.is_known_as(KEY)) == (True, False)
    journal.forget_service()
    assert not journal.is_known_as(OTHER_KEY)


def test_a_table_that_was_enrolled_under_the_fourth_schema_still_is(tmp_path: Path) -> None:
    """With the key that it had then, for a reader of the old file and after the daemon has opened it."""
    with open_journal(tmp_path) as journal:
        journal.pin_service(PIN, KEY)
    db = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    db.executescript(WITHOUT_DIGESTS)
    db.close()
    with read_journal(tmp_path) as reader:
        assert (reader.is_known_as(KEY), reader.is_known_as(OTHER_KEY)) == (True, False)
    with open_journal(tmp_path) as journal:
        assert (journal.is_known_as(KEY), journal.is_known_as(OTHER_KEY)) == (True, False)
        assert journal.verify() == []


def test_what_cannot_be_written_is_not_half_there(tmp_path: Path) -> None:
    """Somebody holds the file in the middle of it: neither news nor points nor the offer are kept."""
    with open_journal(tmp_path) as journal:
        play(journal, 0)
        journal.pin_service(PIN, KEY)
        journal.acknowledge([Answered(MATCHES[0], "accepted")], {})
        other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        synced = Synced({ANNA: 1}, (voided(1, MATCHES[0]),), offered=(1, bytes(16)), offer=True)
        with pytest.raises(JournalError):
            journal.sync(synced, KEY)
        other.execute("ROLLBACK")
        other.close()
        notes = journal.ki_notes(KEY)
        assert (notes.news, notes.waiting, journal.voids(), journal.told_points()) == (0, 0, {}, {})
        assert notes.holds == digest([uuid.UUID(MATCHES[0]).bytes])


def test_who_played_last_is_asked_for_first(journal: Journal) -> None:
    """The players of the newest results, each once, within the bound."""
    play(journal, 0)
    play(journal, 1)
    assert journal.recent_players(10) == [ANNA, BERT]
    assert journal.recent_players(1) == [ANNA]


def test_a_journal_of_the_third_schema_goes_on(tmp_path: Path) -> None:
    """An older file keeps all it has; a reader finds no KI in it, the daemon adds the tables."""
    with open_journal(tmp_path) as journal:
        play(journal, 0)
        journal.acknowledge([Answered(MATCHES[0], "accepted")], {ANNA: 104})
        play(journal, 1)
    db = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    db.executescript(WITHOUT_KI)
    db.close()
    with read_journal(tmp_path) as reader:
        assert (reader.pin(), reader.voids(), reader.names(), reader.settled()) == (None, {}, {}, 0)
        assert not reader.is_known_as(KEY)
        assert (reader.waiting(), reader.player_deltas()) == (1, {ANNA: 4, BERT: -4})
    with open_journal(tmp_path) as journal:
        assert (journal.waiting(), journal.told_points()) == (1, {ANNA: 104})
        assert [(each.match, each.key) for each in journal.unbound(KEY, 9)] == [
            (match, None) for match in MATCHES[:2]
        ]
        assert journal.verify() == []


def test_a_journal_of_the_fourth_schema_goes_on(tmp_path: Path) -> None:
    """What was settled of the digests moves to the key it is of; a reader finds it in either place."""
    settled = (2, bytes([*[0] * 15, 15]))
    with open_journal(tmp_path) as journal:
        journal.pin_service(PIN, KEY)
        play(journal, 0)
    db = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    db.executescript(WITHOUT_DIGESTS)
    db.close()
    with read_journal(tmp_path) as reader:
        assert (reader.pin(), reader.settled()) == (PIN, 2)
    with open_journal(tmp_path) as journal:
        notes = journal.ki_notes(KEY)
        assert (notes.pin, notes.settled, notes.offered, notes.waiting) == (PIN, settled, None, 1)
        assert journal.ki_notes(b"another!").settled == NOTHING
        assert journal.settled() == 2
        assert journal.verify() == []


_NEWS = st.lists(
    st.tuples(st.sampled_from(["voided", "restored"]), st.sampled_from(MATCHES[:3])), min_size=1, max_size=12
)


@given(_NEWS, st.data())
def test_in_whatever_pieces_and_repetitions_news_come_they_mean_the_same(
    told: list[tuple[str, str]], data: st.DataObject
) -> None:
    """Cut anywhere, told again from any earlier number: the voids in the end are those of all in order."""
    import tempfile

    news = [News(number, kind, "{}", match) for number, (kind, match) in enumerate(told, start=1)]
    with tempfile.TemporaryDirectory() as folder, open_journal(Path(folder) / "j") as journal:
        journal.pin_service(PIN, KEY)
        while (have := journal.ki_notes(KEY).news) < len(news):
            start = data.draw(st.integers(0, have))
            end = data.draw(st.integers(have + 1, len(news)))
            journal.sync(Synced({}, tuple(news[start:end])), KEY)
        last = {match: kind for kind, match in told}
        assert set(journal.voids()) == {match for match, kind in last.items() if kind == "voided"}


def test_a_number_that_is_kept_is_never_taken_again(journal: Journal) -> None:
    """Not even beside a new one, and whatever it says now."""
    journal.pin_service(PIN, KEY)
    journal.sync(Synced({}, (voided(1, MATCHES[0]), News(2, "restored", "{}", MATCHES[0]))), KEY)
    journal.sync(Synced({}, (voided(1, MATCHES[0]), voided(3, MATCHES[1]))), KEY)
    assert list(journal.voids()) == [MATCHES[1]]
