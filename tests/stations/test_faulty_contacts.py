"""Switches that cannot be believed: worn, flooding, cross-talking; and honest play, never touched."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heek.clock import MICROSECOND, SECOND
from heek.kinds import KINDS, Kind
from heek.session.inputs import (
    ButtonHeld,
    FaultReported,
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
from heek.stations.contacts import KEPT_EDGES
from heek.stations.gestures import REASONS, Edge, Gestures
from tests.stations.contact_edges import BEETLE, FOREVER, MS, PAGE, PEN, edges, judged, of, presses


def bouncing(seat: int, button: Kind, at: float, lasts: float, bounces: int, gap: float = 1.0) -> list[Edge]:
    """A press with `bounces` on closing and on opening, `gap` ms each; it ends `lasts` ms after `at`."""
    closing = [at + gap * n for n in range(2 * bounces + 1)]
    opening = [at + lasts - gap * n for n in range(2 * bounces, -1, -1)]
    return edges(seat, button, *closing, *opening)


def swinging(seat: int, button: Kind, hertz: float, begin: float, end: float) -> list[Edge]:
    """A line that swings from `begin` to `end` ms and is open then."""
    half = 500 / hertz
    count = int((end - begin) / half) // 2 * 2
    return edges(seat, button, *(begin + half * n for n in range(count)))


def counted(out: list[Input]) -> Counter[tuple[int, int, Kind]]:
    """The presses that were given out and not taken back: when, where."""
    found: Counter[tuple[int, int, Kind]] = Counter()
    for each in out:
        if isinstance(each, Pressed):
            found[each.at, each.seat, each.button] += 1
        elif isinstance(each, PressRevoked):
            found[each.pressed_at, each.seat, each.button] -= 1
    return +found


def faults(out: list[Input]) -> list[tuple[float, int, str, str]]:
    return [
        (each.at / MS, each.seat, each.button.value, each.fault)
        for each in out
        if isinstance(each, FaultReported)
    ]


# Honest play


def test_fifteen_bouncing_presses_a_second_all_count() -> None:
    """15 presses a second for a minute, each with five bounces at both ends: all count, and no fault."""
    found = [bouncing(1, PEN, 100 + n * 1000 / 15, 40, 5, gap=1.2) for n in range(900)]
    out = judged(*found)
    assert len(presses(out)) == 900
    assert len(out) == 900


def test_a_hundred_presses_a_second_over_the_table_all_count() -> None:
    """Five people, each with twenty presses a second on changing buttons: all 6000 count."""
    found = [
        bouncing(seat, KINDS[n % 3], 100 + n * 50 + seat * 4, 30, 3)
        for n in range(1200)
        for seat in (1, 2, 3, 4, 5)
    ]
    out = judged(*found)
    assert len(presses(out)) == 6000
    assert len(out) == 6000


def test_twenty_presses_a_second_are_a_finger_for_as_long_as_they_last() -> None:
    """The pace that is believed is believed for ever; one of 21 is not."""
    assert not faults(judged(swinging(1, PEN, 20, 100, 60_100)))
    assert [fault for *_, fault in faults(judged(swinging(1, PEN, 21, 100, 60_100)))] == ["flood"]


def test_a_flat_hand_may_drum() -> None:
    """All three buttons ten times a second for half a minute are chords, and no fault."""
    hand = [
        edges(1, kind, 100 + n * 100 + 0.5 * i, 150 + n * 100)
        for n in range(300)
        for i, kind in enumerate(KINDS)
    ]
    out = judged(*hand)
    assert not presses(out)
    assert not faults(out)


def test_a_fast_finger_is_no_worn_switch_where_the_debounce_is_long() -> None:
    """With debounce_s = 0.1 most of ten taps a second come to nothing; that is no wear."""
    assert not faults(
        judged(*(edges(1, PEN, 200 + n * 100, 250 + n * 100) for n in range(100)), debounce=100 * MS)
    )


# A worn switch


@pytest.mark.parametrize("gap", [2, 7, 14])
def test_a_worn_switch_is_told_and_counts(gap: int) -> None:
    """F001: 300 ms of chatter are exactly one press, told as worn; holds and presses go on."""
    chatter = [100 + gap * n for n in range(300 // gap // 2 * 2 + 1)]
    out = judged(edges(1, PEN, *chatter, 2000, 3000, 3080))
    assert presses(out) == [(100, 1, "pen"), (3000, 1, "pen")]
    assert [each[1:] for each in faults(out)] == [(1, "pen", "chatter")]
    assert 250 <= faults(out)[0][0] <= 250 + gap
    assert of(out, ButtonHeld) == [ButtonHeld(1100 * MS, 1, PEN)]


def test_chatter_on_opening_only_is_wear_too() -> None:
    """F001: a clean closing and 300 ms of chatter when it opens: one press, worn."""
    out = judged(edges(1, PEN, 100, *(400 + 6 * n for n in range(51))))
    assert presses(out) == [(100, 1, "pen")]
    assert [each[1:] for each in faults(out)] == [(1, "pen", "chatter")]


def test_a_bounce_of_less_is_no_wear() -> None:
    """A bounce of 74 ms, however often, is none; neither is one of 149 ms once."""
    often = [edges(1, PEN, *(n * 500 + 2 * k for k in range(38))) for n in range(1, 60)]
    assert not faults(judged(*often))
    assert not faults(judged(edges(1, PEN, *(100 + n for n in range(150)))))


def test_three_long_bounces_within_twenty_presses_are_wear() -> None:
    """76 ms at the 1st, 10th and 19th press is worn; at the 1st, 11th and 21st it is not."""
    for apart, worn in ((9, True), (10, False)):
        found = []
        for n in range(3 * apart):
            long = n % apart == 0
            changes = [1000 + n * 500 + 4 * k for k in range(20 if long else 2)]
            found.append(edges(1, PEN, *changes))
        assert bool(faults(judged(*found))) is worn


def test_a_worn_switch_is_well_after_twenty_presses_without() -> None:
    """It heals with the 21st press after its last long bounce, by that press's stamp."""
    worn = edges(1, PEN, *(100 + 5 * n for n in range(60)))
    clean = [edges(1, PEN, 1000 + 200 * n, 1080 + 200 * n) for n in range(30)]
    out = judged(worn, *clean)
    assert of(out, HealReported) == [HealReported((1000 + 200 * 20) * MS, 1, PEN)]
    assert of(out, HealReported)[0].since == 5000 * MS
    assert len(presses(out)) == 31


