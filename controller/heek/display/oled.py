"""The OLED on its wire: opens the panel, sends what changed, and survives that it is lost.

A panel is opened when there is first something to show. luma builds it up and carries its bytes; what is
sent after that is ours: `memory_diff` says which writes bring the panel's memory from one picture to the
next. What is believed to be in that memory is forgotten before the first write and known again after the
last, so a failure in between leaves no half belief, and after any start the whole frame is sent.

Any failure drops the panel; it is tried again after 1 s, then twice as long each time up to 30 s. A panel
that was gone may have lost power and with it all settings, so coming back means building it anew, full
initialisation and full frame. None of this reaches the game: `show` never raises for a panel, it says how
things stand in `status`. At the start of an outage, and only then, it looks round for the usual mix-ups: a
panel that answers at its other address, buses that are there under other numbers.

All methods but reading the public attributes belong on one worker thread: a full frame takes 25 to 100 ms
on the wire, and a stalled bus far longer.
"""

from __future__ import annotations

import errno as errno_names
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

from PIL import Image

from heek.clock import SECOND, Duration, Instant
from heek.display.memory_diff import PLANS
from heek.display.panel_memory import SIZE_PX, packed
from heek.errors import PanelError

FIRST_RETRY: Final[Duration] = SECOND
LONGEST_RETRY: Final[Duration] = 30 * SECOND
DRIVERS: Final = ("ssd1306", "ssd1309", "sh1106", "dummy")
OTHER_ADDRESS: Final = {0x3C: 0x3D, 0x3D: 0x3C}
"""What one resistor, or one jumper, on the back of a module makes of its address."""

BRIGHT: Final = {"ssd1306": 0xCF, "ssd1309": 0xCF, "sh1106": 0x7F}
"""Contrast that luma gives each controller at its start, 0 to 255."""
DIM: Final = 0x10
"""Contrast of a table where nobody plays: well below half the light, and read from across the table."""

_NOP: Final = 0xE3
"""A command that changes nothing, on all three controllers: it asks whether the panel is there."""


class Panel(Protocol):
    """A panel that answers, bright from its start; all methods may raise OSError or luma's errors."""

    def display(self, image: Image.Image) -> None:
        """Show one picture, mode "1", 128 x 64."""

    def dim(self, dimmed: bool) -> None:
        """Shine with little light, or as usual again."""

    def close(self) -> None:
        """Give the bus back; sends nothing."""


OpenDevice = Callable[[str, int, int, int], Panel]
"""Opens a panel from driver, bus, address and rotate; sends the whole initialisation."""


@dataclass(frozen=True, slots=True)
class PanelStatus:
    """How the panel stands: one value for each outage, so a change is what is worth reporting."""

    ok: bool
    text: str = ""
    """What is wrong and what to do, in one line; empty while all is well."""
    since: Instant = 0


class LumaPanel:
    """A device of luma.oled, kept on a short lead.

    luma registers a hook that blanks the device when Python exits and keeps it alive until then: with a
    device for each try that would be 100 kB a try for ever. So the device is asked for before it is built,
    and emptied when it is dropped.
    """

    def __init__(self, driver: str, serial: Any, rotate: int) -> None:
        """Send the initialisation over `serial`, an interface of luma.core.

        Raises what the bus raises; `serial` is closed then.
        """
        module = import_module("luma.core.device" if driver == "dummy" else "luma.oled.device")
        device_class: Any = getattr(module, driver)
        self._serial = serial
        self._driver, self._rotate = driver, rotate
        self._plan = PLANS.get(driver)
        self._memory: bytes | None = None
        self.device: Any = device_class.__new__(device_class)
        try:
            serial.command(_NOP)
            if driver == "dummy":
                device_class.__init__(self.device, *SIZE_PX, rotate=rotate, mode="1", serial_interface=serial)
            else:
                device_class.__init__(self.device, serial, *SIZE_PX, rotate=rotate)
        except BaseException:
            self.close()
            raise

    def display(self, image: Image.Image) -> None:
        """Send what differs from the picture before; all of it after the start and after a failure."""
        if self._plan is None:
            self.device.display(image)
            return
        wanted = packed(image, self._rotate)
        writes = self._plan(self._memory, wanted)
        self._memory = None
        for command, data in writes:
            # What the device's own `command` and `data` hand on to, with dozens of calls less a frame.
            self._serial.command(*command)
            self._serial.data(data)
        self._memory = wanted

    def dim(self, dimmed: bool) -> None:
        if self._plan is not None:
            self.device.contrast(DIM if dimmed else BRIGHT[self._driver])

    def close(self) -> None:
        """Give the bus back, and leave luma's hook nothing to do and next to nothing to keep."""
        vars(self.device).clear()
        self.device.cleanup = _nothing
        self._serial.cleanup()


