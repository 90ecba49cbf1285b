"""The ledger's tables, and the constraints that hold its invariant against whoever writes to them.

Double entry. A player's points are the grant plus the sum of all transfers to and from that player; no other
number is points, and no table has a column from which points could be made. The data base itself refuses a
transfer that breaks a rule, whichever program writes it:

* A transfer is one player's stake in one match going to that match's receiver. It names the stake
  (`match`, `stake_of`, `amount` -> the entry's stake), so nothing but what was staked can move, and each
  stake once; and the receiver (`match`, `rules`, `to_player` -> the match's), so nobody else receives. A
  match that is not rated, or that a guest won, has no receiver, so nothing moves in it.
* `from_player` is whoever staked: what one receives another has paid, and the deltas of a match sum to zero.
  Only under `heek-1-award` is it empty: there nobody pays.
* A board takes one rules version for each game: a match names both, and `boards` has one of them.
* Nothing of it is ever changed or removed: triggers refuse it.

What may change. `standings` is a view over the transfers, kept up to date and built again when in doubt.
`records` has the bytes as they came, in a table of their own, since an erasure will have to replace them;
that a record is known is told by its hash in `matches`. An entry names a player by an inner id, never by the
KI number, so that an identity can be replaced and the entries stay.

What operators do is added to it as well, with an actor and a reason. A ruling voids a match or restores it:
while the last one voids it, its transfers do not count. Rulings of one match are numbered without gaps, so
they take turns, and a point that was taken back is taken back once. An erasure gives the account another
number and name; `former_numbers` keeps which account a record means that comes late under the old one.

What is only seen (`presence`, `boots`, `links`, `findings`) is for people, and decides nothing.

The SQL is portable: PostgreSQL takes the same tables (the triggers are written for both).
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    event,
)

from heek.games.ranking_points import RULES_VERSIONS

VERSION: Final = 2
"""Of these tables; a ledger of a newer one is refused."""

STAKE: Final = RULES_VERSIONS["stake"]
AWARD: Final = RULES_VERSIONS["award"]

metadata: Final = MetaData(
    naming_convention={
        "ck": "%(table_name)s_%(constraint_name)s",
        "fk": "%(table_name)s_%(column_0_name)s_fk",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ix": "%(table_name)s_%(column_0_N_name)s",
    }
)


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean(create_constraint=True, name=name), nullable=False)


ledger_version: Final = Table(
    "ledger_version",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1", name="one"), primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
)

tables: Final = Table(
    "tables",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key_id", LargeBinary(8), nullable=False, unique=True),
    Column("public", LargeBinary(32), nullable=False, unique=True),
    Column("name", String(24), nullable=False),
    Column("known_since", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False),
    Column("held_xor", LargeBinary(16), nullable=False),
    CheckConstraint("length(key_id) = 8 AND length(public) = 32", name="key"),
)
"""Who may report. `held` and `held_xor` are count and xor of the match ids that the table's matches have."""

boards: Final = Table(
    "boards",
    metadata,
    Column("game", String(32), primary_key=True),
    Column("rules", String(32), nullable=False),
    UniqueConstraint("game", "rules"),
    CheckConstraint(f"rules IN ('{STAKE}', '{AWARD}')", name="rules"),
)
"""The one rules version of each game here; the first record that counts settles it."""

players: Final = Table(
    "players",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("number", String(8), nullable=False, unique=True),
    Column("name", String(64), nullable=False, unique=True),
    _flag("unverified"),
    Column("known_since", BigInteger, nullable=False),
    CheckConstraint("length(number) = 8", name="number"),
)
"""An account is the grant; it has no points of its own beside that."""

