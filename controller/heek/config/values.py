"""The configuration as typed, frozen values, and what session and gestures take from it.

Keys that end in `_s` stand here without it, as exact nanoseconds: `ahyoheek.countdown_s = 5` is
`config.ahyoheek.countdown == 5_000_000_000`.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from heek.clock import Duration
from heek.errors import ConfigError
from heek.kinds import Seat
from heek.session.settings import GestureSettings, SessionSettings
from heek.wiring.pin_map import StationPins


@dataclass(frozen=True, slots=True)
class TableConfig:
    """`[table]`: what the table is called, what it plays and where it keeps things."""

    name: str
    """1 to 24 printable characters."""
    game: str
    state_dir: Path
    """Absolute; may not exist yet."""
    on_power_loss: str
    """`resume` or `void`."""
    resume_max: Duration
    gap: Duration


@dataclass(frozen=True, slots=True)
class SeatsConfig:
    """`[seats]`: sitting down, waiting, standing up."""

    lobby: Duration
    lobby_idle: Duration
    rematch: Duration
    hold: Duration
    leave: Duration
    late_join: bool
    bots: str
    """`never`, `ask` or `fill`."""


@dataclass(frozen=True, slots=True)
class AhyoheekConfig:
    """`[ahyoheek]`: the rules' choices and their clock."""

    target: int
    cycle: str
    timer: str
    countdown: Duration
    reveal: Duration
    match_over: Duration
    idle: Duration
    guard: Duration
    settle: Duration
    allow_change: bool
    missed_limit: int
    sudden_death_limit: int
    winnerless_limit: int
    economy: str


@dataclass(frozen=True, slots=True)
class StationsConfig:
    """`[stations]`: how the buttons are read and the LEDs driven."""

    backend: str
    """`gpio` or `mock`."""
    pin_factory: str
    """`lgpio` or `rpigpio`; of no meaning to `mock`."""
    debounce: Duration
    chord: Duration
    stuck: Duration
    led_active_high: bool
    led_pwm: bool

    @property
    def stamps(self) -> str:
        """Where the instants of edges come from: `kernel`, `callback` (later by as much as that is late),
        or `simulated`."""
        if self.backend != "gpio":
            return "simulated"
        return "kernel" if self.pin_factory == "lgpio" else "callback"


@dataclass(frozen=True, slots=True)
class DisplayConfig:
    """One `[[display]]`: a panel of 128 x 64 pixels."""

    driver: str
    """`ssd1306`, `ssd1309`, `sh1106` or `dummy`."""
    bus: int
    """The number in /dev/i2c-N; of no meaning to `dummy`, as is the address."""
    address: int
    """7-bit I2C address, 0x03 to 0x77."""
    rotate: int
    """0, or 2 for upside down."""


@dataclass(frozen=True, slots=True)
class WebConfig:
    """`[web]`: the table's page."""

    host: str
    port: int
    """0: there is no page."""


@dataclass(frozen=True, slots=True)
class KiConfig:
    """`[ki]`: how results come to the KI."""

    link: str
    """`none`, `http` or `serial`."""
    url: str
    """Without a slash at its end; empty: with `http` the KI is found by DNS-SD, else there is none."""
    port: str
    baud: int
    """Bits a second on the wire, ten of them a byte."""


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    """`[service]`: the KI itself, for `heek ki serve`."""

    host: str
    port: int
    tls_port: int
    """0: it listens without TLS alone."""
    database: str
    """A file's path; empty: ki.sqlite3 in the platform's state folder."""
    name: str


@dataclass(frozen=True, slots=True)
class LogConfig:
    """`[log]`."""

    level: str
    """`debug`, `info`, `warning` or `error`."""


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that the configuration says, defaults filled in and checked."""

    table: TableConfig
    seats: SeatsConfig
    ahyoheek: AhyoheekConfig
    stations: StationsConfig
    wired: tuple[StationPins, ...]
    """The stations there are, by seat, ascending; two to five."""
    displays: tuple[DisplayConfig, ...]
    """In the file's order; never empty."""
    web: WebConfig
    ki: KiConfig
    service: ServiceConfig
    log: LogConfig
    source: str = field(compare=False, default="")
    """Where it was read from, for messages; two configurations are equal whatever it says."""

    @property
    def seat_numbers(self) -> tuple[Seat, ...]:
        """The seats that have a station, ascending."""
        return tuple(station.seat for station in self.wired)

    def session_settings(self) -> SessionSettings:
        """What the session plays by."""
        table, seats, game = self.table, self.seats, self.ahyoheek
        return SessionSettings(
            name=table.name,
            seats=self.seat_numbers,
            lobby=seats.lobby,
            lobby_idle=seats.lobby_idle,
            rematch=seats.rematch,
            bots=seats.bots,
            late_join=seats.late_join,
            target=game.target,
            cycle=game.cycle,
            timer=game.timer,
            countdown=game.countdown,
            reveal=game.reveal,
            match_over=game.match_over,
            idle=game.idle,
            guard=game.guard,
            settle=game.settle,
            allow_change=game.allow_change,
            missed_limit=game.missed_limit,
            sudden_death_limit=game.sudden_death_limit,
            winnerless_limit=game.winnerless_limit,
            economy=game.economy,
            resume=table.on_power_loss == "resume",
            resume_max=table.resume_max,
        )

    def gesture_settings(self) -> GestureSettings:
        """What turns edges into presses and holds."""
        return GestureSettings(
            debounce=self.stations.debounce,
            chord=self.stations.chord,
            stuck=self.stations.stuck,
            hold=self.seats.hold,
            leave=self.seats.leave,
        )


def default_state_dir() -> Path:
    """The platform's folder for what the table keeps; absolute, not created here.

    systemd's $STATE_DIRECTORY (the first, if it names several), else $XDG_STATE_HOME/heek, else
    ~/.local/state/heek; on macOS ~/Library/Application Support/heek. Raises ConfigError when there
    is not even a home folder.
    """
    # A relative path in either variable is to be ignored (XDG base directories, "Basics"); it would
    # mean another folder at every start.
    given = os.environ.get("STATE_DIRECTORY", "").split(":")[0]
    if given.startswith("/"):
        return Path(given)
    try:
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Application Support" / "heek"
        xdg = os.environ.get("XDG_STATE_HOME", "")
        return (Path(xdg) if xdg.startswith("/") else Path.home() / ".local" / "state") / "heek"
    except RuntimeError:
        raise ConfigError(
            "table.state_dir: this user has no home folder to keep the journal in; "
            'set it, for example state_dir = "/var/lib/heek"'
        ) from None
