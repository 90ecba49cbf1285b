"""Around the close on lgpio: not one wrong verdict, by the kernel's own stamps and a second opinion."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from heek.clock import MILLISECOND, nanoseconds
from heek.recording import Recording
from heek.stations.gestures import Edge
from tests.second_opinion.recordings import judge, kept
from tests.virtual_pi.close_calls import Sitting, keys
from tests.virtual_pi.figures import share_below, spread
from tests.virtual_pi.kernel_stamps import KernelStamps
from tests.virtual_pi.simulated_chip import SimulatedChip
from tests.virtual_pi.table_daemon import TableDaemon

PRESSES = int(os.environ.get("HEEK_PRESSES") or 600)
AT_ONCE = 1000
"""So many in one sitting: the kernel's trace and the second opinion's patience have an end."""
FIRST_SEED = int(os.environ.get("HEEK_SEED") or 4)
OUT = Path("/out")
"""Journals of sittings with a fault are kept there: `heek replay` reads them on any computer."""
NEAR = 10 * MILLISECOND
"""From an interrupt's beginning to its stamp, at the very worst of an emulated processor."""


def test_not_one_wrong_verdict(
    chip: SimulatedChip, table: Callable[..., TableDaemon], figure: Callable[[str, str], None]
) -> None:
    """Every reveal and every ignored press of every sitting are those that the stamps demand."""
    began, seed, wrong = time.monotonic(), FIRST_SEED, {}
    proved: Counter[str] = Counter()
    late_ms: list[float] = []
    while proved["presses"] < PRESSES:
        daemon = table(keys(seed))
        with KernelStamps() as stamps:
            daemon.start()
            sitting = Sitting(chip, daemon, seed)
            sitting.play(min(AT_ONCE, PRESSES - proved["presses"]))
            assert daemon.stop() == 0
            taken = stamps.all()
        recordings = kept(daemon.state)
        assert len(recordings) == 1
        recording, lines = recordings[0]
        found = judge(recording, lines, daemon.keys)
        faults = [*found.faults, *differences_from_the_kernel(recording, taken)]
        if faults:
            wrong[seed] = faults
            shutil.copytree(daemon.state, OUT / f"close-calls-{seed}", dirs_exist_ok=True)
            print(f"seed {seed}, {keys(seed)}:", *faults, sep="\n  ")
        proved += found.proved + Counter({"sittings": 1, **sitting.done})
        # Where the daemon's instant 0 lies, by the first edge.
        origin = taken[0] - min(item.at for item in recording.items if isinstance(item, Edge))
        late_ms += [
            (heard.at_ns - origin - nanoseconds(heard.event["at"])) / MILLISECOND
            for heard in daemon.events
            if heard.event["event"] in ("throw_locked", "press_ignored")
        ]
        if PRESSES > AT_ONCE:
            print(f"{time.monotonic() - began:.0f} s: {dict(proved)}, {len(wrong)} wrong", flush=True)
        seed += 1
    figure("around the close", ", ".join(f"{name} {count}" for name, count in sorted(proved.items())))
    figure("sittings with a wrong verdict", f"{len(wrong)}, in {time.monotonic() - began:.0f} s")
    figure("press's stamp to event told, standstills and all", spread(late_ms))
    assert wrong == {}
    for what in ("rounds", "of these with every reason", "standstills", "chord", "late"):
        assert proved[what] > 0, f"an empty exercise: no {what}"
    assert share_below(late_ms, 0.5) < 2000


def differences_from_the_kernel(recording: Recording, taken: list[int]) -> list[str]:
    """Whether the recorded edges are those that the kernel's own trace has, each with its stamp."""
    edges = sorted(item.at for item in recording.items if isinstance(item, Edge) and not item.read)
    if len(taken) < len(edges):
        return [f"{len(edges)} edges are recorded, and the kernel took {len(taken)}"]
    # The trace goes on after the last round; its beginning is that of the first handler.
    apart = [at - trace for at, trace in zip(edges, taken, strict=False)]
    origin = min(apart)
    worst = max(apart) - origin
    return [f"a stamp lies {worst / 1e6:.3f} ms behind the kernel's trace"] if worst > NEAR else []
