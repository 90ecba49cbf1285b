"""Computers that can lose their power anywhere, each with a card that keeps what was synced.

All machines of a world share one virtual loop in one process. What tells them apart is the context in which
code runs: whatever a machine starts runs, with all its tasks, timers and callbacks, in a context that names
the machine. So the loop can count a machine's steps (each resumption after an await is one) and leave out
those of a machine that is off; nothing of the real code knows about it.

The other thing that is counted is each statement that reaches SQLite, before it is carried out. At the step
that was chosen the power goes: an image of the machine's folder is taken, everything it still tries raises
`PowerCut`, and it never runs again. It starts anew from that image in a new folder, like a card in a reader.

What the card had not synced is lost. SQLite syncs at a COMMIT under `synchronous = FULL`; under NORMAL it
does not, and then a draw decides whether what was committed since the last sync is in the image or not. What
happens between two system calls of one statement is not for here: tests/journal/test_kill.py dies there.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import random
import shutil
import sqlite3
import sqlite3.dbapi2
import weakref
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from heek.clock import SECOND, Clock, Instant, ManualClock
from heek.errors import TableError
from heek.simulator.virtual_loop import VirtualLoop

Image: TypeAlias = dict[str, bytes]
"""What a card holds: file names to bytes."""

UNLOCKED: Final = ("journal.lock", "ki.sqlite3.lock")
_SHARED_MEMORY: Final = "-shm"


class PowerCut(BaseException):
    """The machine that runs this is off; nothing may catch it and go on."""


class Machine:
    """A computer of the world; off until `boot`."""

    def __init__(self, world: Worldly, name: str, image: Image, *, wall_error_s: float = 0.0) -> None:
        self.world = world
        self.name = name
        self.image = image
        """What its card holds while it is off."""
        self.on = False
        self.boots = 0
        self.wall_error_s = wall_error_s
        self.full = 0.0
        """The chance that a write finds the card full."""
        self.steps = 0
        self.cut_at: int | None = None
        self.cut_off_s = 1.0
        self.last_step = ""
        self.folder = Path()
        self.clock: MachineClock = MachineClock(world.clock, self)
        self._context = contextvars.Context()
        self._synced: Image | None = None
        self._databases: list[CardConnection] = []
        self._tasks: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()

    # What a subclass does

    def start(self) -> None:
        """Start the programs, in the machine's context."""
        raise NotImplementedError

    def let_go(self) -> None:
        """Close what would stay open in this process; nothing of it reaches the image any more."""

    async def close(self) -> None:
        """End the programs as one is asked to."""
        raise NotImplementedError

    # Power

    def boot(self) -> None:
        """Switch on. The power may go again while it starts."""
        if self.on:
            return
        self.boots += 1
        self.folder = self.world.folder / f"{self.name}-{self.boots}"
        self.folder.mkdir(mode=0o700)
        for name, data in self.image.items():
            file = self.folder / name
            file.write_bytes(data)
            file.chmod(0o600)
        self.on = True
        self._synced = None
        self.clock = MachineClock(self.world.clock, self)
        self._context = contextvars.Context()
        self._context.run(RUNS_ON.set, (self, self.boots))
        self.run(self.start)

    def run(self, what: Callable[[], None]) -> bool:
        """Do something on this machine, if it is on; False if the power is off then."""
        if self.on:
            with contextlib.suppress(PowerCut):
                self._context.copy().run(what)
        return self.on

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Have it work on something from its next turn on."""
        if self.on:
            self._context.copy().run(self.world.loop.create_task, work)
        else:
            work.close()

    def cut(self) -> None:
        """The power goes, now."""
        if not self.on:
            return
        self.image = self._surviving()
        self._end()
        self.world.power_is_gone(self)

    def shut_down(self) -> None:
        """Take it off after its programs have ended."""

        async def end() -> None:
            await self.close()
            self.image = self._files()
            self._end()

        self.spawn(end())

    def step(self, what: str) -> None:
        """One more thing is about to be done; raises PowerCut if it is not to be."""
        if not self.on:
            raise PowerCut
        self.steps += 1
        if self.cut_at is not None and self.steps >= self.cut_at:
            self.cut_at = None
            self.last_step = what
            self.cut()
            raise PowerCut

    def picture(self) -> Image:
        """What the card holds as it is, if it is copied now."""
        return dict(self._surviving() if self.on else self.image)

    def _end(self) -> None:
        self.on = False
        for database in self._databases:
            database.drop()
        self._databases.clear()
        self.world.dying = True
        for task in self._tasks:
            # None of them goes on; what they would still do on their way out reaches nothing any more.
            with contextlib.suppress(PowerCut, Exception):
                task.get_coro().close()
        self._tasks.clear()
        with contextlib.suppress(PowerCut, Exception):
            self.let_go()
        self.world.dying = False
        shutil.rmtree(self.folder, ignore_errors=True)

    def _files(self) -> Image:
        return {
            file.name: file.read_bytes()
            for file in sorted(self.folder.iterdir())
            if file.is_file() and file.name not in UNLOCKED and not file.name.endswith(_SHARED_MEMORY)
        }

    def _surviving(self) -> Image:
        now = self._files()
        if self._synced is None or self.world.dice.random() < 0.5:
            return now
        # Only SQLite's files are written without a sync.
        others = {name: data for name, data in now.items() if "sqlite3" not in name}
        return self._synced | others

    # The card

    def began(self, task: asyncio.Task[Any]) -> None:
        """One more task runs on it."""
        self._tasks.add(task)

    def opened(self, database: CardConnection) -> None:
        """One more data base is open on the card."""
        self._databases.append(database)

    def refuse(self) -> bool:
        """Whether the card takes no write just now."""
        return self.full > 0 and self.world.dice.random() < self.full

    def writes_unsynced(self) -> None:
        """From here on the card may hold less than is committed."""
        if self._synced is None:
            self._synced = self._files()

    def synced(self) -> None:
        """All that is committed is on the card."""
        self._synced = None


RUNS_ON: Final[contextvars.ContextVar[tuple[Machine, int]]] = contextvars.ContextVar("runs_on")
"""The machine, and which of its boots."""


class Worldly:
    """What machines need of their world."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.dice = random.Random(seed)
        self.clock = ManualClock(now=1000 * SECOND, wall_s=1_900_000_000.0)
        self.loop = MachineLoop(self.clock)
        self.dying = False
        """A machine's programs are being swept away; what they say meanwhile is nothing."""

    def power_is_gone(self, machine: Machine) -> None:
        """A machine lost its power."""


