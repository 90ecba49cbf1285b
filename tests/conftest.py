"""Options that the whole test run knows."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--renew-golden",
        action="store_true",
        help="write the golden pictures of the screens anew instead of comparing with them",
    )
