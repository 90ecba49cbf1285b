"""A secret in a file of its own: made once, for its owner alone, and never replaced by itself.

Whoever keeps a secret says what its text looks like (`KeyFile`); how it comes onto the disk whole or not at
all, and when a file is not to be trusted, is the same for all of them.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from heek.durable import sync_folder, write_all
from heek.errors import KeyFileError

_MOST_BYTES = 1024


@dataclass(frozen=True, slots=True)
class KeyFile:
    """What a file with a secret holds, and what people are told when something is wrong with it."""

    form: re.Pattern[str]
    """All of its text."""
    harm: str
    """What others can do who may read it, after "others may read it, and "."""
    loss: str
    """What it means to begin with a new one, in brackets."""


def kept(file: Path, what: KeyFile, make: Callable[[], str]) -> re.Match[str]:
    """The text of this file, matched with its form; made from `make()` if there is none yet.

    Raises KeyFileError, with what to do, if the file is not ours to trust: damaged, emptied, open to others.
    """
    try:
        return _read(file, what)
    except FileNotFoundError:
        pass
    except OSError as error:
        if isinstance(error, KeyFileError):
            raise
        raise KeyFileError(
            f"{file}: cannot be read ({error.strerror}); give it to the user who runs heek"
        ) from None
    text = make()
    found = what.form.fullmatch(text)
    assert found is not None
    try:
        _write(file, text)
    except OSError as error:
        raise KeyFileError(
            f"{file}: cannot be made ({error.strerror}); make room on the card, or give the folder "
            "to the user who runs heek"
        ) from None
    return found


def _read(file: Path, what: KeyFile) -> re.Match[str]:
    with file.open("rb") as opened:
        mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
        text = opened.read(_MOST_BYTES).decode("ascii", "replace")
    if mode & 0o077:
        raise KeyFileError(
            f"{file}: others may read it (mode {mode:04o}), and {what.harm}; if nobody has, chmod 600 {file}"
        )
    match = what.form.fullmatch(text)
    if match is None:
        raise KeyFileError(
            f"{file}: is damaged; bring it back from a copy, or move it aside to begin with a new key "
            f"({what.loss})"
        )
    return match


def _write(file: Path, text: str) -> None:
    # Under another name first: a cut in between must not leave half a key.
    draft = file.with_name(f".{file.name}-{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        try:
            write_all(handle, text.encode())
            os.fsync(handle)
        finally:
            os.close(handle)
        draft.rename(file)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    sync_folder(file.parent)
