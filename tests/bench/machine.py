"""What was measured on what: the machine, the versions, the commit; figures without them mean nothing."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import heek

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("gpiozero", "luma.core", "luma.oled", "pillow", "msgspec")


def facts() -> dict[str, Any]:
    """As they stand now; what cannot be found out is None."""
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _git("rev-parse", "HEAD"),
        "changed": None if (status := _git("status", "--porcelain")) is None else bool(status),
        "machine": platform.machine(),
        "model": _model(),
        "cores": os.cpu_count(),
        "memory_mb": _memory_mb(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "system": platform.platform(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "heek": heek.__version__,
        **{name: _version(name) for name in PACKAGES},
    }


def summary(known: dict[str, Any]) -> str:
    """Two lines for people."""
    commit = (known["commit"] or "no commit")[:12] + (" with changes" if known["changed"] else "")
    load = ", ".join(map(str, known["load"]))
    return (
        f"heek {known['heek']} ({commit}), Python {known['python']}, SQLite {known['sqlite']}\n"
        f"{known['model'] or known['machine']}, {known['cores']} cores, {known['system']}, load {load}"
    )


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None  # an unpacked archive, or no git: the version must do
    return done.stdout.strip()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _model() -> str | None:
    """`Raspberry Pi 4 Model B Rev 1.4`, or the processor's name."""
    try:
        return Path("/proc/device-tree/model").read_text("ascii").rstrip("\0")
    except OSError:
        return _field("/proc/cpuinfo", "model name")


def _memory_mb() -> int | None:
    total = _field("/proc/meminfo", "MemTotal")
    return None if total is None else int(total.split()[0]) * 1024 // 1_000_000


def _field(file: str, name: str) -> str | None:
    try:
        lines = Path(file).read_text("utf-8").splitlines()
    except OSError:
        return None
    found = (line.split(":", 1)[1].strip() for line in lines if line.split(":", 1)[0].strip() == name)
    return next(found, None)
