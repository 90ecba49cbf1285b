"""Stories read from text: JSON Lines in, typed and validated steps out.

Validation is one pass from top to bottom, so the first mistake that is reported is the earliest
one. Three things are remembered on the way: the time of the last line, whether the power is cut, and
for each contact its level, until when a press owns it and when its last edge is handed over. All
other rules look at one line alone. Each mistake is a StoryError that reads
`FILE:LINE: what is wrong; what to do`.

Where a key that belongs to a press or an edge (`for`, `bounce`, `open_bounce`, `delivered`) is
written beside the action instead of inside it, that is taken too: both read naturally.
"""

from __future__ import annotations

import difflib
import re
import sys
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from heek.clock import Instant
from heek.errors import StoryError
from heek.kinds import KINDS, SEATS, Kind, Seat
from heek.simulator.steps import (
    DEFAULT_PRESS,
    EVENT_FIELDS,
    PATTERNS,
    SCREENS,
    Claim,
    ContactEdge,
    Display,
    End,
    Expect,
    Ki,
    Operator,
    Power,
    Press,
    RawEdge,
    Stall,
    Step,
    Story,
    WallClock,
    contact_edges,
)
from heek.simulator.story_line import (
    Place,
    bounce_edges,
    json_object,
    listed,
    seat_number,
    seconds_shown,
    shown,
    wall_seconds,
)
from heek.simulator.story_text import to_text

__all__ = ["ContactEdge", "Step", "Story", "StoryReader", "contact_edges", "parse", "read", "to_text"]

MAX_FILE_BYTES: Final = 4 * 1024 * 1024

_BESIDE: Final[Mapping[str, frozenset[str]]] = {
    "press": frozenset({"for", "bounce", "open_bounce"}),
    "edge": frozenset({"delivered"}),
    "claim": frozenset(),
    "stall": frozenset(),
    "wall_clock": frozenset(),
    "display": frozenset(),
    "ki": frozenset(),
    "power": frozenset(),
    "operator": frozenset(),
    "expect": frozenset({"not", "within"}),
    "end": frozenset(),
}
"""Every action, with the keys that may stand beside it."""


def read(path: str | Path) -> Story:
    """The story in a file, or on standard input for `-`.

    Raises StoryError if it cannot be read, is larger than 4 MiB, is not UTF-8, or is not valid.
    """
    source = "<stdin>" if str(path) == "-" else str(path)
    try:
        if source == "<stdin>":
            data = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise StoryError(f"{source}: cannot be read ({reason}); name a story file, or - for stdin") from None
    if len(data) > MAX_FILE_BYTES:
        raise _too_large(source, data)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = Place(source, data.count(b"\n", 0, error.start) + 1)
        raise place.mistake(f"byte {data[error.start]:#04x} is not UTF-8", "save the file as UTF-8") from None
    return parse(text, source)


def parse(text: str, source: str) -> Story:
    """The story in `text`; `source` is the name by which mistakes call it.

    Raises StoryError for the first line that is not valid.
    """
    # Surrogates cannot stand in UTF-8; a lone one is refused where it turns up, not here.
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > MAX_FILE_BYTES:
        raise _too_large(source, data)
    reader = StoryReader(source)
    # Not splitlines: U+2028 and friends may stand inside a JSON string.
    for number, raw in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        line = raw.strip(" \t\r")
        if line and not line.startswith("//"):
            place = Place(source, number)
            try:
                reader.take(place, line)
            except RecursionError:
                raise place.mistake("the line is nested too deeply", "write one flat object a line") from None
    return Story(reader.table, tuple(reader.steps), source, reader.header_line)


def _too_large(source: str, data: bytes) -> StoryError:
    place = Place(source, data.count(b"\n", 0, MAX_FILE_BYTES) + 1)
    return place.mistake("the file is larger than 4 MiB", "split the story into several")


@dataclass(slots=True)
class _Contact:
    """What the lines so far did with one contact."""

    closed: bool = False
    owned_until: Instant = -1
    """The last edge of its last press."""
    line: int = 0
    """The last line about it."""


