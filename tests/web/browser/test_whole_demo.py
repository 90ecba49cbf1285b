"""The whole demonstration as a visitor has it: table and KI in real processes, in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest

from heek.kinds import KINDS, SEATS, Kind
from tests.test_demo import Demo
from tests.web.browser.conftest import LAPTOP, PHONE, Opener
from tests.web.browser.hands import Opened

PEN, PAGE, _ = KINDS
LAN = "127.0.0.2"
"""An address that is this machine's and not loopback's usual one, in place of one in a network."""


@pytest.fixture
def demo() -> Iterator[Callable[..., Demo]]:
    started: list[Demo] = []

    def start(*arguments: str) -> Demo:
        started.append(Demo(*arguments))
        return started[-1].is_ready()

    yield start
    for each in started:
        each.kill()


def press(opened: Opened, seat: int, kind: Kind) -> None:
    """Seats 1 and 2 by mouse, 3 by its key, 4 and 5 by a finger."""
    if seat == 3:
        opened.page.keyboard.press(opened.key(seat, kind))
    elif seat > 3:
        opened.button(seat, kind).tap()
    else:
        opened.button(seat, kind).click()


def sign_in(opened: Opened, seat: int) -> str:
    """A new KI number by a click; the name that the seat shows then."""
    opened.place(seat).get_by_role("button", name=re.compile("sign in", re.IGNORECASE)).click()
    opened.page.locator("#new-number").click()
    opened.page.wait_for_selector("#sign-in", state="hidden")
    name = opened.place(seat).locator(".name")
    opened.until(lambda: name.inner_text() not in ("", "guest"), f"the name at seat {seat}")
    return name.inner_text()


def play(opened: Opened, table: Demo) -> None:
    """One round of five decides: the pen of seat 1 beats four pages."""
    opened.phase("throw")
    for seat in SEATS:

        def thrown(seat: int = seat) -> bool:
            press(opened, seat, PEN if seat == 1 else PAGE)
            state = table.state()
            return bool(state["seats"][seat - 1]["thrown"]) or state["phase"] not in ("throw", "countdown")

        opened.until(thrown, f"seat {seat}'s throw")
    opened.phase("match_over")
    assert opened.text("#sentence").endswith("wins the match: one pen.")


@pytest.mark.parametrize("link", ["http", "serial"])
def test_a_visitor_plays_and_sees_the_board_change(
    demo: Callable[..., Demo], open_page: Opener, link: str
) -> None:
    """Five seats by clicks, keys and touch; the board changes by itself, also after the KI was stopped."""
    table = demo("--link", link, "--set", "ahyoheek.match_over_s=4")
    opened = open_page(f"http://127.0.0.1:{table.port}/", viewport=LAPTOP, has_touch=True)
    assert opened.text("#simulated") == "SIMULATED"
    board = open_page(f"http://127.0.0.1:{table.ki_port}/", wait=False, expect_trouble=True).page
    assert "Nobody is on the board yet" in board.inner_text("body")
    for seat in SEATS[:2]:
        press(opened, seat, PAGE)
        opened.until(
            lambda seat=seat: table.state()["seats"][seat - 1]["state"] == "taken", "a seat is taken"
        )
    names = [sign_in(opened, seat) for seat in SEATS[:2]]
    for seat in SEATS[2:]:
        press(opened, seat, PAGE)
    play(opened, table)

    def points(name: str) -> list[str]:
        """The words of a player's row: a number of eight digits has any other in it."""
        rows = [row.inner_text() for row in board.get_by_role("row").all()]
        found = [row for row in rows if name in row]
        return found[0].split() if found else []

    opened.until(lambda: "101" in points(names[0]), "the board shows the winner's gain")
    assert "99" in points(names[1])
    opened.page.get_by_role("button", name="Stop the KI").click()
    opened.until(lambda: "stopped" in opened.text("#ki-line"), "the page says that the KI is stopped")
    opened.phase("lobby")
    for seat in SEATS:
        press(opened, seat, PAGE)
    play(opened, table)
    opened.until(lambda: "1 waiting" in opened.text("#ki-line"), "the page says that one result waits")
    opened.page.get_by_role("button", name="Start the KI").click()
    opened.until(lambda: "102" in points(names[0]), "the board comes back by itself", patience_s=20)
    opened.until(lambda: "nothing waiting" in opened.text("#ki-line"), "nothing waits")
    assert "98" in points(names[1])
    board.get_by_role("link", name=re.compile(re.escape(names[0]))).first.click()
    board.wait_for_url("**/players/*")
    reasons = board.inner_text("body")
    assert reasons.count("+1") >= 2
    assert "from the others" in reasons
    assert table.ends() == 0


def test_two_phones_play_and_neither_presses_for_the_other(
    demo: Callable[..., Demo], open_page: Opener
) -> None:
    """Each scans the address, takes a seat and plays that one; a press for the other's seat is refused."""
    table = demo("--lan", LAN)
    match = re.search(rf"http://{re.escape(LAN)}:\d+/join/\S+", table.said)
    assert match is not None
    phone = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
    phones = [open_page(match[0], wait=False, expect_trouble=True, **phone) for _ in range(2)]
    for seat, opened in zip((2, 4), phones, strict=True):
        opened.page.wait_for_selector("body[data-link=live][data-phone]")
        opened.page.get_by_role("button", name=f"Take seat {seat}").tap()
        opened.until(lambda opened=opened, seat=seat: opened.button(seat, PEN).is_enabled(), "its buttons")
    for seat, opened in zip((2, 4), phones, strict=True):
        opened.button(seat, PEN).tap()
        opened.until(lambda seat=seat: table.state()["seats"][seat - 1]["state"] == "taken", "it sits")
    told = phones[0].evaluate(
        """async () => {
            const contact = {seat: 4, button: "pen", closed: true, hand: "thief", n: 1};
            const headers = {"Content-Type": "application/json"};
            const answer = await fetch("/contacts", {method: "POST", headers, body: JSON.stringify(contact)});
            return [answer.status, await answer.text()];
        }"""
    )
    assert told[0] == 403
    assert "seat 2" in json.loads(told[1])["error"]
    assert table.state()["seats"][3]["state"] == "taken"
    for seat, opened in zip((2, 4), phones, strict=True):
        opened.button(seat, PEN).tap()
    for seat, opened, kind in ((2, phones[0], PEN), (4, phones[1], PAGE)):

        def thrown(seat: int = seat, opened: Opened = opened, kind: Kind = kind) -> bool:
            state = table.state()
            if state["phase"] not in ("lobby", "throw", "countdown") or state["seats"][seat - 1]["thrown"]:
                return True
            if state["phase"] != "lobby":
                opened.button(seat, kind).tap()
            return False

        opened.until(thrown, f"seat {seat}'s throw")
    for opened in phones:
        opened.phase("match_over")
    assert table.state()["winner"] == 2
    third = open_page(match[0], wait=False, expect_trouble=True, **phone)
    third.page.wait_for_selector("body[data-phone]")
    assert third.page.get_by_role("button", name="Take seat 2").count() == 0
    assert table.ends() == 0
