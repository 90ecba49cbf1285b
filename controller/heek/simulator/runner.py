"""Plays a story on the real daemon: gpiozero's mock pins, luma's dummy panel, virtual time.

The runner is the outside world. It closes contacts, pulls plugs and makes the program stand still, each at
its instant, and never reaches behind the daemon's doors. One heap of things to do is worked off in the order
of their instants, equal ones in the order of the story's lines. A table to which its story gives a link
(`ki.link`) reports over it, by the real reporting, to a KI that the story takes away and brings back.

What a story expects at an instant is looked at when the rules have caught up with it, `chord_s` later:
"by now, all work due at this time done".
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import heapq
import json
import logging
import os
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from PIL import Image

from heek.boot import Boot
from heek.clock import Clock, Duration, Instant, ManualClock, StartedClock, seconds_text
from heek.config import Config, DisplayConfig, from_keys
from heek.daemon import Daemon, World
from heek.display.oled import Oled, Panel, open_luma
from heek.display.screens import screen
from heek.errors import ConfigError, StoryError
from heek.journal import InlineExecutor
from heek.ki_on_screen import ki_mark
from heek.kinds import Kind, Seat
from heek.session.inputs import Claimed
from heek.simulator.expectations import Expectations, Verdict
from heek.simulator.steps import (
    Claim,
    ContactEdge,
    Display,
    End,
    Expect,
    Handover,
    Ki,
    Operator,
    Power,
    Stall,
    Step,
    Story,
    WallClock,
)
from heek.simulator.story_ki import StoryKi, StoryLink
from heek.simulator.virtual_loop import VirtualLoop
from heek.stations.lamps import pattern
from heek.stations.mock_pins import TableFactory

if TYPE_CHECKING:
    from heek.reporting import Reporting

log: Final = logging.getLogger("heek.simulator")

BOOT: Final = Boot("00000000-0000-4000-8000-000000000000", "ntp")
"""A power cut in a story is the death of the process: the machine's boot goes on."""


BuildDaemon: TypeAlias = Callable[[Config, World, asyncio.AbstractEventLoop], Daemon]
"""What makes the daemon: `Daemon` itself, or what somebody has made of it."""

REPORTED_BYTES: Final = 64 * 1024
"""Of records in one request over a story's link."""

EARLY_S: Final = 2.5e-10
"""Less than the clock's nanosecond, more than a float of a few days' seconds loses."""


@dataclass(frozen=True, slots=True)
class Report:
    """How a story went."""

    verdicts: tuple[Verdict, ...]
    failures: tuple[str, ...]
    skipped: tuple[str, ...]
    """Steps that this level cannot do, one line each."""
    ended_at: Instant


@dataclass(order=True, slots=True)
class _Due:
    at: Instant
    order: int
    act: Callable[[], None] = field(compare=False)


class _StoryPanel:
    """A panel behind a cable that a story can pull."""

    def __init__(self, panel: Panel, answers: Callable[[], bool]) -> None:
        self._panel = panel
        self._answers = answers

    def display(self, image: Image.Image) -> None:
        if not self._answers():
            raise OSError(errno.EREMOTEIO, os.strerror(errno.EREMOTEIO))
        self._panel.display(image)

    def dim(self, dimmed: bool) -> None:
        if not self._answers():
            raise OSError(errno.EREMOTEIO, os.strerror(errno.EREMOTEIO))
        self._panel.dim(dimmed)

    def close(self) -> None:
        self._panel.close()


def _unheard(_line: str) -> None:
    """Nobody listens to the events."""


