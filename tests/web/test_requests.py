"""What browsers ask: each request does what it says, and each mistake gets one sentence and no traceback."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from heek.errors import TableError
from heek.kinds import Kind, Seat
from heek.web.doors import PageSettings, SignedIn
from heek.web.live import Tempo
from tests.web.serving import Browser, Served, own_address, serving, until

PRESS = {"seat": 1, "button": "pen", "closed": True, "hand": "h", "n": 1}
FOUR = PageSettings(port=0, name="Table 1", seats=(1, 2, 3, 4))


class Demo:
    """The doors of a demo, and what came through them."""

    def __init__(self) -> None:
        self.bots = 0
        self.ki: list[bool] = []
        self.sign_ins: list[tuple[Seat, str | None, Future[SignedIn]]] = []

    def fill_seats(self) -> None:
        self.bots += 1
        if self.bots == 2:
            raise TableError("bots come in the lobby only: wait until the match is over")

    def sign_in(self, seat: Seat, player: str | None) -> Future[SignedIn]:
        future: Future[SignedIn] = Future()
        self.sign_ins.append((seat, player, future))
        if player == "40220173":
            future.set_result(SignedIn("40220173", "Shorah", 104))
        elif player == "00000000":
            future.set_exception(TableError("the KI does not know 00000000: ask for a new number"))
        return future


@pytest.fixture
def demo() -> Demo:
    return Demo()


@pytest.fixture
def table(demo: Demo) -> Iterator[Served]:
    doors = {"fill_seats": demo.fill_seats, "sign_in": demo.sign_in, "switch_ki": demo.ki.append}
    with serving(FOUR, tempo=Tempo(lease_s=0.5), **doors) as served:
        yield served


def test_a_press_and_its_release(table: Served) -> None:
    """A contact closes and opens once, in order, whichever of the three buttons it is."""
    browser = table.browser()
    for button in ("pen", "page", "beetle"):
        assert browser.press(2, button).json == {"held": True}
        assert browser.press(2, button, closed=False).json == {"held": False}
    assert table.presses == [
        (2, button, closed) for button in ("pen", "page", "beetle") for closed in (True, False)
    ]


def test_several_at_once(table: Served) -> None:
    """Fifteen fingers on twelve buttons, each from a thread of its own, close all twelve and open them."""
    hands = [(seat, kind.value, seat) for seat in FOUR.seats for kind in Kind] + [
        (1, kind.value, 9) for kind in Kind
    ]

    def finger(seat: Seat, button: str, hand: int) -> None:
        browser = table.browser()
        for closed in (True, False):
            assert browser.press(seat, button, closed=closed, hand=f"f{hand}").status == 200

    threads = [threading.Thread(target=finger, args=each) for each in hands]
    for each in threads:
        each.start()
    for each in threads:
        each.join(10)
    assert len({(seat, button) for seat, button, _ in table.presses}) == 12
    last = {(seat, button): closed for seat, button, closed in table.presses}
    assert not any(last.values())


def test_a_late_press_is_dropped(table: Served) -> None:
    """A press that took longer than two seconds to arrive acts on no later screen, asked again or not."""
    table.clock.advance_to(10 * 10**9)
    browser = table.browser()
    late = PRESS | {"at": 7.9}
    assert browser.post("/contacts", late).json == {"held": False, "late": True}
    assert browser.post("/contacts", PRESS).json == {"held": False}
    assert table.presses == []
    assert browser.post("/contacts", PRESS | {"at": 8.1, "n": 2}).json == {"held": True}
    table.clock.advance_to(20 * 10**9)
    again = PRESS | {"at": 8.1, "n": 2}
    assert browser.post("/contacts", again).json == {"held": True}, "a hand that is still down is not late"
    assert browser.post("/contacts", PRESS | {"closed": False, "at": 8.1, "n": 3}).json == {"held": False}


def test_a_silent_hand_opens_by_itself(table: Served) -> None:
    """A browser that presses and is never heard of again leaves no contact closed."""
    table.browser().press(1)
    until(lambda: table.presses == [(1, "pen", True), (1, "pen", False)])


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b"\xff\xfe", 400, "not JSON"),
        (b"[" * 4000, 400, "not"),
        (b"[]", 400, "Expected `object`"),
        (b"null", 400, "Expected `object`"),
        (json.dumps(PRESS | {"seat": 0}).encode(), 400, "seat"),
        (json.dumps(PRESS | {"seat": 6}).encode(), 400, "seat"),
        (json.dumps(PRESS | {"seat": "1"}).encode(), 400, "seat"),
        (json.dumps(PRESS | {"seat": 1.5}).encode(), 400, "seat"),
        (json.dumps(PRESS | {"seat": True}).encode(), 400, "seat"),
        (json.dumps(PRESS | {"seat": 5}).encode(), 404, "no seat 5 at this table"),
        (json.dumps(PRESS | {"button": "sword"}).encode(), 400, "pen, page or beetle"),
        (json.dumps(PRESS | {"button": 1}).encode(), 400, "button"),
        (json.dumps(PRESS | {"closed": 1}).encode(), 400, "closed"),
        (json.dumps(PRESS | {"hand": ""}).encode(), 400, "hand"),
        (json.dumps(PRESS | {"hand": "x" * 65}).encode(), 400, "hand"),
        (json.dumps(PRESS | {"hand": "<b>"}).encode(), 400, "hand"),
        (json.dumps(PRESS | {"n": -1}).encode(), 400, "`n`|\\$.n"),
        (json.dumps(PRESS | {"n": 2**60}).encode(), 400, "n"),
        (json.dumps(PRESS | {"more": 1}).encode(), 400, "unknown field `more`"),
        (json.dumps({"seat": 1}).encode(), 400, "missing required field"),
    ],
)
def test_a_bad_press_is_told_why(table: Served, body: bytes, status: int, words: str) -> None:
    """Every mistake in a press has its status and names what is wrong; nothing is pressed."""
    answer = table.browser().ask("POST", "/contacts", body)
    assert answer.status == status
    assert re.search(words, answer.words), answer.words
    assert "Traceback" not in answer.words
    assert table.presses == []


@pytest.mark.parametrize("size", [4097, 100_000, 10**9])
def test_a_large_body_is_refused(table: Served, size: int) -> None:
    """Nobody makes the table read more than 4 KiB; the connection ends with the refusal."""
    answer = table.browser().ask("POST", "/contacts", b" " * min(size, 4096), Content_Length=str(size))
    assert (answer.status, answer.headers["connection"]) == (413, "close")
    assert "4096 bytes" in answer.words


def test_a_large_body_without_a_length_is_refused(table: Served) -> None:
    """In chunks neither."""
    chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
    answer = table.browser().ask(
        "POST", "/contacts", chunk * 2 + b"0\r\n\r\n", Content_Length=None, Transfer_Encoding="chunked"
    )
    assert answer.status == 413


def test_exactly_four_kilobytes_are_taken(table: Served) -> None:
    """The bound itself is still allowed."""
    body = json.dumps(PRESS).encode()
    assert table.browser().ask("POST", "/contacts", body + b" " * (4096 - len(body))).status == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/../etc/passwd", 404),
        ("GET", "/static/../app.py", 404),
        ("GET", "/static/%2e%2e/app.py", 404),
        ("GET", "/static/..%2fapp.py", 404),
        ("GET", "/static//etc/passwd", 404),
        ("GET", "/static/", 404),
        ("GET", "/static/.hidden.js", 404),
        ("GET", "/static/server.py", 404),
        ("GET", "/contacts", 405),
        ("GET", "/bots", 405),
        ("GET", "/seat", 404),
        ("GET", "/join/x", 404),
        ("POST", "/state", 405),
        ("POST", "/nothing", 404),
        ("POST", "/seat", 404),
        ("PUT", "/contacts", 405),
        ("DELETE", "/contacts", 405),
        ("HEAD", "/live", 405),
    ],
)
def test_what_is_not_there(table: Served, method: str, path: str, status: int) -> None:
    """Unknown paths and methods get a status and a sentence; without LAN mode nobody joins."""
    headers = {"Origin": table.browser().host, "Content_Type": "application/json"}
    headers["Origin"] = f"http://{headers['Origin']}"
    answer = table.browser().ask(method, path, **headers)
    assert answer.status == status
    assert method == "HEAD" or answer.words


def test_bots_are_asked_for(table: Served, demo: Demo) -> None:
    """The table is asked, and when it cannot, its own words come back."""
    browser = table.browser()
    assert (browser.post("/bots", {}).status, demo.bots) == (200, 1)
    refused = browser.post("/bots", {})
    assert (refused.status, refused.words) == (
        409,
        "bots come in the lobby only: wait until the match is over",
    )
    assert (browser.post("/bots", {"seat": 1}).status, demo.bots) == (400, 2)


def test_the_ki_is_stopped_and_started(table: Served, demo: Demo) -> None:
    """The demo's switch hands on what was asked, and nothing but a truth value."""
    browser = table.browser()
    for running in (False, True):
        assert browser.post("/ki", {"running": running}).status == 200
    assert browser.post("/ki", {"running": 0}).status == 400
    assert demo.ki == [False, True]


