"""What a KI says of itself in the local network (DNS-SD), and which of several a table takes.

Anybody in the network can announce anything. A table that is enrolled takes only who announces the key that
it has pinned, and even that is no more than a hint where to ask: the KI's signature, and over TLS its key,
prove who answers. A table that is enrolled nowhere takes the first that it finds, says which, and shows the
code by which an operator enrols it there or not.

The service type is `_heek-ki._tcp`; the port is that of HTTP. In the TXT record: `v` 1, `key` (the key id as
16 hexadecimal digits), `name`, and `tls` (a port) where the KI listens with TLS besides, which goes first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from heek.ki.envelope import KEY_ID_BYTES

SERVICE_TYPE: Final = "_heek-ki._tcp.local."
VERSION: Final = "1"
MOST_NAME: Final = 24
"""Characters, as of every name that a KI may have."""

_KEY: Final = re.compile(f"[0-9a-f]{{{2 * KEY_ID_BYTES}}}")


@dataclass(frozen=True, slots=True)
class Announcement:
    """One KI, as it announces itself."""

    key_id: bytes
    name: str
    tls_port: int | None = None
    """None: it has no TLS."""


def encode_announcement(announced: Announcement) -> dict[str, str]:
    """The TXT record."""
    text = {"v": VERSION, "key": announced.key_id.hex(), "name": announced.name}
    if announced.tls_port is not None:
        text["tls"] = str(announced.tls_port)
    return text


def read_announcement(text: Mapping[bytes, bytes | None]) -> Announcement | None:
    """What a TXT record says; None if it is no KI's of a version that we know, or nonsense."""
    values: dict[str, str] = {}
    for key, value in text.items():
        try:
            values[key.decode("ascii")] = "" if value is None else value.decode()
        except UnicodeDecodeError:
            continue
    key_id, name, tls = values.get("key", ""), values.get("name", ""), values.get("tls")
    if values.get("v") != VERSION or not _KEY.fullmatch(key_id):
        return None
    if not 0 < len(name) <= MOST_NAME or not name.isprintable():
        return None
    if tls is not None and not (tls.isascii() and tls.isdigit() and len(tls) <= 5 and 0 < int(tls) < 65536):
        return None
    return Announcement(bytes.fromhex(key_id), name, None if tls is None else int(tls))
