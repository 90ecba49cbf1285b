"""Runs the guest's tests in a virtual Pi and says what that is worth: all of them ran, and none failed.

What was found is kept in the folder of built things, with a digest of all that it depends on, so that `make
test` can say whether these very sources have been through it.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from tests.virtual_pi.booting import SILENT_S, boot
from tests.virtual_pi.building import build
from tests.virtual_pi.parts import BUILT, ROOT

GUEST: Final = "tests/virtual_pi/guest"
TABLES: Final = (
    "tests/virtual_pi/tables",
    "tests/stories/rules/clock_all_have_thrown.jsonl",
    "tests/stories/rules/clock_change.jsonl",
)
"""Tests and stories that know nothing of a virtual Pi, and are played on it by `--table=virtual-pi`."""
OURS: Final = (GUEST, *TABLES)
VERDICT: Final = BUILT / "verdict.json"
PATIENCE_S: Final = 600.0
"""For a machine that is shared; a quiet one takes a fifth."""

BOOTS: Final = 2
"""A guest whose kernel gives up (a processor of the emulator hung once in some runs) has said nothing of the
table. It is booted once more; one that only took too long is not."""

REASON_LINES: Final = 12
"""Of a failure, told once more at the end: what a test prints is far above, and may be cut away."""

PRESSES_A_SECOND: Final = 5
"""Around the close, at the least; a quiet machine does four times as many."""

DEPENDS_ON: Final = (
    "controller", "tests/virtual_pi", "tests/second_opinion", "tests/stories", "pyproject.toml",
)  # fmt: skip


class NoVerdict(Exception):
    """One line: why it cannot be said how the guest's tests went."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the guest's tests went."""

    digest: str
    """Of the sources that were tested."""
    whole: bool
    """Whether all tests were asked for."""
    passed: tuple[str, ...]
    expected_failures: tuple[str, ...]
    failed: tuple[str, ...]
    skipped: tuple[str, ...]
    missing: tuple[str, ...]
    """Tests that there are, but of which the guest said nothing."""
    took_s: float
    """From the building to the switching off."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """What pytest said of each that failed, by name: its last lines, which name what was wrong."""

    @property
    def ok(self) -> bool:
        return bool(self.passed) and not (self.failed or self.skipped or self.missing)


def sources_digest() -> str:
    """A digest of everything whose change could change the verdict."""
    digest = hashlib.sha256()
    for file in sorted(_sources()):
        digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _sources() -> Iterator[Path]:
    for name in DEPENDS_ON:
        place = ROOT / name
        for file in [place] if place.is_file() else place.rglob("*"):
            inside = file.relative_to(ROOT).parts
            if file.is_file() and "__pycache__" not in inside and inside[1:2] != ("heek.egg-info",):
                yield file


def expected_tests(arguments: list[str], tests: Sequence[str] = OURS) -> list[str]:
    """The guest's tests, as pytest names them, without running any. Raises NoVerdict if there are none."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-n", "0", *tests, *arguments]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "HEEK_VIRTUAL_PI": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    names = [line for line in done.stdout.splitlines() if "::" in line and "Error" not in line]
    if done.returncode != 0 or not names:
        words = (done.stdout + done.stderr).strip().splitlines()
        raise NoVerdict(
            f"the guest's tests cannot be collected: {words[-1] if words else 'nothing was said'}"
        )
    return names


