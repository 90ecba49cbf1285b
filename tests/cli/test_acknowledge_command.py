"""`heek journal acknowledge`: who knows of a difference to the KI, and when nobody can."""

from __future__ import annotations

from pathlib import Path

import pytest

from heek import boot
from heek.cli import FAILED, OK, main
from heek.journal import Synced, open_journal, read_journal
from tests.journal.test_ki_notes import KEY, OTHER_KEY, PIN

DIFFERENCE = (3, b"x" * 16)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The state folder of a table whose KI holds three matches more."""
    with open_journal(tmp_path / "state") as journal:
        journal.pin_service(PIN, KEY)
        journal.sync(Synced({}, settled=DIFFERENCE), KEY)
    return tmp_path / "state"


def acknowledge(folder: Path, *more: str) -> int:
    return main(["journal", "acknowledge", *more, "--state-dir", str(folder)])


@pytest.mark.parametrize(
    ("trust", "when"), [("ntp", " on 20"), ("none", ", on a day that the clock did not know")]
)
def test_it_is_kept_with_who_and_when(
    folder: Path,
    trust: str,
    when: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And how far the clock was believed; a second one changes nothing."""
    monkeypatch.setattr(boot, "wall_trust", lambda: trust)
    assert acknowledge(folder, "--by", " Otto ") == OK
    assert f"3 matches of this table that this journal has not; acknowledged by Otto{when}" in (
        capsys.readouterr().out
    )
    with read_journal(folder) as journal:
        first = journal.acknowledgement()
    assert first is not None
    assert (first.difference, first.by, first.trust) == (DIFFERENCE, "Otto", trust)
    assert first.at_s > 1_600_000_000
    assert acknowledge(folder, "--by", "Bea") == OK
    assert "acknowledged already by Otto" in capsys.readouterr().out
    with read_journal(folder) as journal:
        assert journal.acknowledgement() == first


def test_another_difference_is_not_acknowledged(folder: Path) -> None:
    """Another count, other matches of the same count, another key, another KI: each is told."""
    acknowledge(folder)
    with open_journal(folder) as journal:
        for settled in ((4, DIFFERENCE[1]), (3, b"y" * 16)):
            journal.sync(Synced({}, settled=settled), KEY)
            assert journal.acknowledgement() is None
            assert journal.ki_notes(KEY).acknowledged != settled
        journal.sync(Synced({}, settled=DIFFERENCE), KEY)
        assert journal.acknowledgement() is not None
        assert journal.ki_notes(KEY).acknowledged == DIFFERENCE
        assert journal.ki_notes(OTHER_KEY).acknowledged == (0, bytes(16))
        journal.forget_service()
        journal.pin_service(PIN, KEY)
        journal.sync(Synced({}, settled=DIFFERENCE), KEY)
        assert journal.acknowledgement() is None


def test_where_there_is_no_difference_there_is_nothing_to_acknowledge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said, and nothing is kept; where there is no journal none is made."""
    assert acknowledge(tmp_path / "none") == FAILED
    assert "there is no journal" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
    open_journal(tmp_path).close()
    assert acknowledge(tmp_path) == OK
    assert "the KI and this journal agree; there is nothing to acknowledge" in capsys.readouterr().out
    with read_journal(tmp_path) as journal:
        assert journal.acknowledgement() is None


def test_it_is_for_a_table_that_stands_still(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """While a daemon has the journal people are told what to do."""
    with open_journal(folder) as journal:
        assert acknowledge(folder) == FAILED
        assert "stop that one" in capsys.readouterr().err
        assert journal.acknowledgement() is None


@pytest.mark.parametrize("name", ["", "  ", "x" * 33, "O\u200btto", "\u202eOtto", "\udcff"])
def test_who_it_is_can_be_read(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No name, a long one, or one with characters that nobody sees is refused in one line."""
    with pytest.raises(SystemExit):
        acknowledge(folder, "--by", name)
    assert "is no name: 1 to 32 characters that can be seen" in capsys.readouterr().err
    with read_journal(folder) as journal:
        assert journal.acknowledgement() is None
