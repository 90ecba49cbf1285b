"""`heek lamps off`: puts every LED out that a table which is gone has left lit.

A process that is killed leaves its outputs as they were: on current kernels a line goes on driving its LED
until somebody takes it. The unit runs this after the table, however that ended (`ExecStopPost=`). So it
works with a broken configuration, ends within `PATIENCE_S` whatever hangs, and touches no running table.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from pathlib import Path
from typing import Any, Final

from heek.cli import FAILED, OK

PATIENCE_S: Final = 5.0
"""Half of what systemd gives the unit for its end."""


def add_to(commands: Any) -> None:
    """Add `lamps off` to the commands."""
    parser = commands.add_parser("lamps", help="put the LEDs out after a table that crashed")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    off = actions.add_parser(
        "off",
        help="make every LED's line dark and let it go",
        description="Makes every LED's line dark and lets it go; works with a configuration that has "
        "mistakes, and leaves a running table alone. Without --config: the LEDs of the pin map.",
    )
    off.add_argument("--config", type=Path, metavar="FILE", help="table.toml")
    off.set_defaults(run=run_off)


def run_off(arguments: argparse.Namespace) -> int:
    """Put the LEDs out; 1 if one may still be lit. Raises BackendError if the pins cannot be had."""
    awaited = [str(arguments.config)]
    watchdog = threading.Timer(PATIENCE_S, _give_up, (awaited,))
    watchdog.daemon = True
    watchdog.start()
    try:
        return _put_out(arguments.config, awaited)
    finally:
        watchdog.cancel()


def _put_out(file: Path | None, awaited: list[str]) -> int:
    from heek.clock import RealClock
    from heek.config.lamp_wiring import lamp_wiring
    from heek.journal.lock import holder
    from heek.stations.gpio import open_factory, put_out

    wiring = lamp_wiring(file)
    awaited[:] = ["the pins"]
    if wiring.note:
        print(f"heek: lamps: {wiring.note}", file=sys.stderr)
    if wiring.backend == "mock":
        print("the LEDs are simulated: there are none to put out")
        return OK
    runs = holder(wiring.state_dir) if wiring.state_dir is not None else None
    if runs is not None:
        print(
            f"heek: lamps: a table runs (pid {runs}) and has its LEDs itself; stop it first", file=sys.stderr
        )
        return FAILED
    factory = open_factory(wiring.backend, wiring.pin_factory, RealClock())
    troubles = put_out(factory, wiring.leds, active_high=wiring.active_high)
    for trouble in troubles:
        print(f"heek: lamps: {trouble}", file=sys.stderr)
    dark = len(wiring.leds) - len(troubles)
    print(f"{dark} of {len(wiring.leds)} LEDs are dark: " + ", ".join(f"GPIO{led}" for led in wiring.leds))
    return FAILED if troubles else OK


def _give_up(awaited: list[str]) -> None:
    """On the timer's thread: what is awaited hangs, and nobody may wait for it."""
    print(f"heek: lamps: {awaited[0]} did not answer within {PATIENCE_S:g} s", file=sys.stderr, flush=True)
    os._exit(FAILED)
