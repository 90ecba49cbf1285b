"""The words of heek.testing on whatever `--table` names: in the simulator, and on a kernel's pins."""

from __future__ import annotations

from typing import Any

import pytest

from heek.testing.table import Table

TWO = {"station": [{"seat": 1}, {"seat": 3}]}


def play(table: Table, *throws: tuple[int, str]) -> None:
    for seat, button in throws:
        table.seat(seat).press(button)
        table.wait(0.4)


def to_round(table: Table, *seats: int) -> None:
    """All sit down, and are ready."""
    for _ in range(2):
        play(table, *((seat, "pen") for seat in seats))
    table.expect(event="round_opened", within=1)
    table.wait(0.5)


def test_a_round_is_thrown_and_told(table: Table) -> None:
    """Events, lamps and screen of a round, from the lobby to the reveal."""
    table.seat(2).press("beetle")
    table.expect(event="seat_taken", seat=2, within=0.5)
    assert table.lamp(2) == "taken"
    assert table.lamp(5) == "free"
    table.expect(screen="lobby", within=1)
    table.wait(1)
    table.seat(4).press("pen")
    table.expect(event="seat_taken", seat=4, within=0.5)
    table.wait(0.5)
    play(table, (2, "pen"), (4, "pen"))
    table.expect(event="round_opened", within=1)
    table.wait(0.5)
    table.seat(2).press("pen", bounce=[(0.004, 0), (0.008, 1)])
    table.expect(event="throw_locked", seat=2, within=0.5)
    table.expect(lamp=2, pattern="thrown", within=1)
    table.expect_no(event="round_revealed", within=1)
    table.seat(4).press("page")
    revealed = table.expect(event="round_revealed", within=1)
    assert revealed["points"] == {"2": 1, "4": -1}
    table.expect(screen="reveal", within=1)


@pytest.mark.table({**TWO, "ahyoheek.target": 1, "ahyoheek.guard_s": 0})
def test_a_configuration_of_its_own(table: Table) -> None:
    """Two stations, one win is a match."""
    to_round(table, 1, 3)
    play(table, (1, "pen"), (3, "page"))
    won = table.expect(event="match_won", seat=1, within=1)
    assert won["by"] == "three"


def test_a_standstill_loses_no_press(table: Table) -> None:
    """What is pressed while the program stands still counts by its stamp."""
    to_round(table, 1, 2)
    table.stall(0.4)
    table.wait(0.1)
    table.seat(1).press("pen")
    table.wait(0.1)
    table.seat(2).press("page")
    revealed = table.expect(event="round_revealed", within=2)
    assert revealed["winners"] == [1]


def test_a_table_without_power_goes_on_where_it_was(table: Table) -> None:
    """After a cut the match is still there, and the OLED dark meanwhile."""
    to_round(table, 1, 2)
    table.power_cut()
    table.wait(0.5)
    assert table.screen == "off"
    table.power_on()
    table.expect(event="table_started", within=2)
    events: list[Any] = [event["event"] for event in table.events]
    assert events.count("table_started") == 2
    assert events.count("match_started") == 1


def test_a_contact_that_is_held_at_start_up_is_told(table: Table) -> None:
    """An edge at 0 is how the contact stands when the table is switched on."""
    table.at(0)
    table.seat(4).edge("beetle", closed=True)
    table.wait(1)
    table.expect(event="contact_stuck", seat=4, button="beetle", within=1)