# A contact that floods


def test_a_line_that_swings_is_set_aside_and_comes_back() -> None:
    """At 30 Hz for ten seconds: found out within two, its presses taken back, well after 5 s of quiet."""
    out = judged(swinging(1, PEN, 30, 100, 10_100), edges(1, PEN, 20_000, 20_080))
    ((at, seat, button, fault),) = faults(out)
    assert (seat, button, fault) == (1, "pen", "flood")
    assert 900 < at < 2100
    assert counted(out) == {(20_000 * MS, 1, PEN): 1}
    healed = of(out, HealReported)
    assert [each.at for each in healed] == [10_100 * MS - round(500 / 30 * MS) + 5 * SECOND]


def test_an_honest_press_before_the_flood_stays() -> None:
    """What is taken back begins where the contact became too fast, not before."""
    out = judged(edges(1, PEN, 100, 180), swinging(1, PEN, 30, 900, 3000))
    assert counted(out) == {(100 * MS, 1, PEN): 1}


def test_ten_kilohertz_are_found_out_at_once() -> None:
    """A line that swings too fast for any press after its first is set aside within 60 ms."""
    out = judged(swinging(1, PEN, 10_000, 100, 1100))
    ((at, *_),) = faults(out)
    assert at < 160
    assert len(counted(out)) == 1


def test_the_seats_other_buttons_and_the_others_play_on() -> None:
    """Beside a flooding pen the seat's page and everybody else's presses count, at its very closings too."""
    line = swinging(1, PEN, 40, 100, 30_100)
    closings = [edge.at / MS for edge in line if edge.closed and edge.at > 5 * SECOND]
    out = judged(
        line,
        *(edges(1, PAGE, at, at + 50) for at in closings[:400:40]),
        *(edges(seat, BEETLE, at + 1, at + 50) for at in closings[:400:40] for seat in (2, 3, 4, 5)),
    )
    assert len([each for each in counted(out) if each[0] > 5 * SECOND]) == 50
    assert not [each for each in of(out, PressDiscarded) if each.at > 5 * SECOND]