class StoryReader:
    """Takes a story line by line, and remembers what the next line may not contradict.

    A mistake in a line is a StoryError, and leaves the reader as it was before that line.
    """

    def __init__(self, source: str, table: Mapping[str, object] | None = None) -> None:
        """`table` is what a header would say, if there will be none."""
        self.source: Final = source
        self.table: dict[str, object] = dict(table or {})
        self.header_line = 1
        self.steps: list[Step] = []
        self._seats: tuple[Seat, ...] = _present(self.table)
        self._contacts: dict[tuple[Seat, Kind], _Contact] = {}
        self._first = True
        self._now: Instant = 0
        self._cut_at: int | None = None
        """The line that cut the power, while it is cut."""
        self._end_at: int | None = None
        self._actions: Final[Mapping[str, Callable[[Place, Instant, object, dict[str, object]], Step]]] = {
            "press": self._press,
            "edge": self._edge,
            "claim": self._claim,
            "stall": self._stall,
            "wall_clock": self._wall_clock,
            "display": self._display,
            "ki": self._ki,
            "power": self._power,
            "operator": self._operator,
            "expect": self._expect,
            "end": self._end,
        }

    def take(self, place: Place, text: str) -> None:
        """One line that is neither blank nor a comment; raises StoryError if it is not valid."""
        line = json_object(place, text)
        first, self._first = self._first, False
        if "story" in line or "table" in line:
            self._header(place, line, first)
        else:
            self.step(place, line)

    def _header(self, place: Place, line: dict[str, object], first: bool) -> None:
        if not first:
            raise place.mistake("the story's header is not the first line", "move it to the top")
        place.fields("the header", line, ("story",), ("table",))
        version = line["story"]
        if type(version) is not int or version != 1:
            raise place.mistake(f"story version {shown(version)} is not known", 'write {"story": 1}')
        table = line.get("table", {})
        if not isinstance(table, dict):
            raise place.mistake(f"table is {shown(table)}", "write an object of configuration keys, dotted")
        self.table = {str(place.plain(key)): place.plain(value) for key, value in table.items()}
        self.header_line = place.line
        self._seats = _present(self.table)

    def step(self, place: Place, line: dict[str, object]) -> Step:
        """One line's object, its numbers whole or Decimals; raises StoryError if it is not valid."""
        if self._end_at is not None:
            raise place.mistake(
                f"there is a line after the end in line {self._end_at}", "make the end the last line"
            )
        actions = [key for key in line if key in _BESIDE]
        if len(actions) > 1:
            raise place.mistake(
                f"there is more than one action ({listed(actions, 'and')})", "give each a line of its own"
            )
        beside = {key: value for key, value in line.items() if key != "at" and key not in actions}
        for key in beside:
            if not actions or key not in _BESIDE[actions[0]]:
                _refuse_key(place, key, actions)
        if "at" not in line:
            raise place.mistake('"at" is missing', 'say when: {"at": 1.0, ...}')
        at = place.seconds("at", line["at"])
        if at < self._now:
            raise place.mistake(
                f"at {shown(line['at'])} is before the line above ({seconds_shown(self._now)})",
                "put the lines in order of time",
            )
        if not actions:
            raise place.mistake("nothing happens", f"add an action: {listed(_BESIDE)}")
        step = self._actions[actions[0]](place, at, line[actions[0]], beside)
        self.steps.append(step)
        self._now = at
        return step

    # -- contacts ---------------------------------------------------------------------------

    def _press(self, place: Place, at: Instant, value: object, beside: dict[str, object]) -> Press:
        keys = _joined(place, "press", value, beside, ("seat", "button"))
        seat, button, contact = self._contact(place, keys)
        duration = DEFAULT_PRESS
        if "for" in keys:
            duration = place.seconds("for", keys["for"], positive=True)
        bounce = bounce_edges(place, "bounce", keys.get("bounce", []), True)
        if bounce and bounce[-1][0] >= duration:
            raise place.mistake(
                f"bounce reaches {seconds_shown(bounce[-1][0])} s, but the contact opens after "
                f"{seconds_shown(duration)} s",
                'shorten it, or make "for" longer',
            )
        open_bounce = bounce_edges(place, "open_bounce", keys.get("open_bounce", []), False)
        self._refuse_overlap(place, at, contact, seat, button)
        if contact.closed:
            raise place.mistake(
                f"seat {seat}'s {button.value} is held closed by line {contact.line}",
                "open it by an edge before pressing it",
            )
        contact.owned_until = at + duration + (open_bounce[-1][0] if open_bounce else 0)
        contact.line = place.line
        return Press(
            at=at,
            line=place.line,
            seat=seat,
            button=button,
            duration=duration,
            bounce=bounce,
            open_bounce=open_bounce,
        )

    def _edge(self, place: Place, at: Instant, value: object, beside: dict[str, object]) -> RawEdge:
        keys = _joined(place, "edge", value, beside, ("seat", "button", "closed"))
        seat, button, contact = self._contact(place, keys)
        closed = place.boolean("closed", keys["closed"])
        delivered: Instant | None = None
        if "delivered" in keys:
            delivered = place.seconds("delivered", keys["delivered"])
            if delivered < at:
                raise place.mistake(
                    f"delivered {seconds_shown(delivered)} is before its stamp {seconds_shown(at)}",
                    "an edge can only come late",
                )
            if at == 0 and delivered > 0:
                raise place.mistake(
                    "an edge at 0 is the state at start-up, which cannot come late",
                    'leave "delivered" out or set a later "at"',
                )
        self._refuse_overlap(place, at, contact, seat, button)
        if contact.closed == closed or (at == 0 and contact.line):
            level = "closed" if contact.closed else "open"
            since = f" since line {contact.line}" if contact.line else ""
            raise place.mistake(
                f"seat {seat}'s {button.value} is {level} already{since}",
                "at 0 say once how it stands" if at == 0 and contact.line else "an edge changes the level",
            )
        contact.closed = closed
        contact.line = place.line
        return RawEdge(at=at, line=place.line, seat=seat, button=button, closed=closed, delivered=delivered)

    def _contact(self, place: Place, keys: dict[str, object]) -> tuple[Seat, Kind, _Contact]:
        seat = self.seat(place, keys["seat"])
        button = Kind(place.word("button", keys["button"], [kind.value for kind in KINDS]))
        return seat, button, self._contacts.setdefault((seat, button), _Contact())

    def seat(self, place: Place, value: object) -> Seat:
        """The number of a seat that this table has; raises StoryError for any other."""
        seat = seat_number(place, value)
        if seat not in self._seats:
            raise place.mistake(
                f"seat {seat} is absent",
                f'take one of {listed(self._seats)}, or give it a "station" in the header',
            )
        return seat

    @staticmethod
    def _refuse_overlap(place: Place, at: Instant, contact: _Contact, seat: Seat, button: Kind) -> None:
        name = f"seat {seat}'s {button.value}"
        if at < contact.owned_until:
            raise place.mistake(
                f"{name} is still pressed by line {contact.line}, until {seconds_shown(contact.owned_until)}",
                "presses of one contact must not overlap",
            )

    # -- everything else --------------------------------------------------------------------

    def _claim(self, place: Place, at: Instant, value: object, _: dict[str, object]) -> Claim:
        keys = place.fields("claim", value, ("seat", "player", "name"))
        self._refuse_while_cut(place, "claim")
        seat = self.seat(place, keys["seat"])
        player, name = keys["player"], keys["name"]
        if not isinstance(player, str) or not re.fullmatch(r"[0-9]{8}", player):
            raise place.mistake(f"player is {shown(player)}", 'write eight digits in quotes: "40220173"')
        if not isinstance(name, str) or not name.strip() or len(name) > 24:
            raise place.mistake(f"name is {shown(name)}", "write 1 to 24 characters in quotes")
        if any(unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} for char in name):
            raise place.mistake(f"name {shown(name)} holds a control character", "leave it out")
        return Claim(at=at, line=place.line, seat=seat, player=player, name=name)

    @staticmethod
    def _stall(place: Place, at: Instant, value: object, _: dict[str, object]) -> Stall:
        return Stall(at=at, line=place.line, duration=place.seconds("stall", value, positive=True))

    @staticmethod
    def _wall_clock(place: Place, at: Instant, value: object, _: dict[str, object]) -> WallClock:
        return WallClock(at=at, line=place.line, wall_s=wall_seconds(place, value))

    @staticmethod
    def _display(place: Place, at: Instant, value: object, _: dict[str, object]) -> Display:
        return Display(at=at, line=place.line, ok=place.word("display", value, ("ok", "fail")) == "ok")

    @staticmethod
    def _ki(place: Place, at: Instant, value: object, _: dict[str, object]) -> Ki:
        return Ki(at=at, line=place.line, up=place.word("ki", value, ("up", "down")) == "up")

    def _power(self, place: Place, at: Instant, value: object, _: dict[str, object]) -> Power:
        on = place.word("power", value, ("cut", "on")) == "on"
        if on and self._cut_at is None:
            raise place.mistake("power on, but it was not cut", 'cut it first: {"power": "cut"}')
        if not on and self._cut_at is not None:
            raise place.mistake(f"the power is cut already, by line {self._cut_at}", "put it on first")
        self._cut_at = None if on else place.line
        return Power(at=at, line=place.line, on=on)

    def _operator(self, place: Place, at: Instant, value: object, _: dict[str, object]) -> Operator:
        action = place.word("operator", value, ("reset",))
        self._refuse_while_cut(place, "operator")
        return Operator(at=at, line=place.line, action=action)

    def _refuse_while_cut(self, place: Place, action: str) -> None:
        if self._cut_at is not None:
            raise place.mistake(
                f"{action} while the power is cut by line {self._cut_at}", "put the power on first"
            )

    def _expect(self, place: Place, at: Instant, value: object, beside: dict[str, object]) -> Expect:
        if not isinstance(value, dict):
            raise place.mistake(f"expect is {shown(value)}", 'write {"event": "match_won"} or the like')
        negated = place.boolean("not", beside["not"]) if "not" in beside else False
        within = place.seconds("within", beside["within"]) if "within" in beside else 0
        for key in ("not", "within"):
            if key in value:
                raise place.mistake(f'"{key}" stands inside expect', "write it beside expect")
        looked_at = [key for key in ("event", "lamp", "screen") if key in value]
        if len(looked_at) > 1:
            raise place.mistake(f"expect looks at {listed(looked_at, 'and')}", "give each a line of its own")
        event: dict[str, object] | None = None
        lamp: tuple[Seat, str] | None = None
        screen: str | None = None
        if "event" in value:
            event = self._expected_event(place, value)
        elif "lamp" in value:
            keys = place.fields("lamp", place.fields("expect", value, ("lamp",))["lamp"], ("seat", "pattern"))
            lamp = self.seat(place, keys["seat"]), place.word("lamp pattern", keys["pattern"], PATTERNS)
        elif "screen" in value:
            screen = place.word("screen", place.fields("expect", value, ("screen",))["screen"], SCREENS)
        else:
            raise place.mistake("expect names nothing to look at", 'give it "event", "lamp" or "screen"')
        return Expect(
            at=at,
            line=place.line,
            event=event,
            lamp=lamp,
            screen=screen,
            negated=negated,
            within=within,
        )

    @staticmethod
    def _expected_event(place: Place, value: dict[str, object]) -> dict[str, object]:
        name = place.word("event", value["event"], EVENT_FIELDS)
        known = ("seq", "at", "event", *EVENT_FIELDS[name])
        for key in value:
            # Events may get more fields than the spec lists, so only what looks misspelt is refused.
            if key not in known and (near := difflib.get_close_matches(key, known, n=1, cutoff=0.75)):
                raise place.mistake(f"{name} has no field {shown(key)}", f"did you mean {shown(near[0])}?")
        if "seat" in value:
            seat_number(place, value["seat"])
        return {str(place.plain(key)): place.plain(item) for key, item in value.items()}

    def _end(self, place: Place, at: Instant, value: object, _: dict[str, object]) -> End:
        if value is not True:
            raise place.mistake(f"end is {shown(value)}", 'write "end": true')
        self._end_at = place.line
        return End(at=at, line=place.line)


