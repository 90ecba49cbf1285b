"""That everybody can use the page: by axe's rules, on small and great screens, without motion, by words."""

from __future__ import annotations

import pytest

from heek.kinds import KINDS, SEATS
from heek.web.doors import PageSettings
from heek.web.state import KiLine
from tests.display.catalogue import T0, moments
from tests.web.browser.conftest import LAPTOP, PHONE, Opener, Server
from tests.web.browser.hands import Opened
from tests.web.browser.shown import ShownTable

LIGHTEST = "#2a201a"
"""The lightest tone of the page's ground: axe cannot see through a gradient, so it gets the worst of it."""

STATES = (
    "attract-0",
    "lobby-unconfirmed",
    "lobby-long-names",
    "throw",
    "reveal",
    "match-over-three",
    "fault-both",
)


def faults(opened: Opened) -> list[str]:
    """What axe has against the page, of the grave kinds."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    opened.evaluate("colour => { document.body.style.background = colour; }", LIGHTEST)
    found = axe.Axe().run(opened.page).response["violations"]
    opened.evaluate("() => { document.body.style.background = ''; }")
    return [
        f"{each['id']}: {node['target']} {node.get('failureSummary', '')}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("viewport", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_axe_finds_nothing_grave(serve: Server, open_page: Opener, viewport: dict[str, int]) -> None:
    """In every telling state axe has nothing serious or critical against the page, contrast included."""
    settings = PageSettings(port=0, ki_url="http://127.0.0.1:8625/")
    shown = serve(ShownTable(settings, bots=True, switch_ki=True))
    opened = None
    for name in STATES:
        view, at, _ = moments()[name]
        shown.show(view, at, told=["Seat 1 is taken", "Seat 2 is taken"])
        opened = opened or open_page(shown.url, viewport=viewport)
        opened.phase(view.phase.value)
        if view.phase.value in ("reveal", "match_over"):
            opened.page.wait_for_selector("body[data-beat]")
        assert faults(opened) == [], name


def test_axe_of_a_silent_table(serve: Server, open_page: Opener) -> None:
    """The words of the page can be read also while the table does not answer."""
    shown = serve(ShownTable())
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url, expect_trouble=True)
    shown.server.stop()
    opened.page.wait_for_selector("body[data-link=stale]")
    assert faults(opened) == []


def boxes(opened: Opened, selector: str) -> list[dict[str, float]]:
    """Where the visible nodes of a kind lie."""
    found: list[dict[str, float]] = opened.evaluate(
        """selector => [...document.querySelectorAll(selector)]
            .filter(node => node.checkVisibility({visibilityProperty: true}))
            .map(node => {
                const {left, top, right, bottom} = node.getBoundingClientRect();
                const [width, height] = [node.offsetWidth, node.offsetHeight];
                return {left, top, right, bottom, width, height};
            })""",
        selector,
    )
    return found


NARROW = ("attract-0", "lobby-long-names", "lobby-hard-name-5", "throw", "match-over-three")


def test_a_narrow_screen(serve: Server, open_page: Opener) -> None:
    """At 360 px nothing is too wide, every target is 44 px, and the own buttons need no scrolling."""
    settings = PageSettings(port=0, ki_url="http://127.0.0.1:8625/")
    shown = serve(ShownTable(settings, bots=True, switch_ki=True))
    opened = None
    for name in NARROW:
        view, at, _ = moments()[name]
        shown.show(view, at, told=["Seat 1 is taken"] * 12)
        opened = opened or open_page(shown.url, viewport=PHONE, has_touch=True)
        opened.phase(view.phase.value)
        for height in (740, 640):
            opened.resize(360, height)
            assert opened.evaluate("document.documentElement.scrollWidth") <= 360, name
            targets = boxes(opened, "button, a[href]:not(.skip)")
            assert len(targets) >= 3 + 4
            for target in targets:
                assert target["width"] >= 44, name
                assert target["height"] >= 44, name
                assert target["left"] >= 0, name
                assert target["right"] <= 360, name
            buttons = boxes(opened, ".contact")
            assert len(buttons) == 3
            assert all(button["bottom"] <= height for button in buttons), name


SCREENS = ((1366, 768), (1366, 643), (1920, 1080), (3840, 2160), (1024, 768), (768, 1024), (1280, 600))


COUNTED = KiLine(
    "http", "up", 0, "14:03", service="The Cavern", counters={f"counter_{n}": n for n in range(20)}
)


def test_nothing_lies_beyond_the_screen(serve: Server, open_page: Opener) -> None:
    """No shadow, no glow and nothing that the link has counted makes the page larger than the screen."""
    shown = serve(ShownTable(PageSettings(port=0), ki=COUNTED))
    view, at, _ = moments()["lobby-long-names"]
    shown.show(view, at, told=["Seat 1 is taken"] * 12)
    opened = open_page(shown.url)
    opened.page.locator("#ki-counted summary").click()
    for width, height in SCREENS:
        opened.resize(width, height)
        for part in ("documentElement", "body"):
            size = opened.evaluate(f"[document.{part}.scrollWidth, document.{part}.scrollHeight]")
            assert size[0] <= width, (part, width, height)
            assert size[1] <= height, (part, width, height)


@pytest.mark.parametrize("size", [(360, 740), (360, 480), (768, 1024), (900, 700), (1024, 768), (1366, 643)])
def test_what_was_opened_is_seen(serve: Server, open_page: Opener, size: tuple[int, int]) -> None:
    """Who asks what the link has counted sees the first of it below the question, wherever the KI stands."""
    shown = serve(ShownTable(PageSettings(port=0), ki=COUNTED))
    view, at, _ = moments()["lobby-long-names"]
    shown.show(view, at, told=["Seat 1 is taken"] * 12)
    opened = open_page(shown.url, viewport={"width": size[0], "height": size[1]})
    summary = opened.page.locator("#ki-counted summary")
    summary.click()
    seen = """([selector, x, y]) => document.elementFromPoint(x, y)?.closest(selector) != null"""
    for selector in ("#ki-counted summary", "#ki-counters div:nth-child(2)"):
        opened.until(
            lambda selector=selector: all(
                opened.evaluate(seen, [selector, (box["left"] + box["right"]) / 2, y])
                for box in boxes(opened, selector)
                for y in (box["top"] + 1, box["bottom"] - 1)
            ),
            selector,
            3,
        )


def test_only_whole_lines_are_told(serve: Server, open_page: Opener) -> None:
    """Where the list of what happened is cut short, no line of it is cut through."""
    shown = serve(ShownTable(PageSettings(port=0), ki=COUNTED))
    view, at, _ = moments()["lobby-long-names"]
    shown.show(view, at, told=["Seat 1 is taken", "Seat 2 is taken, by one with a long name"] * 6)
    opened = open_page(shown.url)
    opened.page.locator("#ki-counted summary").click()
    for width, height in ((1366, 643), (1366, 768), (1280, 600), (1920, 1080)):
        opened.resize(width, height)
        (room,) = boxes(opened, "#told")
        lines = [
            line
            for line in boxes(opened, "#told li")
            if line["left"] < room["right"] and line["top"] < room["bottom"]
        ]
        assert 0 < len(lines) < 12, (width, height)
        assert all(line["bottom"] <= room["bottom"] + 0.5 for line in lines), (width, height)


def test_the_whole_table_without_scrolling(serve: Server, open_page: Opener) -> None:
    """From a tablet to a wall all five seats are equal and whole on the screen, each button 44 px or more."""
    shown = serve(ShownTable(PageSettings(port=0, ki_url="http://127.0.0.1:8625/"), switch_ki=True))
    view, at, _ = moments()["lobby-long-names"]
    shown.show(view, at, told=["Seat 1 is taken"] * 12)
    opened = open_page(shown.url)
    for width, height in SCREENS:
        opened.resize(width, height)
        size = opened.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
        )
        assert size[0] <= width
        assert size[1] <= height
        buttons = boxes(opened, ".contact")
        assert len(buttons) == 15
        assert len({round(button["width"], 1) for button in buttons}) == 1
        assert buttons[0]["width"] >= 44
        for box in buttons + boxes(opened, ".place p, #sentence, #simulated, #ki-line, #oled"):
            assert box["left"] >= -1
            assert box["right"] <= width + 1
            assert box["top"] >= -1
            assert box["bottom"] <= height + 1
        centres = [((box["left"] + box["right"]) / 2, (box["top"] + box["bottom"]) / 2) for box in buttons]
        for index, (x, y) in enumerate(centres):
            for other_x, other_y in centres[index + 1 :]:
                assert ((x - other_x) ** 2 + (y - other_y) ** 2) ** 0.5 > buttons[0]["width"]


def test_large_letters_get_the_arrangement_that_has_room_for_them(
    shown: ShownTable, open_page: Opener
) -> None:
    """Who reads at twice the size sees one seat large on a laptop, nothing cut or over another thing."""
    shown.show(*moments()["lobby-long-names"][:2])
    for size, seats in ((16, 5), (20, 5), (32, 1)):
        opened = open_page(shown.url, viewport={"width": 1280, "height": 800})
        letters = opened.page.context.new_cdp_session(opened.page)
        letters.send("Page.setFontSizes", {"fontSizes": {"standard": size, "fixed": size}})
        opened.page.reload()
        opened.phase("lobby")
        buttons = [box for box in boxes(opened, ".contact") if box["width"]]
        assert len(buttons) == 3 * seats, size
        assert min(box["width"] for box in buttons) >= 44
        names = [box for box in boxes(opened, ".place .who") if box["width"]]
        for number, one in enumerate(names):
            assert one["height"] <= 6 * size, "a name is not broken into single letters"
            for other in names[number + 1 :]:
                assert (
                    one["right"] <= other["left"]
                    or other["right"] <= one["left"]
                    or one["bottom"] <= other["top"]
                    or other["bottom"] <= one["top"]
                ), size


def test_great_screens_are_great(open_page: Opener, shown: ShownTable) -> None:
    """On a wall everything grows with the wall: the smallest text of a seat too."""
    shown.show(*moments()["throw"][:2])
    sizes = []
    for width, height in ((1366, 768), (3840, 2160)):
        opened = open_page(shown.url, viewport={"width": width, "height": height})
        sizes.append(
            opened.evaluate(
                """() => [".place .state", "#told li", "#sentence", ".key"].map(selector =>
                    parseFloat(getComputedStyle(document.querySelector(selector)).fontSize))"""
            )
        )
    for small, great in zip(*sizes, strict=True):
        assert great > 2.3 * small


def test_without_motion(shown: ShownTable, open_page: Opener) -> None:
    """For who wants no motion the reveal is the same three states, and the ring falls by whole seconds."""
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url, reduced_motion="reduce")
    shown.show(moments()["reveal"][0], T0)
    for beat in ("throws", "winners", "won"):
        opened.beat(beat)
        assert opened.evaluate("document.getAnimations().length") == 0
    view = moments()["countdown-5"][0]
    shown.show(view, T0)
    opened.phase("countdown")
    shares = set()
    for _ in range(30):
        shares.add(opened.evaluate("document.querySelector('#ring .left').style.strokeDasharray"))
        opened.page.wait_for_timeout(40)
    assert 1 <= len(shares - {""}) <= 3


def test_with_motion(shown: ShownTable, open_page: Opener) -> None:
    """For who does not mind, what was won comes up in one short movement."""
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url, reduced_motion="no-preference")
    opened.evaluate(
        "() => document.addEventListener('animationstart', () => { window.moved = (window.moved ?? 0) + 1; })"
    )
    shown.show(moments()["reveal"][0], T0)
    opened.beat("won")
    opened.until(lambda: opened.evaluate("window.moved") == 2, "a movement for each of two that won")


def test_with_more_contrast(shown: ShownTable, open_page: Opener) -> None:
    """For who wants more contrast the words get it, and axe agrees."""
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url, contrast="more")
    assert opened.evaluate("getComputedStyle(document.querySelector('#hint')).color") == "rgb(226, 214, 195)"
    assert faults(opened) == []


def test_with_the_readers_colours(shown: ShownTable, open_page: Opener) -> None:
    """With colours of the reader's own every button has an edge, a pressed one another; LEDs stay seen."""
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url, forced_colors="active")
    edge = "node => { const style = getComputedStyle(node); return [style.borderStyle, style.borderWidth]; }"
    assert opened.button(1, KINDS[0]).evaluate(edge) == ["solid", "4px"]
    opened.button(1, KINDS[0]).hover()
    opened.page.mouse.down()
    assert opened.button(1, KINDS[0]).evaluate(edge) == ["double", "6px"]
    opened.page.mouse.up()
    assert opened.page.locator(".seat .led").first.evaluate(edge)[0] == "solid"


