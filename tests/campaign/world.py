"""A world: tables and one KI under virtual time, the acts of a plan one by one, healing, judgement."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import logging
import random
import sqlite3
import tempfile
import traceback
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from heek.errors import TableError
from heek.ki import cbor, claim
from heek.ranking.operator_requests import Enrol, Erase, Rename, Restore, Void, Wish
from tests.campaign.judgement import judge, unsettled
from tests.campaign.links import Cable, Way, cables
from tests.campaign.machines import Image, Machine, Worldly, cards
from tests.campaign.plan import FORGED, KI, PLAYERS, Act, Kind, Plan
from tests.campaign.service import Service
from tests.campaign.tables import Table
from tests.journal.scripts import quick_folder

ENROL_S: Final = 5.0
PATIENCE_S: Final = 30.0
"""Of the operator: whoever types wrong codes too often is kept waiting."""
FIRST_S: Final = 3.0
"""Before the first act: so long all links are good."""
SETTLED_S: Final = 4 * 3600.0
"""After healing everything must have come to rest within this."""
REST_S: Final = 40.0
"""It has come to rest when for so long nothing was offered."""
QUIET_S: Final = 55.0
"""And stay at rest for so long; in both together each table asks three times how things stand, which is what
two of them need to show that they live at once."""


@dataclass
class History:
    """What happened in a world, as far as its judgement needs it."""

    played: set[str] = field(default_factory=set)
    """Matches that were won at some table."""
    poisoned: set[str] = field(default_factory=set)
    twice: set[str] = field(default_factory=set)
    """Matches that a table and its clone both ended."""
    acknowledged: set[str] = field(default_factory=set)
    """Matches of which some card has held that the KI took them."""
    ki_put_back: bool = False
    keys_lost: set[str] = field(default_factory=set)
    """Names of tables."""
    clones: dict[str, str] = field(default_factory=dict)
    """Of which table a clone is one, by name."""
    put_back: set[str] = field(default_factory=set)
    offered_at_rest: int = 0
    made: dict[str, list[bytes]] = field(default_factory=dict)
    """By match: the bytes that tables wrote down for the KI."""
    rulings: Counter[str] = field(default_factory=Counter)
    """How often the KI told an operator that a match was void, or counts again."""


class World(Worldly):
    """One world; `run` it once."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        super().__init__(folder, plan.seed)
        self.plan = plan
        self.history = History()
        self.faults: list[str] = []
        self.told: list[str] = []
        """What happened, a line each, for people."""
        self._dark_until = 0.0
        self._backups: dict[str, Image] = {}
        self._cables = [
            Cable(self._way(place), self.loop, plan.seed + place) if serial else None
            for place, serial in enumerate(plan.serial)
        ]
        self.tables = [self._table(place) for place in range(plan.tables)]
        self.ki = Service(self, [])
        self._plug_gateways()

    def _way(self, place: int) -> Way:
        return Way(self.dice, self, f"192.0.2.{place + 1}" if self.plan.by_code[place] else None)

    # What the ways see of the KI: it is made after them

    @property
    def machine(self) -> Machine:
        return self.ki

    def take(self, *asked: object) -> bool:
        """A question arrives at the KI."""
        return self.ki.take(*asked)  # type: ignore[arg-type]

    def _table(self, place: int, image: Image | None = None, name: str = "") -> Table:
        cable = self._cables[place]
        way = self._way(place) if cable is None else cable.way
        made = Table(self, name or f"table-{place + 1}", way, cable, image)
        made.believes = partial(self._believed, made)
        made.wrote = lambda match, data: self.history.made.setdefault(match, []).append(data)
        return made

    def _believed(self, table: Table, match: str) -> None:
        if match not in self.ki.said:
            self.faults.append(f"{table.name} takes match {match} for reported, and the KI never said so")

    def _plug_gateways(self) -> None:
        self.ki.cables = [(table.cable, table) for table in self.tables if table.cable is not None]

    # Life

    def run(self) -> list[str]:
        """Everything that is wrong with it, in the end."""
        with cards(), cables(), _quick_codes(), _listening(self), contextlib.closing(self.loop):
            try:
                self.loop.run_until_complete(self._live())
            except Exception:
                self.faults.append(traceback.format_exc())
            for machine in (*self.tables, self.ki):
                machine.cut_at = None
                machine.cut_off_s = -1
                machine.cut()
        self.faults += self.loop.unforeseen
        return self.faults

    async def _live(self) -> None:
        for machine in (self.ki, *self.tables):
            self.start(machine)
        operator = self.loop.create_task(self._enrol())
        await asyncio.sleep(FIRST_S + 2 * ENROL_S * any(self.plan.by_code))
        for act in self.plan.acts:
            self._say(str(act))
            self._do(act)
            if act.kind in (Kind.PASS, Kind.NIGHT):
                await asyncio.sleep(act.amount)
            await asyncio.sleep(self.dice.choice((0, 0.01, 0.2, 3)) * self.dice.random())
        await self._heal()
        operator.cancel()

    async def _enrol(self) -> None:
        """An operator walks from table to table, and types in what codes they show."""
        typed: dict[str, float] = {}
        while True:
            await asyncio.sleep(ENROL_S)
            for table in self.tables:
                code = table.reporting.status.claim if table.on and table.reporting is not None else None
                if code is not None and self.loop.time() - typed.get(code, -1e9) > PATIENCE_S:
                    typed[code] = self.loop.time()
                    self.ki.operate(Enrol(code), lambda said: self._heard("enrolment", said))

    def _heard(self, what: str, said: bytes) -> None:
        answer = cbor.decode(said)
        self._say(f"the operator hears of the {what}: {answer.get('said') or answer.get('text')}")

    def _operate(self, act: Act, dice: random.Random) -> None:
        """One act of an operator, on a match or player that there may be."""
        played = sorted(self.history.played)
        match = uuid.UUID(dice.choice(played)).bytes if played else bytes(16)
        player = dice.choice(PLAYERS)
        reason = f"act {act.number}"
        wish: Wish
        match act.kind:
            case Kind.VOID:
                wish = Void(match, reason)
            case Kind.RESTORE:
                wish = Restore(match, reason)
            case Kind.RENAME:
                wish = Rename(player, f"Name {act.number}", reason)
            case _:
                wish = Erase(player, reason)

        def heard(said: bytes) -> None:
            self._heard(act.kind.value, said)
            if "error" not in cbor.decode(said) and isinstance(wish, Void | Restore):
                self.history.rulings[str(uuid.UUID(bytes=match))] += 1

        self.ki.operate(wish, heard)

    def _say(self, line: str) -> None:
        self.told.append(f"{self.clock.now() / 1e9 - 1000:12.3f} {line}")

    def _do(self, act: Act) -> None:
        machine = self.ki if act.who == KI else self.tables[act.who % len(self.tables)]
        dice = random.Random(f"act {self.plan.seed} {act.number}")
        match act.kind:
            case Kind.MATCH | Kind.POISON:
                assert isinstance(machine, Table)
                self._play(machine, int(act.amount), act.word)
            case Kind.LINK:
                assert isinstance(machine, Table)
                machine.way.word = act.word
                if act.word in FORGED:
                    # Who forges answers is to be asked something that is worth it.
                    self._play(machine, dice.randrange(1 << 30))
            case Kind.CUT:
                machine.cut_at = machine.steps + int(act.amount)
                machine.cut_off_s = dice.choice((0.5, 5, 60)) * dice.random()
            case Kind.OFF:
                self._off(machine, act.amount)
            case Kind.NIGHT:
                self._dark_until = self.loop.time() + act.amount
                for each in (*self.tables, self.ki):
                    self._off(each, 1.0)
            case Kind.BACKUP:
                self._backups.pop(machine.name, None)
                self._backups[machine.name] = machine.picture()
                self._play_on(machine, dice, 0.0)
            case Kind.PUT_BACK:
                machine = self._copied(machine)
                self._put_back(machine)
                self._play_on(machine, dice, 2.0)
            case Kind.CLONE:
                assert isinstance(machine, Table)
                self._clone(machine, dice)
            case Kind.LOSE_KEY:
                assert isinstance(machine, Table)
                machine.cut_off_s = 1.0
                machine.cut()
                machine.lose_key()
                self.history.keys_lost.add(machine.name)
            case Kind.FULL:
                machine.full = dice.choice((0.3, 0.8, 1.0))
                self.later(act.amount, lambda: setattr(machine, "full", 0.0))
            case Kind.VOID | Kind.RESTORE | Kind.RENAME | Kind.ERASE:
                self._operate(act, dice)
            case Kind.WALL:
                machine.wall_error_s = act.amount

    def _play(self, table: Table, seed: int, poison: str = "", match: bytes | None = None) -> None:
        drawn = str(uuid.UUID(bytes=match or random.Random(seed).randbytes(16), version=4))
        self.history.played.add(drawn)
        if poison:
            self.history.poisoned.add(drawn)
        table.run(lambda: table.play(seed, poison, uuid.UUID(drawn).bytes))

    def _copied(self, machine: Machine) -> Machine:
        """This one; of a table whose card was never copied, the table whose card was copied last."""
        if isinstance(machine, Table) and machine.name not in self._backups:
            for table in self.tables:
                if table.name == next(reversed(self._backups), None):
                    return table
        return machine

    def _play_on(self, machine: Machine, dice: random.Random, delay_s: float) -> None:
        """Perhaps a match after a card was copied, and one after the copy came back: two follow the same."""
        if isinstance(machine, Table) and dice.random() < 0.7:
            self.later(delay_s, self._play, machine, dice.randrange(1 << 30))

    def _off(self, machine: Machine, seconds: float) -> None:
        if machine.on:
            machine.shut_down()
            self.later(seconds, self.start, machine)

    def _put_back(self, machine: Machine) -> None:
        image = self._backups.get(machine.name)
        if image is None:
            return
        self._remember()
        machine.cut_off_s = 1.0
        machine.cut()
        machine.image = dict(image)
        if machine is self.ki:
            self.history.ki_put_back = True
        else:
            self.history.put_back.add(machine.name)

    def _clone(self, table: Table, dice: random.Random) -> None:
        image = table.picture()
        if not image:
            return
        place = len(self.tables)
        if place >= len(self._cables):
            return
        clone = self._table(place, image, f"{table.name.partition('-clone')[0]}-clone-{place + 1}")
        self.history.clones[clone.name] = table.name
        self.tables.append(clone)
        self._plug_gateways()
        if clone.cable is not None:
            self.ki.plug(clone.cable, clone)
        self.start(clone)
        if dice.random() < 0.3:
            # The card was copied in the middle of a match, and both tables play it to its end.
            match = uuid.UUID(bytes=dice.randbytes(16), version=4)
            self.history.twice.add(str(match))
            for each in (table, clone):
                self._play(each, dice.randrange(1 << 30), "", match.bytes)

    # Power

    def start(self, machine: Machine) -> None:
        """Switch it on, and again when its programs do not start; at night, when that is over."""
        night_s = self._dark_until - self.loop.time()
        if night_s > 0:
            self.later(night_s + self.dice.uniform(0, 60), self.start, machine)
            return
        try:
            machine.boot()
        except TableError as error:
            self._say(f"{machine.name} does not start: {error}")
            machine.cut_off_s = 5.0
            machine.cut()

    def power_is_gone(self, machine: Machine) -> None:
        if machine.last_step:
            self._say(f"{machine.name} loses its power before {machine.last_step[:60]!r}")
            machine.last_step = ""
        if machine.cut_off_s >= 0:
            self.later(machine.cut_off_s, self.start, machine)

    def later(self, delay_s: float, what: object, *args: object) -> None:
        """Do something that belongs to no machine."""
        self.loop.call_later(delay_s, what, *args, context=contextvars.Context())

    # The end

    async def _heal(self) -> None:
        self._say("healed")
        for machine in (*self.tables, self.ki):
            machine.full, machine.cut_at = 0.0, None
        for table in self.tables:
            table.way.word = "good"
        began = rested = self.loop.time()
        offered = -1
        while rested < began + SETTLED_S and self.loop.time() - rested < REST_S:
            await asyncio.sleep(5)
            if not self._at_rest() or self._offered() != offered:
                offered, rested = self._offered(), self.loop.time()
        await asyncio.sleep(QUIET_S)
        self.history.offered_at_rest = self._offered() - offered
        self._say("at the end")
        self._remember()
        self.faults += judge(self)

    def _at_rest(self) -> bool:
        """Nothing waits, all are heard, and what the KI holds more than a table knows of is understood."""
        resting = self.ki.on and all(
            table.on
            and table.journal.status.saving
            and table.reporting is not None
            and table.reporting.status.waiting == 0
            and table.reporting.status.state == "up"
            and table.way.under_way_until <= self.loop.time()
            for table in self.tables
        )
        return resting and not list(unsettled(self))

    def _offered(self) -> int:
        return sum(table.offers for table in self.tables)

    def _remember(self) -> None:
        """What the tables take for acknowledged just now."""
        for table in self.tables:
            if table.on and (table.folder / "journal.sqlite3").exists():
                with (
                    contextlib.closing(look_into(table.folder / "journal.sqlite3")) as db,
                    contextlib.suppress(sqlite3.OperationalError),
                ):
                    rows = db.execute("SELECT match FROM outbox WHERE state IN ('accepted', 'duplicate')")
                    self.history.acknowledged |= {row[0] for row in rows}


