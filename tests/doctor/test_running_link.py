"""What the doctor says of a running table's link, from the numbers that the table's page tells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heek.config import from_text
from heek.doctor.examination import Case, examine
from heek.doctor.findings import Finding, Mark
from heek.doctor.machine import Machine, this_machine
from heek.doctor.running_link import link_findings
from heek.web.metrics import KiFigures
from tests.web.serving import serving

SERIAL = """
[stations]
backend = "mock"
[web]
port = {port}
[ki]
link = "serial"
port = "/dev/serial0"
"""
UP = {"heek_ki_waiting": 0, "heek_ki_up": 1, "heek_link_up": 1}


def told(link: str, **counted: float) -> dict[str, Finding]:
    """The findings of a link with these counters."""
    values = UP | {
        name if name.startswith("heek_") else f"heek_link_{name}": value for name, value in counted.items()
    }
    return {f"{each.area}: {each.what}": each for each in link_findings(link, values)}


def test_a_sound_line() -> None:
    """Up, with every counter and the round trip."""
    finding = told(
        "serial", frames=900, invalid_bytes=3, crc_errors=1, resends=2, hellos=4, round_trip_smoothed_ms=12.34
    )["serial: link"]
    assert finding.mark is Mark.OK
    assert finding.found == (
        "up; 900 frames, 3 invalid bytes, 1 CRC errors, 2 resends, 0 duplicates, 4 hellos, round trip 12.3 ms"
    )


def test_a_line_that_damages_much() -> None:
    """From one damaged frame in fifty on the cable is to be looked at, if there were enough of them."""
    assert told("serial", frames=97, crc_errors=3)["serial: link"].mark is Mark.WARNING
    assert "damages 3 % of what comes" in told("serial", frames=97, crc_errors=3)["serial: link"].found
    assert told("serial", frames=99, crc_errors=1)["serial: link"].mark is Mark.OK
    assert told("serial", frames=4, crc_errors=3)["serial: link"].mark is Mark.OK


def test_a_line_that_is_down() -> None:
    """Nothing ever came, or something else did: two findings with two things to do."""
    silent = told("serial", heek_link_up=0, hellos=40)["serial: link"]
    assert (silent.mark, silent.found) == (Mark.WARNING, "nothing has ever come in, and it called 40 times")
    assert "does the gateway run" in silent.remedy
    noisy = told("serial", heek_link_up=0, invalid_bytes=500)["serial: link"]
    assert noisy.found.startswith("down; 0 frames, 500 invalid bytes")


def test_a_table_without_a_wire_has_no_such_line() -> None:
    """Where there is no link, or it is no wire, or nobody tells, there is nothing to say."""
    for link, values in (("none", None), ("http", UP), ("serial", None)):
        assert list(link_findings(link, values)) == []


@contextmanager
def a_running_table(figures: KiFigures) -> Iterator[int]:
    """The port of a page that tells these figures."""
    with serving(ki_figures=lambda: figures) as served:
        yield served.port


def test_a_running_table_is_asked_by_its_page(tmp_path: Path) -> None:
    """The doctor beside a running table reads its counters over HTTP; without one it asks nobody."""
    figures = KiFigures("serial", 2, False, True, None, {"frames": 77})
    with a_running_table(figures) as port:
        machine = Machine(root=tmp_path, metrics=this_machine().metrics)
        config = from_text(SERIAL.format(port=port), "a test")
        found = {f"{each.area}: {each.what}": each for each in examine(Case(machine, config, "f", (), 4711))}
        assert found["serial: link"].found.startswith("up; 77 frames")
        without = {f"{each.area}: {each.what}" for each in examine(Case(machine, config, "f"))}
        assert "serial: link" not in without
    # The page is gone while the table still runs.
    gone = {f"{each.area}: {each.what}" for each in examine(Case(machine, config, "f", (), 4711))}
    assert "serial: link" not in gone
