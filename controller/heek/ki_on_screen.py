"""What reporting knows of the KI, as the OLED shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heek.display.ki_mark import KiMark, Reach

if TYPE_CHECKING:
    from heek.reporting import KiStatus


def ki_mark(status: KiStatus) -> KiMark | None:
    """The mark of how reporting stands; None: there is no link, and nothing is shown of it."""
    if status.state == "off":
        return None
    return KiMark(
        Reach(status.state), status.waiting, status.last, status.claim, trouble=bool(status.trouble)
    )
