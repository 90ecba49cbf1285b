"""Everything that the doctor looks at, thing by thing; judges what the machine says, touches nothing.

While a table runs its lines, its panel and its port are its own: what needs them is skipped, and said to be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias

from heek.clock import MILLISECOND
from heek.config import Config
from heek.doctor import boot_files
from heek.doctor.findings import Finding, Mark
from heek.doctor.ki import KiAsked, ki_findings
from heek.doctor.machine import Machine, milliseconds
from heek.doctor.running_link import link_findings
from heek.errors import BackendError
from heek.stations.header_chip import Chip, header, holder
from heek.wiring.pin_map import OLED_SCL, OLED_SDA, UART_RX, UART_TX, ranges

FRAME_SLOW: Final = 60 * MILLISECOND
"""A full frame at 400 kHz takes 23 ms on the wire, at 100 kHz 93."""
BUS_HZ: Final = 400_000
LITTLE_ROOM: Final = 200 * 2**20
NO_ROOM: Final = 20 * 2**20
"""Bytes that are left: a long season's journal, and what one evening may need."""
LATE: Final = 5 * MILLISECOND

THROTTLED: Final[dict[int, str]] = {
    0: "under-voltage now",
    1: "clock capped now",
    2: "throttled now",
    3: "at its temperature limit now",
    16: "under-voltage since the start",
    17: "clock was capped since the start",
    18: "was throttled since the start",
    19: "was at its temperature limit since the start",
}
"""The bits of the firmware's get_throttled."""

NEEDED_GROUPS: Final = {"gpio": "pins", "i2c": "the OLED's bus", "dialout": "serial ports"}

VOLATILE: Final = ("overlay", "tmpfs", "ramfs", "squashfs")
KERNELS_OWN: Final = ("proc", "sysfs", "devpts", "cgroup2", "debugfs", "securityfs")
"""File systems that hold no files, though root may seem to write there."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is looked at: a machine, and the table that it shall be."""

    machine: Machine
    config: Config
    """Of the table; where its own cannot be read, that of a table as it is wired by default."""
    source: str = ""
    """Where it was read from; empty: there was none."""
    mistakes: tuple[str, ...] = ()
    """What is wrong with it."""
    pid: int | None = None
    """The table that runs on its state folder."""

    @property
    def real(self) -> bool:
        """Whether the table has pins."""
        return self.config.stations.backend == "gpio"

    @property
    def model(self) -> str:
        return self.machine.text("/proc/device-tree/model") or ""

    def chip(self) -> Chip | None:
        try:
            return header(self.machine.chips())
        except BackendError:
            return None

    def boot(self) -> list[boot_files.Setting] | None:
        """What config.txt has in force; None: it cannot be read."""
        for folder in ("/boot/firmware", "/boot"):
            text = self.machine.text(f"{folder}/config.txt")
            if text is not None:
                return boot_files.settings(
                    text,
                    self.model,
                    lambda name, folder=folder: self.machine.text(f"{folder}/{name}"),  # type: ignore[misc]
                )
        return None


Look: TypeAlias = Callable[[Case], Iterator[Finding]]


def examine(case: Case) -> Iterator[Finding]:
    """Every finding, in the order in which people mend things."""
    for look in LOOKS:
        yield from look(case)


def _configuration(case: Case) -> Iterator[Finding]:
    if case.mistakes:
        for number, mistake in enumerate(case.mistakes, start=1):
            yield Finding(
                "table",
                f"configuration {number}",
                Mark.WRONG,
                mistake,
                "mend the file; what follows is for a table wired as the project says",
            )
    elif not case.source:
        yield Finding(
            "table",
            "configuration",
            Mark.WARNING,
            "none was given; what follows is for a table wired as the project says",
            "heek doctor --config FILE",
        )
    else:
        seats = ", ".join(map(str, case.config.seat_numbers))
        yield Finding("table", "configuration", Mark.OK, f"{case.source}: no mistake; seats {seats}")
    if case.pid is not None:
        yield Finding(
            "table",
            "running",
            Mark.OK,
            f"a table runs (pid {case.pid}); its lines, panel and port are left alone",
        )


def _board(case: Case) -> Iterator[Finding]:
    if not case.real:
        yield Finding("system", "board", Mark.OK, 'stations.backend is "mock": the pins are simulated')
    elif "Raspberry Pi" in case.model:
        yield Finding("system", "board", Mark.OK, case.model)
    else:
        yield Finding(
            "system",
            "board",
            Mark.WRONG,
            f"{case.model or 'no name in /proc/device-tree/model'}: no Raspberry Pi",
            'run it on one, or simulate the table: stations.backend = "mock"',
        )


