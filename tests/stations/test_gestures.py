"""Edges to presses and holds: the spec's sentences one by one, real troubles, and a second opinion."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.clock import SECOND, Instant
from heek.kinds import KINDS, Kind, Seat
from heek.session.inputs import (
    ButtonHeld,
    HealReported,
    Input,
    LeaveAbandoned,
    LeaveHeld,
    LeaveWarned,
    PressDiscarded,
    Pressed,
    PressRevoked,
    StuckReported,
)
from heek.session.settings import GestureSettings
from heek.stations.gestures import Edge, Gestures
from tests.stations.contact_edges import (
    BEETLE,
    FOREVER,
    MS,
    PAGE,
    PEN,
    discarded,
    edges,
    judged,
    of,
    presses,
)

# Debounce


def test_one_press_with_chatter_at_both_ends() -> None:
    """F001: bounce on closing and on opening adds nothing; the press has the time of its first edge."""
    out = judged(edges(1, PEN, 100, 102, 104, 106, 108, 500, 503, 505, 509, 512))
    assert presses(out) == [(100, 1, "pen")]
    assert not discarded(out)


def test_chatter_on_release_only() -> None:
    """F001: a clean closing, a dirty opening: one press."""
    assert len(presses(judged(edges(1, PEN, 100, 500, 503, 505, 509, 512, 515, 518)))) == 1


def test_long_chatter_shorter_than_debounce() -> None:
    """F001: 300 ms of chatter whose openings are all shorter than debounce_s is one press."""
    chatter = [100 + 7 * index for index in range(45)]
    assert presses(judged(edges(1, PEN, *chatter))) == [(100, 1, "pen")]


def test_short_taps_are_all_counted() -> None:
    """F002: taps shorter than any bounce time count once each, and none makes the next one vanish."""
    taps = [edges(1, PEN, 1000 + 400 * n, 1030 + 400 * n) for n in range(20)]
    assert len(presses(judged(*taps))) == 20
    out = judged(edges(1, PEN, 100, 105), edges(1, PEN, 5000, 5060))
    assert presses(out) == [(100, 1, "pen"), (5000, 1, "pen")]


@pytest.mark.parametrize(("open_for", "second"), [(14.999999, False), (15, True), (15.000001, True)])
def test_the_debounce_boundary(open_for: float, second: bool) -> None:
    """A closing edge is a press if the contact had been open for debounce_s, that exactly included."""
    out = judged(edges(1, PEN, 100, 200, 200 + open_for, 400))
    assert len(presses(out)) == 1 + second


def test_without_a_break_means_since_the_last_opening() -> None:
    """Three openings of 10 ms do not add up to one of 15 ms."""
    assert len(presses(judged(edges(1, PEN, 100, 200, 210, 211, 221, 222, 232, 300)))) == 1


@pytest.mark.parametrize("debounce", [2, 100])
def test_another_debounce(debounce: int) -> None:
    """debounce_s is what decides."""
    out = judged(edges(1, PEN, 200, 300, 300 + debounce - 1, 400), debounce=debounce * MS)
    assert len(presses(out)) == 1
    out = judged(edges(1, PEN, 200, 300, 300 + debounce, 500), debounce=debounce * MS)
    assert len(presses(out)) == 2


def test_an_edge_that_repeats_the_level_at_once_is_nothing() -> None:
    """An opening of an open contact, or a second closing within debounce_s, adds no press."""
    out = judged(
        [Edge(50 * MS, 1, PEN, False), Edge(100 * MS, 1, PEN, True), Edge(114 * MS, 1, PEN, True)],
        edges(1, PEN, 300, 301, first=False)[:1],
    )
    assert presses(out) == [(100, 1, "pen")]


def test_contacts_do_not_debounce_each_other() -> None:
    """Another button of the seat, and the same button of another seat, each have their own memory."""
    out = judged(edges(1, PEN, 100, 200), edges(1, PAGE, 205, 300), edges(2, PEN, 207, 300))
    assert presses(out) == [(100, 1, "pen"), (205, 1, "page"), (207, 2, "pen")]


# Chord and noise


@pytest.mark.parametrize(("apart", "none"), [(0, True), (2.999999, True), (3, True), (3.000001, False)])
def test_the_chord_boundary(apart: float, none: bool) -> None:
    """Two buttons of one seat within chord_s count as none, that exactly included."""
    out = judged(edges(1, PEN, 100, 200), edges(1, PAGE, 100 + apart, 200))
    assert len(presses(out)) == (0 if none else 2)
    assert [(seat, reason) for _, seat, reason in discarded(out)] == ([(1, "chord")] * 2 if none else [])


def test_three_in_a_chain_are_none() -> None:
    """Pairwise: the first and the last are 6 ms apart, but each has a neighbour within 3 ms."""
    out = judged(edges(1, PEN, 100, 200), edges(1, PAGE, 103, 200), edges(1, BEETLE, 106, 200))
    assert not presses(out)
    assert [reason for _, _, reason in discarded(out)] == ["chord"] * 3


def test_a_chain_that_ends() -> None:
    """The third is 3.1 ms after the second, so it counts."""
    out = judged(edges(1, PEN, 100, 200), edges(1, PAGE, 103, 200), edges(1, BEETLE, 106.1, 200))
    assert presses(out) == [(106.1, 1, "beetle")]


def test_no_chord_time() -> None:
    """With chord_s = 0 only closings at one stamp are a chord."""
    out = judged(edges(1, PEN, 100, 200), edges(1, PAGE, 100.000001, 200), chord=0)
    assert len(presses(out)) == 2
    out = judged(edges(1, PEN, 100, 200), edges(1, PAGE, 100, 200), chord=0)
    assert not presses(out)


def test_bounce_is_no_second_button() -> None:
    """A contact's own bounce within chord_s is no chord."""
    assert presses(judged(edges(1, PEN, 100, 101, 102, 200))) == [(100, 1, "pen")]


