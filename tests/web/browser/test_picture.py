"""What the page shows is what the table shows: the OLED dot for dot, LEDs in step, the time, the words."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from heek.clock import MILLISECOND, SECOND, Instant
from heek.kinds import SEATS, Kind
from heek.session.phases import Phase
from heek.session.view import View
from heek.stations.lamps import lamp
from tests.display.catalogue import HELD, T0, five, moments, table
from tests.web.browser.conftest import PHONE, PLAYED, Opener, Server
from tests.web.browser.hands import Opened, settled, thrown
from tests.web.browser.shown import ShownTable
from tests.web.table_for_pages import TableWithPage

PICTURES = (
    "attract-0",
    "lobby-long-names",
    "throw",
    "countdown-4",
    "reveal",
    "match-over-three",
    "void-idle",
)
LATE = 120 * MILLISECOND
"""How far behind the table a page may be on a busy machine before an LED counts as wrong."""


def test_the_oled_dot_for_dot(shown: ShownTable, open_page: Opener) -> None:
    """The page's OLED has the table's own picture, every pixel of it, one after the other."""
    opened = None
    for name in PICTURES:
        shown.show(*moments()[name][:2])
        opened = opened or open_page(shown.url)
        opened.until(lambda opened=opened: opened.oled() == shown.picture, f"the picture {name}")


def test_the_daemons_own_picture(table: TableWithPage, open_page: Opener) -> None:
    """With a real table behind it the page ends up with the picture that the daemon has."""
    opened = open_page(table.url)
    opened.page.keyboard.press("Digit1")
    opened.phase("lobby")
    opened.until(lambda: opened.oled() == table.daemon.image.tobytes(), "the daemon's picture")


@pytest.mark.parametrize("ratio", [1, 1.5, 2, 3])
def test_the_oled_stands_on_whole_pixels(shown: ShownTable, open_page: Opener, ratio: float) -> None:
    """A dot is a whole number of the screen's pixels wide, and begins on one; nothing is smoothed."""
    shown.show(*moments()["countdown-5"][:2])
    opened = open_page(shown.url, device_scale_factor=ratio)
    for width, height in ((1366, 768), (1366, 643), (1920, 1080), (768, 1024), (360, 740)):
        opened.resize(width, height)
        whole = opened.until(lambda width=width: whole_pixels(opened, width, ratio), f"{width} x {height}")
        assert whole


def whole_pixels(opened: Opened, width: int, ratio: float) -> bool:
    """Does the OLED lie on whole pixels, large enough to be read?"""
    left, top, wide, high, rendering = opened.evaluate(
        """() => {
            const canvas = document.getElementById("screen");
            const box = canvas.getBoundingClientRect();
            const style = getComputedStyle(canvas);
            return [box.left, box.top, box.width, box.height, style.imageRendering];
        }"""
    )
    scale = wide * ratio / 128
    return bool(
        rendering == "pixelated"
        and scale >= (2 if ratio * width > 640 else 1)
        and abs(scale - round(scale)) < 0.01
        and abs(high * ratio / 64 - scale) < 0.01
        and all(abs(edge * ratio - round(edge * ratio)) < 0.1 for edge in (left, top))
    )


LEDS = (
    "lobby-unconfirmed",
    "throw",
    "countdown-4",
    "reveal",
    "match-over-three",
    "fault-stuck",
    "leaving-throw-3",
)


def test_the_leds_keep_step(shown: ShownTable, open_page: Opener) -> None:
    """Each LED has the level that the table's own has at that time: blinking, breathing or still."""
    opened = None
    for name in LEDS:
        view = shown.show(*moments()[name][:2])
        opened = opened or open_page(shown.url)
        opened.until(lambda opened=opened: opened.oled() == shown.picture, name)
        right = 0
        for _ in range(20):
            before = shown.now()
            levels = opened.evaluate(
                "[...document.querySelectorAll('.seat .led')].map(led => Number(led.dataset.level))"
            )
            after = shown.now()
            right += all(levels[seat - 1] in possible(view, seat, before - LATE, after) for seat in SEATS)
            opened.page.wait_for_timeout(17)
        # A machine that is busy with other things may be late more than once.
        assert right >= 15, name


