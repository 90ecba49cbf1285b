"""What the ledger shows: the board, a player's page, the last matches, one match. It only reads.

Order and places (the specification, "People"): points, matches won, number; equal points share a place. A
place is 1 and the number of players with more points. Whoever has played no rated match has no place. Lists
are paged by the key of their last line, never by a count, so nobody stands on two pages or on none while
results arrive. A total below zero sorts as what it is and is shown as 0.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, and_, func, or_, select

from heek.games.ranking_points import rank
from heek.ki.record import Record, RecordTime, decode_record
from heek.ranking.replay import Replay, replay
from heek.ranking.rulings import Ruling, is_void, ruling, rulings_on
from heek.ranking.schema import (
    entries,
    matches,
    players,
    records,
    rulings,
    set_aside,
    standings,
    tables,
    transfers,
)
from heek.ranking.syncing import corrected_s

PAGE: Final = 50
"""Lines of one page."""
TRUSTED: Final = ("ntp", "service")
"""How a table's wall clock was set if what it said can be shown as the time."""
MOST: Final = 200
"""Lines that a program may ask for at once."""


@dataclass(frozen=True, slots=True)
class Person:
    """A player as others see them."""

    number: str
    name: str
    unverified: bool


class Holding:
    """What follows from a player's total; it may be below zero, what is shown is not."""

    __slots__ = ()
    total: int

    @property
    def points(self) -> int:
        """What is shown: never below zero."""
        return max(0, self.total)

    @property
    def rank(self) -> int:
        """By the points."""
        return rank(self.total)


@dataclass(frozen=True, slots=True)
class Line(Holding):
    """One line of the board."""

    place: int
    person: Person
    total: int
    """May be below zero; `points` is what is shown."""
    won: int
    played: int

    @property
    def key(self) -> str:
        """Where a page that begins behind this line starts."""
        return f"{self.total}_{self.won}_{self.person.number}"


@dataclass(frozen=True, slots=True)
class Board:
    """A page of the board."""

    lines: tuple[Line, ...]
    ranked: int
    """How many players have a place."""
    rules: str | None
    """The rules version that it counts by; None before the first record."""
    following: str | None
    """The key of the next page."""


@dataclass(frozen=True, slots=True)
class Played:
    """One match in a list."""

    id: int
    match: str
    table: str
    game: str
    rated: bool
    winner: Person | None
    """None: a guest or a bot, see `winner_kind`."""
    winner_kind: str
    by: str
    won_with: str | None
    won_count: int | None
    rounds: int
    gain: int
    """What the winner received, as long as the match counts."""
    void: bool = False
    """An operator has declared it void: nothing of it counts."""


@dataclass(frozen=True, slots=True)
class Change:
    """What one match did to one player's points."""

    played: Played
    delta: int
    total: int
    """After it, in the order in which the ledger got to know the matches."""
    stake: int
    stale: bool
    mine: bool
    """This player won it."""
    ruling: Ruling | None = None
    """None: the match itself; else what an operator declared about it later."""
    key: int = 0
    """Of the ruling."""


@dataclass(frozen=True, slots=True)
class PlayerPage(Holding):
    """All that a player's page shows."""

    person: Person
    place: int | None
    """None: has played no rated match."""
    ranked: int
    total: int
    won: int
    played: int
    changes: tuple[Change, ...]
    following: int | None
    """Changes before this one are on the next page; None: the grant is all that is left."""

    @property
    def to_next(self) -> int:
        """How many points are missing for the next rank."""
        return (rank_limit(self.rank) if self.rank else 0) + 1 - self.total


@dataclass(frozen=True, slots=True)
class At:
    """Who played at a seat of a match, and what it brought."""

    seat: int
    kind: str
    person: Person | None
    stake: int
    stale: bool
    delta: int


@dataclass(frozen=True, slots=True)
class MatchPage:
    """All that a match's page shows."""

    played: Played
    seats: tuple[At, ...]
    record: Record
    replay: Replay
    conflicts: int
    """Other versions of its record that were set aside."""
    rulings: tuple[Ruling, ...] = ()
    """What an operator declared about it, the first one first."""
    corrected_s: int | None = None
    """When it ended by the KI's clock, if the table's was not to be believed and the KI can tell."""


def rank_limit(number: int) -> int:
    """The most points of a rank, 1 or more (the specification, "Points, rank, stake")."""
    return 100 + 50 * number * (number + 1)


def board(connection: Connection, after: str | None = None, limit: int = PAGE) -> Board:
    """A page of the board, behind the line with the key `after`; raises ValueError if that is no key."""
    key = _read_key(after)
    query = _standing_rows().where(standings.c.played > 0)
    if key is not None:
        query = query.where(_behind(*key))
    rows = connection.execute(_ordered(query).limit(limit + 1)).all()
    shown = rows[:limit]
    ranked = connection.execute(
        select(func.count()).select_from(standings).where(standings.c.played > 0)
    ).scalar_one()
    lines = tuple(_with_places(connection, shown))
    rules = connection.execute(select(matches.c.rules).order_by(matches.c.id.desc()).limit(1)).scalar()
    return Board(lines, ranked, rules, lines[-1].key if len(rows) > limit else None)


