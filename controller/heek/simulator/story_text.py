"""Stories written as text, so that reading them again gives the same story."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final, assert_never

from heek.clock import SECOND, Duration, Instant
from heek.kinds import Kind, Seat
from heek.simulator.steps import (
    DEFAULT_PRESS,
    Claim,
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
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def to_text(story: Story) -> str:
    """The story as JSON Lines that parse into an equal one; line numbers and comments are not kept."""
    lines: list[object] = []
    if story.table:
        lines.append({"story": 1, "table": story.table})
    lines += [{"at": _seconds(step.at), **_action(step)} for step in story.steps]
    return "".join(f"{_json(line)}\n" for line in lines)


def _action(step: Step) -> dict[str, object]:
    """What stands beside `at`."""
    match step:
        case Press():
            press = _contact(step.seat, step.button)
            if step.duration != DEFAULT_PRESS:
                press["for"] = _seconds(step.duration)
            if step.bounce:
                press["bounce"] = _bounce(step.bounce)
            if step.open_bounce:
                press["open_bounce"] = _bounce(step.open_bounce)
            return {"press": press}
        case RawEdge():
            edge = _contact(step.seat, step.button) | {"closed": step.closed}
            late = {} if step.delivered is None else {"delivered": _seconds(step.delivered)}
            return {"edge": edge, **late}
        case Claim():
            return {"claim": {"seat": step.seat, "player": step.player, "name": step.name}}
        case Stall():
            return {"stall": _seconds(step.duration)}
        case WallClock():
            return {"wall_clock": _rfc_3339(step.wall_s)}
        case Display():
            return {"display": "ok" if step.ok else "fail"}
        case Ki():
            return {"ki": "up" if step.up else "down"}
        case Power():
            return {"power": "on" if step.on else "cut"}
        case Operator():
            return {"operator": step.action}
        case Expect():
            return _expectation(step)
        case End():
            return {"end": True}
        case _:
            assert_never(step)


def _expectation(step: Expect) -> dict[str, object]:
    expect: Mapping[str, object] = step.event or {}
    if step.lamp is not None:
        expect = {"lamp": {"seat": step.lamp[0], "pattern": step.lamp[1]}}
    elif step.screen is not None:
        expect = {"screen": step.screen}
    line: dict[str, object] = {"expect": expect}
    if step.negated:
        line["not"] = True
    if step.within:
        line["within"] = _seconds(step.within)
    return line


def _contact(seat: Seat, button: Kind) -> dict[str, object]:
    return {"seat": seat, "button": button.value}


def _bounce(edges: tuple[tuple[Duration, bool], ...]) -> list[object]:
    return [[_seconds(offset), int(closed)] for offset, closed in edges]


def _seconds(span: Instant) -> Decimal:
    """Exact: a float would lose nanoseconds after a few months."""
    return Decimal(span) / SECOND


def _rfc_3339(wall_s: float) -> str:
    """To the nanosecond, without needless zeros."""
    exact = Decimal(repr(wall_s))
    whole = math.floor(exact)
    moment = _EPOCH + timedelta(seconds=whole)
    digits = f"{exact - whole:.9f}".rstrip("0").rstrip(".")[1:]
    # Not strftime, which leaves the zeros off years before 1000.
    return f"{moment.replace(tzinfo=None).isoformat()}{digits}Z"


def _json(value: object) -> str:
    """JSON on one line, with a Decimal written out exactly."""
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_json(str(key))}: {_json(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_json(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
