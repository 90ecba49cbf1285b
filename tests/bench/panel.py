"""What the pictures of a match cost on the wire and in the processor, against luma's `display()`.

The pictures are those of the real daemon in a whole match of five, its start left out. Both ways run on
luma's real driver and I2C interface, over a bus under smbus2's name that only counts, by turns in one run.
Time on the wire is computed: nine bits a byte, address and control byte with each message, start and stop.
CPU is that of the thread that sends, so what else the machine does counts little.

How long the loop is held is measured with a panel that sleeps as long as one on a bad bus would: 25 ms for
each page that is written.
"""

from __future__ import annotations

import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from unittest import mock

from PIL import Image

from heek.clock import RealClock
from heek.display.oled import LumaPanel, Oled, open_luma
from heek.display.panel_feed import PanelFeed
from heek.simulator.runner import Simulation
from heek.simulator.story import parse
from tests.bench.evening import matches
from tests.bench.figures import Figure, Spread

CPU_AIM: Final = 0.2
BYTES_AIM: Final = 0.1
KHZ: Final = 400
SLOW_PAGE_S: Final = 0.025


class CountingBus:
    """What `smbus2.SMBus` is here: takes everything at once, and counts."""

    data_bytes = 0
    bits = 0

    def __init__(self, _number: int) -> None:
        """Any bus will do."""

    def write_i2c_block_data(self, _address: int, register: int, block: list[int]) -> None:
        self._count(register, len(block))

    def i2c_rdwr(self, message: Any) -> None:
        self._count(message.buf[0][0], message.len - 1)

    def _count(self, control: int, payload: int) -> None:
        CountingBus.bits += 9 * (payload + 2) + 2
        if control == 0x40:
            CountingBus.data_bytes += payload

    def close(self) -> None:
        """Nothing is open."""


def _pictures(seed: int) -> tuple[list[Image.Image], int]:
    """Those of a match of five in order, none twice running, and how many turns the daemon's loop made."""
    found: list[Image.Image] = []
    turns = 0

    def look(simulation: Simulation) -> None:
        nonlocal turns
        assert simulation.daemon is not None
        turns += 1
        picture = simulation.daemon.image
        if not found or found[-1].tobytes() != picture.tobytes():
            found.append(picture)

    Simulation(parse(matches(1, seed).text, "bench"), on_turn=look).run()
    return found, turns


def _play(panel: LumaPanel, pictures: list[Image.Image], *, whole: bool) -> tuple[float, int, int]:
    """Microseconds a picture, bytes of data and bits for all of them; the first one is the start's."""
    show = panel.device.display if whole else panel.display
    show(pictures[0])
    CountingBus.data_bytes = CountingBus.bits = 0
    began = time.thread_time()
    for picture in pictures[1:]:
        show(picture)
    took = time.thread_time() - began
    return took * 1e6 / (len(pictures) - 1), CountingBus.data_bytes, CountingBus.bits


def measure(*, quick: bool = False) -> list[Figure]:
    """CPU, bytes and wire for each kind of controller, and how long a slow panel holds the loop."""
    pictures, turns = _pictures(seed=5)
    runs = 2 if quick else 20
    figures = []
    with mock.patch("smbus2.SMBus", CountingBus), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Image.Image.getdata is deprecated")
        for driver in ("ssd1306", "sh1106"):
            panel = open_luma(driver, 1, 0x3C, 0)
            assert isinstance(panel, LumaPanel)
            # Not only the first run of each pays for what is compiled and cached once.
            ours, theirs = [], []
            for _ in range(runs + 1):
                ours.append(_play(panel, pictures, whole=False))
                theirs.append(_play(panel, pictures, whole=True))
            panel.close()
            figures += _figures(driver, ours[1:], theirs[1:], len(pictures) - 1, turns)
    return [*figures, _held(5 if quick else 40)]


def _figures(
    driver: str,
    ours: list[tuple[float, int, int]],
    theirs: list[tuple[float, int, int]],
    changes: int,
    turns: int,
) -> list[Figure]:
    _, sent, bits = ours[0]
    _, sent_whole, bits_whole = theirs[0]
    return [
        Figure(
            f"panel_cpu_{driver}",
            f"a picture to an {driver}, CPU",
            "us",
            Spread.of(each[0] for each in ours),
            "us luma's display()",
            Spread.of(each[0] for each in theirs),
            aim=CPU_AIM,
            aim_is_ratio=True,
            note="pack, compare, send to a bus that takes no time; pictures of a match of five",
        ),
        Figure(
            f"panel_bytes_{driver}",
            f"a match of five on an {driver}, data",
            "bytes",
            Spread.of([sent]),
            "bytes luma's display() of each change",
            Spread.of([sent_whole]),
            aim=BYTES_AIM,
            aim_is_ratio=True,
            note=f"{changes} changes; of display() in each of the loop's {turns} turns this is "
            f"{sent * changes / sent_whole / turns:.3f}",
        ),
        Figure(
            f"panel_wire_{driver}",
            f"a picture to an {driver}, wire at {KHZ} kHz",
            "ms",
            Spread.of([bits / changes / KHZ]),
            "ms luma's display()",
            Spread.of([bits_whole / changes / KHZ]),
            note="computed from messages and bytes",
        ),
    ]


class _SlowPanel:
    """25 ms for each of the 8 pages, whatever is shown."""

    def display(self, _image: Image.Image) -> None:
        time.sleep(8 * SLOW_PAGE_S)

    def dim(self, dimmed: bool) -> None:
        """It has one light."""

    def close(self) -> None:
        """It stays."""


def _held(count: int) -> Figure:
    """How long `show` keeps whoever calls it, while a slow panel is busy with another picture."""
    first, second = Image.new("1", (128, 64)), Image.new("1", (128, 64), 255)
    oled = Oled(open_device=lambda *_: _SlowPanel())
    blocked = []
    for picture in (first, second):
        began = time.perf_counter()
        oled.show(picture, 0)
        blocked.append((time.perf_counter() - began) * 1e6)
    held = []
    with ThreadPoolExecutor(1) as executor:
        feed = PanelFeed(oled, executor, RealClock(), lambda: None)
        for turn in range(count):
            began = time.perf_counter()
            feed.settle()
            feed.show((first, second)[turn % 2])
            held.append((time.perf_counter() - began) * 1e6)
            time.sleep(SLOW_PAGE_S)
    return Figure(
        "panel_hand_over",
        "the loop held by a panel of 25 ms a page",
        "us",
        Spread.of(held),
        "us without the feed",
        Spread.of(blocked),
        note="the newest picture wins; what comes while one is sent replaces what waits",
    )
