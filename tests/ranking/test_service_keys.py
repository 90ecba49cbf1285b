"""The KI's two secrets: made once beside the ledger, for its user alone, and never replaced by themselves."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from heek.errors import KeyFileError
from heek.ki.envelope import key_id, public_key
from heek.ranking.service_keys import (
    OPERATOR_FILE,
    SERVICE_FILE,
    is_operator_key,
    operator_key,
    read_operator_key,
    service_key,
)
from tests.ranking.records import FakeTable
from tests.ranking.service import RunningKi

BOTH = [(SERVICE_FILE, service_key), (OPERATOR_FILE, operator_key)]


def test_the_service_signs_by_the_same_key_after_every_start(tmp_path: Path) -> None:
    """The first start makes it, mode 0600, beside the ledger; another ledger in its place changes nothing."""
    with RunningKi(tmp_path) as ki:
        first = ki.service.key
        folder = ki.database.parent
    assert (first.public, first.id) == (public_key(first.seed), key_id(first.public))
    assert stat.S_IMODE((folder / SERVICE_FILE).stat().st_mode) == 0o600
    assert first.seed.hex() not in repr(first)
    for file in (*folder.glob("ki.sqlite3*"), folder / "ki.kept"):
        file.unlink()
    with RunningKi(tmp_path) as ki:
        assert ki.service.key == first


def test_the_operators_word_is_made_once(tmp_path: Path) -> None:
    """It is random, stays the same, and is one that nobody guesses by parts of it."""
    with pytest.raises(KeyFileError, match=r"operator\.key: is not there; start the KI once"):
        read_operator_key(tmp_path)
    word = operator_key(tmp_path)
    assert operator_key(tmp_path) == read_operator_key(tmp_path) == word
    assert stat.S_IMODE((tmp_path / OPERATOR_FILE).stat().st_mode) == 0o600
    other = tmp_path / "other"
    other.mkdir()
    assert operator_key(other) != word
    assert is_operator_key(f" {word}\n", word)
    line = (tmp_path / OPERATOR_FILE).read_text().splitlines()[1]
    assert line != word
    assert is_operator_key(f"{line}\n", word)
    assert not any(is_operator_key(each, word) for each in ("", word[:-1], word + "a", "é" * 32))


@pytest.mark.parametrize(("name", "read"), BOTH, ids=[SERVICE_FILE, OPERATOR_FILE])
def test_a_secret_that_cannot_be_trusted_is_refused(
    tmp_path: Path, name: str, read: Callable[[Path], object]
) -> None:
    """Open to others, emptied or damaged: the file is named with the remedy, and left as it is."""
    read(tmp_path)
    file = tmp_path / name
    file.chmod(0o640)
    with pytest.raises(KeyFileError, match=rf"{name}: others may read it \(mode 0640\).*chmod 600"):
        read(tmp_path)
    file.chmod(0o600)
    for text in ("", "\0" * 100, file.read_text()[:-2]):
        file.write_text(text)
        with pytest.raises(KeyFileError, match=rf"{name}: is damaged; bring it back"):
            read(tmp_path)
        assert file.read_text() == text


def test_a_ki_without_its_key_does_not_start(tmp_path: Path) -> None:
    """A damaged key ends the start with one line, and the ledger is free for the next."""
    with RunningKi(tmp_path) as ki:
        file = ki.database.parent / SERVICE_FILE
    right = file.read_text()
    file.write_text("")
    with pytest.raises(KeyFileError, match="every table must then be enrolled anew"):
        RunningKi(tmp_path)
    file.write_text(right)
    RunningKi(tmp_path).close()


def test_a_key_that_is_gone_is_missed(tmp_path: Path) -> None:
    """Its tables take nobody else's word: none is made in silence, one is on purpose."""
    with RunningKi(tmp_path) as ki:
        file = ki.database.parent / SERVICE_FILE
    file.unlink()
    with RunningKi(tmp_path) as ki:
        ki.introduce(FakeTable())
    text = file.read_text()
    file.unlink()
    with pytest.raises(
        KeyFileError, match=r"service\.key: is gone, and .*bring it back.*once with --new-key"
    ):
        RunningKi(tmp_path)
    assert not file.exists()
    with RunningKi(tmp_path, new_key=True) as ki:
        assert file.read_text() != text
    with RunningKi(tmp_path, new_key=True) as again:
        assert again.service.key == ki.service.key
