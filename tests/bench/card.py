"""What the table writes to its card: bytes and syncs in an hour of lively play, and in one without anybody.

The daemon plays the hour in virtual time in a process of its own, and `strace` tells every write and sync
that goes to the journal's files. Without strace the kernel's own count of what the process wrote is taken
(/proc/self/io), which knows no syncs.

A file system writes whole blocks, so what the card gets is counted as well: each block that was touched, once
for each sync of its file. Beyond that come what the file system notes for itself, and the pages of SQLite's
`-shm`, which lies in memory and is written by the kernel when it sees fit.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import heek
from tests.bench.evening import Evening, hour
from tests.bench.figures import Figure, Spread

HOUR_S: Final = 3600
BLOCK: Final = 4096
"""Of ext4 and of the kernel's memory."""
_WRITE: Final = re.compile(r"(pwrite64|write|fsync|fdatasync)\(\d+<([^>]*)>(?:.*, (\d+))?\) += (\d+)$")


def idle(seconds: int) -> Evening:
    """Nobody comes."""
    lines = [{"story": 1}, {"at": seconds, "end": True}]
    return Evening("".join(f"{json.dumps(line)}\n" for line in lines), 0, 0, 0, seconds)


def measure(*, quick: bool = False) -> list[Figure]:
    """An hour of play, and an idle one. Raises CalledProcessError if the table does not play it."""
    seconds = 120 if quick else HOUR_S
    runs = 1 if quick else 3
    played = [written("hour", seed, seconds) for seed in range(runs)]
    empty = written("idle", 0, HOUR_S)
    won = [hour(seed, seconds).won or 1 for seed in range(runs)]
    scale = HOUR_S / seconds
    figures = [
        Figure(
            "card_bytes_hour",
            "written to the card in an hour of play",
            "kB",
            Spread.of(each["bytes"] * scale / 1000 for each in played),
            "kB in an hour without anybody",
            Spread.of([empty["bytes"] / 1000]),
            note="five lively seats, journal and its log, start and end included",
        ),
        Figure(
            "card_bytes_match",
            "the same for each match won",
            "kB",
            Spread.of(each["bytes"] / count / 1000 for each, count in zip(played, won, strict=True)),
        ),
    ]
    if all(each["syncs"] for each in played):
        figures.append(
            Figure(
                "card_blocks_match",
                "the same in whole blocks of 4 KiB, as the card gets it",
                "kB",
                Spread.of(
                    each["blocks"] * BLOCK / count / 1000 for each, count in zip(played, won, strict=True)
                ),
                note="a block counts once for each sync of its file",
            )
        )
        figures.append(
            Figure(
                "card_syncs_hour",
                "syncs of the card in an hour of play",
                "",
                Spread.of(each["syncs"] * scale for each in played),
                "in an hour without anybody",
                Spread.of([empty["syncs"]]),
                note="reveals, seats that change and results wait for the card; presses do not",
            )
        )
    return figures


def written(what: str, seed: int, seconds: int) -> Counter[str]:
    """`bytes`, `blocks` and `syncs` of one hour (`what` is `hour` or `idle`), played in another process.

    Without strace only the bytes are known.
    """
    with tempfile.TemporaryDirectory(prefix="heek-bench-") as name:
        folder, calls = Path(name) / "state", Path(name) / "calls"
        command = [sys.executable, "-m", "tests.bench.card", what, str(seed), str(seconds), str(folder)]
        strace = shutil.which("strace")
        traced = [] if strace is None else [strace, "-f", "-y", "-o", str(calls), "-e", "trace=/write|sync"]
        environment = os.environ | {"PYTHONPATH": str(Path(heek.__file__).parents[1])}
        ran = subprocess.run(
            [*traced, *command], check=True, env=environment, stdout=subprocess.PIPE, text=True
        )
        if strace is None:
            return Counter({"bytes": int(ran.stdout)})
        with calls.open(encoding="utf-8", errors="replace") as lines:
            return counted(lines, folder)


def counted(lines: Iterable[str], folder: Path) -> Counter[str]:
    """What strace told of the files in this folder."""
    told: Counter[str] = Counter()
    touched: dict[str, set[int]] = {}
    for line in lines:
        found = _WRITE.search(line.rstrip("\n"))
        if found is None or not found[2].startswith(f"{folder}/"):
            continue
        call, file, last, count = found.groups()
        blocks = touched.setdefault(file, set())
        if call.endswith("sync"):
            told["syncs"] += 1
            told["blocks"] += len(blocks)
            blocks.clear()
        elif int(count):
            at = int(last) if call == "pwrite64" else 0
            told["bytes"] += int(count)
            blocks.update(range(at // BLOCK, (at + int(count) - 1) // BLOCK + 1))
    told["blocks"] += sum(map(len, touched.values()))
    return told


def _play(what: str, seed: int, seconds: int, folder: Path) -> None:
    """The other process: play it, and print how many bytes it has written, as the kernel counts."""
    from heek.simulator.runner import Simulation
    from heek.simulator.story import parse

    evening = hour(seed, seconds) if what == "hour" else idle(seconds)
    won = 0

    def say(line: str) -> None:
        nonlocal won
        won += '"event":"match_won"' in line

    Simulation(parse(evening.text, "bench"), say=say, state_dir=folder).run()
    if won != evening.won:
        raise SystemExit(f"the table made {won} matches won of a story with {evening.won}")
    io = dict(line.split(": ") for line in Path("/proc/self/io").read_text("ascii").splitlines())
    print(int(io["wchar"]))


if __name__ == "__main__":
    _play(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
