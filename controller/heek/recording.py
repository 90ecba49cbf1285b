"""A recording: everything that a table was told, from a known beginning, so that it can be told it again.

What is kept. A table's events follow from what it is told (edges, claims, the operator, news of a
standstill), from how far it had been driven when it was told that, and from what it drew by chance. Its clock
is not among them: between two things that it is told it is enough to know the last instant up to which it
was driven, and the last up to which rounds could be compared (`Turn`). Where an edge is newer than both, as
nearly every edge is, even that can be left out: the table could not have known of it before anyway.

The bytes. A recording is a *beginning* and *parts*; the inputs of all parts, one after the other, are one
stream. Each block ends with a CRC-32 that goes on from that of the block before, so a part that is cut,
changed, missing or another recording's does not pass. An item is a tag and, for an edge (tags 0 to 29:
contact and direction), the nanoseconds since the edge before as a variable-length integer: six bytes or so.
Whoever reads a file that came from elsewhere is never led further than a bound: of bytes here, of events in
`heek.replay`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Final, TypeAlias

import msgspec

from heek.clock import SECOND, Instant
from heek.errors import JournalError, RecordingError
from heek.games.ahyoheek import CYCLES
from heek.games.ranking_points import RULES_VERSIONS
from heek.kinds import KINDS, SEATS, Kind, Seat
from heek.session.settings import GestureSettings, SessionSettings
from heek.session.state import Kept, KeptSeat, Match, keep, restore
from heek.stations.gestures import Edge
from heek.table import AtRest

VERSION: Final = 1
"""Of the bytes and of the rules: a table that plays otherwise must not claim to replay these."""

MOST_BYTES: Final = 4 * 1024 * 1024
"""Of one recording's inputs: more than a day of play without a pause. What comes after is not kept."""

MOST_MESSAGE: Final = 64 * 1024
_MAGIC: Final = b"heek recording "
_CRC_BYTES: Final = 4

_TURN: Final = 30
_DRAWN: Final = 31
_MESSAGE: Final = 32
_BROKEN_OFF: Final = 33
_READ: Final = 34
"""Before an edge's tag: nobody heard it, the line was read."""
_CONTACTS: Final = tuple((seat, kind) for seat in SEATS for kind in KINDS)
_TAG_OF: Final = {contact: 2 * number for number, contact in enumerate(_CONTACTS)}
_FARTHEST: Final = 2**62


# What a table is told besides edges


class WasReset(msgspec.Struct, frozen=True, tag="reset", forbid_unknown_fields=True):
    """The operator's button."""

    at: Instant


class WereAsked(msgspec.Struct, frozen=True, tag="bots", forbid_unknown_fields=True):
    """Bots were asked to come (True) or to go."""

    at: Instant
    come: bool


class WasClaimed(msgspec.Struct, frozen=True, tag="claim", forbid_unknown_fields=True):
    """A player took a seat's identity; with what this table knew of the player's points then."""

    at: Instant
    seat: Seat
    player: str
    name: str
    told: int | None
    own: int


class WasTold(msgspec.Struct, frozen=True, tag="points", forbid_unknown_fields=True):
    """The KI told what players hold."""

    at: Instant
    points: dict[str, int]
    acknowledged: dict[str, int]


class StandstillEnded(msgspec.Struct, frozen=True, tag="standstill", forbid_unknown_fields=True):
    """The program had done nothing for a while."""

    began: Instant
    ended: Instant


Message: TypeAlias = WasReset | WereAsked | WasClaimed | WasTold | StandstillEnded


@dataclass(frozen=True, slots=True)
class Turn:
    """The table was driven to `now`, and rounds could be compared up to `settled` (-1: never yet)."""

    settled: Instant
    now: Instant


@dataclass(frozen=True, slots=True)
class Drawn:
    """What the table drew by chance: a match's id, or what bots throw."""

    luck: bytes


@dataclass(frozen=True, slots=True)
class BrokenOff:
    """From here on nothing was kept: there was more than MOST_BYTES."""


Item: TypeAlias = Edge | Turn | Drawn | Message | BrokenOff


# Where it begins


class Started(msgspec.Struct, frozen=True, tag="start", forbid_unknown_fields=True):
    """The daemon began."""

    boot: str
    short_cut: bool
    kept: bytes | None
    """What the journal had kept (`heek.session.state.keep`)."""
    closed: list[tuple[Seat, Kind]]
    """The contacts that were closed then."""