def test_at_twice_the_size(shown: ShownTable, open_page: Opener) -> None:
    """At 200 % on a laptop everything can be reached, by scrolling down only."""
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url, viewport={"width": 683, "height": 384}, device_scale_factor=2)
    assert opened.evaluate("document.documentElement.scrollWidth") <= 683
    assert len(boxes(opened, ".contact")) == 3
    opened.page.locator("#told").scroll_into_view_if_needed()
    assert all(box["bottom"] <= 384 for box in boxes(opened, "#simulated"))


def test_names_and_landmarks(shown: ShownTable, open_page: Opener) -> None:
    """Every button has the name of what it is; the page has its language, its landmarks and its heading."""
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url)
    names = opened.evaluate("[...document.querySelectorAll('.contact')].map(each => each.ariaLabel)")
    for seat in SEATS:
        for kind in KINDS:
            assert any(name.startswith(f"Seat {seat}: {kind.value}, key ") for name in names)
    assert "Seat 1: pen, key 1, 2 won" in names
    assert opened.evaluate("document.documentElement.lang") == "en"
    for selector in ("header", "main", "aside", "h1", "[role=status][aria-live=polite]"):
        assert opened.page.locator(selector).count() == 1, selector
    assert opened.page.locator(".seat[role=group]").count() == 5
    opened.page.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.className") == "skip"
    outline = opened.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


