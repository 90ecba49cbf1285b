"""`heek selftest`: walks LEDs, buttons and panel with a person, or learns which pin each button is on.

On mock pins typed lines stand for fingers: `press 1 pen`, `hold 1 pen`, `release 1 pen`, and with --learn
`press 17` for the button on GPIO17. So it can be tried, and is tested, where there is no table.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import re
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from heek.cli import FAILED, OK, machine_output
from heek.clock import SECOND, Clock, Instant
from heek.durable import FULL
from heek.errors import BackendError, ConfigError
from heek.kinds import Kind

if TYPE_CHECKING:
    from heek.config import Config
    from heek.display.oled import Oled
    from heek.selftest.asking import Ask, Conversation, Input

FINGER_S: Final = 0.08
"""How long a typed press holds a mock button down."""


def add_to(commands: Any) -> None:
    """Add `selftest` to the commands."""
    parser = commands.add_parser(
        "selftest",
        help="press every button, look at every LED and the panel; or learn the pins",
        description="Walks round the table with you: asks for each button, shows each LED and the panel, and "
        "gives a verdict for each. Ends with 0 if all are fine, else with 1. Ctrl-C ends it: LEDs dark, file "
        "as it was. On mock pins type what your fingers would do: press 1 pen, hold 1 pen, release 1 pen.",
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="table.toml")
    parser.add_argument("--learn", action="store_true", help="find which GPIO each button is on")
    parser.add_argument("--write", action="store_true", help="with --learn: put what was learned into FILE")
    parser.add_argument("--json", action="store_true", help="the result for programs; questions go to stderr")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Test, or learn; raises ConfigError or BackendError if it cannot begin."""
    from heek.clock import RealClock
    from heek.config import load
    from heek.journal.lock import holder

    if arguments.write and not arguments.learn:
        raise ConfigError("--write: goes with --learn, which finds what is to be written")
    config = load(arguments.config)
    runs = holder(config.table.state_dir)
    if runs is not None:
        raise BackendError(f"a table runs (pid {runs}) and has its pins; stop it first: systemctl stop heek")
    signal.signal(signal.SIGTERM, _interrupt)
    clock = RealClock()
    say: Callable[[str], None] = _say_aside if arguments.json else _say
    if arguments.learn:
        return _learn(arguments, config, clock, say)
    return _walk(arguments, config, clock, say)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _say(text: str) -> None:
    print(text, flush=True)


