"""The panel on its wire: what is sent, what is not, and how an outage begins and ends.

Luma's real drivers run here, over its real I2C interface and under smbus2's name, on a bus that we make
fail; a controller that knows nothing of ours reads along and says what its glass shows.
"""

from __future__ import annotations

import atexit
import errno
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from heek.clock import SECOND
from heek.display.drawing import draw
from heek.display.oled import BRIGHT, DIM, LONGEST_RETRY, I2cBuses, LumaPanel, Oled, Panel, open_luma
from heek.errors import PanelError
from tests.display.catalogue import moments, screen_of
from tests.display.wire import DISPLAY_OFF, DISPLAY_ON, NOP, Module

pytestmark = pytest.mark.filterwarnings("ignore:Image.Image.getdata is deprecated")

THROW, REVEAL = draw(screen_of("throw")), draw(screen_of("reveal"))
DARK = Image.new("1", (128, 64))
CONTROLLERS = ["ssd1306", "ssd1309", "sh1106"]


def shows(module: Module, picture: Image.Image, *, turned: bool = False) -> bool:
    """Does the glass show `picture` to the dot?"""
    wanted = picture.transpose(Image.Transpose.ROTATE_180) if turned else picture
    return module.controller.picture().tobytes() == wanted.tobytes()


@pytest.fixture
def module(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Module:
    """A module on bus 1 at 0x3c, of the test's `driver` if it has one."""
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    return Module(parameters.get("driver", "ssd1306")).plug_in(monkeypatch)


@pytest.mark.parametrize("driver", CONTROLLERS)
def test_first_frame_opens_initialises_and_sends(driver: str, module: Module) -> None:
    """Proves that nothing touches the bus before there is something to show, then all that is needed."""
    oled = Oled(driver)
    assert (module.opened, module.sent) == (0, [])
    assert oled.show(THROW, 0).ok
    assert module.sent[0] == (0, NOP)
    assert module.sent[1][:2] == (0, DISPLAY_OFF)
    assert (0, DISPLAY_ON) in module.sent
    assert shows(module, THROW)
    assert oled.frames_sent == 1


@pytest.mark.parametrize("driver", CONTROLLERS)
def test_an_unchanged_picture_sends_nothing(driver: str, module: Module) -> None:
    """Proves that the same dots, be it in another object, cause not one byte on the wire."""
    oled = Oled(driver)
    oled.show(THROW, 0)
    module.forget()
    oled.show(THROW, SECOND)
    oled.show(THROW.copy(), 2 * SECOND)
    assert (module.messages, module.data_bytes, module.command_bytes) == (0, 0, 0)
    oled.show(REVEAL, 3 * SECOND)
    assert shows(module, REVEAL)
    assert oled.frames_sent == 2


@pytest.mark.parametrize("rotate", [0, 2])
@pytest.mark.parametrize("driver", CONTROLLERS)
def test_the_glass_shows_every_picture_after_every_other(driver: str, rotate: int, module: Module) -> None:
    """Proves through all golden screens, one after the other, that what was sent is what was drawn."""
    oled = Oled(driver, rotate=rotate)
    for name in moments():
        picture = draw(screen_of(name))
        assert oled.show(picture, 0).ok
        assert shows(module, picture, turned=rotate == 2), name
    assert module.opened == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EREMOTEIO, "x"), "OLED on i2c-1 at 0x3c does not answer (errno 121"),
        (OSError(errno.EIO, "x"), "does not answer (errno 5"),
        (TimeoutError(errno.ETIMEDOUT, "x"), "does not answer (errno 110"),
        (PermissionError(errno.EACCES, "x"), "add the table's user to the group i2c"),
    ],
)
@pytest.mark.parametrize("driver", CONTROLLERS)
def test_a_lost_panel_is_told_once_with_a_remedy(
    driver: str, error: OSError, words: str, module: Module
) -> None:
    """Proves that each way to fail ends in one line with a remedy, one status object for the whole outage."""
    oled = Oled(driver)
    oled.show(THROW, 0)
    module.error = error
    first = oled.show(REVEAL, SECOND)
    assert not first.ok
    assert words in first.text
    assert "\n" not in first.text
    assert oled.show(THROW, 10 * SECOND) is first
    assert oled.failures == 2
    assert oled.last_image is THROW


