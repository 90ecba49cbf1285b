"""The pages in a real browser: live without a reload, back after a restart, and fit for all who look."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

from heek.ki.answers import encode_sign_in
from tests.ranking.broken_pages import break_page
from tests.ranking.ki_for_pages import Evening
from tests.ranking.records import ANN, BEN, CLEO, FakeTable
from tests.ranking.service import RunningKi

if TYPE_CHECKING:
    from playwright.sync_api import Page

    OpenPage = Callable[..., Page]

PATIENCE_MS = 10_000

MISSED_LINKS = """
[...document.querySelectorAll("main a")].filter((link) => {
  link.scrollIntoView({ block: "center" });
  const box = (link.closest("li, tr") ?? link).getBoundingClientRect();
  const middle = box.left + box.width / 2;
  const hit = [0.1, 0.5, 0.9].every(
    (part) => document.elementFromPoint(middle, box.top + box.height * part)?.closest("a") === link
  );
  return !hit || box.height < 44 || box.width < 44;
}).map((link) => link.outerHTML)
"""


TEXTS = """
[...document.querySelectorAll("body *:not(script, meter, .unseen, .skip)")].filter((each) =>
  [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) && each.getClientRects().length
).map((each) => {
  const box = each.getBoundingClientRect();
  const color = getComputedStyle(each).color.match(/[0-9.]+/g).map(Number);
  const top = box.top + scrollY;
  return [each.textContent.slice(0, 40), color, [box.left, top, box.right + 1, top + box.height + 1]];
})
"""
"""Every element with text of its own: the text, its colour, and where it stands on the page."""

HIDE_TEXT = """
(() => {
  const sheet = new CSSStyleSheet();
  const none = ["color: transparent", "border-color: transparent", "text-decoration: none"];
  sheet.replaceSync(`* { ${none.map((each) => `${each} !important`).join(";")} }`);
  document.adoptedStyleSheets = [sheet];
})()
"""


def the_player(ki: RunningKi) -> str:
    number = ki.get("/v1/board").json["players"][0]["player"]
    assert isinstance(number, str)
    return number


def the_match(ki: RunningKi) -> str:
    match = ki.get(f"/v1/players/{the_player(ki)}").json["changes"][0]["match"]
    assert isinstance(match, str)
    return match


def paths(ki: RunningKi) -> list[str]:
    return ["/", f"/players/{the_player(ki)}", f"/matches/{the_match(ki)}", "/tables", "/enrol", "/nothing"]


def comes(page: Page, condition: str, within_s: float = 10.0) -> None:
    """Wait until a condition in JavaScript holds; Playwright's own waiting needs a page that allows eval."""
    deadline = time.monotonic() + within_s
    while not page.evaluate(condition):
        assert time.monotonic() < deadline, f"never: {condition}"
        page.wait_for_timeout(30)


def live(page: Page) -> None:
    comes(page, "document.querySelector('#live').dataset.live === 'yes'")


def says(page: Page, text: str) -> None:
    page.get_by_text(text).first.wait_for(timeout=PATIENCE_MS)


def mark(page: Page) -> None:
    """Whatever reloads the page takes this mark away."""
    page.evaluate("window.marked = true")


def marked(page: Page) -> bool:
    return bool(page.evaluate("window.marked === true"))


def test_the_board_changes_without_a_reload(ki: RunningKi, open_page: OpenPage) -> None:
    """From the empty board to the third result: everything appears by itself, in its right order."""
    table = FakeTable()
    ki.introduce(table)
    page = open_page(ki)
    live(page)
    mark(page)
    says(page, "Nobody is on the board yet.")
    ki.report(table.sealed({ANN: 1, BEN: 1, CLEO: 1}, ANN))
    says(page, "won +2, three pens")
    assert page.locator("tbody tr").count() == 3
    assert page.locator("tbody tr").first.get_attribute("data-key") == ANN
    ki.report(*(table.sealed({ANN: 1, BEN: 1}, BEN) for _ in range(4)))
    comes(page, f"document.querySelector('tbody tr').dataset.key === '{BEN}'")
    assert page.locator("ol.matches li").count() == 5
    assert marked(page)
    assert "won +1" in page.locator("#announced").inner_text()


def test_an_unchanged_line_keeps_its_node_and_its_focus(ki: RunningKi, open_page: OpenPage) -> None:
    """Whoever reads with the keyboard stays where they are while the lines around them change."""
    table = FakeTable()
    ki.introduce(table)
    ki.report(table.sealed({ANN: 1, BEN: 1}, ANN))
    page = open_page(ki)
    live(page)
    page.locator(f"tr[data-key='{ANN}'] a").focus()
    ki.report(*(table.sealed({BEN: 1, CLEO: 1}, BEN) for _ in range(4)))
    comes(page, f"document.querySelector('tbody tr').dataset.key === '{BEN}'")
    assert page.evaluate("document.activeElement.closest('tr')?.dataset.key") == ANN


