"""Plays a story in real time: contacts move on a simulated chip, the real daemon answers, and is judged.

The player is the world outside, as the simulator's runner is, only that its time passes by itself. Instant 0
of the story is when the daemon is ready and has painted its first picture; while it starts again after a
power cut, the story's clock stands, since nobody plays at a dark table.

What this level cannot do is skipped and said: a claim (nobody can sign in), the link to the KI, and edges
that come late on purpose, whose contacts move at their own time. A standstill is SIGSTOP, a power cut is
SIGKILL, the wall clock is the machine's own.

There are two questions, and the machine's slowness must not mix them up:

* Is what the story expects so, give or take `judging.TOLERANCE`? The story's own instants are meant.
* Did the table make of what *really* happened what the simulator makes of it? For that the story is written
  down again as it was played, each contact at the time at which the kernel took its edge, on the daemon's own
  clock, and simulated. Events must be the same, in number, order and fields, their instants within
  `judging.SAME`; a picture on the panel must be one that the simulated table shows.

The daemon's clock begins somewhat before it is ready. Where, is found out by the first press that it
answers: its stamp is that of the edge, which the player made itself.
"""

from __future__ import annotations

import bisect
import heapq
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from heek.clock import MILLISECOND, SECOND, Duration, Instant, nanoseconds
from heek.kinds import Kind, Seat
from heek.simulator.steps import (
    Claim,
    ContactEdge,
    Display,
    End,
    Expect,
    Ki,
    Operator,
    Power,
    RawEdge,
    Stall,
    Step,
    Story,
    WallClock,
    contact_edges,
)
from heek.simulator.story_line import MAX_SECONDS
from heek.stations.lamps import Pattern
from heek.wiring.pin_map import DEFAULT_STATIONS, StationPins
from tests.virtual_pi.judging import (
    SAME,
    TIMES,
    TOLERANCE,
    Told,
    changes,
    differences,
    judge_events,
    moments_to_look,
    unlike,
)
from tests.virtual_pi.kernel_stamps import KernelStamps, stamp_between
from tests.virtual_pi.panel_controller import HEIGHT, WIDTH, PanelController
from tests.virtual_pi.panel_wire import PanelWire, pictures
from tests.virtual_pi.reference import Reference, reference
from tests.virtual_pi.simulated_chip import SimulatedChip
from tests.virtual_pi.table_daemon import Heard, TableDaemon

BY_PRESSES: Final = frozenset({"seat_taken", "seat_ready", "throw_locked", "press_ignored"})
"""Events whose `at` is the stamp of the edge that caused them."""

AFTERGLOW: Final[Duration] = 500 * MILLISECOND
"""After a story's last step: for what the daemon still has to write and to paint."""
LOOK_AFTER: Final[Duration] = 150 * MILLISECOND
"""Lamps and screen get so much time to follow; by then an emulated machine has painted."""
HELD_UP: Final[Duration] = 250 * MILLISECOND
"""So long may the messages of one picture be apart on an emulated machine, at whose rest one is looked at."""
PANEL_PATIENCE: Final[Duration] = 15 * SECOND
LAMP_WINDOW_S: Final = 0.04
"""Eight periods of the PWM."""
LAMP_LOOKS: Final = 7
STEADY_PATTERNS: Final = frozenset({Pattern.FREE.value, Pattern.TAKEN.value, Pattern.THROWN.value})
SPIN: Final[Duration] = 2 * MILLISECOND
"""The last stretch before an edge is not slept but counted."""


def buttons(stations: tuple[StationPins, ...] = DEFAULT_STATIONS) -> tuple[int, ...]:
    """All lines with a button on them."""
    return tuple(line for station in stations for line in station.buttons)


def table_chip(name: str = "table", **options: Any) -> SimulatedChip:
    """The header's chip of a table at rest: every contact open, every LED dark."""
    return SimulatedChip(name, high=buttons(), **options)


@dataclass(frozen=True, slots=True)
class Pull:
    """A contact that the player moved."""

    at: Instant
    """When it should, in the story."""
    moved_ns: int
    """When it did: the kernel's stamp of the edge, or just before it where nobody listened."""
    done_ns: int
    """Just after."""
    seat: Seat
    button: Kind
    closed: bool


@dataclass(slots=True)
class _Life:
    """One start of the daemon."""

    powered_at: Instant
    """In the story."""
    ready_ns: int
    """When it was ready and the story went on."""
    first_event: int
    """How many events there were before."""
    first_pull: int
    origin_ns: int | None = None
    """Where its instant 0 lies on CLOCK_MONOTONIC; None: not known yet."""


