"""`heek enrol`: where a table is enrolled, how that is forgotten, and what the KI told of results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heek.cli import FAILED, OK, main
from heek.journal import News, Pin, Synced, open_journal
from heek.ki.envelope import key_id, public_key
from heek.ki.table_key import table_key
from tests.journal.test_ki_notes import ANNA, BERT, KEY, MATCHES, PIN, play

OTHER = key_id(public_key(bytes([2] * 32)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The state folder of a table that is enrolled, with two results that wait."""
    with open_journal(tmp_path / "state") as journal:
        play(journal, 0)
        play(journal, 1)
        key = table_key(tmp_path / "state", lambda: bytes([1] * 32))
        journal.pin_service(PIN, key.id)
    return tmp_path / "state"


def test_it_says_where_the_table_is_enrolled(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Name and key id of the KI, how it was found, and what waits for it."""
    assert main(["enrol", "--state-dir", str(folder)]) == OK
    said = capsys.readouterr().out
    assert f"enrolled at KI (key {key_id(PIN.service).hex()}), by its code; 2 results wait for it" in said
    with open_journal(folder) as journal:
        journal.pin_service(Pin(PIN.service, "KI", "sight"), KEY)
    main(["enrol", "--state-dir", str(folder)])
    assert "at first sight" in capsys.readouterr().out


def test_with_another_key_the_table_is_not_enrolled(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor without one: the KI it believes is named, and the key that it does not know, if there is any."""
    (folder / "table.key").unlink()
    for whose in ("has no key yet", f"has the key {OTHER.hex()}, unknown there"):
        assert main(["enrol", "--state-dir", str(folder)]) == OK
        said = capsys.readouterr().out
        alone = f"it believes KI alone (key {key_id(PIN.service).hex()})"
        assert f"is not enrolled; {alone}, and {whose}: running" in said
        assert said.endswith("(heek ki enrol CODE); 2 results wait for it\n")
        assert table_key(folder, lambda: bytes([2] * 32)).id == OTHER
    with open_journal(folder) as journal:
        journal.sync(Synced({}), OTHER)
    main(["enrol", "--state-dir", str(folder)])
    assert "is enrolled at KI" in capsys.readouterr().out


def test_a_damaged_key_is_told_in_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether the table is enrolled cannot be said without it."""
    (folder / "table.key").write_text("no key")
    assert main(["enrol", "--state-dir", str(folder)]) == FAILED
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n"), "table.key" in said.err) == ("", 1, True)


def test_again_forgets_the_ki_and_nothing_else(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The results go on waiting; a second time there is nothing to forget."""
    assert main(["enrol", "--again", "--state-dir", str(folder)]) == OK
    assert "is no longer enrolled at KI" in capsys.readouterr().out
    assert main(["enrol", "--state-dir", str(folder)]) == OK
    assert "enrolled at no KI yet; 2 results wait for one" in capsys.readouterr().out
    assert main(["enrol", "--again", "--state-dir", str(folder)]) == OK
    assert "was enrolled nowhere" in capsys.readouterr().out


def test_again_is_for_a_table_that_stands_still(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """While a daemon has the journal nothing is forgotten, and people are told what to do."""
    with open_journal(folder) as journal:
        assert main(["enrol", "--again", "--state-dir", str(folder)]) == FAILED
        assert "stop that one" in capsys.readouterr().err
        assert journal.pin() == PIN


def test_where_there_is_no_journal_none_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong folder is a mistake, not a new table."""
    assert main(["enrol", "--again", "--state-dir", str(tmp_path)]) == FAILED
    assert "there is no journal" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_results_are_shown_with_what_the_ki_told_of_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A void match says so with its reason, a renamed player has the new name; the rest is as written."""
    with open_journal(folder) as journal:
        plain = [result.record.decode() for result in journal.results()]
        journal.sync(Synced({}, (News(1, "voided", "{}", MATCHES[0], "wrong seat"),)), KEY)
    main(["journal", "show", "--results", "--state-dir", str(folder)])
    first, second = capsys.readouterr().out.splitlines()
    assert (json.loads(first)["void"], second) == ("wrong seat", plain[1])
    with open_journal(folder) as journal:
        journal.sync(Synced({}, (News(2, "named", "{}", ANNA, "Hanna"),)), KEY)
    main(["journal", "show", "--results", "--state-dir", str(folder)])
    _, second = capsys.readouterr().out.splitlines()
    assert [seat["name"] for seat in json.loads(second)["seats"]] == ["Hanna", "Bert"]
    assert [seat["player"] for seat in json.loads(second)["seats"]] == [ANNA, BERT]
    assert "void" not in json.loads(second)
