"""Where a server of ours listens, and what to do when it cannot.

`section` is the configuration's (`web`, `service`): messages name its `host` and `port`.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from typing import Final

BACKLOG: Final = 64


def listen(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen at every address of `host`, not blocking; at port 0 all at the same free one.

    One address of a name may be missing (no IPv6 here); one that somebody else has, or that is not allowed,
    may not. Raises OSError, or UnicodeError for a name that is none.
    """
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    first_error: OSError | None = None
    for family, kind, protocol, _, address in dict.fromkeys(found):
        at = (*address[:1], sockets[0].getsockname()[1] if sockets else port, *address[2:])
        each = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":
                # A server that was stopped a moment ago must find its own port free again.
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            each.bind(at)
            each.listen(BACKLOG)
            each.setblocking(False)
            sockets.append(each)
        except OSError as error:
            each.close()
            first_error = first_error or error
    if first_error is not None and (not sockets or first_error.errno in (errno.EADDRINUSE, errno.EACCES)):
        for each in sockets:
            each.close()
        raise first_error
    return sockets


def trouble(section: str, host: str, port: int, error: OSError | UnicodeError, other: str = "") -> str:
    """Why `listen` failed, and the remedy; `other` is what else may have the port: " (another KI?)"."""
    if isinstance(error, UnicodeError | socket.gaierror):
        return (
            f"{section}.host “{host}”: no such name is known here; give an address of this machine, "
            "for example 127.0.0.1"
        )
    where = f"{section}.host {host}, {section}.port {port}"
    if error.errno == errno.EADDRINUSE:
        return f"{where}: another program has this port; stop it{other}, or set another {section}.port"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{where}: this machine has no such address; use 127.0.0.1, or one that it has"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{where}: not allowed for this user; set a {section}.port of 1024 or more"
    return f"{where}: cannot be listened at ({error.strerror or error})"


def is_loopback(address: str) -> bool:
    """Is this the address of the machine itself?"""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_loopback


def is_wildcard(host: str) -> bool:
    """Does listening there mean to listen at every address of the machine?"""
    return host in ("", "0.0.0.0", "::")


def is_bare_address(name: str) -> bool:
    """An address, IPv6 in brackets or not: it cannot be bound anew to another machine, as a name can."""
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def bracketed(host: str) -> str:
    """A host as it stands in an address: IPv6 in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
