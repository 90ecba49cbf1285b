"""How long after a contact closes the session has the event, on the real daemon and a real loop.

A second thread is the finger: it drives a mock pin, as gpiozero's own reader thread would report an edge,
and waits until the other side has noticed. Four ways take turns, so that whatever else the machine does
meets all of them alike: the daemon; the bare `call_soon_threadsafe` hop that nothing on an asyncio loop
can be faster than; the same hop out of a mock pin's own callback, with nothing behind it; and gpiozero's
`Button.when_pressed`, as most programs would do it, with the hop.

Pressed are buttons of empty seats while two others play a match: each press makes one event
(`press_ignored`, `not_seated`), the match waits in its throw phase with two LEDs breathing. The finger rests
for a millisecond in between, so that the loop has gone to sleep again and has to be woken.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest import mock

from heek.boot import this_boot
from heek.clock import RealClock
from heek.config import from_keys
from heek.daemon import Daemon, World
from heek.display.oled import Oled
from heek.journal import InlineExecutor
from heek.kinds import KINDS
from heek.stations.mock_pins import TableFactory
from heek.table import Table
from tests.bench.figures import Figure, Spread

AIM: Final = 1.5
"""Times the bare hop, by the median."""

PAUSE_S: Final = 0.001
"""Before each act of the finger: the turn of the loop before is over, and the loop sleeps."""

PATIENCE_S: Final = 5.0


class SilentFingerError(RuntimeError):
    """A press was not noticed at all: the bench or the daemon is broken."""


@dataclass
class _Stamps:
    """When the press in hand was noticed, by `time.perf_counter_ns`."""

    noticed: threading.Event = field(default_factory=threading.Event)
    fed: int = 0
    """When the table was handed the edge, on the loop."""
    at: int = 0
    """When the session had the event, or the other ways their callback."""
    told: int = 0
    """When the event's line came out, the journal written."""