class MachineClock:
    """A machine's clocks: the monotonic one since its boot, and a wall clock that may be wrong."""

    def __init__(self, world: Clock, machine: Machine) -> None:
        self._world = world
        self._machine = machine
        self._booted = world.now()

    @property
    def origin_ns(self) -> int:
        return 0

    def now(self) -> Instant:
        return self._world.now() - self._booted

    def wall_s(self) -> float:
        return self._world.wall_s() + self._machine.wall_error_s


class MachineLoop(VirtualLoop):
    """The world's loop: counts each machine's steps, and leaves out those of a machine that is off."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.unforeseen: list[str] = []
        self.set_exception_handler(self._unforeseen)
        self.set_task_factory(_task_of_machine)

    def _unforeseen(self, _loop: asyncio.AbstractEventLoop, told: dict[str, Any]) -> None:
        error = told.get("exception")
        # Tasks of a machine that lost its power are never finished, and never look at what they asked for.
        if error is not None and not isinstance(error, PowerCut | TableError):
            self.unforeseen.append(f"{told.get('message')}: {error!r}")

    def call_soon(self, callback: Any, *args: Any, context: contextvars.Context | None = None) -> Any:
        context = contextvars.copy_context() if context is None else context
        return super().call_soon(*_counted(callback, args, context), context=context)

    def call_soon_threadsafe(
        self, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> Any:
        return self.call_soon(callback, *args, context=context)

    def call_at(
        self, when: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> Any:
        context = contextvars.copy_context() if context is None else context
        return super().call_at(when, *_counted(callback, args, context), context=context)

    def run_in_executor(self, _executor: Any, func: Any, *args: Any) -> Any:
        """There are no threads in virtual time: it is done at once."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


