"""What the page of a demo offers besides pressing: KI numbers by a click, bots, and the KI's switch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heek.clock import SECOND
from heek.kinds import KINDS
from heek.web.doors import PageSettings
from heek.web.state import KiLine
from tests.display.catalogue import moments
from tests.web.browser.conftest import PHONE, Opener, Server
from tests.web.browser.shown import ShownTable
from tests.web.table_for_pages import TableWithPage

PEN, PAGE, BEETLE = KINDS


def test_sign_in_by_a_click(table: TableWithPage, open_page: Opener) -> None:
    """A seat gets a new KI number by a click, marked unverified; the browser offers it again another time."""
    opened = open_page(table.url)
    assert opened.page.locator(".claim:visible").count() == 0
    opened.page.keyboard.press("KeyQ")
    opened.until(lambda: opened.page.locator(".claim:visible").count() == 1, "the offer")
    opened.place(2).locator(".claim").click()
    dialog = opened.page.locator("#sign-in")
    assert dialog.is_visible()
    assert "Sign in at seat 2" in dialog.inner_text()
    assert "unverified" in dialog.inner_text()
    # Keys are for the dialog while it is open.
    opened.page.keyboard.press("Digit8")
    opened.page.locator("#new-number").click()
    opened.until(lambda: not dialog.is_visible(), "the answer")
    opened.until(lambda: "unverified" in opened.place(2).inner_text(), "the name")
    name = table.daemon.shown.seats[1].name
    assert name is not None
    assert name in opened.place(2).inner_text()
    assert table.daemon.shown.seats[4].state.value == "free"
    opened.page.keyboard.press("KeyZ")
    opened.until(lambda: opened.place(4).locator(".claim").is_visible(), "the offer at seat 4")
    opened.place(4).locator(".claim").click()
    used = opened.page.locator(".number-used")
    assert used.count() == 1
    assert name in used.inner_text()
    opened.page.keyboard.press("Escape")
    opened.until(lambda: not dialog.is_visible(), "Escape closes it")
    assert table.daemon.shown.seats[3].name is None


def test_sign_in_on_a_small_screen(table: TableWithPage, open_page: Opener) -> None:
    """Where one seat is large the offer is for that seat, and numbers can be forgotten."""
    opened = open_page(table.url, viewport=PHONE, has_touch=True)
    opened.button(1, PEN).tap()
    opened.until(lambda: opened.page.locator("#sign-own").is_visible(), "the offer")
    opened.page.locator("#sign-own").tap()
    assert opened.evaluate("document.documentElement.scrollWidth") <= 360
    opened.page.locator("#new-number").tap()
    opened.until(lambda: table.daemon.shown.seats[0].name is not None, "the name")
    opened.until(lambda: not opened.page.locator("#sign-own").is_visible(), "no offer any more")
    opened.place(5).locator(".pick").tap()
    opened.button(5, PEN).tap()
    opened.until(lambda: opened.page.locator("#sign-own").is_visible(), "the offer at seat 5")
    opened.page.locator("#sign-own").tap()
    opened.page.locator("#forget-numbers").tap()
    assert opened.page.locator(".number-used").count() == 0


def test_what_the_ki_refuses(table: TableWithPage, open_page: Opener) -> None:
    """A sign-in that fails says why, in the dialog, which stays for another try."""
    opened = open_page(table.url, expect_trouble=True)
    opened.page.keyboard.press("Digit1")
    opened.page.route(
        "**/sign-in",
        lambda route: route.fulfill(
            status=502, content_type="application/json", body='{"error": "the KI does not answer"}'
        ),
    )
    opened.place(1).locator(".claim").click()
    opened.page.locator("#new-number").click()
    opened.until(lambda: opened.page.locator("#sign-in-refused").is_visible(), "the reason")
    assert opened.text("#sign-in-refused") == "The KI does not answer."
    opened.page.locator("#stay-guest").click()
    assert not opened.page.locator("#sign-in").is_visible()


def test_bots_for_the_empty_seats(serve: Server, open_page: Opener) -> None:
    """Who sits alone can have the empty seats filled; nobody is asked before, or when all seats are taken."""
    shown = serve(ShownTable(bots=True))
    shown.show(*moments()["attract-0"][:2])
    opened = open_page(shown.url)
    assert not opened.page.locator("#bots").is_visible()
    assert "bots" in opened.text("#hint")
    alone, at, _ = moments()["lobby-one"]
    shown.show(replace(alone, bots_allowed=True, bots_at=at + 7 * SECOND), at)
    opened.until(lambda: opened.page.locator("#bots").is_visible(), "the offer")
    assert "Bots take the others in 7 seconds." in opened.text("#hint")
    opened.page.locator("#bots").click()
    opened.until(lambda: shown.asked == ["bots"], "the request")
    full, at, _ = moments()["lobby-long-names"]
    rows = tuple(replace(row, name=None, bot=row.seat != 1) for row in full.seats)
    shown.show(replace(full, seats=rows, bots_allowed=True), at)
    opened.until(lambda: not opened.page.locator("#bots").is_visible(), "all seats are taken")
    assert [opened.place(seat).locator(".tag").inner_text() for seat in (2, 3, 4, 5)] == ["BOT"] * 4
    assert not opened.place(1).locator(".tag").is_visible()
    assert opened.page.locator('.seat[data-seat="3"]').get_attribute("aria-label") == ("Seat 3, bot")


def test_the_kis_switch(serve: Server, open_page: Opener) -> None:
    """The KI's line says what waits for it, its board is a link, and its switch stops it and starts it."""
    shown = serve(ShownTable(PageSettings(port=0, ki_url="http://127.0.0.1:8625/"), switch_ki=True))
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url)
    assert opened.text("#ki-line") == "KI: 3 waiting, last 14:02"
    assert opened.page.get_attribute("#ki-line", "title") == "The KI last answered at 14:02"
    link = opened.page.locator("#ki-url")
    assert link.get_attribute("href") == "http://127.0.0.1:8625/"
    assert link.get_attribute("rel") == "noopener"
    opened.page.locator("#ki-switch").click()
    opened.until(lambda: shown.asked == ["ki False"], "the stop")
    shown.ki = KiLine("http", "stopped", 4, "14:02")
    shown.show(*moments()["countdown-5"][:2])
    opened.until(lambda: opened.text("#ki-switch") == "Start the KI", "the other way")
    assert opened.text("#ki-line") == "KI: stopped, 4 waiting, last 14:02"
    assert opened.text("#ki-why") == ""
    opened.page.locator("#ki-switch").click()
    opened.until(lambda: shown.asked == ["ki False", "ki True"], "the start")
    shown.ki = KiLine(
        "http", "down", 4, "14:02", "what answers is not the KI; does the network want a log-in?"
    )
    shown.show(*moments()["countdown-5"][:2])
    opened.until(lambda: opened.text("#ki-why").endswith("does the network want a log-in?"), "the reason")


