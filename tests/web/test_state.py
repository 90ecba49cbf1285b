"""The state: everything the page shows, nothing that it may not know yet, and the time it was sent."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from PIL import Image

from heek.clock import SECOND
from heek.games.ahyoheek import Collection
from heek.kinds import SEATS, Kind
from heek.session.phases import Phase
from heek.session.view import SeatState, SeatView, View
from heek.stations.lamps import Pattern, lamp
from heek.web.about import about, lamp_cycles, leaving_steps
from heek.web.doors import Doors, PageSettings
from heek.web.state import LINES_TOLD, KiLine, Told, page_state, retimed, same_but_for_now
from tests.web.serving import BLANK, lamps, state, view


def test_a_whole_table() -> None:
    """Every field of a reveal arrives as the page's helper was promised it."""
    seats = (
        SeatView(
            1,
            SeatState.READY,
            name="Shorah",
            collection=Collection(1, 0, 2),
            in_round=True,
            throw=Kind.BEETLE,
            points=2,
            won_round=True,
            won_match=False,
        ),
        SeatView(2, SeatState.TAKEN, bot=True, in_round=True, thrown=True, throw=Kind.PEN, points=-1),
        SeatView(3, SeatState.FREE, stuck=(Kind.PEN,)),
        SeatView(4, SeatState.TAKEN, leaves_at=3 * SECOND),
        SeatView(5, SeatState.ABSENT),
    )
    shown = View(
        Phase.REVEAL,
        since=SECOND,
        until=5 * SECOND,
        seats=seats,
        round=3,
        sudden_death=True,
        bots_allowed=True,
        bots_at=9 * SECOND // 2,
        not_saving=True,
        journal=("It was set aside.",),
    )
    lit = {seat: lamp(shown, seat, 2 * SECOND) for seat in SEATS[:4]}
    picture = Image.new("1", (128, 64))
    picture.putpixel((0, 0), 255)
    picture.putpixel((127, 63), 255)
    made = json.loads(
        page_state(
            shown,
            lit,
            name="Table “1”",
            simulated=True,
            told=[Told(7, SECOND, "Seat 1 wins")],
            ki=KiLine(
                "serial",
                "down",
                3,
                "14:02",
                "port missing",
                "The Cavern",
                "BCDF GHJK",
                ("one thing", "another"),
                {"frames_out": 7, "rtt_ms": 1.5},
            ),
            now=2 * SECOND,
            image=picture,
        )
    )
    oled = base64.b64decode(made.pop("oled"))
    assert len(oled) == 1024
    assert (oled[0], oled[-1], sum(oled)) == (0x80, 0x01, 0x81)
    assert made.pop("seats")[:2] == [
        {
            "seat": 1,
            "state": "ready",
            "name": "Shorah",
            "bot": False,
            "in_round": True,
            "thrown": False,
            "throw": "beetle",
            "points": 2,
            "won_round": True,
            "won_match": False,
            "collection": {"pen": 1, "page": 0, "beetle": 2},
            "leaves_at": None,
            "stuck": [],
            "faults": {},
            "lamp": "won",
        },
        {
            "seat": 2,
            "state": "taken",
            "name": None,
            "bot": True,
            "in_round": True,
            "thrown": True,
            "throw": "pen",
            "points": -1,
            "won_round": False,
            "won_match": False,
            "collection": None,
            "leaves_at": None,
            "stuck": [],
            "faults": {},
            "lamp": "taken",
        },
    ]
    assert made == {
        "now": 2.0,
        "table": "Table “1”",
        "simulated": True,
        "phase": "reveal",
        "screen": "reveal",
        "since": 1.0,
        "until": 5.0,
        "round": 3,
        "target": 3,
        "sudden_death": True,
        "winner": None,
        "by": None,
        "void": None,
        "bots_allowed": True,
        "bots_at": 4.5,
        "not_saving": True,
        "journal": ["It was set aside."],
        "told": [{"seq": 7, "at": 1.0, "text": "Seat 1 wins"}],
        "ki": {
            "link": "serial",
            "state": "down",
            "waiting": 3,
            "last": "14:02",
            "text": "KI: not reached, 3 waiting, last 14:02",
            "why": "port missing",
            "service": "The Cavern",
            "claim": "BCDF GHJK",
            "trouble": ["one thing", "another"],
            "counters": {"frames_out": 7, "rtt_ms": 1.5},
        },
    }


def test_leaving_stuck_and_absent_seats() -> None:
    """A seat that leaves says when, a button in trouble its name; a seat without a station has no lamp."""
    seats = (
        SeatView(1, SeatState.TAKEN, leaves_at=3_000_000_001),
        SeatView(2, SeatState.FREE, stuck=(Kind.PEN, Kind.BEETLE), faults=((Kind.PAGE, "chatter"),)),
        *(SeatView(seat, SeatState.ABSENT) for seat in (3, 4, 5)),
    )
    shown = View(Phase.LOBBY, since=0, until=None, seats=seats)
    lit = {seat: lamp(shown, seat, 0) for seat in (1, 2)}
    made = json.loads(
        page_state(shown, lit, name="T", simulated=True, told=(), ki=KiLine(), now=0, image=BLANK)
    )["seats"]
    assert made[0]["leaves_at"] == 3.0
    assert made[1]["stuck"] == ["pen", "beetle"]
    assert made[1]["faults"] == {"page": "chatter"}
    assert [row["lamp"] for row in made] == ["leaving", "fault", None, None, None]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (KiLine("http", "up", 3, "14:02"), "KI: 3 waiting, last 14:02"),
        (KiLine("http", "up", 0, "14:02"), "KI: nothing waiting, last 14:02"),
        (KiLine("http", "down", 1, None), "KI: not reached, 1 waiting"),
        (KiLine("serial", "stopped", 2, "09:00"), "KI: stopped, 2 waiting, last 09:00"),
        (KiLine("http", "unknown", 2), "KI: looking for it, 2 waiting"),
        (
            KiLine("http", "up", 0, "14:02", claim="BCDF GHJK"),
            "KI: not enrolled, nothing waiting, last 14:02",
        ),
        (KiLine("http", "down", 1, claim="BCDF GHJK"), "KI: not reached, 1 waiting"),
        (KiLine(), "KI: no link"),
    ],
)
def test_the_line_of_the_ki(line: KiLine, text: str) -> None:
    """The backlog and the link's state in the words of the specification."""
    assert line.text == text


