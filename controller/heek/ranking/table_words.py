"""How a table stands, and what was seen of it, in words: the same on the page and on the command line."""

from __future__ import annotations

from heek.ranking.findings import Finding
from heek.ranking.table_list import TableLine
from heek.ranking.words import counted, time_words


def standing_words(table: TableLine) -> str:
    """`last seen 2026-05-02 14:02 UTC, 3 results wait there, 41 matches count, enrolled`."""
    said = [last_seen(table)]
    if table.waiting:
        said.append(backlog(table))
    said.append(f"{counted(table.holds[0], 'match counts', 'matches count')}{digest_words(table)}")
    if table.set_aside:
        said.append(f"{table.set_aside} set aside")
    said.append(how_known(table))
    return ", ".join(said)


def last_seen(table: TableLine) -> str:
    return (
        "has never asked how things stand" if table.seen_s is None else f"last seen {seen_at(table.seen_s)}"
    )


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


def when_found(found: Finding) -> str:
    """`on 2 May 2026, 14:02 UTC`, or from the first to the last."""
    first, last = seen_at(found.first_s), seen_at(found.last_s)
    if first != last:
        return f"from {first} to {last}"
    return last if time_words(found.last_s) is None else f"on {last}"


def seen_at(wall_s: int) -> str:
    return time_words(wall_s) or "at an unknown time"


def finding_words(found: Finding) -> str:
    """`rewind, 2 times, from … to …: its journal went back …`."""
    times = f", {found.count} times" if found.count > 1 else ""
    return f"{found.kind}{times}, {when_found(found)}: {found.words}"