def test_how_it_stands_with_the_ki(serve: Server, open_page: Opener) -> None:
    """Every state of the link is one that tells: looked for, not enrolled, enrolled, in trouble, away."""
    shown = serve(ShownTable())

    def show(ki: KiLine, until: str) -> None:
        shown.ki = ki
        shown.show(*moments()["attract-0"][:2])
        opened.until(lambda: opened.text("#ki-line") == until, until)

    def visible() -> set[str]:
        parts = ("why", "claim", "trouble", "service", "counted")
        return {each for each in parts if opened.page.locator(f"#ki-{each}").is_visible()}

    shown.ki = KiLine("serial", "unknown", 2)
    shown.show(*moments()["attract-0"][:2])
    opened = open_page(shown.url)
    opened.until(lambda: opened.text("#ki-line") == "KI: looking for it, 2 waiting", "the start")
    assert visible() == set()

    show(KiLine("serial", "up", 2, "14:02", claim="BCDF GHJK"), "KI: not enrolled, 2 waiting, last 14:02")
    assert visible() == {"claim"}
    assert opened.text("#ki-code") == "BCDF GHJK"
    assert opened.text("#ki-command") == "heek ki enrol BCDFGHJK"

    counters = {"frames_out": 12345, "crc_errors": 0, "round_trip_ms": 1.26}
    enrolled = KiLine("serial", "up", 0, "14:03", service="The <b>Cavern</b>", counters=counters)
    show(enrolled, "KI: nothing waiting, last 14:03")
    assert visible() == {"service", "counted"}
    assert opened.text("#ki-service") == "Enrolled at The <b>Cavern</b>"
    assert not opened.page.locator("#ki-counters").is_visible()
    opened.page.locator("#ki-counted summary").click()
    opened.until(lambda: opened.page.locator("#ki-counters").is_visible(), "the counters")
    assert opened.page.locator("#ki-counters div").all_inner_texts() == [
        "frames out\n12,345",
        "crc errors\n0",
        "round trip ms\n1.3",
    ]

    trouble = ("the KI holds 3 matches of this table that this journal has not", "update heek")
    show(replace(enrolled, trouble=trouble, waiting=1), "KI: 1 waiting, last 14:03")
    assert visible() == {"service", "counted", "trouble"}
    assert opened.page.locator("#ki-trouble li").all_inner_texts() == [
        "The KI holds 3 matches of this table that this journal has not",
        "Update heek",
    ]
    assert opened.page.locator("#ki-counters").is_visible(), "who looks at the counters goes on doing so"

    show(
        replace(enrolled, state="down", why="nothing answers at the other end"),
        "KI: not reached, nothing waiting, last 14:03",
    )
    assert visible() == {"service", "counted", "why"}
    shown.ki = KiLine()
    shown.show(*moments()["attract-0"][:2])
    opened.until(lambda: not opened.page.locator("#ki").is_visible(), "a table without a link says nothing")


