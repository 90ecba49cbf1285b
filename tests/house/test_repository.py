"""The repository is fit to be cloned anywhere: no machine's path, no host, every lock hashed."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import heek

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "controller").glob("requirements*.txt"))

# Written in two parts, so that this file does not find itself.
FORBIDDEN = {
    "a registry's host": r"py"
    r"pi\.org|python"
    r"hosted|registry\.npm"
    r"js|deb\.deb"
    r"ian\.org|pi"
    r"wheels\.org",
    "an index option": r"--(?:extra-)?index" r"-url|--find" r"-links|--trusted" r"-host",
    "a path of one machine": r"(?<![\w.])/(?:wo" r"rk|ro" r"ot)/|/opt/whe" r"els|\.\./sha" r"red\b",
}


def _files() -> list[Path]:
    """Every file that is, or would be, committed."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so there is no telling which files are committed")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def _pinned(lock: Path) -> dict[str, str]:
    """Name to the whole requirement, continuation lines joined."""
    text = re.sub(r"(?m)^\s*#.*\n", "", lock.read_text()).replace("\\\n", " ")
    return {re.split(r"[=<>\[; ]", line)[0]: line for line in text.splitlines() if line.strip()}


def test_no_file_names_a_host_or_one_machines_path() -> None:
    """No committed text names a package registry, an index option or a path of one machine."""
    found = []
    for path in _files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            for what, pattern in FORBIDDEN.items():
                if re.search(pattern, line):
                    found.append(f"{path.relative_to(ROOT)}:{number}: {what}: {line.strip()[:80]}")
    assert found == []


def test_the_forbidden_patterns_find_what_they_are_for() -> None:
    """The patterns are not blind: a host, an index option and machine paths are each found."""
    samples = {
        "a registry's host": "https://" + "files.python" + "hosted.org/x",
        "an index option": "--extra-index" + "-url x",
        "a path of one machine": "open('" + "/wo" + "rk/somebody/x')",
    }
    assert all(re.search(FORBIDDEN[what], sample) for what, sample in samples.items())


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_requirement_is_pinned_and_hashed(lock: Path) -> None:
    """Each entry of each lock has one exact version and at least one SHA-256."""
    pinned = _pinned(lock)
    assert "gpiozero" in pinned
    for name, line in pinned.items():
        assert re.match(rf"{re.escape(name)}==\S+ ", line), line
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", line), name


def test_locks_hold_what_each_is_for() -> None:
    """Runtime has the build backend, dev adds the tools, and the two pin libraries never meet."""
    names = {lock.name: _pinned(lock) for lock in LOCKS}
    runtime = names["requirements.txt"]
    backend = re.match(r"setuptools==(\d+)", runtime["setuptools"])
    assert backend
    assert int(backend[1]) >= 77
    assert {"pytest", "hypothesis", "mypy", "ruff", "import-linter"} <= set(names["requirements-dev.txt"])
    assert "lgpio" in names["requirements-pi.txt"]
    assert "rpi-gpio" in names["requirements-pi-legacy.txt"]
    for pins in names.values():
        assert not {"lgpio", "rpi-gpio"} <= set(pins)
    for name in ("requirements.txt", "requirements-dev.txt"):
        assert not {"lgpio", "rpi-gpio", "rpi-lgpio"} & set(names[name])


def test_locks_agree_with_each_other() -> None:
    """A package has the same version in every lock, so that what was tested is what runs."""
    versions: dict[str, set[str]] = {}
    for lock in LOCKS:
        for name, line in _pinned(lock).items():
            versions.setdefault(name, set()).add(line.split()[0])
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_every_dependency_is_in_its_lock() -> None:
    """A dependency that was added to pyproject without `make lock` is noticed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]

    def missing(requirements: list[str], lock: str) -> set[str]:
        wanted = {re.split(r"[<>=;\[ ]", r)[0].lower().replace(".", "-") for r in requirements}
        return wanted - set(_pinned(ROOT / "controller" / lock))

    assert missing(project["dependencies"], "requirements.txt") == set()
    assert missing(project["dependencies"] + extras["dev"], "requirements-dev.txt") == set()
    assert missing(extras["testing"], "requirements-dev.txt") == set()
    assert missing(extras["pi"], "requirements-pi.txt") == set()
    assert missing(extras["pi-legacy"], "requirements-pi-legacy.txt") == set()


def test_pin_libraries_are_declared_to_exclude_each_other() -> None:
    """uv is told that the extras pi and pi-legacy conflict."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]
    assert settings["conflicts"] == [[{"extra": "pi"}, {"extra": "pi-legacy"}]]


def test_package_and_project_have_one_version() -> None:
    """heek.__version__ is the version in pyproject.toml."""
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == heek.__version__
