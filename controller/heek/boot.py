"""What the operating system knows of this boot: its id, and whether the wall clock was ever set."""

from __future__ import annotations

import struct
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_SYNCHRONISED: Final = Path("/run/systemd/timesync/synchronized")
"""systemd-timesyncd makes this file when it has set the clock (systemd-timesyncd.service(8), "Files")."""
_TIMEX: Final = struct.Struct("@Illlli")
"""The beginning of `struct timex` (adjtimex(2)): the last of these six is the status."""
_TIMEX_BYTES: Final = 512
"""More than it has anywhere."""
_STA_UNSYNC: Final = 0x40
_TIME_ERROR: Final = 5
_SAVED: Final = (Path("/var/lib/systemd/timesync/clock"), Path("/etc/fake-hwclock.data"))
"""Their age is when the clock was saved last; a start without a network begins from there."""
_FROM_RTC: Final = Path("/sys/class/rtc/rtc0/hctosys")
"""Says 1 if the kernel took the time from a clock with a battery at this start."""


@dataclass(frozen=True, slots=True)
class Boot:
    """One start of the machine."""

    id: str
    """The same for every process until the machine starts again."""
    trust: str
    """How far the wall clock could be believed at the start (`wall_trust`)."""


def this_boot() -> Boot:
    """Of the machine this runs on; where the kernel has no boot id, a new one for each process."""
    try:
        boot_id = _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        boot_id = str(uuid.uuid4())
    return Boot(boot_id, wall_trust())


def wall_trust(wall_s: Callable[[], float] = time.time) -> str:
    """How far the system's wall clock can be believed now.

    `ntp`: it was set over the network in this start. `saved`: it goes on from a time that was saved, or from
    a clock with a battery. `none`: nobody told it the time, or it stands before the time that was saved.
    """
    if is_synchronised():
        return "ntp"
    saved = [age for age in map(_age, _SAVED) if age is not None]
    if saved:
        return "saved" if max(saved) <= wall_s() else "none"
    try:
        return "saved" if _FROM_RTC.read_text(encoding="ascii").strip() == "1" else "none"
    except (OSError, ValueError):
        return "none"


def is_synchronised() -> bool:
    """Whether the system clock was set over the network in this start.

    systemd-timesyncd leaves a mark; chrony (with `rtcsync`, as Debian has it), ntpd and others tell the
    kernel. That forgets it some nine hours after the last time that they heard of the network.
    """
    return _SYNCHRONISED.exists() or kernel_says_so()


def kernel_says_so() -> bool:
    """Whether somebody has told the kernel that its clock goes by the network."""
    kernel = _adjtimex()
    if kernel is None:
        return False
    state, status = kernel
    return 0 <= state < _TIME_ERROR and not status & _STA_UNSYNC


def _adjtimex() -> tuple[int, int] | None:
    """State (below 0 where it is not allowed) and status of the kernel's clock; None where there is none."""
    if sys.platform != "linux":
        return None
    import ctypes

    # All zeros: nothing is to be changed.
    timex = ctypes.create_string_buffer(_TIMEX_BYTES)
    try:
        state = int(ctypes.CDLL(None).adjtimex(timex))
    except (OSError, AttributeError):
        return None
    return state, int(_TIMEX.unpack_from(timex.raw)[-1])


def _age(file: Path) -> float | None:
    try:
        return file.stat().st_mtime
    except OSError:
        return None
