"""The panel on its wire: what is sent, what is not, and how an outage begins and ends.

Luma's real drivers run here, over its real I2C interface, on a bus that we make fail.
"""

from __future__ import annotations

import atexit
import errno
import sys
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image

from heek.clock import SECOND
from heek.display.drawing import draw
from heek.display.oled import LONGEST_RETRY, LumaPanel, Oled, Panel, open_luma
from heek.errors import PanelError
from tests.display.catalogue import screen_of

pytestmark = pytest.mark.filterwarnings("ignore:Image.Image.getdata is deprecated")

DISPLAY_OFF, DISPLAY_ON, NOP = 0xAE, 0xAF, 0xE3


class Bus:
    """An SMBus that keeps what is written, and fails with `error` while that is set."""

    def __init__(self) -> None:
        self.error: OSError | None = None
        self.fails_after: int | None = None
        self.commands: list[tuple[int, ...]] = []
        self.data = bytearray()

    def write_i2c_block_data(self, address: int, register: int, block: list[int]) -> None:
        assert address == 0x3C
        assert len(block) <= 32
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                raise OSError(errno.EREMOTEIO, "Remote I/O error")
        if self.error is not None:
            raise self.error
        if register == 0x40:
            self.data += bytes(block)
        else:
            self.commands.append(tuple(block))

    def forget(self) -> None:
        """Start a new record."""
        self.commands.clear()
        self.data.clear()


def on(bus: Bus) -> Callable[[str, int, int, int], Panel]:
    """Opens luma's device on `bus`."""
    from luma.core.interface.serial import i2c

    return lambda driver, _bus, address, rotate: LumaPanel(driver, i2c(bus=bus, address=address), rotate)


def packed(image: Image.Image) -> bytes:
    """The 1,024 bytes that a page-addressed controller needs for `image`: columns of 8 dots, low bit up."""
    dots: Any = image.load()
    return bytes(
        sum((dots[x, 8 * page + bit] > 0) << bit for bit in range(8)) for page in range(8) for x in range(128)
    )


THROW, REVEAL = draw(screen_of("throw")), draw(screen_of("reveal"))
CONTROLLERS = ["ssd1306", "ssd1309", "sh1106"]


@pytest.mark.parametrize("driver", CONTROLLERS)
def test_first_frame_opens_initialises_and_sends(driver: str) -> None:
    """Proves that nothing touches the bus before there is something to show, then all that is needed."""
    bus = Bus()
    oled = Oled(driver, open_device=on(bus))
    assert bus.commands == []
    assert oled.show(THROW, 0).ok
    assert bus.commands[0] == (NOP,)
    assert bus.commands[1][0] == DISPLAY_OFF
    assert (DISPLAY_ON,) in bus.commands
    assert bytes(bus.data[-1024:]) == packed(THROW)
    assert oled.frames_sent == 1


@pytest.mark.parametrize("driver", CONTROLLERS)
def test_an_unchanged_picture_sends_nothing(driver: str) -> None:
    """Proves that the same dots, be it in another object, cause not one byte on the wire."""
    bus = Bus()
    oled = Oled(driver, open_device=on(bus))
    oled.show(THROW, 0)
    bus.forget()
    oled.show(THROW, SECOND)
    oled.show(THROW.copy(), 2 * SECOND)
    assert (bus.commands, bytes(bus.data)) == ([], b"")
    oled.show(REVEAL, 3 * SECOND)
    assert bytes(bus.data) == packed(REVEAL)
    assert oled.frames_sent == 2


def test_rotate_two_turns_the_picture() -> None:
    """Proves that a panel mounted upside down gets the picture turned by 180 degrees."""
    bus = Bus()
    Oled("ssd1306", rotate=2, open_device=on(bus)).show(THROW, 0)
    assert bytes(bus.data[-1024:]) == packed(THROW.transpose(Image.Transpose.ROTATE_180))


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
def test_a_lost_panel_is_told_once_with_a_remedy(driver: str, error: OSError, words: str) -> None:
    """Proves that each way to fail ends in one line with a remedy, one status object for the whole outage."""
    bus = Bus()
    oled = Oled(driver, open_device=on(bus))
    oled.show(THROW, 0)
    bus.error = error
    first = oled.show(REVEAL, SECOND)
    assert not first.ok
    assert words in first.text
    assert "\n" not in first.text
    assert oled.show(THROW, 10 * SECOND) is first
    assert oled.failures == 2
    assert oled.last_image is THROW


def test_back_off_doubles_to_its_ceiling() -> None:
    """Proves the waits 1, 2, 4, 8, 16, 30, 30 s, and that between them the bus is left alone."""
    bus = Bus()
    bus.error = OSError(errno.EREMOTEIO, "x")
    oled = Oled(open_device=on(bus))
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
def test_coming_back_is_a_full_start(driver: str) -> None:
    """Proves that after an outage the whole initialisation and the whole current frame are sent."""
    bus = Bus()
    oled = Oled(driver, open_device=on(bus))
    oled.show(THROW, 0)
    start = list(bus.commands)
    bus.error = OSError(errno.EREMOTEIO, "x")
    lost = oled.show(REVEAL, SECOND)
    bus.error = None
    bus.forget()
    assert oled.show(THROW, 2 * SECOND - 1) is lost
    back = oled.show(THROW, 2 * SECOND)
    assert (back.ok, back.text, back.since) == (True, "", 2 * SECOND)
    assert bus.commands == start
    assert bytes(bus.data[-1024:]) == packed(THROW)
    assert oled.retry_at is None


