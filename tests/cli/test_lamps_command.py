"""`heek lamps off`: dark whatever the configuration is worth, at once, and never against a running table."""

from __future__ import annotations

import os
import textwrap
import time
from pathlib import Path

import pytest

from heek.cli import FAILED, OK, lamps, main
from heek.config.lamp_wiring import lamp_wiring
from heek.errors import BackendError, ConfigError
from heek.journal.lock import FolderLock, holder
from heek.stations import gpio
from heek.wiring.pin_map import DEFAULT_STATIONS
from tests.cli.commands import heek

LEDS = tuple(sorted(station.led for station in DEFAULT_STATIONS))


class Pins:
    """Stands for `open_factory` and `put_out`: writes down what was asked of the pins."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened: list[str] = []
        self.asked: list[tuple[tuple[int, ...], bool]] = []
        self.troubles: list[str] = []
        monkeypatch.setattr(gpio, "open_factory", self.open_factory)
        monkeypatch.setattr(gpio, "put_out", self.put_out)

    def open_factory(self, _backend: str, pin_factory: str, _clock: object) -> object:
        self.opened.append(pin_factory)
        return self

    def put_out(self, _factory: object, leds: tuple[int, ...], *, active_high: bool) -> list[str]:
        self.asked.append((tuple(leds), active_high))
        return self.troubles


@pytest.fixture
def pins(monkeypatch: pytest.MonkeyPatch) -> Pins:
    return Pins(monkeypatch)


def write(folder: Path, text: str) -> Path:
    file = folder / "table.toml"
    file.write_text(textwrap.dedent(text).replace("STATE", str(folder)))
    return file


def test_the_leds_of_a_configuration(pins: Pins, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lines, polarity and library are those of the file, and the answer names them."""
    file = write(
        tmp_path,
        """
        [table]
        state_dir = "STATE"
        [stations]
        backend = "gpio"
        pin_factory = "rpigpio"
        led_active_high = false
        [[station]]
        seat = 1
        led = 18
        [[station]]
        seat = 2
        """,
    )
    assert main(["lamps", "off", "--config", str(file)]) == OK
    assert (pins.opened, pins.asked) == (["rpigpio"], [((18, 23), False)])
    assert capsys.readouterr().out == "2 of 2 LEDs are dark: GPIO18, GPIO23\n"


BROKEN = {
    "no file": (None, LEDS, True),
    "no TOML": ("[stations\nled_active_high = false", LEDS, True),
    "a key that is none": (
        '[stations]\nbackend = "gpio"\nled_active_high = false\nnonsense = 1',
        LEDS,
        False,
    ),
    "a line of the UART": (
        '[stations]\nbackend = "gpio"\n[[station]]\nseat = 1\nled = 14\n[[station]]\nseat = 2\nled = 19',
        (19,),
        True,
    ),
    "no numbers": ('station = [3, {seat = "x", led = true}]\nstations = 4', LEDS, True),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_configuration_stops_nothing(
    pins: Pins, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    """With a file that has mistakes, or none, the LEDs go out, and one line says what was taken instead."""
    text, leds, active_high = BROKEN[case]
    file = tmp_path / "table.toml" if text is None else write(tmp_path, text)
    assert main(["lamps", "off", "--config", str(file)]) == OK
    assert pins.asked == [(leds, active_high)]
    said = capsys.readouterr().err
    assert said.startswith(f"heek: lamps: {file}")
    assert said.count("\n") == 1
    assert said.endswith("taken\n") or said.endswith("taken all the same\n")


def test_without_a_configuration_the_pin_map_is_taken(pins: Pins) -> None:
    """`heek lamps off` alone is for a table that is wired as the project says."""
    assert main(["lamps", "off"]) == OK
    assert pins.asked == [(LEDS, True)]


def test_simulated_leds_are_left(pins: Pins, tmp_path: Path) -> None:
    """With the mock backend no pin is opened."""
    assert main(["lamps", "off", "--config", str(write(tmp_path, '[stations]\nbackend = "mock"'))]) == OK
    assert pins.opened == []


def test_a_running_table_is_left_alone(
    pins: Pins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """While a table holds its state folder no pin is opened; afterwards it is."""
    file = write(tmp_path, '[table]\nstate_dir = "STATE"\n[stations]\nbackend = "gpio"')
    lock = FolderLock(tmp_path)
    assert main(["lamps", "off", "--config", str(file)]) == FAILED
    assert f"a table runs (pid {os.getpid()})" in capsys.readouterr().err
    assert pins.opened == []
    lock.release()
    assert main(["lamps", "off", "--config", str(file)]) == OK
    assert pins.opened == ["lgpio"]


def test_a_lamp_that_stays_lit_is_a_failure(pins: Pins, capsys: pytest.CaptureFixture[str]) -> None:
    """A line that would not go dark is named, and the code is 1."""
    pins.troubles = ["GPIO10: is held by “lg”"]
    assert main(["lamps", "off"]) == FAILED
    said = capsys.readouterr()
    assert said.err == "heek: lamps: GPIO10: is held by “lg”\n"
    assert said.out.startswith("4 of 5 LEDs are dark")


@pytest.mark.usefixtures("pins")
@pytest.mark.parametrize(
    ("hanging", "named"),
    [("heek.stations.gpio.put_out", "the pins"), ("heek.config.lamp_wiring.load", "table.toml")],
)
def test_what_hangs_is_given_up(
    hanging: str, named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What does not come back ends the process with 1, whoever waits for it, and is named."""
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(lamps, "PATIENCE_S", 0.02)
    release = time.monotonic() + 5

    def hang(*_: object, **__: object) -> list[str]:
        while not ended and time.monotonic() < release:
            os.sched_yield()
        raise ConfigError("it came back") if named == "table.toml" else BackendError("it came back")

    monkeypatch.setattr(hanging, hang)
    main(["lamps", "off", "--config", "table.toml"])
    assert ended == [FAILED]
    assert f"heek: lamps: {named} did not answer within 0.02 s\n" in capsys.readouterr().err


def test_a_file_that_does_not_end_is_no_configuration() -> None:
    """A device in a file's place is refused by its size, at once, and is not called a pin that hangs."""
    done = heek("lamps", "off", "--config", "/dev/zero")
    assert b"/dev/zero: is larger than" in done.stderr
    assert b"the LEDs of the pin map are taken" in done.stderr
    assert b"did not answer" not in done.stderr


def test_who_holds_a_folder(tmp_path: Path) -> None:
    """Nobody, us, and nobody again; a list that cannot be read tells nothing."""
    assert holder(tmp_path) is None
    lock = FolderLock(tmp_path)
    assert holder(tmp_path) == os.getpid()
    assert holder(tmp_path, tmp_path / "no-list") is None
    lock.release()
    assert holder(tmp_path) is None


def test_the_wiring_of_a_file_that_is_right(tmp_path: Path) -> None:
    """A good file is taken as it is, without a note."""
    wiring = lamp_wiring(write(tmp_path, '[table]\nstate_dir = "STATE"\n[stations]\nbackend = "gpio"'))
    assert (wiring.leds, wiring.note, wiring.state_dir) == (LEDS, "", tmp_path)