def last_matches(connection: Connection, limit: int = 12) -> tuple[Played, ...]:
    """The matches that came last, newest first."""
    rows = connection.execute(_match_rows().order_by(matches.c.id.desc()).limit(limit))
    return tuple(_played(row) for row in rows)


def table_count(connection: Connection) -> int:
    """How many tables may report here."""
    return connection.execute(select(func.count()).select_from(tables)).scalar_one()


def player_page(
    connection: Connection, number: str, before: int | None = None, limit: int = PAGE
) -> PlayerPage | None:
    """What is known of a KI number, with the matches before the one of the id `before`; None: nothing."""
    row = connection.execute(_standing_rows().where(standings.c.number == number)).first()
    if row is None:
        return None
    changes, following = _changes(connection, row.player, row.points, before, limit)
    ranked = connection.execute(
        select(func.count()).select_from(standings).where(standings.c.played > 0)
    ).scalar_one()
    return PlayerPage(
        person=Person(row.number, row.name, row.unverified),
        place=_place(connection, row.points) if row.played else None,
        ranked=ranked,
        total=row.points,
        won=row.won,
        played=row.played,
        changes=changes,
        following=following,
    )


def match_page(connection: Connection, match: uuid.UUID) -> MatchPage | None:
    """One match that counts; None: there is no such one."""
    row = connection.execute(_match_rows().where(matches.c.match == match.bytes)).first()
    if row is None:
        return None
    seats = connection.execute(
        select(
            entries.c.player,
            entries.c.seat,
            entries.c.kind,
            entries.c.stake,
            entries.c.stale,
            players.c.number,
            players.c.name,
            players.c.unverified,
            _delta_of_entry().label("delta"),
        )
        .outerjoin(players, players.c.id == entries.c.player)
        .where(entries.c.match == row.id)
        .order_by(entries.c.place)
    )
    data = connection.execute(select(records.c.record).where(records.c.match == row.id)).scalar_one()
    record = decode_record(data)
    conflicts = connection.execute(
        select(func.count())
        .select_from(set_aside)
        .where(set_aside.c.match == match.bytes, set_aside.c.status == "conflict")
    ).scalar_one()
    return MatchPage(
        played=_played(row),
        seats=tuple(
            At(each.seat, each.kind, _person(each), each.stake, each.stale, each.delta) for each in seats
        ),
        record=record,
        replay=replay(record),
        conflicts=conflicts,
        rulings=rulings_on(connection, row.id),
        corrected_s=_corrected_s(connection, row.table_id, record.t),
    )


def _corrected_s(connection: Connection, table: int, time: RecordTime) -> int | None:
    if time.trust in TRUSTED:
        return None
    return corrected_s(connection, table, time.boot, time.end_ms)


def _standing_rows() -> Select[Any]:
    return select(
        standings.c.player,
        standings.c.number,
        standings.c.points,
        standings.c.won,
        standings.c.played,
        players.c.name,
        players.c.unverified,
    ).join(players, players.c.id == standings.c.player)


def _ordered(query: Select[Any]) -> Select[Any]:
    return query.order_by(standings.c.points.desc(), standings.c.won.desc(), standings.c.number)


def _behind(points: int, won: int, number: str) -> Any:
    """Further down the board than the line of this key; the first part is what an index can find."""
    return and_(
        standings.c.points <= points,
        or_(
            standings.c.points < points,
            standings.c.won < won,
            and_(standings.c.won == won, standings.c.number > number),
        ),
    )


def _read_key(text: str | None) -> tuple[int, int, str] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(-?[0-9]{1,15})_([0-9]{1,9})_([0-9]{8})", text, re.ASCII)
    if found is None:
        raise ValueError("“after” is the key of a line of the board, as the page before it gave it")
    return int(found[1]), int(found[2]), found[3]


def _place(connection: Connection, points: int) -> int:
    """1 and the number of players with more points."""
    better = select(func.count()).select_from(standings)
    return (
        1 + connection.execute(better.where(standings.c.played > 0, standings.c.points > points)).scalar_one()
    )


def _with_places(connection: Connection, rows: Any) -> Any:
    place, points, down = 0, None, 0
    for row in rows:
        if points is None:
            # In the middle of the board somebody above this page may have the same points.
            place = _place(connection, row.points)
            down = place - 1 + connection.execute(_equals_above(row)).scalar_one()
        elif row.points != points:
            place = down + 1
        down += 1
        points = row.points
        yield Line(place, Person(row.number, row.name, row.unverified), row.points, row.won, row.played)


def _equals_above(row: Row[Any]) -> Select[Any]:
    """How many have the same points, and stand above this line by matches won or number."""
    return (
        select(func.count())
        .select_from(standings)
        .where(
            standings.c.played > 0,
            standings.c.points == row.points,
            or_(
                standings.c.won > row.won,
                and_(standings.c.won == row.won, standings.c.number < row.number),
            ),
        )
    )


