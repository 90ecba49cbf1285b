"""Reads a configuration and answers every mistake in it at once, one a line.

A mistake is `SOURCE:LINE: key: what is wrong; what to do`; without the line where there is none to
tell (keys that a story sets, a key that is missing).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

from heek.clock import SECOND
from heek.config.keys import (
    ARRAYS,
    BY_NAME,
    DRAWN,
    KEYS,
    LATER,
    LATER_SECTIONS,
    SECTIONS,
    Key,
    said,
    seconds_words,
)
from heek.config.lines import Place, lines_of
from heek.config.values import (
    AhyoheekConfig,
    Config,
    DisplayConfig,
    KiConfig,
    LogConfig,
    SeatsConfig,
    ServiceConfig,
    StationsConfig,
    TableConfig,
    WebConfig,
    default_state_dir,
)
from heek.errors import ConfigError
from heek.wiring.pin_map import DEFAULT_STATIONS, StationPins, check_pins

MAX_BYTES: Final = 64 * 1024
"""A configuration has some two kilobytes; what is larger than this is some other file."""

_MOST_SUGGESTIONS: Final = 50
"""Comparing names is slow; a file with more unknown keys than this is not ours at all."""

_SYNTAX_HINTS: Final[tuple[tuple[str, str], ...]] = (
    ("Invalid value", "text stands in double quotes, true and false in small letters"),
    ("Illegal character '\\n'", 'the closing quote is missing; a backslash is written "\\\\"'),
    ("Unescaped '\\\\'", 'a backslash is written "\\\\"'),
    ("Cannot overwrite a value", "this key stands twice; remove one"),
    ("Cannot declare", "this table stands twice; put its keys together"),
    ("Invalid initial character", "a key has letters, digits, _ and -; { … } stands on one line"),
    ("Expected '='", 'a line is: key = value; text after a value begins with "#"'),
    ("Expected newline", 'one key a line; text after a value begins with "#"'),
)


def load(path: Path | str) -> Config:
    """Read a table's configuration file; raises ConfigError with all its mistakes, or if it has no table."""
    try:
        return from_text(_text_of(Path(path)), str(path))
    except ConfigError:
        if not is_for_service_alone(path):
            raise
    raise ConfigError(f"{path}: {service_alone_words(path)}, and heek ki serve --config takes this")


def is_for_service_alone(path: Path | str) -> bool:
    """Whether a configuration file is of a KI without a table: it has [service], and at most [log] beside it.

    Raises ConfigError if it cannot be read, or is no TOML.
    """
    _, entries = _parsed(_text_of(Path(path)), str(path))
    sections = {entry.place[0] for entry in entries}
    return "service" in sections and sections <= {"service", "log"}


def service_alone_words(path: Path | str) -> str:
    """What a configuration file of a KI alone comes to; raises ConfigError with all its mistakes."""
    service, _ = load_service(path)
    where = f"port {service.port} of {service.host}"
    return f"of a KI alone: {service.name}, at {where}; heek run wants a table"


def load_service(path: Path | str) -> tuple[ServiceConfig, LogConfig]:
    """What a configuration file says for the KI; it need have no table in it.

    Raises ConfigError with all mistakes of the file, the table's too.
    """
    reading, entries = _parsed(_text_of(Path(path)), str(path))
    return reading.service(entries)


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except IsADirectoryError:
        raise ConfigError(
            f"{path}: is a folder; give the file in it, for example {path / 'table.toml'}"
        ) from None
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: there is no such file; `heek config example > {path}` writes one to start from"
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigError(f"{said(str(path))[1:-1]}: cannot be read: {reason}") from None
    if len(data) > MAX_BYTES:
        raise ConfigError(
            f"{path}: is larger than {MAX_BYTES // 1024} KiB, so it is no configuration of a table; "
            "give the right file"
        )
    try:
        # Notepad puts a byte-order mark before what somebody edits on the Pi's boot partition.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path}:{line}: is not UTF-8 text (byte 0x{data[error.start]:02x}); save the file as UTF-8"
        ) from None
    return text


def from_text(text: str, source_name: str) -> Config:
    """Read a configuration from TOML text; `source_name` stands before each mistake.

    Raises ConfigError with all mistakes; with the first only where the text is no TOML.
    """
    reading, entries = _parsed(text, source_name)
    return reading.config(entries)


def _parsed(text: str, source_name: str) -> tuple[_Reading, list[_Entry]]:
    try:
        document = tomllib.loads(text, parse_float=_decimal)
    except RecursionError:
        raise ConfigError(f"{source_name}: not valid TOML: brackets are nested too deeply") from None
    except ValueError as error:
        raise ConfigError(f"{source_name}{_syntax_mistake(str(error), text)}") from None
    reading = _Reading(source_name, lines_of(text))
    entries: list[_Entry] = []
    for name, value in document.items():
        if isinstance(value, dict) and (name in SECTIONS or name in LATER_SECTIONS):
            entries += [_Entry((name, key), inner) for key, inner in value.items()]
        else:
            entries.append(_Entry((name,), value))
    return reading, entries


