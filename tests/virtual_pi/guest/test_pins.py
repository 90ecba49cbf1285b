"""Pins as the kernel has them: a line that is taken, a chip with another number, LEDs and their end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from heek.wiring.pin_map import DEFAULT_STATIONS
from tests.virtual_pi.simulated_chip import HEADER_LINES, SimulatedChip
from tests.virtual_pi.story_player import buttons, table_chip
from tests.virtual_pi.table_daemon import NotReady, TableDaemon

LEDS = {station.seat: station.led for station in DEFAULT_STATIONS}
PENS = {station.seat: station.pen for station in DEFAULT_STATIONS}

HOLDER = """
import lgpio, sys, time
chip = lgpio.gpiochip_open(0)
lgpio.gpio_claim_input(chip, int(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


def test_a_line_that_another_program_holds(
    tmp_path: Path, chip: SimulatedChip, table: Callable[..., TableDaemon]
) -> None:
    """The table does not start; one line says which line it is, whose button, and what to do (F011)."""
    taken = DEFAULT_STATIONS[2].page
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(taken)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "LG_WD": str(tmp_path)},
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        daemon = table(warm=False)
        with pytest.raises(NotReady):
            daemon.start()
    finally:
        holder.kill()
        holder.wait()
    assert daemon.ended() == 1
    # That debugging is on is told as well.
    said = [line for line in daemon.said if not line.startswith(("DEBUG", "WARNING log.level is debug"))]
    assert len(said) == 1, said
    assert f"GPIO{taken} (button page of seat 3)" in said[0]
    assert "it is held by “lg”: a program that uses lgpio" in said[0]
    assert "stop that" in said[0]
    # Nothing of a start that failed stays lit.
    assert not any(chip.levels(LEDS.values()).values())


def test_the_headers_chip_under_another_number(table: Callable[..., TableDaemon]) -> None:
    """A chip that the firmware has comes first; the table finds the header's by its label all the same."""
    with (
        SimulatedChip("expander", label="raspberrypi-exp-gpio", lines=8) as other,
        table_chip("header") as header,
    ):
        assert (other.number, header.number) == (0, 1)
        assert header.lines == HEADER_LINES
        daemon = table()
        daemon.start()
        header.pull(PENS[2], False)
        assert daemon.has_told("seat_taken", seat=2)
        header.pull(PENS[2], True)
        assert daemon.stop() == 0


def test_leds_on_pwm_go_out_at_the_end(
    chip: SimulatedChip, table: Callable[..., TableDaemon], figure: Callable[[str, str], None]
) -> None:
    """Free is dark, taken is dim, thrown is full; after SIGTERM all are dark."""
    daemon = table({"seats.lobby_s": 100})
    daemon.start()
    dark = chip.levels(LEDS.values())
    assert not any(dark.values())
    for name in ("seat_taken", "seat_ready"):
        press(chip, PENS[1])
        assert daemon.has_told(name, seat=1)
    time.sleep(0.3)
    dim = chip.share_high(LEDS[1], 1.0)
    figure("LED dim at 0.12, share of time lit", f"{dim:.2f}")
    assert 0.02 < dim < 0.5
    assert chip.share_high(LEDS[2], 0.2) == 0.0
    for name in ("seat_taken", "seat_ready", "round_opened"):
        press(chip, PENS[2])
        assert daemon.has_told(name)
    time.sleep(0.5)
    press(chip, PENS[1])
    assert daemon.has_told("throw_locked", seat=1)
    time.sleep(0.3)
    assert chip.share_high(LEDS[1], 0.5) == 1.0
    assert daemon.stop() == 0
    assert not any(chip.levels(LEDS.values()).values())


def test_leds_on_plain_pins_that_are_lit_by_low(
    table: Callable[..., TableDaemon], figure: Callable[[str, str], None]
) -> None:
    """Dark before, lit while thrown; and what the kernel leaves of that after kill -9."""
    with SimulatedChip(high=(*buttons(), *LEDS.values())) as chip:
        daemon = table(
            {"stations.led_active_high": False, "stations.led_pwm": False, "seats.lobby_s": 100}, warm=False
        )
        daemon.start()
        assert all(chip.levels(LEDS.values()).values())
        for seat in (1, 2):
            press(chip, PENS[seat])
            assert daemon.has_told("seat_taken", seat=seat)
        for seat in (1, 2):
            press(chip, PENS[seat])
        assert daemon.has_told("round_opened")
        time.sleep(0.5)
        press(chip, PENS[1])
        assert daemon.has_told("throw_locked", seat=1)
        time.sleep(0.3)
        assert chip.share_high(LEDS[1], 0.2) == 0.0
        assert chip.level(LEDS[4])
        daemon.kill()
        lit = [seat for seat, line in LEDS.items() if not chip.level(line)]
        figure("LEDs lit after kill -9", f"{lit or 'none'} (this kernel lets go of a dead process's lines)")
        # The kernel takes the lines back from a process that dies, so they hang on what is wired to them.
        assert lit == []


def press(chip: SimulatedChip, line: int) -> None:
    """A finger: 50 ms down, and long enough up to be a press again."""
    chip.pull(line, False)
    time.sleep(0.05)
    chip.pull(line, True)
    time.sleep(0.05)
