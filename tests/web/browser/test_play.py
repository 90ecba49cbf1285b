"""Whole matches played in a real browser on a real table: by clicks, by touch, by keys, several at once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heek.kinds import KINDS, SEATS, Kind
from heek.session.phases import Phase
from tests.display.catalogue import T0, moments
from tests.web.browser.conftest import PHONE, PLAYED, Opener, Server
from tests.web.browser.hands import settled, thrown
from tests.web.browser.shown import ShownTable
from tests.web.table_for_pages import TableWithPage

if TYPE_CHECKING:
    from playwright.sync_api import Route

PEN, PAGE, BEETLE = KINDS


def test_a_whole_match_of_five_by_clicks(table: TableWithPage, open_page: Opener) -> None:
    """Five seats sit down, throw and win by clicks alone, and no throw is to be seen before all are in."""
    opened = open_page(table.url)
    assert "Press any button to sit down." in opened.text("#sentence")
    for seat in SEATS:
        opened.button(seat, PAGE).click()
    for round_ in (1, 2):
        settled(opened, table)
        for seat in SEATS:
            assert opened.page.locator("[data-threw]").count() == 0
            opened.button(seat, PEN if seat == 1 else PAGE).click()
            if seat != SEATS[-1]:
                opened.until(lambda seat=seat: thrown(opened, seat), f"seat {seat}'s throw")
        if round_ == 1:
            opened.phase("reveal")
            assert opened.page.locator("[data-threw]").count() == 5
            opened.beat("won")
            assert opened.button(1, PEN).locator("[data-fresh]").count() == 1
    opened.phase("match_over")
    assert opened.text("#sentence") == "Seat 1 wins the match: two pens."
    assert table.daemon.shown.winner == 1
    opened.beat("won")
    assert opened.page.locator(".place[data-match]").get_attribute("data-seat") == "1"
    assert any(line.text.startswith("Seat 1 wins the match") for line in table.told)
    opened.phase("lobby")
    opened.until(lambda: "to play again" in opened.text("#sentence"), "the call for another match")


def test_a_match_of_two_by_touch(tmp_path: Path, serve: Server, open_page: Opener) -> None:
    """On a phone's screen two seats are played by a finger, each large in its turn."""
    table = serve(TableWithPage(tmp_path, **(PLAYED | {"ahyoheek.target": 1})))
    opened = open_page(table.url, viewport=PHONE, has_touch=True, is_mobile=True, device_scale_factor=2)

    def tap(seat: int, kind: Kind) -> None:
        if opened.place(seat).get_attribute("data-own") is None:
            opened.place(seat).locator(".pick").tap()
        opened.button(seat, kind).tap()

    tap(1, PAGE)
    opened.until(lambda: "One more is needed." in opened.text("#sentence"), "the call for another")
    tap(2, PAGE)
    opened.until(lambda: table.daemon.shown.seats[1].state.value == "taken", "seat 2 is taken")
    tap(2, PAGE)
    tap(1, PAGE)
    settled(opened, table)
    tap(1, BEETLE)
    opened.until(lambda: thrown(opened, 1), "seat 1's throw")
    tap(2, PAGE)
    opened.phase("match_over")
    assert opened.text("#sentence") == "Seat 2 wins the match: one page."


def test_a_match_of_two_by_keys(tmp_path: Path, serve: Server, open_page: Opener) -> None:
    """The rows of keys play their seats: no mouse, no focus on any button."""
    table = serve(TableWithPage(tmp_path, **(PLAYED | {"ahyoheek.target": 1})))
    opened = open_page(table.url)
    keyboard = opened.page.keyboard
    for seat, state in ((3, "taken"), (5, "taken"), (3, "ready"), (5, "ready")):
        keyboard.press(opened.key(seat, PEN))
        opened.until(
            lambda seat=seat, state=state: (
                table.daemon.shown.phase is Phase.THROW
                or table.daemon.shown.seats[seat - 1].state.value == state
            ),
            f"seat {seat} {state}",
        )
    settled(opened, table)
    keyboard.press(opened.key(3, BEETLE))
    opened.until(lambda: thrown(opened, 3), "seat 3's throw")
    keyboard.press(opened.key(5, PEN))
    opened.phase("match_over")
    assert table.daemon.shown.winner == 3
    assert opened.text("#sentence") == "Seat 3 wins the match: one beetle."


def test_keyboard_alone(table: TableWithPage, open_page: Opener) -> None:
    """Tab reaches every button in the order of the seats, and the space bar presses as long as it is down."""
    opened = open_page(table.url)
    names = []
    for _ in range(20):
        opened.page.keyboard.press("Tab")
        names.append(opened.evaluate("document.activeElement.getAttribute('aria-label')"))
    buttons = [f"Seat {seat}: {kind.value}, key " for seat in SEATS for kind in KINDS]
    found = [name for name in names if name is not None]
    assert [name[: len(start)] for name, start in zip(found, buttons, strict=False)] == buttons
    opened.button(4, BEETLE).focus()
    opened.page.keyboard.down("Space")
    opened.until(lambda: table.daemon.shown.seats[3].state.value == "taken", "seat 4 is taken")
    assert opened.button(4, BEETLE).get_attribute("data-pressed") is not None
    opened.page.keyboard.up("Space")
    opened.until(lambda: opened.button(4, BEETLE).get_attribute("data-pressed") is None, "the release")
    opened.button(2, PEN).focus()
    opened.page.keyboard.press("Enter")
    opened.until(lambda: table.daemon.shown.seats[1].state.value == "taken", "seat 2 is taken")


