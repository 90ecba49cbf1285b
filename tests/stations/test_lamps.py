"""What each LED shows: told apart without colour, never faster than 3 Hz, and exact in its instants."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek.clock import MILLISECOND, SECOND, Duration, Instant
from heek.kinds import SEATS, Kind
from heek.session.phases import Phase
from heek.session.view import SeatState, SeatView, View
from heek.stations.lamps import RUNNING_OUT, Lamp, Pattern, lamp, pattern, steps
from tests.display.views import SINCE, instants, views

FASTEST: Duration = SECOND // 3
"""Between two flashes: 3 Hz, the limit for people whom flicker harms."""

T0 = 100 * SECOND


def table(phase: Phase, *, until: Instant | None = None, **seat: object) -> View:
    """A view with all five seats alike."""
    rows = tuple(replace(SeatView(number, SeatState.TAKEN), **seat) for number in SEATS)  # type: ignore[arg-type]
    return View(phase=phase, since=T0, until=until, seats=rows)


VIEWS = {
    Pattern.FREE: table(Phase.LOBBY, state=SeatState.FREE),
    Pattern.TAKEN: table(Phase.LOBBY),
    Pattern.UNCONFIRMED: table(Phase.LOBBY, state=SeatState.UNCONFIRMED),
    Pattern.YOUR_TURN: table(Phase.THROW, in_round=True),
    Pattern.THROWN: table(Phase.THROW, in_round=True, thrown=True),
    Pattern.TIME_RUNNING_OUT: table(Phase.COUNTDOWN, in_round=True, until=T0),
    Pattern.LEAVING: table(Phase.LOBBY, leaves_at=T0 + 20 * SECOND),
    Pattern.WON: table(Phase.MATCH_OVER, won_match=True),
    Pattern.FAULT: table(Phase.LOBBY, state=SeatState.FREE, stuck=(Kind.PEN,)),
}
"""A view that shows each pattern for 12 s from `T0` on."""
TICK = 10 * MILLISECOND
WINDOW = 12 * SECOND


def walk(view: View, start: Instant, end: Instant, *, pwm: bool) -> list[tuple[Instant, Lamp]]:
    """What the daemon would show from `start` to `end`, asking again exactly when it is told to."""
    shown, now = [], start
    while now < end:
        lit = lamp(view, 1, now, pwm=pwm)
        shown.append((now, lit))
        assert lit.until is None or lit.until > now, f"to be asked again at {lit.until}, it is {now}"
        if lit.until is None:
            break
        now = lit.until
    return shown


def rises(shown: list[tuple[Instant, Lamp]]) -> list[Instant]:
    """The instants at which the LED comes on, from dark."""
    return [at for (_, before), (at, lit) in pairwise(shown) if before.level == 0 and lit.level > 0]


@pytest.mark.parametrize("pwm", [True, False], ids=["PWM", "plain"])
@pytest.mark.parametrize(("one", "other"), list(combinations(Pattern, 2)), ids=lambda each: each.value)
def test_patterns_are_told_apart_by_light_and_time_alone(one: Pattern, other: Pattern, pwm: bool) -> None:
    """Any two patterns differ visibly within 3 s, however their beginnings lie to each other."""
    first, second = (
        [lamp(VIEWS[each], 1, T0 + tick * TICK, pwm=pwm).level for tick in range(WINDOW // TICK)]
        for each in (one, other)
    )
    look = 3 * SECOND // TICK
    for shift in range(0, 6 * SECOND // TICK, 5):
        apart = sum(
            abs(a - b) >= 0.1 for a, b in zip(first[:look], second[shift : shift + look], strict=True)
        )
        assert apart * TICK >= 100 * MILLISECOND, f"alike if {other} began {shift * TICK} ns later"


@pytest.mark.parametrize("pwm", [True, False], ids=["PWM", "plain"])
@pytest.mark.parametrize("shown", Pattern)
def test_each_pattern_has_a_view_that_shows_it(shown: Pattern, pwm: bool) -> None:
    """The views of these tests show what they say during the whole window, on both kinds of pins."""
    walked = walk(VIEWS[shown], T0, T0 + WINDOW, pwm=pwm)
    assert {lit.pattern for _, lit in walked} == {shown}
    assert pwm or {lit.level for _, lit in walked} <= {0.0, 1.0}


@pytest.mark.parametrize("pwm", [True, False], ids=["PWM", "plain"])
@pytest.mark.parametrize("shown", Pattern)
def test_no_pattern_flashes_faster_than_three_times_a_second(shown: Pattern, pwm: bool) -> None:
    """Two flashes of a pattern begin at least a third of a second apart."""
    ups = rises(walk(VIEWS[shown], T0, T0 + 25 * SECOND, pwm=pwm))
    assert all(later - earlier >= FASTEST for earlier, later in pairwise(ups))


@given(view=views, start=instants, pwm=st.booleans())
def test_nothing_flashes_faster_than_three_times_a_second(view: View, start: Instant, pwm: bool) -> None:
    """In no view whatever do two flashes of one pattern begin within a third of a second."""
    shown = walk(view, start, start + 10 * SECOND, pwm=pwm)
    by_pattern: dict[Pattern, list[tuple[Instant, Lamp]]] = {}
    for at, lit in shown:
        by_pattern.setdefault(lit.pattern, []).append((at, lit))
    for walked in by_pattern.values():
        ups = rises(walked)
        assert all(later - earlier >= FASTEST for earlier, later in pairwise(ups))


@given(leave_ms=st.integers(1, 10_000), before=st.integers(0, 10_000))
def test_leaving_blinks_shorten_but_never_above_three_hertz(leave_ms: int, before: int) -> None:
    """However long the hold that makes a seat leave: no blink is longer than the last, none is too short."""
    leaves_at = T0 + leave_ms * MILLISECOND
    view = table(Phase.LOBBY, leaves_at=leaves_at)
    ups = rises(walk(view, max(0, leaves_at - before * MILLISECOND), leaves_at + SECOND, pwm=True))
    spans = [later - earlier for earlier, later in pairwise(ups)]
    assert spans == sorted(spans, reverse=True)
    assert all(span >= FASTEST for span in spans)
    assert lamp(view, 1, leaves_at).level == 1.0
    assert lamp(view, 1, leaves_at).until is None


@given(view=views, now=instants, pwm=st.booleans(), place=st.floats(0, 1, exclude_max=True))
def test_until_is_exact(view: View, now: Instant, pwm: bool, place: float) -> None:
    """Level and pattern stay what they are until the very nanosecond that was named, or for ever."""
    lit = lamp(view, 1, now, pwm=pwm)
    end = now + 30 * SECOND if lit.until is None else lit.until
    assert end > now
    for moment in (now + int((end - now) * place), end - 1):
        again = lamp(view, 1, moment, pwm=pwm)
        assert (again.pattern, again.level) == (lit.pattern, lit.level)
        assert again.until == lit.until


@pytest.mark.parametrize("pwm", [True, False], ids=["PWM", "plain"])
@pytest.mark.parametrize("shown", [each for each in Pattern if each is not Pattern.LEAVING])
def test_a_step_ends_when_it_is_said_to(shown: Pattern, pwm: bool) -> None:
    """What is asked for at each `until` plays the pattern's steps, none left out and none twice."""
    cycle = [level for _, level in steps(shown, pwm=pwm)]
    walked = [lit.level for _, lit in walk(VIEWS[shown], T0, T0 + WINDOW, pwm=pwm)]
    if len(cycle) == 1:
        assert walked == cycle
    else:
        assert any(
            walked == [cycle[(first + place) % len(cycle)] for place in range(len(walked))]
            for first in range(len(cycle))
        )


