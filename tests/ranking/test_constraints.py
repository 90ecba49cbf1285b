"""The data base itself holds the invariant: whatever SQL is thrown at it, no point comes from nowhere."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError

from heek.ranking.ledger import Ledger
from heek.ranking.schema import AWARD, ONLY_ADDED_TO, metadata
from heek.ranking.store import Store
from tests.ranking.records import ANN, BEN, CLEO, FakeTable, body


@pytest.fixture
def played(ledger: Ledger, store: Store, table: FakeTable) -> FakeTable:
    """Match 1: Ann won 3 from Ben and 1 from Cleo; a guest played. Match 2: a guest won. Match 3: unrated.

    An operator has done one thing of each kind.
    """
    answer, _ = ledger.ingest(
        body(
            table.sealed({ANN: 1, BEN: 2, CLEO: 1, None: 0}, ANN),
            table.sealed({None: 0, ANN: 1}),
            table.sealed({ANN: 1, BEN: 1}, ANN, rated=False),
        )
    )
    assert [each.verdict.value for each in answer.answers] == ["accepted"] * 3
    for sql in (
        "INSERT INTO rulings VALUES (1, 1, 1, NULL, 'operator', 'wrong seat', 1900000000, 3)",
        "INSERT INTO identity_acts VALUES (1, 'rename', 1, 'operator', 'asked for it', 1900000000)",
        "INSERT INTO enrolments VALUES (1, 1, NULL, 'operator', 1900000000)",
    ):
        attempt(store, sql)
    return table


def ids(store: Store) -> dict[str, int]:
    with store.reader.begin() as connection:
        rows = connection.exec_driver_sql("SELECT number, id FROM players")
        return {each.number: each.id for each in rows}


def attempt(store: Store, sql: str, values: Any = ()) -> None:
    with store.writer.begin() as connection:
        connection.exec_driver_sql(sql, values)


def transfer(store: Store, **changed: Any) -> None:
    """Try to write one transfer: by default Cleo's stake in match 1 to Ann once more."""
    who = ids(store)
    row = {
        "match": 1,
        "rules": "heek-1",
        "stake_of": who[CLEO],
        "from_player": who[CLEO],
        "to_player": who[ANN],
        "amount": 1,
    } | changed
    names = ", ".join(f'"{name}"' for name in row)
    marks = ", ".join("?" for _ in row)
    attempt(store, f"INSERT INTO transfers ({names}) VALUES ({marks})", tuple(row.values()))


def removed(store: Store) -> None:
    """Take one transfer away behind the triggers' back, so that its place is free for an attempt."""
    who = ids(store)
    with store.writer.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER transfers_no_delete")
        connection.exec_driver_sql("DELETE FROM transfers WHERE stake_of = ?", (who[CLEO],))


@pytest.mark.usefixtures("played")
def test_a_removed_transfer_could_be_written_again(store: Store) -> None:
    """The attempts below fail for their own reason: the right transfer in the same place is taken."""
    removed(store)
    transfer(store)


@pytest.mark.usefixtures("played")
def test_a_stake_moves_once(store: Store) -> None:
    """The same stake cannot move a second time."""
    with pytest.raises(DBAPIError, match="UNIQUE"):
        transfer(store)


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"from_player": None}, "transfers_payer"),
        ({"from_player": ANN}, "transfers_payer"),
        ({"from_player": BEN}, "transfers_payer"),
        ({"rules": AWARD}, "transfers_payer"),
        ({"rules": AWARD, "from_player": None}, "FOREIGN KEY"),
        ({"rules": "heek-9"}, "transfers_payer"),
        ({"amount": 2}, "FOREIGN KEY"),
        ({"amount": 0}, "transfers_amount"),
        ({"amount": -1}, "transfers_amount"),
        ({"to_player": BEN}, "FOREIGN KEY"),
        ({"to_player": CLEO}, "transfers_two_players"),
        ({"match": 2, "stake_of": ANN, "from_player": ANN, "to_player": BEN}, "FOREIGN KEY"),
        ({"match": 3, "stake_of": BEN, "from_player": BEN}, "FOREIGN KEY"),
        ({"match": 99}, "FOREIGN KEY"),
    ],
    ids=str,
)
@pytest.mark.usefixtures("played")
def test_no_wrong_transfer_is_taken(store: Store, changed: dict[str, Any], refusal: str) -> None:
    """From nowhere, from somebody else, too much, to a loser, in an unrated match: each is refused."""
    removed(store)
    who = ids(store)
    meant = {
        key: who.get(value, value) if isinstance(value, str) else value for key, value in changed.items()
    }
    with pytest.raises(DBAPIError, match=refusal):
        transfer(store, **meant)


@pytest.mark.parametrize("name", [each.name for each in ONLY_ADDED_TO])
@pytest.mark.usefixtures("played")
def test_the_ledger_is_only_added_to(store: Store, name: str) -> None:
    """No row of the ledger can be changed, removed, or replaced."""
    column = metadata.tables[name].columns.values()[-1].name
    for sql in (
        f'UPDATE {name} SET "{column}" = "{column}"',
        f"DELETE FROM {name}",
        f"REPLACE INTO {name} SELECT * FROM {name}",
    ):
        with pytest.raises(DBAPIError, match="only added to"):
            attempt(store, sql)


@pytest.mark.usefixtures("played")
def test_no_match_pays_who_did_not_win(store: Store) -> None:
    """A match has no receiver but its winner, and none if it is not rated."""
    who = ids(store)
    columns = (
        "match, table_id, table_name, game, rules, rated, receiver, winner, winner_kind, winner_seat,"
        " ended_by, rounds, wall_s, trust, received_s, record_hash"
    )
    values = (
        "randomblob(16), 1, 'T', 'ahyoheek', ?, ?, ?, ?, 'player', 1,"
        " 'three', 3, 0, 'none', 0, randomblob(32)"
    )
    insert = f"INSERT INTO matches ({columns}) VALUES ({values})"
    attempt(store, insert, ("heek-1", 1, who[ANN], who[ANN]))
    for row in (("heek-1", 1, who[ANN], who[BEN]), ("heek-1", 0, who[ANN], who[ANN])):
        with pytest.raises(DBAPIError, match="matches_receiver"):
            attempt(store, insert, row)
    with pytest.raises(DBAPIError, match="FOREIGN KEY"):
        attempt(store, insert, (AWARD, 1, who[ANN], who[ANN]))


@pytest.mark.usefixtures("played")
def test_a_board_has_one_rules_version(store: Store) -> None:
    """A second rules version for a game is refused, and so is one that nobody knows."""
    with pytest.raises(DBAPIError, match="UNIQUE"):
        attempt(store, "INSERT INTO boards (game, rules) VALUES ('ahyoheek', ?)", (AWARD,))
    with pytest.raises(DBAPIError, match="boards_rules"):
        attempt(store, "INSERT INTO boards (game, rules) VALUES ('acadmu', 'heek-9')")


@pytest.mark.usefixtures("played")
def test_a_player_in_the_ledger_stays(store: Store) -> None:
    """A player whom the ledger names cannot be removed."""
    with pytest.raises(DBAPIError, match="FOREIGN KEY"):
        attempt(store, "DELETE FROM players WHERE number = ?", (BEN,))
