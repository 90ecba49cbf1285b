"""Announces the KI in the local network (DNS-SD), for tables that were not told where it is.

The addresses of a machine come and go with its cables and its Wi-Fi. So they are looked at now and then, and
announced anew when they have changed. That nobody can be told is no reason to stop: tables that have an
address come all the same. The library `zeroconf` is imported only here, and only where a KI is announced.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from heek.ki.announcement import SERVICE_TYPE, Announcement, encode_announcement
from heek.serving.addresses import is_wildcard

if TYPE_CHECKING:
    from zeroconf.asyncio import AsyncZeroconf

log: Final = logging.getLogger("heek")

LOOK_S: Final = 10.0
"""How often the machine's addresses are looked at."""
GOODBYE_S: Final = 1.0
"""For taking an announcement back; whoever has not heard it finds nobody there."""


class Announcing:
    """The announcement of a KI that listens at `host` and `port`; `run` it on the loop until cancelled.

    `interfaces` gives the addresses to be announced; else those of `host`. Another `service_type` is for who
    wants to be alone in a network.
    """

    def __init__(
        self,
        host: str,
        port: int,
        announced: Announcement,
        interfaces: Callable[[], Sequence[str]] | None = None,
        service_type: str = SERVICE_TYPE,
    ) -> None:
        self._type = service_type
        self._port = port
        self._announced = announced
        self._interfaces = interfaces or (lambda: own_addresses(host))
        self._zeroconf: AsyncZeroconf | None = None
        self._saying: asyncio.Future[None] | None = None
        self._at: tuple[str, ...] = ()
        self._fails = False

    async def run(self) -> None:
        """Announce, and again whenever the addresses change; takes the announcement back at its end."""
        try:
            while True:
                now = tuple(await asyncio.to_thread(self._interfaces))
                if now != self._at:
                    await self._again(now)
                await asyncio.sleep(LOOK_S)
        finally:
            await self._take_back()

    async def _again(self, addresses: tuple[str, ...]) -> None:
        from zeroconf import Error
        from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

        await self._take_back()
        if not addresses:
            self._at = addresses
            return
        name = f"heek-{self._announced.key_id.hex()}"
        info = AsyncServiceInfo(
            self._type,
            f"{name}.{self._type}",
            port=self._port,
            properties=dict(encode_announcement(self._announced)),
            server=f"{name}.local.",
            parsed_addresses=list(addresses),
        )
        try:
            self._zeroconf = AsyncZeroconf(interfaces=list(addresses))
            said = await self._zeroconf.async_register_service(info, allow_name_change=True)
            # It says so three times over; that goes on beside us.
            self._saying = asyncio.ensure_future(said)
        except (OSError, Error, RuntimeError) as error:
            await self._take_back()
            if not self._fails:
                log.warning("the KI cannot be announced in the network (%s); ki.url finds it", error)
            self._fails = True
            return
        self._at, self._fails = addresses, False
        log.info("announced in the network at %s", ", ".join(addresses))

    async def _take_back(self) -> None:
        zeroconf, self._zeroconf = self._zeroconf, None
        self._at = ()
        if self._saying is not None:
            self._saying.cancel()
            await asyncio.wait([self._saying])
            self._saying = None
        if zeroconf is not None:
            with contextlib.suppress(OSError, TimeoutError, RuntimeError):
                async with asyncio.timeout(GOODBYE_S):
                    await zeroconf.async_unregister_all_services()
            with contextlib.suppress(OSError, TimeoutError, RuntimeError):
                async with asyncio.timeout(GOODBYE_S):
                    await zeroconf.async_close()


def own_addresses(host: str) -> list[str]:
    """Where other machines may reach a KI that listens at `host`: IPv4, in order, without loopback."""
    if not is_wildcard(host):
        try:
            found = [str(each[4][0]) for each in socket.getaddrinfo(host, None, socket.AF_INET)]
        except (OSError, UnicodeError):
            return []
    else:
        import ifaddr

        found = [
            str(each.ip) for one in ifaddr.get_adapters() for each in one.ips if isinstance(each.ip, str)
        ]
    parsed = {ipaddress.IPv4Address(each) for each in found}
    return [str(each) for each in sorted(parsed) if not each.is_loopback and not each.is_unspecified]
