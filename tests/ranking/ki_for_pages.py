"""An evening's matches in a KI, to work on its pages: `python -m tests.ranking.ki_for_pages`.

`--port N`; `--every S` plays on, a match every S seconds; `--empty` begins with nothing.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from heek.games.ranking_points import GRANT, stake
from heek.ki.envelope import Envelope
from heek.ki.numbers import ki_number
from heek.ki.record import RecordSeat
from heek.kinds import KINDS, Kind, Seat
from tests.ranking.records import BEATEN, FakeTable
from tests.ranking.service import RunningKi


class Evening:
    """Some players at some tables, with the points that the ledger will come to."""

    def __init__(self, players: int = 14, seed: int = 7) -> None:
        self.drawn = random.Random(seed)
        self.players = [ki_number(self.drawn.randrange(10**7)) for _ in range(players)]
        self.points = dict.fromkeys(self.players, GRANT)
        self.tables = [FakeTable(1, "Table 1"), FakeTable(2, "Beside the fountain"), FakeTable(3, "Table 3")]

    def match(self) -> Envelope:
        """One more match, somewhere."""
        drawn = self.drawn
        table = drawn.choice(self.tables)
        here = drawn.sample(self.players[: 4 + len(self.players) // 2], drawn.randint(2, 4))
        stakes: list[tuple[str | None, int]] = [(each, stake(self.points[each])) for each in here]
        if drawn.random() < 0.3:
            stakes.append((None, 0))
        drawn.shuffle(stakes)
        favourite = max(here, key=lambda each: (drawn.random() < 0.7, self.players.index(each)))
        kind = drawn.choice(KINDS)
        record = table.record(stakes, favourite, kind=kind)
        if drawn.random() < 0.08:
            record = table.record([(None, 0), *stakes[:3]], 1, kind=kind)
        if drawn.random() < 0.08:
            seats = tuple(
                RecordSeat(Seat(place), "bot" if who is None else "player", who, None, 0, 0)
                for place, who in enumerate([here[0], None, None], 1)
            )
            record = replace(record, seats=seats, rated=False, winner=Seat(drawn.randint(1, 3)))
        record = replace(
            record,
            rounds=tuple(self._rounds(len(record.seats), record.winner, kind)),
            by=drawn.choice(["three"] * 9 + ["total"]),
        )
        for each in record.seats:
            if each.player is not None:
                self.points[each.player] += each.delta
        return table.seal(record)

    def _rounds(self, seats: int, winner: Seat, kind: Kind) -> Iterator[dict[Seat, Kind | None]]:
        won = 0
        while won < 3:
            throws: dict[Seat, Kind | None] = {
                Seat(seat): self.drawn.choice([*KINDS, *KINDS, None]) for seat in range(1, seats + 1)
            }
            if self.drawn.random() < 0.5:
                throws = dict.fromkeys(throws, BEATEN[kind]) | {winner: kind}
                won += 1
            elif sum(each is not None for each in throws.values()) < 2 or throws[winner] is kind:
                continue
            yield throws


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8690)
    parser.add_argument("--matches", type=int, default=120)
    parser.add_argument("--every", type=float, default=0)
    parser.add_argument("--empty", action="store_true")
    arguments = parser.parse_args()
    evening = Evening()
    with tempfile.TemporaryDirectory() as folder, RunningKi(Path(folder), port=arguments.port) as ki:
        for table in evening.tables:
            ki.introduce(table)
        if not arguments.empty:
            for _ in range(arguments.matches):
                answer = ki.report(evening.match())
                assert answer["answers"][0][0] == "accepted", answer
        print(ki.url, flush=True)
        while True:
            time.sleep(arguments.every or 3600)
            ki.report(evening.match())


if __name__ == "__main__":
    main()
