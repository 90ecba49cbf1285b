"""The page of fairness over HTTP: before the first match, afterwards, and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heek.clock import MILLISECOND
from heek.fairness.figures import Fairness
from heek.fairness.findings import shortcomings
from heek.kinds import Kind
from tests.web.serving import serving


def report(**rejected: int) -> Mapping[str, Any]:
    fairness = Fairness("callback")
    fairness.closed(0, 3, Kind.BEETLE)
    fairness.judged(0, 4 * MILLISECOND)
    return fairness.report((2, 3), {(3, Kind.BEETLE, reason): count for reason, count in rejected.items()})


def test_before_the_first_match() -> None:
    """There is nothing to show yet, and the page says so."""
    with serving(fairness=lambda: (None, [])) as served:
        page = served.browser().get("/fairness")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "No match is over" in page.body.decode()
        assert served.browser().get("/fairness.json").json == {"report": None, "shortcomings": []}


def test_after_a_match() -> None:
    """A row for each button that was pressed, whose stamps they are, what came to nothing, what is wrong."""
    told = report(bounce=7, lost=2)
    with serving(fairness=lambda: (told, shortcomings(told, 30))) as served:
        body = served.browser().get("/fairness").body.decode()
        assert "Seat 3 beetle" in body
        assert "Seat 2" not in body
        assert "<td>4.00</td>" in body
        assert "the pin library has no stamps" in body
        assert "bounce of a switch" in body
        assert "2 edges never came" in body
        assert "No press was judged unfairly" not in body
        answer = served.browser().get("/fairness.json").json
        assert answer["report"] == told
        assert len(answer["shortcomings"]) == 1


def test_nothing_was_wrong() -> None:
    """A table without shortcomings says of the presses, not of itself, that they were judged fairly."""
    with serving(fairness=lambda: (report(), [])) as served:
        assert "No press was judged unfairly" in served.browser().get("/fairness").body.decode()


def test_a_table_without_figures_has_no_such_page() -> None:
    """What is not there is not refused: it does not exist."""
    with serving() as served:
        assert served.browser().get("/fairness").status == 404
