"""The KI's two secrets, in files beside its ledger: the key that it signs by, and the operator's word.

`service.key` is what a table pins when it is enrolled. It does not stand in the ledger, so that a ledger that
is brought back from a copy is still the same KI, and a ledger that is given away gives no key away. Tables
that are enrolled take nobody else's word, so it belongs into the backup.

`operator.key` is one random word. Whoever can read it, and asks from this machine, is the operator.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from heek.errors import KeyFileError
from heek.ki.envelope import key_id, public_key
from heek.ki.key_file import KeyFile, kept

SERVICE_FILE: Final = "service.key"
OPERATOR_FILE: Final = "operator.key"

_SERVICE: Final = KeyFile(
    form=re.compile(r"heek-service-key 1\nsecret ([0-9a-f]{64})\npublic ([0-9a-f]{64})\n"),
    harm="whoever holds it can speak to the tables as this KI",
    loss="every table must then be enrolled anew, each with heek enrol --again",
)
_OPERATOR: Final = KeyFile(
    form=re.compile(r"heek-operator-key 1\nsecret ([a-z2-7]{32})\n"),
    harm="whoever holds it can void matches and enrol tables on this machine",
    loss="nothing else depends on it",
)
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz234567"
_WORD_LETTERS: Final = 32


@dataclass(frozen=True, slots=True)
class ServiceKey:
    """The KI's Ed25519 key pair; `seed` is secret and never shown."""

    seed: bytes
    public: bytes

    @property
    def id(self) -> bytes:
        """The key id: 8 bytes."""
        return key_id(self.public)

    def __repr__(self) -> str:
        return f"ServiceKey({self.id.hex()})"


def service_key(
    folder: Path,
    new_seed: Callable[[], bytes] = lambda: secrets.token_bytes(32),
    *,
    must_be_there: bool = False,
) -> ServiceKey:
    """The key of the KI whose ledger is in this folder; made if there is none yet.

    Raises KeyFileError, also if there is none though tables know one already (`must_be_there`).
    """

    def made() -> str:
        if must_be_there:
            raise KeyFileError(
                f"{folder / SERVICE_FILE}: is gone, and the ledger's tables know the KI by it; bring it back "
                "from a copy, or, to begin with a new key on purpose, start it once with --new-key "
                f"({_SERVICE.loss})"
            )
        seed = new_seed()
        return f"heek-service-key 1\nsecret {seed.hex()}\npublic {public_key(seed).hex()}\n"

    return _service(folder, made)


def read_service_key(folder: Path) -> ServiceKey:
    """The same for whoever looks the KI up; raises KeyFileError if there is none yet."""

    def none() -> str:
        raise KeyFileError(
            f"{folder / SERVICE_FILE}: is not there; start the KI once (heek ki serve), or say which "
            "KI it is (another --config, or --url and --key)"
        )

    return _service(folder, none)


def operator_key(folder: Path) -> str:
    """The operator's word for the KI whose ledger is in this folder; made if there is none yet.

    Raises KeyFileError.
    """
    return _word(folder, lambda: "".join(secrets.choice(_LETTERS) for _ in range(_WORD_LETTERS)))


def read_operator_key(folder: Path) -> str:
    """The same for whoever wants to be the operator; raises KeyFileError if there is none yet."""

    def none() -> str:
        raise KeyFileError(
            f"{folder / OPERATOR_FILE}: is not there; start the KI once (heek ki serve), or say where its "
            "ledger is (--config or --database)"
        )

    return _word(folder, none)


def is_operator_key(given: str, right: str) -> bool:
    """Whether somebody has shown the operator's word, or its line as it stands in the file.

    It takes as long for every wrong one.
    """
    word = given.strip().removeprefix("secret ").strip()
    return hmac.compare_digest(word.encode(), right.encode())


def _service(folder: Path, make: Callable[[], str]) -> ServiceKey:
    found = kept(folder / SERVICE_FILE, _SERVICE, make)
    return ServiceKey(bytes.fromhex(found[1]), bytes.fromhex(found[2]))


def _word(folder: Path, make: Callable[[], str]) -> str:
    return kept(folder / OPERATOR_FILE, _OPERATOR, lambda: f"heek-operator-key 1\nsecret {make()}\n")[1]