def test_a_player_signs_in(table: Served, demo: Demo) -> None:
    """A number that the KI knows takes the seat's identity, marked unverified."""
    answer = table.browser().post("/seats/3/sign-in", {"player": "40220173"})
    assert answer.json == {"player": "40220173", "name": "Shorah", "points": 104, "unverified": True}
    assert demo.sign_ins[0][:2] == (3, "40220173")


def test_a_sign_in_that_fails_says_why(table: Served, demo: Demo) -> None:
    """What the KI or the table has against it is told in its own words; nonsense never gets there."""
    browser = table.browser()
    refused = browser.post("/seats/3/sign-in", {"player": "00000000"})
    assert (refused.status, refused.words) == (409, "the KI does not know 00000000: ask for a new number")
    for player in ("1234567", "123456789", "1234567a", "١٢٣٤٥٦٧٨", 12345678):
        assert browser.post("/seats/3/sign-in", {"player": player}).status == 400
    for seat in ("5", "0", "6", "x", "11"):
        assert browser.post(f"/seats/{seat}/sign-in", {"player": None}).status == 404
    assert len(demo.sign_ins) == 1


def test_a_slow_sign_in_holds_up_nobody(table: Served, demo: Demo) -> None:
    """While the KI thinks the page answers others, and only so many wait for it."""
    answers: list[Any] = []

    def sign_in(seat: int) -> None:
        answers.append(table.browser().post(f"/seats/{seat}/sign-in", {"player": None}).status)

    waiting = [threading.Thread(target=sign_in, args=(seat,)) for seat in (1, 2, 3, 4, 4)]
    for each in waiting:
        each.start()
    until(lambda: len(demo.sign_ins) == 5)
    assert table.browser().get("/state").status == 200
    assert table.browser().post("/seats/1/sign-in", {"player": None}).status == 503
    for _, _, future in demo.sign_ins:
        future.set_result(SignedIn("40220173", "Shorah", 100))
    for each in waiting:
        each.join(10)
    assert answers == [200] * 5


