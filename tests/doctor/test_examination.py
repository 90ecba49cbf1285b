"""The doctor finds a sound board sound, and each trouble by itself, where it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from heek.clock import MILLISECOND
from heek.config import from_text
from heek.doctor.examination import Case, examine
from heek.doctor.findings import Finding, Mark, verdict
from heek.doctor.machine import Machine, Space
from heek.stations.header_chip import Chip, Line
from tests.doctor.boards import BOARDS, STOCK_CONFIG, lay_out

TABLE = '[table]\nstate_dir = "/var/lib/heek"\n[stations]\nbackend = "gpio"\n'
SOUND = {"gpiozero": "2.0.1", "lgpio": "0.2.2.0", "luma.oled": "3.16.0", "smbus2": "0.6.1"}
NOW = 1_790_000_000.0


def free(_chip: Chip, numbers: Iterable[int]) -> Mapping[int, Line]:
    return {number: Line(number, False, "", False) for number in numbers}


def board(root: Path, name: str = "pi4", config: str = TABLE, **more: object) -> Case:
    """A board on which all is well; `more` replaces parts of its machine."""
    lay_out(BOARDS[name], root)
    os.utime(root / "var/lib/systemd/timesync/clock", (NOW - 60, NOW - 60))
    machine = Machine(
        root,
        chips=lambda: BOARDS[name].chips,
        lines=free,
        libraries=SOUND,
        groups=frozenset({"gpio", "i2c", "dialout"}),
        run=lambda command: "throttled=0x0" if command == ["vcgencmd", "get_throttled"] else None,
        space=lambda _folder: Space(8 * 2**30, 29 * 2**30),
        wall_s=lambda: NOW,
        frame=lambda _display: (25 * MILLISECOND, ""),
        journal_faults=lambda _folder: [],
        lateness=lambda: [100_000] * 98 + [900_000, 4_000_000],
    )
    return Case(replace(machine, **more), from_text(config, "table.toml"), "table.toml")  # type: ignore[arg-type]


def found(case: Case) -> dict[str, Finding]:
    """Findings by area and thing; each stands there once and has one line."""
    findings = list(examine(case))
    named = {f"{finding.area}: {finding.what}": finding for finding in findings}
    assert len(named) == len(findings)
    assert not any("\n" in finding.found + finding.remedy for finding in findings)
    # What is not fine says what to do, or why it was not looked at.
    assert all(finding.remedy for finding in findings if finding.mark in (Mark.WARNING, Mark.WRONG))
    return named


def only(case: Case, what: str, mark: Mark) -> Finding:
    """The finding of one thing, when it is the only one that is not fine."""
    findings = found(case)
    assert {name: each.mark for name, each in findings.items() if each.mark is not Mark.OK} == {what: mark}
    return findings[what]


@pytest.mark.fault("F065")
@pytest.mark.parametrize("name", BOARDS)
def test_a_sound_board_is_sound(tmp_path: Path, name: str) -> None:
    """On a Pi 3, Zero 2, 4 and 5 with everything in place all is ok, and board, chip and bus are named."""
    findings = found(board(tmp_path, name))
    assert verdict(findings.values()) is Mark.OK
    assert findings["system: board"].found == BOARDS[name].model
    assert BOARDS[name].chips[0].label in findings["pins: chip"].found
    assert findings["panel: panel bus"].found == "/dev/i2c-1 at 400 kHz"
    assert findings["panel: panel"].found == "ssd1306 at 0x3c answers; a full frame takes 25.00 ms"
    assert findings["pins: lines"].found.startswith("all 20 are free: GPIO 4-13,16-17,20-27")
    assert findings["serial: ports"].found == f"/dev/serial0 is {BOARDS[name].serial0}"
    assert findings["boot: settings"].mark is Mark.OK


Change = Callable[[Path], Case]


def text(root: Path, name: str, content: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(content)


def with_file(name: str, content: str, config: str = TABLE, of: str = "pi4") -> Change:
    def change(root: Path) -> Case:
        case = board(root, of, config)
        text(root, name, content)
        return case

    return change


def without(name: str, config: str = TABLE) -> Change:
    def change(root: Path) -> Case:
        case = board(root, config=config)
        (root / name).unlink()
        return case

    return change


def with_parts(config: str = TABLE, of: str = "pi4", **parts: object) -> Change:
    return lambda root: board(root, of, config, **parts)


def held(number: int, consumer: str) -> Callable[..., Mapping[int, Line]]:
    def lines(chip: Chip, numbers: Iterable[int]) -> Mapping[int, Line]:
        return {**free(chip, numbers), number: Line(number, True, consumer, False)}

    return lines


CONFIG_TXT = "boot/firmware/config.txt"
HEEK = "include heek.txt\n"
SERIAL = TABLE + '[ki]\nlink = "serial"\nport = "/dev/serial0"\n'
RPIGPIO = TABLE + 'pin_factory = "rpigpio"\n'

TROUBLES: dict[str, tuple[Change, str, Mark, str]] = {
    "no Pi": (with_file("proc/device-tree/model", "Acer"), "system: board", Mark.WRONG, "Acer: no Raspberry"),
    "both libraries (F: they overwrite each other)": (
        with_parts(libraries=SOUND | {"RPi.GPIO": "0.7.1", "rpi-lgpio": "0.6"}),
        "pins: libraries",
        Mark.WRONG,
        "overwrite each other",
    ),
    "no library": (
        with_parts(libraries={"gpiozero": "2.0.1"}),
        "pins: libraries",
        Mark.WRONG,
        "lgpio is configured and not installed; there are gpiozero 2.0.1",
    ),
    "the stub": (
        with_parts(libraries=SOUND | {"lgpio": "0.0.0.2"}),
        "pins: libraries",
        Mark.WRONG,
        "lgpio 0.0.0.2 is a stub",
    ),
    "the other one beside": (
        with_parts(libraries=SOUND | {"RPi.GPIO": "0.7.1"}),
        "pins: libraries",
        Mark.WARNING,
        "RPi.GPIO is installed beside lgpio",
    ),
    "stamps by callback": (
        with_parts(RPIGPIO, libraries={"gpiozero": "2.0.1", "RPi.GPIO": "0.7.1"}),
        "pins: stamps",
        Mark.WARNING,
        "stamps by callback, + 4.00 ms: callbacks come 0.10 ms, p99 4.00 ms, at most 4.00 ms late",
    ),
    "a line is held (F011)": (
        with_parts(lines=held(4, "onewire@0")),
        "pins: line GPIO4",
        Mark.WRONG,
        "pen of seat 1: held by “onewire@0”",
    ),
    "groups (F089)": (
        with_parts(groups=frozenset({"gpio", "video"})),
        "system: groups",
        Mark.WRONG,
        "not in i2c (the OLED's bus)",
    ),
    "no bus": (without("dev/i2c-1"), "panel: panel bus", Mark.WRONG, "there is no /dev/i2c-1"),
    "a slow bus": (
        lambda root: _slow(root),
        "panel: panel bus",
        Mark.WARNING,
        "/dev/i2c-1 runs at 100 kHz: a full frame takes 0.093 s",
    ),
    "no panel": (
        with_parts(
            frame=lambda _display: (0, "OLED on i2c-1 at 0x3c does not answer (errno 121): check the wiring")
        ),
        "panel: panel",
        Mark.WRONG,
        "does not answer (errno 121)",
    ),
    "a slow panel": (
        with_parts(frame=lambda _display: (93 * MILLISECOND, "")),
        "panel: panel",
        Mark.WARNING,
        "a full frame takes 93.00 ms",
    ),
    "a console on the line (F064)": (
        with_file("proc/cmdline", "console=serial0,115200 root=/dev/x", SERIAL),
        "serial: console",
        Mark.WRONG,
        "console=serial0,115200 in cmdline.txt speaks on ttyS0",
    ),
    "a login on the line (F064)": (
        with_file("etc/systemd/system/getty.target.wants/serial-getty@ttyS0.service", "", SERIAL),
        "serial: console",
        Mark.WRONG,
        "a login prompt speaks on ttyS0",
    ),
    "the mini UART is fast (F065)": (
        with_parts(SERIAL + "baud = 460800\n"),
        "serial: UART",
        Mark.WARNING,
        "not sound at 460800 baud",
    ),
    "a name that changes (F058)": (
        with_file("dev/ttyUSB0", "", SERIAL.replace("serial0", "ttyUSB0")),
        "serial: ports",
        Mark.WARNING,
        "may be another device after a reboot; there are /dev/serial0 is ttyS0",
    ),
    "1-Wire (F014)": (
        with_file(CONFIG_TXT, STOCK_CONFIG + "dtoverlay=w1-gpio\n" + HEEK),
        "boot: conflict 1",
        Mark.WRONG,
        "dtoverlay=w1-gpio (config.txt line 20) takes GPIO4 (pen of seat 1)",
    ),
    "an older place of config.txt": (
        lambda root: _old_boot(root),
        "boot: conflict 1",
        Mark.WRONG,
        "dtoverlay=gpio-fan,gpiopin=12 (config.txt line 1) takes GPIO12 (LED of seat 4)",
    ),
    "without our settings": (
        with_file(CONFIG_TXT, STOCK_CONFIG + "dtparam=i2c_arm=on\n"),
        "boot: settings",
        Mark.WARNING,
        "lacks gpio= lines that keep the LEDs dark (op,dl), gpio= lines that pull the buttons up",
    ),
    "LEDs lit by a low line (F022)": (
        with_parts(TABLE + "led_active_high = false\n"),
        "boot: settings",
        Mark.WARNING,
        "lacks gpio= lines that keep the LEDs dark (op,dh)",
    ),
    "no time": (
        without("run/systemd/timesync/synchronized"),
        "system: clock",
        Mark.WARNING,
        "told by nobody",
    ),
    "a start in the past (F037)": (
        with_parts(wall_s=lambda: NOW - 86_400),
        "system: clock",
        Mark.WRONG,
        "this start lies in the past",
    ),
    "debugging was left on (F056)": (
        with_parts(TABLE + '[log]\nlevel = "debug"\n'),
        "system: log",
        Mark.WARNING,
        "log.level is debug, which wears out the card for nothing",
    ),
    "a card that went read-only (F050)": (
        with_file("proc/mounts", "/dev/mmcblk0p2 / ext4 ro,noatime 0 0\n"),
        "system: state folder",
        Mark.WRONG,
        "read-only (ext4)",
    ),
    "an overlay (F092)": (
        with_file("proc/mounts", "/dev/mmcblk0p2 /media/root-ro ext4 ro 0 0\noverlay / overlay rw 0 0\n"),
        "system: state folder",
        Mark.WRONG,
        "lies in memory (overlay)",
    ),
    "a folder below /proc": (
        with_file("proc/mounts", "/dev/mmcblk0p2 / ext4 rw 0 0\nproc /var/lib proc rw 0 0\n"),
        "system: state folder",
        Mark.WRONG,
        "in a file system of the kernel's (proc)",
    ),
    "somebody else's folder": (
        with_parts(writable=lambda _folder: False),
        "system: state folder",
        Mark.WRONG,
        "may not be written",
    ),
    "little room": (
        with_parts(space=lambda _folder: Space(100 * 2**20, 29 * 2**30)),
        "system: disk",
        Mark.WARNING,
        "100 MB of 29696 MB free",
    ),
    "no room (F049)": (
        with_parts(space=lambda _folder: Space(2**20, 2**30)),
        "system: disk",
        Mark.WRONG,
        "1 MB",
    ),
    "under-voltage now (F005)": (
        with_parts(run=lambda _command: "throttled=0x50005"),
        "system: power",
        Mark.WRONG,
        "under-voltage now, throttled now, under-voltage since the start, was throttled since the start",
    ),
    "it was hot": (
        with_parts(run=lambda _command: "throttled=0x80000"),
        "system: power",
        Mark.WARNING,
        "was at its temperature limit since the start",
    ),
    "no vcgencmd, but the kernel's sensor": (
        lambda root: _hwmon(root),
        "system: power",
        Mark.WRONG,
        "under-voltage now",
    ),
    "nobody tells": (
        with_parts(run=lambda _command: None),
        "system: power",
        Mark.SKIPPED,
        "neither vcgencmd",
    ),
    "a journal with faults (F046)": (
        with_parts(journal_faults=lambda _folder: ["event 7 is missing", "more"]),
        "table: journal",
        Mark.WRONG,
        "2 faults, the first: event 7 is missing",
    ),
    "the port is taken": (
        with_parts(port_trouble=lambda _host, _port: "Address already in use"),
        "table: page",
        Mark.WRONG,
        "127.0.0.1 port 8125 cannot be used: Address already in use",
    ),
}


def _slow(root: Path) -> Case:
    case = board(root)
    path = root / "sys/class/i2c-adapter/i2c-1/of_node/clock-frequency"
    path.write_bytes((100_000).to_bytes(4, "big"))
    return case


def _old_boot(root: Path) -> Case:
    case = board(root)
    settings = (root / "boot/firmware/heek.txt").read_text()
    (root / CONFIG_TXT).unlink()
    text(root, "boot/config.txt", "dtoverlay=gpio-fan,gpiopin=12\n" + settings)
    return case


def _hwmon(root: Path) -> Case:
    case = board(root, run=lambda _command: None)
    text(root, "sys/class/hwmon/hwmon0/name", "cpu_thermal\n")
    text(root, "sys/class/hwmon/hwmon1/name", "rpi_volt\n")
    text(root, "sys/class/hwmon/hwmon1/in0_lcrit_alarm", "1\n")
    return case


@pytest.mark.fault("F037", "F046", "F049", "F050", "F056", "F058", "F064", "F065")
@pytest.mark.parametrize("trouble", TROUBLES)
def test_each_trouble_is_the_one_thing_that_is_not_fine(tmp_path: Path, trouble: str) -> None:
    """One thing taken away or broken: that line says so with a remedy, and no other line complains."""
    change, what, mark, said = TROUBLES[trouble]
    assert said in only(change(tmp_path), what, mark).found


def test_a_missing_group_is_named_in_what_to_do(tmp_path: Path) -> None:
    """The command can be typed as it stands: the groups that are missing, and this user."""
    finding = found(board(tmp_path, groups=frozenset({"dialout"})))["system: groups"]
    assert finding.mark is Mark.WRONG
    assert "sudo usermod -aG gpio,i2c $USER," in finding.remedy


def test_a_chip_that_is_not_there(tmp_path: Path) -> None:
    """Without a header's chip the lines are not spoken of; the line lists the chips that are there."""
    case = board(tmp_path, chips=lambda: (Chip(3, "expander", 16),))
    finding = only(case, "pins: chip", Mark.WRONG)
    assert "gpiochip3 [expander] 16 lines" in finding.found
    assert "40-pin header" in finding.remedy