def test_a_held_button_is_no_chord() -> None:
    """A button that has been down for longer takes nothing from the next one."""
    out = judged(edges(1, PEN, 100, 400), edges(1, PAGE, 200, 300))
    assert presses(out) == [(100, 1, "pen"), (200, 1, "page")]


def test_two_seats_are_no_chord() -> None:
    """F008: two players in the same instant both count, in either order, and 1 ms apart."""
    for apart in (0, 1, -1):
        out = judged(edges(2, PEN, 100, 200), edges(5, PEN, 100 + apart, 200))
        assert sorted(presses(out)) == sorted([(100, 2, "pen"), (100 + apart, 5, "pen")])


def test_five_players_at_one_instant_all_count() -> None:
    """F004's counter-trial: one button each, within 3 ms."""
    for apart in (0, 0.75):
        out = judged(*(edges(seat, PEN, 100 + apart * seat, 200) for seat in (1, 2, 3, 4, 5)))
        assert len(presses(out)) == 5


def test_nine_lines_at_once_are_noise() -> None:
    """F004: nine of fifteen lines within 3 ms are none, though longer than debounce_s; so it is for six."""
    lines = [edges(seat, kind, 100 + seat * 0.5, 160) for seat in (1, 2, 3) for kind in KINDS]
    out = judged(*lines)
    assert not presses(out)
    assert [reason for _, _, reason in discarded(out)] == ["noise"] * 9
    six = [edges(seat, PEN, 100, 160) for seat in (1, 2, 3, 4, 5)] + [edges(5, BEETLE, 103, 160)]
    assert [reason for _, _, reason in discarded(judged(*six))] == ["noise"] * 6


def test_six_in_more_than_the_chord_time_are_no_noise() -> None:
    """Six closings over 3.1 ms: two of one seat at its ends are no chord either, so all count."""
    six = [edges(seat, PEN, 100, 160) for seat in (1, 2, 3, 4, 5)] + [edges(5, BEETLE, 103.1, 160)]
    assert len(presses(judged(*six))) == 6


