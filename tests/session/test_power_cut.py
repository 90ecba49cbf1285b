"""After a power cut: resumed or void, who keeps a seat and a name, and that nothing is counted twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from heek.errors import JournalError
from heek.session.phases import Phase
from heek.session.state import keep, restore
from heek.session.view import SeatState
from tests.session.at_table import FAST, AtTable, in_match, ns


def cut_in_countdown(**settings: Any) -> AtTable:
    """One round revealed, the second in its countdown; seat 1 holds a pen."""
    table = in_match(1, 2, 3, **settings)
    table.play(["pen page page"], start=3.0)
    table.press(1, 8.0, "pen")
    return table.run(9.0)


def test_resume_the_same_match() -> None:
    """The interrupted round is void (`power`), its match shown, and the seats wait to be confirmed."""
    table = cut_in_countdown().cut()
    assert table.events == [
        {
            "seq": 1,
            "at": 0.0,
            "event": "table_started",
            "incarnation": "inc",
            "boot": "boot",
            "name": "Table 1",
        },
        {"seq": 2, "at": 0.0, "event": "round_void", "match": "match-1", "round": 2, "reason": "power"},
    ]
    assert table.view.phase is Phase.RESUME
    assert table.view.until == ns(15.0)
    assert table.view.round == 2
    assert [table.seat(seat).state for seat in (1, 2, 3, 4)] == [
        SeatState.UNCONFIRMED,
        SeatState.UNCONFIRMED,
        SeatState.UNCONFIRMED,
        SeatState.FREE,
    ]
    collection = table.seat(1).collection
    assert collection is not None
    assert collection.pen == 1


def test_all_confirm_and_the_next_round_opens_at_once() -> None:
    """Same match, same collections, the next number; the confirming press is no throw."""
    table = cut_in_countdown().cut()
    for seat, at in ((1, 2.0), (3, 3.0), (2, 4.0)):
        table.press(seat, at)
    table.throw(5.0, {1: "pen", 2: "page", 3: "page"})
    table.run(6)
    assert [(each["at"], each["seat"]) for each in table.told("seat_ready")] == [(2.0, 1), (3.0, 3), (4.0, 2)]
    assert table.names(4.0) == ["seat_ready", "round_opened"]
    assert table.one("round_opened") == {
        "seq": 6,
        "at": 4.0,
        "event": "round_opened",
        "match": "match-1",
        "round": 3,
        "seats": [1, 2, 3],
    }
    told = table.one("round_revealed")
    assert told["collections"]["1"] == {"pen": 2, "page": 0, "beetle": 0}
    assert not table.told("seat_taken", "match_started")


def test_who_does_not_confirm_stands_up() -> None:
    """After rematch_s those who have not pressed stand up (`power`), then the next round opens."""
    table = cut_in_countdown().cut()
    table.press(1, 2.0)
    table.press(2, 15.0)
    table.run(16)
    assert table.left() == [(15.0, 3, "power")]
    assert table.names(15.0) == ["seat_ready", "seat_left", "round_opened"]
    assert table.one("round_opened")["seats"] == [1, 2]


def test_one_confirms_and_walks_over() -> None:
    """A round had been revealed before the cut, so the one who stays wins."""
    table = cut_in_countdown().cut()
    table.press(2, 2.0)
    table.run(16)
    assert table.names(15.0) == ["seat_left", "seat_left", "match_won"]
    assert (table.one("match_won")["seat"], table.one("match_won")["by"]) == (2, "walkover")
    assert table.one("match_won")["rounds"] == 1


def test_one_confirms_but_nothing_was_revealed() -> None:
    """The first round was interrupted: void, `empty`."""
    table = in_match(1, 2).run(2.5).cut()
    table.press(2, 2.0)
    table.run(16)
    assert table.one("match_void")["reason"] == "empty"


def test_nobody_confirms() -> None:
    """All stand up and the match is void; the table ends in attract."""
    table = cut_in_countdown().cut().run(40)
    assert table.left() == [(15.0, seat, "power") for seat in (1, 2, 3)]
    assert table.one("match_void")["reason"] == "empty"
    assert table.view.phase is Phase.ATTRACT


def test_a_cut_in_the_reveal_interrupts_no_round() -> None:
    """The round was revealed and committed: nothing is void, and its win is kept."""
    table = in_match(1, 2)
    table.throw(3.0, {1: "pen", 2: "page"})
    table = table.run(4.0).cut()
    assert [each["event"] for each in table.events] == ["table_started"]
    table.press(1, 1.0)
    table.press(2, 1.5)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.run(4)
    assert table.one("round_opened")["round"] == 2
    assert table.one("round_revealed")["collections"]["1"]["pen"] == 2


def test_a_cut_while_settling_interrupts_the_round() -> None:
    """What was not compared yet is void, and its throws are told to nobody."""
    table = in_match(1, 2, settle=0.3)
    table.throw(3.0, {1: "pen", 2: "page"})
    table = table.run(3.2).cut()
    assert table.one("round_void")["reason"] == "power"
    assert "'pen'" not in str(table.events)


def test_a_cut_before_any_throw() -> None:
    """An open round without a throw is an interrupted round, too."""
    table = in_match(1, 2).run(2.5).cut()
    assert (table.one("round_void")["round"], table.one("round_void")["reason"]) == (1, "power")


def test_a_cut_in_sudden_death() -> None:
    """The tied stay tied; the others watch on."""
    table = in_match(1, 2, 3, **FAST)
    table.play(["pen pen page"] * 3)
    table.press(1, 9.0)
    table = table.run(9.5).cut(**FAST)
    assert table.view.sudden_death
    for seat in (1, 2, 3):
        table.press(seat, 1.0)
    table.throw(3.0, {1: "pen", 2: "page"})
    table.run(4)
    assert table.one("round_opened")["seats"] == [1, 2]
    assert table.one("round_opened")["round"] == 5
    assert (table.one("match_won")["seat"], table.one("match_won")["by"]) == (1, "sudden_death")
    assert not table.told("sudden_death"), "it was told before the cut"


def test_a_tied_one_does_not_come_back() -> None:
    """The other tied one wins by sudden_death when the time to press is over."""
    table = in_match(1, 2, 3, **FAST)
    table.play(["pen pen page"] * 3)
    table = table.run(9).cut(**FAST)
    table.press(1, 1.0)
    table.press(3, 1.0)
    table.run(16)
    assert (table.one("match_won")["seat"], table.one("match_won")["by"]) == (1, "sudden_death")


def test_no_tied_one_comes_back() -> None:
    """All tied gone: the rest play ordinary rounds."""
    table = in_match(1, 2, 3, 4, **FAST)
    table.play(["pen pen page page"] * 3)
    table = table.run(9).cut(**FAST)
    table.press(3, 1.0)
    table.press(4, 1.0)
    table.run(16)
    assert table.names(15.0) == ["seat_left", "seat_left", "round_opened"]
    assert table.told("round_opened")[-1]["seats"] == [3, 4]
    assert len(table.told("round_void")) == 1


def test_two_cuts_in_a_row() -> None:
    """A second cut while seats wait to be confirmed: same match, no second void round, all press again."""
    table = cut_in_countdown().cut()
    table.press(1, 2.0)
    table = table.run(3).cut()
    assert [each["event"] for each in table.events] == ["table_started"]
    assert table.view.phase is Phase.RESUME
    for seat in (1, 2, 3):
        table.press(seat, 5.0)
    table.run(6)
    assert table.one("round_opened")["round"] == 3


def test_a_broken_off_round_leaves_the_misses() -> None:
    """Rule 5: two misses before the cut and a third after it stand up; the interrupted round is none."""
    table = in_match(1, 2, 3, **FAST)
    table.play(["pen pen -", "pen pen -", "pen - -"])
    table = table.run(7.5).cut(**FAST)
    for seat in (1, 2, 3):
        table.press(seat, 1.0)
    table.run(2)
    assert not table.left()
    table.play(["pen pen -"], start=3.0)
    table.run(5)
    assert table.left() == [(4.03, 3, "missed")]


def test_limits_run_on_over_a_cut() -> None:
    """Winnerless rounds of before still count; the interrupted one does not."""
    table = in_match(1, 2, **FAST, winnerless_limit=3)
    table.play(["pen pen", "pen pen", "pen -"])
    table = table.run(7.5).cut(**FAST, winnerless_limit=3)
    for seat in (1, 2):
        table.press(seat, 1.0)
    table.play(["pen pen"], start=3.0)
    table.run(4)
    assert table.one("match_void")["reason"] == "winnerless_limit"


def test_idle_after_a_resume() -> None:
    """idle_s does not run while seats are to be confirmed, and it runs again after that."""
    table = cut_in_countdown(idle=12).cut(idle=12)
    for seat in (1, 2, 3):
        table.press(seat, 14.0)
    table.run(30)
    assert (table.one("match_void")["at"], table.one("match_void")["reason"]) == (26.0, "idle")


def test_leaving_while_to_be_confirmed() -> None:
    """A hold stands up from the waiting table; with all the rest confirmed the round opens."""
    table = cut_in_countdown().cut()
    table.press(1, 1.0)
    table.press(2, 1.0)
    table.hold(3, 2.0, 3.5)
    table.run(6)
    assert table.left() == [(5.0, 3, "leave")]
    assert table.names(5.0) == ["seat_left", "round_opened"]


def test_a_reset_while_to_be_confirmed() -> None:
    """The operator voids the resumed match."""
    table = cut_in_countdown().cut()
    table.reset(3.0)
    table.run(4)
    assert table.one("match_void")["reason"] == "operator"
    assert table.left() == [(3.0, seat, "operator") for seat in (1, 2, 3)]
    assert table.view.phase is Phase.ATTRACT


def test_nobody_sits_down_while_to_be_confirmed() -> None:
    """A press at an empty seat is `not_seated`: a match runs."""
    table = cut_in_countdown().cut()
    table.press(5, 3.0)
    table.run(4)
    assert table.ignored() == [(3.0, 5, "not_seated")]


# Void


def test_on_power_loss_void() -> None:
    """The match is void (`power`), told once, with no round_void; then a lobby of the same seats."""
    table = cut_in_countdown().cut(resume=False)
    assert [(each["event"], each.get("reason")) for each in table.events] == [
        ("table_started", None),
        ("match_void", "power"),
    ]
    assert table.view.phase is Phase.MATCH_OVER
    assert table.view.void == "power"
    table.run(8.1)
    assert table.view.phase is Phase.LOBBY
    assert table.seat(1).state is SeatState.UNCONFIRMED
    again = table.cut(resume=False)
    assert not again.told("match_void")


def test_void_moves_nothing() -> None:
    """A match void by power sends no result."""
    table = cut_in_countdown().cut(resume=False).run(30)
    assert table.results == []
    assert not table.told("match_won")


# Lobby and match over


def test_a_cut_in_the_lobby() -> None:
    """Seats of a lobby stand up with reason `power`; the table starts in attract."""
    table = AtTable()
    table.press(2, 1.0)
    table.press(4, 1.5)
    table = table.run(2).cut()
    assert table.left() == [(0.0, 2, "power"), (0.0, 4, "power")]
    assert table.view.phase is Phase.ATTRACT


def test_a_cut_in_match_over() -> None:
    """The result is told once: after the cut there is no match, and the seats stand up."""
    table = in_match(1, 2, target=1)
    table.throw(3.0, {1: "pen", 2: "page"})
    table = table.run(4).cut()
    assert [each["event"] for each in table.events] == ["table_started", "seat_left", "seat_left"]
    assert table.left() == [(0.0, 1, "power"), (0.0, 2, "power")]
    assert table.results == []


def test_a_cut_in_attract() -> None:
    """Nothing to say but that the table started."""
    table = AtTable().run(1).cut()
    assert [each["event"] for each in table.events] == ["table_started"]


# Names


def named(**settings: Any) -> AtTable:
    table = in_match(1, 2, 3, **settings)
    table.claim(1.5, 1, "a", "Ann")
    table.claim(1.5, 2, "b", "Bo")
    table.play(["pen page page"])
    return table.run(5.0)


def test_a_short_cut_keeps_the_names_and_the_rating() -> None:
    """Known to be shorter than resume_max_s: same identity, same stakes, the result counts."""
    table = named(**FAST).cut(short_cut=True, **FAST, target=2)
    assert table.seat(1).name == "Ann"
    for seat in (1, 2, 3):
        table.press(seat, 1.0)
    table.play(["pen page page", "pen page page"], start=3.0)
    table.run(8)
    assert table.one("match_won")["deltas"] == {"1": 1, "2": -1, "3": 0}
    assert table.results[0].rated
    assert table.results[0].started_at is None, "it began on the clock of a process that is no more"
    assert len(table.results[0].rounds) == 3


def test_a_long_cut_makes_guests() -> None:
    """Else they go on as guests and the match is not rated: nothing moves."""
    table = named(**FAST).cut(short_cut=False, **FAST)
    assert table.seat(1).name is None
    for seat in (1, 2, 3):
        table.press(seat, 1.0)
    table.play(["pen page page", "pen page page"], start=3.0)
    table.run(8)
    assert table.one("match_won")["deltas"] == {"1": 0, "2": 0, "3": 0}
    assert not table.results[0].rated
    assert [entry.player for entry in table.results[0].entries] == [None, None, None]


def test_a_long_cut_then_a_short_one() -> None:
    """An identity that is lost does not come back with the next restart."""
    table = named(**FAST).cut(short_cut=False, **FAST).run(1).cut(short_cut=True, **FAST)
    assert table.seat(1).name is None
    for seat in (1, 2, 3):
        table.press(seat, 1.0)
    table.play(["pen page page", "pen page page"], start=3.0)
    table.run(8)
    assert not table.results[0].rated


def test_a_leaver_of_before_a_long_cut_loses_nothing() -> None:
    """Not rated is not rated: who had left before the cut keeps the stake, too."""
    table = in_match(1, 2, 3, reveal=5)
    table.claim(1.5, 1, "a", "Ann")
    table.claim(1.5, 3, "c", "Cy")
    table.throw(3.0, {1: "pen", 2: "page", 3: "page"})
    table.hold(3, 3.2, 3.5)
    table = table.run(7).cut(short_cut=False, **FAST)
    for seat in (1, 2):
        table.press(seat, 1.0)
    table.play(["pen page", "pen page"], start=3.0)
    table.run(8)
    assert set(table.one("match_won")["deltas"].values()) == {0}


def test_a_long_cut_with_guests_alone() -> None:
    """Without a signed-in seat there is no identity to lose; the match goes on as it was."""
    table = cut_in_countdown(**FAST).cut(short_cut=False, **FAST)
    for seat in (1, 2, 3):
        table.press(seat, 1.0)
    table.play(["pen page page", "pen page page"], start=3.0)
    table.run(8)
    assert table.one("match_won")["seat"] == 1


# What is kept


def test_a_snapshot_that_cannot_be_read_is_refused() -> None:
    """Rubbish and a layout of another version are an error that says what to do."""
    with pytest.raises(JournalError, match="cannot be read"):
        restore(b"{}")
    with pytest.raises(JournalError, match="cannot be read"):
        restore(b"\x00\xff")
    newer = keep(replace(AtTable().table.kept(), version=99))
    with pytest.raises(JournalError, match="layout 99"):
        restore(newer)


def test_the_clock_starts_anew() -> None:
    """`at` is 0 at the daemon's start, also of one that resumes."""
    table = cut_in_countdown().cut()
    table.press(1, 0.5)
    table.run(1)
    assert [each["at"] for each in table.events] == [0.0, 0.0, 0.5]


def test_a_station_that_is_no_longer_wired() -> None:
    """A seat without a station cannot confirm: it stands up at the start."""
    table = cut_in_countdown().cut(seats=(1, 2))
    assert table.left() == [(0.0, 3, "power")]
    for seat in (1, 2):
        table.press(seat, 1.0)
    table.run(2)
    assert table.one("round_opened")["seats"] == [1, 2]
