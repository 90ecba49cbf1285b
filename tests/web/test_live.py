"""The live stream: whole states, the newest only, and no browser that costs anybody else anything."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import MutableMapping
from typing import Any

from heek.clock import ManualClock
from heek.web.doors import Doors, PageSettings
from heek.web.live import MOST_STREAMS, Live, Tempo
from heek.web.server import PageServer
from tests.web.serving import DEADLINE_S, Browser, LiveReader, Served, seconds, serving, state, until, view


def test_a_browser_gets_all_at_once_and_then_what_changes() -> None:
    """First what it may do and the state, then each state whole; nothing for one that looks the same."""
    with serving(tempo=Tempo(shortest_s=0.0)) as table:
        live = table.browser().live()
        assert (live.status, live.headers["content-type"]) == (200, "text/event-stream")
        assert live.headers["cache-control"] == "no-store"
        assert live.event()[0] == "about"
        assert live.retry == 2000
        name, first = live.event()
        assert (name, first["round"]) == ("state", 1)
        table.server.publish(state(now=seconds(1)))
        assert table.browser().get("/state").status == 200, "the server has seen to it by now"
        table.server.publish(state(view(round_number=2)))
        assert live.next("state") == first | {"round": 2}


def test_the_time_is_that_of_sending() -> None:
    """Who connects long after the last change still learns what time it is at the table."""
    with serving() as table:
        table.clock.advance_to(seconds(3600))
        assert table.browser().live().next("state")["now"] == 3600.0
        assert table.browser().get("/state").json["now"] == 3600.0


def test_a_quiet_table_beats() -> None:
    """While nothing happens a beat comes with the table's time: so a page can tell it from a dead one."""
    with serving(tempo=Tempo(beat_s=0.05)) as table:
        live = table.browser().live()
        table.clock.advance_to(seconds(7))
        while live.next("beat") != {"now": 7.0}:
            pass


def test_what_a_browser_may_do_is_told_once() -> None:
    """While it does not change it is not told again, beat after beat."""
    with serving(tempo=Tempo(beat_s=0.02)) as table:
        live = table.browser().live()
        names = [live.event()[0] for _ in range(12)]
        assert names.count("about") == 1
        assert names.count("beat") == 10


def test_connecting_again_gives_the_whole_table() -> None:
    """A browser that comes back after any time is up to date with the first state that it gets."""
    with serving() as table:
        live = table.browser().live()
        live.next("state")
        live.close()
        for number in range(2, 9):
            table.server.publish(state(view(round_number=number)))
        until(lambda: table.browser().get("/state").json["round"] == 8)
        assert table.browser().live().next("state")["round"] == 8


def test_a_busy_table_is_thinned_out() -> None:
    """A thousand changes in a burst are a few states to each browser, and the last one is the newest."""
    with serving() as table:
        live = table.browser().live()
        live.next("state")
        began = time.monotonic()
        for number in range(2, 1002):
            table.server.publish(state(view(round_number=number)))
        count = 0
        while True:
            count += 1
            if live.next("state")["round"] == 1001:
                break
        assert count <= 2 + (time.monotonic() - began) / 0.05


def test_handing_over_waits_for_nothing() -> None:
    """The table hands over a thousand states while the page's whole loop stands still, and goes on."""
    stuck, release = threading.Event(), threading.Event()

    def bots() -> None:
        stuck.set()
        assert release.wait(DEADLINE_S)

    with serving(fill_seats=bots) as table:
        asked = threading.Thread(target=lambda: table.browser().post("/bots", {}))
        asked.start()
        assert stuck.wait(DEADLINE_S)
        for number in range(2, 1002):
            table.server.publish(state(view(round_number=number)))
        assert not release.is_set()
        release.set()
        asked.join(DEADLINE_S)
        until(lambda: table.browser().get("/state").json["round"] == 1001)


def test_stalled_browsers_cost_nothing() -> None:
    """With twenty browsers that never read, handing over stays quick and another browser stays live."""
    with serving(tempo=Tempo(shortest_s=0.0)) as table:
        stalled = [table.browser().live(buffer=4096) for _ in range(20)]
        live = table.browser().live()
        took = []
        for number in range(2, 302):
            made = state(view(round_number=number))
            began = time.perf_counter()
            table.server.publish(made)
            took.append(time.perf_counter() - began)
            while live.next("state")["round"] != number:
                pass
        assert sorted(took)[150] < 0.005
        assert _streams(table) == 21
        for each in stalled:
            each.close()


