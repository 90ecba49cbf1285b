"""Brings lamps and panels up to the view: works out what they show, and sends only what looks different.

The picture is that of the screen as `burn_in` lets it stand: moved by a pixel, with little light, or dark.
The page shows the same picture, but always with its full light.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from PIL import Image

from heek.clock import Clock, Duration, Instant
from heek.config import Config
from heek.display.burn_in import Light, Standing, standing, stood
from heek.display.drawing import draw
from heek.display.faces import Screen
from heek.display.ki_mark import KiMark, QuietKi
from heek.display.panel_feed import PanelFeed
from heek.display.screens import next_change, screen
from heek.kinds import Seat
from heek.session.view import View
from heek.stations.gpio import Board
from heek.stations.lamps import Lamp, lamp

log: Final = logging.getLogger("heek")


class Painting:
    """What the LEDs of one board and its panels show.

    `image` is the picture on the panels, 128 x 64, one bit; `lamps` what every LED shows.
    """

    def __init__(
        self,
        board: Board,
        feeds: Sequence[PanelFeed],
        config: Config,
        clock: Clock,
        on_reveal: Callable[[Duration], None],
    ) -> None:
        """`on_reveal` hears how long it took from the first LED that shows a reveal to the last."""
        self._board = board
        self._clock = clock
        self._on_reveal = on_reveal
        self._feeds = feeds
        self._stations = config.wired
        self._cycle, self._name = config.ahyoheek.cycle, config.table.name
        self._ki = QuietKi()
        self._painted: View | None = None
        self._painted_ki: KiMark | None = None
        self._drawn: tuple[Screen | None, Standing] | None = None
        self._dimmed = False
        self._drawn_until: Instant | None = None
        self._panel_failed: dict[int, bool] = {}
        self.image = Image.new("1", (128, 64))
        self.lamps: dict[Seat, Lamp] = {}

    def tell_ki(self, mark: KiMark | None, now: Instant) -> None:
        """How it stands with the KI at `now`, to be painted in the next turn; None: the table has no link."""
        self._ki = self._ki.tell(mark, now)

    def paint(self, view: View, now: Instant) -> Instant | None:
        """Bring lamps and panels up to `view` at `now`; when they will change by themselves.

        What a view looks like stays until the instant that lamp and screen name: until then nothing of it is
        worked out again, for in a match there are ten turns a second.
        """
        changes: list[Instant] = []
        anew = view is not self._painted
        before, self._painted = self._painted, view
        lit: list[Instant] = []
        for station in self._stations:
            seat = station.seat
            if anew or _has_come(self.lamps[seat].until, now):
                self.lamps[seat] = lamp(view, seat, now, pwm=self._board.led_pwm)
                if self._board.light(seat, self.lamps[seat].level):
                    lit.append(self._clock.now())
            until = self.lamps[seat].until
            if until is not None:
                changes.append(until)
        if lit and _is_reveal(before, view):
            self._on_reveal(lit[-1] - lit[0])
        self._ki = self._ki.at(now)
        if anew or self._ki.shown != self._painted_ki or _has_come(self._drawn_until, now):
            self._painted_ki = self._ki.shown
            self._draw(view, now)
        changes += [at for at in (self._drawn_until, self._ki.due) if at is not None]
        for number, feed in enumerate(self._feeds):
            feed.settle()
            feed.again(now, self.image, dimmed=self._dimmed)
            retry_at = feed.retry_at
            # Not by `retry_at`: while a lost panel is being tried again there is none.
            self._report_panel(number, failed=not feed.panel.status.ok)
            if retry_at is not None:
                changes.append(retry_at)
        return min(changes, default=None)

    def _draw(self, view: View, now: Instant) -> None:
        """Work out the screen, and until when it stays; only one that looks different is drawn and sent."""
        cycle, name, ki = self._cycle, self._name, self._ki.shown
        how, self._drawn_until = standing(view, now, ki)
        seen = None
        if how.light is not Light.DARK:
            seen = screen(view, now, cycle, name, ki)
            changes = (self._drawn_until, next_change(view, now, cycle, name, ki))
            self._drawn_until = min((at for at in changes if at is not None), default=None)
        if (seen, how) != self._drawn:
            self._drawn = (seen, how)
            self._dimmed = how.light is not Light.BRIGHT
            self.image = stood(self.image if seen is None else draw(seen), how)
            for feed in self._feeds:
                feed.show(self.image, dimmed=self._dimmed)

    def _report_panel(self, number: int, *, failed: bool) -> None:
        if self._panel_failed.get(number, False) is not failed:
            self._panel_failed[number] = failed
            panel = self._feeds[number].panel
            if failed:
                log.warning("%s; the match goes on", panel.status.text)
            else:
                log.info("the OLED answers again")

    def renew(self) -> None:
        """Build every panel anew, as one may have lost its power for a moment."""
        for feed in self._feeds:
            feed.renew(self.image, dimmed=self._dimmed)

    def close(self) -> None:
        """Blank every panel; does not wait for it."""
        for feed in self._feeds:
            feed.close()


def _has_come(at: Instant | None, now: Instant) -> bool:
    return at is not None and at <= now


def _is_reveal(before: View | None, view: View) -> bool:
    """Does `view` show the throws of a round for the first time?"""
    shows = any(seat.throw is not None for seat in view.seats)
    return shows and (before is None or not any(seat.throw is not None for seat in before.seats))