matches: Final = Table(
    "matches",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("match", LargeBinary(16), nullable=False, unique=True),
    Column("table_id", ForeignKey("tables.id"), nullable=False),
    Column("table_name", String(24), nullable=False),
    Column("game", String(32), nullable=False),
    Column("rules", String(32), nullable=False),
    _flag("rated"),
    Column("receiver", ForeignKey("players.id")),
    Column("winner", ForeignKey("players.id")),
    Column("winner_kind", String(8), nullable=False),
    Column("winner_seat", Integer, nullable=False),
    Column("ended_by", String(16), nullable=False),
    Column("won_with", String(8)),
    Column("won_count", Integer),
    Column("rounds", Integer, nullable=False),
    Column("wall_s", BigInteger, nullable=False),
    Column("trust", String(8), nullable=False),
    Column("received_s", BigInteger, nullable=False),
    Column("record_hash", LargeBinary(32), nullable=False),
    ForeignKeyConstraint(["game", "rules"], ["boards.game", "boards.rules"], name="matches_board_fk"),
    UniqueConstraint("id", "rules", "receiver"),
    CheckConstraint("length(match) = 16", name="match"),
    CheckConstraint("receiver IS NULL OR (rated AND receiver = winner)", name="receiver"),
    Index("matches_table", "table_id", "id"),
)
"""One match that counts. `id` is the order of arrival, which nothing but lists depends on."""

entries: Final = Table(
    "entries",
    metadata,
    Column("match", ForeignKey("matches.id"), primary_key=True),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("seat", Integer, nullable=False),
    Column("kind", String(8), nullable=False),
    Column("player", ForeignKey("players.id")),
    Column("stake", Integer, nullable=False),
    Column("stale", Boolean(create_constraint=True, name="stale"), nullable=False),
    UniqueConstraint("match", "player"),
    UniqueConstraint("match", "player", "stake"),
    CheckConstraint("seat BETWEEN 1 AND 5", name="seat"),
    CheckConstraint("stake >= 0 AND (stake = 0 OR player IS NOT NULL)", name="stake"),
    CheckConstraint("(kind = 'player') = (player IS NOT NULL)", name="kind"),
    Index("entries_of_player", "player", "match"),
)
"""Who played. `stale`: the stake was another than the ledger would have asked for when the record came."""

transfers: Final = Table(
    "transfers",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("match", Integer, nullable=False),
    Column("rules", String(32), nullable=False),
    Column("stake_of", Integer, nullable=False),
    Column("from_player", ForeignKey("players.id")),
    Column("to_player", Integer, nullable=False),
    Column("amount", Integer, nullable=False),
    ForeignKeyConstraint(
        ["match", "rules", "to_player"],
        ["matches.id", "matches.rules", "matches.receiver"],
        name="transfers_receiver_fk",
    ),
    ForeignKeyConstraint(
        ["match", "stake_of", "amount"],
        ["entries.match", "entries.player", "entries.stake"],
        name="transfers_stake_fk",
    ),
    ForeignKeyConstraint(
        ["match", "to_player"], ["entries.match", "entries.player"], name="transfers_played_fk"
    ),
    UniqueConstraint("match", "stake_of"),
    CheckConstraint("amount > 0", name="amount"),
    CheckConstraint("stake_of <> to_player", name="two_players"),
    CheckConstraint(
        f"(rules = '{STAKE}' AND from_player IS NOT NULL AND from_player = stake_of)"
        f" OR (rules = '{AWARD}' AND from_player IS NULL)",
        name="payer",
    ),
    Index("transfers_from", "from_player", "match"),
    Index("transfers_to", "to_player", "match"),
)
"""The ledger itself; see the module."""

records: Final = Table(
    "records",
    metadata,
    Column("match", ForeignKey("matches.id"), primary_key=True, autoincrement=False),
    Column("record", LargeBinary, nullable=False),
    Column("signature", LargeBinary(64), nullable=False),
)
"""The bytes of every match that counts, as the table signed them."""

