"""A GPIO chip that the kernel simulates: the world outside moves its lines and reads them.

The programs of the guest see an ordinary /dev/gpiochipN. What a finger or a meter would do goes through
sysfs: `pull` is what hangs on a line, `value` the level that it has. A line that nobody drives has the level
of what hangs on it. Needs root, configfs and the module table-gpio-sim.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Final

CONFIGFS: Final = Path("/sys/kernel/config/gpio-sim")
PLATFORM: Final = Path("/sys/devices/platform")

HEADER_LABEL: Final = "pinctrl-bcm2711"
"""The label of the header's chip on a Pi 4."""
HEADER_LINES: Final = 58


class SimulatedChip:
    """One chip. `name` is its folder in configfs, `number` that of /dev/gpiochipN.

    Lines in `high` hang on high from the start, as a button does that its pull-up holds; all others on
    low, as an LED's do. Raises OSError if the kernel does not make it.
    """

    def __init__(
        self,
        name: str = "table",
        *,
        label: str = HEADER_LABEL,
        lines: int = HEADER_LINES,
        high: Iterable[int] = (),
    ) -> None:
        self.label, self.lines = label, lines
        self._folder = CONFIGFS / name
        self._doors: dict[tuple[int, str], int] = {}
        bank = self._folder / "bank0"
        bank.mkdir(parents=True)
        try:
            (bank / "num_lines").write_text(str(lines))
            (bank / "label").write_text(label)
            (self._folder / "live").write_text("1")
            chip = (bank / "chip_name").read_text().strip()
            self._device = PLATFORM / (self._folder / "dev_name").read_text().strip() / chip
            self.number = int(chip.removeprefix("gpiochip"))
            for line in high:
                self.pull(line, True)
        except BaseException:
            self.close()
            raise

    @property
    def device(self) -> Path:
        """Where programs find it."""
        return Path(f"/dev/gpiochip{self.number}")

    def pull(self, line: int, high: bool) -> int:
        """Let a line hang on high or low; CLOCK_MONOTONIC in ns just before it moved."""
        door = self._door(line, "pull", os.O_WRONLY)
        word = b"pull-up" if high else b"pull-down"
        before = time.monotonic_ns()
        os.pwrite(door, word, 0)
        return before

    def level(self, line: int) -> bool:
        """The level that a line has at this moment, whoever gives it."""
        return os.pread(self._door(line, "value", os.O_RDONLY), 4, 0).startswith(b"1")

    def levels(self, lines: Iterable[int]) -> dict[int, bool]:
        return {line: self.level(line) for line in lines}

    def share_high(self, line: int, seconds: float) -> float:
        """The share of samples, over a time, in which a line was high: the brightness of an LED."""
        samples = high = 0
        until = time.monotonic() + seconds
        while time.monotonic() < until or not samples:
            high += self.level(line)
            samples += 1
        return high / samples

    def close(self) -> None:
        """Take the chip away, under whoever uses it; may be called twice."""
        for door in self._doors.values():
            os.close(door)
        self._doors.clear()
        if self._folder.exists():
            live = self._folder / "live"
            if live.read_text().strip() == "1":
                live.write_text("0")
            (self._folder / "bank0").rmdir()
            self._folder.rmdir()

    def __enter__(self) -> SimulatedChip:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _door(self, line: int, name: str, flags: int) -> int:
        if not 0 <= line < self.lines:
            raise ValueError(f"{self.device} has the lines 0 to {self.lines - 1}, not {line}")
        door = self._doors.get((line, name))
        if door is None:
            door = os.open(self._device / f"sim_gpio{line}" / name, flags)
            self._doors[line, name] = door
        return door
