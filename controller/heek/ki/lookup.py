"""The addresses of a KI's name: looked up on threads of their own, and never waited for too long.

The system's resolver cannot be told to stop. So each look-up has a thread that nobody waits for, neither the
next request nor the end of the program; what comes back late is kept for the next request. As long as
`MOST_HANGING` of them hang no new one is begun: the resolver's own time-outs end them.

Where a name had addresses once they are used again when the resolver says nothing, or nothing in time: a
network whose name server has died can carry results all the same, and what answers there must still show
that it is the KI. The resolver reads its settings anew by itself (glibc since 2.26), so a table that was
started before its network needs no restart.

Addresses are tried one after the other, kinds by turns (RFC 8305, without its race), with the one that
worked last before all others: a black hole behind one kind costs a few seconds once, not each time.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any, Final, TypeAlias

from heek.errors import LinkError

MOST_HANGING: Final = 4
MOST_ADDRESSES: Final = 8
"""Of one name; no more are tried."""
PATIENCE_S: Final = 6.0
"""How long a look-up may take where older addresses are known: a packet to the name server may be lost."""
JOIN_S: Final = 10.0
"""A look-up that is younger is waited for instead of beginning another one."""

SocketAddress: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Address:
    """Where to connect to: a family of the socket module, and what `connect` takes."""

    family: int
    at: SocketAddress


def in_order(found: Sequence[Address], worked: Address | None) -> list[Address]:
    """Each address once, the kinds by turns as the resolver began, the one that worked last before all."""
    each_once = list(dict.fromkeys(found))
    if not each_once:
        return []
    first = [each for each in each_once if each.family == each_once[0].family]
    others = [each for each in each_once if each.family != each_once[0].family]
    by_turns = [each for each in chain(*zip_longest(first, others)) if each is not None]
    if worked in by_turns:
        by_turns.remove(worked)
        by_turns.insert(0, worked)
    return by_turns[:MOST_ADDRESSES]


class Lookup:
    """Finds addresses for one host, a name or an address; from one thread at a time."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._lock = threading.Lock()
        self._hanging = 0
        self._newest: Future[list[Address]] | None = None
        self._begun_at = 0.0
        self._known: list[Address] = []
        self._worked: Address | None = None

    def addresses(self, until: float) -> list[Address]:
        """One or more, the best first; waits until `until` (of `time.monotonic`) at most.

        Raises LinkError if none is found in time.
        """
        known = self._known
        patience = min(until, time.monotonic() + PATIENCE_S) if known else until
        try:
            found = self._look_up().result(max(patience - time.monotonic(), 0.0))
        except TimeoutError:
            if not known:
                raise LinkError(f"no address is found for {self._host} in time; {_HINT}") from None
            found = known
        except (OSError, UnicodeError):
            if not known:
                raise LinkError(f"no address is known for {self._host}; {_HINT}") from None
            found = known
        usable = [each for each in found if not ipaddress.ip_address(_bare(each)).is_unspecified]
        if not usable:
            raise LinkError(
                f"the name server says that {self._host} is {_bare(found[0])}, which is nowhere: "
                "something in the network blocks the name"
            )
        return in_order(usable, self._worked)

    def worked(self, address: Address) -> None:
        """The KI has answered there."""
        self._worked = address

    def _look_up(self) -> Future[list[Address]]:
        now = time.monotonic()
        newest = self._newest
        under_way = newest is not None and not newest.done()
        if newest is not None and under_way and (now - self._begun_at < JOIN_S or self._hangs_enough()):
            return newest
        answer: Future[list[Address]] = Future()
        self._newest, self._begun_at = answer, now
        with self._lock:
            self._hanging += 1
        threading.Thread(target=self._resolve, args=(answer,), name="heek-ki-name", daemon=True).start()
        return answer

    def _hangs_enough(self) -> bool:
        with self._lock:
            return self._hanging >= MOST_HANGING

    def _resolve(self, answer: Future[list[Address]]) -> None:
        """On a thread of its own."""
        try:
            found = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            addresses = [Address(family, at) for family, _, _, _, at in found if family in _FAMILIES]
            if not addresses:
                raise socket.gaierror(socket.EAI_NONAME, "no address")
            self._known = addresses
            answer.set_result(addresses)
        except Exception as error:
            answer.set_exception(error)
        finally:
            with self._lock:
                self._hanging -= 1


_FAMILIES: Final = (socket.AF_INET, socket.AF_INET6)
_HINT: Final = "is the network there?"


def _bare(address: Address) -> str:
    return str(address.at[0]).partition("%")[0]