def run(
    arguments: list[str],
    say: Callable[[str], None],
    *,
    presses: int | None = None,
    tests: Sequence[str] = OURS,
) -> Verdict:
    """Build what is old, boot, run the guest's tests, and judge.

    `arguments` go to the guest's pytest, to run some of the tests; `presses` is how many of them there shall
    be around the close, if not a share; `tests` are files and folders of pytest. Raises NoVerdict, or
    CannotBuild.
    """
    began = time.monotonic()

    def told(line: str) -> None:
        say(f"[{time.monotonic() - began:5.1f} s] {line}")

    digest = sources_digest()
    expected = expected_tests(arguments, tests)
    built = build(lambda part: told(f"building {part}"))
    told(f"booting Linux {built.version} for {len(expected)} tests")
    out = BUILT / "out"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-vv",
        "--color=no",
        "-rxs",
        "--durations=0",
        "--durations-min=0.5",
    ]
    command += [
        "--tb=short",
        "-p",
        "heek.testing.plugin",
        "-p",
        "tests.virtual_pi.table_plugin",
        "--table=virtual-pi",
        "-o",
        # A campaign takes as long as it takes.
        f"faulthandler_timeout={0 if presses else 90}",
        "--basetemp=/run/tests",
        "--junitxml=/out/results.xml",
        *tests,
        *arguments,
    ]
    for left in reversed(range(BOOTS)):
        for old in ("results.xml", "figures.jsonl"):
            (out / old).unlink(missing_ok=True)
        went = boot(
            built,
            out,
            command,
            where=ROOT,
            environment={
                "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                "HOME": "/run",
                "TMPDIR": "/run",
                # lgpio makes a pipe where it is imported.
                "LG_WD": "/run",
                "LANG": "C.UTF-8",
                "PYTHONPATH": f"{ROOT / 'controller'}:{ROOT}:{built.lgpio}",
                "PYTHONUNBUFFERED": "1",
                # Each plugin costs seconds of an emulated processor; the guest needs one, by name.
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "HEEK_VIRTUAL_PI": "1",
                "HEEK_RPI_LGPIO": str(built.rpi_lgpio),
                "HEEK_PRESSES": str(presses or ""),
                "HEEK_SEED": os.environ.get("HEEK_SEED", ""),
            },
            patience_s=PATIENCE_S + (presses or 0) / PRESSES_A_SECOND,
            silent_s=SILENT_S + (presses or 0) / PRESSES_A_SECOND,
            say=told,
        )
        if not went.came_up or went.code is not None or went.took_s > PATIENCE_S or not left:
            break
        told("the guest died before its pytest was done, see above; booting once more")
    _tell_figures(out / "figures.jsonl", say)
    if not went.came_up:
        raise NoVerdict("the virtual Pi did not come up; what it said stands above")
    whole = not arguments and tests == OURS
    verdict = judge(out / "results.xml", expected, digest, time.monotonic() - began, whole=whole)
    VERDICT.write_text(json.dumps(asdict(verdict), indent=1))
    if verdict.ok and went.code != 0:
        raise NoVerdict(f"all tests passed, but the guest's pytest ended with {went.code}")
    return verdict


def last_verdict() -> Verdict | None:
    """What the last run found; None: there is none, or it cannot be read."""
    try:
        kept = json.loads(VERDICT.read_text())
        return Verdict(
            **{name: tuple(each) if isinstance(each, list) else each for name, each in kept.items()}
        )
    except (OSError, ValueError, TypeError):
        return None


def judge(results: Path, expected: list[str], digest: str, took_s: float, *, whole: bool) -> Verdict:
    """Every test that there is against what the guest's report says of it."""
    found: dict[str, str] = {}
    said: dict[str, str] = {}
    try:
        cases = list(ElementTree.parse(results).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        cases = []
    for case in cases:
        name = f"{case.get('classname', '')}::{case.get('name')}"
        skipped = case.find("skipped")
        bad = [each for kind in ("failure", "error") for each in case.findall(kind)]
        if bad:
            found[name] = "failed"
            said[name] = "\n".join(_reason(each) for each in bad)
        elif skipped is not None:
            found[name] = "expected" if skipped.get("type") == "pytest.xfail" else "skipped"
        else:
            found.setdefault(name, "passed")

    def which(word: str) -> tuple[str, ...]:
        return tuple(name for name in expected if found.get(_as_reported(name), "missing") == word)

    return Verdict(
        digest=digest,
        whole=whole,
        passed=which("passed"),
        expected_failures=which("expected"),
        failed=which("failed"),
        skipped=which("skipped"),
        missing=which("missing"),
        took_s=round(took_s, 1),
        reasons={name: said[_as_reported(name)] for name in expected if _as_reported(name) in said},
    )


def _reason(element: ElementTree.Element) -> str:
    lines = [line for line in (element.text or element.get("message") or "").splitlines() if line.strip()]
    return "\n".join(lines[-REASON_LINES:])


def _as_reported(name: str) -> str:
    """A test's name as pytest's XML has it: with dots, and `.py` away, but not a story's `.jsonl`."""
    file, *inside, last = name.split("::")
    return ".".join([file.removesuffix(".py").replace("/", "."), *inside]) + f"::{last}"


def _tell_figures(file: Path, say: Callable[[str], None]) -> None:
    if file.exists():
        say("figures of the virtual Pi:")
        for line in file.read_text().splitlines():
            each = json.loads(line)
            say(f"  {each['test']}: {each['name']}: {each['value']}")