def test_what_is_read_aloud(shown: ShownTable, open_page: Opener) -> None:
    """Only what matters is read aloud: a seat that is taken, a round, a reveal, an end; not every throw."""
    shown.show(*moments()["attract-0"][:2])
    opened = open_page(shown.url)
    opened.evaluate(
        """() => {
            window.said = [];
            const live = document.getElementById("announced");
            new MutationObserver(() => window.said.push(live.textContent)).observe(live, {childList: true});
        }"""
    )
    for name, words in (
        ("lobby-one", "One more is needed."),
        ("throw", "Round 3. Throw."),
        ("countdown-5", "5 seconds."),
        (
            "reveal",
            "Seat 1 pen, seat 2 beetle, seat 3 beetle, seat 4 page, seat 5 page. "
            "Seats 4 and 5 win with pages.",
        ),
        ("match-over-three", "Seat 4 wins the match: three pages."),
    ):
        shown.show(*moments()[name][:2])
        opened.until(
            lambda opened=opened, words=words: opened.evaluate("window.said.at(-1)") == words, f"“{words}”"
        )
    assert len(opened.evaluate("window.said")) <= 6


def test_simulated_is_always_said(serve: Server, open_page: Opener) -> None:
    """The mark stands on a simulated table in every arrangement, after scrolling too, and on no other."""
    for viewport in (LAPTOP, PHONE):
        shown = serve(ShownTable())
        shown.show(*moments()["throw"][:2], told=["Seat 1 is taken"] * 12)
        opened = open_page(shown.url, viewport=viewport)
        assert opened.text("#simulated") == "SIMULATED"
        opened.evaluate("window.scrollTo(0, 10000)")
        (mark,) = boxes(opened, "#simulated")
        assert 0 <= mark["top"] < mark["bottom"] <= viewport["height"]
    assert not opened.page.locator("#stamps").is_visible()
    for viewport in (LAPTOP, PHONE):
        settings = PageSettings(port=0, simulated=False, stamps="stamps by the kernel")
        shown = serve(ShownTable(settings, press=False))
        shown.show(*moments()["throw"][:2])
        opened = open_page(shown.url, viewport=viewport)
        assert not opened.page.locator("#simulated").is_visible()
        assert opened.text("#stamps") == "Presses have stamps by the kernel."
        (mark,) = boxes(opened, "#stamps")
        assert 0 <= mark["left"] < mark["right"] <= viewport["width"]
        assert faults(opened) == []


def test_nothing_moves_under_a_finger(shown: ShownTable, open_page: Opener) -> None:
    """On a small screen the own buttons stay where they are through a whole round."""
    places = set()
    opened = None
    for name in ("lobby-two", "throw", "countdown-5", "reveal", "match-over-three"):
        view, at, _ = moments()[name]
        shown.show(view, at)
        opened = opened or open_page(shown.url, viewport=PHONE)
        opened.phase(view.phase.value)
        places.add(tuple(round(box["top"]) for box in boxes(opened, ".contact")))
    assert len(places) == 1