@dataclass(frozen=True, slots=True)
class Played:
    """How a story went."""

    failures: tuple[str, ...]
    """Expectations that did not hold, one line each."""
    differences: tuple[str, ...]
    """Between its events and those of the same edges in the simulator; empty: there is none."""
    as_written: bool
    """Whether the events are also those of the story as it is written, in which things may happen at one
    instant that in real time come one after the other."""
    skipped: tuple[str, ...]
    judged: int
    """Expectations that were not skipped."""
    events: tuple[Mapping[str, Any], ...]
    """As the journal has them."""
    pulls: tuple[Pull, ...]
    latencies_ms: tuple[float, ...]
    """From each press to the moment at which the player has read its event."""
    latest_ms: float
    """How late the player was with a contact at worst."""

    @property
    def too_slow(self) -> bool:
        """The machine did not play what is written: it was late, or so late with a bounce that the simulator
        itself makes something else of it. Expectations that failed say nothing of the table then."""
        return self.latest_ms * MILLISECOND > TOLERANCE or not self.as_written

    @property
    def ok(self) -> bool:
        return not self.failures and not self.differences

    def __str__(self) -> str:
        lines = [*self.failures, *self.differences]
        if self.too_slow:
            lines.append(f"the machine was {self.latest_ms:.0f} ms late with a contact")
        return "\n".join(lines) or "as expected"


@dataclass(order=True, slots=True)
class _Due:
    at: Instant
    order: int
    act: Callable[[], None] = field(compare=False)


