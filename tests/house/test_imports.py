"""Importing the package does nothing, and needs no hardware library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CONTROLLER = Path(__file__).parents[2] / "controller"

# In a process of its own, so that what other tests imported and started does not count.
PROGRAM = """
import importlib, pkgutil, sys, threading, signal

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"lgpio", "RPi", "pigpio", "smbus2", "serial", "spidev", "gpiod", "luma"}:
            raise ImportError(f"{name} was imported at module level")

sys.meta_path.insert(0, Refuse())
opened = []
def audit(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and isinstance(arguments[1], str):
        if set(arguments[1]) & set("wax+") and not arguments[0].endswith((".pyc", "/dev/null")):
            opened.append(arguments[0])
    if event in ("socket.bind", "socket.connect", "sqlite3.connect", "subprocess.Popen"):
        opened.append(event)
sys.addaudithook(audit)
handlers = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]
import heek
names = [m.name for m in pkgutil.walk_packages(heek.__path__, "heek.")]
for name in names:
    importlib.import_module(name)
assert len(names) > 10, names
assert threading.active_count() == 1, threading.enumerate()
assert opened == [], opened
assert handlers == [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]
print(len(names))
"""


def test_importing_every_module_does_nothing(tmp_path: Path) -> None:
    """All modules import without a hardware library, and open, start, bind and leave nothing."""
    result = subprocess.run(
        [sys.executable, "-B", "-c", PROGRAM],
        cwd=tmp_path,
        env={"PYTHONPATH": str(CONTROLLER)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert list(tmp_path.iterdir()) == []