def _libraries(case: Case) -> Iterator[Finding]:
    have = case.machine.libraries
    wanted = {"lgpio": ("lgpio",), "rpigpio": ("RPi.GPIO", "rpi-lgpio")}[case.config.stations.pin_factory]
    said = ", ".join(f"{name} {version}" for name, version in have.items()) or "none"
    if "RPi.GPIO" in have and "rpi-lgpio" in have:
        yield Finding(
            "pins",
            "libraries",
            Mark.WRONG,
            f"RPi.GPIO {have['RPi.GPIO']} and rpi-lgpio {have['rpi-lgpio']} overwrite each other's files",
            "remove both (pip uninstall RPi.GPIO rpi-lgpio), then install the one that is wanted",
        )
    elif case.real and not any(name in have for name in wanted):
        yield Finding(
            "pins",
            "libraries",
            Mark.WRONG,
            f"{case.config.stations.pin_factory} is configured and not installed; there are {said}",
            f"install heek with the extra [{'pi' if wanted[0] == 'lgpio' else 'pi-legacy'}], or "
            "python3-lgpio by apt with a venv that sees the system's packages",
        )
    elif "lgpio" in have and _version(have["lgpio"]) < (0, 2, 2):
        yield Finding(
            "pins",
            "libraries",
            Mark.WRONG,
            f"lgpio {have['lgpio']} is a stub or has faults that were mended since",
            "install lgpio 0.2.2.0 or newer",
        )
    elif case.config.stations.pin_factory == "lgpio" and "RPi.GPIO" in have:
        yield Finding(
            "pins",
            "libraries",
            Mark.WARNING,
            f"RPi.GPIO is installed beside lgpio; there are {said}",
            "remove the one that is not configured (pip uninstall RPi.GPIO): both would drive the same lines",
        )
    else:
        yield Finding("pins", "libraries", Mark.OK, said)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))


def _chip(case: Case) -> Iterator[Finding]:
    if not case.real:
        return
    try:
        chip = header(case.machine.chips())
    except BackendError as error:
        yield Finding("pins", "chip", Mark.WRONG, *_in_two(str(error)))
        return
    yield Finding("pins", "chip", Mark.OK, chip.words)
    if case.config.stations.pin_factory == "rpigpio" and chip.label == "pinctrl-rp1":
        yield Finding(
            "pins",
            "backend",
            Mark.WRONG,
            "rpigpio does not work on a Pi 5",
            'set stations.pin_factory = "lgpio"',
        )


def _in_two(text: str) -> tuple[str, str]:
    """A line of ours as what was found and what to do, which stands after its last semicolon."""
    found, _, remedy = text.rpartition("; ")
    return (found, remedy) if found else (text, "")


def _lines(case: Case) -> Iterator[Finding]:
    chip = case.chip()
    if not case.real or chip is None:
        return
    users = {
        number: f"{'LED' if role == 'led' else role} of seat {station.seat}"
        for station in case.config.wired
        for role, number in station.roles
    }
    if case.pid is not None:
        yield Finding("pins", "lines", Mark.SKIPPED, f"GPIO {ranges(users)} are the running table's")
        return
    told = case.machine.lines(chip, users)
    held = [number for number in sorted(users) if number in told and told[number].used]
    for number in held:
        yield Finding(
            "pins",
            f"line GPIO{number}",
            Mark.WRONG,
            f"{users[number]}: held by {holder(told[number])}",
            "stop that, take its overlay out of config.txt, or give the station another pin",
        )
    if len(told) < len(users):
        yield Finding(
            "pins", "lines", Mark.WARNING, f"{len(users) - len(told)} lines could not be asked", _join("gpio")
        )
    elif not held:
        yield Finding("pins", "lines", Mark.OK, f"all {len(users)} are free: GPIO {ranges(users)}")


def _join(*groups: str) -> str:
    return f"put this user in: sudo usermod -aG {','.join(groups)} $USER, and log in anew"


