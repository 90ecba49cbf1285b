"""A story's link to the KI: what the OLED shows of it, and that every result arrives once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from heek.clock import SECOND
from heek.display.burn_in import standing, stood
from heek.display.drawing import draw
from heek.display.ki_mark import KiMark, Reach
from heek.display.screens import screen
from heek.ki import cbor
from heek.ki.link import Request
from heek.simulator.runner import Simulation
from heek.simulator.story import parse
from heek.simulator.story_ki import StoryKi

HEADER = (
    '{"story": 1, "table": {"ki.link": "http", "ki.url": "http://ki.example", "ahyoheek.target": 1, '
    '"ahyoheek.reveal_s": 1, "ahyoheek.match_over_s": 3, "seats.rematch_s": 20}}\n'
)
MATCH = """\
{"at": 5.0, "press": {"seat": 1, "button": "pen"}}
{"at": 5.1, "press": {"seat": 2, "button": "pen"}}
{"at": 5.5, "press": {"seat": 1, "button": "pen"}}
{"at": 5.6, "press": {"seat": 2, "button": "pen"}}
{"at": 8.0, "press": {"seat": 1, "button": "pen"}}
{"at": 8.1, "press": {"seat": 2, "button": "page"}}
"""
"""Seat 1 has won at 8.1 s; both have stood up half a minute later."""


@pytest.fixture(autouse=True)
def _greenwich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


class Looked(Simulation):
    """A story whose OLED can be compared with what it should say of the KI."""

    def shows(self, ki: KiMark | None) -> bool:
        daemon = self.daemon
        assert daemon is not None
        view, now = daemon.shown, daemon.now
        expected = draw(screen(view, now, table="Table 1", ki=ki))
        return daemon.image.tobytes() == stood(expected, standing(view, now, ki)[0]).tobytes()


def play(text: str, at_s: dict[float, KiMark | None], folder: Path) -> Looked:
    """Play the story, and look at the OLED at each of these seconds."""
    story = parse(HEADER + text, "story")
    looked = Looked(story, state_dir=folder)
    looked.open(folder)
    steps = list(story.steps)
    for second, ki in at_s.items():
        while steps and steps[0].at <= second * SECOND:
            looked.add(steps.pop(0))
        looked.play_to(round(second * SECOND))
        assert looked.shows(ki), second
    return looked


def test_the_link_goes_down_and_comes_up(tmp_path: Path) -> None:
    """Up, no link, one waiting, and up again: each is on the OLED within two seconds, and the KI has it."""
    last = "00:00"
    looked = play(
        '{"at": 0, "wall_clock": "2031-01-01T00:00:00Z"}\n{"at": 4.0, "ki": "down"}\n'
        + MATCH
        + '{"at": 30.0, "ki": "up"}\n{"at": 60.0, "end": true}\n',
        {
            2.0: KiMark(Reach.UP, 0, last),
            6.0: KiMark(Reach.UP, 0, last),  # Nobody has asked meanwhile.
            29.0: KiMark(Reach.DOWN, 1, last),
            31.0: KiMark(Reach.UP, 0, last),
        },
        tmp_path,
    )
    assert looked.ki.matches == 1
    assert looked.close() == ()


def test_a_power_cut_before_the_answer(tmp_path: Path) -> None:
    """The result waits through a cut and is counted once; the KI is the same one after it."""
    text = (
        '{"at": 4.0, "ki": "down"}\n'
        + MATCH
        + '{"at": 20, "power": "cut"}\n{"at": 25, "power": "on"}\n{"at": 40, "ki": "up"}\n'
        '{"at": 41.0, "power": "cut"}\n{"at": 50, "power": "on"}\n{"at": 90, "end": true}\n'
    )
    looked = Looked(parse(HEADER + text, "story"), state_dir=tmp_path)
    report = looked.run()
    assert report.skipped == ()
    assert looked.ki.matches == 1


def test_points_are_told(tmp_path: Path) -> None:
    """Who is signed in by the story has what the KI counts: the grant, and the stake won from the other."""
    claims = (
        '{"at": 5.2, "claim": {"seat": 1, "player": "40220170", "name": "Shorah"}}\n'
        '{"at": 5.2, "claim": {"seat": 2, "player": "51770238", "name": "Yeesha"}}\n'
    )
    lines = MATCH.splitlines(keepends=True)
    text = "".join([*lines[:2], claims, *lines[2:], '{"at": 40, "end": true}\n'])
    looked = Looked(parse(HEADER + text, "story"), state_dir=tmp_path)
    looked.run()
    assert (looked.ki.points("40220170"), looked.ki.points("51770238")) == (101, 99)


def test_the_same_story_gives_the_same_bytes(tmp_path: Path) -> None:
    """With a link, too: events and pictures of two runs agree to the byte."""
    text = '{"at": 4.0, "ki": "down"}\n' + MATCH + '{"at": 30.0, "ki": "up"}\n{"at": 60.0, "end": true}\n'
    runs = []
    for name in ("one", "two"):
        said: list[str] = []
        frames = tmp_path / name
        frames.mkdir()
        Simulation(parse(HEADER + text, "story"), say=said.append, frames=frames).run()
        runs.append((said, {each.name: each.read_bytes() for each in frames.iterdir()}))
    assert runs[0] == runs[1]
    assert len(runs[0][1]) > 20


@pytest.mark.parametrize("request_", [Request.TABLE, Request.RECORDS, Request.SYNC, Request.PLAYER])
def test_rubbish_is_refused(request_: Request) -> None:
    """What no table would ask is refused, as at the real service, and changes nothing."""
    ki = StoryKi(bytes(32), lambda: 0.0)
    refusal = "not_demo" if request_ is Request.PLAYER else "malformed"
    assert cbor.decode(ki.answer(request_, b"\xff"))["error"] == refusal
    assert ki.matches == 0
