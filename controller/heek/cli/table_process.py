"""One table in this process: daemon, page and reporting, until it is told to stop.

The daemon and the reporting share the loop of the main thread; the page's server has a thread of its own,
and what browsers ask comes over to the loop from there.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from heek.boot import this_boot, wall_trust
from heek.cli import FAILED, OK
from heek.clock import MILLISECOND, RealClock, nanoseconds
from heek.daemon import Daemon, World
from heek.errors import IllegalAction, LinkError
from heek.kinds import Kind, Seat
from heek.serving.addresses import is_loopback
from heek.telling import Teller

if TYPE_CHECKING:
    from PIL.Image import Image

    from heek.cli.photo_finishes import ReplayedMatches
    from heek.config import Config, DisplayConfig
    from heek.display.oled import Oled
    from heek.journal import Ruling
    from heek.ki.link import Link
    from heek.reporting import KiStatus, Reporting
    from heek.session.inputs import Claimed
    from heek.session.view import View
    from heek.web.doors import SignedIn
    from heek.web.metrics import KiFigures
    from heek.web.server import PageServer
    from heek.web.state import KiLine, Told

log: Final = logging.getLogger("heek")

_T = TypeVar("_T")

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""SIGHUP: the terminal is closed; one that is ignored already (`nohup`) stays so."""

PANEL_PATIENCE_S: Final = 2.0
"""At the end: how long a panel may take to go dark before it is left as it is."""

REPORTING_PATIENCE_S: Final = 1.0
"""At the end: how long the link may take to let go."""

CLAIM_PATIENCE_S: Final = 5.0
"""How long a sign-in waits for the table to take it."""

STAMP_SAMPLES: Final = 100
"""Wake-ups that are measured at the start where stamps are not the kernel's: a tenth of a second."""

MOST_SERIAL_BYTES: Final = 32 * 1024
SERIAL_S: Final = 3.0
"""A request over serial is on the wire for no longer, so that a sign-in need not wait long behind it. Shorter
ones would cost: between two requests the wire waits for the KI."""
HTTP_BYTES: Final = 512 * 1024


@dataclass(frozen=True, slots=True)
class Demonstration:
    """What a demonstration adds to a table."""

    ki_url: str
    """Where a person finds the KI's board."""
    switch_ki: Callable[[bool], None]
    """Start (True) or stop the KI; comes back at once."""
    ki_stopped: Callable[[], bool]
    """Whether it was stopped on purpose."""
    lan_host: str | None = None
    lan_token: str | None = None
    """With an address: the secret by which phones join."""


