"""Every table that the KI knows, how it stands, and what was seen of it. It only reads."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from heek.ki.sync import Holds
from heek.ranking.enrolling import replaced_by
from heek.ranking.findings import Finding, findings_of
from heek.ranking.schema import enrolments, presence, set_aside, tables


@dataclass(frozen=True, slots=True)
class TableLine:
    """One table."""

    name: str
    key_id: bytes
    known_since_s: int
    enrolled: bool
    """By an operator; else it was taken at first sight."""
    replaced_by: str | None
    """The name of the table that took its place."""
    seen_s: int | None
    """When it last asked how things stand, by the KI's wall clock; None: never."""
    waiting: int
    """How many results wait there, as it said then."""
    holds: Holds
    """What the KI holds from it."""
    told: Holds | None
    """What it took for acknowledged when it last asked."""
    set_aside: int
    """Its records that do not count."""
    findings: tuple[Finding, ...]


def table_list(connection: Connection) -> tuple[TableLine, ...]:
    """All tables, those with findings first, then by name."""
    enrolled = set(connection.execute(select(enrolments.c.table_id)).scalars())
    aside = {
        row.table_id: row.kept
        for row in connection.execute(
            select(set_aside.c.table_id, func.count().label("kept")).group_by(set_aside.c.table_id)
        )
    }
    rows = connection.execute(
        select(tables, presence).outerjoin(presence, presence.c.table_id == tables.c.id)
    ).all()
    names = {row.id: row.name for row in rows}
    lines = []
    for row in rows:
        after = replaced_by(connection, row.id)
        seen = row.seen_s is not None
        lines.append(
            TableLine(
                name=row.name,
                key_id=row.key_id,
                known_since_s=row.known_since,
                enrolled=row.id in enrolled,
                replaced_by=None if after is None else names[after],
                seen_s=row.seen_s,
                waiting=row.waiting if seen else 0,
                holds=(row.held, row.held_xor),
                told=(row.told_held, row.told_xor) if seen else None,
                set_aside=aside.get(row.id, 0),
                findings=findings_of(connection, row.id),
            )
        )
    return tuple(sorted(lines, key=lambda line: (not line.findings, line.name, line.key_id)))
