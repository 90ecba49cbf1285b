"""What `heek run` costs on this machine: its start, memory, threads, and the load of doing nothing.

The daemon is the command itself in a process of its own, on mock pins and a dummy panel, with the attract
screen moving. It takes turns with two others: an interpreter that only imports the libraries, as nobody who
uses them starts sooner; and fifteen buttons and five LEDs in gpiozero's own way, without a table, journal or
picture behind them.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import heek
from tests.bench.figures import Figure, Spread

READY_AIM_S: Final = 0.8
MEMORY_AIM_MB: Final = 50.0
IDLE_AIM_PERCENT: Final = 0.5
PATIENCE_S: Final = 60.0
BARE: Final = "import gpiozero, luma.oled.device, asyncio, sqlite3"
BUTTONS: Final = """
import signal, sys
from gpiozero import Button, PWMLED
from gpiozero.pins.mock import MockFactory, MockPWMPin
factory = MockFactory(pin_class=MockPWMPin)
kept = [PWMLED(pin, pin_factory=factory) for pin in range(2, 7)]
kept += [Button(pin, pin_factory=factory) for pin in range(7, 22)]
for button in kept[5:]:
    button.when_pressed = button.when_held = lambda: None
print("the script is ready", file=sys.stderr, flush=True)
signal.pause()
"""


class NotReadyError(RuntimeError):
    """A process did not start; the text has what it said."""


@dataclass(frozen=True, slots=True)
class _Cost:
    ready_s: float
    memory_mb: float
    threads: int
    idle_percent: float
    """Of one core; 0 if it was not watched."""


def measure(*, quick: bool = False) -> list[Figure]:
    """Some starts, and two daemons watched for 20 s; needs /proc. Raises NotReadyError."""
    starts, watches, watched_s = (1, 1, 1.0) if quick else (7, 2, 20.0)
    script = ["-c", BUTTONS]
    with tempfile.TemporaryDirectory(prefix="heek-bench-") as folder:
        config = Path(folder) / "table.toml"
        config.write_text(
            f'[table]\nstate_dir = "{folder}/state"\n[stations]\nbackend = "mock"\n'
            '[[display]]\ndriver = "dummy"\n[web]\nport = 0\n',
            encoding="utf-8",
        )
        daemon = ["-m", "heek", "run", "--config", str(config)]
        first = _start(daemon, cache=Path(folder) / "empty-cache")
        _start(daemon)  # compiles what is not compiled yet
        costs, bare = [], []
        for _ in range(starts):
            costs.append(_start(daemon))
            bare.append(_bare())
        watched = [_start(daemon, watch_s=watched_s) for _ in range(watches)]
        buttons = [_start(script, watch_s=watched_s) for _ in range(watches)]
    by_hand = "15 Button and 5 PWMLED of gpiozero"
    libraries = "s python -c 'import gpiozero, luma, …'"
    return [
        Figure(
            "start_to_ready",
            "heek run: start to ready",
            "s",
            Spread.of(cost.ready_s for cost in costs),
            libraries,
            Spread.of(bare),
            aim=READY_AIM_S,
            note="modules compiled already, as after the first start",
        ),
        Figure(
            "first_start_to_ready",
            "the same, nothing compiled yet",
            "s",
            Spread.of([first.ready_s]),
            note="the very first start after an installation that did not compile",
        ),
        Figure(
            "memory",
            "heek run: resident memory",
            "MB",
            Spread.of(cost.memory_mb for cost in costs),
            f"MB {by_hand}",
            Spread.of(cost.memory_mb for cost in buttons),
            aim=MEMORY_AIM_MB,
            note="VmRSS a moment after ready, in units of 10^6 bytes",
        ),
        Figure(
            "idle",
            "heek run: idle, attract moving",
            "% of a core",
            Spread.of(cost.idle_percent for cost in watched),
            f"% {by_hand}",
            Spread.of(cost.idle_percent for cost in buttons),
            aim=IDLE_AIM_PERCENT,
            note=f"all threads over {watched_s:.0f} s",
        ),
        Figure(
            "threads",
            "heek run: threads",
            "",
            Spread.of(cost.threads for cost in costs),
            by_hand,
            Spread.of(cost.threads for cost in buttons),
            note="the loop, the journal, the panel",
        ),
    ]


def _environment(cache: Path | None) -> dict[str, str]:
    """Ours, with this very package, and with compiled modules kept (in `cache`, or where they belong)."""
    environment = os.environ | {"PYTHONPATH": str(Path(heek.__file__).parents[1])}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if cache is not None:
        environment["PYTHONPYCACHEPREFIX"] = str(cache)
    return environment


def _bare() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", BARE], check=True, env=_environment(None))
    return time.perf_counter() - began


def _start(arguments: Sequence[str], *, cache: Path | None = None, watch_s: float = 0.0) -> _Cost:
    """Start Python, look at it once it is ready and for `watch_s` after that, and end it by SIGTERM."""
    with _process(arguments, cache) as (pid, ready_s):
        time.sleep(0.3)  # the first picture is drawn
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
        )
        idle = 0.0
        if watch_s:
            began, before = time.perf_counter(), _cpu_s(pid)
            time.sleep(watch_s)
            idle = 100 * (_cpu_s(pid) - before) / (time.perf_counter() - began)
        return _Cost(
            ready_s,
            int(status["VmRSS"].split()[0]) * 1024 / 1e6,
            int(status["Threads"]),
            idle,
        )


@contextmanager
def _process(arguments: Sequence[str], cache: Path | None) -> Iterator[tuple[int, float]]:
    """Its process id, and the seconds from its start to the line that says it is ready."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env=_environment(cache),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        yield process.pid, _wait_until_ready(process) - began
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _wait_until_ready(process: subprocess.Popen[bytes]) -> float:
    assert process.stderr is not None
    said = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        while selector.select(PATIENCE_S):
            part = os.read(process.stderr.fileno(), 65536)
            now = time.perf_counter()
            said += part
            if b" is ready" in said:
                return now
            if not part:
                break
    raise NotReadyError(f"a process was not ready within {PATIENCE_S:.0f} s: {said.decode(errors='replace')}")


def _cpu_s(pid: int) -> float:
    """Seconds on a processor of all threads so far: to the nanosecond where the kernel tells, else ticks."""
    try:
        threads = Path(f"/proc/{pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text("ascii").split()[0]) for thread in threads) / 1e9
    except FileNotFoundError:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
