"""Whether the virtual Pi has passed these very sources; `make test-virtual-pi` boots it."""

from __future__ import annotations

import os

import pytest

from tests.virtual_pi.parts import missing
from tests.virtual_pi.running import last_verdict, sources_digest


def test_the_virtual_pi_has_passed_these_sources() -> None:
    """The last run of `make test-virtual-pi` was of these sources, whole, and green; else one skip says why.

    In CI, where `.ci/run` has just run it, there is no excuse.
    """
    verdict = last_verdict()
    if verdict is None or not verdict.whole or verdict.digest != sources_digest():
        why = missing() or "not run on these sources yet: make test-virtual-pi"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    assert verdict.failed == ()
    assert verdict.skipped == ()
    assert verdict.missing == ()
    assert verdict.ok