def _say_aside(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Source(Protocol):
    """Where contacts and typed lines come from."""

    def next(self, until: Instant | None, *, takes_answers: bool) -> Input | None:
        """What came by `until`, in order; None: this source is at its end."""


def converse(
    conversation: Conversation,
    source: Source,
    show: Callable[[Ask], None],
) -> None:
    """Show what is asked and tell what comes, until the course or the source is at its end.

    A typed line after which the very same is asked was not understood, and is said not to be.
    """
    from heek.selftest.asking import Answer

    shown: Ask | None = None
    while not conversation.over:
        ask = conversation.ask
        # How long it waits is not shown.
        if replace(ask, until=None) != shown:
            show(ask)
            shown = replace(ask, until=None)
        what = source.next(ask.until, takes_answers=ask.takes_answers)
        if what is None:
            return
        conversation.tell(what)
        if (
            isinstance(what, Answer)
            and not conversation.over
            and replace(conversation.ask, until=None) == shown
        ):
            show(replace(shown, text=f"That is no answer here. {shown.text}"))


class Desk:
    """Contacts and typed lines of this machine, by its clock: the source of a real test.

    `fingers` does what a typed line says of mock buttons and tells whether it was such a line.
    """

    def __init__(self, clock: Clock, fingers: Callable[[str], bool] | None) -> None:
        self._clock = clock
        self._fingers = fingers
        self._moves: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._lines: deque[str | None] = deque()
        self._ended = False

    def moved(self, where: Any, closed: bool, at: Instant) -> None:
        """A contact moved; from any thread."""
        from heek.selftest.asking import Moved

        self._moves.put(Moved(at, where, closed))

    def listen(self) -> None:
        """Begin to read what is typed, on a thread of its own."""
        threading.Thread(target=self._read, name="heek-typed", daemon=True).start()

    def _read(self) -> None:
        # Not sys.stdin, whose lock the end of the process would wait for. What cannot be read is at its end.
        with (
            contextlib.suppress(OSError),
            os.fdopen(os.dup(0), encoding="utf-8", errors="replace") as typed,
        ):
            for line in typed:
                self._lines.append(line.strip())
                self._moves.put(None)
        self._lines.append(None)
        self._moves.put(None)

    def next(self, until: Instant | None, *, takes_answers: bool) -> Input | None:
        from heek.selftest.asking import Answer, Passed

        while True:
            if takes_answers and self._lines:
                line = self._lines.popleft()
                if line is None:
                    return None
                if self._fingers is None or not self._fingers(line):
                    return Answer(self._clock.now(), line)
            now = self._clock.now()
            if until is not None and now >= until:
                return Passed(now)
            try:
                move = self._moves.get(timeout=None if until is None else (until - now) / SECOND)
            except queue.Empty:
                return Passed(self._clock.now())
            if move is not None:
                return move  # type: ignore[no-any-return]
            if not takes_answers and self._lines and self._lines[0] is None and until is None:
                return None


class Fingers:
    """Typed lines that move mock buttons: `press`, `hold` or `release`, and which."""

    def __init__(self, factory: Any, line_of: Callable[[str], int | None]) -> None:
        self._factory = factory
        self._line_of = line_of

    def __call__(self, line: str) -> bool:
        match = re.fullmatch(r"(press|hold|release)\s+(.+)", line.strip().lower())
        number = self._line_of(match[2]) if match is not None else None
        if match is None or number is None:
            return False
        pin = self._factory.line(number)
        if match[1] in ("press", "hold"):
            pin.drive(False)
        if match[1] == "release":
            pin.drive(True)
        if match[1] == "press":
            # Let go later: a finger takes its time, and the next question is asked when it is off.
            timer = threading.Timer(FINGER_S, pin.drive, (True,))
            timer.daemon = True
            timer.start()
        return True


def _named(config: Config) -> Callable[[str], int | None]:
    def line_of(words: str) -> int | None:
        match = re.fullmatch(r"([1-5])\s+(pen|page|beetle)", words)
        if match is None:
            return None
        return next(
            (each.button(Kind(match[2])) for each in config.wired if each.seat == int(match[1])), None
        )

    return line_of


def _numbered(words: str) -> int | None:
    from heek.wiring.pin_map import USABLE

    number = int(words) if words.isascii() and words.isdigit() else -1
    return number if number in USABLE else None


def _walk(arguments: argparse.Namespace, config: Config, clock: Clock, say: Callable[[str], None]) -> int:
    from heek.selftest.asking import Conversation
    from heek.selftest.report import document, passed, text_lines
    from heek.selftest.walk import Walk
    from heek.stations.gpio import Board, open_factory

    factory = open_factory(config.stations.backend, config.stations.pin_factory, clock)
    mock = config.stations.backend == "mock"
    desk = Desk(clock, Fingers(factory, _named(config)) if mock else None)
    board = Board(
        factory,
        config.wired,
        lambda edge: desk.moved((edge.seat, edge.button), edge.closed, edge.at),
        origin_ns=clock.origin_ns,
        led_active_high=config.stations.led_active_high,
        led_pwm=config.stations.led_pwm,
    )
    panels = _Panels(config, clock)
    try:
        walk = Walk(
            config.seat_numbers,
            debounce=config.stations.debounce,
            now=clock.now(),
            closed=board.closed_contacts(),
            panels=panels.named(),
        )

        def show(ask: Ask) -> None:
            for seat in config.seat_numbers:
                board.light(seat, float(seat in ask.lit))
            panels.show(ask)
            say(ask.text)

        desk.listen()
        converse(Conversation(walk.course()), desk, show)
    finally:
        board.close()
        panels.close()
    if arguments.json:
        machine_output()
        print(json.dumps(document(walk.results, finished=walk.finished), ensure_ascii=False, indent=1))
    else:
        print("\n".join(text_lines(walk.results, finished=walk.finished)))
    return OK if passed(walk.results, finished=walk.finished) else FAILED


class _Panels:
    """The panels of a table, each shown what is asked, or the test card."""

    def __init__(self, config: Config, clock: Clock) -> None:
        from heek.display.oled import Oled

        self._clock = clock
        self._panels = [
            (display, Oled(display.driver, display.bus, display.address, display.rotate))
            for display in config.displays
            if display.driver != "dummy"
        ]

    def named(self) -> Sequence[tuple[str, Callable[[], str]]]:
        several = len(self._panels) > 1
        return [
            (f"panel {number}" if several else "panel", partial(_trouble_of, panel))
            for number, (_, panel) in enumerate(self._panels, start=1)
        ]

    def show(self, ask: Ask) -> None:
        from heek.display.alignment import alignment
        from heek.display.large_words import large_words

        for display, panel in self._panels:
            where = f"i2c-{display.bus} 0x{display.address:02x}"
            image = alignment(display.driver, where) if ask.pattern else large_words(ask.words)
            panel.show(image, self._clock.now())

    def close(self) -> None:
        for _, panel in self._panels:
            panel.close()


def _trouble_of(panel: Oled) -> str:
    return panel.status.text


def _learn(arguments: argparse.Namespace, config: Config, clock: Clock, say: Callable[[str], None]) -> int:
    from heek.config.station_tables import station_tables, with_stations
    from heek.selftest.asking import Conversation
    from heek.selftest.learning import Learning
    from heek.stations.gpio import LineWatch, open_factory
    from heek.wiring.pin_map import USABLE

    factory = open_factory(config.stations.backend, config.stations.pin_factory, clock)
    mock = config.stations.backend == "mock"
    desk = Desk(clock, Fingers(factory, _numbered) if mock else None)
    leds = [station.led for station in config.wired]
    watch = LineWatch(
        factory,
        USABLE,
        lambda number, closed, stamp_ns: desk.moved(number, closed, stamp_ns - clock.origin_ns),
        dark_low=leds if config.stations.led_active_high else (),
    )
    try:
        for number, reason in watch.refused.items():
            say(f"GPIO{number} cannot be watched: {reason}")
        learning = Learning(config.seat_numbers, config.wired, now=clock.now(), closed=watch.closed())
        desk.listen()
        converse(Conversation(learning.course()), desk, lambda ask: say(ask.text))
    finally:
        watch.close()
    mistakes = [] if learning.finished else ["it was not finished"]
    mistakes += learning.mistakes()
    if arguments.json:
        machine_output()
        print(json.dumps(_learned(learning.stations, mistakes), ensure_ascii=False, indent=1))
    elif learning.stations:
        print(station_tables(learning.stations), end="")
    if mistakes:
        for mistake in mistakes:
            print(f"heek: selftest: {mistake}", file=sys.stderr)
        return FAILED
    if arguments.write:
        file: Path = arguments.config
        kept = write_over(file, with_stations(_read(file), learning.stations, str(file)))
        say(f"{file} has these stations now; as it was it is {kept}")
    else:
        say("nothing was written; with --write they go into the configuration")
    return OK


def _learned(stations: Sequence[Any], mistakes: Sequence[str]) -> dict[str, Any]:
    return {
        "form": 1,
        "stations": [{"seat": station.seat, **dict(station.roles)} for station in stations],
        "mistakes": list(mistakes),
    }


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read any more ({error.strerror})") from None


def write_over(file: Path, text: str) -> Path:
    """Put `text` in place of `file` at once, and keep the old one beside it; gives the old one's name.

    Raises ConfigError if that cannot be done; then `file` is as it was.
    """
    file = file.resolve()
    names = (f"{file.name}.old{f'-{number}' if number else ''}" for number in range(1000))
    kept = next(path for path in map(file.with_name, names) if not path.exists())
    new = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with new.open("w", encoding="utf-8") as writing:
            writing.write(text)
            writing.flush()
            os.fsync(writing.fileno())
        new.chmod(file.stat().st_mode & 0o7777)
        # A second name for the old one, so that at no instant there is no file.
        os.link(file, kept)
        new.replace(file)
    except OSError as error:
        new.unlink(missing_ok=True)
        remedy = "make room for it" if error.errno in FULL else "as the user who owns it"
        raise ConfigError(
            f"{file}: cannot be written ({error.strerror}) and is as it was; {remedy}, try again, or put the "
            "tables in yourself"
        ) from None
    return kept
