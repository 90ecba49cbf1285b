"""The table with a recorder beside it: passes everything on, and remembers it for `heek.replay`.

What is remembered of the running round stays in this process: a part of the recording is given out only while
no round is open and nothing has been fed that the rules have not come to (spec/ki.md, "Nothing leaks before
the reveal"). So a pulled plug takes the edges of the round that it breaks off, and no others.

A recording would grow for as long as the program runs. So when nobody has touched the table for `QUIET`, a
new one begins from what the table still remembers then; and past a bound the recorder gives up until that
moment, and says so.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from heek import __version__
from heek.clock import SECOND, Duration, Instant
from heek.kinds import Kind, Seat
from heek.recording import (
    MOST_BYTES,
    Beginning,
    BrokenOff,
    Drawn,
    Item,
    Message,
    PartEncoder,
    Rested,
    StandstillEnded,
    Started,
    Turn,
    WasClaimed,
    WasReset,
    WasTold,
    WereAsked,
    encode_beginning,
)
from heek.session import events as ev
from heek.session.events import Event
from heek.session.floor import Effects
from heek.session.phases import Phase
from heek.session.play import ROUND_OPEN
from heek.session.settings import GestureSettings, SessionSettings
from heek.session.state import Kept, keep
from heek.session.view import View
from heek.stations.gestures import Edge, Rejected
from heek.table import Table

log: Final = logging.getLogger("heek")

QUIET: Final[Duration] = 30 * SECOND
"""So long after the last edge nothing of a match is on its way any more, and a new recording may begin."""

FLOOD_KEPT: Final[Duration] = SECOND
"""Of a contact that floods one edge in so long is kept: less than the quiet by which it heals."""

MOST_ITEMS: Final = 50_000
"""Kept in memory until they can be given out: more than five people can press in a round's longest time."""

_WORTH_KEEPING: Final = (ev.RoundRevealed, ev.RoundVoid, ev.MatchWon, ev.MatchVoid, ev.LateDelivery)
"""Events with which a part goes into the journal; what happens in between goes with the next of them."""


class Part(NamedTuple):
    """A piece of a recording, to be kept in the commit of the events that come of it."""

    recording: int
    """By the number of its first event."""
    after_seq: int
    """The number of the last event of the part before; a gap shows that one was lost."""
    last_seq: int
    """All events up to this one come of this part and those before."""
    inputs: bytes
    beginning: bytes | None
    """With the first part."""


