"""A player whom the KI has erased: nowhere at the table is the name or the number read any more."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from heek.cli import OK, main
from heek.cli.photo_finishes import ReplayedMatches
from heek.journal import News, Pin, Result, Synced, open_journal, read_journal
from heek.journal.schema import FILE_NAME
from heek.kept_matches import check_match, find_match, import_match, kept_matches
from heek.photo_finish.values import rounds_of
from heek.recording import PartEncoder, WasTold, decode, without_identities
from heek.simulator.runner import simulate
from heek.simulator.story import parse
from tests.journal.scripts import batch
from tests.journal.test_ki_notes import KEY
from tests.test_recording import whole

STORY = Path(__file__).parent / "photo_finish" / "round.jsonl"
CONTROLLER = Path(__file__).parents[1] / "controller"
PLAYER, NAME, OTHER = "40220173", "Shorah", "40220181"
PIN = Pin(b"S" * 32, "KI", "code")


def erase(folder: Path, *players: str) -> None:
    with open_journal(folder) as journal:
        journal.pin_service(PIN, KEY)
        news = [
            News(number, "erased", json.dumps({"player": player}), player)
            for number, player in enumerate(players, start=1)
        ]
        journal.sync(Synced({}, tuple(news)), KEY)


@pytest.fixture
def played(tmp_path: Path) -> Path:
    """A state folder with a match in it that a signed-in player lost."""
    simulate(parse(STORY.read_text(), "story"), seed=1, state_dir=tmp_path)
    return tmp_path


def said_of(folder: Path, capsys: pytest.CaptureFixture[str], *command: str) -> str:
    assert main([*command, "--state-dir", str(folder)]) == OK
    return capsys.readouterr().out


COMMANDS = (
    ("journal", "show"),
    ("journal", "show", "--json"),
    ("journal", "show", "--results"),
    ("photofinish", "last"),
    ("photofinish", "last", "2"),
    ("photofinish", "last", "--json"),
    ("replay", "last", "--events"),
)


def test_no_command_names_an_erased_player(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What named the player before names nobody after; all else of it is told as it was."""
    before = {command: said_of(played, capsys, *command) for command in COMMANDS}
    assert sum(NAME in said for said in before.values()) >= 5
    erase(played, PLAYER)
    for command, was in before.items():
        said = said_of(played, capsys, *command)
        assert (NAME in said, PLAYER in said) == (False, False), command
        assert len(said.splitlines()) == len(was.splitlines())
    shown = said_of(played, capsys, "journal", "show")
    assert "A player whom the KI has erased signs in at seat 2" in shown
    assert "seat 2 page" in said_of(played, capsys, "photofinish", "last")