def test_a_press_beside_noise() -> None:
    """Noise takes only what closed within the same 3 ms; a seventh, 3.5 ms after them, counts."""
    six = [edges(seat, PEN, 100, 160) for seat in (1, 2, 3, 4)]
    six += [edges(1, PAGE, 100, 160), edges(2, PAGE, 100, 160)]
    out = judged(*six, edges(5, PEN, 103.5, 200))
    assert presses(out) == [(103.5, 5, "pen")]
    assert len(discarded(out)) == 6


def test_a_press_waits_for_the_chord_time() -> None:
    """The second button fed before the first is judged takes both; nothing comes out too early."""
    gestures = Gestures(GestureSettings(), (1, 2))
    gestures.feed(Edge(100 * MS, 1, PEN, True))
    assert gestures.advance(99 * MS) == []
    gestures.feed(Edge(102 * MS, 1, BEETLE, True))
    assert presses(gestures.advance(100 * MS)) == []
    assert presses(gestures.advance(110 * MS)) == []


# Leaving


def test_both_outer_buttons() -> None:
    """Warned at 1 s with the time of leaving, held at leave_s, both from the later of the two closings."""
    out = judged(edges(1, PEN, 100, 5000), edges(1, BEETLE, 600, 5000), until=4900)
    assert out[2:] == [
        LeaveWarned(1600 * MS, 1, 3600 * MS),
        LeaveHeld(3600 * MS, 1),
    ]


def test_both_within_chord_still_hold() -> None:
    """Fine points: they are no press, but the hold counts."""
    out = judged(edges(1, PEN, 100, 3300), edges(1, BEETLE, 101, 3300), until=3200)
    assert not presses(out)
    assert of(out, LeaveHeld) == [LeaveHeld(3101 * MS, 1)]


def test_let_go_after_the_warning() -> None:
    """LeaveAbandoned once the contact has been open for debounce_s; nobody leaves."""
    out = judged(edges(1, PEN, 100, 2000), edges(1, BEETLE, 100, 2500))
    assert of(out, LeaveAbandoned) == [LeaveAbandoned(2015 * MS, 1)]
    assert not of(out, LeaveHeld)


def test_let_go_before_the_warning() -> None:
    """Under a second nothing is said."""
    out = judged(edges(1, PEN, 100, 1000), edges(1, BEETLE, 100, 1200))
    assert not of(out, LeaveAbandoned, LeaveWarned, LeaveHeld)


@pytest.mark.parametrize("pair", [(PEN, PAGE), (PAGE, BEETLE)])
def test_no_other_pair_leaves(pair: tuple[Kind, Kind]) -> None:
    """Only pen and beetle together."""
    out = judged(edges(1, pair[0], 100, 9000), edges(1, pair[1], 200, 9000))
    assert not of(out, LeaveWarned, LeaveHeld)


def test_the_page_beside_does_not_stop_it() -> None:
    """Three buttons held are still both outer ones."""
    out = judged(edges(1, PEN, 100, 4000), edges(1, PAGE, 500, 4000), edges(1, BEETLE, 200, 4000), until=3900)
    assert of(out, LeaveHeld) == [LeaveHeld(3200 * MS, 1)]


def test_outer_buttons_of_two_seats_are_no_hold() -> None:
    """The pen of one seat and the beetle of the next are two players."""
    assert not of(judged(edges(1, PEN, 100, 9000), edges(2, BEETLE, 100, 9000)), LeaveWarned, LeaveHeld)


def test_a_hold_leaves_once() -> None:
    """Going on holding makes nobody leave twice; letting go and holding again does."""
    out = judged(edges(1, PEN, 100, 8000, 8100, 12000), edges(1, BEETLE, 100, 12000), until=11500)
    assert of(out, LeaveHeld) == [LeaveHeld(3100 * MS, 1), LeaveHeld(11100 * MS, 1)]