class Rested(msgspec.Struct, frozen=True, tag="rest", forbid_unknown_fields=True):
    """Nobody had touched the table for a while."""

    rest: AtRest


class Beginning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that is to be known to build the table as it was."""

    heek: str
    """The version of the program, for people."""
    incarnation: str
    first_seq: int
    """The number of the first event that comes out."""
    settings: SessionSettings
    gestures: GestureSettings
    start: Started | Rested
    points: dict[str, tuple[int | None, int]]
    """Of the players who sat when it began; the others' come with their claims."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A beginning and what followed."""

    beginning: Beginning
    items: tuple[Item, ...]

    @property
    def broken_off(self) -> bool:
        """More happened than is kept."""
        return bool(self.items) and isinstance(self.items[-1], BrokenOff)

    @property
    def kept(self) -> Kept | None:
        """The match that the table took up when it began, if any."""
        start = self.beginning.start
        return restore(start.kept) if isinstance(start, Started) and start.kept is not None else None


# Writing


def encode_beginning(beginning: Beginning) -> bytes:
    """The first block of a recording."""
    return _sealed(_MAGIC + bytes([VERSION]) + msgspec.msgpack.encode(beginning), 0)


class PartEncoder:
    """Writes the parts of one recording, one after the other."""

    def __init__(self, beginning: bytes) -> None:
        self._crc = _crc_of(beginning)
        self._edge_at: Instant = 0
        self._turn_at: Instant = 0
        self.size = 0
        """Bytes of all parts so far."""

    def part(self, items: Iterable[Item]) -> bytes:
        """The next block."""
        out = bytearray()
        for item in items:
            self._write(out, item)
        part = _sealed(bytes(out), self._crc)
        self._crc = _crc_of(part)
        self.size += len(part)
        return part

    def _write(self, out: bytearray, item: Item) -> None:
        match item:
            case Edge(at, seat, button, closed, read):
                if read:
                    out.append(_READ)
                out.append(_TAG_OF[seat, button] + closed)
                _put_signed(out, at - self._edge_at)
                self._edge_at = at
            case Turn(settled, now):
                out.append(_TURN)
                _put_signed(out, now - self._turn_at)
                _put_signed(out, now - settled)
                self._turn_at = now
            case Drawn(luck):
                out.append(_DRAWN)
                _put_block(out, luck)
            case BrokenOff():
                out.append(_BROKEN_OFF)
            case _:
                out.append(_MESSAGE)
                _put_block(out, msgspec.msgpack.encode(item))


def _sealed(block: bytes, crc: int) -> bytes:
    return block + zlib.crc32(block, crc).to_bytes(_CRC_BYTES, "little")


def _crc_of(block: bytes) -> int:
    return int.from_bytes(block[-_CRC_BYTES:], "little")


def _put_signed(out: bytearray, value: int) -> None:
    _put(out, value << 1 if value >= 0 else (-value << 1) - 1)


