"""The key by which a table signs: made at the first start, kept in the state folder for its owner alone.

The file holds the secret seed and the public key as hexadecimal text, so that a start which signs nothing
need not load the library that works one out from the other.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from heek.errors import KeyFileError
from heek.ki.envelope import key_id, public_key

FILE_NAME: Final = "table.key"
_FORM: Final = re.compile(r"heek-table-key 1\nsecret ([0-9a-f]{64})\npublic ([0-9a-f]{64})\n")


@dataclass(frozen=True, slots=True)
class TableKey:
    """An Ed25519 key pair; `seed` is secret and never shown."""

    seed: bytes
    public: bytes

    @property
    def id(self) -> bytes:
        """The key id: 8 bytes."""
        return key_id(self.public)

    def __repr__(self) -> str:
        return f"TableKey({self.id.hex()})"


def table_key(state_dir: Path, new_seed: Callable[[], bytes]) -> TableKey:
    """The key of this state folder; made from `new_seed()` (32 random bytes) if there is none yet.

    Raises KeyFileError, with what to do, if the file is not ours to trust: damaged, emptied, open to others.
    A damaged key is never replaced by itself, because results that wait are already bound to it.
    """
    file = state_dir / FILE_NAME
    try:
        return _read(file)
    except FileNotFoundError:
        pass
    except OSError as error:
        if isinstance(error, KeyFileError):
            raise
        raise KeyFileError(
            f"{file}: cannot be read ({error.strerror}); give it to the user who runs heek"
        ) from None
    seed = new_seed()
    key = TableKey(seed, public_key(seed))
    try:
        _write(file, key)
    except OSError as error:
        raise KeyFileError(
            f"{file}: cannot be made ({error.strerror}); make room on the card, or give the folder "
            "to the user who runs heek"
        ) from None
    return key


def _read(file: Path) -> TableKey:
    with file.open("rb") as opened:
        mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
        text = opened.read(1024).decode("ascii", "replace")
    if mode & 0o077:
        raise KeyFileError(
            f"{file}: others may read it (mode {mode:04o}), and whoever holds it can report as this table; "
            f"if nobody has, chmod 600 {file}"
        )
    match = _FORM.fullmatch(text)
    if match is None:
        raise KeyFileError(
            f"{file}: is damaged; bring it back from a copy, or move it aside to begin with a new key "
            "(the KI will take this for another table)"
        )
    return TableKey(bytes.fromhex(match[1]), bytes.fromhex(match[2]))


def _write(file: Path, key: TableKey) -> None:
    # Under another name first: a cut in between must not leave half a key.
    draft = file.with_name(f".{FILE_NAME}-{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        try:
            os.write(
                handle, f"heek-table-key 1\nsecret {key.seed.hex()}\npublic {key.public.hex()}\n".encode()
            )
            os.fsync(handle)
        finally:
            os.close(handle)
        draft.rename(file)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    with contextlib.suppress(OSError):
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
