"""The one question that this plugin asks of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from heek.testing.rig import Level


@pytest.hookspec(firstresult=True)
def pytest_heek_level(name: str, config: pytest.Config) -> Level | None:
    """Return the kind of table that `--table=NAME` means, or None if it is not yours."""