def possible(view: View, seat: int, first: Instant, last: Instant) -> set[float]:
    """Every level that the LED of `seat` has between two instants."""
    levels = set()
    now: Instant | None = first
    while now is not None and now <= last:
        lit = lamp(view, seat, now)
        levels.add(round(lit.level, 6))
        now = lit.until
    return levels


def test_a_led_really_blinks(shown: ShownTable, open_page: Opener) -> None:
    """While time runs out the LED of who has not thrown is seen lit and dark in turn, below 3 Hz."""
    view, at, _ = moments()["countdown-4"]
    shown.show(view, at)
    opened = open_page(shown.url)
    changes = opened.evaluate(
        """() => new Promise(done => {
            const led = document.querySelector('.seat[data-seat="1"] .led');
            let changes = 0;
            new MutationObserver(() => { changes += 1; })
                .observe(led, {attributes: true, attributeFilter: ["data-level"]});
            setTimeout(() => done(changes), 1500);
        })"""
    )
    assert 4 <= changes <= 9


def test_a_still_table_costs_nothing(shown: ShownTable, open_page: Opener) -> None:
    """With every LED steady and no countdown the page asks for no frame and runs no animation."""
    shown.show(table_at_rest(), T0)
    opened = open_page(shown.url)
    opened.page.wait_for_timeout(300)
    frames = opened.evaluate(
        """() => new Promise(done => {
            let frames = 0;
            const real = window.requestAnimationFrame;
            window.requestAnimationFrame = callback => { frames += 1; return real(callback); };
            setTimeout(() => done(frames + document.getAnimations().length), 400);
        })"""
    )
    assert frames == 0


def table_at_rest() -> View:
    """Nothing moves: attract, all free."""
    return moments()["attract-0"][0]


@pytest.mark.fault("F041")
def test_the_ring_is_deadline_minus_now(shown: ShownTable, open_page: Opener) -> None:
    """The countdown's ring shows the share of time that is left by the table's clock, all the way down."""
    view = shown.show(moments()["countdown-5"][0], T0)
    opened = open_page(shown.url)
    shares = []
    right = 0
    for _ in range(12):
        before = left(view, shown.now())
        share = ring(opened)
        right += left(view, shown.now()) - 0.02 <= share <= before + LATE / (5 * SECOND)
        shares.append(share)
        opened.page.wait_for_timeout(60)
    # A machine that is busy with other things may be late more than once.
    assert right >= 8
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[-1]


def left(view: View, now: Instant) -> float:
    assert view.until is not None
    return (view.until - now) / (view.until - view.since)


def ring(opened: Opened) -> float:
    """How much of the ring burns, 0 to 1."""
    dashes = opened.evaluate("document.querySelector('#ring .left').style.strokeDasharray")
    return float(dashes.split(" ")[0].rstrip(",px")) / 1000


@pytest.mark.fault("F041")
def test_the_countdown_after_a_sleep(shown: ShownTable, open_page: Opener) -> None:
    """A page that was frozen in the middle of a countdown is right again when it wakes."""
    view = shown.show(moments()["countdown-5"][0], T0)
    opened = open_page(shown.url)
    devtools = opened.page.context.new_cdp_session(opened.page)
    devtools.send("Page.setWebLifecycleState", {"state": "frozen"})
    asleep_from = time.monotonic()
    while time.monotonic() < asleep_from + 1.5:
        opened.page.wait_for_timeout(50)
    devtools.send("Page.setWebLifecycleState", {"state": "active"})

    def right() -> bool:
        # The ring was read at some instant between the two: a slow driver is no fault of the page.
        most = left(view, shown.now())
        share = ring(opened)
        return left(view, shown.now()) - 0.04 < share < most + 0.04

    # The page is right at once; a busy machine's browser and driver are not.
    opened.until(right, "the right rest", patience_s=10)


