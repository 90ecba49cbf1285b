"""What the KI has to tell each table, numbered from 1 without gaps, and kept for ever.

A table asks from the number that it has on, so whatever is told twice changes nothing. It names the mark of
its newest (`heek.ki.sync`). If that is not known here under this number, the ledger was put back from a copy,
and what was told since is lost or stands under other numbers: then the table is told all there is from 1.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, func, select

from heek.ki import cbor
from heek.ki.sync import MARK_BYTES, MOST_NEWS, MOST_NEWS_BYTES, News
from heek.ranking.schema import news


def tell(
    connection: Connection,
    tables: Iterable[int],
    kind: str,
    fields: Mapping[str, object],
    now_s: int,
    player: int | None = None,
) -> None:
    """News for each of these tables (by inner id); `player` (likewise) is the one whom its name is of."""
    packed = cbor.encode(dict(fields))
    for table in sorted(set(tables)):
        _add(connection, table, newest_number(connection, table) + 1, kind, packed, now_s, player)


def newest_number(connection: Connection, table: int) -> int:
    """The highest number of a table's news; 0 before the first."""
    newest: int = connection.execute(
        select(func.coalesce(func.max(news.c.number), 0)).where(news.c.table_id == table)
    ).scalar_one()
    return newest


def news_after(connection: Connection, table: int, number: int) -> tuple[News, ...]:
    """The news of a table that follow this number, as many as one answer takes."""
    rows = connection.execute(
        select(news.c.number, news.c.kind, news.c.fields, news.c.mark)
        .where(news.c.table_id == table, news.c.number > number)
        .order_by(news.c.number)
        .limit(MOST_NEWS)
    )
    told: list[News] = []
    size = 0
    for row in rows:
        size += len(row.fields) + len(row.kind) + 32
        if told and size > MOST_NEWS_BYTES:
            break
        told.append(News(row.number, row.kind, cbor.decode(row.fields), row.mark))
    return tuple(told)


def knows(connection: Connection, table: int, number: int, mark: bytes) -> bool:
    """Whether a table that names this mark for its newest has heard what stands here up to that number."""
    kept = connection.execute(
        select(news.c.mark).where(news.c.table_id == table, news.c.number == number)
    ).scalar()
    return number == 0 or kept == mark


def _add(
    connection: Connection,
    table: int,
    number: int,
    kind: str,
    fields: bytes,
    now_s: int,
    player: int | None,
) -> None:
    connection.execute(
        news.insert().values(
            table_id=table,
            number=number,
            kind=kind,
            fields=fields,
            mark=secrets.token_bytes(MARK_BYTES),
            player=player,
            at_s=now_s,
        )
    )