def _refuse_key(place: Place, key: str, actions: list[str]) -> NoReturn:
    """Refuse a key of a step's line, and say where it would belong."""
    for action, beside in _BESIDE.items():
        if key in beside:
            raise place.mistake(
                f'"{key}" does not go with {actions[0] if actions else "this line"}',
                f"it belongs to {action}",
            )
    known = ("at", *_BESIDE, *(_BESIDE[actions[0]] if actions else ()))
    raise place.unknown("key", key, known)


def _joined(
    place: Place, action: str, value: object, beside: dict[str, object], needed: tuple[str, ...]
) -> dict[str, object]:
    """The keys inside an action and those that stand beside it, none given in both places."""
    inside = place.fields(action, value, needed, _BESIDE[action])
    for key in beside:
        if key in inside:
            raise place.mistake(f'"{key}" stands inside {action} and beside it', "keep one of the two")
    return inside | beside


def _present(table: Mapping[str, object]) -> tuple[Seat, ...]:
    """The seats that have a station; all five if the list of stations makes no sense.

    What is wrong with such a list is the configuration's to say, which knows its other keys too.
    """
    stations = table.get("station")
    if not isinstance(stations, list):
        return SEATS
    numbers = [station.get("seat") for station in stations if isinstance(station, dict)]
    return tuple(seat for seat in SEATS if seat in numbers) or SEATS
