"""A real table on mock pins with its page, for whoever works on the page.

`python -m tests.web.table_for_pages`; `--help` names what else it can do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import signal
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from heek.boot import Boot
from heek.clock import Clock, Instant, RealClock
from heek.config import Config, DisplayConfig, from_keys
from heek.daemon import Daemon, World
from heek.display.oled import Oled
from heek.kinds import Kind, Seat
from heek.stations.mock_pins import TableFactory
from heek.telling import Teller
from heek.web.doors import Doors, PageSettings, SignedIn
from heek.web.server import PageServer
from heek.web.state import KiLine, Told, page_state

QUICK: dict[str, object] = {
    "ahyoheek.guard_s": 0.3,
    "ahyoheek.countdown_s": 1,
    "ahyoheek.reveal_s": 0.5,
    "ahyoheek.match_over_s": 1,
    "ahyoheek.target": 2,
    "ahyoheek.idle_s": 30,
}


class TableWithPage:
    """A daemon on a loop and a thread of its own, its mock pins, and the page's server beside it."""

    def __init__(
        self,
        folder: Path,
        settings: PageSettings | None = None,
        *,
        press: bool = True,
        ki: KiLine | None = None,
        **keys: object,
    ) -> None:
        self.config = from_keys(
            {
                "stations.backend": "mock",
                "table.state_dir": str(folder),
                "display": [{"driver": "dummy"}],
            }
            | {name.replace("__", "."): value for name, value in keys.items()},
            "test",
        )
        self.settings = settings or PageSettings(port=0)
        self.ki = ki or KiLine("http", "up", 0, "14:02")
        self.press = press
        self.told: deque[Told] = deque(maxlen=12)
        self.page: PageServer | None = None
        self._teller = Teller()
        self._ready: Future[None] = Future()
        self._pins = threading.Lock()
        self._journal = ThreadPoolExecutor(1)
        self._panel = ThreadPoolExecutor(1)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.daemon: Daemon
        self.factory: TableFactory
        self.clock: Clock

    def __enter__(self) -> TableWithPage:
        self._thread.start()
        self._ready.result(timeout=20)
        return self

    def __exit__(self, *_: object) -> None:
        if self.page is not None:
            self.page.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    @property
    def url(self) -> str:
        """Where the page is, with a slash at its end."""
        assert self.page is not None
        return self.page.url

    def call(self, what: Callable[[], Any]) -> Any:
        """Do something on the table's loop and wait for it."""
        future: Future[Any] = Future()
        self._loop.call_soon_threadsafe(lambda: future.set_result(what()))
        return future.result(timeout=10)

    def start_page(self, settings: PageSettings | None = None) -> PageServer:
        """A new server for the same table; the one before must have been stopped."""
        self.page = PageServer(settings or self.settings, self._doors())
        self.page.start()
        self._publish()
        return self.page

    def contact(self, seat: Seat, button: Kind, closed: bool) -> None:
        """Close or open a contact of the mock pins."""
        station = next(each for each in self.config.wired if each.seat == seat)
        with self._pins:
            self.factory.line(station.button(button)).drive(not closed)

    def _doors(self) -> Doors:
        return Doors(
            now=lambda: self.clock.now(),
            contact=self.contact if self.press else None,
            sign_in=self._sign_in if self.press else None,
            fill_seats=self._fill_seats if self.press and self.config.seats.bots != "never" else None,
        )

    def _fill_seats(self) -> None:
        self._loop.call_soon_threadsafe(self.daemon.fill_seats)

    def _sign_in(self, seat: Seat, player: str | None) -> Future[SignedIn]:
        signed = SignedIn(player or f"{secrets.randbelow(10**8):08d}", f"Guest {seat}", 100)
        future: Future[SignedIn] = Future()

        def claim() -> None:
            self.daemon.claim(seat, signed.player, signed.name)
            future.set_result(signed)

        self._loop.call_soon_threadsafe(claim)
        return future

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self.daemon = Daemon(self.config, self._world(), self._loop)
            if self.page is None:
                self.start_page()
        except BaseException as error:
            self._ready.set_exception(error)
            raise
        self._ready.set_result(None)
        self._loop.run_forever()
        self.daemon.close()
        self._loop.close()

    def _world(self) -> World:
        def open_pins(_config: Config, clock: Clock) -> TableFactory:
            self.clock = clock
            self.factory = TableFactory(clock)
            return self.factory

        def open_panel(display: DisplayConfig) -> Oled:
            return Oled(display.driver, display.bus, display.address, display.rotate)

        return World(
            clock=RealClock(),
            boot=Boot("0b0b0b0b-0000-4000-8000-000000000000", "ntp"),
            journal_executor=self._journal,
            panel_executor=self._panel,
            random_bytes=os.urandom,
            open_pins=open_pins,
            open_panel=open_panel,
            on_line=self._tell,
            on_turn=self._publish,
        )

    def _tell(self, line: str) -> None:
        event = json.loads(line)
        at: Instant = round(event["at"] * 1e9)
        self.told.append(Told(event["seq"], at, self._teller.tell(event)))

    def _publish(self) -> None:
        if self.page is not None:
            self.page.publish(
                page_state(
                    self.daemon.shown,
                    self.daemon.lamps,
                    name=self.config.table.name,
                    simulated=self.settings.simulated,
                    told=list(self.told),
                    ki=self.ki,
                    now=self.clock.now(),
                    image=self.daemon.image,
                )
            )


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description="a real table on mock pins with its page")
    parser.add_argument("--port", type=int, default=8190)
    parser.add_argument("--lan", metavar="ADDRESS", help="let phones join, at this address of this machine")
    parser.add_argument(
        "--slow", action="store_true", help="the table's ordinary times instead of short ones"
    )
    parser.add_argument("--bots", action="store_true", help="seats.bots = ask")
    parser.add_argument("--look", action="store_true", help="as with a real backend: nobody may press")
    given = parser.parse_args()
    settings = PageSettings(
        port=given.port,
        name="Table 1",
        simulated=not given.look,
        ki_url="http://127.0.0.1:8625/",
        lan_host=given.lan,
        lan_token=secrets.token_hex(16) if given.lan else None,
    )
    keys = ({} if given.slow else QUICK) | ({"seats.bots": "ask"} if given.bots else {})
    stop = threading.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: stop.set())
    with (
        tempfile.TemporaryDirectory() as folder,
        TableWithPage(Path(folder), settings, press=not given.look, **keys) as table,
    ):
        print(table.url, flush=True)
        if table.page is not None and table.page.join_url is not None:
            print(table.page.join_url, flush=True)
        stop.wait()


if __name__ == "__main__":
    main()
