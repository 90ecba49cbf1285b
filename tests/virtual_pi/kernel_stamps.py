"""When the kernel took each edge, told by the kernel itself: its own trace of interrupts, on CLOCK_MONOTONIC.

An edge's stamp is made in the handler of its interrupt, and the trace writes down that handler's beginning,
some 20 us before, to the microsecond. So what a program says of an edge can be held against something that
neither the program nor its library has touched. An edge of a line that nobody listens to makes no interrupt.

The event is switched on once and for good, and only whether it is written down changes. To
switch it, the kernel changes its own code while both processors run it; where each story did that, both of
the emulator's processors hung in two of six runs.
"""

from __future__ import annotations

import bisect
import re
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Final

TRACEFS: Final = Path("/sys/kernel/tracing")
CONSUMER: Final = "lg"
"""As which lgpio, and with it rpi-lgpio, asks for a line."""

NEAR_NS: Final = 50_000
"""A stamp's microseconds are cut off, and the handler runs at once."""

_ENTRY: Final = re.compile(r"\s(\d+)\.(\d{6}): irq_handler_entry: ")


class KernelStamps:
    """The edges that the kernel takes for lgpio while this is open."""

    def __init__(self) -> None:
        if not (TRACEFS / "trace").exists():
            subprocess.run(["mount", "-t", "tracefs", "none", str(TRACEFS)], check=True)
        event = TRACEFS / "events" / "irq" / "irq_handler_entry"
        if (event / "enable").read_text().strip() != "1":
            (event / "enable").write_text("1")
        (TRACEFS / "trace_clock").write_text("mono")
        (event / "filter").write_text(f'name == "{CONSUMER}"')
        (TRACEFS / "trace").write_text("")
        (TRACEFS / "tracing_on").write_text("1")

    def all(self) -> list[int]:
        """The beginning of each edge's handler so far, in ns, ascending."""
        return sorted(
            int(seconds) * 1_000_000_000 + int(microseconds) * 1000
            for seconds, microseconds in _ENTRY.findall((TRACEFS / "trace").read_text())
        )

    def close(self) -> None:
        (TRACEFS / "tracing_on").write_text("0")

    def __enter__(self) -> KernelStamps:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def stamp_between(stamps: list[int], before_ns: int, after_ns: int) -> int | None:
    """The one stamp that was made while a contact was moved; None if there is none, or more than one."""
    first = bisect.bisect_left(stamps, before_ns - NEAR_NS)
    last = bisect.bisect_right(stamps, after_ns + NEAR_NS)
    return stamps[first] if last - first == 1 else None
