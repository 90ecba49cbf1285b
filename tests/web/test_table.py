"""The page on a real table: a match is played through it, and it tells nothing before the reveal."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from heek.clock import MILLISECOND
from heek.kinds import SEATS, Kind
from heek.web.doors import PageSettings
from heek.web.state import KiLine, Told, page_state
from tests.test_daemon import Rig
from tests.web.serving import Browser, LiveReader, until
from tests.web.table_for_pages import QUICK, TableWithPage

pytestmark = pytest.mark.filterwarnings("ignore:Image.Image.getdata is deprecated")


class Player:
    """A person at one seat, with a browser of their own."""

    def __init__(self, table: TableWithPage, seat: int) -> None:
        assert table.page is not None
        self.seat = seat
        self.table = table
        self.browser = Browser(table.page.port, "127.0.0.1")

    def press(self, button: str) -> None:
        """As a person does: nobody presses anew, or at a table just switched on, within the debounce time."""
        for closed in (True, False):
            now = self.table.clock.now()
            until(lambda since=now: self.table.clock.now() > since + 30 * MILLISECOND)
            answer = self.browser.press(self.seat, button, closed=closed, hand=f"seat{self.seat}")
            assert answer.json == {"held": closed}


def _until_phase(live: LiveReader, *phases: str) -> dict[str, Any]:
    """The first state in one of these phases; on the way none of a running round names a throw."""
    while True:
        seen: dict[str, Any] = live.next("state")
        if seen["phase"] in ("throw", "countdown", "settle"):
            assert [row["throw"] for row in seen["seats"]] == [None] * 5
        if seen["phase"] in phases:
            return seen


def test_a_match_is_played_through_the_page(tmp_path: Path) -> None:
    """Two browsers sit down, throw and win, by nothing but requests; what they see is the table's view."""
    keys = QUICK | {"ahyoheek.target": 1}
    with TableWithPage(tmp_path, PageSettings(port=0), **keys) as table:
        one, two = Player(table, 1), Player(table, 4)
        live = one.browser.live()
        assert _until_phase(live, "attract")["simulated"] is True
        one.press("pen")
        lobby = _until_phase(live, "lobby")
        assert (lobby["seats"][0]["state"], lobby["seats"][3]["state"]) == ("taken", "free")
        two.press("pen")
        one.press("pen")
        two.press("pen")
        opened = _until_phase(live, "throw")
        assert (opened["round"], opened["seats"][0]["lamp"]) == (1, "your_turn")
        until(lambda: one.browser.get("/state").json["now"] > opened["since"] + 0.35)
        one.press("pen")
        running = _until_phase(live, "countdown")
        assert running["until"] == pytest.approx(running["since"] + 1.0)
        assert running["seats"][0]["thrown"] is True
        two.press("page")
        over = _until_phase(live, "match_over")
        assert (over["winner"], over["by"]) == (1, "three")
        assert [row["throw"] for row in over["seats"]] == ["pen", None, None, "page", None]
        assert over["seats"][0]["collection"] == {"pen": 1, "page": 0, "beetle": 0}
        assert over["seats"][0]["lamp"] == "won"
        assert any("wins" in line["text"] for line in over["told"])


def test_the_picture_is_the_oleds(tmp_path: Path) -> None:
    """What the page draws in its middle is the daemon's own image, bit for bit."""
    with TableWithPage(tmp_path, PageSettings(port=0), **QUICK) as table:
        Player(table, 2).press("pen")
        browser = Player(table, 2).browser
        until(lambda: browser.get("/state").json["phase"] == "lobby")

        def same() -> bool:
            shown = browser.get("/state").json["oled"]
            return base64.b64decode(shown) == table.call(lambda: table.daemon.image.tobytes())

        until(same)


def test_a_page_that_ends_leaves_the_table_playing(tmp_path: Path) -> None:
    """One server of the page stops and another starts: the table does not notice, the new one shows it."""
    with TableWithPage(tmp_path, PageSettings(port=0), **QUICK) as table:
        player = Player(table, 2)
        player.press("pen")
        until(lambda: player.browser.get("/state").json["phase"] == "lobby")
        assert table.page is not None
        table.page.stop()
        table.contact(3, Kind.PEN, True)
        table.contact(3, Kind.PEN, False)
        page = table.start_page()
        again = Browser(page.port, "127.0.0.1")
        until(lambda: again.get("/state").json["seats"][2]["state"] == "taken")


@pytest.mark.parametrize("allow_change", [True, False])
def test_nothing_leaks_before_the_reveal(tmp_path: Path, allow_change: bool) -> None:
    """Two matches that differ only in what is thrown look the same, byte for byte, until the reveal."""
    runs = [
        _watched(tmp_path / button, button, allow_change=allow_change) for button in ("pen", "page", "beetle")
    ]
    before = [[seen for seen in run if json.loads(seen)["phase"] != "reveal"] for run in runs]
    assert before[0] == before[1] == before[2]
    assert len(before[0]) > 50
    after = [[seen for seen in run if json.loads(seen)["phase"] == "reveal"] for run in runs]
    assert len({tuple(run) for run in after}) == 3


def _watched(folder: Path, button: str, *, allow_change: bool) -> list[bytes]:
    """The states of a round in which seat 1 throws `button`, after a second thought, and it gets stuck."""
    rig = Rig(folder, ahyoheek__allow_change=allow_change, stations__stuck_s=5, ahyoheek__countdown_s=30)
    seen: list[bytes] = []
    told: list[Told] = []

    def look() -> None:
        now = rig.clock.now()
        told[:] = [Told(line["seq"], round(line["at"] * 1e9), line["event"]) for line in rig.lines]
        seen.append(
            page_state(
                rig.daemon.shown,
                rig.daemon.lamps,
                name="Table 1",
                simulated=True,
                told=told,
                ki=KiLine(),
                now=now,
                image=rig.daemon.image,
            )
        )

    rig.match((1, 2))
    rig.press(1, 2.6, "page" if button == "pen" else "pen")
    rig.press(1, 2.8, button)
    rig.at(3.0, lambda: rig.edge(1, button, True))
    for step in range(120):
        rig.at(2.5 + step * 0.1, look)
    rig.press(2, 13.0, "page")
    rig.run(14.6)
    rig.daemon.close()
    return seen


def test_every_wired_seat_is_there(tmp_path: Path) -> None:
    """A table of five has five rows in seat order, whoever sits."""
    with TableWithPage(tmp_path, PageSettings(port=0), **QUICK) as table:
        shown = Player(table, 1).browser.get("/state").json
        assert [row["seat"] for row in shown["seats"]] == list(SEATS)
