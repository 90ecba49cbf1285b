"""What must hold at the end of every world, read from the files that are left, not asked of the code."""

from __future__ import annotations

import contextlib
import contextvars
import sqlite3
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from heek.games.ranking_points import GRANT
from heek.ki.record import decode_record

if TYPE_CHECKING:
    from tests.campaign.tables import Table
    from tests.campaign.world import World


@dataclass
class Card:
    """What one table's journal holds."""

    name: str
    results: dict[str, tuple[bytes | None, str, str | None]] = field(default_factory=dict)
    """By match: the bytes for the KI, what became of them, and why."""
    keys: dict[str, bytes | None] = field(default_factory=dict)
    """By match: the key id that its bytes name."""
    settled: tuple[int, bytes] = (0, bytes(16))
    offering: bool = False
    faults: list[str] = field(default_factory=list)


@dataclass
class Held:
    """What the KI's ledger holds."""

    records: dict[str, bytes] = field(default_factory=dict)
    """By match."""
    keys: dict[str, bytes] = field(default_factory=dict)
    """Key id of the table that a match is booked under."""
    count: Counter[str] = field(default_factory=Counter)
    digests: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    points: dict[str, int] = field(default_factory=dict)
    """By KI number, as the standings have it."""
    moved: Counter[str] = field(default_factory=Counter)
    """By KI number, as the transfers have it."""
    set_aside: set[tuple[str, str]] = field(default_factory=set)
    """Match and status."""


def judge(world: World) -> list[str]:
    """Every rule that this world has broken, a line each."""
    cards = [_card(table) for table in world.tables]
    held = _held(world.ki.folder / "ki.sqlite3")
    return [
        *_each_once(world, cards, held),
        *_points(held),
        *_rest(world, cards, held),
        *(f"{card.name}: {fault}" for card in cards for fault in card.faults),
    ]


def _each_once(world: World, cards: list[Card], held: Held) -> Iterator[str]:
    history = world.history
    for match, times in held.count.items():
        if times != 1:
            yield f"match {match} is at the KI {times} times"
    for match in set(held.records) - history.played:
        yield f"match {match} is at the KI, and nobody ever played it"
    for card in cards:
        for match, (data, state, reason) in card.results.items():
            if match in history.poisoned:
                if match in held.records:
                    yield f"{card.name}: the poisoned match {match} counts"
                elif state != "rejected":
                    yield f"{card.name}: the poisoned match {match} is {state}"
                continue
            if match not in held.records:
                yield f"{card.name}: match {match} is not at the KI (here: {state}, {reason})"
            elif held.records[match] != data:
                excused = match in history.twice or history.keys_lost
                if not excused or state != "conflict":
                    yield f"{card.name}: match {match} is at the KI with other bytes (here: {state})"
            elif state not in ("accepted", "duplicate"):
                yield f"{card.name}: match {match} counts at the KI, and here it is {state} ({reason})"
    on_cards = {match for card in cards for match in card.results}
    for match in history.acknowledged - set(held.records):
        if match in on_cards or not history.ki_put_back:
            yield f"match {match} was acknowledged, and the KI does not hold it"


def _points(held: Held) -> Iterator[str]:
    right: defaultdict[str, int] = defaultdict(lambda: GRANT)
    for match, data in held.records.items():
        record = decode_record(data)
        if sum(each.delta for each in record.seats) != 0:
            yield f"match {match}: its deltas do not sum to zero"
        for each in record.seats:
            if each.player is not None:
                right[each.player] += each.delta if record.rated else 0
    for player, points in held.points.items():
        if points != right[player] or points != GRANT + held.moved[player]:
            yield (
                f"player {player} holds {points}; by the records it is {right[player]}, "
                f"by the transfers {GRANT + held.moved[player]}"
            )
    for player in set(right) - set(held.points):
        yield f"player {player} played and has no account"


