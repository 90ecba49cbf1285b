"""The pure table: edges and news in, effects and a view out, `chord_s` behind the clock.

It joins the gestures to the session and holds back by the chord time, so that both see everything in the
order of its stamps. It has no clock of its own and touches nothing: the daemon, the tests and whoever
replays a match all drive this same object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from heek.clock import Instant
from heek.kinds import Kind, Seat
from heek.session.events import Event
from heek.session.floor import Effects
from heek.session.inputs import (
    BotsAsked,
    BotsDismissed,
    Claimed,
    Input,
    OperatorReset,
    PointsTold,
    StoodStill,
)
from heek.session.machine import Session
from heek.session.play import ROUND_OPEN
from heek.session.settings import GestureSettings, SessionSettings
from heek.session.state import Kept, SessionAtRest
from heek.session.view import View
from heek.stations.gestures import ContactAtRest, Edge, Gestures, Rejected


class Witness(Protocol):
    """Looks over the table's shoulder: what edges were judged to be, and what became of that."""

    def judged(self, inputs: Sequence[Input]) -> None:
        """These came out of the gestures in one turn."""

    def told(self, event: Event) -> None:
        """This was told; `at` is the instant of what it is about, also where its line has a later one."""


@dataclass(frozen=True, slots=True)
class AtRest:
    """All that a table remembers while nobody plays, but for players' points."""

    until: Instant
    """How far it had come."""
    session: SessionAtRest
    contacts: tuple[ContactAtRest, ...]


class Table:
    """One table from its start on; `closed` are the contacts that were closed then."""

    def __init__(
        self,
        settings: SessionSettings,
        gestures: GestureSettings,
        *,
        new_match_id: Callable[[], str],
        random_bytes: Callable[[int], bytes] | None = None,
        closed: Iterable[tuple[Seat, Kind]] = (),
        own_deltas: Mapping[str, int] | None = None,
        told_points: Mapping[str, int] | None = None,
        witness: Witness | None = None,
    ) -> None:
        self._chord = gestures.chord
        self._witness = witness
        self._gestures = Gestures(gestures, settings.seats, closed=closed)
        self._session = Session(
            settings,
            new_match_id=new_match_id,
            random_bytes=random_bytes,
            own_deltas=own_deltas,
            told_points=told_points,
            witness=None if witness is None else witness.told,
        )
        self._until: Instant = 0
        self._told: list[Input] = []
        self._rejected: Rejected = {}

    @property
    def view(self) -> View:
        return self._session.view

    @property
    def at_rest(self) -> bool:
        """No contact is down that still works, no edge waits, and no timer of the session runs."""
        return self._gestures.idle and not self._told and self._session.due() is None

    @property
    def rejected(self) -> Rejected:
        """How many edges and presses came to nothing, and why (`heek.stations.gestures.REASONS`).

        By seat, button and reason, since the start. While a round is open this stands still: what is counted
        at a button tells who presses it.
        """
        if self._session.view.phase not in ROUND_OPEN:
            self._rejected = self._gestures.rejected
        return self._rejected

    @property
    def flooding(self) -> frozenset[tuple[Seat, Kind]]:
        """Contacts whose edges come to nothing for now; may be asked from any thread."""
        return self._gestures.flooding

    def ignores(self, edge: Edge) -> bool:
        """Its contact floods: the edge says no more than that it still does."""
        return self._gestures.ignores(edge)

    def closed_contacts(self) -> list[tuple[Seat, Kind]]:
        """The contacts that are closed, as far as their edges say."""
        return self._gestures.closed_contacts()

    def start(
        self, incarnation: str, boot: str, kept: Kept | None = None, *, short_cut: bool = False
    ) -> Effects:
        """Begin at instant 0; see `Session.start`."""
        return self._session.start(incarnation, boot, kept, short_cut=short_cut)

    def rest(self) -> AtRest | None:
        """What is left to remember when nobody has touched the table; None: somebody has, or does.

        From here on the table remembers no more than that: an edge that is delivered now with a stamp of a
        round of then is no `late_delivery` any more, but what a press of before is (`not_seated`, `late`).
        Ask only when edges of then cannot be on their way any more.
        """
        contacts = self._gestures.rest() if not self._told else None
        session = self._session.rest() if contacts is not None else None
        return (
            AtRest(self._until, session, contacts) if session is not None and contacts is not None else None
        )

    def take_up_rest(self, rest: AtRest) -> None:
        """Go on where another table rested, in place of `start`."""
        self._until = rest.until
        self._gestures.take_up_rest(rest.contacts, rest.until)
        self._session.take_up_rest(rest.session)

    def known_points(self, player: str) -> tuple[int | None, int]:
        """What the KI told last of a player, None if nothing, and our own deltas on top."""
        return self._session.points.known(player)

    def know_points(self, player: str, told: int | None, own: int) -> None:
        """Take over what `known_points` gave at another table."""
        self._session.points.know(player, told, own)

    def kept(self) -> Kept:
        """What must survive a power cut; see `Session.kept`."""
        return self._session.kept()

    def feed(self, edge: Edge) -> None:
        """A contact changed, or was read; edges may come in any order of their stamps."""
        self._gestures.feed(edge)

    def reset(self, at: Instant) -> None:
        """The operator's button."""
        self._told.append(OperatorReset(at))

    def fill_seats(self, at: Instant) -> None:
        """Somebody in the lobby asks the table to take the free seats itself; asking twice does no harm."""
        self._told.append(BotsAsked(at))

    def dismiss_bots(self, at: Instant) -> None:
        """Somebody in the lobby sends the bots away again."""
        self._told.append(BotsDismissed(at))

    def claim(self, at: Instant, seat: Seat, player: str, name: str) -> None:
        """A signed-in player takes a seat's identity; `Effects.refused` tells if the table cannot take it."""
        self._told.append(Claimed(at, seat, player, name))

    def tell_points(self, at: Instant, points: Mapping[str, int], acknowledged: Mapping[str, int]) -> None:
        """The KI told what players hold; `acknowledged` are the sums of our deltas that are in that."""
        self._told.append(PointsTold(at, points, acknowledged))

    def stood_still(self, began: Instant, ended: Instant) -> None:
        """The program did nothing from `began` to `ended`; say so before the next `advance`."""
        self._told.append(StoodStill(began, ended))

    def advance(self, now: Instant, *, settled: bool = True) -> Effects:
        """Let everything happen that is certain at `now`.

        With `settled` false no round is compared: edges may still be on their way.
        """
        until = self._until = now - self._chord
        if self._session.view.phase not in ROUND_OPEN:
            self._rejected = self._gestures.rejected
        inputs = self._gestures.advance(until)
        if self._witness is not None and inputs:
            self._witness.judged(tuple(inputs))
        if self._told:
            inputs += [each for each in self._told if each.at <= until]
            self._told = [each for each in self._told if each.at > until]
        return self._session.advance(inputs, until, settled=settled)

    def due(self) -> Instant | None:
        """When to call `advance` next if nothing is fed; None: only people can make something happen."""
        stamps = [each.at for each in self._told]
        stamps += [due for due in (self._gestures.due(), self._session.due()) if due is not None]
        return min(stamps) + self._chord if stamps else None
