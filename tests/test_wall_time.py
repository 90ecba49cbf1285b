"""How far the wall clock is believed, and what it is labelled with when somebody tells the time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heek import boot
from heek.boot import this_boot, wall_trust
from heek.clock import SECOND, ManualClock
from heek.wall_time import PATIENCE, SANE_S, WallTime

NOON = 1_764_504_000.0
"""2025-11-30T12:00:00Z."""


UNSET = (5, 64)
"""The kernel's clock as each start finds it: TIME_ERROR, STA_UNSYNC."""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which everything is looked for that tells of the clock."""
    monkeypatch.setattr(boot, "_SYNCHRONISED", tmp_path / "synchronized")
    monkeypatch.setattr(boot, "_SAVED", (tmp_path / "clock", tmp_path / "fake-hwclock.data"))
    monkeypatch.setattr(boot, "_FROM_RTC", tmp_path / "hctosys")
    monkeypatch.setattr(boot, "_adjtimex", lambda: UNSET)
    return tmp_path


@pytest.mark.parametrize("name", ["clock", "fake-hwclock.data"])
def test_a_clock_that_goes_on_from_a_saved_time(machine: Path, name: str) -> None:
    """At or after the saved time it is `saved`, before it nobody knows; set over the network it is `ntp`."""
    assert wall_trust(lambda: NOON) == "none"
    (machine / name).touch()
    os.utime(machine / name, (NOON, NOON))
    assert wall_trust(lambda: NOON) == "saved"
    assert wall_trust(lambda: NOON - 1) == "none"
    assert wall_trust(lambda: 0.0) == "none"
    (machine / "synchronized").touch()
    assert wall_trust(lambda: NOON - 1) == "ntp"
    assert this_boot().trust == "ntp"


def test_a_clock_with_a_battery(machine: Path) -> None:
    """The kernel says whether it took the time from one; what it says else is no reason to believe it."""
    for said, trust in (("1\n", "saved"), ("0\n", "none"), ("\xff", "none"), ("", "none")):
        (machine / "hctosys").write_text(said, encoding="latin-1")
        assert wall_trust(lambda: NOON) == trust


@pytest.mark.parametrize(
    ("kernel", "trust"),
    [
        ((0, 0), "ntp"),
        ((0, 0x2001), "ntp"),
        ((1, 0x11), "ntp"),
        (UNSET, "none"),
        ((5, 0), "none"),
        ((0, 0x40), "none"),
        ((-1, 0), "none"),
        (None, "none"),
    ],
    ids=["chrony", "ntpd", "a leap second", "nobody", "an error", "hours ago", "not allowed", "no such call"],
)
@pytest.mark.usefixtures("machine")
def test_whoever_sets_the_clock_tells_the_kernel(
    monkeypatch: pytest.MonkeyPatch, kernel: tuple[int, int] | None, trust: str
) -> None:
    """chrony and ntpd leave no mark as timesyncd does; the kernel's own flag is theirs."""
    monkeypatch.setattr(boot, "_adjtimex", lambda: kernel)
    assert wall_trust(lambda: NOON) == trust


@pytest.mark.skipif(sys.platform != "linux", reason="the call is Linux's")
def test_the_kernel_is_asked_for_its_flag() -> None:
    """The real call: state and status are such as there are, and agree."""
    kernel = boot._adjtimex()
    assert kernel is not None
    state, status = kernel
    assert -1 <= state <= 5
    # A clock that nobody sets is in error, and one that is in error nobody sets.
    assert state == -1 or (state == 5) >= bool(status & 0x40)


def test_the_ki_tells_the_time_to_a_table_that_has_none() -> None:
    """Its time, half the round trip back, goes on with the monotonic clock, whatever the wall clock does."""
    clock = ManualClock(wall_s=3.0)
    trust = "none"
    wall = WallTime(clock, lambda: trust)
    assert wall.label() == (3.0, "none")
    clock.advance_to(10 * SECOND)
    assert wall.tell(NOON, 8 * SECOND)
    assert wall.label() == (NOON + 1, "service")
    clock.set_wall_s(9e9)
    clock.advance_to(110 * SECOND)
    assert wall.label() == (NOON + 101, "service")
    assert wall.wall_s() == NOON + 101
    # The network has set the clock at last: it is believed again.
    trust = "ntp"
    clock.set_wall_s(NOON + 105)
    assert wall.label() == (NOON + 105, "ntp")


@pytest.mark.parametrize(
    ("now_s", "asked"),
    [(SANE_S - 1, 100 * SECOND), (NOON, 100 * SECOND - PATIENCE - 1), (NOON, 100 * SECOND + 1)],
    ids=["a KI in the past", "a slow answer", "asked in the future"],
)
def test_what_tells_no_time(now_s: float, asked: int) -> None:
    """A KI whose own clock was never set, and an answer that took too long, change nothing."""
    clock = ManualClock(100 * SECOND, wall_s=7.0)
    wall = WallTime(clock, lambda: "saved")
    assert not wall.tell(now_s, asked)
    assert wall.label() == (7.0, "saved")


@given(st.lists(st.tuples(st.integers(0, 10**12), st.floats(-1e9, 1e10)), max_size=20))
def test_once_told_no_step_of_the_wall_clock_moves_the_label(steps: list[tuple[int, float]]) -> None:
    """Whatever the wall clock jumps to, the label goes on with the monotonic clock alone."""
    clock = ManualClock(SECOND)
    wall = WallTime(clock, lambda: "none")
    assert wall.tell(NOON, SECOND)
    for ahead, wall_s in steps:
        clock.advance_to(clock.now() + ahead)
        clock.set_wall_s(wall_s)
        told, trust = wall.label()
        assert trust == "service"
        assert told == NOON + (clock.now() - SECOND) / SECOND
        assert (wall.now(), wall.origin_ns) == (clock.now(), 0)
