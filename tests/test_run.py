"""`heek run` as a process: how it starts, what stops it, and what it says when it cannot start.

Each test starts the real command on mock pins with a state folder of its own. Nothing is waited for by the
clock alone: the ready line, the journal and the end of the process say when to go on.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

import heek
from heek.cli import MISTAKE, main, table_process
from heek.cli.running import DRAWN
from heek.config import from_text as load_text
from heek.daemon import World
from heek.journal import read_journal

PACKAGES = str(Path(heek.__file__).parents[1])
PATIENCE_S = 20
"""For a start on a busy machine; the end must come within 2 s, and that is measured from the signal."""

HANGING_PANEL = """
import os, threading
import heek.display.oled as oled

class Hanging:
    def display(self, image):
        os.write(2, b"WARNING the panel hangs\\n")
        threading.Event().wait()
    def close(self):
        pass

oled.open_luma = lambda *_: Hanging()
oled.Oled.__init__.__kwdefaults__["open_device"] = oled.open_luma
"""


class Run:
    """A running `heek run`; `said` holds the lines of its standard error."""

    def __init__(self, folder: Path, text: str, *, before: str = "", **environment: str) -> None:
        self.state = folder / "state"
        self.config = folder / "table.toml"
        self.config.write_text(text)
        arguments = ["run", "--config", str(self.config)]
        program = f"{before}\nimport sys\nfrom heek.cli import main\nsys.exit(main({arguments!r}))"
        command = ["-c", program] if before else ["-m", "heek", *arguments]
        self.process = subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": PACKAGES} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []
        self._deaf = False
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, args=(self.process.stderr,), daemon=True)
        self._reader.start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            with self._news:
                self.said.append(line.rstrip("\n"))
                self._news.notify_all()
        with self._news:
            self._deaf = True
            self._news.notify_all()

    def hears(self, word: str, times: int = 1) -> None:
        """Wait until so many lines with `word` were said."""
        with self._news:
            heard = self._news.wait_for(
                lambda: sum(word in line for line in self.said) >= times or self._deaf,
                PATIENCE_S,
            )
        assert heard, self.said
        assert any(word in line for line in self.said), (word, self.said)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ends(self, within: float = 2.0) -> int:
        """The exit code; it must come `within` seconds. Whatever was said is a log line."""
        code = self.process.wait(within)
        self._reader.join(PATIENCE_S)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        assert self.process.stdout.read() == ""
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def assert_only_logged(self) -> None:
        levels = {line.split(" ")[0] for line in self.said}
        assert levels <= {"INFO", "WARNING"}, self.said

    def events(self) -> list[str]:
        with read_journal(self.state) as journal:
            assert journal.verify() == []
            return [entry.event for entry in journal.events()]


TABLE = """
[table]
name = "Test table"
state_dir = "{state}"
[stations]
backend = "mock"
[[display]]
driver = "dummy"
[web]
port = 0
[log]
level = "info"
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Starts tables, and ends those that a failing test left behind."""
    started: list[Run] = []

    def run(text: str = TABLE, **options: str) -> Run:
        one = Run(tmp_path, text.format(state=tmp_path / "state"), **options)
        started.append(one)
        return one

    yield run
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait()
        for stream in (one.process.stdout, one.process.stderr):
            if stream is not None:
                stream.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_a_signal_ends_it_cleanly(start: Callable[..., Run], number: signal.Signals) -> None:
    """Ready is said with seats, pins and folder; the signal ends it with 0 within 2 s, the journal sound."""
    run = start()
    run.hears("is ready")
    assert f"INFO Test table is ready: seats 1, 2, 3, 4, 5 on mock pins, journal in {run.state}" in run.said
    run.signal(number)
    assert run.ends() == 0
    run.assert_only_logged()
    assert run.said[-1] == "INFO Test table has stopped"
    assert run.events() == ["table_started"]


def test_twice_in_a_row_is_once(start: Callable[..., Run]) -> None:
    """Who asks twice, or asks again and again while it ends, gets the same clean end."""
    run = start()
    run.hears("is ready")
    for _ in range(200):
        if run.process.poll() is not None:
            break
        run.signal(signal.SIGTERM)
    assert run.ends() == 0
    run.assert_only_logged()


@pytest.mark.parametrize(
    "given", [["--seed", "5"], ["--seed"], ["--seed=5"], *([each, "x"] for each in DRAWN)]
)
def test_a_seed_or_a_key_is_refused_by_the_command_line(
    given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody gives a real table its randomness, key, id or incarnation; it says so, and nothing is begun."""
    config = tmp_path / "table.toml"
    config.write_text(TABLE.format(state=tmp_path / "state"))
    with pytest.raises(SystemExit) as ended:
        main(["run", "--config", str(config), *given])
    assert ended.value.code == MISTAKE
    option = given[0].partition("=")[0]
    said = capsys.readouterr().err
    assert f"heek run: error: argument {option}: a real table draws {DRAWN[option]} itself" in said
    assert not (tmp_path / "state").exists()


