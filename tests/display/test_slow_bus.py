"""A bus that is slow, hangs or is dead for good, under the real daemon: the match does not notice.

The daemon plays in virtual time; its panel is luma's driver on a bus that takes as long as it is told to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

from heek.clock import SECOND
from heek.display.oled import Oled
from heek.session.phases import Phase
from heek.simulator.virtual_loop import VirtualLoop
from tests.display.wire import Module
from tests.test_daemon import DARK, Rig

pytestmark = pytest.mark.filterwarnings("ignore:Image.Image.getdata is deprecated")


class SlowBus(Executor):
    """One worker, which is as long at each job as the bus is at the data: `page_s` for each 128 bytes.

    The next job that writes anything takes `stall_s` longer, once.
    """

    def __init__(self, module: Module, page_s: float) -> None:
        self.module, self.page_s, self.stall_s = module, page_s, 0.0
        self.waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self.most_waiting = self.jobs = 0
        self.loop: VirtualLoop | None = None
        self.busy = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, lambda: fn(*args, **kwargs)))
        self.most_waiting = max(self.most_waiting, len(self.waiting))
        self.work()
        return future

    def work(self) -> None:
        """Take up the next job, if there is a loop whose time it can take."""
        if self.busy or not self.waiting or self.loop is None:
            return
        future, job = self.waiting.popleft()
        self.busy = True
        self.jobs += 1
        self.module.forget()
        result = job()
        takes = self.module.data_bytes / 128 * self.page_s
        if self.module.messages:
            takes, self.stall_s = takes + self.stall_s, 0.0
        self.loop.call_later(takes, self.done, future, result)

    def done(self, future: Future[Any], result: object) -> None:
        self.busy = False
        future.set_result(result)
        self.work()


class Bench:
    """A table whose panel is on a slow bus, beside one whose panel takes no time."""

    def __init__(self, folder: Path, module: Module, page_s: float) -> None:
        self.module = module
        self.bus = SlowBus(module, page_s)
        self.oled = Oled("ssd1306")
        keys: dict[str, Any] = {"ahyoheek__countdown_s": 30}
        self.table = Rig(folder / "slow", panel=self.bus, open_oled=lambda: self.oled, **keys)
        self.other = Rig(folder / "other", **keys)
        self.bus.loop = self.table.loop
        self.bus.work()

    def play(self, until: float) -> None:
        """A round of 30 s from 3 s on, with presses in its last tenth of a second and after it."""
        for rig in (self.table, self.other):
            rig.match((1, 2, 3))
            rig.press(1, 3.0, "pen")
            rig.press(2, 32.95, "page")
            rig.press(3, 33.02, "page")
            rig.run(until)

    def close(self) -> None:
        for rig in (self.table, self.other):
            rig.daemon.close()
            rig.loop.close()

    def glass_is_right(self) -> bool:
        return self.module.controller.picture().tobytes() == self.table.daemon.image.tobytes()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[float], Bench]]:
    made: list[Bench] = []

    def make(page_s: float) -> Bench:
        made.append(Bench(tmp_path, Module().plug_in(monkeypatch), page_s))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("page_s", [0.025, 0.0625], ids=["200 ms a frame", "500 ms a frame"])
def test_a_slow_bus_moves_no_event(bench: Callable[[float], Bench], page_s: float) -> None:
    """Proves that a round of 30 s ends at 30.000 s and presses count by their stamps, on any bus."""
    rigs = bench(page_s)
    rigs.play(36.0)
    (revealed,) = rigs.table.told("round_revealed")
    assert revealed["closed"] == 33.0
    assert revealed["throws"] == {"1": "pen", "2": "page", "3": None}
    assert [each["reason"] for each in rigs.table.told("press_ignored")] == ["late"]
    assert rigs.table.lines == rigs.other.lines
    assert rigs.glass_is_right()


def test_a_stalled_write_moves_no_event_and_frames_are_skipped(bench: Callable[[float], Bench]) -> None:
    """Proves that while a write hangs for 5 s over the close nothing queues; the newest picture follows."""
    rigs = bench(0.025)
    rigs.table.at(30.5, lambda: setattr(rigs.bus, "stall_s", 5.0))
    jobs: list[int] = []
    rigs.table.at(31.5, lambda: jobs.append(rigs.bus.jobs))
    rigs.table.at(35.5, lambda: jobs.append(rigs.bus.jobs))
    rigs.play(37.0)
    assert jobs[0] == jobs[1], "nothing else is sent while the write hangs"
    assert rigs.bus.most_waiting == 1
    assert rigs.table.lines == rigs.other.lines
    assert rigs.table.told("round_revealed")[0]["closed"] == 33.0
    assert rigs.glass_is_right()


def test_a_bus_that_is_dead_for_good_is_left_alone(bench: Callable[[float], Bench]) -> None:
    """Proves that a panel which fails from 30 s on costs a try now and then, and neither event nor end."""
    rigs = bench(0.025)
    rigs.table.at(30.0, lambda: setattr(rigs.module, "error", OSError(5, "Input/output error")))
    rigs.play(150.0)
    # 1, 2, 4, 8, 16 and then every 30 s: two minutes have room for eight tries.
    assert 4 < rigs.oled.failures <= 9
    assert rigs.table.lines == rigs.other.lines
    opened = rigs.module.opened
    rigs.table.daemon.close()
    assert rigs.module.opened == opened


def test_a_hanging_bus_does_not_hold_up_the_end(bench: Callable[[float], Bench]) -> None:
    """Proves that the daemon closes, LEDs off and journal sound, while a write hangs; dark comes later."""
    rigs = bench(0.025)
    rigs.play(33.1)
    assert rigs.table.daemon.shown.phase is Phase.REVEAL
    rigs.bus.stall_s = 60.0
    rigs.table.run(36.0)
    rigs.table.daemon.close()
    rigs.table.assert_kept()
    assert [rigs.table.led(seat) for seat in range(1, 6)] == [0.0] * 5
    assert rigs.bus.busy
    rigs.table.run(36.0 + 120)
    assert rigs.module.controller.picture().tobytes() == DARK


def test_an_idle_panel_is_built_anew_and_dark_at_night(bench: Callable[[float], Bench]) -> None:
    """Proves with the daemon's own timer that a panel which lost its power unseen is right within 5 minutes.

    At night, when it is dark, too; and the first press then has it lit in the time of one frame.
    """
    rigs = bench(0.003)
    rigs.table.run(200.0)
    rigs.module.controller.power_on()
    assert not rigs.glass_is_right()
    rigs.table.run(301.0)
    assert rigs.glass_is_right()
    rigs.table.run(2000.0)
    rigs.module.controller.power_on()
    rigs.table.run(2000.0 + 301)
    assert rigs.module.controller.lit
    assert rigs.module.controller.contrast == 0x10
    assert rigs.module.controller.picture().tobytes() == DARK
    rigs.table.press(1, 2400.0)
    rigs.table.run(2400.0 + 0.1)
    assert rigs.table.daemon.shown.phase is Phase.LOBBY
    assert rigs.module.controller.contrast == 0xCF
    assert rigs.glass_is_right()
    assert rigs.table.daemon.now == pytest.approx(2400.1 * SECOND)
