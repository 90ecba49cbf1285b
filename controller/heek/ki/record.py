"""The match record that a table reports, as the bytes it signs (the specification, "The record").

A record is deterministic CBOR: a map with text keys and no floats. The match id (16 bytes of a UUIDv4), the
table's key id and the incarnation (8 bytes each) and the hash of the record before (32 bytes, or null before
the first) are byte strings. A seat is a map `seat`, `kind`, `stake`, `delta`, with `player` for a signed-in
one and `name` where there is one; a round is a map from seat, as text, to `pen`, `page`, `beetle` or null.

What is checked here is what a record alone can show. Whether its numbers agree with the rules' version is
for the ledger.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from heek.errors import RecordError
from heek.ki import cbor
from heek.ki.numbers import is_ki_number
from heek.kinds import Kind, Seat

VERSION: Final = 1
MOST_BYTES: Final = 64 * 1024
"""Of one record."""
MOST_SEATS: Final = 10
"""Entries in a match: each of the five seats may have been left and, with late join, taken again."""
MOST_POINTS: Final = 1_000_000
"""A stake or delta beyond it is no match's."""
MOST_MS: Final = 1 << 53
"""Milliseconds and seconds beyond it are no time."""

GAMES: Final = ("ahyoheek",)
SEAT_KINDS: Final = ("guest", "player", "bot")
ENDINGS: Final = ("three", "total", "sudden_death", "walkover")
TRUSTS: Final = ("none", "saved", "ntp", "service")

Round: TypeAlias = Mapping[Seat, Kind | None]
"""What every seat threw that could; None: nothing."""


@dataclass(frozen=True, slots=True)
class RecordSeat:
    """One who played; a seat that was left and joined again stands twice."""

    seat: Seat
    kind: str
    """`guest`, `player` or `bot`."""
    player: str | None
    """KI number of a `player`, else None."""
    name: str | None
    stake: int
    delta: int


@dataclass(frozen=True, slots=True)
class RecordTime:
    """When it was, by the clocks of the table; a label, never part of a rule."""

    boot: str
    start_ms: int | None
    """On the boot's monotonic clock; None: a power cut lies between start and end."""
    end_ms: int
    wall_s: int
    """Seconds since 1970 at the end."""
    trust: str
    """How far `wall_s` can be believed: `none`, `saved`, `ntp` or `service`."""


@dataclass(frozen=True, slots=True)
class Record:
    """One match that was won."""

    rules: str
    game: str
    match: bytes
    table: bytes
    """Key id of the table that signs it."""
    name: str
    """The table's."""
    inc: bytes
    seq: int
    """From 1 within the incarnation."""
    prev: bytes | None
    """SHA-256 of the record before."""
    seats: tuple[RecordSeat, ...]
    winner: Seat
    by: str
    rated: bool
    rounds: tuple[Round, ...]
    late_rounds: tuple[int, ...]
    t: RecordTime

    @property
    def match_id(self) -> str:
        """The match's UUID as text."""
        return str(uuid.UUID(bytes=self.match))


def record_hash(record: bytes) -> bytes:
    """What the next record names as the one before it: SHA-256, 32 bytes."""
    return hashlib.sha256(record).digest()


def encode_record(record: Record) -> bytes:
    """The one encoding of a record; raises RecordError if it is larger than `MOST_BYTES`."""
    data = cbor.encode(
        {
            "v": VERSION,
            "rules": record.rules,
            "game": record.game,
            "match": record.match,
            "table": record.table,
            "name": record.name,
            "inc": record.inc,
            "seq": record.seq,
            "prev": record.prev,
            "seats": [_seat_map(each) for each in record.seats],
            "winner": record.winner,
            "by": record.by,
            "rated": record.rated,
            "rounds": [
                {str(seat): None if kind is None else kind.value for seat, kind in each.items()}
                for each in record.rounds
            ],
            "late_rounds": list(record.late_rounds),
            "t": {
                "boot": record.t.boot,
                "start_ms": record.t.start_ms,
                "end_ms": record.t.end_ms,
                "wall_s": record.t.wall_s,
                "trust": record.t.trust,
            },
        }
    )
    if len(data) > MOST_BYTES:
        raise RecordError(f"has {len(data)} bytes; {MOST_BYTES} at most")
    return data


def decode_record(data: bytes) -> Record:
    """The record of these bytes; raises RecordError with the first thing that is wrong.

    A key that this version does not know is allowed, so that tables may be newer than the service.
    """
    if len(data) > MOST_BYTES:
        raise RecordError(f"has {len(data)} bytes; {MOST_BYTES} at most")
    value = cbor.decode(data)
    if not isinstance(value, dict):
        raise RecordError("is no map")
    version = _get(value, "v", int)
    if version != VERSION:
        raise RecordError(f"is of version {version}; this service knows {VERSION}")
    seats = _list(value, "seats", MOST_SEATS)
    rounds = _list(value, "rounds", MOST_BYTES)
    record = Record(
        rules=_text(value, "rules", 32),
        game=_choice(value, "game", GAMES),
        match=_bytes(value, "match", 16),
        table=_bytes(value, "table", 8),
        name=_text(value, "name", 24),
        inc=_bytes(value, "inc", 8),
        seq=_whole(value, "seq", 1, MOST_MS),
        prev=None if value.get("prev", 0) is None else _bytes(value, "prev", 32),
        seats=tuple(_read_seat(each, f"seats[{place}]") for place, each in enumerate(seats)),
        winner=Seat(_whole(value, "winner", 1, 5)),
        by=_choice(value, "by", ENDINGS),
        rated=_get(value, "rated", bool),
        rounds=tuple(_read_round(each, f"rounds[{place}]") for place, each in enumerate(rounds)),
        late_rounds=tuple(_read_late(value)),
        t=_read_time(_get(value, "t", dict)),
    )
    _check_match(record)
    return record


