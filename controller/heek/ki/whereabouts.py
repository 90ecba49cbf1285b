"""Where a KI is: what a configured address says, with its name looked up anew for each question."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Protocol

from heek.ki.lookup import Address, Lookup

_URL: Final = re.compile(r"(https?)://([0-9A-Za-z._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?/?")


@dataclass(frozen=True, slots=True)
class Place:
    """Where to ask."""

    where: str
    """As people and the `Host` header write it: HOST:PORT, IPv6 in brackets."""
    tls: bool
    addresses: tuple[Address, ...]
    """The best first; never empty."""
    name: str = ""
    """Of a KI that was found in the network; empty where it was configured."""


class Whereabouts(Protocol):
    """How the KI is found. Asked on a thread, by one question at a time."""

    @property
    def where(self) -> str:
        """In words, for messages, before and without looking."""

    def find(self, until: float, pinned: bytes | None) -> Place:
        """The place to ask, looked for until `until` (of `time.monotonic`) at most.

        `pinned` is the public key of the KI that this table is enrolled at, None before. Raises LinkError.
        """

    def worked(self, address: Address) -> None:
        """The KI has answered at this address."""

    def failed(self) -> None:
        """Nobody has, where we were told to ask."""

    def close(self) -> None:
        """Look no longer; from another thread than `find` is on."""


class Configured:
    """A KI at `http://HOST:PORT` or `https://HOST:PORT`; raises ValueError if that is none."""

    def __init__(self, url: str) -> None:
        match = _URL.fullmatch(url)
        if match is None or not 0 < int(match[3] or 80) < 65536:
            raise ValueError(f"{url!r} is not like http://HOST:PORT or https://HOST:PORT")
        self._tls = match[1] == "https"
        port = int(match[3] or (443 if self._tls else 80))
        self._where = f"{match[2]}:{port}"
        self._lookup = Lookup(match[2].removeprefix("[").removesuffix("]"), port)

    @property
    def where(self) -> str:
        return self._where

    def find(self, until: float, pinned: bytes | None) -> Place:  # noqa: ARG002
        return Place(self._where, self._tls, tuple(self._lookup.addresses(until)))

    def worked(self, address: Address) -> None:
        self._lookup.worked(address)

    def failed(self) -> None:
        """Nothing to forget: the name is looked up each time."""

    def close(self) -> None:
        """Nothing to let go of: a look-up that hangs holds nobody up."""
