"""Setting up says in one line what a machine lacks, and the commands are there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETUP = ROOT / "controller" / "setup-venv"

BEGINS = "heek sets itself up in .venv; that takes a minute or so, and only now\n"
NEW = "*) echo True;;"
"""In a fake Python: it is new enough."""

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def _setup(folder: Path, python: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", SETUP, "no-lock.txt"],
        cwd=folder,
        env={"PATH": f"{folder}:{os.environ['PATH']}", "PYTHON": python},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _fake(folder: Path, name: str, script: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return name


def test_missing_python_is_one_line_with_the_package(tmp_path: Path) -> None:
    """Without the Python that was asked for, one line names it and what to install."""
    result = _setup(tmp_path, "python3-that-is-not-there")
    assert result.returncode == 1
    assert result.stderr == (
        "heek needs Python 3.11 or newer, and there is no python3-that-is-not-there: "
        "sudo apt install python3 python3-venv\n"
    )


def test_old_python_is_one_line(tmp_path: Path) -> None:
    """A Python before 3.11 is refused by name before anything is made."""
    result = _setup(tmp_path, _fake(tmp_path, "python3.9", "echo False"))
    assert result.returncode == 1
    assert result.stderr.startswith("heek needs Python 3.11 or newer, python3.9 is older: ")
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("script", ["exit 1", "exit 0", "echo Segmentation fault >&2; exit 139"])
def test_a_python_that_does_not_run_is_not_called_old(tmp_path: Path, script: str) -> None:
    """What says nothing of its version is named as what it is."""
    result = _setup(tmp_path, _fake(tmp_path, "python3.13", script))
    assert (result.returncode, result.stderr) == (
        1,
        "heek needs Python 3.11 or newer, and python3.13 is none that runs: "
        "sudo apt install python3 python3-venv\n",
    )


def test_missing_venv_module_is_one_line_with_the_package(tmp_path: Path) -> None:
    """A Python without venv or ensurepip, as Debian ships it, names python3-venv."""
    python = _fake(tmp_path, "python3.13", f'case "$2" in *ensurepip*) exit 1;; {NEW} esac')
    result = _setup(tmp_path, python)
    assert (result.returncode, result.stderr) == (
        1,
        BEGINS + "heek needs the venv module: sudo apt install python3-venv\n",
    )


def test_a_failing_venv_tells_its_last_words(tmp_path: Path) -> None:
    """When making the folder fails, its last line is passed on."""
    python = _fake(
        tmp_path, "python3.13", f'case "$1 $2" in "-m venv") echo "disk full"; exit 1;; {NEW} esac'
    )
    result = _setup(tmp_path, python)
    assert (result.returncode, result.stderr) == (1, BEGINS + "heek could not make .venv: disk full\n")


@pytest.mark.parametrize(
    ("pip_says", "words"),
    [
        (
            "ERROR: these hashes do not match",
            "heek could not install what no-lock.txt names (the whole story: .venv-setup.log): "
            "ERROR: these hashes do not match\n",
        ),
        (
            "WARNING: NewConnectionError: Temporary failure in name resolution",
            "heek could not fetch what no-lock.txt names: is there a network? "
            "(the whole story: .venv-setup.log)\n",
        ),
    ],
)
def test_a_failing_install_names_the_lock_and_the_error(tmp_path: Path, pip_says: str, words: str) -> None:
    """When pip fails, one line has the lock's name, what to do or pip's own error, and where the rest is."""
    venv = tmp_path / ".venv" / "bin"
    venv.mkdir(parents=True)
    _fake(venv, "python", f'case "$1" in -m) echo noise; echo "{pip_says}"; echo more; exit 1;; esac')
    result = _setup(tmp_path, _fake(tmp_path, "python3.13", "echo True"))
    assert result.returncode == 1
    assert result.stderr == BEGINS + words


@needs_make
def test_help_lists_every_command() -> None:
    """`make help` has a line for each command that people are told to use."""
    result = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = set(re.findall(r"make ([\w-]+)\t", result.stdout))
    phony = next(line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith(".PHONY:"))
    assert listed == set(phony.split()[1:])
    assert {"setup", "demo", "test", "check", "bench", "fuzz", "lock", "documents"} <= listed


@needs_make
@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["demo", "FAST=1"], ".venv/bin/heek demo --fast"),
        (["demo", "ARGS=--terminal"], ".venv/bin/heek demo --terminal"),
        (["demo", "LAN=1"], ".venv/bin/heek demo --lan"),
        (["demo", "LAN=10.0.0.7", "LINK=serial"], ".venv/bin/heek demo --lan 10.0.0.7 --link serial"),
        (["fuzz"], ".venv/bin/python -m tests.fuzz --stories 10000"),
        (["test-virtual-pi", "ARGS=-k serial"], ".venv/bin/python -m tests.virtual_pi -k serial"),
        (["test", "ARGS=-k rules"], ".venv/bin/python -m pytest -rs -n 2 --dist loadgroup -k rules"),
    ],
)
def test_commands_are_what_they_say(arguments: list[str], command: str) -> None:
    """Each command runs the real one, with the words that were given to it."""
    result = subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    assert command in " ".join(result.stdout.split())


@needs_make
def test_demo_needs_the_runtime_lock_alone() -> None:
    """A cold `make demo` installs what runs, not what develops."""
    result = subprocess.run(
        ["make", "-n", "-W", "controller/requirements.txt", "demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "controller/setup-venv controller/requirements.txt" in result.stdout
    assert "requirements-dev" not in result.stdout


def test_ci_ends_with_the_tests() -> None:
    """.ci/run may be executed, stops at the first failure, and its last act is `make test`."""
    path = ROOT / ".ci" / "run"
    assert os.access(path, os.X_OK)
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    assert lines[0] == "set -euo pipefail"
    assert lines[-1] == "exec make test"
