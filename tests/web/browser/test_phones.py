"""Two browsers as two phones in LAN mode: each plays the seat it has taken, and no other."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from heek.kinds import KINDS
from heek.web.doors import PageSettings
from tests.web.browser.conftest import PHONE, PLAYED, Opener, Server
from tests.web.browser.hands import Opened, settled, thrown
from tests.web.table_for_pages import TableWithPage

PEN, PAGE, BEETLE = KINDS


def own_address() -> str | None:
    """An address of this machine that is no loopback one; None on a machine without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: it only asks which way a packet would go.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = str(probe.getsockname()[0])
    return None if address.startswith("127.") else address


@pytest.fixture
def lan_table(tmp_path: Path, serve: Server) -> TableWithPage:
    """A table that phones may join."""
    address = own_address()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    settings = PageSettings(port=0, lan_host=address, lan_token="0123456789abcdef0123456789abcdef")
    running: TableWithPage = serve(TableWithPage(tmp_path, settings, **(PLAYED | {"ahyoheek.target": 1})))
    return running


def joined(table: TableWithPage, open_page: Opener) -> Opened:
    """A phone that has scanned the QR code."""
    assert table.page is not None
    assert table.page.join_url is not None
    return open_page(table.page.join_url, viewport=PHONE, has_touch=True, is_mobile=True, expect_trouble=True)


def test_two_phones_play(lan_table: TableWithPage, open_page: Opener) -> None:
    """Each phone takes a seat by a tap and plays it; the other's is neither to be taken nor to be pressed."""
    one, two = joined(lan_table, open_page), joined(lan_table, open_page)
    assert one.text("#sentence") == "Tap the seat that is yours."
    assert one.page.locator("button.contact").count() == 0
    one.place(2).locator(".pick").tap()
    one.until(lambda: one.page.locator("button.contact").count() == 3, "the buttons of seat 2")
    two.until(
        lambda: not two.place(2).locator(".pick").is_visible(), "seat 2 is held, as the other phone sees"
    )
    two.place(5).locator(".pick").tap()
    two.until(lambda: two.page.locator("button.contact").count() == 3, "the buttons of seat 5")
    for phone, seat in ((one, 2), (two, 5)):
        assert phone.button(seat, PEN).bounding_box()["width"] > 70
        phone.button(seat, PEN).tap()
        phone.until(
            lambda seat=seat: lan_table.daemon.shown.seats[seat - 1].state.value != "free", "sits down"
        )
    for phone, seat in ((one, 2), (two, 5)):
        phone.button(seat, PEN).tap()
    settled(one, lan_table)
    # A phone that is told to press the other's seat.
    refused = one.evaluate(
        """async () => {
            const answer = await fetch("/contacts", {
                method: "POST",
                headers: {"Content-Type": "application/json"},
                body: JSON.stringify({seat: 5, button: "pen", closed: true, hand: "x", n: 1}),
            });
            return [answer.status, (await answer.json()).error];
        }"""
    )
    assert refused[0] == 403
    assert "seat 2" in refused[1]
    one.page.keyboard.press("Digit8")
    assert not lan_table.daemon.shown.seats[4].thrown
    one.button(2, BEETLE).tap()
    one.until(lambda: thrown(one, 2), "seat 2's throw")
    assert one.text("#sentence") == "You have thrown."
    assert two.text("#sentence") == "Throw before the ring is empty."
    two.button(5, PEN).tap()
    one.phase("match_over")
    two.phase("match_over")
    assert one.text("#sentence") == "Seat 2 wins the match: one beetle."


def test_a_seat_that_is_held(lan_table: TableWithPage, open_page: Opener) -> None:
    """Who asks for a held seat is told so in plain words; when it is let go of, the other may have it."""
    one, two = joined(lan_table, open_page), joined(lan_table, open_page)
    one.place(3).locator(".pick").tap()
    one.until(lambda: one.page.locator("#let-go").is_visible(), "the seat")
    assert one.text("#let-go") == "Let go of seat 3"
    two.until(lambda: not two.place(3).locator(".pick").is_visible(), "seat 3 is held")
    # As if both had tapped at once.
    two.evaluate("document.querySelector('.place[data-seat=\"3\"] .pick').click()")
    two.until(lambda: two.page.locator("#refused").is_visible(), "the refusal")
    assert two.text("#refused").startswith("Seat 3 is held by another phone")
    one.page.locator("#let-go").tap()
    one.until(lambda: one.page.locator("button.contact").count() == 0, "no buttons any more")
    two.until(lambda: two.place(3).locator(".pick").is_visible(), "seat 3 is to be had")
    two.place(3).locator(".pick").tap()
    two.until(lambda: two.page.locator("button.contact").count() == 3, "the buttons of seat 3")


def test_the_way_to_a_seat_is_44_px(lan_table: TableWithPage, open_page: Opener) -> None:
    """A phone that chooses sees five seats, each a target of 44 px or more, and nothing to switch."""
    phone = joined(lan_table, open_page)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 360
    for seat in range(1, 6):
        box = phone.place(seat).locator(".pick").bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 44
    assert phone.page.locator(".claim:visible, #sign-own:visible, #ki-switch:visible").count() == 0


def test_who_has_not_joined(lan_table: TableWithPage, open_page: Opener) -> None:
    """Who comes without the code gets a page that says how to join, and no table."""
    assert lan_table.page is not None
    place = f"http://{lan_table.settings.lan_host}:{lan_table.page.port}/"
    stranger = open_page(place, wait=False, viewport=PHONE, expect_trouble=True)
    assert "QR code" in stranger.text("body")
    assert stranger.page.locator(".seat").count() == 0
    assert stranger.evaluate("document.documentElement.scrollWidth") <= 360