def _gain() -> Any:
    return (
        select(func.coalesce(func.sum(transfers.c.amount), 0))
        .where(transfers.c.match == matches.c.id)
        .correlate(matches)
        .scalar_subquery()
    )


def _delta_of_entry() -> Any:
    """What the ledger moved for the player of an entry; 0 where nothing was."""
    received = select(func.coalesce(func.sum(transfers.c.amount), 0)).where(
        transfers.c.match == entries.c.match, transfers.c.to_player == entries.c.player
    )
    paid = select(func.coalesce(func.sum(transfers.c.amount), 0)).where(
        transfers.c.match == entries.c.match, transfers.c.from_player == entries.c.player
    )
    return received.correlate(entries).scalar_subquery() - paid.correlate(entries).scalar_subquery()


def _match_rows() -> Select[Any]:
    return select(
        matches.c.id,
        matches.c.match,
        matches.c.table_id,
        matches.c.table_name,
        matches.c.game,
        matches.c.rated,
        matches.c.winner_kind,
        matches.c.ended_by,
        matches.c.won_with,
        matches.c.won_count,
        matches.c.rounds,
        players.c.number,
        players.c.name,
        players.c.unverified,
        _gain().label("gain"),
        is_void(matches.c.id).label("void"),
    ).outerjoin(players, players.c.id == matches.c.winner)


def _changes(
    connection: Connection, player: int, points: int, before: int | None, limit: int
) -> tuple[tuple[Change, ...], int | None]:
    query = (
        _match_rows()
        .add_columns(
            entries.c.stake,
            entries.c.stale,
            matches.c.winner.label("winner_id"),
            _delta_of_entry().label("delta"),
        )
        .join(entries, entries.c.match == matches.c.id)
        .where(entries.c.player == player)
    )
    total = points
    if before is not None:
        query = query.where(matches.c.id < before)
        # What came since then: the running totals go on below it.
        total -= _moved_since(connection, player, before)
    rows = connection.execute(query.order_by(entries.c.match.desc()).limit(limit + 1)).all()
    shown = rows[:limit]
    following = shown[-1].id if len(rows) > limit else None
    lines: list[tuple[tuple[int, int], Row[Any], Ruling | None]] = [((row.id, 0), row, None) for row in shown]
    for row in _rulings(connection, player, following, before):
        lines.append(((row.after_match, row.at), row, ruling(row)))
    changes = []
    for (_, key), row, ruled in sorted(lines, key=lambda line: line[0], reverse=True):
        delta = row.delta if ruled is None else _moved_by(ruled, row.delta)
        mine = row.winner_id == player
        changes.append(Change(_played(row), delta, total, row.stake, row.stale, mine, ruled, key))
        total -= delta
    return tuple(changes), following


def _moved_since(connection: Connection, player: int, match: int) -> int:
    """What this match, all after it, and all rulings after it have moved for a player."""
    moved: int = connection.execute(
        select(func.coalesce(func.sum(_delta_of_entry()), 0)).where(
            entries.c.player == player, entries.c.match >= match
        )
    ).scalar_one()
    since = _rulings(connection, player, match, None)
    return moved + sum(_moved_by(ruling(row), row.delta) for row in since)


def _moved_by(ruled: Ruling, delta: int) -> int:
    return -delta if ruled.voids else delta


def _rulings(
    connection: Connection, player: int, since: int | None, before: int | None
) -> Sequence[Row[Any]]:
    """The rulings on a player's matches that were made when the newest match was `since` or later, but before
    `before` came; `at` orders those that were made behind the same match.
    """
    query = (
        _match_rows()
        .add_columns(
            rulings.c.turn,
            rulings.c.actor,
            rulings.c.reason,
            rulings.c.after_match,
            rulings.c.id.label("at"),
            entries.c.stake,
            entries.c.stale,
            matches.c.winner.label("winner_id"),
            _delta_of_entry().label("delta"),
        )
        .join(rulings, rulings.c.match == matches.c.id)
        .join(entries, entries.c.match == matches.c.id)
        .where(entries.c.player == player)
    )
    if since is not None:
        query = query.where(rulings.c.after_match >= since)
    if before is not None:
        query = query.where(rulings.c.after_match < before)
    return connection.execute(query).all()


def _played(row: Any) -> Played:
    return Played(
        id=row.id,
        match=str(uuid.UUID(bytes=row.match)),
        table=row.table_name,
        game=row.game,
        rated=row.rated,
        winner=_person(row),
        winner_kind=row.winner_kind,
        by=row.ended_by,
        won_with=row.won_with,
        won_count=row.won_count,
        rounds=row.rounds,
        gain=row.gain,
        void=row.void,
    )


def _person(row: Any) -> Person | None:
    return None if row.number is None else Person(row.number, row.name, row.unverified)
