"""Pictures for the README: phone, laptop and wall in the reveal of a five-seat match, and a photo finish.

`python -m tests.web.browser.screenshots controller/heek/web/pictures` plays a match on a real table on mock
pins and looks at it with three browsers; the photo finish is of a story. The pictures show what the pages
show; nothing is drawn into them. How it stands with the KI is the one thing that is given: no KI runs here.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

from heek.cli.photo_finishes import ReplayedMatches
from heek.clock import MILLISECOND, SECOND
from heek.kinds import KINDS, SEATS, Kind
from heek.session.phases import Phase
from heek.simulator.runner import simulate
from heek.simulator.story import parse
from heek.web.doors import PageSettings
from heek.web.state import KiLine
from tests.chromium import ARGUMENTS, installed
from tests.web.browser.test_photo_finish import CONTROLLER, MATCH, STORY
from tests.web.serving import serving
from tests.web.table_for_pages import TableWithPage

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Page

PEN, PAGE, BEETLE = KINDS

SCREENS: dict[str, dict[str, Any]] = {
    "phone": {
        "viewport": {"width": 360, "height": 740},
        "device_scale_factor": 2,
        "has_touch": True,
        "is_mobile": True,
    },
    "laptop": {"viewport": {"width": 1366, "height": 768}},
    "wall": {"viewport": {"width": 1920, "height": 1080}},
}

SAVED_PX = {"phone": 480, "wall": 1280}
"""How wide a picture is saved if not as wide as it was taken: in the README these stand side by side."""

KI = KiLine(
    "http", "up", 0, "14:02", service="The Cavern", counters={"asked": 31, "failed": 0, "strangers": 0}
)
"""As the page of an enrolled table with a link by HTTP has it."""

ROUNDS: tuple[tuple[Kind, ...], ...] = (
    (PEN, PAGE, PAGE, PAGE, PAGE),
    (BEETLE, PAGE, BEETLE, BEETLE, BEETLE),
    (PEN, PEN, BEETLE, PEN, PEN),
    (PAGE, PEN, PAGE, PEN, PAGE),
    (BEETLE, PEN, PEN, PEN, BEETLE),
    (BEETLE, BEETLE, BEETLE, PAGE, BEETLE),
    (BEETLE, PEN, BEETLE, PEN, PEN),
    (PEN, BEETLE, BEETLE, PAGE, PAGE),
)
"""What seats 1 to 5 throw; the last is the worked example of the rules."""

NAMES = ((2, "40220173", "Shorah"), (4, "51770236", "Yeesha"))
PATIENCE_S = 30.0
LIGHT = 70
"""How far apart red, green and blue lie, of 255, in what counts as a light and not as stone."""


ALIGHT = 140
"""How bright the middle of an LED is, of 255, when it burns; when it does not, a third of that."""


def play(table: TableWithPage, look: Callable[[str], None]) -> None:
    """Sit down at all five seats and play; `look` is called in each telling moment, by name."""
    look("attract")
    for seat in SEATS[:4]:
        press(table, seat, PAGE)
    for seat, player, name in NAMES:
        table.call(lambda seat=seat, player=player, name=name: table.daemon.claim(seat, player, name))
    look("lobby")
    press(table, SEATS[-1], PAGE)
    guard = table.config.session_settings().guard + 50 * MILLISECOND
    for number, throws in enumerate(ROUNDS, 1):
        wait(lambda: table.daemon.shown.phase is Phase.THROW, "the round")
        wait(lambda: table.clock.now() > table.daemon.shown.since + guard, "the guard's end")
        for seat in SEATS:
            press(table, seat, throws[seat - 1])
            if seat == 3 and number == len(ROUNDS):
                look("countdown")
        wait(lambda: table.daemon.shown.phase is Phase.REVEAL, "the reveal")
        if number == len(ROUNDS):
            look("reveal")


def press(table: TableWithPage, seat: int, kind: Kind) -> None:
    """A finger, for 80 ms."""
    table.contact(seat, kind, True)
    time.sleep(0.08)
    table.contact(seat, kind, False)
    time.sleep(0.05)


def wait(come: Callable[[], bool], what: str) -> None:
    """Until something has come; raises TimeoutError if it does not."""
    deadline = time.monotonic() + PATIENCE_S
    while not come():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} does not come")
        time.sleep(0.01)


def beaten(page: Page, table: TableWithPage) -> bytes:
    """The page in a reveal, when what was won stands there at rest, and while the winners' LEDs burn."""
    page.wait_for_selector('body[data-beat="won"]')
    since = table.daemon.shown.since
    until = table.daemon.shown.until or since + SECOND
    wait(lambda: table.clock.now() > since + (until - since) // 2 + 500 * MILLISECOND, "the beat")
    while table.clock.now() < until:
        page.wait_for_selector('[data-won] .led[data-level="1"]:visible')
        place = page.locator("[data-won] .led:visible").first.bounding_box()
        picture = page.screenshot()
        # They blink, and a picture takes its time.
        if place is not None and burns(page, picture, place):
            return picture
    raise TimeoutError("the winners' LEDs burn in none of the pictures")


def burns(page: Page, picture: bytes, place: FloatRect) -> bool:
    """Whether the LED at this place is alight in the picture."""
    with Image.open(io.BytesIO(picture)) as opened:
        image = opened.convert("L")
    scale = image.width / page.evaluate("innerWidth")
    x, y = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    return int(image.getpixel((round(x * scale), round(y * scale)))) > ALIGHT


def save(picture: bytes, file: Path, width_px: int | None = None) -> None:
    """A PNG of 256 colours, half the size of the whole one; `width_px` wide, or as it was taken.

    Most of a picture is dark stone, and few lights have to keep their colours: so a third of what the colours
    are chosen from are the lights.
    """
    with Image.open(io.BytesIO(picture)) as opened:
        image = opened.convert("RGB")
    if width_px is not None:
        height_px = round(image.height * width_px / image.width)
        image = image.resize((width_px, height_px), Image.Resampling.LANCZOS)
    dots = image.tobytes()
    lights = b"".join(
        dots[at : at + 3]
        for at in range(0, len(dots), 3)
        if max(dots[at : at + 3]) - min(dots[at : at + 3]) > LIGHT
    )
    rows = len(lights) // 3 // image.width
    chosen_from = image
    if rows:
        strip = Image.frombytes("RGB", (image.width, rows), lights[: rows * image.width * 3])
        times = max(1, image.height // 2 // rows)
        chosen_from = Image.new("RGB", (image.width, image.height + rows * times))
        chosen_from.paste(image, (0, 0))
        for number in range(times):
            chosen_from.paste(strip, (0, image.height + rows * number))
    palette = chosen_from.quantize(256)
    image.quantize(256, palette=palette, dither=Image.Dither.FLOYDSTEINBERG).save(file, optimize=True)


def photo_finish(page: Page, folder: Path) -> bytes:
    """The page of a round in which presses were replaced, came too early and too late."""
    # That an edge is delivered late, or a name looks like markup, is for the tests.
    lines = [line for line in STORY.read_text(encoding="utf-8").splitlines() if '"delivered"' not in line]
    story = parse("\n".join(lines).replace("Shorah <b>", "Shorah").replace("Table 7", "Table 1"), STORY.name)
    with ThreadPoolExecutor(1) as elsewhere:  # playwright's loop is on this thread
        elsewhere.submit(simulate, story, seed=1, state_dir=folder).result()
    photos = ReplayedMatches(folder)
    with serving(photo_finishes=photos) as served:
        page.goto(f"http://127.0.0.1:{served.port}/photofinish/{MATCH}/2")
        picture = page.screenshot()
        page.goto("about:blank")
    photos.close()
    return picture


def main() -> int:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description="pictures of the table's page for the README")
    parser.add_argument("folder", type=Path, help="where they go")
    parser.add_argument("--all", action="store_true", help="also attract, lobby and countdown")
    given = parser.parse_args()
    chromium = installed()
    if chromium is None:
        print("no Chromium on this machine: apt-get install chromium", file=sys.stderr)
        return 1
    from playwright.sync_api import sync_playwright

    given.folder.mkdir(parents=True, exist_ok=True)
    # Matches are run through the rules again in a process of their own, which has to find the package.
    os.environ["PYTHONPATH"] = str(CONTROLLER)
    settings = PageSettings(port=0, ki_url="http://127.0.0.1:8625/")
    with (
        tempfile.TemporaryDirectory() as folder,
        TableWithPage(
            Path(folder), settings, ki=KI, ahyoheek__reveal_s=25, ahyoheek__countdown_s=25
        ) as table,
        sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        pages = {name: browser.new_context(**options).new_page() for name, options in SCREENS.items()}
        for page in pages.values():
            page.goto(table.url)
            page.wait_for_selector("body[data-link=live][data-phase]")

        # To choose the colours takes longer than a moment lasts: that is for afterwards.
        taken: list[tuple[str, Path, bytes]] = []

        def look(moment: str) -> None:
            for name, page in pages.items():
                page.wait_for_selector(f'body[data-phase="{moment}"]')
                if moment == "reveal":
                    taken.append((name, given.folder / f"{name}.png", beaten(page, table)))
                elif given.all:
                    taken.append((name, given.folder / f"{name}-{moment}.png", page.screenshot()))

        play(table, look)
        for name, file, picture in taken:
            save(picture, file, SAVED_PX.get(name))
            print(file)
        page = browser.new_context(**SCREENS["laptop"]).new_page()
        file = given.folder / "photo_finish.png"
        # Flat, and with faint marks: all of its colours are kept.
        with Image.open(io.BytesIO(photo_finish(page, Path(folder) / "story"))) as opened:
            opened.convert("RGB").save(file, optimize=True)
        print(file)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