def _rest(world: World, cards: list[Card], held: Held) -> Iterator[str]:
    history = world.history
    for card in cards:
        waiting = [match for match, (_, state, _) in card.results.items() if state == "waiting"]
        if waiting:
            yield f"{card.name}: {len(waiting)} results wait for ever, the first is {waiting[0]}"
    if history.offered_at_rest:
        yield f"{history.offered_at_rest} requests with records came when there was nothing to tell"
    of_key: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for match, key in held.keys.items():
        of_key[key].append(uuid.UUID(match).bytes)
    yield from unsettled(world)
    for key, digest in held.digests.items():
        if _digest(of_key[key]) != digest:
            yield f"the KI's digest of the key {key.hex()} is not that of what it holds"


def unsettled(world: World) -> Iterator[str]:
    """What tables do not know of the difference between what the KI holds of them and what they have."""
    with _look_into(world.ki.folder / "ki.sqlite3") as db:
        digests = {
            key: (count, xor) for key, count, xor in db.execute("SELECT key_id, held, held_xor FROM tables")
        }
    for table in world.tables:
        card = _card(table)
        taken = [
            uuid.UUID(match).bytes
            for match, (_, state, _) in card.results.items()
            if state in ("accepted", "duplicate") and card.keys[match] == table.key.id
        ]
        count, xor = _digest(taken)
        theirs = digests.get(table.key.id)
        if theirs is None:
            yield f"{table.name}: the KI does not know its key"
            continue
        apart = (theirs[0] - count, bytes(one ^ other for one, other in zip(theirs[1], xor, strict=True)))
        if card.settled != apart or card.offering:
            offering = ", and an offer is under way" if card.offering else ""
            yield (
                f"{table.name}: its digest differs from the KI's by {apart[0]} {apart[1].hex()}, "
                f"and it knows of {card.settled[0]} {card.settled[1].hex()}{offering}"
            )


def _digest(matches: list[bytes]) -> tuple[int, bytes]:
    xor = 0
    for each in matches:
        xor ^= int.from_bytes(each, "big")
    return len(matches), xor.to_bytes(16, "big")


def _card(table: Table) -> Card:
    card = Card(table.name)
    with _look_into(table.folder / "journal.sqlite3") as db:
        for match, data, key, state, reason in db.execute(
            "SELECT results.match, cbor, key, state, reason FROM results LEFT JOIN outbox USING(match)"
        ):
            card.results[match] = (data, state or "without a place in the outbox", reason)
            card.keys[match] = key
        for count, xor, offered in db.execute("SELECT settled_count, settled_xor, offered_count FROM ki"):
            card.settled, card.offering = (count, xor), offered is not None
        (found,) = db.execute("PRAGMA quick_check").fetchone()
        if found != "ok":
            card.faults.append(found)
    return card


def _held(file: Path) -> Held:
    held = Held()
    with _look_into(file) as db:
        for match, key, data in db.execute(
            "SELECT matches.match, tables.key_id, records.record FROM matches"
            " JOIN tables ON tables.id = table_id JOIN records ON records.match = matches.id"
        ):
            name = str(uuid.UUID(bytes=match))
            held.count[name] += 1
            held.records[name], held.keys[name] = data, key
        for key, count, xor in db.execute("SELECT key_id, held, held_xor FROM tables"):
            held.digests[key] = (count, xor)
        held.points = dict(db.execute("SELECT number, points FROM standings"))
        for number, amount in db.execute(
            "SELECT number, amount FROM transfers JOIN players ON players.id = to_player"
            " UNION ALL SELECT number, -amount FROM transfers JOIN players ON players.id = from_player"
        ):
            held.moved[number] += amount
        for match, status in db.execute("SELECT match, status FROM set_aside"):
            held.set_aside.add((str(uuid.UUID(bytes=match)) if match else "", status))
    return held


@contextlib.contextmanager
def _look_into(file: Path) -> Iterator[sqlite3.Connection]:
    """A data base as it is seen by somebody who belongs to no machine."""
    db = contextvars.Context().run(lambda: sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True))
    with contextlib.closing(db):
        yield db