def test_a_click_without_anything_before_it(shown: ShownTable, open_page: Opener) -> None:
    """What a screen reader does, a bare click, is a short press."""
    shown.show(*moments()["attract-0"][:2])
    opened = open_page(shown.url)
    opened.button(2, PAGE).evaluate("button => button.click()")
    opened.until(lambda: len(shown.presses) == 2, "the press and its release")
    assert shown.presses == [(2, PAGE, True), (2, PAGE, False)]


def test_several_fingers_at_once(shown: ShownTable, open_page: Opener) -> None:
    """Two fingers hold two buttons at the same time, and each lets go of its own."""
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url, has_touch=True)
    devtools = opened.page.context.new_cdp_session(opened.page)
    points = []
    for number, (seat, kind) in enumerate(((1, PEN), (4, BEETLE))):
        box = opened.button(seat, kind).bounding_box()
        assert box is not None
        points.append({"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2, "id": number})

    def touch(kind: str, *down: dict[str, float]) -> None:
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(down)})

    touch("touchStart", points[0])
    touch("touchStart", *points)
    opened.until(lambda: len(shown.presses) == 2, "both buttons")
    assert opened.page.locator("[data-pressed]").count() == 2
    touch("touchEnd", points[1])
    opened.until(lambda: len(shown.presses) == 3, "the first release")
    assert opened.page.locator("[data-pressed]").count() == 1
    touch("touchEnd")
    opened.until(lambda: len(shown.presses) == 4, "the second release")
    assert shown.presses[:2] == [(1, PEN, True), (4, BEETLE, True)]
    assert sorted(seat for seat, _, closed in shown.presses[2:] if not closed) == [1, 4]


def test_two_keys_on_one_button(shown: ShownTable, open_page: Opener) -> None:
    """A contact stays closed until the last that holds it is lifted, and closes once."""
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url)
    opened.button(1, PEN).hover()
    opened.page.mouse.down()
    opened.page.keyboard.down("Digit1")
    opened.until(lambda: shown.presses == [(1, PEN, True)], "the press")
    opened.page.mouse.up()
    opened.page.keyboard.press("KeyQ")
    opened.until(lambda: (2, PEN, False) in shown.presses, "another seat's press")
    assert (1, PEN, False) not in shown.presses
    opened.page.keyboard.up("Digit1")
    opened.until(lambda: (1, PEN, False) in shown.presses, "the release")
    assert shown.presses.count((1, PEN, True)) == 1


@pytest.mark.parametrize("leaving", ["blur", "pagehide"])
def test_a_window_that_is_left_lets_go(shown: ShownTable, open_page: Opener, leaving: str) -> None:
    """Whatever is held when the window loses its keys or goes away is let go of."""
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url)
    opened.page.keyboard.down("KeyX")
    opened.until(lambda: shown.presses == [(4, PAGE, True)], "the press")
    opened.evaluate("name => window.dispatchEvent(new Event(name))", leaving)
    opened.until(lambda: shown.presses == [(4, PAGE, True), (4, PAGE, False)], "the release")


def test_a_long_hold_is_kept_up(serve: Server, open_page: Opener) -> None:
    """A button that is held for longer than the table's lease stays closed: the page says so again."""
    shown = serve(ShownTable(lease_s=2.6))
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url)
    opened.page.keyboard.down("KeyZ")
    opened.until(lambda: shown.presses == [(4, PEN, True)], "the press")
    held_from = time.monotonic()
    opened.until(lambda: time.monotonic() > held_from + 3.6, "more than the lease")
    assert shown.presses == [(4, PEN, True)]
    opened.page.keyboard.up("KeyZ")
    opened.until(lambda: shown.presses[-1] == (4, PEN, False), "the release")


def test_short_presses_arrive_in_order(shown: ShownTable, open_page: Opener) -> None:
    """Of one contact nothing is sent before the last was answered: no short press is lost or turned round."""
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url)
    on_the_way: list[Route] = []
    opened.page.route("**/contacts", lambda route: on_the_way.append(route))
    for _ in range(5):
        shown.presses.clear()
        pressed_from = time.monotonic()
        for _ in range(2):
            opened.page.keyboard.press("Digit2")
        while len(shown.presses) < 4 and time.monotonic() < pressed_from + 3:
            opened.page.wait_for_timeout(10)
            assert len(on_the_way) <= 1
            if on_the_way:
                on_the_way.pop().continue_()
        if time.monotonic() < pressed_from + 0.9:
            assert shown.presses == [(1, PAGE, True), (1, PAGE, False)] * 2
            break
    else:
        pytest.skip("this machine is too busy: a press takes a second, and is then rightly dropped")


