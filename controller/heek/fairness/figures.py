"""How fair the table is, in figures: how long each button waits for its verdict, and what went missing.

What is fair here. A press is judged by the instant its contact closed, so a slow loop takes no point
from anybody. What could: a button whose stamps come later than others', an edge that comes after its round
was compared, an edge that never comes, and LEDs that show one player the reveal before another. Those are
the figures; the rest says how near the table is to its limits.

Nothing is kept of a single press. Each figure is a distribution of constant size, so a table may run for
months, and none of them tells what anybody has thrown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from heek.clock import MILLISECOND, Duration, Instant
from heek.kinds import KINDS, Kind, Seat

REPORT_VERSION: Final = 1
"""Of the report's form; `heek doctor --fairness --json` and the page's JSON are the same."""

DROPPED: Final = ("repeated", "lost")
"""Reasons by which it is seen that an edge never came: a contact closed twice without having opened, or the
reverse, or its line was read and had opened unheard."""

MICROSECOND: Final[Duration] = 1000
_FINE: Final = 16
"""Each doubling of a time is divided into so many parts: a percentile is right to a sixteenth."""
_FINE_BITS: Final = 4


def _bucket(microseconds: int) -> int:
    """The number of the part that a time lies in: one a microsecond below 32, then sixteenths."""
    if microseconds < 2 * _FINE:
        return microseconds
    shift = microseconds.bit_length() - _FINE_BITS - 1
    return (shift << _FINE_BITS) + (microseconds >> shift)


def _bucket_end(number: int) -> int:
    """The greatest whole microsecond that lies in a part."""
    if number < 2 * _FINE:
        return number
    shift = (number >> _FINE_BITS) - 1
    return ((number - (shift << _FINE_BITS) + 1) << shift) - 1


@dataclass(slots=True)
class Spread:
    """A distribution of durations; those below zero (a stamp ahead of our clock) count as zero."""

    count: int = 0
    longest: Duration = 0
    _parts: dict[int, int] = field(default_factory=dict)

    def add(self, duration: Duration) -> None:
        """Count one; a microsecond is the finest that is told apart."""
        duration = max(duration, 0)
        self.count += 1
        self.longest = max(self.longest, duration)
        part = _bucket(duration // MICROSECOND)
        self._parts[part] = self._parts.get(part, 0) + 1

    def percentile(self, percent: float) -> Duration:
        """So many percent (above 0, to 100) lasted no longer; 0 if nothing was counted.

        Never below the true one, and at most a sixteenth and a microsecond above it.
        """
        wanted = self.count * percent / 100
        seen = 0
        for part in sorted(self._parts):
            seen += self._parts[part]
            if seen >= wanted:
                return min((_bucket_end(part) + 1) * MICROSECOND - 1, self.longest)
        return self.longest


@dataclass(slots=True)
class Fairness:
    """What one running table has measured since its start.

    `stamps` says where the edges' instants come from: `kernel`, `callback` where the library has none, or
    `simulated`.
    """

    stamps: str
    verdicts: dict[tuple[Seat, Kind], Spread] = field(default_factory=dict)
    """From a contact's closing to the turn in which it was judged, the chord time included."""
    lag: Spread = field(default_factory=Spread)
    """How much later than asked for the loop came to what was due."""
    reveals: Spread = field(default_factory=Spread)
    """From the first LED that shows a reveal to the last."""
    late_deliveries: int = 0
    """Edges that came after their round had been compared."""
    _waiting: list[tuple[Instant, Seat, Kind]] = field(default_factory=list)

    def closed(self, at: Instant, seat: Seat, button: Kind) -> None:
        """A contact closed; its verdict is due."""
        self._waiting.append((at, seat, button))

    def judged(self, until: Instant, now: Instant) -> None:
        """Everything up to and including `until` has been judged in the turn at `now`."""
        if not self._waiting:
            return
        still = []
        for at, seat, button in self._waiting:
            if at > until:
                still.append((at, seat, button))
            else:
                self.verdicts.setdefault((seat, button), Spread()).add(now - at)
        self._waiting = still

    def report(
        self, seats: Iterable[Seat], rejected: Mapping[tuple[Seat, Kind, str], int] | None = None
    ) -> dict[str, object]:
        """The figures as JSON, a row for every button of `seats`; times in milliseconds.

        `rejected` counts edges that came to nothing by seat, button and reason
        (`heek.stations.gestures.REASONS`).
        """
        reasons: Counter[str] = Counter()
        for (_, _, reason), count in (rejected or {}).items():
            reasons[reason] += count
        buttons = [
            {"seat": seat, "button": kind.value} | _figures(self.verdicts.get((seat, kind), Spread()))
            for seat in seats
            for kind in KINDS
        ]
        return {
            "fairness": REPORT_VERSION,
            "stamps": self.stamps,
            "buttons": buttons,
            "lag": _figures(self.lag),
            "reveals": _figures(self.reveals),
            "late_deliveries": self.late_deliveries,
            "dropped": sum(reasons[reason] for reason in DROPPED),
            "rejected": dict(sorted(reasons.items())),
        }


def _figures(spread: Spread) -> dict[str, object]:
    return {
        "count": spread.count,
        "median_ms": _milliseconds(spread.percentile(50)),
        "p99_ms": _milliseconds(spread.percentile(99)),
        "max_ms": _milliseconds(spread.longest),
    }


def _milliseconds(duration: Duration) -> float:
    return round(duration / MILLISECOND, 3)
