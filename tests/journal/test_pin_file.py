"""The pin beside the journal: it follows the journal, and is read only where a damaged one lost its own."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from heek.journal import Pin, open_journal, open_or_salvage
from heek.journal.pin_file import PIN_NAME
from heek.journal.schema import FILE_NAME
from tests.journal.damage import KEY, PIN

OTHER = Pin(b"T" * 32, "Another", "sight")


def emptied(folder: Path) -> None:
    (folder / FILE_NAME).write_bytes(b"")


def test_it_follows_the_journal(tmp_path: Path) -> None:
    """For its owner alone; another KI takes its place; forgotten, it is gone and comes back with nothing."""
    file = tmp_path / PIN_NAME
    with open_journal(tmp_path) as journal:
        journal.pin_service(PIN, KEY)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        journal.pin_service(OTHER, KEY)
    emptied(tmp_path)
    with open_or_salvage(tmp_path) as journal:
        assert journal.pin() == OTHER
        assert (journal.ki_notes(KEY).news, journal.is_known_as(KEY)) == (0, True)
        journal.forget_service()
    assert not file.exists()
    emptied(tmp_path)
    with open_or_salvage(tmp_path) as journal:
        assert journal.pin() is None


def test_a_table_that_was_enrolled_before_there_was_such_a_file_gets_one(tmp_path: Path) -> None:
    """At the start, when the journal meets the table's key; a sound journal without a pin ends the file."""
    with open_journal(tmp_path) as journal:
        journal.pin_service(PIN, KEY)
    (tmp_path / PIN_NAME).unlink()
    with open_or_salvage(tmp_path) as journal:
        journal.meet_with_key(KEY)
    assert b"name The KI\n" in (tmp_path / PIN_NAME).read_bytes()
    for each in tmp_path.glob("journal*"):
        each.unlink()
    with open_or_salvage(tmp_path) as journal:
        assert (journal.salvaged, journal.pin()) == (None, None)
        journal.meet_with_key(KEY)
    assert not (tmp_path / PIN_NAME).exists()


@pytest.mark.parametrize("harm", [b"", b"\xff" * 300, b"heek-ki-pin 1\n"])
def test_what_is_not_whole_is_not_believed(tmp_path: Path, harm: bytes) -> None:
    """An emptied or damaged file pins nothing, nor does one with a single byte changed."""
    with open_journal(tmp_path) as journal:
        journal.pin_service(PIN, KEY)
    file = tmp_path / PIN_NAME
    whole = file.read_bytes()
    file.write_bytes(harm or whole.replace(b"service 00", b"service 01"))
    emptied(tmp_path)
    with open_or_salvage(tmp_path) as journal:
        assert journal.pin() is None


def test_a_card_that_takes_no_pin_keeps_none_of_another_ki(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal's commit counts: rather no file than one that names the KI of before."""
    with open_journal(tmp_path) as journal:
        journal.pin_service(PIN, KEY)

        def full(*_: object) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("heek.journal.pin_file._write", full)
        journal.pin_service(OTHER, KEY)
        assert journal.pin() == OTHER
    assert not (tmp_path / PIN_NAME).exists()