def test_no_hold_goes_through_a_flooding_button() -> None:
    """A leave that was warned of is off when one of the two floods; a hold of the page is still one."""
    out = judged(
        edges(1, BEETLE, 100, 9000),
        edges(1, PEN, 100, 1500),
        swinging(1, PEN, 10_000, 1500, 3000),
        edges(1, PAGE, 4000, 6000),
    )
    assert len(of(out, LeaveWarned)) == 1
    assert len(of(out, LeaveAbandoned)) == 1
    assert not of(out, LeaveHeld)
    alone = judged(swinging(1, PEN, 10_000, 100, 3000), edges(1, PAGE, 1000, 2500))
    assert of(alone, ButtonHeld) == [ButtonHeld(2000 * MS, 1, PAGE)]


def test_a_flood_that_ends_closed_heals_when_it_opens() -> None:
    """It is quiet, but closed: it comes back 5 s after it opened, and is not told as stuck beside."""
    line = swinging(1, PEN, 10_000, 100, 1100)
    out = judged([*line, Edge(1101 * MS, 1, PEN, True), Edge(40_000 * MS, 1, PEN, False)])
    assert of(out, HealReported) == [HealReported(45_000 * MS, 1, PEN)]
    assert not of(out, StuckReported)


def test_a_stuck_contact_that_floods_has_one_trouble_at_a_time() -> None:
    """Closed at the start, then wild: stuck, then faulty, then healed once."""
    line = [Edge(1000 * MS + n * 50 * MICROSECOND, 1, PEN, n % 2 == 1) for n in range(20_001)]
    out = judged(line, closed=[(1, PEN)])
    assert [type(each) for each in out] == [StuckReported, FaultReported, HealReported]


def test_a_worn_switch_that_sticks_has_one_trouble_at_a_time() -> None:
    """Worn, then stuck; its healing ends both, and its wear is forgotten."""
    out = judged(edges(1, PEN, *(100 + 5 * n for n in range(61)), 30_000, 31_000, 31_080))
    kinds = [type(each) for each in out if not isinstance(each, ButtonHeld | Pressed)]
    assert kinds == [FaultReported, StuckReported, HealReported]


def test_crosstalk_within_a_station_sets_its_buttons_aside() -> None:
    """F004: three lines that always close together, fifteen times a second each, are no hand."""
    lines = [edges(2, kind, 100 + n * 66, 130 + n * 66) for n in range(150) for kind in KINDS]
    out = judged(*lines, *(edges(3, PEN, 500 + n * 300, 560 + n * 300) for n in range(20)))
    assert {(seat, button, fault) for _, seat, button, fault in faults(out)} == {
        (2, kind.value, "flood") for kind in KINDS
    }
    assert len(counted(out)) == 20
    assert {each.button for each in of(out, HealReported)} == set(KINDS)


def test_crosstalk_of_two_lines_leaves_the_third() -> None:
    """Only those that took part are set aside; the seat plays on with the other one."""
    lines = [edges(2, kind, 100 + n * 52, 130 + n * 52) for n in range(200) for kind in (PEN, PAGE)]
    out = judged(*lines, edges(2, BEETLE, 9030, 9100))
    assert {button for _, _, button, _ in faults(out)} == {"pen", "page"}
    assert presses(out) == [(9030, 2, "beetle")]


def test_a_minute_of_ten_kilohertz_stays_small() -> None:
    """While one contact floods, what the gestures keep does not grow; they say it once and no more."""
    gestures = Gestures(GestureSettings(), (1, 2, 3, 4, 5))
    said: list[Input] = []
    sizes = []
    tracemalloc.start()
    try:
        for turn in range(60):
            for n in range(400):
                at = (100 + 20 * turn) * MS + n * 50 * MICROSECOND
                gestures.feed(Edge(at, 1, PEN, n % 2 == 0))
            said += gestures.advance((117 + 20 * turn) * MS)
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert len(said) == 2
    assert max(sizes[10:]) - sizes[9] < 20_000


# Edges that never came


def test_a_lost_opening_costs_no_press() -> None:
    """Two closings with nothing between them, a finger's time apart, are two presses; the loss is counted."""
    gestures = Gestures(GestureSettings(), (1,))
    for at in (100, 300, 349):
        gestures.feed(Edge(at * MS, 1, PEN, True))
    gestures.feed(Edge(400 * MS, 1, PEN, False))
    out = gestures.advance(FOREVER)
    assert presses(out) == [(100, 1, "pen"), (300, 1, "pen")]
    assert not of(out, StuckReported, ButtonHeld)
    assert gestures.rejected == {(1, PEN, "lost"): 1, (1, PEN, "repeated"): 1}