def test_an_exported_match_names_no_erased_player_and_replays(
    played: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The recording is exported without the identity, and gives the very events that go with it."""
    with read_journal(played) as journal:
        whole = check_match(find_match(journal, "last"))
    erase(played, PLAYER)
    assert main(["replay", "last", "--state-dir", str(played), "--export", str(played / "out.json")]) == OK
    capsys.readouterr()
    kept = import_match(played / "out.json")
    blocks = [block for part in kept.parts for block in (part.inputs, part.beginning or b"")]
    for told in (PLAYER, NAME):
        assert all(told.encode() not in block for block in blocks)
        assert all(told not in line for line in kept.lines)
    verdict = check_match(kept)
    assert (verdict.difference, verdict.compared) == (None, whole.compared)


def test_the_page_forgets_who_it_has_drawn(played: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture that is remembered from before is made anew without the name."""
    monkeypatch.setenv("PYTHONPATH", str(CONTROLLER))
    photos = ReplayedMatches(played)
    (match,) = [each.match for each in photos.matches().result()]
    assert NAME in str(photos.match(match).result())
    erase(played, PLAYER)
    assert NAME not in str(photos.match(match).result())
    photos.close()


def test_two_erased_players_stay_two(tmp_path: Path) -> None:
    """Two at one table, over a short power cut: the recordings on both sides replay to the same events."""
    presses = [(1, 1, "pen"), (1.1, 2, "pen"), (2, 1, "pen"), (2.1, 2, "pen")]
    presses += [(3, 1, "pen"), (3.2, 2, "pen"), (8, 1, "beetle")]
    presses += [(9, 1, "pen"), (9.2, 2, "pen"), (11, 1, "pen"), (11.3, 2, "page")]
    steps = [{"at": at, "press": {"seat": seat, "button": button}} for at, seat, button in presses]
    steps += [
        {"at": 1.5, "claim": {"seat": 1, "player": PLAYER, "name": NAME}},
        {"at": 1.6, "claim": {"seat": 2, "player": OTHER, "name": "Anna \"'\\ ü"}},
        {"at": 8.5, "power": "cut"},
        {"at": 8.6, "power": "on"},
        {"at": 15, "end": True},
    ]
    steps.sort(key=lambda step: float(str(step["at"])))
    head = {"story": 1, "table": {"ahyoheek.target": 1, "station": [{"seat": 1}, {"seat": 2}]}}
    simulate(parse("\n".join(json.dumps(each) for each in [head, *steps]), "story"), state_dir=tmp_path)
    with read_journal(tmp_path) as journal:
        kept = find_match(journal, "last")
        whole = check_match(kept)
    assert len({part.recording for part in kept.parts}) == 2
    assert any(PLAYER.encode() in (part.beginning or b"") for part in kept.parts)
    erase(tmp_path, PLAYER, OTHER)
    with read_journal(tmp_path) as journal:
        kept = find_match(journal, "last")
    text = repr(kept)
    assert all(told not in text for told in (PLAYER, NAME, OTHER, "Anna"))
    verdict = check_match(kept)
    assert (verdict.difference, verdict.compared, verdict.of_match) == (None, whole.compared, whole.of_match)
    rounds = rounds_of(kept.match, [each.sitting for each in verdict.replays])
    assert [each.names for each in rounds] == [{}] * len(rounds)


def test_what_is_written_after_the_erasure_is_read_without_it_too(tmp_path: Path) -> None:
    """Whoever sat at the table just then played on: that result names nobody either."""
    erase(tmp_path, PLAYER)
    record = json.dumps({"match": "m-1", "seats": [{"seat": 1, "player": PLAYER, "name": NAME}]}).encode()
    with open_journal(tmp_path) as journal:
        journal.append(batch(1, 1, 1, sync=True))
        late = batch(2, 1, 2, sync=True)
        journal.append(type(late)(late.entries, True, late.snapshot, late.label, (Result("m-1", record),)))
        (result,) = journal.results()
    assert (PLAYER.encode() in result.record, NAME.encode() in result.record) == (False, False)


def test_an_erasure_outlives_the_ki_that_told_it(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table goes over to another KI, or this one begins its news anew: nobody is named again."""
    erase(played, PLAYER)
    with open_journal(played) as journal:
        journal.sync(Synced({}, news_anew=True), KEY)
        journal.forget_service()
    assert NAME not in said_of(played, capsys, "journal", "show")


def test_what_an_older_heek_was_told_counts_too(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A journal of the fifth schema has the erasure among its news alone; a reader leaves it as it is."""
    erase(played, PLAYER)
    db = sqlite3.connect(played / FILE_NAME, isolation_level=None)
    db.executescript("DROP TABLE erased; PRAGMA user_version = 5;")
    db.close()
    with read_journal(played) as reader:
        assert reader.erased() == {}
        assert len(kept_matches(reader)) == 1
    with open_journal(played) as journal:
        assert (journal.erased(), journal.verify()) == ({PLAYER: "erased-1"}, [])
    assert NAME not in said_of(played, capsys, "journal", "show")


def test_points_told_in_a_recording_go_by_the_alias() -> None:
    """A number stands in a recording as a key, too, where the KI told points."""
    _, beginning, _ = whole()
    told = WasTold(5, {PLAYER: 300, OTHER: 7}, {PLAYER: 2})
    part = PartEncoder(beginning).part([told])
    beginning, inputs = without_identities(beginning, [part], {PLAYER: "erased-1"})
    assert PLAYER.encode() not in beginning + inputs[0]
    assert decode(beginning, inputs).items == (WasTold(5, {"erased-1": 300, OTHER: 7}, {"erased-1": 2}),)
