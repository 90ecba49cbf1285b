"""A page that shows any view at any instant, without a table behind it: for states hard to play to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from types import TracebackType

from heek.clock import Duration, Instant, RealClock
from heek.display.drawing import draw
from heek.display.screens import screen
from heek.kinds import SEATS, Kind, Seat
from heek.session.view import View
from heek.stations.lamps import lamp
from heek.web.doors import Doors, PageSettings
from heek.web.live import Tempo
from heek.web.server import PageServer
from heek.web.state import KiLine, Told, page_state

CYCLE = "pen-page-beetle"


@dataclass
class ShownTable:
    """A page's server that is told what to show, on a clock of its own that runs as a table's does."""

    settings: PageSettings = field(default_factory=lambda: PageSettings(port=0))
    press: bool = True
    bots: bool = False
    switch_ki: bool = False
    lease_s: float = 3.0
    """How long the table believes that a button is held without a word from the page."""
    beat_s: float = 5.0
    """How often it says what time it is there when nothing else is new."""
    ki: KiLine = field(default_factory=lambda: KiLine("http", "up", 3, "14:02"))
    presses: list[tuple[Seat, Kind, bool]] = field(default_factory=list)
    """What the page has closed (True) and opened."""
    asked: list[str] = field(default_factory=list)
    """What else the page has asked for."""

    def __post_init__(self) -> None:
        self._clock = RealClock()
        self._ahead: Duration = 0
        self.newest = b""
        """The last state as it was published."""
        self.picture = b""
        """The last picture on the OLED, 1,024 bytes."""
        self.server = PageServer(
            self.settings,
            Doors(
                now=self.now,
                contact=self._contact if self.press else None,
                fill_seats=(lambda: self.asked.append("bots")) if self.bots else None,
                switch_ki=(lambda run: self.asked.append(f"ki {run}")) if self.switch_ki else None,
            ),
            Tempo(lease_s=self.lease_s, beat_s=self.beat_s),
        )

    def __enter__(self) -> ShownTable:
        self.server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.stop()

    @property
    def url(self) -> str:
        return self.server.url

    def now(self) -> Instant:
        """The shown table's time."""
        return self._clock.now() + self._ahead

    def let_pass(self, time: Duration) -> None:
        """So much time passes at the table at once."""
        self._ahead += time

    def show(self, view: View, at: Instant, *, told: Iterable[str] = (), name: str = "Table 1") -> View:
        """Show `view` as it is at `at`, and let it run on; gives it with its instants on this clock."""
        now = self.now()
        here = moved(view, now - at)
        image = draw(screen(here, now, CYCLE, name))
        self.picture = image.tobytes()
        self.newest = page_state(
            here,
            {seat: lamp(here, seat, now) for seat in SEATS},
            name=name,
            simulated=self.settings.simulated,
            told=[Told(seq, 0, text) for seq, text in enumerate(told, 1)],
            ki=self.ki,
            now=now,
            image=image,
        )
        self.server.publish(self.newest)
        return here

    def _contact(self, seat: Seat, kind: Kind, closed: bool) -> None:
        self.presses.append((seat, kind, closed))


def moved(view: View, by: Duration) -> View:
    """The same view at another time."""

    def at(instant: Instant | None) -> Instant | None:
        return None if instant is None else instant + by

    return replace(
        view,
        since=view.since + by,
        until=at(view.until),
        rules_since=at(view.rules_since),
        bots_at=at(view.bots_at),
        seats=tuple(replace(row, leaves_at=at(row.leaves_at)) for row in view.seats),
    )