@given(now=instants, later=st.integers(0, 20 * SECOND))
def test_asking_again_never_restarts_a_pattern(now: Instant, later: Duration) -> None:
    """A new view of the same state (a press elsewhere) leaves every blink where it is."""
    for shown, view in VIEWS.items():
        changed = replace(view, since=now + later, round=7)
        for pwm in (True, False):
            assert lamp(changed, 1, now + later, pwm=pwm) == lamp(view, 1, now + later, pwm=pwm), shown


SITTING = {
    SeatState.FREE: Pattern.FREE,
    SeatState.ABSENT: Pattern.FREE,
    SeatState.UNCONFIRMED: Pattern.UNCONFIRMED,
    SeatState.TAKEN: Pattern.TAKEN,
    SeatState.READY: Pattern.TAKEN,
}


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("state", SeatState)
def test_who_only_sits_there(phase: Phase, state: SeatState) -> None:
    """A seat that has nothing to do shows how it is occupied, in every phase."""
    view = table(phase, state=state, until=T0 + SECOND)
    assert pattern(view, 3, T0) is SITTING[state]


@pytest.mark.parametrize("phase", [Phase.THROW, Phase.COUNTDOWN, Phase.SETTLE])
def test_who_is_in_the_round(phase: Phase) -> None:
    """In a round the LED says that a seat has thrown or has yet to."""
    view = table(phase, in_round=True, until=T0 + RUNNING_OUT + 1)
    waiting = Pattern.YOUR_TURN
    assert pattern(view, 1, T0) is waiting
    assert pattern(table(phase, in_round=True, thrown=True), 1, T0) is Pattern.THROWN