def test_bounce_inside_a_hold() -> None:
    """An opening shorter than debounce_s does not end a hold, nor restart it."""
    out = judged(edges(1, PEN, 100, 2000, 2014, 4000), edges(1, BEETLE, 100, 4000), until=3900)
    assert of(out, LeaveHeld) == [LeaveHeld(3100 * MS, 1)]
    assert not of(out, LeaveAbandoned)


def test_an_opening_of_debounce_ends_a_hold() -> None:
    """From then on it is a new press and a new hold."""
    out = judged(edges(1, PEN, 100, 2000, 2015, 6000), edges(1, BEETLE, 100, 6000), until=5900)
    assert of(out, LeaveHeld) == [LeaveHeld(5015 * MS, 1)]
    assert len(of(out, LeaveAbandoned)) == 1


def test_the_deadline_in_a_short_opening() -> None:
    """Nobody knows yet whether the hold goes on: closed again in time, it is complete at that edge."""
    out = judged(edges(1, PEN, 100, 3095, 3105, 4000), edges(1, BEETLE, 100, 4000), until=3900)
    assert of(out, LeaveHeld) == [LeaveHeld(3105 * MS, 1)]


def test_the_deadline_in_a_long_opening() -> None:
    """Not closed again in time, the hold ended when the contact opened."""
    out = judged(edges(1, PEN, 100, 3095, 3200, 4000), edges(1, BEETLE, 100, 4000))
    assert not of(out, LeaveHeld)


@pytest.mark.parametrize("leave", [1, 10])
def test_another_leave_time(leave: int) -> None:
    """leave_s from 1 to 10; at 1 s there is nothing left to warn of."""
    out = judged(edges(1, PEN, 100, 20000), edges(1, BEETLE, 100, 20000), leave=leave * SECOND, until=15000)
    assert of(out, LeaveHeld) == [LeaveHeld(100 * MS + leave * SECOND, 1)]


# Holds of one button


@pytest.mark.parametrize("button", KINDS)
def test_one_button_held_alone(button: Kind) -> None:
    """hold_s after the press, once, however long it goes on."""
    out = judged(edges(1, button, 100, 9000))
    assert of(out, ButtonHeld) == [ButtonHeld(1100 * MS, 1, button)]


def test_a_hold_counts_only_while_the_others_are_open() -> None:
    """Another button down before, during, or joining within the second: no hold of either."""
    for page in ((50, 3000), (500, 3000), (500, 600)):
        out = judged(edges(1, BEETLE, 100, 2000), edges(1, PAGE, *page))
        assert ButtonHeld(1100 * MS, 1, BEETLE) not in out


def test_another_seats_button_does_not_matter() -> None:
    """Holds of two seats are two holds."""
    out = judged(edges(1, BEETLE, 100, 2000), edges(2, PEN, 200, 2000))
    assert len(of(out, ButtonHeld)) == 2


def test_a_stuck_button_does_not_spoil_the_others_holds() -> None:
    """The seat plays on with its other buttons."""
    out = judged(edges(1, BEETLE, 100, 2000), closed=[(1, PEN)])
    assert of(out, ButtonHeld) == [ButtonHeld(1100 * MS, 1, BEETLE)]


# Stuck


def test_closed_at_start_up() -> None:
    """F007: reported at once, no press, not even on release; healed after debounce_s, then it works."""
    out = judged(edges(3, PAGE, 8000, 9000, 9100, first=False), closed=[(3, PAGE)])
    assert out == [
        StuckReported(0, 3, PAGE),
        HealReported(8015 * MS, 3, PAGE),
        Pressed(9000 * MS, 3, PAGE),
    ]


def test_start_up_stuck_with_a_dirty_release() -> None:
    """Bounce on opening does not heal early and is no press."""
    out = judged(edges(3, PAGE, 8000, 8005, 8010, 8020, 8022, first=False), closed=[(3, PAGE)])
    assert of(out, HealReported) == [HealReported(8037 * MS, 3, PAGE)]
    assert not presses(out)