@pytest.mark.parametrize("size", [(360, 740), (800, 1200), (900, 700), (1366, 768), (1920, 1080)])
def test_a_code_and_its_command_are_in_reach(serve: Server, open_page: Opener, size: tuple[int, int]) -> None:
    """At every shape of the page the code is whole, and what to do can be scrolled to, downwards only."""
    shown = serve(ShownTable(PageSettings(port=0, ki_url="http://127.0.0.1:8625/"), switch_ki=True))
    shown.ki = KiLine(
        "http",
        "up",
        128,
        "14:02",
        service="The Cavern",
        claim="MWQX ZSRV",
        trouble=("the KI holds 3 matches of this table that this journal has not: was its card put back?",),
        counters={f"counter_{number}": number for number in range(14)},
    )
    shown.show(*moments()["attract-0"][:2])
    opened = open_page(shown.url, viewport={"width": size[0], "height": size[1]})
    opened.until(lambda: opened.text("#ki-code") == "MWQX ZSRV", "the code")
    for part in ("#ki-code", "#ki-command", "#ki-trouble", "#ki-counted summary", "#ki-switch"):
        opened.page.locator(part).scroll_into_view_if_needed()
        box = opened.page.locator(part).bounding_box()
        assert box is not None
        assert box["x"] >= 0, part
        assert box["x"] + box["width"] <= size[0], part
        assert box["y"] >= 0, part
        assert box["y"] + box["height"] <= size[1] + 1, part
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= size[0]
    wide = opened.page.locator("#ki").evaluate("node => node.scrollWidth <= node.clientWidth")
    assert wide, "nothing in the KI's part is cut at its side"


def test_what_is_not_offered(shown: ShownTable, open_page: Opener) -> None:
    """Without bots, sign-in or a switch the page offers none of them."""
    shown.show(*moments()["lobby-one"][:2])
    opened = open_page(shown.url)
    assert (
        opened.page.locator("#bots:visible, .claim:visible, #ki-switch:visible, #ki-url:visible").count() == 0
    )
    assert "bots" not in opened.text("#hint")
    shown.show(*moments()["attract-0"][:2])
    opened.phase("attract")
    assert "bots" not in opened.text("#hint")
