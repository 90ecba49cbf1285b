"""The kind of table that `--table=virtual-pi` is: the real daemon on a simulated chip, in real time.

A rig has two tables. One is real: its contacts move when their time comes; its events, its LEDs and its
panel's picture are what a test is told. The other is the simulator's, told the same, and gives no more than
names. No light tells of which pattern it is, so a lamp has the name that the simulator gives it if
the light that is measured is that pattern's, and else none; and a picture has the name of the screen of
which the simulated table showed the very same one.

Time passes by itself. Whoever looks, waits for `LOOK_AFTER`, so that what was pressed has come through, and
finds `now` as much later; instants that a test names itself stay as they are. While the daemon starts, the
test's clock stands.
"""

from __future__ import annotations

import heapq
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from PIL import Image

from heek.clock import MILLISECOND, SECOND, Duration, Instant, nanoseconds
from heek.daemon import Daemon
from heek.display.screens import screen
from heek.kinds import Seat
from heek.simulator.expectations import Expectations, Verdict
from heek.simulator.runner import Report, Simulation
from heek.simulator.steps import (
    Claim,
    ContactEdge,
    Display,
    Expect,
    Handover,
    Ki,
    Operator,
    Power,
    RawEdge,
    Stall,
    Step,
    Story,
    WallClock,
)
from heek.stations.lamps import Pattern
from heek.testing.rig import NotHere, Setup
from heek.wiring.pin_map import DEFAULT_STATIONS
from tests.virtual_pi.judging import is_level
from tests.virtual_pi.panel_controller import PanelController
from tests.virtual_pi.panel_wire import Happened, PanelWire
from tests.virtual_pi.story_player import BY_PRESSES, LAMP_WINDOW_S, StoryPlayer, table_chip
from tests.virtual_pi.table_daemon import NotReady, TableDaemon

LOOK_AFTER: Final[Duration] = 200 * MILLISECOND
"""An emulated machine tells of a press within 50 ms, and has painted within 150."""
LOOKS: Final = 7
"""At a lamp; most of them must fit."""
PAINT_S: Final = 15.0
TRIES: Final = 3
"""Of a story for which the machine was too slow."""
STATIONS: Final = {station.seat: station for station in DEFAULT_STATIONS}


