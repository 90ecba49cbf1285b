"""The daemon: builds the leaves from one configuration and runs them and the table on one event loop.

One thread owns the table. Edges come from whatever thread the pin backend has, are handed over once, and
everything else happens on the loop: drain the edges, let the pure table advance, write down what
happened, and paint the view. Whatever the view shows of a reveal, a seat change or a result is painted only
after the journal has it on the disk; what comes after waits behind it, so nothing is shown out of order. A
disk that does not answer holds nobody up for longer than a second: then it is painted with the mark that it
is not saved.

There is one timer. It is set to the next instant at which anybody has something to do: a rule, a blink, a
digit, a panel to be tried again, or the heartbeat that proves that the program does not stand still.

The simulator runs this same class: only the `World` it stands on is another one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any, Final

from PIL import Image

from heek.boot import Boot
from heek.clock import SECOND, Clock, Duration, Instant, StartedClock
from heek.committed_views import CommittedViews
from heek.config import Config, DisplayConfig
from heek.display.ki_mark import KiMark
from heek.display.oled import Oled
from heek.display.panel_feed import PanelFeed
from heek.fairness.figures import Fairness
from heek.journal import (
    Batch,
    Entry,
    FairnessReport,
    Journal,
    JournalWriter,
    RecordedPart,
    Result,
    SnapshotLabel,
)
from heek.journal.idle_check import full_check
from heek.ki.table_key import TableKey, table_key
from heek.kinds import Kind, Seat
from heek.painting import Painting
from heek.record_chain import RecordChain, bind_results
from heek.recorded_table import RecordedTable
from heek.session import events as ev
from heek.session.events import event_line, event_name
from heek.session.floor import Effects
from heek.session.inputs import Claimed
from heek.session.phases import Phase
from heek.session.play import ROUND_OPEN
from heek.session.state import keep, restore
from heek.session.view import View
from heek.stations.gestures import Edge, Rejected
from heek.stations.gpio import Board
from heek.stations.lamps import Lamp
from heek.wall_time import WallTime

log: Final = logging.getLogger("heek")

HEARTBEATS: Final = 8
"""In each `table.gap_s`: a standstill is noticed to within an eighth of it.

Also on an empty table: a match can begin, and its first round open, within a standstill."""

MOST_WAITS: Final = 8
"""Times running that a round waits `settle_s` for late edges, while the program is late again and again."""

TIDY: Final[Duration] = 300 * SECOND
"""How often an empty table builds its panels anew and has SQLite write its log into the file."""

CHECK_EVERY: Final[Duration] = 24 * 3600 * SECOND
"""How often the journal's file is checked to the last page, on an empty table."""

LONG_LOG: Final = 16 * 1024 * 1024
"""Bytes of SQLite's log after it was written into the file: four times what it keeps by itself."""

KEPT_RECORDINGS: Final = 8 * 1024 * 1024
"""Bytes of recordings that the journal keeps; the oldest go when nobody plays. Thousands of matches."""

RETRY_JOURNAL: Final[Duration] = 5 * SECOND
"""How often a journal that cannot be written is tried again while nothing else is to be written."""

REREAD: Final[Duration] = SECOND
"""How often the lines of contacts that are believed closed are read: an opening may have been lost."""

PASSING: Final = (
    ev.PressIgnored,
    ev.ThrowLocked,
    ev.CountdownStarted,
    ev.ContactStuck,
    ev.ContactFaulty,
    ev.ContactHealed,
)
"""Events that leave what must survive a power cut as it is."""

TELLING: Final = (ev.MatchWon, ev.MatchVoid, ev.LateDelivery)
"""With these the figures of fairness are kept, unless a round is open: they count presses by button."""


def _carry_over(journal: Journal) -> None:
    """Have SQLite write its log into the file; a log that stays long is held by somebody who looks at it."""
    journal.checkpoint()
    if (size := journal.log_bytes()) > LONG_LOG:
        log.warning(
            "%s-wal has %d MB: another program holds an old state of the journal; close that program",
            journal.file,
            size // 1_000_000,
        )


def _draw_seed() -> bytes:
    return os.urandom(32)


