"""Phones over real sockets: the QR code lets in, and one phone plays one seat."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from heek.clock import ManualClock
from heek.web.gate import ASKS_AT_ONCE
from heek.web.live import MOST_OF_PHONE, Tempo
from heek.web.phones import JOINS_AT_ONCE
from tests.web.serving import LAN, TOKEN, Served, seconds, serving, until


@pytest.fixture
def bots() -> list[str]:
    return []


@pytest.fixture
def table(bots: list[str]) -> Iterator[Served]:
    doors = {
        "fill_seats": lambda: bots.append("asked"),
        "sign_in": lambda *_: pytest.fail("no phone gets here"),
        "switch_ki": print,
    }
    # Beats so rare that nothing is heard by chance.
    with serving(LAN, tempo=Tempo(beat_s=600), **doors) as served:
        yield served


def test_who_has_not_joined_sees_nothing(table: Served) -> None:
    """A stranger in the same network gets a page that says what to do, and neither state nor buttons."""
    stranger = table.browser("table.lan")
    page = stranger.get("/")
    assert (page.status, page.headers["content-type"]) == (403, "text/html; charset=utf-8")
    assert b"Scan the QR code" in page.body
    for path in ("/state", "/about", "/live", "/kinds.svg", "/healthz"):
        refused = stranger.get(path)
        assert (refused.status, "QR code" in refused.words) == (403, True)
    assert stranger.press(1).status == 403
    assert stranger.post("/seat", {"seat": 1}).status == 403
    assert table.presses == []


def test_the_qr_code_lets_a_phone_in(table: Served) -> None:
    """Joining gives a cookie that scripts cannot read and other sites cannot use, and leads to the page."""
    joined = table.browser("table.lan").get(f"/join/{TOKEN}")
    assert joined.status == 200
    assert b'<meta http-equiv="refresh" content="0;url=/">' in joined.body
    cookie = joined.headers["set-cookie"].lower()
    for part in ("httponly", "samesite=strict", "path=/"):
        assert part in cookie
    assert len(cookie.split(";")[0].partition("=")[2]) == 32
    phone = table.phone()
    told = phone.get("/about").json
    assert (told["press"], told["phone"], told["lan"], told["held"]) == ([], True, True, [])
    assert (told["bots"], told["sign_in"], told["switch_ki"]) == (False, False, False)
    assert phone.get("/state").status == 200


def test_a_preview_takes_no_seat(table: Served) -> None:
    """Whatever merely fetches the link, as a chat does to show what it is, holds nothing."""
    for _ in range(5):
        table.phone()
    assert table.phone().get("/about").json["held"] == []


def test_a_phone_that_scans_again_stays_who_it_is(table: Served) -> None:
    """The QR code opened twice on one phone is still one phone with its seat."""
    phone = table.phone(3)
    again = phone.get(f"/join/{TOKEN}")
    assert (again.status, "set-cookie" in again.headers) == (200, False)
    assert phone.get("/about").json["press"] == [3]


def test_the_token_cannot_be_guessed(table: Served) -> None:
    """Wrong ones are refused, and after twenty the address has to wait, even with the right one."""
    stranger = table.browser("table.lan")
    for number in range(JOINS_AT_ONCE):
        assert stranger.get(f"/join/{number:032x}").status == 403
    held_up = stranger.get(f"/join/{TOKEN}")
    assert (held_up.status, held_up.headers["retry-after"]) == (429, "3")


def test_who_has_scanned_an_old_code_is_told_on_a_page(table: Served) -> None:
    """A phone with the code of another evening shows a page that says so, and gets no cookie."""
    stranger = table.browser("table.lan")
    old = stranger.get(f"/join/{'0' * 22}")
    assert (old.status, old.headers["content-type"]) == (403, "text/html; charset=utf-8")
    assert b"This is not the address of this table: scan the QR code again." in old.body
    assert b'href="/static/page.css"' in old.body
    assert "set-cookie" not in old.headers


@pytest.mark.parametrize(
    "cookie", ["heek-phone=" + "0" * 32, "heek-phone=", "other=1", "heek-phone=\xff", ";;;="]
)
def test_a_cookie_that_is_not_ours(table: Served, cookie: str) -> None:
    """A made-up cookie lets nobody in."""
    assert table.browser("table.lan", cookie).get("/state").status == 403


def test_a_phone_plays_its_own_seat(table: Served) -> None:
    """It presses there and nowhere else, and is told which seat is its own."""
    phone = table.phone(3)
    assert phone.press(3, "page").json == {"held": True}
    refused = phone.press(2, "page")
    assert (refused.status, refused.words) == (403, "this phone plays seat 3")
    assert table.presses == [(3, "page", True)]


def test_a_phone_without_a_seat_presses_nothing(table: Served, bots: list[str]) -> None:
    """It has to take one first, for bots, too."""
    phone = table.phone()
    assert "take one first" in phone.press(1).words
    assert phone.post("/bots", {}).status == 403
    assert phone.post("/seat", {"seat": 1}).json["press"] == [1]
    assert phone.post("/bots", {}).status == 200
    assert (table.presses, bots) == ([], ["asked"])


def test_two_phones_and_one_seat(table: Served) -> None:
    """The second is told in plain words, neither loses anything, and another seat is free for it."""
    first, second = table.phone(3), table.phone()
    refused = second.post("/seat", {"seat": 3})
    assert (refused.status, refused.words) == (409, "seat 3 is held by another phone: take another seat")
    assert first.press(3).status == 200
    assert second.press(3).status == 403
    told = second.post("/seat", {"seat": 2}).json
    assert (told["press"], told["held"]) == ([2], [2, 3])


def test_a_phone_that_went_away_gives_up_its_seat() -> None:
    """A minute after its stream closed another phone may have its seat; while it is open, never."""
    browsers = ManualClock()
    with serving(LAN, browsers=browsers) as table:
        first, second = table.phone(3), table.phone()
        live = first.live()
        live.next("about")
        browsers.advance_to(seconds(300))
        assert second.post("/seat", {"seat": 3}).status == 409
        live.close()
        until(lambda: len(table.server._live) == 0)
        browsers.advance_to(seconds(359))
        assert second.post("/seat", {"seat": 3}).status == 409
        browsers.advance_to(seconds(360))
        assert second.post("/seat", {"seat": 3}).json["press"] == [3]
        told = first.get("/about").json
        assert (told["press"], told["held"]) == ([], [3])
        assert first.press(3).words == "this phone plays no seat yet: take one first"


def test_no_header_says_who_is_who(table: Served) -> None:
    """What a proxy would add is not believed: neither that a phone is this machine, nor the reverse."""
    stranger, laptop = table.browser("table.lan"), table.browser()
    assert stranger.get("/state", X_Forwarded_For="127.0.0.1", Forwarded="for=127.0.0.1").status == 403
    said = {"seat": 1, "button": "pen", "closed": True, "hand": "h", "n": 1}
    assert laptop.post("/contacts", said, X_Forwarded_For="192.168.1.9").status == 200
    assert laptop.get("/about", X_Forwarded_For="192.168.1.9").json["press"] == "all"


def test_a_phone_hears_who_has_which_seat(table: Served) -> None:
    """What it may do comes down its live stream whenever that changes, there and for the other phones."""
    first, second = table.phone(), table.phone()
    live = second.live()
    assert live.next("about")["held"] == []
    first.post("/seat", {"seat": 5})
    assert live.next("about")["held"] == [5]
    second.post("/seat", {"seat": 4})
    told = live.next("about")
    assert (told["held"], told["press"]) == ([4, 5], [4])
    first.post("/seat", {"seat": None})
    assert live.next("about")["held"] == [4]


def test_a_phone_that_lets_go_opens_its_buttons(table: Served) -> None:
    """No contact stays closed at a seat that was left, and the press does not go on at the next one."""
    phone = table.phone(3)
    phone.press(3, "pen", n=7)
    phone.post("/seat", {"seat": 2})
    assert table.presses == [(3, "pen", True), (3, "pen", False)]
    phone.post("/seat", {"seat": 3})
    assert phone.press(3, "pen", n=7).json == {"held": False}


def test_a_seat_that_is_not_there(table: Served) -> None:
    """Nonsense for a seat is refused in words."""
    phone = table.phone()
    for seat, status in ((0, 400), (6, 400), ("3", 400), (1.5, 400)):
        assert phone.post("/seat", {"seat": seat}).status == status


def test_what_only_the_tables_own_machine_may(table: Served) -> None:
    """No phone signs anybody in or stops the KI."""
    phone = table.phone(3)
    assert phone.post("/ki", {"running": False}).status == 403
    assert phone.post("/seats/3/sign-in", {"player": None}).status == 403


def test_the_tables_own_machine_needs_no_code(table: Served) -> None:
    """The laptop that runs the table presses all seats as without LAN mode; it takes none for itself."""
    laptop = table.browser()
    assert laptop.get("/about").json["press"] == "all"
    assert laptop.press(1).status == 200
    assert laptop.post("/seat", {"seat": 1}).status == 403
    assert laptop.get(f"/join/{TOKEN}").headers.get("set-cookie") is None


def test_another_site_cannot_use_a_phones_cookie(table: Served) -> None:
    """With the cookie, but from elsewhere or under another name, nothing is pressed."""
    phone = table.phone(3)
    said = {"seat": 3, "button": "pen", "closed": True, "hand": "h", "n": 1}
    assert phone.post("/contacts", said, Origin="http://evil.example").status == 403
    assert phone.post("/contacts", said, Origin=f"http://127.0.0.1:{table.port}").status == 403
    assert phone.post("/contacts", said, Host="evil.example").status == 421
    assert table.presses == []


def test_a_phone_that_asks_too_often(table: Served) -> None:
    """A phone cannot keep the table busy; the others are not held up by it."""
    phone, other = table.phone(3), table.phone(2)
    statuses = {phone.get("/healthz").status for _ in range(4 * ASKS_AT_ONCE)}
    assert statuses <= {200, 429}
    assert other.press(2).status == 200
    until(lambda: phone.press(3).status == 200)


def test_streams_of_one_phone_are_bounded(table: Served) -> None:
    """A phone that reloads without end does not take the places of others: its oldest stream ends."""
    phone = table.phone(3)
    streams = [phone.live() for _ in range(MOST_OF_PHONE + 3)]
    for old in streams[:3]:
        old.until_end()
    assert streams[-1].next("state")["round"] == 1
