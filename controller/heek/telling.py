"""Events of the journal in plain words: one friendly sentence for each.

A sentence is made from whatever the event holds; a field that is missing or of a kind that nobody
expected is shown as “?”, because whoever watches a table wants a line, not a crash. Text that people
chose (names) is stripped of control characters, which could otherwise move the cursor of a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from heek.kinds import KINDS
from heek.unseen import is_unseen

Event: TypeAlias = Mapping[str, object]

_NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_LEFT: Final[Mapping[str, str]] = {
    "leave": "",
    "missed": ": it missed too many rounds",
    "idle": ": nobody played",
    "rematch": ": its player did not ask for another match",
    "operator": ": the operator reset the table",
    "power": ": the power was cut",
}
_IGNORED: Final[Mapping[str, str]] = {
    "guard": "the round has only just opened",
    "late": "it came too late",
    "locked": "its throw stands",
    "not_seated": "nobody sits there",
    "not_in_round": "only those who are tied throw now",
    "match_closed": "the match is over",
    "chord": "several buttons closed at once",
    "noise": "buttons closed all over the table at once",
    "bounce": "it was the bounce of one before",
    "flood": "its button closes faster than a finger can press",
}
_ROUND_VOID: Final[Mapping[str, str]] = {
    "throws": "fewer than two have thrown",
    "gap": "the table stood still",
    "power": "the power was cut",
}
_MATCH_VOID: Final[Mapping[str, str]] = {
    "idle": "nobody threw for too long",
    "empty": "the players have left",
    "operator": "the operator reset the table",
    "power": "the power was cut",
    "sudden_death_limit": "sudden death went on for too long",
    "winnerless_limit": "too many rounds without a winner",
}


class Teller:
    """Tells a stream of events; remembers the last reveal, so that it can say what a match was won with."""

    def __init__(self) -> None:
        self._collections: object = None

    def tell(self, event: Event) -> str:
        """The sentence for the next event of the stream."""
        if event.get("event") == "round_revealed":
            self._collections = event.get("collections")
        return event_line(event, self._collections)


def event_line(event: Event, collections: object = None) -> str:
    """One sentence, without a full stop, for any event; never raises.

    `collections` are those of the last `round_revealed`, if known: with them a match that is won
    by reaching the target names what was collected.
    """
    name = event.get("event")
    if name == "match_won":
        return _match_won(event, collections)
    sentence = _SENTENCES.get(name) if isinstance(name, str) else None
    return _unknown(event) if sentence is None else sentence(event)


def printable(value: object) -> str:
    """A value as text for a terminal: no characters that nobody sees, “?” for nothing."""
    if value is None:
        return "?"
    return "".join("?" if is_unseen(char) else char for char in str(value))


def _seat(event: Event) -> str:
    return f"Seat {printable(event.get('seat'))}"


def _items(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []


def _mapping(value: object) -> Mapping[object, object]:
    return value if isinstance(value, Mapping) else {}


def _of_seat(value: object, seat: object) -> object:
    """What a mapping by seat holds; its keys are strings in JSON and may be integers before."""
    mapping = _mapping(value)
    return mapping.get(str(seat), mapping.get(seat) if isinstance(seat, int) else None)


def _and(words: Iterable[object]) -> str:
    *head, last = [printable(word) for word in words] or ["?"]
    return f"{', '.join(head)} and {last}" if head else last


def _seats(value: object) -> str:
    seats = _items(value)
    return f"seat{'' if len(seats) == 1 else 's'} {_and(seats)}"


def _reason(event: Event, reasons: Mapping[str, str]) -> str:
    reason = event.get("reason")
    return reasons.get(reason, printable(reason)) if isinstance(reason, str) else "?"


def _table_started(event: Event) -> str:
    return f"The table starts: {printable(event.get('name'))}"


def _seat_taken(event: Event) -> str:
    if event.get("kind") == "bot":
        return f"A bot sits down at seat {printable(event.get('seat'))}"
    return f"{_seat(event)} is taken"


def _seat_claimed(event: Event) -> str:
    if event.get("name") == "":
        return f"A player whom the KI has erased signs in at seat {printable(event.get('seat'))}"
    name, seat, player = (printable(event.get(key)) for key in ("name", "seat", "player"))
    return f"{name} signs in at seat {seat} (KI {player})"


def _seat_left(event: Event) -> str:
    reason = event.get("reason")
    why = _LEFT.get(reason, f": {printable(reason)}") if isinstance(reason, str) else ""
    return f"{_seat(event)} stands up{why}"


def _match_started(event: Event) -> str:
    return f"A match begins: {_seats(event.get('seats'))}"


def _round(event: Event) -> str:
    return f"Round {printable(event.get('round'))}"


def _countdown_started(event: Event) -> str:
    deadline, at = event.get("deadline"), event.get("at")
    if isinstance(deadline, int | float) and isinstance(at, int | float) and 0 <= at <= deadline < 1e9:
        return f"The countdown runs: {deadline - at:.3g} s left"
    return "The countdown runs"


def _press_ignored(event: Event) -> str:
    return f"{_seat(event)}'s press does not count: {_reason(event, _IGNORED)}"


def _contact_stuck(event: Event) -> str:
    return f"{_seat(event)}'s {printable(event.get('button'))} is stuck; it is ignored until it opens"


def _contact_faulty(event: Event) -> str:
    button = f"{_seat(event)}'s {printable(event.get('button'))}"
    if event.get("fault") == "chatter":
        return f"{button} bounces for long: its switch is worn; it goes on counting"
    if event.get("fault") == "flood":
        return f"{button} closes faster than a finger can press; it is ignored until it has been quiet"
    return f"{button} is faulty: {printable(event.get('fault'))}"


def _contact_healed(event: Event) -> str:
    return f"{_seat(event)}'s {printable(event.get('button'))} works again"


def _round_revealed(event: Event) -> str:
    throws = _mapping(event.get("throws"))
    shown = [
        f"seat {printable(seat)} {'nothing' if throw is None else printable(throw)}"
        for seat, throw in throws.items()
    ]
    winners = _items(event.get("winners"))
    if not winners:
        result = "nobody wins"
    else:
        verb = "wins" if len(winners) == 1 else "win"
        result = f"{_seats(winners)} {verb} with {printable(_of_seat(throws, winners[0]))}"
    return f"{_round(event)}: {', '.join(shown) or '?'}; {result}"


def _round_void(event: Event) -> str:
    return f"{_round(event)} is void: {_reason(event, _ROUND_VOID)}"


def _sudden_death(event: Event) -> str:
    return f"Sudden death: {_seats(event.get('seats'))}"


def _match_won(event: Event, collections: object) -> str:
    seat, by = event.get("seat"), event.get("by")
    ways = {
        "three": _collected(_of_seat(collections, seat)),
        "total": "the most altogether",
        "sudden_death": "sudden death",
        "walkover": "the others have left",
    }
    why = ways.get(by, printable(by)) if isinstance(by, str) else "?"
    delta = _of_seat(event.get("deltas"), seat)
    gain = f" ({delta:+d})" if isinstance(delta, int) and delta else ""
    return f"{_seat(event)} wins the match: {why}{gain}"


def _collected(collection: object) -> str:
    """The kind there is most of: “three pages”."""
    counts = {kind.value: _mapping(collection).get(kind.value) for kind in KINDS}
    numbers = {kind: count for kind, count in counts.items() if isinstance(count, int) and count > 0}
    if not numbers:
        return "enough of one kind"
    kind = max(numbers, key=lambda name: numbers[name])
    count = numbers[kind]
    word = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
    return f"{word} {kind}{'' if count == 1 else 's'}"


def _unknown(event: Event) -> str:
    """An event of a later version, as far as it explains itself."""
    name = printable(event.get("event")).replace("_", " ")
    rest = [
        f"{printable(key)} {printable(value)}"
        for key, value in event.items()
        if key not in {"event", "seq", "at"} and isinstance(value, str | int | float)
    ]
    text = f"{name[:1].upper()}{name[1:]}"
    return f"{text}: {', '.join(rest)}" if rest else text


_SENTENCES: Final[Mapping[str, Callable[[Event], str]]] = {
    "table_started": _table_started,
    "seat_taken": _seat_taken,
    "seat_claimed": _seat_claimed,
    "seat_ready": lambda event: f"{_seat(event)} is ready",
    "seat_left": _seat_left,
    "match_started": _match_started,
    "round_opened": lambda event: f"{_round(event)} opens for {_seats(event.get('seats'))}",
    "throw_locked": lambda event: f"{_seat(event)} has thrown",
    "countdown_started": _countdown_started,
    "press_ignored": _press_ignored,
    "contact_stuck": _contact_stuck,
    "contact_faulty": _contact_faulty,
    "contact_healed": _contact_healed,
    "round_revealed": _round_revealed,
    "round_void": _round_void,
    "sudden_death": _sudden_death,
    "match_void": lambda event: f"The match is void: {_reason(event, _MATCH_VOID)}",
    "late_delivery": lambda event: (
        f"{_seat(event)}'s press was heard too late for its round, which is flagged"
    ),
}