class TableProcess:
    """The table of one configuration, in this process. `run` it once."""

    def __init__(self, config: Config, demonstration: Demonstration | None = None) -> None:
        self._config = config
        self._demonstration = demonstration
        self._loop = asyncio.new_event_loop()
        self._failed: list[BaseException] = []
        self._teller = Teller()
        self._told: deque[Told] = deque(maxlen=12)
        self._claims: dict[tuple[Seat, str], asyncio.Future[None]] = {}
        self._view: View | None = None
        self._image: Image | None = None
        self._rest: tuple[object, ...] = ()
        """With view and picture: what the page was last handed."""
        self._pins: Any = None
        self.stamps = ""
        """Whose stamps a press is judged by; known once the pins are open."""
        self.page: PageServer | None = None
        self._photos: ReplayedMatches | None = None
        self._daemon: Daemon
        self._boot = this_boot()
        self._reporting: Reporting | None = None
        self._link: Link | None = None
        self._starting: asyncio.Task[None] | None = None
        """Begins to report later than at the start."""
        self._ki_status: KiStatus | None = None
        """What was known of the KI when that last changed."""

    def run(self, on_ready: Callable[[TableProcess], None]) -> int:
        """Play until SIGTERM or Ctrl-C; the exit code.

        `on_ready` is called when everything stands, on the main thread, before the first turn of the loop.
        Raises TableError if it cannot start.
        """
        loop = self._loop
        asyncio.set_event_loop(loop)
        loop.set_exception_handler(self._on_exception)
        for stop in STOP_SIGNALS:
            if stop == signal.SIGHUP and signal.getsignal(stop) is signal.SIG_IGN:
                continue
            # Not by the loop: it gives a signal its default back when it closes, and then the signal kills.
            signal.signal(stop, lambda *_: loop.call_soon_threadsafe(loop.stop))
        journal_executor = ThreadPoolExecutor(1, "heek-journal")
        panel_executor = ThreadPoolExecutor(1, "heek-panel")
        check_executor = ThreadPoolExecutor(1, "heek-check")
        world = World(
            clock=RealClock(),
            boot=self._boot,
            wall_trust=wall_trust,
            journal_executor=journal_executor,
            panel_executor=panel_executor,
            check_executor=check_executor,
            random_bytes=os.urandom,
            open_pins=self._open_pins,
            open_panel=_open_panel,
            on_line=self._on_line,
            on_turn=self._publish,
            on_refused=self._on_refused,
            on_result=self._on_result,
            on_key_kept=self._on_key_kept,
        )
        daemon = self._daemon = Daemon(self._config, world, loop)
        try:
            signal.signal(signal.SIGUSR1, lambda *_: loop.call_soon_threadsafe(daemon.reset))
            self._start_page()
            if daemon.key_kept:
                loop.run_until_complete(self._start_reporting())
            else:
                log.error("the table has no key yet, nor a place to keep one: results wait in memory")
            self._publish()
            on_ready(self)
            loop.run_forever()
        finally:
            self._stop_page()
            loop.run_until_complete(self._stop_reporting())
            daemon.close()
            journal_executor.shutdown()
            check_executor.shutdown()
            for late in (*STOP_SIGNALS, signal.SIGUSR1):
                # Whoever asks for the end again gets the one that is under way.
                signal.signal(late, signal.SIG_IGN)
            loop.close()
        dark = wait([panel_executor.submit(lambda: None)], timeout=PANEL_PATIENCE_S)
        log.info("%s has stopped", self._config.table.name)
        code = FAILED if self._failed else OK
        if dark.not_done:
            # A panel hangs in its bus; its thread would keep the process, and systemd, waiting.
            logging.shutdown()
            os._exit(code)
        panel_executor.shutdown()
        return code

    def stop(self) -> None:
        """End `run` as a signal would; from any thread."""
        # Its loop may have ended by itself meanwhile.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)

    def ki_came_up(self) -> None:
        """Somebody knows that the KI is there again; from any thread."""
        if self._reporting is not None:
            with contextlib.suppress(RuntimeError):
                self._reporting.ask_now()

    def _on_exception(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._failed.append(context.get("exception") or RuntimeError(context["message"]))
        log.error("the table stops: %s", context["message"], exc_info=context.get("exception"))
        self._loop.stop()

    def _open_pins(self, config: Config, clock: Any) -> Any:
        from heek.stations.gpio import open_factory

        self._pins = open_factory(config.stations.backend, config.stations.pin_factory, clock)
        self.stamps = stamps_words(config)
        return self._pins

    # The page

    def _start_page(self) -> None:
        config, demonstration = self._config, self._demonstration
        if config.web.port == 0:
            return
        from heek.cli.photo_finishes import ReplayedMatches
        from heek.web.doors import Doors, PageSettings
        from heek.web.server import PageServer

        photos = ReplayedMatches(config.table.state_dir)
        simulated = config.stations.backend == "mock"
        settings = PageSettings(
            host=config.web.host,
            port=config.web.port,
            name=config.table.name,
            simulated=simulated,
            seats=config.seat_numbers,
            led_pwm=config.stations.led_pwm,
            stamps="" if simulated else self.stamps,
            ki_url=demonstration.ki_url if demonstration is not None else None,
            lan_host=demonstration.lan_host if demonstration is not None else None,
            lan_token=demonstration.lan_token if demonstration is not None else None,
        )
        doors = Doors(
            now=lambda: self._daemon.now,
            contact=self._move_contact if simulated else None,
            fill_seats=self._fill_seats if simulated and config.seats.bots != "never" else None,
            sign_in=self._sign_in if demonstration is not None else None,
            switch_ki=demonstration.switch_ki if demonstration is not None else None,
            fairness=self._fairness,
            ki_figures=self._ki_figures,
            photo_finishes=photos,
        )
        self._photos = photos
        page = PageServer(settings, doors)
        page.start()
        self.page = page

    def _stop_page(self) -> None:
        if self.page is not None:
            self.page.stop()
            self.page = None
        if self._photos is not None:
            self._photos.close()
            self._photos = None

    def _fairness(self) -> tuple[Mapping[str, Any] | None, Sequence[str]]:
        """On the page's thread: what was kept is a value that nobody changes."""
        from heek.fairness.findings import shortcomings

        report = self._daemon.kept_fairness
        settle_ms = self._config.ahyoheek.settle / MILLISECOND
        return report, [] if report is None else shortcomings(report, settle_ms)

    def _move_contact(self, seat: Seat, button: Kind, closed: bool) -> None:
        """Close or open a contact of the mock pins, as a finger would; on the page's thread."""
        station = next(each for each in self._config.wired if each.seat == seat)
        self._pins.line(station.button(button)).drive(not closed)

    def _fill_seats(self) -> None:
        self._loop.call_soon_threadsafe(self._daemon.fill_seats)

    def _publish(self) -> None:
        """Hand the page what it shows, if that has changed: LEDs move there by themselves."""
        page = self.page
        if page is None:
            return
        daemon = self._daemon
        view, image = daemon.shown, daemon.image
        rest = (
            tuple(lamp.pattern for lamp in daemon.lamps.values()),
            self._told[-1] if self._told else None,
            self._ki_status,
            self._ki_stopped(),
        )
        # Views and pictures are made anew when they change; to compare them by value would cost more.
        if view is self._view and image is self._image and rest == self._rest:
            return
        self._view, self._image, self._rest = view, image, rest
        from heek.web.state import page_state

        page.publish(
            page_state(
                view,
                daemon.lamps,
                name=self._config.table.name,
                simulated=self._config.stations.backend == "mock",
                told=list(self._told),
                ki=self._ki_line(),
                now=daemon.now,
                image=image,
            )
        )

    def _on_line(self, line: str) -> None:
        """An event's line, on whatever thread wrote it."""
        log.debug("%s", line)
        if self._config.web.port != 0:
            self._loop.call_soon_threadsafe(self._tell, line)

    def _tell(self, line: str) -> None:
        from heek.web.state import Told

        event = json.loads(line)
        if event["event"] == "seat_claimed":
            self._settle_claim((event["seat"], event["player"]), None)
        self._told.append(Told(event["seq"], nanoseconds(event["at"]), self._teller.tell(event)))
        self._publish()

    def _tell_rulings(self, rulings: Sequence[Ruling]) -> None:
        """What the KI has ruled on matches of this table, among what just happened; on the loop."""
        from heek.told_news import ruling_words
        from heek.web.state import Told

        daemon = self._daemon
        seq = self._told[-1].seq if self._told else 0
        for each in rulings:
            words = ruling_words(each, daemon.clock.wall_s())
            log.info("%s", words)
            self._told.append(Told(seq, daemon.now, words))
        self._publish()

    # The KI

    async def _start_reporting(self) -> None:
        link = self._link = self._open_link()
        if link is None:
            return
        from heek.reporter import Reporter
        from heek.reporting import Reporting

        config, daemon = self._config, self._daemon
        who = Reporter(
            journal=daemon.journal,
            key=daemon.key,
            name=config.table.name,
            clock=daemon.clock,
            tell_points=daemon.tell_points,
            bind=daemon.bind,
            incarnation=daemon.incarnation,
            boot=self._boot,
            players=lambda: daemon.players,
            tell_time=daemon.tell_time,
            tell_rulings=self._tell_rulings,
        )
        self._reporting = Reporting(
            who,
            link,
            config.ki.link,
            most_bytes=HTTP_BYTES if config.ki.link == "http" else serial_bytes(config.ki.baud),
            on_change=self._ki_changed,
            first_sight=_is_at_first_sight(config),
        )
        self._reporting.start()

    def _on_key_kept(self) -> None:
        """On the journal's thread: the key is kept at last, and what it signs may be sent."""

        def begin() -> None:
            self._starting = self._loop.create_task(self._start_reporting(), name="start of the reporting")

        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(begin)

    def _open_link(self) -> Link | None:
        ki = self._config.ki
        if ki.link == "http":
            from heek.ki.http_link import HttpLink

            if not ki.url:
                from heek.ki.discovery import Discovered

                return HttpLink(whereabouts=Discovered(), clock=self._daemon.clock)
            return HttpLink(ki.url, clock=self._daemon.clock)
        if ki.link == "serial":
            from heek.ki.serial_link import SerialLink

            return SerialLink(ki.port, ki.baud, name=self._config.table.name, on_up=self.ki_came_up)
        return None

    async def _stop_reporting(self) -> None:
        if self._starting is not None:
            await self._starting
        if self._reporting is not None:
            try:
                await asyncio.wait_for(self._reporting.close(), REPORTING_PATIENCE_S)
            except TimeoutError:
                log.warning("the link to the KI does not let go; it is left to itself")

    def _ki_changed(self) -> None:
        """What is known of the KI goes to the OLED, and to the page."""
        if self._reporting is not None:
            from heek.ki_on_screen import ki_mark

            # As of now: what the link counts goes on, and is no reason for a new page at every turn.
            self._ki_status = self._reporting.status
            self._daemon.tell_ki(ki_mark(self._ki_status))
        self._publish()

    def _on_result(self) -> None:
        if self._reporting is not None:
            self._reporting.result_waits()

    def _ki_line(self) -> KiLine:
        from heek.web.state import KiLine

        if self._ki_status is None:
            return KiLine()
        from heek.ki.claim import shown_code

        status = self._ki_status
        stopped = self._ki_stopped()
        return KiLine(
            status.link,
            "stopped" if stopped else status.state,
            status.waiting,
            status.last,
            status.reason,
            status.service,
            None if status.claim is None or stopped else shown_code(status.claim),
            status.trouble,
            status.counters,
        )

    def _ki_figures(self) -> KiFigures:
        """On the page's thread: numbers that the loop counts, each read in one go."""
        from heek.web.metrics import KiFigures

        if self._reporting is None or self._link is None:
            return KiFigures()
        status, link = self._reporting.status, self._link.status()
        return KiFigures(
            status.link,
            status.waiting,
            None if status.state == "unknown" else status.state == "up",
            link.up,
            status.last_wall_s,
            link.counters,
        )

    def _ki_stopped(self) -> bool:
        return self._demonstration is not None and self._demonstration.ki_stopped()

    # Signing in by a click: demonstrations alone

    def _sign_in(self, seat: Seat, player: str | None) -> Future[SignedIn]:
        """Claim a KI number, or a new one, for a seat; on the page's thread."""
        return self._from_elsewhere(self._claim(seat, player))

    def _from_elsewhere(self, what: Coroutine[Any, Any, _T]) -> Future[_T]:
        return asyncio.run_coroutine_threadsafe(what, self._loop)

    async def _claim(self, seat: Seat, player: str | None) -> SignedIn:
        from heek.web.doors import SignedIn

        if self._reporting is None:
            raise LinkError("this table has no link to a KI, so nobody can sign in")
        who = await self._reporting.sign_in(player)
        settled: asyncio.Future[None] = self._loop.create_future()
        self._claims[seat, who.player] = settled
        try:
            self._daemon.claim(seat, who.player, who.name)
            await asyncio.wait_for(settled, CLAIM_PATIENCE_S)
        except TimeoutError:
            raise IllegalAction(f"seat {seat} was not claimed in time; try again in the lobby") from None
        finally:
            self._claims.pop((seat, who.player), None)
        return SignedIn(who.player, who.name, who.points)

    def _on_refused(self, claim: Claimed, why: str) -> None:
        if (claim.seat, claim.player) in self._claims:
            self._settle_claim((claim.seat, claim.player), why)
        else:
            log.warning("%s", why)

    def _settle_claim(self, which: tuple[Seat, str], why: str | None) -> None:
        settled = self._claims.get(which)
        if settled is not None and not settled.done():
            if why is None:
                settled.set_result(None)
            else:
                settled.set_exception(IllegalAction(why))


def _is_at_first_sight(config: Config) -> bool:
    """Is the KI whoever answers? On this machine, or at the other end of a wire, it is."""
    if config.ki.link == "serial":
        return True
    host = urlsplit(config.ki.url).hostname or ""
    return host == "localhost" or is_loopback(host)


def serial_bytes(baud: int) -> int:
    """Bytes of records that go into one request over serial; one record goes whatever its size."""
    from heek.ki.delivery import BITS_A_BYTE

    return min(round(SERIAL_S * baud / BITS_A_BYTE), MOST_SERIAL_BYTES)


def stamps_words(config: Config) -> str:
    """Whose stamps a press has, in words; with the measured error where they are not the kernel's."""
    if config.stations.stamps == "simulated":
        return "stamps by the table's own clock"
    if config.stations.stamps == "kernel":
        return "stamps by the kernel"
    from heek.doctor.machine import callback_lateness, milliseconds

    late = callback_lateness(STAMP_SAMPLES)
    return f"stamps by callback, + {milliseconds(max(late, default=0))} or more"


def _open_panel(display: DisplayConfig) -> Oled:
    from heek.display.oled import Oled

    return Oled(display.driver, display.bus, display.address, display.rotate)