def _put(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _put_block(out: bytearray, block: bytes) -> None:
    _put(out, len(block))
    out += block


# Reading


def decode(beginning: bytes, parts: Sequence[bytes]) -> Recording:
    """A recording from its blocks; raises RecordingError for anything that `encode` did not write."""
    begun, streams = _unsealed(beginning, parts)
    items = _items(streams, frozenset(begun.settings.seats))
    return Recording(begun, tuple(chain.from_iterable(items)))


def without_identities(
    beginning: bytes, parts: Sequence[bytes], aliases: Mapping[str, str]
) -> tuple[bytes, list[bytes]]:
    """The same recording, part by part, in which players go by an alias and by no name.

    `aliases` is by KI number, and no two are alike: so the same comes of it. Raises RecordingError as
    `decode` does.
    """
    if not any(player.encode() in block for player in aliases for block in (beginning, *parts)):
        return beginning, list(parts)
    begun, streams = _unsealed(beginning, parts)
    anew = encode_beginning(_beginning_without(begun, aliases))
    encoder = PartEncoder(anew)
    items = _items(streams, frozenset(begun.settings.seats))
    return anew, [encoder.part([_item_without(item, aliases) for item in part]) for part in items]


def _beginning_without(begun: Beginning, aliases: Mapping[str, str]) -> Beginning:
    points = {aliases.get(player, player): known for player, known in begun.points.items()}
    start = begun.start
    if isinstance(start, Started) and start.kept is not None:
        kept = restore(start.kept)
        seats = {
            seat: KeptSeat(aliases[who.player], "", who.bot)
            if who.player is not None and who.player in aliases
            else who
            for seat, who in kept.seats.items()
        }
        kept = replace(kept, seats=seats, match=_match_without(kept.match, aliases))
        start = msgspec.structs.replace(start, kept=keep(kept))
    return msgspec.structs.replace(begun, points=points, start=start)


def _match_without(match: Match | None, aliases: Mapping[str, str]) -> Match | None:
    if match is None:
        return None
    entries = [
        replace(each, player=aliases[each.player], name="")
        if each.player is not None and each.player in aliases
        else each
        for each in match.entries
    ]
    return replace(match, entries=entries)


def _item_without(item: Item, aliases: Mapping[str, str]) -> Item:
    match item:
        case WasClaimed(player=player) if player in aliases:
            return msgspec.structs.replace(item, player=aliases[player], name="")
        case WasTold(at, points, acknowledged):
            return WasTold(at, _keyed(points, aliases), _keyed(acknowledged, aliases))
        case _:
            return item


def _keyed(sums: Mapping[str, int], aliases: Mapping[str, str]) -> dict[str, int]:
    return {aliases.get(player, player): value for player, value in sums.items()}


def _unsealed(beginning: bytes, parts: Sequence[bytes]) -> tuple[Beginning, list[bytes]]:
    """The beginning, and what stands in each part."""
    opened = _opened(beginning, 0, "its beginning")
    if not opened.startswith(_MAGIC) or len(opened) == len(_MAGIC):
        raise RecordingError("is no recording of a heek table")
    version = opened[len(_MAGIC)]
    if version != VERSION:
        raise RecordingError(
            f"was recorded by another version of heek (layout {version}, this one replays {VERSION}); "
            "replay it with that version"
        )
    if sum(map(len, parts)) > 2 * MOST_BYTES:
        raise RecordingError(f"has more than {2 * MOST_BYTES} bytes, which no table records")
    begun = _beginning(opened[len(_MAGIC) + 1 :])
    crc = _crc_of(beginning)
    streams = []
    for number, part in enumerate(parts, start=1):
        streams.append(_opened(part, crc, f"its part {number}"))
        crc = _crc_of(part)
    return begun, streams


def _opened(block: bytes, crc: int, name: str) -> bytes:
    body = block[:-_CRC_BYTES]
    if len(block) < _CRC_BYTES or zlib.crc32(body, crc) != _crc_of(block):
        raise RecordingError(f"is damaged: {name} is cut, changed or missing")
    return body


def _beginning(body: bytes) -> Beginning:
    try:
        begun = msgspec.msgpack.decode(body, type=Beginning)
        settings = begun.settings
        seats = settings.seats
        if list(seats) != sorted(set(seats) & set(SEATS)) or len(seats) < 2:
            raise RecordingError(f"is damaged: no table has the seats {list(seats)}")
        _see_to_ranges(settings, begun.gestures)
        if isinstance(begun.start, Started):
            if begun.start.kept is not None:
                restore(begun.start.kept)
            known = all(seat in seats for seat, _ in begun.start.closed)
        else:
            contacts = begun.start.rest.contacts
            known = sorted((each.seat, each.button.value) for each in contacts) == sorted(
                (seat, kind.value) for seat in seats for kind in KINDS
            )
        if not known:
            raise RecordingError("is damaged: it names contacts that its table has not")
    except JournalError as error:
        raise RecordingError(f"is damaged: {error}") from None
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError, OverflowError) as error:
        if isinstance(error, RecordingError):
            raise
        raise RecordingError(f"is damaged: its beginning cannot be read ({error})") from None
    return begun


BOTS: Final = ("never", "ask", "fill")
TIMERS: Final = ("first_throw", "fixed")
_LONGEST: Final = 7 * 24 * 3600 * SECOND
_LARGEST: Final = 1_000_000


