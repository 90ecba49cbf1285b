"""Joins the guest to `--table=virtual-pi`: a pytest plugin, for `-p`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heek.testing.rig import Level


def pytest_heek_level(name: str) -> Level | None:
    if name != "virtual-pi":
        return None
    from tests.virtual_pi.table_level import VirtualPiLevel

    return VirtualPiLevel()
