"""Finds a KI that announces itself in the local network (DNS-SD over multicast DNS).

It looks when there is somebody to ask and nobody is known, and not before or after: sockets and thread of
the library `zeroconf` live as long as one look. It is imported only where it is used. What was found
is kept until nobody answers there.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import socket
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from heek.errors import LinkError
from heek.ki.announcement import SERVICE_TYPE, Announcement, read_announcement
from heek.ki.envelope import key_id
from heek.ki.lookup import Address, in_order
from heek.ki.whereabouts import Place

if TYPE_CHECKING:
    from zeroconf import ServiceInfo, Zeroconf

log: Final = logging.getLogger("heek")

LOOK_S: Final = 8.0
"""A look takes no longer; most of them end with the first announcement."""
RESOLVE_S: Final = 3.0
"""For where one of them is."""
NAMED: Final = 3
"""Of the KIs that were found and not taken, so many are named."""

_Kept = tuple[Announcement, Place]


class Discovered:
    """The KI that is found in the network.

    `interfaces` are addresses of this machine to look from; None: all it has. Another `service_type` is for
    who wants to be alone in a network.
    """

    def __init__(self, interfaces: Sequence[str] | None = None, service_type: str = SERVICE_TYPE) -> None:
        self._interfaces = interfaces
        self._type = service_type
        self._found: _Kept | None = None
        self._told = ""
        self._worked: Address | None = None
        self._names: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._closed = False

    @property
    def where(self) -> str:
        found = self._found
        return "the KI in this network" if found is None else found[1].where

    def find(self, until: float, pinned: bytes | None) -> Place:
        wanted = None if pinned is None else key_id(pinned)
        if self._found is None or (wanted is not None and self._found[0].key_id != wanted):
            self._found = self._look(min(until, time.monotonic() + LOOK_S), wanted)
            announced, place = self._found
            words = f"{announced.name} at {place.where} (key {announced.key_id.hex()})"
            if words != self._told:
                self._told = words
                log.info("a KI is found in the network: %s", words)
        return self._found[1]

    def worked(self, address: Address) -> None:
        self._worked = address

    def failed(self) -> None:
        self._found = None

    def close(self) -> None:
        self._closed = True
        self._names.put(None)

    def _look(self, until: float, wanted: bytes | None) -> _Kept:
        from zeroconf import Error, InterfaceChoice, ServiceBrowser, Zeroconf

        names: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._names = names
        if self._closed:
            raise LinkError("the link is closed")
        others: list[str] = []
        try:
            zeroconf = Zeroconf(interfaces=self._interfaces or InterfaceChoice.All)
        except (OSError, Error) as error:
            words = getattr(error, "strerror", None) or error
            raise LinkError(f"no KI can be looked for ({words}); is the network there?") from None
        try:
            # On the library's thread, which must not wait: where a name leads to is asked on ours.
            handlers = [lambda name, **_: names.put(name)]
            browser = ServiceBrowser(zeroconf, self._type, handlers)
            try:
                found = self._first(zeroconf, names, until, wanted, others)
            finally:
                browser.cancel()
        except (OSError, Error) as error:
            if isinstance(error, LinkError):
                raise
            raise LinkError(f"looking for a KI failed ({error}); is the network there?") from None
        finally:
            with contextlib.suppress(OSError):
                zeroconf.close()
        if found is None:
            raise LinkError(_nobody(wanted, others))
        return found

    def _first(
        self,
        zeroconf: Zeroconf,
        names: queue.SimpleQueue[str | None],
        until: float,
        wanted: bytes | None,
        others: list[str],
    ) -> _Kept | None:
        """The first KI that will do, None if there is none in time; `others` gets those that will not."""
        while (left := until - time.monotonic()) > 0:
            try:
                name = names.get(timeout=left)
            except queue.Empty:
                return None
            if name is None:
                raise LinkError("the link is closed")
            patience_ms = round(1000 * min(RESOLVE_S, max(until - time.monotonic(), 0.1)))
            info = zeroconf.get_service_info(self._type, name, timeout=patience_ms)
            kept = None if info is None else self._read(info)
            if kept is None:
                continue
            if wanted is None or kept[0].key_id == wanted:
                return kept
            others.append(f"{kept[0].name} (key {kept[0].key_id.hex()})")
        return None

    def _read(self, info: ServiceInfo) -> _Kept | None:
        announced = read_announcement(info.properties)
        if announced is None or not info.port:
            return None
        port = announced.tls_port or info.port
        addresses = [each for text in info.parsed_scoped_addresses() for each in _addresses(text, port)]
        if not addresses:
            return None
        addresses = in_order(sorted(addresses, key=lambda each: each.family != socket.AF_INET), self._worked)
        host = str(addresses[0].at[0]).partition("%")[0]
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return announced, Place(where, announced.tls_port is not None, tuple(addresses), announced.name)


def _addresses(text: str, port: int) -> list[Address]:
    """An address in digits as what `connect` takes; nothing if it is none, or is nowhere."""
    try:
        found = socket.getaddrinfo(
            text, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        )
    except (OSError, UnicodeError):
        return []
    return [Address(family, at) for family, _, _, _, at in found if str(at[0]) not in ("0.0.0.0", "::")]


def _nobody(wanted: bytes | None, others: Sequence[str]) -> str:
    if wanted is None:
        return (
            "no KI announces itself in this network; is it running (heek ki serve --host 0.0.0.0)? "
            "Or say where it is: ki.url"
        )
    shown = "; found instead: " + ", ".join(sorted(set(others))[:NAMED]) if others else ""
    return (
        f"the KI that this table is enrolled at (key {wanted.hex()}) does not announce itself in this "
        f"network{shown}; is it running?"
    )
