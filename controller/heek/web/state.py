"""The table as JSON for the page: one value from the view, the lamps, what was told and the KI's line.

It is made once for each change and shared by all who look. It is made from the view alone, so it cannot
name a throw of the running round (the specification of the KI, "Nothing leaks before the reveal"). Seconds
are on the table's own clock; the page shows "deadline minus now", so `now` must be that of the moment at
which a state is sent, not of the one at which it was made: `retimed` puts it right without making the
rest anew.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from PIL import Image

from heek.clock import SECOND, Instant
from heek.display.screens import screen
from heek.kinds import KINDS, Seat
from heek.session.view import SeatView, View
from heek.stations.lamps import Lamp

LINES_TOLD: Final = 12
"""How many of the last sentences a state holds."""

NOT_SAVING: Final = "The journal cannot be written: the table plays on, and its log says why."

_NOW: Final = b'{"now":'
_encoder: Final = msgspec.json.Encoder()


class _Faults(msgspec.Struct):
    """What a state says of the journal."""

    not_saving: bool
    journal: list[str]


@dataclass(frozen=True, slots=True)
class Told:
    """One event in plain words."""

    seq: int
    at: Instant
    text: str


@dataclass(frozen=True, slots=True)
class KiLine:
    """How it stands with the KI."""

    link: str = "none"
    """`ki.link`: `none`, `http`, `serial`."""
    state: str = "off"
    """`off` (no link), `unknown` (not asked yet), `up`, `down` (it does not answer), `stopped` (the demo has
    stopped it)."""
    waiting: int = 0
    """Results that the KI has not acknowledged."""
    last: str | None = None
    """The wall clock's `hh:mm` at its last answer."""
    why: str = ""
    """While it is down: what is wrong, as far as the link knows."""
    service: str | None = None
    """The name of the KI that this table is enrolled at; None: at none yet."""
    claim: str | None = None
    """The code that an operator is to type in at the KI, as people read it; None: none is wanted."""
    trouble: tuple[str, ...] = ()
    """What an operator should see to, a sentence each."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """What the link has counted since the start, by name."""

    @property
    def text(self) -> str:
        """The line as people read it: “KI: 3 waiting, last 14:02” (the specification, "Links")."""
        if self.state == "off":
            return "KI: no link"
        parts = [f"{self.waiting or 'nothing'} waiting"]
        if self.state == "down":
            parts.insert(0, "not reached")
        elif self.state == "stopped":
            parts.insert(0, "stopped")
        elif self.claim is not None:
            parts.insert(0, "not enrolled")
        elif self.state == "unknown":
            parts.insert(0, "looking for it")
        if self.last is not None:
            parts.append(f"last {self.last}")
        return "KI: " + ", ".join(parts)


def page_state(
    view: View,
    lamps: Mapping[Seat, Lamp],
    *,
    name: str,
    simulated: bool,
    told: Iterable[Told],
    ki: KiLine,
    now: Instant,
    image: Image.Image,
) -> bytes:
    """The whole table at `now` as JSON.

    `told` newest last, of which the last twelve are kept; `image` is the OLED's, mode "1" and 128 x 64.
    """
    return _encoder.encode(
        {
            "now": _seconds(now),
            "table": name,
            "simulated": simulated,
            "phase": view.phase.value,
            "screen": screen(view, now).name,
            "since": _seconds(view.since),
            "until": _seconds(view.until),
            "round": view.round,
            "target": view.target,
            "sudden_death": view.sudden_death,
            "winner": view.winner,
            "by": view.by,
            "void": view.void,
            "bots_allowed": view.bots_allowed,
            "bots_at": _seconds(view.bots_at),
            "not_saving": view.not_saving,
            "journal": list(view.journal),
            "seats": [_seat(row, lamps.get(row.seat)) for row in view.seats],
            "told": [
                {"seq": line.seq, "at": _seconds(line.at), "text": line.text}
                for line in list(told)[-LINES_TOLD:]
            ],
            "ki": {
                "link": ki.link,
                "state": ki.state,
                "waiting": ki.waiting,
                "last": ki.last,
                "text": ki.text,
                "why": ki.why if ki.state == "down" else "",
                "service": ki.service,
                "claim": ki.claim,
                "trouble": list(ki.trouble),
                "counters": dict(ki.counters),
            },
            "oled": base64.b64encode(image.tobytes()).decode("ascii"),
        }
    )


def retimed(state: bytes, now: Instant) -> bytes:
    """The same state with another `now`; raises ValueError for what `page_state` did not make."""
    return _NOW + repr(_seconds(now)).encode("ascii") + _all_but_now(state)


def faults_of(state: bytes) -> list[str]:
    """What an operator should see to in such a state, a sentence each: nothing is saved, or was damaged."""
    told = msgspec.json.decode(state, type=_Faults)
    return [*([NOT_SAVING] if told.not_saving else []), *told.journal]


def same_but_for_now(one: bytes, other: bytes) -> bool:
    """Do two states look the same? Then the later one need not be sent."""
    return _all_but_now(one) == _all_but_now(other)


def _all_but_now(state: bytes) -> bytes:
    if not state.startswith(_NOW):
        raise ValueError("this is no state of the table: it does not begin with its time")
    return state[state.index(b",") :]


def _seat(row: SeatView, lamp: Lamp | None) -> dict[str, Any]:
    held = row.collection
    return {
        "seat": row.seat,
        "state": row.state.value,
        "name": row.name,
        "bot": row.bot,
        "in_round": row.in_round,
        "thrown": row.thrown,
        "throw": None if row.throw is None else row.throw.value,
        "points": row.points,
        "won_round": row.won_round,
        "won_match": row.won_match,
        "collection": None if held is None else {kind.value: held.of(kind) for kind in KINDS},
        "leaves_at": _seconds(row.leaves_at),
        "stuck": [kind.value for kind in row.stuck],
        "faults": {kind.value: fault for kind, fault in row.faults},
        "lamp": None if lamp is None else lamp.pattern.value,
    }


def _seconds(at: Instant | None) -> float | None:
    """Seconds to the microsecond, which a float holds exactly enough for years of play."""
    return None if at is None else round(at / SECOND, 6)
