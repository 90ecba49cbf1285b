"""What must hold at the end of every world, read from the files that are left, not asked of the code."""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
import sqlite3
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from heek.errors import RecordError
from heek.games.ranking_points import GRANT
from heek.ki.record import Record, decode_record

if TYPE_CHECKING:
    from tests.campaign.tables import Table
    from tests.campaign.world import World

ROOT = bytes(32)
"""What the first record of a journal follows."""


@dataclass
class Card:
    """What one table's journal holds."""

    name: str
    key: bytes
    """The table's key id."""
    results: dict[str, tuple[bytes | None, str, str | None]] = field(default_factory=dict)
    """By match: the bytes for the KI, what became of them, and why."""
    keys: dict[str, bytes | None] = field(default_factory=dict)
    """By match: the key id that its bytes name."""
    voids: set[str] = field(default_factory=set)
    digests: dict[bytes, tuple[tuple[int, bytes], bool]] = field(default_factory=dict)
    """By key id, those it had before among them: the difference settled, and whether an offer is on."""
    faults: list[str] = field(default_factory=list)


@dataclass
class Held:
    """What the KI's ledger holds."""

    count: Counter[str] = field(default_factory=Counter)
    """How often it holds a match."""
    hashes: dict[str, bytes] = field(default_factory=dict)
    """By match: of the bytes that the table signed."""
    records: dict[str, Record] = field(default_factory=dict)
    keys: dict[str, bytes] = field(default_factory=dict)
    """By match: the key id of the table that it is booked under."""
    turns: Counter[str] = field(default_factory=Counter)
    """By match: rulings; while they are odd it is void."""
    digests: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    accounts: dict[str, int] = field(default_factory=dict)
    """By KI number, former ones too: the inner id."""
    points: dict[int, int] = field(default_factory=dict)
    """By inner id, as the standings have it."""
    moved: Counter[int] = field(default_factory=Counter)
    """By inner id, as the transfers that are not void have it."""
    aside: list[tuple[bytes, bytes, bytes]] = field(default_factory=list)
    """Of records that were set aside: key id, hash, bytes."""
    findings: dict[bytes, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By key id: how often each kind was found."""


def judge(world: World) -> list[str]:
    """Every rule that this world has broken, a line each."""
    off = [each.name for each in (*world.tables, world.ki) if not each.on]
    if off:
        return [f"{name} does not start" for name in off]
    cards = [_card(table) for table in world.tables]
    held = _held(world.ki.folder / "ki.sqlite3")
    return [
        *_each_once(world, cards, held),
        *_saved(world, cards),
        *_points(world, held),
        *_rest(world, cards, held),
        *_rulings(world, cards, held),
        *_findings(world, cards, held),
        *(f"{card.name}: {fault}" for card in cards for fault in card.faults),
    ]


def _each_once(world: World, cards: list[Card], held: Held) -> Iterator[str]:
    history = world.history
    for match, times in held.count.items():
        if times != 1:
            yield f"match {match} is at the KI {times} times"
    for match in set(held.count) - history.played:
        yield f"match {match} is at the KI, and nobody ever played it"
    for card in cards:
        for match, (data, state, reason) in card.results.items():
            if match in history.poisoned:
                if match in held.count:
                    yield f"{card.name}: the poisoned match {match} counts"
                elif state != "rejected":
                    yield f"{card.name}: the poisoned match {match} is {state}"
                continue
            if match not in held.count:
                yield f"{card.name}: match {match} is not at the KI (here: {state}, {reason})"
            elif held.hashes[match] != _hash(data):
                excused = match in history.twice or history.keys_lost
                # Of a match that two tables ended the KI, put back, may be offered the other one's version
                # first. A digest is of ids, so whose version it was before cannot hear of it.
                other_first = match in history.twice and history.ki_put_back and state == "accepted"
                if not other_first and (not excused or state != "conflict"):
                    yield f"{card.name}: match {match} is at the KI with other bytes (here: {state})"
            elif state not in ("accepted", "duplicate"):
                yield f"{card.name}: match {match} counts at the KI, and here it is {state} ({reason})"
    on_cards = {match for card in cards for match in card.results}
    for match in history.acknowledged - set(held.count):
        if match in on_cards or not history.ki_put_back:
            yield f"match {match} was acknowledged, and the KI does not hold it"


def _saved(world: World, cards: list[Card]) -> Iterator[str]:
    """What people were told is won is on the card, unless somebody has put an older one in its place."""
    for table, card in zip(world.tables, cards, strict=True):
        if table.name not in world.history.put_back:
            for match in sorted(table.saved - set(card.results)):
                yield f"{table.name}: match {match} was on the card, and is not any more"


def _points(world: World, held: Held) -> Iterator[str]:
    right: defaultdict[int, int] = defaultdict(lambda: GRANT)
    for match in held.count:
        record = _as_played(world, held, match)
        if record is None:
            yield f"match {match} is at the KI with bytes that no table wrote"
            continue
        if sum(each.delta for each in record.seats) != 0:
            yield f"match {match}: its deltas do not sum to zero"
        for each in record.seats:
            if each.player is None:
                continue
            account = held.accounts.get(each.player)
            if account is None:
                yield f"player {each.player} played and has no account"
            elif held.turns[match] % 2 == 0:
                right[account] += each.delta
    for account, points in held.points.items():
        if points != right[account] or points != GRANT + held.moved[account]:
            yield (
                f"the account {account} holds {points}; by the records it is {right[account]}, "
                f"by the transfers {GRANT + held.moved[account]}"
            )


def _as_played(world: World, held: Held, match: str) -> Record | None:
    """The record as a table wrote it: in the ledger an erasure may have replaced its bytes."""
    made = world.history.made.get(match, [])
    for data in made:
        if _hash(data) == held.hashes[match]:
            return decode_record(data)
    if not world.history.keys_lost:
        return None
    # A card that came back without its key has bound it to another one; who played and won is the same, and
    # when. A clone may have played the match as well, to another end.
    played = (decode_record(data) for data in made)
    return next((each for each in played if _course(each) == _course(held.records[match])), None)


def _course(record: Record) -> tuple[object, ...]:
    """What neither another key nor an erasure changes."""
    seats = tuple((each.seat, each.kind, each.stake, each.delta) for each in record.seats)
    return record.match, seats, record.winner, record.rounds, record.t


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
        for key, (settled, offering) in card.digests.items():
            taken = [
                uuid.UUID(match).bytes
                for match, (_, state, _) in card.results.items()
                if state in ("accepted", "duplicate") and card.keys[match] == key
            ]
            count, xor = _digest(taken)
            theirs = digests.get(key)
            whose = "its key" if key == card.key else f"the key {key.hex()} that it had before"
            if theirs is None:
                yield f"{table.name}: the KI does not know {whose}"
                continue
            apart = (theirs[0] - count, bytes(one ^ other for one, other in zip(theirs[1], xor, strict=True)))
            if settled != apart or offering:
                under_way = ", and an offer is under way" if offering else ""
                yield (
                    f"{table.name}: the digest of {whose} differs from the KI's by {apart[0]} "
                    f"{apart[1].hex()}, and it knows of {settled[0]} {settled[1].hex()}{under_way}"
                )


def _rulings(world: World, cards: list[Card], held: Held) -> Iterator[str]:
    """What an operator was told is done is done, and every table knows of it."""
    history = world.history
    for match, times in history.rulings.items():
        # What was ruled since a backup is to be ruled again: the service says so.
        if held.turns[match] < times and not history.ki_put_back:
            yield f"match {match} was ruled on {times} times, and the KI knows of {held.turns[match]}"
    for card in cards:
        for match in card.results:
            if held.keys.get(match) == card.key and (held.turns[match] % 2 == 1) is not (match in card.voids):
                yield f"{card.name}: match {match} is {'not ' * (match not in card.voids)}void here alone"


def _findings(world: World, cards: list[Card], held: Held) -> Iterator[str]:
    """What was done to a table's chain is told, and nothing is told that was not done."""
    keys = Counter(card.key for card in cards)
    cloned = {card.key for card in cards if card.name in world.history.clones}
    follow: defaultdict[bytes, Counter[bytes]] = defaultdict(Counter)
    known: defaultdict[bytes, set[bytes]] = defaultdict(set)
    whole: set[bytes] = set()
    for key, signed, data in [
        *((held.keys[match], held.hashes[match], None) for match in held.count),
        *held.aside,
    ]:
        record = _decoded(data) if data is not None else None
        if data is None:
            match = next(each for each in held.count if held.hashes[each] == signed)
            record = held.records[match]
        if record is not None and signed not in known[key]:
            known[key].add(signed)
            whole.add(signed)
            follow[key][record.prev or ROOT] += 1
    for key in held.digests:
        found = held.findings[key]
        branched = any(times > 1 for times in follow[key].values())
        told = found["rewind"] + found["fork"] > 0
        if branched and not told:
            yield f"two records of the key {key.hex()} follow the same one, and the KI says nothing of it"
        if told and not branched and not world.history.ki_put_back:
            yield f"the KI tells of a rewind or fork of the key {key.hex()}, and there was none"
        missing = len(set(follow[key]) - whole - {ROOT})
        # Of a key that its table has lost nobody says any more that nothing waits.
        if keys[key] and found["gap"] != missing:
            yield f"the KI tells of {found['gap']} gaps of the key {key.hex()}, and there are {missing}"
        if found["clone"] and not cloned:
            yield f"the KI tells of a clone of the key {key.hex()}, and there is none"
        if keys[key] > 1 and not found["clone"]:
            yield f"two tables live with the key {key.hex()}, and the KI says nothing of it"


def _decoded(data: bytes) -> Record | None:
    try:
        return decode_record(data)
    except RecordError:
        return None


def _hash(data: bytes | None) -> bytes:
    return hashlib.sha256(data or b"").digest()


def _digest(matches: list[bytes]) -> tuple[int, bytes]:
    xor = 0
    for each in matches:
        xor ^= int.from_bytes(each, "big")
    return len(matches), xor.to_bytes(16, "big")


def _card(table: Table) -> Card:
    card = Card(table.name, table.key.id)
    with _look_into(table.folder / "journal.sqlite3") as db:
        for match, data, key, state, reason in db.execute(
            "SELECT results.match, cbor, key, state, reason FROM results LEFT JOIN outbox USING(match)"
        ):
            card.results[match] = (data, state or "without a place in the outbox", reason)
            card.keys[match] = key
        for key in {card.key, *(key for key in card.keys.values() if key)}:
            card.digests[key] = (0, bytes(16)), False
        for key, count, xor, offered in db.execute(
            "SELECT key, settled_count, settled_xor, offered_count FROM digests"
        ):
            card.digests[key] = (count, xor), offered is not None
        card.voids = {row[0] for row in db.execute("SELECT match FROM voids")}
        (found,) = db.execute("PRAGMA quick_check").fetchone()
        if found != "ok":
            card.faults.append(found)
    return card


def _held(file: Path) -> Held:
    held = Held()
    with _look_into(file) as db:
        for match, key, signed, data in db.execute(
            "SELECT matches.match, tables.key_id, matches.record_hash, records.record FROM matches"
            " JOIN tables ON tables.id = table_id JOIN records ON records.match = matches.id"
        ):
            name = str(uuid.UUID(bytes=match))
            held.count[name] += 1
            held.keys[name], held.hashes[name] = key, signed
            held.records[name] = decode_record(data)
        for match, turns in db.execute(
            "SELECT matches.match, max(turn) FROM rulings JOIN matches ON matches.id = rulings.match"
            " GROUP BY rulings.match"
        ):
            held.turns[str(uuid.UUID(bytes=match))] = turns
        for key, count, xor in db.execute("SELECT key_id, held, held_xor FROM tables"):
            held.digests[key] = (count, xor)
        held.points = dict(db.execute("SELECT player, points FROM standings"))
        held.accounts = dict(db.execute("SELECT number, id FROM players"))
        held.accounts |= dict(db.execute("SELECT number, player FROM former_numbers"))
        for match, payer, receiver, amount in db.execute(
            "SELECT matches.match, from_player, to_player, amount FROM transfers"
            " JOIN matches ON matches.id = transfers.match"
        ):
            if held.turns[str(uuid.UUID(bytes=match))] % 2 == 0:
                held.moved[receiver] += amount
                held.moved[payer] -= amount
        held.aside = list(
            db.execute(
                "SELECT key_id, record_hash, record FROM set_aside JOIN tables ON tables.id = table_id"
            )
        )
        for key, kind, count in db.execute(
            "SELECT key_id, kind, count FROM findings JOIN tables ON tables.id = table_id"
        ):
            held.findings[key][kind] = count
    return held


@contextlib.contextmanager
def _look_into(file: Path) -> Iterator[sqlite3.Connection]:
    """A data base as it is seen by somebody who belongs to no machine."""
    db = contextvars.Context().run(lambda: sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True))
    with contextlib.closing(db):
        yield db