def test_rpigpio_on_a_pi_5(tmp_path: Path) -> None:
    """RPi.GPIO is said not to work there, before anybody tries."""
    libraries = {"gpiozero": "2.0.1", "RPi.GPIO": "0.7.1"}
    findings = found(board(tmp_path, "pi5", RPIGPIO, libraries=libraries))
    assert findings["pins: backend"].mark is Mark.WRONG


def test_a_running_table_is_left_alone(tmp_path: Path) -> None:
    """While a table runs its lines are not asked, nothing is shown on its panel, its port is not tried."""

    def never(*_: object) -> object:
        raise AssertionError("this belongs to the running table")

    case = board(tmp_path, lines=never, frame=never, port_trouble=never)
    findings = found(replace(case, pid=4711))
    assert "4711" in findings["table: running"].found
    skipped = {name for name, each in findings.items() if each.mark is Mark.SKIPPED}
    assert skipped == {"pins: lines", "panel: panel", "table: page"}
    assert verdict(findings.values()) is Mark.OK


def test_a_clock_that_chrony_has_set_is_sound(tmp_path: Path) -> None:
    """It leaves no mark as timesyncd does, and tells the kernel."""
    case = board(tmp_path, kernel_synchronised=lambda: True)
    (tmp_path / "run/systemd/timesync/synchronized").unlink()
    clock = found(case)["system: clock"]
    assert (clock.mark, "set by the network in this start" in clock.found) == (Mark.OK, True)


