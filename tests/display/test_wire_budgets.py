"""What a change may cost on the wire, in bytes of data, counted by a bus under luma's real driver."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PIL import Image

from heek.display.burn_in import PATH, Standing, stood
from heek.display.drawing import draw
from heek.display.faces import Countdown, Look, Mark
from heek.display.oled import Oled
from heek.kinds import SEATS
from heek.simulator.runner import Simulation
from heek.simulator.story import parse
from tests.bench.evening import matches
from tests.display.wire import Module

pytestmark = pytest.mark.filterwarnings("ignore:Image.Image.getdata is deprecated")

CONTROLLERS = ["ssd1306", "ssd1309", "sh1106"]
DIGIT_BYTES = 128
MARK_BYTES = 40
FRAME_BYTES = 1024
"""What luma's `display()` sends, whatever has changed."""


def counting(seconds: int, looks: dict[int, Look] | None = None) -> Countdown:
    """Five at the table, seat 2 and 4 have thrown, or as `looks` says."""
    some = {seat: Look.FULL if seat in (2, 4) else Look.HOLLOW for seat in SEATS} | (looks or {})
    return Countdown(
        marks=tuple(Mark(seat, look) for seat, look in some.items()), seconds=seconds, sudden_death=False
    )


class Glass:
    """A panel behind its wire, which shows one picture after the other."""

    def __init__(self, module: Module, driver: str, rotate: int) -> None:
        self.module = module
        self.oled = Oled(driver, rotate=rotate)
        self.rotate = rotate

    def show(self, picture: Image.Image) -> int:
        """The bytes of data that it took; the glass is looked at afterwards."""
        self.module.forget()
        assert self.oled.show(picture, 0).ok
        wanted = picture if self.rotate == 0 else picture.transpose(Image.Transpose.ROTATE_180)
        assert self.module.controller.picture().tobytes() == wanted.tobytes()
        return self.module.data_bytes


@pytest.fixture(params=[0, 2], ids=["upright", "turned"])
def rotate(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=CONTROLLERS)
def glass(request: pytest.FixtureRequest, rotate: int, monkeypatch: pytest.MonkeyPatch) -> Glass:
    return Glass(Module(request.param).plug_in(monkeypatch), request.param, rotate)


@pytest.mark.parametrize("place", PATH)
def test_a_countdown_digit(glass: Glass, place: tuple[int, int]) -> None:
    """Proves that each digit from 9 to 0, wherever the picture stands, costs at most its budget."""
    how = Standing(*place)
    glass.show(stood(draw(counting(9)), how))
    spent = {seconds: glass.show(stood(draw(counting(seconds)), how)) for seconds in range(8, -1, -1)}
    assert max(spent.values()) <= DIGIT_BYTES, spent
    assert min(spent.values()) > 0


def test_two_digits(glass: Glass) -> None:
    """Proves that from 60 on the budget holds too; only where there is a digit less, 10 to 9, it is two's."""
    glass.show(draw(counting(60)))
    spent = {seconds: glass.show(draw(counting(seconds))) for seconds in range(59, 8, -1)}
    assert spent.pop(9) <= 2 * DIGIT_BYTES
    assert max(spent.values()) <= DIGIT_BYTES, spent


@pytest.mark.parametrize("place", PATH)
@pytest.mark.parametrize("seat", SEATS)
def test_one_seats_mark(glass: Glass, seat: int, place: tuple[int, int]) -> None:
    """Proves that a throw, and one that is taken back, costs at most its budget at every seat."""
    how = Standing(*place)
    without, thrown = (stood(draw(counting(3, {seat: look})), how) for look in (Look.HOLLOW, Look.FULL))
    glass.show(without)
    assert 0 < glass.show(thrown) <= MARK_BYTES
    assert 0 < glass.show(without) <= MARK_BYTES


def test_an_unchanged_view(glass: Glass) -> None:
    """Proves that the same picture costs nothing at all."""
    glass.show(draw(counting(3)))
    assert glass.show(draw(replace(counting(3)))) == 0
    assert glass.module.messages == 0


@pytest.mark.parametrize("driver", CONTROLLERS)
def test_a_whole_match_of_five(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves, through the real daemon's pictures of a whole match, what is left of luma's whole frames.

    A program that hands luma the picture in each turn of its loop sends ten times as much and more. One that
    knows itself when the picture has changed, and sends that whole, sends five times as much: most bytes
    are those of the great changes, throw to countdown to reveal to collections, where little stays.
    """
    module = Module(driver).plug_in(monkeypatch)
    oled = Oled(driver)
    count = dict.fromkeys(("turns", "changes", "bytes"), 0)
    told = []

    def look(simulation: Simulation) -> None:
        assert simulation.daemon is not None
        count["turns"] += 1
        module.forget()
        picture = simulation.daemon.image
        assert oled.show(picture, simulation.now).ok
        if count["turns"] == 1:
            return  # the start, which costs luma the same
        count["changes"] += module.messages > 0
        count["bytes"] += module.data_bytes
        if module.messages:
            assert module.controller.picture().tobytes() == picture.tobytes()

    Simulation(parse(matches(1, seed=5).text, "a match"), say=told.append, on_turn=look).run()
    assert sum('"event":"match_won"' in line for line in told) == 1
    assert sum('"event":"round_revealed"' in line for line in told) > 3
    assert count["bytes"] <= FRAME_BYTES * count["turns"] / 10, count
    assert count["bytes"] <= FRAME_BYTES * count["changes"] / 5, count