TWO_CLOCKS = """
(() => {
    // Both of the browser's clocks, each of which may have gone on while its timers stood.
    const ahead = window.ahead = {date_ms: 0, monotonic_ms: 0};
    const date = Date.now.bind(Date), monotonic = performance.now.bind(performance);
    Date.now = () => date() + ahead.date_ms;
    performance.now = () => monotonic() + ahead.monotonic_ms;
    window.really_ms = monotonic;
})()
"""


@pytest.mark.fault("F041")
@pytest.mark.parametrize("monotonic_s", [40, 0], ids=["a frozen tab", "a machine that slept"])
def test_the_countdown_after_forty_seconds_without_timers(
    serve: Server, open_page: Opener, monotonic_s: int
) -> None:
    """F041: within a second of waking the ring shows what is left, and the table has said nothing new."""
    shown: ShownTable = serve(ShownTable(beat_s=1000.0))
    shown.show(moments()["countdown-60"][0], T0)
    opened = open_page(shown.url, script=TWO_CLOCKS)
    opened.until(lambda: ring(opened) > 0.9, "the whole ring")
    devtools = opened.page.context.new_cdp_session(opened.page)
    devtools.send("Page.setWebLifecycleState", {"state": "frozen"})
    opened.evaluate(f"Object.assign(ahead, {{date_ms: 40000, monotonic_ms: {1000 * monotonic_s}}})")
    shown.let_pass(40 * SECOND)
    devtools.send("Page.setWebLifecycleState", {"state": "active"})
    took_ms = opened.evaluate(
        """() => new Promise((done) => {
            const woken = really_ms();
            const look = () => {
                const left = parseFloat(document.querySelector("#ring .left").style.strokeDasharray);
                if (left < 340 || really_ms() > woken + 8000) done(really_ms() - woken);
                else setTimeout(look, 10);
            };
            look();
        })"""
    )
    assert took_ms < 1000
    assert 0.2 < ring(opened) < 0.34


@pytest.mark.fault("F041")
def test_no_page_can_stop_a_round(tmp_path: Path, serve: Server, open_page: Opener) -> None:
    """F041: the page that started the round is killed; another shows the rest, the table ends it."""
    keys = PLAYED | {"ahyoheek.countdown_s": 4, "ahyoheek.reveal_s": 20}
    table: TableWithPage = serve(TableWithPage(tmp_path, **keys))
    first, other = open_page(table.url), open_page(table.url)
    for seat in (1, 2, 3):
        first.button(seat, Kind.PEN).click()
    for seat in (1, 2, 3):
        first.button(seat, Kind.PEN).click()
    settled(first, table)
    first.button(1, Kind.PEN).click()
    first.button(2, Kind.PAGE).click()
    first.until(lambda: thrown(other, 1) and thrown(other, 2), "two throws on the other page")
    assert table.daemon.shown.phase is Phase.COUNTDOWN
    deadline = table.daemon.shown.until
    assert deadline is not None
    first.page.close(run_before_unload=False)
    assert 0 < ring(other) < 1
    other.phase("reveal")
    closed_at = table.daemon.shown.since
    settle = table.config.session_settings().settle
    assert closed_at == deadline + settle
    assert [row.seat for row in table.daemon.shown.seats if row.won_round] == [1]