@dataclass(frozen=True, slots=True)
class World:
    """What a daemon stands on: the machine, or the simulator."""

    clock: Clock
    boot: Boot
    journal_executor: Executor
    """Runs one call at a time, always on the same thread."""
    panel_executor: Executor
    random_bytes: Callable[[int], bytes]
    open_pins: Callable[[Config, Clock], Any]
    """gpiozero's pin factory; raises BackendError."""
    open_panel: Callable[[DisplayConfig], Oled]
    on_line: Callable[[str], None]
    """Gets every event's line, in order, once the journal has it (or has said that it cannot)."""
    new_seed: Callable[[], bytes] = _draw_seed
    """Draws the secret of the table's key, 32 bytes, if the state folder has none yet."""
    on_turn: Callable[[], None] | None = None
    """Called after each turn of the loop that may have changed what the table shows."""
    on_refused: Callable[[Claimed, str], None] | None = None
    """Gets each claim that the table could not take, with the reason; else it is logged."""
    wall_trust: Callable[[], str] | None = None
    """How far the system's wall clock can be believed now; None: as far as at the start of `boot`."""
    check_executor: Executor | None = None
    """Where the journal is checked in full while nobody plays; None: it is not."""
    on_result: Callable[[], None] | None = None
    """Called, on the journal's thread, when a result is in the journal and waits for the KI."""


