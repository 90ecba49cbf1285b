"""The OLED's wire in trouble: what the table says of it, and that it comes back from each."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.virtual_pi.panel_controller import PanelController
from tests.virtual_pi.panel_wire import Happened, PanelWire
from tests.virtual_pi.simulated_chip import SimulatedChip
from tests.virtual_pi.table_daemon import TableDaemon

WAYS = [
    ("fault", 5, 0, "check the wiring and `i2cdetect -y 1`"),
    ("fault", 110, 0, "check the wiring and `i2cdetect -y 1`"),
    ("address", 0x3D, 0x3C, "something answers at 0x3d: if that is the panel, set address in [[display]]"),
]
"""What is turned to what, and back, and the remedy that is told."""


def test_errors_of_the_bus_are_told_and_overcome(
    chip: SimulatedChip, panel: PanelWire, table: Callable[..., TableDaemon]
) -> None:
    """EIO, a time-out and a panel at another address: each is told once with its remedy, and healed again.

    After each the panel is initialised anew, since nobody can know what it remembers.
    """
    daemon = table()
    daemon.start()
    assert chip.number == 0
    wait_for_picture(panel, daemon)
    for knob, wrong, right, remedy in WAYS:
        before = len(daemon.said)
        panel.turn(knob, wrong)
        number = wrong if knob == "fault" else 121
        assert daemon.hears(f"does not answer (errno {number}", 15, since=before)
        # Nobody hears more than the first of it.
        assert sum("does not answer" in line for line in daemon.said[before:]) == 1
        assert any(remedy in line for line in daemon.said[before:])
        panel.take()
        mark = len(panel.log)
        panel.turn(knob, right)
        assert daemon.hears("the OLED answers again", 20, since=before)
        time.sleep(0.5)
        panel.take()
        anew = PanelController(daemon.driver)
        for record in panel.log[mark:]:
            assert record.what is Happened.WRITTEN
            anew.take(record.data)
        assert anew.initialised
        assert anew.on
        assert anew.unknown == []
        assert any(anew.picture().tobytes())
    assert daemon.stop() == 0


def wait_for_picture(panel: PanelWire, daemon: TableDaemon) -> None:
    """Until the panel shows something."""
    until = time.monotonic() + 15
    controller = PanelController(daemon.driver)
    while time.monotonic() < until:
        for record in panel.take():
            controller.take(record.data)
        if any(controller.picture().tobytes()):
            return
        time.sleep(0.1)
    pytest.fail("the panel stays dark")
