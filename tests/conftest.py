"""Options that the whole test run knows."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# A shared machine stands still for a second now and then: no example fails for having taken long.
settings.register_profile("heek", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("heek")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--renew-golden",
        action="store_true",
        help="write the golden pictures of the screens anew instead of comparing with them",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several workers all that starts browsers or whole demonstrations runs on one of them, in a row.

    Two browsers at once on two cores make each other late, and what they show with them. First of all hooks:
    xdist reads the groups in this very one.
    """
    for item in items:
        if "browser" in item.path.parts or item.path.name == "test_demo.py":
            item.add_marker(pytest.mark.xdist_group("browser"))