def _seat_map(seat: RecordSeat) -> dict[str, object]:
    made: dict[str, object] = {
        "seat": seat.seat,
        "kind": seat.kind,
        "stake": seat.stake,
        "delta": seat.delta,
    }
    if seat.player is not None:
        made["player"] = seat.player
    if seat.name is not None:
        made["name"] = seat.name
    return made


def _check_match(record: Record) -> None:
    if uuid.UUID(bytes=record.match).version != 4:
        raise RecordError("match: is no UUID of version 4")
    if len(record.seats) < 2:
        raise RecordError("seats: fewer than two played")
    if record.winner not in {each.seat for each in record.seats}:
        raise RecordError(f"winner: seat {record.winner} did not play")
    players = [each.player for each in record.seats if each.player is not None]
    if len(players) != len(set(players)):
        raise RecordError("seats: one KI number sits at two seats")
    for seat in {each.seat for each in record.seats}:
        if sum(each.seat == seat for each in record.seats) > 2:
            raise RecordError(f"seats: seat {seat} stands more than twice")


def _read_seat(value: object, where: str) -> RecordSeat:
    if not isinstance(value, dict):
        raise RecordError(f"{where}: is no map")
    try:
        kind = _choice(value, "kind", SEAT_KINDS)
        player = value.get("player")
        if (player is not None) is not (kind == "player"):
            raise RecordError("player: a KI number is given for players, and for them alone")
        if player is not None and not is_ki_number(player):
            raise RecordError("player: is no KI number (eight digits, the last one checks the others)")
        return RecordSeat(
            seat=Seat(_whole(value, "seat", 1, 5)),
            kind=kind,
            player=player,
            name=None if value.get("name") is None else _text(value, "name", 64),
            stake=_whole(value, "stake", 0, MOST_POINTS),
            delta=_whole(value, "delta", -MOST_POINTS, MOST_POINTS),
        )
    except RecordError as error:
        raise RecordError(f"{where}.{error}") from None


def _read_round(value: object, where: str) -> dict[Seat, Kind | None]:
    if not isinstance(value, dict) or not value:
        raise RecordError(f"{where}: is no map of throws")
    throws: dict[Seat, Kind | None] = {}
    for seat, kind in value.items():
        if seat not in ("1", "2", "3", "4", "5"):
            raise RecordError(f"{where}: has a seat that is not 1 to 5")
        try:
            throws[Seat(int(seat))] = None if kind is None else Kind(kind)
        except ValueError:
            raise RecordError(f"{where}: seat {seat} threw what is no pen, page or beetle") from None
    return throws


def _read_late(value: Mapping[str, Any]) -> list[int]:
    late = _list(value, "late_rounds", MOST_BYTES)
    if not all(type(each) is int and 0 < each < MOST_MS for each in late):
        raise RecordError("late_rounds: are not all numbers of rounds")
    return late


def _read_time(value: Mapping[str, Any]) -> RecordTime:
    try:
        start = value.get("start_ms", 0)
        return RecordTime(
            boot=_text(value, "boot", 64),
            start_ms=None if start is None else _whole(value, "start_ms", -MOST_MS, MOST_MS),
            end_ms=_whole(value, "end_ms", -MOST_MS, MOST_MS),
            wall_s=_whole(value, "wall_s", -MOST_MS, MOST_MS),
            trust=_choice(value, "trust", TRUSTS),
        )
    except RecordError as error:
        raise RecordError(f"t.{error}") from None


def _get(value: Mapping[str, Any], key: str, kind: type) -> Any:
    if key not in value:
        raise RecordError(f"{key}: is missing")
    found = value[key]
    # Not isinstance: True is an int, and nobody meant that.
    if type(found) is not kind:
        raise RecordError(f"{key}: is no {_WORDS[kind]}")
    return found


_WORDS: Final[Mapping[type, str]] = {
    int: "whole number",
    bool: "true or false",
    str: "text",
    bytes: "byte string",
    list: "list",
    dict: "map",
}


def _whole(value: Mapping[str, Any], key: str, low: int, high: int) -> int:
    number: int = _get(value, key, int)
    if not low <= number <= high:
        raise RecordError(f"{key}: is out of range, {low} to {high}")
    return number


def _text(value: Mapping[str, Any], key: str, longest: int) -> str:
    text: str = _get(value, key, str)
    if not 0 < len(text) <= longest:
        raise RecordError(f"{key}: has {len(text)} characters; 1 to {longest}")
    if not text.isprintable():
        raise RecordError(f"{key}: has a character that cannot be shown")
    return text


def _choice(value: Mapping[str, Any], key: str, choices: tuple[str, ...]) -> str:
    text: str = _get(value, key, str)
    if text not in choices:
        raise RecordError(f"{key}: is not one of {', '.join(choices)}")
    return text


def _bytes(value: Mapping[str, Any], key: str, length: int) -> bytes:
    data: bytes = _get(value, key, bytes)
    if len(data) != length:
        raise RecordError(f"{key}: has {len(data)} bytes instead of {length}")
    return data


def _list(value: Mapping[str, Any], key: str, most: int) -> list[Any]:
    found: list[Any] = _get(value, key, list)
    if len(found) > most:
        raise RecordError(f"{key}: has {len(found)} entries; {most} at most")
    return found