class VirtualPiRig:
    """One table of one test; it is switched on when the test looks for the first time."""

    def __init__(self, setup: Setup) -> None:
        self._screens: dict[bytes, set[str]] = {}
        """Every picture of the simulated table, with the screens that it belongs to."""
        story = Story(setup.keys, source=setup.source, header_line=setup.line)
        self._twin = Simulation(story, on_turn=self._remember)
        self._stack = ExitStack()
        try:
            folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="heek-table-")))
            # Wrong keys are refused here.
            self._twin.open(folder / "twin")
            self._stack.callback(self._twin.close)
            self._chip = self._stack.enter_context(table_chip())
            self._panel = self._stack.enter_context(PanelWire())
            self._daemon = TableDaemon(folder, setup.keys, warm=True)
            self._stack.callback(self._daemon.kill)
        except BaseException:
            self._stack.close()
            raise
        self._controller = PanelController(self._daemon.driver)
        self._handover = Handover()
        self._due: list[tuple[Instant, int, Callable[[], None]]] = []
        self._orders = 0
        self._zero_ns: int | None = None
        """Where the test's 0 lies on CLOCK_MONOTONIC; None: not switched on yet."""
        self._stood_at: Instant | None = None
        """The test's instant while there is no power and the clock stands; None: it runs."""
        self._standing_until: Instant = -1
        self._powered = False
        self._first_event = 0
        """The first of those of the daemon's life of now."""
        self._moved: list[tuple[Seat, int]] = []
        """Closings since it began, and when, for its clock."""
        self._expectations = Expectations(self._lamp_at, self._screen_at, setup.source)
        self._heard = 0

    # The doors of a Rig

    @property
    def now(self) -> Instant:
        if self._zero_ns is None:
            return 0
        return time.monotonic_ns() - self._zero_ns if self._stood_at is None else self._stood_at

    @property
    def rules_now(self) -> Instant:
        return self._twin.rules_now

    def add(self, step: Step) -> None:
        match step:
            case Claim():
                raise NotHere("has nobody who can sign in")
            case Ki():
                raise NotHere("has no link to a KI")
            case RawEdge(delivered=late) if late is not None:
                raise NotHere("hands over an edge when the kernel can, not at an instant of choice")
        self._twin.add(step)
        for edge in self._handover.edges(step):
            if edge.initial:
                self._move(edge)
            else:
                self._at(edge.at, partial(self._move, edge))
        match step:
            case Stall(at=at, duration=duration):
                self._at(at, partial(self._pause, at + duration))
                self._at(at + duration, self._resume)
            case WallClock(wall_s=wall_s, at=at):
                self._at(at, partial(time.clock_settime, time.CLOCK_REALTIME, wall_s))
            case Display(at=at, ok=ok):
                self._at(at, self._panel.plug if ok else self._panel.pull)
            case Power(at=at, on=on):
                self._at(at, partial(self._power_on, at) if on else partial(self._power_off, at))
            case Operator(at=at):
                self._at(at, self._daemon.reset)

    def play_to(self, at: Instant) -> None:
        self._play(max(at, self._standing_until) + LOOK_AFTER)
        self._twin.play_to(max(at, self._twin.rules_now))
        self._hear()

    def judge(self, step: Expect) -> Verdict:
        self.play_to(step.at)
        known = len(self._expectations.verdicts)
        # What came within the time may be told a little later; what is seen, too.
        self._expectations.begin(step, step.at)
        while len(self._expectations.verdicts) == known:
            self._play(self.now + 20 * MILLISECOND)
            seen = min(self.now - LOOK_AFTER, step.at + step.within)
            self._twin.play_to(max(seen, self._twin.rules_now))
            self._hear()
            self._expectations.look(seen)
        return self._expectations.verdicts[-1]

    @property
    def lines(self) -> Sequence[str]:
        return [line.removeprefix("DEBUG ") for line in self._daemon.said if line.startswith('DEBUG {"seq":')]

    def lamp(self, seat: Seat) -> str:
        return self._lamp_at(seat, self.now)

    @property
    def screen(self) -> str:
        return self._screen_at(self.now)

    @property
    def image(self) -> Image.Image:
        for record in self._panel.take():
            if record.what is Happened.WRITTEN:
                self._controller.take(record.data)
            else:
                self._controller.lose_power()
        return self._controller.picture()

    def close(self) -> Sequence[str]:
        left = []
        if self._powered and self._zero_ns is not None:
            self._daemon.resume()
            code = self._daemon.stop()
            if code != 0:
                left.append(f"the daemon ended with {code}: {self._daemon.said[-1]}")
        self._stack.close()
        return left

    # The world

    def _at(self, at: Instant, act: Callable[[], None]) -> None:
        self._orders += 1
        heapq.heappush(self._due, (at, self._orders, act))

    def _play(self, until: Instant) -> None:
        """Do what is due, each at its time, and go on to `until`."""
        if self._zero_ns is None:
            self._zero_ns = 0
            self._power_on(0)
        while self._due and self._due[0][0] <= until:
            at, _, act = heapq.heappop(self._due)
            self._wait(at)
            act()
        self._wait(until)

    def _wait(self, at: Instant) -> None:
        if self._stood_at is not None:
            self._stood_at = max(self._stood_at, at)
            return
        assert self._zero_ns is not None
        while (left := self._zero_ns + at - time.monotonic_ns()) > 0:
            time.sleep(left / SECOND)

    def _move(self, edge: ContactEdge) -> None:
        moved = self._chip.pull(STATIONS[edge.seat].button(edge.button), not edge.closed)
        if edge.closed and not edge.initial:
            self._moved.append((edge.seat, moved))

    def _pause(self, until: Instant) -> None:
        if self._powered:
            self._standing_until = max(self._standing_until, until)
            self._daemon.pause()

    def _resume(self) -> None:
        if self._powered and self.now >= self._standing_until:
            self._daemon.resume()

    def _power_off(self, at: Instant) -> None:
        self._daemon.kill()
        self._powered = False
        self._stood_at = at

    def _power_on(self, at: Instant) -> None:
        self._first_event, self._moved = len(self._daemon.events), []
        self._controller = PanelController(self._daemon.driver)
        self._panel.take()
        try:
            self._daemon.start()
        except NotReady as error:
            raise AssertionError(f"the daemon did not start: {error}") from None
        until = time.monotonic() + PAINT_S
        while time.monotonic() < until and not any(self.image.tobytes()):
            time.sleep(0.02)
        self._zero_ns = time.monotonic_ns() - at
        self._stood_at = None
        self._powered = True

    def _hear(self) -> None:
        lines = self.lines
        for line in lines[self._heard :]:
            self._expectations.heard(line)
        self._heard = len(lines)

    # What it shows

    def _remember(self, twin: Simulation) -> None:
        if twin.daemon is not None:
            name = screen(twin.daemon.shown, twin.daemon.now).name
            self._screens.setdefault(twin.daemon.image.tobytes(), set()).add(name)

    def _screen_at(self, _at: Instant) -> str:
        if not self._powered:
            return "off"
        names = self._screens.get(self.image.tobytes(), set())
        if self._twin.screen in names:
            return self._twin.screen
        return min(names, default="a picture that the simulated table never showed")

    def _lamp_at(self, seat: Seat, _at: Instant) -> str:
        name = self._twin.lamp(seat)
        pattern = Pattern(name)
        high = bool(self._daemon.keys.get("stations.led_active_high", True))
        pwm = bool(self._daemon.keys.get("stations.led_pwm", True))
        origin = self._origin()
        if origin is None and pattern not in (Pattern.FREE, Pattern.TAKEN, Pattern.THROWN):
            raise NotHere(f"cannot tell when {name} blinks before a press was answered")
        shares, fitting = [], 0
        for _ in range(LOOKS):
            began = time.monotonic_ns()
            share = self._chip.share_high(STATIONS[seat].led, LAMP_WINDOW_S)
            shares.append(share if high else 1.0 - share)
            middle = (began + time.monotonic_ns()) // 2 - (origin or 0)
            fitting += is_level(shares[-1], name, middle, pwm=pwm)
        if 2 * fitting > LOOKS:
            return name
        return "lit " + " ".join(f"{share:.2f}" for share in shares) + f" of the time (and not {name})"

    def _origin(self) -> int | None:
        """Where the daemon's instant 0 lies on CLOCK_MONOTONIC, by the first press that it answered."""
        for heard in self._daemon.events[self._first_event :]:
            if heard.event["event"] in BY_PRESSES:
                for seat, moved in self._moved:
                    if seat == heard.event["seat"]:
                        return moved - nanoseconds(heard.event["at"])
        return None


