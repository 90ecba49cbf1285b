"""Runs a recording through the rules: the identical events, on any computer, and what each edge came to.

It builds the very table that was recorded, tells it the same, drives it as far, and gives it the same luck.
No daemon, clock or file takes part. What became of an edge is read off what the table itself says on the way
(`heek.table.Witness`): nothing is judged here a second time.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from heek.clock import Instant
from heek.errors import RecordingError
from heek.kinds import Seat
from heek.photo_finish.values import ACCEPTED, BOUNCE, LATE_DELIVERY, OPENED, EdgeFate, Sitting
from heek.recording import (
    BrokenOff,
    Drawn,
    Recording,
    StandstillEnded,
    Started,
    Turn,
    WasClaimed,
    WasReset,
    WasTold,
    WereAsked,
)
from heek.session import events as ev
from heek.session.events import Event, event_line
from heek.session.inputs import Input, Pressed
from heek.stations.gestures import Edge
from heek.table import Table

MOST_EVENTS: Final = 500_000
"""Of one recording: some ten times what MOST_BYTES of play come to. A made-up file gets no further."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a recording."""

    first_seq: int
    events: tuple[Event, ...]
    """Their instants are those of their lines."""
    edges: tuple[EdgeFate, ...]
    """In the order of their stamps."""
    sitting: Sitting
    """The same for a photo finish."""

    def lines(self) -> list[str]:
        """The events as the journal has them."""
        return [event_line(seq, event) for seq, event in enumerate(self.events, start=self.first_seq)]


def replay(recording: Recording) -> Replayed:
    """Tell a table what the recorded one was told.

    Raises RecordingError if no table can have been told that, or more comes of it than MOST_EVENTS.
    """
    try:
        return _Player(recording).play()
    except RecordingError:
        raise
    except Exception as error:
        # Whatever a made-up recording leads the rules into, it is the recording that is wrong.
        raise RecordingError(
            f"is damaged: no table can have been told that ({type(error).__name__}: {error})"
        ) from error


class _Player:
    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._luck = deque(item.luck for item in recording.items if isinstance(item, Drawn))
        self._fates: list[EdgeFate] = []
        self._closings: dict[tuple[Instant, Seat], list[EdgeFate]] = {}
        """Closing edges by instant and seat: more than one only if they are a chord."""
        self._told = 0
        self._settled: Instant = -1
        self._events: list[Event] = []
        begun = recording.beginning
        start = begun.start
        self._table = Table(
            begun.settings,
            begun.gestures,
            new_match_id=lambda: str(uuid.UUID(bytes=self._draw(16), version=4)),
            random_bytes=self._draw,
            closed=start.closed if isinstance(start, Started) else (),
            witness=self,
        )

    def play(self) -> Replayed:
        begun = self._recording.beginning
        for player, (told, own) in begun.points.items():
            self._table.know_points(player, told, own)
        start = begun.start
        if isinstance(start, Started):
            effects = self._table.start(
                begun.incarnation, start.boot, self._recording.kept, short_cut=start.short_cut
            )
            self._events += effects.events
        else:
            self._table.take_up_rest(start.rest)
        for item in self._recording.items:
            self._tell(item)
        self._fates.sort(key=lambda each: each.edge.at)
        events, edges = tuple(self._events), tuple(self._fates)
        return Replayed(begun.first_seq, events, edges, self._sitting(events, edges))

    def _sitting(self, events: tuple[Event, ...], edges: tuple[EdgeFate, ...]) -> Sitting:
        begun, kept = self._recording.beginning, self._recording.kept
        names: dict[Seat, str] = {}
        bots: set[Seat] = set()
        if kept is not None and kept.match is not None and isinstance(begun.start, Started):
            bots = {seat for seat, who in kept.seats.items() if who.bot}
            if begun.start.short_cut:
                names = {seat: who.name for seat, who in kept.seats.items() if who.name}
        return Sitting(events, edges, begun.settings.guard, begun.settings.settle, frozenset(bots), names)

    def _tell(self, item: object) -> None:
        table = self._table
        match item:
            case Edge(at, seat, _, closed):
                fate = EdgeFate(item, BOUNCE if closed else OPENED)
                self._fates.append(fate)
                if closed:
                    self._closings.setdefault((at, seat), []).append(fate)
                table.feed(item)
            case Turn(settled, now):
                if settled > self._settled:
                    self._settled = settled
                    self._events += table.advance(settled).events
                if now > settled:
                    self._events += table.advance(now, settled=False).events
            case WasReset(at):
                table.reset(at)
            case WereAsked(at, come):
                (table.fill_seats if come else table.dismiss_bots)(at)
            case WasClaimed(at, seat, player, name, told, own):
                table.know_points(player, told, own)
                table.claim(at, seat, player, name)
            case WasTold(at, points, acknowledged):
                table.tell_points(at, points, acknowledged)
            case StandstillEnded(began, ended):
                table.stood_still(began, ended)
            case Drawn() | BrokenOff():
                pass
            case _:
                raise RecordingError(f"is damaged: a table is not told {item!r}")

    # What the table says on the way (`heek.table.Witness`)

    def judged(self, inputs: Sequence[Input]) -> None:
        """A press that was taken for one."""
        for item in inputs:
            if isinstance(item, Pressed):
                self._becomes(item.at, item.seat, ACCEPTED)

    def told(self, event: Event) -> None:
        """What became of a press, by its own instant."""
        self._told += 1
        if self._told > MOST_EVENTS:
            raise RecordingError(f"is damaged: more than {MOST_EVENTS} events would come of it")
        if isinstance(event, ev.PressIgnored):
            self._becomes(event.at, event.seat, event.reason)
        elif isinstance(event, ev.LateDelivery):
            self._becomes(event.at, event.seat, LATE_DELIVERY)

    def _becomes(self, at: Instant, seat: Seat, fate: str) -> None:
        for each in self._closings.get((at, seat), ()):
            each.fate = fate

    def _draw(self, count: int) -> bytes:
        if not self._luck or len(self._luck[0]) != count:
            raise RecordingError("is damaged: the table drew by chance what was not recorded")
        return self._luck.popleft()