set_aside: Final = Table(
    "set_aside",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("table_id", ForeignKey("tables.id"), nullable=False),
    Column("status", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("match", LargeBinary(16)),
    Column("waits_for", String(8)),
    Column("record", LargeBinary, nullable=False),
    Column("signature", LargeBinary(64), nullable=False),
    Column("record_hash", LargeBinary(32), nullable=False),
    Column("received_s", BigInteger, nullable=False),
    UniqueConstraint("table_id", "record_hash"),
    CheckConstraint("status IN ('conflict', 'rejected')", name="status"),
    Index("set_aside_match", "match"),
    Index("set_aside_waiting", "waits_for"),
)
"""Signed records that do not count. `waits_for` is the KI number whose stake was too high for what is known:
the record is looked at again when more is."""

standings: Final = Table(
    "standings",
    metadata,
    Column("player", ForeignKey("players.id"), primary_key=True, autoincrement=False),
    Column("number", String(8), nullable=False),
    Column("points", BigInteger, nullable=False),
    Column("gains", BigInteger, nullable=False),
    Column("won", Integer, nullable=False),
    Column("played", Integer, nullable=False),
)
"""What each player holds, has ever won, and in how many rated matches: a view over the ledger."""

rulings: Final = Table(
    "rulings",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("match", ForeignKey("matches.id"), nullable=False),
    Column("turn", Integer, nullable=False),
    Column("turn_before", Integer),
    Column("actor", String(64), nullable=False),
    Column("reason", Text, nullable=False),
    Column("at_s", BigInteger, nullable=False),
    Column("after_match", Integer, nullable=False),
    UniqueConstraint("match", "turn"),
    ForeignKeyConstraint(
        ["match", "turn_before"], ["rulings.match", "rulings.turn"], name="rulings_turn_before_fk"
    ),
    CheckConstraint(
        "(turn = 1 AND turn_before IS NULL)"
        " OR (turn > 1 AND turn_before IS NOT NULL AND turn_before = turn - 1)",
        name="turns",
    ),
    CheckConstraint("length(actor) > 0 AND length(reason) > 0", name="said"),
)
"""Compensating entries: an odd turn voids a match, an even one restores it. `after_match` is the newest match
that there was then: where the ruling stands among the changes of somebody's points."""

identity_acts: Final = Table(
    "identity_acts",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("kind", String(8), nullable=False),
    Column("player", ForeignKey("players.id"), nullable=False),
    Column("actor", String(64), nullable=False),
    Column("reason", Text, nullable=False),
    Column("at_s", BigInteger, nullable=False),
    CheckConstraint("kind IN ('rename', 'erase')", name="kind"),
    CheckConstraint("length(actor) > 0 AND length(reason) > 0", name="said"),
)
"""That an operator has given an account another name, or replaced its identity. No name and no number stands
here: an erasure would have to take it away again."""

enrolments: Final = Table(
    "enrolments",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("table_id", ForeignKey("tables.id"), nullable=False),
    Column("replaces", ForeignKey("tables.id")),
    Column("actor", String(64), nullable=False),
    Column("at_s", BigInteger, nullable=False),
    CheckConstraint("replaces IS NULL OR replaces <> table_id", name="another"),
    Index("enrolments_replaces", "replaces"),
)
"""That an operator has typed in a table's code, and whose place it took. A table without one was taken at
first sight."""

former_numbers: Final = Table(
    "former_numbers",
    metadata,
    Column("number", String(8), primary_key=True),
    Column("player", ForeignKey("players.id"), nullable=False),
)
"""The numbers of erased identities: what a table reports late under one of them still counts, for the account
that the match's other players lost to or won from."""

news: Final = Table(
    "news",
    metadata,
    Column("table_id", ForeignKey("tables.id"), primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("fields", LargeBinary, nullable=False),
    Column("mark", LargeBinary(8), nullable=False),
    Column("player", ForeignKey("players.id")),
    Column("at_s", BigInteger, nullable=False),
    CheckConstraint("number > 0", name="number"),
    Index("news_player", "player"),
)
"""What each table is told, from number 1 without gaps. Never removed; an erasure replaces the name in it.
`mark` is drawn for each, and tells it from another that stands under its number in an older copy of the
ledger."""

presence: Final = Table(
    "presence",
    metadata,
    Column("table_id", ForeignKey("tables.id"), primary_key=True, autoincrement=False),
    Column("seen_s", BigInteger, nullable=False),
    Column("waiting", BigInteger, nullable=False),
    Column("told_held", BigInteger, nullable=False),
    Column("told_xor", LargeBinary(16), nullable=False),
    Column("told_news", BigInteger, nullable=False),
)
"""What each table said of itself when it last asked how things stand."""

boots: Final = Table(
    "boots",
    metadata,
    Column("table_id", ForeignKey("tables.id"), primary_key=True, autoincrement=False),
    Column("boot", String(64), primary_key=True),
    Column("offset_ms", BigInteger, nullable=False),
    Column("seen_s", BigInteger, nullable=False),
)
"""Of each start of a table's machine: the KI's wall clock minus the monotonic clock, in milliseconds."""

links: Final = Table(
    "links",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("table_id", ForeignKey("tables.id"), nullable=False),
    Column("record_hash", LargeBinary(32), nullable=False),
    Column("prev", LargeBinary(32), nullable=False),
    Column("inc", LargeBinary(8), nullable=False),
    Column("seq", BigInteger, nullable=False),
    _flag("passed"),
    UniqueConstraint("table_id", "record_hash"),
    Index("links_hash", "record_hash"),
    Index("links_prev", "table_id", "prev"),
    Index("links_number", "table_id", "inc", "seq"),
)
"""Where each signed record stands in its table's chain; `prev` is all zeros for the first one. `passed`: it
was the end of the chain when another branch began."""

findings: Final = Table(
    "findings",
    metadata,
    Column("table_id", ForeignKey("tables.id"), primary_key=True, autoincrement=False),
    Column("kind", String(16), primary_key=True),
    Column("words", Text, nullable=False),
    Column("first_s", BigInteger, nullable=False),
    Column("last_s", BigInteger, nullable=False),
    Column("count", Integer, nullable=False),
)
"""What an operator should know of a table. It decides nothing: the results count all the same."""

Index(
    "standings_order",
    standings.c.points.desc(),
    standings.c.won.desc(),
    standings.c.number,
    sqlite_where=standings.c.played > 0,
    postgresql_where=standings.c.played > 0,
)

ONLY_ADDED_TO: Final = (boards, matches, entries, transfers, rulings, identity_acts, enrolments)

_SQLITE_TRIGGER: Final = """
CREATE TRIGGER %(table)s_no_{low} BEFORE {verb} ON %(table)s
BEGIN SELECT RAISE(ABORT, 'the ledger is only added to'); END
"""
_POSTGRESQL_FUNCTION: Final = """
CREATE OR REPLACE FUNCTION ledger_only_added_to() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the ledger is only added to'; END $$
"""
_POSTGRESQL_TRIGGER: Final = """
CREATE TRIGGER %(table)s_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON %(table)s
FOR EACH STATEMENT EXECUTE FUNCTION ledger_only_added_to()
"""


def _on_create(target: MetaData | Table, when: str, statement: str, dialect: str) -> None:
    made = DDL(statement)  # type: ignore[no-untyped-call]
    event.listen(target, when, made.execute_if(dialect=dialect))


_on_create(metadata, "before_create", _POSTGRESQL_FUNCTION, "postgresql")
for _table in ONLY_ADDED_TO:
    for _verb in ("UPDATE", "DELETE"):
        _on_create(_table, "after_create", _SQLITE_TRIGGER.format(verb=_verb, low=_verb.lower()), "sqlite")
    _on_create(_table, "after_create", _POSTGRESQL_TRIGGER, "postgresql")