def test_a_state_is_sent_with_the_time_of_its_sending() -> None:
    """Only the time is put right; all else stays as it was, byte for byte."""
    made = state(now=SECOND)
    later = retimed(made, 3600 * SECOND + 1_234_567_891)
    assert json.loads(later) == json.loads(made) | {"now": 3601.234568}
    assert same_but_for_now(made, later)
    assert not same_but_for_now(made, state(view(round_number=2), now=SECOND))
    with pytest.raises(ValueError, match="no state"):
        retimed(b'{"table":1}', 0)


def test_only_the_last_lines_are_told() -> None:
    """A page that is open for days is not sent the whole evening each time."""
    told = tuple(Told(seq, seq, str(seq)) for seq in range(50))
    assert [line["seq"] for line in json.loads(state(told=told))["told"]] == list(range(50 - LINES_TOLD, 50))


@pytest.mark.parametrize("pwm", [True, False])
@pytest.mark.parametrize("pattern", [each for each in Pattern if each is not Pattern.LEAVING])
def test_cycles_are_those_of_the_leds(pattern: Pattern, pwm: bool) -> None:
    """The level that the page works out from a cycle is that of the real LED, at any time."""
    cycle = lamp_cycles(pwm=pwm)[pattern.value]
    shown, seat = _showing(pattern)
    for at_ms in range(0, 7000, 37):
        assert _level(cycle, at_ms) == lamp(shown, seat, at_ms * 1_000_000, pwm=pwm).level


def test_leaving_is_that_of_the_leds() -> None:
    """So is the level of a seat that stands up, up to ten seconds before it does."""
    steps = leaving_steps()
    leaves_at = 20 * SECOND
    seats = tuple(SeatView(seat, SeatState.TAKEN, leaves_at=leaves_at) for seat in SEATS)
    shown = View(Phase.LOBBY, since=0, until=None, seats=seats)
    for before_ms in range(10_000, -1, -7):
        level = [level for ms, level in steps if ms >= before_ms][-1]
        assert level == lamp(shown, 1, leaves_at - before_ms * 1_000_000).level


@pytest.mark.parametrize(
    ("who", "press", "bots", "sign_in"),
    [
        ({"operator": True}, "all", True, True),
        ({"operator": False, "phone": True, "seat": 3}, [3], True, False),
        ({"operator": False, "phone": True}, [], False, False),
        ({"operator": False}, "none", False, False),
    ],
)
def test_what_each_may_do(who: dict[str, Any], press: object, bots: bool, sign_in: bool) -> None:
    """The operator may all, a phone its own seat, a reader nothing."""
    doors = Doors(lambda: 0, print, print, print, print)
    told = about(PageSettings(ki_url="http://ki/"), doors, **who)
    assert (told["press"], told["bots"], told["sign_in"], told["switch_ki"]) == (
        press,
        bots,
        sign_in,
        sign_in,
    )
    assert (told["ki_url"] is None) is bool(who.get("phone"))


def test_with_a_real_backend_nobody_may_press() -> None:
    """Without mock pins there is nothing to press for anybody."""
    for who in ({"operator": True}, {"operator": False, "phone": True, "seat": 3}):
        assert about(PageSettings(), Doors(lambda: 0), **who)["press"] == "none"


def _showing(pattern: Pattern) -> tuple[View, int]:
    """A view in which seat 1 shows a pattern."""
    place: dict[Pattern, tuple[Phase, dict[str, Any]]] = {
        Pattern.FREE: (Phase.LOBBY, {"state": SeatState.FREE}),
        Pattern.TAKEN: (Phase.LOBBY, {}),
        Pattern.UNCONFIRMED: (Phase.LOBBY, {"state": SeatState.UNCONFIRMED}),
        Pattern.YOUR_TURN: (Phase.THROW, {"in_round": True}),
        Pattern.THROWN: (Phase.THROW, {"in_round": True, "thrown": True}),
        Pattern.TIME_RUNNING_OUT: (Phase.COUNTDOWN, {"in_round": True}),
        Pattern.WON: (Phase.MATCH_OVER, {"won_match": True}),
        Pattern.FAULT: (Phase.LOBBY, {"stuck": (Kind.PEN,)}),
    }
    phase, given = place[pattern]
    seat = SeatView(1, **({"state": SeatState.TAKEN} | given))
    others = tuple(SeatView(number, SeatState.FREE) for number in SEATS[1:])
    shown = View(phase, since=0, until=None, seats=(seat, *others))
    assert lamps(shown)[1].pattern is pattern
    return shown, 1


def _level(cycle: list[list[float]], at_ms: float) -> float:
    offset = at_ms % sum(span for span, _ in cycle)
    for span, level in cycle:
        if offset < span:
            return level
        offset -= span
    raise AssertionError
