"""What a running table's link to the KI has counted, and what that says of cable and peer.

The doctor leaves the port of a running table alone, so the table itself is asked, by `/metrics` of its page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from heek.doctor.findings import Finding, Mark
from heek.web.metrics import LINK

BAD_LINE: Final = 0.02
"""Share of damaged frames from which a cable is to be looked at: below it nobody feels anything."""
FEW: Final = 50
"""Frames below which a share says nothing."""
TOLD: Final = {
    "frames": "frames",
    "invalid_bytes": "invalid bytes",
    "crc_errors": "CRC errors",
    "resends": "resends",
    "duplicates": "duplicates",
    "hellos": "hellos",
}


def link_findings(link: str, values: Mapping[str, float] | None) -> Iterator[Finding]:
    """For a serial link a line for its counters; whether the KI answers is said elsewhere (`heek.doctor.ki`).

    `link` is `ki.link`; `values` are the table's, by name, None where its page does not answer.
    """
    if link == "serial" and values is not None:
        yield _serial(values)


def _serial(values: Mapping[str, float]) -> Finding:
    counted = {name: int(values.get(LINK + name, 0)) for name in TOLD}
    words = ", ".join(
        f"{count} {name.replace('_', ' ').replace('crc', 'CRC')}" for name, count in counted.items()
    )
    trip = values.get(f"{LINK}round_trip_smoothed_ms")
    if trip is not None:
        words += f", round trip {trip:.1f} ms"
    frames, damaged = counted["frames"], counted["crc_errors"]
    if not values.get(f"{LINK}up"):
        if not frames and not counted["invalid_bytes"]:
            return Finding(
                "serial",
                "link",
                Mark.WARNING,
                f"nothing has ever come in, and it called {counted['hellos']} times",
                "see to cable and far end: does the gateway run, do the two data lines cross?",
            )
        return Finding(
            "serial", "link", Mark.WARNING, f"down; {words}", "the table's page says what else is on the line"
        )
    if frames + damaged >= FEW and damaged > BAD_LINE * (frames + damaged):
        return Finding(
            "serial",
            "link",
            Mark.WARNING,
            f"up, and damages {100 * damaged / (frames + damaged):.0f} % of what comes; {words}",
            "a shorter cable, one ground for both ends, or a lower ki.baud at both",
        )
    return Finding("serial", "link", Mark.OK, f"up; {words}")
