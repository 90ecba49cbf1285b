"""The plugin as its users meet it: pytest runs inside pytest, with files that they could have written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

import heek.testing.stories
from heek.cli import NOT_AS_EXPECTED, OK, main

assert heek.testing.stories, "loaded before a run inside this one, which forgets what it loaded"

SITS = 'table.seat(1).press("pen")'

STORY = """\
{"story": 1, "table": {"ahyoheek.countdown_s": 3}}
{"at": 1.0, "press": {"seat": 1, "button": "pen"}}
{"at": 1.0, "expect": {"event": "seat_taken", "seat": 1}}
{"at": 2.0, "end": true}
"""
FALSE_STORY = """\
{"at": 1.0, "press": {"seat": 1, "button": "pen"}}
{"at": 1.0, "expect": {"event": "seat_taken", "seat": 2}}
{"at": 1.0, "expect": {"screen": "lobby"}}
{"at": 2.0, "expect": {"lamp": {"seat": 1, "pattern": "won"}}}
{"at": 2.0, "end": true}
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest("-p", "no:cacheprovider", *arguments)


def test_a_test_passes_fails_and_errs(pytester: pytest.Pytester) -> None:
    """What holds passes, a false expectation fails, a wrong key is an error of one line."""
    pytester.makepyfile(
        f"""
        import pytest

        def test_holds(table):
            {SITS}
            assert table.expect(event="seat_taken")["seat"] == 1

        def test_fails(table):
            {SITS}
            table.expect(event="match_won", within=2)

        @pytest.mark.table({{"ahyoheek.countdwn_s": 3}})
        def test_errs(table):
            pass
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at setup of test_errs*",
            "*.py:11: ahyoheek.countdwn_s: unknown key; did you mean ahyoheek.countdown_s?",
            ">*table.expect(event=*",
            'E *.py:9: at 1 to 3 s: {"event": "match_won"} did not come; *: *seat_taken',
            "all events:",
            "     1     0.000000  table_started *",
            '     2     1.000000  seat_taken     seat=1  kind="guest"',
            "at 3.000 s, the test's time 3.000 s:",
            "lamps: 1 taken, 2 free, 3 free, 4 free, 5 free",
            "OLED: lobby",
            "the frame: *table-oled.png",
            "again as a story: heek simulate *table-story.jsonl",
        ]
    )
    said = result.stdout.str()
    assert "testing/table.py" not in said
    assert "During handling" not in said


def test_a_failure_keeps_frame_and_story(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any failure, of a plain assert too, leaves the frame and a story that shows the same again."""
    pytester.makepyfile(
        f"""
        def test_plain(table):
            {SITS}
            table.wait(1)
            assert table.lamp(1) == "won"

        def test_expected(table):
            {SITS}
            table.expect(screen="reveal")
        """
    )
    result = run(pytester, "--basetemp=kept")
    result.assert_outcomes(failed=2)
    for name, code in (("test_plain0", OK), ("test_expected0", NOT_AS_EXPECTED)):
        folder = pytester.path / "kept" / name
        with Image.open(folder / "table-oled.png") as frame:
            assert (frame.size, frame.mode) == ((128, 64), "1")
            assert frame.getbbox() is not None
        assert main(["simulate", str(folder / "table-story.jsonl")]) == code
        assert '"seat_taken"' in capsys.readouterr().out


def test_the_picture_is_drawn_on_demand(pytester: pytest.Pytester) -> None:
    """With -vv the OLED is drawn in half blocks, at most 128 x 32; without, and if it is dark, it is not."""
    pytester.makepyfile(
        f"""
        def test_lit(table):
            {SITS}
            assert table.screen == "off"

        def test_dark(table):
            table.power_cut()
            assert table.screen == "on"
        """
    )
    assert not re.search("[▀▄█]", run(pytester).stdout.str())
    said = run(pytester, "-vv").stdout.str()
    drawn = [line for line in said.splitlines() if re.search("[▀▄█]", line)]
    assert 10 < len(drawn) <= 32
    assert max(map(len, drawn)) <= 128
    assert "OLED: off, dark" in said


def test_long_evenings_show_their_end(pytester: pytest.Pytester) -> None:
    """Of many events the last twelve are shown, with their number."""
    pytester.makepyfile(
        """
        def test_busy(table):
            for seat in (1, 2, 3, 4, 5) * 4:
                table.seat(seat).press("pen")
                table.wait(0.2)
            table.expect(event="match_won")
        """
    )
    result = run(pytester)
    result.assert_outcomes(failed=1)
    shown = re.search(r"the last 12 of (\d+) events:\n((?: {2,}\d+ .*\n)+)", result.stdout.str())
    assert shown
    assert int(shown[1]) > 12
    assert len(shown[2].splitlines()) == 12


def test_configuration_comes_from_fixture_and_markers(pytester: pytest.Pytester) -> None:
    """The fixture's keys first, then the module's marker, then the class's, then the test's own."""
    pytester.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.table({"table.name": "module", "seats.lobby_s": 7}, seed=1)
        seen = {}

        @pytest.fixture
        def table_config():
            return {"table.name": "fixture", "ahyoheek.target": 2, "seats.lobby_s": 9}

        class TestIt:
            @pytest.mark.table({"table.name": "test"})
            def test_near(self, table):
                assert table.events[0]["name"] == "test"
                seen["near"] = table.events[0]["incarnation"]

            def test_far(self, table):
                assert table.events[0]["name"] == "module"
                seen["far"] = table.events[0]["incarnation"]
                assert '"ahyoheek.target": 2' in table.story
                assert '"seats.lobby_s": 7' in table.story

            @pytest.mark.table(seed=2)
            def test_seed(self, table):
                seen["seed"] = table.events[0]["incarnation"]

        def test_seeds():
            assert seen["near"] == seen["far"] != seen["seed"]
        """
    )
    run(pytester).assert_outcomes(passed=4)


@pytest.mark.parametrize("marker", ['table("x")', "table({}, {})", "table({}, sed=1)", "table(seed='x')"])
def test_a_marker_that_makes_no_sense_is_told(pytester: pytest.Pytester, marker: str) -> None:
    """A marker with anything but keys and a seed is an error that shows how to write it."""
    pytester.makepyfile(f"import pytest\n\n@pytest.mark.{marker}\ndef test_it(table):\n    pass\n")
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*::test_it: the marker table is not understood; write @pytest.mark.table(*"]
    )


MOD = """
    import pytest
    from dataclasses import replace
    from heek.daemon import Daemon

    class Counting(Daemon):
        wins = 0

    @pytest.fixture
    def heard():
        return []

    @pytest.fixture
    def table_daemon(heard):
        def build(config, world, loop):
            def on_line(line):
                world.on_line(line)
                heard.append(line)
                MISCHIEF
            return Counting(config, replace(world, on_line=on_line), loop)
        return build

    def test_mod(table, heard):
        table.seat(1).press("pen")
        END
"""


def test_a_mod_makes_its_own_daemon(pytester: pytest.Pytester) -> None:
    """A leaf of one's own hears every line that the table says, also after a power cut."""
    end = """table.wait(1)
        table.power_cut()
        table.wait(1)
        table.power_on()
        assert len(table.events) == len(heard) >= 3"""
    pytester.makepyfile(MOD.replace("MISCHIEF", "pass").replace("END", end))
    run(pytester).assert_outcomes(passed=1)


def test_what_a_mod_raises_is_shown(pytester: pytest.Pytester) -> None:
    """A mod's mistake comes out where the test looks, or at its end, with the mod's own line."""
    mischief = """if "seat_taken" in line:
                    raise LookupError("the mod is wrong")"""
    pytester.makepyfile(
        test_looks=MOD.replace("MISCHIEF", mischief).replace("END", "table.lamp(1)"),
        test_ends=MOD.replace("MISCHIEF", mischief).replace("END", "pass"),
    )
    result = run(pytester)
    result.assert_outcomes(failed=1, passed=1, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_mod*", ">*raise LookupError(*"])


def test_a_table_that_a_mod_broke_hides_nothing(pytester: pytest.Pytester) -> None:
    """Where a mod broke what is shown after a failure, the failure itself is still told."""
    pytester.makepyfile(
        """
        import pytest
        from heek.daemon import Daemon

        class Blind(Daemon):
            broken = False

            @property
            def image(self):
                if self.broken:
                    raise LookupError("no picture")
                return super().image

        @pytest.fixture
        def table_daemon():
            return Blind

        def test_it(table, monkeypatch):
            assert table.screen == "attract"
            monkeypatch.setattr(Blind, "broken", True)
            table.expect(screen="lobby")
        """
    )
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *: the screen is attract, expected lobby",
            "the table cannot be shown any more: LookupError('no picture')",
        ]
    )


def test_a_failure_in_a_fixture_is_shown_too(pytester: pytest.Pytester) -> None:
    """A fixture that seats players and expects what does not come shows the table as a test does."""
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def seated(table):
            table.seat(1).press("pen")
            table.expect(event="match_started")
            return table

        def test_it(seated):
            pass
        """
    )
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*match_started*did not come*", "lamps: 1 taken, *", "OLED: lobby"])


def test_a_set_up_that_fails_harms_nobody(pytester: pytest.Pytester) -> None:
    """200 tests claim the same pins, some fail in the midst of set-up, in any order, in parallel."""
    pytester.makepyfile(
        """
        import random
        import pytest
        from heek.daemon import Daemon

        NUMBERS = list(range(200))
        random.Random(7).shuffle(NUMBERS)

        class Broken(Daemon):
            def __init__(self, config, world, loop):
                super().__init__(config, world, loop)
                raise LookupError("half-way through set-up")

        @pytest.fixture
        def number(request):
            return request.param

        @pytest.fixture
        def table_daemon(number):
            return Broken if number % 50 == 7 else Daemon

        @pytest.mark.parametrize("number", NUMBERS, indirect=True)
        def test_table(table, number):
            table.seat(number % 5 + 1).press("pen")
            assert [event["event"] for event in table.events] == ["table_started", "seat_taken"]
        """
    )
    run(pytester, "-n", "2").assert_outcomes(passed=196, failed=4)


def test_a_leak_is_an_error_of_who_leaves_it(pytester: pytest.Pytester) -> None:
    """A thread that runs on, and gpiozero's factory for everybody, are told at the test that left them."""
    pytester.makepyfile(
        """
        import threading
        import gpiozero
        from gpiozero.pins.mock import MockFactory

        ends = threading.Event()

        def test_thread(table):
            threading.Thread(target=ends.wait, name="mine", daemon=True).start()

        def test_factory(table):
            gpiozero.Device.pin_factory = MockFactory()

        def test_clean(table):
            ends.set()
            assert gpiozero.Device.pin_factory is None
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=3, errors=2)
    result.stdout.fnmatch_lines(
        [
            "thread 'mine' still runs; end it before the test does",
            "gpiozero.Device.pin_factory is another one; give devices theirs by pin_factory=",
        ]
    )


def test_an_async_test_is_told(pytester: pytest.Pytester) -> None:
    """A table cannot be played inside another event loop, and says so."""
    pytester.makepyfile(
        """
        import asyncio

        def test_it(table):
            async def body():
                return table.screen
            asyncio.run(body())
        """
    )
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *write this test as a plain function, not async"])


# Stories


def test_stories_are_tests(pytester: pytest.Pytester) -> None:
    """Listed stories are collected, others are not; each false expectation is told with file and line."""
    pytester.makeini("[pytest]\nheek_stories = stories/*.jsonl")
    pytester.makepyfile(test_other="def test_other(): pass")
    folder = pytester.mkdir("stories")
    (folder / "good.jsonl").write_text(STORY)
    (folder / "false.jsonl").write_text(FALSE_STORY)
    (pytester.path / "unlisted.jsonl").write_text(FALSE_STORY)
    result = run(pytester, "-v")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "stories/false.jsonl::false FAILED*",
            "stories/good.jsonl::good PASSED*",
            'stories/false.jsonl:2: at 1 s: {"event": "seat_taken", "seat": 2} did not come; *: *seat_taken',
            "stories/false.jsonl:4: at 2 s: lamp 1 is taken, expected won",
            "all events:",
            '     2     1.000000  seat_taken     seat=1  kind="guest"',
            "see it: heek simulate stories/false.jsonl --frames FOLDER",
        ]
    )
    assert "stories.py" not in result.stdout.str()


def test_a_story_as_an_argument_is_a_test(pytester: pytest.Pytester) -> None:
    """A story that nobody lists is played if it is named on the command line."""
    (pytester.path / "mine.jsonl").write_text(STORY)
    run(pytester, "mine.jsonl").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"at": 1, "pres": {}}\n', 'mine.jsonl:1: unknown key "pres"; did you mean "press"?'),
        ('{"at": 1, "end": true}\n', "mine.jsonl: the story expects nothing, so it proves nothing; *"),
        (
            '{"at": 1, "claim": {"seat": 1, "player": "40220173", "name": "S"}}\n'
            '{"at": 2, "expect": {"screen": "lobby"}}\n',
            "mine.jsonl:1: seat 1 is empty and cannot be claimed; *",
        ),
    ],
)
def test_a_story_that_proves_nothing_fails(pytester: pytest.Pytester, text: str, told: str) -> None:
    """A story with a mistake, one that is refused and one without an expectation fail, by one line."""
    (pytester.path / "mine.jsonl").write_text(text)
    result = run(pytester, "mine.jsonl")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([told])
    assert "Traceback" not in result.stdout.str()


def test_a_pattern_without_a_story_is_refused(pytester: pytest.Pytester) -> None:
    """A misspelt folder would silently play nothing; the run does not begin."""
    pytester.makeini("[pytest]\nheek_stories = storys/*.jsonl")
    result = run(pytester)
    assert result.ret is pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: heek_stories: no file is called storys/[*].jsonl in *"])


# Kinds of tables


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("sin", "ERROR: --table=sin: there is no such kind of table; did you mean sim?"),
        ("wood", "ERROR: --table=wood: there is no such kind of table; take sim"),
        ("virtual-pi", "ERROR: --table=virtual-pi: no virtual Pi is at hand; *pytest_heek_level*"),
    ],
)
def test_a_table_that_is_not_there_is_refused(pytester: pytest.Pytester, name: str, told: str) -> None:
    """The run does not begin on a kind of table that nobody has, rather than on the simulator."""
    pytester.makepyfile("def test_it(table): pass")
    result = run(pytester, f"--table={name}")
    assert result.ret is pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([told])


def test_another_kind_of_table_joins_by_the_hook(pytester: pytest.Pytester) -> None:
    """A level of one's own plays words and stories; what it cannot do is skipped, told and counted."""
    pytester.makeconftest(
        """
        from heek.simulator.steps import Power
        from heek.testing.rig import NotHere
        from heek.testing.simulated import SimulatedLevel, SimulatedRig

        class Wooden(SimulatedRig):
            def add(self, step):
                if isinstance(step, Power):
                    raise NotHere("has no switch for its power")
                super().add(step)

        class WoodenLevel(SimulatedLevel):
            def open(self, setup):
                if "table.name" in setup.keys:
                    raise NotHere("has its name carved in")
                return Wooden(setup)

        def pytest_heek_level(name, config):
            return WoodenLevel() if name == "wood" else None
        """
    )
    pytester.makepyfile(
        test_wood="""
        import pytest

        def test_sits(table):
            table.seat(1).press("pen")
            table.expect(lamp=1, pattern="taken")

        @pytest.mark.parametrize("n", range(2))
        def test_cut(table, n):
            table.power_cut()
            assert False

        @pytest.mark.table({"table.name": "Gahreesen"})
        def test_name(table):
            assert False
        """
    )
    (pytester.path / "ki.jsonl").write_text(
        '{"at": 1, "ki": "down"}\n{"at": 1, "expect": {"screen": "attract"}}\n'
    )
    result = run(pytester, "--table=wood", "-rs", "-n", "2", "test_wood.py", "ki.jsonl")
    result.assert_outcomes(passed=2, skipped=3)
    result.stdout.fnmatch_lines(
        [
            "*= not on --table=wood =*",
            "   1 x has its name carved in",
            "   2 x has no switch for its power",
            "   1 x ki.jsonl:1: skipped: ki: this table has no link to a KI",
            "SKIPPED *--table=wood has no switch for its power*",
        ]
    )


def test_a_link_to_the_ki_is_skipped_where_there_is_none(pytester: pytest.Pytester) -> None:
    """A simulated table without `ki.link`: a test that takes the link down is skipped, not passed."""
    pytester.makepyfile("def test_it(table):\n    table.ki_down()\n    assert False")
    result = run(pytester)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*= not on --table=sim =*", "   1 x has no link to a KI (ki.link)"])


def test_a_link_to_the_ki_goes_down_and_up(pytester: pytest.Pytester) -> None:
    """With `ki.link` a test takes the simulated KI away and brings it back, and the OLED says so."""
    pytester.makepyfile(
        """
        import pytest
        from heek.display.font import rendered

        def says(image, text):
            words = rendered(text)
            places = ((x, y) for y in range(64 - words.height) for x in range(128 - words.width))
            return any(
                image.crop((x, y, x + words.width, y + words.height)).tobytes() == words.tobytes()
                for x, y in places
            )

        @pytest.mark.table({"ki.link": "http", "ki.url": "http://ki.example"})
        def test_it(table):
            table.wait(1)
            table.seat(1).press("pen")
            table.wait(1)
            assert says(table.image, "KI: up")
            table.ki_down()
            table.wait(400)
            table.seat(1).press("pen")
            table.wait(1)
            assert says(table.image, "KI: no link")
            table.ki_up()
            table.wait(2)
            assert says(table.image, "KI: up")
        """
    )
    run(pytester).assert_outcomes(passed=1)


def test_the_plugin_is_light(tmp_path: Path) -> None:
    """Whoever has heek installed runs other tests without loading a table: no daemon, gpiozero or Pillow."""
    heavy = ("heek.daemon", "heek.simulator", "gpiozero", "luma", "PIL", "sqlite3", "asyncio")
    program = (
        "import sys, pytest\n"
        f"before = set(sys.modules)\n"
        "import heek.testing.plugin, heek.testing.hooks\n"
        f"print(sorted(set({heavy}) & (set(sys.modules) - before)))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"
