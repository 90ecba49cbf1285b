"""The pure table: edges and news in, effects and a view out, `chord_s` behind the clock.

It joins the gestures to the session and holds back by the chord time, so that both see everything in the
order of its stamps. It has no clock of its own and touches nothing: the daemon, the tests and whoever
replays a match all drive this same object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from heek.clock import Instant
from heek.kinds import Kind, Seat
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
from heek.session.settings import GestureSettings, SessionSettings
from heek.session.state import Kept
from heek.session.view import View
from heek.stations.gestures import Edge, Gestures


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
    ) -> None:
        self._chord = gestures.chord
        self._gestures = Gestures(gestures, settings.seats, closed=closed)
        self._session = Session(
            settings,
            new_match_id=new_match_id,
            random_bytes=random_bytes,
            own_deltas=own_deltas,
            told_points=told_points,
        )
        self._told: list[Input] = []

    @property
    def view(self) -> View:
        return self._session.view

    @property
    def at_rest(self) -> bool:
        """No contact is down that still works, no edge waits, and no timer of the session runs."""
        return self._gestures.idle and not self._told and self._session.due() is None

    def start(
        self, incarnation: str, boot: str, kept: Kept | None = None, *, short_cut: bool = False
    ) -> Effects:
        """Begin at instant 0; see `Session.start`."""
        return self._session.start(incarnation, boot, kept, short_cut=short_cut)

    def kept(self) -> Kept:
        """What must survive a power cut; see `Session.kept`."""
        return self._session.kept()

    def feed(self, edge: Edge) -> None:
        """A contact changed; edges may come in any order of their stamps."""
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
        until = now - self._chord
        inputs = self._gestures.advance(until)
        if self._told:
            inputs += [each for each in self._told if each.at <= until]
            self._told = [each for each in self._told if each.at > until]
        return self._session.advance(inputs, until, settled=settled)

    def due(self) -> Instant | None:
        """When to call `advance` next if nothing is fed; None: only people can make something happen."""
        stamps = [each.at for each in self._told]
        stamps += [due for due in (self._gestures.due(), self._session.due()) if due is not None]
        return min(stamps) + self._chord if stamps else None