def test_a_line_that_is_read_ends_a_hold_that_nobody_holds() -> None:
    """F002: the opening was lost; read open, the contact is up from then on and the next press counts."""
    gestures = Gestures(GestureSettings(), (1,))
    gestures.feed(Edge(100 * MS, 1, PEN, True))
    gestures.advance(900 * MS)
    assert gestures.closed_contacts() == [(1, PEN)]
    gestures.feed(Edge(1000 * MS, 1, PEN, False, read=True))
    gestures.feed(Edge(1200 * MS, 1, PEN, True))
    gestures.feed(Edge(1280 * MS, 1, PEN, False))
    out = gestures.advance(FOREVER)
    assert out == [Pressed(1200 * MS, 1, PEN)]
    assert gestures.rejected == {(1, PEN, "lost"): 1}
    assert gestures.closed_contacts() == []


def test_a_line_that_is_read_as_known_is_nothing() -> None:
    """Reading makes no press, ends no hold and counts nothing unless a closed contact is open."""
    gestures = Gestures(GestureSettings(), (1,))
    gestures.feed(Edge(100 * MS, 1, PEN, True, read=True))
    gestures.feed(Edge(200 * MS, 1, PEN, False, read=True))
    assert gestures.advance(FOREVER) == []
    assert gestures.rejected == {}


def test_a_contact_held_at_boot_is_read_open() -> None:
    """F007: it was let go and nobody heard of it: it heals by the reading."""
    gestures = Gestures(GestureSettings(), (1,), closed=[(1, PEN)])
    gestures.feed(Edge(1000 * MS, 1, PEN, False, read=True))
    assert gestures.advance(FOREVER)[1:] == [HealReported(1015 * MS, 1, PEN)]


def test_a_contact_held_at_boot_cannot_press_by_repeating() -> None:
    """F007: a closing edge of a contact that was closed already, and never opened, is no press."""
    out = judged([Edge(500 * MS, 1, PEN, True)], closed=[(1, PEN)])
    assert [type(each) for each in out] == [StuckReported]


# Edges that come late


BURSTS = st.lists(
    st.tuples(
        st.sampled_from([1, 2, 3, 5, 10, 14, 15, 16, 20, 30, 49, 50, 51, 100, 400]),
        st.integers(0, 30),
    ),
    min_size=1,
    max_size=24,
)
"""Milliseconds to the next edge of a contact, and how late it is delivered."""


@settings(max_examples=400, deadline=None)
@given(contacts=st.lists(BURSTS, min_size=1, max_size=4), seed=st.integers(0, 999))
def test_the_order_of_delivery_decides_nothing(contacts: list[list[tuple[int, int]]], seed: int) -> None:
    """Each edge up to 30 ms late, overtaking others of its contact too: the same presses and counts."""
    rng = random.Random(seed)
    places = rng.sample([(seat, kind) for seat in (1, 2) for kind in KINDS], len(contacts))
    deliveries: list[tuple[int, Edge]] = []
    for (seat, kind), burst in zip(places, contacts, strict=True):
        at, closed = 100 + rng.randrange(5), True
        for gap, late in burst:
            deliveries.append((at + late, Edge(at * MS, seat, kind, closed)))
            at, closed = at + gap, not closed
    deliveries.sort(key=lambda each: each[0])
    ordered = Gestures(GestureSettings(), (1, 2))
    for _, edge in sorted(deliveries, key=lambda each: each[1].at):
        ordered.feed(edge)
    expected = ordered.advance(60 * SECOND)
    late = Gestures(GestureSettings(), (1, 2))
    out: list[Input] = []
    for when, edge in deliveries:
        out += late.advance((when - 3) * MS)
        late.feed(edge)
    out += late.advance(60 * SECOND)
    assert counted(out) == counted(expected)
    assert late.closed_contacts() == ordered.closed_contacts()
    edges_only = ("bounce", "repeated", "lost")
    assert {key: n for key, n in late.rejected.items() if key[2] in edges_only} == {
        key: n for key, n in ordered.rejected.items() if key[2] in edges_only
    }


def test_a_press_that_is_delivered_long_after_the_next_one_counts() -> None:
    """Closing and opening come after those of a later press: both count, each at its own time."""
    gestures = Gestures(GestureSettings(), (1,))
    for edge in edges(1, PEN, 1000, 1080):
        gestures.feed(edge)
    gestures.advance(2000 * MS)
    for edge in edges(1, PEN, 100, 180):
        gestures.feed(edge)
    assert presses(gestures.advance(3000 * MS)) == [(100, 1, "pen")]
    assert gestures.rejected == {}