def test_back_off_doubles_to_its_ceiling(module: Module) -> None:
    """Proves the waits 1, 2, 4, 8, 16, 30, 30 s, and that between them the bus is left alone."""
    module.error = OSError(errno.EREMOTEIO, "x")
    oled = Oled()
    now, waits = 0, []
    for _ in range(7):
        oled.show(THROW, now)
        assert oled.retry_at is not None
        tries = oled.failures
        oled.show(REVEAL, oled.retry_at - 1)
        assert oled.failures == tries
        waits.append((oled.retry_at - now) // SECOND)
        now = oled.retry_at
    assert waits == [1, 2, 4, 8, 16, 30, 30]
    assert LONGEST_RETRY == 30 * SECOND


@pytest.mark.parametrize("driver", CONTROLLERS)
def test_coming_back_is_a_full_start(driver: str, module: Module) -> None:
    """Proves that a panel that was without power gets all its settings and the whole picture."""
    oled = Oled(driver)
    oled.show(THROW, 0)
    module.error = OSError(errno.EREMOTEIO, "x")
    lost = oled.show(REVEAL, SECOND)
    module.error = None
    module.controller.power_on()
    module.forget()
    assert oled.show(THROW, 2 * SECOND - 1) is lost
    back = oled.show(THROW, 2 * SECOND)
    assert (back.ok, back.text, back.since) == (True, "", 2 * SECOND)
    assert module.sent[:2][1][1] == DISPLAY_OFF
    assert shows(module, THROW)
    assert oled.retry_at is None


@pytest.mark.parametrize("fails_after", range(0, 40))
@pytest.mark.parametrize("driver", ["ssd1306", "sh1106"])
def test_a_failure_anywhere_leaves_no_half_belief(driver: str, fails_after: int, module: Module) -> None:
    """Proves that wherever start, frame or difference break off, the next try ends with the whole picture."""
    oled = Oled(driver)
    module.fails_after = fails_after
    oled.show(THROW, 0)
    oled.show(REVEAL, SECOND // 2)
    broke_off = oled.failures > 0
    module.fails_after = None
    assert oled.show(REVEAL, SECOND + SECOND // 2).ok
    assert shows(module, REVEAL)
    assert oled.show(THROW, 2 * SECOND).ok
    assert shows(module, THROW)
    assert broke_off is (module.opened > 1)


def test_a_panel_goes_on_with_a_whole_frame_after_a_failed_difference(
    module: Module,
) -> None:
    """Proves the same of the panel by itself, should somebody go on with it after an error."""
    panel = open_luma("ssd1306", 1, 0x3C, 0)
    panel.display(THROW)
    module.fails_after = 5
    with pytest.raises(OSError, match="Remote I/O"):
        panel.display(REVEAL)
    module.fails_after = None
    panel.display(THROW)
    assert shows(module, THROW)


def test_a_good_spell_resets_the_back_off(module: Module) -> None:
    """Proves that a new outage starts again with 1 s and is told again."""
    oled = Oled()
    module.error = OSError(errno.EREMOTEIO, "x")
    first = oled.show(THROW, 0)
    oled.show(THROW, SECOND)
    module.error = None
    oled.show(THROW, 3 * SECOND)
    module.error = OSError(errno.EIO, "x")
    second = oled.show(REVEAL, 9 * SECOND)
    assert oled.retry_at == 10 * SECOND
    assert second is not first
    assert second.since == 9 * SECOND


def test_a_month_of_outage_leaves_no_devices_behind(module: Module) -> None:
    """Proves that tries at an absent panel leave no exit hooks, no open bus and no full devices."""
    opened: list[LumaPanel] = []

    def remembering(*args: Any) -> Panel:
        panel = open_luma(*args)
        assert isinstance(panel, LumaPanel)
        opened.append(panel)
        return panel

    oled = Oled(open_device=remembering)
    oled.show(THROW, 0)
    module.error = OSError(errno.EREMOTEIO, "x")
    hooks = atexit._ncallbacks()
    now = SECOND
    for _ in range(100):
        oled.show(REVEAL, now)
        now = oled.retry_at or now
    assert atexit._ncallbacks() == hooks
    assert module.closed == module.opened
    assert set(vars(opened[0].device)) == {"cleanup"}
    module.error = None
    module.forget()
    opened[0].device.cleanup()
    assert module.sent == []


@pytest.mark.parametrize("driver", CONTROLLERS)
def test_closing_makes_the_panel_dark_and_never_raises(driver: str, module: Module) -> None:
    """Proves that close blanks, gives the bus back, may be repeated, and survives a dead bus."""
    oled = Oled(driver)
    oled.close()
    oled.show(THROW, 0)
    oled.close()
    assert shows(module, DARK)
    assert (module.opened, module.closed) == (1, 1)
    oled.close()
    oled.show(THROW, SECOND)
    module.error = OSError(errno.EIO, "x")
    oled.clear()
    oled.close()


def test_a_cleared_panel_is_lit_again_by_the_same_picture(module: Module) -> None:
    """Proves that clear is remembered: what was shown before it is sent again."""
    oled = Oled("ssd1306")
    oled.show(THROW, 0)
    oled.clear()
    assert shows(module, DARK)
    oled.show(THROW, SECOND)
    assert shows(module, THROW)


@pytest.mark.parametrize("driver", CONTROLLERS)
def test_renew_builds_the_panel_anew(driver: str, module: Module) -> None:
    """Proves that a panel which silently lost its power can be given settings, light and picture again."""
    oled = Oled(driver)
    oled.show(THROW, 0, dimmed=True)
    start = [message for message in module.sent if message[0] == 0]
    module.controller.power_on()
    assert shows(module, DARK)
    module.forget()
    oled.renew()
    assert oled.show(THROW, SECOND, dimmed=True).ok
    assert [message for message in module.sent if message[0] == 0] == start
    assert shows(module, THROW)
    assert module.controller.contrast == DIM


@pytest.mark.parametrize("driver", CONTROLLERS)
def test_dimming_is_one_command_and_touches_no_dot(driver: str, module: Module) -> None:
    """Proves that contrast goes down and up by itself, once each, and that a start is bright."""
    oled = Oled(driver)
    oled.show(THROW, 0)
    assert module.controller.contrast == BRIGHT[driver]
    module.forget()
    oled.show(THROW, SECOND, dimmed=True)
    oled.show(THROW, 2 * SECOND, dimmed=True)
    assert (module.data_bytes, module.sent) == (0, [(0, 0x81, DIM)])
    oled.show(THROW, 3 * SECOND)
    assert module.controller.contrast == BRIGHT[driver]
    assert module.data_bytes == 0
    assert shows(module, THROW)


def test_a_panel_lost_while_dimmed_comes_back_as_it_should_be(module: Module) -> None:
    """Proves that the light of the moment is set after an outage, not the one from before."""
    oled = Oled()
    oled.show(THROW, 0, dimmed=True)
    module.error = OSError(errno.EREMOTEIO, "x")
    oled.show(REVEAL, SECOND, dimmed=True)
    module.error = None
    module.controller.power_on()
    oled.show(REVEAL, 2 * SECOND, dimmed=True)
    assert module.controller.contrast == DIM
    module.error = OSError(errno.EREMOTEIO, "x")
    oled.show(REVEAL, 3 * SECOND)
    module.error = None
    assert oled.show(REVEAL, 4 * SECOND).ok
    assert module.controller.contrast == BRIGHT["ssd1306"]


# What is told of a panel that is not where it should be


class Elsewhere(I2cBuses):
    """A machine with these buses, where these addresses answer."""

    def __init__(self, numbers: list[int], *answering: tuple[int, int]) -> None:
        self._numbers, self._answering = numbers, answering
        self.asked = 0

    def numbers(self) -> list[int]:
        return self._numbers

    def answers(self, bus: int, address: int) -> bool:
        self.asked += 1
        return (bus, address) in self._answering


def test_a_missing_bus_names_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves that without /dev/i2c-N the real opener fails with that name and how to switch I2C on."""
    monkeypatch.setattr(Path, "glob", lambda *_: iter(()))
    status = Oled("ssd1306", bus=97).show(THROW, 0)
    assert "there is no /dev/i2c-97" in status.text
    assert "dtparam=i2c_arm=on" in status.text


def test_a_missing_bus_names_those_that_are_there() -> None:
    """Proves that who counted the buses wrong is told which there are."""
    status = Oled("ssd1306", bus=97, buses=Elsewhere([0, 20])).show(THROW, 0)
    assert "there is no /dev/i2c-97: there is i2c-0, i2c-20: set bus in [[display]]" in status.text


def test_the_buses_of_this_machine_are_read_from_dev(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves that nodes are told by number and in order, and nothing else in /dev counts."""
    names = ["i2c-20", "i2c-1", "i2c-stub", "i2c-3"]
    monkeypatch.setattr(Path, "glob", lambda where, _: iter(where / name for name in names))
    assert I2cBuses().numbers() == [1, 3, 20]


@pytest.mark.parametrize(("wrong", "right"), [(0x3C, 0x3D), (0x3D, 0x3C)])
def test_a_panel_at_the_other_address_is_found(
    wrong: int, right: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves on the wire that a module with its jumper the other way is named with the key to set."""
    Module(address=right).plug_in(monkeypatch)
    status = Oled("ssd1306", address=wrong).show(THROW, 0)
    assert f"OLED on i2c-1 at 0x{wrong:02x} does not answer" in status.text
    assert (
        f"something answers at 0x{right:02x}: if that is the panel, set address in [[display]]" in status.text
    )
    assert Oled("ssd1306", address=right).show(THROW, 0).ok


def test_two_panels_are_not_told_to_swap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves that a panel that fails but still answers at its own address is a matter of wiring."""
    module = Module().plug_in(monkeypatch)
    module.fails_after = 3
    status = Oled("ssd1306", buses=Elsewhere([1], (1, 0x3C), (1, 0x3D))).show(THROW, 0)
    assert "check the wiring and `i2cdetect -y 1`" in status.text


def test_nobody_looks_round_more_than_once_an_outage(module: Module) -> None:
    """Proves that tries that follow the first one ask nothing of other devices."""
    module.error = OSError(errno.EREMOTEIO, "x")
    buses = Elsewhere([1])
    oled = Oled(buses=buses)
    for now in range(0, 100, 5):
        oled.show(THROW, now * SECOND)
    assert oled.failures > 3
    assert buses.asked == 1


def test_a_missing_library_is_a_status_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves that luma that cannot be imported does not stop the table."""
    monkeypatch.setitem(sys.modules, "luma.core.interface.serial", None)
    status = Oled("ssd1306").show(THROW, 0)
    assert "install heek with its dependencies again" in status.text


def test_dummy_keeps_the_picture() -> None:
    """Proves that the dummy takes one-bit pictures, needs no bus, and minds no dimming."""
    panel = open_luma("dummy", 1, 0x3C, 0)
    panel.display(THROW)
    assert isinstance(panel, LumaPanel)
    assert panel.device.image.tobytes() == THROW.tobytes()
    oled = Oled("dummy")
    assert oled.show(THROW, 0).ok
    assert oled.show(THROW, 0, dimmed=True).ok


def test_an_unknown_driver_is_refused() -> None:
    """Proves that a wrong driver is named together with those there are."""
    with pytest.raises(PanelError, match="“ssd1322” is not known: use one of ssd1306"):
        open_luma("ssd1322", 1, 0x3C, 0)


def test_a_wrong_picture_is_the_callers_fault() -> None:
    """Proves that a picture of another size or mode raises and is not mistaken for a broken panel."""
    oled = Oled("dummy")
    for wrong in (Image.new("1", (64, 128)), Image.new("L", (128, 64))):
        with pytest.raises(ValueError, match="mode 1 and 128 x 64"):
            oled.show(wrong, 0)
    assert oled.status.ok
