"""Whether a table that was recorded judged its presses as the second opinion does, which knows stamps alone.

A recording has every edge with its own stamp, in the order in which the table was told of them, late ones
and all. Three things are asked of it:

* Does it give the journal's own events again? Then it is what the table was told.
* Does the second opinion, told of the same edges in the order of their stamps, say the same of each round,
  and of each press that came to nothing?
* Was every press that came too late for its round told as that, and no other? Those are the only ones that
  the second opinion is not told of, as nobody could have judged by them.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from heek.clock import SECOND, Instant
from heek.journal import read_journal
from heek.photo_finish.values import ACCEPTED, BOUNCE, LATE_DELIVERY, OPENED
from heek.recording import Recording, StandstillEnded, Turn, decode
from heek.replay import Replayed, replay
from heek.session import events as ev
from heek.simulator.steps import End, RawEdge, Stall, Step, Story
from heek.stations.gestures import Edge
from tests.second_opinion.contacts import NEVER
from tests.second_opinion.engine import Event, events_of
from tests.second_opinion.keys import Keys

VERDICTS: Final = frozenset({
    "seat_taken", "match_started", "round_opened", "countdown_started", "round_revealed", "round_void",
    "sudden_death", "match_won", "match_void",
})  # fmt: skip
"""What must be alike to the letter, to the microsecond."""
IDS: Final = frozenset({"seq", "match", "incarnation", "boot"})
TOLD_OTHERWISE: Final = frozenset({ACCEPTED, BOUNCE, OPENED, LATE_DELIVERY})
"""What can become of an edge besides a press that is ignored for a reason."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found, and how much it proves."""

    faults: tuple[str, ...]
    proved: Counter[str] = field(default_factory=Counter)