def test_two_tables_draw_nothing_alike(start: Callable[..., Run], tmp_path: Path) -> None:
    """Whatever the environment says of seeds: two tables have two keys, and each start its incarnation."""
    seeds = dict.fromkeys(("HEEK_SEED", "SEED", "HEEK_KEY", "PYTHONHASHSEED", "SOURCE_DATE_EPOCH"), "5")
    keys, incarnations = set(), []
    for number in (1, 2, 1):
        state = tmp_path / f"state-{number}"
        run = start(TABLE.replace("{state}", str(state)), **seeds)
        run.hears("is ready")
        run.signal(signal.SIGTERM)
        assert run.ends() == 0
        keys.add((state / "table.key").read_text())
        with read_journal(state) as journal:
            lines = [json.loads(entry.body) for entry in journal.events()]
        incarnations += [line["incarnation"] for line in lines if line["event"] == "table_started"]
    assert len(keys) == 2
    # The first table's journal was read twice, once with one start and once with two.
    assert len(incarnations) == 4
    assert len(set(incarnations)) == 3


def test_what_a_real_table_draws_comes_from_the_system(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Ids of matches, throws of bots and the key are drawn by nothing else than the system's randomness."""
    worlds: list[World] = []

    class Kept(Exception):
        pass

    def keep(_: object, world: World, __: object) -> None:
        worlds.append(world)
        raise Kept

    monkeypatch.setattr(table_process, "Daemon", keep)
    before = {number: signal.getsignal(number) for number in table_process.STOP_SIGNALS}
    config = load_text(TABLE.format(state=tmp_path / "state"), "table.toml")
    try:
        with pytest.raises(Kept):
            table_process.TableProcess(config).run(on_ready=lambda _: None)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    (world,) = worlds
    assert world.random_bytes is os.urandom
    assert world.new_seed() != world.new_seed()
    assert len(world.new_seed()) == 32


def test_a_signal_during_the_start(start: Callable[..., Run], tmp_path: Path) -> None:
    """A signal while the leaves are built is obeyed as soon as they are, with a clean end."""
    gate = tmp_path / "building"
    os.mkfifo(gate)
    run = start(
        before=f"""
import heek.daemon as daemon
build = daemon.Daemon.__init__
def slow(self, *arguments):
    open({str(gate)!r}).read()
    build(self, *arguments)
daemon.Daemon.__init__ = slow
"""
    )
    # Opens when the other end does: the daemon is just being built.
    with gate.open("w"):
        run.signal(signal.SIGTERM)
    assert run.ends(PATIENCE_S) == 0
    run.assert_only_logged()
    assert run.events() == ["table_started"]


def test_the_operators_signal(start: Callable[..., Run]) -> None:
    """SIGUSR1 is the operator's reset: in an empty table nothing but a turn, and it does not end."""
    run = start(
        before="""
import logging, heek.daemon as daemon
reset = daemon.Daemon.reset
def told(self, at=None):
    reset(self, at)
    logging.getLogger("heek").info("reset was called")
daemon.Daemon.reset = told
"""
    )
    run.hears("is ready")
    run.signal(signal.SIGUSR1)
    run.hears("reset was called")
    run.signal(signal.SIGTERM)
    assert run.ends() == 0


def test_a_second_copy_is_refused(start: Callable[..., Run]) -> None:
    """Two tables on one state folder: the second says so in one line and ends with 1; the first plays on."""
    first = start()
    first.hears("is ready")
    second = start()
    assert second.ends(PATIENCE_S) == 1
    assert len(second.said) == 1
    assert second.said[0].startswith("heek: ")
    assert str(first.state) in second.said[0]
    assert first.process.poll() is None
    first.signal(signal.SIGTERM)
    assert first.ends() == 0
    assert first.events() == ["table_started"]


def test_starting_again_goes_on_counting(start: Callable[..., Run]) -> None:
    """The next start finds the journal of the last one and goes on in it."""
    for times in (1, 2):
        run = start()
        run.hears("is ready")
        run.signal(signal.SIGTERM)
        assert run.ends() == 0
        assert run.events() == ["table_started"] * times


@pytest.mark.fault("F056")
def test_debugging_is_not_left_on_unnoticed(start: Callable[..., Run]) -> None:
    """F056: each start says that it is on and what that costs; without it nothing is said of it."""
    for level, times in (("debug", 1), ("info", 0)):
        table = start(TABLE.replace("info", level))
        table.hears("is ready")
        table.signal(signal.SIGTERM)
        assert table.ends() == 0
        assert sum("log.level is debug" in line for line in table.said) == times


def test_killed_it_starts_again(start: Callable[..., Run]) -> None:
    """After kill -9 nothing is left in the way: no lock, no half-written file."""
    run = start(TABLE.replace('"info"', '"debug"'))
    # A line is told when the journal has it.
    run.hears('"table_started"')
    run.process.kill()
    run.process.wait()
    again = start()
    again.hears("is ready")
    again.signal(signal.SIGTERM)
    assert again.ends() == 0
    assert again.events() == ["table_started"] * 2


def test_a_state_folder_that_cannot_be_made(start: Callable[..., Run], tmp_path: Path) -> None:
    """A folder under a file cannot be made by anybody: one line names it and what to do."""
    (tmp_path / "state").write_text("a file")
    run = start(TABLE.replace("{state}", "{state}/below"))
    assert run.ends(PATIENCE_S) == 1
    assert run.said == [
        f"heek: table.state_dir {tmp_path}/state/below: cannot be written (Not a directory); "
        "give it to the user that runs heek, or name another folder"
    ]


def test_a_state_folder_of_somebody_else() -> None:
    """A folder that another user owns: one line, code 1."""
    with tempfile.TemporaryDirectory(prefix="heek-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "state").mkdir()
        (folder / "state").chmod(0o555)
        # Root may write everywhere, so it becomes nobody once everything that it runs is imported.
        become = "import os; os.setgid(65534); os.setuid(65534)" if os.getuid() == 0 else ""
        lazy = "import heek.cli, heek.config; heek.cli._parser(); ''.encode('utf-8-sig')"
        before = f"{lazy}\n{become}\n"
        run = Run(folder, TABLE.format(state=folder / "state"), before=before)
        assert run.ends(PATIENCE_S) == 1
        assert run.said == [
            f"heek: table.state_dir {folder}/state: cannot be written (Permission denied); "
            "give it to the user that runs heek, or name another folder"
        ]


def test_all_mistakes_of_the_configuration(start: Callable[..., Run]) -> None:
    """Every mistake is listed, with line and key, and nothing is started: code 2, which systemd leaves be."""
    mistakes = '[table]\nnme = "x"\nstate_dir = "{state}"\n[ahyoheek]\ncountdown_s = 99\n'
    run = start(mistakes + '[stations]\nbackend = "gpoi"\n')
    assert run.ends(PATIENCE_S) == 2
    assert len(run.said) == 3
    for place, word in enumerate(["table.nme", "ahyoheek.countdown_s", "stations.backend"]):
        assert word in run.said[place], run.said
    assert not run.state.exists()


def test_a_configuration_that_is_not_there(start: Callable[..., Run]) -> None:
    """A file that is missing is one line that names it, code 2."""
    run = start(before="import pathlib; pathlib.Path('table.toml').unlink()")
    assert run.ends(PATIENCE_S) == 2
    assert len(run.said) == 1
    assert str(run.config) in run.said[0]


GPIO = TABLE.replace('"mock"', '"gpio"')


def test_lgpio_is_told_its_folder_before_it_is_imported(start: Callable[..., Run], tmp_path: Path) -> None:
    """LG_WD is set when lgpio is imported; a library that fails ends the start with reason and remedy."""
    fakes = tmp_path / "fakes"
    fakes.mkdir()
    (fakes / "lgpio.py").write_text(
        textwrap.dedent(
            """
            import os, pathlib
            pathlib.Path(__file__).with_name("seen").write_text(os.environ.get("LG_WD", "nothing"))
            raise OSError("no chip here")
            """
        )
    )
    run = start(GPIO, PYTHONPATH=os.pathsep.join([str(fakes), PACKAGES]), LG_WD="elsewhere")
    assert run.ends(PATIENCE_S) == 1
    assert Path((fakes / "seen").read_text()).parent == run.state
    assert len(run.said) == 1
    assert run.said[0].startswith("heek: stations.pin_factory lgpio does not open: no chip here; check that")
    assert not list(tmp_path.glob("**/.lg*"))


@pytest.mark.parametrize(
    ("factory", "module", "extra"), [("lgpio", "lgpio", "[pi]"), ("rpigpio", "RPi", "[pi-legacy]")]
)
def test_a_backend_that_is_not_installed(
    start: Callable[..., Run], tmp_path: Path, factory: str, module: str, extra: str
) -> None:
    """A missing library: one line with the extra to install and how to simulate, and never a mock."""
    fakes = tmp_path / "fakes"
    fakes.mkdir()
    (fakes / f"{module}.py").write_text(f'raise ModuleNotFoundError("No module named {module}")')
    run = start(
        GPIO.replace('"gpio"', f'"gpio"\npin_factory = "{factory}"'),
        PYTHONPATH=os.pathsep.join([str(fakes), PACKAGES]),
        GPIOZERO_PIN_FACTORY="mock",
    )
    assert run.ends(PATIENCE_S) == 1
    assert len(run.said) == 1
    assert run.said[0].startswith(f"heek: stations.pin_factory {factory}: its Python module is not installed")
    assert extra in run.said[0]
    assert 'stations.backend = "mock"' in run.said[0]


def test_a_panel_that_hangs_does_not_keep_the_process(start: Callable[..., Run]) -> None:
    """A write that never returns costs 2 s of patience and no more; the journal is closed before."""
    run = start(before=HANGING_PANEL)
    run.hears("is ready")
    run.hears("the panel hangs")
    began = time.monotonic()
    while run.process.poll() is None:
        # Impatience while it ends changes nothing.
        run.signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.process.wait(0.02)
    assert time.monotonic() - began < 2.0 + 2.0
    assert run.ends() == 0
    run.assert_only_logged()
    assert run.said[-1] == "INFO Test table has stopped"
    assert run.events() == ["table_started"]


def test_a_broken_turn_ends_with_a_failure(start: Callable[..., Run]) -> None:
    """A mistake of ours on the loop is logged and ends the process with 1; systemd starts it again."""
    run = start(
        before="""
import heek.daemon as daemon
def broken(self, at=None):
    raise RuntimeError("a mistake of ours")
daemon.Daemon.reset = broken
"""
    )
    run.hears("is ready")
    run.signal(signal.SIGUSR1)
    assert run.ends(PATIENCE_S) == 1
    assert any(line.startswith("ERROR the table stops") for line in run.said)
    assert any("a mistake of ours" in line for line in run.said)
    assert run.events() == ["table_started"]