def test_with_a_real_backend_there_is_no_press() -> None:
    """Without mock pins the endpoint does not exist; the page still shows, and says that it only shows."""
    with serving(PageSettings(port=0, simulated=False), press=False) as table:
        answer = table.browser().press(1)
        assert (answer.status, answer.words) == (404, "there is nothing here by that name")
        for path in ("/bots", "/ki", "/seats/1/sign-in", "/seat"):
            assert table.browser().post(path, {}).status == 404
        told = table.browser().get("/about").json
        assert (told["press"], told["simulated"], told["bots"], told["sign_in"]) == (
            "none",
            False,
            False,
            False,
        )
        assert table.browser().get("/state").status == 200


def test_the_page_says_whose_stamps_presses_have() -> None:
    """What the table knows of its stamps is told to every browser as it is."""
    words = "stamps by callback, + 1.20 ms or more"
    with serving(PageSettings(port=0, simulated=False, stamps=words), press=False) as table:
        assert table.browser().get("/about").json["stamps"] == words
    with serving(PageSettings(port=0)) as table:
        assert table.browser().get("/about").json["stamps"] == ""


@pytest.mark.skipif(own_address() is None, reason="this machine has no address but loopback")
def test_from_elsewhere_one_only_looks() -> None:
    """A table that is shown in a network, without LAN mode, is pressed on its own machine alone."""
    address = own_address()
    assert address is not None
    asked: list[bool] = []
    settings = PageSettings(host="0.0.0.0", port=0)
    with serving(settings, fill_seats=lambda: asked.append(True), switch_ki=asked.append) as table:
        elsewhere = Browser(table.port, address, at=address)
        told = elsewhere.get("/about").json
        assert (told["press"], told["bots"], told["switch_ki"], told["phone"]) == (
            "none",
            False,
            False,
            False,
        )
        assert elsewhere.get("/state").status == 200
        for path, said in (("/contacts", PRESS), ("/bots", {}), ("/ki", {"running": False})):
            refused = elsewhere.post(path, said)
            assert (refused.status, "own machine" in refused.words) == (403, True)
        assert (table.presses, asked) == ([], [])
        assert table.browser().press(1).status == 200


def test_files_are_asked_for_again_only_when_they_changed(table: Served) -> None:
    """A file has its type and a tag, and a browser that has it already is told so."""
    browser = table.browser()
    for path, kind in (("/kinds.svg", "image/svg+xml"), ("/", "text/html; charset=utf-8")):
        first = browser.get(path)
        assert (first.status, first.headers["content-type"]) == (200, kind)
        assert first.headers["cache-control"] == "no-cache"
        again = browser.get(path, If_None_Match=f'"other", W/{first.headers["etag"]}')
        assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    "said", [b"\x16\x03\x01 rubbish\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n"]
)
def test_what_is_no_http_ends_the_connection(table: Served, said: bytes) -> None:
    """Rubbish gets an answer or the end of the connection, and the server lives on."""
    with socket.create_connection(("127.0.0.1", table.port), 5) as raw:
        raw.sendall(said)
        assert raw.recv(4096).startswith((b"HTTP/1.1 400", b""))
    assert table.browser().get("/state").status == 200


def test_a_head_without_end_is_cut_off(table: Served) -> None:
    """A browser that sends headers for ever is cut off after 64 KiB and some."""
    with socket.create_connection(("127.0.0.1", table.port), 5) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\n")
        head = b"".join(b"X-%d: %s\r\n" % (number, b"x" * 1000) for number in range(20_000))
        with pytest.raises(ConnectionError):
            raw.sendall(head)
    assert table.browser().get("/state").status == 200


def test_no_log_names_a_press(table: Served, caplog: pytest.LogCaptureFixture) -> None:
    """Not at any level: a log that names a button of the running round would tell what was thrown."""
    caplog.set_level("DEBUG")
    table.browser().press(1, "beetle")
    table.browser().press(1, "beetle", closed=False)
    table.browser().ask("POST", "/contacts", b'{"seat": 1, "button": "beetle"}')
    assert "beetle" not in caplog.text
    assert "contacts" not in caplog.text
