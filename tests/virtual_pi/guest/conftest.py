"""One chip, one panel and one table at a time; whatever a test leaves behind is put away before the next."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.virtual_pi import warm_start
from tests.virtual_pi.panel_wire import PanelWire
from tests.virtual_pi.simulated_chip import SimulatedChip
from tests.virtual_pi.story_player import table_chip
from tests.virtual_pi.table_daemon import TableDaemon

FIGURES = Path("/out/figures.jsonl")


def pytest_sessionstart() -> None:
    """Let what all daemons import be imported while the tests are collected."""
    warm_start.get_ready()


@pytest.fixture
def chip() -> Iterator[SimulatedChip]:
    """The header's chip of a table at rest."""
    with table_chip() as one:
        yield one


@pytest.fixture
def panel() -> Iterator[PanelWire]:
    """The OLED's wire; nothing may have been lost on it."""
    with PanelWire() as one:
        lost = one.lost
        yield one
        assert one.lost == lost


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Callable[..., TableDaemon]]:
    """Makes daemons, and ends those that are left; what they said is shown when a test fails."""
    made: list[TableDaemon] = []

    def make(keys: dict[str, object] | None = None, *, warm: bool = True, **options: Any) -> TableDaemon:
        daemon = TableDaemon(tmp_path / f"table-{len(made)}", keys, warm=warm, **options)
        made.append(daemon)
        return daemon

    yield make
    for daemon in made:
        daemon.kill()
        print(f"-- {daemon.state.parent.name} said:", *daemon.said, sep="\n", file=sys.stderr)


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Tells a figure that was measured; the host prints them all at the end."""

    def tell(name: str, value: str) -> None:
        with FIGURES.open("a") as file:
            file.write(json.dumps({"test": request.node.name, "name": name, "value": value}) + "\n")

    return tell


@pytest.fixture
def rpi_gpio() -> dict[str, str]:
    """The environment in which `RPi.GPIO` is rpi-lgpio, on a Pi 4, with the header's chip as number 0."""
    folder = os.environ["HEEK_RPI_LGPIO"]
    paths = [folder, *(each for each in os.environ["PYTHONPATH"].split(":") if not each.endswith("/lgpio"))]
    return {
        "PYTHONPATH": ":".join(paths),
        "RPI_LGPIO_REVISION": "c03114",
        "RPI_LGPIO_CHIP": "0",
    }
