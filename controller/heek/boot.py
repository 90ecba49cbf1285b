"""What the operating system knows of this boot: its id, and whether the wall clock was ever set."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_SYNCHRONISED: Final = Path("/run/systemd/timesync/synchronized")
"""systemd-timesyncd makes this file when it has set the clock (systemd-timesyncd.service(8), "Files")."""


@dataclass(frozen=True, slots=True)
class Boot:
    """One start of the machine."""

    id: str
    """The same for every process until the machine starts again."""
    trust: str
    """How far the wall clock can be believed: `ntp`, or `none` on a Pi that nobody told the time."""


def this_boot() -> Boot:
    """Of the machine this runs on; where the kernel has no boot id, a new one for each process."""
    try:
        boot_id = _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        boot_id = str(uuid.uuid4())
    return Boot(boot_id, "ntp" if _SYNCHRONISED.exists() else "none")