def _see_to_ranges(settings: SessionSettings, gestures: GestureSettings) -> None:
    """Bounds alone, so that a made-up table cannot run for ever: the configuration has the real ranges."""
    if settings.settle <= 0 or settings.reveal <= 0 or settings.match_over <= 0 or settings.idle <= 0:
        raise RecordingError("is damaged: a table's phases take longer than nothing")
    choices = ((settings.bots, BOTS), (settings.cycle, CYCLES), (settings.timer, TIMERS))
    for chosen, possible in (*choices, (settings.economy, RULES_VERSIONS)):
        if chosen not in possible:
            raise RecordingError(f"is damaged: no table is set to {chosen!r}")
    for value in (settings, gestures):
        for each in fields(value):
            number = getattr(value, each.name)
            most = _LONGEST if each.type == "Duration" else _LARGEST
            if type(number) is int and not 0 <= number <= most:
                raise RecordingError(f"is damaged: no table has {each.name} = {number}")


@dataclass(slots=True)
class _Clocks:
    """What an instant of a part is counted from: it goes on from the part before."""

    edge_at: Instant = 0
    turn_at: Instant = 0


def _items(streams: Iterable[bytes], seats: frozenset[Seat]) -> Iterator[list[Item]]:
    """The items of each part; none of them reaches over into the next."""
    clocks = _Clocks()
    ended = False
    for stream in streams:
        if ended and stream:
            raise RecordingError("is damaged: it goes on after its end")
        items = list(_items_of(stream, seats, clocks))
        ended = ended or (bool(items) and isinstance(items[-1], BrokenOff))
        yield items


def _items_of(stream: bytes, seats: frozenset[Seat], clocks: _Clocks) -> Iterator[Item]:
    reader = _Reader(stream)
    while reader.left:
        tag = reader.byte()
        read = tag == _READ
        if read:
            tag = reader.byte()
        if tag < _TURN:
            seat, button = _CONTACTS[tag // 2]
            if seat not in seats:
                raise RecordingError(f"is damaged: it has an edge of seat {seat}, which its table has not")
            clocks.edge_at = reader.instant(clocks.edge_at)
            yield Edge(clocks.edge_at, seat, button, bool(tag % 2), read)
        elif read:
            raise RecordingError(f"is damaged: an item of kind {tag} is no line that was read")
        elif tag == _TURN:
            before, now = clocks.turn_at, reader.instant(clocks.turn_at)
            settled = now - reader.signed()
            if now < before or not -1 <= settled <= now:
                raise RecordingError("is damaged: its time goes backwards")
            clocks.turn_at = now
            yield Turn(settled, now)
        elif tag == _DRAWN:
            yield Drawn(reader.block())
        elif tag == _MESSAGE:
            yield _message(reader.block(), seats)
        elif tag == _BROKEN_OFF:
            yield BrokenOff()
            if reader.left:
                raise RecordingError("is damaged: it goes on after its end")
        else:
            raise RecordingError(f"is damaged: it has an item of kind {tag}, which there is not")


def _message(block: bytes, seats: frozenset[Seat]) -> Message:
    try:
        message: Message = msgspec.msgpack.decode(block, type=Message)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise RecordingError(f"is damaged: what the table was told cannot be read ({error})") from None
    stamps = (
        (message.began, message.ended) if isinstance(message, StandstillEnded) else (message.at, message.at)
    )
    if not all(abs(stamp) < _FARTHEST for stamp in stamps) or stamps[0] > stamps[1]:
        raise RecordingError("is damaged: it has an instant that no clock shows")
    if isinstance(message, WasClaimed) and message.seat not in seats:
        raise RecordingError(f"is damaged: somebody claimed seat {message.seat}, which its table has not")
    return message


class _Reader:
    """Reads a stream of items; raises RecordingError where it ends too early."""

    def __init__(self, stream: bytes) -> None:
        self._stream = stream
        self._position = 0

    @property
    def left(self) -> int:
        return len(self._stream) - self._position

    def byte(self) -> int:
        if not self.left:
            raise RecordingError("is damaged: it ends in the middle of an item")
        self._position += 1
        return self._stream[self._position - 1]

    def block(self) -> bytes:
        length = self.number()
        if length > min(self.left, MOST_MESSAGE):
            raise RecordingError("is damaged: it ends in the middle of an item")
        self._position += length
        return self._stream[self._position - length : self._position]

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise RecordingError("is damaged: it has a number that no clock shows")

    def signed(self) -> int:
        value = self.number()
        return -((value + 1) >> 1) if value & 1 else value >> 1

    def instant(self, before: Instant) -> Instant:
        at = before + self.signed()
        if abs(at) >= _FARTHEST:
            raise RecordingError("is damaged: it has an instant that no clock shows")
        return at