def _groups(case: Case) -> Iterator[Finding]:
    if not case.real:
        return
    if case.machine.is_root:
        yield Finding(
            "system",
            "groups",
            Mark.OK,
            "root may do everything; the unit's user has its groups from heek.sysusers.conf",
        )
        return
    needed = dict(NEEDED_GROUPS)
    if case.config.ki.link != "serial":
        del needed["dialout"]
    if all(display.driver == "dummy" for display in case.config.displays):
        del needed["i2c"]
    missing = {name: why for name, why in needed.items() if name not in case.machine.groups}
    if missing:
        named = ", ".join(f"{name} ({why})" for name, why in missing.items())
        yield Finding("system", "groups", Mark.WRONG, f"this user is not in {named}", _join(*missing))
    else:
        yield Finding("system", "groups", Mark.OK, f"this user is in {', '.join(needed)}")


def _stamps(case: Case) -> Iterator[Finding]:
    late = sorted(case.machine.lateness())
    if not late:
        return
    middle, most = late[len(late) // 2], late[-1]
    p99 = late[min(len(late) - 1, len(late) * 99 // 100)]
    measured = f"{milliseconds(middle)}, p99 {milliseconds(p99)}, at most {milliseconds(most)}"
    if case.config.stations.stamps != "callback":
        whose = "by the kernel" if case.real else "by the table's own clock"
        yield Finding("pins", "stamps", Mark.OK, f"stamps {whose}; callbacks come {measured} later")
        return
    yield Finding(
        "pins",
        "stamps",
        Mark.WARNING,
        f"stamps by callback, + {milliseconds(most)}: callbacks come {measured} late here, "
        "besides the interrupt",
        'set stations.pin_factory = "lgpio", whose stamps are the kernel\'s',
    )


def _panels(case: Case) -> Iterator[Finding]:
    for number, display in enumerate(case.config.displays, start=1):
        name = "panel" if len(case.config.displays) == 1 else f"panel {number}"
        if display.driver == "dummy":
            yield Finding("panel", name, Mark.OK, "a dummy: shown on the page alone")
            continue
        bus = f"/dev/i2c-{display.bus}"
        if not case.machine.exists(bus):
            yield Finding(
                "panel",
                f"{name} bus",
                Mark.WRONG,
                f"there is no {bus}",
                "dtparam=i2c_arm=on in config.txt, i2c-dev in /etc/modules-load.d, and reboot",
            )
            continue
        speed = case.machine.number(f"/sys/class/i2c-adapter/i2c-{display.bus}/of_node/clock-frequency")
        if speed is None:
            yield Finding("panel", f"{name} bus", Mark.OK, f"{bus} is there; its speed is not told")
        elif speed < BUS_HZ:
            yield Finding(
                "panel",
                f"{name} bus",
                Mark.WARNING,
                f"{bus} runs at {speed // 1000} kHz: a full frame takes {9310 / speed:.3f} s",
                "dtparam=i2c_arm_baudrate=400000 in config.txt, and reboot (a long cable may need 100 kHz)",
            )
        else:
            yield Finding("panel", f"{name} bus", Mark.OK, f"{bus} at {speed // 1000} kHz")
        if case.pid is not None:
            yield Finding("panel", name, Mark.SKIPPED, "it is the running table's")
            continue
        took, trouble = case.machine.frame(display)
        where = f"{display.driver} at 0x{display.address:02x}"
        if trouble:
            found, _, remedy = trouble.rpartition(": ")
            yield Finding("panel", name, Mark.WRONG, f"{where}: {found or trouble}", remedy if found else "")
        elif took > FRAME_SLOW:
            yield Finding(
                "panel",
                name,
                Mark.WARNING,
                f"{where} answers; a full frame takes {milliseconds(took)}",
                "check the bus' speed above",
            )
        else:
            yield Finding("panel", name, Mark.OK, f"{where} answers; a full frame takes {milliseconds(took)}")


def _serial(case: Case) -> Iterator[Finding]:
    machine = case.machine
    stable = [path.rpartition("/")[2] for path in machine.names("/dev/serial/by-id/*")]
    target = machine.link("/dev/serial0")
    there = [f"/dev/serial0 is {target}"] if target else []
    there += [f"/dev/serial/by-id/{name}" for name in stable]
    ki = case.config.ki
    if ki.link == "serial" and not machine.exists(ki.port):
        yield Finding(
            "serial",
            "ports",
            Mark.WRONG,
            f"ki.port {ki.port} is not there; there are {', '.join(there) or 'none with a lasting name'}",
            "plug it in, or name another in ki.port",
        )
    elif ki.link == "serial" and re.match(r"/dev/tty(USB|ACM)\d", ki.port):
        yield Finding(
            "serial",
            "ports",
            Mark.WARNING,
            f"ki.port {ki.port} may be another device after a reboot; there are {', '.join(there) or 'none'}",
            "name it by /dev/serial/by-id/…",
        )
    else:
        yield Finding("serial", "ports", Mark.OK, ", ".join(there) or "none with a lasting name")
    if ki.link == "serial":
        yield from _uart(case, Path(ki.port).name if "serial0" not in ki.port else target or "")


def _uart(case: Case, device: str) -> Iterator[Finding]:
    """Who else is on the table's own UART: a login, a console, Bluetooth."""
    machine = case.machine
    names = {device, "serial0"} - {""}
    console = [
        word
        for word in (machine.text("/proc/cmdline") or "").split()
        if word.startswith("console=") and word.removeprefix("console=").split(",")[0] in names
    ]
    logins = [
        path
        for folder in ("/etc/systemd/system", "/run/systemd/generator")
        for path in machine.names(f"{folder}/getty.target.wants/serial-getty@*.service")
        if path.rpartition("@")[2].removesuffix(".service") in names
    ]
    if console or logins:
        what = f"{console[0]} in cmdline.txt" if console else "a login prompt"
        yield Finding(
            "serial",
            "console",
            Mark.WRONG,
            f"{what} speaks on {device}",
            f"take console= out of cmdline.txt; sudo systemctl disable --now serial-getty@{device}; reboot",
        )
    else:
        yield Finding("serial", "console", Mark.OK, f"no console and no login on {device or 'the port'}")
    if device == "ttyS0" and "Raspberry Pi" in case.model:
        fast = case.config.ki.baud > 115200
        yield Finding(
            "serial",
            "UART",
            Mark.WARNING if fast else Mark.OK,
            "Bluetooth has the good UART; this is the mini UART"
            + (
                f", which is not sound at {case.config.ki.baud} baud" if fast else ", sound up to 115200 baud"
            ),
            "ki.baud = 115200, or dtoverlay=disable-bt in config.txt" if fast else "",
        )


def _clock(case: Case) -> Iterator[Finding]:
    machine = case.machine
    now = machine.wall_s()
    said = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M UTC")
    saved = 0.0
    for path in ("/var/lib/systemd/timesync/clock", "/etc/fake-hwclock.data"):
        try:
            saved = max(saved, (machine.root / path.lstrip("/")).stat().st_mtime)
        except OSError:
            continue
    if saved > now + 60:
        yield Finding(
            "system",
            "clock",
            Mark.WRONG,
            f"{said}, which is before it was last set: this start lies in the past",
            "wait for the network, or set it: sudo timedatectl set-time",
        )
    elif machine.exists("/run/systemd/timesync/synchronized") or machine.kernel_synchronised():
        yield Finding("system", "clock", Mark.OK, f"{said}, set by the network in this start")
    else:
        yield Finding(
            "system",
            "clock",
            Mark.WARNING,
            f"{said}, told by nobody in this start"
            + (" (the board has a clock)" if machine.exists("/dev/rtc0") else ""),
            "results are kept with that mark; connect it to a network, or fit a clock (RTC)",
        )


def _logging(case: Case) -> Iterator[Finding]:
    level = case.config.log.level
    debug = level == "debug"
    yield Finding(
        "system",
        "log",
        Mark.WARNING if debug else Mark.OK,
        f"log.level is {level}" + (", which wears out the card for nothing" if debug else ""),
        "take it out of the configuration when you have seen what you were looking for" if debug else "",
    )


def _mount_of(machine: Machine, folder: Path) -> tuple[str, str]:
    """File system and options of what `folder` lies on; empty where that is not told."""
    best, found = -1, ("", "")
    for line in (machine.text("/proc/mounts") or "").splitlines():
        words = line.split()
        if len(words) < 4:
            continue
        point = Path(words[1].replace("\\040", " "))
        if (point == folder or point in folder.parents) and len(point.parts) >= best:
            best, found = len(point.parts), (words[2], words[3])
    return found


def _disk(case: Case) -> Iterator[Finding]:
    machine, folder = case.machine, case.config.table.state_dir
    kind, options = _mount_of(machine, folder)
    if "ro" in options.split(","):
        yield Finding(
            "system",
            "state folder",
            Mark.WRONG,
            f"{folder} lies on a file system that is read-only ({kind})",
            "see dmesg for the card's faults; mount it rw again, or name another table.state_dir",
        )
    elif kind in VOLATILE:
        yield Finding(
            "system",
            "state folder",
            Mark.WRONG,
            f"{folder} lies in memory ({kind}): everything is lost with the power",
            "switch the overlay file system off (raspi-config), or give the folder a partition of its own",
        )
    elif kind in KERNELS_OWN:
        yield Finding(
            "system",
            "state folder",
            Mark.WRONG,
            f"{folder} lies in a file system of the kernel's ({kind}), which keeps no files",
            "name another table.state_dir",
        )
    elif not machine.writable(folder):
        yield Finding(
            "system",
            "state folder",
            Mark.WRONG if case.source else Mark.WARNING,
            f"{folder} may not be written by this user",
            "run this as the table's user, or give the folder to it",
        )
    else:
        yield Finding("system", "state folder", Mark.OK, f"{folder} on {kind or 'an unknown file system'}")
    space = machine.space(folder)
    if space is None:
        return
    said = f"{space.free_bytes // 2**20} MB of {space.total_bytes // 2**20} MB free"
    if space.free_bytes < LITTLE_ROOM:
        mark = Mark.WRONG if space.free_bytes < NO_ROOM else Mark.WARNING
        yield Finding("system", "disk", mark, said, "make room: without it results cannot be saved")
    else:
        yield Finding("system", "disk", Mark.OK, said)


def _power(case: Case) -> Iterator[Finding]:
    machine = case.machine
    if not case.real:
        return
    said = machine.run(["vcgencmd", "get_throttled"]) or machine.text(
        "/sys/devices/platform/soc/soc:firmware/get_throttled"
    )
    match = re.fullmatch(r"(?:throttled=)?(?:0x)?([0-9a-fA-F]+)", (said or "").strip())
    if match is None:
        for folder in machine.names("/sys/class/hwmon/hwmon*"):
            if machine.text(f"{folder}/name") == "rpi_volt":
                low = machine.text(f"{folder}/in0_lcrit_alarm") == "1"
                yield _power_finding(1 if low else 0)
                return
        yield Finding("system", "power", Mark.SKIPPED, "neither vcgencmd nor the kernel tells")
        return
    yield _power_finding(int(match[1], 16))


def _power_finding(bits: int) -> Finding:
    told = [words for bit, words in THROTTLED.items() if bits >> bit & 1]
    if not told:
        return Finding("system", "power", Mark.OK, "no under-voltage and no throttling since the start")
    low = bits & 0x10001
    return Finding(
        "system",
        "power",
        Mark.WRONG if bits & 0b111 else Mark.WARNING,
        ", ".join(told),
        "use the board's own supply and a short cable; a dip looks like a press" if low else "give it air",
    )


def _boot_settings(case: Case) -> Iterator[Finding]:
    if not case.real:
        return
    found = case.boot()
    if found is None:
        yield Finding("boot", "config.txt", Mark.SKIPPED, "neither in /boot/firmware nor in /boot")
        return
    users = {
        number: f"{'LED' if role == 'led' else role} of seat {station.seat}"
        for station in case.config.wired
        for role, number in station.roles
    }
    if any(display.driver != "dummy" for display in case.config.displays):
        users |= {OLED_SDA: "the OLED's SDA", OLED_SCL: "the OLED's SCL"}
    if case.config.ki.link == "serial" and "by-id" not in case.config.ki.port:
        users |= {UART_TX: "the serial line's TX", UART_RX: "the serial line's RX"}
    clashes = 0
    for taking in boot_files.takings(found):
        both = [f"GPIO{number} ({users[number]})" for number in taking.lines if number in users]
        if both:
            clashes += 1
            yield Finding(
                "boot",
                f"conflict {clashes}",
                Mark.WRONG,
                f"{taking.setting.words} takes {', '.join(both)}",
                "take that line out and reboot, or give the station other pins",
            )
    if not clashes:
        yield Finding("boot", "conflicts", Mark.OK, "no overlay of config.txt takes a line of the table")
    yield from _boot_wishes(case, found)


def _boot_wishes(case: Case, found: list[boot_files.Setting]) -> Iterator[Finding]:
    """What config.txt should say and does not."""
    missing = []
    real_panel = any(display.driver != "dummy" for display in case.config.displays)
    if real_panel and boot_files.value_of(found, "i2c_arm") not in ("on", "true", "1"):
        missing.append("dtparam=i2c_arm=on")
    if case.config.ki.link == "serial" and boot_files.value_of(found, "enable_uart") != "1":
        missing.append("enable_uart=1")
    leds, buttons = set(), set()
    wanted = "dl" if case.config.stations.led_active_high else "dh"
    for setting in found:
        if setting.key == "gpio":
            lines, _, what = setting.value.partition("=")
            words = what.split(",")
            numbers = set(_numbers(lines))
            leds |= numbers if "op" in words and wanted in words else set()
            buttons |= numbers if "ip" in words and "pu" in words else set()
    if {station.led for station in case.config.wired} - leds:
        missing.append(f"gpio= lines that keep the LEDs dark (op,{wanted})")
    if {number for station in case.config.wired for number in station.buttons} - buttons:
        missing.append("gpio= lines that pull the buttons up (ip,pu)")
    if missing:
        yield Finding(
            "boot",
            "settings",
            Mark.WARNING,
            f"config.txt lacks {', '.join(missing)}",
            "add what `heek config boot FILE` prints, and reboot",
        )
    else:
        yield Finding("boot", "settings", Mark.OK, "LEDs dark and buttons up from power-on")


def _numbers(text: str) -> Iterator[int]:
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        if match is not None:
            yield from range(int(match[1]), min(int(match[2] or match[1]), 99) + 1)


def _journal(case: Case) -> Iterator[Finding]:
    if not case.source:
        return
    faults = case.machine.journal_faults(case.config.table.state_dir)
    if faults is None:
        yield Finding("table", "journal", Mark.OK, "there is none yet")
    elif faults:
        yield Finding(
            "table",
            "journal",
            Mark.WRONG,
            faults[0] if len(faults) == 1 else f"{len(faults)} faults, the first: {faults[0]}",
            "heek journal verify",
        )
    else:
        yield Finding("table", "journal", Mark.OK, "sound")


def _set_aside(case: Case) -> Iterator[Finding]:
    """Damaged journals: nothing is lost, but somebody should look."""
    if not case.source:
        return
    folder = case.config.table.state_dir
    names = case.machine.set_aside(folder)
    if names:
        yield Finding(
            "table",
            "set aside",
            Mark.WARNING,
            f"{'a damaged journal was' if len(names) == 1 else 'damaged journals were'} set aside in "
            f"{', '.join(names)}",
            f"read {folder / names[-1]}/report.txt, and keep a copy of the folder elsewhere; then it may go",
        )


def _ki(case: Case) -> Iterator[Finding]:
    """Link, backlog and enrolment."""
    if not case.source:
        return
    machine, config, running = case.machine, case.config, case.pid is not None
    told = None
    if running and config.ki.link != "none" and config.web.port != 0:
        state = machine.page_state(config.web.host, config.web.port)
        ki = None if state is None else state.get("ki")
        told = ki if isinstance(ki, dict) else None
    asks = config.ki.link == "http" and config.ki.url and not running
    yield from ki_findings(
        KiAsked(
            config.ki,
            machine.ki_kept(config.table.state_dir),
            running,
            told,
            machine.unreached(config.ki.url) if asks else None,
            *machine.table_key(config.table.state_dir),
        )
    )


def _port(case: Case) -> Iterator[Finding]:
    web = case.config.web
    if web.port == 0:
        yield Finding("table", "page", Mark.OK, "web.port is 0: there is none")
    elif case.pid is not None:
        yield Finding("table", "page", Mark.SKIPPED, f"{web.host} port {web.port} is the running table's")
    else:
        trouble = case.machine.port_trouble(web.host, web.port)
        yield Finding(
            "table",
            "page",
            Mark.WRONG if trouble else Mark.OK,
            f"{web.host} port {web.port} {f'cannot be used: {trouble}' if trouble else 'is free'}",
            "stop what uses it, or set web.host or web.port" if trouble else "",
        )


def _running_link(case: Case) -> Iterator[Finding]:
    web, link = case.config.web, case.config.ki.link
    if case.pid is not None and link != "none":
        values = None if web.port == 0 else case.machine.metrics(web.host, web.port)
        yield from link_findings(link, values)


LOOKS: Final[tuple[Look, ...]] = (
    _configuration,
    _board,
    _libraries,
    _chip,
    _lines,
    _groups,
    _stamps,
    _panels,
    _serial,
    _boot_settings,
    _clock,
    _logging,
    _disk,
    _power,
    _journal,
    _set_aside,
    _ki,
    _port,
    _running_link,
)
"""In this order."""
