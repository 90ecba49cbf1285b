"""A page's server on a free port with a table made of paper behind it, and browsers that speak bare HTTP."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from PIL import Image

from heek.clock import SECOND, ManualClock
from heek.kinds import SEATS, Kind, Seat
from heek.session.phases import Phase
from heek.session.view import SeatState, SeatView, View
from heek.stations.lamps import Lamp, lamp
from heek.web.doors import Doors, PageSettings
from heek.web.live import Tempo
from heek.web.server import PageServer
from heek.web.state import KiLine, Told, page_state

DEADLINE_S = 10.0
TOKEN = "0123456789abcdef0123456789abcdef"
LAN = PageSettings(port=0, name="Table 1", lan_token=TOKEN, names=("table.lan",))
"""Phones come by a name that is no loopback name; so they are phones, though their address is loopback."""

BLANK = Image.new("1", (128, 64))


def view(*, round_number: int = 1, phase: Phase = Phase.THROW, **changes: Any) -> View:
    """A table of five in the middle of a match."""
    seats = tuple(SeatView(seat, SeatState.TAKEN, in_round=True) for seat in SEATS)
    return replace(View(phase, since=0, until=None, seats=seats, round=round_number), **changes)


def lamps(of: View, now: int = 0) -> dict[Seat, Lamp]:
    """What the LEDs show of a view."""
    return {seat: lamp(of, seat, now) for seat in SEATS}


def state(of: View | None = None, *, now: int = 0, told: tuple[Told, ...] = ()) -> bytes:
    """A view as the table hands it over."""
    shown = of or view()
    return page_state(
        shown,
        lamps(shown, now),
        name="Table 1",
        simulated=True,
        told=told,
        ki=KiLine("http", "up", 3, "14:02"),
        now=now,
        image=BLANK,
    )


@dataclass
class Answer:
    """What a browser got."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def words(self) -> str:
        """The words of a refusal."""
        assert self.headers["content-type"] == "application/json", self
        return str(self.json["error"])


class Served:
    """A server that runs, and what it has done to the table."""

    def __init__(
        self,
        settings: PageSettings,
        doors: Callable[[Served], Doors],
        tempo: Tempo | None,
        browsers: ManualClock | None,
    ) -> None:
        self.clock = ManualClock()
        self.presses: list[tuple[Seat, str, bool]] = []
        clock = time.monotonic_ns if browsers is None else browsers.now
        self.server = PageServer(settings, doors(self), tempo, clock)
        self.server.start()

    @property
    def port(self) -> int:
        return self.server.port

    def contact(self, seat: Seat, button: Kind, closed: bool) -> None:
        self.presses.append((seat, button.value, closed))

    def browser(self, name: str = "127.0.0.1", cookie: str | None = None) -> Browser:
        """A browser that has the page open under that name."""
        return Browser(self.port, name, cookie)

    def phone(self, seat: Seat | None = None) -> Browser:
        """A phone that has joined and, if a seat is named, has taken it."""
        phone = self.browser("table.lan")
        joined = phone.get(f"/join/{TOKEN}")
        assert joined.status == 200
        phone.cookie = joined.headers["set-cookie"].partition(";")[0]
        if seat is not None:
            assert phone.post("/seat", {"seat": seat}).status == 200
        return phone


@contextmanager
def serving(
    settings: PageSettings | None = None,
    *,
    press: bool = True,
    tempo: Tempo | None = None,
    browsers: ManualClock | None = None,
    **doors: Any,
) -> Iterator[Served]:
    """A server that is stopped at the end; `doors` besides the contacts, `browsers` the clock of theirs."""

    def make(served: Served) -> Doors:
        return Doors(now=served.clock.now, contact=served.contact if press else None, **doors)

    served = Served(settings or PageSettings(port=0, name="Table 1"), make, tempo, browsers)
    served.server.publish(state())
    until(lambda: served.browser().get("/state").status == 200)
    try:
        yield served
    finally:
        served.server.stop()


