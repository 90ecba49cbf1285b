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

from heek.ki.envelope import key_id, public_key
from heek.ki.key_file import KeyFile, kept

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

    def made() -> str:
        seed = new_seed()
        return f"heek-table-key 1\nsecret {seed.hex()}\npublic {public_key(seed).hex()}\n"

    found = kept(state_dir / FILE_NAME, _FILE, made)
    return TableKey(bytes.fromhex(found[1]), bytes.fromhex(found[2]))


def key_if_any(state_dir: Path) -> TableKey | None:
    """The key of this state folder; None: the table's next start makes one. Raises KeyFileError like that."""

    def never() -> bytes:
        raise _NoKey

    try:
        return table_key(state_dir, never)
    except _NoKey:
        return None


class _NoKey(Exception):
    """There is none, and none is made."""
