"""A table of the campaign: real journal, chain and reporting on a machine's card; only the playing is not.

A match is made, not played: who sits, who wins, and stakes from what the table knows of its players' points
at that moment, as a session does it. What reaches the journal is what the daemon writes: events, some of them
not synced, and a result with its place in the outbox.
"""

from __future__ import annotations

import asyncio
import json
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from heek.boot import Boot
from heek.clock import SECOND, seconds_text
from heek.games.ranking_points import GRANT, RULES_VERSIONS, deltas, stake
from heek.journal import (
    Acknowledged,
    Answered,
    Batch,
    Entry,
    InlineExecutor,
    Journal,
    JournalWriter,
    Result,
    SnapshotLabel,
    Written,
)
from heek.journal.held import TAKEN
from heek.ki import cbor
from heek.ki.table_key import FILE_NAME as KEY_FILE
from heek.ki.table_key import table_key
from heek.kinds import KINDS, Seat
from heek.record_chain import RecordChain, bind_results
from heek.reporter import Reporter
from heek.reporting import Reporting
from heek.session.state import Entry as Entrant
from heek.session.state import MatchResult
from tests.campaign.links import Cable, Counted, HttpWay, Way, serial_way
from tests.campaign.machines import Image, Machine, Worldly
from tests.campaign.plan import PLAYERS

BEATEN: Final = dict(zip(KINDS, (*KINDS[1:], KINDS[0]), strict=True))
MOST_BYTES: Final = 16 * 1024
RETRY_JOURNAL_S: Final = 5.0
LONG_RECORD: Final = 9000
"""Rounds that no record has room for."""


