"""What an operator should know of a table: kept once a kind, logged when it happens, and deciding nothing.

The specification, "Exactly once" 4 and 5: counters detect, the results still count.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, select

from heek.ranking.schema import findings, tables

log: Final = logging.getLogger("heek")

GAP: Final = "gap"
REWIND: Final = "rewind"
FORK: Final = "fork"
CLONE: Final = "clone"
REPLACED: Final = "replaced"
LOST_NEWS: Final = "lost news"


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of thing that was seen of a table, as often as it was."""

    kind: str
    words: str
    """What it means and what to do, as a sentence without its full stop."""
    first_s: int
    last_s: int
    count: int


def find(connection: Connection, table: int, kind: str, words: str, now_s: int, times: int = 1) -> None:
    """It has happened (again); `words` say it as it stands now."""
    mine = (findings.c.table_id == table) & (findings.c.kind == kind)
    known = connection.execute(select(findings.c.count).where(mine)).scalar()
    if known is None:
        connection.execute(
            findings.insert().values(
                table_id=table, kind=kind, words=words, first_s=now_s, last_s=now_s, count=times
            )
        )
    else:
        connection.execute(
            findings.update().where(mine).values(words=words, last_s=now_s, count=known + times)
        )
    _log(connection, table, kind, words)


def find_number(connection: Connection, table: int, kind: str, words: str, now_s: int, number: int) -> None:
    """As many there are now; 0: all is well (again). Logged only when the number changes."""
    mine = (findings.c.table_id == table) & (findings.c.kind == kind)
    known = connection.execute(select(findings.c.count).where(mine)).scalar()
    if (known or 0) == number:
        return
    if number == 0:
        connection.execute(findings.delete().where(mine))
    elif known is None:
        find(connection, table, kind, words, now_s, number)
        return
    else:
        connection.execute(findings.update().where(mine).values(words=words, last_s=now_s, count=number))
    _log(connection, table, kind, words if number else "is closed: nothing is missing any more")


def take_back(connection: Connection, table: int, kind: str) -> None:
    """It has happened once less than was thought."""
    mine = (findings.c.table_id == table) & (findings.c.kind == kind)
    connection.execute(findings.update().where(mine).values(count=findings.c.count - 1))
    connection.execute(findings.delete().where(mine, findings.c.count <= 0))


def findings_of(connection: Connection, table: int) -> tuple[Finding, ...]:
    """All that was seen of a table (by inner id), in the order in which it was first seen."""
    rows = connection.execute(
        select(findings.c.kind, findings.c.words, findings.c.first_s, findings.c.last_s, findings.c.count)
        .where(findings.c.table_id == table)
        .order_by(findings.c.first_s, findings.c.kind)
    )
    return tuple(Finding(*row) for row in rows)


def _log(connection: Connection, table: int, kind: str, words: str) -> None:
    name, key = connection.execute(select(tables.c.name, tables.c.key_id).where(tables.c.id == table)).one()
    log.warning("%s (key %s): %s: %s", name, key.hex(), kind, words)
