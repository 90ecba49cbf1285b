"""No duration, deadline or order in the package is built from wall time: it may step at any moment (F038)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import heek

PACKAGE = Path(heek.__file__).parent

READS = {
    "clock.RealClock.wall_s": "the one place that reads it",
    "boot.wall_trust": "is the clock before the time that was saved last? A judgement of the clock itself",
    "doctor.machine.Machine": "the doctor's own look at it",
}
"""Who may ask for the wall time by another way than a `Clock`, and why."""

RECKONS = {
    "boot.wall_trust": READS["boot.wall_trust"],
    "clock.ManualClock.__init__": "a fake wall clock is made of the monotonic one",
    "clock.ManualClock.wall_s": "a fake wall clock is made of the monotonic one",
    "clock.ManualClock.set_wall_s": "a fake wall clock is made of the monotonic one",
    "daemon.Daemon._short_cut": "how long the power was off, if both ends are trusted: nothing else tells",
    "ki.http_link.HttpLink._judged": "how wrong this clock or the KI's is: said to people, decides nothing",
    "ranking.syncing._note_boot": "when a table's boot was, by the KI's clock: a label",
    "wall_time.WallTime.label": "the KI's time, carried on by the monotonic clock",
}
"""Who may add, subtract or compare wall times, and why."""

WALL_CALLS = {
    ("time", "time"),
    ("time", "time_ns"),
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("datetime", "today"),
    ("date", "today"),
}


def places(tree: ast.Module, module: str) -> Iterator[tuple[str, ast.AST]]:
    """Every node, with the dotted name of the function or class that holds it."""

    def walk(node: ast.AST, name: str) -> Iterator[tuple[str, ast.AST]]:
        for child in ast.iter_child_nodes(node):
            inner = name
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{name}.{child.name}"
            yield inner, child
            yield from walk(child, inner)

    yield from walk(tree, module)


def reads_wall(node: ast.AST) -> bool:
    """`time.time`, `datetime.now` and the like, called or handed on."""
    return (
        isinstance(node, ast.Attribute)
        and (getattr(node.value, "id", getattr(node.value, "attr", "")), node.attr) in WALL_CALLS
    )


def speaks_of_wall(node: ast.AST) -> bool:
    """Somewhere in the expression stands a wall time."""
    for each in ast.walk(node):
        name = getattr(each, "id", getattr(each, "attr", ""))
        if (isinstance(name, str) and ("wall" in name or name == "told_s")) or reads_wall(each):
            return True
    return False


def reckons(node: ast.AST) -> bool:
    """Adds, subtracts, scales or compares."""
    if isinstance(node, ast.Compare):
        return not all(isinstance(each, ast.Is | ast.IsNot) for each in node.ops)
    return isinstance(node, ast.BinOp | ast.AugAssign)


def found(text: str, module: str) -> tuple[set[str], set[str]]:
    """Where wall time is read, and where it is reckoned with."""
    reads, reckoning = set(), set()
    for name, node in places(ast.parse(text), module):
        if reads_wall(node):
            reads.add(name)
        if reckons(node) and speaks_of_wall(node):
            reckoning.add(name)
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            waits = called in ("sleep", "call_later", "call_at", "wait_for", "wait", "sorted", "min", "max")
            if waits and any(map(speaks_of_wall, (*node.args, *(each.value for each in node.keywords)))):
                reckoning.add(name)
    return reads, reckoning


def all_found() -> tuple[set[str], set[str]]:
    reads: set[str] = set()
    reckoning: set[str] = set()
    for file in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(file.relative_to(PACKAGE).with_suffix("").parts)
        one, other = found(file.read_text(encoding="utf-8"), module)
        reads |= one
        reckoning |= other
    return reads, reckoning


@pytest.mark.fault("F038")
def test_wall_time_is_read_where_it_may_be() -> None:
    """Everything else gets its time from a `Clock`, which tests can step; and no excuse is out of use."""
    assert all_found()[0] == set(READS)


@pytest.mark.fault("F038")
def test_no_duration_is_built_from_wall_time() -> None:
    """Only the places named above reckon with it, each for its reason; and none is named in vain."""
    assert all_found()[1] == set(RECKONS)


def test_the_search_finds_what_it_is_for() -> None:
    """Each way to build a duration from wall time is found; labels alone are not."""
    for wrong in (
        "def f(self):\n    return self.clock.wall_s() + 5",
        "def f(self):\n    if clock.wall_s() > self.until_wall_s: pass",
        "def f():\n    left = deadline - time.time()",
        "def f():\n    loop.call_later(self.wall_s, g)",
        "def f():\n    sorted(matches, key=lambda each: each.wall_s)",
        "def f():\n    waited += wall_s",
    ):
        assert found(wrong, "m")[1] == {"m.f"}, wrong
    for right in (
        "def f(self):\n    return Label(self.clock.wall_s(), trust)",
        "def f(self):\n    return None if wall_s is None else show(wall_s)",
        "def f(self):\n    return time.monotonic() + 5",
    ):
        assert found(right, "m")[1] == set(), right
    assert found("def f():\n    return datetime.datetime.now(UTC)", "m")[0] == {"m.f"}
    assert found("def f(now=time.time): pass", "m")[0] == {"m.f"}
