"""Every key of the configuration with its default, its range and its meaning, once.

Reading, the example file and `heek config show` all go by `KEYS`, `STATION_KEYS` and
`DISPLAY_KEYS`; the defaults are those of spec/config.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final, Protocol

from heek.clock import SECOND, nanoseconds
from heek.unseen import first_unseen


class Rule(Protocol):
    """What a key's value must be."""

    def read(self, value: object) -> object:
        """The typed value; raises ValueError with a text that goes after the key's name."""

    def words(self) -> str:
        """The rule in words, for the example file."""


@dataclass(frozen=True, slots=True)
class Seconds:
    """A span of seconds, both ends allowed; read as nanoseconds."""

    low: str
    high: str

    def read(self, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise ValueError(f"must be a number of seconds, {self.low} to {self.high}, not {said(value)}")
        # By way of the shortest text, so that 0.3 from a story means the same as 0.3 in a file.
        number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        if not number.is_finite() or not Decimal(self.low) <= number <= Decimal(self.high):
            raise ValueError(f"{said(value)} is out of range: {self.low} to {self.high} seconds")
        return nanoseconds(number)

    def words(self) -> str:
        return f"{self.low} to {self.high}"


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number, both ends allowed."""

    low: int
    high: int
    note: str = ""
    hexadecimal: bool = False

    def read(self, value: object) -> int:
        span = f"{self._shown(self.low)} to {self._shown(self.high)}"
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"must be a whole number, {span}, not {said(value)}")
        if not self.low <= value <= self.high:
            raise ValueError(f"{self._shown(value)} is out of range: {span}")
        return value

    def words(self) -> str:
        return f"{self._shown(self.low)} to {self._shown(self.high)}{self.note}"

    def _shown(self, value: int) -> str:
        return f"0x{value:02x}" if self.hexadecimal and 0 <= value < 10**20 else said(value)


@dataclass(frozen=True, slots=True)
class Line:
    """A GPIO number; whether the line may be used is for the pin map to judge."""

    def read(self, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"must be a GPIO number (a whole number), not {said(value)}")
        return value

    def words(self) -> str:
        return "GPIO number"


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words or whole numbers."""

    values: tuple[str | int, ...]
    later: tuple[str, ...] = ()
    """Words that the specification has and a later version will know."""

    def read(self, value: object) -> str | int:
        if isinstance(value, str) and value in self.later:
            raise ValueError(f"{said(value)} is not in this version yet; use {self.words()}")
        for choice in self.values:
            # The type too: True == 1, and 2.0 == 2, but neither was meant.
            if type(value) is type(choice) and value == choice:
                return choice
        raise ValueError(f"must be {self.words()}, not {said(value)}")

    def words(self) -> str:
        *rest, last = [said(choice) for choice in self.values]
        return f"{', '.join(rest)} or {last}" if rest else last


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    def read(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise ValueError(f"must be true or false, without quotes, not {said(value)}")
        return value

    def words(self) -> str:
        return "true or false"


@dataclass(frozen=True, slots=True)
class Name:
    """A short text that page, board and OLED can show."""

    longest: int

    def read(self, value: object) -> str:
        if not isinstance(value, str):
            raise ValueError(f"must be a text in double quotes, not {said(value)}")
        if not value.strip():
            raise ValueError("must not be empty or blank")
        if len(value) > self.longest:
            raise ValueError(f"has {len(value)} characters; {self.longest} at most")
        if not value.isprintable():
            raise ValueError("has a character that cannot be shown (a line break, tab or control); remove it")
        unseen = first_unseen(value)
        if unseen is not None:
            raise ValueError(f"has a character that nobody can see ({unseen}); remove it")
        return value

    def words(self) -> str:
        return f"1 to {self.longest} characters"


@dataclass(frozen=True, slots=True)
class Folder:
    """An absolute path of a folder; `~` stands for the home of the user who runs heek."""

    def read(self, value: object) -> Path:
        if isinstance(value, Path):
            value = str(value)
        if not isinstance(value, str) or not value:
            raise ValueError(f"must be the path of a folder in double quotes, not {said(value)}")
        if not value.isprintable():
            raise ValueError("has a character that no path of ours may have (line break, tab or control)")
        try:
            path = Path(value).expanduser()
        except RuntimeError:
            raise ValueError(f"{said(value)}: there is no such home folder; write the path in full") from None
        if not path.is_absolute():
            # A relative one would be another folder wherever heek is started from.
            raise ValueError(f"{said(value)} must begin with / or ~/")
        return path

    def words(self) -> str:
        return "a folder; begins with / or ~/"


@dataclass(frozen=True, slots=True)
class Host:
    """An address of this machine to listen at, or a name of it."""

    def read(self, value: object) -> str:
        if not isinstance(value, str) or not value:
            raise ValueError(f"must be an address in double quotes, not {said(value)}")
        if len(value) > 253 or not re.fullmatch(r"[0-9A-Za-z._:%-]+", value):
            raise ValueError(f"{said(value)} is no address; for example {said('127.0.0.1')}")
        return value

    def words(self) -> str:
        return "an address of this machine"


@dataclass(frozen=True, slots=True)
class WebAddress:
    """Where a KI is, as http://HOST:PORT or https://HOST:PORT, either without the usual port; or empty."""

    def read(self, value: object) -> str:
        if not isinstance(value, str):
            raise ValueError(f"must be an address in double quotes, not {said(value)}")
        match = re.fullmatch(r"https?://([0-9A-Za-z._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?/?", value)
        if value and (match is None or not 0 < int(match[2] or 80) < 65536):
            raise ValueError(f"{said(value)} must be like {said('http://192.168.1.20:8625')}")
        return value.rstrip("/")

    def words(self) -> str:
        return "http://HOST:PORT or https://HOST:PORT"


@dataclass(frozen=True, slots=True)
class DevicePath:
    """The path of a serial port; empty where there is none."""

    def read(self, value: object) -> str:
        if not isinstance(value, str) or not value.isprintable():
            raise ValueError(f"must be the path of a device in double quotes, not {said(value)}")
        if value and not value.startswith("/"):
            raise ValueError(f"{said(value)} must begin with /, for example {said('/dev/serial0')}")
        return value

    def words(self) -> str:
        return "a device that keeps its name: /dev/serial0, or one in /dev/serial/by-id"


@dataclass(frozen=True, slots=True)
class Database:
    """A file of SQLite's, by an absolute path; empty: the one in the service's own folder."""

    def read(self, value: object) -> str:
        if not isinstance(value, str) or not value.isprintable():
            raise ValueError(f"must be the path of a file in double quotes, not {said(value)}")
        if value.startswith(("postgresql:", "postgresql+")):
            raise ValueError("PostgreSQL is not in this version yet; give a file")
        if value and not value.startswith("/"):
            raise ValueError(f"{said(value)} must begin with /")
        return value

    def words(self) -> str:
        return "a file; begins with /"


@dataclass(frozen=True, slots=True)
class Key:
    """One key: `name` is dotted, or bare in a [[station]] or [[display]]."""

    name: str
    rule: Rule
    default: object
    """As it would stand in a file (seconds as text of a number); None: there is no fixed one."""
    meaning: str

    @property
    def field(self) -> str:
        """The name of the value in its dataclass: the key without table and `_s`."""
        return self.name.rpartition(".")[2].removesuffix("_s")

    def default_value(self) -> object:
        """The default, typed."""
        text = self.default
        return self.rule.read(Decimal(str(text)) if isinstance(self.rule, Seconds) else text)


KEYS: Final[tuple[Key, ...]] = (
    Key("table.name", Name(24), "Table 1", "shown on page, board and OLED"),
    Key("table.game", Choice(("ahyoheek",), ("acadmu", "choose")), "ahyoheek", "which game"),
    Key("table.state_dir", Folder(), None, "where the journal is kept"),
    Key("table.on_power_loss", Choice(("resume", "void")), "resume", "what becomes of a match after a cut"),
    Key("table.resume_max_s", Seconds("0", "3600"), "120", "a cut known to be longer ends sign-ins"),
    Key("table.gap_s", Seconds("0.5", "60"), "1", "the program stood still for longer: round broken off"),
    Key("seats.lobby_s", Seconds("2", "120"), "10", "from the last one sitting down to the match"),
    Key("seats.lobby_idle_s", Seconds("10", "3600"), "60", "a lobby of one empties"),
    Key("seats.rematch_s", Seconds("5", "120"), "15", "time to press for another match"),
    Key("seats.hold_s", Seconds("0.5", "3"), "1", "a hold in the lobby (sign in, next game, rules)"),
    Key("seats.leave_s", Seconds("1", "10"), "3", "both outer buttons held: stand up"),
    Key("seats.late_join", Flag(), False, "sit down in a running match"),
    Key("seats.bots", Choice(("never", "ask", "fill")), "never", "may the table take seats itself"),
    Key("ahyoheek.target", Whole(1, 9), 3, "of one kind to end a match"),
    Key(
        "ahyoheek.cycle",
        Choice(("pen-page-beetle", "pen-beetle-page")),
        "pen-page-beetle",
        "which beats which, leftwards",
    ),
    Key("ahyoheek.timer", Choice(("first_throw", "fixed")), "first_throw", "what starts the countdown"),
    Key("ahyoheek.countdown_s", Seconds("1", "60"), "5", "the countdown of a round"),
    Key("ahyoheek.reveal_s", Seconds("0.5", "30"), "4", "how long the throws are shown"),
    Key("ahyoheek.match_over_s", Seconds("1", "60"), "8", "how long the match's end is shown"),
    Key(
        "ahyoheek.idle_s",
        Seconds("10", "3600"),
        "60",
        "no throw for so long: the match is void; above countdown_s + reveal_s + 1",
    ),
    Key("ahyoheek.guard_s", Seconds("0", "2"), "0.3", "presses ignored after a round opens"),
    Key(
        "ahyoheek.settle_s",
        Seconds("0.005", "0.5"),
        "0.03",
        "wait for edges still on their way; above stations.chord_s",
    ),
    Key("ahyoheek.allow_change", Flag(), True, "the last press counts, else the first"),
    Key("ahyoheek.missed_limit", Whole(0, 20, ", 0 off"), 3, "missed rounds running: stand up"),
    Key(
        "ahyoheek.sudden_death_limit",
        Whole(0, 1000, ", 0 none"),
        20,
        "sudden-death rounds without a winner",
    ),
    Key(
        "ahyoheek.winnerless_limit",
        Whole(0, 1000, ", 0 none"),
        50,
        "ordinary rounds running without a winner",
    ),
    Key(
        "ahyoheek.economy", Choice(("stake", "award")), "stake", "who pays the winner: the losers, or nobody"
    ),
    Key("stations.backend", Choice(("gpio", "mock"), ("board",)), None, "what the buttons hang on"),
    Key("stations.pin_factory", Choice(("lgpio", "rpigpio")), "lgpio", "with gpio: the library for the pins"),
    Key("stations.debounce_s", Seconds("0.002", "0.1"), "0.015", "open for so long before a press counts"),
    Key("stations.chord_s", Seconds("0", "0.02"), "0.003", "two buttons of a seat within it count as none"),
    Key("stations.stuck_s", Seconds("5", "600"), "20", "closed for longer: reported as stuck"),
    Key("stations.led_active_high", Flag(), True, "the LED is lit by a high pin"),
    Key("stations.led_pwm", Flag(), True, "dim and breathe; false: on and off only"),
    Key("web.host", Host(), "127.0.0.1", "where the table's page listens; 0.0.0.0: for all who reach it"),
    Key("web.port", Whole(0, 65535, ", 0 no page"), 8125, "the port of the table's page"),
    Key("ki.link", Choice(("none", "http", "serial")), "none", "how results come to the KI"),
    Key("ki.url", WebAddress(), "", "with http: where the KI is; empty: found in the local network (DNS-SD)"),
    Key("ki.port", DevicePath(), "", "with serial: the port"),
    Key("ki.baud", Whole(1200, 4_000_000), 115200, "with serial: its speed"),
    Key("service.host", Host(), "127.0.0.1", "`heek ki serve`: where the KI listens"),
    Key("service.port", Whole(1, 65535), 8625, "its port"),
    Key("service.tls_port", Whole(0, 65535, ", 0 none"), 0, "its port for TLS, for tables with https://"),
    Key("service.database", Database(), "", "its file; empty: ki.sqlite3 in its own folder"),
    Key("service.name", Name(24), "KI", "what it is called"),
    Key("log.level", Choice(("debug", "info", "warning", "error")), "info", "what is logged"),
)

STATION_KEYS: Final[tuple[Key, ...]] = (
    Key("seat", Whole(1, 5), None, "1 to 5, clockwise"),
    Key("pen", Line(), None, "left button"),
    Key("page", Line(), None, "middle button"),
    Key("beetle", Line(), None, "right button"),
    Key("led", Line(), None, "the LED"),
)
"""Without a pin the wiring's own for that seat is taken."""

DISPLAY_KEYS: Final[tuple[Key, ...]] = (
    Key("driver", Choice(("ssd1306", "ssd1309", "sh1106", "dummy")), "ssd1306", "the panel's controller"),
    Key("bus", Whole(0, 255), 1, "N in /dev/i2c-N"),
    Key("address", Whole(0x03, 0x77, hexadecimal=True), 0x3C, "on the I2C bus"),
    Key("rotate", Choice((0, 2)), 0, "2: upside down"),
)

BY_NAME: Final[dict[str, Key]] = {key.name: key for key in KEYS}
SECTIONS: Final[tuple[str, ...]] = tuple(dict.fromkeys(key.name.partition(".")[0] for key in KEYS))
ARRAYS: Final[dict[str, tuple[Key, ...]]] = {"station": STATION_KEYS, "display": DISPLAY_KEYS}

LATER: Final[frozenset[str]] = frozenset(
    {"seats.sign_in_hold_s"}
    | {"acadmu.long_press_s", "acadmu.target", "acadmu.token_set", "acadmu.lenient"}
    | {"acadmu.auto_finish", "acadmu.turn_s"}
)
"""Keys of the specification that a later version will know; until then they are mistakes."""
DRAWN: Final[Mapping[str, str]] = {
    "seed": "its randomness",
    "random_seed": "its randomness",
    "key": "its signing key",
    "secret": "its signing key",
    "private_key": "its signing key",
    "key_id": "its signing key",
    "id": "its signing key, and with it its id",
    "incarnation": "its incarnation",
    "match_id": "the id of each match",
}
"""What a table is given by nobody, by the key under which somebody might try."""
LATER_SECTIONS: Final[frozenset[str]] = frozenset(name.partition(".")[0] for name in LATER) - {"seats"}


def seconds_words(duration: int) -> str:
    """Nanoseconds as the shortest decimal number of seconds, without an exponent."""
    whole, rest = divmod(duration, SECOND)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".")


def said(value: object) -> str:
    """A value as a message quotes it: as in the file, on one line, cut when long."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = quoted(value if len(value) <= 60 else value[:60])
        return text if len(value) <= 60 else f"{text[:40]}…"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, int):
        # A number of thousands of digits refuses to become text at all.
        return str(value) if abs(value) < 10**20 else "a number of more than 20 digits"
    if isinstance(value, float | Decimal):
        text = str(value).lower()
        return text if len(text) <= 40 else f"{text[:40]}…"
    return "nothing" if value is None else f"a {type(value).__name__}"


def quoted(text: str) -> str:
    """A text in double quotes with everything escaped that is not plainly printable."""
    parts = []
    for char in text:
        if char in '"\\':
            parts.append("\\" + char)
        elif char.isprintable():
            parts.append(char)
        else:
            parts.append(f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}")
    return '"' + "".join(parts) + '"'
