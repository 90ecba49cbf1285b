"""The pretended OLED's wire, as a logic analyser has it: each message with its time, and the plug to pull."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Final

from PIL import Image

from heek.clock import MILLISECOND
from tests.virtual_pi.panel_controller import PanelController

DEVICE: Final = Path("/dev/table-panel")
KNOBS: Final = Path("/sys/module/table_panel/parameters")
_HEAD: Final = struct.Struct("=QHH")

REST: Final = 60 * MILLISECOND
"""A wire that was silent for so long has brought a whole picture; its messages follow within a few ms."""


class Happened(Enum):
    """What a record of the wire tells; the values are the module's."""

    WRITTEN = 0
    PULLED = 1
    PLUGGED = 2


@dataclass(frozen=True, slots=True)
class Record:
    """One thing that happened on the wire."""

    at_ns: int
    """CLOCK_MONOTONIC."""
    what: Happened
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture that stood on the panel from `since_ns` on."""

    since_ns: int
    image: Image.Image


def records(data: bytes) -> list[Record]:
    """The records in what the module's device gave; raises ValueError if they are not whole."""
    found, place = [], 0
    while place < len(data):
        try:
            at_ns, kind, length = _HEAD.unpack_from(data, place)
        except struct.error:
            raise ValueError(f"half a record at byte {place} of {len(data)}") from None
        place += _HEAD.size
        if place + length > len(data):
            raise ValueError(f"a record of {length} bytes is cut short")
        found.append(Record(at_ns, Happened(kind), data[place : place + length]))
        place += length
    return found


def pictures(wire: list[Record], driver: str) -> Iterator[Shown]:
    """Every picture at which the wire came to rest, in order; equal ones in a row count once."""
    controller = PanelController(driver)
    last: bytes | None = None
    for record, following in zip(wire, [*wire[1:], None], strict=True):
        if record.what is Happened.WRITTEN:
            controller.take(record.data)
        else:
            # Dark without power, and with it again until somebody initialises it.
            controller.lose_power()
        if following is None or following.at_ns - record.at_ns >= REST:
            image = controller.picture()
            if image.tobytes() != last:
                last = image.tobytes()
                yield Shown(record.at_ns, image)


class PanelWire:
    """The module's doors. What was said before it was opened is thrown away; `log` keeps the rest."""

    def __init__(self) -> None:
        self._door = os.open(DEVICE, os.O_RDONLY | os.O_NONBLOCK)
        self.log: list[Record] = []
        self.restore()
        self._read()

    def restore(self) -> None:
        """The panel as it should be: plugged, at 0x3c, on a bus without trouble and without delay."""
        self.turn("plugged", 1)
        for name, value in (("fault", 0), ("hz", 0), ("address", 0x3C)):
            self.turn(name, value)

    def turn(self, knob: str, value: int) -> None:
        """Set a parameter of the module: `plugged`, `fault` (an errno), `hz`, `address`."""
        (KNOBS / knob).write_text(str(value))

    def pull(self) -> None:
        """Take the panel off its cable: no power, no answer."""
        self.turn("plugged", 0)

    def plug(self) -> None:
        """Put it back: it answers, and knows nothing of what it was told before."""
        self.turn("plugged", 1)

    @property
    def lost(self) -> int:
        """Records for which the module had no room; anything but 0 makes the log worthless."""
        return int((KNOBS / "lost").read_text())

    def take(self) -> list[Record]:
        """What happened since the last call; `log` gets it too."""
        news = records(self._read())
        self.log += news
        return news

    def close(self) -> None:
        os.close(self._door)

    def __enter__(self) -> PanelWire:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()
        self.close()

    def _read(self) -> bytes:
        data = b""
        while more := os.read(self._door, 1 << 20):
            data += more
        return data
