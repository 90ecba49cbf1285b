"""What the runner makes of a guest's report, and what it says on a machine that cannot boot one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.virtual_pi import __main__ as command
from tests.virtual_pi import parts, running
from tests.virtual_pi.booting import Went
from tests.virtual_pi.building import Built
from tests.virtual_pi.parts import ROOT
from tests.virtual_pi.running import GUEST, NoVerdict, expected_tests, judge

REPORT = """<testsuites><testsuite>
<testcase classname="tests.virtual_pi.guest.test_a" name="test_good" />
<testcase classname="tests.virtual_pi.guest.test_a" name="test_bad"><failure message="no">above
assert 1 == 2
</failure></testcase>
<testcase classname="tests.virtual_pi.guest.test_a" name="test_torn"><error message="down" /></testcase>
<testcase classname="tests.virtual_pi.guest.test_a" name="test_known">
  <skipped type="pytest.xfail" message="not yet" /></testcase>
<testcase classname="tests.virtual_pi.guest.test_a" name="test_idle">
  <skipped type="pytest.skip" message="later" /></testcase>
</testsuite></testsuites>"""


def name(test: str) -> str:
    return f"{GUEST}/test_a.py::test_{test}"


def test_every_kind_of_outcome_is_told_apart(tmp_path: Path) -> None:
    """Passed, failed, torn down badly, failed as expected, skipped, and never heard of."""
    report = tmp_path / "results.xml"
    report.write_text(REPORT)
    every = ["good", "bad", "torn", "known", "idle", "lost"]
    verdict = judge(report, [name(each) for each in every], "digest", 1.0, whole=True)
    assert verdict.passed == (name("good"),)
    assert verdict.failed == (name("bad"), name("torn"))
    assert verdict.expected_failures == (name("known"),)
    assert verdict.skipped == (name("idle"),)
    assert verdict.missing == (name("lost"),)
    assert verdict.reasons == {name("bad"): "above\nassert 1 == 2", name("torn"): "down"}
    assert not verdict.ok


@pytest.mark.parametrize(
    ("tests", "ok"),
    [(["good"], True), (["good", "known"], True), (["known"], False), (["good", "lost"], False),
     (["good", "idle"], False), (["good", "bad"], False)],
)  # fmt: skip
def test_good_is_what_ran_whole(tmp_path: Path, tests: list[str], ok: bool) -> None:
    """Good is: something passed, all that there is was heard of, and nothing failed or was skipped."""
    report = tmp_path / "results.xml"
    report.write_text(REPORT)
    assert judge(report, [name(each) for each in tests], "", 1.0, whole=True).ok is ok


def test_a_story_is_known_by_its_file(tmp_path: Path) -> None:
    """A story's test has the file's own ending in the report, where Python's files have none."""
    report = tmp_path / "results.xml"
    report.write_text(
        '<testsuite><testcase classname="tests.stories.rules.clock_change.jsonl" name="clock_change" />'
        "</testsuite>"
    )
    story = "tests/stories/rules/clock_change.jsonl::clock_change"
    assert judge(report, [story], "", 1.0, whole=True).passed == (story,)


@pytest.mark.parametrize("text", [None, "", "<testsuites><testsuite>"])
def test_a_report_that_is_torn_passes_nothing(tmp_path: Path, text: str | None) -> None:
    """A guest that died before it wrote its report, or while it did, has passed nothing."""
    report = tmp_path / "results.xml"
    if text is not None:
        report.write_text(text)
    verdict = judge(report, [name("good")], "", 1.0, whole=True)
    assert (verdict.passed, verdict.missing) == ((), (name("good"),))


