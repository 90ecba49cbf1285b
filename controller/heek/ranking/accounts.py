"""Accounts of players and their standings: made when a KI number is first seen, moved by what a match moves.

A standing is a view over the ledger. It is kept in the same transaction as the transfers; whenever the
service starts it is seen whether all of them add up, and if not, those that differ are built again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, Select, case, func, literal, select, union_all

from heek.games.ranking_points import GRANT, rank
from heek.ranking.names import names_for
from heek.ranking.rulings import is_void
from heek.ranking.schema import entries, former_numbers, matches, players, standings, transfers


@dataclass(frozen=True, slots=True)
class Account:
    """One player as the ledger has it; without an account `id` is None and the grant is all there is."""

    number: str
    id: int | None = None
    points: int = GRANT
    gains: int = 0
    """All that was ever received, also in matches that were declared void since."""
    erased: bool = False
    """`number` is a former one: the identity was erased, and nobody is told what it is called now."""

    @property
    def highest_stake(self) -> int:
        """One rank above the highest that the player can have had.

        Taken from the grant and every gain without the losses, so that it only ever rises: a record that
        comes late, from before a loss, is not set aside for it, and which records count does not depend
        on the order in which they come.
        """
        return rank(GRANT + self.gains) + 1


def look_up(connection: Connection, numbers: Iterable[str]) -> dict[str, Account]:
    """The account of each KI number, made or not."""
    asked = list(numbers)
    rows = connection.execute(
        select(standings.c.number, standings.c.player, standings.c.points, standings.c.gains).where(
            standings.c.number.in_(asked)
        )
    )
    known = {number: Account(number, player, points, gains) for number, player, points, gains in rows}
    missing = [number for number in asked if number not in known]
    if missing:
        rows = connection.execute(
            select(former_numbers.c.number, standings.c.player, standings.c.points, standings.c.gains)
            .join(standings, standings.c.player == former_numbers.c.player)
            .where(former_numbers.c.number.in_(missing))
        )
        known |= {
            number: Account(number, player, points, gains, erased=True)
            for number, player, points, gains in rows
        }
    return {number: known.get(number, Account(number)) for number in asked}


def points_of(connection: Connection, numbers: Iterable[str]) -> dict[str, int]:
    """What tables are told that these players hold; nothing of an identity that was erased."""
    return {each.number: each.points for each in look_up(connection, numbers).values() if not each.erased}


def free_name(connection: Connection, number: str) -> str:
    """The first of the names for a KI number that nobody has."""
    return next(
        name
        for name in names_for(number)
        if connection.execute(select(players.c.id).where(players.c.name == name)).first() is None
    )


def make_account(connection: Connection, number: str, now_s: int) -> int:
    """An account with a generated name and the grant; the number must have none. Returns its inner id.

    It is unverified: nobody has proven yet that it is theirs.
    """
    name = free_name(connection, number)
    player: int = connection.execute(
        players.insert()
        .values(number=number, name=name, unverified=True, known_since=now_s)
        .returning(players.c.id)
    ).scalar_one()
    connection.execute(
        standings.insert().values(player=player, number=number, points=GRANT, gains=0, won=0, played=0)
    )
    return player


def move(connection: Connection, deltas: Mapping[int, int], winner: int | None) -> None:
    """Book a rated match into the standings: what each player (by inner id) gains or loses, and who won."""
    for player, delta in deltas.items():
        connection.execute(
            standings.update()
            .where(standings.c.player == player)
            .values(
                points=standings.c.points + delta,
                gains=standings.c.gains + max(delta, 0),
                won=standings.c.won + (player == winner),
                played=standings.c.played + 1,
            )
        )


def count_again(connection: Connection, deltas: Mapping[int, int], winner: int | None, *, times: int) -> None:
    """Take a match that was booked out of the standings (`times` is -1), or put it back (1).

    What was gained stays gained (`Account.highest_stake`): which records count must not depend on whether a
    match was voided before or after they came.
    """
    for player, delta in deltas.items():
        connection.execute(
            standings.update()
            .where(standings.c.player == player)
            .values(
                points=standings.c.points + times * delta,
                won=standings.c.won + times * (player == winner),
                played=standings.c.played + times,
            )
        )


def standings_add_up(connection: Connection) -> bool:
    """Do all standings together come to what the ledger says? Quick, where `mend_standings` looks at each."""
    held = connection.execute(
        select(
            func.count(),
            func.coalesce(func.sum(standings.c.points), 0),
            func.coalesce(func.sum(standings.c.gains), 0),
            func.coalesce(func.sum(standings.c.won), 0),
            func.coalesce(func.sum(standings.c.played), 0),
        )
    ).one()
    accounts = connection.execute(select(func.count()).select_from(players)).scalar_one()
    counts = ~is_void(transfers.c.match)
    gained, received, paid = connection.execute(
        select(
            func.coalesce(func.sum(transfers.c.amount), 0),
            func.coalesce(func.sum(case((counts, transfers.c.amount), else_=0)), 0),
            func.coalesce(
                func.sum(case((counts & transfers.c.from_player.is_not(None), transfers.c.amount), else_=0)),
                0,
            ),
        )
    ).one()
    won = connection.execute(
        select(func.count(matches.c.receiver)).where(~is_void(matches.c.id))
    ).scalar_one()
    played = connection.execute(
        select(func.count(entries.c.player))
        .join(matches, matches.c.id == entries.c.match)
        .where(matches.c.rated, ~is_void(matches.c.id))
    ).scalar_one()
    return tuple(held) == (accounts, GRANT * accounts + received - paid, gained, won, played)


def mend_standings(connection: Connection) -> int:
    """Compare every standing with the ledger, and write those anew that differ; how many did."""
    there = {row[0]: row for row in connection.execute(select(*_COLUMNS))}
    right = {row[0]: row for row in connection.execute(_from_ledger())}
    wrong = [row for player, row in right.items() if there.get(player) != row]
    for row in wrong:
        connection.execute(standings.delete().where(standings.c.player == row[0]))
        connection.execute(
            standings.insert().values(dict(zip((column.name for column in _COLUMNS), row, strict=True)))
        )
    return len(wrong)


_COLUMNS = (
    standings.c.player,
    standings.c.number,
    standings.c.points,
    standings.c.gains,
    standings.c.won,
    standings.c.played,
)


def _from_ledger() -> Select[tuple[int, str, int, int, int, int]]:
    """Every player's standing, by the ledger alone."""
    moved = union_all(
        select(
            transfers.c.to_player.label("player"),
            case((~is_void(transfers.c.match), transfers.c.amount), else_=0).label("delta"),
            transfers.c.amount.label("gain"),
        ),
        select(transfers.c.from_player, -transfers.c.amount, literal(0)).where(
            transfers.c.from_player.is_not(None), ~is_void(transfers.c.match)
        ),
    ).subquery()
    sums = (
        select(moved.c.player, func.sum(moved.c.delta).label("delta"), func.sum(moved.c.gain).label("gain"))
        .group_by(moved.c.player)
        .subquery()
    )
    # An unrated match is in nobody's count: farming bots must bring no place.
    counts = (
        select(entries.c.player, func.count().label("played"))
        .join(matches, matches.c.id == entries.c.match)
        .where(matches.c.rated, entries.c.player.is_not(None), ~is_void(matches.c.id))
        .group_by(entries.c.player)
        .subquery()
    )
    wins = (
        select(matches.c.receiver.label("player"), func.count().label("won"))
        .where(matches.c.receiver.is_not(None), ~is_void(matches.c.id))
        .group_by(matches.c.receiver)
        .subquery()
    )
    return (
        select(
            players.c.id,
            players.c.number,
            GRANT + func.coalesce(sums.c.delta, 0),
            func.coalesce(sums.c.gain, 0),
            func.coalesce(wins.c.won, 0),
            func.coalesce(counts.c.played, 0),
        )
        .outerjoin(sums, sums.c.player == players.c.id)
        .outerjoin(counts, counts.c.player == players.c.id)
        .outerjoin(wins, wins.c.player == players.c.id)
    )