def test_a_players_page_is_live(ki: RunningKi, open_page: OpenPage) -> None:
    """A player sees the reason for a change the moment it counts, also for the first one."""
    table = FakeTable()
    ki.introduce(table)
    number = ki.post("/v1/demo/players", encode_sign_in(None)).cbor["player"]
    page = open_page(ki, f"/players/{number}")
    live(page)
    mark(page)
    ki.report(table.sealed({number: 1, BEN: 1}, BEN))
    says(page, "stake")
    assert re.search(r"-1\s+stake: lost to ", page.locator("ol.changes li").first.inner_text())
    assert page.locator(".points dd").inner_text() == "99"
    assert marked(page)


def test_it_comes_back_after_a_restart(tmp_path: Path, open_page: OpenPage) -> None:
    """While the KI is away the page says that it is not live; once it is back it is fresh by itself."""
    table = FakeTable()
    ki = RunningKi(tmp_path)
    ki.introduce(table)
    ki.report(table.sealed({ANN: 1, BEN: 1}, ANN))
    page = open_page(ki, quiet=True)
    live(page)
    mark(page)
    ki.close()
    comes(page, "document.querySelector('#live').dataset.live === 'no'")
    assert re.fullmatch(r"not live: last heard \d+ s ago", page.locator("#live").inner_text())
    with RunningKi(tmp_path, port=ki.port) as again:
        again.report(table.sealed({ANN: 1, CLEO: 1}, CLEO, kind=table.record({ANN: 0, BEN: 0}).rounds[0][1]))
        comes(page, "document.querySelectorAll('tbody tr').length === 3")
        live(page)
        assert marked(page)


@pytest.mark.parametrize(
    "portal",
    [
        {"status": 502, "content_type": "text/html", "body": "<h1>Bad gateway</h1>"},
        {"status": 200, "content_type": "text/html", "body": "<main id=content>Accept our terms</main>"},
    ],
    ids=["502", "200"],
)
def test_a_portals_answer_is_not_the_kis(tmp_path: Path, open_page: OpenPage, portal: dict[str, Any]) -> None:
    """What something in between answers is never shown, and afterwards the page is live again."""
    table = FakeTable()
    ki = RunningKi(tmp_path)
    ki.introduce(table)
    page = open_page(ki, quiet=True)
    live(page)
    page.route("**/*", lambda route: route.fulfill(**portal))
    ki.close()
    with RunningKi(tmp_path, port=ki.port) as again:
        again.report(table.sealed({ANN: 1, BEN: 1}, ANN))
        comes(page, "document.querySelector('#live').dataset.live === 'no'", 20)
        page.wait_for_timeout(2500)
        says(page, "Nobody is on the board yet.")
        page.unroute("**/*")
        says(page, "won +1, three pens")
        live(page)


@pytest.mark.parametrize("status", [200, 403, 503])
def test_only_a_page_of_the_kis_is_shown(ki: RunningKi, open_page: OpenPage, status: int) -> None:
    """While the stream goes on and the page itself is answered by somebody else, the old one stays."""
    table = FakeTable()
    ki.introduce(table)
    page = open_page(ki, quiet=True)
    live(page)
    portal = "<main id=content>Accept our terms</main>"
    page.route(ki.url, lambda route: route.fulfill(status=status, content_type="text/html", body=portal))
    with page.expect_response(ki.url):
        ki.report(table.sealed({ANN: 1, BEN: 1}, ANN))
    page.wait_for_timeout(300)
    says(page, "Nobody is on the board yet.")
    page.unroute(ki.url)
    says(page, "won +1, three pens")


@pytest.mark.parametrize("width", [320, 360, 768, 1366, 1920, 3840])
def test_nothing_is_wider_than_the_screen(full: RunningKi, open_page: OpenPage, width: int) -> None:
    """No page has to be scrolled sideways."""
    page = open_page(full, viewport={"width": width, "height": 740})
    for path in paths(full):
        if path != "/nothing":
            page.goto(full.url + path.lstrip("/"))
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_links_can_be_touched(full: RunningKi, open_page: OpenPage) -> None:
    """On a phone a finger hits each link anywhere within 44 px: those in a line, anywhere on the line."""
    page = open_page(full, viewport={"width": 360, "height": 740}, has_touch=True, quiet=True)
    for path in paths(full):
        page.goto(full.url + path.lstrip("/"))
        assert page.evaluate(MISSED_LINKS) == [], path