class Browser:
    """Speaks HTTP as a browser does: one that shows our page, unless told otherwise."""

    def __init__(self, port: int, name: str, cookie: str | None = None, at: str = "127.0.0.1") -> None:
        self.port = port
        self.at = at
        self.host = f"{name}:{port}"
        self.cookie = cookie
        self.n = 0

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str | None) -> Answer:
        """One request on a connection of its own; a header given as None is left out."""
        given: dict[str, str | None] = {"Host": self.host, "Cookie": self.cookie}
        if method == "POST":
            given |= {"Origin": f"http://{self.host}", "Content-Type": "application/json"}
            given["Content-Length"] = str(len(body))
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(self.at, self.port, timeout=DEADLINE_S)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in given.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body or None)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            # A stream has no end to be waited for.
            endless = found.get("content-type") == "text/event-stream"
            return Answer(response.status, found, b"" if endless else response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str | None) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, said: object, **headers: str | None) -> Answer:
        return self.ask("POST", path, json.dumps(said).encode(), **headers)

    def press(
        self, seat: Seat, button: str = "pen", *, closed: bool = True, hand: str = "h", n: int | None = None
    ) -> Answer:
        """Close or open a contact; without `n` under the next number."""
        self.n = self.n + 1 if n is None else n
        return self.post(
            "/contacts", {"seat": seat, "button": button, "closed": closed, "hand": hand, "n": self.n}
        )

    def live(self, *, buffer: int | None = None) -> LiveReader:
        """Open the live stream."""
        return LiveReader(self, buffer)


class LiveReader:
    """Reads server-sent events off a socket, when asked to."""

    def __init__(self, browser: Browser, buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(DEADLINE_S)
        self.socket.connect(("127.0.0.1", browser.port))
        cookie = f"Cookie: {browser.cookie}\r\n" if browser.cookie else ""
        self.socket.sendall(f"GET /live HTTP/1.1\r\nHost: {browser.host}\r\n{cookie}\r\n".encode())
        self._file = self.socket.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        self.headers = dict(iter(self._header, None))
        self.retry: int | None = None
        self._waiting: deque[tuple[str, Any]] = deque()

    def _header(self) -> tuple[str, str] | None:
        name, colon, value = self._file.readline().decode().strip().partition(": ")
        return (name.lower(), value) if colon else None

    def event(self) -> tuple[str, Any]:
        """The next event, or ("end", None) when the stream has ended."""
        while not self._waiting:
            try:
                size = int(self._file.readline() or b"0", 16)
                chunk = self._file.read(size)
                self._file.readline()
            except ConnectionError:
                return "end", None
            if not size or len(chunk) < size:
                return "end", None
            # A chunk holds whole events: the server never sends half of one.
            for block in chunk.decode().strip().split("\n\n"):
                fields = dict(line.split(": ", 1) for line in block.splitlines())
                if "retry" in fields:
                    self.retry = int(fields["retry"])
                else:
                    self._waiting.append((fields["event"], json.loads(fields["data"])))
        return self._waiting.popleft()

    def next(self, name: str) -> Any:
        """The next event of that name; what comes before it is dropped."""
        found = ""
        end = time.monotonic() + DEADLINE_S
        while found != name:
            assert time.monotonic() < end, f"no {name} came"
            found, data = self.event()
            assert found != "end", f"the stream ended before a {name}"
        return data

    def until_end(self) -> None:
        """Read on until the stream has ended."""
        while self.event()[0] != "end":
            pass

    def close(self) -> None:
        self._file.close()
        self.socket.close()


def until(condition: Callable[[], bool], deadline_s: float = DEADLINE_S) -> None:
    """Wait until something is so; fails after the deadline."""
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, "it did not come to be so"
        time.sleep(0.005)


def seconds(count: float) -> int:
    """Seconds as the table counts them."""
    return round(count * SECOND)


def own_address() -> str | None:
    """An address of this machine that is none of loopback, if it has one; asks nobody for it."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))
            found = str(probe.getsockname()[0])
    except OSError:
        return None
    return None if found.startswith("127.") else found