class Daemon:
    """One running table. Raises what the configuration, the pins or the journal have against it."""

    def __init__(self, config: Config, world: World, loop: asyncio.AbstractEventLoop) -> None:
        self._config = config
        self._world = world
        self._loop = loop
        self._settings = config.session_settings()
        self._gap = config.table.gap
        self._edges: deque[Edge] = deque()
        self._ignored: frozenset[tuple[Seat, Kind]] = frozenset()
        """Contacts whose edges wake nobody: they flood, and are looked at with the next heartbeat."""
        self._reread_at: Instant = 0
        self._woken = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: Instant | None = None
        self._work_at: Instant | None = None
        self._alive_at: Instant = 0
        self._settled_at: Instant | None = None
        """After the program was late: until when a round waits for edges that are still on their way."""
        self._waits = 0
        self._awake_since: Instant = 0
        """When the program was last late: what it waits for has had no chance to come before that."""
        self._tidied_at: Instant = 0
        self._checked_at: Instant | None = None
        self._checking = False
        self._retry_journal_at: Instant | None = None
        self._closed = False
        self._time_told = False
        self._incarnation = world.random_bytes(8).hex()
        self._writer = JournalWriter(config.table.state_dir, world.journal_executor, world.clock)
        try:
            self._key = table_key(config.table.state_dir, world.new_seed)
            newest = self._writer.ask(lambda journal: bind_results(journal, self._key)).result()
            self._seq, kept, own_deltas, told_points = self._writer.ask(
                lambda journal: (
                    journal.last_seq(),
                    journal.snapshot(),
                    journal.player_deltas(),
                    journal.told_points(),
                )
            ).result()
            snapshot = restore(kept[0]) if kept is not None else None
            # The table's time begins now: what it took to open a large journal is no part of it.
            self._clock = StartedClock(world.clock)
            self._wall = WallTime(self._clock, world.wall_trust or (lambda: world.boot.trust))
            short_cut = kept is not None and self._short_cut(kept[1])
            self._board = Board(
                world.open_pins(config, self._clock),
                config.wired,
                self._edge_from_anywhere,
                origin_ns=self._clock.origin_ns,
                led_active_high=config.stations.led_active_high,
                led_pwm=config.stations.led_pwm,
            )
        except BaseException:
            self._writer.close()
            raise
        feeds = [
            PanelFeed(world.open_panel(each), world.panel_executor, self._clock, self._wake_from_anywhere)
            for each in config.displays
        ]
        self.kept_fairness: Mapping[str, object] | None = None
        """The figures of fairness at the end of the last match; may be read from any thread."""
        self._fairness = Fairness(config.stations.stamps)
        self._painting = Painting(self._board, feeds, config, self._clock, self._fairness.reveals.add)
        self._table = RecordedTable(
            self._settings,
            config.gesture_settings(),
            random_bytes=world.random_bytes,
            closed=self._board.closed_contacts(),
            own_deltas=own_deltas,
            told_points=told_points,
        )
        self._records = RecordChain(
            self._key, config.table.name, bytes.fromhex(self._incarnation), world.boot, newest
        )
        self._view = self._table.view
        self._salvaged = salvaged = self._writer.salvaged
        self._views = CommittedViews(
            self._view, lambda: self._writer.status, () if salvaged is None else (salvaged.sentence,)
        )
        if salvaged is not None:
            log.error("%s", salvaged.sentence)
        self._alive_at = self._clock.now()
        self._commit(
            self._table.start(
                self._incarnation, world.boot.id, snapshot, short_cut=short_cut, first_seq=self._seq + 1
            )
        )
        self._pump()

    # The doors

    @property
    def shown(self) -> View:
        """The view that lamps and panels show: what the journal has, or `not_saving`."""
        return self._views.shown

    @property
    def image(self) -> Image.Image:
        """The picture on the OLED: 128 x 64, one bit."""
        return self._painting.image

    @property
    def lamps(self) -> dict[Seat, Lamp]:
        """What every LED shows."""
        return self._painting.lamps

    @property
    def now(self) -> Instant:
        """What time it is at the table."""
        return self._clock.now()

    @property
    def clock(self) -> Clock:
        """The table's clock, which began with it."""
        return self._clock

    @property
    def rejected(self) -> Rejected:
        """How many edges and presses came to nothing, and why; see `Table.rejected`."""
        return self._table.rejected

    @property
    def journal(self) -> JournalWriter:
        """Where the outbox is."""
        return self._writer

    @property
    def key(self) -> TableKey:
        """What the table signs with."""
        return self._key

    @property
    def incarnation(self) -> bytes:
        """8 bytes, new at each start."""
        return bytes.fromhex(self._incarnation)

    @property
    def players(self) -> list[str]:
        """The KI numbers of those who sit at the table."""
        seats = self._table.kept().seats.values()
        return [seat.player for seat in seats if seat.player is not None]

    def fairness(self) -> dict[str, object]:
        """The figures of fairness since the start; see `Fairness.report`.

        What is counted of edges stands still while a round is open (`rejected`).
        """
        return self._fairness.report(self._settings.seats, self.rejected)

    def _fairness_report(self, effects: Effects) -> FairnessReport | None:
        if self._table.view.phase in ROUND_OPEN or not any(
            isinstance(each, TELLING) for each in effects.events
        ):
            return None
        self.kept_fairness = report = self.fairness()
        return FairnessReport(self._incarnation, json.dumps(report, separators=(",", ":")))

    @property
    def at_rest(self) -> bool:
        """Nobody does anything, nothing is due but the attract screen's movement."""
        return not self._edges and not self._views.waiting and self._table.at_rest

    def reset(self, at: Instant | None = None) -> None:
        """The operator's button, pressed at `at` (now): a running match is void, everybody stands up."""
        self._table.reset(self._clock.now() if at is None else at)
        self._wake_from_anywhere()

    def fill_seats(self) -> None:
        """Somebody asks for bots at the empty seats; they come if `seats.bots` allows it and in the lobby."""
        self._table.fill_seats(self._clock.now())
        self._wake_from_anywhere()

    def tell_points(self, points: Mapping[str, int], acknowledged: Mapping[str, int]) -> None:
        """The KI told what players hold; `acknowledged` are the sums of our deltas that are in that."""
        self._table.tell_points(self._clock.now(), points, acknowledged)
        self._wake_from_anywhere()

    def bind(self, result: Result) -> Result:
        """A result of a key that the table has lost, as a record of this start; on the loop.

        Raises RecordError if it can be none.
        """
        return self._records.bind(result)

    def tell_time(self, now_s: float, asked: Instant) -> None:
        """The KI told, signed, that it is `now_s`, asked at `asked`: labels may go by it from now on."""
        if self._wall.tell(now_s, asked) and self._wall.by_service and not self._time_told:
            self._time_told = True
            log.info("the KI told the time; results are labelled by it until the network sets the clock")

    def tell_ki(self, mark: KiMark | None) -> None:
        """How it stands with the KI, for the OLED; on the loop. None: the table has no link."""
        self._painting.tell_ki(mark, self._clock.now())
        self._wake_from_anywhere()

    def claim(self, seat: Seat, player: str, name: str, at: Instant | None = None) -> None:
        """A signed-in player takes a seat's identity; `World.on_refused` hears if that cannot be."""
        self._table.claim(self._clock.now() if at is None else at, seat, player, name)
        self._wake_from_anywhere()

    def pump(self) -> None:
        """Do everything that is due now; the loop does so by itself."""
        self._pump()

    def close(self) -> None:
        """Put the table away: LEDs off, panels blank, journal closed. May be called twice."""
        if self._closed:
            return
        self._closed = True
        self._disarm()
        self._board.close()
        self._painting.close()
        status = self._writer.close()
        if not status.saving:
            log.error("%d events could not be saved: %s", status.waiting, status.reason)

    def abandon(self) -> None:
        """Let go of everything as the death of the process would: nothing is tidied, nothing is saved."""
        self._closed = True
        self._disarm()
        self._writer.abandon()

    # Edges

    def _edge_from_anywhere(self, edge: Edge) -> None:
        self._edges.append(edge)
        if (edge.seat, edge.button) not in self._ignored:
            self._wake_from_anywhere()

    def _wake_from_anywhere(self) -> None:
        if not self._woken and not self._closed:
            self._woken = True
            self._loop.call_soon_threadsafe(self._on_wake)

    def _on_wake(self) -> None:
        self._woken = False
        if not self._closed:
            self._pump()

    def _on_timer(self) -> None:
        self._timer = None
        now = self._clock.now()
        if self._timer_at is not None:
            self._fairness.lag.add(now - self._timer_at)
        work_at = self._work_at
        if not self._edges and work_at is not None and now < work_at and not self._is_late(now):
            # Only the heartbeat: the program lives, and nothing else is to be done.
            self._alive_at = now
            self._set_timer(now, min(work_at, self._next_heartbeat(now)))
        else:
            self._pump()

    # One turn

    def _pump(self) -> None:
        now = self._clock.now()
        self._notice_standstill(now)
        while self._edges:
            edge = self._edges.popleft()
            self._table.feed(edge)
            if edge.closed and (edge.seat, edge.button) not in self._ignored:
                self._fairness.closed(edge.at, edge.seat, edge.button)
        self._reread(now)
        settled = self._settled_at is None or now >= self._settled_at
        self._commit(self._table.advance(now, settled=settled))
        self._ignored = self._table.flooding
        self._fairness.judged(now - self._config.stations.chord, now)
        if settled:
            self._settled_at, self._waits = None, 0
        self._table.renew(now, self._seq + 1)
        if (salvaged := self._writer.salvaged) is not None and salvaged is not self._salvaged:
            self._salvaged = salvaged
            self._views.tell(salvaged.sentence)
        self._views.advance(now, self._awake_since)
        self._tidy(now)
        self._arm(now, self._painting.paint(self._views.shown, now))
        if self._world.on_turn is not None:
            self._world.on_turn()

    def _reread(self, now: Instant) -> None:
        """Whose opening was lost would be held down for ever: look at the lines now and then."""
        if now < self._reread_at:
            return
        self._reread_at = now + REREAD
        believed = self._table.closed_contacts()
        if believed:
            closed = set(self._board.closed_contacts())
            for seat, button in believed:
                if (seat, button) not in closed:
                    self._table.feed(Edge(now, seat, button, False, read=True))

    def _notice_standstill(self, now: Instant) -> None:
        """Was the program away for so long that edges may lag behind, or that players saw no clock?"""
        if self._is_late(now):
            self._awake_since = now
            if self._waits < MOST_WAITS:
                # The thread that reads the pins stood still as well: give it the settle time to catch up.
                # Not for ever: a program that is always late must still come to a reveal.
                self._waits += 1
                self._settled_at = now + self._settings.settle
        if now - self._alive_at > self._gap:
            log.warning("the program stood still for %.2f s", (now - self._alive_at) / SECOND)
            self._table.stood_still(self._alive_at, now)
        self._alive_at = now

    def _is_late(self, now: Instant) -> bool:
        return self._timer_at is not None and now - self._timer_at > self._settings.settle // 2

    def _commit(self, effects: Effects) -> None:
        for claim, why in effects.refused:
            if self._world.on_refused is not None:
                self._world.on_refused(claim, why)
            else:
                log.warning("%s", why)
        view = self._table.view
        if not effects.events:
            # What could not go with its own events, because an edge was in the way.
            if (part := self._table.part((), self._seq)) is not None:
                self._writer.submit(Batch((), False, None, self._label(), recorded=RecordedPart(*part)))
            if view is not self._view:
                self._view = view
                self._views.add(view)
            return
        self._view = view
        entries = []
        for event in effects.events:
            self._seq += 1
            self._fairness.late_deliveries += isinstance(event, ev.LateDelivery)
            entries.append(Entry(self._seq, event.at, event_name(type(event)), event_line(self._seq, event)))
        part = self._table.part(effects.events, self._seq)
        batch = Batch(
            tuple(entries),
            effects.durable,
            None if all(isinstance(event, PASSING) for event in effects.events) else keep(self._table.kept()),
            self._label(),
            tuple(self._records.add(result, self._wall, self._wall.label()[1]) for result in effects.results),
            RecordedPart(*part) if part is not None else None,
            self._fairness_report(effects),
        )
        future = self._writer.submit(batch)
        self._views.add(view, future if effects.durable else None, self._clock.now())
        if future.done():
            self._written(future, batch)
        else:
            future.add_done_callback(lambda done: self._written_elsewhere(done, batch))

    def _label(self) -> SnapshotLabel:
        mono_ns = self._clock.origin_ns + self._clock.now()
        return SnapshotLabel(self._world.boot.id, mono_ns, *self._wall.label())

    def _written_elsewhere(self, done: Future[Any], batch: Batch) -> None:
        """On the journal's thread: tell the lines, and wake the loop to show what they changed."""
        self._written(done, batch)
        if batch.sync:
            self._wake_from_anywhere()

    def _written(self, done: Future[Any], batch: Batch) -> None:
        if done.exception() is not None:
            self._views.refuse()
            log.error("the journal refused what the table wrote: %s", done.exception())
        elif batch.results and self._world.on_result is not None:
            self._world.on_result()
        for entry in batch.entries:
            self._world.on_line(entry.body)

    def _tidy(self, now: Instant) -> None:
        """Nobody plays: time for what would be in the way otherwise."""
        if self._views.shown.phase is Phase.ATTRACT and now - self._tidied_at >= TIDY:
            self._tidied_at = now
            self._painting.renew()
            self._writer.ask(lambda journal: journal.forget_recordings(KEPT_RECORDINGS))
            self._writer.ask(_carry_over)
            self._check(now)

    def _check(self, now: Instant) -> None:
        """Once a day have the journal's file checked to the last page."""
        executor, last = self._world.check_executor, self._checked_at
        if executor is None or self._checking or (last is not None and now - last < CHECK_EVERY):
            return
        self._checking = True

        def busy() -> bool:
            return self._closed or self._views.shown.phase is not Phase.ATTRACT

        def checked(done: Future[list[str] | None]) -> None:
            # The loop may have ended meanwhile.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._checked, done.result())

        executor.submit(full_check, self._config.table.state_dir, busy).add_done_callback(checked)

    def _checked(self, faults: list[str] | None) -> None:
        self._checking = False
        if faults is not None:
            self._checked_at = self._clock.now()
        if faults:
            sentence = (
                f"A full check found the journal damaged ({faults[0]}). Start the table anew when nobody "
                "plays; `heek journal verify` tells more."
            )
            log.error("%s", sentence)
            self._views.tell(sentence)
            self._wake_from_anywhere()

    # The timer

    def _arm(self, now: Instant, painted_until: Instant | None) -> None:
        table_due = self._table.due()
        if table_due is not None and table_due <= now:
            # A round that waits for edges to catch up; nothing else is left undone by a turn.
            table_due = self._settled_at if self._settled_at is not None else now
        due = [at for at in (table_due, painted_until, self._table.renew_due()) if at is not None]
        if self._table.closed_contacts():
            due.append(self._reread_at)
        if not self._views.saving:
            due.append(self._retry_journal(now))
        if (given_up := self._views.due(self._awake_since)) is not None:
            due.append(given_up)
        if self._views.shown.phase is Phase.ATTRACT:
            due.append(self._tidied_at + TIDY)
        self._work_at = max(min(due), now) if due else None
        self._set_timer(now, max(min([*due, self._next_heartbeat(now)]), now))

    def _next_heartbeat(self, now: Instant) -> Instant:
        beat = self._gap // HEARTBEATS
        return (now // beat + 1) * beat

    def _set_timer(self, now: Instant, at: Instant) -> None:
        if at == self._timer_at and self._timer is not None:
            return
        self._disarm()
        if not self._closed:
            self._timer_at = at
            self._timer = self._loop.call_later((at - now) / SECOND, self._on_timer)

    def _retry_journal(self, now: Instant) -> Instant:
        if self._retry_journal_at is None or self._retry_journal_at <= now:
            if self._retry_journal_at is not None:
                self._writer.retry().add_done_callback(lambda _: self._wake_from_anywhere())
            self._retry_journal_at = now + RETRY_JOURNAL
        return self._retry_journal_at

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timer_at = None

    # After a power cut

    def _short_cut(self, label: SnapshotLabel) -> bool:
        """Is it known that the power was off for no longer than `resume_max_s`?"""
        if label.boot == self._world.boot.id:
            off: float = self._clock.origin_ns + self._clock.now() - label.mono_ns
        else:
            wall_s, trust = self._wall.label()
            if not {label.trust, trust} <= {"ntp", "service"}:
                return False
            off = (wall_s - label.wall_s) * SECOND
        return 0 <= off <= self._settings.resume_max