class Simulation:
    """One run of one story.

    `say` gets every event's line; `frames` is the folder for the OLED's pictures, if they are to be kept;
    `state_dir` holds the journal, by default for as long as the story runs; `on_turn` is called after each
    turn of the daemon; `pace` as in VirtualLoop; `build` makes the daemon each time the power comes on.
    """

    def __init__(
        self,
        story: Story,
        *,
        seed: int = 0,
        say: Callable[[str], None] = _unheard,
        frames: Path | None = None,
        state_dir: Path | None = None,
        on_turn: Callable[[Simulation], None] | None = None,
        pace: Callable[[float], None] | None = None,
        build: BuildDaemon = Daemon,
    ) -> None:
        self._story = story
        self._build = build
        self._say = say
        self._frames = frames
        self._on_turn = on_turn
        self._pace = pace
        self._random = random.Random(seed)
        self._seed = seed
        self._state_dir = state_dir
        self._clock = ManualClock()
        self._loop: VirtualLoop | None = None
        self._daemon: Daemon | None = None
        self._daemon_clock: StartedClock | None = None
        self._factory: TableFactory | None = None
        self.ki = StoryKi(self._drawn_seed("KI"), self._clock.wall_s)
        self._ki_up = True
        self._reporting: Reporting | None = None
        self._closed: dict[tuple[Seat, Kind], bool] = {}
        self._panel_answers = True
        self._due: list[_Due] = []
        self._orders = 0
        self._claims: list[Claim] = []
        """Those that the table has not answered yet, in order."""
        self._skipped: list[str] = []
        self._standing_until: Instant = -1
        """The end of the stall that the program stands in, or stood in last."""
        self._handover = Handover()
        self._begun = False
        self._over = False
        self._ends_at_rest = False
        """The story ends by itself when nothing is left to happen."""
        self._enough: int | None = None
        """How many judged expectations are enough to pause."""
        self._at_work = False
        """In the middle of what is due: too early to say whether anything is left to happen."""
        self._wake: asyncio.TimerHandle | None = None
        self._failed: BaseException | None = None
        self._kept_image: Image.Image | None = None
        self._pictures = 0
        self._config: Config | None = None
        self._expectations = Expectations(self._lamp, self._screen, story.source)

    # The doors

    @property
    def daemon(self) -> Daemon | None:
        """The running daemon; None while the power is cut."""
        return self._daemon

    @property
    def now(self) -> Instant:
        """The story's instant."""
        return self._clock.now()

    def run(self) -> Report:
        """Play the story to its end.

        Raises StoryError for what is only found out while it runs (a configuration key, a claim at an
        empty seat), and whatever else the daemon raises.
        """
        if self._state_dir is not None:
            return self._run_in(self._state_dir)
        with tempfile.TemporaryDirectory(prefix="heek-story-") as folder:
            return self._run_in(Path(folder))

    def _run_in(self, state_dir: Path) -> Report:
        self.open(state_dir)
        try:
            for step in self._story.steps:
                self.add(step)
            self._ends_at_rest = True
            self._resume()
            self._expectations.finish(self._rules_now())
            return Report(
                tuple(self._expectations.verdicts),
                tuple(self._expectations.failures()),
                tuple(self._skipped),
                self._clock.now(),
            )
        finally:
            self.close()

    # The doors of who makes up the story as it goes

    def open(self, state_dir: Path) -> None:
        """Make the world ready in which steps may be added; nothing happens yet.

        Raises StoryError if the story's configuration keys are not right.
        """
        self._config = self._configure(state_dir)
        self._loop = VirtualLoop(self._clock, self._pace)
        self._loop.set_exception_handler(self._on_exception)

    def add(self, step: Step) -> None:
        """One more step, not before `now` and not before the step that was added last."""
        for edge in self._handover.edges(step):
            self._schedule_edge(edge)
        self._schedule_step(step)

    def play_to(self, at: Instant) -> None:
        """Let happen what was added, until the rules have caught up with `at`.

        That is `chord_s` later, as it is for what a story expects. Raises what the daemon raises, and
        StoryError for a claim that the table refuses.
        """
        self._at(at + self._chord, self._pause)
        self._resume()

    def judge(self, step: Expect) -> Verdict:
        """Let happen what was added until it is known whether `step` holds; raises as `play_to`."""
        self._enough = len(self._expectations.verdicts) + 1
        self.add(step)
        try:
            self._resume()
        finally:
            self._enough = None
        return self._expectations.verdicts[-1]

    def close(self) -> tuple[str, ...]:
        """Put everything away, and say what could not be, one line each: what runs on, or holds a pin.

        May be called twice, and without anything having been opened.
        """
        loop = self._loop
        if loop is None or loop.is_closed():
            return ()
        try:
            self._stop_reporting()
            if self._daemon is not None:
                self._daemon.close()
            # What was cancelled just now has its last turn.
            loop.call_soon(loop.stop)
            loop.run_forever()
            tasks = sorted(task.get_name() for task in asyncio.all_tasks(loop))
        finally:
            loop.close()
        pins = self._factory.claimed() if self._daemon is not None and self._factory is not None else []
        return (
            *(f"{pin} is still claimed after the daemon was closed" for pin in pins),
            *(f"task {name!r} still runs after the daemon was closed" for name in tasks),
        )

    def lamp(self, seat: Seat) -> str:
        """The pattern that a seat's LED shows where the rules have come to; absent seats show none."""
        return self._lamp(seat, self._rules_now())

    @property
    def screen(self) -> str:
        """The OLED's screen there; "off" while the power is cut."""
        return self._screen(self._rules_now())

    @property
    def rules_now(self) -> Instant:
        """The instant of the story that the rules have come to: `chord_s` before `now`."""
        return self._rules_now()

    def _resume(self) -> None:
        if self._loop is None:
            raise RuntimeError("the simulation is not open")
        if self._wake is not None:
            self._wake.cancel()
        self._loop.call_soon(self._work if self._begun else self._begin)
        self._loop.run_forever()
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def _configure(self, state_dir: Path) -> Config:
        keys: dict[str, object] = {
            "stations.backend": "mock",
            "table.state_dir": str(state_dir),
            "display": [{"driver": "dummy"}],
        }
        where = f"{self._story.source}:{self._story.header_line}"
        try:
            config = from_keys(keys | dict(self._story.table), where)
        except ConfigError as error:
            # A story that is not valid is answered with one line; the next mistake shows up after this one.
            raise StoryError(str(error).splitlines()[0]) from None
        if config.stations.backend != "mock":
            raise StoryError(
                f'{where}: stations.backend: a simulated table has "mock" pins; leave the key out'
            )
        if "table.state_dir" in self._story.table:
            raise StoryError(f"{where}: table.state_dir: a simulated table keeps nothing; leave the key out")
        return config

    # The outside world

    def _at(self, at: Instant, act: Callable[[], None]) -> None:
        self._orders += 1
        heapq.heappush(self._due, _Due(at, self._orders, act))

    def _schedule_edge(self, edge: ContactEdge) -> None:
        if edge.initial:
            self._closed[edge.seat, edge.button] = edge.closed
            return

        def change() -> None:
            self._closed[edge.seat, edge.button] = edge.closed

        def deliver() -> None:
            if self._factory is None or self._daemon_clock is None:
                return
            stamp = edge.at - self._daemon_clock.origin_ns
            if stamp >= 0:  # an older one is part of the state at start-up
                self._line(edge.seat, edge.button).drive(not edge.closed, stamp)

        self._at(edge.at, change)
        self._at(edge.delivered, deliver)

    def _schedule_step(self, step: Step) -> None:
        chord = self._chord
        match step:
            case Stall(at=at, duration=duration):
                self._at(at, lambda: self._stall(at + duration))
            case WallClock(at=at, wall_s=wall_s):
                self._at(at, lambda: self._clock.set_wall_s(wall_s))
            case Display(at=at, ok=ok):
                self._at(at, lambda: self._set_panel(ok))
            case Ki(at=at, line=line, up=up):
                self._at(at, lambda: self._set_link(line, up))
            case Power(at=at, on=on):
                self._at(at, self._power_on if on else self._power_off)
            case Operator(at=at):
                self._at(at, lambda: self._operator(at))
            case Claim(at=at):
                self._at(at, lambda: self._claim(step))
            case Expect(at=at):
                self._at(at + chord, lambda: self._expect(step))
            case End(at=at):
                self._at(at + chord, self._finish)
            case _:
                pass

    def _begin(self) -> None:
        self._begun = True
        self._at_work = True
        self._power_on()
        self._work()

    def _work(self) -> None:
        """Do what is due in the outside world, then wait for the next of it."""
        self._wake = None
        self._at_work = True
        while self._due and self._due[0].at <= self._clock.now() and not self._over:
            heapq.heappop(self._due).act()
        deadline = self._expectations.next_deadline()
        alive = self._daemon is not None and self._standing_until < self._clock.now()
        if alive and self._daemon is not None and deadline is not None and deadline <= self._rules_now():
            # What is due at this very instant is done before an expectation is given up.
            self._daemon.pump()
        self._at_work = False
        self._look()

    def _look(self) -> None:
        if self._over or self._loop is None:
            return
        self._expectations.look(self._rules_now())
        if self._enough is not None and len(self._expectations.verdicts) >= self._enough:
            self._loop.stop()
        if self._at_work:
            return
        deadline = self._expectations.next_deadline()
        at_rest = self._daemon is None or self._daemon.at_rest
        if self._ends_at_rest and not self._due and deadline is None and at_rest:
            self._finish()
            return
        due = [self._due[0].at] if self._due else []
        if deadline is not None:
            due.append(max(deadline + self._chord, self._clock.now() + 1))
        if due and self._wake is None:
            # A breath early: at one instant the outside world goes before the daemon's timers.
            self._wake = self._loop.call_at(min(due) / 1e9 - EARLY_S, self._work)

    def _pause(self) -> None:
        self._catch_up()
        if self._loop is not None:
            self._loop.stop()

    def _catch_up(self) -> None:
        """All work due at this time done, unless the program stands still."""
        if self._daemon is not None and self._standing_until < self._clock.now():
            self._daemon.pump()

    def _finish(self) -> None:
        if not self._over and self._loop is not None:
            self._over = True
            self._loop.stop()

    def _on_exception(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._fail(context.get("exception") or RuntimeError(str(context.get("message"))))

    def _claim_refused(self, claim: Claimed, why: str) -> None:
        origin = self._daemon_clock.origin_ns if self._daemon_clock is not None else 0
        line = 0
        for step in self._claims:
            if (step.at - origin, step.seat, step.player) == (claim.at, claim.seat, claim.player):
                line = step.line
                self._claims.remove(step)
                break
        self._fail(StoryError(f"{self._story.source}:{line}: {why}"))

    def _fail(self, error: BaseException) -> None:
        """Pause for the first thing that went wrong; it is raised to who plays."""
        if self._failed is None:
            self._failed = error
        if self._loop is not None:
            self._loop.stop()

    # Steps

    def _power_on(self) -> None:
        if self._loop is None or self._config is None or self._daemon is not None:
            return
        clock = StartedClock(self._clock)
        self._daemon_clock = clock
        world = World(
            clock=clock,
            boot=BOOT,
            journal_executor=InlineExecutor(),
            panel_executor=InlineExecutor(),
            random_bytes=self._random.randbytes,
            open_pins=self._open_pins,
            open_panel=self._open_panel,
            on_line=self._on_line,
            on_turn=self._turned,
            on_refused=self._claim_refused,
            new_seed=lambda: self._drawn_seed("table"),
            on_result=self._on_result,
        )
        self._daemon = self._build(self._config, world, self._loop)
        self._start_reporting(self._daemon, self._config)
        self._turned()  # its first turn came before we had it

    def _drawn_seed(self, whose: str) -> bytes:
        """The key of the simulated table or KI: the same for the same seed, and apart from other drawings."""
        return hashlib.sha256(f"a simulated {whose}, seed {self._seed}".encode()).digest()

    def _start_reporting(self, daemon: Daemon, config: Config) -> None:
        if config.ki.link == "none":
            return
        # Most stories have no link, and what carries one takes its time to load.
        from heek.reporter import Reporter
        from heek.reporting import Reporting

        chance = random.Random(self._drawn_seed("link"))
        who = Reporter(
            journal=daemon.journal,
            key=daemon.key,
            name=config.table.name,
            clock=daemon.clock,
            tell_points=daemon.tell_points,
            bind=daemon.bind,
            incarnation=daemon.incarnation,
            boot=BOOT,
            players=lambda: daemon.players,
        )
        self._reporting = reporting = Reporting(
            who,
            StoryLink(self.ki, lambda: self._ki_up),
            config.ki.link,
            most_bytes=REPORTED_BYTES,
            on_change=lambda: daemon.tell_ki(ki_mark(reporting.status)),
            first_sight=True,
            chance=chance.random,
            draw=chance.randrange,
            slow=InlineExecutor(),
        )
        reporting.start()

    def _stop_reporting(self) -> None:
        reporting, self._reporting = self._reporting, None
        if reporting is not None and self._loop is not None:
            self._loop.run_until_complete(reporting.close())

    def _on_result(self) -> None:
        if self._reporting is not None:
            self._reporting.result_waits()

    def _set_link(self, line: int, up: bool) -> None:
        if self._config is None or self._config.ki.link == "none":
            self._skip(line, "ki: this table has no link to a KI")
            return
        self._ki_up = up
        if up and self._reporting is not None:
            self._reporting.ask_now()

    def _power_off(self) -> None:
        if self._daemon is not None:
            self._daemon.abandon()
        if self._loop is not None:
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
        self._daemon = self._factory = self._reporting = None
        self._claims.clear()

    def _stall(self, until: Instant) -> None:
        if self._daemon is not None and self._clock.now() < until:
            # The program was alive up to here; the loop stands in this very call until the stall is over.
            if self._standing_until < self._clock.now():
                self._daemon.pump()
            self._clock.advance_to(until)
            self._standing_until = until

    def _set_panel(self, ok: bool) -> None:
        self._panel_answers = ok

    def _operator(self, at: Instant) -> None:
        if self._daemon is not None and self._daemon_clock is not None:
            self._daemon.reset(at - self._daemon_clock.origin_ns)

    def _claim(self, step: Claim) -> None:
        if self._daemon is not None and self._daemon_clock is not None:
            self._claims.append(step)
            at = step.at - self._daemon_clock.origin_ns
            self._daemon.claim(step.seat, step.player, step.name, at)

    def _expect(self, step: Expect) -> None:
        self._catch_up()
        self._expectations.begin(step, self._rules_now())

    def _skip(self, line: int, why: str) -> None:
        self._skipped.append(f"{self._story.source}:{line}: skipped: {why}")

    # What the daemon stands on

    def _open_pins(self, _config: Config, clock: Clock) -> TableFactory:
        self._factory = TableFactory(clock)
        for (seat, button), closed in self._closed.items():
            self._line(seat, button).drive(not closed)
        return self._factory

    def _line(self, seat: Seat, button: Kind) -> Any:
        if self._factory is None or self._config is None:
            raise RuntimeError("the table is switched off")
        station = next(each for each in self._config.wired if each.seat == seat)
        return self._factory.line(getattr(station, button.value))

    def _open_panel(self, display: DisplayConfig) -> Oled:
        def open_device(driver: str, bus: int, address: int, rotate: int) -> Panel:
            if not self._panel_answers:
                raise OSError(errno.EREMOTEIO, os.strerror(errno.EREMOTEIO))
            return _StoryPanel(open_luma(driver, bus, address, rotate), lambda: self._panel_answers)

        return Oled(display.driver, display.bus, display.address, display.rotate, open_device=open_device)

    def _on_line(self, line: str) -> None:
        if self._claims:
            event = json.loads(line)
            if event["event"] == "seat_claimed":
                self._claims.remove(next(each for each in self._claims if each.seat == event["seat"]))
        self._expectations.heard(line)
        self._say(line)

    def _turned(self) -> None:
        daemon = self._daemon
        if daemon is None:
            return
        if self._frames is not None and daemon.image is not self._kept_image:
            self._kept_image = daemon.image
            self._keep_picture(self._frames, daemon.image)
        if self._on_turn is not None:
            self._on_turn(self)
        self._look()

    def _keep_picture(self, folder: Path, image: Image.Image) -> None:
        self._pictures += 1
        name = self._screen(self._rules_now())
        file = folder / f"{self._pictures:05d}-{seconds_text(self._clock.now())}-{name}.png"
        try:
            image.save(file)
        except OSError as error:
            raise StoryError(
                f"--frames {file}: cannot be written ({error.strerror or error}); name another folder"
            ) from None

    # What it shows

    @property
    def _chord(self) -> Duration:
        return self._config.stations.chord if self._config is not None else 0

    def _rules_now(self) -> Instant:
        """The instant of the story that the rules have come to."""
        return max(0, self._clock.now() - self._chord)

    def _shown_at(self, now: Instant) -> Instant:
        return now - (self._daemon_clock.origin_ns if self._daemon_clock is not None else 0)

    def _lamp(self, seat: Seat, now: Instant) -> str:
        if self._daemon is None:
            return "free"
        return pattern(self._daemon.shown, seat, self._shown_at(now)).value

    def _screen(self, now: Instant) -> str:
        if self._daemon is None:
            return "off"
        return screen(self._daemon.shown, self._shown_at(now)).name


def simulate(
    story: Story, *, seed: int = 0, frames: Path | None = None, state_dir: Path | None = None
) -> tuple[list[str], Report]:
    """Play a story and return every event's line with the report; see `Simulation`."""
    lines: list[str] = []
    report = Simulation(story, seed=seed, say=lines.append, frames=frames, state_dir=state_dir).run()
    return lines, report
