"""What of the session's state everybody may see: the one place where a view is made.

A throw enters a view only out of `Round.revealed`, which is filled when the round is revealed; so
nothing that is drawn, lit or served can tell it earlier.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from heek.clock import Instant
from heek.games.ahyoheek import Void, Won
from heek.kinds import KINDS, SEATS, Kind, Seat
from heek.session.phases import Phase
from heek.session.seating import Occupant
from heek.session.settings import SessionSettings
from heek.session.state import Match, Round
from heek.session.view import SeatState, SeatView, View

STUCK: Final = "stuck"
"""The trouble of a contact that does not open; the others are called by their `fault`."""


def view_of(
    settings: SessionSettings,
    phase: Phase,
    since: Instant,
    until: Instant | None,
    occupants: Mapping[Seat, Occupant],
    match: Match | None,
    round_: Round | None,
    troubles: Mapping[tuple[Seat, Kind], str],
    rules_since: Instant | None,
    bots_at: Instant | None,
) -> View:
    """The frozen view of a session in this state."""
    outcome = match.state.outcome if match is not None else None
    won = outcome if isinstance(outcome, Won) else None
    seats = tuple(
        _seat_view(settings, seat, phase, occupants.get(seat), match, round_, won, troubles) for seat in SEATS
    )
    return View(
        phase=phase,
        since=since,
        until=until,
        seats=seats,
        target=match.state.rules.target if match is not None else settings.target,
        round=match.round if match is not None and match.round else None,
        sudden_death=bool(
            match is not None and (match.state.tied or (won is not None and won.by == "sudden_death"))
        ),
        winner=won.seat if won is not None else None,
        by=won.by if won is not None else None,
        void=outcome.reason if isinstance(outcome, Void) else None,
        rules_since=rules_since,
        bots_allowed=settings.bots != "never",
        bots_at=bots_at,
    )


def _seat_view(
    settings: SessionSettings,
    seat: Seat,
    phase: Phase,
    occupant: Occupant | None,
    match: Match | None,
    round_: Round | None,
    won: Won | None,
    troubles: Mapping[tuple[Seat, Kind], str],
) -> SeatView:
    state = SeatState.ABSENT if seat not in settings.seats else SeatState.FREE
    playing = phase in (Phase.THROW, Phase.COUNTDOWN, Phase.SETTLE)
    shown = round_ if round_ is not None and round_.score is not None else None
    # Who stood up after the reveal is still drawn with what it threw: the throws are the match's.
    return SeatView(
        seat=seat,
        state=occupant.state if occupant is not None else state,
        name=occupant.name if occupant is not None else None,
        bot=occupant is not None and occupant.bot,
        collection=match.state.collections.get(seat) if match is not None else None,
        in_round=round_ is not None and seat in round_.seats,
        thrown=playing and round_ is not None and seat in round_.throws,
        throw=shown.revealed.get(seat) if shown is not None else None,
        points=shown.score.points.get(seat) if shown is not None and shown.score is not None else None,
        won_round=shown is not None and shown.score is not None and seat in shown.score.winners,
        won_match=won is not None and won.seat == seat,
        leaves_at=occupant.leaves_at if occupant is not None else None,
        stuck=tuple(kind for kind in KINDS if troubles.get((seat, kind)) == STUCK),
        faults=tuple(
            (kind, troubles[seat, kind]) for kind in KINDS if troubles.get((seat, kind)) not in (None, STUCK)
        ),
    )