def open_luma(driver: str, bus: int, address: int, rotate: int) -> Panel:
    """Open a panel on I2C bus `bus` at `address` (0x08 to 0x77), turned by `rotate` quarters (0 or 2).

    Raises PanelError for a driver that we do not know, else what luma and the bus raise.
    """
    if driver not in DRIVERS:
        raise PanelError(f"display driver “{driver}” is not known: use one of {', '.join(DRIVERS)}")
    interfaces = import_module("luma.core.interface.serial")
    serial = interfaces.noop() if driver == "dummy" else interfaces.i2c(port=bus, address=address)
    return LumaPanel(driver, serial, rotate)


class I2cBuses:
    """What else there is on this machine, for whoever looks for a panel where it is not."""

    def numbers(self) -> list[int]:
        """The buses that have a node in /dev, in order."""
        found = (re.fullmatch(r"i2c-(\d+)", path.name) for path in Path("/dev").glob("i2c-*"))
        return sorted(int(match[1]) for match in found if match)

    def answers(self, bus: int, address: int) -> bool:
        """Does anything answer at `address`? Reads a byte, which no device of ours minds; never raises."""
        try:
            with import_module("smbus2").SMBus(bus) as there:
                there.read_byte(address)
        except (OSError, ImportError):
            return False
        return True