@pytest.mark.parametrize("width", [360, 1366])
def test_nothing_is_in_the_way(full: RunningKi, open_page: OpenPage, width: int) -> None:
    """axe finds nothing on any page: contrast, names, order, landmarks."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    page = open_page(full, viewport={"width": width, "height": 740}, quiet=True)
    for path in paths(full):
        page.goto(full.url + path.lstrip("/"))
        found = [
            (each["id"], each["impact"], [node["html"][:90] for node in each["nodes"][:3]])
            for each in axe.run(page).response["violations"]
        ]
        assert found == [], path


def test_the_empty_board_is_fit_too(ki: RunningKi, open_page: OpenPage) -> None:
    """axe finds nothing on the board before the first result."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    assert axe.run(open_page(ki)).response["violations"] == []


def test_every_text_can_be_read(full: RunningKi, open_page: OpenPage) -> None:
    """Each text stands out from what is really behind it by 4.5 to 1 (axe cannot tell on a gradient)."""
    page = open_page(full, quiet=True)
    for path in paths(full):
        page.goto(full.url + path.lstrip("/"))
        texts = page.evaluate(TEXTS)
        assert len(texts) >= 5
        page.evaluate(HIDE_TEXT)
        shot = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
        for text, color, box in texts:
            behind = shot.crop(tuple(int(edge) for edge in box))
            parts = behind.resize((12, 6)).tobytes()
            pixels = sorted(luminance(parts[at : at + 3]) for at in range(0, len(parts), 3))
            # Nearly the lightest: what only touches the box is not behind the text.
            ratio = contrast(luminance(color), pixels[int(len(pixels) * 0.9)])
            assert ratio >= 4.5, (path, text, ratio)


def luminance(color: Sequence[int]) -> float:
    """Relative luminance of an sRGB colour, as WCAG defines it."""
    red, green, blue = (
        part / 255 / 12.92 if part / 255 <= 0.03928 else ((part / 255 + 0.055) / 1.055) ** 2.4
        for part in color[:3]
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


def test_by_keyboard_alone(full: RunningKi, open_page: OpenPage) -> None:
    """Tab and Enter lead from the board to a player, to a match, and back."""
    page = open_page(full)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/players/*")
    page.locator("ol.changes a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/matches/*")
    page.locator(".back a").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(full.url)


def test_less_motion_moves_nothing(ki: RunningKi, open_page: OpenPage) -> None:
    """Who asked for less motion sees what is new marked, and nothing glides or glows."""
    table = FakeTable()
    ki.introduce(table)
    ki.report(table.sealed({ANN: 1, BEN: 1}, ANN))
    page = open_page(ki, reduced_motion="reduce")
    live(page)
    ki.report(*(table.sealed({ANN: 1, BEN: 1}, BEN) for _ in range(4)))
    page.locator("tr.fresh").first.wait_for(timeout=PATIENCE_MS)
    assert page.evaluate("document.getAnimations().length") == 0


def test_open_for_days(full: RunningKi, evening: Evening, open_page: OpenPage) -> None:
    """Many changes later the page has hardly more elements than a fresh one."""
    page = open_page(full)
    live(page)
    for _ in range(40):
        full.report(evening.match())
    state = full.get("/").text.split('data-state="')[1].split('"')[0]
    comes(page, f"document.querySelector('#content').dataset.state === '{state}'")
    grown: Any = page.evaluate("document.querySelectorAll('*').length")
    fresh: Any = open_page(full).evaluate("document.querySelectorAll('*').length")
    assert grown == fresh


def test_without_script_it_is_whole(full: RunningKi, open_page: OpenPage) -> None:
    """With scripts forbidden the board is there all the same, and claims nothing about being live."""
    page = open_page(full, java_script_enabled=False)
    assert page.locator("tbody tr").count() > 5
    assert not page.locator("#live").is_visible()


@pytest.mark.fault("F047")
@pytest.mark.parametrize("size", [(360, 740), (1366, 768)], ids=["phone", "laptop"])
def test_an_open_page_says_that_the_ledger_is_damaged(
    full: RunningKi, open_page: OpenPage, size: tuple[int, int]
) -> None:
    """F047: old standings are not called live, whoever met the damage; opened anew it says what to do."""
    page = open_page(full, quiet=True, viewport={"width": size[0], "height": size[1]})
    live(page)
    lines = page.locator("tbody tr").count()
    path = f"/matches/{the_match(full)}"
    break_page(full.service._store, "matches")
    assert full.get(path).status == 503
    comes(page, "document.querySelector('#live').dataset.live === 'no'")
    assert page.locator("#live").inner_text() == "not up to date: the KI’s ledger is damaged"
    # What was right before is not taken away.
    assert page.locator("tbody tr").count() == lines
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    page.reload()
    says(page, "Out of order")
    says(page, "its operator is to bring back a copy")