def test_never_released() -> None:
    """F007: it says so once; the other seats and the seat's other buttons play."""
    out = judged(edges(1, PEN, 1000, 1080), edges(3, PEN, 2000, 2080), closed=[(3, PAGE)])
    assert len(of(out, StuckReported)) == 1
    assert presses(out) == [(1000, 1, "pen"), (3000 - 1000, 3, "pen")]


def test_two_closed_at_start_up_never_leave() -> None:
    """A bag on both outer buttons makes nobody stand up."""
    out = judged(closed=[(1, PEN), (1, BEETLE)])
    assert len(out) == 2
    assert not of(out, LeaveHeld, LeaveWarned)


def test_closed_for_longer_than_stuck_s() -> None:
    """Reported at stuck_s, healed once open for debounce_s; the press itself had counted."""
    out = judged(edges(1, PEN, 100, 30000, 31000, 31100), until=40000)
    assert of(out, Pressed, StuckReported, HealReported) == [
        Pressed(100 * MS, 1, PEN),
        StuckReported(20100 * MS, 1, PEN),
        HealReported(30015 * MS, 1, PEN),
        Pressed(31000 * MS, 1, PEN),
    ]


def test_not_stuck_when_let_go_in_time() -> None:
    """A hold of nearly stuck_s is a hold."""
    assert not of(judged(edges(1, PEN, 100, 20099)), StuckReported)


def test_a_stuck_outer_button_ends_a_hold() -> None:
    """When one of the two turns out stuck nobody leaves, and the warning is taken back."""
    out = judged(edges(1, PEN, 100, 30000), edges(1, BEETLE, 18000, 30000), until=29000)
    assert not of(out, LeaveHeld)
    assert of(out, LeaveAbandoned) == [LeaveAbandoned(20100 * MS, 1)]


def test_a_leave_hold_that_goes_on_is_stuck_in_the_end() -> None:
    """Who leaves something on both buttons stands up once, and both are reported."""
    out = judged(edges(1, PEN, 100, 30000), edges(1, BEETLE, 200, 30000), until=29000)
    assert len(of(out, LeaveHeld)) == 1
    assert len(of(out, StuckReported)) == 2


def test_closed_within_debounce_of_start_up() -> None:
    """A contact open for less than debounce_s since start-up is not known to have been open: no press."""
    assert not presses(judged(edges(1, PEN, 10, 100)))
    assert len(presses(judged(edges(1, PEN, 15, 100)))) == 1


# In any order


def test_a_seat_without_a_station() -> None:
    """An edge of a seat that is not wired is a mistake of the caller, said at once."""
    with pytest.raises(KeyError):
        Gestures(GestureSettings(), (1, 2)).feed(Edge(0, 3, PEN, True))


def test_due_tells_when_something_comes() -> None:
    """The next deadline of a hold, and None when all contacts are open."""
    gestures = Gestures(GestureSettings(), (1, 2))
    assert gestures.due() is None
    gestures.feed(Edge(100 * MS, 1, PEN, True))
    assert gestures.due() == 100 * MS
    gestures.advance(100 * MS)
    assert gestures.due() == 1100 * MS
    gestures.feed(Edge(200 * MS, 1, PEN, False))
    gestures.advance(200 * MS)
    assert gestures.due() == 215 * MS
    gestures.advance(215 * MS)
    assert gestures.due() is None
    assert gestures.idle


def test_a_late_edge_keeps_its_stamp() -> None:
    """An edge that is fed after later ones were taken comes out with its own stamp."""
    gestures = Gestures(GestureSettings(), (1, 2))
    gestures.feed(Edge(200 * MS, 1, PEN, True))
    gestures.advance(300 * MS)
    gestures.feed(Edge(150 * MS, 2, PAGE, True))
    assert presses(gestures.advance(310 * MS)) == [(150, 2, "page")]


def test_due_with_a_contact_stuck_at_start_up() -> None:
    """There is something to say at once."""
    assert Gestures(GestureSettings(), (1, 2), closed=[(1, PEN)]).due() == 0


