"""The photo finish in a browser: by axe's rules, from a phone to a wall, without asking anybody else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from heek.cli.photo_finishes import ReplayedMatches
from heek.clock import MILLISECOND
from heek.fairness.figures import Fairness
from heek.kinds import Kind
from heek.simulator.runner import simulate
from heek.simulator.story import read
from tests.web.browser.conftest import LAPTOP, PHONE, Opener
from tests.web.browser.test_reach import faults
from tests.web.serving import serving

STORY = Path(__file__).parents[2] / "photo_finish" / "round.jsonl"
CONTROLLER = Path(__file__).parents[3] / "controller"
MATCH = "df6af1d8-303e-41cd-84bb-86c3d1c42710"
WALL = {"width": 3840, "height": 2160}


@pytest.mark.parametrize("viewport", [PHONE, LAPTOP, WALL], ids=["phone", "laptop", "wall"])
def test_a_visitor_finds_a_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_page: Opener, viewport: dict[str, int]
) -> None:
    """From the table by links alone; nothing sticks out, all of it can be read and touched."""
    monkeypatch.setenv("PYTHONPATH", str(CONTROLLER))
    with ThreadPoolExecutor(1) as elsewhere:  # playwright's loop is on this thread
        elsewhere.submit(simulate, read(STORY), seed=1, state_dir=tmp_path).result()
    photos = ReplayedMatches(tmp_path)
    with serving(photo_finishes=photos) as served:
        opened = open_page(f"http://127.0.0.1:{served.port}/", viewport=viewport)
        page = opened.page
        for link in ("Photo finish", MATCH[:8], "Round 2"):
            target = page.get_by_role("link", name=link).first
            box = target.bounding_box()
            assert box is not None
            assert box["height"] >= 43.5, link
            target.click()
            page.wait_for_load_state()
        assert page.url.endswith(f"/photofinish/{MATCH}/2")
        assert page.locator(".row").count() == 4
        # The ring about what counted stands where the words say: 1.37 s after the opening.
        ring = page.locator("svg.lane circle.thrown").first.bounding_box()
        lane = page.locator("svg.lane").first.bounding_box()
        assert ring is not None
        assert lane is not None
        share = (ring["x"] + ring["width"] / 2 - lane["x"]) / lane["width"]
        assert share == pytest.approx(1.37 / (6.0 * 13 / 12), abs=0.01)
        # Two buttons at once: neither mark lies on the other.
        pen, beetle = (
            page.locator(".row").nth(1).locator(f"svg.lane use.{each}").first.bounding_box()
            for each in ("pen", "beetle")
        )
        assert pen is not None
        assert beetle is not None
        assert beetle["y"] >= pen["y"] + pen["height"]
        assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
        assert faults(opened) == []
        page.go_back()
        page.get_by_role("link", name="The table").click()
        page.wait_for_selector("body[data-link=live]")
        page.goto("about:blank")
    photos.close()


def test_figures_of_fairness_fit_a_phone(open_page: Opener) -> None:
    """Every column of both tables is in sight on a phone held upright."""
    figures = Fairness("callback")
    figures.closed(0, 1, Kind.BEETLE)
    figures.judged(0, 4 * MILLISECOND)
    told = figures.report((1,), {})
    with serving(fairness=lambda: (told, [])) as served:
        page = open_page(f"http://127.0.0.1:{served.port}/", viewport=PHONE).page
        page.goto(f"http://127.0.0.1:{served.port}/fairness")
        hidden = "[...document.querySelectorAll('.wide')].map(each => each.scrollWidth - each.clientWidth)"
        assert page.evaluate(hidden) == [0, 0]
        page.goto("about:blank")
