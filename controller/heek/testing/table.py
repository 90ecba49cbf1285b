"""The table that a test has in its hands, in the words of the stories.

Every word is one line of a story and means the same. A test has a story's time: nothing takes time but
`wait` and `at`, so that what stands between two of them happens at one instant, and things come true only
when the test looks (`expect`, `lamp`, `screen`, `image`, `events`, `claim`) or ends.

The table looks at a press `chord_s` (3 ms) after it closed, and so does everybody who looks at the table.
`wait` and `at` count from the instant that was looked at, which keeps the times of a test round; only what
follows a look at once, without a wait, happens those 3 ms later.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias, overload

from PIL import Image

from heek.clock import SECOND, Instant
from heek.errors import StoryError
from heek.kinds import Seat
from heek.simulator.steps import End, Expect, Step, Story
from heek.simulator.story import StoryReader
from heek.simulator.story_line import Place, seconds_shown
from heek.simulator.story_text import to_text
from heek.testing.rig import NotHere, Rig, Setup

Event: TypeAlias = Mapping[str, Any]
"""One event as the journal has it: `seq`, `at` (seconds of the daemon's clock), `event`, its fields."""

Bounce: TypeAlias = Sequence[tuple[float, int] | list[float]]
"""Raw edges after a change: offset from it in seconds, and the level (1 closed, 0 open)."""

BEGINS: Final[Instant] = SECOND
"""A test begins when its table has been on for so long: its first press is no contact held at start-up."""


class Table:
    """One table for one test. Mistakes in a call are a StoryError that names file, line and remedy."""

    def __init__(self, rig: Rig, setup: Setup, skip: Callable[[str], NoReturn]) -> None:
        """`skip` ends a test that asks for what this kind of table cannot do; it gets the reason."""
        self._rig: Final = rig
        self._setup: Final = setup
        self._skip: Final = skip
        self._reader: Final = StoryReader(setup.source, setup.keys)
        self._cursor: Instant = BEGINS
        self._untouched = True
        """Nothing was said yet: the moment of switching on can still be gone back to."""
        self._events: list[Event] = []

    # Time

    @property
    def now(self) -> float:
        """The test's time in seconds; 0 is when the table was switched on. A test begins at 1.0."""
        return self._cursor / SECOND

    def wait(self, seconds: float) -> None:
        """Let `seconds` pass, 0 or more; under virtual time an hour takes seconds."""
        __tracebackhide__ = True
        self._cursor += self._seconds("wait", seconds)
        self._untouched = False

    def at(self, seconds: float) -> None:
        """Go to an instant, which must not lie before `now`.

        As the first word of a test also to 0: an `edge` there is how the contact stands at start-up.
        """
        __tracebackhide__ = True
        at = self._seconds("at", seconds)
        if at < self._cursor and not self._untouched:
            raise self._place().mistake(
                f"at {seconds_shown(at)} is before now ({seconds_shown(self._cursor)})", "time only goes on"
            )
        self._cursor = at
        self._untouched = False

    # What happens

    def seat(self, seat: Seat) -> SeatHands:
        """The hands of who sits at `seat`, 1 to 5."""
        __tracebackhide__ = True
        return SeatHands(self, self._seat(seat))

    def stall(self, seconds: float) -> None:
        """From now on the program does nothing for so long; edges keep their stamps. Takes no time itself.

        Who looks meanwhile looks at its end, and sees what stood there all the time.
        """
        __tracebackhide__ = True
        self._do({"stall": _plain(seconds)})

    def wall_clock(self, moment: str) -> None:
        """The wall clock jumps to an RFC 3339 time in UTC, like "2031-01-01T00:00:00Z"."""
        __tracebackhide__ = True
        self._do({"wall_clock": _plain(moment)})

    def display_fails(self) -> None:
        """The OLED stops answering."""
        __tracebackhide__ = True
        self._do({"display": "fail"})

    def display_works(self) -> None:
        """The OLED answers again."""
        __tracebackhide__ = True
        self._do({"display": "ok"})

    def power_cut(self) -> None:
        """The process dies between two I/O calls."""
        __tracebackhide__ = True
        self._do({"power": "cut"})

    def power_on(self) -> None:
        """It starts again on the same state folder; the events' `at` begins at 0 again."""
        __tracebackhide__ = True
        self._do({"power": "on"})

    def operator_reset(self) -> None:
        """The operator's button."""
        __tracebackhide__ = True
        self._do({"operator": "reset"})

    def claim(self, seat: Seat, player: str, name: str) -> None:
        """A signed-in player takes the seat's identity; raises StoryError at once if the table refuses."""
        __tracebackhide__ = True
        self._do({"claim": {"seat": _plain(seat), "player": _plain(player), "name": _plain(name)}})
        self._look()

    def ki_down(self) -> None:
        """The link to the KI goes down."""
        __tracebackhide__ = True
        self._do({"ki": "down"})

    def ki_up(self) -> None:
        """The link to the KI comes up."""
        __tracebackhide__ = True
        self._do({"ki": "up"})

    # What is so

    @overload
    def expect(self, *, event: str, within: float = ..., **fields: object) -> Event: ...
    @overload
    def expect(self, *, lamp: Seat, pattern: str, within: float = ...) -> None: ...
    @overload
    def expect(self, *, screen: str, within: float = ...) -> None: ...
    def expect(self, *, within: float = 0, **wanted: object) -> Event | None:
        """What must be so now, or become so within `within` seconds, which then pass only as far as needed.

        `event=` and its fields: such an event came, after the one that the last such `expect` matched; it is
        returned. `lamp=` and `pattern=`: what that seat's LED shows. `screen=`: the OLED's screen.
        Raises AssertionError with what came instead.
        """
        __tracebackhide__ = True
        return self._judge(wanted, within, negated=False)

    @overload
    def expect_no(self, *, event: str, within: float = ..., **fields: object) -> None: ...
    @overload
    def expect_no(self, *, lamp: Seat, pattern: str, within: float = ...) -> None: ...
    @overload
    def expect_no(self, *, screen: str, within: float = ...) -> None: ...
    def expect_no(self, *, within: float = 0, **wanted: object) -> None:
        """What must not be so now, nor at any time of the next `within` seconds, all of which pass.

        An event must not have come since the last that an `expect` matched.
        """
        __tracebackhide__ = True
        self._judge(wanted, within, negated=True)

    def lamp(self, seat: Seat) -> str:
        """The pattern that a seat's LED shows now: "free", "taken", "thrown", "won" and so on."""
        __tracebackhide__ = True
        number = self._seat(seat)
        self._look()
        return self._rig.lamp(number)

    @property
    def screen(self) -> str:
        """The OLED's screen now: "attract", "lobby", "reveal" and so on; "off" without power."""
        __tracebackhide__ = True
        self._look()
        return self._rig.screen

    @property
    def image(self) -> Image.Image:
        """The picture that the OLED is sent now: 128 x 64, mode "1"."""
        __tracebackhide__ = True
        self._look()
        return self._rig.image

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that the table has said up to now, in order."""
        __tracebackhide__ = True
        self._look()
        return self.told

    # For who reports on it

    @property
    def told(self) -> tuple[Event, ...]:
        """What the table has said so far; unlike `events` this lets nothing happen."""
        lines = self._rig.lines
        self._events += map(json.loads, lines[len(self._events) :])
        return tuple(self._events)

    @property
    def rig(self) -> Rig:
        """What the table is played on."""
        return self._rig

    @property
    def story(self) -> str:
        """What the test did so far as a story, which `heek simulate` plays again."""
        steps = (*self._reader.steps, End(at=self._cursor))
        return to_text(Story(self._reader.table, steps))

    def finish(self) -> None:
        """Let happen what the test did last."""
        self._look()

    # How words become steps

    def _do(self, action: Mapping[str, object]) -> None:
        __tracebackhide__ = True
        at = max(self._cursor, self._rig.now)
        step = self._step(at, action)
        self._cursor = at
        self._untouched = False
        try:
            self._rig.add(step)
        except NotHere as error:
            self._skip(str(error))

    def _judge(self, wanted: Mapping[str, object], within: float, *, negated: bool) -> Event | None:
        __tracebackhide__ = True
        if "event" not in wanted:
            for key in wanted:
                if key not in ("lamp", "pattern", "screen"):
                    known = ("event", "lamp", "pattern", "screen", "within")
                    raise self._place().unknown("word to expect", key, known)
        asked = {key: _plain(value) for key, value in wanted.items()}
        if "lamp" in asked:
            asked["lamp"] = {"seat": asked["lamp"]}
            if "pattern" in asked:
                asked["lamp"] = {**asked["lamp"], "pattern": asked.pop("pattern")}
        line: dict[str, object] = {"expect": asked, "within": _plain(within)}
        if negated:
            line["not"] = True
        step = self._step(self._cursor, line)
        assert isinstance(step, Expect)
        try:
            verdict = self._rig.judge(step)
        except NotHere as error:
            self._skip(str(error))
        except StoryError as error:
            raise StoryError(str(error)) from None
        finally:
            self._looked_at()
        if verdict.failure:
            raise AssertionError(verdict.failure)
        return verdict.event

    def _look(self) -> None:
        __tracebackhide__ = True
        try:
            self._rig.play_to(self._cursor)
        except NotHere as error:
            self._skip(str(error))
        except StoryError as error:
            raise StoryError(str(error)) from None
        finally:
            self._looked_at()

    def _looked_at(self) -> None:
        self._untouched = False
        self._cursor = max(self._cursor, self._rig.rules_now)

    def _step(self, at: Instant, action: Mapping[str, object]) -> Step:
        __tracebackhide__ = True
        try:
            return self._reader.step(self._place(), {"at": Decimal(at) / SECOND, **action})
        except StoryError as error:
            raise StoryError(str(error)) from None

    def _seat(self, seat: object) -> Seat:
        __tracebackhide__ = True
        try:
            return self._reader.seat(self._place(), _plain(seat))
        except StoryError as error:
            raise StoryError(str(error)) from None

    def _seconds(self, name: str, value: float) -> Instant:
        __tracebackhide__ = True
        try:
            return self._place().seconds(name, _plain(value))
        except StoryError as error:
            raise StoryError(str(error)) from None

    @staticmethod
    def _place() -> Place:
        """The line of the test that called."""
        frame = sys._getframe()
        while frame.f_back is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        file = Path(frame.f_code.co_filename)
        here = Path.cwd()
        return Place(str(file.relative_to(here) if file.is_relative_to(here) else file), frame.f_lineno)


class SeatHands:
    """Who sits at one seat, and what they do to its buttons, now."""

    def __init__(self, table: Table, seat: Seat) -> None:
        self._table: Final = table
        self._seat: Final = seat

    def press(
        self, button: str, *, for_s: float | None = None, bounce: Bounce = (), open_bounce: Bounce = ()
    ) -> None:
        """The contact closes now and opens `for_s` (80 ms) later, with raw edges after either change.

        The test's time does not move: who presses twice must wait in between.
        """
        __tracebackhide__ = True
        press: dict[str, object] = {"seat": self._seat, "button": _plain(button)}
        if for_s is not None:
            press["for"] = _plain(for_s)
        if bounce:
            press["bounce"] = _plain(bounce)
        if open_bounce:
            press["open_bounce"] = _plain(open_bounce)
        self._table._do({"press": press})

    def hold(self, *buttons: str, for_s: float) -> None:
        """All of these contacts close now and open `for_s` later; both outer ones for 3 s stand up."""
        __tracebackhide__ = True
        if not buttons:
            raise self._table._place().mistake("hold names no button", 'write hold("pen", for_s=1.2)')
        for button in buttons:
            self.press(button, for_s=for_s)

    def edge(self, button: str, *, closed: bool, delivered: float | None = None) -> None:
        """One raw edge, now; the program gets it at `delivered`, in the test's time, if that is later.

        At 0 it is the state at start-up.
        """
        __tracebackhide__ = True
        edge: dict[str, object] = {"seat": self._seat, "button": _plain(button), "closed": closed}
        if delivered is not None:
            edge["delivered"] = _plain(delivered)
        self._table._do({"edge": edge})

    @property
    def lamp(self) -> str:
        """The pattern that this seat's LED shows now."""
        __tracebackhide__ = True
        return self._table.lamp(self._seat)


def _plain(value: object) -> Any:
    """A value of Python as a story's line would have it: exact numbers, and seats as keys in quotes."""
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else repr(value)
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | str | Decimal) else repr(value)