class Oled:
    """One panel that may come and go.

    `status` is how it stands, `retry_at` when `show` will try again (None while it answers), `last_image`
    what was last asked for, whether it arrived or not; `frames_sent` and `failures` count since the start.
    """

    def __init__(
        self,
        driver: str = "ssd1306",
        bus: int = 1,
        address: int = 0x3C,
        rotate: int = 0,
        *,
        open_device: OpenDevice = open_luma,
        buses: I2cBuses | None = None,
    ) -> None:
        self._buses = I2cBuses() if buses is None else buses
        self._driver, self._bus, self._address, self._rotate = driver, bus, address, rotate
        self._open_device = open_device
        self._panel: Panel | None = None
        self._on_panel: tuple[bytes, bool] | None = None
        self._dimmed = False
        self._wait: Duration = FIRST_RETRY
        self.status = PanelStatus(ok=True)
        self.retry_at: Instant | None = None
        self.last_image: Image.Image | None = None
        self.frames_sent = 0
        self.failures = 0

    def show(self, image: Image.Image, now: Instant, *, dimmed: bool = False) -> PanelStatus:
        """Bring `image` (mode "1", 128 x 64) to the panel if it does not show it already; gives `status`.

        `dimmed`: with little light. While the panel is lost this only keeps the image, until `retry_at`.
        Raises ValueError for an image of the wrong kind, and nothing for a panel.
        """
        if image.mode != "1" or image.size != SIZE_PX:
            raise ValueError(
                f"the OLED takes a picture of mode 1 and 128 x 64, not {image.mode} {image.size}"
            )
        self.last_image = image
        if self.retry_at is not None and now < self.retry_at:
            return self.status
        wanted = (image.tobytes(), dimmed)
        if self._panel is not None and wanted == self._on_panel:
            return self.status
        try:
            if self._panel is None:
                self._panel = self._open_device(self._driver, self._bus, self._address, self._rotate)
                self._dimmed = False
            if dimmed is not self._dimmed:
                self._panel.dim(dimmed)
                self._dimmed = dimmed
            if self._on_panel is None or wanted[0] != self._on_panel[0]:
                self._panel.display(image)
                self.frames_sent += 1
        except Exception as error:
            self._lose(error, now)
        else:
            self._on_panel = wanted
            self._wait, self.retry_at = FIRST_RETRY, None
            if not self.status.ok:
                self.status = PanelStatus(ok=True, since=now)
        return self.status

    def renew(self) -> None:
        """Build the panel anew at the next `show`.

        A panel that lost its power between two frames answers again, dark and without settings; nothing
        tells us, so an idle table does well to call this every few minutes.
        """
        self._drop()

    def clear(self) -> None:
        """Make the panel dark, if it is there; never raises."""
        if self._panel is None:
            return
        blank = Image.new("1", SIZE_PX)
        try:
            self._panel.display(blank)
        except Exception:
            # Nobody is left to tell: this is on the way out.
            self._drop()
        else:
            self._on_panel = (blank.tobytes(), self._dimmed)

    def close(self) -> None:
        """Make the panel dark and give the bus back; never raises, and may be called twice."""
        self.clear()
        self._drop()

    def _lose(self, error: Exception, now: Instant) -> None:
        self._drop()
        self.failures += 1
        self.retry_at = now + self._wait
        self._wait = min(2 * self._wait, LONGEST_RETRY)
        if self.status.ok:
            # Only the first cause of an outage is told; what follows is mostly its echo.
            told = _panel_error(error, self._bus, self._address, self._buses)
            self.status = PanelStatus(ok=False, text=str(told), since=now)

    def _drop(self) -> None:
        panel, self._panel, self._on_panel = self._panel, None, None
        if panel is not None:
            try:
                panel.close()
            except Exception:
                # The bus may be gone with the panel; there is nothing left to close then.
                return


def _panel_error(error: Exception, bus: int, address: int, buses: I2cBuses) -> PanelError:
    """`error`, of luma or the bus, as one line that names the panel, the trouble and the remedy."""
    if isinstance(error, PanelError):
        return error
    where = f"OLED on i2c-{bus} at 0x{address:02x}"
    number = _errno_of(error)
    kind = type(error).__name__
    if number == errno_names.ENOENT:
        remedy = "switch I2C on (dtparam=i2c_arm=on in config.txt) and reboot"
        others = ", ".join(f"i2c-{each}" for each in buses.numbers())
        if others:
            remedy = f"there is {others}: set bus in [[display]] to the panel's, or {remedy}"
        text = f"{where}: there is no /dev/i2c-{bus}: {remedy}"
    elif number in (errno_names.EACCES, errno_names.EPERM) or kind == "DevicePermissionError":
        text = f"{where}: /dev/i2c-{bus} may not be opened: add the table's user to the group i2c"
    elif number is not None:
        other = OTHER_ADDRESS.get(address)
        if other is not None and buses.answers(bus, other) and not buses.answers(bus, address):
            remedy = (
                f"something answers at 0x{other:02x}: if that is the panel, set address in [[display]] to it"
            )
        else:
            remedy = f"check the wiring and `i2cdetect -y {bus}`"
        text = f"{where} does not answer (errno {number}, {os.strerror(number)}): {remedy}"
    elif isinstance(error, ImportError):
        text = f"{where}: {error}: install heek with its dependencies again"
    else:
        text = f"{where} failed ({kind}: {error}): check driver, bus, address and rotate in [[display]]"
    result = PanelError(text)
    result.__cause__ = error
    return result


def _errno_of(error: BaseException | None) -> int | None:
    """The first errno along the chain: luma raises errors of its own around the kernel's."""
    while error is not None:
        if isinstance(error, OSError) and error.errno is not None:
            return error.errno
        error = error.__cause__ or error.__context__
    return None


def _nothing() -> None:
    """What luma's hook calls at the end of a device that we closed ourselves."""
