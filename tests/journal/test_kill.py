"""kill -9 at each SQL statement and at each system call that writes: all of a batch or nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import heek
from heek.journal import open_journal, read_journal
from tests.journal.scripts import SCRIPT, assert_prefix, in_child

SHIM = Path(__file__).with_name("kill_at_write.c")


def write_script(folder: Path, done: Path) -> None:
    """Append the script, telling in `done` (one byte each, outside the journal) what has returned."""
    mark = os.open(done, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with open_journal(folder) as journal:
        for number, one in enumerate(SCRIPT):
            journal.append(one)
            if number == 2:
                journal.checkpoint()
            os.write(mark, b".")


def assert_all_or_nothing(folder: Path, done: Path) -> int:
    """A journal after a kill holds a prefix, no less than what append had returned from; how long it is."""
    least = done.stat().st_size if done.exists() else 0
    if (folder / "journal.kept").exists():
        with read_journal(folder) as reader:
            count = assert_prefix(reader, least=least)
    else:
        count = 0
    with open_journal(folder) as journal:
        assert assert_prefix(journal, least=least) == count
        for one in SCRIPT[count:]:
            journal.append(one)
        assert assert_prefix(journal) == len(SCRIPT)
    return count


def test_killed_at_each_statement(folder: Path) -> None:
    """A process that dies before its n-th SQL statement, for every n, leaves whole batches only."""
    real = sqlite3.connect
    left = 0

    def trace(_: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def connect(*args: Any, **options: Any) -> sqlite3.Connection:
        db = real(*args, **options)
        db.set_trace_callback(trace)
        return db

    done = folder.parent / "done"

    def run() -> None:
        sqlite3.connect = connect  # type: ignore[assignment]
        write_script(folder, done)

    seen = set()
    for nth in range(1, 1000):
        shutil.rmtree(folder, ignore_errors=True)
        done.unlink(missing_ok=True)
        left = nth
        status = in_child(run)
        seen.add(assert_all_or_nothing(folder, done))
        if not os.WIFSIGNALED(status):
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
    assert nth > 50
    assert seen == set(range(len(SCRIPT) + 1))


def build_shim(folder: Path) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs Linux and a C compiler, to die between two system calls")
    library = folder / "kill_at_write.so"
    built = subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SHIM), "-ldl"],
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode != 0:
        pytest.skip(f"the C compiler does not build the shim: {built.stderr.strip()[-200:]}")
    return library


def run_under_shim(folder: Path, module: str, *arguments: str, timeout_s: float) -> Any:
    """Run a module of ours with the shim in front of the C library; what it reports, as JSON, on its output.

    One Python is started with the shim, built in `folder`; it forks a child for each n, which is quick.
    """
    library = build_shim(folder)
    outcome = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env={
            **os.environ,
            "LD_PRELOAD": str(library),
            "PYTHONPATH": os.pathsep.join([str(Path(heek.__file__).parents[1]), str(Path.cwd())]),
        },
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr
    return json.loads(outcome.stdout)


@pytest.mark.parametrize("torn", [False, True], ids=["before the call", "half way through a write"])
def test_killed_at_each_system_call(folder: Path, tmp_path: Path, torn: bool) -> None:
    """A process that dies at its n-th write, sync, truncation or removal leaves whole batches only."""
    report = run_under_shim(tmp_path, "tests.journal.test_kill", str(folder), str(int(torn)), timeout_s=120)
    # Guards against a shim that is not called at all, and a script that dies always at one place.
    assert report["calls"] > (20 if torn else 50)
    assert report["seen"] == list(range(len(SCRIPT) + 1))


def die_at_each_call(folder: Path, torn: bool) -> None:
    """The other end of `test_killed_at_each_system_call`: runs under the shim, prints what it saw."""
    import ctypes

    arm: Callable[[int, int], None] = ctypes.CDLL(None).heek_die_at
    done = folder.parent / "done"
    seen: set[int] = set()
    nth = 0
    while True:
        nth += 1
        shutil.rmtree(folder, ignore_errors=True)
        done.unlink(missing_ok=True)

        def run(nth: int = nth) -> None:
            arm(nth, int(torn))
            write_script(folder, done)
            arm(0, 0)

        status = in_child(run)
        seen.add(assert_all_or_nothing(folder, done))
        if not os.WIFSIGNALED(status):
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
    print(json.dumps({"calls": nth, "seen": sorted(seen)}))


if __name__ == "__main__":
    die_at_each_call(Path(sys.argv[1]), sys.argv[2] == "1")