def test_an_edge_older_than_the_contacts_last_change() -> None:
    """A stray edge from before a change that was taken already does not undo it."""
    gestures = Gestures(GestureSettings(), (1, 2))
    gestures.feed(Edge(200 * MS, 1, PEN, True))
    gestures.advance(210 * MS)
    gestures.feed(Edge(190 * MS, 1, PEN, False))
    out = gestures.advance(2000 * MS)
    assert of(out, ButtonHeld) == [ButtonHeld(1200 * MS, 1, PEN)]


GAPS = st.sampled_from([1, 2, 3, 4, 5, 10, 14, 15, 16, 20, 40, 300, 995, 1005, 2990, 3010])
"""Milliseconds between two edges of one contact: around every limit, on none of the holds'."""


@st.composite
def edge_lists(draw: st.DrawFn, seats: int = 3) -> list[Edge]:
    found = []
    for seat in range(1, seats + 1):
        for kind in KINDS:
            at = draw(st.sampled_from([100, 101, 102, 103, 104, 106, 120, 500, 1300]))
            closed = True
            for gap in draw(st.lists(GAPS, max_size=6)):
                found.append(Edge(at * MS, seat, kind, closed))
                at, closed = at + gap, not closed
    return sorted(found)


@dataclass
class Down:
    """From a press to the opening that ended it (or for ever)."""

    seat: Seat
    button: Kind
    pressed: Instant
    opened: Instant
    short: list[tuple[Instant, Instant]]
    """Openings shorter than debounce within it."""

    def decided(self, at: Instant) -> Instant:
        """`at`, or the end of the short opening it falls into."""
        return next((end for begin, end in self.short if begin <= at < end), at)


def second_opinion(all_edges: list[Edge], how: GestureSettings) -> set[tuple[Any, ...]]:
    """Presses, chords, noise, leaving and stuck contacts, straight from the spec's sentences."""
    downs: list[Down] = []
    contacts: dict[tuple[Seat, Kind], list[Edge]] = {}
    for edge in all_edges:
        contacts.setdefault((edge.seat, edge.button), []).append(edge)
    for (seat, button), changes in contacts.items():
        opened: Instant = 0
        mine: list[Down] = []
        for edge in changes:
            if not edge.closed:
                opened = edge.at
                mine[-1].opened = edge.at
            elif edge.at - opened >= how.debounce:
                mine.append(Down(seat, button, edge.at, FOREVER, []))
            else:
                mine[-1].short.append((opened, edge.at))
                mine[-1].opened = FOREVER
        downs += mine
    out: set[tuple[Any, ...]] = set()
    for one in downs:
        close = [
            sum(begin.pressed <= each.pressed <= begin.pressed + how.chord for each in downs)
            for begin in downs
            if begin.pressed <= one.pressed <= begin.pressed + how.chord
        ]
        beside = any(
            each is not one and each.seat == one.seat and abs(each.pressed - one.pressed) <= how.chord
            for each in downs
        )
        if max(close) >= 6:
            out.add(("ignored", one.pressed, one.seat, "noise"))
        elif beside:
            out.add(("ignored", one.pressed, one.seat, "chord"))
        else:
            out.add(("press", one.pressed, one.seat, one.button))
        stuck = one.decided(one.pressed + how.stuck)
        if stuck < one.opened:
            out.add(("stuck", stuck, one.seat, one.button))
            if one.opened < FOREVER:
                out.add(("healed", one.opened + how.debounce, one.seat, one.button))
        if one.button is PEN:
            for other in downs:
                if (other.seat, other.button) == (one.seat, BEETLE):
                    held = max(one.pressed, other.pressed) + how.leave
                    for _ in range(len(one.short) + len(other.short) + 1):
                        held = max(one.decided(held), other.decided(held))
                    if held < min(one.opened, other.opened):
                        out.add(("leave", held, one.seat))
    return out


