"""Tables that an operator has enrolled by their code, and those whose place another one took."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, func, select

from heek.errors import RankingRefusal
from heek.ki.envelope import key_id
from heek.ranking.schema import enrolments, tables

MOST_TABLES: Final = 10_000


@dataclass(frozen=True, slots=True)
class EnrolledTable:
    """A table that was enrolled just now."""

    name: str
    key_id: bytes
    replaces: str | None
    """The name of the table whose place it took."""


def know_table(connection: Connection, public: bytes, name: str, now_s: int) -> tuple[int, bool]:
    """The inner id of the table with this public key, under this name from now on; and whether it is new.

    Raises RankingRefusal if there are too many tables, or its key id is another's.
    """
    key = key_id(public)
    known = connection.execute(select(tables.c.id, tables.c.public).where(tables.c.key_id == key)).first()
    if known is not None:
        if known.public != public:
            raise RankingRefusal("not_enrolled", "another table's key has the same key id")
        connection.execute(tables.update().where(tables.c.id == known.id).values(name=name))
        return known.id, False
    if connection.execute(select(tables.c.id).offset(MOST_TABLES - 1).limit(1)).first():
        raise RankingRefusal("not_enrolled", f"this KI knows {MOST_TABLES} tables, and takes no more")
    table: int = connection.execute(
        tables.insert()
        .values(key_id=key, public=public, name=name, known_since=now_s, held=0, held_xor=bytes(16))
        .returning(tables.c.id)
    ).scalar_one()
    return table, True


def enrol(
    connection: Connection, public: bytes, name: str, replaces: str | None, actor: str, now_s: int
) -> EnrolledTable:
    """Know a table by its operator's word; `replaces` is the name or key id of the one whose place it takes.

    Raises RankingRefusal if there is no such one, or it cannot be told which.
    """
    former = None if replaces is None else find_table(connection, replaces)
    table, _ = know_table(connection, public, name, now_s)
    if former is not None and former.id == table:
        raise RankingRefusal("malformed", f"{former.name} cannot take its own place; leave --replaces away")
    connection.execute(
        enrolments.insert().values(
            table_id=table, replaces=None if former is None else former.id, actor=actor, at_s=now_s
        )
    )
    return EnrolledTable(name, key_id(public), None if former is None else former.name)


def find_table(connection: Connection, said: str) -> Row[Any]:
    """The table of this name, or of this key id in hexadecimal; raises RankingRefusal."""
    named = connection.execute(select(tables).where(tables.c.name == said)).all()
    try:
        by_key = connection.execute(select(tables).where(tables.c.key_id == bytes.fromhex(said))).first()
    except ValueError:
        by_key = None
    if by_key is not None:
        return by_key
    if not named:
        raise RankingRefusal("unknown_table", f"no table is called {said!r} or has this key id")
    if len(named) > 1:
        keys = ", ".join(each.key_id.hex() for each in named)
        raise RankingRefusal(
            "unknown_table", f"{len(named)} tables are called {said!r}; say which key: {keys}"
        )
    return named[0]


def replaced_by(connection: Connection, table: int) -> int | None:
    """The table that took this one's place (inner ids); None if none has, or it was enrolled again since."""
    newest = select(func.coalesce(func.max(enrolments.c.id), 0)).where(enrolments.c.table_id == table)
    return connection.execute(
        select(enrolments.c.table_id)
        .where(enrolments.c.replaces == table, enrolments.c.id > newest.scalar_subquery())
        .order_by(enrolments.c.id.desc())
        .limit(1)
    ).scalar()


def with_replacements(connection: Connection, wanted: Iterable[int]) -> set[int]:
    """These tables, and those that took their places."""
    found: set[int] = set()
    ahead = list(wanted)
    while ahead:
        table = ahead.pop()
        if table in found:
            continue
        found.add(table)
        after = replaced_by(connection, table)
        if after is not None:
            ahead.append(after)
    return found
