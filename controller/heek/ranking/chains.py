"""The chain of each table's records, and what is wrong with it: a gap, a rewind, a fork.

Every record names the one before it by its hash, so what a table has signed is a chain for as long as one
journal goes on. Whatever a record is worth as a result, it has its place here once its signature is right.

* **Gap**: the record before is not here. While a table still has results waiting that means nothing, because
  they may come in any order; when it says that nothing waits, it is told.
* **Rewind**: a second record follows the same one. The journal has gone back to an earlier state, as a card
  that is put back from a backup does, and has gone on from there. What was the end of the chain is passed by.
* **Fork**: a record follows an end that was passed by. Somebody goes on with the journal that was thought to
  be gone, so there are two of it: a cloned card. Two records of the same number from one start of a daemon
  are a fork as well, since a daemon counts on.

The arrival's order tells a fork from a rewind, for nothing in the records could; a table sends its oldest
results first.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, exists, func, or_, select

from heek.errors import RecordError
from heek.ki.record import Record, decode_record, record_hash
from heek.ranking.findings import FORK, GAP, REWIND, find, find_number, take_back
from heek.ranking.schema import links, matches, records, set_aside

ROOT: Final = bytes(32)
"""What the first record of a journal follows."""

_REWIND_WORDS: Final = (
    "its journal went back to an earlier state and goes on from there; was its card put back from a backup? "
    "What it had reported before counts, and so does what it reports now"
)
_FORK_WORDS: Final = (
    "two journals go on from the same past; was its card cloned? All results count; give one of the two a "
    "key of its own (stop it, move its table.key aside, enrol it)"
)


def add_link(connection: Connection, table: int, record: Record, signed: bytes, now_s: int) -> None:
    """Give a table's record its place, once; `signed` is its hash. Tells of a rewind or a fork."""
    prev = record.prev or ROOT
    near = connection.execute(
        select(links.c.id, links.c.record_hash, links.c.prev, links.c.inc, links.c.seq, links.c.passed).where(
            links.c.table_id == table,
            or_(
                links.c.record_hash.in_((signed, prev)),
                links.c.prev == prev,
                (links.c.inc == record.inc) & (links.c.seq == record.seq),
            ),
        )
    ).all()
    if any(each.record_hash == signed for each in near):
        return
    beside = any(each.prev == prev for each in near)
    twin = any((each.inc, each.seq) == (record.inc, record.seq) for each in near)
    passed = next((each.id for each in near if each.record_hash == prev and each.passed), None)
    if beside:
        _pass_by(connection, table, record.inc)
    if passed is not None:
        connection.execute(links.update().where(links.c.id == passed).values(passed=False))
    connection.execute(
        links.insert().values(
            table_id=table,
            record_hash=signed,
            prev=prev,
            inc=record.inc,
            seq=record.seq,
            passed=False,
        )
    )
    if passed is not None:
        # What looked like a rewind when the other branch began was none.
        take_back(connection, table, REWIND)
    if passed is not None or twin:
        find(connection, table, FORK, _FORK_WORDS, now_s)
    elif beside:
        find(connection, table, REWIND, _REWIND_WORDS, now_s)


def newest_link(connection: Connection, table: int) -> int:
    """Rises with every record of a table that gets its place; 0 before the first."""
    newest: int = connection.execute(
        select(func.coalesce(func.max(links.c.id), 0)).where(links.c.table_id == table)
    ).scalar_one()
    return newest


def look_for_gaps(connection: Connection, table: int, now_s: int) -> None:
    """See whether records of a table are missing that others follow; for when it says that nothing waits."""
    before = links.alias()
    missing = connection.execute(
        select(func.count(links.c.prev.distinct())).where(
            links.c.table_id == table,
            links.c.prev != ROOT,
            # By hash alone: a card swap binds what waits to a new key, and the chain goes on across it.
            ~exists().where(before.c.record_hash == links.c.prev),
        )
    ).scalar_one()
    some = "a record that others follow was" if missing == 1 else f"{missing} records that others follow were"
    words = f"{some} never reported here; was its journal lost, or did it report to another KI then?"
    find_number(connection, table, GAP, words, now_s, missing)


def link_all(connection: Connection) -> None:
    """Give every record that the ledger has its place, without telling of anything: for an older ledger."""
    counted = connection.execute(
        select(matches.c.table_id, records.c.record).join(matches, matches.c.id == records.c.match)
        .order_by(records.c.match)
    )  # fmt: skip
    aside = connection.execute(select(set_aside.c.table_id, set_aside.c.record).order_by(set_aside.c.id))
    known: set[tuple[int, bytes]] = set()
    for table, data in (*counted, *aside):
        signed = record_hash(data)
        try:
            record = decode_record(data)
        except RecordError:
            continue
        if (table, signed) in known:
            continue
        known.add((table, signed))
        connection.execute(
            links.insert().values(
                table_id=table,
                record_hash=signed,
                prev=record.prev or ROOT,
                inc=record.inc,
                seq=record.seq,
                passed=False,
            )
        )


def _pass_by(connection: Connection, table: int, inc: bytes) -> None:
    """Mark the ends of a table's chain, from which another branch turns away now."""
    after = links.alias()
    ends = select(links.c.id).where(
        links.c.table_id == table,
        links.c.inc != inc,
        ~exists().where(after.c.table_id == table, after.c.prev == links.c.record_hash),
    )
    connection.execute(links.update().where(links.c.id.in_(ends)).values(passed=True))
