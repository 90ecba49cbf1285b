"""Pictures go to a panel one at a time, the newest first, and nobody ever waits for a panel."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import pytest
from PIL import Image

from heek.clock import SECOND, ManualClock
from heek.display.oled import Oled, Panel
from heek.display.panel_feed import PanelFeed
from heek.journal import InlineExecutor


class Hand(Executor):
    """Runs what is submitted when it is told to."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, lambda: fn(*args, **kwargs)))
        return future

    def step(self) -> None:
        future, call = self.waiting.popleft()
        future.set_result(call())


class Glass:
    """A panel that keeps what it shows, and may be unplugged."""

    def __init__(self) -> None:
        self.there = True
        self.shown: list[bytes] = []
        self.closed = 0
        self.dimmed = False

    def open(self, *_: object) -> Panel:
        if not self.there:
            raise OSError(121, "Remote I/O error")
        return self

    def display(self, image: Image.Image) -> None:
        if not self.there:
            raise OSError(121, "Remote I/O error")
        self.shown.append(image.tobytes())

    def dim(self, dimmed: bool) -> None:
        if not self.there:
            raise OSError(121, "Remote I/O error")
        self.dimmed = dimmed

    def close(self) -> None:
        self.closed += 1


def picture(number: int) -> Image.Image:
    """A picture like no other."""
    image = Image.new("1", (128, 64))
    image.putpixel((number, 0), 1)
    return image


class Bench:
    """A feed with a glass panel, a clock, and a count of its calls."""

    def __init__(self, executor: Executor) -> None:
        self.glass, self.clock, self.wakes = Glass(), ManualClock(), 0
        self.feed = PanelFeed(Oled(open_device=self.glass.open), executor, self.clock, self.wake)

    def wake(self) -> None:
        self.wakes += 1

    def saw(self, *numbers: int) -> bool:
        return self.glass.shown == [picture(number).tobytes() for number in numbers]


def test_the_newest_wins_and_frames_are_skipped() -> None:
    """While one picture is sent, of those that come meanwhile only the last is shown."""
    hand = Hand()
    bench = Bench(hand)
    for number in range(1, 5):
        bench.feed.show(picture(number))
    assert len(hand.waiting) == 1
    hand.step()
    assert bench.wakes == 1
    bench.feed.settle()
    hand.step()
    bench.feed.settle()
    assert bench.saw(1, 4)
    assert not hand.waiting


def test_the_light_goes_with_its_picture() -> None:
    """A picture that waits is shown with the light that it was given, and so is one that is tried again."""
    hand = Hand()
    bench = Bench(hand)
    bench.feed.show(picture(1))
    bench.feed.show(picture(2), dimmed=True)
    hand.step()
    assert not bench.glass.dimmed
    bench.feed.settle()
    hand.step()
    assert bench.glass.dimmed
    bench.feed.settle()
    bench.glass.there = False
    bench.feed.show(picture(3))
    hand.step()
    bench.feed.settle()
    bench.glass.there, bench.glass.dimmed = True, False
    bench.clock.advance_to(SECOND)
    bench.feed.again(SECOND, picture(3), dimmed=True)
    hand.step()
    assert bench.glass.dimmed
    assert bench.saw(1, 2, 3)


def test_nothing_is_sent_before_the_last_is_settled() -> None:
    """A picture that comes between the end of the last one and `settle` waits for that."""
    hand = Hand()
    bench = Bench(hand)
    bench.feed.show(picture(1))
    bench.feed.settle()
    hand.step()
    bench.feed.show(picture(2))
    assert not hand.waiting
    bench.feed.settle()
    hand.step()
    assert bench.saw(1, 2)


def test_inline_it_is_done_at_once_and_wakes_nobody() -> None:
    """Under virtual time the picture is there when `show` returns."""
    bench = Bench(InlineExecutor())
    bench.feed.show(picture(1))
    assert bench.saw(1)
    assert bench.wakes == 0


@pytest.mark.parametrize("threaded", [False, True], ids=["inline", "by hand"])
def test_a_lost_panel_is_tried_again_when_it_is_time(threaded: bool) -> None:
    """Not before its time, then with the picture of the moment; nothing is tried twice at once."""
    hand = Hand()
    bench = Bench(hand if threaded else InlineExecutor())

    def done() -> None:
        while hand.waiting:
            hand.step()
        bench.feed.settle()

    bench.glass.there = False
    bench.feed.show(picture(1))
    done()
    assert bench.feed.retry_at == SECOND
    bench.feed.again(SECOND - 1, picture(2))
    assert not hand.waiting
    assert bench.feed.panel.failures == 1
    bench.clock.advance_to(SECOND)
    bench.feed.again(SECOND, picture(2))
    if threaded:
        assert bench.feed.retry_at is None
        bench.feed.again(SECOND, picture(2))
        assert len(hand.waiting) == 1
    done()
    assert bench.feed.panel.failures == 2
    bench.glass.there = True
    bench.clock.advance_to(3 * SECOND)
    bench.feed.again(3 * SECOND, picture(3))
    done()
    assert bench.saw(3)
    assert bench.feed.retry_at is None


def test_a_working_panel_is_not_tried_again() -> None:
    """`again` leaves a panel alone that answers."""
    bench = Bench(InlineExecutor())
    bench.feed.show(picture(1))
    bench.feed.again(100 * SECOND, picture(2))
    assert bench.saw(1)


def test_close_blanks_after_what_is_under_way_and_drops_what_waits() -> None:
    """The last picture is a dark one, and a picture that waited does not come after it."""
    hand = Hand()
    bench = Bench(hand)
    bench.feed.show(picture(1))
    bench.feed.show(picture(2))
    bench.feed.close()
    while hand.waiting:
        hand.step()
    bench.feed.settle()
    assert not hand.waiting
    assert bench.glass.shown == [picture(1).tobytes(), Image.new("1", (128, 64)).tobytes()]
    assert bench.glass.closed == 1


def test_close_of_a_panel_that_never_came() -> None:
    """A panel that was never there is closed without a word."""
    bench = Bench(InlineExecutor())
    bench.feed.close()
    assert bench.glass.shown == []