def as_set(out: list[Input]) -> set[tuple[Any, ...]]:
    found: set[tuple[Any, ...]] = set()
    for each in out:
        match each:
            case Pressed(at, seat, button):
                found.add(("press", at, seat, button))
            case PressDiscarded(at, seat, reason):
                found.add(("ignored", at, seat, reason))
            case LeaveHeld(at, seat):
                found.add(("leave", at, seat))
            case StuckReported(at, seat, button):
                found.add(("stuck", at, seat, button))
            case HealReported(at, seat, button):
                found.add(("healed", at, seat, button))
    return found


@settings(max_examples=400, deadline=None)
@given(found=edge_lists())
def test_against_a_second_opinion(found: list[Edge]) -> None:
    """On random edges of nine contacts, all that comes out is what the spec's sentences say."""
    how = GestureSettings(stuck=FOREVER * 2)
    assert as_set(judged(found, stuck=how.stuck, until=60_000)) == second_opinion(found, how)


@settings(max_examples=150, deadline=None)
@given(found=edge_lists(seats=1))
def test_stuck_against_a_second_opinion(found: list[Edge]) -> None:
    """The same with a short stuck_s (beyond leave_s, so that neither gets in the other's way)."""
    how = GestureSettings(stuck=4 * SECOND + 501 * 1000)
    expected = {
        each
        for each in second_opinion(found, how)
        if each[0] in ("press", "stuck", "healed") and each[1] <= 60 * SECOND
    }
    got = {
        each
        for each in as_set(judged(found, stuck=how.stuck, until=60_000))
        if each[0] in ("press", "stuck", "healed")
    }
    assert got == expected


@settings(max_examples=200, deadline=None)
@given(found=edge_lists(), steps=st.lists(st.integers(100, 6000), max_size=8), seed=st.integers(0, 99))
def test_order_and_steps_do_not_matter(found: list[Edge], steps: list[int], seed: int) -> None:
    """Fed in any order before they are due, in any steps of time, the same edges give the same gestures."""
    chord = GestureSettings().chord
    gestures = Gestures(GestureSettings(), (1, 2, 3))
    out: list[Input] = []
    waiting = found
    for step in [*sorted(steps), 100_000]:
        ready = [edge for edge in waiting if edge.at <= step * MS]
        waiting = [edge for edge in waiting if edge.at > step * MS]
        random.Random(seed).shuffle(ready)
        for edge in ready:
            gestures.feed(edge)
        out += gestures.advance(step * MS - chord)
    stamps = [each.at for each in out]
    assert stamps == sorted(stamps)
    at_once = judged(found, until=99_997)
    assert sorted(map(repr, out)) == sorted(map(repr, at_once))


def test_a_chord_partner_delivered_late_revokes_the_press() -> None:
    """The press that was given out as one is named again, with its own instant; only once."""
    gestures = Gestures(GestureSettings(), (1, 2))
    gestures.feed(Edge(200 * MS, 1, PEN, True))
    assert presses(gestures.advance(203 * MS)) == [(200, 1, "pen")]
    gestures.feed(Edge(202 * MS, 1, PAGE, True))
    assert gestures.advance(210 * MS) == [
        PressDiscarded(202 * MS, 1, "chord"),
        PressRevoked(202 * MS, 1, PEN, 200 * MS, "chord"),
    ]
    gestures.feed(Edge(201 * MS, 1, Kind.BEETLE, True))
    assert gestures.advance(220 * MS) == [PressDiscarded(201 * MS, 1, "chord")]


def test_noise_delivered_late_revokes_every_press_of_it() -> None:
    """Five presses counted, a sixth within the chord time is heard of later: none of them was a press."""
    gestures = Gestures(GestureSettings(), (1, 2, 3, 4, 5))
    for seat in (1, 2, 3, 4, 5):
        gestures.feed(Edge(200 * MS, seat, PEN, True))
    assert len(presses(gestures.advance(210 * MS))) == 5
    gestures.feed(Edge(201 * MS, 3, PAGE, True))
    out = gestures.advance(220 * MS)
    assert discarded(out) == [(201, 3, "noise")]
    assert {(each.seat, each.reason) for each in of(out, PressRevoked)} == {
        (seat, "noise") for seat in (1, 2, 3, 4, 5)
    }