def test_time_runs_out_in_the_last_five_seconds() -> None:
    """`your turn` becomes `time running out` exactly five seconds before the deadline, and is asked for."""
    deadline = T0 + 20 * SECOND
    view = table(Phase.COUNTDOWN, in_round=True, until=deadline)
    turn = deadline - RUNNING_OUT
    assert pattern(view, 1, turn - 1) is Pattern.YOUR_TURN
    assert pattern(view, 1, turn) is Pattern.TIME_RUNNING_OUT
    for pwm in (True, False):
        assert lamp(view, 1, turn - 1, pwm=pwm).until == turn
        assert turn in [at for at, _ in walk(view, T0, deadline, pwm=pwm)]
    # After the deadline too: the round settles, and who has not thrown has not.
    assert pattern(view, 1, deadline + 1) is Pattern.TIME_RUNNING_OUT
    assert pattern(replace(view, phase=Phase.SETTLE, until=None), 1, deadline) is Pattern.TIME_RUNNING_OUT


def test_waiting_for_the_first_throw_is_no_warning() -> None:
    """While nobody has thrown no time runs out, even where a phase has an end."""
    assert pattern(table(Phase.THROW, in_round=True, until=T0 + 1), 1, T0) is Pattern.YOUR_TURN


def test_winning_shows_while_it_is_celebrated() -> None:
    """A round's winner shines in the reveal, a match's in match over, and nobody anywhere else."""
    for phase in Phase:
        both = table(phase, won_round=True, won_match=True)
        assert (pattern(both, 1, T0) is Pattern.WON) is (phase in (Phase.REVEAL, Phase.MATCH_OVER))
    assert pattern(table(Phase.REVEAL, won_match=True), 1, T0) is Pattern.TAKEN
    assert pattern(table(Phase.MATCH_OVER, won_round=True), 1, T0) is Pattern.TAKEN


def test_a_winner_who_stood_up_does_not_shine() -> None:
    """A seat that was left in the reveal is free, whatever it threw."""
    assert pattern(table(Phase.REVEAL, won_round=True, state=SeatState.FREE), 1, T0) is Pattern.FREE


@given(view=views, now=instants)
def test_leaving_beats_everything(view: View, now: Instant) -> None:
    """A seat about to stand up shows that and nothing else, in any view."""
    seats = tuple(replace(row, leaves_at=SINCE) for row in view.seats)
    assert {pattern(replace(view, seats=seats), seat, now) for seat in SEATS} == {Pattern.LEAVING}


@pytest.mark.parametrize("state", [SeatState.FREE, SeatState.TAKEN, SeatState.READY])
def test_a_stuck_button_shows_as_fault_outside_a_round(state: SeatState) -> None:
    """A stuck button is shown where the LED has nothing more pressing to say, and not while one plays on."""
    stuck = {"state": state, "stuck": (Kind.PAGE,)}
    assert pattern(table(Phase.LOBBY, **stuck), 1, T0) is Pattern.FAULT
    assert pattern(table(Phase.THROW, in_round=True, **stuck), 1, T0) is Pattern.YOUR_TURN
    assert pattern(table(Phase.MATCH_OVER, won_match=True, **stuck), 1, T0) is Pattern.WON


@pytest.mark.parametrize("fault", ["chatter", "flood"])
def test_a_faulty_button_shows_like_a_stuck_one(fault: str) -> None:
    """A worn button and one that is ignored show as fault where nothing more pressing is to be said."""
    faulty = {"state": SeatState.TAKEN, "faults": ((Kind.PAGE, fault),)}
    assert pattern(table(Phase.LOBBY, **faulty), 1, T0) is Pattern.FAULT
    assert pattern(table(Phase.THROW, in_round=True, **faulty), 1, T0) is Pattern.YOUR_TURN


def test_unconfirmed_beats_fault() -> None:
    """What a player must do now goes before what is broken."""
    view = table(Phase.RESUME, state=SeatState.UNCONFIRMED, stuck=(Kind.PEN,))
    assert pattern(view, 1, T0) is Pattern.UNCONFIRMED


def test_leaving_has_no_cycle() -> None:
    """Leaving is counted back from its end, so it cannot be asked for as a cycle."""
    with pytest.raises(KeyError):
        steps(Pattern.LEAVING, pwm=True)


def test_equal_patterns_blink_together() -> None:
    """All seats with one pattern are lit at the same instants."""
    view = VIEWS[Pattern.UNCONFIRMED]
    for tick in range(200):
        assert len({lamp(view, seat, T0 + tick * TICK) for seat in SEATS}) == 1


@pytest.mark.parametrize("pwm", [True, False], ids=["PWM", "plain"])
@pytest.mark.parametrize("shown", [each for each in Pattern if each is not Pattern.LEAVING])
def test_cycles_run_from_instant_0(shown: Pattern, pwm: bool) -> None:
    """Each cycle begins at the table's instant 0 and again at every whole length of itself."""
    cycle = steps(shown, pwm=pwm)
    length = sum(span for span, _ in cycle)
    turn = 100 * length
    view = replace(VIEWS[shown], until=0)
    assert lamp(view, 1, turn, pwm=pwm).level == lamp(view, 1, 0, pwm=pwm).level == cycle[0][1]
    assert lamp(view, 1, turn - 1, pwm=pwm).level == cycle[-1][1]