class Table(Machine):
    """One table; `start` is its daemon's."""

    def __init__(
        self, world: Worldly, name: str, way: Way, cable: Cable | None, image: Image | None = None
    ) -> None:
        super().__init__(world, name, image or {})
        self.way = way
        self.cable = cable
        self.wrote: Callable[[str, bytes], None] = lambda _match, _data: None
        """Hears of each record that goes into the journal."""
        self.saved: set[str] = set()
        """Matches that people were told are won: the journal said that they are on the card."""
        self.believes: Callable[[str], None] = lambda _match: None
        """Hears of each match that it takes for reported, before that is written down."""
        self.reporting: Reporting | None = None
        self.offers = 0
        """Requests with records that it has sent."""

    def start(self) -> None:
        dice = self.world.dice
        self._seq = 0
        self._points: dict[str, int] = {}
        self._unsaved: asyncio.Task[None] | None = None
        self.journal = JournalWriter(self.folder, InlineExecutor(), self.clock)
        self.key = table_key(self.folder, lambda: dice.randbytes(32))
        newest = self.journal.ask(lambda journal: bind_results(journal, self.key)).result()
        self.journal.ask(self._listen).result()
        self._seq = self.journal.ask(lambda journal: journal.last_seq()).result()
        self.inc = dice.randbytes(8)
        self.chain = RecordChain(self.key, self.name, self.inc, self._boot(), newest)
        self.world.loop.create_task(self._begin())

    def _boot(self) -> Boot:
        trust = "ntp" if self.wall_error_s == 0 else "none"
        return Boot(f"{self.name}-boot-{self.boots}", trust)

    async def _begin(self) -> None:
        dice = self.world.dice
        who = Reporter(
            self.journal,
            self.key,
            self.name,
            self.clock,
            self._tell_points,
            self.chain.bind,
            self.inc,
            self._boot(),
        )
        link: Any
        if self.cable is None:
            link, kind = HttpWay(self.way, self.world.loop), "http"
        else:
            link, kind = serial_way(self.cable, self, self._hope), "serial"
        self.reporting = Reporting(
            who,
            Counted(link, self),
            kind,
            most_bytes=MOST_BYTES,
            on_change=lambda: None,
            first_sight=self.way.source is None or self.cable is not None,
            chance=dice.random,
            draw=dice.randrange,
            slow=InlineExecutor(),
        )
        self.reporting.start()

    def _listen(self, journal: Journal) -> None:
        real = journal.acknowledge

        def acknowledge(answers: Sequence[Answered], points: Mapping[str, int]) -> Acknowledged:
            for each in answers:
                if each.state in TAKEN:
                    self.believes(each.match)
            return real(answers, points)

        journal.acknowledge = acknowledge  # type: ignore[method-assign]

    def let_go(self) -> None:
        self.reporting = None
        self.journal.abandon()

    async def close(self) -> None:
        """End as a daemon that was told to."""
        if self.reporting is not None:
            await self.reporting.close()
        self.journal.close()

    def lose_key(self) -> None:
        """Of the card that is in the reader, not in the table."""
        self.image.pop(KEY_FILE, None)

    # Play

    def play(self, seed: int, poison: str = "", match: bytes | None = None) -> None:
        """A match is won; to be called in the table's context."""
        dice = random.Random(seed)
        started = self._entry("match_started")
        self._write(Batch((started,), dice.random() < 0.5, None, self._label()))
        result = self.chain.add(self._result(dice, poison, match), self.clock)
        if poison:
            result = self._poisoned(result, poison)
        if result.cbor is not None:
            self.wrote(result.match, result.cbor)
        won = self._entry("match_won", match=result.match)
        if self._write(Batch((won,), True, b"{}", self._label(), (result,))):
            self.saved.add(result.match)
        if self.reporting is not None:
            self.reporting.result_waits()

    def _result(self, dice: random.Random, poison: str, match: bytes | None) -> MatchResult:
        drawn = uuid.UUID(bytes=match or dice.randbytes(16), version=4)
        places = sorted(dice.sample(range(1, 6), dice.choice((2, 2, 3, 4, 5))))
        who: list[str | None] = dice.sample(PLAYERS, len(places))
        who = [None if dice.random() < 0.2 else each for each in who]
        rated = dice.random() < 0.9
        stakes = [0 if each is None else stake(self.points(each)) for each in who]
        winner = dice.randrange(len(places))
        kind = dice.choice(KINDS)
        rounds = LONG_RECORD if poison == "large" else 3
        rules = "stake"
        moved = (
            deltas(stakes, [each is not None for each in who], winner, rules) if rated else (0,) * len(who)
        )
        now = self.clock.now()
        return MatchResult(
            match=str(drawn),
            rules="heek-9" if poison == "rules" else RULES_VERSIONS[rules],
            winner=Seat(places[winner]),
            by="three",
            entries=tuple(
                Entrant(Seat(place), each, None, put)
                for place, each, put in zip(places, who, stakes, strict=True)
            ),
            deltas=moved,
            rounds=tuple(
                {Seat(place): kind if at == winner else BEATEN[kind] for at, place in enumerate(places)}
                for _ in range(rounds)
            ),
            late_rounds=(),
            rated=rated,
            started_at=now - dice.randrange(30, 300) * SECOND // 10,
            ended_at=now,
        )

    def points(self, player: str) -> int:
        """What this table knows that a player holds: what the KI told, and its own matches since."""
        told, own = self.journal.ask(
            lambda journal: (journal.told_points(), journal.player_deltas())
        ).result()
        return told.get(player, GRANT) + own.get(player, 0)

    def _poisoned(self, result: Result, poison: str) -> Result:
        assert poison in ("delta", "stake", "rules", "rubbish", "large")
        if poison in ("rules", "large"):
            return result
        assert result.cbor is not None
        if poison == "rubbish":
            return replace(result, cbor=b"\xa1" + result.cbor[:40])
        value = dict(cbor.decode(result.cbor))
        seats = [dict(each) for each in value["seats"]]
        if poison == "delta":
            seats[0]["delta"] += 1
        else:
            # A stake that nobody can ever have had, in a sound match.
            value["rated"] = True
            for each, player in zip(seats, PLAYERS, strict=False):
                won = each["seat"] == value["winner"]
                each |= {"kind": "player", "player": player, "stake": 50}
                each["delta"] = 50 * (len(seats) - 1) if won else -50
        value["seats"] = seats
        return replace(result, cbor=cbor.encode(value))

    def _entry(self, event: str, **fields: object) -> Entry:
        self._seq += 1
        now = self.clock.now()
        body = {"seq": self._seq, "at": float(seconds_text(now)), "event": event, **fields}
        return Entry(self._seq, now, event, json.dumps(body))

    def _label(self) -> SnapshotLabel:
        boot = self._boot()
        return SnapshotLabel(boot.id, self.clock.now(), self.clock.wall_s(), boot.trust)

    def _write(self, batch: Batch) -> bool:
        """Whether the journal says that it is written."""
        outcome = self.journal.submit(batch).result()
        if not self.journal.status.saving and (self._unsaved is None or self._unsaved.done()):
            self._unsaved = self.world.loop.create_task(self._try_again())
        return isinstance(outcome, Written)

    async def _try_again(self) -> None:
        while not self.journal.status.saving:
            await asyncio.sleep(RETRY_JOURNAL_S)
            self.journal.retry().result()

    # The KI

    def _tell_points(self, points: Mapping[str, int], _acknowledged: Mapping[str, int]) -> None:
        self._points |= points

    def _hope(self) -> None:
        if self.reporting is not None:
            self.reporting.ask_now()