def look_into(file: Path) -> sqlite3.Connection:
    """A data base as somebody sees it who only looks; nobody counts that."""
    return contextvars.Context().run(lambda: sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True))


@contextlib.contextmanager
def _quick_codes() -> Iterator[None]:
    """What a code is worth is not for here: it need not take its time."""
    real = claim.PASSES, claim.MEMORY
    claim.PASSES, claim.MEMORY = 1, 8192  # type: ignore[misc]
    try:
        yield
    finally:
        claim.PASSES, claim.MEMORY = real  # type: ignore[misc]


@contextlib.contextmanager
def _listening(world: World) -> Iterator[None]:
    """Whatever is logged with an exception is a fault; what else is logged is as it should be."""

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info and not world.dying:
                world.faults.append(self.format(record))

    log = logging.getLogger("heek")
    level, propagate = log.level, log.propagate
    listener = Listener()
    log.addHandler(listener)
    log.setLevel(logging.ERROR)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(listener)
        log.setLevel(level)
        log.propagate = propagate


def faults_of(plan: Plan) -> tuple[list[str], World]:
    """Everything that is wrong with the world of this plan; empty if nothing was lost or counted twice."""
    with tempfile.TemporaryDirectory(prefix="heek-campaign-", dir=quick_folder()) as folder:
        world = World(plan, Path(folder))
        # A world is over before there is much to collect.
        gc.disable()
        try:
            return world.run(), world
        finally:
            gc.enable()
