"""How fast the rules are by themselves: rounds of the game, and presses through gestures and session.

Nothing of the world is in it, no pin, journal, picture or loop. It tells how much of a table's time goes into
deciding, and how long a million games of a bot in training would take.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

from heek.clock import MILLISECOND, SECOND, Instant
from heek.games import ahyoheek
from heek.games.ahyoheek import RoundClosed, Rules
from heek.kinds import KINDS, SEATS, Kind, Seat
from heek.recorded_table import Part, RecordedTable
from heek.recording import decode
from heek.replay import replay
from heek.session.floor import Effects
from heek.session.settings import GestureSettings, SessionSettings
from heek.simulator.story import contact_edges, parse
from heek.stations.gestures import Edge
from heek.table import Table
from tests.bench.evening import matches
from tests.bench.figures import Figure, Spread

Throws = dict[Seat, Kind]

_BEATS: Final = {Kind.PEN: Kind.PAGE, Kind.PAGE: Kind.BEETLE, Kind.BEETLE: Kind.PEN}


def measure(*, quick: bool = False) -> list[Figure]:
    """Rounds and presses a second; takes about 5 s."""
    runs, rounds, played = (2, 500, 1) if quick else (7, 30_000, 10)
    throws = _rounds(rounds)
    ways: dict[str, list[float]] = {
        way: [] for way in ("apply", "score", "pairs", "presses", "recorded", "replayed")
    }
    script = _Script(played)
    for _ in range(runs):
        ways["apply"].append(rounds / _timed(lambda: _play(throws)))
        ways["score"].append(rounds / _timed(lambda: [ahyoheek.score_round(each) for each in throws]))
        ways["pairs"].append(rounds / _timed(lambda: [_pair_by_pair(each) for each in throws]))
        ways["presses"].append(script.presses / _timed(script.play))
        ways["recorded"].append(script.presses / _timed(script.record))
        ways["replayed"].append(script.presses / _timed(script.replay))
    return [
        Figure(
            "rules_rounds",
            "rules: rounds of five applied",
            "/s",
            Spread.of(ways["apply"]),
            note="whole matches: score, collections, misses, limits, the end; a new match after each",
        ),
        Figure(
            "rules_scores",
            "rules: rounds of five scored",
            "/s",
            Spread.of(ways["score"]),
            "/s every pair compared by hand",
            Spread.of(ways["pairs"]),
        ),
        Figure(
            "session_presses",
            "gestures and session: presses",
            "/s",
            Spread.of(ways["presses"]),
            note="two edges each, and every turn that a timer makes, at a table of five; no view is drawn",
        ),
        Figure(
            "recorded_presses",
            "the same with the recorder",
            "/s",
            Spread.of(ways["recorded"]),
            "/s without",
            Spread.of(ways["presses"]),
            note="everything the table is told is remembered, and written as bytes at each reveal",
        ),
        Figure(
            "replayed_presses",
            "a recording replayed: presses",
            "/s",
            Spread.of(ways["replayed"]),
            note="read back from its bytes, played, and every event written as its line",
        ),
        Figure(
            "recording_bytes",
            "a recording, for each press",
            "B",
            Spread.of([sum(len(part.inputs) for part in script.parts) / script.presses]),
            note="two edges, and its share of turns, draws and checksums",
        ),
    ]


def _timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _rounds(count: int) -> list[Throws]:
    rng = random.Random(count)
    return [{seat: rng.choice(KINDS) for seat in SEATS} for _ in range(count)]


def _play(rounds: list[Throws]) -> None:
    state = fresh = ahyoheek.initial(SEATS, Rules())
    for throws in rounds:
        seats = ahyoheek.may_throw(state)
        if len(seats) < len(throws):
            throws = {seat: throws[seat] for seat in seats}
        state = ahyoheek.apply(state, RoundClosed(throws))
        if state.outcome is not None:
            state = fresh


def _pair_by_pair(throws: Throws) -> tuple[Throws | dict[Seat, int], list[Seat]]:
    """What one would write first: every player against every other."""
    points = dict.fromkeys(throws, 0)
    for one, ones in throws.items():
        for other, others in throws.items():
            if _BEATS[ones] is others:
                points[one] += 1
                points[other] -= 1
    best = max(points.values())
    return points, [seat for seat, won in points.items() if won == best > 0]


class _Script:
    """The edges of some matches, and a table that they can be played on again and again."""

    def __init__(self, played: int) -> None:
        evening = matches(played, seed=2)
        self.presses, self.won = evening.presses, evening.won
        edges = sorted(contact_edges(parse(evening.text, "bench")), key=lambda edge: edge.at)
        self.edges = [Edge(edge.at, edge.seat, edge.button, edge.closed) for edge in edges]
        self.end: Instant = round(evening.seconds * SECOND) + 10 * MILLISECOND
        self.parts: list[Part] = []
        """What `record` recorded last."""

    def play(self) -> int:
        """All of it on a new table, turn by turn as a daemon would; how many results came of it."""
        table = Table(SessionSettings(), GestureSettings(), new_match_id=lambda: "bench")
        table.start("bench", "bench")
        return self._play_on(table, lambda _: None)

    def record(self) -> int:
        """The same on a table that is recorded as the daemon's is."""
        table = RecordedTable(SessionSettings(), GestureSettings(), random_bytes=random.Random(1).randbytes)
        seq = len(table.start("bench", "bench").events)
        self.parts = []

        def keep(effects: Effects) -> None:
            nonlocal seq
            seq += len(effects.events)
            part = table.part(effects.events, seq)
            if part is not None:
                self.parts.append(part)

        return self._play_on(table, keep)

    def replay(self) -> int:
        """What was recorded, from its bytes to lines; how many results came of it."""
        recording = decode(self.parts[0].beginning or b"", [part.inputs for part in self.parts])
        return sum('"match_won"' in line for line in replay(recording).lines())

    def _play_on(self, table: Table | RecordedTable, keep: Callable[[Effects], None]) -> int:
        results = 0
        for edge in self.edges:
            results += self._pass(table, edge.at, keep)
            table.feed(edge)
        return results + self._pass(table, self.end, keep)

    def _pass(self, table: Table | RecordedTable, until: Instant, keep: Callable[[Effects], None]) -> int:
        results = 0
        while (due := table.due()) is not None and due <= until:
            effects = table.advance(due)
            keep(effects)
            results += len(effects.results)
        return results
