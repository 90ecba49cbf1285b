"""What a table is answered when it asks how things stand, and what is kept of what it says of itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, select

from heek.errors import RankingRefusal
from heek.ki.sync import Holds, SyncAnswer, SyncQuestion, is_from
from heek.ranking.accounts import points_of
from heek.ranking.findings import LOST_NEWS, find
from heek.ranking.news import knows, newest_number, news_after
from heek.ranking.schema import boots, presence, tables

MOST_BOOTS: Final = 2000
"""Starts of one table's machine that are kept; the one that was seen least lately is forgotten."""
SHOWN_MS: Final = 60_000
"""Pages show times to the minute."""
LOST_WORDS: Final = (
    "it has heard things from this KI that the ledger does not know; was the ledger put back from a backup? "
    "What was voided, restored, renamed or erased since then is to be done again"
)


def asking_table(connection: Connection, question: SyncQuestion, signed: bytes, signature: bytes) -> Row[Any]:
    """The table that asks; raises RankingRefusal if it is not known, or the signature is not its own."""
    table = connection.execute(select(tables).where(tables.c.key_id == question.table)).first()
    if table is None:
        raise RankingRefusal("unknown_table", f"the key {question.table.hex()} is not known to this KI")
    if not is_from(signed, signature, table.public):
        raise RankingRefusal("malformed", "the signature of the question is not that of the table's key")
    return table


def note(connection: Connection, table: Row[Any], question: SyncQuestion, wall_s: float) -> bool:
    """Keep what a table says of itself; whether pages show other times of matches than before."""
    now_s = int(wall_s)
    if table.name != question.name:
        connection.execute(tables.update().where(tables.c.id == table.id).values(name=question.name))
    said = {
        "seen_s": now_s,
        "waiting": question.waiting,
        "told_held": question.holds[0],
        "told_xor": question.holds[1],
        "told_news": question.news,
    }
    mine = presence.c.table_id == table.id
    if not connection.execute(presence.update().where(mine).values(said)).rowcount:
        connection.execute(presence.insert().values(table_id=table.id, **said))
    if not knows(connection, table.id, question.news, question.mark):
        find(connection, table.id, LOST_NEWS, LOST_WORDS, now_s)
    return _note_boot(connection, table.id, question, wall_s)


def answer(
    connection: Connection, table: Row[Any], question: SyncQuestion, mark: bytes, now_s: int
) -> SyncAnswer:
    """How things stand for a table."""
    after = question.news if knows(connection, table.id, question.news, question.mark) else 0
    return SyncAnswer(
        n=question.n,
        mark=mark,
        holds=(table.held, table.held_xor),
        points=points_of(connection, question.players),
        now_s=now_s,
        news=news_after(connection, table.id, after),
        newest=newest_number(connection, table.id),
        after=after,
        formers=_held(connection, question.formers),
    )


def _held(connection: Connection, keys: Sequence[bytes]) -> dict[bytes, Holds | None]:
    """What is held of these key ids, each that a table had before; None: that key is not known."""
    rows = connection.execute(
        select(tables.c.key_id, tables.c.held, tables.c.held_xor).where(tables.c.key_id.in_(keys))
    )
    known: dict[bytes, Holds | None] = {row.key_id: (row.held, row.held_xor) for row in rows} if keys else {}
    return {key: known.get(key) for key in keys}


def corrected_s(connection: Connection, table: int, boot: str, mono_ms: int) -> int | None:
    """When it was by the KI's wall clock, seconds since 1970; None if the table never asked in that boot."""
    offset_ms = connection.execute(
        select(boots.c.offset_ms).where(boots.c.table_id == table, boots.c.boot == boot)
    ).scalar()
    return None if offset_ms is None else (offset_ms + mono_ms) // 1000


def _note_boot(connection: Connection, table: int, question: SyncQuestion, wall_s: float) -> bool:
    """Tie the clock of a table's boot to ours; whether that tells other times than before."""
    # The newest one holds: our own clock may have been wrong before.
    offset_ms = int(wall_s * 1000) - question.mono_ms
    mine = boots.c.table_id == table
    this = mine & (boots.c.boot == question.boot)
    before: int | None = connection.execute(select(boots.c.offset_ms).where(this)).scalar()
    now = {"offset_ms": offset_ms, "seen_s": int(wall_s)}
    if before is not None:
        connection.execute(boots.update().where(this).values(now))
        return abs(offset_ms - before) >= SHOWN_MS
    connection.execute(boots.insert().values(table_id=table, boot=question.boot, **now))
    too_many = _boots_by_age(connection, table)
    for boot in too_many:
        connection.execute(boots.delete().where(mine, boots.c.boot == boot))
    return True


def _boots_by_age(connection: Connection, table: int) -> Iterable[str]:
    """Those beyond `MOST_BOOTS`."""
    return (
        connection.execute(
            select(boots.c.boot)
            .where(boots.c.table_id == table)
            .order_by(boots.c.seen_s.desc(), boots.c.boot)
            .offset(MOST_BOOTS)
        )
        .scalars()
        .all()
    )