def test_a_late_bounce_takes_the_press_back_that_was_none() -> None:
    """A closing came without the two edges before it: with them it is bounce, and the first is the press."""
    gestures = Gestures(GestureSettings(), (1,))
    gestures.feed(Edge(104 * MS, 1, PEN, True))
    assert presses(gestures.advance(110 * MS)) == [(104, 1, "pen")]
    gestures.feed(Edge(100 * MS, 1, PEN, True))
    gestures.feed(Edge(102 * MS, 1, PEN, False))
    out = gestures.advance(120 * MS)
    assert presses(out) == [(100, 1, "pen")]
    assert of(out, PressRevoked) == [PressRevoked(104 * MS, 1, PEN, 104 * MS, "bounce")]


def test_what_is_too_old_is_counted() -> None:
    """An edge from before all that a contact remembers changes nothing, and is counted."""
    gestures = Gestures(GestureSettings(), (1,))
    for n in range(3 * KEPT_EDGES):
        gestures.feed(Edge((1000 + 60 * n) * MS, 1, PEN, n % 2 == 0))
    gestures.advance(60 * SECOND)
    gestures.feed(Edge(500 * MS, 1, PEN, True))
    assert gestures.advance(61 * SECOND) == []
    assert gestures.rejected == {(1, PEN, "too_old"): 1}


# Counted by reason


def test_each_reason_is_counted_where_it_happened() -> None:
    """Bounce, chord, noise, stuck and flood at five contacts: each under its own seat, button and reason."""
    gestures = Gestures(GestureSettings(), (1, 2, 3, 4, 5), closed=[(5, BEETLE)])
    found = [
        *edges(1, PEN, 100, 102, 104, 200),
        *edges(2, PEN, 300, 380),
        *edges(2, PAGE, 301, 380),
        *edges(5, BEETLE, 400, 405, 410, first=False),
        *(edge for seat in (1, 2, 3) for kind in (PEN, PAGE) for edge in edges(seat, kind, 1000, 1080)),
    ]
    for edge in sorted(found):
        gestures.feed(edge)
    gestures.advance(2 * SECOND)
    assert gestures.rejected == {
        (1, PEN, "bounce"): 1,
        (2, PEN, "chord"): 1,
        (2, PAGE, "chord"): 1,
        (5, BEETLE, "stuck"): 1,
        **{(seat, kind, "noise"): 1 for seat in (1, 2, 3) for kind in (PEN, PAGE)},
    }
    line = swinging(4, PEN, 10_000, 3000, 4000)
    for edge in line:
        gestures.feed(edge)
    gestures.advance(5 * SECOND)
    counts = gestures.rejected
    assert sum(count for (seat, *_), count in counts.items() if seat == 4) > len(line) * 0.5
    assert counts[4, PEN, "flood"] > 18_000


@settings(max_examples=200, deadline=None)
@given(contacts=st.lists(BURSTS, min_size=1, max_size=6))
def test_every_closing_is_a_press_or_has_a_reason(contacts: list[list[tuple[int, int]]]) -> None:
    """Every closing of a contact that opens and closes in turn is given out or counted, none lost."""
    gestures = Gestures(GestureSettings(), (1, 2))
    closings = 0
    for (seat, kind), burst in zip([(s, k) for s in (1, 2) for k in KINDS], contacts, strict=False):
        at, closed = 100 + seat, True
        for gap, _ in burst:
            gestures.feed(Edge(at * MS, seat, kind, closed))
            closings += closed
            at, closed = at + gap, not closed
    out = gestures.advance(60 * SECOND)
    assert {reason for *_, reason in gestures.rejected} <= set(REASONS)
    assert closings == sum(counted(out).values()) + sum(gestures.rejected.values())


@pytest.mark.parametrize("debounce", [2, 15, 100])
def test_bounce_at_both_ends_whatever_the_debounce(debounce: int) -> None:
    """F016: at both ends of its range, too, a press that bounces for less than debounce_s is one press."""
    gap = debounce / 4
    out = judged(*(bouncing(1, PEN, 500 + 1000 * n, 500, 3, gap) for n in range(20)), debounce=debounce * MS)
    assert len(presses(out)) == 20
