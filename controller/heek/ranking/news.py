"""What the KI has to tell each table, numbered from 1 without gaps, and kept for ever.

A table asks from the number that it has on, so whatever is told twice changes nothing. If a table has heard
more than there is here, the ledger was put back from a copy: what was lost then leaves news of a kind that
says so in its place, since another piece under a number that the table has heard would never be heard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sqlalchemy import Connection, func, select

from heek.ki import cbor
from heek.ki.sync import MOST_NEWS, MOST_NEWS_BYTES, News
from heek.ranking.findings import LOST_NEWS, find
from heek.ranking.schema import news

LOST: Final = "lost"
"""No fields: what this piece said is not known any more; whoever has heard it keeps it."""
MOST_LOST: Final = 1000
"""A table that claims to have heard more than this too much is not believed."""


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
        select(news.c.number, news.c.kind, news.c.fields)
        .where(news.c.table_id == table, news.c.number > number)
        .order_by(news.c.number)
        .limit(MOST_NEWS)
    )
    told: list[News] = []
    size = 0
    for row in rows:
        size += len(row.fields) + len(row.kind) + 16
        if told and size > MOST_NEWS_BYTES:
            break
        told.append(News(row.number, row.kind, cbor.decode(row.fields)))
    return tuple(told)


def make_up_for_lost(connection: Connection, table: int, heard: int, now_s: int) -> None:
    """See that what is told next has a number that a table which has heard `heard` has not heard yet."""
    newest = newest_number(connection, table)
    lost = heard - newest
    if not 0 < lost <= MOST_LOST:
        return
    for number in range(newest + 1, heard + 1):
        _add(connection, table, number, LOST, cbor.encode({}), now_s, None)
    words = (
        f"it has heard {lost} things from this KI that the ledger does not know; was the ledger put back "
        "from a backup? What was voided, restored, renamed or erased since then is to be done again"
    )
    find(connection, table, LOST_NEWS, words, now_s, lost)


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
            table_id=table, number=number, kind=kind, fields=fields, player=player, at_s=now_s
        )
    )
