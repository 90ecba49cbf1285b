"""The table's key: made once, for its owner alone, and never replaced by itself."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from heek.errors import KeyFileError
from heek.ki.envelope import key_id, public_key
from heek.ki.table_key import FILE_NAME, table_key


def seeds() -> bytes:
    return bytes(range(32))


def never() -> bytes:
    raise AssertionError("there is a key already")


def test_a_key_is_made_once_and_read_ever_after(tmp_path: Path) -> None:
    """The first start makes it, mode 0600; the next one reads the same; nothing else is left lying."""
    made = table_key(tmp_path, seeds)
    assert (made.seed, made.public, made.id) == (seeds(), public_key(seeds()), key_id(public_key(seeds())))
    assert table_key(tmp_path, never) == made
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == [FILE_NAME]
    assert made.seed.hex() not in repr(made)


@pytest.mark.parametrize("text", ["", "heek-table-key 1\nsecret 00\n", "\0" * 200, "x" * 5000])
def test_a_damaged_key_stays_as_it_is(tmp_path: Path, text: str) -> None:
    """What waits is bound to the key, so a file that is emptied or broken is named and left alone."""
    file = tmp_path / FILE_NAME
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(KeyFileError, match=r"table.key: is damaged; bring it back"):
        table_key(tmp_path, never)
    assert file.read_text() == text


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    """Whoever can read it can report as this table; the remedy is named."""
    table_key(tmp_path, seeds)
    (tmp_path / FILE_NAME).chmod(0o644)
    with pytest.raises(KeyFileError, match=r"mode 0644.*chmod 600"):
        table_key(tmp_path, never)


def test_a_folder_that_cannot_hold_it_is_named(tmp_path: Path) -> None:
    """No folder, no key, and nothing half-made."""
    with pytest.raises(KeyFileError, match="cannot be made"):
        table_key(tmp_path / "gone", seeds)
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(KeyFileError, match="cannot be read"):
        table_key(tmp_path, never)
