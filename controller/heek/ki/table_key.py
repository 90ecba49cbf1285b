"""The key by which a table signs: made at the first start, kept in the state folder for its owner alone.

The file holds the secret seed and the public key as hexadecimal text, so that a start which signs nothing
need not load the library that works one out from the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from heek.errors import KeyFileError
from heek.ki.envelope import key_id, public_key
from heek.ki.key_file import KeyFile, found, kept

FILE_NAME: Final = "table.key"
_FILE: Final = KeyFile(
    form=re.compile(r"heek-table-key 1\nsecret ([0-9a-f]{64})\npublic ([0-9a-f]{64})\n"),
    harm="whoever holds it can report as this table",
    loss="the KI will take this for another table",
)


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
    return _key(kept(state_dir / FILE_NAME, _FILE, lambda: _text(_drawn(new_seed))))


def unkept_key(state_dir: Path, new_seed: Callable[[], bytes]) -> tuple[TableKey, bool]:
    """The key of a state folder that cannot be written, and whether it stands there.

    One that does not is drawn all the same, so that results can be bound to it; nothing that it signs may be
    sent before `keep_key`. Raises KeyFileError as `table_key`.
    """
    there = found(state_dir / FILE_NAME, _FILE)
    return (_drawn(new_seed), False) if there is None else (_key(there), True)


def keep_key(state_dir: Path, key: TableKey) -> None:
    """Write a key that could not be when it was drawn; nothing happens if it stands there.

    Raises KeyFileError if it cannot be written, or another one stands there.
    """
    if _key(kept(state_dir / FILE_NAME, _FILE, lambda: _text(key))) != key:
        raise KeyFileError(
            f"{state_dir / FILE_NAME}: is another key than the table has had since its start; what is "
            "played is in memory alone: start the table anew when nobody plays"
        )


def _drawn(new_seed: Callable[[], bytes]) -> TableKey:
    seed = new_seed()
    return TableKey(seed, public_key(seed))


def _text(key: TableKey) -> str:
    return f"heek-table-key 1\nsecret {key.seed.hex()}\npublic {key.public.hex()}\n"


def _key(text: re.Match[str]) -> TableKey:
    return TableKey(bytes.fromhex(text[1]), bytes.fromhex(text[2]))


def key_if_any(state_dir: Path) -> TableKey | None:
    """The key of this state folder; None: the table's next start makes one. Raises KeyFileError like that."""
    there = found(state_dir / FILE_NAME, _FILE)
    return None if there is None else _key(there)
