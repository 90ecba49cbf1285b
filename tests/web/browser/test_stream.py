"""The page and a table that goes away: what it shows meanwhile, and that it comes back by itself."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from heek.web.doors import PageSettings
from tests.display.catalogue import moments
from tests.web.browser.conftest import PHONE, Opener
from tests.web.browser.hands import Opened
from tests.web.browser.shown import ShownTable
from tests.web.table_for_pages import TableWithPage

FRESH_S = 10.0
"""How soon after the table's return the page must be fresh (the list of faults that people met)."""


def is_stale(opened: Opened) -> bool:
    """Does the page say that what it shows is old?"""
    return opened.page.locator("body[data-link=stale]").count() == 1


def test_a_table_that_restarts(table: TableWithPage, open_page: Opener) -> None:
    """When the server goes the page says so, and how old what it shows is; when it is back, all is fresh."""
    opened = open_page(table.url, expect_trouble=True)
    opened.page.keyboard.press("Digit1")
    opened.until(lambda: "guest" in opened.place(1).inner_text(), "seat 1 is taken")
    port = table.page.port if table.page else 0
    assert table.page is not None
    table.page.stop()
    opened.until(lambda: is_stale(opened), "the mark")
    assert opened.text("#sentence") == "The table does not answer."
    opened.until(lambda: "seconds old" in opened.text("#hint"), "the age")
    assert opened.page.title().startswith("(silent)")
    levels = opened.evaluate("[...document.querySelectorAll('.led')].map(led => led.dataset.level)")
    assert set(levels) <= {"0", None}
    table.start_page(PageSettings(port=port))
    opened.until(lambda: not is_stale(opened), "the page is fresh again", patience_s=FRESH_S)
    opened.page.keyboard.press("KeyQ")
    opened.until(lambda: "guest" in opened.place(2).inner_text(), "a press after the return")
    assert opened.page.locator(".place").count() == 5


def answers(opened: Opened, **reply: Any) -> None:
    """From now on whatever the page asks is answered by something else than the table."""
    opened.page.route("**/live", lambda route: route.fulfill(**reply))


@pytest.mark.parametrize(
    "reply",
    [
        {"status": 502, "content_type": "text/html", "body": "<h1>Bad gateway</h1>"},
        {"status": 200, "content_type": "text/html", "body": "<h1>Welcome to our Wi-Fi</h1>"},
        {"status": 200, "content_type": "text/event-stream", "body": "event: state\ndata: no JSON\n\n"},
    ],
    ids=["a proxy's 502", "a portal's 200", "a stream of rubbish"],
)
def test_something_else_answers(table: TableWithPage, open_page: Opener, reply: dict[str, Any]) -> None:
    """An answer that is not the table's is not the end: once the table answers again, the page is fresh."""
    opened = open_page(table.url, expect_trouble=True)
    answers(opened, **reply)
    port = table.page.port if table.page else 0
    assert table.page is not None
    table.page.stop()
    table.start_page(PageSettings(port=port))
    opened.until(lambda: is_stale(opened), "the mark")
    opened.page.unroute("**/live")
    opened.until(lambda: not is_stale(opened), "the page is fresh again", patience_s=FRESH_S)


@contextmanager
def hanging(port: int, taken: list[socket.socket]) -> Iterator[None]:
    """Something listens at `port`, takes connections, and never says a word, nor ever closes one."""
    with socket.create_server(("127.0.0.1", port)) as listener:

        def take() -> None:
            with suppress(OSError):
                while True:
                    taken.append(listener.accept()[0])

        threading.Thread(target=take, daemon=True).start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def test_a_table_that_hangs(table: TableWithPage, open_page: Opener) -> None:
    """A server that takes connections and says nothing is waited for five seconds at a time, not for ever."""
    opened = open_page(table.url, expect_trouble=True)
    port = table.page.port if table.page else 0
    assert table.page is not None
    table.page.stop()
    taken: list[socket.socket] = []
    with hanging(port, taken):
        opened.until(lambda: is_stale(opened), "the mark")
        asked: list[str] = []
        opened.page.on("request", lambda request: asked.append(request.url))
        opened.until(lambda: any(url.endswith("/live") for url in asked), "a try that hangs")
    table.start_page(PageSettings(port=port))
    opened.until(lambda: not is_stale(opened), "the page is fresh again", patience_s=FRESH_S)
    for each in taken:
        each.close()


def test_a_page_without_a_table(table: TableWithPage, open_page: Opener) -> None:
    """A page that has never heard of its table says so, and what to look at."""
    opened = open_page(table.url, expect_trouble=True)
    opened.page.route("**/live", lambda route: route.abort())
    opened.page.reload()
    opened.until(lambda: is_stale(opened), "the mark")
    assert opened.text("#sentence") == "The table does not answer."
    assert "is the table switched on?" in opened.text("#hint")


