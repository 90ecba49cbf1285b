"""The panel is spared: the picture moves, dims and goes dark by itself, and no pixel is lit for ever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from heek.clock import SECOND, ManualClock
from heek.config import from_keys
from heek.display.burn_in import (
    DARK_AFTER,
    DIM_AFTER,
    FAULT_EVERY,
    MOVE_EVERY,
    PATH,
    Light,
    Standing,
    standing,
    stood,
)
from heek.display.drawing import draw
from heek.display.oled import Oled
from heek.display.panel_feed import PanelFeed
from heek.display.screens import screen
from heek.journal import InlineExecutor
from heek.kinds import KINDS, Kind
from heek.painting import Painting
from heek.session.phases import Phase
from heek.session.view import View
from heek.simulator.runner import Simulation
from heek.simulator.story import parse
from tests.bench.evening import hour
from tests.display.catalogue import T0, five, seats, table
from tests.display.views import SINCE, views

DAY = 24 * 3600 * SECOND
ATTRACT = table(Phase.ATTRACT, five(state=seats()[0].state))


def light(view: View, after_s: float) -> Light:
    return standing(view, view.since + round(after_s * SECOND))[0].light


def test_the_path_is_a_walk_of_single_pixels_within_the_margins() -> None:
    """Proves that each step, the last to the first included, is one pixel along one axis, all places new."""
    for (x, y), (to_x, to_y) in pairwise([*PATH, PATH[0]]):
        assert abs(to_x - x) + abs(to_y - y) == 1
    assert len(set(PATH)) == len(PATH)
    assert {x for x, _ in PATH} == {-1, 0, 1}
    assert {y for _, y in PATH} == {0, 1}


@given(view=views, place=st.sampled_from(PATH))
@settings(max_examples=100, deadline=None)
def test_a_moved_picture_loses_nothing(view: View, place: tuple[int, int]) -> None:
    """Proves for any view that moving there and back gives the same picture."""
    picture = draw(screen(view, SINCE))
    there = stood(picture, Standing(*place))
    back = Image.new("1", (128, 64))
    back.paste(there, (-place[0], -place[1]))
    assert back.tobytes() == picture.tobytes()


@given(view=views, after=st.integers(0, 3 * DARK_AFTER))
@settings(max_examples=300, deadline=None)
def test_what_is_said_to_stay_stays(view: View, after: int) -> None:
    """Proves that nothing changes before the instant that is named, and that this is always a later one."""
    now = view.since + after
    how, until = standing(view, now)
    if until is None:
        assert standing(view, now + 100 * DAY)[0] == how
    else:
        assert until > now
        assert standing(view, until - 1)[0] == how


def test_an_empty_table_dims_then_goes_dark() -> None:
    """Proves the instants: bright for three minutes, dim up to half an hour, dark after that, for good."""
    assert light(ATTRACT, DIM_AFTER / SECOND - 0.001) is Light.BRIGHT
    assert light(ATTRACT, DIM_AFTER / SECOND) is Light.DIM
    assert light(ATTRACT, DARK_AFTER / SECOND - 0.001) is Light.DIM
    assert light(ATTRACT, DARK_AFTER / SECOND) is Light.DARK
    assert standing(ATTRACT, T0 + DAY) == (Standing(light=Light.DARK), None)


def test_each_change_of_the_light_is_foretold() -> None:
    """Proves that whoever asks again at each instant that is named sees the light change when it does."""
    at, seen = T0, {}
    until: int | None = at
    while until is not None:
        at = until
        how, until = standing(ATTRACT, at)
        seen.setdefault(how.light, at)
    assert seen == {Light.BRIGHT: T0, Light.DIM: T0 + DIM_AFTER, Light.DARK: T0 + DARK_AFTER}


@pytest.mark.parametrize("phase", [each for each in Phase if each is not Phase.ATTRACT])
def test_only_attract_goes_dark(phase: Phase) -> None:
    """Proves that whoever sits at the table always has a picture, however long they wait."""
    assert light(table(phase, five()), 10 * 3600) is not Light.DARK


def test_a_lobby_that_counts_down_is_bright() -> None:
    """Proves that a lobby in which one has long waited alone is bright again when a second sits down."""
    waiting = table(Phase.LOBBY, five())
    assert light(waiting, 600) is Light.DIM
    assert light(replace(waiting, until=T0 + 610 * SECOND), 600) is Light.BRIGHT


@pytest.mark.parametrize("phase", [Phase.COUNTDOWN, Phase.SETTLE, Phase.REVEAL, Phase.MATCH_OVER])
def test_nothing_moves_from_the_first_throw_to_the_result(phase: Phase) -> None:
    """Proves that while people watch a countdown or a reveal the picture stays where it is, and bright."""
    view = table(phase, five(), until_s=60)
    assert {standing(view, T0 + second * SECOND)[0] for second in range(61)} == {standing(view, T0)[0]}
    assert light(view, 59) is Light.BRIGHT


def test_the_throw_screen_moves_once_a_minute() -> None:
    """Proves that a round nobody throws in goes round the path, a place a minute."""
    view = table(Phase.THROW, five(), round=1)
    places = [standing(view, minute * MOVE_EVERY)[0] for minute in range(2, 9)]
    assert [(each.right_px, each.down_px) for each in places] == [*PATH[2:], *PATH[:3]]


def test_faults_are_still_told_at_night() -> None:
    """Proves that each fault comes up once in every minute of the night, and nothing else does."""
    view = table(Phase.ATTRACT, seats(s1={"stuck": (KINDS[0],)}, s4={"stuck": (KINDS[1],)}), not_saving=True)
    start = T0 + DARK_AFTER
    shown = Counter(
        screen(view, start + second * SECOND)
        for second in range(FAULT_EVERY // SECOND)
        if standing(view, start + second * SECOND)[0].light is not Light.DARK
    )
    assert sorted(each.seat or 0 for each in shown) == [0, 1, 4]  # type: ignore[attr-defined]
    assert set(shown.values()) == {3}


# What the panel is really given


class Panes:
    """A panel that adds up how long each picture was lit, and with how much light."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.since = 0
        self.picture = Image.new("1", (128, 64)).tobytes()
        self.dimmed = False
        self.lit_s: Counter[bytes] = Counter()
        self.sent = 0

    def open(self, *_: object) -> Panes:
        return self

    def _count(self) -> None:
        self.lit_s[self.picture] += (self.clock.now() - self.since) / SECOND
        self.since = self.clock.now()

    def display(self, image: Image.Image) -> None:
        self._count()
        self.sent += 1
        self.picture = image.tobytes()

    def dim(self, dimmed: bool) -> None:
        self.dimmed = dimmed

    def close(self) -> None:
        self._count()