def test_a_browser_that_does_not_read_is_dropped() -> None:
    """After its patience the server cuts it off, and its place is free again."""
    with serving(tempo=Tempo(shortest_s=0.0, patience_s=0.2)) as table:
        stalled = table.browser().live(buffer=2048)
        number = 1

        def dropped() -> bool:
            nonlocal number
            number += 1
            table.server.publish(state(view(round_number=number)))
            return _streams(table) == 0

        until(dropped)
        stalled.until_end()


def test_a_slow_browser_skips() -> None:
    """One that reads again after a while has not been sent all that it missed, and ends up at the newest."""
    with serving(tempo=Tempo(shortest_s=0.0)) as table:
        slow = table.browser().live(buffer=2048)
        other = table.browser().live()
        last = 1500
        for number in range(2, last + 1):
            table.server.publish(state(view(round_number=number)))
            if number % 50 == 0:
                while other.next("state")["round"] != number:
                    pass
        seen = [slow.next("state")["round"]]
        while seen[-1] != last:
            seen.append(slow.next("state")["round"])
        assert seen == sorted(set(seen))
        assert len(seen) < 200, "a few buffers of 64 KiB, of four megabytes"


def test_what_goes_out_is_chosen_when_it_goes() -> None:
    """A connection that is full for a while is then given the newest state and time, not what waited."""

    async def play() -> list[bytes]:
        clock = ManualClock()
        live = Live(clock.now, Tempo(shortest_s=0.0))
        live.show(state())
        stream = live.open(None, lambda: b"{}")
        sent: list[bytes] = []
        full, takes = asyncio.Event(), asyncio.Event()
        takes.set()

        async def send(message: MutableMapping[str, Any]) -> None:
            if not takes.is_set():
                full.set()
                await takes.wait()
            if message.get("body"):
                sent.append(message["body"])
                if len(sent) == 2:
                    takes.clear()

        async def receive() -> MutableMapping[str, Any]:
            return await asyncio.Future()

        serving = asyncio.create_task(stream.serve({}, receive, send))
        await full.wait()
        for number in range(2, 5):
            live.show(state(view(round_number=number)))
            await asyncio.sleep(0)
        clock.advance_to(seconds(60))
        takes.set()
        while len(sent) < 3:
            await asyncio.sleep(0)
        live.end()
        await serving
        return sent

    retry, first, second = asyncio.run(play())[:3]
    assert retry == b"retry: 2000\n\n"
    assert b'"round":1' in first
    assert b'"round":4' in second
    assert b'{"now":60.0,' in second


def test_a_browser_that_leaves_leaves_nothing() -> None:
    """Streams that are closed are forgotten at once: a thousand reloads cost what one does."""
    with serving() as table:
        for _ in range(200):
            live = table.browser().live()
            live.event()
            live.close()
        until(lambda: _streams(table) == 0)


def test_the_streams_are_bounded() -> None:
    """The sixty-fifth is told in words to wait; when one has left there is room again."""
    with serving() as table:
        streams = [table.browser().live() for _ in range(MOST_STREAMS)]
        refused = table.browser().get("/live")
        assert (refused.status, refused.headers["retry-after"]) == (503, "10")
        assert "64 pages look at this table already" in refused.words
        streams[0].close()
        until(lambda: _can_open(table.browser()))


def test_before_the_first_state_there_are_words() -> None:
    """A server that has not heard from its table yet says so, and a stream just waits."""
    server = PageServer(PageSettings(port=0), Doors(now=lambda: 0), Tempo(beat_s=0.05))
    server.start()
    try:
        browser = Browser(server.port, "127.0.0.1")
        assert browser.get("/state").status == 503
        live = browser.live()
        live.next("beat")
        server.publish(state())
        assert live.next("state")["round"] == 1
    finally:
        server.stop()


def test_a_state_is_one_line() -> None:
    """Whatever names hold, a state stays one event: no name ends it early."""
    with serving() as table:
        shown = view()
        named = tuple(
            type(row)(seat=row.seat, state=row.state, name="a\n\ndata: {}\r\nevent: beat")
            for row in shown.seats
        )
        table.server.publish(state(view(seats=named)))
        live = table.browser().live()
        seats = live.next("state")["seats"]
        while seats[0]["name"] is None:
            seats = live.next("state")["seats"]
        assert json.dumps(seats[0]["name"]) == json.dumps("a\n\ndata: {}\r\nevent: beat")


def _streams(table: Served) -> int:
    return len(table.server._live)


def _can_open(browser: Browser) -> bool:
    live = LiveReader(browser)
    live.close()
    return live.status == 200