def test_a_week_of_states(table: TableWithPage, open_page: Opener) -> None:
    """After two thousand states of every kind the page has as many nodes as before, and keeps no old ones."""
    opened = open_page(table.url, viewport=PHONE, expect_trouble=True)
    with ShownTable() as shown:
        states = []
        for name, (view, at, _) in moments().items():
            if name != "lobby-hard-name-3":
                shown.show(view, at, told=[f"{name} {line}" for line in range(12)])
                states.append(shown.newest)
    nodes = "document.querySelectorAll('*').length"
    body = "".join(
        f"event: state\ndata: {states[number % len(states)].decode()}\n\n" for number in range(2000)
    )
    opened.page.route(
        "**/live", lambda route: route.fulfill(content_type="text/event-stream", body=body), times=1
    )
    assert table.page is not None
    opened.evaluate(
        """() => {
            window.sizes = [];
            new MutationObserver(() => window.sizes.push(document.querySelectorAll('*').length))
                .observe(document.getElementById("told"), {subtree: true, childList: true});
        }"""
    )
    before = opened.evaluate(nodes)
    heap_before = heap(opened)
    port = table.page.port
    table.page.stop()
    table.start_page(PageSettings(port=port))
    opened.until(lambda: opened.evaluate("window.sizes.length") > 1500, "most of the states", patience_s=180)
    opened.phase("attract")
    opened.until(lambda: not is_stale(opened), "the real table again", patience_s=FRESH_S)
    sizes = opened.evaluate("window.sizes")
    # A light more or less round each of fifteen buttons: targets of one to nine.
    assert max(sizes) <= before + 15 * 9
    opened.until(lambda: opened.evaluate(nodes) == before, "as many nodes as before")
    assert heap(opened) < heap_before + 3_000_000


def heap(opened: Opened) -> float:
    """What the page's scripts hold, in bytes, after a collection."""
    devtools = opened.page.context.new_cdp_session(opened.page)
    devtools.send("HeapProfiler.collectGarbage")
    used = devtools.send("Runtime.getHeapUsage")["usedSize"]
    devtools.detach()
    return float(used)


def test_a_page_that_nobody_sees(shown: ShownTable, open_page: Opener) -> None:
    """A hidden page lets its stream go after a minute and takes it up at once when it is seen again."""
    shown.show(*moments()["attract-0"][:2])
    opened = open_page(shown.url)
    told = opened.evaluate(
        """async () => {
            const {Stream} = await import("/static/stream.js");
            const links = [];
            let now = performance.now(), hidden = false;
            const real_now = performance.now.bind(performance);
            const skip = ms => { now += ms; };
            performance.now = () => real_now() + (now - start);
            const start = now;
            Object.defineProperty(document, "hidden", {configurable: true, get: () => hidden});
            const nothing = () => {};
            const stream = new Stream({
                state: nothing, about: nothing, beat: nothing, opened: nothing,
                link: link => links.push(link),
            });
            const heard = () => new Promise(done => { stream.heard.state = done; });
            await heard();
            hidden = true;
            document.dispatchEvent(new Event("visibilitychange"));
            skip(61000);
            stream.look();
            const asleep = stream.source === null;
            hidden = false;
            document.dispatchEvent(new Event("visibilitychange"));
            const awake = stream.source !== null;
            await heard();
            clearInterval(stream.watch);
            stream.shut();
            performance.now = real_now;
            delete document.hidden;
            return [asleep, awake, links];
        }"""
    )
    assert told[:2] == [True, True]
    assert told[2][0] == "connecting" or told[2][0] == "live"
    assert "asleep" in told[2]
    assert told[2][-1] == "live"


def test_only_its_own_table_is_asked(table: TableWithPage, open_page: Opener) -> None:
    """From opening to a press the page asks for its own files and the table's doors, and for nothing else."""
    asked: list[str] = []
    opened = open_page(table.url, wait=False)
    opened.page.on("request", lambda request: asked.append(request.url.removeprefix(table.url)))
    opened.page.reload()
    opened.phase("attract")
    opened.page.keyboard.press("Digit1")
    opened.phase("lobby")
    assert set(asked) - {"", "live", "contacts", "kinds.svg"} == {
        name for name in asked if name.startswith("static/")
    }
    assert "live" in asked
    assert "contacts" in asked


def test_what_is_sent_for_a_press(shown: ShownTable, open_page: Opener) -> None:
    """A press says which contact, by which hand, its number and when; the numbers rise and the hand stays."""
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url)
    sent: list[dict[str, Any]] = []
    opened.page.on(
        "request",
        lambda request: request.url.endswith("/contacts") and sent.append(json.loads(request.post_data)),
    )
    opened.page.keyboard.press("KeyS")
    opened.page.keyboard.press("KeyS")
    opened.until(lambda: len(shown.presses) == 4, "two presses")
    opened.until(lambda: len(sent) == 4, "what was sent for them")
    assert [(each["seat"], each["button"], each["closed"]) for each in sent] == [
        (3, "page", True),
        (3, "page", False),
    ] * 2
    assert [each["n"] for each in sent] == [1, 2, 3, 4]
    assert len({each["hand"] for each in sent}) == 1
    assert abs(sent[0]["at"] - shown.now() / 1e9) < 2