def test_a_release_that_is_lost_is_said_again(shown: ShownTable, open_page: Opener) -> None:
    """When the way breaks under a release it is said again, so that no button stays held for it."""
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url, expect_trouble=True)
    opened.page.keyboard.down("Digit3")
    opened.until(lambda: shown.presses == [(1, BEETLE, True)], "the press")
    opened.page.route("**/contacts", lambda route: route.abort(), times=1)
    opened.page.keyboard.up("Digit3")
    released_from = time.monotonic()
    opened.until(lambda: shown.presses[-1] == (1, BEETLE, False), "the release", 2.5)
    # Before the lease would have ended by itself.
    assert time.monotonic() < released_from + 2.5


def test_a_press_of_long_ago_is_dropped(shown: ShownTable, open_page: Opener) -> None:
    """A press that waited for a second behind a slow answer was for a screen that is gone: it is not sent."""
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url)
    on_the_way: list[Route] = []
    opened.page.route("**/contacts", lambda route: on_the_way.append(route))
    for _ in range(2):
        opened.page.keyboard.press("Digit2")
    waited_from = time.monotonic()
    opened.until(lambda: time.monotonic() > waited_from + 1.2, "a slow answer")

    def let_through() -> bool:
        while on_the_way:
            on_the_way.pop(0).continue_()
        return len(shown.presses) == 2

    opened.until(let_through, "the first press and its release")
    opened.page.wait_for_timeout(100)
    assert on_the_way == []
    opened.page.unroute("**/contacts")
    opened.page.keyboard.press("Digit2")
    opened.until(lambda: len(shown.presses) == 4, "a press of now")
    assert shown.presses == [(1, PAGE, True), (1, PAGE, False)] * 2


def test_the_keyboard_keeps_its_own_ways(shown: ShownTable, open_page: Opener) -> None:
    """A key that is held repeats no press, and one with Ctrl is the browser's."""
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url)
    opened.page.keyboard.down("KeyW")
    opened.page.keyboard.down("KeyW")
    opened.page.keyboard.up("KeyW")
    opened.page.keyboard.down("Control")
    opened.page.keyboard.press("KeyE")
    opened.page.keyboard.up("Control")
    opened.page.keyboard.press("KeyD")
    opened.until(lambda: len(shown.presses) == 4, "two presses")
    # Each contact's own in order; what seat 3 does does not wait for seat 2.
    assert [press for press in shown.presses if press[0] == 2] == [(2, PAGE, True), (2, PAGE, False)]
    assert [press for press in shown.presses if press[0] == 3] == [(3, BEETLE, True), (3, BEETLE, False)]


def test_a_press_looks_pressed_and_says_no_more(shown: ShownTable, open_page: Opener) -> None:
    """A button goes down under the finger at once; that the seat has thrown is for the table to say."""
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url)
    opened.button(5, PAGE).hover()
    opened.page.mouse.down()
    assert opened.button(5, PAGE).get_attribute("data-pressed") is not None
    assert "to throw" in opened.place(5).inner_text()
    assert opened.page.locator("[data-thrown], [data-threw]").count() == 0
    opened.page.mouse.up()
    assert opened.button(5, PAGE).get_attribute("data-pressed") is None


def test_where_nobody_may_press(serve: Server, open_page: Opener) -> None:
    """With a real backend the page shows the table: no button, no key, and keys press nothing."""
    shown = serve(ShownTable(press=False))
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url)
    assert opened.page.locator(".seat button, .place button:visible").count() == 0
    assert opened.page.locator(".seat .contact").count() == 15
    assert opened.page.locator(".key:visible").count() == 0
    asked: list[str] = []
    opened.page.on("request", lambda request: asked.append(request.method))
    opened.page.keyboard.press("Digit1")
    opened.button(1, PEN).click()
    opened.evaluate("fetch('/healthz')")
    opened.until(lambda: asked, "the last request")
    assert asked == ["GET"]


def test_a_press_that_is_refused_is_told(shown: ShownTable, open_page: Opener) -> None:
    """What the table answers to a press that it does not take is shown in its own words, and goes away."""
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url, expect_trouble=True)
    opened.page.route(
        "**/contacts",
        lambda route: route.fulfill(
            status=429, content_type="application/json", body='{"error": "too many fingers"}'
        ),
    )
    # Seen by the page itself: it goes away again, and a driver that is held up would miss it.
    opened.evaluate(
        """() => {
            const refused = document.getElementById("refused");
            window.told = [];
            new MutationObserver(() => refused.checkVisibility() && window.told.push(refused.innerText))
                .observe(refused, {attributes: true, childList: true, characterData: true, subtree: true});
        }"""
    )
    opened.page.keyboard.press("Digit1")
    told = opened.until(lambda: opened.evaluate("window.told"), "the refusal")
    assert told[0] == "Too many fingers."


def test_a_view_that_began_long_ago(shown: ShownTable, open_page: Opener) -> None:
    """A page that is opened in the middle of a reveal shows the beat that has come, not the first one."""
    view, _, _ = moments()["reveal"]
    shown.show(view, T0 + (view.until - T0) * 3 // 4)
    opened = open_page(shown.url)
    opened.beat("won")
