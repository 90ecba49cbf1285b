"""What an operator does to the ledger: entries are added with a reason, and tables hear of it.

Nothing is edited. A void is a ruling beside the match: from then on its transfers do not count, and a
restoring ruling takes that back. Since the deltas of a match are fixed, so is what either moves, whatever
came before or after it. An erasure gives the account another number and name and keeps its entries; whatever
names the old identity is replaced, also in the records' bytes, whose signatures are given up with them. One
thing stays: the old number itself, in the news that a table put back from a backup must hear again, and in
`former_numbers`, since results that come late still have to find their account.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import Connection, Row, func, select

from heek.errors import RankingRefusal
from heek.ki import cbor
from heek.ki.sync import ERASED, NAMED, RESTORED, VOIDED
from heek.ranking.accounts import count_again, free_name
from heek.ranking.enrolling import with_replacements
from heek.ranking.erased_records import NO_SIGNATURE, scrubbed
from heek.ranking.look_alikes import chosen_name, looks, looks_drawn
from heek.ranking.news import tell
from heek.ranking.operator_requests import Act, Erase, Rename, Restore, Void
from heek.ranking.schema import (
    entries,
    former_numbers,
    identity_acts,
    matches,
    news,
    players,
    records,
    rulings,
    set_aside,
    standings,
    transfers,
)

NO_NAME: Final = "erased"
"""What a former name is replaced by in what tables were told; after it they hear of the erasure."""


def carry_out(
    connection: Connection, act: Act, actor: str, now_s: int, free_number: Callable[[Connection], str]
) -> str:
    """Do it, within one transaction; what was done, as a sentence. Raises RankingRefusal if it cannot be.

    `free_number` draws a KI number that nobody has.
    """
    match act:
        case Void(match=match, reason=reason):
            return _rule(connection, match, reason, actor, now_s, voids=True)
        case Restore(match=match, reason=reason):
            return _rule(connection, match, reason, actor, now_s, voids=False)
        case Rename(player=number, name=name, reason=reason):
            return _rename(connection, number, name, reason, actor, now_s)
        case Erase(player=number, reason=reason):
            return _erase(connection, number, reason, actor, now_s, free_number(connection))


def _rule(connection: Connection, match: bytes, reason: str, actor: str, now_s: int, *, voids: bool) -> str:
    row = connection.execute(
        select(matches.c.id, matches.c.table_id, matches.c.rated, matches.c.receiver).where(
            matches.c.match == match
        )
    ).first()
    name = str(uuid.UUID(bytes=match))
    if row is None:
        raise RankingRefusal("unknown_match", f"no match {name} counts here")
    turn = connection.execute(
        select(func.coalesce(func.max(rulings.c.turn), 0)).where(rulings.c.match == row.id)
    ).scalar_one()
    if (turn % 2 == 1) is voids:
        raise RankingRefusal("malformed", f"match {name} is {'void already' if voids else 'not void'}")
    newest = connection.execute(select(func.max(matches.c.id))).scalar_one()
    connection.execute(
        rulings.insert().values(
            match=row.id,
            turn=turn + 1,
            turn_before=turn or None,
            actor=actor,
            reason=reason,
            at_s=now_s,
            after_match=newest,
        )
    )
    if row.rated:
        count_again(connection, _deltas(connection, row.id), row.receiver, times=-1 if voids else 1)
    kind = VOIDED if voids else RESTORED
    tell(
        connection,
        with_replacements(connection, [row.table_id]),
        kind,
        {"match": match, "reason": reason},
        now_s,
    )
    return f"match {name} {'is void' if voids else 'counts again'}"


def _deltas(connection: Connection, match: int) -> dict[int, int]:
    """What a match (inner id) moves for each of its players, by the transfers."""
    moved = dict.fromkeys(
        connection.execute(
            select(entries.c.player).where(entries.c.match == match, entries.c.player.is_not(None))
        ).scalars(),
        0,
    )
    for payer, receiver, amount in connection.execute(
        select(transfers.c.from_player, transfers.c.to_player, transfers.c.amount).where(
            transfers.c.match == match
        )
    ):
        moved[receiver] += amount
        if payer is not None:
            moved[payer] -= amount
    return moved


def _rename(connection: Connection, number: str, name: str, reason: str, actor: str, now_s: int) -> str:
    player = _player(connection, number)
    name = chosen_name(name)
    _refuse_alike(connection, player, name)
    connection.execute(players.update().where(players.c.id == player.id).values(name=name))
    _note(connection, "rename", player.id, actor, reason, now_s)
    fields = {"player": number, "name": name}
    tell(connection, _tables_of(connection, player.id), NAMED, fields, now_s, player.id)
    return f"{number} is called {name} now, and was {player.name}"


def _refuse_alike(connection: Connection, player: Row[Any], name: str) -> None:
    """Raises RankingRefusal if the name is the player's already, or may be taken for one that is not.

    Every name is looked at: that is some milliseconds for a thousand players, and an operator's alone.
    """
    if name == player.name:
        raise RankingRefusal("malformed", f"{name!r} is this player's name already")
    if name == free_name(connection, player.number):
        # What the player would be called without any renaming.
        return
    if looks_drawn(name):
        raise RankingRefusal(
            "malformed",
            f"{name!r} is like the names that the KI gives new players; choose one of another form",
        )
    sought = looks(name)
    for other, number in connection.execute(
        select(players.c.name, players.c.number).where(players.c.id != player.id)
    ):
        if other == name:
            raise RankingRefusal("malformed", f"{name!r} is another player's name ({number}); choose another")
        if any(mine == its for mine, its in zip(sought, looks(other), strict=True)):
            raise RankingRefusal(
                "malformed",
                f"{name!r} looks like another player's name ({other!r}, {number}); choose another",
            )


def _erase(connection: Connection, number: str, reason: str, actor: str, now_s: int, new_number: str) -> str:
    player = _player(connection, number)
    new_name = free_name(connection, new_number)
    connection.execute(
        players.update()
        .where(players.c.id == player.id)
        .values(number=new_number, name=new_name, unverified=True)
    )
    connection.execute(standings.update().where(standings.c.player == player.id).values(number=new_number))
    connection.execute(former_numbers.insert().values(number=number, player=player.id))
    _note(connection, "erase", player.id, actor, reason, now_s)
    _scrub(connection, player.id, number, new_number)
    _scrub_news(connection, player.id)
    tell(connection, _tables_of(connection, player.id), ERASED, {"player": number}, now_s, player.id)
    return f"{number} is erased; its matches are {new_name}'s ({new_number}) now"


def _player(connection: Connection, number: str) -> Row[Any]:
    player = connection.execute(select(players).where(players.c.number == number)).first()
    if player is None:
        raise RankingRefusal(
            "unknown_player", f"nobody here has the KI number {number}; look it up at the player on the board"
        )
    return player


def _note(connection: Connection, kind: str, player: int, actor: str, reason: str, now_s: int) -> None:
    connection.execute(
        identity_acts.insert().values(kind=kind, player=player, actor=actor, reason=reason, at_s=now_s)
    )


def _tables_of(connection: Connection, player: int) -> set[int]:
    """The tables that know a player: those where they played, and whatever took their places."""
    at = (
        select(matches.c.table_id)
        .join(entries, entries.c.match == matches.c.id)
        .where(entries.c.player == player)
        .distinct()
    )
    return with_replacements(connection, connection.execute(at).scalars())


def _scrub(connection: Connection, player: int, number: str, new_number: str) -> None:
    """Take the old identity out of the records' bytes."""
    counted = connection.execute(
        select(records.c.match, records.c.record)
        .join(entries, entries.c.match == records.c.match)
        .where(entries.c.player == player)
    ).all()
    for row in counted:
        connection.execute(
            records.update()
            .where(records.c.match == row.match)
            .values(record=scrubbed(row.record, {number: new_number}), signature=NO_SIGNATURE)
        )
    # One that may count yet is looked at again with its signature: it is scrubbed when it counts.
    aside = connection.execute(
        select(set_aside.c.id, set_aside.c.record).where(set_aside.c.waits_for.is_(None))
    ).all()
    for row in aside:
        if number.encode() in row.record:
            connection.execute(
                set_aside.update()
                .where(set_aside.c.id == row.id)
                .values(record=scrubbed(row.record, {number: new_number}), signature=NO_SIGNATURE)
            )


def _scrub_news(connection: Connection, player: int) -> None:
    """Take names that the player had out of what tables have been told."""
    told = connection.execute(
        select(news.c.table_id, news.c.number, news.c.fields).where(
            news.c.player == player, news.c.kind == NAMED
        )
    ).all()
    for row in told:
        fields = cbor.decode(row.fields) | {"name": NO_NAME}
        connection.execute(
            news.update()
            .where(news.c.table_id == row.table_id, news.c.number == row.number)
            .values(fields=cbor.encode(fields))
        )