@pytest.mark.fault("F041")
def test_the_tables_clock_in_the_browser(shown: ShownTable, open_page: Opener) -> None:
    """The page takes the least late word for the table's time, and starts anew after a sleep or a restart."""
    shown.show(*moments()["attract-0"][:2])
    opened = open_page(shown.url)
    told = opened.evaluate(
        """async () => {
            const {TableClock} = await import("/static/table_clock.js");
            let now_ms = 1000;
            const clock = new TableClock(() => now_ms);
            const told = [clock.known];
            const hear = (at_ms, says) => { now_ms = at_ms; clock.hear(says); told.push(clock.now()); };
            hear(1000, 51.0);     // 50 s ahead
            hear(2000, 51.6);     // 400 ms late: the first was better
            hear(3000, 53.2);     // less late still
            hear(4000, 94.0);     // this machine slept for 40 s
            hear(5000, 0.5);      // another table
            now_ms = 5500;
            told.push(clock.now());
            return told;
        }"""
    )
    assert told == [False, 51.0, 52.0, 53.2, 94.0, 0.5, 1.0]


def test_the_reveal_is_one_beat(shown: ShownTable, open_page: Opener) -> None:
    """All throws at once, then the winners, then what was won; nothing of a later beat comes earlier."""
    shown.show(*moments()["throw"][:2])
    opened = open_page(shown.url)
    opened.evaluate(
        """() => {
            window.seen = [];
            const look = () => window.seen.push([
                document.body.dataset.beat,
                document.querySelectorAll(".contact[data-threw]").length,
                document.querySelectorAll(".seat[data-won]").length,
                document.querySelectorAll(".pips [data-fresh]").length,
                document.querySelectorAll(".pips [data-lit]").length,
            ]);
            new MutationObserver(look).observe(
                document.body, {attributes: true, attributeFilter: ["data-beat"]});
        }"""
    )
    shown.show(moments()["reveal"][0], T0)
    opened.beat("won")
    seen = opened.evaluate("window.seen")
    held = sum(collection.total for collection in HELD)
    # The observer looks when all of one drawing is done.
    assert [row[0] for row in seen] == ["throws", "winners", "won"]
    assert seen[0][1:] == [5, 0, 0, held]
    assert seen[1][1:] == [5, 2, 0, held]
    assert seen[2][1:] == [5, 2, 2, held + 2]


