"""How a table stands, and what was seen of it, in words: the same on the page and on the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from heek.ranking.findings import Finding
from heek.ranking.table_list import TableLine
from heek.ranking.words import counted

TimeWords: TypeAlias = Callable[[int], str]
"""Seconds since 1970 as people read them."""


def standing_words(table: TableLine, time: TimeWords) -> str:
    """`last seen 2026-05-02 14:02 UTC, 3 results wait there, 41 matches count, enrolled`."""
    said = [last_seen(table, time)]
    if table.waiting:
        said.append(backlog(table))
    said.append(f"{counted(table.holds[0], 'match counts', 'matches count')}{digest_words(table)}")
    if table.set_aside:
        said.append(f"{table.set_aside} set aside")
    said.append(how_known(table))
    return ", ".join(said)


def last_seen(table: TableLine, time: TimeWords) -> str:
    return "has never asked how things stand" if table.seen_s is None else f"last seen {time(table.seen_s)}"


def backlog(table: TableLine) -> str:
    return counted(table.waiting, "result waits there", "results wait there")


def digest_words(table: TableLine) -> str:
    """Whether table and KI agree on what counts; empty if they do, or if that cannot be told yet."""
    if table.told is None or table.told == table.holds or table.waiting:
        return ""
    return f" (the table says {table.told[0]})" if table.told[0] != table.holds[0] else " (others than there)"


def how_known(table: TableLine) -> str:
    known = "enrolled" if table.enrolled else "taken at first sight"
    return known if table.replaced_by is None else f"{known}, replaced by {table.replaced_by}"


def finding_words(found: Finding, time: TimeWords) -> str:
    """`rewind, 2 times, from … to …: its journal went back …`."""
    when = time(found.last_s)
    if time(found.first_s) != when:
        when = f"{time(found.first_s)} to {when}"
    times = f", {found.count} times" if found.count > 1 else ""
    return f"{found.kind}{times}, {when}: {found.words}"
