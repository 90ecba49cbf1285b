"""What a link to the KI is: it carries a request there and brings the answer back, or says why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol

ANSWER_FRAME: Final = 32
"""The serial frame type of every answer."""

MOST_ASKED: Final = 2
"""Questions that may be under way at once on a serial line; their answers come in the same order. With two of
them the wire carries the next one while the KI answers the first."""

CONTENT_TYPE: Final = "application/cbor"
"""Of requests and answers over HTTP; an answer of another type is not the KI's."""

MOST_ANSWER_BYTES: Final = 1 << 20
"""An answer that is larger is not the KI's."""


class Request(Enum):
    """What a table may ask; over HTTP by path, over serial by frame type."""

    RECORDS = ("/v1/records", 16)
    TABLE = ("/v1/tables", 17)
    PLAYER = ("/v1/demo/players", 18)
    CLAIM = ("/v1/claims", 19)
    SYNC = ("/v1/sync", 20)

    def __init__(self, path: str, frame_type: int) -> None:
        self.path = path
        self.frame_type = frame_type


@dataclass(frozen=True, slots=True)
class LinkStatus:
    """How a link is, for the page."""

    up: bool
    text: str
    """A few words: "up", "no answer from 127.0.0.1:8625", "port missing: /dev/serial0"."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """What has been counted since the start, by name."""


class Link(Protocol):
    """One way to the KI. Belongs to the loop it was made on."""

    pinned: bytes | None
    """The public key (32 bytes) of the KI that the table is enrolled at, for links that can look at it before
    they say anything; None: at none yet."""

    async def ask(self, request: Request, body: bytes) -> bytes:
        """The KI's answer, as CBOR that says it is the KI's.

        Raises LinkError when there is none in time, or what answered is not the KI.
        """

    def status(self) -> LinkStatus:
        """How it stands, without asking anybody."""

    async def close(self) -> None:
        """Let go of it; what is under way ends with LinkError."""
