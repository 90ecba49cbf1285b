"""What a monitor hears of a table whose card does not keep what happens: it plays on and says so (F047)."""

from __future__ import annotations

import pytest

from heek.web.metrics import KiFigures, read_exposition
from heek.web.state import NOT_SAVING
from tests.web.serving import serving, state, view

SET_ASIDE = "The journal was damaged and is set aside in damaged-1."


@pytest.mark.fault("F047", "F050")
def test_a_monitor_hears_what_is_wrong_with_the_journal() -> None:
    """F047, F050: each fault is a sentence at `/healthz`, with 503, and counted at `/metrics`."""
    with serving(ki_figures=KiFigures) as served:
        browser = served.browser()

        def heard() -> tuple[int, object, float]:
            health = browser.get("/healthz")
            assert health.headers["cache-control"] == "no-store"
            counted = read_exposition(browser.get("/metrics").body.decode())["heek_journal_faults"]
            return health.status, health.json, counted

        well = (200, {"ok": True, "faults": []}, 0)
        assert heard() == well
        served.server.publish(state())
        assert heard() == well
        served.server.publish(state(view(not_saving=True, journal=(SET_ASIDE,))))
        assert heard() == (503, {"ok": False, "faults": [NOT_SAVING, SET_ASIDE]}, 2)
        served.server.publish(state(view(journal=(SET_ASIDE,))))
        assert heard() == (503, {"ok": False, "faults": [SET_ASIDE]}, 1)
        served.server.publish(state())
        assert heard() == well