def measure(*, quick: bool = False) -> list[Figure]:
    """Several runs of the three ways, with and without the chord time; takes about 15 s."""
    runs, presses = (2, 15) if quick else (9, 200)
    plain = [_run(presses, chord_s=0.0) for _ in range(runs)]
    chord = [_run(presses // 3, chord_s=0.003) for _ in range(runs)]

    def spread(sample: list[dict[str, float]], way: str) -> Spread:
        return Spread.of(each[way] for each in sample)

    hop, bare = spread(plain, "hop"), "us bare call_soon_threadsafe"
    return [
        Figure(
            "edge_to_event",
            "mock edge to session event",
            "us",
            spread(plain, "event"),
            bare,
            hop,
            aim=AIM,
            aim_is_ratio=True,
            note="drive() of a mock pin until Table.advance has returned the event; stations.chord_s = 0",
        ),
        Figure(
            "edge_to_event_against_pin",
            "mock edge to session event",
            "us",
            spread(plain, "event"),
            "us the hop out of a mock pin's callback",
            spread(plain, "pin"),
        ),
        Figure(
            "edge_to_event_against_button",
            "mock edge to session event",
            "us",
            spread(plain, "event"),
            "us gpiozero Button.when_pressed + hop",
            spread(plain, "button"),
        ),
        Figure(
            "edge_to_table",
            "mock edge handed to the table",
            "us",
            spread(plain, "fed"),
            bare,
            hop,
            note="the way to the loop without the judgement of debounce, chord and rules",
        ),
        Figure(
            "edge_to_line",
            "mock edge to the event's line",
            "us",
            spread(plain, "line"),
            bare,
            hop,
            note="here the journal is written on the same thread before the line comes out",
        ),
        Figure(
            "edge_to_event_with_chord",
            "the same with chord_s = 3 ms",
            "us",
            spread(chord, "event"),
            note="3,000 us of it are the rule: a press is looked at stations.chord_s after it closed",
        ),
    ]


def _run(presses: int, *, chord_s: float) -> dict[str, float]:
    """The medians of one run in microseconds, by way."""
    with tempfile.TemporaryDirectory(prefix="heek-bench-") as folder:
        return _Bench(Path(folder), chord_s).run(presses)


class _Bench:
    def __init__(self, state_dir: Path, chord_s: float) -> None:
        self.stamps = _Stamps()
        self.loop = asyncio.new_event_loop()
        self.factory: Any = None
        self.fed = 0
        """Of the press in hand: the finger keeps it before it opens the contact again."""
        self.config = from_keys(
            {
                "stations.backend": "mock",
                "stations.chord_s": chord_s,
                "stations.debounce_s": 0.002,
                "ahyoheek.idle_s": 3600,
                "table.state_dir": str(state_dir),
                "display": [{"driver": "dummy"}],
            },
            "bench",
        )
        self.lines: Callable[[str], None] = lambda _line: None

    def run(self, presses: int) -> dict[str, float]:
        stamps = self.stamps

        class StampedTable(Table):
            """Says when it was handed an edge and when it had an event; the table otherwise."""

            def feed(self, edge: Any) -> None:
                stamps.fed = time.perf_counter_ns()
                super().feed(edge)

            def advance(self, now: int, *, settled: bool = True) -> Any:
                effects = super().advance(now, settled=settled)
                if effects.events:
                    stamps.at = time.perf_counter_ns()
                return effects

        world = World(
            clock=RealClock(),
            boot=this_boot(),
            journal_executor=InlineExecutor(),
            panel_executor=InlineExecutor(),
            random_bytes=lambda count: bytes(count),
            open_pins=self._open_pins,
            open_panel=lambda each: Oled(each.driver, each.bus, each.address, each.rotate),
            on_line=self._on_line,
        )
        with mock.patch("heek.recorded_table.Table", StampedTable):
            daemon = Daemon(self.config, world, self.loop)
        outcome: Future[dict[str, float]] = Future()
        finger = threading.Thread(target=self._finger, args=(presses, outcome), daemon=True)
        try:
            self.loop.call_soon(finger.start)
            self.loop.run_forever()
            finger.join()
        finally:
            daemon.close()
            self.loop.close()
        return outcome.result()

    def _open_pins(self, _config: Any, clock: Any) -> TableFactory:
        factory = self.factory = TableFactory(clock)
        return factory

    def _on_line(self, _line: str) -> None:
        self.stamps.told = time.perf_counter_ns()
        self.stamps.noticed.set()

    # The finger's thread

    def _finger(self, presses: int, outcome: Future[dict[str, float]]) -> None:
        try:
            outcome.set_result(self._measure(presses))
        except BaseException as error:
            outcome.set_exception(error)
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)

    def _measure(self, presses: int) -> dict[str, float]:
        from gpiozero import Button
        from gpiozero.pins.mock import MockFactory

        stations = {station.seat: station for station in self.config.wired}
        for seat in (1, 2, 1, 2):  # sit down, then ready: their match begins
            self._press(self.factory.line(stations[seat].pen))
        lines = [
            self.factory.line(getattr(stations[seat], kind.value)) for kind in KINDS for seat in (3, 4, 5)
        ]
        stock = MockFactory()
        button = Button(4, pin_factory=stock)
        button.when_pressed = self._hop
        pin = stock.pin(17)
        pin.pull, pin.edges = "up", "falling"
        pin.when_changed = self._pin_hop
        took: dict[str, list[float]] = {way: [] for way in ("fed", "event", "line", "hop", "pin", "button")}
        try:
            for number in range(presses):
                began = self._press(lines[number % len(lines)])
                for way, at in (("fed", self.fed), ("event", self.stamps.at), ("line", self.stamps.told)):
                    took[way].append((at - began) / 1000)
                for way, act in (
                    ("hop", self._hop),
                    ("pin", pin.drive_low),
                    ("button", button.pin.drive_low),
                ):
                    began = self._noticed(act)
                    took[way].append((self.stamps.at - began) / 1000)
                pin.drive_high()
                button.pin.drive_high()
        finally:
            button.close()
            stock.close()
        return {way: statistics.median(times) for way, times in took.items()}

    def _hop(self) -> None:
        self.loop.call_soon_threadsafe(self._on_hop)

    def _pin_hop(self, _ticks: float, _state: int) -> None:
        self.loop.call_soon_threadsafe(self._on_hop)

    def _on_hop(self) -> None:
        self.stamps.at = time.perf_counter_ns()
        self.stamps.noticed.set()

    def _press(self, line: Any) -> int:
        """Close a contact, wait for its event, open it again; when it closed."""
        began = self._noticed(lambda: line.drive(False))
        self.fed = self.stamps.fed
        line.drive(True)
        return began

    def _noticed(self, act: Callable[[], object]) -> int:
        """Do something once the loop has gone to sleep, and wait until it is noticed; when it was done."""
        time.sleep(PAUSE_S)
        self.stamps.noticed.clear()
        began = time.perf_counter_ns()
        act()
        if not self.stamps.noticed.wait(PATIENCE_S):
            raise SilentFingerError(f"nothing came of a press within {PATIENCE_S} s")
        return began