def _task_of_machine(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
    # Of a machine that loses its power many are left pending.
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    runs_on = task.get_context().get(RUNS_ON) if hasattr(task, "get_context") else RUNS_ON.get(None)
    if runs_on is not None:
        runs_on[0].began(task)
    return task


def _counted(callback: Any, args: tuple[Any, ...], context: contextvars.Context) -> tuple[Any, ...]:
    runs_on = context.get(RUNS_ON)
    if runs_on is None:
        return (callback, *args)
    return (_turn, runs_on, callback, args)


def _turn(runs_on: tuple[Machine, int], callback: Any, args: tuple[Any, ...]) -> None:
    machine, boot = runs_on
    if machine.boots != boot:
        return
    with contextlib.suppress(PowerCut):
        machine.step("a turn of the loop")
        callback(*args)


class CardCursor(sqlite3.Cursor):
    """A cursor whose statements are counted."""

    def execute(self, sql: str, *args: Any) -> Any:
        with _statement(self.connection, sql):
            return super().execute(sql, *args)

    def executemany(self, sql: str, *args: Any) -> Any:
        with _statement(self.connection, sql):
            return super().executemany(sql, *args)


class CardConnection(sqlite3.Connection):
    """A data base on a machine's card; outside of any machine an ordinary one."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.machine: Machine | None = None
        self._full_sync = True
        runs_on = RUNS_ON.get(None)
        if runs_on is not None:
            self.machine = runs_on[0]
            self.machine.opened(self)

    def cursor(self, _factory: Any = None) -> Any:
        return super().cursor(CardCursor)

    def execute(self, sql: str, *args: Any) -> Any:
        return self.cursor().execute(sql, *args)

    def executemany(self, sql: str, *args: Any) -> Any:
        return self.cursor().executemany(sql, *args)

    def commit(self) -> None:
        if self.in_transaction:
            self.execute("COMMIT")

    def rollback(self) -> None:
        if self.in_transaction:
            self.execute("ROLLBACK")

    def drop(self) -> None:
        """The machine is off: close without anything that would count."""
        with contextlib.suppress(sqlite3.Error):
            super().close()

    @contextlib.contextmanager
    def statement(self, sql: str) -> Iterator[None]:
        """Around each statement: the power may go before it, and the card refuse it."""
        machine = self.machine
        if machine is None:
            yield
            return
        machine.step(sql)
        word = sql.lstrip()[:12].upper()
        if word.startswith("PRAGMA SYNCH"[:12]):
            self._full_sync = "FULL" in sql
        if word.startswith("BEGIN"):
            if not self._full_sync:
                machine.writes_unsynced()
            if "IMMEDIATE" in sql and machine.refuse():
                raise sqlite3.OperationalError("database or disk is full")
        commits = word.startswith("COMMIT")
        if commits and machine.refuse():
            if self._full_sync and machine.world.dice.random() < 0.3:
                # Told as failed, and on the card all the same.
                yield
                machine.synced()
            raise sqlite3.OperationalError("disk I/O error")
        yield
        if commits and self._full_sync:
            machine.synced()


def _statement(connection: sqlite3.Connection, sql: str) -> contextlib.AbstractContextManager[None]:
    assert isinstance(connection, CardConnection)
    return connection.statement(sql)


@contextlib.contextmanager
def cards() -> Iterator[None]:
    """As long as it lasts, whatever opens a data base in this process opens it on a machine's card."""
    real = sqlite3.connect

    def connect(*args: Any, **options: Any) -> sqlite3.Connection:
        options.setdefault("factory", CardConnection)
        made: sqlite3.Connection = real(*args, **options)
        return made

    sqlite3.connect = sqlite3.dbapi2.connect = connect  # type: ignore[assignment]
    try:
        yield
    finally:
        sqlite3.connect = sqlite3.dbapi2.connect = real  # type: ignore[assignment]