class NoLamps:
    """A board whose LEDs nobody looks at."""

    led_pwm = True

    def light(self, *_: object) -> bool:
        """Nothing burns in there."""
        return False


class Bench:
    """A painting on a clock, with a panel that adds up."""

    def __init__(self, executor: Executor | None = None) -> None:
        self.clock = ManualClock()
        self.panes = Panes(self.clock)
        feed = PanelFeed(
            Oled(open_device=self.panes.open), executor or InlineExecutor(), self.clock, lambda: None
        )
        config = from_keys({"stations.backend": "mock"}, "test")
        self.painting = Painting(
            NoLamps(),  # type: ignore[arg-type]
            [feed],
            config,
            self.clock,
            lambda _: None,
        )
        self.turns = 0

    def show(self, view: View, until: int) -> None:
        """Paint `view` whenever the painting says that it changes, up to `until`."""
        while True:
            self.turns += 1
            change = self.painting.paint(view, self.clock.now())
            if change is None or change > until:
                break
            self.clock.advance_to(change)
        self.clock.advance_to(until)


def worst_share(lit_s: Counter[bytes], whole_s: float, others: Iterable[float] = ()) -> float:
    """The largest part of the time that one pixel was lit."""
    total = [0.0] * (128 * 64)
    for picture, seconds in lit_s.items():
        bits = int.from_bytes(picture)
        while bits:
            low = bits & -bits
            total[low.bit_length() - 1] += seconds
            bits ^= low
    return max(total) / (whole_s + sum(others))


def test_thirty_idle_days_are_dark() -> None:
    """Proves that over a month in which nobody comes no pixel is lit for a thousandth of it.

    It is the real painting that is asked, under virtual time; after half an hour it has nothing left to do.
    """
    bench = Bench()
    bench.show(ATTRACT, 30 * DAY)
    bench.painting.close()
    assert sum(bench.panes.lit_s.values()) == pytest.approx(30 * 24 * 3600, rel=0.001)
    assert worst_share(bench.panes.lit_s, 30 * 24 * 3600) < 0.001
    assert bench.turns < 2 * DARK_AFTER // SECOND


def test_a_fault_that_stands_for_thirty_days_is_lit_for_a_tenth() -> None:
    """Proves that a stuck button that nobody mends wears no pixel for more than a tenth of the time."""
    bench = Bench()
    bench.show(replace(ATTRACT, seats=seats(s3={"stuck": (Kind.PEN,)})), DAY)
    bench.painting.close()
    assert 0.01 < worst_share(bench.panes.lit_s, DAY / SECOND) < 0.1


def test_a_press_wakes_the_panel_at_once() -> None:
    """Proves that a dark panel shows the lobby, bright, in the very turn in which a seat is taken."""
    bench = Bench()
    bench.show(ATTRACT, T0 + DAY)
    assert bench.painting.image.getbbox() is None
    assert bench.panes.dimmed
    lobby = replace(table(Phase.LOBBY, five()), since=T0 + DAY)
    bench.painting.paint(lobby, T0 + DAY)
    assert bench.painting.image.getbbox() is not None
    assert bench.panes.picture == bench.painting.image.tobytes()
    assert not bench.panes.dimmed


def test_a_lost_panel_comes_back_dimmed_if_it_is_night() -> None:
    """Proves that a panel built anew while the table is idle gets the little light of the moment."""
    bench = Bench()
    bench.show(ATTRACT, T0 + DIM_AFTER + SECOND)
    bench.panes.dimmed = False
    bench.painting.renew()
    assert bench.panes.dimmed


def test_thirty_days_with_eight_hours_of_play_wear_no_pixel_out() -> None:
    """Proves that in a month of eight hours of play a day no pixel is lit for three tenths of it.

    An hour on the real daemon stands for each hour of play: the pictures go round their places ten times in
    it. The rest of a day is an empty table's, and all days are alike.
    """
    played: Counter[bytes] = Counter()
    last: list[tuple[float, bytes]] = []

    def look(simulation: Simulation) -> None:
        now, picture = simulation.now / SECOND, simulation.daemon.image.tobytes()  # type: ignore[union-attr]
        if last:
            played[last[-1][1]] += now - last[-1][0]
        last[:] = [(now, picture)]

    Simulation(parse(hour(seed=4).text, "an hour"), on_turn=look).run()
    assert sum(played.values()) == pytest.approx(3600, rel=0.01)
    bench = Bench()
    bench.show(ATTRACT, 16 * 3600 * SECOND)
    bench.painting.close()
    day: Counter[bytes] = Counter({picture: 8 * seconds for picture, seconds in played.items()})
    day.update(bench.panes.lit_s)
    share = worst_share(day, 24 * 3600)
    assert 0.01 < share < 0.3