def test_the_same_picture_is_sent_after_an_outage() -> None:
    """Proves that a picture that broke off half way is not taken for one that arrived."""
    bus = Bus()
    oled = Oled("ssd1306", open_device=on(bus))
    oled.show(THROW, 0)
    bus.fails_after = 10
    assert not oled.show(REVEAL, SECOND).ok
    bus.fails_after = None
    bus.forget()
    assert oled.show(REVEAL, 2 * SECOND).ok
    assert bytes(bus.data[-1024:]) == packed(REVEAL)


def test_a_good_spell_resets_the_back_off() -> None:
    """Proves that a new outage starts again with 1 s and is told again."""
    bus = Bus()
    oled = Oled(open_device=on(bus))
    bus.error = OSError(errno.EREMOTEIO, "x")
    first = oled.show(THROW, 0)
    oled.show(THROW, SECOND)
    bus.error = None
    oled.show(THROW, 3 * SECOND)
    bus.error = OSError(errno.EIO, "x")
    second = oled.show(REVEAL, 9 * SECOND)
    assert oled.retry_at == 10 * SECOND
    assert second is not first
    assert second.since == 9 * SECOND


@pytest.mark.parametrize("fails_after", range(0, 60, 7))
def test_a_failure_anywhere_in_the_start_is_survived(fails_after: int) -> None:
    """Proves that whichever write of the initialisation fails, the next try starts from the beginning."""
    bus = Bus()
    bus.fails_after = fails_after
    oled = Oled("sh1106", open_device=on(bus))
    status = oled.show(THROW, 0)
    bus.fails_after = None
    bus.forget()
    assert oled.show(THROW, SECOND).ok
    assert status.ok or bus.commands[0] == (NOP,)


def test_a_month_of_outage_leaves_no_devices_behind() -> None:
    """Proves that tries at an absent panel register no exit hooks, and that dropped devices are empty."""
    bus = Bus()
    opened: list[LumaPanel] = []

    def remembering(*args: Any) -> Panel:
        panel = on(bus)(*args)
        assert isinstance(panel, LumaPanel)
        opened.append(panel)
        return panel

    oled = Oled(open_device=remembering)
    oled.show(THROW, 0)
    bus.error = OSError(errno.EREMOTEIO, "x")
    hooks = atexit._ncallbacks()
    now = SECOND
    for _ in range(100):
        oled.show(REVEAL, now)
        now = oled.retry_at or now
    assert atexit._ncallbacks() == hooks
    assert set(vars(opened[0].device)) == {"cleanup"}
    bus.error = None
    bus.forget()
    opened[0].device.cleanup()
    assert bus.commands == []


def test_closing_makes_the_panel_dark_and_never_raises() -> None:
    """Proves that close blanks and may be repeated, and that a dead bus does not stop it."""
    bus = Bus()
    oled = Oled("ssd1306", open_device=on(bus))
    oled.close()
    oled.show(THROW, 0)
    bus.forget()
    oled.close()
    assert bytes(bus.data) == bytes(1024)
    oled.close()
    oled.show(THROW, SECOND)
    bus.error = OSError(errno.EIO, "x")
    oled.clear()
    oled.close()


def test_a_cleared_panel_is_lit_again_by_the_same_picture() -> None:
    """Proves that clear is remembered: what was shown before it is sent again."""
    bus = Bus()
    oled = Oled("ssd1306", open_device=on(bus))
    oled.show(THROW, 0)
    oled.clear()
    bus.forget()
    oled.show(THROW, SECOND)
    assert bytes(bus.data) == packed(THROW)


def test_renew_builds_the_panel_anew() -> None:
    """Proves that a panel which silently lost its power can be given its settings again."""
    bus = Bus()
    oled = Oled("ssd1306", open_device=on(bus))
    oled.show(THROW, 0)
    start = list(bus.commands)
    bus.forget()
    oled.renew()
    assert oled.show(THROW, SECOND).ok
    assert bus.commands == start


def test_a_missing_bus_names_itself() -> None:
    """Proves that without /dev/i2c-N the real opener fails with that name and how to switch I2C on."""
    status = Oled("ssd1306", bus=97).show(THROW, 0)
    assert "there is no /dev/i2c-97" in status.text
    assert "dtparam=i2c_arm=on" in status.text


def test_a_missing_library_is_a_status_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves that luma that cannot be imported does not stop the table."""
    monkeypatch.setitem(sys.modules, "luma.core.interface.serial", None)
    status = Oled("ssd1306").show(THROW, 0)
    assert "install heek with its dependencies again" in status.text


def test_dummy_keeps_the_picture() -> None:
    """Proves that the dummy takes one-bit pictures and needs no bus."""
    panel = open_luma("dummy", 1, 0x3C, 0)
    panel.display(THROW)
    assert isinstance(panel, LumaPanel)
    assert panel.device.image.tobytes() == THROW.tobytes()
    assert Oled("dummy").show(THROW, 0).ok


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