class VirtualPiLevel:
    """Tables on the guest's chip, one at a time."""

    def open(self, setup: Setup) -> VirtualPiRig:
        if setup.build is not Daemon:
            raise NotHere("has its daemon in a process of its own, which no mod reaches")
        if setup.seed:
            raise NotHere("draws by its own chance, so no seed can be given")
        if setup.keys.get("ki.link", "none") != "none":
            raise NotHere("has no link to a KI")
        return VirtualPiRig(setup)

    def play(self, story: Story) -> tuple[Sequence[str], Report]:
        # There is no KI here, and its steps are skipped: then the OLED must not say that one is looked for.
        keys = {key: value for key, value in story.table.items() if not key.startswith("ki.")}
        story = replace(story, table=keys)
        for _ in range(TRIES):
            with (
                tempfile.TemporaryDirectory(prefix="heek-table-") as folder,
                table_chip() as chip,
                PanelWire() as panel,
            ):
                daemon = TableDaemon(Path(folder), story.table, warm=True)
                played = StoryPlayer(story, chip, panel, daemon).play()
            if played.differences or played.ok or not played.too_slow:
                break
        failures = (*played.failures, *played.differences)
        lines = [json.dumps(event) for event in played.events]
        return lines, Report((), failures, played.skipped, max((pull.at for pull in played.pulls), default=0))