class RecordedTable:
    """A `heek.table.Table` that is recorded. The doors are those of the table."""

    def __init__(
        self,
        settings: SessionSettings,
        gestures: GestureSettings,
        *,
        random_bytes: Callable[[int], bytes],
        closed: Iterable[tuple[Seat, Kind]] = (),
        own_deltas: Mapping[str, int] | None = None,
        told_points: Mapping[str, int] | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._settings = settings
        self._gestures = gestures
        self._random_bytes = random_bytes
        self._closed = [(seat, kind) for seat, kind in closed]
        self._most_bytes = most_bytes
        self._items: list[Item] = []
        self._now: Instant = 0
        self._settled: Instant = -1
        self._marked: tuple[Instant, Instant] = (-1, 0)
        """The last Turn that is among the items, as (settled, now)."""
        self._flood_at: dict[tuple[Seat, Kind], Instant] = {}
        """Contacts that flood: the stamp of the edge that was recorded last."""
        self._thinned: dict[tuple[Seat, Kind], Edge] = {}
        """The last edge of each of them that is not recorded yet; it is before the table is driven on."""
        self._newest: Instant = -SECOND
        """The newest stamp of an edge; what happens at the start itself waits for none."""
        self._incarnation = ""
        self._beginning: bytes | None = None
        self._encoder = PartEncoder(b"")
        self._recording = self._after_seq = 1
        self._wanted = False
        """Something has happened that is worth keeping, and is not kept yet."""
        self._untouched = True
        """Nothing has been told since the recording began."""
        self._quiet_since: Instant | None = None
        """About when the table was told something last; None: since `renew` was asked for last."""
        self._broken_off = False
        self._table = Table(
            settings,
            gestures,
            new_match_id=lambda: str(uuid.UUID(bytes=self._draw(16), version=4)),
            random_bytes=self._draw,
            closed=self._closed,
            own_deltas=own_deltas,
            told_points=told_points,
        )

    # What is recorded

    def start(
        self,
        incarnation: str,
        boot: str,
        kept: Kept | None = None,
        *,
        short_cut: bool = False,
        first_seq: int = 1,
    ) -> Effects:
        """Begin at instant 0, and the recording with it; `first_seq` is the number of the first event."""
        self._incarnation = incarnation
        state = keep(kept) if kept is not None else None
        players = (
            [] if kept is None else [who.player for who in kept.seats.values() if who.player is not None]
        )
        self._begin(first_seq, Started(boot, short_cut, state, self._closed), players)
        return self._table.start(incarnation, boot, kept, short_cut=short_cut)

    def feed(self, edge: Edge) -> None:
        """A contact changed, or was read; edges may come in any order of their stamps."""
        if self._table.ignores(edge) and not edge.read:
            self._thin_out(edge)
        else:
            if edge.at <= self._now:
                self._mark()
            elif (thinned := self._thinned.pop((edge.seat, edge.button), None)) is not None:
                # Whether the contact had opened again says whether it has healed by now.
                self._add(thinned)
            self._add(edge)
        if edge.at > self._newest:
            self._newest = edge.at
        self._table.feed(edge)

    def _thin_out(self, edge: Edge) -> None:
        """Of a contact that floods keep an edge a second, and the last: they say all that comes of it.

        The last is added before the table is driven on (`_mark`), and before an edge of the same contact
        that is believed again: so it stands where it would have stood, and nothing else depends on it.
        """
        contact = (edge.seat, edge.button)
        self._untouched, self._quiet_since = False, None
        if edge.at - self._flood_at.get(contact, -FLOOD_KEPT) >= FLOOD_KEPT:
            self._flood_at[contact] = edge.at
            self._thinned.pop(contact, None)
            self._add(edge)
        elif contact not in self._thinned or self._thinned[contact].at <= edge.at:
            self._thinned[contact] = edge

    def reset(self, at: Instant) -> None:
        """The operator's button."""
        self._tell(WasReset(at))
        self._table.reset(at)

    def fill_seats(self, at: Instant) -> None:
        """Somebody in the lobby asks the table to take the free seats itself."""
        self._tell(WereAsked(at, come=True))
        self._table.fill_seats(at)

    def dismiss_bots(self, at: Instant) -> None:
        """Somebody in the lobby sends the bots away again."""
        self._tell(WereAsked(at, come=False))
        self._table.dismiss_bots(at)

    def claim(self, at: Instant, seat: Seat, player: str, name: str) -> None:
        """A signed-in player takes a seat's identity."""
        told, own = self._table.known_points(player)
        self._tell(WasClaimed(at, seat, player, name, told, own))
        self._table.claim(at, seat, player, name)

    def tell_points(self, at: Instant, points: Mapping[str, int], acknowledged: Mapping[str, int]) -> None:
        """The KI told what players hold."""
        self._tell(WasTold(at, dict(points), dict(acknowledged)))
        self._table.tell_points(at, points, acknowledged)

    def stood_still(self, began: Instant, ended: Instant) -> None:
        """The program did nothing from `began` to `ended`."""
        self._tell(StandstillEnded(began, ended))
        self._table.stood_still(began, ended)

    def advance(self, now: Instant, *, settled: bool = True) -> Effects:
        """Let everything happen that is certain at `now`."""
        self._now = now
        if settled:
            self._settled = now
        return self._table.advance(now, settled=settled)

    # What is only passed on

    @property
    def rejected(self) -> Rejected:
        """How many edges and presses came to nothing, and why."""
        return self._table.rejected

    @property
    def flooding(self) -> frozenset[tuple[Seat, Kind]]:
        """Contacts whose edges come to nothing for now; may be asked from any thread."""
        return self._table.flooding

    def closed_contacts(self) -> list[tuple[Seat, Kind]]:
        """The contacts that are closed, as far as their edges say."""
        return self._table.closed_contacts()

    @property
    def view(self) -> View:
        return self._table.view

    @property
    def at_rest(self) -> bool:
        """See `Table.at_rest`."""
        return self._table.at_rest

    def kept(self) -> Kept:
        """What must survive a power cut."""
        return self._table.kept()

    def due(self) -> Instant | None:
        """When to call `advance` next if nothing is fed."""
        return self._table.due()

    # What comes of it

    def part(self, events: Sequence[Event], last_seq: int) -> Part | None:
        """What is to be kept together with these events, the last of which has this number; often nothing.

        None while a round is open, and while nothing has happened that is worth a place on the card.
        """
        if not events and not self._wanted:
            return None
        self._wanted = self._wanted or any(isinstance(event, _WORTH_KEEPING) for event in events)
        if not self._wanted or self.view.phase in ROUND_OPEN:
            return None
        if self._newest > self._now - self._gestures.chord:
            # Something was fed that may belong to a round which opens before the rules come to it.
            return None
        if self._broken_off and self._items != [BrokenOff()]:
            return None
        if not self._broken_off:
            self._mark()
        inputs = self._encoder.part(self._items)
        part = Part(self._recording, self._after_seq, last_seq, inputs, self._beginning)
        self._items, self._beginning, self._after_seq, self._wanted = [], None, last_seq, False
        if self._encoder.size > self._most_bytes and not self._broken_off:
            self._give_up()
        return part

    def renew_due(self) -> Instant | None:
        """When `renew` is worth asking for; None: not before somebody has touched the table."""
        if self._untouched or self._quiet_since is None or self.view.phase is not Phase.ATTRACT:
            return None
        return max(self._quiet_since, self.view.since) + QUIET

    def renew(self, now: Instant, first_seq: int) -> None:
        """Begin a new recording if nobody has touched the table for a while; ask in every turn."""
        if self._quiet_since is None:
            self._quiet_since = now
        due = self.renew_due()
        if due is None or now < due:
            return
        rest = self._table.rest()
        if rest is None:
            # A contact is down, or its last edge is not judged yet: try again after as long a time.
            self._quiet_since = now
            return
        self._begin(first_seq, Rested(rest), ())

    # The recorder

    def _begin(self, first_seq: int, start: Started | Rested, players: Iterable[str]) -> None:
        beginning = Beginning(
            heek=__version__,
            incarnation=self._incarnation,
            first_seq=first_seq,
            settings=self._settings,
            gestures=self._gestures,
            start=start,
            points={player: self._table.known_points(player) for player in players},
        )
        self._beginning = encode_beginning(beginning)
        self._encoder = PartEncoder(self._beginning)
        self._recording, self._after_seq = first_seq, first_seq - 1
        self._items = []
        self._flood_at, self._thinned = {}, {}
        self._marked = (-1, 0)
        self._untouched, self._broken_off, self._wanted = True, False, False

    def _mark(self) -> None:
        thinned, self._thinned = self._thinned, {}
        for edge in sorted(thinned.values()):
            self._add(edge)
        if self._marked != (self._settled, self._now):
            self._marked = (self._settled, self._now)
            self._add(Turn(self._settled, self._now))

    def _tell(self, message: Message) -> None:
        self._mark()
        self._add(message)

    def _draw(self, count: int) -> bytes:
        luck = self._random_bytes(count)
        self._add(Drawn(luck))
        return luck

    def _add(self, item: Item) -> None:
        self._untouched, self._quiet_since = False, None
        if self._broken_off:
            return
        self._items.append(item)
        if len(self._items) > MOST_ITEMS:
            self._give_up()

    def _give_up(self) -> None:
        log.warning("more is pressed than a recording holds; matches cannot be replayed until a pause")
        self._broken_off = True
        self._items = [BrokenOff()]