def from_keys(keys: Mapping[str, object], source_name: str) -> Config:
    """Read a configuration from dotted names, as stories set them.

    `station` and `display` may be lists of tables. Raises ConfigError with all mistakes.
    """
    entries = []
    for name, value in keys.items():
        section, dot, key = name.partition(".")
        entries.append(_Entry((section, key) if dot else (section,), value))
    return _Reading(source_name, {}).config(entries)


@dataclass(frozen=True, slots=True)
class _Entry:
    place: tuple[str, ...]
    value: object

    @property
    def known_as(self) -> str:
        """The dotted name if every part could stand in one, else something that no key is called."""
        return ".".join(self.place) if all("." not in part for part in self.place) else ""


@dataclass(frozen=True, slots=True)
class _Mistake:
    line: int | None
    text: str


class _Reading:
    """One pass over one configuration, gathering mistakes on the way."""

    def __init__(self, source: str, lines: Mapping[Place, int]) -> None:
        self.source = source
        self.lines = lines
        self.mistakes: list[_Mistake] = []
        self.suggestions = 0

    def config(self, entries: list[_Entry]) -> Config:
        values, wrong, arrays = self.values(entries)
        self.required(values, wrong)
        self.cross_checks(values)
        wired = self.stations(arrays.get("station"))
        displays = self.displays(arrays.get("display"), values.get("stations.backend"))
        self.complain()
        return Config(
            table=TableConfig(**_section("table", values)),
            seats=SeatsConfig(**_section("seats", values)),
            ahyoheek=AhyoheekConfig(**_section("ahyoheek", values)),
            stations=StationsConfig(**_section("stations", values)),
            wired=wired,
            displays=displays,
            web=WebConfig(**_section("web", values)),
            ki=KiConfig(**_section("ki", values)),
            service=ServiceConfig(**_section("service", values)),
            log=LogConfig(**_section("log", values)),
            source=self.source,
        )

    def service(self, entries: list[_Entry]) -> tuple[ServiceConfig, LogConfig]:
        values, _, arrays = self.values(entries)
        self.cross_checks(values)
        self.stations(arrays.get("station"))
        self.displays(arrays.get("display"), values.get("stations.backend"))
        self.complain()
        return ServiceConfig(**_section("service", values)), LogConfig(**_section("log", values))

    def values(self, entries: list[_Entry]) -> tuple[dict[str, Any], set[str], dict[str, object]]:
        """The typed value of every key, which of them were wrong, and the arrays as they stand."""
        values: dict[str, Any] = {}
        wrong: set[str] = set()
        arrays: dict[str, object] = {}
        for entry in entries:
            name = entry.known_as
            if name in ARRAYS:
                arrays[name] = entry.value
            elif name in BY_NAME:
                try:
                    values[name] = BY_NAME[name].rule.read(entry.value)
                except ValueError as error:
                    wrong.add(name)
                    self.mistake(entry.place, f"{name}: {error}")
            else:
                self.unknown(entry)
        for key in KEYS:
            if key.default is not None and key.name not in wrong:
                values.setdefault(key.name, key.default_value())
        return values, wrong, arrays

    def complain(self) -> None:
        """Raise ConfigError with what was gathered, if anything was."""
        if self.mistakes:
            # Stable: what has no line keeps its order and goes last.
            self.mistakes.sort(key=lambda mistake: mistake.line or 10**9)
            raise ConfigError("\n".join(self.shown(mistake) for mistake in self.mistakes))

    def mistake(self, place: Place, text: str) -> None:
        self.mistakes.append(_Mistake(self.lines.get(place), text))

    def shown(self, mistake: _Mistake) -> str:
        where = self.source if mistake.line is None else f"{self.source}:{mistake.line}"
        return f"{where}: {mistake.text}"

    def unknown(self, entry: _Entry) -> None:
        name = entry.known_as
        shown = ".".join(_shown(part) for part in entry.place)
        section = entry.place[0]
        if entry.place[-1] in DRAWN:
            self.mistake(
                entry.place,
                f"{shown}: a table draws {DRAWN[entry.place[-1]]} itself, so that nobody can foresee or "
                "choose it; remove it",
            )
        elif name in LATER or (len(entry.place) == 1 and section in LATER_SECTIONS):
            self.mistake(entry.place, f"{shown}: not in this version yet; remove it")
        elif section in LATER_SECTIONS:
            self.mistake(entry.place, f"{shown}: unknown key; nothing of [{section}] is in this version yet")
        elif len(entry.place) == 1 and section in SECTIONS:
            self.mistake(entry.place, f"{shown}: must be a table [{section}], not {said(entry.value)}")
        elif len(entry.place) == 1 and section in BY_NAME:
            self.mistake(entry.place, f"{shown}: unknown key; write it without quotes: {section} = …")
        elif len(entry.place) == 1 and isinstance(entry.value, dict | list):
            self.mistake(entry.place, f"{shown}: unknown table{self.similar(section, [*SECTIONS, *ARRAYS])}")
        else:
            self.mistake(entry.place, f"{shown}: unknown key{self.similar_key(entry.place)}")

    def similar_key(self, place: tuple[str, ...]) -> str:
        section, key = place[0], place[-1]
        if section in SECTIONS:
            # The key alone first: in the full name a shared table would make all keys look alike.
            here = [known.name.partition(".")[2] for known in KEYS if known.name.startswith(f"{section}.")]
            close = self.close(key, here)
            if close:
                return f"; did you mean {section}.{close}?"
        elsewhere = [known.name for known in KEYS if known.name.endswith(f".{key}")]
        if elsewhere:
            return f"; did you mean {elsewhere[0]}?"
        return self.similar(".".join(place), list(BY_NAME), cutoff=0.8)

    def similar(self, name: str, known: list[str], cutoff: float = 0.6) -> str:
        close = self.close(name, known, cutoff)
        return f"; did you mean {close}?" if close else ""

    def close(self, name: str, known: list[str], cutoff: float = 0.6) -> str | None:
        self.suggestions += 1
        if self.suggestions > _MOST_SUGGESTIONS or len(name) > 60:
            return None
        # Only mistakes need it; a daemon that starts well is spared the import.
        import difflib

        return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=cutoff)), None)

    def required(self, values: dict[str, Any], wrong: set[str]) -> None:
        if "stations.backend" not in values and "stations.backend" not in wrong:
            self.mistake(
                ("stations",),
                'stations.backend: must be given: "gpio" for the pins of a Pi, "mock" for none',
            )
        if "table.state_dir" not in values and "table.state_dir" not in wrong and not self.mistakes:
            # Asked last: it depends on the user who asks, and may itself be refused.
            try:
                values["table.state_dir"] = BY_NAME["table.state_dir"].rule.read(default_state_dir())
            except ConfigError as error:
                self.mistake((), str(error))
            except ValueError as error:
                self.mistake((), f"table.state_dir: the platform's default {error}; set it")

    def cross_checks(self, values: Mapping[str, Any]) -> None:
        def known(*names: str) -> bool:
            return all(name in values for name in names)

        def complain(names: tuple[str, ...], text: str) -> None:
            places = [tuple(name.split(".")) for name in names]
            self.mistake(next((place for place in places if place in self.lines), places[0]), text)

        settle, chord = "ahyoheek.settle_s", "stations.chord_s"
        if known(settle, chord) and values[settle] <= values[chord]:
            complain(
                (settle, chord),
                f"{settle}: {seconds_words(values[settle])} must be above {chord}, "
                f"which is {seconds_words(values[chord])}; raise the one or lower the other",
            )
        idle, countdown, reveal = "ahyoheek.idle_s", "ahyoheek.countdown_s", "ahyoheek.reveal_s"
        if known(idle, countdown, reveal):
            least = values[countdown] + values[reveal] + SECOND
            if values[idle] <= least:
                complain(
                    (idle, countdown, reveal),
                    f"{idle}: {seconds_words(values[idle])} must be above countdown_s + reveal_s + 1, "
                    f"which is {seconds_words(least)}; raise it",
                )
        if values.get("ki.link") == "serial" and values.get("ki.port") == "":
            complain(
                ("ki.link",),
                'ki.link: "serial" needs ki.port; set it, for example ki.port = "/dev/serial0"',
            )
        tls_port, port = "service.tls_port", "service.port"
        if known(tls_port, port) and values[tls_port] == values[port]:
            complain((tls_port, port), f"{tls_port}: is {port} too; each needs a port of its own")

    def tables(self, name: str, value: object) -> list[tuple[Place, str, dict[str, Any]]]:
        """The elements of an array of tables: place, words for a message, values (None: wrong)."""
        if value is None:
            return []
        if not isinstance(value, list | tuple) or not all(isinstance(table, dict) for table in value):
            self.mistake(
                (name,), f"{name}: must be tables, each under a heading [[{name}]], not {said(value)}"
            )
            return []
        keys = {key.field: key for key in ARRAYS[name]}
        tables: list[tuple[Place, str, dict[str, Any]]] = []
        for position, table in enumerate(value):
            place: Place = (name, position)
            words = f"[[{name}]] {position + 1} of {len(value)}"
            values: dict[str, Any] = {}
            for key, inner in table.items():
                if key not in keys:
                    shown = _shown(str(key))
                    self.mistake(
                        (*place, key),
                        f"{words}: {shown}: unknown key{self.similar(shown, list(keys))}",
                    )
                    continue
                try:
                    values[key] = keys[key].rule.read(inner)
                except ValueError as error:
                    values[key] = None
                    self.mistake((*place, key), f"{words}: {key}: {error}")
            tables.append((place, words, values))
        return tables

    def stations(self, value: object) -> tuple[StationPins, ...]:
        before = len(self.mistakes)
        wired: dict[int, tuple[Place, StationPins]] = {}
        unknown: list[str] = []
        tables = self.tables("station", value)
        for place, words, values in tables:
            seat = values.setdefault("seat", 0)
            if seat == 0:
                self.mistake(place, f"{words}: seat: must be given, 1 to 5")
            elif seat in wired:
                self.mistake(
                    (*place, "seat"), f"{words}: seat: seat {seat} has a station already; remove one"
                )
            elif seat is not None:
                standard = next(pins for pins in DEFAULT_STATIONS if pins.seat == seat)
                pins = {role: values.get(role, pin) for role, pin in standard.roles}
                # What is no number is told already; the other pins are looked at all the same.
                unknown += [f"seat {seat} {role}:" for role, pin in pins.items() if pin is None]
                wired[seat] = (
                    place,
                    StationPins(seat, *(_NO_PIN if pin is None else pin for pin in pins.values())),
                )
        if value is None:
            return DEFAULT_STATIONS
        if not 2 <= len(tables) <= 5 and (tables or len(self.mistakes) == before):
            count = "none" if not tables else "1 station" if len(tables) == 1 else f"{len(tables)} stations"
            self.mistake(("station",), f"station: {count}; two to five [[station]] make a table")
        stations = tuple(wired[seat][1] for seat in sorted(wired))
        for text in check_pins(stations):
            if text.startswith(tuple(unknown)):
                continue
            self.mistakes.append(_Mistake(self.line_of_pin(text, wired), f"[[station]] {text}"))
        return stations

    def line_of_pin(self, text: str, wired: Mapping[int, tuple[Place, StationPins]]) -> int | None:
        """The line of the pin that a mistake of `check_pins` begins with: `seat 2 pen: …`."""
        match = re.match(r"seat (\d) (\w+):", text)
        if match is None or int(match[1]) not in wired:
            return None
        place = wired[int(match[1])][0]
        return self.lines.get((*place, match[2]), self.lines.get(place))

    def displays(self, value: object, backend: object) -> tuple[DisplayConfig, ...]:
        tables = self.tables("display", value)
        if not tables:
            fallback = {} if backend == "gpio" else {"driver": "dummy"}
            tables = [((), "", fallback)]
        displays = []
        taken: dict[tuple[int, int], str] = {}
        for place, words, values in tables:
            display = DisplayConfig(**{key.field: values.get(key.field, key.default) for key in _DISPLAY})
            at = (display.bus, display.address)
            if display.driver != "dummy" and None not in (display.driver, *at):
                if at in taken:
                    self.mistake(
                        place,
                        f"{words}: bus {at[0]} address 0x{at[1]:02x} is that of {taken[at]}; "
                        "two panels need two addresses or two buses",
                    )
                taken.setdefault(at, words)
            displays.append(display)
        return tuple(displays)


_NO_PIN: Final = -1

_DISPLAY: Final[tuple[Key, ...]] = ARRAYS["display"]


def _section(section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {key.field: values[key.name] for key in KEYS if key.name.startswith(f"{section}.")}


def _shown(part: str) -> str:
    """A part of a key as a message shows it."""
    if re.fullmatch(r"[A-Za-z0-9_-]+", part) and len(part) <= 60:
        return part
    return said(part)


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        # An exponent beyond what Decimal can hold: out of any range of ours.
        return Decimal("-inf" if text.startswith("-") else "inf")


def _syntax_mistake(text: str, source: str) -> str:
    """The parser's complaint with our line number before it and a hint behind."""
    match = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", text, re.DOTALL)
    if match is None:
        return f": not valid TOML: {' '.join(text.split(';')[0].split())}"
    what, line, column = match[1].replace("\n", " "), match[2], match[3]
    hint = next((f"; {hint}" for start, hint in _SYNTAX_HINTS if what.startswith(start)), "")
    if line is None:
        return f":{source.rstrip().count(chr(10)) + 1}: not valid TOML: {what} before the file's end{hint}"
    return f":{line}: not valid TOML: {what} (column {column}){hint}"
