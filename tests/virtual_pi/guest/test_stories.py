"""Stories in real time on the kernel's pins and bus, against what the simulator makes of the same edges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from heek.clock import MILLISECOND
from heek.simulator.story import read
from tests.virtual_pi.figures import share_below, spread
from tests.virtual_pi.judging import SAME
from tests.virtual_pi.panel_controller import PanelController
from tests.virtual_pi.panel_wire import Happened, PanelWire
from tests.virtual_pi.simulated_chip import SimulatedChip
from tests.virtual_pi.story_player import Played, StoryPlayer, table_chip
from tests.virtual_pi.table_daemon import TableDaemon

STORIES = Path(__file__).parents[2] / "stories"
OURS = Path(__file__).parents[1] / "stories"
OUT = Path("/out")
TRIES = 3
"""Of a story for which the machine was too slow. A retry is told, and never granted to the table itself."""

Play = Callable[..., tuple[Played, TableDaemon]]


@pytest.fixture
def play(panel: PanelWire, table: Callable[..., TableDaemon], figure: Callable[[str, str], None]) -> Play:
    """Plays a story to its end; one for which the machine was too slow is played again."""

    def one(
        file: Path, keys: dict[str, object] | None = None, *, same: int = SAME, **options: object
    ) -> tuple[Played, TableDaemon]:
        story = read(file)
        for number in range(1, TRIES + 1):
            panel.log.clear()
            panel.restore()
            daemon = table({**story.table, **(keys or {})}, **options)
            with table_chip() as chip:
                played = StoryPlayer(story, chip, panel, daemon, same=same, keep=OUT).play()
            for line in played.skipped:
                figure("skipped", line)
            # The same edges gave other events than they do in the simulator: no slowness excuses that.
            assert not played.differences, "\n".join(played.differences)
            if played.ok or not played.too_slow:
                break
            figure(
                "played again",
                f"{number}: the machine was {played.latest_ms:.0f} ms late with a contact: {played}",
            )
        return played, daemon

    return one


def test_the_worked_example(play: Play, figure: Callable[[str, str], None]) -> None:
    """The spec's own example, bounce and all: the simulator's events, its lamps and its pictures."""
    played, _ = play(STORIES / "worked_example.jsonl")
    assert played.ok, str(played)
    assert played.judged == 4
    figure("press to event told", spread(played.latencies_ms))
    # Loose: the machine is emulated, and may have other things to do.
    assert share_below(played.latencies_ms, 0.5) < 500


def test_every_press_counts_once_however_it_bounces(play: Play) -> None:
    """Bounce both ways, and taps of 4 and 6 ms: the last of each seat's presses counts, none is ignored."""
    played, _ = play(OURS / "bounce.jsonl")
    assert played.ok, str(played)
    assert played.judged == 2


def test_a_contact_that_is_held_while_the_table_starts(play: Play) -> None:
    """It is stuck and named until it opens; the seat plays on with its other buttons."""
    played, _ = play(STORIES / "rules" / "clock_stuck_at_start_up.jsonl")
    assert played.ok, str(played)
    assert played.judged >= 8


def test_a_power_cut_with_a_button_held(play: Play) -> None:
    """kill -9 in a round and a new start: the match goes on, and the held button is stuck."""
    played, _ = play(STORIES / "rules" / "power_with_a_button_held.jsonl")
    assert played.ok, str(played)
    assert [event["event"] for event in played.events].count("table_started") == 2


def test_a_standstill(play: Play) -> None:
    """SIGSTOP for 1.2 s in a round: the round is void and opened anew, as the simulator says."""
    # When a program that stood still notices it, is its own affair: the processor's, here.
    played, _ = play(STORIES / "rules" / "clock_stalls_that_overlap.jsonl", same=100 * MILLISECOND)
    assert played.ok, str(played)


def test_a_panel_that_is_pulled_and_put_back(play: Play, panel: PanelWire) -> None:
    """The match goes on; the panel gets its whole initialisation again, then the picture of the moment."""
    played, daemon = play(OURS / "panel.jsonl")
    assert played.ok, str(played)
    assert sum("does not answer (errno 121" in line for line in daemon.said) == 1
    assert any("the OLED answers again" in line for line in daemon.said)
    plugged = [place for place, record in enumerate(panel.log) if record.what is Happened.PLUGGED]
    assert len(plugged) == 1
    controller = PanelController(daemon.driver)
    for record in panel.log[plugged[0] + 1 :]:
        controller.take(record.data)
    assert controller.initialised
    assert controller.unknown == []


def test_rpi_gpio_and_an_sh1106(play: Play, rpi_gpio: dict[str, str]) -> None:
    """The same with `pin_factory = "rpigpio"` (rpi-lgpio stands in for RPi.GPIO) and the other controller.

    These pins give no stamps: an edge has the time at which Python was told of it, and a bounce shorter than
    that takes is not seen as one. So the contacts of this story do not bounce.
    """
    keys: dict[str, object] = {
        "stations.pin_factory": "rpigpio",
        "display": [{"driver": "sh1106", "bus": 1, "address": 0x3C}],
    }
    played, daemon = play(OURS / "round.jsonl", keys, same=200 * MILLISECOND, environment=rpi_gpio)
    assert any("on rpigpio" in line for line in daemon.said)
    assert played.ok, str(played)
    assert played.judged == 4


def test_the_player_sees_a_table_that_is_wrong(
    tmp_path: Path, chip: SimulatedChip, panel: PanelWire, table: Callable[..., TableDaemon]
) -> None:
    """A table with other rules than the story's is found out, by events, lamps and screen."""
    story = tmp_path / "story.jsonl"
    story.write_text(
        '{"at": 0.5, "press": {"seat": 1, "button": "pen"}}\n'
        '{"at": 0.7, "press": {"seat": 2, "button": "pen"}}\n'
        '{"at": 1.0, "press": {"seat": 1, "button": "pen"}}\n'
        '{"at": 1.2, "press": {"seat": 2, "button": "pen"}}\n'
        '{"at": 2.0, "press": {"seat": 1, "button": "pen"}}\n'
        '{"at": 2.4, "press": {"seat": 2, "button": "page"}}\n'
        '{"at": 2.6, "expect": {"event": "round_revealed", "winners": [1]}}\n'
        '{"at": 2.6, "expect": {"screen": "reveal"}}\n'
        '{"at": 2.6, "expect": {"lamp": {"seat": 1, "pattern": "won"}}}\n'
        '{"at": 2.6, "expect": {"lamp": {"seat": 2, "pattern": "taken"}}}\n'
        '{"at": 3.8, "end": true}\n'
    )
    # Here pen loses to page, and seat 3 is the one that wins nothing.
    daemon = table({"ahyoheek.cycle": "pen-beetle-page"})
    played = StoryPlayer(read(story), chip, panel, daemon).play()
    assert played.differences
    assert any("'round_revealed'" in line for line in played.failures)
    assert any("lamp 1 is lit" in line for line in played.failures)
    assert any("panel shows a picture" in line for line in played.failures)
