"""Each kind of trouble that people met with clocks, disks and links has tests that carry its number.

The list says what the trouble is and how many tests provoke it, so that each one which goes, or loses its
mark, is missed. `pytest -m fault` runs them all.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

FAULTS: dict[str, tuple[str, int]] = {
    # Timers and clock
    "F037": ("after a power cut the clock starts in the past", 6),
    "F038": ("waits and time-outs use the wall clock", 4),
    "F040": ("summer time: a job runs twice or not at all", 2),
    "F041": ("the countdown on the page drifts from the table", 5),
    "F043": ("a timer after a pause of the process", 5),
    "F044": ("two matches at the very same time", 1),
    # Persistence
    "F046": ("corruption found only by chance", 15),
    "F047": ("broken database, interface just hangs", 10),
    "F049": ("full disk wipes the configuration and the backups", 16),
    "F050": ("file system turns read-only while running", 12),
    "F052": ("SQLite object used from the callback thread", 5),
    "F053": ("write-ahead file grows until the card is full", 4),
    "F055": ("clock set back breaks “newest wins” and ordering", 2),
    "F056": ("constant small writes ruin the card", 5),
    # Serial
    "F058": ("two identical adapters share one by-id name", 4),
    "F059": ("reader dies when the cable is pulled", 4),
    "F061": ("write blocks for ever", 4),
    "F062": ("non-blocking write that still blocks on a virtual port", 1),
    "F064": ("login prompt or boot text on the data line", 6),
    "F065": ("Bluetooth owns the good UART", 4),
    "F067": ("half a line, or two lines glued", 4),
    "F068": ("opening the port resets the peer and the first message is lost", 2),
    # Wi-Fi and HTTP
    "F070": ("log-in page taken for success", 3),
    "F071": ("names never resolve if the service started before Wi-Fi", 6),
    "F073": ("signed request rejected: clock drift", 4),
    "F074": ("request without a deadline", 6),
    "F076": ("retry storm, ignored Retry-After", 4),
    "F077": ("one bad record blocks the outbox for ever", 4),
    "F079": ("wireless driver or manager gives up until reboot", 3),
    "F080": ("broken IPv6 adds two minutes to each request", 3),
}
"""By number: the trouble, and how many tests provoke it."""

MARK = "pytest.mark.fault"
NEVER_RUN = ("pytest.mark.skip", "pytest.mark.xfail")


def marks(source: str, where: str) -> Iterator[tuple[str, str]]:
    """The numbers that the tests in a file carry, each with its test; raises AssertionError."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        calls = [each for each in node.decorator_list if isinstance(each, ast.Call)]
        numbers = [each for call in calls if ast.unparse(call.func) == MARK for each in call.args]
        if not numbers:
            continue
        name = f"{where}::{node.name}"
        assert node.name.startswith("test_"), f"{name} is no test"
        names = {
            ast.unparse(each.func if isinstance(each, ast.Call) else each) for each in node.decorator_list
        }
        assert names.isdisjoint(NEVER_RUN), f"{name} is marked, and does not run"
        for each in numbers:
            assert isinstance(each, ast.Constant), f"{name}: a fault is named by its number"
            yield str(each.value), name


def missing(found: Iterable[tuple[str, str]]) -> list[str]:
    """What is wrong with the marks of all tests, a line each."""
    counted: Counter[str] = Counter()
    unknown = []
    for number, test in found:
        counted[number] += 1
        if number not in FAULTS:
            unknown.append(f"{test}: there is no {number} in the list")
    lost = [
        f"{number} ({trouble}): {counted[number]} tests carry it, {count} are in the list"
        for number, (trouble, count) in FAULTS.items()
        if counted[number] != count
    ]
    return unknown + lost


def all_marks() -> list[tuple[str, str]]:
    """Of every file that pytest collects here; the virtual Pi's guest has tests of its own."""
    files = (each for each in sorted(TESTS.rglob("test_*.py")) if "guest" not in each.parts)
    return [
        mark
        for file in files
        for mark in marks(file.read_text(encoding="utf-8"), str(file.relative_to(TESTS)))
    ]


def test_each_fault_is_provoked() -> None:
    """Every trouble of the list has its tests, not one less, and every mark names one of the list."""
    assert all(count > 0 for _, count in FAULTS.values())
    assert missing(all_marks()) == []


def test_a_mark_that_is_gone_is_missed() -> None:
    """The check is not blind: without one mark, or with one of no trouble, it says which."""
    every = all_marks()
    for gone in {number: at for at, (number, _) in enumerate(every)}.values():
        (said,) = missing(every[:gone] + every[gone + 1 :])
        assert said.startswith(every[gone][0])
    assert missing([*every, ("F099", "tests/test_x.py::test_y")]) == [
        "tests/test_x.py::test_y: there is no F099 in the list"
    ]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('@pytest.mark.fault("F041")\ndef helper(): ...', "is no test"),
        ('@pytest.mark.skip\n@pytest.mark.fault("F041")\ndef test_x(): ...', "does not run"),
        ('@pytest.mark.skip("why")\n@pytest.mark.fault("F041")\ndef test_x(): ...', "does not run"),
        ("@pytest.mark.fault(NUMBER)\ndef test_x(): ...", "by its number"),
    ],
)
def test_a_mark_amiss_is_told(source: str, said: str) -> None:
    """A mark counts on a test that runs, and with a number that can be read."""
    with pytest.raises(AssertionError, match=said):
        list(marks(source, "test_x.py"))


def test_marks_are_found() -> None:
    """On functions and methods, alone or several in one, among other decorators."""
    source = (
        '@pytest.mark.parametrize("x", [1])\n@pytest.mark.fault("F041", "F043")\nasync def test_x(): ...\n'
        'class TestY:\n    @pytest.mark.fault("F044")\n    def test_z(self): ...\n'
    )
    found = [("F041", "t.py::test_x"), ("F043", "t.py::test_x"), ("F044", "t.py::test_z")]
    assert sorted(marks(source, "t.py")) == found