def test_a_kept_verdict_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run has found is there for the next program; a file that is none counts as nothing."""
    kept = tmp_path / "verdict.json"
    monkeypatch.setattr(running, "VERDICT", kept)
    assert running.last_verdict() is None
    written = {"digest": "d", "whole": True, "took_s": 1.5, "passed": ["a"], "failed": ["b"]}
    written |= {"expected_failures": [], "skipped": [], "missing": []}
    kept.write_text(json.dumps(written))
    verdict = running.last_verdict()
    assert verdict is not None
    assert (verdict.digest, verdict.passed, verdict.failed, verdict.ok) == ("d", ("a",), ("b",), False)
    kept.write_text('{"digest": "d"}')
    assert running.last_verdict() is None


def test_the_guests_tests_are_counted_here() -> None:
    """They are named without being run; `make test` collects none of them; none at all is an error."""
    names = expected_tests([])
    assert f"{GUEST}/test_stories.py::test_the_worked_example" in names
    with pytest.raises(NoVerdict, match="cannot be collected"):
        expected_tests(["-k", "no_test_has_this_name"])
    here = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-n", "0", "tests/virtual_pi"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert GUEST not in here.stdout


@pytest.mark.parametrize(
    ("codes", "boots", "ok"), [((None, 0), 2, True), ((None, None), 2, False), ((1,), 1, False)]
)
def test_a_guest_that_dies_is_booted_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codes: tuple[int | None, ...], boots: int, ok: bool
) -> None:
    """Once, and told; a guest whose tests failed is not, and what the dead one left counts for nothing."""
    said: list[str] = []
    begun: list[int | None] = []
    monkeypatch.setattr(running, "BUILT", tmp_path)
    monkeypatch.setattr(running, "VERDICT", tmp_path / "verdict.json")
    monkeypatch.setattr(running, "expected_tests", lambda *_: [name("good")])
    monkeypatch.setattr(running, "build", lambda _: Built("6", tmp_path, tmp_path, tmp_path, tmp_path))

    def boot(_built: Built, folder: Path, *_: object, **__: object) -> Went:
        folder.mkdir(exist_ok=True)
        assert not (folder / "results.xml").exists()
        code = codes[len(begun)]
        begun.append(code)
        (folder / "results.xml").write_text(REPORT if code == 0 else "<torn")
        return Went(came_up=True, code=code, took_s=1.0)

    monkeypatch.setattr(running, "boot", boot)
    assert running.run([], said.append).ok is ok
    assert len(begun) == boots
    assert sum("once more" in line for line in said) == boots - 1


def test_the_digest_is_that_of_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed, a new or a moved source changes it; what Python compiles does not."""
    monkeypatch.setattr(running, "ROOT", tmp_path)
    (tmp_path / "controller").mkdir()
    source = tmp_path / "controller" / "a.py"
    source.write_text("1")
    digests = [running.sources_digest()]
    source.write_text("2")
    digests.append(running.sources_digest())
    source.rename(source.with_name("b.py"))
    digests.append(running.sources_digest())
    (tmp_path / "pyproject.toml").write_text("")
    digests.append(running.sources_digest())
    assert len(set(digests)) == 4
    (tmp_path / "controller" / "__pycache__").mkdir()
    (tmp_path / "controller" / "__pycache__" / "b.pyc").write_text("")
    assert running.sources_digest() == digests[-1]


def test_a_machine_without_the_parts_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without an emulator and without headers: what to install, in one line, and exit code 2."""
    monkeypatch.setattr(parts.platform, "system", lambda: "Linux")
    monkeypatch.setattr(parts.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(parts, "DPKG", Path(__file__))
    has = {"apt-get", "make", "gcc", "cpio", "modprobe", "depmod", "busybox"}
    monkeypatch.setattr(parts, "program", lambda name: name if name in has else None)
    monkeypatch.setattr(parts, "installed", lambda package: package == "linux-source")
    assert command.main([]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "the virtual Pi needs: sudo apt-get install --no-install-recommends "
        "linux-headers-amd64 qemu-system-x86\n"
    )


@pytest.mark.parametrize(
    ("system", "machine", "debian", "word"),
    [
        ("Darwin", "arm64", True, "Darwin"),
        ("Linux", "aarch64", True, "aarch64"),
        ("Linux", "x86_64", False, "Debian"),
    ],
)
def test_a_machine_of_another_kind_says_so(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, debian: bool, word: str
) -> None:
    """On another system, processor or distribution there is nothing to install, and it says so."""
    monkeypatch.setattr(parts.platform, "system", lambda: system)
    monkeypatch.setattr(parts.platform, "machine", lambda: machine)
    monkeypatch.setattr(parts, "DPKG", Path(__file__) if debian else Path("/nowhere"))
    lack = parts.missing()
    assert lack is not None
    assert word in lack
    assert "\n" not in lack