def test_every_mistake_of_the_configuration_is_a_finding(tmp_path: Path) -> None:
    """A file with two mistakes is two lines that are wrong; the rest is looked at all the same."""
    case = replace(board(tmp_path), mistakes=("t.toml:3: one", "t.toml:9: two"))
    findings = found(case)
    assert [findings[f"table: configuration {n}"].found for n in (1, 2)] == ["t.toml:3: one", "t.toml:9: two"]
    assert findings["pins: lines"].mark is Mark.OK


def test_a_simulated_table_needs_no_pins(tmp_path: Path) -> None:
    """With the mock backend a laptop with nothing of a Pi has nothing wrong."""
    machine = Machine(tmp_path, wall_s=lambda: NOW)
    config = from_text(TABLE.replace("gpio", "mock"), "table.toml")
    findings = found(Case(machine, config, "table.toml"))
    assert verdict(findings.values()) is Mark.WARNING
    assert {name for name, each in findings.items() if each.mark is Mark.WARNING} == {"system: clock"}


def test_a_pi_without_anything_has_no_traceback(tmp_path: Path) -> None:
    """An empty root: every look comes back with a line, none with an error."""
    findings = found(Case(Machine(tmp_path), from_text(TABLE, "table.toml"), "table.toml"))
    assert verdict(findings.values()) is Mark.WRONG
