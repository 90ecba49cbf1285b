"""kill -9 at each system call that writes, during a whole match of the real daemon: nothing told is lost.

A child plays a short match for two through the simulator, on a state folder, and dies before its n-th write,
sync, truncation or removal, for every n; once it dies half way through each write. What it had told by then
stands in memory that it shares with its parent, who starts the table again and looks at what became of it.
"""

from __future__ import annotations

import json
import mmap
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heek.journal import read_journal
from heek.session.phases import Phase
from heek.session.view import SeatState
from heek.simulator.runner import Simulation
from heek.simulator.story import parse
from tests.journal.scripts import in_child, quick_folder
from tests.journal.test_kill import run_under_shim

TARGET = 2
MATCH = "\n".join(
    [
        json.dumps({"story": 1, "table": {"ahyoheek.target": TARGET, "ahyoheek.reveal_s": 0.5}}),
        *(
            json.dumps({"at": at, "press": {"seat": seat, "button": button}})
            for at, throws in (
                (0.5, ("page",)),
                (0.6, (None, "page")),
                (1.0, ("page", "page")),
                (2.0, ("pen", "page")),
                (3.0, ("pen", "pen")),
                (4.0, ("pen", "page")),
            )
            for seat, button in enumerate(throws, start=1)
            if button is not None
        ),
        json.dumps({"at": 4.5, "end": True}),
    ]
)
"""Two sit down, are ready, and play: a round won, one that nobody wins, and the one that decides."""
NOTHING = json.dumps({"at": 0.1, "end": True})
TOLD_BYTES = 1 << 16


def play(folder: Path, say: Callable[[str], None]) -> None:
    Simulation(parse(MATCH, "match"), seed=7, say=say, state_dir=folder).run()


def start_again(folder: Path) -> tuple[list[dict[str, Any]], Phase, list[SeatState]]:
    """What a table says and shows that is switched on once more on this folder."""
    lines: list[str] = []
    shown: list[tuple[Phase, list[SeatState]]] = []

    def look(simulation: Simulation) -> None:
        if simulation.daemon is not None:
            view = simulation.daemon.shown
            shown.append((view.phase, [seat.state for seat in view.seats]))

    Simulation(parse(NOTHING, "again"), seed=8, say=lines.append, state_dir=folder, on_turn=look).run()
    phase, seats = shown[-1]
    return [json.loads(line) for line in lines], phase, seats


def judge(folder: Path, told: list[dict[str, Any]], whole: list[dict[str, Any]]) -> str:
    """Everything that must hold after a kill; how far the match had come.

    A process that dies takes nothing with it that was committed, so all that was told is there; what is
    there beyond was committed but not told yet.
    """
    kept: list[dict[str, Any]] = []
    results = 0
    if (folder / "journal.kept").exists():
        with read_journal(folder) as journal:
            assert journal.verify() == []
            kept = [json.loads(entry.body) for entry in journal.events()]
            results = len(list(journal.results()))
            assert journal.waiting() == results
    assert kept == whole[: len(kept)]
    assert told == kept[: len(told)]
    names = Counter(line["event"] for line in kept)
    assert results == names["match_won"] <= 1

    after, phase, seats = start_again(folder)
    assert [line["seq"] for line in after] == [len(kept) + 1 + place for place in range(len(after))]
    assert after[0]["event"] == "table_started"
    said = [line["event"] for line in after[1:]]
    taken = names["seat_taken"]
    if names["match_won"]:
        # The match is over and kept; nobody is known to sit here any more.
        assert (said, phase) == (["seat_left"] * taken, Phase.ATTRACT)
        came_to = "won"
    elif names["match_started"]:
        open_round = kept[-1]["event"] != "round_revealed"
        assert said == ["round_void"] * open_round
        assert phase is Phase.RESUME
        assert seats[:2] == [SeatState.UNCONFIRMED] * 2
        came_to = f"round {names['round_revealed'] + 1}"
    else:
        assert (said, phase) == (["seat_left"] * taken, Phase.ATTRACT)
        came_to = f"{taken} sit"
    assert all(line.get("reason", "power") == "power" for line in after)
    with read_journal(folder) as journal:
        assert journal.verify() == []
        assert len(list(journal.results())) == results
    return came_to


@pytest.mark.parametrize("torn", [False, True], ids=["before the call", "half way through a write"])
def test_killed_at_each_write_of_a_match(tmp_path: Path, torn: bool) -> None:
    """Whatever the last call was: the journal is sound, nothing told is lost, and the table goes on."""
    report = run_under_shim(
        tmp_path, "tests.test_killed_match", str(quick_folder() or tmp_path), str(int(torn)), timeout_s=300
    )
    assert report["calls"] > (20 if torn else 50)
    # Guards against a script that dies always at one place.
    assert set(report["seen"]) == {"0 sit", "1 sit", "2 sit", "round 1", "round 2", "round 3", "won"}


def die_at_each_call(quick: Path, torn: bool) -> None:
    """The other end of the test: runs under the shim, forks a child for each n, prints what it saw."""
    import ctypes
    import tempfile

    arm: Callable[[int, int], None] = ctypes.CDLL(None).heek_die_at
    with tempfile.TemporaryDirectory(prefix="heek-kill-", dir=quick) as name:
        folder = Path(name) / "state"
        lines: list[str] = []
        play(folder, lines.append)
        whole = [json.loads(line) for line in lines]
        seen: Counter[str] = Counter()
        nth = 0
        while True:
            nth += 1
            shutil.rmtree(folder)
            shared = mmap.mmap(-1, TOLD_BYTES)

            def tell(line: str, shared: mmap.mmap = shared) -> None:
                # Into shared memory: telling by a file or a pipe would be a system call to die at.
                shared.write(line.encode() + b"\n")

            def run(nth: int = nth, tell: Callable[[str], None] = tell) -> None:
                arm(nth, int(torn))
                play(folder, tell)
                arm(0, 0)

            status = in_child(run)
            told = [json.loads(line) for line in shared[:].split(b"\0")[0].splitlines()]
            seen[judge(folder, told, whole)] += 1
            if not os.WIFSIGNALED(status):
                assert told == whole
                break
            assert os.WTERMSIG(status) == signal.SIGKILL
    print(json.dumps({"calls": nth, "seen": seen}))


if __name__ == "__main__":
    die_at_each_call(Path(sys.argv[1]), sys.argv[2] == "1")
