"""Spares the panel: where the picture stands, with how much light, or dark, as a function of view and time.

An OLED's dots age by the time they are lit and by how brightly. Three things spare them:

**The picture moves.** Once a minute it goes on by one pixel along a path round six places, within the margin
that every screen leaves dark. The step follows from the time alone, so a restart begins where it should. From
a round's first throw to the end of the match's result nothing moves: people count on what they watch, and a
move would be a whole frame on the wire in the middle of a countdown.

**The light goes down** when nobody has done anything for three minutes: longer than anything takes that
people wait for at this table with the times as they come, short against what an empty table burns in a day.

**The panel goes dark** after half an hour in which nobody sat down. That is attract alone, so any press that
takes a seat, as ever, brings the light back with the lobby that it begins. A fault that waits for somebody,
or a code that somebody is to type in at the KI, is still shown after that, each page once in every minute.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from PIL import Image

from heek.clock import SECOND, Duration, Instant
from heek.display.ki_mark import KiMark
from heek.display.screens import FAULT_PAGE, urgent_pages
from heek.display.table_top import (
    HEIGHT_PX,
    MARGIN_BELOW_PX,
    MARGIN_LEFT_PX,
    MARGIN_RIGHT_PX,
    WIDTH_PX,
)
from heek.session.phases import Phase
from heek.session.view import View

MOVE_EVERY: Final[Duration] = 60 * SECOND
DIM_AFTER: Final[Duration] = 3 * 60 * SECOND
DARK_AFTER: Final[Duration] = 30 * 60 * SECOND
FAULT_EVERY: Final[Duration] = 60 * SECOND

PATH: Final = (
    (0, 0),
    (MARGIN_RIGHT_PX, 0),
    (MARGIN_RIGHT_PX, MARGIN_BELOW_PX),
    (0, MARGIN_BELOW_PX),
    (-MARGIN_LEFT_PX, MARGIN_BELOW_PX),
    (-MARGIN_LEFT_PX, 0),
)
"""Where the picture stands in turn: pixels to the right and down."""

_WAITING: Final = frozenset({Phase.ATTRACT, Phase.LOBBY, Phase.RESUME, Phase.THROW})
"""Phases that may last."""


class Light(Enum):
    """How much of it a panel gives."""

    BRIGHT = "bright"
    DIM = "dim"
    DARK = "dark"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a picture is shown."""

    right_px: int = 0
    down_px: int = 0
    light: Light = Light.BRIGHT


def standing(view: View, now: Instant, ki: KiMark | None = None) -> tuple[Standing, Instant | None]:
    """How the screen of `view` is shown at `now`, and when that may change by itself; None: never.

    `ki` is how it stands with the KI; None: the table has no link.
    """
    waiting = view.phase in _WAITING
    # A countdown that runs in the lobby says that somebody has just done something.
    idle = waiting and view.until is None
    quiet = now - view.since
    if view.phase is Phase.ATTRACT and quiet >= DARK_AFTER:
        return _at_night(view, now, urgent_pages(view, ki))
    right, down = PATH[(now if waiting else view.since) // MOVE_EVERY % len(PATH)]
    changes = []
    if waiting:
        changes.append((now // MOVE_EVERY + 1) * MOVE_EVERY)
    if idle and quiet < DIM_AFTER:
        changes.append(view.since + DIM_AFTER)
    if view.phase is Phase.ATTRACT:
        changes.append(view.since + DARK_AFTER)
    light = Light.DIM if idle and quiet >= DIM_AFTER else Light.BRIGHT
    return Standing(right, down, light), min(changes, default=None)


def _at_night(view: View, now: Instant, pages: int) -> tuple[Standing, Instant | None]:
    """Dark, but for so many pages of faults and of a code."""
    if not pages:
        return Standing(light=Light.DARK), None
    quiet = now - view.since
    minute = view.since + quiet // FAULT_EVERY * FAULT_EVERY
    end = minute + pages * FAULT_PAGE
    if now >= end:
        return Standing(light=Light.DARK), minute + FAULT_EVERY
    right, down = PATH[quiet // FAULT_EVERY % len(PATH)]
    return Standing(right, down, Light.DIM), end


def stood(image: Image.Image, how: Standing) -> Image.Image:
    """`image`, mode "1" and 128 x 64, as it is shown; its margins keep all that is lit in the picture."""
    if how.light is Light.DARK:
        return Image.new("1", (WIDTH_PX, HEIGHT_PX))
    if (how.right_px, how.down_px) == (0, 0):
        return image
    moved = Image.new("1", (WIDTH_PX, HEIGHT_PX))
    moved.paste(image, (how.right_px, how.down_px))
    return moved