class StoryPlayer:
    """Plays one story on one table. `daemon` is not started yet; its keys are the story's.

    `same` is how far instants may lie from the simulated ones, for pins whose stamps are not the kernel's;
    `keep` a folder for pictures that the panel shows and the simulated table never does. Raises what the
    simulator raises for a story that does not hold there.
    """

    def __init__(
        self,
        story: Story,
        chip: SimulatedChip,
        panel: PanelWire,
        daemon: TableDaemon,
        *,
        same: Duration = SAME,
        keep: Path | None = None,
    ) -> None:
        self._story = story
        self._same = same
        self._keep = keep
        self._chip, self._panel, self._daemon = chip, panel, daemon
        self._written: Reference = reference(story)
        self._ends_at = next(
            (each.at for each in story.steps if isinstance(each, End)), self._written.ended_at
        )
        self._stations: Mapping[Seat, StationPins] = {each.seat: each for each in DEFAULT_STATIONS}
        self._led_high = bool(daemon.keys.get("stations.led_active_high", True))
        self._pwm = bool(daemon.keys.get("stations.led_pwm", True))
        self._due: list[_Due] = []
        self._orders = 0
        self._moves = sorted(edge.at for edge in contact_edges(story) if not edge.initial)
        """When contacts move."""
        self._zero_ns = 0
        """Where instant 0 of the story lies on CLOCK_MONOTONIC; moves when the clock stands."""
        self._lives: list[_Life] = []
        self._powered = False
        self._pulls: list[Pull] = []
        self._closed_at_start: list[ContactEdge] = []
        self._done: list[tuple[int, Callable[[Instant, int], Step]]] = []
        """What else was done to the table, when, and how to write that down."""
        self._standing_until: Instant = -1
        self._latest: Duration = 0
        self._skipped: list[str] = []
        self._failures: list[tuple[int, str]] = []
        self._screens: list[tuple[Expect, int, int]] = []
        """Expectations of the screen, and since and until when it is looked at (CLOCK_MONOTONIC)."""
        self._judged = 0
        self._pulled_at: Instant = 0
        self._panel_back_at: Instant = 0
        """From when on a panel that was pulled must be there again."""

    def play(self) -> Played:
        """Play it to its end; the daemon is stopped then. Raises NotReady if it does not start."""
        for edge in contact_edges(self._story):
            if edge.initial:
                self._closed_at_start.append(edge)
                self._chip.pull(self._stations[edge.seat].button(edge.button), not edge.closed)
        try:
            with KernelStamps() as stamps:
                self._power_on(0)
                self._schedule()
                while self._due and self._due[0].at <= self._ends_at:
                    due = heapq.heappop(self._due)
                    self._wait(due.at)
                    due.act()
                self._wait(self._ends_at)
                ended_ns = time.monotonic_ns()
                self._wait(self._ends_at + AFTERGLOW)
                self._panel.take()
                taken = stamps.all()
            if self._powered:
                self._daemon.stop()
        finally:
            self._daemon.kill()
        self._learn(taken)
        return self._result(ended_ns)

    def _learn(self, stamps: list[int]) -> None:
        """Put the kernel's own stamps in the place of what the player could see from outside."""
        for number, pull in enumerate(self._pulls):
            stamp = stamp_between(stamps, pull.moved_ns, pull.done_ns)
            if stamp is not None:
                self._pulls[number] = replace(pull, moved_ns=stamp)
        for life in self._lives:
            life.origin_ns = None
            origin = self._origin(life)
            if origin is not None:
                # The trace is written just before the stamp; held up in between, it is early, never late.
                life.origin_ns = max(
                    [
                        origin,
                        *(
                            moved - at
                            for moved, at in self._causes(life, origin)
                            if abs(moved - origin - at) < SAME
                        ),
                    ]
                )

    def _causes(self, life: _Life, origin: int) -> Iterator[tuple[int, Instant]]:
        """For each event that a press has caused: when that contact moved, and the event's own instant."""
        for heard in self._heard(life):
            if heard.event["event"] in BY_PRESSES:
                at = nanoseconds(heard.event["at"])
                moves = [
                    each.moved_ns for each in self._pulls if each.closed and each.seat == heard.event["seat"]
                ]
                if moves:
                    yield min(moves, key=lambda moved: abs(moved - origin - at)), at

    # What is to be done

    def _at(self, at: Instant, act: Callable[[], None]) -> None:
        self._orders += 1
        heapq.heappush(self._due, _Due(at, self._orders, act))

    def _schedule(self) -> None:
        edges: dict[int, list[ContactEdge]] = {}
        for edge in contact_edges(self._story):
            if not edge.initial:
                edges.setdefault(edge.line, []).append(edge)
        for step in self._story.steps:
            for edge in edges.get(step.line, ()):
                self._at(edge.at, partial(self._move, edge))
            match step:
                case Stall(at=at, duration=duration):
                    self._at(at, partial(self._stall, at + duration))
                    self._at(at + duration, self._go_on)
                case WallClock(at=at):
                    self._at(at, partial(self._set_wall_clock, step))
                case Display(at=at):
                    self._at(at, partial(self._set_display, step))
                case Power(at=at, on=True):
                    self._at(at, partial(self._power_on, at))
                case Power(at=at):
                    self._at(at, self._power_off)
                case Operator(at=at):
                    self._at(at, self._operator)
                case Claim(line=line):
                    self._skip(line, "claim: nobody can sign in at this table")
                case Ki(line=line):
                    self._skip(line, "ki: this table has no link to a KI")
                case RawEdge(line=line, delivered=late) if late is not None:
                    self._skip(line, "delivered: the kernel hands over an edge when it can")
                case Expect(at=at):
                    self._at(at, partial(self._expect, step))
                case _:
                    pass

    def _skip(self, line: int, why: str) -> None:
        self._skipped.append(f"{self._story.source}:{line}: skipped: {why}")

    # Time

    def _now(self) -> Instant:
        return time.monotonic_ns() - self._zero_ns

    def _wait(self, at: Instant) -> None:
        until = self._zero_ns + at
        while (left := until - time.monotonic_ns()) > 0:
            if left > SPIN:
                time.sleep((left - SPIN) / SECOND)

    # Steps

    def _move(self, edge: ContactEdge) -> None:
        moved = self._chip.pull(self._stations[edge.seat].button(edge.button), not edge.closed)
        done = time.monotonic_ns()
        self._latest = max(self._latest, done - self._zero_ns - edge.at)
        self._pulls.append(Pull(edge.at, moved, done, edge.seat, edge.button, edge.closed))

    def _power_on(self, at: Instant) -> None:
        first = len(self._daemon.events)
        self._panel.take()
        mark = len(self._panel.log)
        self._daemon.start()
        # A slow machine is ready long before it has painted for the first time.
        patience = time.monotonic_ns() + PANEL_PATIENCE
        while time.monotonic_ns() < patience and not self._has_painted(mark):
            time.sleep(0.02)
        now = time.monotonic_ns()
        self._zero_ns = now - at
        self._lives.append(_Life(at, now, first, len(self._pulls)))
        self._powered = True

    def _has_painted(self, mark: int) -> bool:
        self._panel.take()
        controller = PanelController(self._daemon.driver)
        for record in self._panel.log[mark:]:
            controller.take(record.data)
        return (
            controller.on
            and controller.data_bytes >= WIDTH * HEIGHT // 8
            and any(controller.picture().tobytes())
        )

    def _power_off(self) -> None:
        self._note(lambda at, line: Power(at=at, line=line, on=False))
        self._daemon.kill()
        self._powered = False

    def _stall(self, until: Instant) -> None:
        if self._powered:
            began = time.monotonic_ns()
            self._standing_until = max(self._standing_until, until)
            self._daemon.pause()
            span = self._zero_ns + until - began
            self._done.append((began, lambda at, line: Stall(at=at, line=line, duration=span)))

    def _go_on(self) -> None:
        if self._powered and self._now() >= self._standing_until:
            self._daemon.resume()

    def _set_wall_clock(self, step: WallClock) -> None:
        time.clock_settime(time.CLOCK_REALTIME, step.wall_s)
        self._note(lambda at, line: replace(step, at=at, line=line))

    def _set_display(self, step: Display) -> None:
        if step.ok:
            self._panel.plug()
            # It is tried again after ever longer waits, each as long as all before it.
            self._panel_back_at = step.at + max(step.at - self._pulled_at, SECOND) + 2 * SECOND
        else:
            self._panel.pull()
            self._pulled_at, self._panel_back_at = step.at, MAX_SECONDS * SECOND
        self._note(lambda at, line: replace(step, at=at, line=line))

    def _operator(self) -> None:
        self._daemon.reset()
        self._note(lambda at, line: Operator(at=at, line=line))

    def _note(self, write: Callable[[Instant, int], Step]) -> None:
        self._done.append((time.monotonic_ns(), write))

    # Lamps and screen

    def _expect(self, step: Expect) -> None:
        if step.event is not None:
            self._judged += 1
        elif step.lamp is not None:
            self._expect_lamp(step, step.lamp[0], step.lamp[1])
        else:
            self._expect_screen(step)

    def _undisturbed_until(self, at: Instant) -> Instant:
        """Until when nobody pulls the panel or the plug, or stops the program, or ends the story."""
        breaks = (Display, Power, Stall)
        return min([*(each.at for each in self._story.steps if isinstance(each, breaks) and each.at > at),
                    self._ends_at])  # fmt: skip

    def _expect_lamp(self, step: Expect, seat: Seat, wanted: str) -> None:
        if step.negated or wanted == Pattern.LEAVING.value:
            self._skip(step.line, f"lamp: {'not ' * step.negated}{wanted} cannot be told by looking")
            return
        _, until = self._written.pattern_until(seat, step.at + step.within)
        first = step.at + step.within + LOOK_AFTER
        last = first + 2 * SECOND if until is None else until - 2 * TOLERANCE
        last = min(last, self._undisturbed_until(step.at))
        if last < first:
            self._skip(step.line, f"lamp: {wanted} does not stay for long enough to be looked at")
            return
        self._judged += 1
        self._at(first, partial(self._plan_looks, step, seat, wanted, last))

    def _plan_looks(self, step: Expect, seat: Seat, wanted: str, last: Instant) -> None:
        """By now the daemon's clock should be known: when to look at an LED."""
        origin = self._origin(self._lives[-1])
        looks: list[Instant] = []
        if wanted in STEADY_PATTERNS:
            looks = [self._now()]
        elif origin is not None:
            shift = self._zero_ns - origin
            found = moments_to_look(wanted, self._now() + shift, last + shift, pwm=self._pwm)
            looks = [at - shift for at in found]
        if not looks:
            self._judged -= 1
            self._skip(step.line, f"lamp: {wanted} does not stay as it is for long enough")
        if wanted in STEADY_PATTERNS:
            for at in looks:
                self._at(at, partial(self._look, step, seat, wanted, last))
        elif looks:
            found: list[tuple[float, Instant]] = []
            for at in looks:
                self._at(at, partial(self._glance, seat, wanted, found))
            self._at(looks[-1], partial(self._judge_lamp, step, seat, wanted, found))

    def _measure(self, seat: Seat) -> float | None:
        """How bright an LED is just now, 0 to 1; None: a contact is due, and goes before."""
        now = self._now()
        place = bisect.bisect(self._moves, now - TOLERANCE)
        room = self._moves[place] - now if place < len(self._moves) else SECOND
        if room <= LAMP_WINDOW_S * SECOND + SPIN:
            return None
        share = self._chip.share_high(self._stations[seat].led, LAMP_WINDOW_S)
        return share if self._led_high else 1.0 - share

    def _look(
        self, step: Expect, seat: Seat, wanted: str, last: Instant, seen: tuple[float, ...] = ()
    ) -> None:
        """Measure an LED with a steady pattern several times, as PWM that a thread makes may stutter."""
        later = self._now() + 100 * MILLISECOND
        share = self._measure(seat)
        seen = seen if share is None else (*seen, share)
        if later <= last and len(seen) < LAMP_LOOKS:
            self._at(later, partial(self._look, step, seat, wanted, last, seen))
        else:
            self._judge_lamp(step, seat, wanted, [(each, 0) for each in seen])

    def _glance(self, seat: Seat, wanted: str, found: list[tuple[float, Instant]]) -> None:
        """Measure an LED that blinks, once, unless it went on or off meanwhile."""
        origin = self._origin(self._lives[-1]) or self._zero_ns
        before = time.monotonic_ns() - origin
        share = self._measure(seat)
        after = time.monotonic_ns() - origin
        if share is not None and not changes(wanted, before, after, pwm=self._pwm):
            found.append((share, (before + after) // 2))

    def _judge_lamp(
        self, step: Expect, seat: Seat, wanted: str, found: Sequence[tuple[float, Instant]]
    ) -> None:
        if not found:
            self._judged -= 1
            self._skip(step.line, f"lamp: {wanted}: there was no time to look")
        for share in unlike(found, wanted, pwm=self._pwm):
            self._fail(step.line, f"lamp {seat} is lit {share:.2f} of the time and is not {wanted}")

    def _expect_screen(self, step: Expect) -> None:
        if step.at + step.within < self._panel_back_at:
            self._skip(step.line, f"screen: {step.screen}: the panel is pulled, or not found again yet")
            return
        _, until = self._written.screen_until(step.at + step.within)
        first = step.at + step.within + LOOK_AFTER
        last = first + 2 * SECOND if until is None else until - TOLERANCE
        last = min(last, self._undisturbed_until(step.at))
        if last < first:
            self._skip(step.line, f"screen: {step.screen} does not stay for long enough to be looked at")
            return
        self._judged += 1
        # A slow machine paints late: what is expected may come while it is still due.
        since = last if step.negated else step.at
        self._screens.append((step, self._zero_ns + since, self._zero_ns + min(last, first + 2 * SECOND)))

    def _judge_screens(self, played: Reference) -> None:
        """Each picture must be one that the simulated table shows, and of the screen that was expected."""
        shown = list(pictures(self._panel.log, self._daemon.driver))
        for step, since_ns, until_ns in self._screens:
            first = max((place for place, each in enumerate(shown) if each.since_ns <= since_ns), default=0)
            stood = zip(shown[first:], [*shown[first + 1 :], None], strict=True)
            seen = [
                each
                for each, following in stood
                if each.since_ns <= until_ns
                # The program was held up in the middle of a picture, and went on with it.
                and not (
                    each.image.tobytes() not in played.screens
                    and following is not None
                    and following.since_ns - each.since_ns < HELD_UP
                )
            ]
            names = [played.screens.get(each.image.tobytes()) for each in seen]
            if None in names:
                strange = seen[names.index(None)]
                kept = ""
                if self._keep is not None:
                    kept = f" ({Path(self._story.source).stem}-{step.line}.png)"
                    strange.image.save(self._keep / kept.strip(" ()"))
                since = (strange.since_ns - self._zero_ns) / SECOND
                what = "the panel shows a picture that the simulated table never does"
                self._fail(step.line, f"since {since:.2f} s {what}{kept}")
            elif any(step.screen in each for each in names if each) is step.negated:
                said = sorted({name for each in names if each for name in each})
                self._fail(step.line, f"the screen is {' or '.join(said) or 'dark'}, not {step.screen}")

    def _fail(self, line: int, what: str) -> None:
        self._failures.append((line, f"{self._story.source}:{line}: {what}"))

    # The daemon's clock

    def _heard(self, life: _Life) -> Sequence[Heard]:
        """What it has told in one of its lives."""
        place = self._lives.index(life)
        last = self._lives[place + 1].first_event if place + 1 < len(self._lives) else None
        return self._daemon.events[life.first_event : last]

    def _origin(self, life: _Life) -> int | None:
        """Where instant 0 of a life lies on CLOCK_MONOTONIC; None while it has answered no press."""
        if life.origin_ns is None:
            first = next((each for each in self._heard(life) if each.event["event"] in BY_PRESSES), None)
            if first is not None:
                pulls = self._pulls[life.first_pull :]
                cause = next(
                    (each for each in pulls if each.closed and each.seat == first.event["seat"]), None
                )
                if cause is not None:
                    life.origin_ns = cause.moved_ns - nanoseconds(first.event["at"])
        return life.origin_ns

    def _told(self) -> list[Told]:
        """Every event with its instants in the story."""
        told: list[Told] = []
        for life in self._lives:
            origin = self._origin(life)
            # How long the daemon's clock had run when it said that it was ready.
            shift = 0 if origin is None else life.ready_ns - origin
            for heard in self._heard(life):
                spans = {
                    # What the start itself brought has no place of its own in the story.
                    name: 0 if heard.event[name] == 0 else nanoseconds(heard.event[name]) - shift
                    for name in TIMES
                    if heard.event.get(name) is not None
                }
                told.append(Told(heard.event, life.powered_at + spans["at"], spans))
        return told

    def _latencies(self) -> list[float]:
        """For each press that an event answers: until the player had read it."""
        found = []
        for life in self._lives:
            origin = self._origin(life)
            if origin is None:
                continue
            answers = [each for each in self._heard(life) if each.event["event"] in BY_PRESSES]
            for heard, (moved, at) in zip(answers, self._causes(life, origin), strict=False):
                if abs(moved - origin - at) < TOLERANCE:
                    found.append((heard.at_ns - moved) / MILLISECOND)
        return found

    # The verdict

    def _as_played(self, ended_ns: int) -> Story:
        """What really happened, as a story on the clock of the daemon's first life."""
        zero = self._origin(self._lives[0]) or self._lives[0].ready_ns
        done = list(self._done)
        for life in self._lives[1:]:
            # Without an answered press: a daemon is ready about as long after its instant 0 as the first was.
            began = self._origin(life) or life.ready_ns - (self._lives[0].ready_ns - zero)
            done.append((began, lambda at, line: Power(at=at, line=line, on=True)))
        for pull in self._pulls:
            done.append((pull.moved_ns, partial(_raw_edge, pull)))
        steps: list[Step] = [
            RawEdge(at=0, line=line, seat=edge.seat, button=edge.button, closed=edge.closed)
            for line, edge in enumerate(self._closed_at_start, start=1)
        ]
        for moment, write in sorted(done, key=lambda each: each[0]):
            steps.append(write(max(moment - zero, 1), len(steps) + 1))
        steps.append(End(at=ended_ns - zero, line=len(steps) + 1))
        return replace(self._story, steps=tuple(steps), source=f"{self._story.source} as it was played")

    def _result(self, ended_ns: int) -> Played:
        told = self._told()
        kept = self._daemon.journal()
        played = reference(self._as_played(ended_ns))
        self._judge_screens(played)
        expected = [each for each in self._story.steps if isinstance(each, Expect)]
        late = judge_events(expected, told, self._story.source)
        heard = [each.event for each in told]
        # A process that is killed may have kept what it could not tell any more, never the other way round.
        apart = [] if _within(heard, kept) else ["the journal does not hold what was told"]
        if len(self._lives) == 1 and len(heard) != len(kept):
            apart.append("the journal holds more than was told")
        last = self._lives[-1]
        until = ended_ns - (self._origin(last) or last.ready_ns) if self._powered else None
        apart += differences(kept, played.events, until=until, same=self._same)
        return Played(
            failures=(*(text for _, text in sorted(self._failures)), *late),
            differences=tuple(apart),
            as_written=not differences(kept, self._written.events, until=until, timed=False),
            skipped=tuple(self._skipped),
            judged=self._judged,
            events=tuple(kept),
            pulls=tuple(self._pulls),
            latencies_ms=tuple(self._latencies()),
            latest_ms=self._latest / MILLISECOND,
        )


def _raw_edge(pull: Pull, at: Instant, line: int) -> Step:
    return RawEdge(at=at, line=line, seat=pull.seat, button=pull.button, closed=pull.closed)


def _within(some: Sequence[object], more: Sequence[object]) -> bool:
    """Whether `some` are among `more`, in their order."""
    rest = iter(more)
    return all(each in rest for each in some)