def test_sudden_death_wins_nothing_to_keep(shown: ShownTable, open_page: Opener) -> None:
    """Sudden death lights its winner, and adds nothing to a collection."""
    view, _, _ = moments()["reveal-sudden-death"]
    shown.show(view, view.since + (view.until - view.since) * 3 // 4)
    opened = open_page(shown.url)
    opened.beat("won")
    assert opened.page.locator(".pips [data-fresh]").count() == 0
    assert "watches" in opened.place(1).inner_text()


@pytest.mark.parametrize("target", [1, 3, 5, 9])
def test_as_many_lights_as_it_takes(shown: ShownTable, open_page: Opener, target: int) -> None:
    """Round each button stand as many lights as it takes to win, and none lies on another."""
    shown.show(replace(moments()["throw"][0], target=target), T0)
    opened = open_page(shown.url)
    assert opened.page.locator(".seat .pips").count() == 15
    boxes = opened.evaluate(
        """() => [...document.querySelectorAll('.seat[data-seat="1"] .pips i')].map(light => {
            const box = light.getBoundingClientRect();
            return [box.left + box.width / 2, box.top + box.height / 2, light.offsetWidth];
        })"""
    )
    assert len(boxes) == 3 * target
    for index, (x, y, size) in enumerate(boxes):
        for other_x, other_y, _ in boxes[index + 1 :]:
            assert ((x - other_x) ** 2 + (y - other_y) ** 2) ** 0.5 > size * 0.9


SENTENCES = {
    "attract-0": "Press any button to sit down.",
    "lobby-one": "One more is needed.",
    "lobby-two": "The match begins in 8 seconds.",
    "lobby-unconfirmed": "Press at your seat to play again.",
    "throw": "Throw: press pen, page or beetle.",
    "countdown-5": "Throw before the ring is empty.",
    "reveal": "Seats 4 and 5 win with pages.",
    "reveal-no-winner": "Nobody wins this round.",
    "match-over-three": "Seat 4 wins the match: three pages.",
    "match-over-walkover": "Seat 3 wins the match: the others have left.",
    "void-idle": "The match is void: nobody threw for too long.",
    "resume": "The power was cut. Press to go on.",
}


def test_one_sentence_says_what_to_do(shown: ShownTable, open_page: Opener) -> None:
    """Every state has its one sentence, and the title of the tab changes with it."""
    opened = None
    titles = set()
    for name, words in SENTENCES.items():
        view, at, _ = moments()[name]
        shown.show(view, at)
        opened = opened or open_page(shown.url)
        opened.until(
            lambda opened=opened, words=words: opened.text("#sentence") == words, f"{name}: “{words}”"
        )
        titles.add(opened.page.title())
    assert len(titles) >= 7


def test_every_moment_is_drawn(shown: ShownTable, open_page: Opener) -> None:
    """No moment in the catalogue breaks the page, and each leaves a sentence and five places on it."""
    opened = None
    for name, (view, at, _) in moments().items():
        if name == "lobby-hard-name-3":
            continue  # Half a character, which JSON cannot carry; it never leaves the table.
        shown.show(view, at)
        opened = opened or open_page(shown.url, viewport=PHONE)
        opened.until(lambda opened=opened: opened.oled() == shown.picture, name)
        assert opened.text("#sentence"), name
        assert "undefined" not in opened.text("body"), name
        assert "NaN" not in opened.text("body"), name


def test_faults_are_told(shown: ShownTable, open_page: Opener) -> None:
    """A stuck button is marked at its seat, and a table that cannot save says so, each with what to do."""
    shown.show(*moments()["fault-both"][:2])
    opened = open_page(shown.url)
    assert "cannot save" in opened.text("#fault")
    assert "kept in memory until the card takes it again; a power cut would lose it" in opened.text("#fault")
    assert "Stuck: seat 1 pen and page. Play on with the other buttons." in opened.text("#fault")
    assert "stuck" in (opened.button(1, Kind.PEN).get_attribute("aria-label") or "")
    shown.show(*moments()["attract-0"][:2])
    opened.until(lambda: not opened.page.locator("#fault").is_visible(), "the fault is mended")


def test_faulty_buttons_are_told_apart(shown: ShownTable, open_page: Opener) -> None:
    """A button that is ignored and one that is worn have a mark, a word at the seat, and what to do."""
    shown.show(*moments()["fault-of-every-kind"][:2])
    opened = open_page(shown.url)
    told = opened.text("#fault")
    assert "Stuck: seat 1 pen." in told
    assert "Ignored, as no finger presses like that: seat 1 page. Play on with the other buttons." in told
    assert "Worn: seat 1 beetle; seat 4 pen. It counts; have the switch changed." in told
    for kind, word in ((Kind.PEN, "stuck"), (Kind.PAGE, "ignored"), (Kind.BEETLE, "worn")):
        assert (opened.button(1, kind).get_attribute("aria-label") or "").endswith(f", {word}")
    assert opened.button(1, Kind.BEETLE).locator(".worn-mark").is_visible()
    assert not opened.button(1, Kind.BEETLE).locator(".stuck-mark").is_visible()
    assert opened.button(1, Kind.PAGE).locator(".stuck-mark").is_visible()
    assert "pen stuck; page ignored; beetle worn" in opened.text("body")


def test_names_are_words(shown: ShownTable, open_page: Opener) -> None:
    """A name that is HTML is shown as it is written, and makes nothing on the page."""
    evil = "<img src=x onerror=alert(1)>"
    view = table(moments()["lobby-one"][0].phase, five(name=evil), until_s=10)
    shown.show(view, T0, told=[f"{evil} signs in"], name=f"{evil}</title>")
    opened = open_page(shown.url)
    assert evil in opened.place(2).inner_text()
    assert evil in opened.text("#told")
    assert opened.page.locator("img[src=x]").count() == 0