def judge(recording: Recording, lines: Sequence[str], table: Mapping[str, object]) -> Judged:
    """Hold a recording and the journal's lines that belong to it against the second opinion.

    `table` are the configuration's keys by their dotted names. `lines` begins with the recording's first
    event and ends with the last that its parts cover. Raises RecordingError for one that cannot be replayed.
    """
    replayed = replay(recording)
    faults = []
    if replayed.lines()[: len(lines)] != list(lines):
        faults.append("the replay does not give the journal's events again")
    told = [_in_microseconds(line) for line in lines]
    chord = Keys(Story(table, ())).span("stations.chord_s")
    delivery = _Delivery(recording, replayed, chord)
    second = _second_opinion(recording, delivery.in_time, table)
    until = min(told[-1]["at"], _first_false_start(told, replayed, delivery.behind, chord))
    is_so, should_be = (
        [_bare(event) for event in events if event["event"] in VERDICTS and event["at"] < until]
        for events in (_as_due(told, second), second)
    )
    if is_so != should_be:
        pairs = zip(is_so, should_be, strict=False)
        apart = next((pair for pair in pairs if pair[0] != pair[1]), (is_so[-1:], should_be[-1:]))
        faults.append(f"the table says {apart[0]}, the second opinion {apart[1]}")
    openings = [event["at"] for event in told if event["event"] == "round_opened"]
    unsure = {bisect_right(openings, at // 1000) for at in delivery.behind}
    """Rounds in which a press was judged before an edge was there that has to do with it."""

    def comparable(at_us: int) -> bool:
        return at_us < until and bisect_right(openings, at_us) not in unsure

    ignored = Counter(
        (each.edge.at // 1000, each.edge.seat, each.fate)
        for each in replayed.edges
        if each.fate not in TOLD_OTHERWISE and comparable(each.edge.at // 1000)
    )
    wanted = Counter(
        (event["at"], event["seat"], event["reason"])
        for event in second
        if event["event"] == "press_ignored" and comparable(event["at"])
    )
    for name, more in (("the table", ignored - wanted), ("the second opinion", wanted - ignored)):
        if more:
            faults.append(
                f"only {name} ignores {min(more)}" + (f" and {len(more) - 1} more" * (len(more) > 1))
            )
    for edge in delivery.called_late:
        # One that was in time is told as late if its chord's other press came too late to take it back.
        if not any(abs(edge.at - other.at) <= chord for other in delivery.too_late):
            faults.append(f"the press of seat {edge.seat} at {edge.at} was in time, and is told as late")
    rounds = [number for number, at in enumerate(openings, start=1) if at < until]
    proved = Counter({
        "presses": sum(edge.closed and edge.at // 1000 < until for edge in delivery.in_time),
        "rounds": sum(event["event"] == "round_revealed" for event in should_be),
        "rounds opened": len(rounds),
        "of these with every reason": len(set(rounds) - unsure),
        "edges that overtook another": delivery.overtaken,
        "edges too late for their round": len(delivery.too_late),
        LATE_DELIVERY: sum(event["event"] == LATE_DELIVERY for event in told),
    })  # fmt: skip
    proved.update(reason for _, _, reason in ignored.elements())
    return Judged(tuple(faults), proved)


def _as_due(told: Sequence[Event], second: Sequence[Event]) -> list[Event]:
    """What the table told, each verdict with the instant at which it was due.

    `at` never decreases, so a round that turns out to have closed long ago is told with the `at` of the last
    event before it. Only then may the second opinion have an earlier one.
    """
    due = {_key(event): event["at"] for event in second if event["event"] == "round_revealed"}
    result: list[Event] = []
    for before, event in zip([{"at": -1}, *told], told, strict=False):
        at = due.get(_key(event), event["at"]) if event["at"] == before["at"] else event["at"]
        result.append({**event, "at": min(at, event["at"])})
    return result


def _key(event: Event) -> str:
    return json.dumps({name: each for name, each in _bare(event).items() if name != "at"}, sort_keys=True)


def _first_false_start(
    told: Sequence[Event], replayed: Replayed, behind: Sequence[Instant], chord: int
) -> int:
    """When a countdown was begun by a press that was none, or that was not the first, in microseconds.

    It has been shown, and stays; the second opinion, which knows of the other edge at once, goes another way
    from there on.
    """
    accepted = {each.edge.at // 1000 for each in replayed.edges if each.fate == ACCEPTED}
    opened = 0
    for event in told:
        if event["event"] == "round_opened":
            opened = event["at"]
        elif event["event"] == "countdown_started" and event["at"] != opened:
            overtaken = [at // 1000 for at in behind if opened * 1000 <= at <= event["at"] * 1000 + chord]
            if overtaken or event["at"] not in accepted:
                return int(min([*overtaken, event["at"]]))
    return NEVER


class _Delivery:
    """In what order a table was told of its edges, and what of that came too late.

    An edge is *behind* if the table had already judged a press that it has to do with, or a later one. It can
    be *too late* if its round may have been compared by then: the recording says up to where rounds could be.
    It is if the table did not take it; a press by which the round turns out to have closed long ago counts.
    """

    def __init__(self, recording: Recording, replayed: Replayed, chord: int) -> None:
        self.in_time: list[Edge] = []
        """By these the table could judge; in the order of their stamps."""
        self.too_late: list[Edge] = []
        """Closings. The opening that belongs to one is left out with it."""
        self.called_late: list[Edge] = []
        """Those which the table calls so, and were not."""
        self.behind: list[Instant] = []
        self.overtaken = 0
        ends, compared = [], []
        for event in replayed.events:
            if isinstance(event, ev.RoundRevealed | ev.RoundVoid):
                ends.append(event.closed if isinstance(event, ev.RoundRevealed) else event.at)
                compared.append(event.at)
        fates = {(each.edge.at, each.edge.seat, each.edge.button): each.fate for each in replayed.edges}
        gone: set[tuple[int, object]] = set()
        settled, now, newest = -1, 0, 0
        told: list[Instant] = []
        """Closings that the table was told of before it was driven to `now`."""
        news: list[Instant] = []
        for item in recording.items:
            if isinstance(item, Turn):
                settled, now = item.settled, item.now
                told += news
                news = []
            elif isinstance(item, Edge):
                self.overtaken += item.at < newest
                newest = max(newest, item.at)
                if any(item.at - chord <= at <= now - chord for at in told[-99:]):
                    self.behind.append(item.at)
                if item.closed:
                    news.append(item.at)
                contact = (item.seat, item.button)
                place = bisect_left(ends, item.at)
                fate = fates[item.at, item.seat, item.button]
                may_be = item.closed and place < len(ends) and compared[place] <= settled - chord
                if fate == LATE_DELIVERY and not may_be:
                    self.called_late.append(item)
                if may_be and fate in (LATE_DELIVERY, "chord", "noise"):
                    self.too_late.append(item)
                    gone.add(contact)
                elif item.closed or contact not in gone:
                    self.in_time.append(item)
                    gone.discard(contact)
                else:
                    gone.discard(contact)
        self.in_time.sort()


def _second_opinion(recording: Recording, edges: Sequence[Edge], table: Mapping[str, object]) -> list[Event]:
    steps: list[Step] = []
    closed: set[tuple[int, object]] = set()
    for edge in edges:
        contact = (edge.seat, edge.button)
        # A line that was read says something only of a contact whose opening nobody has heard.
        if not edge.read or contact in closed:
            steps.append(RawEdge(at=edge.at, line=0, seat=edge.seat, button=edge.button, closed=edge.closed))
            (closed.add if edge.closed else closed.discard)(contact)
    for item in recording.items:
        if isinstance(item, StandstillEnded):
            steps.append(Stall(at=item.began, line=0, duration=item.ended - item.began))
    steps.sort(key=lambda step: step.at)
    steps.append(End(at=steps[-1].at + 60 * SECOND, line=0))
    known = {
        key: value for key, value in table.items() if key.startswith(("ahyoheek.", "seats.", "stations."))
    }
    known |= {key: table[key] for key in ("table.name", "table.gap_s") if key in table}
    return events_of(Story(known, tuple(steps), source="as recorded"))


def _in_microseconds(line: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(line, parse_float=lambda number: int(Decimal(number) * 10**6))
    return event


def _bare(event: Event) -> Event:
    return {key: value for key, value in event.items() if key not in IDS}


def kept(state: Path) -> list[tuple[Recording, list[str]]]:
    """Every recording of a table's journal, and the events that it covers.

    Raises JournalError or RecordingError for what cannot be read.
    """
    with read_journal(state) as journal:
        last = journal.last_seq()
        entries = list(journal.events())
        parts = journal.recorded_parts(1, last, last)
    found = []
    for _, group in groupby(parts, key=lambda part: part.recording):
        whole = list(group)
        recording = decode(whole[0].beginning or b"", [part.inputs for part in whole])
        first, until = recording.beginning.first_seq, whole[-1].last_seq
        found.append((recording, [entry.body for entry in entries if first <= entry.seq <= until]))
    return found
